"""Store of pauses: where somebody wants nothing learned from what they say."""

from __future__ import annotations

from datetime import datetime

from memory.accounts import Chats
from memory.clock import moment, stamp
from memory.db import Database
from memory.model import Account, Chat


class Pauses:
    """Where somebody has paused learning: a chat of theirs, a group together with its topics and threads."""

    def __init__(self, db: Database, chats: Chats) -> None:
        self._db = db
        self._chats = chats

    async def pause(self, owner: Account, chat: Chat, *, now: datetime) -> bool:
        """Learn nothing more from what the owner says there; False if that was so already."""
        changed = await self._db.execute(
            "INSERT INTO pauses (account, place, since) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (owner.no, await self._place(owner, chat), stamp(now)),
        )
        return changed > 0

    async def resume(self, owner: Account, chat: Chat) -> bool:
        """Learn again from what the owner says there; False if nothing was paused."""
        changed = await self._db.execute(
            "DELETE FROM pauses WHERE account = ? AND place = ?", (owner.no, await self._place(owner, chat))
        )
        return changed > 0

    async def since(self, owner: Account, chat: Chat) -> datetime | None:
        """Since when nothing is learned from the owner there; None while it is."""
        rows = await self._db.fetch(
            "SELECT since FROM pauses WHERE account = ? AND place = ?", (owner.no, await self._place(owner, chat))
        )
        return moment(rows[0]["since"]) if rows else None

    async def count(self, owner: Account) -> int:
        """In how many places the owner has paused learning."""
        rows = await self._db.fetch("SELECT count(*) AS places FROM pauses WHERE account = ?", (owner.no,))
        return int(rows[0]["places"])

    async def places(self, owner: Account) -> list[int]:
        """The numbers of the chats in which the owner has paused learning."""
        rows = await self._db.fetch("SELECT place FROM pauses WHERE account = ? ORDER BY place", (owner.no,))
        return [int(row["place"]) for row in rows]

    async def _place(self, owner: Account, chat: Chat) -> int:
        now = await self._chats.resolved(owner, chat)
        return now.no if now.parent is None else now.parent
