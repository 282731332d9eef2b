"""Numbered ``.sql`` files, applied in order, never edited once shipped."""
