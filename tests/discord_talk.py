"""The Discord adapter at work against :mod:`tests.servers.discord_server`, for the tests of its parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import discord as sdk
import pytest

from bot.adapters.discord import DiscordAdapter
from bot.delivery import Tempo
from bot.message import ChatRef, CommandSpec, DeliveryError, Incoming, Reply, Sighted, Sink, Update
from tests.conftest import Clock
from tests.servers.discord_server import DiscordServer, Place, User

MARA = User("900000000000002001", "Mara")
TOMAS = User("900000000000000777", "Tomas")
ROBOT = User("900000000000009009", "Robot", bot=True)
COMMANDS = (
    CommandSpec("whatdoyouknow", {"en": "What I remember about you", "zh": "我记得你的哪些事"}),
    CommandSpec("forget", {"en": "Forget something", "zh": "忘掉某件事", "zh-TW": "忘掉某件事情"}),
    CommandSpec("link", {"en": "Link your other account", "zh": "关联另一个账号"}, private=True),
)

Told = TypeVar("Told", bound=Update)


class Time:
    """Seconds that pass only when told to, and only as many as somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._changed = asyncio.Condition()

    @property
    def tempo(self) -> Tempo:
        return Tempo(lambda: self.now, self.sleep)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        woken = asyncio.get_running_loop().create_future()
        async with self._changed:
            self._sleepers.append((self.now + seconds, woken))
            self._changed.notify_all()
        await woken

    @property
    def sleepers(self) -> int:
        return sum(not woken.done() for _, woken in self._sleepers)

    async def let_pass(self, seconds: float) -> None:
        """Wait until somebody sleeps for exactly this long, then let the time pass."""
        end = self.now + seconds
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(
                lambda: any(abs(due - end) < 1e-6 and not woken.done() for due, woken in self._sleepers)
            )
        self.now = end
        for due, woken in self._sleepers:
            if due <= end + 1e-6 and not woken.done():
                woken.set_result(None)


@dataclass
class Talk:
    """The adapter at work, and what it has submitted. ``journal`` is what it learns of ``seen``."""

    adapter: DiscordAdapter
    time: Time
    clock: Clock = field(default_factory=Clock)
    journal: Mapping[ChatRef, str] = field(default_factory=dict)
    sights: asyncio.Queue[Sighted] = field(default_factory=asyncio.Queue)
    hold_sights: asyncio.Event | None = None
    submitted: asyncio.Queue[tuple[Update, Sink]] = field(default_factory=asyncio.Queue)

    async def submit(self, update: Update, sink: Sink) -> None:
        if isinstance(update, Sighted):
            self.sights.put_nowait(update)
            if self.hold_sights is not None:
                await self.hold_sights.wait()
        else:
            self.submitted.put_nowait((update, sink))

    async def seen(self) -> Mapping[ChatRef, str]:
        return self.journal

    async def next(self, kind: type[Told]) -> tuple[Told, Sink]:
        async with asyncio.timeout(10):
            update, sink = await self.submitted.get()
        assert isinstance(update, kind), update
        return update, sink

    async def sighted(self) -> Sighted:
        """The next word of who may see which channel."""
        async with asyncio.timeout(10):
            return await self.sights.get()

    async def message(self) -> tuple[Incoming, Sink]:
        return await self.next(Incoming)

    async def run(self, commands: tuple[CommandSpec, ...] = ()) -> None:
        await self.adapter.run(self.submit, commands, self.seen)


def new_talk(token: str, journal: Mapping[ChatRef, str] | None = None) -> Talk:
    """An adapter that is not running yet."""
    time, clock = Time(), Clock()
    adapter = DiscordAdapter(token, now=clock, tempo=time.tempo)
    return Talk(adapter, time, clock, journal or {})


@asynccontextmanager
async def talking(
    server: DiscordServer, *, journal: Mapping[ChatRef, str] | None = None, commands: tuple[CommandSpec, ...] = COMMANDS
) -> AsyncIterator[Talk]:
    """Run an adapter against the server; a failure of the adapter fails the test."""
    talk = new_talk(server.token, journal)
    sessions = len(server.gateway.identified)
    run = asyncio.create_task(talk.run(commands))
    online = asyncio.create_task(server.online(sessions + 1))
    await asyncio.wait({run, online}, return_when=asyncio.FIRST_COMPLETED)
    assert not run.done(), run.exception()
    yield talk
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def refused(sink: Sink, reply: Reply) -> DeliveryError:
    """Send a reply that does not arrive, and return what that was called."""
    with pytest.raises(DeliveryError) as told:
        await sink.send(reply)
    return told.value


@pytest.fixture(name="discord")
async def discord_server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as server:
        with server.reached():
            yield server


@pytest.fixture(name="place")
def general_channel(discord: DiscordServer) -> Place:
    return discord.guild("general")


@pytest.fixture(name="talk")
async def running_talk(discord: DiscordServer, place: Place) -> AsyncIterator[Talk]:
    async with talking(discord) as running:
        yield running


@pytest.fixture
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the SDK identify anew at once; it waits five seconds between two times."""

    async def at_once(*_: object, **__: object) -> None: ...

    monkeypatch.setattr(sdk.Client, "before_identify_hook", at_once)
