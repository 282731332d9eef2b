"""Store of where chats went: a group that gets a new key on its platform goes on with its numbers."""

from __future__ import annotations

from typing import Final

from memory.db import Database

_PLACED: Final = ("journal", "sessions", "traces", "offers", "deletions", "notices")
"""Tables whose rows name the chat they belong to."""
_HEARD: Final = ("profile", "timeline", "facts")
"""Tables whose rows name the chat they may be used in."""


class Moves:
    """Chats by their keys, of all members at once: a group is nobody's own."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def move(self, platform: str, old_key: str, new_key: str) -> bool:
        """Have a group's chats, its threads included, go on under ``new_key``; whether there was anything to move.

        Numbers, and so audiences, stay. What was heard under the new key already joins them thread by thread. The
        platform counts messages anew under a new key, so those of the old one are told apart by it from now on;
        the old key keeps pointing here, for what is delivered again. A private chat never moves. In one transaction.
        """
        if old_key == new_key:
            return False
        async with self._db.transaction():
            rows = await self._db.fetch(
                "SELECT no, thread FROM chats WHERE platform = ? AND key = ? AND private = 0 AND moved_to IS NULL"
                " AND NOT EXISTS (SELECT 1 FROM chats WHERE platform = ? AND key = ? AND private = 1) ORDER BY no",
                (platform, old_key, platform, new_key),
            )
            for row in rows:
                await self._set_apart(row["no"], old_key)
                newcomer = await self._newcomer(platform, new_key, row["thread"])
                if newcomer is None:
                    await self._leave_key(row["no"], old_key, new_key)
                else:
                    await self._join(newcomer, row["no"])
                    await self._swap_keys(newcomer, row["no"], old_key, new_key)
        return bool(rows)

    async def _set_apart(self, chat: int, key: str) -> None:
        """Mark the platform's ids under a chat's present key as past; what shows an answer is no more, or not yet."""
        past = "EXISTS (SELECT 1 FROM chats p WHERE p.moved_to = :chat AND instr(platform_id, p.key || '/') = 1)"
        await self._db.execute(
            "UPDATE waiting SET begun = 0, shown = '[]' WHERE id IN"
            " (SELECT j.id FROM waiting w JOIN journal j ON j.id = w.id WHERE j.chat = :chat)",
            {"chat": chat},
        )
        await self._db.execute(
            "DELETE FROM shown WHERE id IN (SELECT id FROM journal WHERE chat = :chat)", {"chat": chat}
        )
        await self._db.execute(
            "UPDATE journal SET platform_id = :key || '/' || platform_id WHERE chat = :chat"
            f" AND platform_id IS NOT NULL AND NOT {past}",
            {"chat": chat, "key": key},
        )

    async def _newcomer(self, platform: str, key: str, thread: str) -> int | None:
        rows = await self._db.fetch(
            "SELECT no FROM chats WHERE platform = ? AND key = ? AND thread = ?", (platform, key, thread)
        )
        return int(rows[0]["no"]) if rows else None

    async def _leave_key(self, chat: int, old_key: str, new_key: str) -> None:
        """Give a chat its new key, and leave a pointer under the old one."""
        await self._db.execute("UPDATE chats SET key = ? WHERE no = ?", (new_key, chat))
        await self._db.execute(
            "INSERT INTO chats (platform, key, thread, private, created_at, moved_to)"
            " SELECT platform, ?, thread, private, created_at, no FROM chats WHERE no = ?",
            (old_key, chat),
        )

    async def _join(self, newcomer: int, chat: int) -> None:
        """Have everything of one chat belong to another; what could be used in the one can be in the other."""
        numbers = (chat, newcomer)
        for table in _PLACED:
            await self._db.execute(f"UPDATE {table} SET chat = ? WHERE chat = ?", numbers)
        for table in _HEARD:
            await self._db.execute(f"UPDATE {table} SET audience = ? WHERE audience = ?", numbers)
            await self._db.execute(f"UPDATE {table} SET shared_from = ? WHERE shared_from = ?", numbers)
        await self._db.execute("UPDATE OR IGNORE pauses SET place = ? WHERE place = ?", numbers)
        await self._db.execute("DELETE FROM pauses WHERE place = ?", (newcomer,))
        await self._db.execute("UPDATE OR IGNORE departures SET chat = ? WHERE chat = ?", numbers)
        await self._db.execute("DELETE FROM departures WHERE chat = ?", (newcomer,))
        await self._db.execute("UPDATE OR IGNORE group_usage SET chat = ? WHERE chat = ?", numbers)
        await self._db.execute("DELETE FROM group_usage WHERE chat = ?", (newcomer,))
        await self._db.execute("UPDATE chats SET parent = ? WHERE parent = ?", numbers)
        await self._db.execute("UPDATE chats SET moved_to = ? WHERE moved_to = ?", numbers)

    async def _swap_keys(self, newcomer: int, chat: int, old_key: str, new_key: str) -> None:
        """The emptied chat keeps the old key as a pointer; its number is never another chat's."""
        rename = "UPDATE chats SET key = ? WHERE no = ?"
        await self._db.execute(rename, (f"{old_key} -> {new_key}", newcomer))
        await self._db.execute(rename, (new_key, chat))
        await self._db.execute(
            "UPDATE chats SET key = ?, parent = NULL, moved_to = ? WHERE no = ?", (old_key, chat, newcomer)
        )
