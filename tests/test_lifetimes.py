"""How long a memory holds: by its words, else by what it tells of; looked at whenever it is read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from memory import rules
from memory.lifetimes import LASTS, Passing, end, passing
from memory.model import PRIVATE, Candidate, Citation, Source
from memory.reconcile import Gate
from tests.conftest import Clock
from tests.shelf import Shelf, cite, fact, profile, values

SAID = datetime(2025, 3, 12, 2, tzinfo=UTC)
"""A Wednesday, ten in the morning in Shanghai."""


@pytest_asyncio.fixture
async def shelf(tmp_path: Path, clock: Clock) -> AsyncIterator[Shelf]:
    clock.now = SAID
    opened = await Shelf.open(tmp_path / "memory.sqlite", clock)
    yield opened
    await opened.db.close()


def ends(text: str, said: str = "", *, source: Source = "summary", attribute: str = "") -> datetime | None:
    cited = (Citation(1, text, SAID),)
    kind = "profile" if attribute else "fact"
    candidate = Candidate(kind, cited, "", text="" if attribute else text, attribute=attribute, source=source)  # type: ignore[arg-type]
    return end(candidate, [Citation(1, said or text, SAID)], "Asia/Shanghai")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("我在东京出差", Passing.JOURNEY),
        ("I am on a business trip in Oslo", Passing.JOURNEY),
        ("My sister is on vacation", Passing.JOURNEY),
        ("I'm out of the office", Passing.JOURNEY),
        ("我住院了", Passing.ILLNESS),
        ("My dad is in the hospital", Passing.ILLNESS),
        ("我感冒了", Passing.ILLNESS),
        ("I have a bad cold", Passing.ILLNESS),
        ("我打算学吉他", Passing.PLAN),
        ("I am planning to learn the cello", Passing.PLAN),
        ("我这两天压力很大", Passing.MOOD),
        ("I feel lonely", Passing.MOOD),
        ("我经常出差", None),
        ("我喜欢旅行", None),
        ("我去东京出差过", None),
        ("我有慢性咳嗽", None),
        ("I often have a headache", None),
        ("I love travelling", None),
        ("I was on a trip in Oslo", None),
        ("I am happy that nobody planned anything for years", None),
        ("我是旅行社的", None),
        ("I live in Oslo", None),
    ],
)
def test_what_passes_by_nature_is_told_from_what_comes_again_or_is_over(text: str, kind: Passing | None) -> None:
    assert passing(text) is kind


@pytest.mark.parametrize(
    ("text", "said", "day"),
    [
        ("我在东京出差", "我这几天在东京出差，周五回来", "2025-03-15T00:00+08:00"),
        ("I am on a trip in Oslo", "I'm on a trip in Oslo. Back home? Not until Sunday.", "2025-03-17T00:00+08:00"),
        ("I am staying with my sister until Sunday", "", "2025-03-17T00:00+08:00"),
        ("我这周都在出差", "", "2025-03-17T00:00+08:00"),
        ("I am on vacation this month", "", "2025-04-01T00:00+08:00"),
        ("I am travelling in Peru until the end of the month", "", "2025-04-01T00:00+08:00"),
        ("我的签证有效期到2026年5月1日", "", "2026-05-02T00:00+08:00"),
    ],
)
def test_an_end_that_was_said_is_the_end(text: str, said: str, day: str) -> None:
    assert ends(text, said) == datetime.fromisoformat(day)
    assert ends(text, said, source="user") == datetime.fromisoformat(day)


@pytest.mark.parametrize(
    "text",
    [
        "I work until 6pm",
        "店开到晚上十点",
        "I lived in Oslo until 2019",
        "我每周五回来",
        "I stay up until Sunday every week",
    ],
)
def test_an_hour_a_habit_and_a_past_are_no_end(text: str) -> None:
    assert ends(text) is None


def test_what_a_model_noted_lasts_as_long_as_its_kind_and_what_was_asked_to_be_kept_for_good() -> None:
    for text, kind in (("我在东京出差", Passing.JOURNEY), ("我打算学吉他", Passing.PLAN)):
        assert ends(text) == SAID + LASTS[kind]
        assert ends(text, source="user") is None


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("我在东京出差，周五回来", "2025-03-15T00:00+08:00"),
        ("I'm on a trip in Oslo, back on Friday", "2025-03-15T00:00+08:00"),
        ("我这周都在出差", "2025-03-17T00:00+08:00"),
        ("I'm on vacation this week", "2025-03-17T00:00+08:00"),
    ],
)
def test_a_passing_state_that_rules_read_ends_where_its_message_says(text: str, day: str) -> None:
    fact, *_ = rules.candidates(text, message_id=1, at=SAID, zone="Asia/Shanghai")
    assert fact.expires_at == datetime.fromisoformat(day)


def test_a_passing_state_that_rules_read_lasts_as_long_as_its_kind_and_work_for_good() -> None:
    for text, lasts in (("我在三亚度假", LASTS[Passing.JOURNEY]), ("I'm in the hospital", LASTS[Passing.ILLNESS])):
        (fact,) = rules.candidates(text, message_id=1, at=SAID)
        assert fact.expires_at == SAID + lasts
    (work,) = rules.candidates("I work at Siemens", message_id=1, at=SAID)
    assert work.expires_at is None


def test_an_illness_of_today_is_not_over_tomorrow() -> None:
    assert ends("我今天感冒了") == SAID + LASTS[Passing.ILLNESS]


def test_only_a_value_that_can_change_is_one_for_a_time() -> None:
    assert ends("住在东京到周五", attribute="home") == datetime.fromisoformat("2025-03-15T00:00+08:00")
    assert ends("住在东京到周五", attribute="allergy") is None


def test_an_end_in_another_clause_is_not_that_of_what_lasts() -> None:
    assert ends("我对花生过敏", "我对花生过敏，周五回来") is None


async def test_c13_a_journey_is_current_to_the_end_of_its_last_day_and_then_part_of_the_past(shelf: Shelf) -> None:
    gate = Gate(shelf.db, shelf)
    message = await shelf.say("我这几天在东京出差，周五回来")
    trip = fact(message, "我在东京出差", source="summary")
    await gate.admit(shelf.owner, [trip], audience=PRIVATE, now=shelf.clock())
    shelf.clock.now = datetime.fromisoformat("2025-03-14T22:00+08:00").astimezone(UTC)
    assert values(await shelf.live()) == ["我在东京出差"]
    shelf.clock.now = datetime.fromisoformat("2025-03-15T00:30+08:00").astimezone(UTC)
    assert await shelf.live() == []
    assert values(await shelf.history()) == ["我在东京出差"]


async def test_c13_a_longer_journey_is_one_memory_and_one_that_is_over_is_none(shelf: Shelf) -> None:
    gate = Gate(shelf.db, shelf)
    for words in ("我在东京出差，周五回来", "我还在东京出差，下周一回来"):
        trip = fact(await shelf.say(words), "我在东京出差", source="summary")
        await gate.admit(shelf.owner, [trip], audience=PRIVATE, now=shelf.clock())
    (live,) = await shelf.live()
    assert live.provenance.expires_at == datetime.fromisoformat("2025-03-18T00:00+08:00")
    late = fact(await shelf.say("我在大阪出差，周五回来"), "我在大阪出差", source="summary")
    shelf.clock.advance(days=9)
    (decision,) = await gate.admit(shelf.owner, [late], audience=PRIVATE, now=shelf.clock())
    assert (decision.action, decision.reason) == ("dropped", "expired")


async def test_a_home_for_some_days_leaves_the_home_and_the_next_one_for_some_days_replaces_it(shelf: Shelf) -> None:
    gate = Gate(shelf.db, shelf)
    lasting = profile(await shelf.say("我住在杭州"), "home", "杭州")
    tokyo, osaka = await shelf.say("我住东京到周五"), await shelf.say("我住大阪到周五")
    short = [profile(tokyo, "home", "东京"), profile(osaka, "home", "大阪")]
    await gate.admit(shelf.owner, [lasting, short[1], short[0]], audience=PRIVATE, now=shelf.clock())
    assert values(await shelf.live()) == ["杭州", "大阪"]
    shelf.clock.advance(days=4)
    assert values(await shelf.live()) == ["杭州"]


async def test_what_a_command_asks_to_keep_ends_only_where_its_own_words_say_so(shelf: Shelf) -> None:
    gate = Gate(shelf.db, shelf)
    command = await shelf.say("", kind="command")
    kept = Candidate("fact", cite(command, "我打算学吉他"), "zh", text="我打算学吉他")
    (decision,) = await gate.admit(shelf.owner, [kept], audience=PRIVATE, now=shelf.clock())
    assert decision.entry is not None
    assert decision.entry.provenance.expires_at is None
    shelf.clock.advance(days=400)
    assert values(await shelf.live()) == ["我打算学吉他"]


def test_nothing_passes_in_less_than_a_day() -> None:
    assert set(LASTS) == set(Passing)
    assert all(lasts > timedelta(days=1) for lasts in LASTS.values())
