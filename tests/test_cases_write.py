"""The writing cases that need the whole path: real gate, real second look, real vectors; the model is scripted.

What smaller tests cover of the cases of kind B and C is in their names (``test_c04_...``); here is what only shows
when a statement meets what is known from other sessions, in other words, in another language.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bot.embedders import LocalEmbedder
from memory.accounts import Accounts
from memory.embedding import Embeddings
from memory.model import PRIVATE, Candidate, Entry, Message
from memory.nearness import Nearness
from memory.ports import Completion
from memory.reconcile import Gate
from memory.rules import candidates
from memory.second_look import SecondLook
from tests.conftest import Clock
from tests.shelf import Shelf, fact, profile, values

_PAIR = re.compile(r"\[(\d+)\] A \([^)]*\): (.*)\n\[\1\] B \([^)]*\): (.*)")


class Ruling:
    """Answers each pair it is shown by a function of the two sentences, and keeps what it was shown."""

    def __init__(self, rule: Callable[[str, str], str]) -> None:
        self.rule = rule
        self.shown: list[tuple[str, str]] = []

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        assert schema is not None
        assert max_tokens > 0
        pairs = _PAIR.findall(messages[-1]["content"])
        self.shown += [(a, b) for _, a, b in pairs]
        items = [{"pair": int(number), "verdict": self.rule(a, b)} for number, a, b in pairs]
        return Completion(json.dumps({"items": items}), "stop", 1)


@pytest_asyncio.fixture
async def shelf(tmp_path: Path, clock: Clock) -> AsyncIterator[Shelf]:
    opened = await Shelf.open(tmp_path / "memory.sqlite", clock)
    yield opened
    await opened.db.close()


async def session(shelf: Shelf, model: Ruling, *told: Candidate) -> list[Entry]:
    """Write what a session gave and look at it a second time; returns what is live."""
    gate = Gate(shelf.db, shelf)
    decisions = await gate.admit(shelf.owner, told, audience=PRIVATE, now=shelf.clock())
    nearness = Nearness(Embeddings(shelf.db, Accounts(shelf.db), LocalEmbedder(), shelf.clock))
    look = SecondLook(shelf.db, shelf, gate, completer=model, clock=shelf.clock, nearness=nearness)
    await look.look(shelf.owner, {d.entry.id for d in decisions if d.entry is not None})
    return await shelf.live()


def read(message: Message) -> list[Candidate]:
    return list(candidates(message.text, message_id=message.id, at=message.at))


async def test_c08_one_coffee_fact_is_left_of_three_in_two_languages_and_the_cats_stay_two(shelf: Shelf) -> None:
    def rule(a: str, b: str) -> str:
        return "same" if all("咖啡" in text or "coffee" in text for text in (a, b)) else "different"

    model = Ruling(rule)
    first = await shelf.say("我住成都，养了两只猫，一只叫煤球，一只叫年糕，平时喝黑咖啡")
    cats = [fact(first, "用户有一只猫叫煤球"), fact(first, "用户有一只猫叫年糕")]
    await session(shelf, model, profile(first, "home", "成都"), *cats, fact(first, "用户喝黑咖啡"))
    second = await shelf.say("我咖啡只喝不加奶不加糖的")
    third = await shelf.say(first.text)
    fourth = await shelf.say("btw I drink my coffee black")
    live = await session(
        shelf,
        model,
        fact(second, "用户喝咖啡不加奶不加糖"),
        profile(third, "home", "成都"),
        fact(fourth, "User drinks coffee black"),
    )
    assert sorted(values(live)) == sorted(["成都", "用户有一只猫叫煤球", "用户有一只猫叫年糕", "用户喝黑咖啡"])
    (coffee,) = (entry for entry in live if "咖啡" in entry.text)
    assert {citation.message for citation in coffee.provenance.citations} == {first.id, second.id, fourth.id}
    assert all("煤球" not in a or "年糕" not in b for a, b in model.shown)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I play the drums at night", "I sold my drum kit"),
        ("I sing in the church choir", "I left the choir after the quarrel"),
        ("我在少年宫教围棋", "少年宫的课我辞掉了"),
        ("我每天坐地铁上班", "公司搬到楼下，现在走路就到"),
    ],
)
async def test_c10_what_is_over_in_quite_other_words_is_closed_and_can_be_opened_again(
    shelf: Shelf, old: str, new: str
) -> None:
    model = Ruling(lambda _a, _b: "supersedes")
    await session(shelf, model, fact(await shelf.say(old), old))
    shelf.clock.advance(days=1)
    assert values(await session(shelf, model, fact(await shelf.say(new), new))) == [new]
    assert model.shown == [(old, new)]
    await Gate(shelf.db, shelf).undo(shelf.owner, at=shelf.clock(), now=shelf.clock.advance(days=1))
    assert old in values(await shelf.live())


async def test_c10_a_model_that_answers_wrongly_closes_nothing_that_code_knows_to_be_another_thing(
    shelf: Shelf,
) -> None:
    texts = ("我有一只猫叫煤球", "我女儿对花生过敏", "我每天跑五公里")
    model = Ruling(lambda _a, _b: "supersedes")
    told = [fact(await shelf.say(text), text) for text in texts]
    told[1] = fact(shelf.said[1], texts[1], subject="女儿")
    await session(shelf, model, *told[:1])
    await session(shelf, model, *told[1:2])
    another = await shelf.say("我有一只猫叫年糕")
    live = await session(shelf, model, fact(another, another.text), fact(another, "我的另一只猫叫年糕"))
    assert {texts[0], texts[1], another.text} <= set(values(live))
    assert all(texts[1] not in pair for pair in model.shown)


@pytest.mark.parametrize("backwards", [False, True])
async def test_c10_the_newer_word_stands_in_whatever_order_the_two_arrive(shelf: Shelf, backwards: bool) -> None:  # noqa: FBT001
    messages = [await shelf.say("I love opera"), await shelf.say("Honestly, opera bores me now, I dislike it")]
    told = [profile(messages[0], "like", "opera"), profile(messages[1], "dislike", "opera")]
    for one in reversed(told) if backwards else told:
        await Gate(shelf.db, shelf).admit(shelf.owner, [one], audience=PRIVATE, now=shelf.clock())
        assert await shelf.live()
    (live,) = await shelf.live()
    assert (live.kind, live.text) == ("profile", "我不喜欢opera")


async def test_a_fact_in_the_words_of_a_line_or_an_event_of_its_message_is_told_already(shelf: Shelf) -> None:
    message = await shelf.say("我吃素。我每周三下午上钢琴课。")
    gate = Gate(shelf.db, shelf)
    made = await gate.admit(shelf.owner, read(message), audience=PRIVATE, now=shelf.clock())
    assert {d.entry.kind for d in made if d.entry is not None} == {"profile", "event"}
    rows = len(await shelf.history())
    again = [fact(message, "用户吃素", source="summary"), fact(message, "我上钢琴课", source="summary")]
    decisions = await gate.admit(shelf.owner, again, audience=PRIVATE, now=shelf.clock())
    assert [(d.action, d.reason) for d in decisions] == [("dropped", "repeated")] * 2
    other = fact(await shelf.say("我吃素食火锅"), "我吃素食火锅")
    await gate.admit(shelf.owner, [other], audience=PRIVATE, now=shelf.clock())
    assert len(await shelf.history()) == rows + 1
