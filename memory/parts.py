"""The chunks of an owner's long rows, in memory: each lends its row its vector, and tells which passage was hit."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from memory.passages import Span
from memory.ports import Vector
from memory.space import Chunk
from memory.vectors import Vectors

_BYTES_OF_A_PART = 250
"""What one chunk holds in memory: its columns, its key, its places in two tables (measured, rounded up)."""


class Parts:
    """Chunks by row; most people have none, and then everything here is a matter of an empty list."""

    def __init__(self) -> None:
        self._rows = array("i")
        self._slots = array("i")
        self._spans: list[Span] = []
        self._of_row: dict[int, list[int]] = {}
        self._waiting: dict[bytes, list[int]] = {}

    def add(self, row: int, chunk: Chunk, slot: int) -> None:
        """Enter a chunk of a row; ``slot`` is -1 while it has no vector."""
        if slot < 0:
            self._waiting.setdefault(chunk.text_hash, []).append(len(self._rows))
        self._of_row.setdefault(row, []).append(len(self._rows))
        self._rows.append(row)
        self._slots.append(slot)
        self._spans.append((chunk.begins, chunk.ends))

    def arrived(self, key: bytes, slot: int) -> None:
        """Note where the vector of a text is."""
        for place in self._waiting.pop(key, ()):
            self._slots[place] = slot

    def raise_to_best(self, by_row: NDArray[np.float64], found: NDArray[np.float32]) -> None:
        """Raise cosines by row, (..., rows), to those of the chunks, given cosines by slot, (..., slots)."""
        slots, rows = np.array(self._slots, dtype=np.intp), np.array(self._rows, dtype=np.intp)
        slots, rows = slots[slots >= 0], rows[slots >= 0]
        if len(rows):
            # The chunks of a row stand together, for they are cut and numbered together.
            first = np.flatnonzero(np.diff(rows, prepend=-1))
            best = np.maximum.reduceat(found[..., slots], first, axis=-1)
            by_row[..., rows[first]] = np.fmax(by_row[..., rows[first]], best)

    def nearest(self, row: int, vectors: Vectors, question: Vector) -> Span | None:
        """Where the chunk of a row is that is nearest to a question in meaning; None for a row without."""
        places = [place for place in self._of_row.get(row, ()) if self._slots[place] >= 0]
        slots = np.array([self._slots[place] for place in places], dtype=np.intp)
        cosines = vectors.best(question[None], slots) if places else None
        return None if cosines is None else self._spans[places[int(cosines[0].argmax())]]

    def __bool__(self) -> bool:
        return bool(self._rows)

    @property
    def nbytes(self) -> int:
        """Memory held, bytes, near enough to bound a cache by."""
        return len(self._rows) * _BYTES_OF_A_PART
