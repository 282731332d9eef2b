"""The vectors of one owner: one byte a number, scanned exactly.

A vector x is kept as its difference from a fixed ``centre`` m, each difference at a scale of its own, together with
m . (x - m) as a float. With a question q treated alike, q . x = q . m + (q - m) . (x - m) + m . (x - m): only the
middle term is rounded, and it is small where the vectors of a model all lie in one direction (mean cosine .86 with
the bundled one). Ten best of real zh and en texts, ties counted as equal: .994 to .998 of float32's without any
rescoring, against .984 to .988 for bytes around zero.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from memory.ports import Vector

Matrix = NDArray[np.float32]
Bytes = NDArray[np.int8]

_FIRST_ROWS: Final = 64
_TWO: Final = 2
_LENGTH_TOLERANCE: Final = 1e-3
_TOP: Final = 127
_FULL_SCALE: Final = 32_767
_ROWS_AT_ONCE: Final = 1_024
"""Rows made float32 at a time where numpy does the work: few enough for the cache of one core."""
_BYTES_OF_A_KEY: Final = 120
"""What a key and its slot take in a table of Python (measured, rounded up)."""


def _cores() -> int:
    """The processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _kernel() -> Callable[[Any, Any, str], Any] | None:
    """NumKong's dot products of bytes, None on machines for which it has no build; numpy does the work then."""
    try:
        cdist: Callable[[Any, Any, str], Any] = importlib.import_module("numkong").cdist
    except ImportError:
        return None
    return cdist


_CDIST: Final = _kernel()
_SHARED_FROM: Final = 32 << 20
"""Bytes of vectors from which two threads scan them: 30,000 of 1,024 numbers. Of fewer one takes 2 ms, and on a busy
machine the second would begin no sooner."""
_HELPER: Final = None if _CDIST is None or _cores() < _TWO else ThreadPoolExecutor(1, thread_name_prefix="scan")


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


@dataclass(frozen=True, slots=True)
class Coded:
    """Vectors around a centre: (n, d) ``data``, and for each its ``scales`` and ``offsets``, m . (x - m)."""

    data: Bytes
    scales: NDArray[np.float32]
    offsets: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.data)

    def chosen(self, which: slice | NDArray[np.bool_]) -> Coded:
        """Some of the vectors."""
        return Coded(self.data[which], self.scales[which], self.offsets[which])

    def with_more(self, more: Coded) -> Coded:
        """These vectors and then more around the same centre."""
        return Coded(
            np.concatenate((self.data, more.data)),
            np.concatenate((self.scales, more.scales)),
            np.concatenate((self.offsets, more.offsets)),
        )


def coded(vectors: Matrix, centre: Vector) -> Coded:
    """Put (n, d) vectors of length 1 into bytes around a centre."""
    apart = vectors - centre
    peaks = np.abs(apart).max(axis=1, initial=0.0)
    peaks[peaks == 0] = 1.0
    offsets = np.asarray(apart @ centre, dtype=np.float32)
    apart *= (_TOP / peaks)[:, None]
    return Coded(np.rint(apart, out=apart).astype(np.int8), peaks / np.float32(_TOP), offsets)


def decoded(held: Coded, centre: Vector) -> Matrix:
    """The vectors again, as well as bytes tell them."""
    return np.asarray(held.data * held.scales[:, None] + centre, dtype=np.float32)


def pack(vector: Vector) -> tuple[float, bytes]:
    """A vector as (scale, int16 little-endian bytes)."""
    peak = float(np.abs(vector).max())
    return peak / _FULL_SCALE, np.rint(vector * (_FULL_SCALE / peak)).astype("<i2").tobytes()


def unpack(rows: Sequence[Any]) -> NDArray[np.float32]:
    """Rows of (scale, data) as an (n, d) float32 matrix of unit vectors."""
    packed = np.frombuffer(b"".join(row["data"] for row in rows), "<i2").reshape(len(rows), -1)
    matrix = packed.astype(np.float32)
    matrix *= np.fromiter((row["scale"] for row in rows), np.float32, len(rows))[:, None]
    return matrix


def pack_bytes(vector: Vector) -> tuple[float, bytes]:
    """A vector of which a byte a number tells enough, as (scale, bytes)."""
    peak = float(np.abs(vector).max())
    return peak / _TOP, np.rint(vector * (_TOP / peak)).astype(np.int8).tobytes()


def unpack_bytes(scale: float, data: bytes) -> Vector:
    """The vector again, of length 1 but for rounding if it was."""
    return np.asarray(np.frombuffer(data, np.int8) * np.float32(scale), dtype=np.float32)


def key_of(text_hash: bytes) -> int:
    """What a text hash is found by in memory: its first 8 bytes, in which two of one owner's never agree."""
    return int.from_bytes(text_hash[:8], "little")


class Vectors:
    """Vectors of one model keyed by text hash; appending costs amortised constant time a vector."""

    def __init__(self, centre: Vector | None = None) -> None:
        """Without a ``centre`` the mean of the first vectors is taken."""
        self._centre = centre
        self._pages: list[Bytes] = []
        self._tail: Bytes = np.empty((0, 0), np.int8)
        self._paged = 0
        self._page_keys: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._page_order: NDArray[np.int32] = np.zeros(0, np.int32)
        self._slots: dict[int, int] = {}
        self._scales: NDArray[np.float32] = np.empty(0, np.float32)
        self._offsets: NDArray[np.float32] = np.empty(0, np.float32)
        self._count = 0

    def open(self, pages: Sequence[Coded], keys: NDArray[np.uint64]) -> None:
        """Take sealed pages, coded around the very centre, before anything else; they are copied nowhere.

        ``keys`` are those of all their vectors, in order; of equal ones the first counts.
        """
        if len(self) or not pages:
            raise ValueError("pages come first")
        self._pages = [page.data for page in pages]
        self._scales = np.concatenate([page.scales for page in pages])
        self._offsets = np.concatenate([page.offsets for page in pages])
        order = np.argsort(keys, kind="stable")
        self._page_order = order.astype(np.int32)
        self._page_keys = keys[order]
        self._count = self._paged = len(keys)

    def add(self, hashes: Sequence[bytes], matrix: Matrix) -> dict[bytes, int]:
        """Take an (n, d) float32 matrix, one row a hash; returns the slots of what was taken.

        A hash known already keeps its vector; a row that is no vector, and a matrix of another width than the first
        one, are refused.
        """
        if not len(hashes) or (len(self) and matrix.shape[1] != self.width):
            return {}
        good = usable(matrix).tolist()
        fresh = {key: at for at, key in enumerate(hashes) if good[at] and self.slot(key) < 0}
        if not fresh:
            return {}
        vectors = unit_length(matrix[list(fresh.values())])
        if self._centre is None or self._centre.shape != vectors.shape[1:]:
            self._centre = vectors.mean(axis=0) if len(vectors) > 1 else np.zeros_like(vectors[0])
        first = self._count
        self._append(coded(vectors, self._centre))
        taken = {key: first + place for place, key in enumerate(fresh)}
        self._slots.update((key_of(key), slot) for key, slot in taken.items())
        return taken

    def slot(self, key: bytes) -> int:
        """Where the vector of a text is, -1 if it has none."""
        return int(self.slots(np.array([key_of(key)], np.uint64))[0])

    def slots(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The same for many texts, by their keys."""
        found = np.full(len(keys), -1, np.int32)
        if self._paged:
            places = np.minimum(np.searchsorted(self._page_keys, keys), self._paged - 1)
            paged = self._page_keys[places] == keys
            found[paged] = self._page_order[places[paged]]
        if self._slots:
            for place in np.flatnonzero(found < 0).tolist():
                found[place] = self._slots.get(int(keys[place]), -1)
        return found

    def scan(self, query: Vector) -> NDArray[np.float32] | None:
        """Cosine of the query with every vector, by slot; None when they cannot be compared."""
        centre = self._centre
        if centre is None or not len(self) or query.shape != centre.shape or not 0 < np.vdot(query, query) < np.inf:
            return None
        apart = query - centre
        peak = float(np.abs(apart).max()) or 1.0
        whole = np.rint(apart * (_TOP / peak)).astype(np.int8)[None]
        found = _scanned(whole, list(self._blocks()))
        found *= self._scales[: self._count]
        found *= peak / _TOP
        found += self._offsets[: self._count]
        found += np.vdot(query, centre)
        return found

    def best(self, queries: Matrix, chosen: NDArray[np.intp] | None = None) -> NDArray[np.float32] | None:
        """Cosines of (m, d) queries with the chosen slots, by default all: (m, chosen); None when widths differ."""
        centre = self._centre
        if centre is None or not len(self) or queries.shape[1] != len(centre):
            return None
        blocks = list(self._blocks()) if chosen is None else [self._rows(chosen)]
        found = np.concatenate([_products(queries - centre, block) for block in blocks], axis=1)
        held = slice(self._count) if chosen is None else chosen
        found *= self._scales[held]
        found += self._offsets[held]
        found += (queries @ centre)[:, None]
        return found

    def __len__(self) -> int:
        return self._count

    @property
    def width(self) -> int:
        """Numbers in a vector; 0 before the first one."""
        return next((block.shape[1] for block in self._blocks()), 0)

    @property
    def nbytes(self) -> int:
        """Memory held, bytes: the vectors, their scales, offsets and centre, and what finds them."""
        pages = sum(page.nbytes for page in self._pages) + self._page_keys.nbytes + self._page_order.nbytes
        loose = self._tail.nbytes + len(self._slots) * _BYTES_OF_A_KEY
        around = 0 if self._centre is None else self._centre.nbytes
        return pages + loose + around + self._scales.nbytes + self._offsets.nbytes

    def _blocks(self) -> Iterator[Bytes]:
        yield from self._pages
        if self._count > self._paged:
            yield self._tail[: self._count - self._paged]

    def _rows(self, chosen: NDArray[np.intp]) -> Bytes:
        """The bytes of a few slots."""
        starts = np.cumsum([0, *(len(block) for block in self._blocks())])
        blocks = list(self._blocks())
        where = np.searchsorted(starts, chosen, side="right") - 1
        return np.stack([blocks[block][slot - starts[block]] for block, slot in zip(where, chosen, strict=True)])

    def _append(self, more: Coded) -> None:
        held = self._count - self._paged
        if held + len(more) > len(self._tail):
            spare = max(held + len(more), 2 * len(self._tail), _FIRST_ROWS) if held else len(more)
            self._tail = _grown(self._tail.reshape(len(self._tail), more.data.shape[1]), held, spare)
            self._scales = _grown(self._scales, self._count, self._paged + spare)
            self._offsets = _grown(self._offsets, self._count, self._paged + spare)
        self._tail[held : held + len(more)] = more.data
        self._scales[self._count : self._count + len(more)] = more.scales
        self._offsets[self._count : self._count + len(more)] = more.offsets
        self._count += len(more)


Numbers = TypeVar("Numbers", bound=np.generic)


def _grown(held: NDArray[Numbers], count: int, rows: int) -> NDArray[Numbers]:
    """Room for so many rows, the first ``count`` of which are held already."""
    grown: NDArray[Numbers] = np.empty((rows, *held.shape[1:]), held.dtype)
    grown[:count] = held[:count]
    return grown


def _scanned(whole: Bytes, blocks: Sequence[Bytes]) -> NDArray[np.float32]:
    """The products of one row of bytes with those of all blocks, in order.

    Of a large memory a second thread takes half: what one thread reads of it a second is the limit, not what it works
    out (NUMBERS, section 1).
    """
    if _HELPER is None or sum(block.nbytes for block in blocks) < _SHARED_FROM:
        return np.concatenate([_dots(whole, block) for block in blocks])
    ends = np.cumsum([len(block) for block in blocks])
    middle = int(ends[-1]) // 2
    cut = int(np.searchsorted(ends, middle, side="right"))
    start = int(ends[cut]) - len(blocks[cut])
    first = [*blocks[:cut], blocks[cut][: middle - start]]
    second = [blocks[cut][middle - start :], *blocks[cut + 1 :]]
    helped = _HELPER.submit(lambda: [_dots(whole, block) for block in second if len(block)])
    own = [_dots(whole, block) for block in first if len(block)]
    return np.concatenate(own + helped.result())


def _dots(whole: Bytes, block: Bytes) -> NDArray[np.float32]:
    """The products of one row of bytes with many."""
    if _CDIST is None:
        return np.asarray(_products(whole.astype(np.float32), block)[0])
    found: NDArray[np.float32] = np.asarray(_CDIST(whole, block, "dot"), dtype=np.float32)[0]
    return found


def _products(queries: Matrix, block: Bytes) -> Matrix:
    """The products of (m, d) numbers with rows of bytes, (m, rows)."""
    parts = (block[start : start + _ROWS_AT_ONCE] for start in range(0, len(block), _ROWS_AT_ONCE))
    return np.concatenate([queries @ part.astype(np.float32).T for part in parts], axis=1)
