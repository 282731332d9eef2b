"""Memories that may be about one thing: which pairs code cannot decide, how a model is asked, what it may answer. Pure.

What code knows forbids verdicts, never the other way round. Two memories that differ in subject, numbers, names, yes
and no, or the time of an event are never "the same"; but such a difference is just what the end of something looks
like ("my girlfriend is called ..." / "we broke up"), so the later of them may still have overtaken the earlier one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args
from zoneinfo import ZoneInfo

from config.prompts import render
from memory.answers import Item
from memory.checks import names, numbers
from memory.model import SELF, Account, Entry, Event, ProfileLine
from memory.nearness import Near
from memory.polarity import contradicts
from memory.sameness import fingerprint, opposed, overlap, shared, undenied
from memory.script import folded, is_han
from memory.verdicts import Weight, covers

Ruling = Literal["same", "different", "supersedes"]

MOST_PAIRS: Final = 12
"""Pairs of one question. The rest stay side by side."""
FEWEST_SHARED: Final = 2
MOSTLY: Final = 0.5
"""Words in common, and their share of the shorter sentence, from which two sentences may be about one thing. Low on
purpose: all that a pair too many costs is a line of the prompt."""
ANOTHER: Final = 0.5
"""Share of common words from which two sentences with numbers of their own tell of two things; of names less will do,
for what is counted changes more often than what it is called."""
_ADDS: Final = re.compile(r"\b(?:also|another|as well)\b|另一|另外|还有")
"""What comes on top takes nothing's place."""
_THEN: Final = re.compile(
    r"那会儿|那时候?|小时候|当年|年轻时"
    r"|\b(?:back then|in those days|when (?:i|we) (?:was|were)|as an? (?:child|kid|student))\b"
)
"""What was so in a time gone by says nothing about now. "used to" and 以前 do: they are not here."""
_SHAPE: Final = {"profile": 0, "event": 1, "fact": 2}
"""Of two memories that say the same the one with more structure stays."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two live memories, by the time they were said."""

    earlier: Entry
    later: Entry


@dataclass(frozen=True, slots=True)
class Query:
    """One request to a model about all pairs of a session; a pair's number is its place, from 1."""

    messages: tuple[Mapping[str, str], ...]
    schema: Mapping[str, Any]


def in_words(one: Entry, other: Entry) -> float:
    """How near two memories are by common words, 0 to 1; 0 unless they share enough to be about one thing."""
    count, share = shared(one.text, other.text)
    return share if count >= FEWEST_SHARED and share >= MOSTLY else 0.0


def undecided(new: Sequence[Entry], known: Iterable[Entry], *, near: Near | None = None) -> list[Pair]:
    """Return the pairs of a new memory and a known one (or another new one) that only meaning can decide.

    All have to be live. They share words or are ``near`` in meaning, and code does not know already that they are
    two (:func:`open_rulings`). At most MOST_PAIRS: the nearest of each new memory first, then the second nearest ones.
    """
    everything = {entry.id: entry for entry in (*known, *new)}
    found: list[tuple[int, float, Pair]] = []
    seen: set[frozenset[int]] = set()
    for one in new:
        others = (other for other in everything.values() if frozenset({one.id, other.id}) not in seen)
        pairs = sorted(_pairs(one, others, near or {}), key=lambda each: -each[0])
        seen.update(frozenset({pair.earlier.id, pair.later.id}) for _, pair in pairs)
        found += [(place, -closeness, pair) for place, (closeness, pair) in enumerate(pairs)]
    return [pair for *_, pair in sorted(found, key=lambda each: each[:2])[:MOST_PAIRS]]


def _pairs(one: Entry, others: Iterable[Entry], near: Near) -> Iterator[tuple[float, Pair]]:
    """Yield the pairs of a memory that are questions, each with how close the two are."""
    for other in others:
        closeness = in_words(one, other) + near.get(frozenset({one.id, other.id}), 0.0)
        if closeness and other.id != one.id:
            earlier, later = sorted((one, other), key=lambda entry: Weight.of(entry).place)
            if open_rulings(earlier, later):
                yield closeness, Pair(earlier, later)


def open_rulings(earlier: Entry, later: Entry) -> frozenset[Ruling]:
    """What a model may rule about two memories besides "different"; nothing where code knows that they are two."""
    if earlier.kind == later.kind and (isinstance(earlier, ProfileLine) or _plainly_decided(earlier, later)):
        return frozenset()
    allowed: list[Ruling] = []
    if _may_be_same(earlier, later):
        allowed.append("same")
    if _may_be_overtaken(earlier, later):
        allowed.append("supersedes")
    return frozenset(allowed)


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
    """What stays and what is closed by a ruling; None where code forbids it or it would end anything sooner."""
    if ruling not in open_rulings(earlier, later):
        return None
    orders = [(later, earlier)]
    if ruling == "same":
        orders = sorted([(earlier, later), (later, earlier)], key=lambda order: _SHAPE[order[0].kind])
    for kept, closed in orders:
        wide = covers(kept.provenance.audience, closed.provenance.audience)
        if wide and Weight.of(kept).no_less(Weight.of(closed)):
            return kept, closed
    return None


def _plainly_decided(one: Entry, other: Entry) -> bool:
    """Whether the gate decides these two by their words: the same ones, or one denies just what the other says."""
    return fingerprint(one.text) == fingerprint(other.text) or opposed(one.text, other.text)


def _may_be_same(one: Entry, other: Entry) -> bool:
    """Whether nothing that code can read tells two memories apart.

    Two statements of one message are two, but for what our rules and a model both made of it, each in its own shape.
    """
    if _of_one_message(one, other) and one.kind == other.kind:
        return False
    if one.subject != other.subject or one.provenance.expires_at != other.provenance.expires_at:
        return False
    if isinstance(one, Event) and isinstance(other, Event) and one.span != other.span:
        return False
    return numbers(one.text) == numbers(other.text) and names(one.text) == names(other.text) and not _denies(one, other)


def _may_be_overtaken(earlier: Entry, later: Entry) -> bool:
    """Whether the earlier memory can be over because of the later one.

    Not what happened (that stays true), not by words of the same message, and not by another one of its kind: of two
    sentences alike in all but their numbers, names or times ("my cat Ash", "my cat Soot") both hold.
    """
    if _of_one_message(earlier, later) or not _speaks_of(earlier, later):
        return False
    if isinstance(earlier, Event):
        over = earlier.span.rrule is None and earlier.span.end <= later.provenance.said_at
        if over or (isinstance(later, Event) and earlier.span != later.span):
            return False
    told = folded(later.text)
    return not (_ADDS.search(told) or _THEN.search(told) or _tells_of_another(earlier, later))


def _of_one_message(one: Entry, other: Entry) -> bool:
    ours, theirs = ({citation.message for citation in entry.provenance.citations} for entry in (one, other))
    return bool(ours & theirs)


def _tells_of_another(one: Entry, other: Entry) -> bool:
    """Whether two sentences that are much alike each have a number, or each a name, that the other has not."""
    if overlap(one.text, other.text) >= ANOTHER and _each_has_its_own(numbers(one.text), numbers(other.text)):
        return True
    return bool(in_words(one, other)) and _each_has_its_own(names(one.text), names(other.text))


def _each_has_its_own(ours: set[str], theirs: set[str]) -> bool:
    return bool(ours - theirs and theirs - ours)


def _speaks_of(one: Entry, other: Entry) -> bool:
    """Whether two memories are about one subject, or one of them names whom the other is about."""
    if one.subject == other.subject:
        return True
    return any(
        _mentions(there.text, word)
        for here, there in ((one, other), (other, one))
        for word in names(here.text) | ({folded(here.subject)} - {SELF})
    )


def _mentions(text: str, word: str) -> bool:
    if not word or is_han(word[0]):
        return bool(word) and word in folded(text)
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", folded(text)) is not None


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
