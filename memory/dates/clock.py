"""Times of day: how they are written, and what hour they mean beside a part of the day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from memory.dates.numerals import HAN_RUN, number

Half = Literal["am", "pm"]
HALVES: Final[tuple[Half, Half]] = ("am", "pm")
Hours = tuple[int, int]
"""A part of the day as half-open hours after midnight; may pass 24."""

_MORNING, _AFTERNOON = 6, 12
_EITHER: Final = (5, 8)
"""First and last hour at which people get up, and dine, too; from 9 on they mean the morning unless they say so."""
_TYPED: Final = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d)(?::\d\d(?:\.\d+)?)?)?"
    r"(?:\s?(?P<half>[ap])\.?m\.?|(?P<utc>z|[+-]\d\d:?\d\d)|\s?o['’]?clock)?",
)
_SPOKEN: Final = re.compile(
    rf"(?P<hour>\d{{1,2}}|{HAN_RUN}+)[点时]"
    rf"(?:(?P<fraction>半|一刻|三刻)|(?P<minute>\d{{1,2}}|{HAN_RUN}+)分?|[钟整])?",
)
_PAST_TO: Final = re.compile(r"(?P<fraction>half|quarter) (?P<side>past|to) (?P<hour>\w+)")
_NAMED: Final = {"noon": 12, "midday": 12, "midnight": 24}
_FRACTIONS: Final = {"半": 30, "一刻": 15, "三刻": 45, "half": 30, "quarter": 15, None: None}


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day as written. ``minute`` is None when only the hour was said.

    ``half`` is the half of the day if written, ``exact`` marks 24-hour writing ("09:00", "15:30");
    ``utc_offset`` is minutes east of Greenwich if written, ``bare`` marks figures that may be something else.
    """

    hour: int
    minute: int | None = None
    half: Half | None = None
    exact: bool = False
    utc_offset: int | None = None
    bare: bool = False

    @property
    def either(self) -> bool:
        """Whether it may as well be of the morning as of the evening by itself: the hours from 5 to 8."""
        return self.half is None and not self.exact and _EITHER[0] <= self.hour <= _EITHER[1]

    def minutes(self, part: Hours | None) -> int:
        """Minutes after midnight of the day it is said of, given the part of the day beside it.

        An hour from 1 to 4 with nothing beside it is one of the afternoon: people who mean the night say so.
        """
        return self._hour(part) * 60 + (self.minute or 0)

    def _hour(self, part: Hours | None) -> int:
        if self.half is not None:
            return self.hour % 12 + (12 if self.half == "pm" else 0)
        if self.hour > 12 or self.exact:  # noqa: PLR2004
            return self.hour
        if part is None:
            return self.hour + 12 if 1 <= self.hour < _EITHER[0] else self.hour
        return _within(self.hour, part)


def _within(hour: int, part: Hours) -> int:
    """The reading of a 12-hour ``hour`` that lies in ``part``, else the nearest one after it began."""
    if part[0] == 0:
        return hour % 12
    readings = (hour % 12, hour % 12 + 12, hour % 12 + 24)
    inside = [reading for reading in readings if part[0] <= reading < part[1]]
    if inside:
        return inside[0]
    if part[0] < _AFTERNOON - 1:
        return hour
    return next(reading for reading in readings if reading >= min(part[0], 17))


def clock(words: str) -> Clock | None:
    """Read "15:00", "3pm", "3 o'clock", "half past three", "三点半"; None where no clock shows that."""
    if words in _NAMED:
        return Clock(_NAMED[words], exact=True)
    if spoken := _SPOKEN.fullmatch(words):
        minute = number(spoken["minute"]) if spoken["minute"] else _FRACTIONS[spoken["fraction"]]
        return _checked(number(spoken["hour"]), minute)
    if past := _PAST_TO.fullmatch(words):
        hour, minutes = number(past["hour"]), _FRACTIONS[past["fraction"]] or 0
        if past["side"] == "to":
            return _checked(None if hour is None else (hour - 1) or 12, 60 - minutes)
        return _checked(hour, minutes)
    typed = _TYPED.fullmatch(words)
    if typed is None:
        return None
    minute = int(typed["minute"]) if typed["minute"] else None
    bare = words[-1].isdigit() and typed["utc"] is None
    exact = minute is not None and (words.startswith("0") or typed["utc"] is not None)
    half: Half | None = None if typed["half"] is None else ("am" if typed["half"] == "a" else "pm")
    return _checked(int(typed["hour"]), minute, half=half, exact=exact, utc=typed["utc"], bare=bare)


def _checked(
    hour: int | None,
    minute: int | None,
    *,
    half: Half | None = None,
    exact: bool = False,
    utc: str | None = None,
    bare: bool = False,
) -> Clock | None:
    if hour is None or hour > 24 or (minute or 0) > 59 or (half is not None and not 1 <= hour <= 12):  # noqa: PLR2004
        return None
    return Clock(hour, minute, half, exact or hour == 0, _offset(utc), bare)


def _offset(utc: str | None) -> int | None:
    if utc is None or utc == "z":
        return None if utc is None else 0
    sign = -1 if utc[0] == "-" else 1
    return sign * (int(utc[1:3]) * 60 + int(utc[-2:]))
