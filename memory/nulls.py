"""Store of measured nulls: what foreign questions find in an owner's memory, in numbers alone."""

from __future__ import annotations

from typing import NamedTuple

from memory.db import Database
from memory.model import Account


class Case(NamedTuple):
    """What a null is for: an audience, a language, questions or ``talk``, and an embedding model ("" without)."""

    place: int
    language: str
    talk: bool
    model: str


class Nulls:
    """One row for each case of an account."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._erasures = 0

    @property
    def erasures(self) -> int:
        """How often anything was erased: what was measured before is not to be stored after."""
        return self._erasures

    async def get(self, owner: Account, case: Case, program: bytes) -> str | None:
        """What this very program stored for a case."""
        rows = await self._db.fetch(
            "SELECT data FROM nulls WHERE account = ? AND place = ? AND language = ? AND talk = ? AND model = ?"
            " AND program = ?",
            (owner.no, *case, program),
        )
        return str(rows[0]["data"]) if rows else None

    async def put(self, owner: Account, case: Case, program: bytes, data: str, *, erasures: int) -> None:
        """Store a null that was measured when :attr:`erasures` was so many; what another program measured goes."""

        async def writing() -> None:
            if erasures != self._erasures:
                return
            await self._db.execute("DELETE FROM nulls WHERE account = ? AND program != ?", (owner.no, program))
            await self._db.execute(
                "INSERT OR REPLACE INTO nulls (account, place, language, talk, model, program, data)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (owner.no, *case, program, data),
            )

        await self._db.written(writing)

    async def erase(self, owner: Account) -> None:
        """Remove all that was measured in an owner's memory."""
        self._erasures += 1
        await self._db.execute("DELETE FROM nulls WHERE account = ?", (owner.no,))
