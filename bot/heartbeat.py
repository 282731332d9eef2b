"""A file that is young as long as the event loop turns; the health check of the image reads its age."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Final

FILE: Final = "alive"
"""Name of the file in the data folder."""
EVERY_SECONDS: Final = 30.0
"""Pause between two touches; the Dockerfile calls two minutes without one dead."""


DEAD_SECONDS: Final = 120.0
"""Age of the file from which on the bot counts as dead, here and in the Dockerfile."""


def age(folder: Path, *, now: datetime) -> float | None:
    """Seconds since the last touch at ``now`` (aware); None when there is no file: no bot runs in ``folder``."""
    try:
        touched = (folder / FILE).stat().st_mtime
    except FileNotFoundError:
        return None
    return max(now.timestamp() - touched, 0.0)


async def beat(folder: Path, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    """Touch ``folder``/alive every half minute until cancelled, then take it away."""
    file = folder / FILE
    try:
        while True:
            file.touch(mode=0o600)
            await sleep(EVERY_SECONDS)
    finally:
        file.unlink(missing_ok=True)
