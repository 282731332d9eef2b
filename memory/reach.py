"""How far forgetting reaches: the lines that go with memories and lines, because they hold, used or answered them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from memory.echoes import Echoes, Lost
from memory.model import Account, Entry, Message
from memory.needles import Needles, giveaways
from memory.offloop import off_loop
from memory.stores import Stores

ROWS_A_LINE: Final = 10
"""What it costs to search a line, in the rows that :func:`memory.offloop.off_loop` counts by."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The lines that go: those that are visible, and those that some other deletion hides already."""

    lines: tuple[Message, ...]
    concealed: tuple[Message, ...] = ()


class Reach:
    """Works out what goes along; nothing is changed here."""

    def __init__(self, stores: Stores, echoes: Echoes) -> None:
        self._echoes = echoes
        self._stores = stores

    async def of(self, owner: Account, entries: Sequence[Entry], lines: Iterable[int], *, searches: bool) -> Reached:
        """What these memories and lines take along.

        With ``searches`` every line goes that holds what gives a memory away. In any case a reply goes whose request
        held something that goes, in the window or because it was asked about, for it may tell it in other words; and
        so does what answers a line that goes.
        """
        said = await self._stores.journal.said(owner)
        concealed = await self._stores.journal.concealed(owner)
        known = [*said, *concealed]
        gone = {*lines, *(c.message for e in entries for c in e.provenance.citations)} & {m.id for m in known}
        if searches:
            needles = await off_loop(lambda: giveaways(entries), size=len(entries) * ROWS_A_LINE)
            gone |= {m.id for m in await holding(needles, known)}
        kept = await self._kept(owner, entries, gone)
        lost = [m for m in said if m.id in gone]
        gone |= {m.id for m in await self._echoes.own(owner, Lost(lost, entries), kept=kept)}
        gone = await self._following(owner, known, gone, [e.id for e in entries])
        return Reached(tuple(m for m in said if m.id in gone), tuple(m for m in concealed if m.id in gone))

    async def _kept(self, owner: Account, entries: Sequence[Entry], gone: Collection[int]) -> list[str]:
        """What stays known of lines that go: an answer that repeats it gives nothing away."""
        forgotten = {entry.id for entry in entries}
        citing = [e for store in self._stores.entries for e in await store.citing(owner, gone)]
        return [entry.text for entry in citing if entry.id not in forgotten]

    async def _following(
        self, owner: Account, known: Sequence[Message], gone: set[int], entries: Sequence[int]
    ) -> set[int]:
        """The lines that go, with what used or answered them, and what used that."""
        fresh: set[int] = set(gone)
        asking: Sequence[int] = entries
        while fresh or asking:
            used = set(await self._stores.traces.using(owner, [*asking, *fresh]))
            # The one reply to several quick messages goes with any of them.
            turns = {m.turn for m in known if m.id in fresh and m.turn is not None}
            answers = {m.id for m in known if m.answers in fresh or m.answers in turns}
            fresh, asking = (used | answers) - gone, ()
            gone = gone | fresh
        return gone


async def holding(needles: Needles, lines: Sequence[Message]) -> list[Message]:
    """The lines in which any of the needles stands; read in a thread when there are many."""
    if not needles:
        return []
    return await off_loop(lambda: [m for m in lines if needles.found_in(m.text)], size=len(lines) * ROWS_A_LINE)
