"""Sensitive matters: told by words, held until their owner agrees, and given back when consent is withdrawn."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memory.sensitive import MATTERS, matters
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import Talk, talking

FILE = Path(__file__).parent / "cases" / "sensitive.jsonl"
CASES = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]
ASK: dict[str, Any] = {"privacy": {"sensitive": "ask"}}
SKIP: dict[str, Any] = {"privacy": {"sensitive": "skip"}}
POLLEN = "I am allergic to pollen."


@pytest.mark.parametrize("matter", MATTERS)
def test_nearly_every_line_about_a_matter_is_told(matter: str) -> None:
    lines = [case["text"] for case in CASES if matter in case["matters"]]
    missed = [text for text in lines if matter not in matters(text)]
    assert len(lines) >= 9
    assert len(missed) <= len(lines) * 0.05, missed


def test_plain_talk_is_seldom_taken_for_one() -> None:
    plain = [case["text"] for case in CASES if not case["matters"]]
    taken = {text: sorted(matters(text)) for text in plain if matters(text)}
    assert len(taken) <= len(plain) * 0.1, taken


async def indexed(talk: Talk, word: str) -> bool:
    """Whether recall finds a word anywhere."""
    owner, room = await talk.owner(), await talk.room()
    found = await talk.app.memory.recall(owner, f"What about {word}?", room=room, now=talk.clock())
    return any(word in unit.text for unit in found.units)


async def test_by_default_all_is_kept_and_nobody_is_asked(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock) as talk:
        (reply,) = await talk.ask(POLLEN)
        assert reply.buttons == ()
        assert await talk.texts() == ["I am allergic to pollen"]
        assert "Sensitive matters" not in await talk.say("/privacy")


async def test_a_sensitive_line_waits_and_yes_keeps_it_and_what_comes_after(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, **ASK) as talk:
        (reply,) = await talk.ask(POLLEN)
        assert "This touches health" in reply.text
        assert [button.id for button in reply.buttons] == [f"consent:health:{c}" for c in ("yes", "no", "once")]
        (again,) = await talk.ask("I also have asthma.")
        assert (again.buttons, "Not remembered unless you agree" in again.text) == ((), True)
        assert await talk.texts() == []
        assert not await indexed(talk, "pollen")
        assert "health: I ask you first; 2 of your messages wait" in await talk.say("/privacy")
        assert "2 messages are remembered now" in await talk.press("consent:health:yes")
        assert "I am allergic to pollen" in await talk.texts()
        assert await indexed(talk, "pollen")
        (later,) = await talk.ask("I am allergic to dust.")
        assert later.buttons == ()
        assert "I am allergic to dust" in await talk.texts()
        assert "health: kept" in await talk.say("/privacy")


async def test_no_lets_it_go_and_never_asks_again(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, **ASK) as talk:
        await talk.ask(POLLEN)
        assert "keep nothing of health" in await talk.press("consent:health:no")
        (later,) = await talk.ask("I am allergic to dust.")
        assert (later.buttons, "keep nothing about such matters" in later.text) == ((), True)
        clock.advance(minutes=40)
        await talk.app.tick()
        assert await talk.texts() == []
        for word in ("pollen", "dust"):
            assert word not in talk.everything_stored()


async def test_once_keeps_this_and_asks_the_next_time(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, **ASK) as talk:
        await talk.ask(POLLEN)
        await talk.press("consent:health:once")
        assert await talk.texts() == ["I am allergic to pollen"]
        (later,) = await talk.ask("I am allergic to dust.")
        assert len(later.buttons) == 3
        assert await talk.texts() == ["I am allergic to pollen"]


async def test_what_nobody_answers_is_erased_and_the_question_is_not_repeated(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, privacy={"sensitive": "ask", "ask_days": 3.0}) as talk:
        await talk.ask(POLLEN)
        clock.advance(days=2)
        await talk.app.tick()
        assert "pollen" in talk.everything_stored()
        clock.advance(days=1, hours=1)
        await talk.app.tick()
        assert "pollen" not in talk.everything_stored()
        (later,) = await talk.ask("I am allergic to dust.")
        assert later.buttons == ()
        clock.advance(minutes=40)
        await talk.app.tick()
        assert "dust" not in talk.everything_stored()


async def test_a_line_of_two_matters_waits_for_both(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, **ASK) as talk:
        await talk.ask("I am allergic to pollen and my son is five years old.")
        await talk.press("consent:health:yes")
        assert await talk.texts() == []
        (reply,) = await talk.ask("Hello again.")
        assert reply.buttons[0].id == "consent:children:yes"
        await talk.press("consent:children:yes")
        assert "I am allergic to pollen" in await talk.texts()


async def test_in_a_group_nobody_is_asked_in_public(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, **ASK) as talk:
        replies = await talk.ask(POLLEN, chat="group:1")
        assert not any(reply.buttons or "health" in reply.text for reply in replies)
        (reply,) = await talk.ask("Hello.")
        assert "This touches health" in reply.text
        (refusal,) = await talk.ask("/privacy health no", chat="group:1")
        assert refusal.private
        await talk.press("consent:health:yes")
        owner, group = await talk.owner(), await talk.room("group:1")
        known = await talk.app.memory.known(owner, room=group, now=clock())
        assert [entry.text for entry in known] == ["I am allergic to pollen"]


async def test_nobody_answers_for_another(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, **ASK) as talk:
        await talk.ask(POLLEN)
        await talk.say("Hello.", user="2002")
        await talk.press("consent:health:yes", user="2002")
        assert await talk.texts() == []
        assert await talk.texts("2002") == []


async def test_skip_keeps_nothing_and_counts_why(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, **SKIP) as talk:
        said = await talk.say(POLLEN)
        assert "keep nothing about such matters" in said
        assert [decision.reason for decision in talk.traces[-1].learned] == ["sensitive"]
        assert "Nothing was stored" in await talk.say("/remember I am allergic to pollen")
        assert "health: nothing is kept" in await talk.say("/privacy")
        await talk.say("I live in Oslo.")
        assert await talk.texts() == ["I live in Oslo"]
        clock.advance(minutes=40)
        await talk.app.tick()
        assert "pollen" not in talk.everything_stored()


async def test_asking_for_it_in_so_many_words_is_consent(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, **ASK) as talk:
        assert "Remembered" in await talk.say("/remember I am allergic to pollen")
        assert await talk.texts() == ["I am allergic to pollen"]


async def test_consent_is_taken_back_and_what_is_known_is_offered_to_be_forgotten(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, **ASK) as talk:
        await talk.ask(POLLEN)
        await talk.press("consent:health:yes")
        await talk.say("I live in Oslo.")
        (reply,) = await talk.ask("/privacy health no")
        assert "- I am allergic to pollen" in reply.text
        assert "Oslo" not in reply.text
        hidden = await talk.press(reply.buttons[0].id)
        assert hidden.startswith("Hidden at once: 1 memory")
        assert await talk.texts() == ["I live in Oslo"]
        clock.advance(minutes=11)
        await talk.app.tick()
        assert "pollen" not in talk.everything_stored()
        assert "health: nothing is kept" in await talk.say("/privacy")


async def test_a_person_may_refuse_a_matter_where_the_operator_keeps_all(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock) as talk:
        assert "什么都不记" in await talk.say("/privacy 健康 否", language="zh-Hans")
        await talk.say("我对花粉过敏。")
        assert await talk.texts() == []
        await talk.say("/privacy health yes")
        await talk.say("我对花粉过敏。")
        assert len(await talk.texts()) == 1


async def test_the_reply_to_a_held_line_waits_with_it(tmp_path: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(tmp_path, clock, server, **ASK) as talk:
        server.on("pollen", reply="Poor you, zebrafinch.")
        server.on("hello", reply="As you said: zebrafinch.")
        await talk.say(POLLEN)
        await talk.say("hello")
        assert not await indexed(talk, "zebrafinch")
        await talk.press("consent:health:yes")
        assert await indexed(talk, "zebrafinch")


async def test_a_distilled_memory_waits_with_the_line_it_came_from(tmp_path: Path, clock: Clock) -> None:
    # No word of the line is on the list; what the model makes of it is.
    line = "Since Monday I carry two of the orange pens everywhere."
    item = {
        "kind": "profile",
        "subject": "self",
        "attribute": "health",
        "value": "two of the orange pens",
        "text": "",
        "confidence": 0.9,
        "importance": 0.9,
        "forgettable": False,
        "messages": [1],
    }
    async with OpenAIServer() as server, talking(tmp_path, clock, server, **ASK) as talk:
        server.on("orange pens", reply=json.dumps({"items": [item]}), when_prompt_contains="orange pens")
        server.on(reply="ok")
        assert not matters(line)
        await talk.say(line)
        clock.advance(minutes=40)
        counts = Counter((await talk.app.memory.run_due(now=clock()))["distil"])
        assert counts["dropped_held"] == 1, counts
        assert await talk.texts() == []
        assert not await indexed(talk, "orange")
        (reply,) = await talk.ask("Hello.")
        assert "This touches health" in reply.text
        await talk.press("consent:health:yes")
        clock.advance(minutes=40)
        await talk.app.memory.run_due(now=clock())
        assert len(await talk.texts()) == 1
