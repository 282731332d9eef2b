"""What is used most is read on every turn: what counts as a use, who sees it, and that it goes with the memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memory import Line, RecallOptions
from memory.model import Chat, Entry, Recollection
from memory.recall import ALWAYS_TOKENS, OFTEN_DAYS, OFTEN_FROM, OFTEN_MOST
from memory.traces import rested_on
from tests.conftest import Clock
from tests.house import House, housed


@pytest.fixture
async def house(tmp_path: Path, clock: Clock) -> AsyncIterator[House]:
    async with housed(tmp_path / "r.db", clock) as opened:
        yield opened


async def learned(house: House, text: str, *, chat: Chat | None = None) -> Entry:
    """A memory as a person asks for it."""
    room = chat or house.chat
    heard = await house.hear(f"Remember that {text}", chat=room)
    decision = await house.memory.remember(house.owner, room, heard.message, text)
    assert decision.entry is not None, decision.reason
    return decision.entry


async def used(house: House, entry: Entry, times: int = OFTEN_FROM, **changes: Any) -> None:
    """Let replies be given with a memory."""
    unit = {"id": entry.id, "kind": entry.kind, "band": "full", "score": 3.0, "scores": {"words": 3.0}, **changes}
    for _ in range(times):
        question = await house.hear("?")
        line = Line("bot", "Recollect", house.clock.advance(seconds=5), "So it is.", "said", None, question.message.id)
        await house.memory.answered(house.owner, house.chat, line, {"recalled": [unit]})


async def read(house: House, *, chat: Chat | None = None, tokens: int | None = 1_000) -> Recollection:
    """What is recalled for talk that needs no memory."""
    options = RecallOptions(max_tokens=tokens)
    return await house.memory.recall(house.owner, "hm", room=chat or house.chat, now=house.clock(), options=options)


async def often(house: House, **more: Any) -> list[str]:
    return [unit.text for unit in (await read(house, **more)).units if unit.band == "always"]


async def test_what_answered_three_times_is_read_on_every_turn_and_says_so(house: House) -> None:
    entry = await learned(house, "the boiler code is kept under the blue mat")
    await used(house, entry, OFTEN_FROM - 1)
    assert await often(house) == []
    await used(house, entry, 1)
    (unit,) = (await read(house)).units
    assert (unit.id, unit.band, unit.scores) == (entry.id, "always", {"uses": 3.0})


@pytest.mark.parametrize(
    "changes", [{"band": "always"}, {"band": "perhaps"}, {"scores": {}}, {"kind": "message"}, {"id": 5}]
)
async def test_what_is_read_anyway_or_only_perhaps_is_no_use(house: House, changes: dict[str, Any]) -> None:
    entry = await learned(house, "the boiler code is kept under the blue mat")
    await used(house, entry, 5, **changes)
    assert await often(house) == []


async def test_only_the_few_most_used_are_read_the_most_used_first(house: House) -> None:
    entries = [await learned(house, f"hats: {name} box") for name in ("red", "blue", "green", "grey")]
    entries += [await learned(house, f"seeds: {name} jar") for name in ("oak", "elm", "fir")]
    for place, entry in enumerate(entries):
        await used(house, entry, OFTEN_FROM + place)
    assert await often(house) == [entry.text for entry in reversed(entries)][:OFTEN_MOST]


async def test_their_budget_is_that_of_all_always_read_lines(house: House) -> None:
    for name in ("red", "blue", "green"):
        await used(house, await learned(house, f"box {name} holds {'very ' * 20}winter clothes"))
    shown = (await read(house, tokens=5_000)).units
    assert len(shown) == 1, f"within {ALWAYS_TOKENS}"


async def test_a_habit_that_is_long_over_is_not_read(house: House) -> None:
    await used(house, await learned(house, "the boiler code is kept under the blue mat"))
    house.clock.advance(days=OFTEN_DAYS - 1)
    assert len(await often(house)) == 1
    house.clock.advance(days=2)
    assert await often(house) == []


async def test_a_private_memory_is_read_in_no_group_however_often_it_is_used(house: House) -> None:
    group = await house.memory.chat(house.owner, "group:5", private=False)
    private = await learned(house, "the boiler code is kept under the blue mat")
    common = await learned(house, "the club meets in the old mill", chat=group)
    await used(house, private)
    await used(house, common)
    assert await often(house, chat=group) == [common.text]
    assert set(await often(house)) == {private.text, common.text}


async def test_nobody_reads_what_another_uses(house: House) -> None:
    entry = await learned(house, "the boiler code is kept under the blue mat")
    house.owner = await house.memory.account("test", "1002", name="Bo")
    house.chat = await house.memory.chat(house.owner, "dm:1002")
    await used(house, entry)
    assert await often(house) == []
    assert house.rows(f"SELECT uses FROM facts WHERE id = {entry.id}") == [(0,)], "nor counts it"


async def test_what_is_forgotten_is_not_read_and_its_count_goes_with_it(house: House) -> None:
    entry = await learned(house, "the boiler code is kept under the blue mat")
    await used(house, entry)
    plan = await house.memory.plan_forgetting(house.owner, house.chat, "boiler code", now=house.clock())
    assert plan is not None
    await house.memory.forget(house.owner, plan.offer, picks=None, now=house.clock())
    assert await often(house) == []
    await house.memory.run_due(now=house.clock.advance(hours=2))
    assert house.rows("SELECT uses FROM facts") == []


async def test_one_that_is_asked_about_is_found_like_any_other(house: House) -> None:
    entry = await learned(house, "the boiler code is kept under the blue mat")
    await used(house, entry)
    found = await house.memory.recall(house.owner, "Where is my boiler code?", room=house.chat, now=house.clock())
    assert [unit.band for unit in found.units if unit.id == entry.id] == ["full"]
    assert found.units[0].score > 0


def test_a_trace_without_recall_rests_on_nothing() -> None:
    assert rested_on({}) == []


async def test_a_closed_memory_is_not_read(house: House) -> None:
    entry = await learned(house, "the boiler code is kept under the blue mat")
    await used(house, entry)
    assert len(await often(house)) == 1
    house.clock.advance(days=1)
    facts = house.memory._stores.facts
    await facts.retire(house.owner, entry.id, at=house.clock() - timedelta(hours=1), successor=None, reason="newer")
    assert await often(house) == []
