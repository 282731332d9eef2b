"""How long a memory holds: to the end that the words name, else as long as its kind usually does. All pure.

Only what passes by nature gets an end of its own accord: a journey, an illness, a plan, a mood. The end is looked
at whenever a memory is read, so nothing has to run for it to count; what is over stays in the history, and the
line it was said in is still found by its time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from memory.dates import mentions, until
from memory.model import Candidate, Citation, Span
from memory.script import folded


class Passing(StrEnum):
    """What passes by nature."""

    JOURNEY = "journey"
    ILLNESS = "illness"
    PLAN = "plan"
    MOOD = "mood"


LASTS: Final[Mapping[Passing, timedelta]] = {
    Passing.JOURNEY: timedelta(days=14),
    Passing.ILLNESS: timedelta(days=14),
    Passing.PLAN: timedelta(days=90),
    Passing.MOOD: timedelta(days=2),
}
"""How long each holds when nobody said until when. A holiday or a business trip is seldom longer than two weeks, and
"are you still in Tokyo?" a month later is worse than not to know; a cold lasts up to ten days, flu up to two weeks;
a plan without a date is carried out or dropped within a season; a mood does not outlive the day after. What is meant
to last longer is said again, and lives again. No settings: nobody would know better what to put there."""

CHANGEABLE: Final = frozenset({"home", "job", "diet", "health", "style", "timezone"})
"""Attributes whose value can be one for a time; nobody is called so, or born so, until Friday."""

_STRETCHES: Final = frozenset({"week", "month", "season", "year"})

_PASSING: Final[Mapping[Passing, re.Pattern[str]]] = {
    Passing.JOURNEY: re.compile(
        r"出差|旅[行游](?![社团业箱家])|度假(?!村)|在外地|在国外玩|回老家(?:了|过)"
        r"|\bon (?:a |an )?(?:\w+ )?(?:trip|holiday|vacation|leave)\b|\btravell?ing\b"
        r"|\bout of (?:town|(?:the )?office)\b|\bvisiting\b"
    ),
    Passing.ILLNESS: re.compile(
        r"感冒|发烧|发热|咳嗽|生病|流感|拉肚子|嗓子[疼痛]|头[疼痛]|牙[疼痛]|扭伤|崴了?脚|住院|隔离"
        r"|\b(?:have|has|having|got|caught) (?:a |an |the )?(?:\w+ )?(?:cold|flu|fever|cough|headache|migraine|bug)\b"
        r"|\b(?:am|is|are|feel|feeling|been|'m|off|called in) (?:sick|ill|unwell)\b|\bsore throat\b"
        r"|\b(?:am|is|are|'m|'s) in (?:the )?hospital\b|\bsprained\b"
    ),
    Passing.PLAN: re.compile(
        r"打算|计划(?!生育|经济|书)|准备[去买学搬换考做参]|想去|要去|\bplan(?:s|ning)? (?:to|on)\b"
        r"|\b(?:am|is|are|'m|'s) going to\b|\bintends? to\b|\bthinking (?:of|about) \w+ing\b|\bsaving (?:up )?for\b"
    ),
    Passing.MOOD: re.compile(
        r"心情|难过|郁闷|烦躁|(?:很|好|太|有点|非常)(?:累|困|烦|开心|焦虑|紧张|沮丧)|压力(?:很|好|太)?大"
        r"|\bin a (?:\w+ )?mood\b|\b(?:am|is|'m|feel|feels|feeling) (?:\w+ )?(?:sad|down|tired|stressed|exhausted"
        r"|anxious|nervous|upset|happy|excited|angry|lonely|bored)\b"
    ),
}
# What comes again and again, what one likes, and what is over does not pass.
_LASTING: Final = re.compile(
    r"经常|常常|总是|老是|每[天周月年次个到逢]|一直|容易|从小|喜欢|爱[去好]|讨厌|害怕|怕|擅长|以前|曾经|[差行游]过|恐惧|慢性|职业|工作是"
    r"|\b(?:often|always|usually|every|sometimes|regularly|frequently|whenever|likes?|loves?|enjoys?|hates?|dislikes?"
    r"|prefers?|fears?|fond|used to|chronic|since|years?|was|were|had|never|cannot|not|allergic)\b|n't\b"
)


def passing(text: str) -> Passing | None:
    """Return what a statement tells of that passes by nature, or None."""
    plain = folded(text)
    if _LASTING.search(plain):
        return None
    return next((kind for kind, words in _PASSING.items() if words.search(plain)), None)


def end(candidate: Candidate, said: Iterable[Citation], zone: str) -> datetime | None:
    """Return until when (aware UTC) a candidate holds, None for good.

    ``said`` are the whole messages it cites, as citations. What the words of a passing thing name counts wherever
    it stands in them (在东京出差，周五回来), or the end of the week or month it is said of
    (这周都在出差); for anything else the end has to stand in its own words and be a day, for a shop is open until ten
    every evening. What the owner asked to keep has no end but one that was said; what a model noted, or our rules
    read in passing (:func:`passes`), gets that of its kind. ``zone`` is the owner's IANA zone.
    """
    if candidate.expires_at is not None or candidate.kind == "event" or candidate.negates:
        return candidate.expires_at
    kind = passing(candidate.text) if candidate.kind == "fact" else None
    if kind is None and candidate.kind == "profile" and candidate.attribute not in CHANGEABLE:
        return None
    if kind is not None:
        named = _named(said, zone)
        if candidate.source != "user":
            return max(named, default=max(c.at for c in candidate.citations) + LASTS[kind])
        return max(named, default=None)
    if _LASTING.search(folded(" ".join(citation.quote for citation in candidate.citations))):
        return None
    return max((end for end in _ends(candidate.citations, zone) if _whole_day(end, zone)), default=None)


def passes(text: str, said: Citation, zone: str) -> datetime | None:
    """Return until when (aware UTC) what a rule read in passing holds: as :func:`end` does for what a model noted.

    ``said`` is the whole message, ``zone`` its author's IANA zone. None for what does not pass by nature.
    """
    kind = passing(text)
    return None if kind is None else max(_named([said], zone), default=said.at + LASTS[kind])


def _named(said: Iterable[Citation], zone: str) -> list[datetime]:
    """The ends that words name for what passes by nature: those said as ends, else that of the time they are in."""
    said = list(said)
    return _ends(said, zone) or [span.end for citation in said for span in _present(citation, zone)]


def _ends(said: Iterable[Citation], zone: str) -> list[datetime]:
    """The ends that words name, each after it was said: "until 2019" is no end of anything that holds."""
    ends = ((until(citation.quote, at=citation.at, zone=zone), citation.at) for citation in said)
    return [end for end, at in ends if end is not None and end > at]


def _present(said: Citation, zone: str) -> list[Span]:
    """The weeks, months and years named that are going on (这周都在出差): what passes is over with them.

    A day is not: who has a cold today has it tomorrow.
    """
    spans = mentions(said.quote, at=said.at, zone=zone)
    return [span for span in spans if span.precision in _STRETCHES and span.start <= said.at < span.end]


def _whole_day(end: datetime, zone: str) -> bool:
    local = end.astimezone(ZoneInfo(zone))
    return not (local.hour or local.minute)
