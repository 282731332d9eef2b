"""The foreign questions that ship with the program: their texts, their terms, and their vectors.

Everyday questions about somebody else's life, a hundred a language. What they find in a memory is what a
question finds that has nothing to do with it (:mod:`memory.threshold`). They are nobody's data.
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

from memory.embedding import Embeddings
from memory.lexical import Background
from memory.ports import EmbedderUnavailable, Vector
from memory.vectors import Matrix, unit_length, usable
from memory.words import query_terms

log = logging.getLogger(__name__)

WAIT_SECONDS: Final = 30.0
"""Longest that a recall waits for the questions to be embedded; once a model, then they are stored."""
RETRY_SECONDS: Final = 60.0
"""Pause before the embedder is asked again after it failed."""
_FULL_SCALE: Final = 127


@dataclass(frozen=True, slots=True)
class Probes:
    """Foreign questions of one language; ``vectors`` is (n, d) float32, None without an embedder."""

    texts: tuple[str, ...]
    terms: tuple[tuple[str, ...], ...]
    background: Background
    vectors: Matrix | None = None

    def others(self, terms: tuple[str, ...]) -> Background:
        """The background of one of them: all the others."""
        holding = {term: self.background.holding[term] - 1 for term in terms}
        return Background(self.background.count - 1, holding)

    def usual(self, vector: Vector | None) -> tuple[float, float] | None:
        """Mean and deviation of a vector's cosines with the probes: what unrelated texts give."""
        if vector is None or self.vectors is None or vector.shape != self.vectors.shape[1:]:
            return None
        cosines = self.vectors @ vector
        return float(cosines.mean()), float(cosines.std())


@cache
def probe_texts(language: str) -> tuple[str, ...]:
    """The shipped questions of "zh" or "en"."""
    text = resources.files("memory").joinpath("probes", f"{language}.txt").read_text("utf-8")
    return tuple(line for line in text.splitlines() if line.strip())


def probes(language: str, vectors: Matrix | None = None) -> Probes:
    """The shipped questions made ready; a row of ``vectors`` that is no vector counts for nothing."""
    good = None
    if vectors is not None and len(vectors):
        kept = vectors[usable(vectors)]
        good = kept if len(kept) else None
    return replace(_without_vectors(language), vectors=good)


@cache
def _without_vectors(language: str) -> Probes:
    texts = probe_texts(language)
    terms = tuple(tuple(query_terms(text)) for text in texts)
    return Probes(texts, terms, Background(len(texts), Counter(chain.from_iterable(terms))))


def packed(model: str, texts: Sequence[str], vectors: Sequence[Vector]) -> Iterator[str]:
    """JSON lines that ship the vectors of one model, one byte a number: what :func:`shipped_vectors` reads."""
    for text, vector in zip(texts, vectors, strict=True):
        whole = np.rint(vector * (_FULL_SCALE / np.abs(vector).max())).astype(np.int8)
        yield json.dumps(
            {"model": model, "text": text, "vector": base64.b64encode(whole.tobytes()).decode()}, ensure_ascii=False
        )


@cache
def shipped_vectors(model: str, language: str) -> Matrix | None:
    """The vectors that ship for a model, in the order of :func:`probe_texts`; None if any is missing."""
    found: dict[str, bytes] = {}
    for file in resources.files("memory").joinpath("probes").iterdir():
        if file.name.endswith(".jsonl"):
            rows = map(json.loads, file.read_text("utf-8").splitlines())
            found |= {row["text"]: base64.b64decode(row["vector"]) for row in rows if row["model"] == model}
    if not all(text in found for text in probe_texts(language)):
        return None
    whole = np.stack([np.frombuffer(found[text], np.int8) for text in probe_texts(language)])
    return unit_length(whole.astype(np.float32))


class Shipped:
    """The questions, with vectors of the embedder's model: shipped ones, or as soon as it gives them."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._ready: dict[tuple[str, str], Probes] = {}
        self._retry_at = 0.0
        self._lock = asyncio.Lock()

    async def probes(self, language: str) -> Probes:
        """The questions of a language; without vectors while there is no embedder that answers."""
        model = self._embeddings.model
        if model is None:
            return probes(language)
        async with self._lock:
            if (language, model) not in self._ready and time.monotonic() >= self._retry_at:
                await self._fetch(language, model)
            return self._ready.get((language, model)) or probes(language)

    async def _fetch(self, language: str, model: str) -> None:
        vectors = shipped_vectors(model, language)
        if vectors is None:
            try:
                vectors = await asyncio.wait_for(self._embeddings.probes(probe_texts(language)), WAIT_SECONDS)
            except (EmbedderUnavailable, TimeoutError) as error:
                log.warning("the shipped questions have no vectors yet (%s): recall is judged by words", error)
                self._retry_at = time.monotonic() + RETRY_SECONDS
                return
        self._ready[language, model] = probes(language, vectors)
