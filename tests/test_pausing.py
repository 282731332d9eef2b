"""Pauses and words off the record: they are answered, and nothing is made of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from memory import Line, off_the_record
from memory.embedding import spoken, text_hash
from tests.conftest import Clock
from tests.house import House, housed
from tests.servers.openai_server import OpenAIServer
from tests.talk import talking

ASIDE = """
Off the record: I am pregnant
off the record, I hate my boss
This is off the record: the offer was 90k
Off the record - I voted for him
Don't remember this: I skipped the meeting
please don't save this: my ex called
Do not store what follows:\\nI quit
I got fired (off the record)
不要记：我怀孕了
别记住这个：我辞职了
别记这句，我刚哭过
這個不要記：我生病了
別記住這個，我很難過
这句话不要记：我喜欢她
我今天哭了（别记）
请不要记住这个：我中奖了
别存：我的工资是一万
"""
TALK = """
I bought it off the record store
Off the record label they signed
He said off the record: no comment
what does off the record mean?
off the record
Don't forget this: buy milk
I don't remember this: when was it?
remember this: I like tea
do not remember me
不要记恨他
别记错了，明天三点
不要记在心上，没事
别记仇：没必要
记住这个：我叫小林
不用记，我写下来了
我不要记这个：太难了
别记账了，去玩吧
别记住这个
"""


@pytest.mark.parametrize("text", ASIDE.strip().splitlines())
def test_a_message_may_say_of_itself_that_it_is_off_the_record(text: str) -> None:
    assert off_the_record(text.replace("\\n", "\n"))


@pytest.mark.parametrize("text", TALK.strip().splitlines())
def test_what_only_sounds_like_it_is_ordinary_talk(text: str) -> None:
    assert not off_the_record(text)


async def test_nothing_said_in_a_pause_is_learned_and_every_answer_says_so(tmp_path: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(tmp_path, clock, server) as talk:
        server.on("My name", reply="Nice to meet you.")
        await talk.say("My name is Lin.")
        assert "nothing from what you write here" in await talk.say("/pause")
        server.on("Moonstone", reply="Noted: Moonstone Lane.")
        said = await talk.say("I live in Moonstone Lane 5 and I am allergic to pollen.")
        assert "Paused: I remember nothing of this" in said
        assert "Learning is paused" in await talk.say("/whatdoyouknow")
        assert "Learning is paused" in await talk.say("/start")
        assert await talk.texts() == ["My name is Lin"]
        assert "learn again" in await talk.say("/resume")
        server.on("dust", reply="Where do you live, then?")
        assert "Paused" not in await talk.say("I am allergic to dust.")
        assert [text for text in await talk.texts() if "dust" in text]
        assert not [text for text in await talk.texts() if "pollen" in text]


async def test_a_pause_counts_from_the_moment_it_is_heard_and_ends_where_it_is_resumed(house: House) -> None:
    memory, owner, chat = house.memory, house.owner, house.chat
    other = await memory.chat(owner, "group:1", private=False)
    topic = await memory.chat(owner, "group:1", private=False, thread="7")
    stranger = await memory.account("test", "2002", name="Bo")
    assert await memory.pauses.pause(owner, topic, now=house.clock())
    assert not await memory.pauses.pause(owner, other, now=house.clock())
    assert not (await house.hear("I like tea.")).message.fleeting
    assert (await house.hear("I like jam.", chat=other)).message.fleeting
    assert not (await house.hear("I like ham.", chat=other, owner=stranger)).message.fleeting
    assert await memory.pauses.count(owner) == 1
    assert await memory.pauses.resume(owner, other)
    assert not await memory.pauses.resume(owner, chat)
    assert not (await house.hear("I like rye.", chat=topic)).message.fleeting


async def test_a_group_that_moves_stays_paused(house: House) -> None:
    group = await house.memory.chat(house.owner, "group:1", private=False)
    await house.memory.pauses.pause(house.owner, group, now=house.clock())
    await house.hear("hello", chat=await house.memory.chat(house.owner, "group:2", private=False))
    assert await house.memory.moved("test", "group:1", "group:2")
    moved = await house.memory.chat(house.owner, "group:2", private=False)
    assert (await house.hear("I like jam.", chat=moved)).message.fleeting


async def test_another_member_s_answer_never_holds_what_was_said_in_a_pause(house: House) -> None:
    memory, owner = house.memory, house.owner
    group = await memory.chat(owner, "group:1", private=False)
    other = await memory.account("test", "2002", name="Bo")
    await memory.pauses.pause(owner, group, now=house.clock())
    await house.hear("zebrafinch", chat=group)
    await house.hear("good morning", chat=group, owner=other)
    window = await memory.window(other, group, now=house.clock())
    assert [line.text for line in window] == ["good morning"]
    assert await house.window(chat=group) == ["zebrafinch", "good morning"]


async def test_the_words_of_a_pause_end_with_their_session_and_leave_a_mark_without_words(house: House) -> None:
    memory = house.memory
    await memory.pauses.pause(house.owner, house.chat, now=house.clock())
    heard = await house.hear("zebrafinch", id_="m1", waits=True)
    await house.reply("You said zebrafinch.", heard.message)
    again = await house.hear("zebrafinch once more", id_="m2")
    assert await house.window() == ["zebrafinch", "You said zebrafinch.", "zebrafinch once more"]
    await memory.run_due(now=house.clock.advance(minutes=29))
    assert "zebrafinch" in house.everything()
    await memory.new_session(house.owner, house.chat, now=house.clock.advance(minutes=2))
    done = await memory.run_due(now=house.clock())
    assert done["fleeting"] == {"fleeting": 3}
    assert "zebrafinch" not in house.everything()
    assert text_hash(spoken("Lin", "zebrafinch")) not in [row[0] for row in house.rows("SELECT text_hash FROM journal")]
    assert house.rows("SELECT count(*) FROM traces") == [(0,)]
    redelivered = await house.hear("zebrafinch once more", id_="m2")
    assert not redelivered.new
    assert redelivered.message.id == again.message.id
    assert "zebrafinch" not in house.everything()


async def test_a_fleeting_line_that_still_waits_is_kept_for_its_answer_but_no_longer_than_a_day(house: House) -> None:
    line = Line("user", "Lin", house.clock(), "zebrafinch", fleeting=True)
    await house.memory.note(house.owner, house.chat, line, waits=True)
    await house.memory.run_due(now=house.clock.advance(hours=2))
    await house.reopen()
    (waiting,) = await house.memory.waiting("test", since=house.clock() - timedelta(days=1))
    assert waiting.message.fleeting
    assert waiting.message.text == "zebrafinch"
    await house.memory.run_due(now=house.clock.advance(hours=23))
    assert "zebrafinch" not in house.everything()
    assert await house.memory.waiting("test", since=house.clock() - timedelta(days=2)) == []


async def test_an_edit_neither_brings_a_fleeting_line_back_nor_keeps_words_that_became_fleeting(house: House) -> None:
    memory, owner, chat = house.memory, house.owner, house.chat
    line = Line("user", "Lin", house.clock(), "I like zebrafinch.", platform_id="m1", fleeting=True)
    await memory.note(owner, chat, line)
    revision = await memory.revise(
        owner, chat, "m1", replace(line, text="I like zebrafinches.", fleeting=False), now=house.clock()
    )
    assert revision is not None
    assert revision.message.fleeting
    assert await memory.learn(owner, chat, revision.message) == []
    await house.hear("I like quokka.", id_="m2")
    assert await house.known()
    aside = Line("user", "Lin", house.clock(), "Off the record: I like quokka.", platform_id="m2", fleeting=True)
    revision = await memory.revise(owner, chat, "m2", aside, now=house.clock())
    assert revision is not None
    assert revision.message.fleeting
    assert await house.known() == []
    await house.hear("I like numbat.", id_="m3")
    await memory.pauses.pause(owner, chat, now=house.clock())
    edited = replace(aside, text="I like numbats.", platform_id="m3", fleeting=False)
    revision = await memory.revise(owner, chat, "m3", edited, now=house.clock())
    assert revision is not None
    assert revision.message.fleeting
    await memory.run_due(now=house.clock.advance(minutes=40))
    for word in ("zebrafinch", "quokka", "numbat"):
        assert word not in house.everything()


async def test_forgetting_finds_what_was_said_in_a_pause_and_undo_does_not_make_it_last(house: House) -> None:
    memory, owner, chat = house.memory, house.owner, house.chat
    await memory.note(owner, chat, Line("user", "Lin", house.clock(), "I saw a zebrafinch.", fleeting=True))
    plan = await memory.plan_forgetting(owner, chat, "zebrafinch", now=house.clock())
    assert plan is not None
    assert await memory.forget(owner, plan.offer, picks=None, now=house.clock())
    assert await house.window() == []
    assert await memory.undo(owner, now=house.clock.advance(minutes=1))
    assert await house.window() == ["I saw a zebrafinch."]
    await memory.run_due(now=house.clock.advance(minutes=40))
    assert "zebrafinch" not in house.everything()


async def test_a_message_off_the_record_is_answered_and_what_repeats_it_goes_with_it(
    tmp_path: Path, clock: Clock
) -> None:
    async with OpenAIServer() as server, talking(tmp_path, clock, server) as talk:
        assert "/offrecord WORDS" in await talk.say("/offrecord")
        server.on("^I keep", reply="A zebrafinch, I see.")
        assert "Off the record" in await talk.say("/offrecord I keep a zebrafinch called Pip. I like zebrafinches.")
        assert server.chats[-1].last_user.startswith("I keep a zebrafinch")
        server.on("What did I", reply="You told me of a zebrafinch.")
        said = await talk.say("What did I just tell you?")
        assert said == "You told me of a zebrafinch."
        server.on("most", reply="Fine.")
        assert "Off the record" in await talk.say("Off the record: I like the zebrafinch most.")
        assert await talk.texts() == []
        server.on(reply="[]")
        clock.advance(minutes=40)
        await talk.app.tick()
        assert "zebrafinch" not in server.chats[-1].prompt
        assert "zebrafinch" not in talk.everything_stored()
        assert "What did I just tell you?" in talk.everything_stored()


async def test_the_offer_to_forget_a_chat_repeats_nothing_that_was_said_off_the_record(
    tmp_path: Path, clock: Clock
) -> None:
    async with OpenAIServer() as server, talking(tmp_path, clock, server) as talk:
        server.on(reply="I see.")
        await talk.say("Off the record: I keep a zebrafinch.")
        await talk.say("I saw a quokka on the way.")
        clock.advance(minutes=31)  # The talk is over; the job that erases it has not run yet.
        offer = await talk.say("/forget this chat")
        assert "quokka" in offer
        assert "zebrafinch" not in offer
        assert "2 of your messages" in offer


async def test_remember_keeps_what_is_asked_for_in_a_pause_and_says_so(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock) as talk:
        await talk.say("/pause")
        assert "this you asked for" in await talk.say("/remember my bike is in the cellar")
        assert "keep nothing of it" in await talk.say("My car is in the garage and I like it.")
        clock.advance(minutes=40)
        await talk.app.tick()
        assert await talk.texts() == ["my bike is in the cellar"]
        assert "garage" not in talk.everything_stored()


async def test_a_wish_to_be_remembered_in_a_pause_hears_what_keeps_it(tmp_path: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(tmp_path, clock, server) as talk:
        await talk.say("/pause")
        server.on("garage", reply="All right.")
        said = await talk.say("Please remember that my car is in the garage.")
        assert "I have not kept this" in said
        assert await talk.texts() == []


@pytest.fixture
async def house(tmp_path: Path, clock: Clock) -> AsyncIterator[House]:
    """A memory of one person."""
    async with housed(tmp_path / "m.db", clock) as opened:
        yield opened
