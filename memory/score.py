"""How well each row of an owner answers a question: one small function a term, summed by weight.

Terms and weights are those of RECALL.md, section 1, measured again on the development data, and five more, each
of which pays over all sets (``bench recall --ablation`` shows how much): ``near`` (a line answers as well as
the line before it), ``answer`` (a line that replies to a question), ``reply`` (the more, the more of our words that
question holds), ``name`` (a name for a question that asks for one) and ``talk`` (what else was said in a session
that holds a good line).

That a memory counts more than a line is no term any more: with the 1,210 observations of LoCoMo as facts beside its
lines, R@10 was 82.9 with it and 83.5 without.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from memory.dates import PartialDate, occurrences
from memory.index import KINDS, NOWHERE, OwnerIndex
from memory.lexical import Background, Words, WordSearch, neighbour
from memory.lexicon import asked_in, asks_name, named
from memory.model import Kind, Span
from memory.ports import Vector

Column = NDArray[np.float64]
Mask = NDArray[np.bool_]

WEIGHTS: Final[Mapping[str, float]] = {
    "words": 1.0,
    "meaning": 0.8,
    "near": 0.8,
    "session": 0.4,
    "speaker": 1.0,
    "date": 4.5,
    "question": -0.6,
    "answer": 0.3,
    "reply": 2.5,
    "when": 1.0,
    "role": 1.0,
    "name": 0.8,
    "talk": 0.2,
}

WORDS_OVER_MEANING: Final = 0.7
"""Share of the weight of meaning that is gone once one row holds every word of a question: the words are the surer
sign where they are found, and a row that only sounds alike should not beat it."""
DAYS_LATER: Final = 10
"""English chats tell of days past: a line counts for a date up to this many days after it (RECALL.md)."""
QUARTER_HOUR: Final = 900
"""Seconds; a day begins at a whole quarter of an hour in every zone."""
NOON: Final = time(12)
PRIOR_ROWS: Final = 20
"""How many rows the expected mean and deviation stand for; they steady a small memory and vanish in a large one."""
USUAL_WORDS: Final = 0.1
"""Expected deviation of a word score, as a share of the highest possible one (measured: .07 to .12)."""
BOOST: Final = 0.1
"""The most that age, confidence or importance may each change a score, so that none beats relevance."""
HALF_LIFE_DAYS: Final[Mapping[Kind, float]] = {"event": 180.0, "fact": 365.0}
"""Days after which a memory of a kind counts as half as fresh. Profile lines do not age, nor do words said."""
_HALF_LIVES: Final = np.array([HALF_LIFE_DAYS.get(kind, 0.0) for kind in KINDS])


@dataclass(frozen=True, slots=True)
class Question:
    """A question made ready.

    ``vector`` has length 1 or is None; ``usual`` is mean and deviation of its cosine with the shipped
    statements, None where these have no vectors; ``spans`` are the intervals it asks about in aware UTC,
    ``dates`` the days, months and years it names; ``after_bot`` says that it is after the bot's words,
    ``personal`` that it is about the owner; ``asks`` that it asks for what a memory may hold; ``zone`` is the
    owner's IANA zone; ``without`` are terms of the score that are left out, for the ablation.
    """

    text: str
    terms: tuple[str, ...]
    vector: Vector | None = None
    usual: tuple[float, float] | None = None
    spans: tuple[Span, ...] = ()
    dates: tuple[PartialDate, ...] = ()
    asks_when: bool = False
    after_bot: bool = False
    personal: bool = True
    asks: bool = True
    zone: str = "UTC"
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Ranking:
    """What every row of an index scored. ``terms`` are unweighted, by name; rows outside the pool count nothing.

    ``search`` has looked up the words of the question.
    """

    total: Column
    terms: Mapping[str, Column]
    words: Words
    cosine: Column
    search: WordSearch

    def explain(self, row: int, weights: Mapping[str, float] = WEIGHTS) -> dict[str, float]:
        """The weighted terms of one row that changed its score, by name, and its plain cosine."""
        return self.explained(np.array([row]), weights)[0]

    def explained(self, rows: NDArray[np.intp], weights: Mapping[str, float] = WEIGHTS) -> list[dict[str, float]]:
        """The same for many rows, in their order."""
        told = np.array([weights.get(name, 1.0) * values[rows] for name, values in self.terms.items()])
        names = [*self.terms]
        cosines = np.round(self.cosine[rows], 3).tolist()
        reasons = [
            {name: value for name, value in zip(names, values, strict=True) if value}
            for values in np.round(told, 3).T.tolist()
        ]
        for reason, cosine in zip(reasons, cosines, strict=True):
            if not math.isnan(cosine):
                reason["cosine"] = cosine
        return reasons


def rank(
    index: OwnerIndex,
    question: Question,
    pool: Mask,
    *,
    now: datetime,
    background: Background,
    weights: Mapping[str, float] = WEIGHTS,
) -> Ranking:
    """Score every row of the pool (a mask over ``index.rows``) for a question."""
    weights = {name: weight for name, weight in weights.items() if name not in question.without}
    cosine = cosines(index, question.vector, pool)
    search = WordSearch(index, pool)
    words, terms = _terms(index, question, pool, cosine, search=search, background=background)
    total = _sum(terms, weights, np.zeros(len(pool)))
    terms["talk"] = standard(best_of_session(index, total, pool), pool, (0.0, 1.0))
    total = _sum({"talk": terms["talk"]}, weights, total)
    terms["boost"] = np.maximum(total, 0) * freshness(index, now)
    return Ranking(total + terms["boost"], terms, words, cosine, search)


def _terms(
    index: OwnerIndex,
    question: Question,
    pool: Mask,
    cosine: Column,
    *,
    search: WordSearch,
    background: Background,
) -> tuple[Words, dict[str, Column]]:
    """What each term of a row's own says, by name; without those that say nothing of any row."""
    words = search.find(question.terms, background)
    expected = (0.0, USUAL_WORDS * words.highest)
    needed = 1 - WORDS_OVER_MEANING * float(words.covered.max(initial=0))
    asking, replies = index.rows["asks"].astype(float), replying(index, question)
    terms = {
        "words": standard(words.rows, pool, expected),
        "session": standard(search.sessions(question.terms), pool, expected),
        "meaning": needed * meaning(cosine, pool, question.usual),
        "near": needed * meaning(np.fmax(cosine, neighbour(index, cosine, "previous", np.nan)), pool, question.usual),
        "speaker": of_the_named(index, question),
        "date": in_time(index, question),
        "question": asking,
        "answer": replies * neighbour(index, asking, "previous", 0.0),
        "reply": replies * neighbour(index, asking * words.covered, "previous", 0.0),
        "when": index.rows["timed"].astype(float) if question.asks_when else None,
        "role": said_by_the_wanted(index, question, pool),
        "name": naming(index, question, pool),
    }
    return words, {name: values for name, values in terms.items() if values is not None}


def _sum(terms: Mapping[str, Column], weights: Mapping[str, float], total: Column) -> Column:
    """A total with these terms added; a weight of 0 or none leaves a term out."""
    return sum((weights[name] * values for name, values in terms.items() if weights.get(name)), total)


def standard(values: Column, pool: Mask, usual: tuple[float, float]) -> Column:
    """Deviations from the mean over the pool, which is shrunk towards a usual (mean, deviation).

    Shrinking keeps the score of one, two or five rows from being noise (RECALL.md, "Small memories").
    """
    chosen = values[pool]
    count, (mean, deviation) = len(chosen), usual
    if not count:
        return np.zeros(len(pool))
    centre = (chosen.sum() + PRIOR_ROWS * mean) / (count + PRIOR_ROWS)
    spread = np.sqrt((np.square(chosen - centre).sum() + PRIOR_ROWS * deviation**2) / (count + PRIOR_ROWS))
    return np.asarray((values - centre) / spread if spread > 0 else np.zeros(len(pool)))


def cosines(index: OwnerIndex, vector: Vector | None, pool: Mask) -> Column:
    """Cosine of the question with each row; NaN without a vector on either side and outside the pool."""
    found = None if vector is None else index.vectors.scan(vector)
    if found is None:
        return np.full(len(pool), np.nan)
    return np.where(pool, index.by_row(found), np.nan)


def meaning(cosine: Column, pool: Mask, usual: tuple[float, float] | None) -> Column:
    """How far a cosine stands out; a row without a vector counts as the mean."""
    known = pool & ~np.isnan(cosine)
    if not known.any():
        return np.zeros(len(pool))
    if usual is None:
        usual = (float(cosine[known].mean()), float(cosine[known].std()))
    return np.where(known, standard(cosine, known, usual), 0.0)


def of_the_named(index: OwnerIndex, question: Question) -> Column | None:
    """1 for the lines of, and the memories about, the one person the question names; None when it names nobody."""
    name = named(question.text, index.people)
    if name is None:
        return None
    return np.asarray(index.rows["person"] == index.people[name], dtype=float)


def replying(index: OwnerIndex, question: Question) -> Column:
    """1 for the lines that can answer the line before them: another's, and the bot's only when we are after it.

    Nobody answers themselves, and what a bot replies to its person is not what the person told.
    """
    columns = index.rows
    before = columns["previous"]
    others = (before != NOWHERE) & (columns["person"] != columns["person"][before])
    return np.asarray(others & (~columns["bot"] | question.after_bot), dtype=float)


def said_by_the_wanted(index: OwnerIndex, question: Question, pool: Mask) -> Column | None:
    """1 for the bot's lines when the question is after what it said, else for all others; None without a bot."""
    bot = index.rows["bot"]
    if not (bot & pool).any():
        return None
    return np.asarray(bot == question.after_bot, dtype=float)


def naming(index: OwnerIndex, question: Question, pool: Mask) -> Column | None:
    """Up to 1 for the rows that hold a name when the question asks who, where or which; the less the longer they are.

    None when it does not. A long text holds some name or other. Of the bot's lines only when we are after its words:
    it names what it knows.
    """
    columns = index.rows
    if question.asks_when or not asks_name(question.text) or not pool.any():
        return None
    lengths = np.maximum(columns["length"], 1.0)
    holding = columns["names"] & (~columns["bot"] | question.after_bot)
    return np.asarray(holding * np.minimum(1.0, lengths[pool].mean() / lengths), dtype=float)


def best_of_session(index: OwnerIndex, total: Column, pool: Mask) -> Column:
    """The best total of the session a row belongs to; its own where it belongs to none."""
    session = index.rows["session"]
    inside = pool & (session != NOWHERE)
    tops = np.full(index.sessions, -np.inf)
    np.maximum.at(tops, session[inside], total[inside])
    best = total.copy()
    best[inside] = tops[session[inside]]
    return best


def in_time(index: OwnerIndex, question: Question) -> Column | None:
    """1 for what was said, or happens, in a time the question names; a boost, never a filter. None without a time."""
    columns = index.rows
    if not question.spans and not question.dates:
        return None
    hit = np.zeros(len(columns))
    for span in question.spans:
        hit[(columns["at"] >= span.start.timestamp()) & (columns["at"] < span.end.timestamp())] = 1
    if question.dates:
        hit = np.maximum(hit, _on_named_days(columns["at"], question))
    for row, when in index.spans.items():
        hit[row] = float(happens(when, question))
    return hit


def _on_named_days(at: Column, question: Question) -> Column:
    """1 where a moment (seconds since 1970) lies in a day, month or year the question names."""
    zone = ZoneInfo(question.zone)
    later = DAYS_LATER if asked_in(question.text) == "en" else 0
    quarters, places = np.unique(at // QUARTER_HOUR, return_inverse=True)
    days = [datetime.fromtimestamp(quarter * QUARTER_HOUR, zone).date() for quarter in quarters]
    named_days = {
        day: any(date.covers(datetime.combine(day, NOON, zone), question.zone, later) for date in question.dates)
        for day in set(days)
    }
    return np.array([named_days[day] for day in days], dtype=float)[places]


def happens(when: Span, question: Question) -> bool:
    """Whether an event, each of its occurrences if it recurs, falls into a time the question names."""
    if any(_overlap(when, span) for span in question.spans):
        return True
    return when.rrule is None and any(date.covers(when.start, question.zone) for date in question.dates)


def _overlap(when: Span, asked: Span) -> bool:
    if when.rrule is not None:
        return bool(occurrences(when, asked.start, asked.end))
    return when.start < asked.end and when.end > asked.start


def freshness(index: OwnerIndex, now: datetime) -> Column:
    """The sum of three boosts, each within +-BOOST: age by kind, confidence, importance."""
    columns = index.rows
    half_lives = _HALF_LIVES[columns["kind"]]
    ages = np.flatnonzero(half_lives)
    age = np.zeros(len(columns))
    days = np.maximum(now.timestamp() - columns["at"][ages], 0) / 86_400
    age[ages] = 2 * np.exp2(-days / half_lives[ages]) - 1
    importance = np.clip(2 * columns["importance"] - 1, -1, 1)
    confidence = np.clip(columns["confidence"] - 1, -1, 0)
    return np.asarray(BOOST * (age + importance + confidence))
