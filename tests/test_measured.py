"""Measured nulls: read again after a restart, renewed when nobody waits, gone with what they were measured in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import memory.measured
import memory.threshold
from memory.index import OwnerIndex
from memory.measured import Measured, measuring
from memory.model import Account
from memory.nulls import Case
from memory.recall import RecallOptions
from memory.shipped import Probes
from memory.threshold import Bar, Curve, Mask, Null, measure
from tests.conftest import Clock
from tests.shelf import Shelf, forgetting
from tests.test_recall import World, garden, world_of

QUESTION = "Where does Ann grow basil?"
JUDGED = RecallOptions()


@pytest.fixture
async def world(tmp_path: Path, clock: Clock) -> AsyncIterator[World]:
    made = await garden(tmp_path / "r.db", clock)
    yield made
    await made.shelf.db.close()


@pytest.fixture
def measurements(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each null was measured in, from now on."""
    measuring()
    rows: list[int] = []

    def counted(index: OwnerIndex, foreign: Probes, pool: Mask, *, talk: bool = False) -> Null:
        rows.append(int(pool.sum()))
        return measure(index, foreign, pool, talk=talk)

    monkeypatch.setattr(memory.measured, "measure", counted)
    return rows


async def stored(shelf: Shelf) -> list[Any]:
    return await shelf.db.fetch("SELECT * FROM nulls")


async def test_after_a_restart_the_same_is_found_and_nothing_measured(world: World, measurements: list[int]) -> None:
    first = await world.ask(QUESTION, JUDGED)
    await world.recall.measured.store()
    assert measurements == [30]
    again = await world_of(world.shelf, None).ask(QUESTION, JUDGED)
    assert measurements == [30]
    assert (again.units, again.level, again.left_out) == (first.units, first.level, first.left_out)
    assert first.units


async def test_what_another_program_measured_is_not_used_and_goes(
    world: World, measurements: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.ask(QUESTION, JUDGED)
    await world.recall.measured.store()
    monkeypatch.setattr(memory.measured, "measuring", lambda: b"another")
    later = world_of(world.shelf, None)
    await later.ask(QUESTION, JUDGED)
    assert measurements == [30, 30]
    await later.recall.measured.store()
    assert [row["program"] for row in await stored(world.shelf)] == [b"another"]


async def test_one_persons_null_is_never_anothers(world: World, measurements: list[int]) -> None:
    other = await world.shelf.accounts.meet(
        "telegram", "2002", name="Bob", language="en", zone="UTC", at=world.shelf.clock()
    )
    await world.ask(QUESTION, JUDGED)
    await world.recall.measured.store()
    assert {row["account"] for row in await stored(world.shelf)} == {world.owner.no}
    measured = Measured(world.stores, world.indexes)
    assert await _got(world, measured, other) is None
    assert await _got(world, measured, world.owner) is not None
    assert measurements == [30]


async def _got(world: World, measured: Measured, owner: Account) -> str | None:
    (row,) = await stored(world.shelf)
    case = Case(row["place"], row["language"], bool(row["talk"]), row["model"])
    return await world.stores.nulls.get(owner, case, await measured.program())


@pytest.mark.parametrize("before", [True, False], ids=["stored before", "not stored yet"])
async def test_what_is_erased_takes_what_was_measured_with_it(world: World, *, before: bool) -> None:
    await world.ask(QUESTION, JUDGED)
    if before:
        await world.recall.measured.store()
    assert len(await stored(world.shelf)) == before
    gate = forgetting(world.shelf, world.stores)
    plan = await gate.plan(world.owner, world.shelf.chat, "plant7", now=world.shelf.clock())
    assert plan is not None
    assert await gate.carry_out(world.owner, plan.offer, picks=None, now=world.shelf.clock())
    world.shelf.clock.advance(minutes=10)
    assert await gate.erase_due(world.owner, now=world.shelf.clock())
    await world.recall.measured.store()
    assert await stored(world.shelf) == []


@pytest.mark.parametrize(
    ("more", "waits_for", "renewed"), [(3, [], []), (15, [], [45]), (40, [70], [])], ids=["fits", "aged", "outgrown"]
)
async def test_an_aged_null_of_a_large_memory_serves_until_nobody_waits(
    world: World, measurements: list[int], *, more: int, waits_for: list[int], renewed: list[int]
) -> None:
    await world.ask(QUESTION, JUDGED)
    measurements.clear()
    for number in range(more):
        await world.shelf.say(f"A wholly other thing, number {number}.")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory.measured, "SOON", 0)
        await world.ask(QUESTION, JUDGED)
    assert measurements == waits_for
    measurements.clear()
    await world.recall.measured.settle()
    await world.ask(QUESTION, JUDGED)
    assert measurements == renewed
    (row,) = await stored(world.shelf)
    assert Null.unpacked(row["data"]).rows == (renewed or waits_for or [30])[0]


def test_a_null_is_stored_to_the_last_digit() -> None:
    curve = Curve(1 / 3, 2 / 7)
    alone, both = Bar(curve, -0.1, 0.7, 0.2, 0.3, 10), Bar(Curve(1e-17, 1.0), 0.1 + 0.2)
    for null in (Null(3, 0, None, alone, None), Null(3, 2, curve, alone, both)):
        assert Null.unpacked(null.packed()) == null


def test_the_mark_of_a_program_changes_with_what_it_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    unchanged: Callable[[], bytes] = measuring.__wrapped__
    assert unchanged() == measuring()
    monkeypatch.setattr(memory.threshold, "NEARER", 0.5)
    assert unchanged() != measuring()


async def test_what_a_null_is_renewed_by_holds_none_of_the_lines_a_model_sees_anyway(world: World) -> None:
    await world.ask(QUESTION, RecallOptions(exclude=frozenset(range(world.owner.first_id, world.owner.first_id + 4))))
    assert [held.limits.exclude for held in world.recall.measured._held.values()] == [frozenset()]
