"""Asks a platform whose token this is. Its SDK is loaded only when there is a token to try."""

from __future__ import annotations

from importlib import import_module
from typing import Literal

from bot.adapters import ADAPTERS, telegram_webhook
from config.settings import Settings

Platform = Literal["telegram", "discord"]


async def whose(platform: Platform, token: str, settings: Settings, *, serving: bool = False) -> str:
    """Return the name of the bot that ``token`` belongs to. Raises AdapterError, which names the fix.

    ``serving`` also looks for what would keep the bot from being served, such as another program's webhook,
    or one of our own without a secret.
    """
    adapter = import_module(ADAPTERS[platform])
    if platform == "telegram":
        webhook = telegram_webhook(settings) if serving else None
        chosen, polls = settings.telegram, serving and webhook is None
        name = await adapter.check(token, chosen.base_url, chosen.proxy, polls=polls, webhook=webhook)
    else:
        name = await adapter.check(token, settings.discord.proxy)
    return str(name)
