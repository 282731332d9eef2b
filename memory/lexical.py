"""BM25 over one owner's rows, with the words of neighbouring lines and of the whole session.

Every statistic (rows, lengths, document frequencies) is taken over the rows asked about, so that nobody
else's words change a score.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
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


@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """How common terms are in texts that ship with the program; steadies the idf of a small memory.

    Two are the same only when they are one and the same: it is looked up by itself.
    """

    count: int = 0
    holding: Mapping[str, int] = field(default_factory=dict)


class WordsOfEach(NamedTuple):
    """What the words of some messages say: ``rows`` and ``covered`` (messages, rows), ``idf`` one number a message."""

    rows: Column
    covered: Column
    idf: Column

    @property
    def highest(self) -> Column:
        """The score no row can exceed, by message."""
        return np.asarray((SATURATION + 1) * self.idf)


class WordSearch:
    """Looks a question up in the rows of a pool; what its terms give is kept, for it or some of its words."""

    def __init__(self, index: OwnerIndex, pool: Mask) -> None:
        """``pool`` is a mask over ``index.rows``."""
        self._index = index
        self._pool = pool
        self._count = int(np.count_nonzero(pool))
        self._lines = _Lines(index, pool)
        self._found = _Found.nothing()

    def find(self, terms: Sequence[str], background: Background) -> Words:
        """The words of a question, given as distinct terms; those looked up before, or some of them, are free."""
        found, doubt, total = self._look_up(terms), smallness(self._count), 0.0
        worth, held = np.zeros(len(found.places)), found.held.tolist()
        for term, counts in zip(terms, weights(terms), strict=True):
            place = found.places[term]
            holding = background.holding.get(term, 0) + held[place]
            worth[place] = weight = (1 - doubt * (1 - counts)) * idf(holding, self._count + background.count)
            total += weight
        rows = _sums(found.touched, worth[found.near] * found.gain, len(self._pool))
        covered = _sums(found.hits.rows, worth[found.hits.which], len(self._pool))
        return Words(rows, covered / (total or 1.0), total)

    def find_each(
        self,
        lot: tuple[tuple[str, ...], ...],
        counting: tuple[tuple[str, ...], ...],
        background: Background,
        *,
        at_once: int,
    ) -> Iterator[WordsOfEach]:
        """What :func:`heard` finds for each of a lot of messages of the background itself, ``at_once`` at a time.

        ``lot`` are their terms, ``counting`` those of them that count. The same as one by one, much faster: next to
        none of the terms are known here, and what a term is worth depends on how many hold it alone.
        """
        distinct, counted, whole = _distinct(lot), _flat(counting, lot), _flat(lot, lot)
        known = self._index.postings.known(distinct)
        found = self._look_up([distinct[place] for place in known.tolist()])
        holding = _held(distinct, background).copy()
        holding[known] += found.held
        worth, doubt = _idfs(holding, self._count + background.count - 1), smallness(self._count)
        prices = counted.prices(worth, doubt)
        totals, wholes = counted.sums(prices), whole.sums(whole.prices(worth, doubt))
        some = np.array([len(terms) < len(every) for terms, every in zip(counting, lot, strict=True)])
        share = np.where(some, totals / np.where(wholes, wholes, 1.0), 1.0) / np.where(totals, totals, 1.0)
        sums = np.where(some, wholes, totals)
        places = np.full(len(distinct), NOWHERE)
        places[known] = np.arange(len(known))
        hitting = np.flatnonzero(places[counted.terms] != NOWHERE)
        terms, messages, prices = places[counted.terms[hitting]], counted.messages[hitting], prices[hitting]
        for start in range(0, len(lot), at_once):
            part = slice(start, min(start + at_once, len(lot)))
            of_part = slice(*messages.searchsorted((part.start, part.stop)))
            rows, covered = found.sums(
                terms[of_part], messages[of_part] - start, prices[of_part], (part.stop - start, len(self._pool))
            )
            yield WordsOfEach(rows, covered * share[part, np.newaxis], sums[part])

    def sessions(self, terms: Sequence[str]) -> Column:
        """BM25 of the session that each row belongs to, for the same terms."""
        found = self._look_up(terms)
        if len(found.places) > len(terms):
            found = self._searched(terms)
        return _Sessions(self._index, self._pool).hear(found.hits)

    def _look_up(self, terms: Sequence[str]) -> _Found:
        """What these terms give, and perhaps others with them, which were looked up before."""
        if not all(term in self._found.places for term in terms):
            self._found = self._searched(terms)
        return self._found

    def _searched(self, terms: Sequence[str]) -> _Found:
        hits = self._index.postings.find(terms).inside(self._pool)
        heard = list(self._lines.hear_each(hits, len(terms)))
        near, touched, gain = (np.concatenate(parts) for parts in zip(*heard, strict=True))
        held = np.bincount(hits.which, minlength=len(terms))
        return _Found({term: place for place, term in enumerate(terms)}, hits, held, near, touched, gain)


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


@lru_cache(maxsize=16)
def _held(terms: tuple[str, ...], background: Background) -> NDArray[np.intp]:
    """How many texts of a background hold each term beside the one it is from. Not to be written to."""
    return np.fromiter((background.holding[term] for term in terms), np.intp, len(terms)) - 1


@lru_cache(maxsize=16)
def _distinct(lot: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(lot)))


def neighbour(index: OwnerIndex, values: Column, side: Literal["previous", "next"], missing: float) -> Column:
    """The values of each row's neighbour on one side, ``missing`` where there is none."""
    # The place of NOWHERE is the last.
    held = np.empty(len(values) + 1)
    held[:-1], held[-1] = values, missing
    return np.asarray(held[index.rows[side]])


def idf(holding: int, of: int) -> float:
    """Inverse document frequency of a term that ``holding`` of ``of`` rows hold (never negative)."""
    return math.log1p((of - holding + 0.5) / (holding + 0.5))


def _idfs(holding: NDArray[np.intp], of: int) -> Column:
    """The same for many terms; each number is worked out once."""
    each, which = np.unique(holding, return_inverse=True)
    return np.array([idf(held, of) for held in each.tolist()])[which]


class _Found(NamedTuple):
    """What some terms give, flat and in their order.

    ``places`` are those of the terms; ``hits`` are the rows that hold them, ``held`` how many do, a term each; ``near``
    is a term's place for each of the rows ``touched`` that hear it, and ``gain`` is theirs before its idf.
    """

    places: Mapping[str, int]
    hits: Hits
    held: NDArray[np.intp]
    near: NDArray[np.intp]
    touched: NDArray[np.intp]
    gain: Column

    @classmethod
    def nothing(cls) -> _Found:
        """No terms."""
        none = np.zeros(0, np.intp)
        return cls({}, Hits(none, np.zeros(0, np.int32), np.zeros(0, np.float32)), none, none, none, np.zeros(0))

    def sums(
        self, terms: NDArray[np.intp], messages: NDArray[np.intp], prices: Column, shape: tuple[int, int]
    ) -> tuple[Column, Column]:
        """What terms (by place) of messages say at these prices, by message and row: scores, and what the rows hold."""
        count, size = len(self.places), shape[0] * shape[1]
        chosen, near = _spread(self.near, terms, count)
        scores = _sums(messages[near] * shape[1] + self.touched[chosen], prices[near] * self.gain[chosen], size)
        chosen, own = _spread(self.hits.which, terms, count)
        covered = _sums(messages[own] * shape[1] + self.hits.rows[chosen], prices[own], size)
        return scores.reshape(shape), covered.reshape(shape)


def _spread(which: NDArray[np.intp], terms: NDArray[np.intp], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places of all that belongs to each of some terms, one term behind the other, and whose each is.

    ``which`` are the terms of all places, in order, out of ``count``.
    """
    starts = which.searchsorted(np.arange(count + 1))
    lengths = np.diff(starts)[terms]
    ends = lengths.cumsum()
    whose = np.repeat(np.arange(len(terms)), lengths)
    return np.arange(len(whose)) + (starts[terms] - ends + lengths)[whose], whose


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

    def hear_each(self, hits: Hits, terms: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Column]]:
        """The places of the terms, in order, with the rows near each of them and what it adds to these."""
        at_once = max(_MOST_CELLS // max(self._size, 1), 1)
        if terms <= at_once:
            yield self._hear(hits, terms)
            return
        for start in range(0, terms, at_once):
            part = slice(*hits.which.searchsorted((start, start + at_once)))
            some = Hits(hits.which[part] - start, hits.rows[part], hits.counts[part])
            which, touched, gain = self._hear(some, min(at_once, terms - start))
            yield which + start, touched, gain

    def _hear(self, hits: Hits, terms: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Column]:
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

    def hear(self, hits: Hits) -> Column:
        """The score of each row's session for the terms that were hit."""
        spoken = self._spoken[hits.rows]
        which = hits.which[spoken]
        terms = int(which[-1]) + 1 if len(which) else 0
        cells = which * self._count + self._session[hits.rows[spoken]]
        heard = _sums(cells, hits.counts[spoken], terms * self._count)
        where = np.flatnonzero(heard)
        term = where // max(self._count, 1)
        session = where - term * self._count
        worth = np.array([idf(holding, self._count) for holding in np.bincount(term, minlength=terms).tolist()])
        gain = worth[term] * _saturated(heard[where], self._damping[session])
        return np.asarray(np.append(_sums(session, gain, self._count), 0.0)[self._session])


def _sums(places: NDArray[np.integer[Any]], values: NDArray[np.floating[Any]], size: int) -> Column:
    """The sum of the values at each place."""
    # Of no values at all they would be whole numbers.
    return np.asarray(np.bincount(places, values, size), np.float64)


def _damping(lengths: Column, count: int, share: float) -> Column:
    """BM25's denominator without the term count; ``share`` is b."""
    mean = float(lengths.sum()) / (count or 1)
    return SATURATION * (1 - share + share * lengths / (mean or 1.0))


def _saturated(counts: Column, damping: Column) -> Column:
    return counts * (SATURATION + 1) / (counts + damping)
