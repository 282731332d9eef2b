"""Remembers. Knows neither platform nor bot."""
