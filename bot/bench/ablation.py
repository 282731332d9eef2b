"""What each term of the score is worth: recall is measured again with one of them left out at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.table import Table

from bot.bench.tally import Tally
from memory.score import WEIGHTS

TERMS: Final = tuple(WEIGHTS)
COLUMNS: Final = ("R@1", "R@10", "T@1000")


def figures(whole: Tally, without: Mapping[str, Tally]) -> dict[str, dict[str, float]]:
    """The figures without each term, by its name; terms that change nothing on this set are left out."""
    full = whole.figures()
    rows = {term: tally.figures() for term, tally in without.items()}
    return {term: {c: row[c] for c in COLUMNS} for term, row in rows.items() if row != full}


def table(name: str, measured: Mapping[str, Any]) -> Table:
    """One set: the whole score, then without each term, with the difference."""
    shown = Table("without", *COLUMNS, title=f"{name}, one term left out at a time")
    full = measured["recollect"]
    shown.add_row("nothing", *(f"{full[column]:.1f}" for column in COLUMNS))
    for term, row in measured["ablation"].items():
        shown.add_row(term, *(f"{row[column]:.1f} ({row[column] - full[column]:+.1f})" for column in COLUMNS))
    return shown
