"""When to say nothing: a question is judged against what foreign questions find in this very memory.

A cosine of .85 means nothing by itself; it depends on the model, the language and the memory. So
questions that ship with the program and have nothing to do with the owner are scored against the owner's
memory, and a real question's evidence is read as a level (0 to 1) on their curve (RECALL.md, section 3).
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.ma
from numpy.typing import NDArray

from memory.index import OwnerIndex
from memory.lexical import SATURATION, Background, Words, WordSearch, WordsOfEach, smallness
from memory.shipped import Probes
from memory.vectors import Matrix

Column = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Weights:
    """What speaks for a row, in log-odds that the question is one this memory was told about.

    ``words`` is for the share of the highest word score, ``covered`` for the share of the question's words in the
    row itself, ``meaning`` for deviations of the cosine from what foreign questions find, ``terms`` for the
    logarithm of the number of words; ``timely`` for a row of the time that the question names, ``dated`` for a
    question that names one.
    """

    words: float
    covered: float
    meaning: float
    terms: float
    timely: float
    dated: float


BOTH: Final = Weights(words=11.0, covered=2.6, meaning=0.8, terms=0.3, timely=2.4, dated=-0.9)
ALONE: Final = Weights(words=19.0, covered=1.0, meaning=0.0, terms=0.9, timely=2.2, dated=-1.2)
"""With and without vectors. Logistic regression of own questions against those of other conversations, on both sets
that `bench abstain` measures, each set counting alike; fitted on either half of the conversations they agree within
a third, but for ``timely`` and ``terms``, and rank the other half as well as their own does (AUC within .005)."""
PERSONAL_WEIGHT: Final = 1.5
"""What a question has to show beyond others when it is not about the person: such ones need a memory seldom."""

NOTHING_BELOW: Final = 0.34
"""Level under which nothing is shown (RECALL.md, section 3); costs under 2 % of the answerable questions."""
TALK_NOTHING_BELOW: Final = 0.98
"""The same for talk that asks nothing: it needs a memory only if one stands out."""
LIKELY_FROM: Final = 0.5
PERHAPS_MOST: Final = (3, 10)
"""How many items a question in the grey band gets, marked "perhaps": below and from LIKELY_FROM."""
ROWS_A_PLACE: Final = 12
DEEPEST_PLACE: Final = 30
USUAL_ITEM: Final = 0.6
"""An item has to beat what this share of foreign questions have at a place in their lists: one place for twelve
rows, the thirtieth at most. So a small memory shows no unrelated rows, and a large one its second-best too."""
USUAL_MORE: Final = 0.12
"""How much more it has to beat in the smallest memory, where next to nothing is further down the list."""
BESIDE_MOST: Final = 0.25
"""In the smallest memory, how far up from the floor to the best item the others have to be: beside an answer that
towers above all, what any question might find is no second one."""
GROWTH: Final = 0.2
"""Share by which a memory may change before its null is measured again."""

TYPICAL_SPREAD: Final = 1.2
"""Deviation of the evidence of the shipped questions, log-odds, by and large (.8 to 1.4). That of one memory is taken
half way to it: a single probe that a memory can answer moves the upper end of a hundred."""
NEARER: Final = 0.4
WIDER: Final = 2.0
"""In a large memory, how much nearer to it real foreign questions lie than the shipped ones, log-odds, and how many
times as far apart: it speaks of so much that they share its topics more often. In a small one they do not."""
_LEAST_COSINE: Final = 1e-3
"""Floor under the deviation of the best cosines."""
_HALF: Final = 0.34
_MOST_CELLS: Final = 1 << 19
"""Messages times rows that are worked on at a time."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Where foreign questions lie: their median, and their deviation from it.

    Quantiles, so that the few probes the memory can answer do not move it.
    """

    middle: float
    spread: float

    def level(self, value: float) -> float:
        """Share of foreign questions that stay below a value."""
        return NormalDist(self.middle, self.spread).cdf(value)

    def levels(self, values: Iterable[float]) -> list[float]:
        """The level of each value."""
        below = NormalDist(self.middle, self.spread).cdf
        return [below(value) for value in values]

    def value(self, level: float) -> float:
        """The value at a level; the inverse of :meth:`level`."""
        return NormalDist(self.middle, self.spread).inv_cdf(level)


@dataclass(frozen=True, slots=True)
class Bar:
    """What the evidence of a question and of its items is held against.

    ``best`` is the curve of the best items of foreign questions, ``floor`` the usual evidence further down,
    ``likely`` the level from which an item beside the best is shown in full, and ``beside`` the share of the way
    from the floor to the best that it has to come to be shown at all, both the higher the smaller the memory.
    ``nothing`` is the level under which nothing is shown, ``most_ever`` bounds what is even if it is sure.
    """

    best: Curve
    floor: float
    likely: float = LIKELY_FROM
    beside: float = 0.0
    nothing: float = NOTHING_BELOW
    most_ever: int | None = None

    def band(self, best: float, item: float, false_positives: float) -> Literal["full", "perhaps"] | None:
        """Whether an item with this evidence is shown, and how surely, when ``best`` is that of the best item.

        ``false_positives`` is the share of foreign questions that may get the full budget.
        """
        (band,) = self.bands(best, np.array([item]), false_positives)
        return band

    def bands(self, best: float, items: Column, false_positives: float) -> list[Literal["full", "perhaps"] | None]:
        """The same for many items."""
        level, sure = self.best.level(best), 1 - false_positives
        if level < self.nothing:
            return [None] * len(items)
        shown = items >= self.floor + self.beside * max(best - self.floor, 0.0)
        likely = np.zeros(len(items), np.bool_)
        if level >= sure:
            # Of items in order few need their level to tell from where on it is high enough.
            order = items.argsort()
            first = bisect_left(items[order].tolist(), min(self.likely, sure), key=self.best.level)
            likely[order[first:]] = True
        return [
            ("full" if is_likely else "perhaps") if is_shown else None
            for is_shown, is_likely in zip(shown.tolist(), likely.tolist(), strict=True)
        ]

    def most(self, best: float, false_positives: float, *, in_time: bool = False) -> int | None:
        """How many items a question may show; None: as many as fit the budget.

        ``in_time`` says that some lie in a time the question names, which speaks for them by itself.
        """
        level = self.best.level(best)
        return self.most_ever if level >= 1 - false_positives else PERHAPS_MOST[in_time or level >= LIKELY_FROM]


@dataclass(frozen=True, slots=True)
class Clues:
    """What a question finds, row by row.

    ``terms`` is the number of its words, ``usual`` its mean cosine with foreign statements; ``timely`` is 1 for the
    rows of the time it names, None when it names none; ``personal`` says that it is about the person.
    """

    words: Words
    cosine: Column
    terms: int
    usual: float = 0.0
    timely: Column | None = None
    personal: bool = True


@dataclass(frozen=True, slots=True)
class Null:
    """What foreign questions find in a memory of ``rows`` rows.

    ``vectors`` is how many vectors the memory had, 0 if they did not count; ``cosine`` is the curve of the
    best cosines; ``alone`` is the bar for evidence by words, ``both`` by words and vectors (None without).
    """

    rows: int
    vectors: int
    cosine: Curve | None
    alone: Bar
    both: Bar | None

    def fits(self, rows: int, *, vectors: int) -> bool:
        """Whether it still speaks for a memory that has grown to so many rows and vectors."""
        return _near(rows, self.rows) and _near(vectors, self.vectors)

    def packed(self) -> str:
        """All its numbers, exactly."""
        return json.dumps(asdict(self))

    @classmethod
    def unpacked(cls, data: str) -> Null:
        """A null again."""
        told = json.loads(data)
        cosine = None if told["cosine"] is None else Curve(**told["cosine"])
        alone, both = (
            None if bar is None else Bar(**(bar | {"best": Curve(**bar["best"])}))
            for bar in (told["alone"], told["both"])
        )
        if alone is None:
            raise ValueError("a null has a bar for words")
        return cls(told["rows"], told["vectors"], cosine, alone, both)

    def evidence(self, clues: Clues) -> Column:
        """How much each row speaks for a question, in log-odds but for a constant."""
        by_meaning = self.cosine is not None and not np.isnan(clues.cosine).all()
        weights = BOTH if by_meaning else ALONE
        total = weights.words * said(clues.words, self.rows) + weights.covered * clues.words.covered
        if self.cosine is not None and by_meaning:
            outstanding = (apart(clues.cosine, clues.usual, self.rows) - self.cosine.middle) / self.cosine.spread
            total = total + weights.meaning * np.nan_to_num(outstanding)
        if clues.timely is not None:
            total = total + weights.timely * clues.timely + weights.dated
        return np.asarray(total + weights.terms * np.log1p(clues.terms) - PERSONAL_WEIGHT * (not clues.personal))

    def bar(self, cosine: Column) -> Bar:
        """The bar for evidence, given the question's cosines (all NaN: words alone)."""
        return self.alone if self.both is None or np.isnan(cosine).all() else self.both


def telling(index: OwnerIndex, pool: Mask) -> Mask:
    """The rows of a pool that tell something; a mere question sounds like every other and answers none."""
    return np.asarray(pool & ~index.rows["idle"])


def heard(search: WordSearch, counting: Sequence[str], terms: Sequence[str], background: Background) -> Words:
    """What the words of a message find of which only some count; the others are words that were not found."""
    words = search.find(counting, background)
    if len(counting) == len(terms):
        return words
    whole = search.find(terms, background).idf
    return Words(words.rows, words.covered * (words.idf / (whole or 1.0)), whole)


def said(words: Words, rows: int) -> Column:
    """Share of the highest word score that each row has; in a small memory the words of its neighbours fade.

    There every row is near every other, so that what stands beside the answer would pass for it.
    """
    return _said(words.rows, words.covered, words.highest or 1.0, rows)


def _said(scores: Column, covered: Column, highest: Column | float, rows: int) -> Column:
    alone, doubt = covered / (SATURATION + 1), smallness(rows)
    return np.asarray(doubt * alone + (1 - doubt) * scores / highest)


def apart(cosine: Column, usual: Column | float, rows: int) -> Column:
    """Cosines without what the question has with any statement, as far as the memory is too small to tell.

    Some questions are near to everything; a few rows of foreign ones do not show which (pairs of question and
    statement, right ones against others: AUC .98 without, .99 with it).
    """
    return np.asarray(cosine - smallness(rows) * usual)


def measure(index: OwnerIndex, foreign: Probes, pool: Mask, *, talk: bool = False) -> Null:
    """Score every foreign question, or all foreign ``talk``, against the rows of a pool, one of them telling at least.

    Takes long enough to belong in a thread.
    """
    lot = foreign.talk if talk else foreign.asked
    tells, rows = telling(index, pool), int(np.count_nonzero(pool))
    cosines = _lot_cosines(index, lot.vectors, tells)
    usual = np.zeros(len(lot.terms)) if lot.usual is None else lot.usual
    bare = Null(
        rows=rows,
        vectors=0 if lot.vectors is None else len(index.vectors),
        cosine=None if cosines is None else _curve(apart(np.nanmax(cosines, axis=1), usual, rows), _LEAST_COSINE),
        alone=Bar(Curve(0.0, 1.0), 0.0),
        both=None,
    )
    bar = _talk_bar if talk else _bar
    at_once = max(_MOST_CELLS // max(len(pool), 1), 1)
    found = WordSearch(index, pool).find_each(lot.terms, lot.counting, foreign.background, at_once=at_once)
    by_words, by_both = _Heights(), _Heights()
    counted = np.log1p(np.array([len(counting) for counting in lot.counting]))
    for number, some in enumerate(found):
        part = slice(number * at_once, (number + 1) * at_once)
        words, terms = _WordsOf.each(some, tells, rows), counted[part]
        by_words.add(words.evidence(ALONE, terms))
        if cosines is not None and bare.cosine is not None and len(seen := cosines[part]):
            near = apart(seen[:, tells], usual[part, np.newaxis], rows)
            outstanding = np.nan_to_num((near - bare.cosine.middle) / bare.cosine.spread)
            by_both.add(words.first(len(seen)).evidence(BOTH, terms[: len(seen)], outstanding))
    return replace(bare, alone=bar(by_words), both=bar(by_both) if cosines is not None else None)


class _WordsOf(NamedTuple):
    """What the words of some messages find in the rows that tell something, (messages, rows)."""

    said: Column
    covered: Column

    @classmethod
    def each(cls, found: WordsOfEach, tells: Mask, rows: int) -> _WordsOf:
        """Those of these messages."""
        covered, highest = found.covered[:, tells], found.highest[:, np.newaxis]
        return cls(_said(found.rows[:, tells], covered, np.where(highest, highest, 1.0), rows), covered)

    def first(self, count: int) -> _WordsOf:
        """Those of the first messages alone."""
        return _WordsOf(self.said[:count], self.covered[:count])

    def evidence(self, weights: Weights, terms: Column, outstanding: Column | None = None) -> Column:
        """As :meth:`Null.evidence`, for all at once."""
        total = weights.words * self.said + weights.covered * self.covered
        if outstanding is not None:
            total = total + weights.meaning * outstanding
        return np.asarray(total + (weights.terms * terms)[:, np.newaxis])


class _Heights:
    """How high the evidence of foreign messages goes in a memory: each one's best item, and one further down."""

    def __init__(self) -> None:
        self.rows = 0
        self.best: list[Column] = []
        self.further_down: list[Column] = []

    def add(self, evidence: Column) -> None:
        """Take the evidence of some messages, (messages, rows)."""
        self.rows = evidence.shape[1]
        place = min(max(self.rows / ROWS_A_PLACE, 1.0), DEEPEST_PLACE)
        deepest = min(math.ceil(place), self.rows)
        lists = np.sort(-np.partition(-evidence, deepest - 1, axis=1)[:, :deepest], axis=1)[:, ::-1]
        above = min(int(place - 1), deepest - 1)
        below = min(above + 1, deepest - 1)
        self.best.append(lists[:, 0])
        self.further_down.append((lists[:, below] - lists[:, above]) * (place - 1 - above) + lists[:, above])


def _talk_bar(heights: _Heights) -> Bar:
    """The bar for talk that asks nothing: only what stands out is shown, and little of it."""
    usual = _bar(heights)
    return replace(usual, nothing=TALK_NOTHING_BELOW, likely=TALK_NOTHING_BELOW, most_ever=PERHAPS_MOST[-1])


def _bar(heights: _Heights) -> Bar:
    """The bar that the evidence of foreign messages sets."""
    rows = heights.rows
    return Bar(
        best=_widened(_curve(np.concatenate(heights.best), 0.0), rows),
        floor=_quantile(np.sort(np.concatenate(heights.further_down)), USUAL_ITEM + USUAL_MORE * smallness(rows)),
        likely=LIKELY_FROM + smallness(rows) * (1 - LIKELY_FROM),
        beside=BESIDE_MOST * smallness(rows),
    )


def _lot_cosines(index: OwnerIndex, vectors: Matrix | None, pool: Mask) -> Column | None:
    """(messages, rows) cosines, NaN where a row has no vector; None when nothing can be compared."""
    found = None if vectors is None else index.vectors.best(vectors)
    cosines = None if found is None else np.where(pool, index.by_row(found), np.nan)
    return None if cosines is None or np.isnan(cosines).all() else cosines


def _curve(values: Column, least: float) -> Curve:
    order = np.sort(values)
    low, middle, high = (_quantile(order, share) for share in (0.5 - _HALF, 0.5, 0.5 + _HALF))
    return Curve(middle, max((high - low) / 2, least))


def _quantile(order: Column, share: float) -> float:
    """The value below which a share of sorted values lies, as numpy's, which takes twenty times as long for so few."""
    place = (len(order) - 1) * share
    below, above = float(order[int(place)]), float(order[min(int(place) + 1, len(order) - 1)])
    rest = place - int(place)
    return above - (above - below) * (1 - rest) if rest >= 0.5 else below + (above - below) * rest  # noqa: PLR2004


def _widened(probes: Curve, rows: int) -> Curve:
    """The curve of real foreign questions in a memory of so many rows, given that of the shipped ones."""
    large = 1 - smallness(rows)
    spread = (probes.spread + TYPICAL_SPREAD) / 2
    return Curve(probes.middle + NEARER * large, spread * (1 + (WIDER - 1) * large))


def _near(now: int, then: int) -> bool:
    return abs(now - then) <= GROWTH * then
