"""Bringing the index of an owner up to date: what is sealed is opened, what came behind it is read."""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from memory.index import OwnerIndex
from memory.model import Account, Unit
from memory.offloop import off_loop
from memory.pages import VectorPages
from memory.ports import Vector
from memory.sealed import Sealed
from memory.space import NO_ROWS, Chunk, VectorRows
from memory.stores import Stores
from memory.vectors import Vectors

_ROWS_A_UNIT: Final = 20
"""Rows whose scoring takes as long as indexing one text."""
_ROWS_A_SEGMENT: Final = 20
"""The same for taking a segment, which is ready."""
_SEALED: Final = 50
"""Vectors that are taken sealed in the time that one row takes."""
_FEW_NEWS: Final = 256
"""Row numbers up to which all that is new is read in one trip."""
_FEW_AT_ONCE: Final = 16
_SHORT_AT_ONCE: Final = 4_000
"""Texts and vectors up to which, and characters up to which, they are taken in that trip, too: a few milliseconds."""


class _Known(NamedTuple):
    """Up to where an index holds rows, chunks and vectors."""

    newest: int
    last_chunk: int
    last_vector: int

    @classmethod
    def of(cls, index: OwnerIndex) -> _Known:
        """What this one holds."""
        return cls(index.newest, index.last_chunk, index.last_vector)


class _News(NamedTuple):
    """What an index does not hold yet."""

    units: list[Unit]
    chunks: list[Chunk]
    vectors: VectorRows
    cold: frozenset[int]

    @property
    def little(self) -> bool:
        """Whether it is a turn's worth."""
        few = len(self.units) + len(self.chunks) + len(self.vectors.hashes) <= _FEW_AT_ONCE
        return few and sum(len(unit.text) for unit in self.units) <= _SHORT_AT_ONCE


class Refresher:
    """Reads what indexes do not hold yet."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def refresh(self, owner: Account, index: OwnerIndex) -> None:
        """Bring an index up to date."""
        stores, known = self._stores, _Known.of(index)
        newest, news = await stores.db.together(partial(self._fresh, owner, known))
        if newest == index.newest:
            return
        if not index.newest:
            news = await self._open(owner, index, newest)
        if news is None:
            # Much is read bit by bit: others' reading need not wait for all.
            news = await self._news(owner, _Known.of(index), newest)
        await self._take(index, newest, news)

    async def _take(self, index: OwnerIndex, newest: int, news: _News) -> None:
        """Add what is new to an index."""
        units, chunks, rows, index.cold = news
        await off_loop(partial(index.add, units), size=len(units) * _ROWS_A_UNIT)
        index.add_chunks(chunks)
        await off_loop(partial(index.add_vectors, rows.hashes, rows.matrix, last=rows.last), size=len(rows.hashes))
        index.newest = newest

    async def take_at_once(self, owner: Account, index: OwnerIndex) -> bool:
        """Bring an index up to date inside a trip to the file; False where there is too much to take for that."""
        newest, news = await self._fresh(owner, _Known.of(index))
        if newest == index.newest:
            return True
        if news is None or not news.little:
            return False
        await self._take(index, newest, news)
        return True

    async def _fresh(self, owner: Account, known: _Known) -> tuple[int, _News | None]:
        """The newest row number, and in the same trip what came behind what an index holds, if that is little.

        The number is read first: what is written from here on is behind it, and has its turn the next time.
        """
        newest = await self._stores.journal.newest(owner)
        behind = newest - max(known.newest, owner.first_id)
        # A turn's worth: who talks has nearly always written something since.
        if newest == known.newest or not known.newest or behind > _FEW_NEWS:
            return newest, None
        return newest, await self._news(owner, known, newest)

    async def _news(self, owner: Account, known: _Known, newest: int) -> _News:
        """What came behind what an index holds."""
        stores, embeddings = self._stores, self._stores.embeddings
        units = await read_units(stores, owner, after=known.newest, upto=newest)
        cold = frozenset([id_ for store in stores.entries for id_ in await store.cold(owner)])
        if embeddings.model is None:
            return _News(units, [], NO_ROWS, cold)
        return _News(
            units,
            await embeddings.chunks(owner, after=known.last_chunk),
            await embeddings.rows(owner, after=known.last_vector),
            cold,
        )

    async def _open(self, owner: Account, index: OwnerIndex, newest: int) -> _News | None:
        """Take what is sealed, and the texts of rows between that; what came behind if that was little, else None."""
        segments, centre, pages, news = await self._stores.db.together(partial(self._sealed, owner, newest))
        for held in segments:
            if max(index.newest, owner.first_id - 1) < held.first - 1:
                units = await read_units(self._stores, owner, after=index.newest, upto=held.first - 1)
                await off_loop(partial(index.add, units), size=len(units) * _ROWS_A_UNIT)
            await off_loop(partial(index.take, held.segment), size=_ROWS_A_SEGMENT)
            index.newest = held.last
        if self._stores.embeddings.model is not None:
            index.vectors = Vectors(centre)
            if pages is not None:
                await off_loop(partial(index.open_pages, pages), size=len(pages.keys) // _SEALED)
        return news

    async def _sealed(
        self, owner: Account, newest: int
    ) -> tuple[list[Sealed], Vector | None, VectorPages | None, _News | None]:
        """What is sealed, and in the same trip what came behind it, unless that is much."""
        segments, embeddings = await self._stores.segments.all(owner), self._stores.embeddings
        centre, pages = None, None
        if embeddings.model is not None:
            centre, pages = await embeddings.centre(owner), await embeddings.pages(owner)
        known = _Known(segments[-1].last if segments else 0, 0, 0 if pages is None else pages.last)
        few = newest - max(known.newest, owner.first_id) <= _FEW_NEWS
        return segments, centre, pages, await self._news(owner, known, newest) if few else None


async def read_units(stores: Stores, owner: Account, *, after: int, upto: int) -> list[Unit]:
    """Everything of an owner that recall may find among the rows behind ``after`` up to ``upto``."""
    found = [unit for store in stores.entries for unit in await store.units(owner, after=after, upto=upto)]
    return [*await stores.journal.units(owner, after=after, upto=upto), *found]
