"""Asks a platform whose token this is. Its SDK is loaded only when there is a token to try."""

from __future__ import annotations

from importlib import import_module
from typing import Literal

from bot.adapters import ADAPTERS
from config.settings import Settings

Platform = Literal["telegram", "discord"]


async def whose(platform: Platform, token: str, settings: Settings, *, serving: bool = False) -> str:
    """Return the name of the bot that ``token`` belongs to. Raises AdapterError, which names the fix.

    ``serving`` also looks for what would keep the bot from being served, such as another program's webhook.
    """
    adapter = import_module(ADAPTERS[platform])
    if platform == "telegram":
        polls = serving and settings.telegram.webhook_url is None
        name = await adapter.check(token, settings.telegram.base_url, settings.telegram.proxy, polls=polls)
    else:
        name = await adapter.check(token, settings.discord.proxy)
    return str(name)
