"""Which memories lie near each other in meaning: by vectors, held against what foreign statements give."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import numpy as np

from memory.embedding import Embeddings
from memory.model import Account, Entry
from memory.offloop import off_loop
from memory.ports import EmbedderUnavailable
from memory.script import language
from memory.shipped import probe_texts, shipped_vectors, told_texts
from memory.vectors import Matrix, unit_length, usable

log = logging.getLogger(__name__)

Near = Mapping[frozenset[int], float]
"""Nearness of two memories by their ids: above 0, more is nearer. A pair that is not there is not near."""

CUT: Final = 1.0
"""Deviations above the mean of the foreign statements from which a memory is near.

Measured with the bundled model on the 76 pairs of tests/cases/one_subject.jsonl (34 en, 34 zh, 8 in both languages),
each later sentence against all earlier ones: it keeps .94 of the en, all of the zh and all of the cross-language
pairs, and lets .20 of the foreign en and zh ones through (.40 across languages). At 0.5 it is .97 of en for .35 of
the foreign ones, at 2.0 .82. A cosine alone would not do: unrelated sentences of this model have .83 (en) and .86
(zh), and other models have other levels."""
NEAREST: Final = 5
"""Kept for one new memory of what is in its own language. Of the pairs above the right one is among the nearest four
for .97 (en) and 1.0 (zh); one more, because the nearest may be no question."""
NEAREST_FOREIGN: Final = 2
"""Of what is in the other language: there the right one was the nearest of 42 for all 8 pairs, both ways."""
_LEAST: Final = 1e-6
"""Deviation of statements that all lie equally far, as those of a scripted model do."""


class Nearness:
    """Compares an owner's memories; their waiting texts are embedded first, journal lines and all in one batch."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._foreign: dict[tuple[str, str], Matrix] = {}

    async def among(self, owner: Account, new: Sequence[Entry], known: Sequence[Entry]) -> Near:
        """Return the nearest of ``known`` to each of ``new``; nothing without an embedder, or when it fails."""
        if self._embeddings.model is None:
            return {}
        try:
            await self._embeddings.fill(owner)
            vectors = await self._embeddings.of(owner, {entry.text for entry in (*new, *known)})
            told = {tongue: await self._told(tongue) for tongue in ("zh", "en")}
        except EmbedderUnavailable as error:
            log.info("new memories are compared by their words alone: %s", error)
            return {}
        size = len(new) * len(known)
        return await off_loop(lambda: dict(_nearest(new, known, vectors, told)), size=size)

    async def _told(self, tongue: str) -> Matrix:
        """Unit vectors of the foreign statements of a language: shipped ones, else asked for once a model."""
        model = self._embeddings.model or ""
        shipped = shipped_vectors(model, tongue)
        if shipped is not None:
            return shipped[len(probe_texts(tongue)) :]
        if (model, tongue) in self._foreign:
            return self._foreign[model, tongue]
        rows = await self._embeddings.probes(told_texts(tongue))
        told = unit_length(rows[usable(rows)])
        if len(told) == len(rows):
            self._foreign[model, tongue] = told
        return told


def _nearest(
    new: Sequence[Entry], known: Sequence[Entry], vectors: Mapping[str, Matrix], told: Mapping[str, Matrix]
) -> Iterator[tuple[frozenset[int], float]]:
    tongues: dict[str, list[Entry]] = defaultdict(list)
    for entry in known:
        if entry.text in vectors:
            tongues[language(entry.text) or "en"].append(entry)
    for tongue, entries in tongues.items():
        matrix, foreign = unit_length(np.stack([vectors[entry.text] for entry in entries])), told[tongue]
        for one in new:
            most = NEAREST if (language(one.text) or "en") == tongue else NEAREST_FOREIGN
            vector = vectors.get(one.text)
            if vector is None or not len(foreign):
                continue
            usual = foreign @ vector
            scores = (matrix @ vector - usual.mean()) / max(float(usual.std()), _LEAST)
            others = (place for place in np.argsort(-scores, kind="stable") if entries[place].id != one.id)
            for place in islice(others, most):
                if scores[place] >= CUT:
                    yield frozenset({one.id, entries[place].id}), float(scores[place])
