"""How the whole house stands, in numbers, from a file that is only read, whether the bot has it open or not.

For whoever runs the bot: counts and times, and no word of anybody. The one place besides :mod:`memory.accounts` whose
questions cannot start from an owner; how one reply came to be (:class:`Told`) is found here and read with its owner.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from memory import engine
from memory.clock import moment, stamp
from memory.db import DatabaseError
from memory.jobs import JobRun, runs_in
from memory.model import SEQ_BITS
from memory.opening import migrations
from memory.usage import Spent, UsageKind, day_of_utc

STORES: Final = ("profile", "timeline", "facts")
WAIT_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Numbers:
    """The house at one moment.

    ``memories``: rows that hold and all rows, by store. ``sessions``: how many are ``open``, are ``due`` to be
    distilled, ``wait`` for their next try or day; ``set_aside`` counts lines that no try could distil. ``erasures``:
    how many are ``hidden`` and can be undone, how many ``due``; ``next_erasure`` is when the next one begins. ``spent``
    and ``tallies`` are of this day of UTC, ``spenders`` the accounts ("platform:id") that used most of its tokens.
    """

    version: int
    counts: Mapping[str, int]
    memories: Mapping[str, tuple[int, int]]
    sessions: Mapping[str, int]
    erasures: Mapping[str, int]
    next_erasure: datetime | None
    jobs: Sequence[JobRun]
    spent: Mapping[UsageKind, Spent]
    tallies: Mapping[tuple[str, str], int]
    spenders: Sequence[tuple[str, Spent]] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """How one reply came to be: whose, when, under which number in the log; ``data`` as :mod:`bot.trace` made it.

    ``account`` is its owner's number, ``who`` the account as people name it ("telegram:1001").
    """

    id: int
    account: int
    who: str
    reply: int | None
    at: datetime
    turn: str
    data: Mapping[str, Any] = field(repr=False)


class Census:
    """An open file that cannot be written. Make one with :func:`looking`."""

    def __init__(self, connection: engine.Opened) -> None:
        self._connection = connection

    def numbers(self, *, now: datetime, idle_seconds: float, spenders: int = 0) -> Numbers:
        """Count everything; ``idle_seconds`` of silence end a session, ``spenders`` is how many are named."""
        at = {"now": stamp(now), "since": stamp(now) - int(idle_seconds * 1_000_000), "day": day_of_utc(now)}
        over = "(s.ended_at IS NOT NULL OR s.last_at <= :since)"
        (due_at,) = self._row("SELECT min(erase_at) FROM deletions WHERE undone_at IS NULL AND erased_at IS NULL")
        return Numbers(
            version=self._one("PRAGMA user_version"),
            counts={
                "people": self._one("SELECT count(*) FROM accounts"),
                "linked": self._one("SELECT count(*) FROM links"),
                "private_chats": self._one("SELECT count(*) FROM chats WHERE private = 1"),
                "groups": self._one("SELECT count(*) FROM chats WHERE private = 0"),
                "messages": self._one("SELECT count(*) FROM journal"),
                "replies_owed": self._one("SELECT count(*) FROM waiting"),
                "notices_owed": self._one("SELECT count(*) FROM notices WHERE sent_at IS NULL"),
                "traces": self._one("SELECT count(*) FROM traces"),
            },
            memories={
                store: self._row(
                    "SELECT count(*) FILTER (WHERE retired_at IS NULL AND hidden_by IS NULL"
                    f" AND (expires_at IS NULL OR expires_at > :now)), count(*) FROM {store}",
                    at,
                )
                for store in STORES
            },
            sessions=self._named(
                ("open", "due", "wait"),
                f"SELECT count(*) FILTER (WHERE NOT {over}), count(*) FILTER (WHERE {over} AND m.not_before <= :now),"
                f" count(*) FILTER (WHERE {over} AND m.not_before > :now)"
                " FROM session_members m JOIN sessions s ON s.no = m.session WHERE m.waiting = 1",
                at,
            )
            | {"set_aside": self._one("SELECT count(*) FROM journal WHERE set_aside IS NOT NULL")},
            erasures=self._named(
                ("hidden", "due"),
                "SELECT count(*) FILTER (WHERE erase_at > :now), count(*) FILTER (WHERE erase_at <= :now)"
                " FROM deletions WHERE undone_at IS NULL AND erased_at IS NULL",
                at,
            ),
            next_erasure=moment(due_at),
            jobs=runs_in(self._connection),
            spent={
                row["kind"]: Spent(row["times"], row["tokens_in"], row["tokens_out"])
                for row in self._rows(
                    "SELECT kind, sum(times) AS times, sum(tokens_in) AS tokens_in, sum(tokens_out) AS tokens_out"
                    " FROM usage WHERE day = :day GROUP BY kind",
                    at,
                )
            },
            tallies={
                (row["name"], row["label"]): row["times"]
                for row in self._rows("SELECT name, label, times FROM tallies WHERE day = :day", at)
            },
            spenders=self._spenders(at["day"], spenders) if spenders else (),
        )

    def newest(self, most: int) -> list[Told]:
        """The last replies of the whole house, ``most`` of them, oldest first."""
        return self._told("1", {"most": most})

    def of_turn(self, turn: str) -> list[Told]:
        """What came of the turn with this number."""
        return self._told("t.turn = :turn AND t.turn != ''", {"turn": turn, "most": -1})

    def of(self, platform: str, user_id: str, most: int) -> list[Told]:
        """The last replies to one account, oldest first."""
        mine = f"t.id >> {SEQ_BITS} = (SELECT no FROM accounts WHERE platform = :platform AND user_id = :user)"
        return self._told(mine, {"platform": platform, "user": user_id, "most": most})

    def knows(self, platform: str, user_id: str) -> bool:
        """Whether somebody has an account."""
        return bool(self._rows("SELECT 1 FROM accounts WHERE platform = ? AND user_id = ?", (platform, user_id)))

    def words(self, account: int, rows: Sequence[int]) -> dict[int, str]:
        """The words of rows of one account, by their numbers; what is hidden or gone has none."""
        mine = {"ids": json.dumps(list(rows)), "lo": account << SEQ_BITS, "hi": ((account + 1) << SEQ_BITS) - 1}
        wanted = "id BETWEEN :lo AND :hi AND id IN (SELECT value FROM json_each(:ids)) AND hidden_by IS NULL"
        parts = (f"SELECT id, text FROM {table} WHERE {wanted}" for table in (*STORES, "journal"))
        return {int(row["id"]): str(row["text"]) for row in self._rows(" UNION ALL ".join(parts), mine)}

    def _told(self, condition: str, values: Mapping[str, Any]) -> list[Told]:
        rows = self._rows(
            "SELECT t.id, t.reply, t.at, t.turn, t.data, a.no, a.platform, a.user_id FROM traces t"
            f" JOIN accounts a ON a.no = t.id >> {SEQ_BITS} WHERE {condition}"
            " ORDER BY t.at DESC, t.id DESC LIMIT :most",
            values,
        )
        return [
            Told(
                row["id"],
                row["no"],
                f"{row['platform']}:{row['user_id']}",
                row["reply"],
                moment(int(row["at"])),
                row["turn"],
                json.loads(row["data"]),
            )
            for row in reversed(rows)
        ]

    def _spenders(self, day: int, most: int) -> list[tuple[str, Spent]]:
        rows = self._rows(
            "SELECT a.platform, a.user_id, sum(u.times) AS times, sum(u.tokens_in) AS tokens_in,"
            " sum(u.tokens_out) AS tokens_out FROM usage u JOIN accounts a ON a.no = u.account WHERE u.day = ?"
            " AND u.kind IN ('reply', 'distil', 'rewrite')"
            " GROUP BY u.account ORDER BY sum(u.tokens_in) + sum(u.tokens_out) DESC, u.account LIMIT ?",
            (day, most),
        )
        return [
            (f"{row['platform']}:{row['user_id']}", Spent(row["times"], row["tokens_in"], row["tokens_out"]))
            for row in rows
        ]

    def _rows(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> list[sqlite3.Row]:
        return self._connection.execute(sql, values).fetchall()

    def _row(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> tuple[Any, ...]:
        return tuple(self._rows(sql, values)[0])

    def _one(self, sql: str) -> int:
        return int(self._row(sql)[0])

    def _named(self, names: Sequence[str], sql: str, values: Mapping[str, Any]) -> dict[str, int]:
        return dict(zip(names, self._row(sql, values), strict=True))


@contextlib.contextmanager
def looking(path: Path) -> Iterator[Census | None]:
    """Open a file only to look at it; None when there is none yet. Everything is read as of one moment.

    Raises DatabaseError for one that cannot be read, or is not of this version.
    """
    newest = migrations()[-1][0]
    if not path.exists() or path.stat().st_size == 0:
        yield None
        return
    try:
        with contextlib.closing(
            engine.connect(_only_read(path), uri=True, timeout=WAIT_SECONDS, rows=True)
        ) as connection:
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if version != newest:
                which = "older" if version < newest else "newer"
                fix = "start the bot once to bring it up to date" if version < newest else "update Recollect"
                raise DatabaseError(f"{path} is of an {which} version ({version}, this one knows {newest}): {fix}.")
            connection.execute("BEGIN")
            yield Census(connection)
    except engine.ERROR as error:
        raise DatabaseError(f"{path} cannot be read ({error}); `python -m bot check` says more.") from error


def _only_read(path: Path) -> str:
    """The address of a file for a connection that changes nothing, not even the folder.

    While somebody has it open there is a log beside it, and to be read with it; without one the file is whole as it is.
    """
    open_elsewhere = any(path.with_name(f"{path.name}{end}").exists() for end in ("-wal", "-shm"))
    return f"{path.absolute().as_uri()}?mode=ro{'' if open_elsewhere else '&immutable=1'}"
