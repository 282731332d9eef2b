"""/why: which memories an answer used and what spoke for each, in plain words; the whole of it for admins alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.message import Quote
from config.settings import AccessSettings, EmbedderSettings
from memory.reasons import shared_words
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import Talk, talking

ADMIN = AccessSettings(admins=("test:1001",), open="everybody")


async def asked_about_color(talk: Talk) -> None:
    await talk.say("My favourite color is blue")
    await talk.say("I am allergic to pollen")
    await talk.say("/new")
    await talk.say("What is my favourite color?")


async def test_each_memory_tells_its_day_and_why_it_was_there_without_a_figure(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="Blue.")
        await asked_about_color(talk)
        (why,) = await talk.ask("/why")
        assert why.private
        assert "My favourite color is blue (2026-03-02)\n   because “favourite, color” stands in it" in why.text
        assert "I am allergic to pollen (2026-03-02)\n   because it is always read" in why.text
        assert not re.search(r"\d\.\d", why.text)
        assert [button.label for button in why.buttons] == ["Forget 1", "Forget 2"]


async def test_in_chinese_the_words_are_runs_of_characters(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="蓝色。")
        await talk.say("我最喜欢的颜色是蓝色")
        await talk.say("/new")
        await talk.say("我最喜欢的颜色是什么？")
        assert "因为里面有“我最喜欢的颜色是”" in await talk.say("/why")


@pytest.mark.parametrize(
    ("question", "text", "words"),
    [
        ("Where are my boats?", "My boat is in the harbour", ("boat",)),
        ("我的自行车在哪", "自行车放在地下室", ("自行车",)),
        ("腳踏車在哪", "我的脚踏车是红的", ("脚踏车",)),
        ("Is the iPhone 手机 mine?", "我的 iPhone 手机坏了", ("iPhone", "手机")),
        ("the of and", "the of and", ()),
        ("", "anything", ()),
        ("?!", "我", ()),
    ],
)
def test_shared_words_are_told_as_the_memory_has_them(question: str, text: str, words: tuple[str, ...]) -> None:
    assert shared_words(question, text) == words


async def test_a_time_and_everything_are_reasons_too(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await talk.say("/remember I have a dentist appointment on 20 March at 15:00")
        await talk.say("What will I do on 20 March?")
        assert "of the time you asked about" in await talk.say("/why")
        await talk.say("What do you know about me?")
        assert "because you asked for everything" in await talk.say("/why")


async def test_the_meaning_is_a_reason_where_no_word_is_shared(data_dir: Path, clock: Clock) -> None:
    async with (
        OpenAIServer() as server,
        talking(data_dir, clock, server, embedder=EmbedderSettings(kind="local")) as talk,
    ):
        server.on(reply="ok")
        await talk.say("/remember 我养了一只猫，叫年糕")
        owner = await talk.owner()
        await talk.app.memory.embed(owner)
        await talk.say("/new")
        await talk.say("Does my cat have a name?")
        assert "因为意思和你问的相近" in await talk.say("/why") or "its meaning is close" in await talk.say("/why")


async def test_what_was_left_out_is_counted_by_its_reason(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        for n in range(6):
            await talk.say(f"/remember my box number {n} holds {n * 7919} screws")
        await asked_about_color(talk)
        assert re.search(r"Looked at and left out: \d+ had nothing to do with it", await talk.say("/why"))


async def test_a_memory_that_is_forgotten_since_is_only_counted(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await asked_about_color(talk)
        talk.alter("UPDATE profile SET hidden_by = 1 WHERE text LIKE '%pollen%'")
        why = await talk.say("/why")
        assert "pollen" not in why
        assert "1 more was forgotten since, or may not be shown here." in why


async def test_why_to_a_message_explains_the_answer_it_shows(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await asked_about_color(talk)
        await posted(talk, "b1")
        await talk.say("/new")
        await talk.say("How tall is the Eiffel tower?")
        await posted(talk, "b2")
        assert "blue" in await talk.say("/why", reply_to=Quote("Blue.", message_id="b1"))
        assert "for that answer" in (await talk.say("/why", reply_to=Quote("Blue.", message_id="b1"))).casefold()
        later = await talk.say("/why", reply_to=Quote("No.", message_id="b2"))
        assert "blue" not in later.partition("Looked at")[0]
        unknown = await talk.say("/why", reply_to=Quote("?", message_id="b3"))
        assert unknown.startswith("I have no record of an answer to you in that message")


async def posted(talk: Talk, message_id: str) -> None:
    """Have the last answer be shown in a message of the platform."""
    ((answers, reply),) = talk.rows("SELECT answers, id FROM journal WHERE role = 'bot' ORDER BY id DESC LIMIT 1")
    assert reply
    await talk.app.memory.shown(await talk.owner(), answers, message_id)


async def test_why_to_an_answer_that_somebody_else_was_given_explains_nothing(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="Blue.")
        await talk.say("My favourite color is blue", chat="group:-500")
        await talk.say("What is my favourite color?", chat="group:-500")
        await posted(talk, "b1")
        (own,) = await talk.ask("/why", chat="group:-500", reply_to=Quote("Blue.", message_id="b1"))
        assert "blue" in own.text
        (other,) = await talk.ask("/why", user="1002", chat="group:-500", reply_to=Quote("Blue.", message_id="b1"))
        assert "blue" not in other.text
        assert other.text.startswith("I have no record of an answer to you in that message")
        (elsewhere,) = await talk.ask("/why", reply_to=Quote("Blue.", message_id="b1"))
        assert "blue" not in elsewhere.text


async def test_in_a_group_no_quote_is_told_and_nothing_private(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server, access=ADMIN) as talk:
        server.on(reply="Blue.")
        await talk.say("I am allergic to pollen")
        await talk.say("My favourite color is blue", chat="group:-500")
        await talk.say("What is my favourite color?", chat="group:-500")
        for command in ("/why", "/why full"):
            (why,) = await talk.ask(command, chat="group:-500")
            assert why.private
            assert "blue" in why.text
            assert "pollen" not in why.text
            assert "you said:" not in why.text


async def test_the_numbers_of_why_are_those_that_can_be_typed(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="Blue.")
        await asked_about_color(talk)
        why = await talk.say("/why")
        (number,) = re.findall(r"(\d)\. My favourite colour is blue", why)
        owner, room = await talk.owner(), await talk.room()
        entry = await talk.app.memory.lists.numbered(owner, room, int(number), now=clock())
        assert entry is not None
        assert entry.text == "My favourite colour is blue"


@pytest.mark.parametrize("words", ["full", "全部"])
async def test_the_whole_trace_is_for_admins_alone(data_dir: Path, clock: Clock, words: str) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server, access=ADMIN) as talk:
        server.on(reply="Blue.")
        await asked_about_color(talk)
        await talk.say("What is my favourite color?", user="1002")
        whole = await talk.say(f"/why {words}")
        assert whole.startswith("Trace of the answer ")
        for part in ("level ", "window: ", "tokens: in ", "milliseconds: ", "arm ", "Recalled: ", "Left out: "):
            assert part in whole
        assert "My favourite colour is blue: written 2026-03-02 12:01, said 1 times" in whole
        refused = await talk.say(f"/why {words}", user="1002")
        assert refused.startswith("The whole trace is for the people who run this bot")
        assert "blue" not in refused


async def test_the_whole_trace_tells_what_became_of_the_memories(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server, access=ADMIN) as talk:
        server.on(reply="ok")
        await talk.say("I live in Oslo")
        await talk.say("/new")
        await talk.say("Where do I live?")
        await posted(talk, "b1")
        await talk.say("I live in Rome")
        await talk.say("/new")
        await talk.say("Where do I live?")
        now = await talk.say("/why full")
        assert re.search(r"took the place of \d+ I live in Oslo \(superseded, 2026-03-02", now)
        then = await talk.say("/why full", reply_to=Quote("ok", message_id="b1"))
        assert re.search(
            r"I live in Oslo: .*closed 2026-03-02 13:0\d \(superseded\), in its place \d+ I live in Rome", then
        )
        talk.alter("UPDATE profile SET expires_at = ? WHERE text LIKE '%Rome%'", str(int(clock.now.timestamp() * 1e6)))
        clock.advance(hours=2)
        await talk.app.tick()
        assert re.search(r"I live in Rome: .*closed 2026-03-02 1[23]:\d\d \(expired\)", await talk.say("/why full"))


async def test_without_an_answer_there_is_nothing_to_explain(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock, access=ADMIN) as talk:
        assert await talk.say("/why") == "My last answer used no memory."
        assert await talk.say("/why full") == "My last answer used no memory."
        assert (await talk.say("/why", reply_to=Quote("x", message_id="no such"))).startswith("I have no record")


@pytest.mark.parametrize("name", ["1001", "telegram:", "telegram: 1001", ":1001", "tele gram:1"])
def test_an_admin_is_a_platform_and_a_number(name: str) -> None:
    with pytest.raises(ValueError, match="must be a platform and the number"):
        AccessSettings(admins=[name])  # type: ignore[arg-type]
    assert AccessSettings(admins=["telegram:1001"]).admins == ("telegram:1001",)  # type: ignore[arg-type]


async def test_the_button_of_a_memory_offers_to_forget_that_one_and_no_other(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="Blue.")
        await asked_about_color(talk)
        (why,) = await talk.ask("/why")
        (place,) = [n for n in (1, 2) if f"{n}. My favourite colour" in why.text]
        chosen = why.buttons[place - 1].id
        assert (await talk.press(chosen, user="1002")).startswith("That choice is no longer open")
        await talk.say("/remember my kite is green")
        offer = await talk.press(chosen)
        assert "1. My favourite colour is blue" in offer
        assert "pollen" not in offer
        assert len(await talk.known()) == 3
        await talk.say("/forget yes")
        assert sorted(await talk.texts()) == ["I am allergic to pollen", "my kite is green"]
        assert (await talk.press(chosen)).startswith("What had that number is forgotten already")
