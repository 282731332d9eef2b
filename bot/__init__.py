"""Talks: the agent, its commands, its adapters."""
