"""Forgetting: show what would go, hide it at once, erase it in time, prove it.

Everything here takes the owner and touches only the owner's rows. What gives a forgotten memory away is
looked for by :mod:`memory.needles`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from memory.db import Database
from memory.echoes import Echoes
from memory.model import Account, Chat, Entry, Message, ProfileLine
from memory.needles import Needles, giveaways
from memory.offloop import off_loop
from memory.promises import Deletion, Offer
from memory.sessions import Sessions
from memory.slots import slot
from memory.stores import Stores
from memory.verdicts import covers
from memory.words import terms

OFFER_LASTS: Final = timedelta(hours=24)
ROWS_A_LINE: Final = 10
"""What it costs to search a line, in the rows that :func:`memory.offloop.off_loop` counts by."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What ``/forget words`` would delete: ``entries`` in the order they are numbered, and journal lines."""

    offer: int
    entries: tuple[Entry, ...]
    lines: tuple[Message, ...]


class Forgetting:
    """The forget gate."""

    def __init__(self, db: Database, stores: Stores, sessions: Sessions, undo: timedelta, echoes: Echoes) -> None:
        self._db = db
        self._echoes = echoes
        self._stores = stores
        self._sessions = sessions
        self._undo = undo
        self._named: dict[tuple[int, int], Needles] = {}
        """What the open plan of an owner and chat was asked for; in memory only, for a file would keep the words."""

    async def plan(self, owner: Account, chat: Chat, words: str, *, now: datetime) -> Plan | None:
        """Find what ``words`` name, closed and expired memories included, and offer to delete it.

        A plan is shown, so in a group it holds what may be shown there and was said there, nothing else.
        Returns None when nothing matches. Nothing is deleted yet.
        """
        query = Needles([words])
        if not query:
            return None
        said = [m for m in await self._stores.journal.said(owner) if chat.private or m.chat == chat.no]
        named = [m.id for m in await _holding(query, said)]
        # In one transaction, so that every memory the plan could not see has a higher number than the offer.
        async with self._db.transaction():
            entries = [
                entry
                for store in self._stores.entries
                for entry in await store.history(owner)
                if covers(entry.provenance.audience, chat.audience) and _names(query, words, entry)
            ]
            if not entries and not named:
                return None
            data = {"entries": [entry.id for entry in entries], "lines": named}
            offer = await self._stores.promises.offer(owner, chat.no, "forget", data, expires_at=now + OFFER_LASTS)
        self._named[owner.no, chat.no] = query
        reached = await self._reach(owner, entries, named)
        return Plan(offer.id, tuple(entries), tuple(m for m in reached if chat.private or m.chat == chat.no))

    async def pending(self, owner: Account, chat: Chat, *, now: datetime) -> Offer | None:
        """The plan that waits for a yes in this chat."""
        return await self._stores.promises.offered(owner, chat.no, "forget", now=now)

    async def carry_out(
        self, owner: Account, offer: int, *, picks: Sequence[int] | None, now: datetime
    ) -> Deletion | None:
        """Hide what an offer named, at once and everywhere; erasure follows after the time for undo.

        ``picks`` are 1-based numbers of the plan's entries; None takes the whole plan. Returns None when the
        offer is not open any more. Raises PickError for a number it does not have; the offer stays open.
        """
        async with self._db.transaction():
            taken = await self._stores.promises.take(owner, offer, now=now)
            if taken is None:
                return None
            named = self._named.get((owner.no, taken.chat))
            ids: list[int] = taken.data["entries"]
            lines: list[int] = taken.data["lines"]
            if picks is not None:
                if not picks or not all(1 <= pick <= len(ids) for pick in picks):
                    raise PickError(len(ids))
                ids, lines = [ids[pick - 1] for pick in dict.fromkeys(picks)], []
            elif named is not None:
                # What the owner said since the plan was shown is new; what the bot said may still rest on the old.
                since = await self._stores.journal.said(owner, after=offer)
                lines += [m.id for m in await _holding(named, since) if m.role == "bot"]
            hidden = await self._hide(owner, taken, ids, lines, now=now)
        self._named.pop((owner.no, taken.chat), None)
        return hidden

    async def cancel(self, owner: Account, offer: int, *, now: datetime) -> bool:
        """Close an offer without deleting anything."""
        taken = await self._stores.promises.take(owner, offer, now=now)
        if taken is not None:
            self._named.pop((owner.no, taken.chat), None)
        return taken is not None

    async def undo(
        self, owner: Account, deletion: int | None, *, now: datetime, asked_at: datetime | None = None
    ) -> Deletion | None:
        """Bring back what a deletion hid (the newest one if None); None when there is nothing to undo.

        ``asked_at`` is when the person asked: a request that was carried out and is delivered again undoes
        nothing more.
        """
        async with self._db.transaction():
            if asked_at is not None and await self._stores.promises.undone_since(owner, asked_at):
                return None
            for found in await self._stores.promises.undoable(owner, now=now):
                if deletion in (None, found.id):
                    return found if await self._show_again(owner, found, now=now) else None
        return None

    async def erase_due(self, owner: Account, *, now: datetime) -> list[Deletion]:
        """Erase what has waited long enough, search for it, and only then owe the receipt.

        Rows go in one transaction with the search that finds them gone; then the file is rewritten so that no
        old copy of a page holds them; then the receipt. A kill at any point leaves the deletion due, and the
        next run finishes it. Raises ErasureError when a search still finds something: those rows stay as they
        were, hidden, and there is no receipt.
        """
        erased: list[Deletion] = []
        failed: list[int] = []
        for deletion in await self._stores.promises.due(owner, now=now):
            try:
                if await self._erase(owner, deletion, now=now):
                    erased.append(deletion)
            except ErasureError:
                failed.append(deletion.id)
        if erased:
            await self._db.scrub()
        done = [deletion for deletion in erased if await self._acknowledge(owner, deletion, now=now)]
        if failed:
            raise ErasureError(failed[0])
        return done

    async def _hide(
        self, owner: Account, offer: Offer, ids: Sequence[int], lines: Sequence[int], *, now: datetime
    ) -> Deletion:
        entries = [e for store in self._stores.entries for e in (await store.get(owner, ids)).values()]
        gone = await self._reach(owner, entries, lines)
        if since := await self._made_of(owner, gone, after=offer.id):
            entries += since
            ids = [entry.id for entry in entries]
            gone = await self._reach(owner, entries, lines)
        deletion = await self._stores.promises.delete(owner, offer.chat, at=now, erase_at=now + self._undo)
        echoed = await self._echoes.hide(owner, gone, deletion)
        await self._withdraw_quotes(owner, set(ids), [m.id for m in gone], giveaways(entries))
        journal = self._stores.journal
        counts = {
            "memories": sum([await store.hide(owner, ids, deletion) for store in self._stores.entries]),
            "messages": await journal.hide(owner, [m.id for m in gone if m.role == "user"], deletion),
            "replies": echoed + await journal.hide(owner, [m.id for m in gone if m.role == "bot"], deletion),
        }
        await self._stores.waits.remove(owner, [m.id for m in gone])
        return await self._stores.promises.counted(owner, deletion, counts)

    async def _reach(self, owner: Account, entries: Sequence[Entry], lines: Sequence[int]) -> list[Message]:
        """The lines that go with memories and lines: what they cite, what gives them away, what used or answered it."""
        said = await self._stores.journal.said(owner)
        gone = {*lines, *(c.message for e in entries for c in e.provenance.citations)}
        gone |= {m.id for m in await _holding(giveaways(entries), said)}
        kept = await self._kept(owner, entries, gone)
        lines_gone = [m for m in said if m.id in gone]
        gone |= {m.id for m in await self._echoes.own(owner, lines_gone, [e.id for e in entries], kept=kept)}
        gone |= set(await self._stores.traces.using(owner, [*(e.id for e in entries), *gone]))
        # The one reply to several quick messages goes with any of them.
        asked = gone | {m.turn for m in said if m.id in gone and m.turn is not None}
        return [m for m in said if m.id in gone or m.answers in asked]

    async def _kept(self, owner: Account, entries: Sequence[Entry], gone: Collection[int]) -> list[str]:
        """What stays known of lines that go: an answer that repeats it gives nothing away."""
        forgotten = {entry.id for entry in entries}
        citing = [e for store in self._stores.entries for e in await store.citing(owner, gone)]
        return [entry.text for entry in citing if entry.id not in forgotten]

    async def _made_of(self, owner: Account, lines: Sequence[Message], *, after: int) -> list[Entry]:
        """The memories that were made of these lines while a plan waited for its yes, and so are not in it."""
        ids = [line.id for line in lines]
        return [e for store in self._stores.entries for e in await store.citing(owner, ids) if e.id > after]

    async def _withdraw_quotes(
        self, owner: Account, forgotten: set[int], lines: Sequence[int], needles: Needles
    ) -> None:
        """Another memory that cites a forgotten line keeps only its own words of it."""
        for store in self._stores.entries:
            for entry in await store.citing(owner, lines):
                for citation in entry.provenance.citations:
                    if entry.id not in forgotten and needles.found_in(citation.quote):
                        await store.requote(owner, entry.id, citation.message, entry.text)

    async def _show_again(self, owner: Account, deletion: Deletion, *, now: datetime) -> bool:
        """Show what a deletion hid; False when it has been erased meanwhile."""
        lines = await self._stores.journal.hidden(owner, deletion.id)
        await self._echoes.show_again(owner, lines, deletion.id)
        shown = await self._stores.journal.unhide(owner, deletion.id)
        for store in self._stores.entries:
            shown += await store.unhide(owner, deletion.id)
        # What was hidden while its session was distilled has its turn now; what is known is only confirmed.
        for line in lines:
            await self._sessions.rewind(owner, line.session, before=line.id)
        return shown > 0 and await self._stores.promises.undone(owner, deletion.id, at=now)

    async def _erase(self, owner: Account, deletion: Deletion, *, now: datetime) -> bool:
        """Remove a deletion's rows and search for them, in one transaction; False when it was undone meanwhile."""
        async with self._db.transaction():
            if deletion.id not in {due.id for due in await self._stores.promises.due(owner, now=now)}:
                return False
            entries = [e for store in self._stores.entries for e in await store.hidden(owner, deletion.id)]
            lines = await self._stores.journal.hidden(owner, deletion.id)
            if not await self._echoes.erase(owner, lines, deletion.id):
                raise ErasureError(deletion.id)
            await self._remove(owner, [e.id for e in entries], [m.id for m in lines])
            await self._prove(owner, deletion, entries, lines)
        return True

    async def _remove(self, owner: Account, entries: Sequence[int], lines: Sequence[int]) -> None:
        for store in self._stores.entries:
            await store.erase(owner, entries)
        await self._stores.traces.erase(owner, lines)
        await self._stores.journal.erase(owner, lines)
        await self._stores.embeddings.sweep(owner)
        await self._stores.nulls.erase(owner)

    async def _prove(
        self, owner: Account, deletion: Deletion, entries: Sequence[Entry], lines: Sequence[Message]
    ) -> None:
        """Search every place of the owner's words for what was erased; raises ErasureError if any is left.

        Words the owner said anew after the deletion are new, and do not count.
        """
        journal = self._stores.journal
        left = [bool(await journal.hidden(owner, deletion.id)), await journal.wordy(owner, [m.id for m in lines])]
        for store in self._stores.entries:
            left += [
                bool(await store.hidden(owner, deletion.id)),
                bool(await store.get(owner, [e.id for e in entries])),
            ]
        earlier = [m for m in await journal.said(owner) if m.id < deletion.id]
        left += [
            bool(await _holding(giveaways(entries), earlier)),
            await self._stores.embeddings.orphaned(owner),
            await self._stores.segments.holding(owner, [*(e.id for e in entries), *(m.id for m in lines)]),
        ]
        if any(left):
            raise ErasureError(deletion.id)

    async def _acknowledge(self, owner: Account, deletion: Deletion, *, now: datetime) -> bool:
        """Mark a deletion as carried out and owe its receipt."""
        async with self._db.transaction():
            if not await self._stores.promises.erased(owner, deletion.id, at=now):
                return False
            counts = dict(deletion.counts)
            await self._stores.promises.notify(owner, deletion.chat, "forget.receipt", counts, at=now)
        return True


class PickError(ValueError):
    """A number that the plan does not have; ``count`` is how many it has."""

    def __init__(self, count: int) -> None:
        super().__init__(f"the plan has the numbers 1 to {count}")
        self.count = count


class ErasureError(Exception):
    """Something of a deletion was still found after its erasure."""

    def __init__(self, deletion: int) -> None:
        super().__init__(f"deletion {deletion}: rows are left after the erasure; it will be tried again")
        self.deletion = deletion


async def _holding(needles: Needles, lines: Sequence[Message]) -> list[Message]:
    """The lines in which any of the needles stands; read in a thread when there are many."""
    if not needles:
        return []
    return await off_loop(lambda: [m for m in lines if needles.found_in(m.text)], size=len(lines) * ROWS_A_LINE)


def _names(query: Needles, words: str, entry: Entry) -> bool:
    """Whether words name a memory: they stand in it, or all their terms do, or they name its slot."""
    texts = [entry.text, *(c.quote for c in entry.provenance.citations)]
    if isinstance(entry, ProfileLine):
        texts += [entry.value, *slot(entry.attribute).labels.values()]
    if any(query.found_in(text) for text in texts):
        return True
    wanted = set(terms(words))
    return bool(wanted) and wanted <= {term for text in texts for term in terms(text)}
