"""Whatever is said in whatever order, what stands of a slot is what the times of saying make it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.doubts import doubts
from memory.model import PRIVATE, Decision, Entry
from memory.reconcile import Gate
from tests.conftest import Clock
from tests.shelf import Shelf, profile

START = datetime(2025, 3, 1, 8, tzinfo=UTC)
CITIES = ("Oslo", "Bergen", "Turku")


@dataclass(frozen=True)
class Step:
    """Something said at ``hour``, or (``undo``) the batch of an earlier step taken back."""

    hour: int
    city: str
    sure: bool = True
    ends: bool = False
    undo: int | None = None


@dataclass
class Played:
    """What should stand: statements that count, and ends that took effect."""

    said: dict[int, Step] = field(default_factory=dict)
    over: dict[int, Step] = field(default_factory=dict)
    batches: list[tuple[datetime, int, Step, Decision]] = field(default_factory=list)

    def ended(self, step: Step) -> bool:
        return any(end.city == step.city and end.hour > step.hour for end in self.over.values())

    def standing(self) -> set[str]:
        """The city of the newest sure statement, unless it was ended."""
        sure = [step for step in self.said.values() if step.sure]
        newest = max(sure, key=lambda step: step.hour, default=None)
        return set() if newest is None or self.ended(newest) else {newest.city}


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as opened:
        yield opened


@pytest.fixture(scope="module")
def shelf(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    path: Path = tmp_path_factory.mktemp("standing")
    opened = runner.run(Shelf.open(path / "memory.sqlite", Clock(START)))
    yield opened
    runner.run(opened.db.close())


HOURS = st.permutations(range(1, 9))
WORDS = st.lists(
    st.tuples(st.sampled_from(CITIES), st.sampled_from(("sure", "sure", "unsure", "end", "undo")), st.integers(0, 7)),
    min_size=8,
    max_size=8,
)
number = iter(range(10**9))


@given(HOURS, WORDS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_of_a_single_slot_the_newest_sure_statement_stands_alone_but_for_a_doubt(
    runner: asyncio.Runner, shelf: Shelf, hours: list[int], words: list[tuple[str, str, int]]
) -> None:
    steps = [
        Step(hour, city, sure=kind != "unsure", ends=kind == "end", undo=back if kind == "undo" else None)
        for hour, (city, kind, back) in zip(hours, words, strict=True)
    ]
    runner.run(play(shelf, steps))


async def play(shelf: Shelf, steps: list[Step]) -> None:
    shelf.owner = await shelf.accounts.meet(
        "console", str(next(number)), name="Lin", language="en", zone="UTC", at=START
    )
    gate, played = Gate(shelf.db, shelf), Played()
    for place, step in enumerate(steps):
        now = shelf.clock.advance(days=1)
        if step.undo is not None:
            await undo(shelf, gate, played, step.undo)
        else:
            message = await shelf.say(step.city, at=START + timedelta(hours=step.hour))
            candidate = profile(message, "home", step.city, confidence=1.0 if step.sure else 0.3, negates=step.ends)
            (decision,) = await gate.admit(shelf.owner, [candidate], audience=PRIVATE, now=now)
            note(played, place, step, decision)
            played.batches.append((now, place, step, decision))
        check(played, await shelf.history(), now=now)


async def undo(shelf: Shelf, gate: Gate, played: Played, back: int) -> None:
    if not played.batches:
        return
    at, place, step, decision = played.batches[back % len(played.batches)]
    reopened = await gate.undo(shelf.owner, at=at, now=shelf.clock())
    assert decision.closed or step.ends or not reopened
    if reopened or step.ends:
        (played.over if step.ends else played.said).pop(place, None)


def note(played: Played, place: int, step: Step, decision: Decision) -> None:
    if step.ends:
        assert decision.action == "retired"
        played.over[place] = step
    elif decision.action == "dropped":
        assert not step.sure
        assert decision.reason == "weaker"
    else:
        played.said[place] = step


def check(played: Played, history: list[Entry], *, now: datetime) -> None:
    live = [entry for entry in history if entry.provenance.live(now)]
    sure = [entry for entry in live if entry.provenance.confidence > 0.5]
    unsure = [entry for entry in live if entry not in sure]
    assert {entry.value for entry in sure if entry.kind == "profile"} == played.standing()
    assert len(sure) <= 1
    assert len(unsure) <= 1
    assert live or not played.said or played.over
    for entry in unsure:
        assert entry.provenance.doubts == (sure[0].id if sure else None)
        assert all(entry.provenance.said_at > other.provenance.said_at for other in sure)
    assert len(doubts(history, now=now)) == (1 if sure and unsure else 0)
    known = {entry.id for entry in history}
    for entry in history:
        closed = entry.provenance.retired_at is not None
        assert closed or entry.provenance.successor is None
        assert entry.provenance.successor in known | {None}


@given(st.permutations(range(1, 7)), st.lists(st.sampled_from(("plums", "figs")), min_size=6, max_size=6))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_of_a_multiple_slot_each_value_stands_as_it_was_said_last(
    runner: asyncio.Runner, shelf: Shelf, hours: list[int], things: list[str]
) -> None:
    async def said() -> dict[str, str]:
        shelf.owner = await shelf.accounts.meet(
            "console", str(next(number)), name="Lin", language="en", zone="UTC", at=START
        )
        gate = Gate(shelf.db, shelf)
        for hour, thing in zip(hours, things, strict=True):
            message = await shelf.say(thing, at=START + timedelta(hours=hour))
            taste = profile(message, "like" if hour % 2 else "dislike", thing)
            await gate.admit(shelf.owner, [taste], audience=PRIVATE, now=shelf.clock.advance(days=1))
        live = await shelf.profile.live(shelf.owner, now=shelf.clock())
        assert len({line.value for line in live}) == len(live)
        return {line.value: line.attribute for line in live}

    last = {thing: max(hour for hour, each in zip(hours, things, strict=True) if each == thing) for thing in things}
    assert runner.run(said()) == {thing: "like" if hour % 2 else "dislike" for thing, hour in last.items()}
