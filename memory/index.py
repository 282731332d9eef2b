"""The recall index of one owner: what is known of each row, its words and its vector, all in memory."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from memory import passages
from memory.dates import holds_time
from memory.embedding import Chunk
from memory.lexicon import asks, holds_name, only_asks
from memory.model import SELF, Account, Kind, Span, Unit
from memory.offloop import off_loop
from memory.parts import Parts
from memory.ports import Vector
from memory.postings import Postings
from memory.rules import is_small_talk
from memory.stores import Stores
from memory.vectors import Matrix, Vectors
from memory.words import terms, weights

KINDS: Final[tuple[Kind, ...]] = ("message", "profile", "event", "fact")
MESSAGE: Final = KINDS.index("message")
EVENT: Final = KINDS.index("event")

NOWHERE: Final = -1
"""Row number that stands for no row: no neighbour, no session, no vector."""
NEVER: Final = float("inf")
"""Expiry of what does not expire, seconds since 1970."""

MOST_BYTES: Final = 256 * 1024 * 1024
"""Memory all indexes may hold; the person who talked longest ago goes first."""
RARE_ROWS: Final = 3
RARE_SHARE: Final = 0.01
"""A word is rare that no more than three rows hold, or one in a hundred."""
_ROWS_A_UNIT: Final = 20
"""Rows whose scoring takes as long as indexing one text."""
_FIRST_ROWS: Final = 64
_ROW: Final = np.dtype(
    [
        ("id", "i8"),
        ("at", "f8"),
        ("start", "f8"),
        ("end", "f8"),
        ("expires", "f8"),
        ("audience", "i4"),
        ("session", "i4"),
        ("previous", "i4"),
        ("next", "i4"),
        ("vector", "i4"),
        ("person", "i4"),
        ("length", "f4"),
        ("confidence", "f4"),
        ("importance", "f4"),
        ("kind", "i1"),
        ("bot", "?"),
        ("asks", "?"),
        ("idle", "?"),
        ("timed", "?"),
        ("names", "?"),
        ("alive", "?"),
    ]
)


Result = TypeVar("Result")


class OwnerIndex:
    """Everything recall needs of one owner but the texts, which are read again when shown.

    A journal line is indexed as "speaker: text", a memory by its text. ``person`` numbers the speaker of a
    line and the subject of a memory; ``asks`` marks lines that end in a question, ``idle`` those that tell
    nothing (mere questions, greetings, thanks). Row numbers are places in :attr:`rows`, in order of id; a
    removed row keeps its place and is no longer ``alive``.
    """

    def __init__(self) -> None:
        self._rows = np.zeros(0, dtype=_ROW)
        self._count = 0
        self._row_of: dict[int, int] = {}
        self._waiting: dict[bytes, list[int]] = {}
        self._session_numbers: dict[int, int] = {}
        self._last_line: dict[int, int] = {}
        self.postings = Postings()
        self.vectors = Vectors()
        self.parts = Parts()
        self.people: dict[str, int] = {}
        self.speakers: set[str] = set()
        self.cites: dict[int, tuple[int, ...]] = {}
        self.spans: dict[int, Span] = {}
        self.attributes: dict[int, str] = {}
        self.last_units: dict[Kind, int] = dict.fromkeys(KINDS, 0)
        self.last_vector = 0
        self.last_chunk = 0

    @property
    def rows(self) -> NDArray[np.void]:
        """The columns of every row so far, a view."""
        return self._rows[: self._count]

    @property
    def sessions(self) -> int:
        """How many sessions the journal lines fall into."""
        return len(self._session_numbers)

    @property
    def size(self) -> int:
        """Rows that are alive."""
        return int(np.count_nonzero(self.rows["alive"]))

    @property
    def nbytes(self) -> int:
        """Memory held, bytes, near enough to bound a cache by."""
        return (
            self._rows.nbytes
            + self._count * 100
            + sum(part.nbytes for part in (self.postings, self.vectors, self.parts))
        )

    def add(self, units: Iterable[Unit]) -> None:
        """Take units, those of one kind in order of id; one that is known already is skipped.

        A memory shares the session of the first line it cites, if that line was added before it.
        """
        for unit in units:
            if unit.id not in self._row_of:
                self._add(unit)
            self.last_units[unit.kind] = max(self.last_units[unit.kind], unit.id)

    def add_vectors(self, hashes: Sequence[bytes], matrix: Matrix, *, last: int = 0) -> None:
        """Give rows their vectors: (n, d) float32, one a text hash; ``last`` is the newest vector's row id.

        Rows without a usable vector take part by their words alone.
        """
        for key, slot in self.vectors.add(hashes, matrix).items():
            for row in self._waiting.pop(key, ()):
                self._rows["vector"][row] = slot
            self.parts.arrived(key, slot)
        self.last_vector = max(self.last_vector, last)

    def add_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Take the chunks of rows that are here; their vectors count for those rows."""
        for chunk in chunks:
            row = self._row_of.get(chunk.part_of)
            if row is not None:
                self.parts.add(row, chunk, self.vectors.slot(chunk.text_hash))
            self.last_chunk = chunk.id

    def by_row(self, found: NDArray[np.float32]) -> NDArray[np.float64]:
        """Cosines by slot, (..., slots), as cosines by row: of a row and its chunks the best, NaN without a vector."""
        slots = self.rows["vector"]
        best = np.where(slots != NOWHERE, found[..., slots], np.nan).astype(np.float64)
        self.parts.raise_to_best(best, found)
        return best

    def nearest_chunks(self, ids: Iterable[int], question: Vector) -> dict[int, passages.Span]:
        """Of each of these units that has chunks where the one nearest to a question is, by unit id."""
        near = {id_: self.parts.nearest(self._row_of[id_], self.vectors, question) for id_ in ids} if self.parts else {}
        return {id_: found for id_, found in near.items() if found is not None}

    def rare(self, words: Sequence[str]) -> frozenset[str]:
        """Those of a question's words that few rows hold; Han characters that are no word are not among them."""
        few = max(RARE_ROWS, self._count * RARE_SHARE)
        held = {
            word: self.postings.find(word) for word, counts in zip(words, weights(words), strict=True) if counts == 1
        }
        return frozenset(word for word, hits in held.items() if hits is not None and len(hits.rows) <= few)

    def remove(self, ids: Iterable[int]) -> None:
        """Take rows out at once; their neighbours become each other's."""
        columns = self._rows
        for row in (self._row_of[each] for each in ids if each in self._row_of):
            before, after = int(columns["previous"][row]), int(columns["next"][row])
            columns["alive"][row] = False
            if before != NOWHERE:
                columns["next"][before] = after
            if after != NOWHERE:
                columns["previous"][after] = before
            elif columns["kind"][row] == MESSAGE:
                self._last_line[int(columns["session"][row])] = before

    def row(self, unit_id: int) -> int | None:
        """Where a unit is, None if it is not here or was removed."""
        at = self._row_of.get(unit_id)
        return at if at is not None and self._rows["alive"][at] else None

    def _add(self, unit: Unit) -> None:
        row = self._count
        self._reserve(row + 1)
        self._count += 1
        self._row_of[unit.id] = row
        message = unit.kind == "message"
        found = terms(f"{unit.speaker}: {unit.text}" if message else unit.text)
        self.postings.add(row, found)
        slot = self.vectors.slot(unit.text_hash)
        if slot == NOWHERE:
            self._waiting.setdefault(unit.text_hash, []).append(row)
        self._rows[row] = (
            unit.id,
            unit.at.timestamp(),
            unit.span.start.timestamp() if unit.span else 0.0,
            unit.span.end.timestamp() if unit.span else 0.0,
            unit.expires_at.timestamp() if unit.expires_at else NEVER,
            unit.audience,
            NOWHERE,
            NOWHERE,
            NOWHERE,
            slot,
            self._number(unit.speaker if message else unit.subject),
            len(found),
            unit.confidence,
            unit.importance,
            KINDS.index(unit.kind),
            unit.role == "bot",
            message and asks(unit.text),
            message and (only_asks(unit.text) or is_small_talk(unit.text)),
            unit.span is not None or holds_time(unit.text),
            holds_name(unit.text, self.people),
            True,
        )
        self._remember(row, unit)

    def _remember(self, row: int, unit: Unit) -> None:
        """What only some rows have: a place in a session, citations, a span, an attribute."""
        if unit.kind == "message":
            self.speakers.add(unit.speaker)
            self._follow(row, unit.session)
            return
        self.cites[row] = unit.cites
        cited = self._row_of.get(unit.cites[0]) if unit.cites else None
        if cited is not None:
            self._rows["session"][row] = self._rows["session"][cited]
        if unit.span is not None:
            self.spans[row] = unit.span
        if unit.attribute:
            self.attributes[row] = unit.attribute

    def _number(self, name: str) -> int:
        """The number of a speaker or a subject; the owner as subject has none."""
        return NOWHERE if name in ("", SELF) else self.people.setdefault(name, len(self.people))

    def _follow(self, row: int, session: int) -> None:
        number = self._session_numbers.setdefault(session, len(self._session_numbers))
        before = self._last_line.get(number, NOWHERE)
        self._rows["session"][row] = number
        self._rows["previous"][row] = before
        if before != NOWHERE:
            self._rows["next"][before] = row
        self._last_line[number] = row

    def _reserve(self, rows: int) -> None:
        if rows > len(self._rows):
            grown = np.zeros(max(2 * len(self._rows), _FIRST_ROWS), dtype=_ROW)
            grown[: self._count] = self.rows
            self._rows = grown


@dataclass(frozen=True, slots=True)
class _Held:
    """An index and who may work on it now."""

    model: str | None
    index: OwnerIndex = field(default_factory=OwnerIndex)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Indexes:
    """The indexes of the people who talked last, bounded by bytes, built and brought up to date on demand."""

    def __init__(self, stores: Stores, *, most_bytes: int = MOST_BYTES) -> None:
        self._stores = stores
        self._most_bytes = most_bytes
        self._held: OrderedDict[int, _Held] = OrderedDict()

    @asynccontextmanager
    async def of(self, owner: Account) -> AsyncIterator[OwnerIndex]:
        """The owner's index as of now; nobody else reads or changes it while the block runs."""
        held = self._current(owner)
        async with held.lock:
            await self._refresh(owner, held.index)
            self._evict()
            yield held.index

    def forget(self, owner: Account) -> None:
        """Let go of an owner's index at once; one that is being built serves its builder and nobody after."""
        self._held.pop(owner.no, None)

    def clear(self) -> None:
        """Let go of every index."""
        self._held.clear()

    @property
    def nbytes(self) -> int:
        """Memory held by all indexes, bytes."""
        return sum(held.index.nbytes for held in self._held.values())

    def _current(self, owner: Account) -> _Held:
        model = self._stores.embeddings.model
        held = self._held.get(owner.no)
        if held is None or held.model != model:
            held = self._held[owner.no] = _Held(model)
        self._held.move_to_end(owner.no)
        return held

    async def _refresh(self, owner: Account, index: OwnerIndex) -> None:
        # The journal comes first: a memory finds its session through the line it cites.
        await _add(index, await self._stores.journal.units(owner, after=index.last_units["message"]))
        for store in self._stores.entries:
            await _add(index, await store.units(owner, after=index.last_units[store.kind]))
        if self._stores.embeddings.model is not None:
            index.add_chunks(await self._stores.embeddings.chunks(owner, after=index.last_chunk))
            rows = await self._stores.embeddings.rows(owner, after=index.last_vector)
            await off_loop(partial(index.add_vectors, rows.hashes, rows.matrix, last=rows.last), size=len(rows.hashes))

    def _evict(self) -> None:
        while len(self._held) > 1 and self.nbytes > self._most_bytes:
            self._held.popitem(last=False)


async def _add(index: OwnerIndex, units: Sequence[Unit]) -> None:
    await off_loop(partial(index.add, units), size=len(units) * _ROWS_A_UNIT)
