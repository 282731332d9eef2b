"""Store of the timeline: events with start, end, precision, zone and the original words."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from memory.clock import moment, stamp
from memory.entries import EntryStore, Row, span
from memory.model import Account, Candidate, Event, Provenance


class Timeline(EntryStore[Event]):
    """Episodic memory, found by time first."""

    table = "timeline"
    kind = "event"
    restable = "rrule IS NULL AND end_at < :before"

    async def between(self, owner: Account, start: datetime, end: datetime) -> list[Event]:
        """The open events that overlap ``[start, end)``, and every recurring one that began before ``end``."""
        return await self._select(
            owner,
            "retired_at IS NULL AND start_at < :end AND (end_at > :start OR rrule IS NOT NULL)",
            start=stamp(start),
            end=stamp(end),
        )

    async def rezone(self, owner: Account, old: str) -> int:
        """Let the owner's events of zone ``old`` (IANA) stand at the same hours of the owner's zone.

        Closed and hidden ones, too. Returns how many there were. Needs an open transaction.
        """
        rows = await self._db.fetch(
            "SELECT id, start_at, end_at, expires_at FROM timeline WHERE id BETWEEN ? AND ? AND zone = ?",
            (owner.first_id, owner.last_id, old),
        )
        was, is_now = ZoneInfo(old), ZoneInfo(owner.zone)

        def same_hour(at: int | None) -> int | None:
            return None if at is None else stamp(moment(at).astimezone(was).replace(tzinfo=is_now))

        await self._db.executemany(
            "UPDATE timeline SET start_at = ?, end_at = ?, expires_at = ?, zone = ? WHERE id = ?",
            [
                (
                    same_hour(row["start_at"]),
                    same_hour(row["end_at"]),
                    same_hour(row["expires_at"]),
                    owner.zone,
                    row["id"],
                )
                for row in rows
            ],
        )
        return len(rows)

    def _content(self, candidate: Candidate) -> dict[str, Any]:
        when = candidate.span
        if when is None:
            raise ValueError("an event needs a span")
        return {
            "text": candidate.text,
            "start_at": stamp(when.start),
            "end_at": stamp(when.end),
            "precision": when.precision,
            "zone": when.zone,
            "words": when.words,
            "rrule": when.rrule,
        }

    def _entry(self, row: Row, provenance: Provenance) -> Event:
        return Event(row["id"], row["subject"], row["text"], span(row), provenance)
