"""Store of who is no longer in which chat. Nobody's memory is changed by it: it says where memory may be used."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from typing import Final

from memory.clock import stamp
from memory.db import Database
from memory.model import Account, Chat

_PLACES: Final = (
    "SELECT coalesce(c.parent, c.no) FROM chats k JOIN chats c ON c.no = coalesce(k.moved_to, k.no)"
    " WHERE k.platform = :platform AND k.private = 0 AND (k.key = :key OR instr(k.key, :key || '/') = 1)"
)
"""The groups under a key: the one that has it, or those of the server that has it ("guild:900" of "guild:900/7")."""


class Departures:
    """Accounts that left a group, or were left behind there when the bot had to go."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def leave(self, owner: Account, key: str, *, at: datetime) -> list[int]:
        """Note that the owner is in none of the groups under ``key`` any more; returns those they took part in."""
        rows = await self._db.returning(
            "INSERT INTO departures (chat, account, at) SELECT DISTINCT coalesce(c.parent, c.no), :owner, :at"
            f" FROM chats c WHERE coalesce(c.parent, c.no) IN ({_PLACES}) AND EXISTS (SELECT 1 FROM sessions s"
            " JOIN session_members m ON m.session = s.no WHERE s.chat = c.no AND m.account = :owner)"
            " ON CONFLICT (chat, account) DO UPDATE SET at = max(at, excluded.at) RETURNING chat",
            {"owner": owner.no, "at": stamp(at), "platform": owner.platform, "key": key},
        )
        return [int(row["chat"]) for row in rows]

    async def places(self, owner: Account, keys: Collection[str]) -> list[str]:
        """Those of the groups under ``keys`` in which the owner took part, and which they have not left."""
        rows = await self._db.fetch(
            "SELECT DISTINCT c.key FROM session_members m JOIN sessions s ON s.no = m.session"
            " JOIN chats c ON c.no = s.chat WHERE m.account = :owner AND c.private = 0"
            " AND c.key IN (SELECT value FROM json_each(:keys)) AND NOT EXISTS (SELECT 1 FROM departures d"
            " WHERE d.chat = coalesce(c.parent, c.no) AND d.account = :owner)",
            {"owner": owner.no, "keys": json.dumps(list(keys))},
        )
        return [str(row["key"]) for row in rows]

    async def members(self, platform: str, key: str) -> list[int]:
        """Numbers of the accounts that ever took part in the groups under ``key``; those of a key left behind, none."""
        rows = await self._db.fetch(
            "SELECT DISTINCT m.account FROM chats c JOIN sessions s ON s.chat = c.no"
            " JOIN session_members m ON m.session = s.no"
            f" WHERE coalesce(c.parent, c.no) IN ({_PLACES} AND k.moved_to IS NULL) ORDER BY m.account",
            {"platform": platform, "key": key},
        )
        return [int(row["account"]) for row in rows]

    async def back(self, owner: Account, chat: Chat, *, at: datetime) -> None:
        """Note that the owner was in a group at ``at``: whoever writes there after they left has come back."""
        await self._db.execute(
            "DELETE FROM departures WHERE chat = ? AND account = ? AND at < ?", (chat.audience, owner.no, stamp(at))
        )

    async def left(self, owner: Account, chat: Chat) -> bool:
        """Whether the owner is no longer in a group."""
        rows = await self._db.fetch(
            "SELECT 1 FROM departures WHERE chat = ? AND account = ?", (chat.audience, owner.no)
        )
        return bool(rows)

    async def give_up(self, owner: Account, groups: Collection[int]) -> int:
        """Let nothing that the owner said in these groups wait for an answer; returns how much did."""
        return await self._db.execute(
            "DELETE FROM waiting WHERE id BETWEEN :lo AND :hi AND id IN (SELECT j.id FROM journal j JOIN chats c"
            " ON c.no = j.chat WHERE j.id BETWEEN :lo AND :hi AND coalesce(c.parent, c.no) IN"
            " (SELECT value FROM json_each(:groups)))",
            {"lo": owner.first_id, "hi": owner.last_id, "groups": json.dumps(list(groups))},
        )
