"""The platforms, each in one package with its one SDK, listed in one table and loaded only when configured."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from typing import Any, Final, cast

from bot.message import Adapter
from config.settings import Settings

ADAPTERS: Final = {"telegram": "bot.adapters.telegram", "discord": "bot.adapters.discord"}


def configured(settings: Settings, clock: Callable[[], datetime]) -> list[Adapter]:
    """The adapters whose token is set, made but not started. ``clock`` returns aware UTC."""
    made = []
    if settings.telegram_bot_token is not None:
        made.append(_telegram(settings, settings.telegram_bot_token.get_secret_value(), clock))
    if settings.discord_bot_token is not None:
        adapter = _load("discord", "DiscordAdapter")
        made.append(adapter(settings.discord_bot_token.get_secret_value(), settings.discord.proxy, now=clock))
    return [cast("Adapter", adapter) for adapter in made]


def telegram_webhook(settings: Settings) -> object | None:
    """The webhook that Telegram is to post to; None for a bot that polls."""
    chosen, secret = settings.telegram, settings.telegram_webhook_secret
    if chosen.webhook_url is None:
        return None
    webhook: object = _load("telegram", "Webhook")(
        chosen.webhook_url,
        None if secret is None else secret.get_secret_value(),
        chosen.webhook_host,
        chosen.webhook_port,
    )
    return webhook


def _telegram(settings: Settings, token: str, clock: Callable[[], datetime]) -> object:
    chosen = settings.telegram
    return _load("telegram", "TelegramAdapter")(
        token,
        clock=clock,
        base_url=chosen.base_url,
        proxy=chosen.proxy,
        drafts=chosen.drafts,
        webhook=telegram_webhook(settings),
    )


def _load(name: str, what: str) -> Any:
    return getattr(import_module(ADAPTERS[name]), what)
