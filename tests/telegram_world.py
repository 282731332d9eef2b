"""Telegram in small, for tests of its adapter: the strict server, the bot on it, and a clock both go by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from bot.adapters.telegram import Pace, TelegramAdapter
from bot.delivery import Tempo
from bot.message import ChatRef, CommandSpec, Incoming, Sink, Update
from tests.conftest import Clock
from tests.servers.telegram_chats import DATE
from tests.servers.telegram_server import TelegramServer

ANNA, BERT = 1001, 1002
GROUP, NEW_GROUP = -500, -100500
SAID_AT: Final = datetime.fromtimestamp(DATE, UTC)


class Time:
    """Seconds that pass only when told to; whoever sleeps is woken when their time has come."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sleepers: list[tuple[float, float, asyncio.Future[None]]] = []
        self._news = asyncio.Event()

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.sleepers.append((self.now + seconds, seconds, woken))
        self._news.set()
        await woken

    async def somebody_sleeps(self, seconds: float) -> None:
        """Wait until somebody sleeps for about that long (pauses widen a little as texts grow)."""
        async with asyncio.timeout(5):
            while not any(self._about(length, seconds) and not woken.done() for _, length, woken in self.sleepers):
                self._news.clear()
                await self._news.wait()

    async def passes(self, seconds: float) -> None:
        """Let somebody's sleep of about that long be over."""
        await self.somebody_sleeps(seconds)
        self.advance(1.1 * seconds)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for moment, _, woken in self.sleepers:
            if moment <= self.now and not woken.done():
                woken.set_result(None)
        self.sleepers = [sleeper for sleeper in self.sleepers if not sleeper[2].done()]

    @staticmethod
    def _about(length: float, seconds: float) -> bool:
        return seconds <= length <= 1.02 * seconds


@dataclass
class Desk:
    """Where updates arrive: the conversation's side of an adapter. ``hold`` keeps submits from returning."""

    updates: asyncio.Queue[tuple[Update, Sink]] = field(default_factory=asyncio.Queue)
    hold: asyncio.Event | None = None

    async def submit(self, update: Update, sink: Sink) -> None:
        await self.updates.put((update, sink))
        if self.hold is not None:
            await self.hold.wait()

    async def next(self) -> tuple[Update, Sink]:
        return await asyncio.wait_for(self.updates.get(), 5)

    async def message(self) -> tuple[Incoming, Sink]:
        update, sink = await self.next()
        assert isinstance(update, Incoming), update
        return update, sink


async def nothing_seen() -> Mapping[ChatRef, str]:
    return {}


class World:
    """A platform, the bot on it, and a clock both go by."""

    def __init__(self, server: TelegramServer, time: Time, clock: Clock) -> None:
        self.server = server
        self.time = time
        self.clock = clock
        self.desk = Desk()

    def adapter(self, token: str | None = None, **options: Any) -> TelegramAdapter:
        pace = Pace(long_poll=1, tempo=Tempo(self.time, self.time.sleep))
        base_url = self.server.base_url + "/"
        return TelegramAdapter(token or self.server.token, clock=self.clock, base_url=base_url, pace=pace, **options)

    def start(self, commands: tuple[CommandSpec, ...] = (), token: str | None = None) -> asyncio.Task[None]:
        return asyncio.create_task(self.adapter(token).run(self.desk.submit, commands, nothing_seen))

    @asynccontextmanager
    async def running(self, commands: tuple[CommandSpec, ...] = (), **options: Any) -> AsyncIterator[TelegramAdapter]:
        adapter, sign = self.adapter(**options), "setWebhook" if "webhook" in options else "getUpdates"
        before = len(self.server.sent(sign))
        running = asyncio.create_task(adapter.run(self.desk.submit, commands, nothing_seen))
        try:
            await self.server.until(lambda: len(self.server.sent(sign)) > before or running.done())
            yield adapter
        finally:
            await stop(running)

    async def asked(self, text: str = "hello", user_id: int = ANNA, chat_id: int | None = None) -> Sink:
        """Have somebody write and return where the answer goes."""
        self.server.say(user_id, text, chat_id)
        _, sink = await self.desk.message()
        return sink

    async def shows(self, *texts: str, chat_id: int = ANNA) -> None:
        """Wait until the bot's messages in a chat say this."""
        await self.server.until(lambda: self.server.chat(chat_id).texts == list(texts))


async def stop(running: asyncio.Task[None]) -> None:
    running.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(running), 10)
