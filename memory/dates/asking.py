"""What a question asks about time: intervals, days of any year, and whether it asks for a time at all."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from memory.dates import chinese, english
from memory.dates.grammar import named
from memory.dates.lexer import fold
from memory.dates.mention import framed, mentions
from memory.dates.reading import constructions, taken_apart
from memory.dates.recurring import occurrences
from memory.dates.tense import planned
from memory.model import Span

_AHEAD: Final = re.compile(
    r"有(?:什么|啥|哪些|没有)?(?:安排|计划|约|事|会议)|安排|日程|接下来|即将|未来|下次"
    r"|\b(?:do (?:i|we) have|am i|are we|is (?:my|our|the)|should (?:i|we)|do (?:i|we) need|coming up)\b"
)
_WHEN: Final = re.compile(
    r"什么时[候间]|何时|啥时|哪(?:一)?[天日年月]|哪个?(?:月|星期|礼拜)|几[号月点日]|周几|星期几|礼拜几|什么日[子期]|哪日"
    r"|多久(?:以|之)?前|多久没|几[天年](?:以|之)?前|多少[天年](?:以|之)?前|日期是"
    r"|(?:^|[.?!,;:，。？！]\s*)when\b"
    r"|\b(?:and|so|but|since|until|know|remember|tell me|ask|say|said|guess|exactly|about|by) when\b"
    r"|\bwhen(?: exactly| else| again)?[ ]?(?:did|do|does|is|was|were|will|am|are|have|has|had|should|can|could|would"
    r"|['’][sd])\b"
    r"|\bhow (?:long|many (?:days|weeks|months|years)) (?:ago|since|until|till|before|has|have|had|is it|was it)\b"
    r"|\b(?:what|which) (?:exact )?(?:day|date|month|year|time|week|weekday)\b"
)
_WORD: Final = re.compile("[a-z]+")
_ENGLISH: Final = frozenset(
    {word.rpartition(" ")[2].lstrip("2") for word in (*english.DAYS, *english.PARTS, *english.FEASTS)}
    | {name for name in english.MONTHS if name not in {"may", "march", "mar", "jun", "sep"}}
    | {
        *english.WEEKDAYS,
        *english.SURE_WEEKDAYS,
        "tonite",
        "wk",
        *(f"{day}s" for day in english.WEEKDAYS),
        "tonight",
        "ago",
        "days",
        "noon",
        "midnight",
    }
    | {f"{unit}{s}" for unit in ("week", "weekend", "month", "year", "decade") for s in ("", "s")}
    | {"spring", "summer", "autumn", "winter"}
) - {"day", "eve"}
_CHINESE: Final = re.compile(
    "|".join({*chinese.DAYS, *chinese.DAY_PARTS, *chinese.PARTS, *chinese.YEARS, *chinese.FEASTS, *chinese.SEASONS})
    + "|周[一二三四五六日末]|星期[一二三四五六日天]|礼拜[一二三四五六日天]"
    "|上个?[周月星礼]|下个?[周月星礼]|这个?[周月星礼]|本[周月]|每[天周月年晚隔个日逢星礼]|月[初底末]|年[初底末]"
    r"|(?:前|再过|最近|过去|未来)[两三四五六七八九十半\d]"
)
_VERBS_TOO: Final = re.compile(r"in (?:may|march)\b|(?:may|march|mar|jun|sep) \d")
_FIGURES: Final = re.compile(
    r"[\d两半一二三四五六七八九十](?:\d{3}(?!\d)|\d?(?::\d\d|[ap]m\b| [ap]m\b|st\b|nd\b|rd\b|th\b|/\d)|\d?[月号点]"
    r"|\d?日|\d?(?:天|周|个?月|年|个?小时|分钟)[前后之以内])"
)
"""All these begin with plain characters, which lets the engine skip what cannot match."""


@dataclass(frozen=True, slots=True)
class PartialDate:
    """A date as a question names it: what it leaves out (None) fits anything."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def covers(self, moment: datetime, zone: str, days_after: int = 0) -> bool:
        """Whether an aware moment lies, on the calendar of ``zone``, in this date or up to ``days_after`` days late."""
        there = moment.astimezone(framed(moment, zone, "none").zone).date()
        return any(
            self.year in {None, day.year} and self.month in {None, day.month} and self.day in {None, day.day}
            for day in (there - timedelta(days=back) for back in range(days_after + 1))
        )


def asked(question: str, *, now: datetime, zone: str) -> tuple[Span, ...]:
    """The intervals a question asks about, in order; a date without a year is the latest one.

    Only a question that speaks of what is to come ("what will I do on Friday?") looks ahead. ``now`` is aware,
    ``zone`` the asker's IANA zone. Raises as :func:`memory.dates.mention.mentions` does.
    """
    folded = fold(question)
    ahead = planned(folded) or _AHEAD.search(folded) is not None
    return tuple(mentions(question, at=now, zone=zone, lean="future" if ahead else "past"))


def partial(question: str) -> tuple[PartialDate, ...]:
    """The days, months and years that a question names by their own names ("May 2", 2024年4月), in order."""
    names = (named(values) for values in constructions(taken_apart(question)))
    return tuple(PartialDate(*name) for name in names if any(piece is not None for piece in name))


def matches(when: Span | PartialDate, moment: datetime, *, zone: str = "UTC", days_after: int = 0) -> bool:
    """Whether an aware moment lies in a span, or one of its occurrences, or in a date on the calendar of ``zone``.

    ``days_after`` lets it be as many days late: people speak of days past.
    """
    if isinstance(when, PartialDate):
        return when.covers(moment, zone, days_after)
    return bool(occurrences(when, moment - timedelta(days=days_after), moment + timedelta(microseconds=1)))


def asks_when(question: str) -> bool:
    """Whether a question asks for a time: "when", 什么时候, 哪天, "how long ago"."""
    return _WHEN.search(fold(question)) is not None


def holds_time(text: str) -> bool:
    """Whether a text holds a time word: the cheap test before :func:`memory.dates.mention.mentions`."""
    folded = fold(text)
    if not _ENGLISH.isdisjoint(_WORD.findall(folded)):
        return True
    others = (_FIGURES, _VERBS_TOO) if folded.isascii() else (_CHINESE, _FIGURES, _VERBS_TOO)
    return any(pattern.search(folded) is not None for pattern in others)
