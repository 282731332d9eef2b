"""A file that is young as long as the event loop turns; the health check of the image reads its age."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

FILE: Final = "alive"
"""Name of the file in the data folder."""
EVERY_SECONDS: Final = 30.0
"""Pause between two touches; the Dockerfile calls two minutes without one dead."""
DEAD_SECONDS: Final = 120.0
"""Age of the file from which on the bot counts as dead, here and in the Dockerfile."""

log: Final = logging.getLogger(__name__)


def age(folder: Path, *, now: datetime) -> float | None:
    """Seconds since the last touch at ``now`` (aware); None when there is no file: no bot runs in ``folder``."""
    try:
        touched = (folder / FILE).stat().st_mtime
    except FileNotFoundError:
        return None
    return max(now.timestamp() - touched, 0.0)


async def beat(folder: Path, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    """Touch ``folder``/alive every half minute until cancelled, then take it away.

    A touch that fails, as on a full disk, is told once and tried again: the bot lives on, and so must its sign of it.
    """
    file = folder / FILE
    failing = False
    try:
        while True:
            try:
                file.touch(mode=0o600)
            except OSError as error:
                if not failing:
                    log.warning("the heartbeat cannot be written, it is tried again: %s", error.strerror)
                failing = True
            else:
                failing = False
            await sleep(EVERY_SECONDS)
    finally:
        with suppress(OSError):  # a file nobody can take away grows old by itself
            file.unlink(missing_ok=True)
