"""Which rows hold a term, and how often: the word index of one owner, in arrays.

A term is known by 8 bytes of its hash, in which two of one owner's never agree, so nothing here is a word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_COUNT_BITS: Final = 8
_MOST: Final = (1 << _COUNT_BITS) - 1
_TERMS_KEPT: Final = 8_192
_KEY_BYTES: Final = 8
_BYTES_OF_A_PART: Final = 550
"""What a part takes beside its numbers: three arrays and what holds them (measured, rounded up)."""


class Hits(NamedTuple):
    """The rows that hold some terms: one row of the term at place ``which``, and how often it does.

    In order of the terms, and those of one term ascending.
    """

    which: NDArray[np.intp]
    rows: NDArray[np.int32]
    counts: NDArray[np.float32]

    def inside(self, mask: NDArray[np.bool_]) -> Hits:
        """Those in a mask over the rows."""
        kept = mask[self.rows]
        return self if kept.all() else Hits(self.which[kept], self.rows[kept], self.counts[kept])


@lru_cache(maxsize=_TERMS_KEPT)
def term_key(term: str) -> int:
    """What a term is known by."""
    digest = hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=_KEY_BYTES).digest()
    return int.from_bytes(digest, "little")


@dataclass(frozen=True, slots=True)
class Packed:
    """The terms of some rows in a row.

    ``keys`` are those of the terms, ascending; term i has the postings ``starts[i]`` to ``starts[i + 1]``, each the
    row (24 bits, as many as an owner can have, counted from the first of these rows) and its count (8 bits).
    """

    keys: NDArray[np.uint64]
    starts: NDArray[np.uint32]
    postings: NDArray[np.uint32]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.keys.nbytes + self.starts.nbytes + self.postings.nbytes


def packed(rows: Sequence[Sequence[str]]) -> Packed:
    """Pack the terms of rows, repeats included."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    keys = np.fromiter((term_key(term) for terms in rows for term in terms), np.uint64, int(lengths.sum()))
    return _sorted(keys, np.repeat(np.arange(len(rows), dtype=np.uint32), lengths), np.ones(len(keys), np.uint32))


def _sorted(keys: NDArray[np.uint64], rows: NDArray[np.uint32], counts: NDArray[np.uint32]) -> Packed:
    """Pack (key, row, count) in any order; equal keys of one row are added up."""
    order = np.lexsort((rows, keys))
    keys, rows = keys[order], rows[order]
    fresh = np.ones(len(keys), np.bool_)
    fresh[1:] = (keys[1:] != keys[:-1]) | (rows[1:] != rows[:-1])
    first = np.flatnonzero(fresh)
    totals = np.add.reduceat(counts[order], first) if len(first) else counts[:0]
    postings = rows[first] << _COUNT_BITS | np.minimum(totals, _MOST).astype(np.uint32)
    each, starts = np.unique(keys[first], return_index=True)
    return Packed(each, np.append(starts, len(first)).astype(np.uint32), postings.astype(np.uint32))


class Postings:
    """Packed terms of consecutive rows, one behind the other. What came in bits and pieces is packed again."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, int, Packed]] = []

    def add(self, first: int, rows: int, more: Packed) -> None:
        """Take the terms of so many rows from ``first`` on; rows come in ascending order.

        A part no larger than what came after it is packed with that, so that there are few parts however they came.
        """
        while self._parts and self._parts[-1][1] <= rows and rows < _LARGE:
            start, count, part = self._parts.pop()
            first, rows, more = start, count + rows, _joined(part, more, count)
        self._parts.append((first, rows, more))

    def find(self, terms: Sequence[str]) -> Hits:
        """The rows of some terms: one look for all of them."""
        keys = np.fromiter(map(term_key, terms), np.uint64, len(terms))
        found = sorted((piece for first, _, part in self._parts for piece in _pieces(first, part, keys)), key=_term_of)
        if not found:
            return _NO_HITS
        which, firsts, pieces = zip(*found, strict=True)
        lengths, postings = [len(piece) for piece in pieces], np.concatenate(pieces)
        rows = (postings >> _COUNT_BITS).astype(np.int32) + np.repeat(np.array(firsts, np.int32), lengths)
        return Hits(np.repeat(which, lengths), rows, (postings & _MOST).astype(np.float32))

    def holding(self, terms: Sequence[str]) -> list[int]:
        """How many rows hold each of some terms."""
        keys, held = np.fromiter(map(term_key, terms), np.uint64, len(terms)), np.zeros(len(terms), np.int64)
        for _, _, part in self._parts:
            which, places = _found(part, keys)
            held[which] += part.starts[places + 1] - part.starts[places]
        return [int(rows) for rows in held]

    def known(self, terms: tuple[str, ...]) -> NDArray[np.intp]:
        """The places of those of many terms that any row holds, in their order: one look for all of them."""
        keys = _keys(terms)
        held = np.zeros(len(keys), np.bool_)
        for _, _, part in self._parts:
            held[_found(part, keys)[0]] = True
        return np.flatnonzero(held)

    @property
    def nbytes(self) -> int:
        """Memory held, bytes."""
        return sum(part.nbytes + _BYTES_OF_A_PART for _, _, part in self._parts)


_NO_HITS: Final = Hits(np.zeros(0, np.intp), np.zeros(0, np.int32), np.zeros(0, np.float32))


def _found(part: Packed, keys: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which of the terms with these keys a part holds, and where in it."""
    if not len(part.keys):
        return _NO_HITS.which, _NO_HITS.which
    places = np.minimum(part.keys.searchsorted(keys), len(part.keys) - 1)
    which = np.flatnonzero(part.keys[places] == keys)
    return which, places[which]


_Piece = tuple[int, int, NDArray[np.uint32]]
"""The place of a term, the first row of a part, and the postings of the term in it."""
_term_of: Final = itemgetter(0)


def _pieces(first: int, part: Packed, keys: NDArray[np.uint64]) -> Iterator[_Piece]:
    """The postings of the terms with these keys in a part that begins with row ``first``."""
    which, places = _found(part, keys)
    for term, start, stop in zip(
        which.tolist(), part.starts[places].tolist(), part.starts[places + 1].tolist(), strict=True
    ):
        yield term, first, part.postings[start:stop]


@lru_cache(maxsize=16)
def _keys(terms: tuple[str, ...]) -> NDArray[np.uint64]:
    return np.fromiter(map(term_key, terms), np.uint64, len(terms))


_LARGE: Final = 512
"""Rows from which a part is large enough to be left alone; looking into one more part takes 2 us a term."""


def _joined(one: Packed, other: Packed, rows: int) -> Packed:
    """The terms of two stretches of rows, the first of which has so many."""
    keys = [np.repeat(part.keys, np.diff(part.starts)) for part in (one, other)]
    places = [one.postings >> _COUNT_BITS, (other.postings >> _COUNT_BITS) + np.uint32(rows)]
    counts = [part.postings & _MOST for part in (one, other)]
    return _sorted(np.concatenate(keys), np.concatenate(places), np.concatenate(counts))
