"""When to say nothing: a question is judged against what foreign questions find in this very memory.

A cosine of .85 means nothing by itself; it depends on the model, the language and the memory. So
questions that ship with the program and have nothing to do with the owner are scored against the owner's
memory, and a real question's evidence is read as a level (0 to 1) on their curve (RECALL.md, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from memory.index import NOWHERE, OwnerIndex
from memory.lexical import Words, WordSearch
from memory.shipped import Probes

Column = NDArray[np.float64]
Mask = NDArray[np.bool_]

COSINE_WEIGHT: Final = 0.75
COVERED_WEIGHT: Final = 1.0
TERMS_WEIGHT: Final = 1.0
PERSONAL_WEIGHT: Final = 1.5
"""Weights of the evidence beside the word share, whose weight is 1. Own questions against questions of other
conversations: AUC .91 (MemoryBank zh) and .88 (LoCoMo); the five features of RECALL.md give .91 and .88."""

NOTHING_BELOW: Final = 0.25
"""Level under which nothing is shown (RECALL.md, section 3); costs under 2 % of the answerable questions."""
LIKELY_FROM: Final = 0.5
PERHAPS_MOST: Final = (3, 10)
"""How many items a question in the grey band gets, marked "perhaps": below and from LIKELY_FROM."""
ROWS_A_PLACE: Final = 10
DEEPEST_PLACE: Final = 30
"""An item has to beat the usual item of a foreign question at a place in its list: one place for ten rows, the
thirtieth at most. So a small memory does not show its unrelated rows, and a large one its second-best too."""
GROWTH: Final = 0.2
"""Share by which a memory may change before its null is measured again."""

_LEAST_WORDS: Final = 0.03
_LEAST_SPREAD: Final = 0.25
"""Floors under deviations, for memories so small that most foreign questions score alike."""
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

    ``best`` is the curve of the best items of foreign questions, ``floor`` the usual evidence further down.
    """

    best: Curve
    floor: float

    def band(self, best: float, item: float, false_positives: float) -> Literal["full", "perhaps"] | None:
        """Whether an item with this evidence is shown, and how surely, when ``best`` is that of the best item.

        ``false_positives`` is the share of foreign questions that may get the full budget.
        """
        level = self.best.level(best)
        if level < NOTHING_BELOW or item < self.floor:
            return None
        return "full" if level >= 1 - false_positives and self.best.level(item) >= LIKELY_FROM else "perhaps"

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

    def evidence(self, words: Words, cosine: Column, terms: int, *, personal: bool = True) -> Column:
        """How much each row speaks for a question of that many terms (vectors count where both have one).

        A question that is not about the person (``personal``) has to show more, as all foreign ones are.
        """
        total = words.rows / ((words.highest or 1.0) * self.words) + COVERED_WEIGHT * words.covered
        if self.cosine is not None:
            outstanding = (cosine - self.cosine.middle) / self.cosine.spread
            total = total + COSINE_WEIGHT * np.nan_to_num(outstanding)
        return np.asarray(total + TERMS_WEIGHT * np.log1p(terms) - PERSONAL_WEIGHT * (not personal))

    def bar(self, cosine: Column) -> Bar:
        """The bar for evidence, given the question's cosines (all NaN: words alone)."""
        return self.alone if self.both is None or np.isnan(cosine).all() else self.both


def telling(index: OwnerIndex, pool: Mask) -> Mask:
    """The rows of a pool that tell something; a mere question sounds like every other and answers none."""
    return np.asarray(pool & ~index.rows["idle"])


def measure(index: OwnerIndex, foreign: Probes, pool: Mask) -> Null:
    """Score every foreign question against the rows of a pool, one of them telling at least.

    Takes long enough to belong in a thread.
    """
    search, tells = WordSearch(index, pool), telling(index, pool)
    found = [search.find(terms, foreign.others(terms)) for terms in foreign.terms]
    shares = [float(words.rows[tells].max()) / (words.highest or 1.0) for words in found]
    cosines = _probe_cosines(index, foreign, tells)
    bare = Null(
        rows=int(np.count_nonzero(pool)),
        vectors=0 if foreign.vectors is None else len(index.vectors),
        cosine=None if cosines is None else _curve(np.nanmax(cosines, axis=1), 1e-3),
        words=max(float(np.std(shares)), _LEAST_WORDS),
        alone=Bar(Curve(0.0, 1.0), 0.0),
        both=None,
    )
    blank = np.full(len(pool), np.nan)
    pairs = list(zip(found, foreign.terms, strict=True))
    alone = [bare.evidence(words, blank, len(terms))[tells] for words, terms in pairs]
    both = None
    if cosines is not None:
        rows = zip(pairs, cosines, strict=False)
        both = _bar([bare.evidence(words, row, len(terms))[tells] for (words, terms), row in rows])
    return replace(bare, alone=_bar(alone), both=both)


def _bar(evidence: Sequence[Column]) -> Bar:
    """The bar that the evidence of foreign questions, one column a question, sets."""
    rows = len(evidence[0])
    place = min(max(rows // ROWS_A_PLACE, 1), DEEPEST_PLACE)
    further_down = [np.partition(column, rows - place)[rows - place] for column in evidence]
    return Bar(_curve(np.array([column.max() for column in evidence]), _LEAST_SPREAD), float(np.median(further_down)))


def _probe_cosines(index: OwnerIndex, foreign: Probes, pool: Mask) -> Column | None:
    """(probes, rows) cosines, NaN where a row has no vector; None when nothing can be compared."""
    slots = index.rows["vector"]
    known = np.flatnonzero(pool & (slots != NOWHERE))
    found = None
    if foreign.vectors is not None and len(known):
        found = index.vectors.best(foreign.vectors, slots[known].astype(np.intp))
    if found is None:
        return None
    cosines = np.full((len(found), len(pool)), np.nan)
    cosines[:, known] = found
    return cosines


def _curve(values: Column, least: float) -> Curve:
    low, middle, high = np.quantile(values, (0.5 - _HALF, 0.5, 0.5 + _HALF))
    return Curve(float(middle), float(max(middle - low, high - middle, least)))


def _near(now: int, then: int) -> bool:
    return abs(now - then) <= GROWTH * then
