"""Store of traces: how each reply came to be, in ids and scores. No words, so nothing to leak or to forget."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from memory.accounts import Accounts
from memory.clock import moment, stamp
from memory.db import Database
from memory.model import Account, Chat


@dataclass(frozen=True, slots=True)
class Trace:
    """The record behind one reply; ``reply`` is its journal line, ``data`` plain JSON."""

    id: int
    chat: int
    reply: int | None
    at: datetime
    data: Mapping[str, Any]


_MEMORIES: Final = ("profile", "timeline", "facts")
"""The tables whose rows count their uses."""


def rested_on(data: Mapping[str, Any]) -> list[int]:
    """The memories that a reply with this trace was given with because they were asked about.

    What is read on every turn anyway is none of them, nor is what was only perhaps related, nor what came with all
    that is known (and so has no score).
    """
    recalled = [unit for unit in data.get("recalled", ()) if unit["band"] == "full" and unit["scores"]]
    return [unit["id"] for unit in recalled if unit["kind"] != "message"]


class Traces:
    """Traces in the range of the account that was answered."""

    def __init__(self, db: Database, accounts: Accounts) -> None:
        self._db = db
        self._accounts = accounts

    async def add(self, owner: Account, chat: Chat, reply: int | None, data: Mapping[str, Any], *, at: datetime) -> int:
        """Write a trace; returns its id. Needs an open transaction."""
        (id_,) = await self._accounts.next_ids(owner)
        await self._db.execute(
            "INSERT INTO traces (id, chat, reply, at, turn, data) VALUES (?, ?, ?, ?, ?, ?)",
            (id_, chat.no, reply, stamp(at), str(data.get("turn", "")), json.dumps(data, ensure_ascii=False)),
        )
        return id_

    async def latest(self, owner: Account, chat: Chat) -> Trace | None:
        """The newest trace of a chat."""
        rows = await self._db.fetch(
            "SELECT id, chat, reply, at, data FROM traces WHERE id BETWEEN ? AND ? AND chat = ?"
            " ORDER BY id DESC LIMIT 1",
            (owner.first_id, owner.last_id, chat.no),
        )
        return _trace(rows[0]) if rows else None

    async def shown_in(self, owner: Account, chat: Chat, platform_id: str) -> Trace | None:
        """The trace of the reply that a message of the platform shows in a chat, if it was given to the owner."""
        rows = await self._db.fetch(
            "SELECT t.id, t.chat, t.reply, t.at, t.data FROM shown s JOIN journal j ON j.id = s.id"
            " JOIN traces t ON t.reply = s.id, json_each(s.platform_ids) AS posted WHERE posted.value = :id"
            " AND s.id BETWEEN :lo AND :hi AND t.id BETWEEN :lo AND :hi AND j.chat = :chat AND j.hidden_by IS NULL"
            " ORDER BY t.id DESC LIMIT 1",
            {"id": platform_id, "lo": owner.first_id, "hi": owner.last_id, "chat": chat.no},
        )
        return _trace(rows[0]) if rows else None

    async def using(self, owner: Account, memories: Iterable[int], *, always: bool = False) -> list[int]:
        """Journal ids of the replies whose request held any of these rows, in its window or because it was asked about.

        Always-read lines are in every request and say nothing about the reply; with ``always`` they count, too.
        """
        rows = await self._db.fetch(
            "WITH wanted AS MATERIALIZED (SELECT value AS id FROM json_each(:ids))"
            " SELECT t.reply FROM traces t WHERE t.id BETWEEN :lo AND :hi AND t.reply IS NOT NULL AND (EXISTS"
            " (SELECT 1 FROM json_each(t.data, '$.recalled') r"
            " WHERE (json_extract(r.value, '$.band') != 'always' OR :always)"
            " AND json_extract(r.value, '$.id') IN (SELECT id FROM wanted)) OR EXISTS"
            " (SELECT 1 FROM json_each(t.data, '$.window.ids') w WHERE w.value IN (SELECT id FROM wanted)) OR EXISTS"
            " (SELECT 1 FROM json_each(t.data, '$.handed_on') h WHERE (json_extract(h.value, '$[1]') OR :always)"
            " AND json_extract(h.value, '$[0]') IN (SELECT id FROM wanted)))",
            {"ids": json.dumps(list(memories)), "always": always, "lo": owner.first_id, "hi": owner.last_id},
        )
        return [int(row["reply"]) for row in rows]

    async def count_uses(self, owner: Account, data: Mapping[str, Any], *, at: datetime) -> None:
        """Count that a reply with this trace was given with the memories it rests on; the count is in their rows."""
        used = json.dumps(rested_on(data))
        for table in _MEMORIES if used != "[]" else ():
            await self._db.execute(
                f"UPDATE {table} SET uses = uses + 1, used_at = max(coalesce(used_at, :at), :at), cold_at = NULL"
                " WHERE id IN (SELECT value FROM json_each(:used)) AND id BETWEEN :lo AND :hi",
                {"at": stamp(at), "used": used, "lo": owner.first_id, "hi": owner.last_id},
            )

    async def most_used(self, owner: Account, *, least: int, since: datetime, most: int) -> dict[int, int]:
        """The open memories used ``least`` times or more, lastly at ``since`` or later, with their number of uses.

        ``most`` of them, the most used first, then what was used last.
        """
        used = " UNION ALL ".join(
            f"SELECT id, uses, used_at FROM {table} WHERE id BETWEEN :lo AND :hi AND uses > 0 AND uses >= :least"
            " AND used_at >= :since AND retired_at IS NULL AND hidden_by IS NULL"
            for table in _MEMORIES
        )
        rows = await self._db.fetch(
            f"SELECT id, uses FROM ({used}) ORDER BY uses DESC, used_at DESC, id LIMIT :most",
            {"lo": owner.first_id, "hi": owner.last_id, "least": least, "since": stamp(since), "most": most},
        )
        return {int(row["id"]): int(row["uses"]) for row in rows}

    async def hand_on(self, owner: Account, replies: Collection[int], *, to: Sequence[Account]) -> None:
        """Let what was given with these replies of the owner's rest on what they rested on, before they go.

        ``to`` are the accounts in whose traces they may be named. Else nobody would find, through a reply that was
        given anew, what came of the words it held. Needs an open transaction.
        """
        rested: dict[int, dict[int, bool]] = {}
        for row in await self._of(owner, replies):
            rested.setdefault(int(row["reply"]), {}).update(_given_with(json.loads(row["data"])))
        for account in to if rested else ():
            await self.rest(account, rested)

    async def rest(self, owner: Account, rested: Mapping[int, Mapping[int, bool]]) -> None:
        """Let the owner's replies that were given with rows that go rest on what those rested on.

        ``rested`` has for each the rows it rested on, and whether they say something. Needs an open transaction.
        """
        for row in await self._of(owner, await self.using(owner, rested, always=True)):
            data = json.loads(row["data"])
            known = _given_with(data)
            more = {id_: asked for lost in rested.keys() & known for id_, asked in rested[lost].items()}
            handed = data.get("handed_on", []) + [[id_, more[id_]] for id_ in sorted(more.keys() - known)]
            data["handed_on"] = handed
            await self._db.execute(
                "UPDATE traces SET data = ? WHERE id = ? AND id BETWEEN ? AND ?",
                (json.dumps(data, ensure_ascii=False), row["id"], owner.first_id, owner.last_id),
            )

    async def _of(self, owner: Account, replies: Iterable[int]) -> list[sqlite3.Row]:
        return await self._db.fetch(
            "SELECT id, reply, data FROM traces WHERE id BETWEEN ? AND ? AND reply IN (SELECT value FROM json_each(?))",
            (owner.first_id, owner.last_id, json.dumps(list(replies))),
        )

    async def erase(self, owner: Account, replies: Iterable[int]) -> int:
        """Remove the traces of these replies."""
        return await self._db.execute(
            "DELETE FROM traces WHERE id BETWEEN ? AND ? AND reply IN (SELECT value FROM json_each(?))",
            (owner.first_id, owner.last_id, json.dumps(list(replies))),
        )

    async def trim(self, owner: Account, *, before: datetime) -> int:
        """Remove traces older than ``before``."""
        return await self._db.execute(
            "DELETE FROM traces WHERE id BETWEEN ? AND ? AND at < ?",
            (owner.first_id, owner.last_id, stamp(before)),
        )


def _given_with(data: Mapping[str, Any]) -> dict[int, bool]:
    """The rows that a reply with this trace was given with, and whether they say something about it."""
    asked = {int(data["question"]): True} if data.get("question") else {}
    recalled = {int(unit["id"]): unit["band"] != "always" for unit in data.get("recalled", ())}
    window = dict.fromkeys(data.get("window", {}).get("ids", ()), True)
    return dict(data.get("handed_on", ())) | recalled | window | asked


def _trace(row: sqlite3.Row) -> Trace:
    return Trace(row["id"], row["chat"], row["reply"], moment(row["at"]), json.loads(row["data"]))
