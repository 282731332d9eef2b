"""What was said while the bot was away, read before what is said now.

Discord keeps no updates for a bot that is not there; it keeps the messages. Each chat waits for its own
history, for a bounded time, and for no other chat's. What cannot be seen is who wrote in private for the
first time ever meanwhile: Discord lists no private channels to a bot, and tells of one when something is
said there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from bot.adapters.discord.pauses import pauses
from bot.adapters.discord.quiet import report
from bot.message import ChatRef, Seen

AT_ONCE: Final = 4
"""Chats whose history is read at the same time."""
PATIENCE: Final = 20.0
"""Seconds for which what is said now waits for the history of its chat."""

log: Final = logging.getLogger(__name__)


class Unread(Exception):
    """A history cannot be read now, and may be later."""


class Past(Protocol):
    """Where the histories are. ``seen`` is what :data:`bot.message.Seen` returns."""

    def known(self, seen: Mapping[ChatRef, str]) -> Mapping[ChatRef, int]:
        """Return the chats to read, the first one first, and the newest message heard in each."""

    def elsewhere(self, seen: Mapping[ChatRef, str]) -> Mapping[ChatRef, int]:
        """Return others where something was said; asked when the session is up."""

    async def read(self, chat: ChatRef, newest: int) -> None:
        """Hand in what was said in a chat after the message ``newest``, oldest first. Raises Unread."""


class CatchUp:
    """The catching up of one gateway session. ``sleep`` waits for so many seconds."""

    def __init__(self, seen: Seen, past: Past, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._seen = seen
        self._past = past
        self._sleep = sleep
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._listed = asyncio.Event()
        self._ready = asyncio.Event()
        self._held: dict[ChatRef, asyncio.Event] = {}

    def begin_reading(self) -> None:
        """The session is up: histories may be read from now on."""
        self._ready.set()

    async def run(self) -> None:
        """Read the histories. Ends when all are read; one that cannot be had is tried again until cancelled."""
        try:
            seen = await self._seen()
            known = self._past.known(seen)
            self._held = {chat: asyncio.Event() for chat in known}
            self._listed.set()
            await self._ready.wait()
            chats = {
                **known,
                **{chat: newest for chat, newest in self._past.elsewhere(seen).items() if chat not in known},
            }
            async with asyncio.TaskGroup() as reading:
                for chat, newest in chats.items():
                    reading.create_task(self._catch_up(chat, newest))
        finally:
            self._listed.set()
            for read in self._held.values():
                read.set()

    async def passed(self, chat: ChatRef) -> None:
        """Wait until what was said in ``chat`` before is handed in, at most PATIENCE seconds."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._listed.wait()
                if (read := self._held.get(chat)) is not None:
                    await read.wait()
        except TimeoutError:
            log.warning("chat %s: its history takes long, what is said now goes first", chat.key)
            if (read := self._held.get(chat)) is not None:
                read.set()

    async def _catch_up(self, chat: ChatRef, newest: int) -> None:
        try:
            for pause in pauses():
                if await self._is_read(chat, newest):
                    return
                await self._sleep(pause)
        finally:
            if chat in self._held:
                self._held[chat].set()

    async def _is_read(self, chat: ChatRef, newest: int) -> bool:
        try:
            async with self._turn:
                await self._past.read(chat, newest)
        except Unread as trouble:
            log.warning("chat %s: what was said meanwhile cannot be read yet: %s", chat.key, trouble)
            return False
        except Exception as error:  # noqa: BLE001
            # The border of one chat: whatever is wrong with its history, the others are read.
            report(f"chat {chat.key}: what was said there meanwhile cannot be read", error)
        return True
