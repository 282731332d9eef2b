"""What the recall index knows of rows, in arrays: made of their texts once, then kept.

A segment holds names, but no sentence, and can always be made again. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import blake2b
from importlib import resources
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memory.clock import EPOCH
from memory.dates import holds_time
from memory.lexicon import asks, holds_name, only_asks
from memory.model import SELF, Kind, Span, Unit
from memory.postings import Packed, packed
from memory.rules import is_small_talk
from memory.vectors import key_of
from memory.words import terms

KINDS: Final[tuple[Kind, ...]] = ("message", "profile", "event", "fact")
MESSAGE: Final = KINDS.index("message")
EVENT: Final = KINDS.index("event")

NOWHERE: Final = -1
"""Number that stands for nothing: no row, no session, no vector, no person."""
NEVER: Final = float("inf")
"""Expiry of what does not expire, seconds since 1970."""

COLUMNS: Final = np.dtype(
    [
        ("id", "<i8"),
        ("at", "<f8"),
        ("expires", "<f8"),
        ("key", "<u8"),
        ("talk", "<i8"),
        ("cited", "<i8"),
        ("audience", "<i4"),
        ("person", "<i4"),
        ("length", "<f4"),
        ("confidence", "<f4"),
        ("importance", "<f4"),
        ("kind", "i1"),
        ("bot", "?"),
        ("asks", "?"),
        ("idle", "?"),
        ("timed", "?"),
        ("names", "?"),
    ]
)
"""``talk`` is the session of a journal line, ``cited`` the first line a memory cites, ``key`` finds its vector,
``person`` is a place in :attr:`Segment.people`."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows in order of id: their columns, the terms they hold, who speaks or is spoken of, and when events are."""

    rows: NDArray[np.void]
    terms: Packed
    people: tuple[str, ...]
    speakers: frozenset[str]
    spans: dict[int, Span]


def segment(units: Sequence[Unit]) -> Segment:
    """Read units, in order of id."""
    people: dict[str, int] = {}
    known = frozenset(_whose(unit) for unit in units)
    found = [terms(f"{unit.speaker}: {unit.text}" if unit.kind == "message" else unit.text) for unit in units]
    rows = np.array([_row(unit, len(held), people, known) for unit, held in zip(units, found, strict=True)], COLUMNS)
    return Segment(
        rows,
        packed(found),
        tuple(people),
        frozenset(unit.speaker for unit in units if unit.kind == "message"),
        {place: unit.span for place, unit in enumerate(units) if unit.span is not None},
    )


def _whose(unit: Unit) -> str:
    """Who speaks a line, or whom a memory is about."""
    return unit.speaker if unit.kind == "message" else unit.subject


def _row(unit: Unit, length: int, people: dict[str, int], known: frozenset[str]) -> tuple[Any, ...]:
    message = unit.kind == "message"
    name = _whose(unit)
    return (
        unit.id,
        unit.at.timestamp(),
        unit.expires_at.timestamp() if unit.expires_at else NEVER,
        key_of(unit.text_hash),
        unit.session if message else NOWHERE,
        unit.cites[0] if unit.cites and not message else NOWHERE,
        unit.audience,
        NOWHERE if name in ("", SELF) else people.setdefault(name, len(people)),
        length,
        unit.confidence,
        unit.importance,
        KINDS.index(unit.kind),
        unit.role == "bot",
        message and asks(unit.text),
        message and tells_nothing(unit.text, known),
        unit.span is not None or holds_time(unit.text),
        holds_name(unit.text, known),
    )


def tells_nothing(text: str, names: Iterable[str]) -> bool:
    """Whether a line but asks or is small talk, be it with the ``names`` of those it is between."""
    if only_asks(text) or is_small_talk(text):
        return True
    called = [name for name in names if name and name in text]
    for name in called:
        text = text.replace(name, " ")
    # A name alone may be an answer.
    return bool(called) and any(map(str.isalnum, text)) and is_small_talk(text)


@dataclass(frozen=True, slots=True)
class Frozen:
    """A segment as bytes, by column of its table."""

    rows: bytes
    keys: bytes
    starts: bytes
    postings: bytes
    people: str


def frozen(held: Segment) -> Frozen:
    """A segment as it is stored."""
    spans = {place: _span_values(span) for place, span in held.spans.items()}
    names = {"people": held.people, "speakers": sorted(held.speakers), "spans": spans}
    return Frozen(
        held.rows.tobytes(),
        held.terms.keys.astype("<u8").tobytes(),
        held.terms.starts.astype("<u4").tobytes(),
        held.terms.postings.astype("<u4").tobytes(),
        json.dumps(names, ensure_ascii=False),
    )


def thawed(stored: Frozen) -> Segment:
    """A segment as it was; its arrays are the stored bytes themselves."""
    names = json.loads(stored.people)
    return Segment(
        np.frombuffer(stored.rows, COLUMNS),
        Packed(
            np.frombuffer(stored.keys, "<u8"),
            np.frombuffer(stored.starts, "<u4"),
            np.frombuffer(stored.postings, "<u4"),
        ),
        tuple(names["people"]),
        frozenset(names["speakers"]),
        {int(place): _span(values) for place, values in names["spans"].items()},
    )


def _span_values(span: Span) -> list[Any]:
    return [span.start.isoformat(), span.end.isoformat(), span.precision, span.zone, "", span.rrule]


def _span(values: Sequence[Any]) -> Span:
    start, end, *rest = values
    return Span(datetime.fromisoformat(start), datetime.fromisoformat(end), *rest)


@cache
def reading() -> bytes:
    """What tells segments of two programs apart: a hash of what the shipped texts are read as.

    Rules of words, questions and small talk that read any of them in another way make every stored segment stale.
    """
    files = sorted(resources.files("memory").joinpath("probes").iterdir(), key=lambda file: file.name)
    texts = [line for file in files if file.name.endswith(".txt") for line in file.read_text("utf-8").splitlines()]
    units = [
        Unit(number, "message", text, EPOCH, 0, bytes(16), speaker="x") for number, text in enumerate(texts) if text
    ]
    stored = frozen(segment(units))
    whole = (stored.rows, stored.keys, stored.postings, repr(COLUMNS).encode())
    return blake2b(b"".join(whole), digest_size=8).digest()
