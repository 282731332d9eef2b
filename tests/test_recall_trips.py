"""A small memory is searched in one trip to the file, a large one on the loop: both find the same, nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

import memory.recall
from config.settings import RecallSettings
from memory.accounts import Chats
from memory.db import Database
from memory.judge import judge
from memory.model import Candidate, Chat, Recollection, Span
from memory.recall import Recall, RecallOptions
from tests.conftest import Clock
from tests.shelf import cite, profile
from tests.test_recall import ALL, World, garden, texts

T = TypeVar("T")
QUESTION = "Where does Ann grow basil?"
ROOF = "Who grows basil on the roof of the mill?"
JUDGED = RecallOptions(max_tokens=1_000)


@pytest.fixture
async def world(tmp_path: Path, clock: Clock) -> AsyncIterator[World]:
    made = await garden(tmp_path / "r.db", clock, language="en")
    yield made
    await made.shelf.db.close()


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The trips to the file from now on, each by what reads in it."""
    made: list[str] = []
    together = Database.together

    async def counted(self: Database, reading: Callable[[], Coroutine[Any, Any, T]]) -> T:
        made.append(getattr(reading, "func", reading).__name__)
        return await together(self, reading)

    monkeypatch.setattr(Database, "together", counted)
    return made


async def plain(world: World, question: str = QUESTION, *, room: Chat | None = None) -> Recollection:
    return replace(await world.ask(question, JUDGED, room=room), milliseconds=0.0)


async def filled(world: World) -> Chat:
    """Memories of every kind, one of them closed, and a group; what was said there and what was not."""
    shelf = world.shelf
    group = await Chats(shelf.db).enter(world.owner, "group:-500", private=False, at=shelf.clock())
    message = await shelf.say("I am allergic to peanuts, and the harvest of basil is on Friday.")
    await world.add(profile(message, "allergy", "peanuts"))
    span = Span(shelf.clock(), shelf.clock() + timedelta(days=1), "day", "UTC", "on Friday")
    await world.add(Candidate("event", cite(message), "en", text="Ann harvests basil", span=span))
    await world.know("Ann grows basil behind the mill", audience=group.audience)
    old = await world.know("Ann grows basil on the roof")
    await world.stores.facts.retire(world.owner, old.id, at=shelf.clock(), successor=None, reason="ended")
    await world.know("basil. " * 300 + "Ann hides the watering can behind the shed.")
    return group


@pytest.mark.parametrize(
    "question", [QUESTION, "Good morning!", "What is the capital of Peru?", "Where is the watering can of Ann hidden?"]
)
async def test_the_same_is_found_in_one_trip_as_in_several(
    world: World, trips: list[str], monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    group = await filled(world)
    for room in (world.shelf.chat, group):
        await plain(world, question, room=room)
        trips.clear()
        at_once = await plain(world, question, room=room)
        assert trips == ["_within"]
        with monkeypatch.context() as patch:
            patch.setattr(memory.recall, "INLINE_ROWS", -1)
            assert await plain(world, question, room=room) == at_once
        assert len(trips) == 3, "what is new, and then the texts"


@pytest.mark.parametrize("lines", [1, 3, 40, 400])
async def test_what_was_said_since_is_found_however_much_it_is(world: World, trips: list[str], lines: int) -> None:
    await plain(world)
    said = [await world.shelf.say(f"The saffron of Ann stands in house {number}.") for number in range(lines)]
    trips.clear()
    found = await world.ask("Where does the saffron of Ann stand?", ALL)
    assert trips[0] == "_within"
    assert ("_fresh" in trips) == ("_first_read" in trips) == (lines > 3)
    assert len({unit.id for unit in found.units} & {line.id for line in said}) == min(lines, 200)


async def test_a_long_message_is_taken_apart_where_nobody_waits_for_it(world: World, trips: list[str]) -> None:
    await plain(world)
    line = await world.shelf.say("The saffron of Ann stands in the attic. " * 200)
    trips.clear()
    found = await world.ask("Where does the saffron of Ann stand?", ALL)
    assert trips[:2] == ["_within", "_fresh"]
    assert line.id in {unit.id for unit in found.units}


async def test_habits_are_not_counted_out_for_a_year_while_others_wait_to_read(world: World, trips: list[str]) -> None:
    message = await world.shelf.say("I water the basil every day.")
    for number in range(5):
        span = Span(world.shelf.clock(), world.shelf.clock(), "day", "UTC", "every day", "FREQ=DAILY")
        await world.add(Candidate("event", cite(message), "en", text=f"waters basil {number}", span=span))
    for question, at_once in ((QUESTION, True), ("What did Ann water last year?", False)):
        await plain(world, question)
        trips.clear()
        await plain(world, question)
        assert ("_within" in trips) == at_once


@pytest.mark.parametrize("rows", [-1, 100])
async def test_what_was_said_before_a_group_was_opened_is_not_shown_by_an_index_that_is_let_go_of(
    world: World, trips: list[str], monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    group = await Chats(world.shelf.db).enter(world.owner, "group:-500", private=False, at=world.shelf.clock())
    in_group = replace(world, shelf=replace(world.shelf, chat=group))
    for number in range(5):
        await in_group.shelf.say(f"Ann grows basil in the cellar of house {number}.")
    monkeypatch.setattr(memory.recall, "INLINE_ROWS", rows)

    async def shown(room: Chat) -> bool:
        return any("cellar" in text for text in texts(await world.ask(QUESTION, ALL, room=room)))

    assert await shown(group)
    assert await shown(world.shelf.chat)
    await world.shelf.db.execute("UPDATE sessions SET aside = 1 WHERE chat = ?", (group.no,))
    trips.clear()
    assert not await shown(group)
    assert await shown(world.shelf.chat)
    assert ("_within" in trips) == (rows > 0)


async def test_who_breaks_off_while_they_wait_for_a_turn_leaves_the_index_as_it_is(world: World) -> None:
    await plain(world)
    held = world.indexes.nbytes
    async with contextlib.AsyncExitStack() as turns:
        for _ in range(memory.recall.AT_ONCE):
            await turns.enter_async_context(world.recall._turn())
        asking = asyncio.create_task(plain(world))
        for _ in range(5):
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert world.indexes.nbytes == held > 0


async def test_what_was_closed_since_is_not_shown(world: World, trips: list[str]) -> None:
    fact = await world.know("Ann grows basil on the roof of the mill")
    assert fact.text in texts(await plain(world, ROOF))
    assert fact.text in texts(await plain(world, ROOF))
    await world.stores.facts.retire(world.owner, fact.id, at=world.shelf.clock(), successor=None, reason="ended")
    trips.clear()
    found = await plain(world, ROOF)
    assert trips == ["_within"]
    assert fact.text not in texts(found)
    assert (fact.id, "closed") in found.left_out


async def test_who_breaks_off_leaves_no_index_that_is_still_worked_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = await plain(world)
    begun, go_on = threading.Event(), threading.Event()

    def waiting(*given: Any, **named: Any) -> Any:
        begun.set()
        assert go_on.wait(10)
        return judge(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(memory.recall, "judge", waiting)
        asking = asyncio.create_task(plain(world))
        await asyncio.to_thread(begun.wait, 10)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert world.indexes.nbytes == 0
        go_on.set()
        assert await plain(world) == expected


async def test_an_error_in_a_trip_is_the_asker_s_and_the_next_is_answered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = await plain(world)
    with monkeypatch.context() as patch:
        patch.setattr(memory.recall, "judge", lambda *given, **named: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await plain(world)
    assert await plain(world) == expected


class Closing:
    """A reranking model while which is asked a memory is closed."""

    model = "closing"

    def __init__(self, world: World, fact: int) -> None:
        self._world = world
        self._fact = fact

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        facts, now = self._world.stores.facts, self._world.shelf.clock()
        assert await facts.retire(self._world.owner, self._fact, at=now, successor=None, reason="ended")
        return [float(place) for place in range(len(texts))]


async def test_what_is_closed_while_a_model_puts_in_order_is_not_shown(world: World) -> None:
    fact = await world.know("Ann grows basil on the roof of the mill")
    await plain(world, ROOF)
    settings = RecallSettings()
    world.recall = Recall(world.stores, world.indexes, settings, len, reranker=Closing(world, fact.id))
    found = await plain(world, ROOF)
    assert (fact.id, "closed") in found.left_out
    assert fact.text not in texts(found)
    assert found.units
