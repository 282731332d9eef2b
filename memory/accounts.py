"""Store of accounts and chats: who talks, and where. The source of every owner.

The one store whose questions cannot start from an owner, since owners come from here.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import datetime

from memory.clock import moment, stamp
from memory.db import Database
from memory.model import SEQ_BITS, Account, Chat, Message

_SAID_ZONE = (
    "(SELECT p.zone FROM profile p WHERE p.zone IS NOT NULL AND p.retired_at IS NULL AND p.hidden_by IS NULL AND"
    f" p.doubts IS NULL AND p.id BETWEEN accounts.no << {SEQ_BITS} AND (accounts.no + 1 << {SEQ_BITS}) - 1"
    " ORDER BY p.said_at DESC, p.id DESC LIMIT 1)"
)
_ACCOUNT = f"no, platform, user_id, name, language, zone, language_fixed, zone_set, {_SAID_ZONE} AS zone_said"
_CHAT = "c.no, c.platform, c.key, c.private, c.parent"


class Accounts:
    """Accounts by platform and numeric id, never by a name."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def meet(self, platform: str, user_id: str, *, name: str, language: str, zone: str, at: datetime) -> Account:
        """The account, made at the first meeting.

        ``language`` and ``zone`` only count at the first meeting; ``name`` is refreshed when it is not empty.
        """
        known = await self.find(platform, user_id)
        if known is not None and name in ("", known.name):
            return known
        rows = await self._db.returning(
            f"INSERT INTO accounts (platform, user_id, name, language, zone, created_at)"
            f" VALUES (:platform, :user_id, :name, :language, :zone, :at)"
            f" ON CONFLICT (platform, user_id) DO UPDATE SET name = excluded.name RETURNING {_ACCOUNT}",
            {
                "platform": platform,
                "user_id": user_id,
                "name": name,
                "language": language,
                "zone": zone,
                "at": stamp(at),
            },
        )
        return _account(rows[0])

    async def find(self, platform: str, user_id: str) -> Account | None:
        """The account, or None if it never spoke."""
        rows = await self._db.fetch(
            f"SELECT {_ACCOUNT} FROM accounts WHERE platform = ? AND user_id = ?", (platform, user_id)
        )
        return _account(rows[0]) if rows else None

    async def numbered(self, no: int) -> Account:
        """The account with an internal number. Raises KeyError."""
        rows = await self._db.fetch(f"SELECT {_ACCOUNT} FROM accounts WHERE no = ?", (no,))
        if not rows:
            raise KeyError(no)
        return _account(rows[0])

    async def all(self) -> list[Account]:
        """Every account, oldest first; jobs go through them one owner at a time."""
        return [_account(row) for row in await self._db.fetch(f"SELECT {_ACCOUNT} FROM accounts ORDER BY no")]

    async def numbers(self) -> list[int]:
        """The internal number of every account."""
        return [int(row["no"]) for row in await self._db.fetch("SELECT no FROM accounts ORDER BY no")]

    async def speak(self, owner: Account, language: str) -> None:
        """Remember the language an owner writes in ("en", "zh", "zh-TW"), unless they fixed one."""
        await self._db.execute(
            "UPDATE accounts SET language = ? WHERE no = ? AND language_fixed = 0", (language, owner.no)
        )

    async def fix_language(self, owner: Account, language: str | None) -> None:
        """Keep to a language whatever the owner writes in; None follows what they write again."""
        await self._db.execute(
            "UPDATE accounts SET language = coalesce(:language, language), language_fixed = :language IS NOT NULL"
            " WHERE no = :no",
            {"language": language, "no": owner.no},
        )

    async def fix_zone(self, owner: Account, zone: str | None) -> None:
        """Keep to a zone whatever the owner says of where they are; None follows what they say again."""
        await self._db.execute("UPDATE accounts SET zone_set = ? WHERE no = ?", (zone, owner.no))

    async def ask_zone(self, owner: Account) -> bool:
        """Note that the owner is asked for their zone; False if they have been, then nobody is to ask."""
        changed = await self._db.execute(
            "UPDATE accounts SET zone_asked = 1 WHERE no = ? AND zone_asked = 0", (owner.no,)
        )
        return changed > 0

    async def author_of(self, platform: str, key: str, thread: str | None, platform_id: str) -> Account | None:
        """The account whose message is journaled under a platform's id; None when there is none."""
        rows = await self._db.fetch(
            f"SELECT {_ACCOUNT} FROM accounts WHERE no = (SELECT j.id >> {SEQ_BITS} FROM chats c JOIN journal j"
            " ON j.chat = coalesce(c.moved_to, c.no) AND j.role = 'user' AND j.platform_id ="
            " CASE WHEN c.moved_to IS NULL THEN :id ELSE c.key || '/' || :id END"
            " WHERE c.platform = :platform AND c.key = :key AND c.thread = :thread)",
            {"platform": platform, "key": key, "thread": thread or "", "id": platform_id},
        )
        return _account(rows[0]) if rows else None

    async def since(self, owner: Account) -> datetime:
        """When the owner first wrote."""
        rows = await self._db.fetch("SELECT created_at FROM accounts WHERE no = ?", (owner.no,))
        return moment(int(rows[0]["created_at"]))

    async def newest_id(self, owner: Account) -> int:
        """The row id that was taken last."""
        rows = await self._db.fetch("SELECT next_seq FROM accounts WHERE no = ?", (owner.no,))
        return owner.first_id + int(rows[0]["next_seq"]) - 1

    async def next_ids(self, owner: Account, count: int = 1) -> range:
        """Take ``count`` row ids that were never used and never will be again. Needs an open transaction."""
        if not self._db.inside:
            raise RuntimeError("row ids are taken inside the transaction that writes the rows")
        rows = await self._db.returning(
            "UPDATE accounts SET next_seq = next_seq + ? WHERE no = ? RETURNING next_seq", (count, owner.no)
        )
        end = int(rows[0]["next_seq"])
        if end >= 1 << SEQ_BITS:
            raise OverflowError(f"account {owner.no} has used all {1 << SEQ_BITS} row numbers")
        return range(owner.first_id + end - count, owner.first_id + end)


class Chats:
    """Places to talk."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def enter(self, owner: Account, key: str, *, private: bool, thread: str | None = None, at: datetime) -> Chat:
        """The chat ``key`` on the owner's platform, made when first seen; a thread's parent is the chat itself."""
        known = await self.known(owner, key, thread=thread)
        if known is not None:
            return known

        async def writing() -> Chat:
            parent = None
            if thread is not None:
                parent = (await self.enter(owner, key, private=private, at=at)).no
            await self._db.execute(
                "INSERT OR IGNORE INTO chats (platform, key, thread, private, parent, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (owner.platform, key, thread or "", int(private), parent, stamp(at)),
            )
            made = await self._find(owner.platform, key, thread or "")
            if made is None:
                raise RuntimeError(f"chat {key} was not stored")
            return made

        return await self._db.written(writing)

    async def known(self, owner: Account, key: str, *, thread: str | None = None) -> Chat | None:
        """The chat ``key`` on the owner's platform; None for one that was never entered."""
        return await self._find(owner.platform, key, thread or "")

    async def numbered(self, owner: Account, no: int) -> Chat:
        """The chat with an internal number, if the owner has spoken in it. Raises KeyError."""
        rows = await self._db.fetch(
            f"SELECT {_CHAT} FROM chats c WHERE c.no = ? AND c.platform = ?", (no, owner.platform)
        )
        if not rows:
            raise KeyError(no)
        return _chat(rows[0])

    async def address(self, owner: Account, no: int) -> tuple[str, str | None]:
        """Platform key and thread of a chat, to send something there."""
        rows = await self._db.fetch("SELECT key, thread FROM chats WHERE no = ? AND platform = ?", (no, owner.platform))
        if not rows:
            raise KeyError(no)
        return str(rows[0]["key"]), rows[0]["thread"] or None

    async def resolved(self, owner: Account, chat: Chat) -> Chat:
        """A chat as it is now, for whoever has held on to it while it may have moved."""
        rows = await self._db.fetch(
            f"SELECT {_CHAT} FROM chats k JOIN chats c ON c.no = coalesce(k.moved_to, k.no)"
            " WHERE k.no = ? AND k.platform = ?",
            (chat.no, owner.platform),
        )
        if not rows:
            raise KeyError(chat.no)
        found = _chat(rows[0])
        return found if found.key == chat.key else replace(found, key=chat.key, past=True)

    async def is_past(self, owner: Account, said: Message) -> bool:
        """Whether a line was heard under a key that its chat no longer has."""
        rows = await self._db.fetch(
            "SELECT 1 FROM chats WHERE moved_to = ? AND platform = ? AND instr(?, key || '/') = 1",
            (said.chat, owner.platform, said.platform_id or ""),
        )
        return bool(rows)

    async def _find(self, platform: str, key: str, thread: str) -> Chat | None:
        rows = await self._db.fetch(
            f"SELECT {_CHAT}, k.moved_to FROM chats k JOIN chats c ON c.no = coalesce(k.moved_to, k.no)"
            " WHERE k.platform = ? AND k.key = ? AND k.thread = ?",
            (platform, key, thread),
        )
        if not rows:
            return None
        found = _chat(rows[0])
        return found if rows[0]["moved_to"] is None else replace(found, key=key, past=True)


def _account(row: sqlite3.Row) -> Account:
    fixed, said = row["zone_set"], row["zone_said"]
    return Account(
        row["no"],
        row["platform"],
        row["user_id"],
        row["name"],
        row["language"],
        fixed or said or row["zone"],
        bool(row["language_fixed"]),
        "set" if fixed else "said" if said else "default",
    )


def _chat(row: sqlite3.Row) -> Chat:
    return Chat(row["no"], row["platform"], row["key"], bool(row["private"]), row["parent"])
