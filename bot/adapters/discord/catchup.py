"""What was said while the bot was away, read before what is said now. Knows no SDK.

Discord keeps no updates for a bot that is not there; it keeps the messages. Each chat waits for its own
history, for a bounded time, and for no other chat's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from bot.message import ChatRef, Seen

AT_ONCE: Final = 4
"""Chats whose history is read at the same time."""
PATIENCE: Final = 20.0
"""Seconds for which what is said now waits for the history of its chat."""

log: Final = logging.getLogger(__name__)


class CatchUp:
    """The catching up of one gateway session with the chats of ``platform`` that are known.

    ``read(chat, newest)`` hands in what was said there after the message ``newest``, oldest first.
    """

    def __init__(self, seen: Seen, read: Callable[[ChatRef, str], Awaitable[None]], platform: str) -> None:
        self._seen = seen
        self._read = read
        self._platform = platform
        self._listed = asyncio.Event()
        self._ready = asyncio.Event()
        self._held: dict[ChatRef, asyncio.Event] = {}

    def begin_reading(self) -> None:
        """The session is up: histories may be read from now on."""
        self._ready.set()

    async def run(self) -> None:
        """Read every chat's history, the liveliest chats first."""
        try:
            seen = {chat: newest for chat, newest in (await self._seen()).items() if chat.platform == self._platform}
            self._held = {chat: asyncio.Event() for chat in seen}
            self._listed.set()
            await self._ready.wait()
            turn = asyncio.Semaphore(AT_ONCE)
            async with asyncio.TaskGroup() as reading:
                for chat in sorted(seen, key=lambda chat: int(seen[chat]), reverse=True):
                    reading.create_task(self._catch_up(chat, seen[chat], turn))
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

    async def _catch_up(self, chat: ChatRef, newest: str, turn: asyncio.Semaphore) -> None:
        try:
            async with turn:
                await self._read(chat, newest)
        except Exception:
            # The border of one chat: whatever is wrong with its history, the others are read.
            log.exception("chat %s: what was said there meanwhile cannot be read", chat.key)
        finally:
            self._held[chat].set()
