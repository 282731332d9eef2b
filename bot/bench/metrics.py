"""Recall at k and within a token budget, from the ids that each shown unit carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
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


def score(shown: Sequence[Shown], groups: Sequence[Sequence[str]], *, heading: float = 0.0) -> dict[str, float]:
    """The metrics of one question, 0 to 1; ``groups`` are its pieces of evidence, ``heading`` tokens before the list.

    A group has the rank of the first unit that carries one of its ids. The first unit that does not fit
    a budget ends the list.
    """
    places = [place for place in (_place(shown, group) for group in groups) if place is not None]
    spent = list(accumulate((unit.tokens for unit in shown), initial=heading))[1:]
    row = {f"R@{k}": sum(place < k for place in places) / len(groups) for k in RANKS}
    row["hit@10"] = float(any(place < 10 for place in places))  # noqa: PLR2004
    row["MRR"] = 1 / (1 + min(places)) if places else 0.0
    return row | {f"T@{b}": sum(spent[place] <= b for place in places) / len(groups) for b in BUDGETS}


def mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean over questions, in per cent."""
    return {name: round(100 * sum(row[name] for row in rows) / len(rows), 1) for name in COLUMNS}


def _place(shown: Sequence[Shown], group: Sequence[str]) -> int | None:
    wanted = set(group)
    return next((place for place, unit in enumerate(shown) if wanted.intersection(unit.ids)), None)
