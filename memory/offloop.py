"""Where pure work is done: on the event loop when it is a matter of moments, in a thread when it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

INLINE_ROWS: Final = 100
"""Rows up to which making them ready takes about a millisecond and stays on the event loop; a thread costs 0.07
where the machine is idle (NUMBERS), and waits for its turn where it is not."""

Result = TypeVar("Result")


async def off_loop(work: Callable[[], Result], *, size: int) -> Result:
    """Do pure work that costs as much as making ``size`` rows of the file ready; a large one never holds the loop.

    In another thread (see :meth:`memory.db.Database.together`) there is no loop to hold.
    """
    return await asyncio.to_thread(work) if size > INLINE_ROWS and _on_a_loop() else work()


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
