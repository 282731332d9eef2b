"""The one write gate: whatever wants to become a memory passes here, whoever proposes it.

The rules of meaning are in :mod:`memory.verdicts`; this file reads what is known, carries verdicts out in
one transaction and reads back what it wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol

from memory import lifetimes, slots
from memory.db import Database
from memory.doubles import doubles
from memory.facts import Facts
from memory.journal import Journal
from memory.likeness import Pair, Ruling, roles
from memory.model import PRIVATE, Account, Candidate, Citation, Decision, Entry, Event, Message, ProfileLine
from memory.profile import Profile
from memory.sameness import fingerprint, says_no_more
from memory.timeline import Timeline
from memory.verdicts import SURE, UNDONE, Setting, Verdict, Weight, cites, judge, said_at

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

    @property
    def entries(self) -> tuple[Profile, Timeline, Facts]:
        """The three of them."""


@dataclass
class _Batch:
    """One call of the gate while it is being worked through."""

    owner: Account
    audience: int
    now: datetime
    lines: dict[int, Message]
    known: dict[str, dict[int, Entry]] = field(default_factory=dict)
    may_close: int = MAX_RETIREMENTS

    def said(self, candidate: Candidate) -> list[Citation]:
        """The whole messages a candidate cites; a command is journaled without its words, so its quote stands in."""
        return [replace(c, quote=self.lines[c.message].text or c.quote) for c in candidate.citations]

    def words(self, candidate: Candidate) -> str:
        """Their words."""
        return " ".join(citation.quote for citation in self.said(candidate))


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
                for kept, double in doubles(live):
                    if len(merged) < MAX_RETIREMENTS:
                        merged.append(await self._merge(batch, kept, double))
        return merged

    async def settle(self, owner: Account, ruled: Sequence[tuple[Pair, Ruling]], *, now: datetime) -> list[Decision]:
        """Carry out what a model ruled about pairs of memories; returns a decision for each row that was closed.

        What was changed, closed or forgotten since it was asked stays as it is, and so does what would leave a
        place without a memory. At most MAX_RETIREMENTS a call; :meth:`undo` takes them back by ``now``.
        """
        async with self._db.transaction():
            asked = [entry for pair, _ in ruled for entry in (pair.earlier, pair.later)]
            found = await self._anywhere(owner, [entry.id for entry in asked])
            decisions: list[Decision] = []
            # What is over first: a memory that is confirmed by a double would be another one than was asked about.
            for pair, ruling in sorted(ruled, key=lambda each: each[1] != "supersedes"):
                if any(found.get(entry.id) != entry for entry in (pair.earlier, pair.later)):
                    continue
                both = await self._anywhere(owner, [pair.earlier.id, pair.later.id])
                if not all(entry.provenance.live(now) for entry in both.values()):
                    continue
                earlier, later = both[pair.earlier.id], both[pair.later.id]
                if ruling == "supersedes" and Weight.of(later).questions(Weight.of(earlier)):
                    if earlier.kind == later.kind:
                        await self._store(later.kind).doubt(owner, later.id, earlier.id)
                elif (order := roles(earlier, later, ruling)) and len(decisions) < MAX_RETIREMENTS:
                    reason = "same" if ruling == "same" else "overtaken"
                    decisions.append(await self._merge(_Batch(owner, PRIVATE, now, {}), *order, reason=reason))
        return decisions

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
                reopened.append(await self._reopen(batch, entry, verdict))
        return reopened

    async def undo(self, owner: Account, *, at: datetime, now: datetime, reasons: Collection[str] = ()) -> list[Entry]:
        """Open again what the batch of the time ``at`` (the ``now`` it was given) closed; returns those open again.

        ``reasons`` limits it to retirements for these reasons. What the batch had written in their place is closed
        in turn and weighs nothing any more, unless it was said again since. What has been overtaken or has expired
        stays closed, and with it stays what took its place. Folded duplicates lose nothing and stay folded.
        """
        async with self._db.transaction():
            reopened: list[Entry] = []
            for store in self._stores.entries:
                closed: list[Entry] = [e for e in await store.closed_at(owner, at) if _undoable(e, reasons)]
                successors = {entry.provenance.successor for entry in closed}
                for successor in sorted(successors, key=lambda id_: id_ or 0):
                    batch = _Batch(owner, PRIVATE, now, {})
                    mine = [entry for entry in closed if entry.provenance.successor == successor]
                    reopened += await self._undo(batch, mine, successor, at=at)
        return reopened

    async def _undo(
        self, batch: _Batch, closed: Sequence[Entry], successor: int | None, *, at: datetime
    ) -> list[Entry]:
        """Weigh what was closed in favour of one memory (or of none) as if that were not there."""
        store = self._store(closed[0].kind)
        usurper = (await self._anywhere(batch.owner, [successor])).get(successor) if successor is not None else None
        fresh = usurper is not None and (usurper.provenance.created_at, usurper.provenance.confirmed_at) == (at, None)
        if usurper is not None and fresh:
            # What came late and found its place taken is weighed again with the rest.
            closed = await store.closed_by(batch.owner, [usurper.id], [])
        without = {usurper.id} if usurper is not None and fresh else set()
        reopened: list[Entry] = []
        for entry in sorted(closed, key=lambda entry: Weight.of(entry).place):
            known = (await self._known(batch, entry.kind)).values()
            others = [other for other in known if other.id not in without | {entry.id}]
            verdict = judge(_as_said(entry), others, Setting(entry.provenance.audience, batch.now))
            if verdict.closed_by is not None:
                await store.succeed(batch.owner, entry.id, verdict.closed_by)
            elif verdict.action == "add":
                if usurper is not None and not fresh:
                    await self._store(usurper.kind).uncite(batch.owner, usurper.id, _lent(entry, usurper))
                reopened.append(await self._reopen(batch, entry, verdict))
        if usurper is not None and fresh and reopened:
            taken_by = self._store(usurper.kind)
            await taken_by.retire(batch.owner, usurper.id, at=batch.now, successor=reopened[-1].id, reason=UNDONE)
        return reopened

    async def _reopen(self, batch: _Batch, entry: Entry, verdict: Verdict) -> Entry:
        await self._store(entry.kind).reopen(batch.owner, entry.id)
        await self._close(batch, entry.kind, verdict.closes, successor=entry.id, reason=verdict.reason)
        await self._mark(batch, entry.kind, entry.id, verdict)
        return await self._reread(batch, entry.kind, entry.id)

    async def _mark(self, batch: _Batch, kind: str, id_: int, verdict: Verdict) -> None:
        """Mark the doubts that a verdict sees, on the row itself and on those that are newer than it."""
        store = self._store(kind)
        await store.doubt(batch.owner, id_, verdict.doubts)
        for unsure in verdict.doubted_by:
            await store.doubt(batch.owner, unsure, id_)
            await self._reread(batch, kind, unsure)

    async def _decide(self, batch: _Batch, candidate: Candidate) -> Decision:
        if refusal := _refusal(batch, candidate):
            return Decision("dropped", refusal)
        candidate = await self._in_its_slot(batch, candidate)
        candidate = replace(candidate, expires_at=lifetimes.end(candidate, batch.said(candidate), batch.owner.zone))
        known = await self._known(batch, candidate.kind)
        verdict = judge(candidate, list(known.values()), Setting(batch.audience, batch.now, batch.words(candidate)))
        if len(verdict.closes) > batch.may_close:
            verdict = _bounded(verdict)
        batch.may_close -= len(verdict.closes)
        return await self._carry_out(batch, candidate, verdict)

    async def _in_its_slot(self, batch: _Batch, candidate: Candidate) -> Candidate:
        """Return a sentence that says what a profile line or an event says as that line or event.

        It has the same words, or, of the same message, no others: what our rules read is then told once more.
        """
        if candidate.kind != "fact":
            return candidate
        for line in (await self._known(batch, "profile")).values():
            if isinstance(line, ProfileLine) and _is_told_by(candidate, line):
                return replace(candidate, kind="profile", attribute=line.attribute, value=line.value)
        for event in (await self._known(batch, "event")).values():
            if isinstance(event, Event) and cites(event, candidate) and _is_told_by(candidate, event):
                return replace(candidate, kind="event", text=event.text, span=event.span)
        return candidate

    async def _carry_out(self, batch: _Batch, candidate: Candidate, verdict: Verdict) -> Decision:
        if verdict.action == "drop":
            return Decision("dropped", verdict.reason)
        if verdict.action == "confirm":
            return await self._confirm(batch, candidate, verdict)
        store = self._store(candidate.kind)
        if verdict.action == "retire":
            ended = max(candidate.citations, key=lambda citation: citation.at)
            for id_ in verdict.closes:
                await store.retire(batch.owner, id_, at=batch.now, successor=None, reason=verdict.reason, ended=ended)
                await self._reread(batch, candidate.kind, id_)
            return Decision("retired", verdict.reason, batch.known[candidate.kind][verdict.closes[0]], verdict.closes)
        # The new row first, then the old ones: at no moment is there no live value.
        made = await store.add(batch.owner, candidate, audience=batch.audience, now=batch.now)
        await self._close(batch, candidate.kind, verdict.closes, successor=made.id, reason=verdict.reason)
        if verdict.closed_by is not None:
            await store.retire(batch.owner, made.id, at=batch.now, successor=verdict.closed_by, reason=verdict.reason)
        await self._mark(batch, candidate.kind, made.id, verdict)
        stored = await self._reread(batch, candidate.kind, made.id)
        return Decision("superseded" if verdict.closes else "added", verdict.reason, stored, verdict.closes)

    async def _confirm(self, batch: _Batch, candidate: Candidate, verdict: Verdict) -> Decision:
        store = self._store(candidate.kind)
        for citation in candidate.citations:
            await store.confirm(batch.owner, verdict.target, citation, confidence=candidate.confidence)
        await self._close(batch, candidate.kind, verdict.closes, successor=verdict.target, reason="superseded")
        if candidate.confidence >= SURE:
            await store.doubt(batch.owner, verdict.target, None)
        stored = await self._reread(batch, candidate.kind, verdict.target)
        return Decision("confirmed", verdict.reason, stored, verdict.closes)

    async def _close(self, batch: _Batch, kind: str, ids: Iterable[int], *, successor: int | None, reason: str) -> None:
        for id_ in ids:
            await self._store(kind).retire(batch.owner, id_, at=batch.now, successor=successor, reason=reason)
            await self._reread(batch, kind, id_)

    async def _merge(self, batch: _Batch, kept: Entry, double: Entry, *, reason: str = "duplicate") -> Decision:
        """Close a memory in favour of another, which takes over its citations if it says the same."""
        for citation in double.provenance.citations if reason != "overtaken" else ():
            confidence = double.provenance.confidence
            await self._store(kept.kind).confirm(batch.owner, kept.id, citation, confidence=confidence)
        await self._store(double.kind).retire(batch.owner, double.id, at=batch.now, successor=kept.id, reason=reason)
        return Decision("superseded", reason, await self._reread(batch, kept.kind, kept.id), (double.id,))

    async def _anywhere(self, owner: Account, ids: Collection[int]) -> dict[int, Entry]:
        """The owner's visible memories among ``ids``, of every kind."""
        found: dict[int, Entry] = {}
        for store in self._stores.entries:
            found |= await store.get(owner, ids)
        return found

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


def _is_told_by(candidate: Candidate, entry: Entry) -> bool:
    """Whether a memory holds all that a candidate says."""
    if entry.subject != candidate.subject:
        return False
    if cites(entry, candidate) and says_no_more(candidate.text, entry.text):
        return True
    return fingerprint(entry.text) == fingerprint(candidate.text)


def _bounded(verdict: Verdict) -> Verdict:
    """What is left of a verdict that may close nothing more: old and new both stay, as an open question."""
    if verdict.action == "retire":
        return Verdict("drop", "too_many_closed")
    return replace(verdict, reason="too_many_closed", closes=(), doubts=verdict.doubts or verdict.closes[0])


def _undoable(entry: Entry, reasons: Collection[str]) -> bool:
    reason = entry.provenance.reason
    return reason not in {"duplicate", "outdated", "expired", UNDONE} and (not reasons or reason in reasons)


def _lent(entry: Entry, usurper: Entry) -> list[int]:
    """The messages whose words a memory lent to the one it was folded into; that one keeps at least one of its own."""
    lent = {citation.message for citation in entry.provenance.citations if citation in usurper.provenance.citations}
    return [] if lent >= {citation.message for citation in usurper.provenance.citations} else sorted(lent)


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
