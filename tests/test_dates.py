"""Dates against labelled lines: the right days, no invented ones, and no wrong year."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory import dates
from memory.dates import PartialDate
from memory.dates.lexer import fold
from memory.model import Span

CASES: Final = Path(__file__).parent / "cases"
SHANGHAI: Final = "Asia/Shanghai"
NEW_YORK: Final = "America/New_York"
MORNING: Final = datetime(2025, 3, 12, 10, 0, tzinfo=ZoneInfo(SHANGHAI))
"""A Wednesday; the labelled lines are said then."""
LATE: Final = datetime(2025, 3, 12, 22, 30, tzinfo=ZoneInfo(SHANGHAI))
"""The evening of case C11."""


def labelled(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CASES / name).read_text(encoding="utf-8").splitlines()]


def local(moment: datetime, zone: str = SHANGHAI) -> str:
    return moment.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M")


def read(text: str, at: datetime = MORNING, zone: str = SHANGHAI, **lean: Any) -> list[dict[str, str]]:
    """Mentions as the case files write them."""
    return [
        {
            "words": span.words,
            "start": local(span.start, zone),
            "end": local(span.end, zone),
            "precision": span.precision,
        }
        for span in dates.mentions(text, at=at, zone=zone, **lean)
    ]


def days(text: str, at: datetime = MORNING, zone: str = SHANGHAI, **lean: Any) -> list[str]:
    return [found["start"][:10] for found in read(text, at, zone, **lean)]


@pytest.mark.parametrize("line", labelled("dates_mentions.jsonl"), ids=lambda line: line["id"])
def test_a_labelled_line_mentions_exactly_its_times(line: dict[str, Any]) -> None:
    assert read(line["text"]) == line["expect"]


@pytest.mark.parametrize("line", labelled("dates_recurring.jsonl"), ids=lambda line: line["id"])
def test_a_labelled_habit_becomes_its_rule(line: dict[str, Any]) -> None:
    span = dates.recurrence(line["text"], at=MORNING, zone=SHANGHAI)
    found = span and {
        "words": span.words, "rrule": span.rrule, "start": local(span.start), "end": local(span.end),
    }  # fmt: skip
    assert found == line["expect"]


@pytest.mark.parametrize("line", labelled("dates_questions.jsonl"), ids=lambda line: line["id"])
def test_a_labelled_question_asks_for_its_times(line: dict[str, Any]) -> None:
    spans = dates.asked(line["text"], now=MORNING, zone=SHANGHAI)
    assert [[local(span.start)[:10], local(span.end)[:10]] for span in spans] == line["asked"]
    assert dates.partial(line["text"]) == tuple(PartialDate(*date) for date in line["partial"])
    assert dates.asks_when(line["text"]) is line["when"]


@pytest.mark.parametrize(
    ("text", "start", "precision"),
    [
        ("明天下午三点开会", "2025-03-13T15:00", "hour"),
        ("大后天出发", "2025-03-15T00:00", "day"),
        ("这周五交稿", "2025-03-14T00:00", "day"),
        ("下周三体检", "2025-03-19T00:00", "day"),
        ("上周五搬的家", "2025-03-07T00:00", "day"),
        ("下个月3号还款", "2025-04-03T00:00", "day"),
        ("三天前刚回来", "2025-03-09T00:00", "day"),
        ("last Friday we moved", "2025-03-07T00:00", "day"),
        ("in two weeks", "2025-03-26T00:00", "day"),
        ("next Monday", "2025-03-17T00:00", "day"),
        ("明年我要去读书", "2026-01-01T00:00", "year"),
        ("下午三点", "2025-03-13T15:00", "hour"),
    ],
)
def test_c11_relative_dates_become_absolute_at_the_time_of_the_message(text: str, start: str, precision: str) -> None:
    (found,) = read(text, LATE)
    assert (found["start"], found["precision"]) == (start, precision)


def test_c11_a_vague_time_has_no_date() -> None:
    assert read("过几天再说", LATE) == []


def test_c13_a_return_on_friday_holds_until_the_end_of_friday() -> None:
    end = dates.until("我这几天在东京出差，周五回来", at=MORNING, zone=SHANGHAI)
    assert end is not None
    assert local(end) == "2025-03-15T00:00"
    assert (
        datetime.fromisoformat("2025-03-14T22:00:00+08:00") < end < datetime.fromisoformat("2025-03-15T00:30:00+08:00")
    )


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("行程延到下周一", "2025-03-18T00:00"),
        ("I'm in Tokyo until Friday", "2025-03-15T00:00"),
        ("I'm away, back on Monday", "2025-03-18T00:00"),
        ("I'm away from Monday to Friday", "2025-03-22T00:00"),
        ("住到月底", "2025-04-01T00:00"),
        ("周五之前都在家", "2025-03-14T00:00"),
        ("busy until 3pm", "2025-03-12T15:00"),
        ("it was valid until yesterday", "2025-03-12T00:00"),
        ("我週五回來", "2025-03-15T00:00"),
    ],
)
def test_an_end_is_read_from_the_words(text: str, end: str) -> None:
    found = dates.until(text, at=MORNING, zone=SHANGHAI)
    assert found is not None
    assert local(found) == end


@pytest.mark.parametrize("text", ["我周五去上海", "see you on Friday", "项目结束", "I read it until late", ""])
def test_no_end_is_read_where_none_is_said(text: str) -> None:
    assert dates.until(text, at=MORNING, zone=SHANGHAI) is None


def test_a_range_of_days_differs_from_the_day_it_begins_with() -> None:
    (span,) = dates.mentions("前两天", at=MORNING, zone=SHANGHAI)
    (point,) = dates.mentions("两天前", at=MORNING, zone=SHANGHAI)
    assert span.start == point.start
    assert span.end - span.start == timedelta(days=2)
    assert point.end - point.start == timedelta(days=1)


def test_lean_chooses_the_side_of_a_bare_weekday_and_of_a_day_without_a_year() -> None:
    assert days("Friday", lean="past") == ["2025-03-07"]
    assert days("Friday", lean="future") == ["2025-03-14"]
    assert days("5月2号", lean="past") == ["2024-05-02"]
    assert days("5月2号", lean="future") == ["2025-05-02"]
    assert days("12月31日", lean="none") == ["2024-12-31"]


def test_a_29_february_without_a_year_is_in_a_leap_year() -> None:
    assert days("2月29号", lean="past") == ["2024-02-29"]
    assert days("on Feb 29", lean="future") == ["2028-02-29"]


def test_sunday_belongs_to_the_week_that_ends_with_it() -> None:
    sunday = datetime(2024, 6, 16, 12, 0, tzinfo=ZoneInfo(SHANGHAI))
    assert days("下周五", sunday) == ["2024-06-21"]
    assert days("last week", sunday) == ["2024-06-03"]
    assert days("next Monday", sunday) == ["2024-06-17"]


def test_days_are_counted_in_the_speakers_zone() -> None:
    moment = datetime(2025, 3, 12, 2, 0, tzinfo=UTC)
    assert days("today", moment, SHANGHAI) == ["2025-03-12"]
    assert days("today", moment, NEW_YORK) == ["2025-03-11"]


@pytest.mark.parametrize(("at", "hours"), [("2025-03-08T12:00:00-05:00", 23), ("2025-11-01T12:00:00-04:00", 25)])
def test_a_day_on_which_clocks_change_has_its_own_length(at: str, hours: int) -> None:
    (span,) = dates.mentions("tomorrow", at=datetime.fromisoformat(at), zone=NEW_YORK)
    assert span.end - span.start == timedelta(hours=hours)


def test_a_clock_time_is_the_one_on_the_wall_after_clocks_have_changed() -> None:
    (span,) = dates.mentions("tomorrow at 3pm", at=datetime.fromisoformat("2025-03-08T12:00:00-05:00"), zone=NEW_YORK)
    assert span.start == datetime(2025, 3, 9, 19, 0, tzinfo=UTC)


def test_a_midnight_that_clocks_skip_leaves_no_gap_between_days() -> None:
    at = datetime(2025, 4, 24, 12, 0, tzinfo=ZoneInfo("Africa/Cairo"))
    (today,) = dates.mentions("today", at=at, zone="Africa/Cairo")
    (tomorrow,) = dates.mentions("tomorrow", at=at, zone="Africa/Cairo")
    assert today.end == tomorrow.start
    assert tomorrow.end - tomorrow.start == timedelta(hours=23)


def test_occurrences_keep_their_wall_time_when_clocks_change() -> None:
    at = datetime(2025, 3, 7, 12, 0, tzinfo=ZoneInfo(NEW_YORK))
    span = dates.recurrence("every day at 9am", at=at, zone=NEW_YORK)
    assert span is not None
    found = dates.occurrences(span, at, at + timedelta(days=4))
    assert [local(start, NEW_YORK) for start, _ in found] == [f"2025-03-{day:02}T09:00" for day in (8, 9, 10, 11)]
    assert {start.hour for start, _ in found} == {13, 14}


def test_tomorrow_asked_on_a_tuesday_finds_what_happens_every_wednesday() -> None:
    span = dates.recurrence("我每周三下午都在力健练背", at=MORNING, zone=SHANGHAI)
    tuesday = datetime(2025, 5, 13, 9, 0, tzinfo=ZoneInfo(SHANGHAI))
    (tomorrow,) = dates.asked("我明天有什么安排", now=tuesday, zone=SHANGHAI)
    assert span is not None
    ((start, end),) = dates.occurrences(span, tomorrow.start, tomorrow.end)
    assert (local(start), local(end)) == ("2025-05-14T12:00", "2025-05-14T18:00")


def test_occurrences_are_bounded_and_end_with_the_window() -> None:
    span = dates.recurrence("every day", at=MORNING, zone=SHANGHAI)
    assert span is not None
    assert len(dates.occurrences(span, MORNING, MORNING + timedelta(days=5000))) == dates.MOST_OCCURRENCES
    assert dates.occurrences(span, MORNING - timedelta(days=9), MORNING - timedelta(days=3)) == []


@pytest.mark.parametrize(
    "rule", ["FREQ=SECONDLY", "nonsense", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=31", "FREQ=WEEKLY;BYDAY=XX"]
)
def test_a_rule_of_another_form_is_refused(rule: str) -> None:
    span = Span(MORNING, MORNING + timedelta(hours=1), "hour", SHANGHAI, rrule=rule)
    with pytest.raises(ValueError, match="no rule"):
        dates.occurrences(span, MORNING, MORNING + timedelta(days=1))


def test_a_span_without_a_rule_takes_place_once() -> None:
    (span,) = dates.mentions("yesterday", at=MORNING, zone=SHANGHAI)
    assert dates.occurrences(span, span.start, span.end) == [(span.start, span.end)]
    assert dates.occurrences(span, span.end, span.end + timedelta(days=1)) == []


def test_a_missing_year_fits_any() -> None:
    (date,) = dates.partial("我5月2号去了哪")
    moments = [datetime(year, 5, 2, 4, 0, tzinfo=UTC) for year in (2023, 2024, 2025)]
    assert all(date.covers(moment, SHANGHAI) for moment in moments)
    assert not date.covers(datetime(2024, 5, 3, 4, 0, tzinfo=UTC), SHANGHAI)
    assert date.covers(datetime(2024, 5, 12, 4, 0, tzinfo=UTC), SHANGHAI, days_after=10)


def test_a_partial_date_is_one_of_the_calendar_of_the_zone() -> None:
    evening = datetime(2024, 5, 1, 20, 0, tzinfo=UTC)
    assert PartialDate(month=5, day=2).covers(evening, SHANGHAI)
    assert not PartialDate(month=5, day=2).covers(evening, NEW_YORK)


def test_a_moment_matches_spans_their_occurrences_and_partial_dates() -> None:
    (yesterday,) = dates.asked("昨天", now=MORNING, zone=SHANGHAI)
    weekly = dates.recurrence("every Sunday", at=MORNING, zone=SHANGHAI)
    assert weekly is not None
    sunday = datetime(2025, 3, 23, 9, 0, tzinfo=ZoneInfo(SHANGHAI))
    assert dates.matches(yesterday, MORNING - timedelta(days=1))
    assert not dates.matches(yesterday, MORNING)
    assert dates.matches(yesterday, MORNING, days_after=1)
    assert dates.matches(weekly, sunday)
    assert not dates.matches(weekly, sunday + timedelta(days=1))
    assert dates.matches(PartialDate(2025, 3), MORNING, zone=SHANGHAI)


@pytest.mark.parametrize(
    "text",
    [line["text"] for line in labelled("dates_mentions.jsonl") if line["expect"]]
    + ["下个月", "20:15", "周三", "in May 2"],
)
def test_what_mentions_a_time_holds_a_time_word(text: str) -> None:
    assert dates.holds_time(text)


@pytest.mark.parametrize("text", ["I like cats", "我喜欢猫", "那挑哪个好", "may I", "march on", "", "🙂"])
def test_small_talk_holds_no_time_word(text: str) -> None:
    assert not dates.holds_time(text)


def test_a_naive_time_and_an_unknown_zone_are_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        dates.mentions("today", at=datetime(2025, 3, 12), zone=SHANGHAI)  # noqa: DTZ001 - the very thing refused
    with pytest.raises(ZoneInfoNotFoundError):
        dates.mentions("today", at=MORNING, zone="Moon/Crater")


PIECES: Final = st.sampled_from(
    [line["text"] for line in labelled("dates_mentions.jsonl")]
    + ["周一到", "from ", " to ", "和", "每", "every ", "3", "三", "点", "月", "号", "May ", "-", "/", ":", ","]
    + ["since ", "前", "in ", "between ", "last ", "下", "周"]
)  # fmt: skip
WILD: Final = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=12).map("".join))
MOMENTS: Final = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
ZONES: Final = st.sampled_from([SHANGHAI, NEW_YORK, "Africa/Cairo", "Australia/Lord_Howe", "America/Sao_Paulo", "UTC"])


@settings(max_examples=300, deadline=None)
@given(text=WILD, at=MOMENTS, zone=ZONES)
def test_whatever_is_said_spans_have_a_length_and_words_from_the_text(text: str, at: datetime, zone: str) -> None:
    spans = dates.mentions(text, at=at, zone=zone) + list(dates.asked(text, now=at, zone=zone))
    recurring = dates.recurrence(text, at=at, zone=zone)
    for span in [*spans, *([recurring] if recurring else [])]:
        assert span.start < span.end
        assert span.words
        assert span.words in text
    dates.until(text, at=at, zone=zone)
    dates.partial(text)
    dates.asks_when(text)
    dates.holds_time(text)


@given(st.text())
def test_folding_keeps_every_place(text: str) -> None:
    assert len(fold(text)) == len(text)


@pytest.mark.parametrize(
    "piece", ["我昨天开会，下周五交报告。", "yesterday and ", "一", "1", "May 2-", "a couple of ", "周一到", "("]
)
def test_an_endless_message_does_not_hold_up_the_loop(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    begin = time.perf_counter()
    dates.mentions(text, at=MORNING, zone=SHANGHAI)
    assert time.perf_counter() - begin < 5  # 0.1 to 0.7 s on a slow core; a quadratic pattern takes minutes


@pytest.mark.parametrize(
    ("text", "start", "precision"),
    [
        ("my alarm goes off tomorrow at 6", "2025-03-13T06:00", "hour"),
        ("明天5点半起床", "2025-03-13T05:30", "minute"),
        ("明天7点吃早饭", "2025-03-13T07:00", "hour"),
        ("dinner tomorrow at 7", "2025-03-13T19:00", "hour"),
        ("明天7点半吃晚饭", "2025-03-13T19:30", "minute"),
        ("lunch tomorrow at 1", "2025-03-13T13:00", "hour"),
        ("going to bed at 1 tomorrow", "2025-03-14T01:00", "hour"),
        ("the dentist is tomorrow at 3", "2025-03-13T15:00", "hour"),
        ("the exam is tomorrow at 8:30", "2025-03-13T08:30", "minute"),
        ("the doctor sees me tomorrow at 5", "2025-03-13T17:00", "hour"),
        ("the doctor sees me tomorrow at 7", "2025-03-13T00:00", "day"),
        ("the train leaves tomorrow at 6", "2025-03-13T00:00", "day"),
        ("明天7点集合", "2025-03-13T00:00", "day"),
        ("the train leaves tomorrow at 06:00", "2025-03-13T06:00", "minute"),
        ("the party is tomorrow from 5 to 8", "2025-03-13T00:00", "day"),
        ("from 5 to 8 tomorrow I am away", "2025-03-13T00:00", "day"),
        ("the office is open tomorrow from 5 to 8pm", "2025-03-13T17:00", "hour"),
        ("the course is tomorrow at 10 to 5:00", "2025-03-13T10:00", "hour"),
        ("I'm leaving at 7", "2025-03-12T19:00", "hour"),
    ],
)
def test_the_half_of_the_day_is_told_by_what_is_done_and_else_not_guessed(
    text: str, start: str, precision: str
) -> None:
    (found,) = read(text)
    assert (found["start"], found["precision"]) == (start, precision)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("I wake up at 5:30 on weekdays", "2025-03-13T05:30"),
        ("我每天6点半起床", "2025-03-13T06:30"),
        ("we have dinner at 6 every day", "2025-03-12T18:00"),
        ("I swim every day at 6", "2025-03-12T00:00"),
    ],
)
def test_a_habit_has_the_hour_that_its_words_tell_or_its_day(text: str, start: str) -> None:
    span = dates.recurrence(text, at=MORNING, zone=SHANGHAI)
    assert span is not None
    assert local(span.start) == start


def test_the_end_of_hours_is_the_first_one_behind_their_beginning() -> None:
    (found,) = read("the course is tomorrow at 10 to 5:00")
    assert found["end"] == "2025-03-13T17:00"
