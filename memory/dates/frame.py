"""The present as a person sees it, and the days, weeks and hours around it.

Days are counted on the calendar of the person's zone; only the last step turns them into UTC, so that a day
in spring may last 23 hours and one in autumn 25.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from dateutil.relativedelta import relativedelta

from memory.dates.clock import HALVES, Clock, Hours
from memory.dates.numerals import Unit
from memory.model import Precision

Lean = Literal["past", "future", "none"]
"""Which side of the present an expression without a side of its own is on."""

DAY, WEEK = timedelta(days=1), timedelta(weeks=1)
WEEKEND = 5
"""First day of the weekend, counted from Monday."""
_CALENDAR: dict[Unit, Precision] = {"week": "week", "month": "month", "year": "year"}


@dataclass(frozen=True, slots=True)
class Period:
    """Whole days of a calendar, half-open."""

    first: date
    end: date
    precision: Precision

    @property
    def single(self) -> bool:
        """Whether it is one day, which may carry a time of day."""
        return self.end - self.first == DAY


@dataclass(frozen=True, slots=True)
class Instant:
    """A time within days: half-open aware UTC."""

    start: datetime
    end: datetime
    precision: Precision


def day(first: date) -> Period:
    """One day."""
    return Period(first, first + DAY, "day")


def week(first: date) -> Period:
    """The week, Monday to Sunday, that holds a day."""
    monday = first - first.weekday() * DAY
    return Period(monday, monday + WEEK, "week")


def weekend(first: date) -> Period:
    """Saturday and Sunday of the week that holds a day."""
    saturday = week(first).first + WEEKEND * DAY
    return Period(saturday, saturday + 2 * DAY, "day")


def months(year: int, month: int, count: int, precision: Precision) -> Period:
    """``count`` months from the first of a month."""
    first = date(year, month, 1)
    return Period(first, first + relativedelta(months=count), precision)


def month(year: int, number: int) -> Period:
    """A month of a year."""
    return months(year, number, 1, "month")


def year(number: int) -> Period:
    """A year."""
    return months(number, 1, 12, "year")


def season(year_number: int, first_month: int) -> Period:
    """A season of the year it begins in."""
    return months(year_number, first_month, 3, "season")


def edge(whole: Period, side: str) -> Period:
    """Early, mid or late part of a month (ten days) or of a year (its first or last month)."""
    if whole.precision == "year":
        return month(whole.first.year, {"early": 1, "mid": 6, "late": 12}[side])
    tenth, twentieth = whole.first + 10 * DAY, whole.first + 20 * DAY
    first, end = {
        "early": (whole.first, tenth),
        "mid": (tenth, twentieth),
        "late": (twentieth, whole.end),
    }[side]
    return Period(first, end, "week")


@dataclass(frozen=True, slots=True)
class Frame:
    """Where and when something is said: ``at`` (aware), the person's ``zone``, the ``lean`` of the clause.

    ``chinese`` tells how day and month stand in "4/5".
    """

    at: datetime
    zone: ZoneInfo
    lean: Lean = "none"
    chinese: bool = False

    @property
    def today(self) -> date:
        """The person's date."""
        return self.at.astimezone(self.zone).date()

    def nearest(self, candidates: Iterable[Period]) -> Period | None:
        """The candidate that fits the lean: the last that has begun, the first not over, else the closest."""
        today, ordered = self.today, sorted(candidates, key=lambda period: period.first)
        if self.lean == "past":
            return next((p for p in reversed(ordered) if p.first <= today), None)
        if self.lean == "future":
            return next((p for p in ordered if p.end > today), None)
        return min(ordered, key=lambda p: max(p.first - today, today + DAY - p.end, timedelta(0)), default=None)

    def weekday(self, number: int) -> Period:
        """The nearest such weekday that is not today: the one before if the lean is past, else the one after."""
        away = (number - self.today.weekday() - 1) % 7 + 1
        if self.lean == "past":
            away = -((self.today.weekday() - number - 1) % 7 + 1)
        return day(self.today + away * DAY)

    def shifted(self, count: int, unit: Unit) -> Period | Instant:
        """What lies ``count`` units away: a day for days and weeks, else the month, year, hour or minute."""
        if unit in {"hour", "minute"}:
            return self._moment(count, unit)
        if unit == "weekend":
            return weekend(self.today + count * WEEK)
        if unit in {"day", "week"}:
            return day(self.today + count * (DAY if unit == "day" else WEEK))
        there = self.today + relativedelta(months=count * (12 if unit == "year" else 1))
        return year(there.year) if unit == "year" else month(there.year, there.month)

    def _moment(self, count: int, unit: Unit) -> Instant:
        size = timedelta(hours=1) if unit == "hour" else timedelta(minutes=1)
        start = (self.at.astimezone(UTC) + count * size).replace(second=0, microsecond=0)
        return Instant(start, start + size, "hour" if unit == "hour" else "minute")

    def stretch(self, count: int, unit: Unit, *, today: bool = True) -> Period | Instant:
        """The days from ``count`` units away to the present, or from the present on; with or without today."""
        if unit in {"hour", "minute"}:
            there, now = self._moment(count, unit).start, self.at.astimezone(UTC)
            return Instant(min(there, now), max(there, now), "hour" if unit == "hour" else "minute")
        per = {"day": DAY, "week": WEEK, "weekend": WEEK}.get(unit)
        away = per * count if per else relativedelta(months=count * (12 if unit == "year" else 1))
        precision = _CALENDAR.get(unit, "day")
        if count < 0:
            return Period(self.today + away, self.today + (DAY if today else 0 * DAY), precision)
        return Period(self.today if today else self.today + DAY, self.today + away + DAY, precision)

    def hours(self, on: date, part: Hours) -> Instant:
        """A part of a day."""
        start, end = (self.utc(datetime.combine(on, datetime.min.time()) + timedelta(hours=h)) for h in part)
        return Instant(start, max(end, start + timedelta(hours=1)), "hour")

    def clock(self, on: date, time: Clock, part: Hours | None = None) -> Instant:
        """A time of a day, an hour long or a minute, as exactly as it was said."""
        local = datetime.combine(on, datetime.min.time()) + timedelta(minutes=time.minutes(part))
        if time.utc_offset is None:
            start = self.utc(local)
        else:
            start = (local - timedelta(minutes=time.utc_offset)).replace(tzinfo=UTC)
        if time.minute is None:
            return Instant(start, start + timedelta(hours=1), "hour")
        return Instant(start, start + timedelta(minutes=1), "minute")

    def next_clock(self, time: Clock, part: Hours | None) -> Instant:
        """A time of day without a day: the last one if the lean is past, else the next one, in whichever half it is."""
        times = [replace(time, half=half) for half in HALVES] if time.either and part is None else [time]
        moments = [self.clock(self.today + n * DAY, each, part) for n in (-2, -1, 0, 1) for each in times]
        if self.lean == "past":
            return next(moment for moment in reversed(moments) if moment.start <= self.at)
        return next((moment for moment in moments if moment.end > self.at), moments[-1])

    def utc(self, local: datetime) -> datetime:
        """A naive local time in UTC; one that a clock change skips is read as if it had not changed yet."""
        return local.replace(tzinfo=self.zone).astimezone(UTC)

    def instant(self, period: Period) -> Instant:
        """A period from midnight to midnight in the person's zone."""
        start, end = (self.utc(datetime.combine(border, datetime.min.time())) for border in (period.first, period.end))
        return Instant(start, end, period.precision)
