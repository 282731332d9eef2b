"""Recall at k and within a token budget, from the ids that each shown unit carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import Final

RANKS: Final = (1, 5, 10, 20)
BUDGETS: Final = (500, 1000)
COLUMNS: Final = (*(f"R@{k}" for k in RANKS), "hit@10", "MRR", *(f"T@{b}" for b in BUDGETS))

_TOKENS_A_WORD: Final = 1.3
_TOKENS_A_CHARACTER: Final = 0.7


@dataclass(frozen=True, slots=True)
class Shown:
    """One unit of an answer: the ids it is or cites, and its tokens as shown."""

    ids: tuple[str, ...]
    tokens: float


def estimated_tokens(text: str, language: str) -> float:
    """Tokens of a text for comparing systems: words x 1.3 in English, characters x 0.7 in Chinese."""
    if language.startswith("zh"):
        return len(text) * _TOKENS_A_CHARACTER
    return len(text.split()) * _TOKENS_A_WORD


@dataclass(frozen=True, slots=True)
class Found:
    """Where the pieces of evidence of one question were found.

    ``places`` count from 0, ``spent`` are the tokens up to and including each, ``groups`` is how many pieces there are.
    """

    places: tuple[int, ...]
    spent: tuple[float, ...]
    groups: int

    def within(self, *, places: float = inf, tokens: float = inf) -> float:
        """The share of the pieces that were found in so many places and tokens."""
        pairs = zip(self.places, self.spent, strict=True)
        return sum(place < places and spent <= tokens for place, spent in pairs) / self.groups


def find(shown: Sequence[Shown], groups: Sequence[Sequence[str]], *, heading: float = 0.0) -> Found:
    """Find the evidence of one question; ``groups`` are its pieces, ``heading`` tokens before the list.

    A group has the rank of the first unit that carries one of its ids. The first unit that does not fit
    a budget ends the list.
    """
    places = [place for place in (_place(shown, group) for group in groups) if place is not None]
    spent = list(accumulate((unit.tokens for unit in shown), initial=heading))[1:]
    return Found(tuple(places), tuple(spent[place] for place in places), len(groups))


def score(found: Found) -> dict[str, float]:
    """The metrics of one question, 0 to 1."""
    row = {f"R@{k}": found.within(places=k) for k in RANKS}
    row["hit@10"] = float(found.within(places=10) > 0)
    row["MRR"] = 1 / (1 + min(found.places)) if found.places else 0.0
    return row | {f"T@{b}": found.within(tokens=b) for b in BUDGETS}


def first(shown: Sequence[Shown], new: Sequence[str], old: Sequence[str]) -> bool:
    """Whether one of the ``new`` ids is shown, and before all of the ``old`` ones."""
    newest, oldest = _place(shown, new), _place(shown, old)
    return newest is not None and (oldest is None or newest < oldest)


def curve(found: Sequence[Found], *, places: Sequence[int] = (), tokens: Sequence[int] = ()) -> list[float]:
    """Mean recall, in per cent, within each of so many places, or of so many tokens."""
    steps = [{"places": k} for k in places] + [{"tokens": b} for b in tokens]
    return [100 * sum(each.within(**step) for each in found) / (len(found) or 1) for step in steps]


def mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean over questions, in per cent."""
    return {name: round(100 * sum(row[name] for row in rows) / len(rows), 1) for name in COLUMNS}


def _place(shown: Sequence[Shown], group: Sequence[str]) -> int | None:
    wanted = set(group)
    return next((place for place, unit in enumerate(shown) if wanted.intersection(unit.ids)), None)
