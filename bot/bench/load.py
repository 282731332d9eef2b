"""``bench load``: many people write to the whole bot at once, for a long time; what becomes of every message is judged.

Everything but the wires is the product: hearing, conversation, agent, rules, recall, the file, housekeeping. Messages
come on schedule, whether or not those before were answered, and how long one waited is counted from when it was due:
a bot that stands still for a second does not make the messages of that second go away.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from rich.console import Console
from rich.table import Table

from bot.agent import Agent
from bot.app import App, keep_out_of_collections, utc_now
from bot.bench.crowd import ScriptedModel, schedule
from bot.bench.delivery import MOST_LAG_MS, Lag, percentile
from bot.bench.hall import Hall
from bot.bench.people import GivenVectors
from bot.embedders import LocalEmbedder
from bot.tokens import token_counter
from config.settings import (
    AccessSettings,
    BudgetSettings,
    ConversationSettings,
    RecallSettings,
    SessionSettings,
    Settings,
)
from memory import DATABASE_NAME, Memory
from memory.jobs import LeftOff
from memory.ports import Embedder

PIPED_WIDTH: Final = 110
"""Columns of a table that goes to a file."""
SOAK_SECONDS: Final = 3_600.0
PAUSES: Final = 3
"""A session ends after so many mean pauses of a person: one message in twenty begins a new one."""
LEFT_SECONDS: Final = 60.0
"""How long what is unanswered at the end may still take."""
MOST_GROWTH: Final = 60.0
"""Megabytes an hour that memory may grow in the second half, beside the caches, which are bounded in bytes."""
LONG_SECONDS: Final = 300.0
"""How long a run has to be to tell growth from a beginning."""
FEWEST_LOOKS: Final = 10
INDEX_MB: Final = RecallSettings().index_mb
"""Bound of the indexes, unless another one is asked for."""
DAILY_AT: Final = 0.4
"""When the jobs of a day are due, as a part of the whole time."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much comes: people, messages a second from all of them, seconds; the model takes ``model_seconds``.

    ``index_mb`` bounds the indexes. Whether memory is flat is told best while these are full: as they grow, so does
    what the allocator leaves unused between them.
    """

    chats: int = 1_000
    rate: float = 50.0
    seconds: float = 600.0
    embedder: Literal["scripted", "local", "none"] = "scripted"
    model_seconds: float = 0.5
    quiet_seconds: float = 1.0
    index_mb: int = INDEX_MB

    @property
    def settings(self) -> Settings:
        """Those of the product, but that sessions end sooner: sessions of a usual length are to be distilled."""
        idle = PAUSES * self.chats / self.rate
        return Settings(
            _env_file=None,
            session=SessionSettings(idle_minutes=idle / 60),
            conversation=ConversationSettings(quiet_seconds=self.quiet_seconds),
            access=AccessSettings(open="everybody"),
            recall=RecallSettings(index_mb=self.index_mb),
            # However few there are to write so much.
            budget=BudgetSettings(messages_per_person_a_minute=0, messages_per_chat_a_minute=0),
        )


@dataclass
class Resources:
    """What the process holds and uses, looked at once a second: seconds since the beginning, bytes of memory."""

    seconds: list[float] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)
    caches: list[int] = field(default_factory=list)

    async def watch(self, memory: Memory) -> None:
        """Look until cancelled."""
        began = time.perf_counter()
        while True:
            self.seconds.append(time.perf_counter() - began)
            self.resident.append(resident_bytes())
            self.caches.append(memory.cached_bytes)
            await asyncio.sleep(1)

    def growth(self, values: Sequence[int]) -> float:
        """Megabytes an hour over the second half, by the line that fits best; 0 for too short a time."""
        half = len(self.seconds) // 2
        if half < FEWEST_LOOKS:
            return 0.0
        return statistics.linear_regression(self.seconds[half:], values[half:]).slope * 3_600 / 1e6


class _App(App):
    """The bot, with the jobs of a day due once in the middle of the run."""

    daily_due = False

    async def tick(self) -> None:
        """A round of housekeeping."""
        if self.daily_due:
            self.daily_due = False
            for job in self.memory.jobs:
                with contextlib.suppress(LeftOff):
                    await job.run(self.clock())
        await super().tick()


@contextlib.asynccontextmanager
async def _built(plan: Plan, folder: Path, model: ScriptedModel) -> AsyncIterator[_App]:
    settings, count = plan.settings, token_counter(None)
    embedder: Embedder | None = None
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(model.aclose)
        if plan.embedder == "local":
            embedder = local = LocalEmbedder()
            stack.push_async_callback(local.aclose)
        elif plan.embedder == "scripted":
            embedder = GivenVectors()
        memory = await Memory.open(
            folder / DATABASE_NAME, settings, clock=utc_now, count=count, embedder=embedder, completer=model
        )
        stack.push_async_callback(memory.close)
        agent = Agent(memory, settings, clock=utc_now, count=count, model=model)
        yield _App(settings, memory, agent, utc_now, asyncio.sleep)


@dataclass(frozen=True, slots=True)
class Played:
    """One run."""

    hall: Hall
    model: ScriptedModel
    lag: Lag
    resources: Resources
    backlog: int
    threads: Mapping[str, float]
    seconds: float
    jobs: Mapping[str, Mapping[str, int]]


async def play(plan: Plan, folder: Path) -> Played:
    """Have everybody write and be answered, in a file in ``folder``."""
    started = time.perf_counter()
    model, lag, resources = ScriptedModel(plan.model_seconds), Lag(plan.seconds), Resources()
    hall = Hall(schedule(chats=plan.chats, rate=plan.rate, seconds=plan.seconds))
    async with _built(plan, folder, model) as app:
        keep_out_of_collections()
        app.scheduler.start()
        serving, watching = asyncio.create_task(app.serve(hall)), list[asyncio.Task[None]]()
        try:
            await hall.up.wait()
            used, began = thread_seconds(), time.perf_counter()
            watching += [asyncio.create_task(lag.watch()), asyncio.create_task(resources.watch(app.memory))]
            await asyncio.sleep(plan.seconds * DAILY_AT)
            app.daily_due = True
            await hall.due_over.wait()
            backlog = len(hall.said) - hall.settled
            for task in watching:
                task.cancel()
            threads = {name: seconds - used.get(name, 0.0) for name, seconds in thread_seconds().items()}
            elapsed = time.perf_counter() - began
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LEFT_SECONDS):
                    await hall.written.wait()
                    await app.conversation.idle()
        finally:
            await app.conversation.stop()
            for task in (*watching, serving):
                task.cancel()
            await asyncio.gather(*watching, serving, return_exceptions=True)
            await app.scheduler.stop()
        jobs = {run.name: {**run.counts, "failures": run.failures} for run in await app.memory.job_runs()}
    gc.unfreeze()
    shares = {name: round(seconds / elapsed, 3) for name, seconds in threads.items()}
    return Played(hall, model, lag, resources, backlog, shares, time.perf_counter() - started, jobs)


def resident_bytes() -> int:
    """Bytes of memory this process holds; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def thread_seconds() -> dict[str, float]:
    """CPU seconds of each thread so far, by its name, "all" for the process; only "all" where the system tells none."""
    spent = {"all": time.process_time()}
    for thread in threading.enumerate():
        try:
            fields = Path(f"/proc/self/task/{thread.native_id}/stat").read_text("ascii").rpartition(")")[2].split()
        except OSError:
            continue
        ticks = int(fields[11]) + int(fields[12])
        spent[thread.name] = spent.get(thread.name, 0.0) + ticks / os.sysconf("SC_CLK_TCK")
    return spent


# ---- what came of it ---------------------------------------------------------------------------------


def run_load(plan: Plan) -> dict[str, Any]:
    """Play, and put the figures together."""
    with tempfile.TemporaryDirectory() as folder:
        played = asyncio.run(play(plan, Path(folder)))
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    return figures(plan, played) | {"file_bytes": size}


def figures(plan: Plan, played: Played) -> dict[str, Any]:
    """The figures of a run, with what is not as it must be under "failures"."""
    hall, resources = played.hall, played.resources
    told = hall.said
    waits = {fate: [each.waited for each in told if each.fate == fate] for fate in ("answered", "obeyed", "refused")}
    by_design = plan.quiet_seconds + plan.model_seconds
    over = max((each.due.at + each.waited - by_design for each in told if each.fate), default=0.0)
    busy = sorted(((share, name) for name, share in played.threads.items() if name != "all"), reverse=True)
    result: dict[str, Any] = {
        "chats": plan.chats,
        "rate": plan.rate,
        "seconds": plan.seconds,
        "embedder": plan.embedder,
        "index_mb": plan.index_mb,
        "said": len(told),
        **{fate: len(each) for fate, each in waits.items()},
        "turns": played.model.answered,
        "wrong": dict(hall.verdict())
        | ({"another person's words in a request": s} if (s := played.model.strange) else {}),
        "reached": round(hall.settled / max(over, plan.seconds), 2),
        "backlog": played.backlog,
        "longest_queue": hall.longest_queue,
        "wait_s": {name: percentiles(each) for name, each in waits.items() if each},
        "by_design_s": by_design,
        "loop_lag_ms": percentiles(played.lag.late) | {"own_p99": round(percentile(played.lag.own, 99), 2)},
        "cpu": {"all": played.threads.get("all", 0.0), **{name: share for share, name in busy[:5]}},
        "cpu_ms_a_turn": round(
            1_000 * played.threads.get("all", 0.0) * plan.seconds / max(played.model.answered, 1), 2
        ),
        "memory_mb": {
            "first": round(resources.resident[0] / 1e6, 1) if resources.resident else 0.0,
            "last": round(resources.resident[-1] / 1e6, 1) if resources.resident else 0.0,
            "growth_an_hour": round(resources.growth(resources.resident), 1),
            "caches_last": round(resources.caches[-1] / 1e6, 1) if resources.caches else 0.0,
            "caches_growth_an_hour": round(resources.growth(resources.caches), 1),
        },
        "distilled": played.model.distilled,
        "jobs": dict(played.jobs),
    }
    return result | {"failures": failures(result)}


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """The middle, the 99th of a hundred, and the largest."""
    return {
        "p50": round(percentile(values, 50), 3),
        "p99": round(percentile(values, 99), 3),
        "max": round(max(values, default=0.0), 3),
    }


def failures(result: Mapping[str, Any]) -> list[str]:
    """What is not as it must be, one line each."""
    found = [f"{what}: {times}" for what, times in result["wrong"].items()]
    lag, memory = result["loop_lag_ms"]["p99"], result["memory_mb"]
    if lag >= MOST_LAG_MS:
        found.append(f"the event loop was {lag:g} ms late at the 99th percentile, not under {MOST_LAG_MS:g}")
    if result["reached"] < 0.98 * result["said"] / result["seconds"]:
        found.append(f"{result['reached']:g} messages a second were dealt with, of {result['rate']:g} that came")
    beside = memory["growth_an_hour"] - memory["caches_growth_an_hour"]
    if result["seconds"] >= LONG_SECONDS and beside > MOST_GROWTH:
        found.append(f"memory grew by {beside:.0f} MB an hour beside its caches, not under {MOST_GROWTH:g}")
    found += [f"job {name} failed" for name, counts in result["jobs"].items() if counts["failures"]]
    return found


def table(result: Mapping[str, Any]) -> Table:
    """The figures."""
    lag, memory = result["loop_lag_ms"], result["memory_mb"]
    title = f"{result['chats']:,} people, {result['rate']:g} messages a second, {result['seconds']:g} s"
    shown = Table("what", "value", title=title)
    for label, value in (
        ("vectors from", result["embedder"]),
        ("messages / turns of the model", f"{result['said']:,} / {result['turns']:,}"),
        (
            "answered / commands obeyed / told that it is too much",
            f"{result['answered']:,} / {result['obeyed']:,} / {result['refused']:,}",
        ),
        *((what, f"{times:,}") for what, times in result["wrong"].items()),
        ("messages a second dealt with", f"{result['reached']:g}"),
        ("not dealt with when the last came", f"{result['backlog']:,}"),
        ("most that waited to be heard", f"{result['longest_queue']:,}"),
        *(
            (f"from due to {fate}, p50 / p99 / max, s", " / ".join(f"{value:g}" for value in times.values()))
            for fate, times in result["wait_s"].items()
        ),
        ("... of it by design: quiet time and model, s", f"{result['by_design_s']:g}"),
        ("event loop late, p50 / p99 / max, ms", f"{lag['p50']:g} / {lag['p99']:g} / {lag['max']:g}"),
        ("... by its own work, p99, CPU ms", f"{lag['own_p99']:g}"),
        ("CPU of a turn, ms", f"{result['cpu_ms_a_turn']:g}"),
        *((f"CPU, {name}, of one core", f"{share:.0%}") for name, share in result["cpu"].items()),
        ("memory, first / last, MB", f"{memory['first']:g} / {memory['last']:g}"),
        ("memory, growth in the second half, MB an hour", f"{memory['growth_an_hour']:g}"),
        (
            "... of it indexes, which are bounded, now MB",
            f"{memory['caches_growth_an_hour']:g}, {memory['caches_last']:g} of {result['index_mb']:g}",
        ),
        ("file, MB", f"{result['file_bytes'] / 1e6:.1f}"),
        ("distillations", f"{result['distilled']:,}"),
    ):
        shown.add_row(label, value)
    return shown


def main(plan: Plan, *, as_json: bool) -> int:
    """Measure and print; the exit code is 1 when something is not as it must be."""
    result = run_load(plan)
    if as_json:
        sys.stdout.write(json.dumps(result) + "\n")
    else:
        Console(width=None if sys.stdout.isatty() else PIPED_WIDTH).print(table(result))
    for failure in result["failures"]:
        sys.stderr.write(f"{failure}\n")
    return 1 if result["failures"] else 0
