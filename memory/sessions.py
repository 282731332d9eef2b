"""Store of sessions: stretches of one chat, and how far each person's part in them is distilled."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory.clock import moment, stamp
from memory.db import Database
from memory.journal import LINE, line
from memory.model import Account, Chat, Message

EARLIER_LINES = 6
"""Lines before the new ones that a distillation may read for pronouns, never cite."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session as one owner takes part in it."""

    no: int
    chat: int
    last_at: datetime
    attempts: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The lines of a session that wait to be distilled for one owner, and a few earlier ones."""

    session: int
    chat: Chat
    messages: list[Message]
    earlier: list[Message]
    attempts: int


class Sessions:
    """A session starts with a message and ends by silence or by ``/new``."""

    def __init__(self, db: Database, idle: timedelta) -> None:
        self._db = db
        self._idle = stamp_length(idle)

    async def touch(self, owner: Account, chat: Chat, at: datetime, *, answers: int | None = None) -> int:
        """The session a message at ``at`` belongs to, made if the last one ended. Needs an open transaction.

        A reply belongs to the line it ``answers``, however late it comes. The session waits for distillation from
        now on, with a clean slate of attempts.
        """
        rows = await self._db.fetch(
            "SELECT no, last_at, ended_at, EXISTS (SELECT 1 FROM journal j WHERE j.id = :answers"
            " AND j.session = s.no) AS asked FROM sessions s WHERE chat = :chat ORDER BY no DESC LIMIT 1",
            {"answers": answers, "chat": chat.no},
        )
        now = stamp(at)
        goes_on = rows and (rows[0]["asked"] or now - rows[0]["last_at"] < self._idle)
        if goes_on and rows[0]["ended_at"] is None:
            number = int(rows[0]["no"])
            await self._db.execute("UPDATE sessions SET last_at = max(last_at, ?) WHERE no = ?", (now, number))
        else:
            made = await self._db.returning(
                "INSERT INTO sessions (chat, started_at, last_at) VALUES (?, ?, ?) RETURNING no",
                (chat.no, now, now),
            )
            number = int(made[0]["no"])
        await self._db.execute(
            "INSERT INTO session_members (session, account) VALUES (?, ?)"
            " ON CONFLICT (session, account) DO UPDATE SET waiting = 1, attempts = 0, failed = NULL",
            (number, owner.no),
        )
        return number

    async def current(self, owner: Account, chat: Chat, *, now: datetime) -> int | None:
        """The owner's open session of a chat, or None when it has ended."""
        rows = await self._db.fetch(
            "SELECT s.no FROM sessions s JOIN session_members m ON m.session = s.no AND m.account = :owner"
            " WHERE s.chat = :chat AND s.ended_at IS NULL AND s.last_at > :since ORDER BY s.no DESC LIMIT 1",
            {"owner": owner.no, "chat": chat.no, "since": stamp(now) - self._idle},
        )
        return int(rows[0]["no"]) if rows else None

    async def end(self, owner: Account, chat: Chat, *, at: datetime) -> bool:
        """End the open session of a chat the owner takes part in (``/new``); whether there was one."""
        changed = await self._db.execute(
            "UPDATE sessions SET ended_at = :at WHERE chat = :chat AND ended_at IS NULL AND EXISTS"
            " (SELECT 1 FROM session_members m WHERE m.session = sessions.no AND m.account = :owner)",
            {"at": stamp(at), "chat": chat.no, "owner": owner.no},
        )
        return changed > 0

    async def owners_due(self, *, now: datetime, attempts: int) -> list[int]:
        """Numbers of the accounts that have a session to distil; where the job starts from."""
        rows = await self._db.fetch(
            "SELECT DISTINCT m.account FROM session_members m JOIN sessions s ON s.no = m.session"
            f" WHERE {_DUE} ORDER BY m.account",
            self._due(now, attempts),
        )
        return [int(row["account"]) for row in rows]

    async def due(self, owner: Account, *, now: datetime, attempts: int) -> list[Session]:
        """The owner's ended or idle sessions with undistilled lines, oldest first.

        Leased ones, ones waiting for their next try and ones given up after ``attempts`` are not due.
        """
        rows = await self._db.fetch(
            "SELECT s.no, s.chat, s.last_at, m.attempts FROM session_members m JOIN sessions s ON s.no = m.session"
            f" WHERE m.account = :owner AND {_DUE} ORDER BY s.no",
            self._due(now, attempts) | {"owner": owner.no},
        )
        return [Session(row["no"], row["chat"], moment(row["last_at"]), row["attempts"]) for row in rows]

    async def claim(
        self, owner: Account, session: int, *, now: datetime, lease_seconds: float, limit: int
    ) -> Batch | None:
        """Lease the next lines of a session (at most ``limit``); None when another claim holds them.

        The lease ends by time, so a crash delays a distillation and never loses it. A claim counts as a try.
        """
        until = stamp(now + timedelta(seconds=lease_seconds))
        async with self._db.transaction():
            rows = await self._db.returning(
                "UPDATE session_members SET not_before = :until, attempts = attempts + 1"
                " WHERE session = :session AND account = :owner AND waiting = 1 AND not_before <= :now"
                " RETURNING distilled_to, attempts",
                {"until": until, "session": session, "owner": owner.no, "now": stamp(now)},
            )
            if not rows:
                return None
            cursor = int(rows[0]["distilled_to"])
            new = "(j.id > :cursor OR j.revised = 1)"
            fresh = await self._lines(owner, session, new, order="j.id", cursor=cursor, limit=limit)
            if not fresh:
                await self._db.execute(
                    "UPDATE session_members SET waiting = 0, not_before = 0, attempts = 0"
                    " WHERE session = ? AND account = ?",
                    (session, owner.no),
                )
                return None
            earlier = await self._lines(
                owner, session, "j.id < :cursor", order="j.id DESC", cursor=fresh[0].id, limit=EARLIER_LINES
            )
            chat = await self.chat(owner, session)
        return Batch(session, chat, fresh, earlier[::-1], int(rows[0]["attempts"]))

    async def chat(self, owner: Account, session: int) -> Chat:
        """Where a session of the owner takes place, as of now."""
        rows: list[sqlite3.Row] = await self._db.fetch(
            "SELECT c.no, c.platform, c.key, c.private, c.parent FROM chats c JOIN sessions s ON s.chat = c.no"
            " JOIN session_members m ON m.session = s.no AND m.account = ? WHERE s.no = ?",
            (owner.no, session),
        )
        row = rows[0]
        return Chat(row["no"], row["platform"], row["key"], bool(row["private"]), row["parent"])

    async def finish(self, owner: Account, session: int, *, upto: int, covered: Collection[int] = ()) -> None:
        """Move the cursor behind line ``upto``, inside the transaction that wrote what the lines gave.

        ``covered`` are the lines that were distilled; those among them that had been edited are done, too.
        """
        if not self._db.inside:
            raise RuntimeError("the cursor moves in the transaction that writes the memories")
        await self._db.execute(
            "UPDATE journal SET revised = 0 WHERE revised = 1 AND session = ? AND id BETWEEN ? AND ?"
            " AND id IN (SELECT value FROM json_each(?))",
            (session, owner.first_id, owner.last_id, json.dumps(list(covered))),
        )
        await self._db.execute(
            "UPDATE session_members SET distilled_to = max(distilled_to, :upto), attempts = 0, not_before = 0,"
            " failed = NULL, waiting = EXISTS (SELECT 1 FROM journal j WHERE j.session = :session"
            " AND (j.id > max(distilled_to, :upto) OR j.revised = 1) AND j.id BETWEEN :lo AND :hi AND j.role = 'user'"
            " AND j.kind = 'said' AND j.hidden_by IS NULL)"
            " WHERE session = :session AND account = :owner",
            {"upto": upto, "session": session, "owner": owner.no, "lo": owner.first_id, "hi": owner.last_id},
        )

    async def rewind(self, owner: Account, session: int, *, before: int) -> None:
        """Move the cursor back in front of line ``before``, which has not been distilled although it passed."""
        await self._db.execute(
            "UPDATE session_members SET waiting = 1, attempts = 0, distilled_to = min(distilled_to, ?)"
            " WHERE session = ? AND account = ?",
            (before - 1, session, owner.no),
        )

    async def again(self, owner: Account, session: int) -> None:
        """Have a session wait for the distillation of lines that were edited behind the cursor."""
        await self._db.execute(
            "UPDATE session_members SET waiting = 1, attempts = 0 WHERE session = ? AND account = ?",
            (session, owner.no),
        )

    async def fail(self, owner: Account, session: int, *, reason: str, retry_at: datetime, counts: bool = True) -> None:
        """Give the lease back with the reason; the lines stay, and are tried again from ``retry_at``.

        ``counts`` False takes the try back: a model that is down says nothing against the lines.
        """
        await self._db.execute(
            "UPDATE session_members SET failed = ?, not_before = ?, attempts = max(attempts - ?, 0)"
            " WHERE session = ? AND account = ?",
            (reason, stamp(retry_at), 0 if counts else 1, session, owner.no),
        )

    async def _lines(
        self, owner: Account, session: int, condition: str, *, order: str, cursor: int, limit: int
    ) -> list[Message]:
        rows = await self._db.fetch(
            f"SELECT {LINE} FROM journal j WHERE j.session = :session AND j.id BETWEEN :lo AND :hi AND {condition}"
            f" AND j.kind != 'command' AND j.hidden_by IS NULL ORDER BY {order} LIMIT :limit",
            {
                "session": session,
                "lo": owner.first_id,
                "hi": owner.last_id,
                "cursor": cursor,
                "limit": limit,
            },
        )
        return [line(row) for row in rows]

    def _due(self, now: datetime, attempts: int) -> dict[str, int]:
        return {"now": stamp(now), "since": stamp(now) - self._idle, "attempts": attempts}


_DUE = (
    "m.waiting = 1 AND m.not_before <= :now AND m.attempts < :attempts"
    " AND (s.ended_at IS NOT NULL OR s.last_at <= :since)"
)


def stamp_length(length: timedelta) -> int:
    """A length of time in whole microseconds."""
    return length // timedelta(microseconds=1)
