"""The cursor: every message of an ended session is distilled once in the end, whatever happens on the way.

Random histories of messages, late messages, edits, forgetting and undo, broken answers, an endpoint that is away,
kills between claim and write (the file is opened anew) and runs that overtake one another.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from config.settings import DistilSettings
from memory.distill import LEASE_SECONDS, Distiller, DistilReport
from memory.journal import Line
from memory.model import Message
from memory.ports import CompleterUnavailable, Completion
from memory.sessions import Session
from tests.conftest import Clock
from tests.shelf import Shelf

Behaviour = Literal["well", "cut", "prose", "away", "killed", "killed_writing"]
Step = tuple[str, Any]

SHOWN = re.compile(r"^\[\d+\].*?(w\d+)$", re.MULTILINE)


class KilledError(BaseException):
    """The program ends here."""


@dataclass
class Model:
    """Answers as it is told to, remembers which lines it was shown, and lets something happen while it thinks."""

    shown: list[str] = field(default_factory=list)
    behaviour: Behaviour = "well"
    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        assert schema is not None
        assert max_tokens > 0
        self.shown = SHOWN.findall(messages[1]["content"].split("New:")[1])
        if self.meanwhile is not None:
            happens, self.meanwhile = self.meanwhile, None
            await happens()
        match self.behaviour:
            case "away":
                raise CompleterUnavailable("connection refused")
            case "killed":
                raise KilledError
            case "prose":
                return Completion("Nothing comes to mind.", "stop")
            case "cut":
                return Completion('{"items": [', "length")
            case _:
                return Completion(json.dumps({"items": []}), "stop")


@dataclass
class Story:
    """One file, what was said into it and what has been distilled of it."""

    path: Path
    clock: Clock
    shelf: Shelf
    lines: list[Message] = field(default_factory=list)
    distilled: Counter[str] = field(default_factory=Counter)
    undone: Counter[int] = field(default_factory=Counter)
    hidden: set[int] = field(default_factory=set)
    counter: int = 0
    words: dict[str, int] = field(default_factory=dict)
    """The line each word was ever in."""

    @classmethod
    async def begin(cls, folder: Path) -> Story:
        """Begin with an empty file."""
        clock = Clock()
        shelf = await opened(folder / "r.db", clock)
        return cls(folder / "r.db", clock, shelf)

    async def reopen(self) -> None:
        """Open the file anew, as after a kill."""
        await self.shelf.db.close()
        self.shelf = await opened(self.path, self.clock)

    def distiller(self, model: Model) -> Distiller:
        """A distiller with small batches."""
        return Distiller(
            self.shelf.db,
            self.shelf,
            self.shelf.sessions,
            completer=model,
            clock=self.clock,
            settings=DistilSettings(max_messages=4, attempts=3),
        )

    async def step(self, step: Step) -> None:
        """Carry out one step of a history."""
        match step:
            case ("say", (str(kind), float(minutes))):
                self.clock.advance(minutes=minutes)
                await self.say(kind)
            case ("late", _):
                await self.say("said", late=True)
            case ("edit", int(which)) if self.lines:
                await self.edit(which)
            case ("hide", int(which)) if self.lines:
                line = self.lines[which % len(self.lines)]
                await self.shelf.journal.hide(self.shelf.owner, [line.id], line.id)
                self.hidden.add(line.id)
            case ("undo", _):
                await self.undo()
            case ("reopen", _):
                await self.reopen()
            case ("distil", (str(behaviour), meanwhile, int(minutes))):
                self.clock.advance(minutes=minutes)
                await self.round(behaviour, meanwhile)  # type: ignore[arg-type]

    async def say(self, kind: str, *, late: bool = False) -> None:
        """Say something that nobody has said before."""
        text = self.new_words()
        at = self.clock() - timedelta(minutes=90) if late else self.clock()
        if kind == "bot":
            await self.shelf.say(text, bot=True, at=at)
        else:
            line = await self.shelf.say(text, kind=kind, at=at)
            if kind == "said":
                self.lines.append(line)
                self.words[line.text.split()[-1]] = line.id

    def new_words(self) -> str:
        """Words that were never said before."""
        self.counter += 1
        return f"I own w{self.counter}"

    async def edit(self, which: int) -> None:
        """Give a line new words, as memory.revising does."""
        place = which % len(self.lines)
        said = self.lines[place]
        new = Line("user", "Lin", said.at, self.new_words())
        self.words[new.text.split()[-1]] = said.id
        async with self.shelf.db.transaction():
            self.lines[place] = await self.shelf.journal.rewrite(self.shelf.owner, said, new)
            await self.shelf.sessions.again(self.shelf.owner, said.session)

    async def undo(self) -> None:
        """Show again what was hidden, as memory.forget does."""
        for line in self.lines:
            if line.id in self.hidden:
                await self.shelf.journal.unhide(self.shelf.owner, line.id)
                await self.shelf.sessions.rewind(self.shelf.owner, line.session, before=line.id)
                self.undone[line.id] += 1
        self.hidden.clear()

    async def round(self, behaviour: Behaviour, meanwhile: Step | None) -> None:
        """Distil one batch of every session that is due."""
        for session in await self.shelf.sessions.due(self.shelf.owner, now=self.clock()):
            model = Model(behaviour="well" if behaviour == "killed_writing" else behaviour)
            if meanwhile is not None:
                model.meanwhile = lambda session=session, step=meanwhile: self.happen(session, step)
            distiller = self.distiller(model)
            if behaviour == "killed_writing":
                distiller._sessions = Dying(self.shelf.sessions)  # type: ignore[assignment]
            try:
                self.note(model, await distiller.distil(self.shelf.owner, session))
            except KilledError:
                await self.reopen()

    async def happen(self, session: Session, step: Step) -> None:
        """What happens while the model thinks; "overtake" is another run after the lease is over."""
        if step[0] != "overtake":
            await self.step(step)
            return
        self.clock.advance(seconds=LEASE_SECONDS + 1)
        model = Model()
        self.note(model, await self.distiller(model).distil(self.shelf.owner, session))

    def note(self, model: Model, report: DistilReport) -> None:
        """Count what has been distilled for good."""
        if report.outcome == "distilled":
            self.distilled.update(model.shown)

    async def end(self) -> None:
        """Let the endpoint work again until nothing is due."""
        for _ in range(60):
            self.clock.advance(hours=3)
            if not await self.shelf.sessions.due(self.shelf.owner, now=self.clock()):
                return
            await self.round("well", None)
        raise AssertionError("it never ends")


class Dying:
    """Sessions whose cursor moves, and then the program ends before the commit."""

    def __init__(self, sessions: Any) -> None:
        self._sessions = sessions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sessions, name)

    async def finish(self, *args: Any, **kwargs: Any) -> None:
        await self._sessions.finish(*args, **kwargs)
        raise KilledError


async def opened(path: Path, clock: Clock) -> Shelf:
    shelf = await Shelf.open(path, clock, zone="UTC", language="en")
    await shelf.db._writer.execute("PRAGMA synchronous = OFF")
    return shelf


SAYS = st.tuples(
    st.just("say"),
    st.tuples(
        st.sampled_from(["said", "said", "said", "bot", "forwarded", "command"]), st.sampled_from([1.0, 5.0, 40.0])
    ),
)
CHANGES = st.tuples(st.sampled_from(["late", "edit", "hide", "undo"]), st.integers(0, 20))
ROUNDS = st.tuples(
    st.just("distil"),
    st.tuples(
        st.sampled_from(["well", "well", "cut", "prose", "away", "killed", "killed_writing"]),
        st.none() | SAYS | CHANGES | st.just(("overtake", 0)),
        st.sampled_from([3, 45, 100]),
    ),
)
HISTORIES = st.lists(SAYS | SAYS | CHANGES | ROUNDS | ROUNDS | st.just(("reopen", 0)), max_size=24)
SAID: Step = ("say", ("said", 1.0))


@given(HISTORIES)
@example([SAID, ("distil", ("killed", None, 45)), *[("distil", ("killed", None, 100))] * 5])
@example([SAID, SAID, ("distil", ("well", ("edit", 0), 45)), ("distil", ("prose", ("edit", 1), 45))])
@example([SAID, *[("distil", ("cut", None, 100))] * 2, ("distil", ("cut", ("edit", 0), 100))])
@example([SAID, ("distil", ("well", ("overtake", 0), 45)), ("late", 0), ("distil", ("well", None, 45))])
@example([SAID, ("hide", 0), SAID, ("distil", ("well", ("undo", 0), 45))])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_message_is_distilled_once_in_the_end_or_marked_with_the_reason(history: list[Step]) -> None:
    async def told() -> None:
        with tempfile.TemporaryDirectory() as folder:
            story = await Story.begin(Path(folder))
            try:
                for step in history:
                    await story.step(step)
                await story.end()
                await judge(story)
            finally:
                await story.shelf.db.close()

    asyncio.run(told())


async def judge(story: Story) -> None:
    rows = await story.shelf.db.fetch("SELECT id, set_aside FROM journal")
    reasons = {row["id"]: row["set_aside"] for row in rows}
    for line in story.lines:
        word = line.text.split()[-1]
        times = story.distilled[word]
        if line.id in story.hidden:
            assert times <= 1 + story.undone[line.id]
        elif times == 0:
            assert reasons[line.id] in {"cut", "no_json", "crashed", "unavailable"}, word
        else:
            assert reasons[line.id] is None
            # What is shown again after a /forget is read again; what is known by then is only confirmed.
            assert times <= 1 + story.undone[line.id], word
    for word, times in story.distilled.items():
        assert times <= 1 + story.undone[story.words[word]], word
