"""Store of sessions: stretches of one chat, how far each person's part in them is distilled, and at what cost."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from memory.clock import moment, stamp
from memory.db import Database
from memory.journal import LINE, line
from memory.model import PRIVATE, Account, Chat, Message

EARLIER_LINES: Final = 6
"""Lines before the new ones that a distillation may read for pronouns, never cite."""
SECOND_CHANCE: Final = timedelta(days=7)
"""After which lines that were set aside are tried once more: a week sees a new model, a new program or a mended
endpoint, and what was said is still of use."""
CHANCES_A_DAY: Final = 60
"""Lines of one person that are tried again in a day: one request of the default size."""
SPENDING_DAYS: Final = 400
"""Days for which the tokens of a person's distillations are kept: a year, to be looked back on."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session as one owner takes part in it; ``failed`` is why its last try came to nothing ("" when none did)."""

    no: int
    chat: int
    last_at: datetime
    attempts: int
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """The lines of a session that wait to be distilled for one owner, and a few earlier ones.

    ``attempts`` counts the claims of these lines, this one included; ``lease`` is what tells this claim from others;
    ``read`` counts by id the characters of a long line that are distilled already.
    """

    session: int
    chat: Chat
    messages: list[Message]
    earlier: list[Message]
    attempts: int
    lease: int = 0
    read: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a batch was read: to its line ``upto`` (0: to the end of none), as ids of lines.

    ``ended`` are those read to their end, ``begun`` those read from their beginning, ``half`` the one that was not
    read to its end, with the characters that were.
    """

    upto: int
    ended: tuple[int, ...] = ()
    begun: tuple[int, ...] = ()
    half: tuple[int, int] | None = None

    @property
    def touched(self) -> list[int]:
        """Every line of which something was read."""
        return [*self.ended, *([self.half[0]] if self.half else [])]


class Sessions:
    """A session starts with a message and ends by silence or by ``/new``."""

    def __init__(self, db: Database, idle: timedelta) -> None:
        self._db = db
        self._idle = stamp_length(idle)

    async def touch(self, owner: Account, chat: Chat, at: datetime, *, answers: int | None = None) -> int:
        """The session a message at ``at`` belongs to, made if the last one ended. Needs an open transaction.

        A reply belongs to the line it ``answers``, however late it comes. The session waits for distillation from
        now on; what was tried with its lines so far still counts, or a session that grows could be tried for ever.
        """
        rows = await self._db.fetch(
            "SELECT no, started_at, last_at, ended_at, EXISTS (SELECT 1 FROM journal j WHERE j.id = :answers"
            " AND j.session = s.no) AS asked FROM sessions s WHERE chat = :chat ORDER BY no DESC LIMIT 1",
            {"answers": answers, "chat": chat.no},
        )
        now = stamp(at)
        # Nor does what was said long before a session began belong to it: the clock was set back, or it comes late.
        goes_on = rows and (
            rows[0]["asked"] or (now - rows[0]["last_at"] < self._idle and rows[0]["started_at"] - now < self._idle)
        )
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
            " ON CONFLICT (session, account) DO UPDATE SET waiting = 1",
            (number, owner.no),
        )
        return number

    async def past(self, owner: Account, chat: Chat, at: datetime) -> int:
        """The ended session that an imported line of ``at`` belongs to, made if there is none. Nothing distils it.

        Lines come in the order of their times. Needs an open transaction.
        """
        now = stamp(at)
        rows = await self._db.fetch(
            "SELECT s.no FROM sessions s JOIN session_members m ON m.session = s.no AND m.account = :owner"
            " WHERE s.chat = :chat AND m.distilled_to = :done AND s.last_at BETWEEN :since AND :now"
            " ORDER BY s.no DESC LIMIT 1",
            {"owner": owner.no, "chat": chat.no, "done": owner.last_id, "since": now - self._idle, "now": now},
        )
        if rows:
            number = int(rows[0]["no"])
            await self._db.execute("UPDATE sessions SET last_at = ?, ended_at = ? WHERE no = ?", (now, now, number))
            return number
        made = await self._db.returning(
            "INSERT INTO sessions (chat, started_at, last_at, ended_at) VALUES (:chat, :at, :at, :at) RETURNING no",
            {"chat": chat.no, "at": now},
        )
        number = int(made[0]["no"])
        await self._db.execute(
            "INSERT INTO session_members (session, account, distilled_to, waiting) VALUES (?, ?, ?, 0)",
            (number, owner.no, owner.last_id),
        )
        return number

    async def members(self, owner: Account, sessions: Sequence[int]) -> list[int]:
        """Numbers of the other accounts that take part in sessions the owner takes part in."""
        rows = await self._db.fetch(
            "SELECT DISTINCT other.account FROM session_members mine JOIN session_members other"
            " ON other.session = mine.session AND other.account != mine.account WHERE mine.account = ?"
            " AND mine.session IN (SELECT value FROM json_each(?)) ORDER BY other.account",
            (owner.no, json.dumps(list(sessions))),
        )
        return [int(row["account"]) for row in rows]

    async def partners(self, owner: Account) -> list[int]:
        """Numbers of the accounts that ever took part in a session together with the owner."""
        rows = await self._db.fetch(
            "SELECT DISTINCT other.account FROM session_members mine JOIN session_members other"
            " ON other.session = mine.session AND other.account != mine.account WHERE mine.account = ?"
            " ORDER BY other.account",
            (owner.no,),
        )
        return [int(row["account"]) for row in rows]

    async def current(self, owner: Account, chat: Chat, *, now: datetime) -> int | None:
        """The owner's open session of a chat, or None when it has ended."""
        rows = await self._db.fetch(
            "SELECT s.no FROM sessions s JOIN session_members m ON m.session = s.no AND m.account = :owner"
            " WHERE s.chat = :chat AND s.ended_at IS NULL AND s.last_at > :since ORDER BY s.no DESC LIMIT 1",
            {"owner": owner.no, "chat": chat.no, "since": stamp(now) - self._idle},
        )
        return int(rows[0]["no"]) if rows else None

    async def talking(self, owner: Account, *, now: datetime) -> int | None:
        """The open session in which the owner, or somebody with them, spoke last; None when all have ended."""
        rows = await self._db.fetch(
            "SELECT s.no FROM session_members m JOIN sessions s ON s.no = m.session WHERE m.account = :owner"
            " AND s.ended_at IS NULL AND s.last_at > :since ORDER BY s.last_at DESC, s.no DESC LIMIT 1",
            {"owner": owner.no, "since": stamp(now) - self._idle},
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

    async def set_right(self, *, now: datetime) -> int:
        """Bring back to the present what a clock gone wrong has put into the future; returns how many sessions.

        A session last spoken in then would end only when that time has come, and a lease or a pause that was taken
        then would hold it up as long. Nothing is put off for longer than three hours but to the next day.
        """
        times = self._right(now)
        async with self._db.transaction():
            changed = await self._db.execute("UPDATE sessions SET last_at = :now WHERE last_at > :slack", times)
            changed += await self._db.execute(f"UPDATE session_members SET not_before = 0 WHERE {_ASTRAY}", times)
        return changed

    async def astray(self, *, now: datetime) -> bool:
        """Whether there is anything to set right."""
        rows = await self._db.fetch(
            "SELECT EXISTS (SELECT 1 FROM sessions WHERE last_at > :slack)"
            f" OR EXISTS (SELECT 1 FROM session_members WHERE {_ASTRAY}) AS astray",
            self._right(now),
        )
        return bool(rows[0]["astray"])

    @staticmethod
    def _right(now: datetime) -> dict[str, int]:
        at = stamp(now)
        return {"now": at, "slack": at + _SLACK, "soon": at + _LONGEST_PAUSE, "day": _DAY}

    async def owners_due(self, *, now: datetime) -> list[int]:
        """Numbers of the accounts that have a session to distil; where the job starts from."""
        rows = await self._db.fetch(
            "SELECT DISTINCT m.account FROM session_members m JOIN sessions s ON s.no = m.session"
            f" WHERE {_DUE} ORDER BY m.account",
            self._due(now),
        )
        return [int(row["account"]) for row in rows]

    async def due(self, owner: Account, *, now: datetime) -> list[Session]:
        """The owner's ended or idle sessions with undistilled lines, oldest first.

        Leased ones and ones that wait for their next try or for the next day are not due.
        """
        rows = await self._db.fetch(
            "SELECT s.no, s.chat, s.last_at, m.attempts, coalesce(m.failed, '') AS failed FROM session_members m"
            f" JOIN sessions s ON s.no = m.session WHERE m.account = :owner AND {_DUE} ORDER BY s.no",
            self._due(now) | {"owner": owner.no},
        )
        return [Session(row["no"], row["chat"], moment(row["last_at"]), row["attempts"], row["failed"]) for row in rows]

    async def claim(
        self, owner: Account, session: int, *, now: datetime, lease_seconds: float, limit: int
    ) -> Batch | None:
        """Lease the next lines of a session (at most ``limit``); None when another claim holds them.

        The lease ends by time, so a crash delays a distillation and never loses it. A claim counts as a try.
        """
        until = stamp(now + timedelta(seconds=lease_seconds))

        async def writing() -> Batch | None:
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
            read = await self._read(owner, fresh)
            return Batch(session, chat, fresh, earlier[::-1], int(rows[0]["attempts"]), until, read)

        return await self._db.written(writing)

    async def holds(self, owner: Account, batch: Batch) -> bool:
        """Whether a batch is still this claim's: an answer that outlived its lease may have been overtaken."""
        rows = await self._db.fetch(
            "SELECT 1 FROM session_members WHERE session = ? AND account = ? AND not_before = ?",
            (batch.session, owner.no, batch.lease),
        )
        return bool(rows)

    async def chat(self, owner: Account, session: int) -> Chat:
        """Where a session of the owner takes place, as of now."""
        rows: list[sqlite3.Row] = await self._db.fetch(
            "SELECT c.no, c.platform, c.key, c.private, c.parent FROM chats c JOIN sessions s ON s.chat = c.no"
            " JOIN session_members m ON m.session = s.no AND m.account = ? WHERE s.no = ?",
            (owner.no, session),
        )
        row = rows[0]
        return Chat(row["no"], row["platform"], row["key"], bool(row["private"]), row["parent"])

    async def audience(self, owner: Account, session: int) -> int:
        """Where what the owner said in a session may be used, as of now."""
        rows = await self._db.fetch(
            "SELECT s.aside FROM sessions s JOIN session_members m ON m.session = s.no AND m.account = ?"
            " WHERE s.no = ?",
            (owner.no, session),
        )
        return PRIVATE if rows[0]["aside"] else (await self.chat(owner, session)).audience

    async def finish(self, owner: Account, session: int, reach: Reach) -> None:
        """Move the cursor as far as lines were read, inside the transaction that wrote what they gave."""
        await self._pass(owner, session, reach)

    async def set_aside(self, owner: Account, batch: Batch, reach: Reach, *, reason: str, now: datetime) -> None:
        """Move the cursor behind lines that no try could distil, each marked with the reason; inside a transaction.

        The lines behind them are next, with one try less than these had. An edit gives a marked line another turn,
        and so does time, once (:meth:`second_chance`), unless it ended the program.
        """
        await self._pass(owner, batch.session, reach)
        await self._db.execute(
            "UPDATE journal SET set_aside = :reason,"
            " second_at = CASE WHEN :reason = 'crashed' THEN 0 ELSE coalesce(second_at, :again) END"
            " WHERE id BETWEEN :lo AND :hi AND id IN (SELECT value FROM json_each(:ids))",
            {"reason": reason, "again": stamp(now + SECOND_CHANCE), "ids": json.dumps(reach.touched)} | _range(owner),
        )
        await self._db.execute(
            "UPDATE session_members SET attempts = ?, failed = ? WHERE session = ? AND account = ?",
            (batch.attempts - 1, reason, batch.session, owner.no),
        )

    async def second_chance(self, owner: Account, *, now: datetime) -> int:
        """Have the lines that were set aside SECOND_CHANCE ago distilled once more, a request of them at a time.

        By then the model or the program may be another. Returns how many; none of them gets a third.
        """

        async def writing() -> int:
            rows = await self._db.returning(
                "UPDATE journal SET revised = 1, second_at = 0, read_to = 0 WHERE id IN (SELECT id FROM journal"
                " WHERE second_at BETWEEN 1 AND :now AND id BETWEEN :lo AND :hi AND hidden_by IS NULL"
                " ORDER BY id LIMIT :most) RETURNING session",
                {"now": stamp(now), "most": CHANCES_A_DAY} | _range(owner),
            )
            for session in {int(row["session"]) for row in rows}:
                await self.again(owner, session)
            return len(rows)

        return await self._db.written(writing)

    async def _pass(self, owner: Account, session: int, reach: Reach) -> None:
        if not self._db.inside:
            raise RuntimeError("the cursor moves in the transaction that writes the memories")
        # Of a line that was begun before this batch an earlier piece may be set aside: its mark stays.
        await self._db.execute(
            "UPDATE journal SET revised = 0, read_to = 0, set_aside ="
            " CASE WHEN id IN (SELECT value FROM json_each(:begun)) THEN NULL ELSE set_aside END"
            " WHERE session = :session AND id BETWEEN :lo AND :hi AND id IN (SELECT value FROM json_each(:ended))",
            {"session": session, "ended": json.dumps(reach.ended), "begun": json.dumps(reach.begun)} | _range(owner),
        )
        if reach.half is not None:
            await self._db.execute(
                "UPDATE journal SET read_to = :read WHERE id = :id AND id BETWEEN :lo AND :hi",
                {"id": reach.half[0], "read": reach.half[1]} | _range(owner),
            )
        await self._db.execute(
            "UPDATE session_members SET distilled_to = max(distilled_to, :upto), attempts = 0, not_before = 0,"
            " failed = NULL, waiting = EXISTS (SELECT 1 FROM journal j WHERE j.session = :session"
            " AND (j.id > max(distilled_to, :upto) OR j.revised = 1) AND j.id BETWEEN :lo AND :hi AND j.role = 'user'"
            " AND j.kind = 'said' AND j.hidden_by IS NULL AND j.fleeting = 0)"
            " WHERE session = :session AND account = :owner",
            {"upto": reach.upto, "session": session, "owner": owner.no} | _range(owner),
        )

    async def _read(self, owner: Account, lines: Collection[Message]) -> dict[int, int]:
        """How many characters of lines are distilled although the lines are not."""
        rows = await self._db.fetch(
            "SELECT id, read_to FROM journal WHERE id BETWEEN :lo AND :hi AND read_to > 0"
            " AND id IN (SELECT value FROM json_each(:ids))",
            {"ids": json.dumps([each.id for each in lines])} | _range(owner),
        )
        return {int(row["id"]): int(row["read_to"]) for row in rows}

    async def rewind(self, owner: Account, session: int, *, before: int) -> None:
        """Have line ``before`` distilled although the cursor may be behind it, and no other line a second time."""
        await self._db.execute(
            "UPDATE journal SET revised = 1, read_to = 0 WHERE id = ? AND session = ? AND id BETWEEN ? AND ?"
            " AND role = 'user' AND kind = 'said' AND fleeting = 0",
            (before, session, owner.first_id, owner.last_id),
        )
        await self.again(owner, session)

    async def unread(self, owner: Account, lines: Collection[int]) -> None:
        """Mark those of some lines that were not distilled yet: the cursor may pass them while they are hidden."""
        await self._db.execute(
            "UPDATE journal SET revised = 1 WHERE id IN (SELECT value FROM json_each(:ids)) AND id BETWEEN :lo AND :hi"
            " AND role = 'user' AND kind = 'said' AND fleeting = 0"
            " AND id > (SELECT m.distilled_to FROM session_members m"
            " WHERE m.session = journal.session AND m.account = :owner)",
            {"ids": json.dumps(list(lines)), "owner": owner.no} | _range(owner),
        )

    async def resume(self, owner: Account, lines: Collection[int]) -> None:
        """Have the sessions of lines that are no longer hidden wait for the distillation of those that had none."""
        await self._db.execute(
            "UPDATE session_members SET waiting = 1, attempts = 0 WHERE account = :owner AND session IN"
            " (SELECT session FROM journal WHERE id IN (SELECT value FROM json_each(:ids)) AND id BETWEEN :lo AND :hi"
            " AND revised = 1)",
            {"ids": json.dumps(list(lines)), "owner": owner.no} | _range(owner),
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

    async def postpone(self, owner: Account, session: int, *, now: datetime, until: datetime) -> None:
        """Let a session that is due wait until a moment; no try is counted, and a lease stays whose it is."""
        await self._db.execute(
            "UPDATE session_members SET not_before = ? WHERE session = ? AND account = ? AND not_before <= ?",
            (stamp(until), session, owner.no, stamp(now)),
        )

    async def charge(self, owner: Account, tokens: int, *, now: datetime) -> None:
        """Add the tokens of a distillation (negative: give back) to what the owner has had on this day of UTC."""

        async def writing() -> None:
            await self._db.execute(
                "INSERT INTO spending (account, day, tokens) VALUES (:owner, :day, max(:tokens, 0))"
                " ON CONFLICT (account, day) DO UPDATE SET tokens = max(tokens + :tokens, 0)",
                {"owner": owner.no, "day": _day(now), "tokens": tokens},
            )
            await self._db.execute(
                "DELETE FROM spending WHERE account = ? AND day < ?", (owner.no, _day(now) - SPENDING_DAYS)
            )

        await self._db.written(writing)

    async def spent(self, owner: Account, *, now: datetime) -> tuple[int, int]:
        """Tokens of distillations on this day of UTC: for the owner, and for everybody."""
        rows = await self._db.fetch(
            "SELECT coalesce(sum(tokens) FILTER (WHERE account = ?), 0) AS own, coalesce(sum(tokens), 0) AS whole"
            " FROM spending WHERE day = ?",
            (owner.no, _day(now)),
        )
        return int(rows[0]["own"]), int(rows[0]["whole"])

    async def _lines(
        self, owner: Account, session: int, condition: str, *, order: str, cursor: int, limit: int
    ) -> list[Message]:
        rows = await self._db.fetch(
            f"SELECT {LINE} FROM journal j WHERE j.session = :session AND j.id BETWEEN :lo AND :hi AND {condition}"
            f" AND j.kind != 'command' AND j.hidden_by IS NULL AND j.fleeting = 0 ORDER BY {order} LIMIT :limit",
            {
                "session": session,
                "lo": owner.first_id,
                "hi": owner.last_id,
                "cursor": cursor,
                "limit": limit,
            },
        )
        return [line(row) for row in rows]

    def idle_since(self, now: datetime) -> int:
        """The moment (as stored) at which a session that is over by silence was spoken in last, or earlier."""
        return stamp(now) - self._idle

    def _due(self, now: datetime) -> dict[str, int]:
        return {"now": stamp(now), "since": self.idle_since(now)}


OVER = "(s.ended_at IS NOT NULL OR s.last_at <= :since)"
"""Whether a session has ended, as SQL; ``:since`` is :meth:`Sessions.idle_since`."""
_DUE = f"m.waiting = 1 AND m.not_before <= :now AND {OVER}"


def next_day(now: datetime) -> datetime:
    """The moment at which the next day of UTC begins."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


def _range(owner: Account) -> dict[str, int]:
    return {"lo": owner.first_id, "hi": owner.last_id}


def _day(now: datetime) -> int:
    return now.astimezone(UTC).toordinal()


def stamp_length(length: timedelta) -> int:
    """A length of time in whole microseconds."""
    return length // timedelta(microseconds=1)


_SLACK: Final = stamp_length(timedelta(minutes=10))
"""By which a platform's time may be ahead of ours."""
_LONGEST_PAUSE: Final = stamp_length(timedelta(hours=3))
_DAY: Final = stamp_length(timedelta(days=1))
_ASTRAY: Final = "not_before > :soon AND (not_before % :day != 0 OR not_before > :now + :day)"
"""What waits for so long, and not for a day of UTC to begin, was put off by a clock that was ahead."""
