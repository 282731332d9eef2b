"""Which rows of an owner's index may be shown for a question, in which order, and how surely. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from memory.index import EVENT, KINDS, MESSAGE, NOWHERE, OwnerIndex
from memory.lexicon import mentioned
from memory.model import EVERYWHERE, Chat, Kind, Span
from memory.score import Column, Question, Ranking, rank
from memory.shipped import Probes
from memory.threshold import Clues, Null, heard, telling
from memory.words import query_terms

Band = Literal["always", "full", "perhaps"]
Mask = NDArray[np.bool_]

MOST_CANDIDATES: Final = 200
"""Rows looked at in full; far more than any budget holds."""
REASONS_KEPT: Final = 20
"""Rows named in the trace among those left out; the best of them."""
EXPLAINED_AT_ONCE: Final = 32
"""Rows of which the reasons are worked out together; about as many as are read at a time."""
ARMS: Final[Mapping[Kind, str]] = {
    "profile": "profile",
    "event": "timeline",
    "fact": "facts",
    "message": "journal",
}
"""The arms of recall by what they find, as the trace names them."""
NARROW: Final = timedelta(days=8)
"""A period up to this long, all of it past, brings back what was said in it even without a common word."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be shown: in which room, when, and without which journal lines; ``asked`` is the question's own.

    ``threshold`` False shows the best rows however little speaks for them.
    """

    room: Chat
    now: datetime
    exclude: frozenset[int] = frozenset()
    asked: int = 0
    threshold: bool = True
    false_positives: float = 0.05


class Contender(NamedTuple):
    """A row that may be shown. ``asked`` is the id of the line before a journal line, if that is a question.

    There are up to 200 a question, of which a few are shown: hence a tuple, whose reasons are worked out when read.
    """

    id: int
    kind: Kind
    score: float
    band: Band
    asked: int | None = None
    scores: Mapping[str, float] | None = None

    @property
    def reasons(self) -> dict[str, float]:
        """What speaks for it, by name."""
        return self.scores.whole() if isinstance(self.scores, Reasons) else dict(self.scores or {})


class _Explained:
    """What speaks for the rows of a ranking, told of as many at a time as are looked at together."""

    def __init__(
        self, ranking: Ranking, rows: NDArray[np.intp], levels: Callable[[slice], list[float]] | None = None
    ) -> None:
        """``levels`` gives those of some of the rows, which are told, too."""
        self._ranking, self._rows, self._levels = ranking, rows, levels
        self._told: dict[int, list[dict[str, float]]] = {}

    def of(self, place: int) -> dict[str, float]:
        """The reasons of one row by its place."""
        part, within = divmod(place, EXPLAINED_AT_ONCE)
        told = self._told.get(part)
        if told is None:
            some = slice(part * EXPLAINED_AT_ONCE, (part + 1) * EXPLAINED_AT_ONCE)
            told = self._told[part] = self._ranking.explained(self._rows[some])
            for reason, level in zip(told, self._levels(some) if self._levels is not None else (), strict=False):
                reason["level"] = round(level, 4)
        return told[within]


class Reasons(Mapping[str, float]):
    """The terms of one row's score by name; worked out when it is first read."""

    __slots__ = ("_all", "_place")

    def __init__(self, every: _Explained, place: int) -> None:
        self._all, self._place = every, place

    def __getitem__(self, name: str) -> float:
        return self._all.of(self._place)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all.of(self._place))

    def __len__(self) -> int:
        return len(self._all.of(self._place))

    def whole(self) -> dict[str, float]:
        """All of them; in one look, where a mapping is asked for each of its names."""
        return dict(self._all.of(self._place))


class Contenders(Sequence[Contender]):
    """Rows that may be shown, in order. Of up to 200 a question a few are looked at, and each is made then."""

    def __init__(
        self,
        index: OwnerIndex,
        ranking: Ranking,
        rows: NDArray[np.intp],
        bands: Sequence[Band],
        levels: Callable[[slice], list[float]] | None = None,
    ) -> None:
        """``bands`` are those of the rows; ``levels`` gives the levels of some of them, which their reasons tell."""
        # Taken now: later the index may have grown.
        columns = index.rows
        ids, before = columns["id"], columns["previous"][rows]
        self._ids, self._kinds, self._asked = ids[rows], columns["kind"][rows], ids[before]
        self._follows = (self._kinds == MESSAGE) & (before != NOWHERE) & columns["asks"][before]
        self._scores, self._bands = ranking.total[rows], bands
        self._explained = _Explained(ranking, rows, levels)

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, place: int) -> Contender: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Contender, ...]: ...
    def __getitem__(self, place: int | slice) -> Contender | tuple[Contender, ...]:
        if isinstance(place, slice):
            return tuple(self._made(range(len(self))[place]))
        at = range(len(self))[place]
        return next(self._made(range(at, at + 1)))

    def __iter__(self) -> Iterator[Contender]:
        return self._made(range(len(self)))

    def _made(self, places: range) -> Iterator[Contender]:
        some = list(places)
        each = zip(
            some,
            self._ids[some].tolist(),
            self._kinds[some].tolist(),
            np.round(self._scores[some], 4).tolist(),
            self._asked[some].tolist(),
            self._follows[some].tolist(),
            strict=True,
        )
        for place, id_, kind, score, asked, answers in each:
            reasons = Reasons(self._explained, place)
            yield Contender(id_, KINDS[kind], score, self._bands[place], asked if answers else None, reasons)


@dataclass(frozen=True, slots=True)
class Judged:
    """The rows that may be shown, best first; the level of the question; ids left out, with reasons.

    ``fused`` says that other wordings of the question had a share in it, and the order is that of the findings.
    ``arms`` tell by arm what was looked at and what was found; ``nearest`` is the candidate nearest in meaning.
    """

    candidates: Sequence[Contender] = ()
    level: float | None = None
    left_out: tuple[tuple[int, str], ...] = ()
    fused: bool = False
    arms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    nearest: int | None = None


def visible(audience: int, room: Chat) -> bool:
    """Whether what has this audience may be used in a room: all of it in private, else the room's own."""
    return room.private or audience in {room.audience, EVERYWHERE}


def usable_rows(index: OwnerIndex, limits: Limits) -> Mask:
    """The rows that hold now and may be used in the room: the first filter, before anything is scored."""
    columns = index.rows
    usable = (columns["expires"] > limits.now.timestamp()) & (columns["id"] != limits.asked)
    if not limits.room.private:
        usable &= np.isin(columns["audience"], (limits.room.audience, EVERYWHERE))
    return np.asarray(usable)


class Rows(NamedTuple):
    """Masks over the rows of an index: the usable ones, and of these those that may be shown."""

    pool: Mask
    offered: Mask

    @classmethod
    def of(cls, index: OwnerIndex, question: Question, limits: Limits) -> Rows:
        """Those for a question.

        What is in front of the model already or rests is not to be shown, nor by the threshold what tells nothing.
        """
        pool = usable_rows(index, limits)
        offered = pool.copy()
        if limits.exclude and len(offered):
            ids, seen = index.rows["id"], np.fromiter(limits.exclude, np.int64, len(limits.exclude))
            at = np.minimum(ids.searchsorted(seen), len(ids) - 1)
            offered[at[ids[at] == seen]] = False
        if index.cold:
            offered &= ~index.resting(question.terms)
        return cls(pool, offered & telling(index, pool) if limits.threshold else offered)


def judge(
    index: OwnerIndex,
    question: Question,
    null: Null | None,
    foreign: Probes,
    limits: Limits,
    *,
    rows: Rows | None = None,
) -> Judged:
    """Rank the usable rows and band them against the null, which is there whenever a row tells something.

    ``rows`` are those of the question, where they are known already.
    """
    pool, offered = rows or Rows.of(index, question, limits)
    if not pool.any():
        return Judged()
    ranking = rank(index, question, pool, now=limits.now, background=foreign.background)
    if not limits.threshold:
        best = _first(ranking.total, offered)
        found = Contenders(index, ranking, best, ["full"] * len(best))
        return Judged(found, nearest=_nearest(index, ranking, best))
    best = _first(ranking.total, offered)
    if null is None or not len(best):
        return Judged()
    bar = null.bar(ranking.cosine)
    speaks = null.evidence(clues(index, question, ranking, foreign=foreign, now=limits.now))
    strongest = float(speaks[offered].max())
    in_time = rows_in_time(index, question, ranking, limits.now)
    most = bar.most(strongest, limits.false_positives, in_time=bool(in_time))
    bands: Sequence[Band | None] = bar.bands(strongest, speaks[best], limits.false_positives)
    if in_time:
        timely = map(in_time.get, best.tolist())
        bands = [by_time if by_time == "full" else band or by_time for by_time, band in zip(timely, bands, strict=True)]
    kept = _kept(bands, most)
    shown = best[kept]
    sure = [bands[place] or "perhaps" for place in kept]
    return Judged(
        Contenders(index, ranking, shown, sure, lambda some: bar.best.levels(speaks[shown[some]].tolist())),
        round(bar.best.level(strongest), 6),
        _left_out(index.rows["id"][best], bands, kept),
        arms=_arms(index, ranking, pool, shown),
        nearest=_nearest(index, ranking, shown),
    )


def _kept(bands: Sequence[Band | None], most: int | None) -> list[int]:
    """The places of what is shown; ``most`` bounds what is there perhaps."""
    shown = [place for place, band in enumerate(bands) if band is not None]
    if most is None or len(shown) <= most:
        return shown
    return shown[:most] + [place for place in shown[most:] if bands[place] != "perhaps"]


def _left_out(ids: NDArray[np.int64], bands: Sequence[Band | None], kept: Sequence[int]) -> tuple[tuple[int, str], ...]:
    """The best of those that are not shown, and why."""
    shown = set(kept)
    places = islice((place for place in range(len(bands)) if place not in shown), REASONS_KEPT)
    return tuple((int(ids[place]), "unrelated" if bands[place] is None else "unsure") for place in places)


def _nearest(index: OwnerIndex, ranking: Ranking, rows: NDArray[np.intp]) -> int | None:
    """The id of the row nearest in meaning, None where none of them has a vector."""
    cosine = ranking.cosine[rows]
    unknown = np.isnan(cosine)
    return None if unknown.all() else int(index.rows["id"][rows[np.where(unknown, -np.inf, cosine).argmax()]])


def _first(total: Column, offered: Mask) -> NDArray[np.intp]:
    """The offered rows with the highest totals, the best first and of equal ones the older."""
    places = np.flatnonzero(offered)
    if len(places) > MOST_CANDIDATES:
        least = np.partition(total[places], -MOST_CANDIDATES)[-MOST_CANDIDATES]
        places = places[total[places] >= least]
    return np.asarray(places[np.argsort(-total[places], kind="stable")][:MOST_CANDIDATES])


def _arms(index: OwnerIndex, ranking: Ranking, pool: Mask, offered: NDArray[np.intp]) -> dict[str, dict[str, float]]:
    """What each arm looked at, the best it found by words, by meaning and by time, and how many rows it offers."""
    told: dict[str, dict[str, float]] = {}
    kinds, in_time = index.rows["kind"], ranking.terms.get("date")
    offers = np.bincount(kinds[offered], minlength=len(KINDS)).tolist()
    for number, held in enumerate(np.bincount(kinds[pool], minlength=len(KINDS)).tolist()):
        if held:
            rows = pool & (kinds == number)
            cosine = float(np.fmax.reduce(ranking.cosine[rows]))
            told[ARMS[KINDS[number]]] = {
                "rows": held,
                "words": round(float(ranking.words.rows[rows].max()), 3),
                "cosine": 0.0 if math.isnan(cosine) else round(cosine, 3),
                "in_time": 0 if in_time is None else int(np.count_nonzero(in_time[rows] > 0)),
                "offered": offers[number],
            }
    return told


def clues(index: OwnerIndex, question: Question, ranking: Ranking, *, foreign: Probes, now: datetime) -> Clues:
    """What a question finds, for the judgement.

    Neither the names of those who talk count, which are everywhere, nor the words of a time: what was said then
    seldom says when. Where nothing is asked, nor do the words of small talk.
    """
    passing = [*index.speakers, *(span.words for span in question.spans)]
    empty = {term for words in passing for term in query_terms(words)}
    terms = [term for term in question.terms if term not in empty]
    counting = terms if question.asks else [term for term in terms if term not in foreign.idle]
    words = ranking.words
    if len(counting) < len(question.terms):
        words = heard(ranking.search, counting, terms, foreign.background)
    dated = question.dates or any(span.end <= now for span in question.spans)
    return Clues(
        words=words,
        cosine=ranking.cosine,
        terms=len(counting),
        usual=0.0 if question.usual is None else question.usual[0],
        timely=ranking.terms["date"] if dated else None,
        personal=question.personal or bool(mentioned(question.text, index.people)),
    )


def rows_in_time(index: OwnerIndex, question: Question, ranking: Ranking, now: datetime) -> dict[int, Band]:
    """The rows that a period in the question brings back by itself, and how surely.

    Events are found by time first; what was said in a short past period is offered as "perhaps".
    """
    if not question.spans:
        return {}
    hits = np.flatnonzero(ranking.terms["date"] > 0)
    past = question.asks and any(_narrow_past(span, now) for span in question.spans)
    kinds = index.rows["kind"]
    return {
        int(row): "full" if kinds[row] == EVENT else "perhaps"
        for row in hits
        if kinds[row] == EVENT or (past and kinds[row] == MESSAGE)
    }


def _narrow_past(span: Span, now: datetime) -> bool:
    return span.end <= now and span.end - span.start <= NARROW
