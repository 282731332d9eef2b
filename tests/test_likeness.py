"""Near duplicates that only meaning can decide: which pairs, one question, and both kept whenever it fails."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from memory.batches import MAX_RETIREMENTS
from memory.likeness import Pair, open_rulings, query, roles, rulings, undecided
from memory.model import PRIVATE, Candidate, Entry, Span
from memory.ports import CompleterUnavailable, Completion
from memory.reconcile import Gate
from memory.second_look import SecondLook
from tests.conftest import Clock
from tests.shelf import Shelf, cite, fact, values

BLACK, NO_MILK = "我平时喝黑咖啡", "我喝黑咖啡，平时都这样喝"


class Scripted:
    """Gives the queued answers; an empty queue fails the test."""

    def __init__(self, *answers: str | Exception, cut: bool = False) -> None:
        self.answers = deque(answers)
        self.asked: list[str] = []
        self.cut = cut

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        assert schema is not None
        assert max_tokens > 0
        self.asked.append(messages[-1]["content"])
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, "length" if self.cut else "stop", 7)


@pytest_asyncio.fixture
async def shelf(tmp_path: Path, clock: Clock) -> AsyncIterator[Shelf]:
    opened = await Shelf.open(tmp_path / "memory.sqlite", clock)
    yield opened
    await opened.db.close()


async def noted(shelf: Shelf, *texts: str, **changes: object) -> list[Entry]:
    gate = Gate(shelf.db, shelf)
    made = []
    for text in texts:
        candidate = fact(await shelf.say(text), text, **changes)
        (decision,) = await gate.admit(shelf.owner, [candidate], audience=PRIVATE, now=shelf.clock())
        assert decision.entry is not None, decision
        made.append(decision.entry)
    return made


def looking(shelf: Shelf, *answers: str | Exception, cut: bool = False) -> tuple[SecondLook, Scripted]:
    model = Scripted(*answers, cut=cut)
    return SecondLook(shelf.db, shelf, Gate(shelf.db, shelf), completer=model, clock=shelf.clock), model


def ruling(verdict: str, pair: int = 1) -> str:
    return json.dumps({"items": [{"pair": pair, "verdict": verdict}]})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("我有一只猫叫煤球", "我有一只猫叫年糕"),
        ("I run 5 km every morning", "I run 10 km every morning"),
        ("我喜欢在家喝咖啡", "我不喜欢在家喝咖啡"),
        ("I work with Anna in a bakery", "I work with Mara in a bakery"),
        ("我养了一只乌龟", "我在学弹钢琴"),
        ("我有一只猫叫煤球", "我的另一只猫叫年糕"),
    ],
)
async def test_what_code_can_tell_apart_is_no_question(shelf: Shelf, one: str, other: str) -> None:
    first, second = await noted(shelf, one, other)
    assert undecided([second], [first, second]) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I love cooking at home", "I hate cooking at home"),
        ("I swim in the lake every day", "I don't swim in the lake any more, my ear hurts"),
        ("我周末在湖里游泳", "我耳朵发炎，周末不去湖里游泳了"),
        ("I ride my bike 12 km to work", "My bike to work was stolen 2 days ago"),
    ],
)
async def test_a_difference_that_forbids_the_same_does_not_forbid_that_one_is_over(
    shelf: Shelf, one: str, other: str
) -> None:
    first, second = await noted(shelf, one, other)
    assert undecided([second], [first, second]) == [Pair(first, second)]
    assert open_rulings(first, second) == {"supersedes"}
    assert roles(first, second, "same") is None
    assert roles(first, second, "supersedes") == (second, first)


async def test_what_happened_is_never_over_because_of_something_later(shelf: Shelf) -> None:
    message = await shelf.say("昨天我和小雅去了动物园")
    day = Span(shelf.clock() - timedelta(days=1), shelf.clock() - timedelta(hours=12), "day", "UTC")
    happened = Candidate("event", cite(message), "zh", text="我和小雅去了动物园", span=day)
    (decision,) = await Gate(shelf.db, shelf).admit(shelf.owner, [happened], audience=PRIVATE, now=shelf.clock())
    assert decision.entry is not None
    (new,) = await noted(shelf, "我和小雅不去动物园了")
    assert "supersedes" not in open_rulings(decision.entry, new)
    weekly = replace(decision.entry, span=replace(day, rrule="FREQ=WEEKLY"))  # type: ignore[arg-type]
    assert "supersedes" in open_rulings(weekly, new)


@pytest.mark.parametrize("new", ["I also swim in the cold sea", "我还有一个湖里的游泳课"])
async def test_what_comes_on_top_takes_nothings_place(shelf: Shelf, new: str) -> None:
    old, later = await noted(shelf, "I swim in the cold lake" if new.isascii() else "我有湖里的游泳课", new)
    assert "supersedes" not in open_rulings(old, later)


async def test_what_was_so_long_ago_ends_nothing_but_what_used_to_be_does(shelf: Shelf) -> None:
    now, then, ended = await noted(
        shelf, "I paint with oil", "When I was at school I painted with chalk", "I used to paint"
    )
    assert "supersedes" not in open_rulings(now, then)
    assert "supersedes" in open_rulings(now, ended)
    (horse, pony) = await noted(shelf, "我骑一匹白马", "小时候我骑小马")
    assert "supersedes" not in open_rulings(horse, pony)


async def test_one_who_is_named_connects_two_subjects_but_makes_them_no_doubles(shelf: Shelf) -> None:
    (line,) = await admitted(shelf, "女朋友叫小雅", kind="profile", attribute="name", value="小雅", subject="女朋友")
    (over,) = await noted(shelf, "我和小雅分手了")
    (other,) = await noted(shelf, "我和小李分手了")
    assert open_rulings(line, over) == {"supersedes"}
    assert open_rulings(line, other) == frozenset()


async def admitted(shelf: Shelf, words: str, **filled: Any) -> list[Entry]:
    candidate = Candidate(filled.pop("kind"), cite(await shelf.say(words)), "zh", **filled)
    (decision,) = await Gate(shelf.db, shelf).admit(shelf.owner, [candidate], audience=PRIVATE, now=shelf.clock())
    assert decision.entry is not None, decision
    return [decision.entry]


async def test_a_pair_near_in_meaning_is_asked_about_without_a_common_word(shelf: Shelf) -> None:
    old, new = await noted(shelf, "My diet has no animal products", "Cheese is back on my table")
    assert undecided([new], [old, new]) == []
    assert undecided([new], [old, new], near={frozenset({old.id, new.id}): 1.2}) == [Pair(old, new)]


async def test_a_line_of_the_profile_overtaken_by_a_sentence_is_undone_and_comes_back_with_the_words(
    shelf: Shelf,
) -> None:
    (line,) = await admitted(shelf, "我吃素", kind="profile", attribute="diet", value="吃素")
    (new,) = await noted(shelf, "我从春天开始又吃牛排了")
    gate = Gate(shelf.db, shelf)
    at = shelf.clock.advance(days=1)
    (decision,) = await gate.settle(shelf.owner, [(Pair(line, new), "supersedes")], now=at)
    assert (decision.closed, values(await shelf.live())) == ((line.id,), ["我从春天开始又吃牛排了"])
    (closed,) = await shelf.profile.closed_by(shelf.owner, [new.id], [])
    assert (closed.id, closed.provenance.reason) == (line.id, "overtaken")
    await gate.undo(shelf.owner, at=at, now=shelf.clock.advance(days=1))
    assert sorted(values(await shelf.live())) == sorted(["吃素", "我从春天开始又吃牛排了"])


async def test_the_structured_one_of_two_doubles_stays_with_the_words_of_both(shelf: Shelf) -> None:
    (said,) = await noted(shelf, "我的女朋友，她叫小雅")
    (line,) = await admitted(shelf, "我女朋友叫小雅", kind="profile", attribute="name", value="小雅", subject="女朋友")
    told = replace(said, subject="女朋友")
    assert roles(told, line, "same") == (line, told)


async def test_other_subjects_and_two_facts_of_one_message_are_no_question(shelf: Shelf) -> None:
    (mine,) = await noted(shelf, BLACK)
    (hers,) = await noted(shelf, NO_MILK, subject="女儿")
    assert undecided([hers], [mine]) == []
    message = await shelf.say("我平时喝黑咖啡，平时都这样喝")
    gate = Gate(shelf.db, shelf)
    both = [fact(message, "我平时都这样喝咖啡"), fact(message, "我平时喝黑的咖啡呀")]
    made = await gate.admit(shelf.owner, both, audience=PRIVATE, now=shelf.clock())
    new = [decision.entry for decision in made if decision.entry is not None]
    assert len(new) == 2
    assert undecided(new, new) == []


async def test_the_question_numbers_each_pair_by_the_time_of_saying_and_offers_three_verdicts(shelf: Shelf) -> None:
    old, new = await noted(shelf, BLACK, NO_MILK)
    (pair,) = undecided([new], [old, new])
    assert pair == Pair(old, new)
    for language in ("zh", "en"):
        asked = query(shelf.owner, [pair], language)
        system, user = (message["content"] for message in asked.messages)
        assert [line.split("):")[0].split(" (")[0] for line in user.splitlines()] == ["[1] A", "[1] B"]
        assert user.index(old.text) < user.index(new.text)
        assert all(f'"{verdict}"' in system for verdict in ("same", "different", "supersedes"))
        assert asked.schema["properties"]["items"]["items"]["properties"]["pair"]["enum"] == [1]
    with pytest.raises(ValueError, match="nothing"):
        query(shelf.owner, [], "en")


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(("pair", "verdict", "x")),
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())),
        )
    )
)
def test_whatever_a_model_answers_each_pair_has_one_ruling(items: list[dict[str, Any]]) -> None:
    pairs = [Pair(None, None), Pair(None, None)]  # type: ignore[arg-type]
    ruled = rulings(items, pairs)
    assert [pair for pair, _ in ruled] == pairs
    assert {each for _, each in ruled} <= {"same", "different", "supersedes"}


def test_a_pair_without_one_clear_ruling_is_different() -> None:
    pairs = [Pair(None, None)] * 4  # type: ignore[arg-type]
    items: list[dict[str, Any]] = [
        {"pair": 1, "verdict": "same"},
        {"pair": 1, "verdict": "supersedes"},
        {"pair": "2", "verdict": " SAME "},
        {"pair": 3, "verdict": "identical"},
        {"pair": 9, "verdict": "same"},
    ]
    assert [each for _, each in rulings(items, pairs)] == ["different", "same", "different", "different"]


async def test_c08_the_same_in_other_words_becomes_one_memory_that_lists_every_source(shelf: Shelf) -> None:
    old, new = await noted(shelf, BLACK, NO_MILK)
    look, model = looking(shelf, ruling("same"))
    looked = await look.look(shelf.owner, {new.id})
    assert (looked.pairs, dict(looked.ruled), looked.tokens, len(model.asked)) == (1, {"same": 1}, 7, 1)
    (live,) = await shelf.live()
    assert (live.id, live.provenance.confirmations) == (old.id, 2)
    closed = next(entry for entry in await shelf.history() if entry.id == new.id)
    assert (closed.provenance.successor, closed.provenance.reason) == (old.id, "same")


async def test_a_verdict_is_undone_with_the_sources_it_had_lent(shelf: Shelf) -> None:
    old, new = await noted(shelf, BLACK, NO_MILK)
    look, _ = looking(shelf, ruling("same"))
    at = shelf.clock.advance(days=1)
    await look.look(shelf.owner, {new.id})
    await Gate(shelf.db, shelf).undo(shelf.owner, at=at, now=shelf.clock.advance(days=1))
    assert [(e.id, e.provenance.confirmations) for e in await shelf.live()] == [(old.id, 1), (new.id, 1)]


async def test_what_is_superseded_is_closed_by_the_later_one(shelf: Shelf) -> None:
    old, new = await noted(shelf, BLACK, NO_MILK)
    look, _ = looking(shelf, ruling("supersedes"))
    (decision,) = (await look.look(shelf.owner, {new.id})).decisions
    assert (decision.closed, decision.reason) == ((old.id,), "overtaken")
    assert values(await shelf.live()) == [NO_MILK]


async def test_an_unsure_memory_supersedes_nothing_sure_but_doubts_it(shelf: Shelf) -> None:
    (old,) = await noted(shelf, BLACK)
    (new,) = await noted(shelf, NO_MILK, confidence=0.3)
    look, _ = looking(shelf, ruling("supersedes"))
    assert (await look.look(shelf.owner, {new.id})).decisions == ()
    assert [entry.provenance.doubts for entry in await shelf.live()] == [None, old.id]


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (CompleterUnavailable("down"), "unavailable"),
        ("I think they are the same.", "no_json"),
        ("", "empty"),
        ('{"items": [{"pair": 1, "verdict": "same"', "cut"),
        (ruling("different"), ""),
        (ruling("yes"), ""),
        (ruling("same", pair=2), ""),
    ],
)
async def test_both_are_kept_whenever_the_verdict_fails(shelf: Shelf, answer: str | Exception, failed: str) -> None:
    _, new = await noted(shelf, BLACK, NO_MILK)
    look, _ = looking(shelf, answer)
    looked = await look.look(shelf.owner, {new.id})
    assert (looked.failed, looked.decisions) == (failed, ())
    assert values(await shelf.live()) == [BLACK, NO_MILK]


async def test_an_answer_that_broke_off_changes_nothing(shelf: Shelf) -> None:
    _, new = await noted(shelf, BLACK, NO_MILK)
    look, _ = looking(shelf, ruling("same"), cut=True)
    assert (await look.look(shelf.owner, {new.id})).failed == "cut"
    assert len(await shelf.live()) == 2


async def test_without_a_pair_no_call_is_made_and_what_changed_meanwhile_stays(shelf: Shelf) -> None:
    old, new = await noted(shelf, BLACK, NO_MILK)
    look, model = looking(shelf)
    assert (await look.look(shelf.owner, set())).pairs == 0
    assert model.asked == []
    await shelf.facts.hide(shelf.owner, [new.id], 1)
    gate = Gate(shelf.db, shelf)
    assert await gate.settle(shelf.owner, [(Pair(old, new), "supersedes")], now=shelf.clock()) == []
    assert values(await shelf.live()) == [BLACK]
    async with shelf.db.transaction():
        with pytest.raises(RuntimeError):
            await look.look(shelf.owner, set())


async def test_rulings_close_a_bounded_number_of_memories(shelf: Shelf) -> None:
    texts = [f"Note {chr(97 + number) * 4} about tea" for number in range(2 * MAX_RETIREMENTS + 4)]
    made = await noted(shelf, *texts)
    ruled = [(Pair(made[number], made[number + 1]), "supersedes") for number in range(0, len(made), 2)]
    decisions = await Gate(shelf.db, shelf).settle(shelf.owner, ruled, now=shelf.clock())  # type: ignore[arg-type]
    assert len(decisions) == MAX_RETIREMENTS
