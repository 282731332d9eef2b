"""What the three stores of long-term memory have in common: provenance, retirement, hiding, erasure.

Each store has its own table and its own shape (profile.py, timeline.py, facts.py); this file knows the
columns they share. Rules of meaning (what is a duplicate, who may see) are not here.
"""

from __future__ import annotations

import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, Generic, TypeVar

from memory.accounts import Accounts
from memory.clock import moment, stamp
from memory.db import Database
from memory.embedding import text_hash
from memory.model import (
    EVERYWHERE,
    Account,
    Candidate,
    Citation,
    Event,
    Fact,
    Kind,
    ProfileLine,
    Provenance,
    Span,
    Unit,
)
from memory.offloop import off_loop

E = TypeVar("E", ProfileLine, Event, Fact)
Row = Mapping[str, Any]
"""A row of a table by the names of its columns."""


class EntryStore(ABC, Generic[E]):
    """One kind of long-term memory, each call on behalf of its owner."""

    table: ClassVar[str]
    kind: ClassVar[Kind]
    restable: ClassVar[str] = "1"
    """Which rows of this kind may rest, as a condition on them."""

    def __init__(self, db: Database, accounts: Accounts) -> None:
        self._db = db
        self._accounts = accounts

    @abstractmethod
    def _content(self, candidate: Candidate) -> dict[str, Any]:
        """The columns that only this kind has, ``text`` among them."""

    @abstractmethod
    def _entry(self, row: Row, provenance: Provenance) -> E:
        """The row as a memory."""

    async def add(self, owner: Account, candidate: Candidate, *, audience: int, now: datetime) -> E:
        """Write a memory with its citations and read it back as stored. Needs an open transaction.

        It counts as said when its newest citation was. Raises ValueError for a candidate that cites nothing.
        """
        (made,) = await self.add_all(owner, [candidate], audience=audience, now=now)
        return made

    async def add_all(
        self, owner: Account, candidates: Sequence[Candidate], *, audience: int, now: datetime
    ) -> list[E]:
        """The same for many, in their order, in as few statements as for one."""
        if not candidates:
            return []
        if not all(candidate.citations for candidate in candidates):
            raise ValueError("a memory without a citation is not written")
        ids = await self._accounts.next_ids(owner, len(candidates))
        rows = [
            self._content(candidate) | _columns(candidate, id_, audience, now)
            for id_, candidate in zip(ids, candidates, strict=True)
        ]
        names = ", ".join(rows[0])
        values = ", ".join(f":{name}" for name in rows[0])
        filled = [row | {"text_hash": text_hash(row["text"])} for row in rows]
        await self._db.executemany(
            f"INSERT INTO {self.table} ({names}, text_hash) VALUES ({values}, :text_hash)", filled
        )
        self._db.tally("written", self.table, len(rows))
        await self._db.executemany(
            _CITE, [_cited(id_, c) for id_, candidate in zip(ids, candidates, strict=True) for c in candidate.citations]
        )
        return await self._select(owner, "id BETWEEN :first AND :last", first=ids[0], last=ids[-1])

    async def get(self, owner: Account, ids: Iterable[int]) -> dict[int, E]:
        """The owner's visible memories among ``ids``, closed ones included."""
        return {
            e.id: e
            for e in await self._select(owner, "id IN (SELECT value FROM json_each(:ids))", ids=json.dumps(list(ids)))
        }

    async def live(self, owner: Account, *, now: datetime) -> list[E]:
        """What holds at ``now``: neither superseded nor expired nor hidden, oldest first."""
        return await self._select(owner, LIVE, now=stamp(now))

    async def history(self, owner: Account) -> list[E]:
        """Every visible memory of this kind, closed and expired ones included, oldest first."""
        return await self._select(owner, "1")

    async def units(self, owner: Account, *, after: int = 0, upto: int | None = None) -> list[Unit]:
        """The unsuperseded memories behind ``after``, up to ``upto``, as the recall index wants them.

        Expiry rides along.
        """
        upto = owner.last_id if upto is None else upto
        entries = await self._select(
            owner, "retired_at IS NULL AND id > :after AND id <= :upto", after=after, upto=upto
        )
        return await off_loop(lambda: [unit(entry) for entry in entries], size=len(entries))

    async def confirm(self, owner: Account, id_: int, citation: Citation, *, confidence: float) -> bool:
        """Note that the owner said it again; False when that very message is already cited (nothing changes).

        The later time of saying and the higher confidence stay.
        """
        async with self._db.transaction():
            if not owner.owns(id_) or not await self._cite(id_, citation):
                return False
            await self._db.execute(
                f"UPDATE {self.table} SET confirmed_at = max(coalesce(confirmed_at, said_at), :at),"
                " said_at = max(said_at, :at), confidence = max(confidence, :confidence), cold_at = NULL"
                " WHERE id = :id",
                {"at": stamp(citation.at), "confidence": confidence, "id": id_},
            )
            self._db.tally("confirmed", self.table)
            return True

    async def retire(
        self,
        owner: Account,
        id_: int,
        *,
        at: datetime,
        successor: int | None,
        reason: str,
        ended: Citation | None = None,
    ) -> bool:
        """Close a memory, with a pointer to what took its place; whether it was open.

        ``ended`` are the words that ended it where nothing took its place.
        """
        by, said = (None, None) if ended is None else (ended.message, stamp(ended.at))
        changed = await self._db.execute(
            f"UPDATE {self.table} SET retired_at = ?, successor = ?, reason = ?, ended_by = ?, ended_at = ?"
            " WHERE id = ? AND id BETWEEN ? AND ? AND retired_at IS NULL",
            (stamp(at), successor, reason, by, said, id_, owner.first_id, owner.last_id),
        )
        self._db.tally("closed", reason, changed)
        return changed > 0

    async def closed_at(self, owner: Account, at: datetime) -> list[E]:
        """The visible memories that one batch of the gate closed, by its time."""
        return await self._select(owner, "retired_at = :at", at=stamp(at))

    async def doubt(self, owner: Account, id_: int, sure: int | None) -> None:
        """Mark a memory as said unsurely against a ``sure`` one; None takes the mark off."""
        await self._db.execute(
            f"UPDATE {self.table} SET doubts = ? WHERE id = ? AND id BETWEEN ? AND ?",
            (sure, id_, owner.first_id, owner.last_id),
        )

    async def vouch(self, owner: Account, id_: int, confidence: float) -> None:
        """Set how sure a memory is, by the word of its owner."""
        await self._db.execute(
            f"UPDATE {self.table} SET confidence = ? WHERE id = ? AND id BETWEEN ? AND ?",
            (confidence, id_, owner.first_id, owner.last_id),
        )

    async def asked(self, owner: Account, id_: int, *, at: datetime) -> bool:
        """Note that its owner was asked about an unsure memory; False when that was noted before."""
        changed = await self._db.execute(
            f"UPDATE {self.table} SET asked_at = ? WHERE id = ? AND id BETWEEN ? AND ? AND asked_at IS NULL",
            (stamp(at), id_, owner.first_id, owner.last_id),
        )
        return changed > 0

    async def share(self, owner: Account, id_: int, *, now: datetime) -> bool:
        """Open what holds at ``now`` to every place; False when it is open already, or does not hold."""
        changed = await self._db.execute(
            f"UPDATE {self.table} SET shared_from = audience, audience = :everywhere WHERE id = :id"
            f" AND id BETWEEN :lo AND :hi AND hidden_by IS NULL AND {LIVE} AND audience != :everywhere",
            {"everywhere": EVERYWHERE, "id": id_, "lo": owner.first_id, "hi": owner.last_id, "now": stamp(now)},
        )
        return changed > 0

    async def unshare(self, owner: Account, id_: int) -> bool:
        """Give a memory back the audience it was said to; False when it is not open to every place."""
        changed = await self._db.execute(
            f"UPDATE {self.table} SET audience = shared_from, shared_from = NULL WHERE id = ? AND id BETWEEN ? AND ?"
            " AND hidden_by IS NULL AND shared_from IS NOT NULL",
            (id_, owner.first_id, owner.last_id),
        )
        return changed > 0

    async def succeed(self, owner: Account, id_: int, successor: int) -> None:
        """Point a closed memory at what holds its place now."""
        await self._db.execute(
            f"UPDATE {self.table} SET successor = ? WHERE id = ? AND id BETWEEN ? AND ? AND retired_at IS NOT NULL",
            (successor, id_, owner.first_id, owner.last_id),
        )

    async def closed_by(self, owner: Account, entries: Iterable[int], messages: Iterable[int]) -> list[E]:
        """The visible memories that were closed in favour of ``entries``, or ended by the lines ``messages``."""
        return await self._select(
            owner,
            "retired_at IS NOT NULL AND (successor IN (SELECT value FROM json_each(:entries))"
            " OR ended_by IN (SELECT value FROM json_each(:messages)))",
            entries=json.dumps(list(entries)),
            messages=json.dumps(list(messages)),
        )

    async def reopen(self, owner: Account, id_: int) -> bool:
        """Undo a retirement; whether it was closed."""
        changed = await self._db.execute(
            f"UPDATE {self.table} SET retired_at = NULL, successor = NULL, reason = NULL, ended_by = NULL,"
            " ended_at = NULL"
            " WHERE id = ? AND id BETWEEN ? AND ? AND retired_at IS NOT NULL",
            (id_, owner.first_id, owner.last_id),
        )
        self._db.tally("reopened", self.table, changed)
        return changed > 0

    async def expire(self, owner: Account, *, now: datetime) -> int:
        """Close what has outlived its time, so that indexes can let go of it; reads never showed it."""
        expired = await self._db.execute(
            f"UPDATE {self.table} SET retired_at = expires_at, reason = 'expired'"
            " WHERE id BETWEEN ? AND ? AND retired_at IS NULL AND expires_at <= ?",
            (owner.first_id, owner.last_id, stamp(now)),
        )
        self._db.tally("closed", "expired", expired)
        return expired

    async def revive(self, owner: Account, *, now: datetime) -> list[E]:
        """What was closed as expired at a time that has not come yet at ``now``: the clock was wrong."""
        return await self._select(owner, "reason = 'expired' AND expires_at > :now", now=stamp(now))

    async def cool(
        self, owner: Account, *, before: datetime | None, important: float, hard: Sequence[str], now: datetime
    ) -> tuple[int, int]:
        """Let rest what was neither said, confirmed nor used since ``before``; wake what does not rest any more.

        Nothing above ``important`` rests, no attribute in ``hard``, no event that is to come; with None nothing at
        all. Returns how many were laid to rest, and how many woken.
        """
        values = {
            "lo": owner.first_id,
            "hi": owner.last_id,
            "now": stamp(now),
            "before": None if before is None else stamp(before),
            "important": important,
            "hard": json.dumps(list(hard)),
        }
        rests = (
            "(:before IS NOT NULL AND importance <= :important AND"
            " max(said_at, created_at, coalesce(confirmed_at, 0), coalesce(used_at, 0)) < :before"
            f" AND {self.restable})"
        )
        mine = f"UPDATE {self.table} SET cold_at = :cold WHERE id BETWEEN :lo AND :hi AND"
        async with self._db.transaction():
            woken = await self._db.execute(f"{mine} cold_at IS NOT NULL AND NOT ({rests})", {**values, "cold": None})
            rested = await self._db.execute(
                f"{mine} cold_at IS NULL AND retired_at IS NULL AND {rests}",
                {**values, "cold": stamp(now)},
            )
        return rested, woken

    async def cold(self, owner: Account) -> list[int]:
        """The open memories that rest."""
        rows = await self._db.fetch(
            f"SELECT id FROM {self.table} WHERE id BETWEEN ? AND ? AND cold_at IS NOT NULL AND retired_at IS NULL",
            (owner.first_id, owner.last_id),
        )
        return [int(row["id"]) for row in rows]

    async def folded(self, owner: Account, reasons: Sequence[str]) -> list[E]:
        """The visible memories that were folded into another for one of these reasons."""
        return await self._select(
            owner,
            "retired_at IS NOT NULL AND successor IS NOT NULL AND reason IN (SELECT value FROM json_each(:reasons))",
            reasons=json.dumps(list(reasons)),
        )

    async def ended(self, owner: Account) -> list[E]:
        """The visible memories that words ended without anything in their place."""
        return await self._select(owner, "ended_by IS NOT NULL")

    async def citing(self, owner: Account, messages: Iterable[int]) -> list[E]:
        """The visible memories that cite any of these journal lines."""
        return await self._select(
            owner,
            "id IN (SELECT entry FROM citations WHERE message IN (SELECT value FROM json_each(:messages)))",
            messages=json.dumps(list(messages)),
        )

    async def resting_on(self, owner: Account, messages: Iterable[int]) -> list[E]:
        """The memories that cite any of these journal lines, hidden ones included."""
        return await self._read(
            owner,
            "id IN (SELECT entry FROM citations WHERE message IN (SELECT value FROM json_each(:messages)))",
            {"messages": json.dumps(list(messages))},
        )

    async def uncite(self, owner: Account, id_: int, messages: Iterable[int]) -> None:
        """Let a memory rest on its other citations alone; it was said, and confirmed, when they were."""
        async with self._db.transaction():
            if not owner.owns(id_):
                return
            await self._db.execute(
                "DELETE FROM citations WHERE entry = ? AND message IN (SELECT value FROM json_each(?))",
                (id_, json.dumps(list(messages))),
            )
            await self._db.execute(
                f"UPDATE {self.table} SET said_at = cited.last, confirmed_at ="
                " CASE WHEN cited.count > 1 THEN min(confirmed_at, cited.last) END FROM"
                " (SELECT max(at) AS last, count(*) AS count FROM citations WHERE entry = :id) AS cited"
                " WHERE id = :id AND cited.count > 0",
                {"id": id_},
            )

    async def requote(self, owner: Account, id_: int, message: int, quote: str) -> None:
        """Replace the words a memory keeps of a message, when more than its own were quoted."""
        if owner.owns(id_):
            await self._db.execute(
                "UPDATE citations SET quote = ? WHERE entry = ? AND message = ?", (quote, id_, message)
            )

    async def hide(self, owner: Account, ids: Iterable[int], deletion: int) -> int:
        """Hide memories on behalf of a deletion; returns how many were visible."""
        return await self._db.execute(
            f"UPDATE {self.table} SET hidden_by = ? WHERE id IN (SELECT value FROM json_each(?))"
            " AND id BETWEEN ? AND ? AND hidden_by IS NULL",
            (deletion, json.dumps(list(ids)), owner.first_id, owner.last_id),
        )

    async def unhide(self, owner: Account, deletion: int) -> int:
        """Show again what a deletion hid; what another one covers, too, is hidden by that from now on."""
        return await self._db.execute(
            f"UPDATE {self.table} SET hidden_by = (SELECT min(a.deletion) FROM also_hidden a"
            f" WHERE a.row = {self.table}.id AND a.deletion != :deletion)"
            " WHERE hidden_by = :deletion AND id BETWEEN :lo AND :hi",
            {"deletion": deletion, "lo": owner.first_id, "hi": owner.last_id},
        )

    async def hidden(self, owner: Account, deletion: int) -> list[E]:
        """What a deletion hid, for its erasure and the proof after it."""
        return await self._read(owner, "hidden_by = :deletion", {"deletion": deletion})

    async def concealed(self, owner: Account) -> list[E]:
        """What any deletion hides."""
        return await self._read(owner, "hidden_by IS NOT NULL", {})

    async def erase(self, owner: Account, ids: Iterable[int]) -> int:
        """Remove memories and their citations for good, and pointers at them."""
        listed = json.dumps([id_ for id_ in ids if owner.owns(id_)])
        async with self._db.transaction():
            await self._db.execute("DELETE FROM citations WHERE entry IN (SELECT value FROM json_each(?))", (listed,))
            for table in ("profile", "timeline", "facts"):  # a fact may have taken the place of a profile line
                await self._db.execute(
                    f"UPDATE {table} SET successor = NULL WHERE successor IN (SELECT value FROM json_each(?))"
                    " AND id BETWEEN ? AND ?",
                    (listed, owner.first_id, owner.last_id),
                )
            await self._db.execute(
                f"UPDATE {self.table} SET doubts = NULL WHERE doubts IN (SELECT value FROM json_each(?))"
                " AND id BETWEEN ? AND ?",
                (listed, owner.first_id, owner.last_id),
            )
            erased = await self._db.execute(
                f"DELETE FROM {self.table} WHERE id IN (SELECT value FROM json_each(?))", (listed,)
            )
            self._db.tally("erased", self.table, erased)
            return erased

    async def _select(self, owner: Account, condition: str, **values: object) -> list[E]:
        return await self._read(owner, f"hidden_by IS NULL AND {condition}", values)

    async def _read(self, owner: Account, condition: str, values: Mapping[str, object]) -> list[E]:
        doubted = (
            f"(SELECT sure.id FROM {self.table} AS sure WHERE sure.id = {self.table}.doubts"
            " AND sure.retired_at IS NULL AND sure.hidden_by IS NULL)"
        )
        rows = await self._db.fetch(
            f"SELECT *, {doubted} AS doubted FROM {self.table}"
            f" WHERE id BETWEEN :lo AND :hi AND {condition} ORDER BY id",
            {**values, "lo": owner.first_id, "hi": owner.last_id},
        )
        if not rows:
            return []
        cited = await self._db.fetch(
            "SELECT entry, message, quote, at FROM citations WHERE entry IN (SELECT value FROM json_each(?))"
            " AND entry BETWEEN ? AND ? ORDER BY entry, at, message",
            (json.dumps([row["id"] for row in rows]), owner.first_id, owner.last_id),
        )
        return await off_loop(lambda: self._entries(rows, cited), size=len(rows))

    def _entries(self, rows: Sequence[sqlite3.Row], cited: Sequence[sqlite3.Row]) -> list[E]:
        citations: dict[int, list[Citation]] = {}
        for c in cited:
            citations.setdefault(c["entry"], []).append(Citation(c["message"], c["quote"], moment(c["at"])))
        # A row of SQLite looks for a name among all its columns each time.
        names = rows[0].keys()
        held = (dict(zip(names, row, strict=True)) for row in rows)
        return [self._entry(row, _provenance(row, tuple(citations.get(row["id"], ())))) for row in held]

    async def _cite(self, entry: int, citation: Citation) -> bool:
        return await self._db.execute(_CITE, _cited(entry, citation)) > 0


LIVE: Final = "retired_at IS NULL AND (expires_at IS NULL OR expires_at > :now)"
_CITE = "INSERT OR IGNORE INTO citations (entry, message, quote, at) VALUES (?, ?, ?, ?)"


def _cited(entry: int, citation: Citation) -> tuple[int, int, str, int]:
    return entry, citation.message, citation.quote, stamp(citation.at)


def _columns(candidate: Candidate, id_: int, audience: int, now: datetime) -> dict[str, Any]:
    """The columns that every kind has, but the hash of the text."""
    return {
        "id": id_,
        "language": candidate.language,
        "subject": candidate.subject,
        "audience": audience,
        "source": candidate.source,
        "confidence": candidate.confidence,
        "importance": candidate.importance,
        "said_at": max(stamp(c.at) for c in candidate.citations),
        "created_at": stamp(now),
        "expires_at": None if candidate.expires_at is None else stamp(candidate.expires_at),
    }


def unit(entry: ProfileLine | Event | Fact) -> Unit:
    """A memory as the recall index wants it."""
    p = entry.provenance
    return Unit(
        id=entry.id,
        kind=entry.kind,
        text=entry.text,
        at=p.said_at,
        audience=p.audience,
        text_hash=text_hash(entry.text),
        subject=entry.subject,
        attribute=entry.attribute if isinstance(entry, ProfileLine) else "",
        span=entry.span if isinstance(entry, Event) else None,
        expires_at=p.expires_at,
        confidence=p.confidence,
        importance=p.importance,
        cites=tuple(c.message for c in p.citations),
    )


def span(row: Row) -> Span:
    """The time columns of an event."""
    return Span(
        moment(row["start_at"]),
        moment(row["end_at"]),
        row["precision"],
        row["zone"],
        row["words"],
        row["rrule"],
    )


def _provenance(row: Row, citations: tuple[Citation, ...]) -> Provenance:
    return Provenance(
        audience=row["audience"],
        source=row["source"],
        said_at=moment(row["said_at"]),
        created_at=moment(row["created_at"]),
        confidence=row["confidence"],
        importance=row["importance"],
        confirmed_at=moment(row["confirmed_at"]),
        confirmations=len(citations),
        expires_at=moment(row["expires_at"]),
        retired_at=moment(row["retired_at"]),
        successor=row["successor"],
        reason=row["reason"],
        citations=citations,
        doubts=row["doubted"],
        asked_at=moment(row["asked_at"]),
        ended_at=moment(row["ended_at"]),
        ended_by=row["ended_by"],
        cold_at=moment(row["cold_at"]),
    )


async def any_doubted(db: Database, owner: Account, stores: Iterable[EntryStore[Any]]) -> bool:
    """Whether any open memory in ``stores`` was said unsurely against another one, and nobody was asked about it.

    One query for all of them: this is asked behind every answer.
    """
    doubted = " OR ".join(
        f"EXISTS (SELECT 1 FROM {store.table} WHERE doubts IS NOT NULL AND id BETWEEN :lo AND :hi AND asked_at IS NULL"
        " AND retired_at IS NULL AND hidden_by IS NULL)"
        for store in stores
    )
    rows = await db.fetch(f"SELECT {doubted} AS found", {"lo": owner.first_id, "hi": owner.last_id})
    return bool(rows[0]["found"])
