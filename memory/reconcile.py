"""The one write gate: whatever wants to become a memory passes here, whoever proposes it.

The rules of meaning are in :mod:`memory.verdicts`; this file reads what is known, carries verdicts out in
one transaction and reads back what it wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from memory import lifetimes
from memory.apart import Apart
from memory.batches import MAX_RETIREMENTS, Batch, as_said, by_time, is_told_by, refusal
from memory.db import Database
from memory.doubles import doubles
from memory.doubts import Doubt, Holds
from memory.facts import Facts
from memory.journal import Journal
from memory.likeness import Pair, Ruling, roles
from memory.model import PRIVATE, Account, Candidate, Citation, Decision, Entry, Event, ProfileLine
from memory.profile import Profile
from memory.reserve import Reserve
from memory.timeline import Timeline
from memory.verdicts import DENIED, END, ENDED, SURE, UNDONE, Setting, Verdict, Weight, cites, judge


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


class Gate:
    """Adds, confirms, supersedes, ends or drops, each with its reason."""

    def __init__(self, db: Database, stores: Shelf, *, reserve: Reserve | None = None) -> None:
        """Without a ``reserve`` nothing is too sensitive to be kept."""
        self._db = db
        self._stores = stores
        self._reserve = reserve
        self._apart = Apart(db)

    async def admit(
        self,
        owner: Account,
        candidates: Sequence[Candidate],
        *,
        audience: int,
        now: datetime,
        asked_for: bool = False,
    ) -> list[Decision]:
        """Decide on candidates from messages of one audience, in one transaction (or the one that is open).

        ``now`` is aware UTC. Returns a decision for each candidate, in their order, with the entry as stored.
        What was said earlier is decided on earlier. The same candidates again change nothing.
        ``asked_for``: the owner asked for them in so many words, and so agreed to have them kept.
        """
        async with self._db.transaction():
            cited = {citation.message for candidate in candidates for citation in candidate.citations}
            batch = Batch(owner, audience, now, await self._stores.journal.lines(owner, cited))
            decisions: dict[int, Decision] = {}
            for place in by_time(candidates):
                candidate = candidates[place]
                withheld = await self._withheld(batch, candidate, asked_for=asked_for)
                decisions[place] = withheld or await self._decide(batch, candidate)
            for decision in decisions.values():
                if decision.action == "dropped":
                    self._db.tally("dropped", decision.reason)
        return [decisions[place] for place in range(len(candidates))]

    async def _withheld(self, batch: Batch, candidate: Candidate, *, asked_for: bool) -> Decision | None:
        """The refusal of what is sensitive and not agreed to; where the owner is asked, its words wait with it."""
        if self._reserve is None:
            return None
        standing, found = await self._reserve.verdict(batch.owner, candidate, asked_for=asked_for, now=batch.now)
        if standing == "keep":
            return None
        if standing == "ask":
            await self._reserve.hold(batch.owner, [citation.message for citation in candidate.citations], found)
        return Decision("dropped", "held" if standing == "ask" else "sensitive")

    async def merge_duplicates(self, owner: Account, *, now: datetime) -> list[Decision]:
        """Fold live memories that say the same into one that may be used wherever either could be.

        At most MAX_RETIREMENTS a call; each is closed with a pointer to what it was folded into, whose
        citations then include its own. Returns one decision for each that was closed.
        """

        async def writing() -> list[Decision]:
            batch = Batch(owner, PRIVATE, now, {})
            merged: list[Decision] = []
            apart = await self._apart.pairs(owner)
            for kind in ("profile", "event", "fact"):
                live = await self._store(kind).live(owner, now=now)
                for kept, double in doubles(live, apart):
                    if len(merged) < MAX_RETIREMENTS:
                        merged.append(await self._merge(batch, kept, double))
            return merged

        return await self._db.written(writing)

    async def settle(self, owner: Account, ruled: Sequence[tuple[Pair, Ruling]], *, now: datetime) -> list[Decision]:
        """Carry out what a model ruled about pairs of memories; returns a decision for each row that was closed.

        What was changed, closed or forgotten since it was asked stays as it is, and so does what would leave a
        place without a memory. At most MAX_RETIREMENTS a call; :meth:`undo` takes them back by ``now``.
        """

        async def writing() -> list[Decision]:
            apart = await self._apart.pairs(owner)
            asked = [entry for pair, _ in ruled for entry in (pair.earlier, pair.later)]
            found = await self._anywhere(owner, [entry.id for entry in asked])
            decisions: list[Decision] = []
            # What is over first: a memory that is confirmed by a double would be another one than was asked about.
            for pair, ruling in sorted(ruled, key=lambda each: each[1] != "supersedes"):
                if any(found.get(entry.id) != entry for entry in (pair.earlier, pair.later)):
                    continue
                if ruling == "same" and (pair.earlier.id, pair.later.id) in apart:
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
                    decisions.append(await self._merge(Batch(owner, PRIVATE, now, {}), *order, reason=reason))
            return decisions

        return await self._db.written(writing) if ruled else []

    async def restore(self, owner: Account, closed: Sequence[Entry], *, now: datetime) -> list[Entry]:
        """Reopen memories whose successor is gone, unless something newer holds their place; returns those open again.

        Each is weighed like a candidate said at its time, and stays closed when that would not be live. Needs the
        transaction that took the successor away.
        """
        reopened: list[Entry] = []
        statements = [entry for entry in closed if entry.provenance.reason != END]
        for entry in sorted(statements, key=lambda entry: (entry.provenance.said_at, entry.id)):
            candidate, audience = as_said(entry), entry.provenance.audience
            cited = [citation.message for citation in candidate.citations]
            batch = Batch(owner, audience, now, await self._stores.journal.lines(owner, cited))
            known = [other for other in (await self._known(batch, entry.kind)).values() if other.id != entry.id]
            words = " ".join(citation.quote for citation in candidate.citations)
            verdict = judge(candidate, known, Setting(audience, now, words))
            if await self._weighed_again(batch, entry, verdict):
                reopened.append(await self._reread(batch, entry.kind, entry.id))
        return reopened

    async def decide(self, owner: Account, doubt: Doubt, choice: Holds, *, now: datetime) -> None:
        """Carry out what an owner says of a doubt. Needs the transaction in which it was read."""
        store = self._store(doubt.unsure.kind)
        if choice == "new":
            await store.retire(owner, doubt.sure.id, at=now, successor=doubt.unsure.id, reason="superseded")
        elif choice == "old":
            # It points at nothing: it must not come back when what it was said against is forgotten.
            await store.retire(owner, doubt.unsure.id, at=now, successor=None, reason=DENIED)
        await store.doubt(owner, doubt.unsure.id, None)
        if choice != "old":
            await store.vouch(owner, doubt.unsure.id, 1.0)

    async def undecide(self, owner: Account, doubt: Doubt, choice: Holds, *, confidence: float) -> bool:
        """Take that back, so that both stand as they did, the unsure one with its old confidence.

        False, with nothing changed, when either was closed or opened by something else since. Needs a transaction.
        """
        store = self._store(doubt.unsure.kind)
        sure, unsure = doubt.sure.provenance, doubt.unsure.provenance
        ours = {
            "new": sure.successor == doubt.unsure.id and sure.retired_at is not None and unsure.retired_at is None,
            "old": unsure.reason == DENIED and sure.retired_at is None,
            "both": sure.retired_at is None and unsure.retired_at is None,
        }
        if not ours[choice]:
            return False
        if choice != "both":
            await store.reopen(owner, doubt.sure.id if choice == "new" else doubt.unsure.id)
        await store.vouch(owner, doubt.unsure.id, confidence)
        await store.doubt(owner, doubt.unsure.id, doubt.sure.id)
        return True

    async def undo(
        self,
        owner: Account,
        *,
        at: datetime,
        now: datetime,
        reasons: Collection[str] = (),
        successor: int | None = None,
    ) -> list[Entry]:
        """Open again what the batch of the time ``at`` (the ``now`` it was given) closed; returns those open again.

        ``reasons`` limits it to retirements for these reasons, ``successor`` to those in favour of that memory. What
        the batch had written in their place is closed in turn and weighs nothing any more, unless it was said again
        since. What has been overtaken or has expired stays closed, and with it stays what took its place. Folded
        duplicates lose nothing and stay folded.
        """
        async with self._db.transaction():
            reopened: list[Entry] = []
            for store in self._stores.entries:
                closed: list[Entry] = [e for e in await store.closed_at(owner, at) if _undoable(e, at, reasons)]
                closed = [e for e in closed if successor in (None, e.provenance.successor)]
                ended = [by for entry in closed if (by := entry.provenance.ended_by) is not None]
                # What an end met later is open again with what it ended at once.
                late = [e for e in await store.closed_by(owner, [], ended) if e.id not in {c.id for c in closed}]
                for entry in closed:
                    if entry.provenance.reason == END:
                        await self._void(owner, entry, successor=None, now=now)
                closed = [entry for entry in (*closed, *late) if entry.provenance.reason != END]
                successors = {entry.provenance.successor for entry in closed}
                for usurper in sorted(successors, key=lambda id_: id_ or 0):
                    batch = Batch(owner, PRIVATE, now, {})
                    mine = [entry for entry in closed if entry.provenance.successor == usurper]
                    reopened += await self._undo(batch, mine, usurper, at=at)
        return reopened

    async def _undo(self, batch: Batch, closed: Sequence[Entry], successor: int | None, *, at: datetime) -> list[Entry]:
        """Weigh what was closed in favour of one memory (or of none) as if that were not there."""
        store = self._store(closed[0].kind)
        usurper = (await self._anywhere(batch.owner, [successor])).get(successor) if successor is not None else None
        fresh = usurper is not None and (usurper.provenance.created_at, usurper.provenance.confirmed_at) == (at, None)
        if usurper is not None and fresh:
            # What came late and found its place taken is weighed again with the rest.
            closed = await store.closed_by(batch.owner, [usurper.id], [])
        without = {usurper.id} if usurper is not None and fresh else set()
        reopened: list[Entry] = []
        waiting = sorted(closed, key=lambda entry: Weight.of(entry).place)
        while waiting:
            entry, *waiting = waiting
            known = (await self._known(batch, entry.kind)).values()
            hidden = {other.id for other in (entry, *waiting)} | without
            others = [other for other in known if other.id not in hidden]
            verdict = judge(as_said(entry), others, Setting(entry.provenance.audience, batch.now))
            if await self._weighed_again(batch, entry, verdict):
                if usurper is not None and not fresh:
                    await self._store(usurper.kind).uncite(batch.owner, usurper.id, lent(entry, usurper))
                reopened.append(await self._reread(batch, entry.kind, entry.id))
        if usurper is not None and fresh and reopened:
            await self._void(batch.owner, usurper, successor=reopened[-1].id, now=batch.now)
        return reopened

    async def _void(self, owner: Account, entry: Entry, *, successor: int | None, now: datetime) -> None:
        """Have a row weigh nothing any more: one that is open, or an end, or what came when it was over already."""
        store = self._store(entry.kind)
        if entry.provenance.reason in {END, ENDED}:
            await store.reopen(owner, entry.id)
        await store.retire(owner, entry.id, at=now, successor=successor, reason=UNDONE)

    async def _weighed_again(self, batch: Batch, entry: Entry, verdict: Verdict) -> bool:
        """Carry out what a closed memory, weighed once more, turns out to be; whether it is open."""
        store, ended = self._store(entry.kind), entry.provenance.reason == ENDED
        if verdict.action == "confirm":
            await self._fold(batch, entry, verdict)
        elif verdict.closed_by is not None and not ended:
            await store.succeed(batch.owner, entry.id, verdict.closed_by)
        elif ended or (verdict.action == "add" and verdict.closed_by is None):
            await store.reopen(batch.owner, entry.id)
            await self._close(batch, entry.kind, verdict.closes, successor=entry.id, reason=verdict.reason)
            if verdict.ended is not None:
                await self._end(batch, entry, verdict.ended)
            elif verdict.action == "drop" or verdict.closed_by is not None:
                reason = UNDONE if verdict.action == "drop" else verdict.reason
                await store.retire(batch.owner, entry.id, at=batch.now, successor=verdict.closed_by, reason=reason)
            await self._mark(batch, entry.kind, entry.id, verdict)
        return (await self._reread(batch, entry.kind, entry.id)).provenance.live(batch.now)

    async def _fold(self, batch: Batch, entry: Entry, verdict: Verdict) -> None:
        """Have a closed memory add its words to an open one that says the same."""
        target = batch.known[entry.kind][verdict.target]
        await self._store(entry.kind).reopen(batch.owner, entry.id)
        await self._merge(batch, target, entry)
        await self._close(batch, entry.kind, verdict.closes, successor=target.id, reason="superseded")
        if entry.provenance.confidence >= SURE:
            await self._store(entry.kind).doubt(batch.owner, target.id, None)

    async def _mark(self, batch: Batch, kind: str, id_: int, verdict: Verdict) -> None:
        """Mark the doubts that a verdict sees, on the row itself and on those that are newer than it."""
        store = self._store(kind)
        await store.doubt(batch.owner, id_, verdict.doubts)
        for unsure in verdict.doubted_by:
            await store.doubt(batch.owner, unsure, id_)
            await self._reread(batch, kind, unsure)

    async def _decide(self, batch: Batch, candidate: Candidate) -> Decision:
        if reason := refusal(batch, candidate):
            return Decision("dropped", reason)
        candidate = await self._in_its_slot(batch, candidate)
        candidate = replace(candidate, expires_at=lifetimes.end(candidate, batch.said(candidate), batch.owner.zone))
        known = await self._known(batch, candidate.kind)
        verdict = judge(candidate, list(known.values()), Setting(batch.audience, batch.now, batch.words(candidate)))
        if len(verdict.closes) > batch.may_close:
            verdict = _bounded(verdict)
        batch.may_close -= len(verdict.closes)
        return await self._carry_out(batch, candidate, verdict)

    async def _in_its_slot(self, batch: Batch, candidate: Candidate) -> Candidate:
        """Return a sentence that says what a profile line or an event says as that line or event.

        It has the same words, or, of the same message, no others: what our rules read is then told once more.
        """
        if candidate.kind != "fact":
            return candidate
        for line in (await self._known(batch, "profile")).values():
            if isinstance(line, ProfileLine) and is_told_by(candidate, line):
                return replace(candidate, kind="profile", attribute=line.attribute, value=line.value)
        for event in (await self._known(batch, "event")).values():
            if isinstance(event, Event) and cites(event, candidate) and is_told_by(candidate, event):
                return replace(candidate, kind="event", text=event.text, span=event.span)
        return candidate

    async def _carry_out(self, batch: Batch, candidate: Candidate, verdict: Verdict) -> Decision:
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
        if verdict.action == "end":
            end = max(candidate.citations, key=lambda citation: citation.at)
            await store.retire(batch.owner, made.id, at=batch.now, successor=None, reason=END, ended=end)
            return Decision("retired", END, await self._reread(batch, candidate.kind, made.id))
        await self._close(batch, candidate.kind, verdict.closes, successor=made.id, reason=verdict.reason)
        if verdict.closed_by is not None:
            await store.retire(batch.owner, made.id, at=batch.now, successor=verdict.closed_by, reason=verdict.reason)
        elif verdict.ended is not None:
            await self._end(batch, made, verdict.ended)
        await self._mark(batch, candidate.kind, made.id, verdict)
        stored = await self._reread(batch, candidate.kind, made.id)
        return Decision("superseded" if verdict.closes else "added", verdict.reason, stored, verdict.closes)

    async def _end(self, batch: Batch, entry: Entry, end: Citation) -> None:
        """Close an open memory as one that words ended."""
        store = self._store(entry.kind)
        await store.retire(batch.owner, entry.id, at=batch.now, successor=None, reason=ENDED, ended=end)

    async def _confirm(self, batch: Batch, candidate: Candidate, verdict: Verdict) -> Decision:
        store = self._store(candidate.kind)
        for citation in candidate.citations:
            await store.confirm(batch.owner, verdict.target, citation, confidence=candidate.confidence)
        await self._close(batch, candidate.kind, verdict.closes, successor=verdict.target, reason="superseded")
        if candidate.confidence >= SURE:
            await store.doubt(batch.owner, verdict.target, None)
        stored = await self._reread(batch, candidate.kind, verdict.target)
        return Decision("confirmed", verdict.reason, stored, verdict.closes)

    async def _close(self, batch: Batch, kind: str, ids: Iterable[int], *, successor: int | None, reason: str) -> None:
        for id_ in ids:
            await self._store(kind).retire(batch.owner, id_, at=batch.now, successor=successor, reason=reason)
            await self._reread(batch, kind, id_)

    async def _merge(self, batch: Batch, kept: Entry, double: Entry, *, reason: str = "duplicate") -> Decision:
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

    async def _known(self, batch: Batch, kind: str) -> dict[int, Entry]:
        """The owner's memories of a kind that a verdict can rest on, read once a batch and kept up to date."""
        if kind not in batch.known:
            store = self._store(kind)
            # Of a slot its history counts, too; elsewhere what is closed matters if it was ended or cites these words.
            entries: list[Entry] = []
            if kind == "profile":
                entries += await store.history(batch.owner)
            else:
                entries += await store.live(batch.owner, now=batch.now)
                entries += await store.ended(batch.owner)
                entries += await store.citing(batch.owner, batch.lines)
            batch.known[kind] = {entry.id: entry for entry in entries}
        return batch.known[kind]

    async def _reread(self, batch: Batch, kind: str, id_: int) -> Entry:
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


def _bounded(verdict: Verdict) -> Verdict:
    """What is left of a verdict that may close nothing more: old and new both stay, as an open question."""
    if verdict.action == "retire":
        return Verdict("drop", "too_many_closed")
    return replace(verdict, reason="too_many_closed", closes=(), doubts=verdict.doubts or verdict.closes[0])


def _undoable(entry: Entry, at: datetime, reasons: Collection[str]) -> bool:
    reason = entry.provenance.reason
    if reason == ENDED and entry.provenance.created_at == at:
        return False  # It was over when it came.
    return reason not in {"duplicate", "outdated", "expired", UNDONE} and (not reasons or reason in reasons)


def lent(entry: Entry, usurper: Entry) -> list[int]:
    """The messages whose words a memory lent to the one it was folded into; that one keeps at least one of its own."""
    lent = {citation.message for citation in entry.provenance.citations if citation in usurper.provenance.citations}
    return [] if lent >= {citation.message for citation in usurper.provenance.citations} else sorted(lent)
