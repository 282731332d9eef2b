"""One memory over a real file, opened as often as a test likes, and what every table of the file holds."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from config.settings import Settings
from memory import Heard, Line, Memory, engine
from memory.model import Account, Chat, Message, MessageKind
from memory.ports import Completer, Embedder
from tests.conftest import Clock


@dataclass
class House:
    """A memory, one person of it and their private chat; ``reopen`` is what a kill leaves of it."""

    path: Path
    clock: Clock
    memory: Memory
    owner: Account
    chat: Chat
    parts: dict[str, Any] = field(default_factory=dict)

    async def reopen(self) -> None:
        """Kill the program and start it again: the files go on as they lay there, log included, at that moment."""
        left = self.path.with_name(f"again-{self.path.name}")
        for end in ("", "-wal"):
            shutil.copy(f"{self.path}{end}", f"{left}{end}")
        await self.memory.close()
        self.path = left
        self.memory = await Memory.open(left, Settings(), clock=self.clock, count=len, **self.parts)

    async def hear(
        self,
        text: str,
        *,
        id_: str | None = None,
        owner: Account | None = None,
        chat: Chat | None = None,
        at: datetime | None = None,
        waits: bool = False,
        kind: MessageKind = "said",
    ) -> Heard:
        """Journal a person's message a minute after the last one (or at ``at``), and let the rules read it."""
        person, room = owner or self.owner, chat or self.chat
        line = Line("user", person.name, at or self.clock.advance(minutes=1), text, kind, id_)
        heard = await self.memory.note(person, room, line, waits=waits)
        await self.memory.learn(person, room, heard.message)
        return heard

    async def reply(self, text: str, to: Message, *, chat: Chat | None = None, **more: Any) -> Message:
        """Journal the bot's reply to a message of the owner, with a trace."""
        line = Line("bot", "Recollect", self.clock.advance(seconds=5), text, "said" if text else "command", None, to.id)
        owner = more.pop("owner", self.owner)
        more.setdefault("since", await self.memory.mark(owner))
        return await self.memory.answered(owner, chat or self.chat, line, {"recalled": []}, **more)

    async def window(self, *, chat: Chat | None = None, **more: Any) -> list[str]:
        """The texts of the chat's window."""
        room = chat or self.chat
        return [line.text for line in await self.memory.window(self.owner, room, now=self.clock(), **more)]

    async def known(self, *, room: Chat | None = None) -> list[str]:
        """What holds now."""
        return [entry.text for entry in await self.memory.known(self.owner, room=room or self.chat, now=self.clock())]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of the file itself."""
        with contextlib.closing(engine.connect(self.path)) as connection:
            return list(connection.execute(sql))

    def everything(self) -> str:
        """Every value of every table."""
        tables = [name for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return "\n".join(repr(row) for table in tables for row in self.rows(f"SELECT * FROM {table}"))


@contextlib.asynccontextmanager
async def housed(
    path: Path, clock: Clock, *, embedder: Embedder | None = None, completer: Completer | None = None
) -> AsyncIterator[House]:
    """Open a memory at ``path`` with one person, Lin, who writes English."""
    parts: dict[str, Any] = {"embedder": embedder, "completer": completer}
    memory = await Memory.open(path, Settings(), clock=clock, count=len, **parts)
    owner = await memory.account("test", "1001", name="Lin")
    house = House(path, clock, memory, owner, await memory.chat(owner, "dm:1001"), parts)
    try:
        yield house
    finally:
        await house.memory.close()
