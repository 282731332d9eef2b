"""The command menus: one for each kind of chat and each language, written only where they differ."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final

from telegram import (
    Bot,
    BotCommand,
    BotCommandScope,
    BotCommandScopeAllGroupChats,
    BotCommandScopeAllPrivateChats,
)
from telegram.error import RetryAfter, TelegramError

from bot.adapters.telegram.connection import seconds
from bot.delivery import Tempo
from bot.message import CommandSpec

_log: Final = logging.getLogger(__name__)

_DEFAULT: Final = "en"
"""Its menu is the one of every language without its own."""
_FLOODS: Final = 5
"""Floods that one menu waits out."""
_CODE_LENGTH: Final = 2
"""Telegram's languages are two letters; it knows one Chinese."""


async def write_menus(bot: Bot, commands: Sequence[CommandSpec], tempo: Tempo) -> None:
    """Write each menu that the platform does not have like this; one that is refused stops no other.

    Floods are waited out, a few times.
    """
    for scope, language, menu in _menus(commands):
        code = None if language == _DEFAULT else language
        try:
            await _patiently(partial(_write, bot, menu, scope, code), tempo)
        except TelegramError as error:
            _log.warning("The command menu (%s, %s) was not written: %s", scope.type, language, error)


async def _write(bot: Bot, menu: list[BotCommand], scope: BotCommandScope, code: str | None) -> None:
    if list(await bot.get_my_commands(scope=scope, language_code=code)) != menu:
        await bot.set_my_commands(menu, scope=scope, language_code=code)


async def _patiently(write: Callable[[], Awaitable[None]], tempo: Tempo) -> None:
    for _ in range(_FLOODS):
        try:
            return await write()
        except RetryAfter as flood:
            await tempo.sleep(seconds(flood))
    return await write()


def _menus(commands: Sequence[CommandSpec]) -> Iterator[tuple[BotCommandScope, str, list[BotCommand]]]:
    public = [command for command in commands if not command.private]
    languages = sorted({code for command in commands for code in command.descriptions if len(code) == _CODE_LENGTH})
    for scope, shown in ((BotCommandScopeAllPrivateChats(), commands), (BotCommandScopeAllGroupChats(), public)):
        for language in languages:
            menu = [
                BotCommand(command.name, command.descriptions[language])
                for command in shown
                if language in command.descriptions
            ]
            if menu:
                yield scope, language, menu
