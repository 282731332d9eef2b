"""Finds what a model quotes in what was really said, and the smallest clause that carries a memory."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final

from memory.words import terms

LIKE_ENOUGH: Final = 0.75
"""Share of matching characters from which a clause is what a slightly wrong quote meant. Set by hand: it bears
a changed word or particle in a clause of ten characters, and no other clause."""

ENOUGH: Final = 2 / 3
"""Share of the common words that a clause has to hold to carry a claim."""
LONGEST_RUN: Final = 6
"""Clauses in a row that are tried; a claim spread wider keeps the whole quote."""

_BREAK: Final = re.compile(
    r"[。！？!?;；\n…]+|[，,.．](?!\d)+|\s(?=but\b|and (?:I|my|we)\b|because\b)|(?=但是|但我|不过|而且|因为)",
    re.IGNORECASE,
)
_INNER: Final = ".,:/-"


def locate(quote: str, said: str) -> str | None:
    """Return the words of ``said`` that ``quote`` stands for, grown to whole words; None when there are none.

    Case, width, spaces and punctuation do not count. A quote that is slightly off gives the clause it is
    nearest to, in the person's own words.
    """
    wanted = "".join(mark for mark, _ in _letters(quote))
    if not wanted:
        return None
    letters = list(_letters(said))
    place = "".join(mark for mark, _ in letters).find(wanted)
    if place >= 0:
        return said[slice(*_grown(said, letters[place][1], letters[place + len(wanted) - 1][1] + 1))]
    return _nearest(wanted, clauses(said))


def clauses(said: str) -> list[str]:
    """Cut a message into clauses, at punctuation and where another thought is joined on."""
    bounds = [0, *(place for cut in _BREAK.finditer(said) for place in cut.span()), len(said)]
    pieces = (said[start:end].strip() for start, end in pairwise(bounds))
    return [piece for piece in pieces if any(mark.isalnum() for mark in piece)]


def narrow(said: str, claim: str) -> str:
    """Return the shortest run of clauses of ``said`` that carries ``claim``.

    It carries it if it holds every number and ENOUGH of the words that the whole shares with the claim. One Han
    character alone shares nothing. Where nothing is shared (a paraphrase) the whole stays.
    """
    wanted = _telling(claim) & _telling(said)
    if not wanted:
        return said.strip()
    bounds = list(_clause_bounds(said))
    runs = ((first[0], last[1]) for place, first in enumerate(bounds) for last in bounds[place : place + LONGEST_RUN])
    carrying = [said[start:end] for start, end in runs if _carries(said[start:end], wanted)]
    return min(carrying, key=len, default=said.strip())


def _carries(clause: str, wanted: frozenset[str]) -> bool:
    held = wanted & _telling(clause)
    return len(held) >= ENOUGH * len(wanted) and all(term in held for term in wanted if term.isdigit())


def _clause_bounds(said: str) -> Iterator[tuple[int, int]]:
    position = 0
    for piece in clauses(said):
        start = said.index(piece, position)
        position = start + len(piece)
        yield start, position


def _telling(text: str) -> frozenset[str]:
    return frozenset(term for term in terms(text) if len(term) > 1 or term.isdigit())


def _letters(text: str) -> Iterator[tuple[str, int]]:
    """Yield what counts of a text, each mark with the place it comes from."""
    for place, original in enumerate(text):
        for mark in unicodedata.normalize("NFKC", original).casefold():
            if not mark.isspace() and not unicodedata.category(mark).startswith(("P", "C")):
                yield mark, place


def _grown(said: str, start: int, end: int) -> tuple[int, int]:
    """Grow a stretch until it cuts no word and no number: "5" found inside "3.5" is "3.5"."""
    while start > 0 and _joined(said, start):
        start -= 1
    while end < len(said) and _joined(said, end):
        end += 1
    return start, end


def _joined(said: str, place: int) -> bool:
    """Whether the marks on both sides of ``place`` belong to one word or number."""
    left, right = said[place - 1], said[place]
    if _wordlike(left) and _wordlike(right):
        return True
    before, after = said[place - 2 : place - 1], said[place + 1 : place + 2]
    return (left.isdigit() and right in _INNER and after.isdigit()) or (
        right.isdigit() and left in _INNER and before.isdigit()
    )


def _wordlike(mark: str) -> bool:
    return mark.isalnum() and not "\u3040" <= mark <= "\u9fff"


def _nearest(wanted: str, pieces: list[str]) -> str | None:
    best, likeness = None, LIKE_ENOUGH
    for piece in pieces:
        matcher = SequenceMatcher(None, "".join(mark for mark, _ in _letters(piece)), wanted, autojunk=False)
        if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < likeness:
            continue
        ratio = matcher.ratio()
        if ratio >= likeness:
            best, likeness = piece, ratio
    return best
