"""Open questions: where an unsure statement stands against a sure one, until the person is asked, once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memory import slots
from memory.model import Account, Entry, ProfileLine
from memory.sameness import undenied
from memory.stores import EntryStores

Holds = Literal["new", "both", "old"]
"""What somebody says of a doubt: the newer word took the place of the older one, both hold, or the older one stays."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """``unsure`` was said later than ``sure`` and may have taken its place."""

    sure: Entry
    unsure: Entry


def doubts(history: Sequence[Entry], *, now: datetime) -> list[Doubt]:
    """Return what may be asked about, oldest doubt first, at most one a place and none that was asked about before.

    ``history`` are the owner's memories, closed ones included: they tell what was asked.
    """
    known = {entry.id: entry for entry in history}
    places = {_place(entry) for entry in history if entry.provenance.asked_at is not None}
    found: list[Doubt] = []
    for unsure in sorted(history, key=lambda entry: (entry.provenance.said_at, entry.id)):
        sure = known.get(unsure.provenance.doubts or 0)
        if sure is None or not (unsure.provenance.live(now) and sure.provenance.live(now)):
            continue
        if _place(unsure) not in places:
            places.add(_place(unsure))
            found.append(Doubt(sure, unsure))
    return found


class Doubts:
    """The doubts of an owner, and which of them were asked about; both live in the stores and survive restarts."""

    def __init__(self, stores: EntryStores) -> None:
        self._stores = stores

    async def open(self, owner: Account, *, now: datetime) -> list[Doubt]:
        """What the owner may be asked about; see :func:`doubts`."""
        return doubts([entry for store in self._stores.entries for entry in await store.history(owner)], now=now)

    async def asked(self, owner: Account, doubt: Doubt, *, at: datetime) -> bool:
        """Note that the owner was asked (before the question goes out, so that a crash asks never rather than twice).

        False when that was noted before: then somebody else asks.
        """
        (store,) = (store for store in self._stores.entries if store.kind == doubt.unsure.kind)
        return await store.asked(owner, doubt.unsure.id, at=at)


def _place(entry: Entry) -> Hashable:
    """What two statements that contradict each other share."""
    if not isinstance(entry, ProfileLine):
        return entry.kind, entry.subject, undenied(entry.text)
    slot = slots.slot(entry.attribute)
    attributes = frozenset({entry.attribute, slot.opposite or entry.attribute})
    return entry.subject, attributes, slots.key(entry.value) if slot.multiple else ""
