"""Lines as people chat, labelled before the rules read them, and how a candidate is held against a label.

A label says what must be stored, not in which words: ``[!][subject.]attribute=value`` for a profile,
``[!][subject.]@time~word`` for an event, whose start begins with ``time`` (or whose RRULE does) and whose text has
the word, ``[subject.]=~word`` for a fact; ``|`` parts what is equally right. What a line's ``allow`` names may be
stored or not.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from memory import rules
from memory.model import SELF, Candidate
from memory.script import folded

CASES: Final = Path(__file__).parent / "cases"
ZONE: Final = "Asia/Shanghai"
AT: Final = datetime(2025, 3, 11, 10, 0, tzinfo=ZoneInfo(ZONE))
"""A Tuesday; the labelled lines are said then."""


def lines(name: str) -> list[dict[str, Any]]:
    """Return the labelled lines of one case file."""
    return [json.loads(line) for line in (CASES / name).read_text(encoding="utf-8").splitlines()]


def in_short(candidate: Candidate) -> str:
    """Write a candidate as labels do: "!女儿.allergy=花生", "@2025-03-14T00:00 FREQ=…~text", "=~text"."""
    about = "" if candidate.subject == SELF else f"{candidate.subject}."
    head = "!" * candidate.negates + about
    if candidate.span is not None:
        start = candidate.span.start.astimezone(ZoneInfo(candidate.span.zone)).strftime("%Y-%m-%dT%H:%M")
        return f"{head}@{' '.join(filter(None, (start, candidate.span.rrule)))}~{candidate.text}"
    if candidate.kind == "profile":
        return f"{head}{candidate.attribute}={candidate.value}"
    return f"{head}=~{candidate.text}"


def fits(short: str, label: str) -> bool:
    """Whether a candidate, written in short, is what one label asks for."""
    return any(_fits_one(short, each) for each in label.split("|"))


def _fits_one(short: str, label: str) -> bool:
    if "~" not in label:
        return folded(short) == folded(label)
    (place, _, text), (asked, _, word) = short.partition("~"), label.partition("~")
    if folded(word) not in folded(text or place):
        return False
    head, mark, time = asked.partition("@")
    if not mark:
        return place.startswith(asked)
    found_head, found_mark, found_time = place.partition("@")
    return bool(found_mark) and found_head == head and any(part.startswith(time) for part in found_time.split())


@dataclass
class Tally:
    """What the rules made of one set: right, stored and stated by kind, with the mistakes."""

    right: Counter[str] = field(default_factory=Counter)
    stored: Counter[str] = field(default_factory=Counter)
    stated: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, str]] = field(default_factory=list)
    missed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """Share of what was stored that a label asks for."""
        return self.right.total() / max(1, self.stored.total())

    @property
    def recall(self) -> float:
        """Share of what the labels ask for that was stored."""
        return self.right.total() / max(1, self.stated.total())


def measured(name: str) -> Tally:
    """Read every line of a case file and return the tally."""
    tally = Tally()
    for line in lines(name):
        kind, text = line["kind"], line["text"]
        found = [in_short(each) for each in rules.candidates(text, message_id=7, at=AT, zone=ZONE)]
        for label in line["expect"]:
            tally.stated[kind] += 1
            hit = next((each for each in found if fits(each, label)), None)
            if hit is None:
                tally.missed.append((text, label))
            else:
                found.remove(hit)
                tally.right[kind] += 1
                tally.stored[kind] += 1
        spare = [each for each in found if not any(fits(each, label) for label in line.get("allow", ()))]
        tally.stored[kind] += len(spare)
        tally.wrong += [(text, each) for each in spare]
    return tally
