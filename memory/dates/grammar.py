"""How time words make a date: one row a construction, tried from the top.

A pattern is a regular expression over the kinds of :data:`memory.dates.lexeme.KINDS`, blanks ignored. A reader
gets the frame and the values of the words by kind, and answers None where they make no sense together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final, NamedTuple

from memory.dates import frame as f
from memory.dates.figures import month_and_day
from memory.dates.frame import DAY, WEEK, Frame, Instant, Period
from memory.dates.lexeme import LETTER

Values = Mapping[str, Any]
Reader = Callable[[Frame, Values], Period | Instant | None]

_MONTHS: Final = 12
_YEARS_TRIED: Final = 8
"""Years around the present in which a day without a year is looked for; a 29 February needs eight."""


class Named(NamedTuple):
    """What an expression names of the calendar itself; None where it names nothing or something relative."""

    year: int | None
    month: int | None
    day: int | None


def named(values: Values) -> Named:
    """Year, month and day that the words of an expression name."""
    if "numeric" in values:
        return Named(*values["numeric"])
    month = values.get("month", values.get("monthname"))
    year, day = values.get("year", values.get("bareyear")), _day_number(values)
    if "feast" in values:
        month, day = values["feast"]
    if "slashed" in values:
        month, day = month_and_day(*values["slashed"]) or (None, None)
    return Named(year, month, day if month is not None else None)


def _day_number(values: Values) -> int | None:
    kinds = ("dayno", "ordinal", "dateno", "number")
    return next((int(values[kind]) for kind in kinds if kind in values), None)


def _year(frame: Frame, values: Values) -> int | None:
    if "nearyear" in values:
        return frame.today.year + int(values["nearyear"])
    return named(values).year


def _around(frame: Frame) -> range:
    return range(frame.today.year - _YEARS_TRIED, frame.today.year + _YEARS_TRIED + 1)


def _in_year(frame: Frame, values: Values, make: Callable[[int], Period]) -> Period | None:
    """The period in the year named, after a word like "last", or else in the nearest year that has it."""
    if (year := _year(frame, values)) is not None:
        return make(year)
    candidates = []
    for year in _around(frame):
        try:
            candidates.append(make(year))
        except ValueError:  # 29 February of most years
            continue
    return _near(frame, values.get("near"), candidates)


def _near(frame: Frame, word: str | None, candidates: list[Period]) -> Period | None:
    today = frame.today
    if word == "last":
        return next((p for p in reversed(candidates) if p.end <= today), None)
    if word == "next":
        return next((p for p in candidates if p.first > today), None)
    if word == "coming":
        return next((p for p in candidates if p.end > today), None)
    if word == "this":
        return next((p for p in candidates if p.first.year == today.year), None)
    return frame.nearest(candidates)


def _date(frame: Frame, values: Values) -> Period | None:
    _, month, day = named(values)
    if month is None or day is None:
        return None
    return _in_year(frame, values, lambda year: f.day(date(year, month, day)))


def _month(frame: Frame, values: Values) -> Period | None:
    number = named(values).month
    if number is None:
        return None
    whole = _in_year(frame, values, lambda year: f.month(year, number))
    return whole if whole is None or "edge" not in values else f.edge(whole, values["edge"])


def _numeric(_frame: Frame, values: Values) -> Period | None:
    year, month, day = named(values)
    if year is None or month is None:
        return None
    return f.month(year, month) if day is None else f.day(date(year, month, day))


def _slashed(frame: Frame, values: Values) -> Period | None:
    first, second = values["slashed"]
    order = month_and_day(first, second)
    if order is None or (frame.chinese and second <= _MONTHS):  # "2/3" is a share as likely as a day
        return None
    return _in_year(frame, values, lambda year: f.day(date(year, *order)))


def _whole_year(frame: Frame, values: Values) -> Period | None:
    year = _year(frame, values)
    if year is None:
        return None
    return f.edge(f.year(year), values["edge"]) if "edge" in values else f.year(year)


def _half_year(frame: Frame, values: Values) -> Period:
    year = _year(frame, values) or frame.today.year
    return f.months(year, values["halfyear"], 6, "season")


def _feast(frame: Frame, values: Values) -> Period | None:
    """A feast by itself, where the clause tells which one."""
    return None if frame.lean == "none" else _date(frame, values)


def _season(frame: Frame, values: Values) -> Period | None:
    return _in_year(frame, values, lambda year: f.season(year, values["season"]))


def _anniversary(frame: Frame, values: Values) -> Period | None:
    there = frame.today.replace(year=frame.today.year + values["nearyear"])
    return f.day(there) if values["day"] == 0 else None


def _near_month(frame: Frame, values: Values) -> Period | None:
    months = frame.today.year * 12 + frame.today.month - 1 + values["nearmonth"]
    whole = f.month(months // 12, months % 12 + 1)
    if (number := _day_number(values)) is not None:
        return f.day(whole.first.replace(day=number))
    return f.edge(whole, values["edge"]) if "edge" in values else whole


def _rim(frame: Frame, values: Values) -> Period:
    unit, side = values["rim"]
    today = frame.today
    return f.edge(f.year(today.year) if unit == "year" else f.month(today.year, today.month), side)


def _day_of_month(frame: Frame, values: Values) -> Period | None:
    """A day without a month: in the nearest month that fits the lean and the weekday, if one was said."""
    number, weekday, candidates = _day_number(values), _weekday_number(values), []
    this = frame.today.year * 12 + frame.today.month - 1
    for months in range(this - _MONTHS, this + _MONTHS + 1):
        try:
            candidates.append(f.day(date(months // 12, months % 12 + 1, number or 0)))
        except ValueError:
            continue
    return frame.nearest(p for p in candidates if weekday in {None, p.first.weekday()})


def _week(frame: Frame, values: Values) -> Period:
    there = f.week(frame.today + values["week"] * WEEK)
    return f.day(there.first + _weekday_number(values) * DAY) if _weekday_number(values) is not None else there


def _weekday_number(values: Values) -> Any:
    return values.get("weekday", values.get("shortday"))


def _weekday_of_week(frame: Frame, values: Values) -> Period:
    weeks, number = values["weekpart"]
    return f.day(f.week(frame.today + weeks * WEEK).first + number * DAY)


def _weekend(frame: Frame, values: Values) -> Period | None:
    """A weekend; one without "this" or "last" only where the clause tells past from future."""
    offset = values["weekend"]
    if offset is not None:
        return f.weekend(frame.today + offset * WEEK)
    if frame.lean == "none":
        return None
    return frame.nearest(f.weekend(frame.today + weeks * WEEK) for weeks in (-1, 0, 1))


def _weekday(frame: Frame, values: Values) -> Period:
    """Read "last Friday" as the latest before today, "next Friday" as that of next week, "Friday" as the nearest."""
    number, word = _weekday_number(values), values.get("near")
    this = f.day(f.week(frame.today).first + number * DAY)
    if word == "next":
        return f.day(this.first + WEEK)
    if word == "this" and (frame.lean == "past" or this.end > frame.today):
        return this
    if word is None:
        return frame.weekday(number)
    before = this.first if this.first < frame.today else this.first - WEEK
    after = this.first if this.first > frame.today else this.first + WEEK
    return f.day(before if word == "last" else after)


def _weekday_far(frame: Frame, values: Values) -> Period:
    """Read "the Friday before last"."""
    word = "last" if values["far"] < 0 else "next"
    return f.day(_weekday(frame, {**values, "near": word}).first + values["far"] * WEEK)


def _ago(frame: Frame, values: Values) -> Period | Instant:
    count, unit = values["amount"]
    return frame.shifted(-count, unit)


def _hence(frame: Frame, values: Values) -> Period | Instant:
    count, unit = values["amount"]
    return frame.shifted(count, unit)


def _in_amount(frame: Frame, values: Values) -> Period | Instant | None:
    """Read "in two weeks", unless it is how long something took or a way of speaking ("in a minute")."""
    return None if frame.lean == "past" or values["amount"] == (1, "minute") else _hence(frame, values)


def _within(frame: Frame, values: Values) -> Period | Instant:
    count, unit = values["amount"]
    return frame.stretch(count, unit)


def _preceding(frame: Frame, values: Values) -> Period | Instant:
    """前两天: the days before today; 两天前, by contrast, is one day."""
    count, unit = values["amount"]
    return frame.stretch(-count, unit, today=False)


def _near_amount(frame: Frame, values: Values) -> Period | Instant | None:
    """Read "the last two weeks", 未来三天."""
    count, unit = values["amount"]
    sign = {"last": -1, "next": 1, "coming": 1}.get(values["near"])
    return None if sign is None else frame.stretch(sign * count, unit)


def _from_day(frame: Frame, values: Values) -> Period | None:
    """Read "a week from Friday", which counts from another day than today."""
    count, unit = values["amount"]
    if unit not in {"day", "week"}:
        return None
    base = _day(frame, values) if "day" in values else _weekday(frame, values)
    return f.day(base.first + count * (DAY if unit == "day" else WEEK))


def _day(frame: Frame, values: Values) -> Period:
    return f.day(frame.today + values["day"] * DAY)


def unclear(values: Values) -> bool:
    """Whether a clock was said of which nothing tells the half of the day."""
    return "clock" in values and values["clock"].either and values.get("part", values.get("daypart")) is None


def at_time(frame: Frame, on: date, values: Values) -> Instant:
    """The time of a day that "3pm", "in the morning" or both name; all of the day where "at 7" may be either."""
    if unclear(values):
        return frame.instant(f.day(on))
    if "clock" in values:
        return frame.clock(on, values["clock"], values.get("part"))
    return frame.hours(on, values["part"])


def _daypart(frame: Frame, values: Values) -> Instant:
    offset, part = values["daypart"]
    on = frame.today + offset * DAY
    return frame.clock(on, values["clock"], part) if "clock" in values else frame.hours(on, part)


def clock_alone(frame: Frame, values: Values) -> Instant | None:
    """A clock without a day; a part of the day alone names no day."""
    return frame.next_clock(values["clock"], values.get("part")) if "clock" in values else None


_NUMBER: Final = "(?:dayno|ordinal|dateno|number)"
_LEAD: Final = "(?<=in|on|since|near|to|edge|between)"

ROWS: Final[tuple[tuple[str, Reader], ...]] = (
    ("numeric weekday?", _numeric),
    ("weekday? (?:year|nearyear) month (?:dayno|ordinal|number) weekday?", _date),
    (f"(?:weekday|shortday)? month {_NUMBER} weekday?", _date),
    (f"near? (?:weekday|shortday)? monthname {_NUMBER} (?:bareyear|nearyear)?", _date),
    ("(?:weekday|shortday)? (?:ordinal|dateno|number) monthname (?:bareyear|nearyear)?", _date),
    ("(?:year|nearyear) feast | feast (?:bareyear|nearyear) | near feast | (?<=in|on|at) feast", _date),
    ("feast", _feast),
    ("slashed", _slashed),
    ("(?:year|nearyear) month edge?", _month),
    ("edge? monthname (?:bareyear|nearyear)", _month),
    (f"edge to? monthname | near monthname | {_LEAD} monthname | month edge?", _month),
    ("(?:year|nearyear) season | season (?:bareyear|nearyear) | near season", _season),
    ("(?:year|nearyear)? halfyear", _half_year),
    ("nearyear day", _anniversary),
    ("edge (?:nearyear|bareyear) | (?:nearyear|year) edge?", _whole_year),
    ("(?<=in|on|since|to|between) bareyear | bareyear (?=to bareyear)", _whole_year),
    ("(?<=between bareyear and) bareyear", _whole_year),
    (f"nearmonth {_NUMBER} | (?:ordinal|dateno) nearmonth", _near_month),
    ("edge nearmonth | nearmonth edge?", _near_month),
    ("rim", _rim),
    ("(?:week (?:weekday|shortday)) | (?:(?:weekday|shortday) week)", _week),
    ("week", _week),
    ("weekpart", _weekday_of_week),
    ("weekend", _weekend),
    ("weekday far", _weekday_far),
    ("dayno weekday? | weekday (?:dayno|ordinal|dateno) | (?<=on|at) dateno", _day_of_month),
    ("near? weekday | near shortday | (?<=on|to|and) shortday | shortday (?=clock)", _weekday),
    ("amount hence (?:day|near? weekday)", _from_day),
    ("(?<!number to) amount ago", _ago),
    ("in amount hence", _hence),
    ("in amount", _in_amount),
    ("lapse amount hence? | amount hence", _hence),
    ("within amount | amount within", _within),
    ("preceding amount", _preceding),
    ("near amount", _near_amount),
    ("day", _day),
    ("clock (?:in|on|at)? daypart | daypart (?:in|on|at)? clock?", _daypart),
)  # fmt: skip


def spelled(pattern: str) -> str:
    """A pattern of kinds as a regular expression over their letters."""
    return re.sub(r"[a-z]+", lambda word: LETTER[word[0]], pattern).replace(" ", "")


DATE: Final = re.compile("|".join(f"({spelled(pattern)})" for pattern, _ in ROWS))
READERS: Final = tuple(reader for _, reader in ROWS)
TIME: Final = re.compile(spelled("part (?:in|on|at)? clock | clock (?:in|on|at)? part | clock | part"))
"""A time of day beside a date or alone."""
LEANING: Final = frozenset(
    {
        _date,
        _month,
        _slashed,
        _day_of_month,
        _weekend,
        _weekday,
        _weekday_far,
        _from_day,
        _feast,
        _in_amount,
        clock_alone,
    }
)
"""Readers that ask the frame's lean; finding it out takes time."""
YEAR_BEHIND: Final = re.compile(
    spelled("(?:to|and) (?:monthname? (?:ordinal|dateno|number)|(?:ordinal|dateno|number) monthname) bareyear")
)
"""What stands behind the first day of "Nov 1 - Nov 15, 2023": the year is that of both."""
LEADS: Final = re.compile(spelled("(?:in|on|at)*"))
HABIT: Final = LETTER["every"] + LETTER["weekdays"]
"""Kinds that tell of what recurs: no date."""
