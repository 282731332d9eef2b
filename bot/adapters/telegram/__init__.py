"""Telegram: its messages become ours, our replies become its messages. The only place that knows its SDK.

An update is confirmed to the platform only after it was submitted; what happens to a reply is decided in
``bot.delivery``, which this package gives an outlet.
"""

from __future__ import annotations

from bot.adapters.telegram.adapter import TelegramAdapter, check
from bot.adapters.telegram.connection import API, Pace
from bot.adapters.telegram.webhook import Webhook

__all__ = ["API", "Pace", "TelegramAdapter", "Webhook", "check"]
