"""When to say nothing: a question is judged against what foreign questions find in this very memory.

A cosine of .85 means nothing by itself; it depends on the model, the language and the memory. So
questions that ship with the program and have nothing to do with the owner are scored against the owner's
memory, and a real question's evidence is read as a level (0 to 1) on their curve (RECALL.md, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
import numpy.ma
from numpy.typing import NDArray

from memory.index import OwnerIndex
from memory.lexical import SATURATION, Words, WordSearch, smallness
from memory.shipped import Probes

Column = NDArray[np.float64]
Mask = NDArray[np.bool_]

COSINE_WEIGHT: Final = 1.0
COVERED_WEIGHT: Final = 2.0
TERMS_WEIGHT: Final = 0.7
PERSONAL_WEIGHT: Final = 1.5
"""Weights of the evidence beside the word share, whose weight is 1. Own questions against questions of other
conversations: AUC .90 (MemoryBank zh) and .87 (LoCoMo); set on everyday pairs in memories of 1 to 40 rows."""

NOTHING_BELOW: Final = 0.33
"""Level under which nothing is shown (RECALL.md, section 3); costs under 2 % of the answerable questions."""
LIKELY_FROM: Final = 0.5
PERHAPS_MOST: Final = (3, 10)
"""How many items a question in the grey band gets, marked "perhaps": below and from LIKELY_FROM."""
ROWS_A_PLACE: Final = 12
DEEPEST_PLACE: Final = 30
USUAL_ITEM: Final = 0.6
"""An item has to beat what this share of foreign questions have at a place in their lists: one place for twelve
rows, the thirtieth at most. So a small memory shows no unrelated rows, and a large one its second-best too."""
BESIDE_MOST: Final = 0.25
"""In the smallest memory, how far up from the floor to the best item the others have to be: beside an answer that
towers above all, what any question might find is no second one."""
GROWTH: Final = 0.2
"""Share by which a memory may change before its null is measured again."""

_USUAL_SHARE: Final = 0.08
"""Expected deviation of the best word shares of foreign questions (large memories: .03 in Chinese, .08 in English)."""
_LEAST_SPREAD: Final = 0.25
"""Floor under the deviation of evidence, for memories so small that most foreign questions score alike."""
_HALF: Final = 0.34


@dataclass(frozen=True, slots=True)
class Curve:
    """Where foreign questions lie: their median, and the larger of the deviations above and below it.

    Quantiles, so that the few probes the memory can answer do not move it.
    """

    middle: float
    spread: float

    def level(self, value: float) -> float:
        """Share of foreign questions that stay below a value."""
        return NormalDist(self.middle, self.spread).cdf(value)

    def value(self, level: float) -> float:
        """The value at a level; the inverse of :meth:`level`."""
        return NormalDist(self.middle, self.spread).inv_cdf(level)


@dataclass(frozen=True, slots=True)
class Bar:
    """What the evidence of a question and of its items is held against.

    ``best`` is the curve of the best items of foreign questions, ``floor`` the usual evidence further down,
    ``likely`` the level from which an item beside the best is shown in full, and ``beside`` the share of the way
    from the floor to the best that it has to come to be shown at all, both the higher the smaller the memory.
    """

    best: Curve
    floor: float
    likely: float = LIKELY_FROM
    beside: float = 0.0

    def band(self, best: float, item: float, false_positives: float) -> Literal["full", "perhaps"] | None:
        """Whether an item with this evidence is shown, and how surely, when ``best`` is that of the best item.

        ``false_positives`` is the share of foreign questions that may get the full budget.
        """
        level = self.best.level(best)
        if level < NOTHING_BELOW or item < self.floor + self.beside * max(best - self.floor, 0.0):
            return None
        sure = 1 - false_positives
        return "full" if level >= sure and self.best.level(item) >= min(self.likely, sure) else "perhaps"

    def most(self, best: float, false_positives: float, *, in_time: bool = False) -> int | None:
        """How many items a question may show; None: as many as fit the budget.

        ``in_time`` says that some lie in a time the question names, which speaks for them by itself.
        """
        level = self.best.level(best)
        return None if level >= 1 - false_positives else PERHAPS_MOST[in_time or level >= LIKELY_FROM]


@dataclass(frozen=True, slots=True)
class Null:
    """What foreign questions find in a memory of ``rows`` rows.

    ``vectors`` is how many vectors the memory had, 0 if they did not count; ``cosine`` is the curve of the
    best cosines, ``words`` the deviation of the best word shares; ``alone`` is the bar for evidence by words,
    ``both`` by words and vectors (None without).
    """

    rows: int
    vectors: int
    cosine: Curve | None
    words: float
    alone: Bar
    both: Bar | None

    def fits(self, rows: int, *, vectors: int) -> bool:
        """Whether it still speaks for a memory that has grown to so many rows and vectors."""
        return _near(rows, self.rows) and _near(vectors, self.vectors)

    def evidence(
        self, words: Words, cosine: Column, terms: int, *, usual: float = 0.0, personal: bool = True
    ) -> Column:
        """How much each row speaks for a question of that many terms (vectors count where both have one).

        ``usual`` is the question's mean cosine with foreign statements. A question that is not about the person
        (``personal``) has to show more, as all foreign ones are.
        """
        total = said(words, self.rows) / self.words + COVERED_WEIGHT * words.covered
        if self.cosine is not None:
            outstanding = (apart(cosine, usual, self.rows) - self.cosine.middle) / self.cosine.spread
            total = total + COSINE_WEIGHT * np.nan_to_num(outstanding)
        return np.asarray(total + TERMS_WEIGHT * np.log1p(terms) - PERSONAL_WEIGHT * (not personal))

    def bar(self, cosine: Column) -> Bar:
        """The bar for evidence, given the question's cosines (all NaN: words alone)."""
        return self.alone if self.both is None or np.isnan(cosine).all() else self.both


def telling(index: OwnerIndex, pool: Mask) -> Mask:
    """The rows of a pool that tell something; a mere question sounds like every other and answers none."""
    return np.asarray(pool & ~index.rows["idle"])


def said(words: Words, rows: int) -> Column:
    """Share of the highest word score that each row has; in a small memory the words of its neighbours fade.

    There every row is near every other, so that what stands beside the answer would pass for it.
    """
    alone, doubt = words.covered / (SATURATION + 1), smallness(rows)
    return np.asarray(doubt * alone + (1 - doubt) * words.rows / (words.highest or 1.0))


def apart(cosine: Column, usual: Column | float, rows: int) -> Column:
    """Cosines without what the question has with any statement, as far as the memory is too small to tell.

    Some questions are near to everything; a few rows of foreign ones do not show which (pairs of question and
    statement, right ones against others: AUC .98 without, .99 with it).
    """
    return np.asarray(cosine - smallness(rows) * usual)


def measure(index: OwnerIndex, foreign: Probes, pool: Mask) -> Null:
    """Score every foreign question against the rows of a pool, one of them telling at least.

    Takes long enough to belong in a thread.
    """
    search, tells = WordSearch(index, pool), telling(index, pool)
    found = [search.find(terms, foreign.others(terms)) for terms in foreign.terms]
    rows = int(np.count_nonzero(pool))
    shares = [float(said(words, rows)[tells].max()) for words in found]
    cosines, usual = _probe_cosines(index, foreign, tells), foreign.usuals()
    bare = Null(
        rows=rows,
        vectors=0 if foreign.vectors is None else len(index.vectors),
        cosine=None if cosines is None else _curve(apart(np.nanmax(cosines, axis=1), usual, rows), 1e-3),
        words=_steadied(float(np.std(shares)), rows),
        alone=Bar(Curve(0.0, 1.0), 0.0),
        both=None,
    )
    blank = np.full(len(pool), np.nan)
    pairs = list(zip(found, foreign.terms, strict=True))
    alone = [bare.evidence(words, blank, len(terms))[tells] for words, terms in pairs]
    both = None
    if cosines is not None:
        seen = zip(pairs, cosines, usual, strict=False)
        both = _bar([bare.evidence(words, row, len(terms), usual=near)[tells] for (words, terms), row, near in seen])
    return replace(bare, alone=_bar(alone), both=both)


def _bar(evidence: Sequence[Column]) -> Bar:
    """The bar that the evidence of foreign questions, one column a question, sets."""
    rows = len(evidence[0])
    place = min(max(rows / ROWS_A_PLACE, 1.0), DEEPEST_PLACE)
    lists = [-np.partition(-column, min(math.ceil(place), rows) - 1) for column in evidence]
    further_down = [_at(np.sort(best[: math.ceil(place)])[::-1], place) for best in lists]
    return Bar(
        best=_curve(np.array([column.max() for column in evidence]), _LEAST_SPREAD),
        floor=float(np.quantile(further_down, USUAL_ITEM)),
        likely=LIKELY_FROM + smallness(rows) * (1 - LIKELY_FROM),
        beside=BESIDE_MOST * smallness(rows),
    )


def _probe_cosines(index: OwnerIndex, foreign: Probes, pool: Mask) -> Column | None:
    """(probes, rows) cosines, NaN where a row has no vector; None when nothing can be compared."""
    found = None if foreign.vectors is None else index.vectors.best(foreign.vectors)
    cosines = None if found is None else np.where(pool, index.by_row(found), np.nan)
    return None if cosines is None or np.isnan(cosines).all() else cosines


def _curve(values: Column, least: float) -> Curve:
    low, middle, high = np.quantile(values, (0.5 - _HALF, 0.5, 0.5 + _HALF))
    return Curve(float(middle), float(max(middle - low, high - middle, least)))


def _at(descending: Column, place: float) -> float:
    """The value at a place, counted from 1, of a list; between two places in proportion."""
    return float(np.interp(place - 1, np.arange(len(descending)), descending))


def _steadied(deviation: float, rows: int) -> float:
    """The deviation of the best word shares, shrunk towards the usual one."""
    doubt = smallness(rows)
    return float(np.sqrt(doubt * _USUAL_SHARE**2 + (1 - doubt) * deviation**2))


def _near(now: int, then: int) -> bool:
    return abs(now - then) <= GROWTH * then
