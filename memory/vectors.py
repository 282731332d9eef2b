"""The vectors of one owner: a matrix that doubles, scanned exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory.ports import Vector

Matrix = NDArray[np.float32]

_FIRST_ROWS: Final = 64
_LENGTH_TOLERANCE: Final = 1e-3


def usable(vectors: Matrix) -> NDArray[np.bool_]:
    """Which rows of an (n, d) matrix are vectors: finite and not zero (case B10)."""
    squares = _squares(vectors)
    return np.asarray(np.isfinite(squares) & (squares > 0))


def unit_length(vectors: Matrix) -> Matrix:
    """The rows of an (n, d) matrix of usable vectors, each scaled to length 1."""
    lengths = np.sqrt(_squares(vectors))
    if np.all(np.abs(lengths - 1) < _LENGTH_TOLERANCE):
        return vectors
    return np.asarray(vectors / lengths[:, None], dtype=np.float32)


def _squares(vectors: Matrix) -> NDArray[np.float32]:
    """The square of each row's length, without a copy of the matrix."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.einsum("ij,ij->i", vectors, vectors))


class Vectors:
    """Vectors of one model keyed by text hash; appending costs amortised constant time a vector."""

    def __init__(self) -> None:
        self._matrix: Matrix = np.empty((0, 0), dtype=np.float32)
        self._slots: dict[bytes, int] = {}

    def add(self, hashes: Sequence[bytes], matrix: Matrix) -> dict[bytes, int]:
        """Take over an (n, d) float32 matrix, one row a hash; the caller leaves it alone from now on.

        Returns the slots of what was taken. A hash known already keeps its vector; a row that is no
        vector, and a matrix of another width than the first one, are refused.
        """
        if not len(hashes) or (self._slots and matrix.shape[1] != self.width):
            return {}
        good = usable(matrix).tolist()
        fresh = {key: at for at, key in enumerate(hashes) if good[at] and key not in self._slots}
        if not fresh:
            return {}
        first = len(self._slots)
        if not first and len(fresh) == len(matrix):
            # The first load after a start is most of what a person has: it becomes the matrix, copied nowhere.
            self._matrix = unit_length(matrix)
        else:
            self._reserve(first + len(fresh), matrix.shape[1])
            self._matrix[first : first + len(fresh)] = unit_length(matrix[list(fresh.values())])
        taken = {key: first + place for place, key in enumerate(fresh)}
        self._slots.update(taken)
        return taken

    def slot(self, key: bytes) -> int:
        """Where the vector of a text is, -1 if it has none."""
        return self._slots.get(key, -1)

    def scan(self, query: Vector) -> NDArray[np.float32] | None:
        """Cosine of the query with every vector, by slot; None when they cannot be compared."""
        if not self._slots or query.shape != (self.width,) or not 0 < np.vdot(query, query) < np.inf:
            return None
        return np.asarray(self._matrix[: len(self)] @ query, dtype=np.float32)

    def best(self, queries: Matrix, chosen: NDArray[np.intp] | None = None) -> NDArray[np.float32] | None:
        """Cosines of (m, d) queries with the chosen slots, by default all: (m, chosen); None when widths differ."""
        if not self._slots or queries.shape[1] != self.width:
            return None
        matrix = self._matrix[: len(self)] if chosen is None else self._matrix[chosen]
        return np.asarray(queries @ matrix.T, dtype=np.float32)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def width(self) -> int:
        """Numbers in a vector; 0 before the first one."""
        return int(self._matrix.shape[1])

    @property
    def nbytes(self) -> int:
        """Memory held, bytes: the matrix, and hash and slot in the table."""
        return self._matrix.nbytes + len(self._slots) * 150

    def _reserve(self, rows: int, width: int) -> None:
        if rows <= len(self._matrix):
            return
        grown = np.empty((max(rows, 2 * len(self._matrix), _FIRST_ROWS), width), dtype=np.float32)
        if self._slots:
            grown[: len(self)] = self._matrix[: len(self)]
        self._matrix = grown
