"""The one write gate: whatever wants to become a memory passes here, whoever proposes it.

The rules of meaning are in :mod:`memory.verdicts`; this file reads what is known, carries verdicts out in
one transaction and reads back what it wrote.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol

from memory import slots
from memory.db import Database
from memory.facts import Facts
from memory.journal import Journal
from memory.model import EVERYWHERE, PRIVATE, Account, Candidate, Decision, Entry, Event, Message, ProfileLine
from memory.profile import Profile
from memory.sameness import fingerprint
from memory.timeline import Timeline
from memory.verdicts import Setting, Verdict, covers, judge, said_at

MAX_RETIREMENTS: Final = 8
"""Memories one batch may close; beyond it old and new both stay. A model that misreads a session can then spoil
little, and each closed row keeps its successor so that it can be reopened (PEERS.md: 16 to 49 % lost elsewhere)."""


class Shelf(Protocol):
    """The stores the gate writes to. :class:`memory.stores.Stores` is one."""

    @property
    def journal(self) -> Journal:
        """What was said."""

    @property
    def profile(self) -> Profile:
        """Attribute and value."""

    @property
    def timeline(self) -> Timeline:
        """Events."""

    @property
    def facts(self) -> Facts:
        """Sentences."""


@dataclass
class _Batch:
    """One call of the gate while it is being worked through."""

    owner: Account
    audience: int
    now: datetime
    lines: dict[int, Message]
    known: dict[str, dict[int, Entry]] = field(default_factory=dict)
    may_close: int = MAX_RETIREMENTS

    def words(self, candidate: Candidate) -> str:
        """The whole messages a candidate cites; a command is journaled without its words, so its quote stands in."""
        return " ".join(self.lines[citation.message].text or citation.quote for citation in candidate.citations)


class Gate:
    """Adds, confirms, supersedes, ends or drops, each with its reason."""

    def __init__(self, db: Database, stores: Shelf) -> None:
        self._db = db
        self._stores = stores

    async def admit(
        self, owner: Account, candidates: Sequence[Candidate], *, audience: int, now: datetime
    ) -> list[Decision]:
        """Decide on candidates from messages of one audience, in one transaction (or the one that is open).

        ``now`` is aware UTC. Returns a decision for each candidate, in their order, with the entry as stored.
        What was said earlier is decided on earlier. The same candidates again change nothing.
        """
        async with self._db.transaction():
            cited = {citation.message for candidate in candidates for citation in candidate.citations}
            batch = _Batch(owner, audience, now, await self._stores.journal.lines(owner, cited))
            decisions: dict[int, Decision] = {}
            for place in _by_time(candidates):
                decisions[place] = await self._decide(batch, candidates[place])
        return [decisions[place] for place in range(len(candidates))]

    async def merge_duplicates(self, owner: Account, *, now: datetime) -> list[Decision]:
        """Fold live memories that say the same into one that may be used wherever either could be.

        At most MAX_RETIREMENTS a call; each is closed with a pointer to what it was folded into, whose
        citations then include its own. Returns one decision for each that was closed.
        """
        async with self._db.transaction():
            batch = _Batch(owner, PRIVATE, now, {})
            merged: list[Decision] = []
            for kind in ("profile", "event", "fact"):
                live = await self._store(kind).live(owner, now=now)
                for kept, double in _doubles(live):
                    if len(merged) < MAX_RETIREMENTS:
                        merged.append(await self._merge(batch, kept, double))
        return merged

    async def restore(self, owner: Account, closed: Sequence[Entry], *, now: datetime) -> list[Entry]:
        """Reopen memories whose successor is gone, unless something newer holds their place; returns those open again.

        Each is weighed like a candidate said at its time, and stays closed when that would not be live. Needs the
        transaction that took the successor away.
        """
        reopened: list[Entry] = []
        for entry in sorted(closed, key=lambda entry: (entry.provenance.said_at, entry.id)):
            candidate, audience = _as_said(entry), entry.provenance.audience
            cited = [citation.message for citation in candidate.citations]
            batch = _Batch(owner, audience, now, await self._stores.journal.lines(owner, cited))
            known = [other for other in (await self._known(batch, entry.kind)).values() if other.id != entry.id]
            words = " ".join(citation.quote for citation in candidate.citations)
            verdict = judge(candidate, known, Setting(audience, now, words))
            if verdict.closed_by is not None:
                await self._store(entry.kind).succeed(owner, entry.id, verdict.closed_by)
            elif verdict.action == "add":
                await self._store(entry.kind).reopen(owner, entry.id)
                await self._close(batch, entry.kind, verdict.closes, successor=entry.id, reason=verdict.reason)
                reopened.append(await self._reread(batch, entry.kind, entry.id))
        return reopened

    async def _decide(self, batch: _Batch, candidate: Candidate) -> Decision:
        if refusal := _refusal(batch, candidate):
            return Decision("dropped", refusal)
        candidate = await self._in_its_slot(batch, candidate)
        known = await self._known(batch, candidate.kind)
        verdict = judge(candidate, list(known.values()), Setting(batch.audience, batch.now, batch.words(candidate)))
        if len(verdict.closes) > batch.may_close:
            verdict = Verdict("add" if verdict.action == "add" else "drop", "too_many_closed")
        batch.may_close -= len(verdict.closes)
        return await self._carry_out(batch, candidate, verdict)

    async def _in_its_slot(self, batch: _Batch, candidate: Candidate) -> Candidate:
        """Return a sentence that says what a profile line says as that line's attribute and value."""
        if candidate.kind != "fact":
            return candidate
        mark = fingerprint(candidate.text)
        for line in (await self._known(batch, "profile")).values():
            if isinstance(line, ProfileLine) and line.subject == candidate.subject and fingerprint(line.text) == mark:
                return replace(candidate, kind="profile", attribute=line.attribute, value=line.value)
        return candidate

    async def _carry_out(self, batch: _Batch, candidate: Candidate, verdict: Verdict) -> Decision:
        if verdict.action == "drop":
            return Decision("dropped", verdict.reason)
        if verdict.action == "confirm":
            return await self._confirm(batch, candidate, verdict)
        store = self._store(candidate.kind)
        if verdict.action == "retire":
            ended_by = max(candidate.citations, key=lambda citation: citation.at).message
            for id_ in verdict.closes:
                await store.retire(
                    batch.owner, id_, at=batch.now, successor=None, reason=verdict.reason, ended_by=ended_by
                )
                await self._reread(batch, candidate.kind, id_)
            return Decision("retired", verdict.reason, batch.known[candidate.kind][verdict.closes[0]], verdict.closes)
        # The new row first, then the old ones: at no moment is there no live value.
        made = await store.add(batch.owner, candidate, audience=batch.audience, now=batch.now)
        await self._close(batch, candidate.kind, verdict.closes, successor=made.id, reason=verdict.reason)
        if verdict.closed_by is not None:
            await store.retire(batch.owner, made.id, at=batch.now, successor=verdict.closed_by, reason=verdict.reason)
        stored = await self._reread(batch, candidate.kind, made.id)
        return Decision("superseded" if verdict.closes else "added", verdict.reason, stored, verdict.closes)

    async def _confirm(self, batch: _Batch, candidate: Candidate, verdict: Verdict) -> Decision:
        store = self._store(candidate.kind)
        for citation in candidate.citations:
            await store.confirm(batch.owner, verdict.target, citation, confidence=candidate.confidence)
        stored = await self._reread(batch, candidate.kind, verdict.target)
        return Decision("confirmed", verdict.reason, stored)

    async def _close(self, batch: _Batch, kind: str, ids: Iterable[int], *, successor: int | None, reason: str) -> None:
        for id_ in ids:
            await self._store(kind).retire(batch.owner, id_, at=batch.now, successor=successor, reason=reason)
            await self._reread(batch, kind, id_)

    async def _merge(self, batch: _Batch, kept: Entry, double: Entry) -> Decision:
        store = self._store(kept.kind)
        for citation in double.provenance.citations:
            await store.confirm(batch.owner, kept.id, citation, confidence=double.provenance.confidence)
        await store.retire(batch.owner, double.id, at=batch.now, successor=kept.id, reason="duplicate")
        return Decision("superseded", "duplicate", await self._reread(batch, kept.kind, kept.id), (double.id,))

    async def _known(self, batch: _Batch, kind: str) -> dict[int, Entry]:
        """The owner's memories of a kind that a verdict can rest on, read once a batch and kept up to date."""
        if kind not in batch.known:
            store = self._store(kind)
            # Of a slot its history counts, too; elsewhere what is closed only matters if it cites the same words.
            entries: list[Entry] = []
            if kind == "profile":
                entries += await store.history(batch.owner)
            else:
                entries += await store.live(batch.owner, now=batch.now)
                entries += await store.citing(batch.owner, batch.lines)
            batch.known[kind] = {entry.id: entry for entry in entries}
        return batch.known[kind]

    async def _reread(self, batch: _Batch, kind: str, id_: int) -> Entry:
        entry = (await self._store(kind).get(batch.owner, [id_]))[id_]
        batch.known.setdefault(kind, {})[id_] = entry
        return entry

    def _store(self, kind: str) -> Profile | Timeline | Facts:
        stores: dict[str, Profile | Timeline | Facts] = {
            "profile": self._stores.profile,
            "event": self._stores.timeline,
            "fact": self._stores.facts,
        }
        return stores[kind]


def _refusal(batch: _Batch, candidate: Candidate) -> str | None:
    """Why a candidate may not even be weighed; None when it may."""
    if candidate.source == "tool":
        return "tool"
    if candidate.forgettable:
        return "forgettable"
    if not candidate.citations:
        return "no_citation"
    if candidate.kind == "profile" and not slots.known(candidate.attribute):
        return "unknown_attribute"
    lines = [batch.lines.get(citation.message) for citation in candidate.citations]
    if None in lines:
        return "forgotten"
    if any(line.role != "user" or line.kind == "forwarded" for line in lines if line is not None):
        return "not_owner"
    return None


def _as_said(entry: Entry) -> Candidate:
    """A memory as the candidate it once was, to be weighed again."""
    known = entry.provenance
    return Candidate(
        entry.kind,
        known.citations,
        "",
        subject=entry.subject,
        text=entry.text,
        attribute=entry.attribute if isinstance(entry, ProfileLine) else "",
        value=entry.value if isinstance(entry, ProfileLine) else "",
        span=entry.span if isinstance(entry, Event) else None,
        source=known.source,
        confidence=known.confidence,
        importance=known.importance,
        expires_at=known.expires_at,
    )


def _by_time(candidates: Sequence[Candidate]) -> list[int]:
    """Places of the candidates in the order in which they were said; those without a citation first."""
    return sorted(
        range(len(candidates)),
        key=lambda place: (said_at(candidates[place]).timestamp() if candidates[place].citations else 0.0, place),
    )


def _doubles(entries: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Yield (kept, double) for entries that say the same, hold as long and may be used as widely."""
    alike: dict[Hashable, list[Entry]] = defaultdict(list)
    for entry in entries:
        alike[_identity(entry)].append(entry)
    for group in alike.values():
        group.sort(key=lambda entry: (_narrowness(entry.provenance.audience), entry.id))
        kept: list[Entry] = []
        for entry in group:
            wide = next((k for k in kept if covers(k.provenance.audience, entry.provenance.audience)), None)
            if wide is None:
                kept.append(entry)
            else:
                yield wide, entry


def _identity(entry: Entry) -> Hashable:
    shared = (entry.subject, entry.provenance.expires_at)
    if isinstance(entry, ProfileLine):
        return (*shared, entry.attribute, slots.key(entry.value))
    if isinstance(entry, Event):
        when = entry.span
        return (*shared, fingerprint(entry.text), when.start, when.end, when.rrule)
    return (*shared, fingerprint(entry.text))


def _narrowness(audience: int) -> int:
    return {EVERYWHERE: 0, PRIVATE: 2}.get(audience, 1)
