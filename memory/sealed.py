"""Store of sealed segments: an owner's rows as the recall index wants them, so that a restart reads no text again.

A segment stands for all visible rows of a range of numbers. Whatever changes or removes one of them drops it in the
same transaction (triggers of the table see to that), and it is made again when there is time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np

from memory.db import Database
from memory.model import Account
from memory.offloop import off_loop
from memory.segments import COLUMNS, Frozen, Segment, reading, thawed

ROWS_TO_TELL: Final = 6_000
"""What it costs to work out how this program reads texts, once, in the rows that off_loop counts by."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A stored segment and the row numbers it stands for, both ends included."""

    first: int
    last: int
    segment: Segment


class Segments:
    """Segments in their owner's range."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._reading: bytes | None = None

    async def all(self, owner: Account) -> list[Sealed]:
        """The owner's segments, in order; none that another version of the program read in its own way."""
        rows = await self._db.fetch(
            "SELECT first, id, rows, keys, starts, postings, names FROM segments"
            " WHERE id BETWEEN ? AND ? AND reading = ? ORDER BY id",
            (owner.first_id, owner.last_id, await self._told()),
        )
        return [Sealed(first, last, thawed(Frozen(*held))) for first, last, *held in map(tuple, rows)]

    async def covered(self, owner: Account) -> list[tuple[int, int]]:
        """The ranges of row numbers that segments stand for, in order."""
        rows = await self._db.fetch(
            "SELECT first, id FROM segments WHERE id BETWEEN ? AND ? AND reading = ? ORDER BY id",
            (owner.first_id, owner.last_id, await self._told()),
        )
        return [(row["first"], row["id"]) for row in rows]

    async def add(self, owner: Account, first: int, last: int, stored: Frozen) -> None:
        """Keep a segment for a range; what stood for any part of it goes. Needs the transaction that read the rows."""
        if not self._db.inside or not owner.owns(first) or not owner.owns(last):
            raise ValueError("a segment is kept in the transaction that read its owner's rows")
        await self._db.execute(
            "DELETE FROM segments WHERE id BETWEEN ? AND ? AND id >= ? AND first <= ?",
            (owner.first_id, owner.last_id, first, last),
        )
        await self._db.execute(
            "INSERT INTO segments (first, id, reading, rows, keys, starts, postings, names)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (first, last, await self._told(), *astuple(stored)),
        )

    async def _told(self) -> bytes:
        """How this program reads texts; worked out once."""
        if self._reading is None:
            self._reading = await off_loop(reading, size=ROWS_TO_TELL)
        return self._reading

    async def holding(self, owner: Account, ids: Iterable[int]) -> bool:
        """Whether any segment still holds one of these rows, be it of another version."""
        rows = await self._db.fetch(
            "SELECT rows FROM segments WHERE id BETWEEN ? AND ?", (owner.first_id, owner.last_id)
        )
        wanted: Sequence[int] = list(ids)
        return any(bool(np.isin(np.frombuffer(row["rows"], COLUMNS)["id"], wanted).any()) for row in rows)
