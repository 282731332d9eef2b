"""The platforms, each in one file with its one SDK."""
