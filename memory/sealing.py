"""Sealing: what recall needs of old rows is made ready while nobody waits, so that a restart costs next to nothing."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from memory.db import Database
from memory.model import Account
from memory.offloop import off_loop
from memory.ports import Vector
from memory.refreshing import read_units
from memory.segments import frozen, segment
from memory.stores import Stores

SEGMENT_IDS: Final = 2_048
"""Row numbers a segment stands for; about half of them are texts, which take 0.1 s to read in a thread."""
LEAST_IDS: Final = 64
"""Row numbers behind the last segment from which they are sealed; until then they are few enough to be read."""
_ROWS_A_TEXT: Final = 20
"""What it costs to read a text, in the rows that :func:`memory.offloop.off_loop` counts by."""


class Sealing:
    """Makes segments and pages; each in a transaction of its own, so that writers wait for a moment only."""

    def __init__(self, db: Database, stores: Stores) -> None:
        self._db = db
        self._stores = stores

    async def seal(self, owner: Account, centre: Vector | None) -> int:
        """Seal what has come together; returns how many segments and vectors. ``centre`` None leaves vectors alone."""
        made = 0
        newest, covered = await self._stores.journal.newest(owner), await self._stores.segments.covered(owner)
        for first, last in _unsealed(covered, owner.first_id, newest):
            made += await self._segment(owner, first, last)
        if centre is not None and self._stores.embeddings.model is not None:
            made += await self._stores.embeddings.seal(owner, centre)
        return made

    async def _segment(self, owner: Account, first: int, last: int) -> bool:
        """Seal one range, smaller segments at its beginning included, unless somebody has meanwhile."""
        async with self._db.transaction():
            covered = await self._stores.segments.covered(owner)
            if any(start <= last and end >= first and not first <= start <= end < last for start, end in covered):
                return False
            units = await read_units(self._stores, owner, after=first - 1, upto=last)
            units.sort(key=lambda unit: unit.id)
            made = await off_loop(lambda: frozen(segment(units)), size=len(units) * _ROWS_A_TEXT)
            await self._stores.segments.add(owner, first, last, made)
        return True


def _unsealed(covered: list[tuple[int, int]], lowest: int, newest: int) -> list[tuple[int, int]]:
    """The ranges that want a segment: every gap between two, and what has come together behind the last.

    That is sealed together with the segments before it that are no larger, so that few are small, and no row is sealed
    more often than the size of a segment doubles.
    """
    ends = [(lowest - 1, lowest - 1), *covered, (newest + 1, newest + 1)]
    gaps = [(before + 1, after - 1) for (_, before), (after, _) in pairwise(ends)]
    tail = gaps.pop()
    if tail[1] - tail[0] >= LEAST_IDS:
        first, last = tail
        for start, end in reversed(covered):
            if end != first - 1 or end - start > last - first or last - start >= SEGMENT_IDS:
                break
            first = start
        gaps.append((first, last))
    return [
        (first, min(first + SEGMENT_IDS - 1, stop))
        for start, stop in gaps
        for first in range(start, stop + 1, SEGMENT_IDS)
    ]
