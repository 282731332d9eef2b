"""The scheduler: at once, one at a time, earlier when woken, and a stop that waits."""

from __future__ import annotations

import asyncio

import pytest

from bot.scheduler import Scheduler


class Tick:
    """A tick that can be held; fails the test when two run at a time."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self.running = 0
        self.open = asyncio.Event()
        self.open.set()
        self.changed = asyncio.Event()

    async def __call__(self) -> None:
        self.running += 1
        self.begun += 1
        self.changed.set()
        assert self.running == 1
        await self.open.wait()
        self.running -= 1
        self.ended += 1
        self.changed.set()

    async def reach(self, *, begun: int) -> None:
        """Wait until so many ticks have begun."""
        while self.begun < begun:
            self.changed.clear()
            await self.changed.wait()


async def test_the_first_tick_comes_at_once_and_the_next_at_the_interval() -> None:
    tick = Tick()
    scheduler = Scheduler(tick, 0.05)
    scheduler.start()
    async with asyncio.timeout(5):
        await tick.reach(begun=3)
    await scheduler.stop()


async def test_waking_runs_a_tick_without_waiting_for_the_interval() -> None:
    tick = Tick()
    scheduler = Scheduler(tick, 3_600)
    scheduler.wake()
    assert tick.begun == 0
    scheduler.start()
    async with asyncio.timeout(5):
        await tick.reach(begun=1)
        await asyncio.sleep(0)
        scheduler.wake()
        await tick.reach(begun=2)
    await scheduler.stop()


async def test_ticks_never_overlap_and_many_calls_make_few_ticks() -> None:
    tick = Tick()
    tick.open.clear()
    scheduler = Scheduler(tick, 0.01)
    scheduler.start()
    async with asyncio.timeout(5):
        await tick.reach(begun=1)
        for _ in range(50):
            scheduler.wake()
        await asyncio.sleep(0.05)
        assert tick.begun == 1
        tick.open.set()
        await tick.reach(begun=2)
    await scheduler.stop()
    assert tick.begun < 10


async def test_a_tick_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []

    async def tick() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("boom")

    scheduler = Scheduler(tick, 3_600)
    await scheduler.run()
    await scheduler.run()
    assert len(calls) == 2
    assert "housekeeping failed" in caplog.text


async def test_a_stop_lets_the_running_tick_end_and_begins_no_other() -> None:
    tick = Tick()
    tick.open.clear()
    scheduler = Scheduler(tick, 0.01)
    scheduler.start()
    async with asyncio.timeout(5):
        await tick.reach(begun=1)
        stopping = asyncio.create_task(scheduler.stop())
        await asyncio.sleep(0.03)
        assert not stopping.done()
        tick.open.set()
        await stopping
    scheduler.wake()
    await asyncio.sleep(0.03)
    assert (tick.begun, tick.ended) == (1, 1)


async def test_a_stop_asks_the_running_tick_to_leave_off(caplog: pytest.LogCaptureFixture) -> None:
    tick = Tick()
    tick.open.clear()
    scheduler = Scheduler(tick, 3_600, leave=tick.open.set)
    scheduler.start()
    async with asyncio.timeout(5):
        await tick.reach(begun=1)
        await scheduler.stop()
    assert tick.ended == 1
    assert not caplog.records


async def test_a_stop_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    tick = Tick()
    tick.open.clear()
    scheduler = Scheduler(tick, 3_600)
    scheduler.start()
    async with asyncio.timeout(5):
        await tick.reach(begun=1)
        await scheduler.stop(grace_seconds=0.01)
        await asyncio.sleep(0)
    assert tick.ended == 0
    assert "done at the next start" in caplog.text


@pytest.mark.parametrize("seconds", [3_600, 0.01])
async def test_a_tick_that_takes_too_long_has_given_back_what_it_held_when_the_stop_ends(
    seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    held = asyncio.Event()

    async def tick() -> None:
        held.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            held.clear()

    scheduler = Scheduler(tick, seconds)
    scheduler.start()
    async with asyncio.timeout(5):
        await held.wait()
        for _ in range(3):
            await asyncio.sleep(0.02)  # The interval comes round while a tick runs.
        await scheduler.stop(grace_seconds=0.01)
    await asyncio.sleep(0.01)
    assert not held.is_set()
    assert not [record for record in caplog.records if record.name.startswith("apscheduler") and record.exc_info]
