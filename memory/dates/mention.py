"""Expressions as spans: what a text mentions, and until when it says something holds."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo

from memory.dates.frame import Frame, Lean
from memory.dates.reading import Reading, readings, taken_apart
from memory.model import Span

MOST_MENTIONS: Final = 2000
"""More expressions than any message has; bounds the time a hostile one takes."""
_UNTIL_BEFORE: Final = re.compile(
    r"(?:\b(?:until|till|til|through|thru|up to|(?:(?:be|come|coming|get|getting) )?back"
    r"|return(?:s|ing)?|ends?|ending|expires?)(?: home)?(?: (?:on|by|at))?(?: the)?[ ]+"
    r"|(?:直到|一直到|延到|延期到|延长到|推迟到|推到|改到|截止到?|截至|到|至)[ ]*)$"
)
_UNTIL_AFTER: Final = re.compile(
    r"[ ]*(?:为止|就?才?(?:回来|回国|回家|回去|返回|返程|结束|到期|截止|过期|出院|解封)"
    r"|(?:to )?(?:be |come |get )?back\b)"
)
_BEFORE_BEFORE: Final = re.compile(r"\b(?:before)[ ]+(?:the )?$")
_BEFORE_AFTER: Final = re.compile(r"[ ]*(?:之前|以前|前)(?!后)")
_NEIGHBOURHOOD: Final = 24
"""Characters before an expression in which a word for its end may stand."""


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def framed(at: datetime, zone: str, lean: Lean) -> Frame:
    """A frame; raises ValueError for a naive ``at``, ZoneInfoNotFoundError for an unknown zone."""
    if at.tzinfo is None:
        raise ValueError("a naive time has no place in anybody's calendar: pass an aware one")
    return Frame(at, _zone(zone), lean)


def spanned(text: str, reading: Reading, zone: str) -> Span:
    """A reading as a span that keeps the original words."""
    when, words = reading.when, text[reading.start : reading.end]
    if words.count("(") + words.count("（") > words.count(")") + words.count("）"):
        words = text[reading.start : reading.end + 1]
    return Span(when.start, when.end, when.precision, zone, words)


def mentions(text: str, *, at: datetime, zone: str, lean: Lean = "none") -> list[Span]:
    """Every time expression of a text, in order, up to :data:`MOST_MENTIONS`.

    ``at`` (aware) is when it was said, ``zone`` the speaker's IANA zone, in which days are counted.
    ``lean`` says on which side an expression without a year, or a bare weekday, lies; "none" lets the verbs
    of its clause decide. What recurs and what is vague ("every Friday", 过几天) is no mention.
    Raises ValueError for a naive ``at`` and ZoneInfoNotFoundError for an unknown zone.
    """
    frame = framed(at, zone, lean)
    return [spanned(text, reading, zone) for reading in islice(readings(taken_apart(text), frame), MOST_MENTIONS)]


def until(text: str, *, at: datetime, zone: str) -> datetime | None:
    """The moment (aware UTC) from which what a text says no longer holds, or None where it names no end.

    "until Friday" and 周五回来 hold all Friday, "before Friday" and "until 3pm" only up to it. Arguments and
    errors are those of :func:`mentions`.
    """
    frame, parsed = framed(at, zone, "future"), taken_apart(text)
    found = list(islice(readings(parsed, frame), MOST_MENTIONS))
    for reading in found:
        end = _ending(parsed.folded, reading)
        if end is not None:
            return end
    return next((r.when.end for r in found if r.ranged and r.when.end > at.astimezone(UTC)), None)


def _ending(folded: str, reading: Reading) -> datetime | None:
    before = folded[max(0, reading.start - _NEIGHBOURHOOD) : reading.start]
    if _BEFORE_BEFORE.search(before) or _BEFORE_AFTER.match(folded, reading.end):
        return reading.when.start
    if _UNTIL_BEFORE.search(before) or _UNTIL_AFTER.match(folded, reading.end):
        return reading.when.start if "clock" in reading.values else reading.when.end
    return None
