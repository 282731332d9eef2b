"""Store of what a person is told about their memory: the first notice, and how much of what is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memory.db import Database
from memory.model import Account

_OPEN: Final = "hidden_by IS NULL AND retired_at IS NULL AND id BETWEEN :lo AND :hi"
_HELD: Final = {
    "messages": "journal WHERE role = 'user' AND kind != 'command' AND fleeting = 0 AND hidden_by IS NULL"
    " AND id BETWEEN :lo AND :hi",
    "replies": "journal WHERE role = 'bot' AND kind != 'command' AND fleeting = 0 AND hidden_by IS NULL"
    " AND id BETWEEN :lo AND :hi",
    "fleeting": "journal WHERE fleeting = 1 AND held IS NULL AND id BETWEEN :lo AND :hi",
    "profile": f"profile WHERE {_OPEN}",
    "events": f"timeline WHERE {_OPEN}",
    "facts": f"facts WHERE {_OPEN}",
    "vectors": "embeddings WHERE id BETWEEN :lo AND :hi",
    "traces": "traces WHERE id BETWEEN :lo AND :hi",
}


@dataclass(frozen=True, slots=True)
class Holdings:
    """How many rows of each kind are kept of a person: journal lines, memories that hold, what is made of both."""

    messages: int
    replies: int
    fleeting: int
    profile: int
    events: int
    facts: int
    vectors: int
    traces: int


class Disclosures:
    """The notice of an account, and counts of what there is of it."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def claim(self, owner: Account, line: int) -> bool:
        """Have the answer to the owner's ``line`` carry the first notice; whether it does, now or since before."""
        if not owner.owns(line):
            raise RuntimeError("a notice comes with the answer to a line of its owner")
        await self._db.execute("UPDATE accounts SET noticed = ? WHERE no = ? AND noticed IS NULL", (line, owner.no))
        rows = await self._db.fetch("SELECT noticed FROM accounts WHERE no = ?", (owner.no,))
        return bool(rows[0]["noticed"] == line)

    async def told(self, owner: Account) -> bool:
        """Whether the owner has been told, and no answer is on its way that tells them."""
        rows = await self._db.fetch("SELECT noticed FROM accounts WHERE no = ?", (owner.no,))
        return bool(rows[0]["noticed"] == 0)

    async def delivered(self, owner: Account, line: int | None = None) -> None:
        """The owner has been told: never again. By the answer to ``line``, if that carried it, or otherwise (None)."""
        await self._db.execute(
            "UPDATE accounts SET noticed = 0 WHERE no = ? AND (? IS NULL OR noticed = ?)", (owner.no, line, line)
        )

    async def refused(self, owner: Account, line: int) -> None:
        """The answer that carried the notice never arrived; the next one carries it."""
        await self._db.execute("UPDATE accounts SET noticed = NULL WHERE no = ? AND noticed = ?", (owner.no, line))

    async def holdings(self, owner: Account) -> Holdings:
        """How much there is of the owner."""
        counts = ", ".join(f"(SELECT count(*) FROM {where}) AS {name}" for name, where in _HELD.items())
        (row,) = await self._db.fetch(f"SELECT {counts}", {"lo": owner.first_id, "hi": owner.last_id})
        return Holdings(**{name: int(row[name]) for name in _HELD})
