"""Comings and goings: what somebody said in a group they left is for their private chat alone, until they are back."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from bot.message import ChatRef, Incoming, Left, Press, Update
from memory.model import Account, Chat
from tests.conftest import Clock
from tests.house import House, housed
from tests.servers.openai_server import OpenAIServer
from tests.talk import PLATFORM, Door, Screen, Talk, talking

GROUP = "group:-500"
HERE = ChatRef(PLATFORM, GROUP, private=False)


async def room(house: House, key: str = GROUP, *, thread: str | None = None) -> Chat:
    return await house.memory.chat(house.owner, key, private=False, thread=thread)


async def bo(house: House) -> Account:
    return await house.memory.account("test", "1002", name="Bo")


async def recalled(house: House, place: Chat, owner: Account | None = None) -> list[str]:
    found = await house.memory.recall(owner or house.owner, "What am I allergic to?", room=place, now=house.clock())
    return [unit.text for unit in found.units]


async def test_what_was_said_in_a_group_that_was_left_is_recalled_in_private_alone(
    data_dir: Path, clock: Clock
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        group = await room(house)
        await house.hear("I am allergic to pollen", chat=group)
        await house.memory.rooms.left(house.owner, GROUP, at=clock.advance(minutes=1))
        assert (await recalled(house, group), await house.known(room=group)) == ([], [])
        assert await house.known() == await recalled(house, house.chat) == ["I am allergic to pollen"]


async def test_who_writes_again_is_back_and_a_line_of_before_that_comes_late_brings_nobody_back(
    data_dir: Path, clock: Clock
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        group = await room(house)
        await house.hear("I am allergic to pollen", chat=group)
        left_at = clock.advance(minutes=2)
        await house.memory.rooms.left(house.owner, GROUP, at=left_at)
        await house.hear("bye then", chat=group, at=left_at - timedelta(seconds=30))
        assert await house.known(room=group) == []
        await house.hear("here I am again", chat=group)
        assert await house.known(room=group) == await recalled(house, group) == ["I am allergic to pollen"]


async def test_the_others_read_nothing_of_who_left_nor_what_the_bot_told_them(data_dir: Path, clock: Clock) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        group, other = await room(house), await bo(house)
        mine = await house.hear("I keep bees", chat=group)
        await house.reply("Bees are busy", mine.message, chat=group)
        theirs = await house.hear("I keep goats", owner=other, chat=group)
        await house.reply("Goats are calm", theirs.message, chat=group, owner=other)
        everything = ["I keep bees", "Bees are busy", "I keep goats", "Goats are calm"]
        assert await house.window(chat=group) == everything
        await house.memory.rooms.left(house.owner, GROUP, at=clock.advance(seconds=1))
        window = await house.memory.window(other, group, now=clock())
        assert [line.text for line in window] == ["I keep goats", "Goats are calm"]
        await house.hear("back with you", chat=group)
        window = await house.memory.window(other, group, now=clock())
        assert [line.text for line in window] == [*everything, "back with you"]


async def test_who_leaves_a_group_leaves_its_topics_and_no_other_group(data_dir: Path, clock: Clock) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        topic, other = await room(house, thread="11"), await room(house, "group:-600")
        await house.hear("I am allergic to pollen", chat=topic)
        await house.hear("I am allergic to nuts", chat=other)
        await house.memory.rooms.left(house.owner, GROUP, at=clock.advance(minutes=1))
        assert await house.known(room=await room(house)) == await house.known(room=topic) == []
        assert await house.known(room=other) == ["I am allergic to nuts"]


async def test_who_leaves_a_server_leaves_all_of_its_channels_and_no_server_of_a_like_number(
    data_dir: Path, clock: Clock
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        rooms = {key: await room(house, key) for key in ("guild:90/1", "guild:90/2", "guild:900/1")}
        for food, place in zip(("nuts", "eggs", "milk"), rooms.values(), strict=True):
            await house.hear(f"I am allergic to {food}", chat=place)
        await house.memory.rooms.left(house.owner, "guild:90", at=clock.advance(minutes=1))
        assert [await house.known(room=p) for p in rooms.values()] == [[], [], ["I am allergic to milk"]]


async def test_what_a_group_knew_goes_with_it_when_it_moves(data_dir: Path, clock: Clock) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        await house.hear("I am allergic to pollen", chat=await room(house))
        await house.memory.rooms.left(house.owner, GROUP, at=clock.advance(minutes=1))
        assert await house.memory.moved("test", GROUP, "group:-900")
        new = await room(house, "group:-900")
        assert await house.known(room=new) == []
        await house.hear("hello again", chat=new)
        assert await house.known(room=new) == ["I am allergic to pollen"]


async def test_when_the_bot_has_to_go_everybody_is_with_it_again_only_once_they_write(
    data_dir: Path, clock: Clock
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        group, other = await room(house), await bo(house)
        await house.hear("I keep bees", chat=group)
        await house.hear("I keep goats", owner=other, chat=group)
        await house.memory.rooms.removed("test", GROUP, at=clock.advance(minutes=1))
        await house.hear("Hello bot", owner=other, chat=group)
        window = [line.text for line in await house.memory.window(other, group, now=clock())]
        assert window == ["I keep goats", "Hello bot"]


async def test_a_key_a_group_has_left_behind_says_nothing_of_the_bot_in_the_new_one(
    data_dir: Path, clock: Clock
) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        await house.hear("I am allergic to pollen", chat=await room(house))
        await house.memory.moved("test", GROUP, "group:-900")
        await house.memory.rooms.removed("test", GROUP, at=clock.advance(minutes=1))
        assert await house.known(room=await room(house, "group:-900")) == ["I am allergic to pollen"]


async def test_nobody_left_a_private_chat(data_dir: Path, clock: Clock) -> None:
    async with housed(data_dir / "m.db", clock) as house:
        await house.hear("I am allergic to pollen")
        await house.memory.rooms.left(house.owner, "dm:1001", at=clock.advance(minutes=1))
        assert await house.known() == await recalled(house, house.chat) == ["I am allergic to pollen"]


# ---- through the conversation ----------------------------------------------------------------------------


async def hand_in(talk: Talk, update: Update) -> Screen:
    screen = Screen()
    await talk.app.conversation.submit(update, screen)
    return screen


def message(talk: Talk, text: str, user: str, *, key: str = GROUP, thread: str | None = None) -> Incoming:
    chat = ChatRef(PLATFORM, key, private=False, thread=thread)
    return Incoming(chat, user, f"name{user}", f"{user} {text}", text, talk.clock.advance(seconds=10))


@pytest.mark.parametrize(("gone", "answered"), [("1001", ["later"]), (None, [])])
async def test_what_is_owed_to_who_left_is_given_up_without_a_word_and_the_rest_is_answered(
    data_dir: Path, clock: Clock, gone: str | None, answered: list[str]
) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        door = Door()
        server.on("now", reply="too late", hold=door)
        server.on("Bo asks", reply="later")
        server.on("What did I say", reply="Bees.")
        running = await hand_in(talk, message(talk, "now", "1001"))
        await door.reached.wait()
        queued = await hand_in(talk, message(talk, "Bo asks", "1002"))
        behind = await hand_in(talk, message(talk, "and I again: I keep bees", "1001"))
        left = await hand_in(talk, Left(HERE, gone, clock.advance(seconds=5)))
        door.set()
        await talk.app.conversation.idle()
        assert [screen.replies for screen in (running, behind, left)] == [[], [], []]
        assert [reply.text for reply in queued.replies] == answered
        assert [screen.dones for screen in (running, queued, behind, left)] == [1, 1, 1, 1]
        assert talk.rows("SELECT count(*) FROM waiting") == [(0,)]
        # It was said all the same.
        assert await talk.say("What did I say I keep?") == "Bees."
        assert "I keep bees" in server.chats[-1].prompt


async def test_topics_are_given_up_with_their_group_and_channels_with_their_server(
    data_dir: Path, clock: Clock
) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        door = Door()
        server.on(reply="too late", hold=door)
        chats = [("guild:900/1", None), ("guild:900/2", "t7"), ("guild:9001/1", None)]
        screens = [await hand_in(talk, message(talk, "now", "1001", key=key, thread=thread)) for key, thread in chats]
        await door.reached.wait()
        await hand_in(talk, Left(ChatRef(PLATFORM, "guild:900", private=False), None, clock.advance(seconds=5)))
        door.set()
        await talk.app.conversation.idle()
        assert [len(screen.replies) for screen in screens] == [0, 0, 1]


async def test_a_stranger_who_leaves_is_made_no_account_of(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        screen = await hand_in(talk, Left(HERE, "7777", clock()))
        assert (screen.replies, screen.dones) == ([], 1)
        assert talk.rows("SELECT count(*) FROM accounts") == [(0,)]


async def test_nothing_of_a_group_is_answered_after_a_restart_to_who_left_it(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="too late", hold=Door())
        await hand_in(talk, message(talk, "now", "1001"))
        await talk.app.conversation.stop(0.0)
        assert talk.rows("SELECT count(*) FROM waiting") == [(1,)]
        await hand_in(talk, Left(HERE, None, clock.advance(seconds=5)))
        assert talk.rows("SELECT count(*) FROM waiting") == [(0,)]


async def test_a_button_that_waits_in_a_group_its_presser_left_is_not_obeyed(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        door = Door()
        server.on(reply="a long answer", hold=door)
        await hand_in(talk, message(talk, "now", "1002"))
        await door.reached.wait()
        pressed = await hand_in(talk, Press(HERE, "1001", "Mara", "undo:1", clock()))
        await hand_in(talk, Left(HERE, "1001", clock.advance(seconds=5)))
        door.set()
        await asyncio.wait_for(talk.app.conversation.idle(), 5)
        assert (pressed.replies, pressed.dones) == ([], 1)


# ---- what a group is told of the clock -------------------------------------------------------------------


async def test_where_somebody_said_in_private_they_live_names_no_zone_in_a_group(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await talk.say("I live in Berlin")
        await talk.say("What time is it?", chat=GROUP)
        assert "13:02 (UTC+01:00)" in server.chats[-1].prompt
        assert "Berlin" not in server.chats[-1].prompt
        await talk.say("What time is it?")
        assert "13:03 (Europe/Berlin)" in server.chats[-1].prompt


async def test_who_may_not_see_some_channels_any_more_has_left_these_alone(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        for number, food in ((1, "pollen"), (2, "milk")):
            await hand_in(talk, message(talk, f"I am allergic to {food}", "1001", key=f"guild:900/{number}"))
        await hand_in(talk, message(talk, "hello", "1002", key="guild:900/1"))
        await talk.app.conversation.idle()
        shut = frozenset({"guild:900/1", "guild:900/77"})
        server_of = ChatRef(PLATFORM, "guild:900", private=False)
        for _ in range(2):
            await hand_in(talk, Left(server_of, "1001", clock.advance(seconds=5), rooms=shut))
        assert len(talk.rows("SELECT chat FROM departures")) == 1
        await hand_in(talk, message(talk, "What did Mara say?", "1002", key="guild:900/1"))
        await hand_in(talk, message(talk, "And here?", "1002", key="guild:900/2"))
        await talk.app.conversation.idle()
        first, second = (chat.prompt for chat in server.chats[-2:])
        assert "pollen" not in first
        assert "milk" in second
