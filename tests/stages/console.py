"""The terminal behind the vocabulary of :mod:`tests.stages.stage`: the real adapter, its lines from a pipe."""

from __future__ import annotations

import asyncio
import io
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

from bot.adapters.console import ConsoleAdapter
from bot.message import Adapter
from tests.stages.stage import MARA, Hours, Person, Room, Stage, fenced


class Console:
    """The terminal, piped. One person, one line at a time."""

    name = "console"
    grows = False
    bearable = 12_000

    def __init__(self, hours: Hours) -> None:
        self._hours = hours
        self._paper = Paper()
        self._folder = Path(tempfile.mkdtemp())
        self._lines: IO[str] | None = None
        self._pen: IO[str] | None = None

    @classmethod
    @asynccontextmanager
    async def set(cls, hours: Hours) -> AsyncIterator[Stage]:
        console = cls(hours)
        yield console
        shutil.rmtree(console._folder)

    def adapter(self) -> Adapter:
        reading, writing = os.pipe()
        self._lines, self._pen = os.fdopen(reading, encoding="utf-8"), os.fdopen(writing, "w", encoding="utf-8")
        return ConsoleAdapter(
            self.user_id(MARA),
            now=self._hours.clock,
            language="en",
            lines=self._lines,
            out=self._paper,
            folder=self._folder,
        )

    async def up(self) -> None:
        """Lines wait in the pipe."""

    async def leave(self, serving: asyncio.Task[None]) -> None:
        assert self._pen is not None
        assert self._lines is not None
        self._pen.close()
        await serving
        self._lines.close()

    def passes(self, seconds: float) -> None:
        """A terminal has no clock."""

    def user_id(self, who: Person) -> str:
        return who.name

    async def say(self, who: Person, text: str, room: Room = "private", **_: Any) -> str:
        assert (who, room, self._pen is None) == (MARA, "private", False)
        print(text, file=self._pen, flush=True)
        return ""

    async def show(self, who: Person, caption: str, pictures: int) -> None:
        raise NotImplementedError

    async def forward(self, who: Person, text: str, author: Person) -> None:
        raise NotImplementedError

    async def edit(self, who: Person, message_id: str, text: str) -> None:
        raise NotImplementedError

    async def repeat(self, who: Person, message_id: str) -> None:
        raise NotImplementedError

    async def press(self, who: Person, label: str, room: Room = "private", *, of: Person | None = None) -> None:
        numbers = [line for line in self._paper.written if line.rstrip().endswith(f"] {label}")]
        await self.say(who, numbers[-1].partition("[")[2].partition("]")[0])

    def shut(self, who: Person) -> None:
        raise NotImplementedError

    def trouble(self, who: Person) -> None:
        """A pipe has none."""

    def visible(self, who: Person, room: Room = "private") -> list[str]:
        return [text.removesuffix("\n") for text in self._paper.written if not re.match(r"  \[\d+\] ", text)]

    def sizes(self, who: Person) -> list[float]:
        return [0.0 for _ in self.visible(who)]

    def code(self, who: Person) -> str:
        return fenced(self.visible(who))

    def files(self, who: Person) -> list[bytes]:
        return [path.read_bytes() for path in sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)]

    def pings(self, room: Room) -> list[str]:
        return []


class Paper(io.StringIO):
    """What a terminal prints, piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def write(self, text: str, /) -> int:
        self.written.append(text)
        return super().write(text)
