"""Near duplicates that code cannot decide: which pairs they are, how a model is asked, what its answer means. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args
from zoneinfo import ZoneInfo

from config.prompts import render
from memory.answers import Item
from memory.checks import names, numbers
from memory.model import Account, Entry, Event, Fact
from memory.polarity import contradicts
from memory.sameness import fingerprint, opposed, shared, undenied
from memory.verdicts import Weight, covers

Ruling = Literal["same", "different", "supersedes"]
Alike = Callable[[Entry, Entry], bool]

MOST_PAIRS: Final = 12
"""Pairs of one question; those with most words in common first. The rest stay side by side."""
FEWEST_SHARED: Final = 2
MOSTLY: Final = 0.5
"""Words in common, and their share of the shorter sentence, from which two sentences may be about one thing. Low on
purpose: all that a pair too many costs is a line of the prompt."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two live memories of one kind and subject, by the time they were said."""

    earlier: Entry
    later: Entry


@dataclass(frozen=True, slots=True)
class Query:
    """One request to a model about all pairs of a session; a pair's number is its place, from 1."""

    messages: tuple[Mapping[str, str], ...]
    schema: Mapping[str, Any]


def related(one: Entry, other: Entry) -> bool:
    """Whether two memories share enough words to be about one thing."""
    count, share = shared(one.text, other.text)
    return count >= FEWEST_SHARED and share >= MOSTLY


def undecided(new: Sequence[Entry], known: Iterable[Entry], *, alike: Alike = related) -> list[Pair]:
    """Return the pairs of a new memory and a known one (or another new one) that only meaning can decide.

    All have to be live. A difference in subject, numbers, names or polarity, in the time of an event, or two
    statements of one message, is decided already: they are two. ``alike`` tells what is near: by default common
    words; a caller with vectors may pass its own.
    """
    found: dict[frozenset[int], Pair] = {}
    everything = {entry.id: entry for entry in (*known, *new)}
    for one in new:
        for other in everything.values():
            if one.id != other.id and _comparable(one, other) and alike(one, other):
                earlier, later = sorted((one, other), key=lambda entry: Weight.of(entry).place)
                found[frozenset({one.id, other.id})] = Pair(earlier, later)
    ranked = sorted(found.values(), key=lambda pair: -shared(pair.earlier.text, pair.later.text)[1])
    return ranked[:MOST_PAIRS]


def query(owner: Account, pairs: Sequence[Pair], language: str) -> Query:
    """Return the request about these pairs, in the language of a BCP 47 tag. Raises ValueError for no pairs."""
    if not pairs:
        raise ValueError("there is nothing to ask about")
    lines = [
        f"[{number}] A ({_day(owner, pair.earlier)}): {_line(pair.earlier)}\n"
        f"[{number}] B ({_day(owner, pair.later)}): {_line(pair.later)}"
        for number, pair in enumerate(pairs, start=1)
    ]
    item = {
        "type": "object",
        "properties": {
            "pair": {"type": "integer", "enum": list(range(1, len(pairs) + 1))},
            "verdict": {"type": "string", "enum": list(get_args(Ruling))},
        },
        "required": ["pair", "verdict"],
        "additionalProperties": False,
    }
    schema = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": item}},
        "required": ["items"],
        "additionalProperties": False,
    }
    system = {"role": "system", "content": render("reconcile", language)}
    return Query((system, {"role": "user", "content": "\n\n".join(lines)}), schema)


def rulings(items: Iterable[Item], pairs: Sequence[Pair]) -> list[tuple[Pair, Ruling]]:
    """Return what was ruled about which pair; a pair without a clear ruling, or with two, is "different"."""
    ruled: dict[int, set[str]] = {}
    for item in items:
        number = _number(item.get("pair"))
        if number is not None and 1 <= number <= len(pairs):
            ruled.setdefault(number, set()).add(str(item.get("verdict")).strip().lower())
    return [(pair, _ruling(ruled.get(number, set()))) for number, pair in enumerate(pairs, start=1)]


def roles(earlier: Entry, later: Entry, ruling: Ruling) -> tuple[Entry, Entry] | None:
    """What stays and what is closed by a ruling; None where that would end anything sooner, or anywhere."""
    orders: list[tuple[Entry, Entry]] = []
    if ruling == "same" and earlier.provenance.expires_at == later.provenance.expires_at:
        orders = [(earlier, later), (later, earlier)]
    elif ruling == "supersedes":
        orders = [(later, earlier)]
    for kept, closed in orders:
        wide = covers(kept.provenance.audience, closed.provenance.audience)
        if wide and Weight.of(kept).no_less(Weight.of(closed)):
            return kept, closed
    return None


def _comparable(one: Entry, other: Entry) -> bool:
    if one.kind != other.kind or one.subject != other.subject or not isinstance(one, Event | Fact):
        return False
    if isinstance(one, Event) and isinstance(other, Event) and one.span != other.span:
        return False
    said = [{citation.message for citation in entry.provenance.citations} for entry in (one, other)]
    if said[0] & said[1] or fingerprint(one.text) == fingerprint(other.text):
        return False
    return numbers(one.text) == numbers(other.text) and names(one.text) == names(other.text) and not _denies(one, other)


def _denies(one: Entry, other: Entry) -> bool:
    if opposed(one.text, other.text) or contradicts(one.text, other.text):
        return True
    denials = [len(fingerprint(entry.text)) - len(undenied(entry.text)) for entry in (one, other)]
    return denials[0] % 2 != denials[1] % 2


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return int(value)
    except (ValueError, OverflowError):
        return None


def _ruling(said: set[str]) -> Ruling:
    (verdict, *more) = said or {""}
    return cast("Ruling", verdict) if verdict in get_args(Ruling) and not more else "different"


def _day(owner: Account, entry: Entry) -> str:
    return f"{entry.provenance.said_at.astimezone(ZoneInfo(owner.zone)):%Y-%m-%d}"


def _line(entry: Entry) -> str:
    return " ".join(entry.text.split())
