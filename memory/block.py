"""The recalled block: what memory puts in front of the model, as data that cannot pass for anything else."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from config.prompts import render
from memory.model import SELF, Account, Recalled, Recollection, Span

_BREAKERS = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>{}&\u2028\u2029\u0085"}


def block(found: Recollection, owner: Account) -> str:
    """The recalled memories as notes for the model, in the owner's language and time; "" when there are none.

    One memory a line. Its words are one JSON string in which no delimiter can stand (case D09).
    """
    if not found.units:
        return ""
    short = any(unit.extent != "whole" for unit in found.units)
    return render("recalled", owner.language, lines=[line(unit, owner) for unit in found.units], short=short)


def frame(owner: Account) -> str:
    """The block without any memory: the most it costs before the first line."""
    return render("recalled", owner.language, lines=[], short=True)


def line(unit: Recalled, owner: Account) -> str:
    """One memory as it stands in the block: day, what it is, whom it is about or who said it, its words quoted.

    What was said carries no kind, and no speaker when it was the owner.
    """
    about = "" if unit.subject == SELF else bare(unit.subject)
    since = "" if unit.outdated is None else f"outdated since {local_date(unit.outdated, owner)}"
    on = "" if unit.when is None else day_of(unit.when, owner)
    extent = "" if unit.extent == "whole" else unit.extent
    unsure = "perhaps" if unit.band == "perhaps" else ""
    marks = ["" if unit.kind == "message" else unit.kind, on, about, unsure, since, extent]
    marked = ", ".join(mark for mark in marks if mark)
    speaker = "" if unit.speaker in {"", owner.name} else bare(unit.speaker)
    parts = [local_date(unit.at, owner), marked and f"({marked})", speaker and f"{speaker}:", quoted(unit.text)]
    return " ".join(part for part in parts if part)


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
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "replace").decode().translate(_BREAKERS)


def bare(name: str) -> str:
    """A name made as harmless as a quoted text, without the quotes around it."""
    return quoted(name)[1:-1]


def local_date(at: datetime, owner: Account) -> str:
    """The day of a moment in the owner's zone, ISO."""
    return at.astimezone(ZoneInfo(owner.zone)).date().isoformat()
