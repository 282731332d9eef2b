"""Which rows hold a term, and how often: the word index of one owner, in arrays.

A term is known by 8 bytes of its hash, in which two of one owner's never agree, so nothing here is a word.
"""

from __future__ import annotations

import hashlib
from collections import Counter
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
_A_TURN: Final = 8
"""Rows up to which what comes is a turn of a talk, and is kept loose."""
LOOSE_ROWS: Final = 64
LOOSE_POSTINGS: Final = 1_024
"""So much is kept loose at most; to look through all of it for twenty terms takes some 20 us."""
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
    if len(rows) <= _A_TURN:
        return _packed_few(rows)
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    keys = np.fromiter((term_key(term) for terms in rows for term in terms), np.uint64, int(lengths.sum()))
    return _sorted(keys, np.repeat(np.arange(len(rows), dtype=np.uint32), lengths), np.ones(len(keys), np.uint32))


def _packed_few(rows: Sequence[Sequence[str]]) -> Packed:
    """The same for a turn's worth, for which arrays take longer than they save."""
    counted = Counter((term_key(term), row) for row, terms in enumerate(rows) for term in terms)
    held = sorted(counted.items())
    keys, starts, postings = list[int](), list[int](), list[int]()
    for (key, row), count in held:
        if not keys or keys[-1] != key:
            keys.append(key)
            starts.append(len(postings))
        postings.append(row << _COUNT_BITS | min(count, _MOST))
    starts.append(len(postings))
    return Packed(np.array(keys, np.uint64), np.array(starts, np.uint32), np.array(postings, np.uint32))


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
    """Packed terms of consecutive rows, one behind the other. What came in bits and pieces is packed again.

    The last few rows are not packed: a talk adds one or two a turn, and to pack them takes longer than to look
    through all that is loose.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[int, int, Packed]] = []
        self._loose = _Loose(0)

    def add(self, first: int, rows: int, more: Packed) -> None:
        """Take the terms of so many rows from ``first`` on; rows come in ascending order."""
        if rows > _A_TURN or not self._loose.takes(rows, len(more.postings)):
            self._settle()
        if rows > _A_TURN or len(more.postings) > LOOSE_POSTINGS:
            self._pack(first, rows, more)
            return
        if not self._loose.rows:
            self._loose = _Loose(first)
        self._loose.add(rows, more)

    def _settle(self) -> None:
        """Pack what is loose."""
        loose, self._loose = self._loose, _Loose(0)
        if loose.rows:
            self._pack(loose.first, loose.rows, loose.packed())

    def _pack(self, first: int, rows: int, more: Packed) -> None:
        """Put a part behind the others.

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
        hits = _put_together(found) if found else _NO_HITS
        if not self._loose.rows:
            return hits
        more = self._loose.find(keys)
        which = np.concatenate((hits.which, more.which))
        # What is loose stands behind all parts, so the rows of each term stay in order.
        order = np.argsort(which, kind="stable")
        rows, counts = np.concatenate((hits.rows, more.rows)), np.concatenate((hits.counts, more.counts))
        return Hits(which[order], rows[order], counts[order])

    def holding(self, terms: Sequence[str]) -> list[int]:
        """How many rows hold each of some terms."""
        keys, held = np.fromiter(map(term_key, terms), np.uint64, len(terms)), np.zeros(len(terms), np.int64)
        for _, _, part in self._parts:
            which, places = _found(part, keys)
            held[which] += part.starts[places + 1] - part.starts[places]
        held += np.bincount(self._loose.find(keys).which, minlength=len(terms))
        return held.tolist()

    def known(self, terms: tuple[str, ...]) -> NDArray[np.intp]:
        """The places of those of many terms that any row holds, in their order: one look for all of them."""
        keys = _keys(terms)
        held = np.zeros(len(keys), np.bool_)
        for _, _, part in self._parts:
            held[_found(part, keys)[0]] = True
        held |= np.isin(keys, self._loose.keys)
        return np.flatnonzero(held)

    @property
    def nbytes(self) -> int:
        """Memory held, bytes."""
        return self._loose.nbytes + sum(part.nbytes + _BYTES_OF_A_PART for _, _, part in self._parts)


class _Loose:
    """The terms of a few rows from ``first`` on, as they came."""

    __slots__ = ("_held", "_keys", "_postings", "first", "rows")

    def __init__(self, first: int) -> None:
        self.first, self.rows, self._held = first, 0, 0
        self._keys, self._postings = np.zeros(0, np.uint64), np.zeros(0, np.uint32)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """The key of each posting."""
        return self._keys[: self._held]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._keys.nbytes + self._postings.nbytes + _BYTES_OF_A_PART

    def takes(self, rows: int, postings: int) -> bool:
        """Whether there is room for so many more."""
        return self.rows + rows <= LOOSE_ROWS and self._held + postings <= LOOSE_POSTINGS

    def add(self, rows: int, more: Packed) -> None:
        """Take the terms of so many rows."""
        held = self._held + len(more.postings)
        if held > len(self._keys):
            # Not np.resize: that leaves two arrays, one a view of the other.
            room = 2 * held - len(self._keys)
            self._keys = np.concatenate((self._keys, np.zeros(room, np.uint64)))
            self._postings = np.concatenate((self._postings, np.zeros(room, np.uint32)))
        self._keys[self._held : held] = np.repeat(more.keys, np.diff(more.starts))
        self._postings[self._held : held] = more.postings + np.uint32(self.rows << _COUNT_BITS)
        self._held, self.rows = held, self.rows + rows

    def find(self, keys: NDArray[np.uint64]) -> Hits:
        """The rows of the terms with these keys."""
        which, places = np.nonzero(keys[:, np.newaxis] == self.keys)
        postings = self._postings[places]
        rows = (postings >> _COUNT_BITS).astype(np.int32) + np.int32(self.first)
        return Hits(which, rows, (postings & _MOST).astype(np.float32))

    def packed(self) -> Packed:
        """The same in order of the terms."""
        postings = self._postings[: self._held]
        return _sorted(self.keys, postings >> np.uint32(_COUNT_BITS), postings & np.uint32(_MOST))


_NO_HITS: Final = Hits(np.zeros(0, np.intp), np.zeros(0, np.int32), np.zeros(0, np.float32))


def _put_together(found: Sequence[_Piece]) -> Hits:
    """Pieces in order of their terms as one."""
    which, firsts, pieces = zip(*found, strict=True)
    lengths, postings = [len(piece) for piece in pieces], np.concatenate(pieces)
    rows = (postings >> _COUNT_BITS).astype(np.int32) + np.repeat(np.array(firsts, np.int32), lengths)
    return Hits(np.repeat(which, lengths), rows, (postings & _MOST).astype(np.float32))


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
