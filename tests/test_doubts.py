"""An unsure word against a sure one: both stay, the doubt is marked, and asked about once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from memory.batches import MAX_RETIREMENTS
from memory.doubts import Doubts
from memory.model import PRIVATE, Candidate, Decision
from memory.reconcile import Gate
from tests.conftest import Clock
from tests.shelf import Shelf, fact, profile, values


@pytest_asyncio.fixture
async def shelf(tmp_path: Path, clock: Clock) -> AsyncIterator[Shelf]:
    opened = await Shelf.open(tmp_path / "memory.sqlite", clock)
    yield opened
    await opened.db.close()


@pytest.fixture
def gate(shelf: Shelf) -> Gate:
    return Gate(shelf.db, shelf)


async def admit(gate: Gate, shelf: Shelf, *candidates: Candidate) -> list[Decision]:
    return await gate.admit(shelf.owner, candidates, audience=PRIVATE, now=shelf.clock())


async def in_doubt(shelf: Shelf) -> list[list[str]]:
    found = await Doubts(shelf).open(shelf.owner, now=shelf.clock())
    return [values([doubt.sure, doubt.unsure]) for doubt in found]


async def doubtful_home(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    await admit(gate, shelf, profile(await shelf.say("我可能算住在成都了"), "home", "成都", confidence=0.3))


async def test_a_doubt_is_marked_on_the_unsure_memory_and_survives_a_restart(
    gate: Gate, shelf: Shelf, clock: Clock
) -> None:
    await doubtful_home(gate, shelf)
    sure, unsure = await shelf.live()
    assert (sure.provenance.unsure, unsure.provenance.doubts) == (False, sure.id)
    again = await Shelf.open(shelf.db.path, clock)
    assert await in_doubt(again) == [["杭州", "成都"]]
    await again.db.close()


async def test_a_doubt_is_asked_about_once_and_never_again_for_its_slot(gate: Gate, shelf: Shelf) -> None:
    await doubtful_home(gate, shelf)
    (doubt,) = await Doubts(shelf).open(shelf.owner, now=shelf.clock())
    assert await Doubts(shelf).asked(shelf.owner, doubt, at=shelf.clock())
    assert not await Doubts(shelf).asked(shelf.owner, doubt, at=shelf.clock())
    assert await in_doubt(shelf) == []
    await admit(gate, shelf, profile(await shelf.say("也许是昆明"), "home", "昆明", confidence=0.3))
    assert values(await shelf.live()) == ["杭州", "昆明"]
    assert await in_doubt(shelf) == []


@pytest.mark.parametrize(("city", "left"), [("成都", ["成都"]), ("杭州", ["杭州"]), ("昆明", ["昆明"])])
async def test_a_sure_word_settles_a_doubt_either_way(gate: Gate, shelf: Shelf, city: str, left: list[str]) -> None:
    await doubtful_home(gate, shelf)
    await admit(gate, shelf, profile(await shelf.say(f"我确实住在{city}"), "home", city))
    live = await shelf.live()
    assert values(live) == left
    assert not live[0].provenance.unsure
    assert await in_doubt(shelf) == []


async def test_a_sure_memory_is_not_carried_on_by_an_unsure_repetition(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    before = await shelf.history()
    unsure = profile(await shelf.say("大概还住杭州"), "home", "杭州", confidence=0.3)
    (decision,) = await admit(gate, shelf, unsure)
    assert (decision.action, decision.reason) == ("dropped", "weaker")
    assert await shelf.history() == before


async def test_a_doubt_goes_with_what_it_was_against(gate: Gate, shelf: Shelf) -> None:
    await doubtful_home(gate, shelf)
    gone = profile(await shelf.say("我不住杭州了"), "home", "杭州", negates=True)
    await admit(gate, shelf, gone)
    (left,) = await shelf.live()
    assert (values([left]), left.provenance.unsure) == (["成都"], False)


async def test_an_unsure_end_ends_nothing_sure(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    maybe = profile(await shelf.say("可能不住杭州了"), "home", "杭州", negates=True, confidence=0.3)
    (decision,) = await admit(gate, shelf, maybe)
    assert (decision.action, decision.reason) == ("dropped", "unsure")
    assert values(await shelf.live()) == ["杭州"]


async def test_an_unsure_denial_of_a_fact_is_a_doubt_and_so_is_one_too_many_for_a_batch(
    gate: Gate, shelf: Shelf
) -> None:
    await admit(gate, shelf, fact(await shelf.say("我吃鱼"), "我吃鱼"))
    await admit(gate, shelf, fact(await shelf.say("我好像不吃鱼了"), "我不吃鱼", confidence=0.3))
    assert await in_doubt(shelf) == [["我吃鱼", "我不吃鱼"]]
    names = [f"thing {number}" for number in range(MAX_RETIREMENTS + 1)]
    for name in names:
        await admit(gate, shelf, profile(await shelf.say(f"I like {name}"), "like", name))
    message = await shelf.say("I hate all of it")
    await admit(gate, shelf, *(profile(message, "dislike", name) for name in names))
    assert await in_doubt(shelf) == [["我吃鱼", "我不吃鱼"], [names[-1], names[-1]]]


async def test_what_was_said_after_an_end_but_before_it_was_worked_out_is_no_older_than_the_end(
    gate: Gate, shelf: Shelf
) -> None:
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    gone, back = await shelf.say("我不住杭州了"), await shelf.say("我又住回杭州了")
    shelf.clock.advance(days=3)
    await admit(gate, shelf, profile(gone, "home", "杭州", negates=True))
    (decision,) = await admit(gate, shelf, profile(back, "home", "杭州"))
    assert (decision.action, values(await shelf.live())) == ("added", ["杭州"])


# ---- undo ----------------------------------------------------------------------------------------


async def test_a_batch_is_undone_by_its_time_and_its_own_word_then_weighs_nothing(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    moved = profile(await shelf.say("我搬到成都了"), "home", "成都")
    at = shelf.clock.advance(days=1)
    await admit(gate, shelf, moved)
    shelf.clock.advance(days=1)
    (reopened,) = await gate.undo(shelf.owner, at=at, now=shelf.clock())
    (live,) = await shelf.live()
    assert (reopened, values([live])) == (live, ["杭州"])
    (undone,) = (entry for entry in await shelf.history() if entry.id != live.id)
    assert (undone.provenance.reason, undone.provenance.successor) == ("undone", live.id)
    assert await gate.undo(shelf.owner, at=at, now=shelf.clock()) == []
    (replayed,) = await admit(gate, shelf, moved)
    assert (replayed.reason, values(await shelf.live())) == ("repeated", ["杭州"])


async def test_an_undo_reopens_what_was_ended_and_leaves_other_reasons_alone(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    gone = await shelf.say("我不住杭州了")
    at = shelf.clock.advance(days=1)
    await admit(gate, shelf, profile(gone, "home", "杭州", negates=True))
    assert await gate.undo(shelf.owner, at=at, now=shelf.clock(), reasons={"superseded"}) == []
    assert values(await gate.undo(shelf.owner, at=at, now=shelf.clock(), reasons={"ended"})) == ["杭州"]
    assert values(await shelf.live()) == ["杭州"]


async def test_an_undo_does_not_bring_back_what_was_overtaken_since(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    moved = await shelf.say("我搬到成都了")
    at = shelf.clock.advance(days=1)
    await admit(gate, shelf, profile(moved, "home", "成都"))
    await admit(gate, shelf, profile(await shelf.say("我搬到昆明了"), "home", "昆明"))
    assert await gate.undo(shelf.owner, at=at, now=shelf.clock.advance(days=1)) == []
    assert values(await shelf.live()) == ["昆明"]
