"""Pictures, where matplotlib is installed (the extra ``plot``); everything else does without."""

from __future__ import annotations

import importlib
from typing import Any, Final

HINT: Final = "no picture: matplotlib is not installed (`.venv/bin/pip install matplotlib`)"

_UNDER_LABEL: Final = -0.16
"""Where the label of an axis ends, in heights of the axes."""


class PlotUnavailable(Exception):
    """Nothing can be drawn here; the text says what to install."""

    def __init__(self) -> None:
        super().__init__(HINT)


def figure(*, width: float, height: float) -> Any:
    """An empty matplotlib figure, inches. It needs no screen. Raises PlotUnavailable."""
    try:
        module = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise PlotUnavailable from error
    return module.Figure(figsize=(width, height))


def legend(axes: Any, *, columns: int) -> None:
    """Name the lines under the axes and their label, where they hide nothing."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, _UNDER_LABEL), ncols=columns, fontsize="small", frameon=False)
