"""A memory to write to, for ``bench write``: real stores, real gate, real distillation, under a clock of its own."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from bot.bench.proposals import ScriptedModel
from config.settings import EmbedderSettings, SessionSettings, Settings
from memory import Line, Memory, wants_forgetting
from memory.db import Database
from memory.model import Account, Chat, Entry, Event, Message
from memory.ports import Embedder
from memory.script import folded
from memory.sessions import Sessions

PLATFORM: Final = "bench"
START: Final = datetime(2025, 3, 5, 12, tzinfo=UTC)
_WEEK_MINUTES: Final = 7 * 24 * 60.0
_DROPPED: Final = "dropped_"
_SETTINGS: Final = Settings(
    _env_file=None,
    session=SessionSettings(idle_minutes=_WEEK_MINUTES),  # a session ends when the benchmark says so
    embedder=EmbedderSettings(kind="none"),
)


class BrokenRun(Exception):
    """The write path did not do its work, so its figures mean nothing; the text says what happened."""


@dataclass(slots=True)
class Person:
    """Somebody who tells things in a private chat or a group, and the lines they told by platform id."""

    owner: Account
    room: Chat
    lines: dict[str, tuple[Line, Message]] = field(default_factory=dict)


class World:
    """A memory and the people who talk to it. ``drops`` counts what was refused, by reason."""

    def __init__(self, path: Path, model: ScriptedModel | None, embedder: Embedder | None) -> None:
        self.model = model
        self._embedder = embedder
        self.now = START
        self.drops: Counter[str] = Counter()
        self._path = path
        self._people: list[Person] = []
        self._ended: list[Person] = []

    async def open(self) -> None:
        """Open the file, again after :meth:`close`."""
        self.memory = await Memory.open(
            self._path,
            _SETTINGS,
            clock=lambda: self.now,
            count=len,
            embedder=self._embedder,
            completer=self.model,
        )

    async def close(self) -> None:
        """Close the file."""
        await self.memory.close()

    async def person(self, key: str, language: str, *, name: str = "", group: str | None = None) -> Person:
        """Somebody new, in a private chat or in the group of that name."""
        owner = await self.memory.account(PLATFORM, key, name=name, language=language)
        place = f"group:{group}" if group else f"dm:{key}"
        made = Person(owner, await self.memory.chat(owner, place, private=group is None))
        self._people.append(made)
        return made

    async def say(self, person: Person, text: str, *, at: datetime | None = None, rules: bool = True) -> Message:
        """Tell a message, at ``at`` (default: now). The ``rules`` read it at once, and a plea to forget is obeyed."""
        if rules and (words := wants_forgetting(text)) is not None:
            return await self._forget(person, words)
        number = f"{person.owner.no}.{len(person.lines) + 1}"
        line = Line("user", person.owner.name, at or self.now, text, platform_id=number)
        message = await self._note(person, line, rules=rules)
        person.lines[number] = (line, message)
        return message

    async def settle(self) -> None:
        """End every session and let the model distil it, as housekeeping would. Raises BrokenRun."""
        for person in self._people:
            await self.memory.new_session(person.owner, person.room, now=self.now)
        await self._distil()

    async def again(self) -> None:
        """Hear every line a second time and distil every session a second time, as after a kill at the worst moment.

        Raises BrokenRun when nothing was distilled again.
        """
        calls = self.model.calls if self.model else 0
        for person in self._people:
            for line, _ in person.lines.values():
                await self._note(person, line, rules=True)
        await self.close()
        await self._rewind()
        await self.open()
        await self._distil()
        if self.model and self.model.calls < 2 * calls:
            raise BrokenRun(f"of {calls} distillations only {self.model.calls - calls} were made a second time")

    async def live(self, person: Person) -> list[Entry]:
        """What a person's memory holds to be true now."""
        return await self.memory.known(person.owner, room=person.room, now=self.now)

    async def rows(self) -> int:
        """Memories of everybody, closed ones included."""
        return sum([len(await self.memory.history(person.owner)) for person in self._people])

    def pass_time(self, length: timedelta) -> None:
        """Let time pass."""
        self.now += length

    async def _note(self, person: Person, line: Line, *, rules: bool) -> Message:
        heard = await self.memory.note(person.owner, person.room, line)
        if rules:
            decisions = await self.memory.learn(person.owner, person.room, heard.message)
            self.drops.update(d.reason for d in decisions if d.action == "dropped")
        return heard.message

    async def _forget(self, person: Person, words: str) -> Message:
        """Obey as the bot does: the plea is journaled without its words, and what it names is erased for good."""
        line = Line("user", person.owner.name, self.now, "", kind="command")
        heard = await self.memory.note(person.owner, person.room, line)
        plan = await self.memory.plan_forgetting(person.owner, person.room, words, now=self.now)
        if plan is not None:
            await self.memory.forget(person.owner, plan.offer, picks=None, now=self.now)
            self.pass_time(timedelta(minutes=_SETTINGS.forget.undo_minutes + 1))
            await self.memory.run_due(now=self.now)
        return heard.message

    async def _distil(self) -> None:
        if self.model is None:
            return
        while True:
            done = await self.memory.run_due(now=self.now)
            counts = done.get("distil")
            if counts is None or counts.keys() & {"retry", "set_aside", "unavailable"}:
                raise BrokenRun(f"a distillation failed: {counts}")
            if self.model.strangers:
                raise BrokenRun("the distillation prompt shows messages in a form the scripted model cannot read")
            refused = {name: count for name, count in counts.items() if name.startswith(_DROPPED)}
            self.drops.update({name.removeprefix(_DROPPED): count for name, count in refused.items()})
            if not counts.get("distilled"):
                return

    async def _rewind(self) -> None:
        """Have every line wait for distillation as if it never had been distilled."""
        database = await Database.open(self._path)
        try:
            sessions = Sessions(database, timedelta(minutes=_WEEK_MINUTES))
            async with database.transaction():
                for person in self._people:
                    for _, message in person.lines.values():
                        await sessions.rewind(person.owner, message.session, before=message.id)
        finally:
            await database.close()


@contextlib.asynccontextmanager
async def opened(model: ScriptedModel | None, embedder: Embedder | None = None) -> AsyncIterator[World]:
    """A world over a file of its own; with an ``embedder`` memories are compared by meaning, too."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "bench.db", model, embedder)
        await world.open()
        try:
            yield world
        finally:
            await world.close()


def shown(entry: Entry) -> str:
    """A memory as a reader gets it, folded for comparison: subject, sentence, and the words of its time."""
    words = entry.span.words if isinstance(entry, Event) else ""
    return folded(f"{entry.subject}\n{entry.text}\n{words}")


def quoted(entry: Entry) -> str:
    """A memory with the words it cites, folded for comparison."""
    return "\n".join((shown(entry), *(folded(citation.quote) for citation in entry.provenance.citations)))
