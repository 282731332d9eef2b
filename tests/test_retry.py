"""``/retry``: the last message is answered again, and the new answer takes the place of the old one everywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.message import ChatRef, Edited, Incoming
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.stages.stage import MARA, TOMAS
from tests.stages.world import World, world_on
from tests.talk import PLATFORM, Door, Screen, Talk, talking

NOTHING = "There is no message of yours here that I could answer again."


DM = ChatRef(PLATFORM, "dm:1001")


async def queued(talk: Talk, text: str, id_: str) -> Screen:
    """Send a message that is heard and queued when this returns."""
    screen = Screen()
    await talk.app.conversation.submit(
        Incoming(DM, "1001", "name1001", id_, text, talk.clock.advance(seconds=1)), screen
    )
    return screen


async def test_the_last_message_is_answered_again_and_the_old_answer_is_gone(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on("joke", reply="an OLDJOKE", times=1)
        server.on("joke", reply="a newer one", times=1)
        await talk.say("Tell me a joke")
        assert await talk.say("/retry") == "a newer one"
        assert [row[2] for row in talk.rows() if row[1] != "command"] == ["Tell me a joke", "a newer one"]
        assert "OLDJOKE" not in talk.everything_stored()
        assert "OLDJOKE" not in server.chats[-1].prompt
        assert len(talk.rows("SELECT id FROM traces")) == 1
        assert talk.rows("SELECT * FROM waiting") == []


async def test_the_talk_goes_on_with_the_new_answer_alone(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        for reply in ("first", "OLDJOKE", "newer", "fine"):
            server.on(reply=reply, times=1)
        await talk.say("How are you?")
        await talk.say("Tell me a joke")
        await talk.say("/retry")
        await talk.say("Good one")
        told = [(m["role"], m["content"]) for m in server.chats[-1].messages[1:]]
        assert told == [
            ("user", "How are you?"),
            ("assistant", "first"),
            ("user", "Tell me a joke"),
            ("assistant", "newer"),
            ("user", "Good one"),
        ]


async def test_it_can_be_asked_for_again_and_again_and_after_a_restart(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server:
        for reply in ("one", "two", "three"):
            server.on(reply=reply, times=1)
        async with talking(data_dir, clock, server) as talk:
            assert await talk.say("Tell me a joke") == "one"
            assert await talk.say("/retry") == "two"
        async with talking(data_dir, clock, server) as talk:
            assert await talk.say("/retry", id="r2") == "three"
            assert [row[2] for row in talk.rows() if row[1] != "command"] == ["Tell me a joke", "three"]


async def test_a_command_is_never_answered_again_but_the_message_before_it(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        assert await talk.say("/retry") == NOTHING
        await talk.say("/help")
        assert await talk.say("/retry") == NOTHING
        server.on(reply="one", times=1)
        server.on(reply="two", times=1)
        await talk.say("Tell me a joke")
        await talk.say("/help")
        await talk.say("/whatdoyouknow")
        assert await talk.say("/retry") == "two"


async def test_what_was_forgotten_is_not_answered_again(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await talk.say("I am allergic to zanzibarine")
        await talk.say("/forget zanzibarine")
        await talk.say("/forget yes")
        assert await talk.say("/retry") == NOTHING
        clock.advance(minutes=20)
        await talk.app.tick()
        assert await talk.say("/retry") == NOTHING
        assert len(server.chats) == 1


async def test_what_was_off_the_record_is_not_answered_again_once_that_talk_is_over(
    data_dir: Path, clock: Clock
) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="A fine ring.")
        await talk.say("/offrecord I bought a ring for Ana")
        assert "A fine ring." in await talk.say("/retry")
        clock.advance(hours=1)
        asked = len(server.requests)
        assert "ring" not in await talk.say("/retry")
        assert len(server.requests) == asked


async def test_the_same_retry_delivered_twice_answers_once(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        for reply in ("one", "two"):
            server.on(reply=reply, times=1)
        await talk.say("Tell me a joke")
        assert await talk.say("/retry", id="twice") == "two"
        assert await talk.say("/retry", id="twice") == ""


async def test_a_retry_while_the_answer_is_on_its_way_makes_no_second_one(data_dir: Path, clock: Clock) -> None:
    door = Door()
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="one", hold=door, times=1)
        asking = asyncio.create_task(talk.say("Tell me a joke"))
        await door.reached.wait()
        retrying = await queued(talk, "/retry", "r1")
        door.set()
        assert await asking == "one"
        await retrying.finished.wait()
        told = [reply.text for reply in retrying.replies]
        assert told == ["That answer was still on its way. /retry now gives you another one."]


async def test_a_kill_before_the_new_answer_loses_neither_it_nor_the_message(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server:
        server.on(reply="one", times=1)
        door = Door()
        server.on(reply="never read", hold=door, times=1)
        async with talking(data_dir, clock, server) as talk:
            await talk.say("Tell me a joke")
            asyncio.create_task(talk.say("/retry"))  # noqa: RUF006 - it dies with the bot
            await door.reached.wait()
            await talk.app.conversation.stop(0)
            waiting = await talk.app.memory.waiting("test", since=clock.now.replace(year=2020))
            assert [(each.message.text, each.reply) for each in waiting] == [("Tell me a joke", None)]


async def test_cancelling_a_retry_leaves_the_message_unanswered_and_it_can_be_asked_again(
    data_dir: Path, clock: Clock
) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="one", times=1)
        door = Door()
        server.on(reply="never read", hold=door, times=1)
        server.on(reply="three", times=1)
        await talk.say("Tell me a joke")
        retrying = asyncio.create_task(talk.say("/retry"))
        await door.reached.wait()
        assert await talk.say("/cancel") == "Stopped."
        await retrying
        assert talk.rows("SELECT * FROM waiting") == []
        assert await talk.say("/retry") == "three"


async def test_a_model_that_fails_is_told_and_the_message_can_be_answered_again(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server, model={"retries": 0}) as talk:
        server.on("joke", reply="one", times=1)
        await talk.say("Tell me a joke")
        server.fault(status=500)
        assert "cannot reach my language model" in await talk.say("/retry")
        server.on("joke", reply="three", times=1)
        assert await talk.say("/retry") == "three"


async def test_in_a_group_only_ones_own_message_is_answered_again(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply=lambda request: f"{len(server.chats)}: {request.last_user.split()[-1]}")
        await talk.say("Tell me about pears", chat="group:-5")
        await talk.say("Tell me about plums", chat="group:-5", user="2002")
        assert await talk.say("/retry", chat="group:-5") == "3: pears"
        assert await talk.say("/retry", chat="group:-5", user="3003") == NOTHING
        assert await talk.say("/retry", user="2002") == NOTHING, "another chat"
        said = [row[2] for row in talk.rows() if row[1] != "command"]
        assert sorted(said) == ["2: plums", "3: pears", "Tell me about pears", "Tell me about plums"]


async def test_several_quick_messages_are_answered_again_as_one(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        door = Door()
        server.on(reply="zero", hold=door, times=1)
        server.on(reply="OLDJOKE", times=1)
        server.on(reply="new", times=1)
        first = asyncio.create_task(talk.say("Wait"))
        await door.reached.wait()
        quick = [await queued(talk, "Tell me a joke", "q1"), await queued(talk, "A short one", "q2")]
        door.set()
        await first
        await quick[-1].finished.wait()
        assert await talk.say("/retry") == "new"
        assert str(server.chats[-1].messages[-1]["content"]) == "Tell me a joke\n\nA short one"
        assert "OLDJOKE" not in talk.everything_stored()


async def test_what_was_learned_is_neither_lost_nor_doubled(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await talk.say("I am allergic to pollen")
        before = talk.rows("SELECT count(*) FROM profile"), talk.rows("SELECT count(*) FROM citations")
        await talk.say("/retry")
        assert await talk.texts() == ["I am allergic to pollen"]
        assert (talk.rows("SELECT count(*) FROM profile"), talk.rows("SELECT count(*) FROM citations")) == before


async def test_an_edit_after_a_retry_is_answered_once(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        for reply in ("one", "two", "three"):
            server.on(reply=reply, times=1)
        (first,) = await talk.ask("Tell me a joke", id="e1")
        await talk.say("/retry")
        changed = Incoming(DM, "1001", "name1001", "e1", "Tell me a story", clock.now)
        replies = await talk._through(Edited(changed, clock.advance(seconds=5)))
        assert [reply.text for reply in replies] == ["three"]
        said = [row[2] for row in talk.rows() if row[1] != "command"]
        assert said == ["Tell me a story", "three"]
        assert first.text == "one"


# ---- on platforms -----------------------------------------------------------------------------------------


@pytest.fixture(params=["telegram", "discord"])
async def world(request: pytest.FixtureRequest, data_dir: Path, clock: Clock) -> AsyncIterator[World]:
    async with world_on(request.param, data_dir, clock) as world:
        yield world


async def test_the_message_that_showed_the_old_answer_shows_the_new_one(world: World) -> None:
    for reply in ("An older joke.", "A newer joke.", "The newest joke."):
        world.model.on("joke", reply=reply, times=1)
    assert await world.ask("Tell me a joke") == ["An older joke."]
    assert await world.ask("/retry") == []
    assert world.visible() == ["A newer joke."]
    await world.restart()
    assert await world.ask("/retry") == []
    assert world.visible() == ["The newest joke."]


async def test_a_longer_and_a_shorter_answer_take_as_many_messages_as_they_need(world: World) -> None:
    long = "\n\n".join(f"第{n:03}句：记忆要能被证明，也要能被忘掉。" * 3 for n in range(world.stage.bearable // 60))
    for reply in ("short", long, "short again"):
        world.model.on("joke", reply=reply, times=1)
    await world.ask("Tell me a joke")
    await world.ask("/retry")
    assert len(world.visible()) > 1
    assert "short" not in "".join(world.visible())
    await world.ask("/retry")
    assert world.visible() == ["short again"]


async def test_a_kill_during_a_retry_leaves_one_answer_to_be_seen(world: World) -> None:
    door = world.model.halfway = Door()
    world.model.on("joke", reply="An older joke, told at some length.", times=1)
    world.model.halfway = None
    await world.ask("Tell me a joke")
    world.model.halfway = door
    world.model.on("joke", reply="A newer joke, told at some length.", times=1)
    await world.say("/retry")
    await door.reached.wait()
    await world.stop(killed=True)
    world.model.halfway = None
    world.model.on("joke", reply="The newest joke.", times=1)
    await world.start()
    await world.until(lambda: world.visible() == ["The newest joke."])
    await world.settled()
    assert "older joke" not in world.stored()


async def test_in_a_group_the_others_see_the_new_answer_where_the_old_one_was(world: World) -> None:
    for reply in ("An older joke.", "Plums.", "A newer joke."):
        world.model.on(reply=reply, times=1)
    await world.ask("Tell me a joke", MARA, "group")
    await world.ask("Tell me of plums", TOMAS, "group")
    await world.ask("/retry", MARA, "group")
    assert world.visible(TOMAS, "group") == ["A newer joke.", "Plums."]
