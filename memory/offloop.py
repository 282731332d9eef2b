"""Where pure work is done: on the event loop when it is a matter of moments, in a thread when it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

INLINE_ROWS: Final = 100
"""Rows up to which scoring takes under a millisecond and stays on the event loop; a thread costs 0.07 (NUMBERS)."""

Result = TypeVar("Result")


async def off_loop(work: Callable[[], Result], *, size: int) -> Result:
    """Do pure work that costs as much as scoring ``size`` rows; the event loop is never held by a large one."""
    return await asyncio.to_thread(work) if size > INLINE_ROWS else work()
