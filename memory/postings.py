"""Which rows hold a term, and how often: the word index of one owner, in memory."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_COUNT_BITS: Final = 8
_MOST: Final = (1 << _COUNT_BITS) - 1
_BYTES_OF_A_TERM: Final = 230
"""What CPython spends on one entry: key string, dict slot and array head (measured, rounded up)."""


class Hits(NamedTuple):
    """The rows that hold a term, ascending, and how often each does."""

    rows: NDArray[np.int32]
    counts: NDArray[np.float32]


class Postings:
    """Term to rows. Four bytes a posting: the row (24 bits, as many as an owner can have) and its count."""

    def __init__(self) -> None:
        self._terms: dict[str, array[int]] = {}
        self._size = 0

    def add(self, row: int, terms: Iterable[str]) -> None:
        """Enter a row; rows come in ascending order."""
        counted = Counter(terms)
        for term, count in counted.items():
            packed = row << _COUNT_BITS | min(count, _MOST)
            entry = self._terms.get(term)
            if entry is None:
                self._terms[term] = array("I", (packed,))
            else:
                entry.append(packed)
        self._size += len(counted)

    def find(self, term: str) -> Hits | None:
        """The rows of a term, None where nobody uses it."""
        entry = self._terms.get(term)
        if entry is None:
            return None
        packed = np.array(entry, dtype=np.uint32)
        return Hits((packed >> _COUNT_BITS).astype(np.int32), (packed & _MOST).astype(np.float32))

    @property
    def nbytes(self) -> int:
        """Memory held, bytes, near enough to bound a cache by."""
        return self._size * 4 + len(self._terms) * _BYTES_OF_A_TERM
