"""The recall index of one owner: what is known of each row, its words and its vector, all in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memory import passages
from memory.model import Span, Unit
from memory.pages import VectorPages
from memory.parts import Parts
from memory.ports import Vector
from memory.postings import Postings
from memory.segments import COLUMNS, EVENT, KINDS, MESSAGE, NEVER, NOWHERE, Segment, segment
from memory.space import Chunk
from memory.vectors import Matrix, Vectors, key_of
from memory.words import weights

__all__ = ["EVENT", "KINDS", "MESSAGE", "NEVER", "NOWHERE", "OwnerIndex"]

_FEW: Final = 16
"""Vectors up to which each is looked for among the rows by itself."""
RARE_ROWS: Final = 3
RARE_SHARE: Final = 0.01
"""A word is rare that no more than three rows hold, or one in a hundred."""
SEGMENT_ROWS: Final = 1_024
"""Rows of a segment: what is made again when one of them changes, in some 0.1 s."""
_OWN: Final = np.dtype(
    [
        ("session", "<i4"),
        ("previous", "<i4"),
        ("next", "<i4"),
        ("vector", "<i4"),
    ]
)
"""What an index adds to the columns of a segment: places in itself."""
_BYTES_OF_AN_INDEX: Final = 5_500
"""What an index holds of nobody's words yet: its objects and empty columns (measured, rounded up)."""
_BYTES_OF_AN_ENTRY: Final = 200
"""What a name, a session or the span of an event takes in a table of Python (measured, rounded up)."""
_PASSING: Final = frozenset({"talk", "cited"})
"""Columns of a segment that are of no more use once their rows have their places."""
_KEPT: Final = tuple(name for name in COLUMNS.names or () if name not in _PASSING)


class Columns:
    """Columns that grow together, each by itself in memory."""

    def __init__(self) -> None:
        self._all = {
            name: np.zeros(0, kind[0])
            for held in (COLUMNS, _OWN)
            for name, kind in (held.fields or {}).items()
            if name not in _PASSING
        }
        self._count = 0

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A column, a view."""
        return self._all[name][: self._count]

    def __len__(self) -> int:
        return self._count

    def extend(self, rows: NDArray[np.void]) -> slice:
        """Append the rows of a segment; returns their places. What an index adds is NOWHERE."""
        place = slice(self._count, self._count + len(rows))
        self._reserve(place.stop)
        self._count = place.stop
        for name in _KEPT:
            self._all[name][place] = rows[name]
        for name in _OWN.names or ():
            self._all[name][place] = NOWHERE
        return place

    @property
    def nbytes(self) -> int:
        """Memory held, bytes."""
        return sum(column.nbytes for column in self._all.values())

    def _reserve(self, rows: int) -> None:
        held = len(self._all["id"])
        if rows > held:
            room = max(rows, 2 * held)
            for name, column in self._all.items():
                # Not np.resize: that leaves two arrays, one a view of the other, and there are many columns.
                grown = np.zeros(room, column.dtype)
                grown[: self._count] = column[: self._count]
                self._all[name] = grown


class OwnerIndex:
    """Everything recall needs of one owner but the texts, which are read again when shown.

    A journal line is indexed as "speaker: text", a memory by its text. ``person`` numbers the speaker of a
    line and the subject of a memory; ``asks`` marks lines that end in a question, ``idle`` those that tell
    nothing (mere questions, greetings, thanks). Row numbers are places in :attr:`rows`, in order of id. No
    row is taken out: when something was hidden or erased the whole index is let go of and built again.
    """

    def __init__(self) -> None:
        self.rows = Columns()
        self._session_numbers: dict[int, int] = {}
        self._last_line: dict[int, int] = {}
        self.postings = Postings()
        self.vectors = Vectors()
        self.parts = Parts()
        self.people: dict[str, int] = {}
        self.speakers: set[str] = set()
        self.spans: dict[int, Span] = {}
        self.cold: frozenset[int] = frozenset()
        self.newest = 0
        self.last_vector = 0
        self.last_chunk = 0

    @property
    def sessions(self) -> int:
        """How many sessions the journal lines fall into."""
        return len(self._session_numbers)

    @property
    def nbytes(self) -> int:
        """Memory held, bytes, near enough to bound a cache by."""
        entries = len(self.spans) + len(self.people) + len(self._session_numbers) + len(self._last_line)
        rest = _BYTES_OF_AN_INDEX + entries * _BYTES_OF_AN_ENTRY
        return rest + sum(part.nbytes for part in (self.rows, self.postings, self.vectors, self.parts))

    def add(self, units: Iterable[Unit]) -> None:
        """Take units; those that are not behind all that is here are known already and skipped.

        A memory shares the session of the first line it cites, if that line is here.
        """
        last = int(self.rows["id"][-1]) if len(self.rows) else NOWHERE
        fresh = sorted({unit.id: unit for unit in units if unit.id > last}.values(), key=lambda unit: unit.id)
        for start in range(0, len(fresh), SEGMENT_ROWS):
            self.take(segment(fresh[start : start + SEGMENT_ROWS]))

    def take(self, more: Segment) -> None:
        """Take the rows of a segment, all of them behind what is here."""
        if not len(more.rows):
            return
        place = self.rows.extend(more.rows)
        self.postings.add(place.start, len(more.rows), more.terms)
        self.spans.update({place.start + row: span for row, span in more.spans.items()})
        self.speakers |= more.speakers
        numbers = [self.people.setdefault(name, len(self.people)) for name in more.people]
        self.rows["person"][place] = np.array([*numbers, NOWHERE], np.int32)[more.rows["person"]]
        self.rows["vector"][place] = self.vectors.slots(more.rows["key"])
        self._follow(place, more.rows["talk"])
        self._cite(place, more.rows["cited"])

    def open_pages(self, pages: VectorPages) -> None:
        """Take the sealed vectors of an owner, before any other."""
        self.vectors.open(pages.pages, pages.keys)
        self.last_vector = pages.last
        self.rows["vector"][:] = self.vectors.slots(self.rows["key"])

    def add_vectors(self, hashes: Sequence[bytes], matrix: Matrix, *, last: int = 0) -> None:
        """Give rows their vectors: (n, d) float32, one a text hash; ``last`` is the newest vector's row id.

        Rows without a usable vector take part by their words alone.
        """
        taken = self.vectors.add(hashes, matrix)
        if len(taken) > _FEW:
            self.rows["vector"][:] = self.vectors.slots(self.rows["key"])
        for key, slot in taken.items():
            if len(taken) <= _FEW:
                self.rows["vector"][self.rows["key"] == key_of(key)] = slot
            self.parts.arrived(key, slot)
        self.last_vector = max(self.last_vector, last)

    def add_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Take the chunks of rows that are here; their vectors count for those rows."""
        for chunk in chunks:
            row = self._place(chunk.part_of)
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
        if not self.parts:
            return {}
        places = ((id_, self._place(id_)) for id_ in ids)
        near = ((id_, self.parts.nearest(row, self.vectors, question)) for id_, row in places if row is not None)
        return {id_: span for id_, span in near if span is not None}

    def resting(self, words: Sequence[str]) -> NDArray[np.bool_]:
        """The rows that rest and hold none of a question's rare words: only exact words wake them."""
        rests = np.isin(self.rows["id"], list(self.cold))
        if self.cold:
            rests[self.postings.find([*self.rare(words)]).rows] = False
        return np.asarray(rests)

    def rare(self, words: Sequence[str]) -> frozenset[str]:
        """Those of a question's words that few rows hold; Han characters that are no word are not among them."""
        few = max(RARE_ROWS, len(self.rows) * RARE_SHARE)
        whole = [word for word, counts in zip(words, weights(words), strict=True) if counts == 1]
        held = self.postings.holding(whole)
        return frozenset(word for word, rows in zip(whole, held, strict=True) if 0 < rows <= few)

    def _place(self, unit_id: int) -> int | None:
        ids = self.rows["id"]
        at = int(ids.searchsorted(unit_id))
        return at if at < len(ids) and ids[at] == unit_id else None

    def _follow(self, place: slice, talk: NDArray[np.int64]) -> None:
        """Put new lines behind those of their session."""
        columns = self.rows
        lines = np.flatnonzero(columns["kind"][place] == MESSAGE) + place.start
        if len(lines) <= _FEW:
            # A turn of a talk, for which arrays take longer than they save.
            for line in lines.tolist():
                self._follow_one(line, int(talk[line - place.start]))
            return
        talks, where = np.unique(talk[lines - place.start], return_inverse=True)
        numbers = [self._session_numbers.setdefault(int(talk), len(self._session_numbers)) for talk in talks]
        columns["session"][lines] = np.array(numbers, np.int32)[where]
        order = lines[np.argsort(columns["session"][lines], kind="stable")]
        fresh = np.diff(columns["session"][order], prepend=NOWHERE) != 0
        columns["previous"][order[1:]] = np.where(fresh[1:], NOWHERE, order[:-1])
        columns["next"][order[:-1]] = np.where(fresh[1:], NOWHERE, order[1:])
        ends = np.append(order[:-1][fresh[1:]], order[-1:])
        for first, last in zip(order[fresh].tolist(), ends.tolist(), strict=True):
            session = int(columns["session"][first])
            before = self._last_line.get(session, NOWHERE)
            columns["previous"][first] = before
            if before != NOWHERE:
                columns["next"][before] = first
            self._last_line[session] = last

    def _follow_one(self, line: int, talk: int) -> None:
        """Put a line behind that of its session which came last."""
        columns = self.rows
        session = self._session_numbers.setdefault(talk, len(self._session_numbers))
        before = self._last_line.get(session, NOWHERE)
        columns["session"][line] = session
        columns["previous"][line] = before
        columns["next"][line] = NOWHERE
        if before != NOWHERE:
            columns["next"][before] = line
        self._last_line[session] = line

    def _cite(self, place: slice, cited: NDArray[np.int64]) -> None:
        """Put new memories into the session of the line they cite."""
        if (cited == NOWHERE).all():
            return
        ids = self.rows["id"]
        at = np.minimum(ids.searchsorted(cited), len(ids) - 1)
        known = (cited != NOWHERE) & (ids[at] == cited)
        self.rows["session"][place][known] = self.rows["session"][at[known]]
