"""Sharing: its owner opens a memory to every place, closes it again, and nobody else can do either."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.model import EVERYWHERE, PRIVATE, Account, Chat, Entry
from tests.conftest import Clock
from tests.house import House, housed
from tests.talk import Talk, talking

GROUP = "group:-500"


async def room(house: House, key: str = GROUP, owner: Account | None = None) -> Chat:
    return await house.memory.chat(owner or house.owner, key, private=False)


async def entry(house: House) -> Entry:
    (found,) = await house.memory.known(house.owner, room=house.chat, now=house.clock())
    return found


async def test_a_shared_memory_is_known_in_every_group_and_an_unshared_one_in_none(
    data_dir: Path, clock: Clock
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        await house.hear("I am allergic to pollen")
        group = await room(house)
        assert await house.known(room=group) == []
        opened = await house.memory.sharing.share(house.owner, (await entry(house)).id, now=clock())
        assert opened is not None
        assert (opened.changed, opened.entry.provenance.audience) == (True, EVERYWHERE)
        assert await house.known(room=group) == ["I am allergic to pollen"]
        asked = await house.memory.recall(house.owner, "What am I allergic to?", room=group, now=clock())
        assert [unit.text for unit in asked.units] == ["I am allergic to pollen"]
        back = await house.memory.sharing.unshare(house.owner, opened.entry.id, now=clock())
        assert back is not None
        assert (back.changed, back.entry.provenance.audience) == (True, PRIVATE)
        assert await house.known(room=group) == []
        asked = await house.memory.recall(house.owner, "What am I allergic to?", room=group, now=clock())
        assert asked.units == ()


async def test_what_was_said_in_a_group_goes_back_to_that_group_when_its_line_is_long_trimmed(
    data_dir: Path, clock: Clock
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        group, other = await room(house), await room(house, "group:-600")
        await house.hear("I am allergic to pollen", chat=group)
        held = await entry(house)
        await house.memory.sharing.share(house.owner, held.id, now=clock())
        await house.memory.run_due(now=clock.advance(days=400))
        assert house.rows("SELECT count(*) FROM journal WHERE text != ''") == [(0,)]
        assert await house.known(room=other) == ["I am allergic to pollen"]
        await house.memory.sharing.unshare(house.owner, held.id, now=clock())
        assert await house.known(room=other) == []
        assert await house.known(room=group) == ["I am allergic to pollen"]


async def test_doing_it_twice_changes_nothing_and_unsharing_knows_where_it_was_said(
    data_dir: Path, clock: Clock
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        await house.hear("I am allergic to pollen", chat=await room(house))
        held, sharing = await entry(house), house.memory.sharing
        for change, expected in ((sharing.share, EVERYWHERE), (sharing.unshare, held.provenance.audience)):
            first, second = [await change(house.owner, held.id, now=clock()) for _ in range(2)]
            assert first is not None
            assert second is not None
            assert [first.changed, second.changed] == [True, False]
            assert first.entry == second.entry
            assert second.entry.provenance.audience == expected


async def test_nobody_but_its_owner_shares_a_memory(data_dir: Path, clock: Clock) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        await house.hear("I am allergic to pollen")
        other = await house.memory.account("test", "1002", name="Bo")
        held = await entry(house)
        assert await house.memory.sharing.share(other, held.id, now=clock()) is None
        assert (await entry(house)).provenance.audience == PRIVATE


async def test_what_is_closed_expired_or_forgotten_is_not_shared(data_dir: Path, clock: Clock) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        await house.hear("I live in Oslo")
        old = await entry(house)
        await house.hear("I live in Lyon")
        assert await house.memory.sharing.share(house.owner, old.id, now=clock()) is None
        new = await entry(house)
        plan = await house.memory.plan_forgetting(house.owner, house.chat, "Lyon", now=clock())
        assert plan is not None
        await house.memory.forget(house.owner, plan.offer, picks=None, now=clock())
        assert await house.memory.sharing.share(house.owner, new.id, now=clock()) is None


async def test_what_takes_the_place_of_a_shared_memory_is_not_shared_with_it(data_dir: Path, clock: Clock) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        group = await room(house)
        await house.hear("I live in Oslo")
        await house.memory.sharing.share(house.owner, (await entry(house)).id, now=clock())
        await house.hear("I live in Lyon")
        assert await house.known() == ["I live in Lyon"]
        assert await house.known(room=group) == []


async def test_a_group_that_moves_and_joins_another_gets_its_own_back(data_dir: Path, clock: Clock) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        await house.hear("I like tea", chat=await room(house, "group:-900"), at=clock())
        await house.hear("I am allergic to pollen", chat=await room(house))
        for held in await house.memory.known(house.owner, room=house.chat, now=clock()):
            await house.memory.sharing.share(house.owner, held.id, now=clock())
        assert await house.memory.moved("test", GROUP, "group:-900")
        for held in await house.memory.known(house.owner, room=house.chat, now=clock()):
            await house.memory.sharing.unshare(house.owner, held.id, now=clock())
        assert sorted(await house.known(room=await room(house, "group:-900"))) == [
            "I am allergic to pollen",
            "I like tea",
        ]


async def offered(talk: Talk, command: str, chat: str = "") -> tuple[str, list[str]]:
    """The reply to a command, and the ids of its buttons; it is for its owner alone."""
    (reply,) = await talk.ask(command, chat=chat)
    assert reply.private
    return reply.text, [button.id for button in reply.buttons]


async def test_words_show_what_they_mean_before_anything_is_shared(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to pollen")
        await talk.say("I am allergic to nuts")
        text, buttons = await offered(talk, "/share allergic")
        assert "1. allergy: pollen" in text
        assert "2. allergy: nuts" in text
        assert "I am allergic to" not in await talk.say("/whatdoyouknow", chat=GROUP)
        receipt = await talk.press(buttons[1])
        assert receipt.startswith("allergy: nuts\nFrom now on I may use this everywhere")
        shown = await talk.say("/whatdoyouknow", chat=GROUP)
        assert "nuts" in shown
        assert "pollen" not in shown
        text, buttons = await offered(talk, "/unshare nuts")
        assert (await talk.press(buttons[0])).startswith(
            "allergy: nuts\nFrom now on I use this only in our private chat"
        )
        assert "nuts" not in await talk.say("/whatdoyouknow", chat=GROUP)


async def test_another_person_pressing_the_button_shares_nothing(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to pollen")
        await talk.say("hello there", user="1002")
        _, (button,) = await offered(talk, "/share pollen")
        assert "no longer open" in await talk.press(button, user="1002")
        assert "pollen" not in await talk.say("/whatdoyouknow", chat=GROUP)


async def test_in_a_group_only_what_may_be_shown_there_is_found(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to pollen")
        await talk.say("I am allergic to nuts", chat=GROUP)
        text, buttons = await offered(talk, "/share allergic", chat=GROUP)
        assert "nuts" in text
        assert "pollen" not in text
        assert (await talk.press(buttons[0], chat=GROUP)).startswith("allergy: nuts\nFrom now on")
        assert "in the group where you said it" in await talk.press(buttons[0].replace("share", "unshare"), chat=GROUP)


@pytest.mark.parametrize("command", ["/share", "/unshare", "/share %%", "/share unicorns", "/unshare pollen"])
async def test_nothing_is_changed_by_what_means_nothing(data_dir: Path, clock: Clock, command: str) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to pollen")
        text, buttons = await offered(talk, command)
        assert buttons == []
        assert ("Which memory" in text) != ("Nothing was changed" in text)


async def test_an_old_button_of_what_is_gone_says_so(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I live in Oslo")
        _, (button,) = await offered(talk, "/share Oslo")
        await talk.say("I live in Lyon")
        assert "no longer open" in await talk.press(button)


async def test_a_number_means_what_the_list_shown_last_in_this_chat_showed(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to pollen")
        await talk.say("I am allergic to nuts")
        assert "shown you no list" in await talk.say("/share 2")
        await talk.say("/whatdoyouknow")
        assert (await talk.say("/share 2")).startswith("allergy: nuts\nFrom now on I may use this everywhere")
        assert (await talk.say("/share 2")).startswith("allergy: nuts\nAs before,")
        assert (await talk.say("/unshare 2")).startswith("allergy: nuts\nFrom now on I use this only in our private")
        assert "no memory under this number" in await talk.say("/share 3")
        assert "shown you no list" in await talk.say("/share 2", chat=GROUP)
