"""How well a level tells own questions from foreign ones: figures, a table and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.table import Table

from bot.plot import figure, legend

CUTS: Final = (0.25, 0.34, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99)
"""Levels that the table names: the floor of the bands and what a person may ask for."""
_BINS: Final = 20
_STYLES: Final = (":", "--", "-.")


@dataclass(frozen=True, slots=True)
class Levels:
    """The level of each question, 0 to 1 (0 where nothing could be judged): own ones and foreign ones."""

    own: tuple[float, ...]
    foreign: tuple[float, ...]

    def recall(self, cut: float) -> float:
        """Share of own questions at or above a level, per cent."""
        return _share(self.own, cut)

    def false_positives(self, cut: float) -> float:
        """Share of foreign questions at or above a level, per cent."""
        return _share(self.foreign, cut)

    @property
    def auc(self) -> float:
        """How often an own question has the higher level of a pair; equal ones count half. NaN without both."""
        if not self.own or not self.foreign:
            return float("nan")
        own, foreign = np.sort(self.own), np.asarray(self.foreign)
        below, upto = np.searchsorted(own, foreign, "left"), np.searchsorted(own, foreign, "right")
        return float(1 - (below + upto).mean() / (2 * len(own)))

    def at_true_rate(self, rate: float) -> float:
        """Recall, per cent, at the level that exactly this share of foreign questions reaches."""
        if not self.foreign:
            return float("nan")
        cut = np.quantile(self.foreign, 1 - rate)
        return 100 * float(np.mean(np.asarray(self.own) > cut)) if self.own else float("nan")


def pooled(parts: Sequence[Levels]) -> Levels:
    """The questions of several, as one."""
    return Levels(
        tuple(level for part in parts for level in part.own), tuple(level for part in parts for level in part.foreign)
    )


def summary(levels: Levels, asked: float) -> dict[str, Any]:
    """The figures of one set, per cent but for auc; ``asked`` is the share of false positives that was asked for."""
    return {
        "own": len(levels.own),
        "foreign": len(levels.foreign),
        "auc": round(levels.auc, 3),
        "false_positives": round(levels.false_positives(1 - asked), 1),
        "recall": round(levels.recall(1 - asked), 1),
        "recall_at_true_rate": round(levels.at_true_rate(asked), 1),
    }


def cuts(levels: Levels, title: str, *, chosen: Sequence[float] = ()) -> Table:
    """Recall and false positives at each level worth naming; ``chosen`` are those the settings come to."""
    shown = Table("level", "own questions shown", "foreign questions shown", "", title=title)
    for cut in sorted({*CUTS, *chosen}):
        mark = "chosen" if cut in chosen else ""
        shown.add_row(f"{cut:.2f}", f"{levels.recall(cut):.1f} %", f"{levels.false_positives(cut):.1f} %", mark)
    return shown


def draw(levels: Levels, path: Path, title: str, *, chosen: Sequence[float] = ()) -> None:
    """Draw both distributions with the chosen levels, and recall against false positives; SVG or PNG by the suffix.

    Raises bot.plot.PlotUnavailable.
    """
    drawn = figure(width=10, height=4.5)
    left, right = drawn.subplots(1, 2)
    _distributions(left, levels, chosen)
    left.set(title=title)
    _curve(right, levels, chosen)
    drawn.tight_layout()
    drawn.savefig(path)


def _distributions(axes: Any, levels: Levels, chosen: Sequence[float]) -> None:
    edges = np.linspace(0, 1, _BINS + 1)
    for name, values in (("own", levels.own), ("foreign", levels.foreign)):
        weights = np.full(len(values), 100 / (len(values) or 1))
        axes.hist(values, bins=edges, weights=weights, histtype="step", label=f"{name} ({len(values)} questions)")
    for cut, style in zip(chosen, cycle(_STYLES)):
        axes.axvline(cut, linestyle=style, color="grey", label=f"chosen, {cut:.2f}")
    axes.set(xlabel="level among foreign questions, 0 to 1", ylabel="questions, %", xlim=(0, 1))
    legend(axes, columns=2)
    axes.grid(visible=True, alpha=0.3)


def _curve(axes: Any, levels: Levels, chosen: Sequence[float]) -> None:
    steps = [float(step) for step in np.linspace(0, 1, 201)] + [1.0 + 1e-9]
    axes.plot([levels.false_positives(step) for step in steps], [levels.recall(step) for step in steps], label="levels")
    axes.plot((0, 100), (0, 100), linestyle="--", color="lightgrey", label="chance")
    for cut in chosen:
        place = (levels.false_positives(cut), levels.recall(cut))
        axes.plot(*place, "o", color="grey")
        axes.annotate(f"{cut:.2f}", place, xytext=(4, -14), textcoords="offset points")
    axes.set(xlabel="foreign questions shown, %", ylabel="own questions shown, %", title=f"AUC {levels.auc:.3f}")
    legend(axes, columns=2)
    axes.grid(visible=True, alpha=0.3)


def _share(levels: Sequence[float], cut: float) -> float:
    return 100 * float(np.mean(np.asarray(levels) >= cut)) if levels else float("nan")
