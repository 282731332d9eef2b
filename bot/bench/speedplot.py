"""``bench speed`` as a picture: milliseconds against the facts of one person, and against other people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from bot import plot

NAME: Final = "speed.png"
_LINES: Final = (
    ("hot", "loop_ms", "scan: a loop"),
    ("hot", "numpy_ms", "scan: numpy float32"),
    ("hot", "scan_ms", "scan: ours"),
    ("hot", "recall_ms", "whole recall, in cache"),
    ("cold", "recall_ms", "whole recall, after a restart"),
)
"""Part, column and what the line is called."""
_ROOM: Final = 1.5


def draw(folder: Path, measured: Mapping[str, Any], *, own: int) -> Path:
    """Draw what ``bench speed`` measured to :data:`NAME`; returns its path. Raises bot.plot.PlotUnavailable, OSError.

    ``own`` is how many facts the one person has where the number of other people grows.
    """
    picture = plot.figure(width=11, height=5)
    by_facts, by_people = picture.subplots(1, 2)
    for part, column, label in _LINES:
        _line(by_facts, ((size, row[column]) for size, row in measured[part].items()), label)
    by_facts.set(xscale="log", yscale="log", xlabel="facts of one person", ylabel="milliseconds, median")
    _line(by_people, measured["growth"].items(), f"whole recall, {own} facts, in cache")
    by_people.set(xscale="log", xlabel="people in the file", ylabel="milliseconds, median")
    by_people.set_ylim(0, max(measured["growth"].values()) * _ROOM)
    for axes in (by_facts, by_people):
        axes.grid(visible=True, alpha=0.3)
        plot.legend(axes, columns=2)
    picture.suptitle(f"bench speed, {measured['dimensions']} dimensions")
    picture.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    picture.savefig(path)
    return path


def drawn(folder: Path, measured: Mapping[str, Any], *, own: int) -> int:
    """Draw, or say on standard error why not; the exit code."""
    try:
        draw(folder, measured, own=own)
    except (plot.PlotUnavailable, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _line(axes: Any, points: Iterable[tuple[str, float]], label: str) -> None:
    """A line through milliseconds by size, the sizes as JSON has them."""
    places = sorted((int(size), value) for size, value in points)
    axes.plot([size for size, _ in places], [value for _, value in places], marker="o", label=label)
