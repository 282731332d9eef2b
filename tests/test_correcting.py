"""Putting memory right: "that is wrong", a doubt that is asked about once, and a replacement that is taken back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.message import Quote, Reply
from memory.rules import disputes
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import Door, Talk, talking
from tests.test_why import posted

# ---- "that is wrong" ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("that is wrong", "answer"),
        ("No, that's not true!", "answer"),
        ("That’s wrong.", "answer"),
        ("wrong", "answer"),
        ("不对", "answer"),
        ("不对啊。", "answer"),
        ("你说错了", "answer"),
        ("這不對", "answer"),
        ("不是这样的", "answer"),
        ("you remember that wrong", "memory"),
        ("your memory is wrong", "memory"),
        ("记错了", "memory"),
        ("你记错了吧", "memory"),
        ("你记得不对", "memory"),
        ("that's wrong, the capital is Rome", None),
        ("What is wrong with that?", None),
        ("is that wrong?", None),
        ("不对，首都是罗马", None),
        ("不对称加密是什么", None),
        ("我记错了日期", None),
        ("我错了", None),
        ("I was wrong", None),
        ("wrong number", None),
        ("nothing is wrong", None),
        ("no", None),
        ("不", None),
        ("错了" * 400, None),
        ("", None),
    ],
)
def test_only_a_message_that_says_nothing_else_calls_something_wrong(text: str, what: str | None) -> None:
    assert disputes(text) == what


async def recalled(talk: Talk, server: OpenAIServer, *, reply: str = "You live in Oslo.") -> None:
    server.on("Where do I live", reply=reply)
    server.on(reply="ok")
    await talk.say("I live in Oslo")
    await talk.say("/new")
    await talk.say("Where do I live?")


@pytest.mark.parametrize("said", ["that is wrong", "不对", "you remember that wrong"])
async def test_wrong_after_an_answer_from_memory_shows_the_memory_and_deletes_nothing(
    data_dir: Path, clock: Clock, said: str
) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        await recalled(talk, server)
        asked = len(server.chats)
        (reply,) = await talk.ask(said)
        assert "1." in reply.text
        assert "Oslo" in reply.text
        assert "/remember" in reply.text
        assert len(server.chats) == asked
        assert await talk.texts() == ["I live in Oslo"]
        assert said not in talk.everything_stored()
        offer = await talk.press(reply.buttons[0].id)
        assert "Oslo" in offer
        await talk.say("/forget yes")
        assert await talk.texts() == []


async def test_wrong_after_an_answer_that_says_no_memory_is_talk(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        await recalled(talk, server, reply="The weather is fine.")
        assert await talk.say("that is wrong") == "ok"
        assert server.chats[-1].last_user.endswith("that is wrong")
        await talk.say("/new")
        await talk.say("What is the capital of Italy?")
        assert await talk.say("That's wrong, the capital is Rome") == "ok"
        assert await talk.say("不对") == "ok"


async def test_who_speaks_of_remembering_means_all_that_was_recalled(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        await recalled(talk, server, reply="I would rather not say.")
        assert "Oslo" in await talk.say("记错了")


async def test_wrong_long_after_an_answer_is_talk(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        await recalled(talk, server)
        await posted(talk, "b1")
        clock.advance(hours=2)
        assert await talk.say("that is wrong") == "ok"
        pointed = await talk.say("that is wrong", reply_to=Quote("You live in Oslo.", message_id="b1"))
        assert "Oslo" in pointed


async def test_wrong_as_a_reply_to_what_is_no_answer_of_ours_is_talk(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        await recalled(talk, server)
        assert await talk.say("that is wrong", reply_to=Quote("Rome!", message_id="m77")) == "ok"


async def test_wrong_in_a_group_means_only_what_was_answered_there_to_that_person(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        await recalled(talk, server)
        assert await talk.say("that is wrong", chat="group:-500") == "ok"
        assert await talk.say("that is wrong", user="1002") == "ok"
        await talk.say("I live in Rome", chat="group:-500")
        server.on("Where do I live", reply="You live in Rome.")
        await talk.say("Where do I live?", chat="group:-500")
        (reply,) = await talk.ask("that is wrong", chat="group:-500")
        assert reply.private or reply.text == "ok"
        assert "Oslo" not in reply.text


async def test_wrong_without_a_model_means_what_was_listed(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I live in Oslo")
        await talk.say("Where do I live?")
        assert "Oslo" in await talk.say("that is wrong")


@pytest.mark.parametrize("wrong", ["that is wrong", "那不对"])
async def test_wrong_after_a_receipt_without_a_model_means_what_was_noted(
    data_dir: Path, clock: Clock, wrong: str
) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to pollen")
        assert "Noted: I live in Oslo" in await talk.say("I live in Oslo")
        (reply,) = await talk.ask(wrong)
        assert "Oslo" in reply.text
        assert "pollen" not in reply.text
        assert len(reply.buttons) == 1
        assert "Oslo" in await talk.say("/whatdoyouknow"), "nothing goes by saying so"


async def test_wrong_after_talk_of_which_nothing_was_noted_is_talk(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I live in Oslo")
        await talk.say("Good evening to you")
        assert "Oslo" not in await talk.say("that is wrong")


async def test_wrong_after_the_list_keeps_its_numbers(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        for thing in ("bike", "boat", "kite"):
            await talk.say(f"/remember my {thing} is red")
        await talk.say("/whatdoyouknow")
        talk.alter("UPDATE facts SET hidden_by = 1 WHERE text LIKE '%bike%'")
        (reply,) = await talk.ask("不对")
        assert [button.label for button in reply.buttons] in (["Forget 2", "Forget 3"], ["忘掉 2", "忘掉 3"])
        await talk.say("How are you today, my friend?")
        assert await talk.say("that is wrong") == "ok"


async def test_the_button_under_a_page_means_that_page(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        for number in range(20):
            await talk.say(f"/remember my box {number} holds {number * 7919} <screws>")
        (first,) = await talk.ask("/whatdoyouknow")
        turn = next(button.id for button in first.buttons if button.label == "›")
        second = (await pressed(talk, turn))[0]
        wrong = second.buttons[-1]
        assert wrong.label == "Something is wrong"
        assert (await talk.press(wrong.id, user="1002")).startswith("That choice is no longer open")
        (answer,) = await pressed(talk, wrong.id)
        assert "Nothing was changed" in answer.text
        assert answer.buttons[-1].label == "Forget 20"
        assert len(await talk.known()) == 20


async def pressed(talk: Talk, button: str) -> list[Reply]:
    await talk.press(button)
    return talk.screens[-1].replies


# ---- doubts ------------------------------------------------------------------------------------------------


async def in_doubt(talk: Talk) -> None:
    """Berlin for sure, then Lyon perhaps."""
    await talk.say("/remember I live in Berlin")
    talk.clock.advance(days=30)
    await talk.say("/remember I live in Lyon")
    talk.alter("UPDATE profile SET retired_at = NULL, successor = NULL, reason = NULL WHERE value = 'Berlin'")
    talk.alter(
        "UPDATE profile SET confidence = 0.3, doubts = (SELECT id FROM profile WHERE value = 'Berlin')"
        " WHERE value = 'Lyon'"
    )
    await talk.say("/timezone UTC")


async def homes(talk: Talk) -> list[tuple[str, bool]]:
    return [(entry.text.rpartition(" ")[2], entry.provenance.unsure) for entry in await talk.known()]


async def test_a_doubt_is_asked_about_once_behind_an_answer(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await in_doubt(talk)
        (first,) = await talk.ask("How are you today, my friend?")
        assert first.text.startswith(
            "ok\n\n(On 2026-03-02 I noted: I live in Berlin. Since 2026-04-01 it may be: I live"
        )
        assert [button.label for button in first.buttons] == ["The new one", "Both", "Still the old one"]
        (second,) = await talk.ask("And how is the weather?")
        assert (second.text, second.buttons) == ("ok", ())
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        assert await talk.say("And tomorrow?", id="later") == "ok"
        assert "Berlin" not in "".join(text for role, _, text in talk.rows() if role == "bot")


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        ("new", [("Lyon", False)]),
        ("both", [("Berlin", False), ("Lyon", False)]),
        ("old", [("Berlin", False)]),
    ],
)
async def test_each_answer_to_a_doubt_does_what_it_says_and_can_be_taken_back(
    data_dir: Path, clock: Clock, choice: str, left: list[tuple[str, bool]]
) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await in_doubt(talk)
        (asked,) = await talk.ask("How are you today, my friend?")
        chosen = next(button.id for button in asked.buttons if button.id.endswith(choice))
        assert (await talk.press(chosen, user="1002")).startswith("That choice is no longer open")
        before = await homes(talk)
        assert before == [("Berlin", False), ("Lyon", True)]
        (done,) = await pressed(talk, chosen)
        assert done.text.startswith("Noted")
        assert await homes(talk) == left
        assert (await talk.press(chosen)).startswith("That choice is no longer open")
        confidence = talk.rows("SELECT confidence FROM profile ORDER BY id")
        assert (await talk.press(done.buttons[0].id, user="1002")).startswith("That choice is no longer open")
        assert (await talk.press(done.buttons[0].id)).startswith("Taken back")
        assert await homes(talk) == before
        assert talk.rows("SELECT confidence FROM profile ORDER BY id") == [(1.0,), (0.3,)]
        assert confidence[0] == (1.0,)
        assert (await talk.press(done.buttons[0].id)).startswith("That choice is no longer open")
        assert await talk.say("How are you now, my friend?") == "ok"


async def test_a_doubt_that_was_settled_by_words_meanwhile_takes_no_answer(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await in_doubt(talk)
        (asked,) = await talk.ask("How are you today, my friend?")
        await talk.say("/remember I live in Porto")
        for button in asked.buttons:
            assert (await talk.press(button.id)).startswith("That choice is no longer open")
        assert await homes(talk) == [("Porto", False)]


async def test_an_undo_that_comes_after_a_newer_word_changes_nothing(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await in_doubt(talk)
        (asked,) = await talk.ask("How are you today, my friend?")
        (done,) = await pressed(talk, asked.buttons[0].id)
        await talk.say("/remember I live in Porto")
        assert (await talk.press(done.buttons[0].id)).startswith("That choice is no longer open")
        assert await homes(talk) == [("Porto", False)]


async def test_nobody_is_asked_in_a_group_or_off_the_record(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await in_doubt(talk)
        (grouped,) = await talk.ask("How are you today, my friend?", chat="group:-500")
        assert (grouped.text, grouped.buttons) == ("ok", ())
        assert "Berlin" not in await talk.say("off the record: how are you?")
        assert "Berlin" in await talk.say("How are you today, my friend?")


async def test_never_two_questions_behind_one_answer(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await in_doubt(talk)
        await talk.say("/timezone auto")
        talk.alter("UPDATE profile SET zone = NULL")
        first = await talk.say("I have a dentist appointment on 20 May at 15:00")
        assert ("time zone" in first) != ("Berlin" in first)
        second = await talk.say("How are you today, my friend?")
        assert ("Berlin" in second) != ("Berlin" in first)


async def test_an_answer_that_failed_carries_no_question_and_the_next_one_does(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server, model={"retries": 0}) as talk:
        server.fault(match="/chat/completions", status=400, body={"error": {"message": "no"}})
        server.on(reply="ok")
        await in_doubt(talk)
        assert "Berlin" not in await talk.say("How are you today, my friend?")
        assert talk.rows("SELECT count(*) FROM profile WHERE asked_at IS NOT NULL") == [(0,)]
        assert "Berlin" in await talk.say("How are you today, my friend?")


async def test_two_answers_at_once_ask_once(data_dir: Path, clock: Clock) -> None:
    door = Door()
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on("weather", reply="fine", hold=door, times=1)
        server.on(reply="ok")
        await in_doubt(talk)
        slow = asyncio.create_task(talk.say("How is the weather?", thread="one"))
        await door.reached.wait()
        quick = await talk.say("How are you today, my friend?", thread="two")
        door.set()
        assert ("Berlin" in quick) + ("Berlin" in await slow) == 1


async def test_an_old_memory_that_is_forgotten_does_not_bring_the_denied_one_back(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await in_doubt(talk)
        (asked,) = await talk.ask("How are you today, my friend?")
        await talk.press(asked.buttons[2].id)
        await talk.say("/forget Berlin")
        await talk.say("/forget yes")
        clock.advance(minutes=11)
        await talk.app.tick()
        assert await homes(talk) == []


# ---- /remember ---------------------------------------------------------------------------------------------


async def test_a_replacement_is_taken_back_by_its_button_once(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember I live in Oslo")
        await talk.say("/remember I live in Rome")
        (moved,) = await talk.ask("/remember I live in Porto")
        (button,) = moved.buttons
        assert button.label == "Undo that"
        assert (await talk.press(button.id, user="1002")).startswith("That choice is no longer open")
        assert (await talk.press(button.id)).startswith("Back again: I live in Rome.")
        assert await talk.texts() == ["I live in Rome"]
        assert (await talk.press(button.id)).startswith("That choice is no longer open")
        assert await talk.texts() == ["I live in Rome"]


async def test_a_replacement_that_something_newer_replaced_stays(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember I live in Oslo")
        (moved,) = await talk.ask("/remember I live in Rome")
        await talk.say("/remember I live in Porto")
        assert (await talk.press(moved.buttons[0].id)).startswith("That choice is no longer open")
        assert await talk.texts() == ["I live in Porto"]


async def test_the_undo_of_one_replacement_leaves_others_of_its_moment_alone(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember I live in Oslo")
        await talk.say("/remember my favourite color is red")
        (moved,) = await talk.ask("/remember I live in Rome")
        await talk.say("/remember my favourite color is blue")
        talk.alter("UPDATE profile SET retired_at = (SELECT max(retired_at) FROM profile) WHERE retired_at IS NOT NULL")
        talk.alter(
            "UPDATE profile SET created_at = (SELECT max(retired_at) FROM profile) WHERE value IN ('Rome', 'blue')"
        )
        assert (await talk.press(moved.buttons[0].id)).startswith("Back again: I live in Oslo.")
        assert sorted(await talk.texts()) == ["I live in Oslo", "My favourite colour is blue"]


async def test_the_receipt_of_an_event_has_its_day_and_that_of_an_end_says_so(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        receipt = await talk.say("/remember I have a dentist appointment on 20 March at 15:00")
        assert receipt.startswith("Remembered: ")
        assert receipt.endswith("[2026-03-20 15:00]")
        assert "[2026-03-20 15:00]" in await talk.say("/remember 3月20日下午三点我要看牙医")
        await talk.say("/language en")
        await talk.say("/remember I live in Oslo")
        (over,) = await talk.ask("/remember I no longer live in Oslo")
        assert over.text == "Noted, this holds no longer: I live in Oslo"
        assert over.buttons == ()
