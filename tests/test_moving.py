"""A group that gets a new key goes on with its numbers: nothing is lost, and nothing private becomes visible."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.model import Account, Chat
from memory.ports import Completion
from memory.recall import visible
from tests.conftest import Clock
from tests.house import House, housed

OLD, NEW = "group:-500", "group:-100500"


@pytest.fixture
async def house(tmp_path: Path, clock: Clock) -> AsyncIterator[House]:
    async with housed(tmp_path / "r.db", clock) as opened:
        yield opened


async def group(house: House, key: str = OLD, *, thread: str | None = None, owner: Account | None = None) -> Chat:
    return await house.memory.chat(owner or house.owner, key, private=False, thread=thread)


async def test_a_group_goes_on_under_its_new_key(house: House) -> None:
    room, topic = await group(house), await group(house, thread="9")
    await house.hear("I live in Oslo", id_="1", chat=room)
    await house.hear("Hello", id_="2", chat=topic)
    assert await house.memory.moved("test", OLD, NEW)
    now, then = await group(house, NEW), await group(house, NEW, thread="9")
    assert (now.no, then.no, then.parent) == (room.no, topic.no, room.no)
    assert (now.audience, then.audience) == (room.audience, topic.audience)
    assert await house.memory.chat_key(house.owner, room.no) == NEW
    assert await house.window(chat=now) == ["I live in Oslo"]
    assert await house.window(chat=then) == ["Hello"]
    assert len(await house.known(room=now)) == 1


async def test_moving_twice_is_moving_once(house: House) -> None:
    await house.hear("Hello", id_="1", chat=await group(house))
    assert await house.memory.moved("test", OLD, NEW)
    before = house.everything()
    assert not await house.memory.moved("test", OLD, NEW)
    assert not await house.memory.moved("test", "group:-1", "group:-2")
    assert not await house.memory.moved("test", NEW, NEW)
    assert not await house.memory.moved("other", NEW, OLD)
    assert house.everything() == before


async def test_the_new_key_counts_messages_anew_and_the_old_ones_are_still_known(house: House) -> None:
    first = await house.hear("old one", id_="1", chat=await group(house))
    await house.memory.moved("test", OLD, NEW)
    second = await house.hear("new one", id_="1", chat=await group(house, NEW))
    assert second.new
    again = await house.hear("old one", id_="1", chat=await group(house))
    assert (again.new, again.message.id) == (False, first.message.id)
    assert (await house.hear("new one", id_="1", chat=await group(house, NEW))).message == second.message
    author = await house.memory.author_of("test", OLD, None, "1")
    assert author == house.owner
    assert await house.memory.withdraw(house.owner, await group(house), ["1"], now=house.clock()) == 1
    assert await house.window(chat=await group(house, NEW)) == ["new one"]


async def test_what_came_in_under_the_new_key_first_joins_thread_by_thread(house: House) -> None:
    room, topic = await group(house), await group(house, thread="9")
    await house.hear("I live in Oslo", id_="1", chat=room)
    await house.hear("topic, old", id_="2", chat=topic)
    early, early_topic = await group(house, NEW), await group(house, NEW, thread="9")
    only_new = await group(house, NEW, thread="10")
    heard = await house.hear("I have a cat named Miso", id_="1", chat=early, waits=True)
    await house.hear("topic, new", id_="2", chat=early_topic)
    await house.hear("another", id_="3", chat=only_new)
    plan = await house.memory.plan_forgetting(house.owner, early, "Miso", now=house.clock())
    assert plan is not None
    assert await house.memory.moved("test", OLD, NEW)
    now = await group(house, NEW)
    assert now.no == room.no
    assert (await group(house, NEW, thread="9")).no == topic.no
    assert (await group(house, NEW, thread="10")).audience == room.audience
    assert (
        house.rows(f"SELECT DISTINCT chat FROM journal WHERE chat NOT IN ({room.no}, {topic.no}, {only_new.no})") == []
    )
    for table in ("sessions", "traces", "offers", "deletions", "notices", "journal"):
        assert house.rows(f"SELECT 1 FROM {table} WHERE chat IN ({early.no}, {early_topic.no})") == []
    assert set(await house.known(room=now)) == set(await house.known())
    assert await house.memory.pending_forgetting(house.owner, now, now=house.clock()) == plan.offer
    (found,) = await house.memory.waiting("test", since=heard.message.at)
    assert (found.key, found.message.platform_id) == (NEW, "1")
    assert (await house.hear("I live in Oslo", id_="1", chat=await group(house))).new is False
    assert (await house.hear("I have a cat named Miso", id_="1", chat=now)).new is False


async def test_who_holds_on_to_a_chat_while_it_moves_writes_into_the_one_it_became(house: House) -> None:
    room = await group(house)
    await house.hear("Hello", id_="1", chat=room)
    early = await group(house, NEW)
    heard = await house.hear("Are you there?", id_="1", chat=early, waits=True)
    await house.memory.moved("test", OLD, NEW)
    await house.reply("I am.", heard.message, chat=early)
    await house.hear("I live in Oslo", id_="2", chat=early)
    late = await house.hear("still on its way", id_="2", chat=room)
    now = await group(house, NEW)
    assert late.new
    assert house.rows("SELECT DISTINCT chat FROM journal") == [(now.no,)]
    assert await house.window(chat=early) == await house.window(chat=now) != []
    assert len(await house.known(room=now)) == 1


async def test_an_answer_on_its_way_is_given_anew_in_the_new_place(house: House) -> None:
    heard = await house.hear("Are you there?", id_="1", chat=await group(house), waits=True)
    await house.memory.shown(house.owner, heard.message.id, None)
    await house.memory.shown(house.owner, heard.message.id, "501")
    await house.memory.moved("test", OLD, NEW)
    (found,) = await house.memory.waiting("test", since=heard.message.at)
    assert (found.key, found.shown, found.begun) == (NEW, (), False)
    assert found.message.platform_id is None


async def test_a_private_chat_never_moves_and_nothing_moves_into_one(house: House) -> None:
    await house.hear("I live in Oslo", id_="1")
    await house.hear("Hello", id_="1", chat=await group(house))
    before = house.everything()
    assert not await house.memory.moved("test", "dm:1001", NEW)
    assert not await house.memory.moved("test", OLD, "dm:1001")
    assert house.everything() == before


async def test_a_group_can_move_on_and_back(house: House) -> None:
    room = await group(house)
    first = await house.hear("one", id_="1", chat=room)
    for old, new in ((OLD, NEW), (NEW, "group:-3"), ("group:-3", NEW)):
        assert await house.memory.moved("test", old, new)
        assert (await group(house, new)).no == room.no
    assert (await house.hear("one", id_="1", chat=await group(house))).message.id == first.message.id
    assert house.rows("SELECT DISTINCT chat FROM journal") == [(room.no,)]


async def test_a_kill_in_the_middle_moves_nothing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.hear("one", id_="1", chat=await group(house))
    await house.hear("two", id_="1", chat=await group(house, NEW))
    before = house.everything()

    async def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(house.memory._moves, "_swap_keys", killed)
        with pytest.raises(KeyboardInterrupt):
            await house.memory.moved("test", OLD, NEW)
    await house.reopen()
    assert house.everything() == before
    assert await house.memory.moved("test", OLD, NEW)


async def test_the_newest_heard_is_the_highest_number_a_person_wrote_in_each_chat(house: House) -> None:
    bo = await house.memory.account("test", "1002", name="Bo")
    room, topic = await group(house), await group(house, thread="9")
    await house.hear("one", id_="9", chat=room)
    await house.hear("two", id_="1234567890123456789", chat=room, owner=bo)
    heard = await house.hear("three", id_="10", chat=room)
    await house.hear("four", id_="m4", chat=room)
    await house.hear("five", id_="7", chat=topic)
    await house.hear("six", id_="3")
    await house.reply("seven", heard.message, chat=room)
    assert await house.memory.newest_heard("test") == {
        (OLD, None, False): "1234567890123456789",
        (OLD, "9", False): "7",
        ("dm:1001", None, True): "3",
    }
    await house.memory.withdraw(bo, room, ["1234567890123456789"], now=house.clock())
    assert (await house.memory.newest_heard("test"))[OLD, None, False] == "1234567890123456789"
    assert await house.memory.newest_heard("elsewhere") == {}
    await house.memory.moved("test", OLD, NEW)
    assert await house.memory.newest_heard("test") == {("dm:1001", None, True): "3"}


@dataclass
class Moving:
    """A model in whose time to answer the group moves."""

    house: House | None = None

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        assert messages
        assert schema is not None
        assert max_tokens > 0
        assert self.house is not None
        await self.house.memory.moved("test", OLD, NEW)
        item = {"kind": "fact", "text": "The user's boat is called Ella", "cites": [{"message": 1}]}
        return Completion(json.dumps({"items": [item]}), "stop", 10)


async def test_what_is_distilled_while_a_group_moves_is_known_in_the_group_it_became(
    tmp_path: Path, clock: Clock
) -> None:
    model = Moving()
    async with housed(tmp_path / "r.db", clock, completer=model) as house:
        model.house = house
        await group(house)
        await house.hear("My boat is called Ella", id_="1", chat=await group(house, NEW))
        done = await house.memory.run_due(now=clock.advance(hours=1))
        assert "added" in done["distil"]
        assert await house.known(room=await group(house, NEW)) == ["The user's boat is called Ella"]
        assert await house.known(room=await group(house, "group:-7")) == []


class Said(NamedTuple):
    """One sentence of somebody: ``place`` is a room of the story, ``owner`` who said it."""

    owner: int
    place: int


PLACES = ((OLD, None), (OLD, "9"), (NEW, None), (NEW, "9"), (NEW, "10"), ("group:-7", None), ("dm", None))
JOINED = {OLD, NEW}


async def story(path: Path, said: list[Said]) -> None:
    """Tell a story, move the group, and compare what may be used in every room before and after."""
    async with housed(path, Clock()) as house:
        owners = [house.owner, await house.memory.account("test", "1002", name="Bo")]
        numbers = dict.fromkeys((key for key, _ in PLACES), 0)

        async def room(owner: Account, place: int) -> Chat:
            key, thread = PLACES[place]
            if key == "dm":
                return await house.memory.chat(owner, f"dm:{owner.user_id}")
            return await house.memory.chat(owner, key, private=False, thread=thread)

        async def seen() -> dict[tuple[int, int], set[str]]:
            found = {}
            for who, owner in enumerate(owners):
                entries = await house.memory.history(owner)
                for place in range(len(PLACES)):
                    here = await room(owner, place)
                    found[who, place] = {e.text for e in entries if visible(e.provenance.audience, here)}
            return found

        for one in said:
            owner, key = owners[one.owner], PLACES[one.place][0]
            # Under the old key and the new one the platform gives the same numbers to other messages.
            numbers[key] += 1
            text = f"I like town number {one.place}{numbers[key]}"
            await house.hear(text, id_=str(numbers[key]), owner=owner, chat=await room(owner, one.place))
        lines = house.rows("SELECT id, text FROM journal ORDER BY id")
        before = await seen()
        await house.memory.moved("test", OLD, NEW)
        after = await seen()
        again = await house.memory.moved("test", OLD, NEW)
        for (who, place), texts in after.items():
            key = PLACES[place][0]
            joined = [other for other in range(len(PLACES)) if PLACES[other][0] in JOINED]
            sources = joined if key in JOINED else [place]
            assert texts == set().union(*(before[who, source] for source in sources)), (who, PLACES[place])
            private = before[who, len(PLACES) - 1] - set().union(*(before[who, p] for p in range(len(PLACES) - 1)))
            assert key == "dm" or not texts & private
        assert not again
        assert house.rows("SELECT id, text FROM journal ORDER BY id") == lines


@settings(max_examples=12, deadline=timedelta(seconds=20))
@given(st.lists(st.builds(Said, st.integers(0, 1), st.integers(0, len(PLACES) - 1)), max_size=10))
def test_what_may_be_used_in_a_room_is_what_could_be_used_in_what_it_was_joined_of(said: list[Said]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(Path(folder) / "r.db", said))
