"""The recalled block: what memory puts in front of the model, as data that cannot pass for anything else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from config.prompts import render
from memory.model import SELF, Account, Recalled, Recollection, Span

MARKS: Final = frozenset({"day", "on", "perhaps", "outdated", "part"})
"""What the heading can explain: what a day leaves out, an event's own, what is unsure, over, or only a part."""
_YEAR: Final = len("2026-")
_as_json: Final = json.JSONEncoder(ensure_ascii=False).encode
_BREAKERS = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>{}&\u2028\u2029\u0085"}


def block(found: Recollection, owner: Account) -> str:
    """The recalled memories as notes for the model, in the owner's language and time; "" when there are none.

    One memory a line. Its words are one JSON string in which no delimiter can stand (case D09). The heading
    explains the marks that are there, and no other.
    """
    if not found.units:
        return ""
    pairs = list(zip(found.units, (None, *found.units), strict=False))
    marks = {mark for unit, before in pairs for mark in _explained(unit, owner, before)}
    lines = [line(unit, owner, before=before) for unit, before in pairs]
    return render("recalled", owner.language, lines=lines, marks=marks)


def frame(owner: Account) -> str:
    """The block without any memory: the most it costs before the first line."""
    return _frame(owner.language)


@lru_cache(maxsize=16)
def _frame(language: str) -> str:
    return render("recalled", language, lines=[], marks=MARKS)


def line(unit: Recalled, owner: Account, *, before: Recalled | None = None) -> str:
    """One memory as it stands in the block: day, what it is, whom it is about or who said it, its words quoted.

    A day leaves out what it shares with the line above; ``before`` is the memory there, None for the first one.
    What was said carries no kind, and no speaker when it was the owner.
    """
    about = "" if unit.subject == SELF else bare(unit.subject)
    since = "" if unit.outdated is None else f"outdated since {local_date(unit.outdated, owner)}"
    on = "" if unit.when is None else day_of(unit.when, owner)
    extent = "" if unit.extent == "whole" else unit.extent
    unsure = "perhaps" if unit.band == "perhaps" else ""
    kind = "" if unit.kind == "message" else unit.kind
    marked = ", ".join(mark for mark in (kind, on, about, unsure, since, extent) if mark)
    speaker = "" if unit.speaker in {"", owner.name} else bare(unit.speaker)
    parts = [_day(unit, before, owner), marked and f"({marked})", speaker and f"{speaker}:", quoted(unit.text)]
    return " ".join(part for part in parts if part)


def _day(unit: Recalled, before: Recalled | None, owner: Account) -> str:
    """The day of a memory, without what it shares with the one above: "2026-03-02", then "03-05", then nothing."""
    day = local_date(unit.at, owner)
    above = "" if before is None else local_date(before.at, owner)
    if day == above:
        return ""
    return day[_YEAR:] if day[:_YEAR] == above[:_YEAR] else day


def _explained(unit: Recalled, owner: Account, before: Recalled | None) -> Iterator[str]:
    """What the heading has to explain for the line of a memory, as the prompt names it."""
    if _day(unit, before, owner) != local_date(unit.at, owner):
        yield "day"
    if unit.when is not None and day_of(unit.when, owner):
        yield "on"
    if unit.band == "perhaps":
        yield "perhaps"
    if unit.outdated is not None:
        yield "outdated"
    if unit.extent != "whole":
        yield "part"


def day_of(when: Span, owner: Account) -> str:
    """When an event is, as exactly as is known; "" for what recurs, whose words say it."""
    if when.rrule is not None:
        return ""
    zone = ZoneInfo(owner.zone)
    start, last = when.start.astimezone(zone), (when.end - timedelta(microseconds=1)).astimezone(zone)
    if when.precision in ("minute", "hour"):
        return f"on {start:%Y-%m-%d %H:%M}"
    return f"on {start:%Y-%m-%d}" if start.date() == last.date() else f"from {start:%Y-%m-%d} to {last:%Y-%m-%d}"


def quoted(text: str) -> str:
    """A text as one JSON string on one line, without any sign that could close what it stands in."""
    return _as_json(text).encode("utf-8", "replace").decode().translate(_BREAKERS)


def bare(name: str) -> str:
    """A name made as harmless as a quoted text, without the quotes around it."""
    return quoted(name)[1:-1]


def local_date(at: datetime, owner: Account) -> str:
    """The day of a moment in the owner's zone, ISO."""
    return _iso_day(at, owner.zone)


@lru_cache(maxsize=1_024)
def _iso_day(at: datetime, zone: str) -> str:
    return at.astimezone(ZoneInfo(zone)).date().isoformat()
