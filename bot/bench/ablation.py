"""What each term of recall is worth: it is measured again with one of them left out at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.table import Table

from bot.bench.tally import Tally
from memory import SCORE_TERMS

COLUMNS: Final = ("R@1", "R@10", "T@1000")


def figures(without: Mapping[str, Tally]) -> dict[str, dict[str, float]]:
    """The figures of a set without each term, by its name."""
    rows = {term: tally.figures() for term, tally in without.items()}
    return {term: {column: row[column] for column in COLUMNS} for term, row in rows.items()}


def table(sets: Mapping[str, Mapping[str, Any]]) -> Table:
    """Every term, every set: what leaving it out changes, in points; "." where it changes nothing."""
    shown = Table("without", title=f"one term left out at a time: {', '.join(COLUMNS)}, points")
    for name, measured in sets.items():
        shown.add_column(f"{name}, n {measured['n']}", justify="right", no_wrap=True)
    whole = [measured["recollect"] for measured in sets.values()]
    shown.add_row("(nothing)", *("  ".join(f"{row[column]:.1f}" for column in COLUMNS) for row in whole))
    for term in SCORE_TERMS:
        shown.add_row(term, *(_changes(measured, term) for measured in sets.values()))
    return shown


def _changes(measured: Mapping[str, Any], term: str) -> str:
    full, row = measured["recollect"], measured["ablation"][term]
    changes = [round(row[column] - full[column], 1) for column in COLUMNS]
    return "  ".join(f"{change:+.1f}" for change in changes) if any(changes) else "."
