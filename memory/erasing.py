"""Erasing: when the time for undo is over, rows go for good, a search proves it, and only then there is a receipt.

Also what a restored backup needs: the rows that were erased are written down as ranges of numbers, and erased again
in a file that has them back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memory.db import Database
from memory.echoes import Echoes
from memory.erasures import Erasures, Range
from memory.model import Account, Entry, Message
from memory.needles import giveaways
from memory.offloop import off_loop
from memory.promises import Deletion
from memory.reach import ROWS_A_LINE, holding
from memory.stores import Stores

RECEIPT: Final = "forget.receipt"
RECEIPT_COPIES: Final = "forget.receipt_copies"
"""The receipt where there are backups, which are cleaned later."""
AT_ONCE: Final = 500
"""Rows that go in one transaction: everybody else writes between two of them."""


@dataclass(frozen=True, slots=True)
class _Gone:
    """What one deletion has erased, as it was."""

    entries: Sequence[Entry]
    lines: Sequence[Message]

    @property
    def ids(self) -> list[int]:
        """Its row numbers."""
        return [*(entry.id for entry in self.entries), *(line.id for line in self.lines)]

    @property
    def counts(self) -> dict[str, int]:
        """How much it was."""
        replies = sum(line.role == "bot" for line in self.lines)
        return {"memories": len(self.entries), "messages": len(self.lines) - replies, "replies": replies}


class ErasureError(Exception):
    """Something of a deletion was still found after its erasure."""

    def __init__(self, deletion: int) -> None:
        super().__init__(f"deletion {deletion}: rows are left after the erasure; it will be tried again")
        self.deletion = deletion


class Erasing:
    """Removes what was hidden, wherever it is."""

    def __init__(
        self,
        db: Database,
        stores: Stores,
        erasures: Erasures,
        echoes: Echoes,
        *,
        copies: Callable[[], float] = lambda: 0,
    ) -> None:
        """``copies`` tells within how many hours the backups are cleaned, 0 where there are none."""
        self._db = db
        self._copies = copies
        self._echoes = echoes
        self._stores = stores
        self._erasures = erasures

    async def erase_due(self, owner: Account, *, now: datetime) -> list[Deletion]:
        """Erase what has waited long enough, search for it, and only then owe the receipt.

        Rows go a few at a time, hidden as they are; then a search finds them gone; then the file is rewritten so that
        no old copy of a page holds them; then the receipt, with what the search counted. A kill at any point leaves
        the deletion due, and the next run finishes it. Raises ErasureError when a search still finds something: it
        stays hidden, and there is no receipt.
        """
        erased: list[Deletion] = []
        failed: list[int] = []
        for deletion in await self._stores.promises.due(owner, now=now):
            try:
                if (counted := await self._erase(owner, deletion, now=now)) is not None:
                    erased.append(counted)
            except ErasureError:
                failed.append(deletion.id)
        if erased:
            await self._db.scrub()
        done = [deletion for deletion in erased if await self._acknowledge(owner, deletion, now=now)]
        if failed:
            raise ErasureError(failed[0])
        return done

    async def again(self, owner: Account, ranges: Iterable[Range], *, now: datetime, scrub: bool = True) -> int:
        """Erase rows that an older copy of the file has brought back, and rewrite it; returns how many there were.

        Who does this for many owners has them not ``scrub`` one by one, and rewrites the file at the end.

        To be called after a restore, before anybody reads, with the ranges that the file before it had
        (:meth:`memory.forget.Forgetting.erased`). What the copy knows of itself it has erased already; a line that was
        only edited since has its old words taken away. A memory that quotes an erased line keeps its own words only.
        """
        count = 0
        async with self._db.transaction():
            known = set(await self._erasures.ranges(owner))
            ranges = [r for r in ranges if owner.owns(r.first) and owner.owns(r.last) and r not in known]
            for first, last in ranges:
                rows = await self._erasures.within(owner, first, last)
                count += len(rows)
                await self._remove(owner, rows, rows)
                if first == owner.first_id:
                    await self._remove(owner, [], await self._erasures.commands(owner, last))
                    await self._erasures.wipe(owner, last, now=now)
                await self._erasures.requote(owner, first, last)
            await self._erasures.keep(owner, ranges)
            await self._sweep(owner)
        if count and scrub:
            await self._db.scrub()
        return count

    async def _erase(self, owner: Account, deletion: Deletion, *, now: datetime) -> Deletion | None:
        """Remove a deletion's rows, some at a time, and search for them; None when it was undone meanwhile."""
        gone = _Gone(
            [e for store in self._stores.entries for e in await store.hidden(owner, deletion.id)],
            await self._stores.journal.hidden(owner, deletion.id),
        )
        async with self._db.transaction():
            # What was read before is still hidden: only undoing it changes that.
            if deletion.id not in {due.id for due in await self._stores.promises.due(owner, now=now)}:
                return None
            rows = [*gone.ids, *await self._erasures.claimed(owner, deletion.id)]
            if not await self._echoes.erase(owner, deletion.id):
                raise ErasureError(deletion.id)
            if "searched" not in deletion.counts:  # Else a run before this one was stopped on its way.
                deletion = await self._stores.promises.counted(owner, deletion.id, gone.counts | {"searched": 0})
            # From the first row that is gone on nothing may bring the others back, whatever the clock says.
            await self._stores.promises.begun(owner, deletion.id)
            if deletion.scope == "everything":
                await self._erasures.note_all(owner, deletion.id)
            else:
                await self._erasures.note(owner, deletion.id, rows)
        for start in range(0, len(rows), AT_ONCE):
            async with self._db.transaction():
                await self._remove(owner, rows[start : start + AT_ONCE], rows[start : start + AT_ONCE])
        async with self._db.transaction():
            if deletion.scope == "everything":
                await self._remove(owner, [], await self._erasures.commands(owner, deletion.id))
                await self._erasures.wipe(owner, deletion.id, now=now)
            await self._erasures.release(owner, deletion.id)
            await self._sweep(owner)
        searched = await self._prove(owner, deletion, gone)
        return await self._stores.promises.counted(owner, deletion.id, {**deletion.counts, "searched": searched})

    async def _remove(self, owner: Account, entries: Sequence[int], lines: Sequence[int]) -> None:
        for store in self._stores.entries:
            await store.erase(owner, entries)
        # What of the owner's own was given with these lines goes along (memory.reach).
        await self._echoes.hand_on(owner, lines, own=False)
        await self._stores.traces.erase(owner, lines)
        await self._stores.waits.remove(owner, lines)
        await self._stores.journal.erase(owner, lines)

    async def _sweep(self, owner: Account) -> None:
        """Remove what was made of words that are gone."""
        await self._stores.embeddings.sweep(owner)
        await self._stores.nulls.erase(owner)

    async def _prove(self, owner: Account, deletion: Deletion, gone: _Gone) -> int:
        """Search every place of the owner's words for what was erased; returns how many rows were looked through.

        Raises ErasureError if any is left. Words the owner said anew after the deletion are new, and do not count.
        """
        journal = self._stores.journal
        left = [bool(await journal.hidden(owner, deletion.id)), await journal.wordy(owner, [m.id for m in gone.lines])]
        for store in self._stores.entries:
            left += [
                bool(await store.hidden(owner, deletion.id)),
                bool(await store.get(owner, [e.id for e in gone.entries])),
            ]
        said = await journal.said(owner)
        if deletion.scope == "everything":
            left.append(bool(await self._erasures.left(owner, deletion.id)))
        elif deletion.scope == "words":
            needles = await off_loop(lambda: giveaways(gone.entries), size=len(gone.entries) * ROWS_A_LINE)
            left.append(bool(await holding(needles, [m for m in said if m.id < deletion.id])))
        left += [
            await self._stores.embeddings.orphaned(owner),
            await self._stores.segments.holding(owner, gone.ids),
        ]
        if any(left):
            raise ErasureError(deletion.id)
        return len(said) + sum([len(await store.history(owner)) for store in self._stores.entries])

    async def _acknowledge(self, owner: Account, deletion: Deletion, *, now: datetime) -> bool:
        """Mark a deletion as carried out and owe its receipt."""
        hours = await asyncio.to_thread(self._copies)
        async with self._db.transaction():
            if not await self._stores.promises.erased(owner, deletion.id, at=now):
                return False
            told: dict[str, float] = dict(deletion.counts)
            phrase = RECEIPT
            if hours:
                phrase, told = RECEIPT_COPIES, told | {"hours": hours}
            await self._stores.promises.notify(owner, deletion.chat, phrase, told, at=now)
        return True
