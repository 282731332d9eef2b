"""BM25 over one owner's rows, with the words of neighbouring lines and of the whole session.

Every statistic (rows, lengths, document frequencies) is taken over the rows asked about, so that nobody
else's words change a score.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, pairwise, starmap
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.index import MESSAGE, NOWHERE, OwnerIndex
from memory.postings import Hits
from memory.words import weights

Column = NDArray[np.float64]
Mask = NDArray[np.bool_]

PREVIOUS_WEIGHT: Final = 0.5
NEXT_WEIGHT: Final = 0.3
"""How much a neighbour's words count for a journal line (RECALL.md, section 1)."""
SATURATION: Final = 1.2
"""BM25's k1: how soon a repeated term stops counting."""
LENGTH: Final = 0.4
SESSION_LENGTH: Final = 0.6
"""BM25's b, for a row and for a whole session."""


_MOST_CELLS: Final = 1 << 16
"""Terms times rows that are looked up at a time: so many sums stay in the cache of a core."""
STEADY_ROWS: Final = 60
"""Rows of its own from which a memory says more about itself than the shipped texts say about memories."""


def smallness(rows: int) -> float:
    """How much a memory of so many rows is judged by what is usual: 1 when empty, 1/2 at STEADY_ROWS, then less."""
    return STEADY_ROWS / (STEADY_ROWS + rows)


@dataclass(frozen=True, slots=True)
class Words:
    """What the words say, by row.

    ``rows`` is BM25 with neighbours, ``covered`` the share of the question's idf that the row itself holds,
    ``idf`` the sum over all its terms.
    """

    rows: Column
    covered: Column
    idf: float

    @property
    def highest(self) -> float:
        """The score no row can exceed."""
        return (SATURATION + 1) * self.idf


@dataclass(frozen=True, slots=True)
class Background:
    """How common terms are in texts that ship with the program; steadies the idf of a small memory."""

    count: int = 0
    holding: Mapping[str, int] = field(default_factory=dict)


class WordSearch:
    """Looks questions up in the rows of a pool; what a term gives is kept for the next question."""

    def __init__(self, index: OwnerIndex, pool: Mask) -> None:
        """``pool`` is a mask over ``index.rows``."""
        self._index = index
        self._pool = pool
        self._count = int(np.count_nonzero(pool))
        self._lines = _Lines(index, pool)
        self._found: dict[str, _Found | None] = {}
        self._at_once = max(_MOST_CELLS // max(len(pool), index.sessions, 1), 1)

    def find(self, terms: Sequence[str], background: Background) -> Words:
        """The words of a question, given as distinct terms."""
        rows, covered, total = np.zeros(len(self._pool)), np.zeros(len(self._pool)), 0.0
        doubt = smallness(self._count)
        for term, counts, found in zip(terms, weights(terms), self._look_up(terms), strict=True):
            holding = background.holding.get(term, 0) + (0 if found is None else len(found.rows))
            weight = (1 - doubt * (1 - counts)) * idf(holding, self._count + background.count)
            total += weight
            if found is not None:
                rows[found.touched] += weight * found.gain
                covered[found.rows] += weight
        return Words(rows, covered / (total or 1.0), total)

    def find_each(
        self, lot: tuple[tuple[str, ...], ...], counting: tuple[tuple[str, ...], ...], background: Background
    ) -> Iterator[Words]:
        """What :func:`heard` finds for each of a lot of messages that are part of the background themselves.

        ``lot`` are their terms, ``counting`` those of them that count. The same as one by one, in a fifth of the time:
        next to none of the terms are known here, and what a term is worth depends on how many hold it alone.
        """
        distinct, counted, whole = _distinct(lot), _flat(counting, lot), _flat(lot, lot)
        known = self._index.postings.known(distinct)
        found = {term: hits for term, hits in zip(known, self._look_up(known), strict=True) if hits is not None}
        at = {place: found[term] for place, term in enumerate(distinct) if term in found} if found else {}
        holding = _held(distinct, background)
        for place, hits in at.items():
            holding[place] += len(hits.rows)
        each, which = np.unique(holding, return_inverse=True)
        of = self._count + background.count - 1
        worth, doubt = np.array([idf(held, of) for held in each.tolist()])[which], smallness(self._count)
        prices = counted.prices(worth, doubt)
        totals, wholes = counted.sums(prices), whole.sums(whole.prices(worth, doubt))
        hit: dict[int, list[tuple[_Found, float]]] = {}
        for place in np.flatnonzero(np.isin(counted.terms, list(at))).tolist() if at else ():
            term, message = int(counted.terms[place]), int(counted.messages[place])
            hit.setdefault(message, []).append((at[term], float(prices[place])))
        for message, (total, all_of_it) in enumerate(zip(totals.tolist(), wholes.tolist(), strict=True)):
            rows, covered = np.zeros(len(self._pool)), np.zeros(len(self._pool))
            for hits, weight in hit.get(message, ()):
                rows[hits.touched] += weight * hits.gain
                covered[hits.rows] += weight
            if message in hit:
                covered /= total or 1.0
                if len(counting[message]) < len(lot[message]):
                    covered *= total / (all_of_it or 1.0)
            yield Words(rows, covered, all_of_it if len(counting[message]) < len(lot[message]) else total)

    def sessions(self, terms: Sequence[str]) -> Column:
        """BM25 of the session that each row belongs to, for the same terms."""
        talk, known = _Sessions(self._index, self._pool), [found for found in self._look_up(terms) if found is not None]
        for start in range(0, len(known), self._at_once):
            talk.hear(known[start : start + self._at_once])
        return talk.by_row()

    def _look_up(self, terms: Sequence[str]) -> list[_Found | None]:
        """What each of these terms gives, None where no row of the pool holds it."""
        fresh = [term for term in terms if term not in self._found]
        for start in range(0, len(fresh), self._at_once):
            some = fresh[start : start + self._at_once]
            hits = self._index.postings.find(some).inside(self._pool)
            heard, touched, gain = self._lines.hear(hits, len(some))
            for term, own, near in zip(some, _parts(hits.which, len(some)), _parts(heard, len(some)), strict=True):
                held = hits.rows[own]
                found = _Found(held, hits.counts[own], touched[near], gain[near]) if len(held) else None
                self._found[term] = found
        return [self._found[term] for term in terms]


@lru_cache(maxsize=4_096)
def _weights(terms: tuple[str, ...]) -> tuple[float, ...]:
    return tuple(weights(terms))


class _Flat(NamedTuple):
    """The terms of a lot of messages in one row: which each is, what it counts, and whose it is."""

    terms: NDArray[np.intp]
    counts: Column
    messages: NDArray[np.intp]
    size: int

    def prices(self, worth: Column, doubt: float) -> Column:
        """What each term is worth where the distinct ones are worth so much."""
        return np.asarray((1 - doubt * (1 - self.counts)) * worth[self.terms])

    def sums(self, prices: Column) -> Column:
        """What the terms of each message are worth together."""
        return np.asarray(np.bincount(self.messages, prices, self.size), np.float64)


@lru_cache(maxsize=32)
def _flat(some: tuple[tuple[str, ...], ...], lot: tuple[tuple[str, ...], ...]) -> _Flat:
    """The terms of ``some`` messages, each of them a place among the distinct ones of ``lot``."""
    places = {term: place for place, term in enumerate(_distinct(lot))}
    return _Flat(
        np.array([places[term] for terms in some for term in terms], np.intp),
        np.array([counts for terms in some for counts in _weights(terms)], np.float64),
        np.repeat(np.arange(len(some)), [len(terms) for terms in some]),
        len(some),
    )


def _held(terms: tuple[str, ...], background: Background) -> NDArray[np.intp]:
    """How many texts of a background hold each term beside the one it is from."""
    return np.fromiter((background.holding[term] for term in terms), np.intp, len(terms)) - 1


@lru_cache(maxsize=16)
def _distinct(lot: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(lot)))


def neighbour(index: OwnerIndex, values: Column, side: Literal["previous", "next"], missing: float) -> Column:
    """The values of each row's neighbour on one side, ``missing`` where there is none."""
    return np.asarray(np.append(values, missing)[index.rows[side]])


def idf(holding: int, of: int) -> float:
    """Inverse document frequency of a term that ``holding`` of ``of`` rows hold (never negative)."""
    return math.log1p((of - holding + 0.5) / (holding + 0.5))


class _Found(NamedTuple):
    """What one term gives: the rows that hold it, the rows that hear it and their gain before its idf."""

    rows: NDArray[np.int32]
    counts: NDArray[np.float32]
    touched: NDArray[np.intp]
    gain: Column


def _parts(which: NDArray[np.intp], terms: int) -> Iterator[slice]:
    """Where each of so many terms is, given the terms of all places in order."""
    return starmap(slice, pairwise(which.searchsorted(np.arange(terms + 1)).tolist()))


class _Lines:
    """BM25 of each row, its neighbours' words counted in part."""

    def __init__(self, index: OwnerIndex, pool: Mask) -> None:
        self._previous, self._next, self._size = index.rows["previous"], index.rows["next"], len(pool)
        own = index.rows["length"] * pool
        lengths = (
            own
            + PREVIOUS_WEIGHT * neighbour(index, own, "previous", 0)
            + NEXT_WEIGHT * neighbour(index, own, "next", 0)
        )
        self._damping = _damping(lengths * pool, int(np.count_nonzero(pool)), LENGTH)

    def hear(self, hits: Hits, terms: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Column]:
        """The terms, in order, with the rows near each of them and what it adds to these."""
        before, after = self._previous[hits.rows], self._next[hits.rows]
        has_before, has_after = before != NOWHERE, after != NOWHERE
        shelf = hits.which * self._size
        cells = (shelf + hits.rows, (shelf + after)[has_after], (shelf + before)[has_before])
        counts = (hits.counts, PREVIOUS_WEIGHT * hits.counts[has_after], NEXT_WEIGHT * hits.counts[has_before])
        heard = _sums(np.concatenate(cells), np.concatenate(counts), terms * self._size)
        places = np.flatnonzero(heard)
        which = places // max(self._size, 1)
        touched = places - which * self._size
        return which, touched, _saturated(heard[places], self._damping[touched])


class _Sessions:
    """BM25 of each session, for its rows and for what was learned in it."""

    def __init__(self, index: OwnerIndex, pool: Mask) -> None:
        self._session, self._count = index.rows["session"], index.sessions
        self._spoken = pool & (index.rows["kind"] == MESSAGE)
        own = np.where(self._spoken, index.rows["length"], 0)
        lengths = _sums(self._session[self._spoken], own[self._spoken], self._count)
        self._damping = _damping(lengths, self._count, SESSION_LENGTH)
        self._scores = np.zeros(self._count)

    def hear(self, found: Sequence[_Found]) -> None:
        rows, counts = np.concatenate([each.rows for each in found]), np.concatenate([each.counts for each in found])
        spoken = self._spoken[rows]
        which = np.repeat(np.arange(len(found)), [len(each.rows) for each in found])[spoken]
        cells = which * self._count + self._session[rows[spoken]]
        heard = _sums(cells, counts[spoken], len(found) * self._count)
        where = np.flatnonzero(heard)
        term = where // max(self._count, 1)
        session = where - term * self._count
        worth = np.array([idf(holding, self._count) for holding in np.bincount(term, minlength=len(found)).tolist()])
        np.add.at(self._scores, session, worth[term] * _saturated(heard[where], self._damping[session]))

    def by_row(self) -> Column:
        return np.asarray(np.append(self._scores, 0.0)[self._session])


def _sums(places: NDArray[np.integer[Any]], values: NDArray[np.float32], size: int) -> Column:
    """The sum of the values at each place."""
    return np.bincount(places, values, size).astype(np.float64)


def _damping(lengths: Column, count: int, share: float) -> Column:
    """BM25's denominator without the term count; ``share`` is b."""
    mean = float(lengths.sum()) / (count or 1)
    return SATURATION * (1 - share + share * lengths / (mean or 1.0))


def _saturated(counts: Column, damping: Column) -> Column:
    return counts * (SATURATION + 1) / (counts + damping)
