"""Recall against places and against tokens as a picture, one file a set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bot import plot
from bot.bench.tally import PLACES, TOKENS

SYSTEMS: Final = ("recollect", "bm25")
_AXES: Final = (("places", PLACES, "units shown"), ("tokens", TOKENS, "tokens shown"))
_TOP: Final = 103
"""A line at 100 % must not lie on the frame."""


def draw(folder: Path, name: str, figures: Mapping[str, Any]) -> Path:
    """Write ``recall-NAME.png`` and return its path. Raises bot.plot.PlotUnavailable, OSError."""
    picture = plot.figure(width=10, height=4.5)
    for place, (kind, steps, label) in enumerate(_AXES, start=1):
        axes = picture.add_subplot(1, 2, place)
        for system in SYSTEMS:
            axes.plot(steps, figures["curves"][system][kind], label=system)
        axes.set_xlabel(label)
        axes.set_ylabel("evidence found, %")
        axes.set_xlim(left=0)
        axes.set_ylim(0, _TOP)
        axes.grid(visible=True, alpha=0.3)
        plot.legend(axes, columns=len(SYSTEMS))
    picture.suptitle(f"{name}, {figures['n']} questions")
    picture.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"recall-{name}.png"
    picture.savefig(path)
    return path
