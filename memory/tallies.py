"""Store of what the program did, in counts by day: written, dropped, recalled, erased. No person, no word.

What is done is counted in memory when it is committed (:meth:`memory.db.Database.tally`), and written here with the
next round of housekeeping: a kill loses the counts of half a minute, never anything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from memory.clock import stamp
from memory.db import Database, Tally
from memory.usage import day_of_utc

KEPT_DAYS: Final = 366
"""Days for which the counts of a day are kept."""


class Tallies:
    """Counts by day of UTC, name and label."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._written: Counter[Tally] = Counter()

    @property
    def since_start(self) -> Mapping[Tally, int]:
        """What was done since the file was opened."""
        return self._db.tallied

    async def store(self, *, now: datetime) -> None:
        """Write what was done since the last time, as done today; drop what is older than a year."""
        done = +self._db.tallied
        new = done - self._written
        if not new:
            return
        day = day_of_utc(now)

        async def writing() -> None:
            await self._db.executemany(
                "INSERT INTO tallies (day, name, label, times) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (day, name, label) DO UPDATE SET times = times + excluded.times",
                [(day, name, label, times) for (name, label), times in new.items()],
            )
            await self._db.execute("DELETE FROM tallies WHERE day < ?", (day - KEPT_DAYS,))

        await self._db.written(writing)
        self._written = done

    async def waiting(self, *, now: datetime, idle_seconds: float) -> dict[str, int]:
        """How much of what is owed waits at ``now``: sessions to distil, erasures, replies, receipts."""
        at = {"now": stamp(now), "since": stamp(now) - int(idle_seconds * 1_000_000)}
        over = "(s.ended_at IS NOT NULL OR s.last_at <= :since)"
        rows = await self._db.fetch(
            "SELECT (SELECT count(*) FROM session_members m JOIN sessions s ON s.no = m.session"
            f" WHERE m.waiting = 1 AND {over}) AS sessions_to_distil,"
            " (SELECT count(*) FROM deletions WHERE undone_at IS NULL AND erased_at IS NULL AND erase_at <= :now)"
            " AS erasures_due,"
            " (SELECT count(*) FROM waiting) AS replies_owed,"
            " (SELECT count(*) FROM notices WHERE sent_at IS NULL) AS notices_owed,"
            " (SELECT count(*) FROM job_runs WHERE failures > 0) AS jobs_failing",
            at,
        )
        return {name: int(rows[0][name]) for name in rows[0].keys()}  # noqa: SIM118 - a row iterates over its values

    async def prove_writable(self, *, now: datetime) -> None:
        """Write a count to the file, and nothing else. Raises DatabaseError when the file takes no writes."""
        self._db.tally("probed")
        await self.store(now=now)
