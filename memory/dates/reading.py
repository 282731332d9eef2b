"""Reading a text: time words to expressions, and what joins them: since, to, and."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

from memory.dates import frame as f
from memory.dates.clock import HALVES
from memory.dates.daytime import implied
from memory.dates.frame import DAY, WEEK, Frame, Instant, Lean, Period
from memory.dates.grammar import (
    DATE,
    HABIT,
    LEADS,
    LEANING,
    READERS,
    TIME,
    YEAR_BEHIND,
    Values,
    at_time,
    clock_alone,
    unclear,
)
from memory.dates.grammar import Reader as Row
from memory.dates.lexeme import LETTER, Token
from memory.dates.lexer import fold, tokens
from memory.dates.tense import tense

_HAN: Final = re.compile("[\u4e00-\u9fff]")
_GLUE: Final = re.compile(r"[ \t,，()（）的'’]*(?:(?:the|of|['’]s)[ ]+){0,3}[(（]?|t")
_GLUE_LIMIT: Final = 16
_CLAUSE_END: Final = re.compile(r"[。！？!?；;\n，,]|\.(?!\d)")
_CLAUSE_LIMIT: Final = 80
"""Characters on either side of an expression that may tell its tense; bounds the work on endless sentences."""
_BREAK: Final = " "
_LEADING: Final = frozenset(LETTER[kind] for kind in ("in", "on", "at", "to", "and", "since", "between"))
_LINKS: Final = frozenset(LETTER[kind] for kind in ("in", "on", "at", "and"))


@dataclass(frozen=True, slots=True)
class Reading:
    """An expression: when it is, its half-open place in the text, what its words stand for by kind.

    ``ranged`` marks one that was said with both its ends ("from Monday to Friday").
    """

    when: Instant
    start: int
    end: int
    values: Values
    ranged: bool = False


class Text:
    """A text taken apart into time words.

    ``kinds`` has a letter for each word and a blank where two neighbours do not belong together.
    """

    def __init__(self, text: str) -> None:
        self.folded = fold(text)
        self.chinese = _HAN.search(text) is not None
        self._tokens: list[Token | None] = []
        kinds: list[str] = []
        end = None
        for token in tokens(text, self.folded):
            if end is not None and not self._glued(end, token.start):
                kinds.append(_BREAK)
                self._tokens.append(None)
            kinds.append(LETTER[token.kind])
            self._tokens.append(token)
            end = token.end
        self.kinds = "".join(kinds)

    def _glued(self, end: int, start: int) -> bool:
        if start == end:
            return True
        return start - end <= _GLUE_LIMIT and _GLUE.fullmatch(self.folded, end, start) is not None

    def words(self, start: int, end: int) -> list[Token]:
        """The words of a stretch of ``kinds``."""
        return [token for token in self._tokens[start:end] if token is not None]

    def around(self, start: int, end: int) -> tuple[str, str]:
        """What stands before and behind a place in the text within its clause."""
        before = self.folded[max(0, start - _CLAUSE_LIMIT) : start]
        after = self.folded[end : end + _CLAUSE_LIMIT]
        begin = max((found.end() for found in _CLAUSE_END.finditer(before)), default=0)
        stop = _CLAUSE_END.search(after)
        return before[begin:], after[: stop.start() if stop else None]

    def tense(self, start: int, end: int) -> Lean:
        """Lean of the clause around a place in the text."""
        before, behind = self.around(start, end)
        return tense(before + self.folded[start:end] + behind)

    def halved(self, values: Values, start: int, end: int) -> Values:
        """The values with the part of the day that the clause implies, where they name a clock alone."""
        if "clock" not in values or values.get("part", values.get("daypart")) is not None:
            return values
        part = implied(values["clock"].hour, *self.around(start, end))
        return values if part is None else {**values, "part": part}


@lru_cache(maxsize=16)
def taken_apart(text: str) -> Text:
    """A text taken apart into time words; the last ones are kept, for a message is read for more than one purpose."""
    return Text(text)


Found = tuple[Reading | None, int]
"""A reading, None where the words make no date after all, and the place in ``kinds`` behind it."""


def readings(text: Text, frame: Frame) -> Iterator[Reading]:
    """Expressions of a text in order, without overlap."""
    kinds, place, last = text.kinds, 0, None
    frame = replace(frame, chinese=text.chinese)
    while place < len(kinds):
        if kinds[place] in HABIT:
            place, last = _behind_habit(kinds, place), None
            continue
        found = _next(text, frame, place, last)
        if found is None:
            place += 1
            last = last if kinds[place - 1] in _LINKS else None
            continue
        last, place = found
        if last is not None:
            yield last


def _next(text: Text, frame: Frame, place: int, last: Reading | None) -> Found | None:
    """What begins at a place; a bare weekday or day behind "and" counts from the reading before."""
    if last is not None and (listed := _anchored(text, frame, last, place)) is not None:
        return listed
    found = _since(text, frame, place) or _expression(text, frame, place)
    if found is None or found[0] is None:
        return found
    between = place > 0 and text.kinds[place - 1] == LETTER["between"]
    return _joined(text, frame, found[0], found[1], LETTER["and" if between else "to"])


def constructions(text: Text) -> Iterator[Values]:
    """The values of every construction that names a day, month or year, whatever it may mean now."""
    place = 0
    while place < len(text.kinds):
        found = DATE.match(text.kinds, place)
        if found is None:
            place += 1
            continue
        yield {token.kind: token.value for token in text.words(place, found.end())}
        place = found.end()


def _behind_habit(kinds: str, place: int) -> int:
    end = kinds.find(_BREAK, place)
    return len(kinds) if end < 0 else end


def _behind_leads(kinds: str, place: int) -> int:
    leads = LEADS.match(kinds, place)
    return place if leads is None else leads.end()


def _construction(kinds: str, place: int) -> tuple[Row, int] | None:
    """The row that reads the words at a place, with the time of day before or behind, and where they end."""
    time = TIME.match(kinds, place)
    day = DATE.match(kinds, place)
    if time is not None and day is None:
        behind = _behind_leads(kinds, time.end())
        day = DATE.match(kinds, behind)
        if day is None:
            habit = behind < len(kinds) and kinds[behind] in HABIT
            return None if habit else (clock_alone, time.end())
        return READERS[(day.lastindex or 1) - 1], day.end()
    if day is None:
        return None
    time = TIME.match(kinds, _behind_leads(kinds, day.end()))
    return READERS[(day.lastindex or 1) - 1], day.end() if time is None else time.end()


def _expression(text: Text, frame: Frame, place: int) -> Found | None:
    construction = _construction(text.kinds, place)
    if construction is None:
        return None
    row, end = construction
    words = text.words(place, end)
    start, stop = words[0].start, words[-1].end
    values: Values = text.halved({token.kind: token.value for token in words}, start, stop)
    if "monthname" in values and (behind := YEAR_BEHIND.match(text.kinds, end)) and "bareyear" not in values:
        values = {**values, "bareyear": text.words(behind.end() - 1, behind.end())[0].value}
    if row is clock_alone and not _sure(text, place, end, values):
        return None
    if row in LEANING and frame.lean == "none":
        frame = replace(frame, lean=text.tense(start, stop))
    try:
        when = _placed(row, frame, values)
    except (ValueError, OverflowError):  # 31 April, or a year beyond the calendar
        when = None
    return None if when is None else Reading(when, start, stop, values), end


def _sure(text: Text, place: int, end: int, values: Values) -> bool:
    """Whether "3:16" by itself is a time of day and no verse or score."""
    if "clock" not in values:
        return False
    led = place > 0 and text.kinds[place - 1] in _LEADING
    ranged = text.kinds[end : end + 2] == LETTER["to"] + LETTER["clock"]
    return text.chinese or led or ranged or not values["clock"].bare


def _placed(row: Row, frame: Frame, values: Values) -> Instant | None:
    when = row(frame, values)
    if when is None or isinstance(when, Instant):
        return when
    if when.single and ("clock" in values or "part" in values):
        return at_time(frame, when.first, values)
    return frame.instant(when)


def _since(text: Text, frame: Frame, place: int) -> Found | None:
    """Read "since July": from then to the present."""
    if text.kinds[place] != LETTER["since"]:
        return None
    reading, end = _expression(text, replace(frame, lean="past"), place + 1) or (None, place)
    now = frame.at.astimezone(UTC)
    if reading is None or reading.when.start >= now:
        return None
    start = text.words(place, place + 1)[0].start
    return replace(reading, start=start, when=replace(reading.when, end=now), ranged=True), end


def _joined(text: Text, frame: Frame, first: Reading, place: int, link: str) -> Found:
    """Read "from Monday to Friday", "May 2-5": from the first's beginning to the second's end."""
    if text.kinds[place : place + 1] != link:
        return first, place
    behind = _behind_leads(text.kinds, place + 1)
    second, end = _anchored(text, frame, first, behind) or _expression(text, frame, behind) or (None, place)
    if second is None:
        return first, place
    border = _border(first, second, frame)
    if border <= first.when.start and "clock" in second.values:
        border += timedelta(hours=12)  # "from 10 to 2"
    if border <= first.when.start:
        return first, place
    begin = _same_half(first, second, frame)
    unsure = begin is None and unclear(first.values)
    values = {**first.values, **second.values}
    when = first.when if unsure else replace(begin or first.when, end=border)
    both = Reading(when, first.start, second.end, values, ranged=not unsure)
    return _dated(text, frame, both, end) or (both, end)


def _border(first: Reading, second: Reading, frame: Frame) -> datetime:
    """End of a range that ends with ``second``: the first such time behind its beginning, where either half may be."""
    if "clock" not in second.values:
        return second.when.end
    if not unclear(second.values):
        return second.when.start
    on = second.when.start.astimezone(frame.zone).date()
    ends = [frame.clock(on, replace(second.values["clock"], half=half)).start for half in HALVES]
    return next((end for end in ends if end > first.when.start), ends[-1])


def _same_half(first: Reading, second: Reading, frame: Frame) -> Instant | None:
    """Beginning of "7-9pm": the half of the day is that of both, unless that turns them round ("10-2pm")."""
    clock, later = first.values.get("clock"), second.values.get("clock")
    if clock is None or later is None or not clock.bare or later.half is None or clock.hour > later.hour:
        return None
    on = second.when.start.astimezone(frame.zone).date()
    return frame.clock(on, replace(clock, half=later.half))


def _dated(text: Text, frame: Frame, hours: Reading, place: int) -> Found | None:
    """Read "3pm to 5pm tomorrow", where the day stands behind the hours; the day alone where these are not sure."""
    if not hours.values.keys() <= {"clock", "part", "in", "on", "at"}:
        return None
    day, end = _expression(text, frame, _behind_leads(text.kinds, place)) or (None, place)
    if day is None or day.when.precision != "day":
        return None
    values = {**hours.values, **day.values}
    if not hours.ranged:
        return Reading(day.when, hours.start, day.end, values), end
    days = day.when.start.astimezone(frame.zone).date() - hours.when.start.astimezone(frame.zone).date()
    start, stop = (
        frame.utc(border.astimezone(frame.zone).replace(tzinfo=None) + days)
        for border in (hours.when.start, hours.when.end)
    )
    when = Instant(start, stop, hours.when.precision)
    return Reading(when, hours.start, day.end, values, ranged=True), end


def _anchored(text: Text, frame: Frame, last: Reading, place: int) -> Found | None:
    """A bare weekday, day of the month or clock right behind another expression, counted from that."""
    if not 0 <= place < len(text.kinds) or text.kinds[place] == _BREAK:
        return None
    token = text.words(place, place + 1)[0]
    anchor = last.when.start.astimezone(frame.zone).date()
    time = TIME.match(text.kinds, place)
    if time is not None and "clock" in last.values:
        words = text.words(place, time.end())
        values = {"part": last.values.get("part", last.values.get("daypart", (0, None))[1])}
        values |= {word.kind: word.value for word in words}
        if "clock" in values:
            return Reading(at_time(frame, anchor, values), token.start, words[-1].end, values), time.end()
    if DATE.match(text.kinds, place + 1) is not None and token.kind in {"ordinal", "number"}:
        return None
    days = _day_behind(anchor, frame.today, token, last.values)
    if days is None:
        return None
    end = place + (2 if text.kinds[place + 1 : place + 2] == LETTER["bareyear"] else 1)
    stop = text.words(place, end)[-1].end
    return Reading(frame.instant(days), token.start, stop, {token.kind: token.value}), end


def _day_behind(anchor: date, today: date, token: Token, values: Values) -> Period | None:
    if token.kind in {"weekday", "shortday"} and values.keys() & {"weekday", "shortday", "weekpart", "day"}:
        day = anchor + ((token.value - anchor.weekday() - 1) % 7 + 1) * DAY
        return f.day(day - WEEK if values.get("near") == "last" and day > today else day)
    dated = values.keys() & {"dayno", "ordinal", "number", "numeric"}
    if token.kind in {"dayno", "ordinal", "number"} and dated and token.value > anchor.day:
        try:
            return f.day(anchor.replace(day=token.value))
        except ValueError:
            return None
    return None
