"""The control: plain BM25 over single messages, with nothing of ours in it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import Stemmer

K1: Final = 1.2
B: Final = 0.4
NAME: Final = f"BM25, k1 {K1}, b {B}, one message a unit; English stems, Chinese characters and pairs"

_STOP: Final = frozenset(
    re.findall(
        r"\w+",
        "a an the of to in on at is are was were be been do does did and or for with by from that this it its as "
        "what when where who whom which why how has have had he she they his their i you your my me we our us "
        "would could should can will not no",
    )
)
_RUNS: Final = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]+")
_STEM: Final = Stemmer.Stemmer("english").stemWord


def tokens(text: str) -> list[str]:
    """Stems of English words without stop words; single characters and adjacent pairs of Chinese."""
    found: list[str] = []
    for run in _RUNS.findall(text.lower()):
        if run.isascii():
            found += [] if run in _STOP else [_STEM(run)]
        else:
            found += [*run, *map("".join, pairwise(run))]
    return found


class BM25:
    """BM25 over a list of texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = [Counter(tokens(text)) for text in texts]
        self._lengths = [counts.total() for counts in self._counts]
        self._mean = sum(self._lengths) / (len(texts) or 1) or 1.0
        self._holding = Counter(term for counts in self._counts for term in counts)

    def order(self, question: str) -> list[int]:
        """Places of all texts, best first; equal scores in the order of the texts."""
        terms = set(tokens(question))
        idf = {term: self._idf(self._holding[term]) for term in terms if term in self._holding}
        scores = [self._score(idf, place) for place in range(len(self._counts))]
        return sorted(range(len(scores)), key=lambda place: -scores[place])

    def _score(self, idf: dict[str, float], place: int) -> float:
        counts = self._counts[place]
        damping = K1 * (1 - B + B * self._lengths[place] / self._mean)
        return sum(weight * counts[t] * (K1 + 1) / (counts[t] + damping) for t, weight in idf.items() if t in counts)

    def _idf(self, holding: int) -> float:
        return math.log1p((len(self._counts) - holding + 0.5) / (holding + 0.5))
