"""What ships with the program to judge a memory by: texts, their terms, and their vectors. They are nobody's data.

Everyday questions about somebody else's life, a hundred a language: what they find in a memory is what a
question finds that has nothing to do with it (:mod:`memory.threshold`). Sixty things somebody else may have
told: how near a question comes to them is how near it comes to anything. And sixty pieces of small talk, which
with these show what mere talk finds.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory.embedding import Embeddings
from memory.lexical import Background
from memory.ports import EmbedderUnavailable, Vector
from memory.vectors import Matrix, unit_length, usable
from memory.words import query_terms, terms

Column = NDArray[np.float64]

log = logging.getLogger(__name__)

WAIT_SECONDS: Final = 30.0
"""Longest wait for the questions to be embedded, behind the replies; once a model, then they are stored."""
RETRY_SECONDS: Final = 60.0
"""Pause before the embedder is asked again after it failed."""
_FULL_SCALE: Final = 127
_SHARED: Final = 2


@dataclass(frozen=True, slots=True)
class Lot:
    """Messages by their terms and, of these, the ones that count; ``vectors`` are (n, d), None without an embedder.

    ``usual`` is the mean of :meth:`Probes.usual` for each message that has a vector.
    """

    terms: tuple[tuple[str, ...], ...]
    counting: tuple[tuple[str, ...], ...]
    vectors: Matrix | None = None
    usual: Column | None = None


@dataclass(frozen=True, slots=True)
class Probes:
    """What foreign people say in one language: ``asked`` are questions, ``talk`` is talk that asks nothing.

    ``told`` are the vectors of their statements, (n, d) float32, None without an embedder; ``idle`` are the words of
    small talk and the everyday ones of the language, which say nothing where nothing is asked.
    """

    asked: Lot
    talk: Lot
    background: Background
    idle: frozenset[str]
    told: Matrix | None = None

    def others(self, terms: tuple[str, ...]) -> Background:
        """The background of one of them: all the others."""
        holding = {term: self.background.holding[term] - 1 for term in terms}
        return Background(self.background.count - 1, holding)

    def usual(self, vector: Vector | None) -> tuple[float, float] | None:
        """Mean and deviation of a question's cosines with the foreign statements: what unrelated rows give."""
        if vector is None or self.told is None or vector.shape != self.told.shape[1:]:
            return None
        cosines = self.told @ vector
        return float(cosines.mean()), float(cosines.std())


@cache
def probe_texts(language: str) -> tuple[str, ...]:
    """The shipped questions of "zh" or "en"."""
    return _lines(f"{language}.txt")


@cache
def told_texts(language: str) -> tuple[str, ...]:
    """The shipped statements of "zh" or "en"."""
    return _lines(f"told_{language}.txt")


@cache
def talk_texts(language: str) -> tuple[str, ...]:
    """The shipped small talk of "zh" or "en"."""
    return _lines(f"talk_{language}.txt")


@cache
def everyday(language: str) -> frozenset[str]:
    """The terms of the words of "zh" or "en" that stand in talk about anything: what is left of it is its topic."""
    return frozenset(
        term for line in _lines(f"everyday_{language}.txt") for word in line.split() for term in terms(word)
    )


def shipped_texts(language: str) -> tuple[str, ...]:
    """All that ships in a language: the questions, then the statements, then the small talk."""
    return probe_texts(language) + told_texts(language) + talk_texts(language)


def _lines(name: str) -> tuple[str, ...]:
    text = resources.files("memory").joinpath("probes", name).read_text("utf-8")
    return tuple(line for line in text.splitlines() if line.strip())


def probes(language: str, vectors: Matrix | None = None) -> Probes:
    """The shipped texts made ready, with their ``vectors`` in the order of :func:`shipped_texts`.

    A row that is no vector counts for nothing, and so do all when the questions or the statements have none.
    """
    bare = _without_vectors(language)
    if vectors is None or not len(vectors):
        return bare
    ends = np.cumsum([len(probe_texts(language)), len(told_texts(language))])
    asked, told, talk = (part[usable(part)] for part in np.split(vectors, ends))
    if not len(asked) or not len(told):
        return bare
    said = np.concatenate((told, talk)) if len(talk) else None
    return replace(bare, asked=_with(bare.asked, asked, told), talk=_with(bare.talk, said, told), told=told)


def _with(lot: Lot, vectors: Matrix | None, told: Matrix) -> Lot:
    """A lot with its vectors, and with what they have with those of any statement."""
    if vectors is None:
        return lot
    return replace(lot, vectors=vectors, usual=np.asarray((vectors @ told.T).mean(axis=1), dtype=np.float64))


@cache
def _without_vectors(language: str) -> Probes:
    asked, told, talk = (
        tuple(tuple(query_terms(text)) for text in texts)
        for texts in (probe_texts(language), told_texts(language), talk_texts(language))
    )
    background = Background(len(shipped_texts(language)), Counter(chain(*asked, *told, *talk)))
    idle = Counter(chain(*talk))
    # Of a piece of small talk itself, the words that another one holds.
    common = everyday(language)
    bare = tuple(tuple(term for term in held if idle[term] < _SHARED and term not in common) for held in talk)
    stated = tuple(tuple(term for term in held if term not in idle and term not in common) for held in told)
    return Probes(Lot(asked, asked), Lot(told + talk, stated + bare), background, common.union(idle))


def packed(model: str, texts: Sequence[str], vectors: Sequence[Vector]) -> Iterator[str]:
    """JSON lines that ship the vectors of one model, one byte a number: what :func:`shipped_vectors` reads."""
    for text, vector in zip(texts, vectors, strict=True):
        whole = np.rint(vector * (_FULL_SCALE / np.abs(vector).max())).astype(np.int8)
        yield json.dumps(
            {"model": model, "text": text, "vector": base64.b64encode(whole.tobytes()).decode()}, ensure_ascii=False
        )


@cache
def shipped_vectors(model: str, language: str) -> Matrix | None:
    """The vectors that ship for a model, in the order of :func:`shipped_texts`; None if any is missing."""
    found: dict[str, bytes] = {}
    for file in resources.files("memory").joinpath("probes").iterdir():
        if file.name.endswith(".jsonl"):
            rows = map(json.loads, file.read_text("utf-8").splitlines())
            found |= {row["text"]: base64.b64decode(row["vector"]) for row in rows if row["model"] == model}
    if not all(text in found for text in shipped_texts(language)):
        return None
    whole = np.stack([np.frombuffer(found[text], np.int8) for text in shipped_texts(language)])
    return unit_length(whole.astype(np.float32))


class Shipped:
    """The questions, with vectors of the embedder's model: shipped ones, or as soon as it gives them."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._ready: dict[tuple[str, str], Probes] = {}
        self._retry_at = 0.0
        self._lock = asyncio.Lock()

    def probes(self, language: str) -> Probes:
        """The questions of a language, with the vectors that are at hand: recall never waits for an embedder."""
        model = self._embeddings.model
        if model is None:
            return probes(language)
        if (language, model) not in self._ready and (vectors := shipped_vectors(model, language)) is not None:
            self._ready[language, model] = probes(language, vectors)
        return self._ready.get((language, model)) or probes(language)

    def centre(self) -> Vector | None:
        """The mean of all that ships, in both languages: what sealed vectors are coded around. None without vectors."""
        both = [self.probes(language) for language in ("zh", "en")]
        parts = [part for each in both for part in (each.asked.vectors, each.talk.vectors, each.told)]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return np.asarray(np.concatenate(known).mean(axis=0), dtype=np.float32)

    async def fetch(self, language: str) -> None:
        """Have the vectors made that do not ship, once a model; a failure is tried again a minute later."""
        model = self._embeddings.model
        async with self._lock:
            if model is None or self.probes(language).told is not None or time.monotonic() < self._retry_at:
                return
            try:
                vectors = await asyncio.wait_for(self._embeddings.probes(shipped_texts(language)), WAIT_SECONDS)
            except (EmbedderUnavailable, TimeoutError) as error:
                log.warning("the shipped questions have no vectors yet (%s): recall is judged by words", error)
                self._retry_at = time.monotonic() + RETRY_SECONDS
            else:
                self._ready[language, model] = probes(language, vectors)
