"""Asks a platform whose token this is. Its SDK is loaded only when there is a token to try."""

from __future__ import annotations

from importlib import import_module
from typing import Literal

from bot.adapters import ADAPTERS
from config.settings import Settings

Platform = Literal["telegram", "discord"]


async def whose(platform: Platform, token: str, settings: Settings) -> str:
    """Return the name of the bot that ``token`` belongs to. Raises AdapterError, which names the fix."""
    adapter = import_module(ADAPTERS[platform].partition(":")[0])
    if platform == "telegram":
        name = await adapter.check(token, settings.telegram.base_url, settings.telegram.proxy)
    else:
        name = await adapter.check(token, settings.discord.proxy)
    return str(name)
