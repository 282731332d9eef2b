"""Store of who may talk to the bot and who asks to. Names are those of the settings ("telegram:1001"); no memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memory.clock import moment, stamp
from memory.db import Database

Sort = Literal["person", "group"]
How = Literal["code", "name", "update", "moved"]
"""By which way somebody came in: a code, their number, having talked before there was a door, a group's new number."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is written down of somebody in a place: whether they may talk, are an admin, or everybody there may talk."""

    person: bool = False
    admin: bool = False
    group: bool = False


@dataclass(frozen=True, slots=True)
class Allowed:
    """A person or group that may talk, since ``at`` (aware UTC)."""

    name: str
    kind: Sort
    admin: bool
    how: How
    at: datetime


@dataclass(frozen=True, slots=True)
class Asking:
    """A stranger who was shown a code: where to answer them, in which language, and ``hash`` and ``salt`` of it."""

    name: str
    key: str
    language: str
    salt: bytes
    hash: bytes
    refused: bool
    asked_at: datetime
    expires_at: datetime


class Admissions:
    """Rows of the door. Everything is by name: strangers have no account, and get none here."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def standing(self, person: str, places: Sequence[str]) -> Standing:
        """What is written down of a person in a place that goes by these names."""
        rows = await self._db.fetch(
            "SELECT kind, max(admin) AS admin FROM allowed WHERE (name = ? AND kind = 'person')"
            " OR (kind = 'group' AND name IN (SELECT value FROM json_each(?))) GROUP BY kind",
            (person, json.dumps(places)),
        )
        found = {row["kind"]: bool(row["admin"]) for row in rows}
        return Standing("person" in found, found.get("person", False), "group" in found)

    async def allow(self, name: str, kind: Sort, *, how: How, admin: bool, at: datetime) -> bool:
        """Let somebody in; whether that is news. One who is an admin stays one."""
        async with self._db.transaction():
            known = await self._db.fetch("SELECT admin FROM allowed WHERE name = ? AND kind = ?", (name, kind))
            await self._db.execute(
                "INSERT INTO allowed (name, kind, admin, how, at) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (name, kind) DO UPDATE SET admin = max(admin, excluded.admin)",
                (name, kind, int(admin), how, stamp(at)),
            )
        return not known or admin > known[0]["admin"]

    async def remove(self, name: str) -> list[Sort]:
        """Let somebody in no more; as what they were in."""
        rows = await self._db.returning("DELETE FROM allowed WHERE name = ? RETURNING kind", (name,))
        return [row["kind"] for row in rows]

    async def everyone(self) -> list[Allowed]:
        """Who is in: people, then groups, in the order they came."""
        rows = await self._db.fetch("SELECT name, kind, admin, how, at FROM allowed ORDER BY kind DESC, at, name")
        return [Allowed(row["name"], row["kind"], bool(row["admin"]), row["how"], moment(row["at"])) for row in rows]

    async def ask(self, asking: Asking) -> None:
        """Write down that a stranger was shown a code; an earlier one of theirs is worth nothing any more."""
        await self._db.execute(
            "INSERT OR REPLACE INTO pairing (name, key, language, salt, hash, asked_at, expires_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                asking.name,
                asking.key,
                asking.language,
                asking.salt,
                asking.hash,
                stamp(asking.asked_at),
                stamp(asking.expires_at),
            ),
        )

    async def asking(self, *, now: datetime) -> list[Asking]:
        """Who was shown a code or was refused, and hears nothing more for a while, oldest first."""
        rows = await self._db.fetch("SELECT * FROM pairing WHERE expires_at > ? ORDER BY asked_at, name", (stamp(now),))
        return [_asking(row) for row in rows]

    async def is_asking(self, name: str, *, now: datetime) -> bool:
        """Whether a stranger is one of them."""
        rows = await self._db.fetch("SELECT 1 FROM pairing WHERE name = ? AND expires_at > ?", (name, stamp(now)))
        return bool(rows)

    async def refuse(self, name: str, *, until: datetime) -> None:
        """Have a stranger's code be worth nothing, and nothing said to them for a while."""
        await self._db.execute(
            "UPDATE pairing SET refused = 1, salt = x'', hash = x'', expires_at = ? WHERE name = ?",
            (stamp(until), name),
        )

    async def settle(self, name: str) -> None:
        """Have a stranger ask no more: they are in, or were never told."""
        await self._db.execute("DELETE FROM pairing WHERE name = ?", (name,))

    async def drop_old(self, *, now: datetime, tries_since: datetime) -> None:
        """Drop what is too old to count."""
        await self._db.execute("DELETE FROM pairing WHERE expires_at <= ?", (stamp(now),))
        await self._db.execute("DELETE FROM pairing_tries WHERE at < ?", (stamp(tries_since),))

    async def missed(self, who: str, *, at: datetime) -> None:
        """Count a wrong code."""
        await self._db.execute("INSERT INTO pairing_tries (who, at) VALUES (?, ?)", (who, stamp(at)))

    async def misses(self, who: str) -> int:
        """How many wrong codes somebody typed of late."""
        rows = await self._db.fetch("SELECT count(*) AS times FROM pairing_tries WHERE who = ?", (who,))
        return int(rows[0]["times"])


def _asking(row: sqlite3.Row) -> Asking:
    return Asking(
        row["name"],
        row["key"],
        row["language"],
        row["salt"],
        row["hash"],
        bool(row["refused"]),
        moment(row["asked_at"]),
        moment(row["expires_at"]),
    )
