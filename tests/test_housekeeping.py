"""Housekeeping: due once after any downtime, tried again after a failure, each session distilled once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from memory import Line, Memory
from memory.db import Database
from memory.jobs import Job, LeftOff, Runs, run_due
from memory.model import Account, Chat
from memory.ports import Completer, CompleterUnavailable, Completion
from tests.conftest import Clock


class Counted:
    """A job that counts its runs and fails the first ``failures`` times."""

    def __init__(self, failures: int = 0) -> None:
        self.runs = 0
        self.failures = failures

    async def run(self, now: datetime) -> Mapping[str, int]:
        self.runs += 1
        if self.failures:
            self.failures -= 1
            raise RuntimeError("not now")
        return {"runs": self.runs}

    def job(self, every: timedelta = timedelta(hours=1)) -> Job:
        return Job("counted", every, self.run)


@pytest.fixture
async def runs(tmp_path: Path) -> AsyncIterator[Runs]:
    db = await Database.open(tmp_path / "jobs.db")
    yield Runs(db)
    await db.close()


async def test_f04_a_job_runs_once_after_any_downtime(runs: Runs, clock: Clock) -> None:
    counted = Counted()
    jobs = (counted.job(),)
    for hours, expected in ((0, 1), (0.5, 1), (0.5, 2), (5, 3)):
        await run_due(jobs, runs, now=clock.advance(hours=hours))
        assert counted.runs == expected


async def test_a_failed_job_is_tried_again_and_stops_no_other(
    runs: Runs, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    failing, fine = Counted(failures=1), Counted()
    jobs = (failing.job(), Job("fine", timedelta(hours=1), fine.run))
    assert await run_due(jobs, runs, now=clock()) == {"fine": {"runs": 1}}
    assert "job counted failed" in caplog.text
    assert await run_due(jobs, runs, now=clock.advance(minutes=1)) == {"counted": {"runs": 2}}


async def test_a_clock_that_was_set_back_silences_no_job(runs: Runs, clock: Clock) -> None:
    counted = Counted()
    await run_due((counted.job(),), runs, now=clock())
    clock.now -= timedelta(days=400)
    await run_due((counted.job(),), runs, now=clock())
    assert counted.runs == 2


class Distilling:
    """A completer that finds nothing and keeps count of how many ask at once."""

    def __init__(self) -> None:
        self.calls = 0
        self.inside = 0
        self.most = 0
        self.pair = asyncio.Barrier(2)

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        self.calls += 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        async with asyncio.timeout(5):
            await self.pair.wait()
        self.inside -= 1
        return Completion(json.dumps({"items": []}), "stop")


async def opened(path: Path, clock: Clock, completer: Completer | None = None, **settings: Any) -> Memory:
    return await Memory.open(
        path / "r.db", Settings(**settings), clock=clock, count=len, embedder=None, completer=completer
    )


async def person(memory: Memory, user: str) -> tuple[Account, Chat]:
    owner = await memory.account("test", user, language="zh")
    return owner, await memory.chat(owner, f"dm:{user}")


async def test_f04_idle_sessions_are_distilled_once_each_and_a_few_at_a_time(tmp_path: Path, clock: Clock) -> None:
    completer = Distilling()
    memory = await opened(tmp_path, clock, completer)
    for number in range(12):
        owner, chat = await person(memory, str(number))
        await memory.note(owner, chat, Line("user", "", clock(), f"我养了{number}条鱼"))
    await memory.run_due(now=clock())
    assert completer.calls == 0
    clock.advance(minutes=31)
    for _ in range(3):
        await memory.run_due(now=clock())
    assert completer.calls == 12
    assert completer.most == Settings().distil.at_once
    await memory.close()
    again = await opened(tmp_path, clock, completer)
    await again.run_due(now=clock.advance(hours=5))
    assert completer.calls == 12
    await again.close()


class Leaving(Distilling):
    """The same; the program is about to end when the first two have asked."""

    def __init__(self) -> None:
        super().__init__()
        self.leave: list[Memory] = []

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        for memory in self.leave:
            memory.leave_off()
        return await super().complete(messages, schema=schema, max_tokens=max_tokens)


async def test_f04_a_program_that_ends_finishes_the_sessions_it_is_at_and_leaves_the_others_for_the_next_start(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    completer = Leaving()
    memory = await opened(tmp_path, clock, completer)
    for number in range(12):
        owner, chat = await person(memory, str(number))
        await memory.note(owner, chat, Line("user", "", clock(), f"我养了{number}条鱼"))
    clock.advance(minutes=31)
    completer.leave.append(memory)
    done = await memory.run_due(now=clock())
    assert completer.calls == Settings().distil.at_once
    assert "distil" not in done
    assert await memory.run_due(now=clock()) == {}
    known = {run.name: run for run in await memory.job_runs()}
    assert "distil" not in known, "what did not come to its end is due at once"
    assert {run.failures for run in known.values()} == {0}
    await memory.close()
    completer.leave.clear()
    again = await opened(tmp_path, clock, completer)
    await again.run_due(now=clock())
    assert completer.calls == 12, "each session once"
    assert "failed" not in caplog.text
    await again.close()


async def test_a_daily_job_that_left_off_in_the_middle_is_not_put_off_until_tomorrow(
    tmp_path: Path, clock: Clock
) -> None:
    memory = await opened(tmp_path, clock)
    for number in range(3):
        await person(memory, str(number))
    (cool,) = [job for job in memory.jobs if job.name == "cool"]
    memory.leave_off()
    with pytest.raises(LeftOff):
        await cool.run(clock())
    runs = Runs(memory._db)
    assert await run_due((cool,), runs, now=clock()) == {}
    assert await runs.due(cool, now=clock())
    await memory.close()


async def test_the_journal_is_trimmed_after_its_days_and_memories_keep_their_quotes(
    tmp_path: Path, clock: Clock
) -> None:
    memory = await opened(tmp_path, clock)
    owner, chat = await person(memory, "1")
    heard = await memory.note(owner, chat, Line("user", "", clock(), "我对花粉过敏"))
    await memory.learn(owner, chat, heard.message)
    await memory.run_due(now=clock.advance(days=179))
    assert heard.message.id in await memory.entries(owner, [heard.message.id])
    await memory.run_due(now=clock.advance(days=2))
    assert await memory.entries(owner, [heard.message.id]) == {}
    (entry,) = await memory.known(owner, room=chat, now=clock())
    assert [c.quote for c in entry.provenance.citations] == ["我对花粉过敏"]
    await memory.close()


async def test_a_journal_kept_for_ever_is_not_trimmed(tmp_path: Path, clock: Clock) -> None:
    memory = await opened(tmp_path, clock, journal={"keep_days": 0}, trace={"keep_days": 0})
    owner, chat = await person(memory, "1")
    heard = await memory.note(owner, chat, Line("user", "", clock(), "早"))
    await memory.run_due(now=clock.advance(days=5_000))
    assert heard.message.id in await memory.entries(owner, [heard.message.id])
    await memory.close()


class Down:
    """A completer whose endpoint does not answer."""

    def __init__(self) -> None:
        self.calls = 0

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        self.calls += 1
        raise CompleterUnavailable("no answer")


async def test_an_endpoint_that_is_down_is_asked_a_few_times_and_no_session_is_given_up(
    tmp_path: Path, clock: Clock
) -> None:
    down = Down()
    memory = await opened(tmp_path, clock, down)
    for number in range(20):
        owner, chat = await person(memory, str(number))
        await memory.note(owner, chat, Line("user", "", clock(), "我养了一条鱼"))
    clock.advance(minutes=31)
    for _ in range(10):
        await memory.run_due(now=clock.advance(minutes=5))
    assert down.calls <= 10 * Settings().distil.at_once
    await memory.close()
    completer = Distilling()
    again = await opened(tmp_path, clock, completer)
    await again.run_due(now=clock.advance(minutes=20))
    assert completer.calls == 20
    await again.close()


class Refusing:
    """A completer that never answers in JSON, until it is told to."""

    def __init__(self) -> None:
        self.refuses = True
        self.calls = 0

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        self.calls += 1
        return Completion("I can't help with that." if self.refuses else json.dumps({"items": []}), "stop")


async def test_lines_that_were_set_aside_are_tried_again_by_themselves_a_week_later(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    completer = Refusing()
    memory = await opened(tmp_path, clock, completer, distil={"attempts": 1})
    owner, chat = await person(memory, "1")
    await memory.note(owner, chat, Line("user", "", clock(), "我养了一条鱼"))
    await memory.run_due(now=clock.advance(minutes=31))
    await memory.run_due(now=clock.advance(days=6))
    assert completer.calls == 1
    completer.refuses = False
    caplog.set_level("INFO")
    await memory.run_due(now=clock.advance(days=1, minutes=1))
    assert "job second chance: {'lines': 1}" in caplog.text
    for _ in range(3):
        await memory.run_due(now=clock.advance(days=8))
    assert completer.calls == 2
    await memory.close()
