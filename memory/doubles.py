"""Memories that say the same in all that code compares: which of them are one. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence

from memory import slots
from memory.model import EVERYWHERE, PRIVATE, Entry, Event, ProfileLine
from memory.sameness import fingerprint
from memory.verdicts import covers


def doubles(
    entries: Sequence[Entry], apart: Collection[tuple[int, int]] = frozenset()
) -> Iterator[tuple[Entry, Entry]]:
    """Yield (kept, double) for entries that say the same, hold as long and may be used as widely.

    Pairs of ids in ``apart`` are kept as two.
    """
    alike: dict[Hashable, list[Entry]] = defaultdict(list)
    for entry in entries:
        alike[_identity(entry)].append(entry)
    for group in alike.values():
        group.sort(key=lambda entry: (_narrowness(entry.provenance.audience), entry.id))
        kept: list[Entry] = []
        for entry in group:
            wide = next((k for k in kept if _takes(k, entry) and (k.id, entry.id) not in apart), None)
            if wide is None:
                kept.append(entry)
            else:
                yield wide, entry


def _takes(kept: Entry, double: Entry) -> bool:
    return covers(kept.provenance.audience, double.provenance.audience)


def _identity(entry: Entry) -> Hashable:
    shared = (entry.subject, entry.provenance.expires_at)
    if isinstance(entry, ProfileLine):
        return (*shared, entry.attribute, slots.key(entry.value))
    if isinstance(entry, Event):
        when = entry.span
        return (*shared, fingerprint(entry.text), when.start, when.end, when.rrule)
    return (*shared, fingerprint(entry.text))


def _narrowness(audience: int) -> int:
    return {EVERYWHERE: 0, PRIVATE: 2}.get(audience, 1)
