"""Store of what was promised to a person: offers that wait for a yes, deletions that wait for their time, receipts."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory.accounts import Accounts
from memory.clock import moment, stamp
from memory.db import Database
from memory.model import SEQ_BITS, Account
from memory.scope import Kind


@dataclass(frozen=True, slots=True)
class Offer:
    """Something a command offered ("delete these?"); ``data`` holds ids only."""

    id: int
    chat: int
    kind: str
    data: Mapping[str, Any]
    expires_at: datetime
    closed: bool


@dataclass(frozen=True, slots=True)
class Deletion:
    """A confirmed ``/forget``: hidden ``at`` once, erased for good at ``erase_at``, undoable until then."""

    id: int
    chat: int
    at: datetime
    erase_at: datetime
    counts: Mapping[str, int]
    undone: bool
    erased: bool
    scope: Kind = "words"


@dataclass(frozen=True, slots=True)
class Notice:
    """A receipt to deliver: ``phrase`` is a key of the locales, ``data`` its values."""

    id: int
    chat: int
    phrase: str
    data: Mapping[str, Any]


class Promises:
    """Offers, deletions and notices of one account."""

    def __init__(self, db: Database, accounts: Accounts) -> None:
        self._db = db
        self._accounts = accounts

    async def offer(
        self, owner: Account, chat: int, kind: str, data: Mapping[str, Any], *, expires_at: datetime
    ) -> Offer:
        """Write down what is offered; an older open offer of the kind in this chat is closed."""
        async with self._db.transaction():
            await self._db.execute(
                "UPDATE offers SET closed_at = ? WHERE id BETWEEN ? AND ? AND chat = ? AND kind = ?"
                " AND closed_at IS NULL",
                (stamp(expires_at), owner.first_id, owner.last_id, chat, kind),
            )
            (id_,) = await self._accounts.next_ids(owner)
            await self._db.execute(
                "INSERT INTO offers (id, chat, kind, data, expires_at) VALUES (?, ?, ?, ?, ?)",
                (id_, chat, kind, json.dumps(data), stamp(expires_at)),
            )
        return Offer(id_, chat, kind, data, expires_at, closed=False)

    async def offered(self, owner: Account, chat: int, kind: str, *, now: datetime) -> Offer | None:
        """The open offer of a kind in a chat."""
        rows = await self._db.fetch(
            "SELECT * FROM offers WHERE id BETWEEN ? AND ? AND chat = ? AND kind = ? AND closed_at IS NULL"
            " AND expires_at > ? ORDER BY id DESC LIMIT 1",
            (owner.first_id, owner.last_id, chat, kind, stamp(now)),
        )
        return _offer(rows[0]) if rows else None

    async def standing(self, owner: Account, offer: int, *, now: datetime) -> Offer | None:
        """Read an offer and leave it open; None when it is not the owner's, used up or too old."""
        rows = await self._db.fetch(
            "SELECT * FROM offers WHERE id = ? AND id BETWEEN ? AND ? AND closed_at IS NULL AND expires_at > ?",
            (offer, owner.first_id, owner.last_id, stamp(now)),
        )
        return _offer(rows[0]) if rows else None

    async def take(self, owner: Account, offer: int, *, now: datetime) -> Offer | None:
        """Close an offer and return it; None when it is not the owner's, used up or too old. Works once."""
        rows = await self._db.returning(
            "UPDATE offers SET closed_at = :now WHERE id = :id AND id BETWEEN :lo AND :hi AND closed_at IS NULL"
            " AND expires_at > :now RETURNING *",
            {"now": stamp(now), "id": offer, "lo": owner.first_id, "hi": owner.last_id},
        )
        return _offer(rows[0]) if rows else None

    async def delete(
        self, owner: Account, chat: int, *, at: datetime, erase_at: datetime, scope: Kind = "words"
    ) -> int:
        """Open a deletion and return its number; ``scope`` is how much was meant. Needs an open transaction."""
        (id_,) = await self._accounts.next_ids(owner)
        await self._db.execute(
            "INSERT INTO deletions (id, chat, at, erase_at, counts, scope) VALUES (?, ?, ?, ?, '{}', ?)",
            (id_, chat, stamp(at), stamp(erase_at), scope),
        )
        return id_

    async def withdrawn(self, owner: Account, chat: int, *, at: datetime) -> int:
        """Note that the owner took words back on the platform: a deletion that is carried out and owes no receipt.

        Returns its number. Needs an open transaction. An answer under way learns from it that it may rest on those
        words.
        """
        deletion = await self.delete(owner, chat, at=at, erase_at=at)
        await self.erased(owner, deletion, at=at)
        return deletion

    async def counted(self, owner: Account, deletion: int, counts: Mapping[str, int]) -> Deletion:
        """Set what a deletion covers and read it back."""
        rows = await self._db.returning(
            "UPDATE deletions SET counts = ? WHERE id = ? AND id BETWEEN ? AND ? RETURNING *",
            (json.dumps(counts), deletion, owner.first_id, owner.last_id),
        )
        return _deletion(rows[0])

    async def begun(self, owner: Account, deletion: int) -> None:
        """Note that rows of a deletion are being erased: it cannot be undone any more, were the clock set back."""
        await self._db.execute(
            "UPDATE deletions SET erase_at = 0 WHERE id = ? AND id BETWEEN ? AND ?",
            (deletion, owner.first_id, owner.last_id),
        )

    async def undoable(self, owner: Account, *, now: datetime) -> list[Deletion]:
        """Deletions that can still be undone, newest first."""
        rows = await self._db.fetch(
            "SELECT * FROM deletions WHERE id BETWEEN ? AND ? AND undone_at IS NULL AND erased_at IS NULL"
            " AND erase_at > ? ORDER BY id DESC",
            (owner.first_id, owner.last_id, stamp(now)),
        )
        return [_deletion(row) for row in rows]

    async def due(self, owner: Account, *, now: datetime) -> list[Deletion]:
        """Deletions whose time to be erased has come."""
        rows = await self._db.fetch(
            "SELECT * FROM deletions WHERE id BETWEEN ? AND ? AND undone_at IS NULL AND erased_at IS NULL"
            " AND erase_at <= ? ORDER BY id",
            (owner.first_id, owner.last_id, stamp(now)),
        )
        return [_deletion(row) for row in rows]

    async def undone_since(self, owner: Account, at: datetime) -> bool:
        """Whether any deletion was undone at or after ``at``."""
        rows = await self._db.fetch(
            "SELECT 1 FROM deletions WHERE id BETWEEN ? AND ? AND undone_at >= ? LIMIT 1",
            (owner.first_id, owner.last_id, stamp(at)),
        )
        return bool(rows)

    async def deleted_since(self, owner: Account, row: int) -> bool:
        """Whether anything was forgotten, and not brought back, after the owner's row ``row`` was written."""
        rows = await self._db.fetch(
            "SELECT 1 FROM deletions WHERE id BETWEEN ? AND ? AND undone_at IS NULL LIMIT 1",
            (max(owner.first_id, row + 1), owner.last_id),
        )
        return bool(rows)

    async def deleted_after(self, owner: Account, at: datetime) -> bool:
        """Whether the owner forgot something at or after a time, and did not bring it back."""
        rows = await self._db.fetch(
            "SELECT 1 FROM deletions WHERE id BETWEEN ? AND ? AND at >= ? AND undone_at IS NULL LIMIT 1",
            (owner.first_id, owner.last_id, stamp(at)),
        )
        return bool(rows)

    async def undone(self, owner: Account, deletion: int, *, at: datetime) -> bool:
        """Mark a deletion as undone; False when it was undone or erased already."""
        return await self._mark(owner, deletion, "undone_at", at)

    async def erased(self, owner: Account, deletion: int, *, at: datetime) -> bool:
        """Mark a deletion as carried out; False when it was undone or erased already."""
        erased = await self._mark(owner, deletion, "erased_at", at)
        self._db.tally("forgotten", "", erased)
        return erased

    async def notify(self, owner: Account, chat: int, phrase: str, data: Mapping[str, Any], *, at: datetime) -> None:
        """Owe the person a notice. Needs an open transaction."""
        (id_,) = await self._accounts.next_ids(owner)
        await self._db.execute(
            "INSERT INTO notices (id, chat, at, phrase, data) VALUES (?, ?, ?, ?, ?)",
            (id_, chat, stamp(at), phrase, json.dumps(data, ensure_ascii=False)),
        )

    async def owners_owed(self) -> list[int]:
        """Numbers of the accounts that are owed a notice; where delivery starts from."""
        rows = await self._db.fetch(
            f"SELECT DISTINCT id >> {SEQ_BITS} AS no FROM notices WHERE sent_at IS NULL ORDER BY no"
        )
        return [int(row["no"]) for row in rows]

    async def owners_due(self, *, now: datetime) -> list[int]:
        """Numbers of the accounts with a deletion to carry out; where erasure starts from."""
        rows = await self._db.fetch(
            f"SELECT DISTINCT id >> {SEQ_BITS} AS no FROM deletions WHERE undone_at IS NULL AND erased_at IS NULL"
            " AND erase_at <= ? ORDER BY no",
            (stamp(now),),
        )
        return [int(row["no"]) for row in rows]

    async def notices(self, owner: Account) -> list[Notice]:
        """Notices not yet delivered, oldest first."""
        rows = await self._db.fetch(
            "SELECT id, chat, phrase, data FROM notices WHERE id BETWEEN ? AND ? AND sent_at IS NULL ORDER BY id",
            (owner.first_id, owner.last_id),
        )
        return [Notice(row["id"], row["chat"], row["phrase"], json.loads(row["data"])) for row in rows]

    async def notified(self, owner: Account, notice: int, *, at: datetime) -> bool:
        """Mark a notice as delivered; False when it was already, so that one sender wins."""
        changed = await self._db.execute(
            "UPDATE notices SET sent_at = ? WHERE id = ? AND id BETWEEN ? AND ? AND sent_at IS NULL",
            (stamp(at), notice, owner.first_id, owner.last_id),
        )
        return changed > 0

    async def _mark(self, owner: Account, deletion: int, column: str, at: datetime) -> bool:
        changed = await self._db.execute(
            f"UPDATE deletions SET {column} = ? WHERE id = ? AND id BETWEEN ? AND ?"
            " AND undone_at IS NULL AND erased_at IS NULL",
            (stamp(at), deletion, owner.first_id, owner.last_id),
        )
        return changed > 0


def _offer(row: sqlite3.Row) -> Offer:
    return Offer(
        row["id"],
        row["chat"],
        row["kind"],
        json.loads(row["data"]),
        moment(row["expires_at"]),
        row["closed_at"] is not None,
    )


def _deletion(row: sqlite3.Row) -> Deletion:
    return Deletion(
        row["id"],
        row["chat"],
        moment(row["at"]),
        moment(row["erase_at"]),
        json.loads(row["counts"]),
        row["undone_at"] is not None,
        row["erased_at"] is not None,
        row["scope"],
    )
