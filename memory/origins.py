"""Store of what was imported from where: hashes of numbers, and the row each thing became."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from memory.clock import stamp
from memory.db import Database
from memory.imported import Whose
from memory.model import Account


def origin(whose: Whose, number: int) -> bytes:
    """What a row of an account somewhere is recognised by: made of numbers only."""
    told = f"{whose.platform}:{whose.user_id}:{stamp(whose.since)}:{number}"
    return blake2b(told.encode(), digest_size=16).digest()


class Origins:
    """What an account has taken in."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def rows(self, owner: Account) -> dict[bytes, int]:
        """Everything the owner has taken in, by where it came from."""
        rows = await self._db.fetch("SELECT origin, row FROM imported WHERE account = ?", (owner.no,))
        return {bytes(row["origin"]): int(row["row"]) for row in rows}

    async def note(self, owner: Account, made: Mapping[bytes, int]) -> None:
        """Note what became of what. Needs an open transaction."""
        await self._db.executemany(
            "INSERT OR IGNORE INTO imported (account, origin, row) VALUES (?, ?, ?)",
            [(owner.no, origin, row) for origin, row in made.items()],
        )

    async def standing(self, owner: Account, numbers: Iterable[int]) -> set[int]:
        """Which of these numbers are rows of the owner now, hidden ones included."""
        wanted = set(numbers)
        parts = " UNION ALL ".join(
            f"SELECT id FROM {table} WHERE id BETWEEN :lo AND :hi"
            for table in ("journal", "profile", "timeline", "facts")
        )
        rows = await self._db.fetch(parts, {"lo": owner.first_id, "hi": owner.last_id})
        return {int(row["id"]) for row in rows} & wanted

    async def known_since(self, owner: Account) -> int:
        """The microsecond the owner's account was made."""
        (row,) = await self._db.fetch("SELECT created_at FROM accounts WHERE no = ?", (owner.no,))
        return int(row["created_at"])
