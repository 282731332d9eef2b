"""Wakes the housekeeping. The only file that knows APScheduler; it knows no job."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from datetime import UTC
from typing import Final

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger

log = logging.getLogger(__name__)

REST_SECONDS: Final = 1.0
"""Least pause between the end of a run and one it is woken for."""
_TICK: Final = "housekeeping"

Tick = Callable[[], Awaitable[None]]


class Scheduler:
    """Calls ``tick`` at once, then every ``seconds``, and earlier when woken; never twice at a time.

    ``leave`` asks a tick that runs to come to its end soon.

    What is due, and whether a run was missed while the program was down, is the tick's own business:
    it is written in the database, not here.
    """

    def __init__(self, tick: Tick, seconds: float, *, leave: Callable[[], None] = lambda: None) -> None:
        self._tick = tick
        self._leave = leave
        self._lock = asyncio.Lock()
        self._ended = -math.inf
        self._woken: set[asyncio.Task[None]] = set()
        self._running: asyncio.Task[None] | None = None
        self._scheduler = AsyncIOScheduler(timezone=UTC)
        self._scheduler.add_job(
            self._at_interval,
            IntervalTrigger(seconds=seconds, timezone=UTC),
            id=_TICK,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
        )

    def start(self) -> None:
        """Begin, inside a running event loop."""
        self._scheduler.start()
        self.wake()

    def wake(self) -> None:
        """Run soon instead of at the next interval; while a run waits, waking again adds none.

        Not sooner than :data:`REST_SECONDS` after the last run: many who are answered wake it all the time.

        Before :meth:`start` and after :meth:`stop` it does nothing.
        """
        if self._scheduler.running and not self._woken:
            task = asyncio.get_running_loop().create_task(self._run_soon(), name=_TICK)
            self._woken.add(task)
            task.add_done_callback(self._woken.discard)

    async def _at_interval(self) -> None:
        """Only wakes: a run of APScheduler's own that a stop cancels would be logged as a failure."""
        self.wake()

    async def _run_soon(self) -> None:
        if (left := self._ended + REST_SECONDS - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(left)
        await self.run()

    async def run(self) -> None:
        """Run the tick now, or wait for the one that runs; a failure is logged and stops nothing."""
        async with self._lock:
            self._running = asyncio.current_task()
            try:
                await self._tick()
            except Exception:
                log.exception("housekeeping failed; it goes on at the next interval")
            finally:
                self._ended = asyncio.get_running_loop().time()
                self._running = None

    async def stop(self, grace_seconds: float = 10.0) -> None:
        """Start nothing more and let a running tick end, for at most ``grace_seconds``; then it is cancelled.

        When this returns it has given back what it held.
        """
        self._leave()
        if self._scheduler.running:
            self._scheduler.pause()
        try:
            await asyncio.wait_for(self._lock.acquire(), grace_seconds)
            self._lock.release()
        except TimeoutError:
            log.warning(
                "housekeeping did not end in %g s; what it left undone is done at the next start", grace_seconds
            )
        late = {*self._woken, *([self._running] if self._running is not None else [])}
        for task in late:
            task.cancel()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        if late:
            await asyncio.wait(late)
