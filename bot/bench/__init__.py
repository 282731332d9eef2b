"""Measurements of the product itself: how well recall finds what a question needs, and how fast it is."""
