"""How long to wait before what did not work is tried again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat


def pauses() -> Iterator[float]:
    """Seconds to wait after the first, second, ... trouble in a row."""
    return chain((1.0, 2.0, 5.0, 10.0, 30.0), repeat(60.0))
