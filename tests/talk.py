"""People talking to the whole bot: the real composition over a real file, a scripted endpoint, a clock that stands."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bot.app import App, built
from bot.message import ChatRef, Incoming, Posted, Press, Reply, Update
from bot.trace import TurnTrace
from config.settings import (
    AccessSettings,
    ConversationSettings,
    EmbedderSettings,
    ModelSettings,
    PrivacySettings,
    Settings,
)
from memory import DATABASE_NAME, engine
from memory.model import Account, Chat, Entry
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer

PLATFORM = "test"
NO_EMBEDDER = EmbedderSettings(kind="none")
EVERYBODY = AccessSettings(open="everybody")
"""What tests of anything but the door set: by default nobody is let in."""


class Door(asyncio.Event):
    """What holds an answer back; ``reached`` tells that somebody waits at it."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def wait(self) -> Literal[True]:
        self.reached.set()
        return await super().wait()


class Screen:
    """The sink of one update: what grew, what was sent."""

    def __init__(self) -> None:
        self.frames: list[str] = []
        self.replies: list[Reply] = []
        self.dones = 0
        self.finished = asyncio.Event()
        self.posted: Posted | None = None

    def watch(self, posted: Posted) -> None:
        self.posted = posted

    async def show(self, text: str) -> None:
        self.frames.append(text)

    async def send(self, reply: Reply) -> str | None:
        self.replies.append(reply)
        return None

    async def abandon(self, *, keep: bool) -> bool:
        if not keep:
            self.frames.clear()
        return True

    async def done(self) -> None:
        self.dones += 1
        self.finished.set()


@dataclass
class Talk:
    """A running bot. ``say`` and ``press`` let a minute pass and return what the person then saw."""

    app: App
    clock: Clock
    traces: list[TurnTrace]
    screens: list[Screen] = field(default_factory=list)
    _numbers: int = 0

    async def say(self, text: str, *, user: str = "1001", chat: str = "", **more: Any) -> str:
        """Send a message and return the reply's text ("" for none)."""
        return "\n---\n".join(reply.text for reply in await self.ask(text, user=user, chat=chat, **more))

    async def ask(self, text: str, *, user: str = "1001", chat: str = "", **more: Any) -> list[Reply]:
        """Send a message and return the replies; it must come to an end exactly once."""
        self._numbers += 1
        key = chat or f"dm:{user}"
        thread = more.pop("thread", None)
        incoming = Incoming(
            chat=ChatRef(PLATFORM, key, private=key.startswith("dm:"), thread=thread),
            user_id=user,
            name=more.pop("name", f"name{user}"),
            message_id=more.pop("id", f"m{self._numbers}"),
            text=text,
            at=self.clock.advance(minutes=1),
            **more,
        )
        return await self._through(incoming)

    async def press(self, button: str, *, user: str = "1001", chat: str = "") -> str:
        """Press a button and return the text of the answer."""
        key = chat or f"dm:{user}"
        ref = ChatRef(PLATFORM, key, private=key.startswith("dm:"))
        replies = await self._through(Press(ref, user, f"name{user}", button, self.clock.advance(minutes=1)))
        return "\n---\n".join(reply.text for reply in replies)

    async def _through(self, update: Update) -> list[Reply]:
        screen = Screen()
        self.screens.append(screen)
        await self.app.conversation.submit(update, screen)
        await screen.finished.wait()
        assert screen.dones == 1
        return screen.replies

    async def owner(self, user: str = "1001") -> Account:
        """The account of somebody who has spoken."""
        owner = await self.app.memory.known_account(PLATFORM, user)
        assert owner is not None
        return owner

    async def room(self, key: str = "dm:1001", user: str = "1001") -> Chat:
        """A chat as memory knows it."""
        return await self.app.memory.chat(await self.owner(user), key, private=key.startswith("dm:"))

    async def known(self, user: str = "1001") -> list[Entry]:
        """What holds about a person."""
        owner = await self.owner(user)
        return await self.app.memory.known(owner, room=await self.room(f"dm:{user}", user), now=self.clock())

    async def texts(self, user: str = "1001") -> list[str]:
        """The same, texts alone."""
        return [entry.text for entry in await self.known(user)]

    def rows(self, sql: str = "SELECT role, kind, text FROM journal ORDER BY at, id") -> list[tuple[Any, ...]]:
        """Rows of the file itself."""
        path = self.app.settings.data_dir / DATABASE_NAME
        with contextlib.closing(engine.connect(path)) as connection:
            return list(connection.execute(sql))

    def alter(self, sql: str, *values: str) -> None:
        """Change the file behind the bot's back, as an older version might have written it."""
        path = self.app.settings.data_dir / DATABASE_NAME
        with contextlib.closing(engine.connect(path)) as connection, connection:
            connection.execute(sql, values)

    def everything_stored(self) -> str:
        """Every value of every table."""
        tables = [name for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return "\n".join(repr(row) for table in tables for row in self.rows(f"SELECT * FROM {table}"))


@contextlib.asynccontextmanager
async def talking(
    data_dir: Path, clock: Clock, server: OpenAIServer | None = None, **settings: Any
) -> AsyncIterator[Talk]:
    """Start the bot over ``data_dir``, with the model of ``server`` if there is one."""
    ticks = settings.pop("ticks", time.monotonic)
    model = {"timeout_seconds": 5.0, "retries": 2} | settings.pop("model", {})
    if server is not None:
        settings |= {"openai_base_url": server.base_url, "openai_model": "scripted"}
    chosen = Settings(
        data_dir=data_dir,
        zone=settings.pop("zone", "UTC"),
        embedder=settings.pop("embedder", NO_EMBEDDER),
        access=settings.pop("access", EVERYBODY),
        privacy=PrivacySettings(**({"first_notice": False} | settings.pop("privacy", {}))),
        model=ModelSettings(**model),
        conversation=ConversationSettings(**({"quiet_seconds": 0.0} | settings.pop("conversation", {}))),
        **settings,
    )
    traces: list[TurnTrace] = []
    async with built(chosen, clock=clock, watch=traces.append, ticks=ticks) as app:
        yield Talk(app, clock, traces)
