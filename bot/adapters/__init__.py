"""The platforms, each in one file with its one SDK, listed in one table and loaded only when configured."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from typing import Final, cast

from bot.message import Adapter
from config.settings import Settings

ADAPTERS: Final = {
    "telegram": "bot.adapters.telegram:TelegramAdapter",
    "discord": "bot.adapters.discord:DiscordAdapter",
}


def configured(settings: Settings, clock: Callable[[], datetime]) -> list[Adapter]:
    """The adapters whose token is set, made but not started. ``clock`` returns aware UTC."""
    made = []
    if settings.telegram_bot_token is not None:
        made.append(
            _load("telegram")(
                settings.telegram_bot_token.get_secret_value(),
                clock=clock,
                base_url=settings.telegram.base_url,
                proxy=settings.telegram.proxy,
            )
        )
    if settings.discord_bot_token is not None:
        made.append(_load("discord")(settings.discord_bot_token.get_secret_value(), proxy=settings.discord.proxy))
    return [cast("Adapter", adapter) for adapter in made]


def _load(name: str) -> type:
    module, _, kind = ADAPTERS[name].partition(":")
    return cast("type", getattr(import_module(module), kind))
