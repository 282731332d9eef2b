"""Talks: the agent, its commands, its adapters."""

__version__ = "0.1.0"
