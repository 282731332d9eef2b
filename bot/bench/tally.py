"""What one system found of the evidence of a set, question by question, and the figures that come of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from bot.bench import metrics
from bot.bench.evalset import Asked
from bot.bench.metrics import Found, Shown

PLACES: Final = tuple(range(1, 51))
TOKENS: Final = tuple(range(100, 2_001, 100))
"""Where the curves of recall are read: within so many places, within so many tokens."""


class Tally:
    """The findings of one system."""

    def __init__(self) -> None:
        self._found: defaultdict[str, list[Found]] = defaultdict(list)
        self._newer: list[bool] = []

    def take(self, question: Asked, shown: Sequence[Shown], *, heading: float = 0.0) -> None:
        """Count one answer; ``heading`` are the tokens before its list."""
        self._found[question.category].append(metrics.find(shown, question.groups, heading=heading))
        if question.old and question.new:
            self._newer.append(metrics.first(shown, question.new, question.old))

    @property
    def sizes(self) -> dict[str, int]:
        """How many questions of each category were counted."""
        return {category: len(self._found[category]) for category in sorted(self._found)}

    def figures(self, category: str | None = None) -> dict[str, float]:
        """The means over a category, None for all, in per cent."""
        return metrics.mean([metrics.score(found) for found in self._chosen(category)])

    def newer_first(self) -> dict[str, int]:
        """How often the message with the new value came before the old one; "of" is how often there were both."""
        return {"newer": sum(self._newer), "of": len(self._newer)}

    def curves(self) -> dict[str, Any]:
        """Recall against places and against tokens, in per cent."""
        found = self._chosen(None)
        drawn = {"places": metrics.curve(found, places=PLACES), "tokens": metrics.curve(found, tokens=TOKENS)}
        return {name: [round(value, 1) for value in values] for name, values in drawn.items()}

    def _chosen(self, category: str | None) -> list[Found]:
        if category is not None:
            return self._found[category]
        return [found for of_category in self._found.values() for found in of_category]
