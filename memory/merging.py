"""What was folded into one because it says the same: shown to its owner, and taken apart again for good."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memory.apart import Apart
from memory.db import Database
from memory.indexes import Indexes
from memory.judge import visible
from memory.model import Account, Chat, Entry
from memory.reconcile import lent
from memory.stores import Stores

FOLDED: Final = ("duplicate", "same")
"""Reasons of a memory that was folded into another: the same words ("duplicate"), or the model's word ("same")."""
MOST: Final = 10
"""Merges that are shown, the newest first."""


@dataclass(frozen=True, slots=True)
class Merge:
    """A memory that was folded into another: ``double`` is the closed row, with its time and reason."""

    double: Entry
    kept: Entry


class Merging:
    """The merges of an owner, and the way back."""

    def __init__(self, db: Database, stores: Stores, indexes: Indexes) -> None:
        self._db = db
        self._stores = stores
        self._indexes = indexes
        self._apart = Apart(db)

    async def recent(self, owner: Account, room: Chat, *, now: datetime) -> list[Merge]:
        """The last merges whose memory still holds at ``now`` and may be shown in ``room``, the newest first."""
        found = [
            merge
            for store in self._stores.entries
            for double in await store.folded(owner, FOLDED)
            if (merge := await self._of(owner, double, now=now)) is not None
            and visible(double.provenance.audience, room)
            and visible(merge.kept.provenance.audience, room)
        ]
        return sorted(found, key=_time, reverse=True)[:MOST]

    async def undo(self, owner: Account, double: int, *, now: datetime) -> Entry | None:
        """Bring a folded memory back as one of its own, never to be folded into that one again.

        The other keeps what was said of it, and gives back what this one lent it. None when it is not the owner's,
        not folded, or when what it was folded into holds no more: then it would be out of date.
        """
        async with self._db.transaction():
            for store in self._stores.entries:
                closed: Entry | None = (await store.get(owner, [double])).get(double)
                if closed is None or closed.provenance.reason not in FOLDED:
                    continue
                merge = await self._of(owner, closed, now=now)
                if merge is None:
                    return None
                kept = next(each for each in self._stores.entries if each.kind == merge.kept.kind)
                if messages := lent(closed, merge.kept):
                    await kept.uncite(owner, merge.kept.id, messages)
                await store.reopen(owner, double)
                await self._apart.add(owner, merge.kept.id, double)
                back: Entry = (await store.get(owner, [double]))[double]
                break
            else:
                return None
        self._indexes.forget(owner)
        self._stores.embeddings.disturbed(owner)
        return back

    async def _of(self, owner: Account, double: Entry, *, now: datetime) -> Merge | None:
        successor, expires = double.provenance.successor, double.provenance.expires_at
        if successor is None or (expires is not None and expires <= now):
            return None
        for store in self._stores.entries:
            kept: Entry | None = (await store.get(owner, [successor])).get(successor)
            if kept is not None and kept.provenance.live(now):
                return Merge(double, kept)
        return None


def _time(merge: Merge) -> tuple[datetime, int]:
    at = merge.double.provenance.retired_at or merge.double.provenance.said_at
    return at, merge.double.id
