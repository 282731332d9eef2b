"""How well this very memory tells what it was told from what it was not: levels, never anybody's words.

Its own questions are what it was told, asked in half the words: easier than what people ask. The foreign ones are
those that ship, each half of them judged against what the other half finds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from config.templates import written
from memory.index import NOWHERE, OwnerIndex
from memory.judge import Limits, judge, usable_rows
from memory.lexicon import asked_in
from memory.model import Account
from memory.offloop import off_loop
from memory.ports import Vector
from memory.score import Question
from memory.shipped import Lot, Probes
from memory.stores import Stores
from memory.threshold import NOTHING_BELOW, Null, measure, telling
from memory.words import query_terms

MOST_ROWS: Final = 100
"""Rows that are asked for, spread evenly over the memory."""
_PIECE: Final = re.compile(r"[\u3400-\u9fff]{1,2}|[^\W_\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Calibration:
    """Levels of own and foreign questions in a memory of ``rows`` rows, ``vectors`` of them with a vector.

    ``floor`` is the level under which nothing is shown, ``sure`` the one from which all that fits is.
    """

    rows: int
    vectors: int
    own: tuple[float, ...]
    foreign: tuple[float, ...]
    floor: float
    sure: float


async def calibrate(
    owner: Account, index: OwnerIndex, stores: Stores, foreign: Mapping[str, Probes], limits: Limits
) -> Calibration:
    """Measure a memory; ``foreign`` are the shipped texts by language. Raises EmbedderUnavailable."""
    pool = usable_rows(index, limits)
    tells = np.flatnonzero(telling(index, pool))
    rows, vectors = int(np.count_nonzero(pool)), int(np.count_nonzero(pool & (index.rows["vector"] != NOWHERE)))
    bare = Calibration(rows, vectors, (), (), NOTHING_BELOW, 1 - limits.false_positives)
    if not len(tells):
        return bare
    spread = tells[:: max(len(tells) // MOST_ROWS, 1)]
    texts = await _halves(owner, stores, index, spread)
    asked = [(text, await stores.embeddings.query(owner, text)) for text in texts]

    def work() -> Calibration:
        nulls = {language: measure(index, probes, pool) for language, probes in foreign.items()}
        own: list[float] = []
        for text, vector in asked:
            tongue = asked_in(text)
            question = Question(text, tuple(query_terms(text)), vector, usual=foreign[tongue].usual(vector))
            own.append(_level(index, question, nulls[tongue], foreign[tongue], limits))
        others = crossed(index, foreign[written(owner.language)], limits)
        return replace(bare, own=tuple(own), foreign=tuple(others))

    questions = len(texts) + sum(len(probes.asked.terms) for probes in foreign.values())
    return await off_loop(work, size=rows * questions)


def crossed(index: OwnerIndex, foreign: Probes, limits: Limits) -> list[float]:
    """The levels of the shipped questions, each half judged against what the other half finds."""
    pool = usable_rows(index, limits)
    levels: list[float] = []
    for half in (0, 1):
        null = measure(index, replace(foreign, asked=_every_second(foreign.asked, 1 - half)), pool)
        lot = _every_second(foreign.asked, half)
        vectors: Sequence[Vector | None] = [None] * len(lot.terms) if lot.vectors is None else list(lot.vectors)
        for terms, vector in zip(lot.terms, vectors, strict=False):
            question = Question("", terms, vector, usual=foreign.usual(vector))
            levels.append(_level(index, question, null, replace(foreign, background=foreign.others(terms)), limits))
    return levels


def half_of(text: str) -> str:
    """Every second word of a text, for Han every second pair of characters."""
    return " ".join(_PIECE.findall(text)[::2])


async def _halves(owner: Account, stores: Stores, index: OwnerIndex, rows: NDArray[np.intp]) -> list[str]:
    """What rows say, each in half the words."""
    ids = [int(id_) for id_ in index.rows["id"][rows]]
    said = [line.text for line in (await stores.journal.lines(owner, ids)).values()]
    for store in stores.entries:
        said += [entry.text for entry in (await store.get(owner, ids)).values()]
    return [half for half in map(half_of, said) if half]


def _level(index: OwnerIndex, question: Question, null: Null, foreign: Probes, limits: Limits) -> float:
    return judge(index, question, null, foreign, limits).level or 0.0


def _every_second(lot: Lot, first: int) -> Lot:
    """Half of a lot; without vectors when one of its messages has none."""
    vectors, usual = lot.vectors, lot.usual
    if vectors is None or usual is None or len(vectors) < len(lot.terms):
        return Lot(lot.terms[first::2], lot.counting[first::2])
    return Lot(lot.terms[first::2], lot.counting[first::2], vectors[first::2], usual[first::2])
