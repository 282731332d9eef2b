"""What comes again and again: a rule of RFC 5545 in the person's zone, and its occurrences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any, Final, NamedTuple, cast

from dateutil.rrule import rrule, rrulestr

from memory.dates.frame import Frame, Instant, day
from memory.dates.grammar import at_time, named, spelled
from memory.dates.lexeme import Every, Token
from memory.dates.mention import framed
from memory.dates.reading import Text, taken_apart
from memory.model import Span

MOST_OCCURRENCES: Final = 1000
"""Occurrences given for one window; a daily event fills it in under three years."""
_DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAY: Final = f"(?:{'|'.join(_DAYS)})"
_OF_MONTH: Final = "BYMONTHDAY=(?:[12]?[1-9]|[123]0|31)"
_EACH: Final = r"(?:;INTERVAL=[1-9]\d{0,2})?"
_FORM: Final = re.compile(
    rf"FREQ=(?:DAILY{_EACH}|WEEKLY{_EACH};BYDAY={_DAY}(?:,{_DAY}){{0,6}}"
    rf"|MONTHLY{_EACH};(?:{_OF_MONTH}|BYDAY=(?:-1|[1-4]){_DAY})|YEARLY{_EACH};BYMONTH=(?:[1-9]|1[0-2]);{_OF_MONTH})"
)
"""The rules :func:`recurrence` writes. Others are refused: an expansion that never comes true runs for ages."""
_SPANS: Final = {"weekday": (0, 1, 2, 3, 4), "weekend": (5, 6)}
_AHEAD: Final = 3000
"""Days in which the first occurrence must lie; a 29 February may be eight years away."""
_LOOKED_AHEAD: Final = (8, 40, 400, _AHEAD)
"""Days in which the next occurrence is looked for, so that a daily one is not expanded for years."""
_TRIED: Final = 3
"""Occurrences looked at for the first one that is not over: today's may be."""

_NUMBER: Final = "(?:dayno|ordinal|dateno|number)"
_HABIT: Final = re.compile(
    spelled(
        "(?:(?:clock|part|dayno|ordinal|dateno) (?:in|on|at)*){0,3} (?:weekday to weekday)? (?:every|weekdays)"
        "(?:(?:and|to)? (?:every|weekday|shortday|weekdays))*"
        f"(?:(?:in|on|at)* (?:part|clock|(?:month|monthname)? {_NUMBER}|(?:ordinal|number) monthname))*"
    )
)
_DAY_OF_YEAR: Final = re.compile(spelled(f"(?:month|monthname) {_NUMBER} | {_NUMBER} monthname"))
_OF_A_YEAR: Final = re.compile(r"生日|[纪紀]念日|忌日|\b(?:birthday|anniversary)\b")


class _Rule(NamedTuple):
    frequency: str
    interval: int = 1
    weekdays: tuple[int, ...] = ()
    month: int | None = None
    day: int | None = None
    nth: int | None = None

    def __str__(self) -> str:
        parts = [f"FREQ={self.frequency}"]
        parts += [f"INTERVAL={self.interval}"] if self.interval > 1 else []
        parts += [f"BYMONTH={self.month}"] if self.month else []
        parts += [f"BYMONTHDAY={self.day}"] if self.day else []
        which = "" if self.nth is None else str(self.nth)
        parts += [f"BYDAY={','.join(which + _DAYS[n] for n in self.weekdays)}"] if self.weekdays else []
        return ";".join(parts)


def recurrence(text: str, *, at: datetime, zone: str) -> Span | None:
    """The first thing a text says recurs (每周三下午, "every Tuesday and Thursday at 7"), or None.

    ``start`` and ``end`` are its first occurrence that is not over at ``at`` (aware), ``rrule`` its rule, to be
    expanded in ``zone`` (IANA). A birthday or anniversary with its day comes round every year. How often
    without when ("three times a week") is no rule. Raises as :func:`memory.dates.mention.mentions` does.
    """
    frame, parsed = framed(at, zone, "none"), taken_apart(text)
    words = _words(parsed)
    if not words:
        return None
    values = {word.kind: word.value for word in words}
    try:
        rule = _rule(words, values)
        values = dict(parsed.halved(values, words[0].start, words[-1].end))
        first = None if rule is None else _first(rule, frame, values)
    except (ValueError, OverflowError):  # 每月32号
        return None
    if rule is None or first is None:
        return None
    return Span(first.start, first.end, first.precision, zone, text[words[0].start : words[-1].end], str(rule))


def _words(text: Text) -> Sequence[Token]:
    """The words around "every" or a plural weekday, or the day beside "birthday"."""
    found = _HABIT.search(text.kinds)
    if found is None and _OF_A_YEAR.search(text.folded):
        found = _DAY_OF_YEAR.search(text.kinds)
    return () if found is None else text.words(*found.span())


def _rule(words: Sequence[Token], values: dict[str, Any]) -> _Rule | None:
    every: Every = values.get("every", Every("week" if "weekdays" in values else "year"))
    if every.part is not None:
        values.setdefault("part", every.part)
    if every.nth is not None:
        return _Rule("MONTHLY", weekdays=every.weekdays, nth=every.nth)
    weekdays = every.weekdays or _weekdays(words) or _SPANS.get(every.unit or "", ())
    if weekdays:
        return _Rule("WEEKLY", every.interval, weekdays)
    name = named({**values, "month": values.get("month", values.get("monthname", every.unit == "month" or None))})
    if name.month is not None and name.day is not None:
        if every.unit == "month":
            return _Rule("MONTHLY", every.interval, day=name.day)
        date(2000, name.month, name.day)  # raises ValueError for a day that no year has
        return _Rule("YEARLY", every.interval, month=name.month, day=name.day)
    return _Rule("DAILY", every.interval) if every.unit == "day" else None


def _weekdays(words: Sequence[Token]) -> tuple[int, ...]:
    """Weekdays among words; "Monday to Friday" has those between too."""
    days: list[int] = []
    for n, word in enumerate(words):
        if word.kind in {"weekday", "shortday", "weekdays"}:
            begin = days[-1] + 1 if days and words[n - 1].kind == "to" else word.value
            days += range(begin, word.value + 1) or [word.value]
    return tuple(sorted(set(days)))


def _first(rule: _Rule, frame: Frame, values: dict[str, Any]) -> Instant | None:
    midnight = datetime.combine(frame.today, datetime.min.time())
    timed = "clock" in values or "part" in values
    last = midnight + timedelta(days=_AHEAD)
    for there in islice(_expanded(str(rule._replace(interval=1)), midnight, last), _TRIED):
        when = at_time(frame, there.date(), values) if timed else frame.instant(day(there.date()))
        if when.end > frame.at:
            return when
    return None


def occurrences(span: Span, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """Times at which a span takes place within ``[start, end)``, as half-open aware UTC pairs, in order.

    A span without a rule takes place once. Clock times stay the same on the wall of ``span.zone`` when its
    clocks change. At most :data:`MOST_OCCURRENCES` are given. Raises ValueError for a rule of another form than
    :func:`recurrence` writes.
    """
    if span.rrule is None:
        return [(span.start, span.end)] if span.start < end and start < span.end else []
    frame = framed(span.start, span.zone, "none")
    local = span.start.astimezone(frame.zone).replace(tzinfo=None)
    wall = span.end.astimezone(frame.zone).replace(tzinfo=None) - local
    last = end.astimezone(frame.zone).replace(tzinfo=None)
    after = start.astimezone(frame.zone).replace(tzinfo=None) - wall - timedelta(days=1)
    found = []
    for there in _expanded(span.rrule, local, last).xafter(after, inc=True):
        begin = frame.utc(there)
        finish = begin + (span.end - span.start) if wall < timedelta(days=1) else frame.utc(there + wall)
        if begin < end and start < finish:
            found.append((begin, finish))
        if len(found) == MOST_OCCURRENCES:
            break
    return found


def upcoming(span: Span, now: datetime) -> tuple[datetime, datetime] | None:
    """The first time at which a span takes place that is not over at ``now`` (aware): begun, or yet to come.

    None when there is none, or the rule is not of a form that :func:`recurrence` writes.
    """
    for days in _LOOKED_AHEAD:
        try:
            found = occurrences(span, now, now + timedelta(days=days))
        except ValueError:
            return None
        if found:
            return found[0]
    return None


def takes_place(span: Span, start: datetime, end: datetime) -> bool:
    """Whether a span takes place within ``[start, end)`` (aware); one whose rule cannot be read does at its start."""
    try:
        return bool(occurrences(span, start, end))
    except ValueError:
        return start <= span.start < end


def _expanded(rule: str, begin: datetime, last: datetime) -> rrule:
    """A rule that begins with its first occurrence and ends with the window."""
    if _FORM.fullmatch(rule) is None:
        raise ValueError(f"no rule of days, weeks, months or years: {rule!r}")
    return cast("rrule", rrulestr(rule, dtstart=begin)).replace(until=last)
