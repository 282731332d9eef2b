"""The numbers of a list that somebody was shown go on meaning what they meant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from memory.lists import LIST_LASTS
from memory.model import Chat, Entry
from tests.conftest import Clock
from tests.house import House, housed


@pytest.fixture
async def house(tmp_path: Path, clock: Clock) -> AsyncIterator[House]:
    async with housed(tmp_path / "r.db", clock) as opened:
        for thing in ("bike", "boat", "kite", "drum"):
            await _remembered(opened, f"my {thing} is in the cellar")
        yield opened


async def _remembered(house: House, text: str, chat: Chat | None = None) -> Entry:
    room = chat or house.chat
    heard = await house.hear("", chat=room, kind="command")
    decision = await house.memory.remember(house.owner, room, heard.message, text)
    assert decision.entry is not None
    return decision.entry


async def _shown(house: House, *, pages: int = 2, chat: Chat | None = None) -> list[Entry]:
    """Show all that is known, on so many pages."""
    room = chat or house.chat
    known = await house.memory.known(house.owner, room=room, now=house.clock())
    ids = [entry.id for entry in known]
    size = -(-len(ids) // pages)
    cut = [[("facts", ids[at : at + size])] for at in range(0, len(ids), size)]
    await house.memory.lists.keep(house.owner, room, cut, now=house.clock())
    return known


async def _numbered(house: House, number: int, chat: Chat | None = None) -> str | None:
    entry = await house.memory.lists.numbered(house.owner, chat or house.chat, number, now=house.clock())
    return None if entry is None else entry.text


async def _forgotten(house: House, words: str) -> None:
    plan = await house.memory.plan_forgetting(house.owner, house.chat, words, now=house.clock())
    assert plan is not None
    assert await house.memory.forget(house.owner, plan.offer, picks=None, now=house.clock()) is not None


async def test_a_number_is_the_row_that_had_it_whatever_came_or_went_since(house: House) -> None:
    texts = [entry.text for entry in await _shown(house)]
    await _remembered(house, "my aardvark is in the garden")
    await _forgotten(house, "bike")
    assert [await _numbered(house, number) for number in range(6)] == [None, None, *texts[1:], None]
    assert await house.memory.lists.count(house.owner, house.chat, now=house.clock()) == 4
    await house.memory.undo(house.owner, now=house.clock())
    assert await _numbered(house, 1) == texts[0]


async def test_a_number_whose_row_is_erased_never_gets_another_row(house: House) -> None:
    await _shown(house)
    await _forgotten(house, "drum")
    house.clock.advance(minutes=30)
    await house.memory.run_due(now=house.clock())
    await _remembered(house, "my drum is in the attic")
    assert await _numbered(house, 4) is None
    assert await _numbered(house, 3) == "my kite is in the cellar"


async def test_the_list_seen_last_counts_and_survives_a_restart_but_not_a_week(house: House) -> None:
    await _shown(house)
    await house.memory.lists.keep(
        house.owner, house.chat, [[("facts", [e.id for e in reversed(await _shown(house))])]], now=house.clock()
    )
    await house.reopen()
    assert await _numbered(house, 1) == "my drum is in the cellar"
    house.clock.advance(seconds=(LIST_LASTS - timedelta(minutes=1)).total_seconds())
    assert await _numbered(house, 1) == "my drum is in the cellar"
    house.clock.advance(minutes=1)
    assert await _numbered(house, 1) is None
    assert await house.memory.lists.count(house.owner, house.chat, now=house.clock()) == 0


async def test_each_chat_has_its_own_numbers_and_a_group_shows_nothing_private(house: House) -> None:
    group = await house.memory.chat(house.owner, "group:-500", private=False)
    await _remembered(house, "my tent is in the car", group)
    (alone,) = await _shown(house, pages=1, chat=group)
    everything = await _shown(house)
    assert (await _numbered(house, 1, group), await _numbered(house, 1)) == (alone.text, everything[0].text)
    private = everything[0].id
    await house.memory.lists.keep(house.owner, group, [[("facts", [private])]], now=house.clock())
    assert await _numbered(house, 1, group) is None


async def test_another_persons_list_and_rows_are_nobodys_numbers(house: House) -> None:
    other = await house.memory.account("test", "1002", name="Kim")
    room = await house.memory.chat(other, "dm:1002")
    known = await _shown(house)
    assert await house.memory.lists.numbered(other, house.chat, 1, now=house.clock()) is None
    listed = await house.memory.lists.keep(other, room, [[("facts", [known[0].id])]], now=house.clock())
    assert await house.memory.lists.numbered(other, room, 1, now=house.clock()) is None
    assert await house.memory.lists.listed(house.owner, listed.id, now=house.clock()) is None


async def test_a_list_keeps_ids_and_no_words(house: House) -> None:
    await _shown(house)
    ((data,),) = house.rows("SELECT data FROM offers WHERE kind = 'list'")
    assert "cellar" not in data
    assert "bike" not in data
