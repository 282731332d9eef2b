"""Who may see a room changes: nobody hears by that what was said before, and who sees it no more counts as gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.message import ChatRef, Edited, Incoming, Sight, Sighted, Update
from memory import model
from memory.model import Account, Chat
from tests.conftest import Clock
from tests.house import House, housed
from tests.servers.openai_server import OpenAIServer
from tests.talk import PLATFORM, Screen, Talk, talking

KEY = "guild:900/7"
ALL = model.Sight(everybody=True)
STAFF = model.Sight(everybody=False, by=frozenset({"role:1"}))
TWO = model.Sight(everybody=False, by=frozenset({"role:1", "role:2"}))
BUT = model.Sight(everybody=True, but=frozenset({"role:3"}))


@pytest.mark.parametrize(
    ("before", "after", "opens"),
    [
        (STAFF, ALL, True),
        (STAFF, TWO, True),
        (STAFF, BUT, True),
        (BUT, ALL, True),
        (BUT, model.Sight(everybody=False, by=frozenset({"role:3"})), True),
        (ALL, STAFF, False),
        (TWO, STAFF, False),
        (ALL, BUT, False),
        (BUT, STAFF, False),
    ],
)
def test_a_room_is_opened_by_whoever_sees_it_now_and_did_not_before(
    before: model.Sight, after: model.Sight, *, opens: bool
) -> None:
    assert after.opens(before) is opens


SIGHTS = st.one_of(
    st.builds(model.Sight, everybody=st.just(value=True), but=st.frozensets(st.sampled_from("abcd"))),
    st.builds(model.Sight, everybody=st.just(value=False), by=st.frozensets(st.sampled_from("abcd"))),
)


@given(before=SIGHTS, after=SIGHTS)
def test_a_room_is_opened_exactly_where_the_list_of_who_sees_it_has_somebody_new(
    before: model.Sight, after: model.Sight
) -> None:
    def seers(sight: model.Sight) -> set[str]:
        return {*"abcd", "anybody"} - sight.but if sight.everybody else set(sight.by)

    assert after.opens(before) is bool(seers(after) - seers(before))


async def seen(house: House, sight: model.Sight, key: str = KEY) -> None:
    await house.memory.rooms.seen("test", {key: sight}, at=house.clock.advance(seconds=10))


async def room(house: House, key: str = KEY, *, thread: str | None = None) -> Chat:
    return await house.memory.chat(house.owner, key, private=False, thread=thread)


async def bo(house: House) -> Account:
    return await house.memory.account("test", "1002", name="Bo")


async def recalled(house: House, place: Chat) -> list[str]:
    found = await house.memory.recall(house.owner, "What am I allergic to?", room=place, now=house.clock())
    return [unit.text for unit in found.units]


async def test_what_was_said_in_a_room_that_is_opened_is_recalled_in_private_alone(
    data_dir: Path, clock: Clock
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        channel = await room(house)
        await seen(house, STAFF)
        await house.hear("I am allergic to pollen", chat=channel)
        assert await recalled(house, channel) == ["I am allergic to pollen"]
        await seen(house, ALL)
        assert (await recalled(house, channel), await house.known(room=channel)) == ([], [])
        assert await house.window(chat=channel) == []
        assert await recalled(house, house.chat) == await house.known() == ["I am allergic to pollen"]
        # Who writes there again does not open it by that: it is not they who let others in.
        await house.hear("I am allergic to nuts", chat=channel)
        assert await house.known(room=channel) == ["I am allergic to nuts"]
        assert await recalled(house, channel) == ["I am allergic to nuts"]
        assert await house.window(chat=channel) == ["I am allergic to nuts"]


async def test_lines_that_were_sealed_already_are_kept_to_private_chats_too(data_dir: Path, clock: Clock) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        channel = await room(house)
        await seen(house, STAFF)
        for number in range(40):
            await house.hear(f"We talked about the harbour plan number {number}", chat=channel)
        await house.memory.run_due(now=clock.advance(days=1))
        asked = "What about the harbour plan?"
        before = await house.memory.recall(house.owner, asked, room=channel, now=clock())
        assert before.units
        await seen(house, ALL)
        after = await house.memory.recall(house.owner, asked, room=channel, now=clock())
        assert after.units == ()
        await house.reopen()
        again = await house.memory.recall(house.owner, asked, room=channel, now=clock())
        assert again.units == ()
        assert (await house.memory.recall(house.owner, asked, room=house.chat, now=clock())).units


async def test_threads_of_an_opened_channel_are_opened_with_it_and_no_other_channel_is(
    data_dir: Path, clock: Clock
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        thread, other = await room(house, thread="t1"), await room(house, "guild:900/8")
        await house.memory.rooms.seen("test", {KEY: STAFF, "guild:900/8": STAFF}, at=clock())
        await house.hear("I am allergic to pollen", chat=thread)
        await house.hear("I am allergic to milk", chat=other)
        await house.memory.rooms.seen("test", {KEY: ALL, "guild:900/8": STAFF}, at=clock.advance(seconds=10))
        assert await house.known(room=thread) == await house.known(room=await room(house)) == []
        assert await house.known(room=other) == ["I am allergic to milk"]


async def test_the_first_word_of_who_sees_a_room_and_the_same_word_again_change_nothing(
    data_dir: Path, clock: Clock
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        channel = await room(house)
        await house.hear("I am allergic to pollen", chat=channel)
        for _ in range(2):
            await seen(house, ALL)
            await house.reopen()
            assert await house.known(room=channel) == ["I am allergic to pollen"]


async def test_what_was_shared_before_stays_so_and_goes_back_to_private_when_it_is_closed(
    data_dir: Path, clock: Clock
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        channel = await room(house)
        await seen(house, STAFF)
        await house.hear("I am allergic to pollen", chat=channel)
        (entry,) = await house.memory.known(house.owner, room=channel, now=clock())
        await house.memory.sharing.share(house.owner, entry.id, now=clock())
        await seen(house, ALL)
        assert await house.known(room=channel) == ["I am allergic to pollen"]
        await house.memory.sharing.unshare(house.owner, entry.id, now=clock())
        assert await house.known(room=channel) == []
        assert await house.known() == ["I am allergic to pollen"]


async def test_when_a_room_is_closed_to_some_nobody_counts_as_there_until_they_write(
    data_dir: Path, clock: Clock
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        channel, other = await room(house), await bo(house)
        await seen(house, ALL)
        await house.hear("I keep bees", chat=channel)
        await house.hear("I keep goats", owner=other, chat=channel)
        await seen(house, STAFF)
        await house.hear("Hello bot", owner=other, chat=channel)
        window = [line.text for line in await house.memory.window(other, channel, now=clock())]
        assert window == ["I keep goats", "Hello bot"]
        assert await house.known(room=channel) == []
        await house.hear("Me too", chat=channel)
        assert "I keep bees" in await house.window(chat=channel)


@pytest.mark.parametrize("words", ["here", "last", "since 2020-01-01"])
async def test_what_was_remembered_of_an_opened_room_is_forgotten_with_its_words(
    data_dir: Path, clock: Clock, words: str
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        channel = await room(house)
        await house.hear("I am allergic to milk")
        await seen(house, STAFF)
        await house.hear("I am allergic to pollen", chat=channel)
        await seen(house, ALL)
        plan = await house.memory.plan_forgetting(house.owner, channel, words, now=clock())
        assert plan is not None
        assert [entry.text for entry in plan.entries] == ["I am allergic to pollen"]
        await house.memory.forget(house.owner, plan.offer, picks=None, now=clock())
        assert await house.known() == ["I am allergic to milk"]


async def test_who_may_see_a_room_is_known_on_when_it_gets_another_key(data_dir: Path, clock: Clock) -> None:
    new = "guild:900/8"
    async with housed(data_dir / "m.db", clock) as house:
        await seen(house, STAFF)
        await house.hear("I am allergic to pollen", chat=await room(house))
        assert await house.memory.moved("test", KEY, new)
        assert not await house.memory.moved("test", KEY, new)
        await house.reopen()
        assert await recalled(house, await room(house, new)) == ["I am allergic to pollen"]
        await seen(house, ALL, new)
        assert await recalled(house, await room(house, new)) == await house.known(room=await room(house, new)) == []
        assert await house.window(chat=await room(house, new)) == []
        assert await recalled(house, house.chat) == ["I am allergic to pollen"]
        # The key it left says nothing of it any more.
        await house.hear("I am allergic to nuts", chat=await room(house, new))
        await seen(house, TWO)
        await seen(house, ALL)
        assert await recalled(house, await room(house, new)) == ["I am allergic to nuts"]


async def test_a_room_that_moves_before_anything_is_said_there_keeps_who_may_see_it(
    data_dir: Path, clock: Clock
) -> None:
    new = "guild:900/8"
    async with housed(data_dir / "m.db", clock) as house:
        await seen(house, STAFF)
        assert not await house.memory.moved("test", KEY, new)
        await house.hear("I am allergic to pollen", chat=await room(house, new))
        await seen(house, ALL, new)
        assert await house.known(room=await room(house, new)) == []


@pytest.mark.parametrize(
    ("now", "old", "young"), [(ALL, [], ["nuts"]), (STAFF, [], ["nuts"]), (TWO, ["pollen"], ["nuts"])]
)
async def test_what_was_told_of_the_new_key_already_counts_against_the_old_one(
    data_dir: Path, clock: Clock, now: model.Sight, old: list[str], young: list[str]
) -> None:
    new = "guild:900/8"
    async with housed(data_dir / "m.db", clock) as house:
        other = await bo(house)
        await seen(house, TWO)
        await house.hear("I am allergic to pollen", chat=await room(house))
        await seen(house, now, new)
        early = await house.memory.chat(other, new, private=False)
        await house.hear("I am allergic to nuts", owner=other, chat=early)
        await house.memory.moved("test", KEY, new)
        here = await room(house, new)
        known = [text.rpartition(" ")[2] for text in await house.known(room=here)]
        theirs = [entry.text.rpartition(" ")[2] for entry in await house.memory.known(other, room=here, now=clock())]
        assert (known, theirs) == (old, young)
        assert await house.known() == ["I am allergic to pollen"]


# ---- through the conversation ----------------------------------------------------------------------------


async def hand_in(talk: Talk, update: Update) -> Screen:
    screen = Screen()
    await talk.app.conversation.submit(update, screen)
    await talk.app.conversation.idle()
    return screen


async def test_no_request_for_an_opened_channel_holds_what_was_said_before(data_dir: Path, clock: Clock) -> None:
    server_of = ChatRef(PLATFORM, "guild:900", private=False)
    channel = ChatRef(PLATFORM, KEY, private=False)

    def sighted(sight: Sight) -> Sighted:
        return Sighted(server_of, {KEY: sight}, clock.advance(seconds=5))

    def said(text: str) -> Incoming:
        return Incoming(channel, "1001", "Mara", text, text, clock.advance(seconds=5))

    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="Noted.")
        await hand_in(talk, sighted(Sight(everybody=False, by=frozenset({"role:1"}))))
        await hand_in(talk, said("I am allergic to pollen"))
        await hand_in(talk, said("What am I allergic to?"))
        assert "pollen" in server.chats[-1].prompt
        quiet = await hand_in(talk, sighted(Sight(everybody=True)))
        assert (quiet.replies, quiet.dones) == ([], 1)
        await hand_in(talk, said("And what am I allergic to now?"))
        assert "pollen" not in server.chats[-1].prompt
        await talk.say("What am I allergic to?", chat="dm:1001")
        assert "pollen" in server.chats[-1].prompt


async def test_what_was_said_in_an_opened_channel_is_not_answered_again_there(data_dir: Path, clock: Clock) -> None:
    server_of = ChatRef(PLATFORM, "guild:900", private=False)

    def sighted(sight: Sight) -> Sighted:
        return Sighted(server_of, {KEY: sight}, clock.advance(seconds=5))

    def said(text: str, id_: str, *, thread: str | None = None) -> Incoming:
        place = ChatRef(PLATFORM, KEY, private=False, thread=thread)
        return Incoming(place, "1001", "Mara", id_, text, clock.advance(seconds=5))

    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="Get well.")
        await hand_in(talk, sighted(Sight(everybody=False, by=frozenset({"role:1"}))))
        for thread in (None, "t1"):
            await hand_in(talk, said("I am allergic to pollen", f"m{thread}", thread=thread))
            assert "Get well." in (await hand_in(talk, said("/retry", f"r{thread}", thread=thread))).replies[-1].text
        asked = len(server.chats)
        await hand_in(talk, sighted(Sight(everybody=True)))
        for thread in (None, "t1"):
            refused = await hand_in(talk, said("/retry", f"again{thread}", thread=thread))
            assert [reply.text for reply in refused.replies] == [
                "There is no message of yours here that I could answer again."
            ]
            changed = said("I am allergic to birch", f"m{thread}", thread=thread)
            await hand_in(talk, Edited(changed, clock.advance(seconds=5)))
        assert len(server.chats) == asked
        await hand_in(talk, said("What am I allergic to?", "m2"))
        await hand_in(talk, said("/retry", "r2"))
        assert len(server.chats) == asked + 2
        # What a message says after an edit stays where the message was said, too.
        assert not re.search("birch|pollen", server.chats[-1].prompt)
        await talk.say("What am I allergic to?", chat="dm:1001")
        assert "birch" in server.chats[-1].prompt
