"""Store of memories that their owner wants as two, though they say the same: row numbers only."""

from __future__ import annotations

from collections.abc import Collection

from memory.db import Database
from memory.model import Account

Pair = tuple[int, int]


class Apart:
    """Pairs of memories that are never folded into one again. They go with either of the two."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def add(self, owner: Account, kept: int, double: int) -> None:
        """Keep two of the owner's memories apart from now on."""
        if not (owner.owns(kept) and owner.owns(double)):
            raise ValueError("only an owner's own memories can be kept apart")
        await self._db.execute("INSERT OR IGNORE INTO kept_apart (kept, double) VALUES (?, ?)", (kept, double))

    async def pairs(self, owner: Account) -> Collection[Pair]:
        """Every such pair of the owner, each both ways."""
        rows = await self._db.fetch(
            "SELECT kept, double FROM kept_apart WHERE kept BETWEEN ? AND ?", (owner.first_id, owner.last_id)
        )
        return {pair for row in rows for pair in ((row["kept"], row["double"]), (row["double"], row["kept"]))}
