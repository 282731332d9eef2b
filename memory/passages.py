"""Long texts: cut into chunks that are found by their meaning, and told by a gist or the passage that was hit. Pure.

A text is cut where sentences end, else where clauses or words do, else between two signs; nothing is rewritten.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Final

import regex

from memory.rules import is_small_talk
from memory.words import terms

Span = tuple[int, int]
"""Where a part of a text begins and ends, in characters, half-open."""

WHOLE_BYTES: Final = 1_200
"""Bytes of UTF-8 up to which one vector stands for a whole text. Bytes follow tokens in Chinese and English alike
(MODELS, section 1), and with a speaker's name before it this stays under the 1,500 that the bundled embedder reads;
endpoints read more."""
CHUNK_BYTES: Final = 1_000
"""Bytes of a chunk at most: some 330 Han characters or 170 English words."""
OVERLAP_BYTES: Final = 160
"""Bytes that a chunk may share with the one before it, a sentence or two: what spans a border is found whole."""

LONG: Final = 200
"""Characters from which a text is told by its gist."""
GIST: Final = 100
"""Characters of a gist at most; what is cut off is marked with "…"."""
BRIEF: Final = 12
"""Characters under which a sentence is a heading or an exclamation and takes the next one along."""
PASSAGE: Final = 400
"""Characters of a passage that was hit by its words, at most."""

# Signs after which an initial or an abbreviation goes on: "Dr. Smith", "J. R. Hartley".
_ABBREVIATED: Final = r"(?<!\b(?:Mrs?|Ms|Dr|Prof|St|Mt|Jr|Sr|vs|etc|approx|No|e\.g|i\.e|\p{Lu}))"
_CLOSE: Final = r"[\p{Pe}\p{Pf}\"']"
_SENTENCE_END: Final = regex.compile(
    rf"(?:[。！？｡…‥]+{_CLOSE}*|{_ABBREVIATED}[\p{{SB=STerm}}\p{{SB=ATerm}}]+{_CLOSE}*(?=\s|$))\s*|\n\s*"
)
_CLAUSE_END: Final = regex.compile(r"[，；：、]|[,;:)\u2014](?=\s)\s*")
_WORD_END: Final = regex.compile(r"\s+")
_SIGN: Final = regex.compile(r"\X")
_RANKS: Final = (_SENTENCE_END, _CLAUSE_END, _WORD_END, _SIGN)


def chunks(text: str) -> list[Span]:
    """The overlapping parts of a text too long for one vector, in order; none for any other text."""
    sizes = [0, *accumulate(len(sign.encode("utf-8", "replace")) for sign in text)]
    if sizes[-1] <= WHOLE_BYTES:
        return []
    borders = _borders(text)
    made: list[Span] = []
    start, stop = 0, 0
    while stop < len(text):
        stop = bisect_right(sizes, sizes[start] + CHUNK_BYTES) - 1
        if stop < len(text):
            # No chunk is shorter than half of what it may be, so that each goes on from the one before it.
            stop = _last(borders, bisect_left(sizes, sizes[start] + CHUNK_BYTES // 2), stop)
        made.append((start, stop))
        start = _first(borders, bisect_left(sizes, sizes[stop] - OVERLAP_BYTES), stop)
    return [(start, stop) for start, stop in made if text[start:stop].strip()]


def sentences(text: str, within: Span | None = None) -> list[Span]:
    """The sentences of a text, or of a part of it; they leave nothing out."""
    start, stop = within or (0, len(text))
    ends = [match.end() for match in _SENTENCE_END.finditer(text, start, stop)]
    return [(first, last) for first, last in pairwise(dict.fromkeys((start, *ends, stop))) if text[first:last].strip()]


def gist(text: str, nearest: Span | None = None) -> str:
    """One line for a long text: its first sentence that tells something, or that of the part nearest in meaning.

    Greetings and thanks tell nothing, and what is as short as a heading takes the next sentence along. What is left
    out before or behind it is marked with "…".
    """
    found = sentences(text, nearest)
    telling = [span for span in found if not is_small_talk(text[slice(*span)].strip())] or [(0, len(text))]
    start = telling[0][0]
    stop = next((stop for _, stop in telling if stop - start >= BRIEF), telling[-1][1])
    if stop - start > GIST:
        stop = _last(_borders(text[start : start + GIST]), GIST // 2, GIST) + start
    return _marked(text, start, stop, told=bool(text[:start].strip()) and nearest is not None)


def passage(text: str, rare: frozenset[str], nearest: Span | None) -> str:
    """The part of a text that was hit: the sentences around the one with most of the ``rare`` terms, else ``nearest``.

    Sentences before and behind are added in turn while they fit :data:`PASSAGE`.
    """
    found = sentences(text)
    held = [len(rare.intersection(terms(text[slice(*span)]))) for span in found]
    if not any(held):
        start, stop = nearest or (0, len(text))
        return _marked(text, start, stop, told=bool(text[:start].strip()))
    first = last = held.index(max(held))
    first, last = _around(found, held.index(max(held)))
    start, stop = found[first][0], found[last][1]
    if stop - start > PASSAGE:
        stop = start + _last(_borders(text[start : start + PASSAGE]), PASSAGE // 2, PASSAGE)
    return _marked(text, start, stop, told=bool(text[:start].strip()))


def _around(found: Sequence[Span], place: int) -> tuple[int, int]:
    """The first and the last of the sentences that fit a passage together with that at ``place``, by turns."""
    first = last = place
    for _ in found:
        if last + 1 < len(found) and found[last + 1][1] - found[first][0] <= PASSAGE:
            last += 1
        if first and found[last][1] - found[first - 1][0] <= PASSAGE:
            first -= 1
    return first, last


def _marked(text: str, start: int, stop: int, *, told: bool) -> str:
    """A part of a text on one line, "…" behind it, and before it where ``told``, for what is left out."""
    part = " ".join(text[start:stop].split())
    return f"{'…' if told else ''}{part}{'…' if text[stop:].strip() else ''}"


def _borders(text: str) -> list[list[int]]:
    """Where a text may be cut, the best kind of place first."""
    return [[match.end() for match in rank.finditer(text)] for rank in _RANKS]


def _last(borders: Sequence[Sequence[int]], low: int, high: int) -> int:
    """The last border of the best kind from ``low`` to ``high``, or ``high``."""
    for rank in borders:
        place = bisect_right(rank, high) - 1
        if place >= 0 and rank[place] >= low:
            return rank[place]
    return high


def _first(borders: Sequence[Sequence[int]], low: int, high: int) -> int:
    """The first border of the best kind from ``low`` and before ``high``, or ``high``."""
    for rank in borders:
        place = bisect_left(rank, low)
        if place < len(rank) and rank[place] < high:
            return rank[place]
    return high
