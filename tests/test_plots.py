"""The pictures are readable: every axis named with its unit, every line named, nothing over anything else.

They are drawn by the real library where it is installed; that one is asked for is tested everywhere.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from bot import plot
from bot.bench import curves, levels, speedplot
from bot.bench.levels import Levels
from bot.bench.tally import PLACES, TOKENS

drawn_for_real = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None,
    reason="matplotlib is not installed (`.venv/bin/pip install matplotlib`)",
)

SPEED: dict[str, Any] = {
    "dimensions": 1_024,
    "hot": {
        str(size): {
            "loop_ms": size / 250,
            "numpy_ms": size / 6_000,
            "scan_ms": size / 15_000,
            "recall_ms": 1 + size / 900,
        }
        for size in (100, 1_000, 10_000)
    },
    "cold": {str(size): {"recall_ms": 2 + size / 800} for size in (100, 200, 1_000)},
    "growth": {"1": 1.4, "10": 1.5, "1000": 1.3},
}
SETS = {
    "n": 56,
    "curves": {
        system: {"places": [min(100, start + k) for k in PLACES], "tokens": [min(100, b / 12) for b in TOKENS]}
        for system, start in (("recollect", 70), ("bm25", 30))
    },
}
EVEN = Levels(tuple(1 - n / 400 for n in range(100)), tuple(n / 100 for n in range(100)))
PERFECT = Levels((1.0,) * 60, tuple(n / 100 for n in range(100)))

DRAWN: dict[str, Callable[[Path], object]] = {
    "recall": lambda folder: curves.draw(folder, "mine", SETS),
    "speed": lambda folder: speedplot.draw(folder, SPEED, own=200),
    "abstain": lambda folder: levels.draw(EVEN, folder / "abstain.svg", "pooled", chosen=[0.95]),
    "calibrate": lambda folder: levels.draw(PERFECT, folder / "c.png", "sample, zh", chosen=[0.34, 0.95]),
    "nobody": lambda folder: levels.draw(Levels((), ()), folder / "c.png", "nobody", chosen=[0.34, 0.95]),
}


@drawn_for_real
@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_names_its_axes_and_lines_and_nothing_lies_over_anything_else(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Any] = []
    real = plot.figure

    def kept(**size: float) -> Any:
        figures.append(real(**size))
        return figures[-1]

    for module in (plot, levels):
        monkeypatch.setattr(module, "figure", kept)
    DRAWN[name](tmp_path)
    (file,), (picture,) = list(tmp_path.iterdir()), figures
    assert file.read_bytes()[:4] in {b"\x89PNG", b"<?xm"}
    boxes = [] if picture.get_suptitle() == "" else [("title", picture._suptitle.get_window_extent())]
    for place, axes in enumerate(picture.axes):
        assert axes.get_xlabel(), name
        assert axes.get_ylabel(), name
        names = [text.get_text() for text in axes.get_legend().get_texts()]
        assert len(set(names)) == len(names) >= 1
        frame = axes.get_tightbbox(for_layout_only=False)
        assert picture.bbox.x0 <= frame.x0 < frame.x1 <= picture.bbox.x1, "something is cut off"
        assert picture.bbox.y0 <= frame.y0 < frame.y1 <= picture.bbox.y1, "something is cut off"
        parts = (axes, axes.xaxis.label, axes.yaxis.label, axes.get_legend(), axes.title)
        boxes += [
            (f"{place} {part}", part.get_window_extent()) for part in parts if part is not axes.title or part.get_text()
        ]
    for (first, box), (second, other) in combinations(boxes, 2):
        assert not box.overlaps(other), f"{first} lies over {second}"


def test_speed_is_measured_all_the_same_where_nothing_can_be_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert speedplot.drawn(tmp_path / "plots", SPEED, own=200) == 1
    assert capsys.readouterr().err == f"{plot.HINT}\n"
    assert not (tmp_path / "plots").exists()
