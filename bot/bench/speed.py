"""``bench speed``: the vector scan and the whole recall, hot and cold, beside a plain loop and numpy in one run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import threading
import time
import tracemalloc
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.console import Console
from rich.table import Table

from bot.app import App, built
from bot.bench import speedplot
from bot.bench.people import (
    DIMENSIONS,
    NOW,
    OWN,
    START,
    GivenVectors,
    Person,
    asked,
    drawn,
    fill,
    opened,
    person,
    sentences,
)
from bot.bench.scan import scan_times
from bot.bench.throughput import at_once, inserts
from bot.commands import Commands, Order
from bot.message import ChatRef, Incoming, Posted, Reply, Sink
from bot.turn import Said
from config.settings import EmbedderSettings, Settings
from memory import Line, Memory, embedding
from memory.accounts import Accounts
from memory.db import Database
from memory.embedding import Embeddings
from memory.vectors import Vectors

PIPED_WIDTH: Final = 120
"""Columns of a table that goes to a file; on a terminal it is as wide as that."""
QUESTIONS: Final = 21
RESTARTS: Final = 5
LARGE: Final = 10_000
"""From so many facts on fewer questions and restarts have to do."""
_VECTOR_WORK: Final = ((Vectors, "add"), (Vectors, "open"), (Vectors, "scan"), (Vectors, "best"), (embedding, "unpack"))

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured: facts of one person hot and after a restart, people in the file, recalls at once."""

    sizes: tuple[int, ...] = (100, 1_000, 10_000, 100_000)
    cold_sizes: tuple[int, ...] = (100, 200, 1_000, 10_000)
    people: tuple[int, ...] = (1, 1_000, 10_000)
    at_once: int = 100
    inserted: int = 1_000
    known: int = 2_000


# ---- recall through the public face ------------------------------------------------------------------


@dataclass
class Recalls:
    """What recalls took, each: wall milliseconds, and the longest that it held the event loop, CPU milliseconds."""

    times: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)

    async def ask(self, memory: Memory, who: Person, questions: Sequence[str]) -> None:
        """Recall for each question, threshold, budget, texts and all; the question's vector is given."""
        for question in questions:
            drawn(question)
            steps: list[float] = []
            work = stepped(memory.recall(who.owner, question, room=who.room, now=NOW), steps)
            self.times.append(await _milliseconds(work))
            self.held.append(max(steps))


@types.coroutine
def stepped(work: Coroutine[Any, Any, Result], steps: list[float]) -> Generator[Any, Any, Result]:
    """Await ``work`` and note how long each of its steps holds the event loop, CPU milliseconds."""
    while True:
        started = time.thread_time()
        try:
            waits_for = work.send(None)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            steps.append((time.thread_time() - started) * 1_000)
        yield waits_for


@contextlib.contextmanager
def vector_work(on_loop: list[float]) -> Iterator[None]:
    """While the block runs, note each piece of vector work that is done in this thread, CPU milliseconds."""
    loop = threading.get_ident()

    def watched(work: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            started = time.thread_time()
            try:
                return work(*arguments, **options)
            finally:
                if threading.get_ident() == loop:
                    on_loop.append((time.thread_time() - started) * 1_000)

        return timed

    with contextlib.ExitStack() as stack:
        for place, name in _VECTOR_WORK:
            whole = getattr(place, name)
            setattr(place, name, watched(whole))
            stack.callback(setattr, place, name, whole)
        yield


async def _milliseconds(work: Awaitable[object]) -> float:
    started = time.perf_counter()
    await work
    return (time.perf_counter() - started) * 1_000


async def hot(path: Path, size: int) -> tuple[dict[str, float], list[float]]:
    """The scan alone, and recall of a person whose memory is in cache; and the vector work on the loop."""
    recalls, first, on_loop = Recalls(), Recalls(), list[float]()
    questions = asked(QUESTIONS if size <= LARGE else QUESTIONS // 4)
    async with opened(path) as memory:
        who = await person(memory, "ann")
        with vector_work(on_loop):
            # An interpreter is as fast as it gets after some ten; the ones that are measured are others.
            await first.ask(memory, who, asked(len(questions), seed=1))
            await recalls.ask(memory, who, questions)
    row = scan_times(size, DIMENSIONS) | {
        "recall_ms": round(statistics.median(recalls.times), 3),
        "held_ms": round(statistics.median(recalls.held), 3),
    }
    return row, on_loop


async def cold(path: Path, size: int, hot_ms: float) -> dict[str, float]:
    """The first recall after a restart, and how long its vectors alone take to load; medians over restarts.

    A restart closes the file and every cache of memory; modules stay imported.
    """
    restarts = RESTARTS if size < LARGE else 2
    loads = [await _load(path) for _ in range(restarts)]
    recalls = Recalls()
    for number in range(restarts):
        async with opened(path) as memory:
            await recalls.ask(memory, await person(memory, "ann"), asked(1, seed=number))
    recall = statistics.median(recalls.times)
    return {
        "load_ms": round(statistics.median(loads), 3),
        "recall_ms": round(recall, 3),
        "hot_ms": round(hot_ms, 3),
        "x_hot": round(recall / hot_ms, 1),
        "held_ms": round(statistics.median(recalls.held), 3),
    }


async def _load(path: Path) -> float:
    """Milliseconds from a file just opened to a person's vectors in cache."""
    database = await Database.open(path)
    try:
        accounts = Accounts(database)
        owner = (await accounts.all())[0]
        store = Embeddings(database, accounts, GivenVectors(), lambda: START)
        started = time.perf_counter()
        held, pages = Vectors(await store.centre(owner)), await store.pages(owner)
        if pages is not None:
            held.open(pages.pages, pages.keys)
        rows = await store.rows(owner, after=0 if pages is None else pages.last)
        held.add(rows.hashes, rows.matrix)
        return (time.perf_counter() - started) * 1_000
    finally:
        await database.close()


async def ram(path: Path, size: int) -> int:
    """Bytes a fact takes in memory once it was recalled from: vectors, words, columns."""
    async with opened(path) as memory:
        who = await person(memory, "ann")
        tracemalloc.start()
        await Recalls().ask(memory, who, asked(1))
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return round(held / size)


async def growth(folder: Path, people: Sequence[int]) -> dict[str, float]:
    """Hot recall of one person with :data:`OWN` facts among more and more other people."""
    path, times, there = folder / "growth.db", {}, 1
    await fill(path, ["ann"], OWN)
    for crowd in people:
        await fill(path, [f"other{number}" for number in range(there, crowd)], 2)
        there, recalls = max(there, crowd), Recalls()
        async with opened(path) as memory:
            who = await person(memory, "ann")
            await recalls.ask(memory, who, asked(2 * QUESTIONS))
        times[str(crowd)] = round(statistics.median(recalls.times[1:]), 3)
    return times


async def whatdoyouknow(folder: Path, size: int) -> float:
    """Median milliseconds of /whatdoyouknow, from the command to its whole reply, for a person with so many facts."""
    path = folder / "known.db"
    await fill(path, ["ann"], size)
    async with opened(path) as memory:
        who = await person(memory, "ann")
        heard = await memory.note(who.owner, who.room, Line("user", "ann", NOW, "", "command"))
        commands = Commands(memory, lambda: NOW, Settings())
        order = Order(who.owner, who.room, heard.message, "whatdoyouknow", "")
        times = [await _milliseconds(commands.run(order)) for _ in range(QUESTIONS)]
    return statistics.median(times[1:])


@dataclass
class _Nobody:
    """A sink that listens to nobody."""

    replies: list[Reply] = field(default_factory=list)

    def watch(self, posted: Posted) -> None:
        """Nothing is shown."""

    async def show(self, text: str) -> None:
        """Drop a frame."""

    async def send(self, reply: Reply) -> str | None:
        """Keep the reply."""
        self.replies.append(reply)
        return None

    async def abandon(self, *, keep: bool) -> bool:
        """Nothing was shown."""
        del keep
        return True

    async def done(self) -> None:
        """Nothing ends here."""


async def turn_overhead(folder: Path) -> float:
    """Median milliseconds of a whole turn without model and without embedder: journal, rules, recall, trace."""
    settings = Settings(_env_file=None, data_dir=folder, embedder=EmbedderSettings(kind="none")).model_copy(
        update={"openai_base_url": None, "openai_model": None}
    )
    sink, chat = _Nobody(), ChatRef("console", "dm:1")
    async with built(settings) as app:
        times = []
        for number, text in enumerate(sentences(60, seed=3)):
            incoming = Incoming(chat, "1", "Ann", f"m{number}", text, START + timedelta(seconds=number))
            times.append(await _milliseconds(_answered(app, incoming, sink)))
    return statistics.median(times[10:])


async def _answered(app: App, incoming: Incoming, sink: Sink) -> None:
    heard = await app.agent.hear(incoming)
    if isinstance(heard, Said):
        await app.agent.answer([heard], sink)


# ---- the whole run -----------------------------------------------------------------------------------


async def sections(plan: Plan) -> AsyncIterator[dict[str, Any]]:
    """Measure part after part; each yields its keys of ``bench speed --json`` as soon as they are there."""
    with tempfile.TemporaryDirectory() as name:
        folder, on_loop = Path(name), list[float]()
        rows: dict[int, dict[str, float]] = {}
        disk: dict[int, int] = {}
        await fill(folder / "1.db", ["ann"], 1)
        fixed = (folder / "1.db").stat().st_size
        for size in sorted({*plan.sizes, *plan.cold_sizes}):
            path = folder / f"{size}.db"
            started = time.perf_counter()
            await fill(path, ["ann"], size)
            rows[size] = {"fill_s": round(time.perf_counter() - started, 2)}
            rows[size]["disk"] = disk[size] = round((path.stat().st_size - fixed) / size)
            figures, on_the_loop = await hot(path, size)
            rows[size] |= figures
            on_loop += on_the_loop
        yield {"dimensions": DIMENSIONS, "hot": {str(size): rows[size] for size in plan.sizes}}
        yield {
            "cold": {
                str(size): await cold(folder / f"{size}.db", size, rows[size]["recall_ms"]) for size in plan.cold_sizes
            }
        }
        largest = max(plan.cold_sizes)
        per_fact = {"ram": await ram(folder / f"{largest}.db", largest), "disk": disk[largest]}
        yield {"bytes_per_fact": per_fact, "file_bytes": fixed}
        yield {"growth": await growth(folder, plan.people)}
        yield {
            "turn_overhead_ms": round(await turn_overhead(folder / "turns"), 3),
            **await at_once(folder, plan.at_once),
            "insert_s": round(await inserts(folder, plan.inserted), 3),
            "on_loop_ms_max": round(max(on_loop, default=0.0), 3),
            "whatdoyouknow_ms": round(await whatdoyouknow(folder, plan.known), 3),
        }


async def run_speed(plan: Plan, *, shown: Callable[[Table], object] | None = None) -> dict[str, Any]:
    """Measure everything, and hand each table to ``shown`` as soon as its figures are there. Takes some minutes."""
    result: dict[str, Any] = {}
    async for section in sections(plan):
        result |= section
        if shown is not None:
            shown(table(section))
    return result


def table(section: Mapping[str, Any]) -> Table:
    """The figures of one part."""
    for name, title in (("hot", "in cache"), ("cold", "first recall after a restart")):
        if name in section:
            return _by_size(f"{title}, facts of {DIMENSIONS} numbers", section[name])
    rest = Table("what", "value")
    for place, value in section.get("bytes_per_fact", {}).items():
        rest.add_row(f"bytes a fact, {place}", f"{value:,}")
    for people, value in section.get("growth", {}).items():
        rest.add_row(f"recall of {OWN} facts among {people} people, ms", f"{value:g}")
    for key, label in _LABELS.items():
        if key in section:
            rest.add_row(label, f"{section[key]:g}")
    return rest


_LABELS: Final = {
    "turn_overhead_ms": "turn without model and embedder, ms",
    "loop_lag_p99_ms": f"event loop late under recalls at once ({OWN} facts each), p99, ms",
    "recalls_a_second": f"whole recalls a second, as many people at once, {OWN} facts each",
    "vector_recalls_a_second": f"recalls by vector alone a second, with their texts, {OWN} facts each",
    "insert_s": "facts with vectors and words in one batch, sealed, s",
    "file_bytes": "bytes of a file with one fact",
    "on_loop_ms_max": "longest vector work on the event loop, CPU ms",
    "whatdoyouknow_ms": "/whatdoyouknow, ms",
}


def _by_size(title: str, rows: Mapping[str, Mapping[str, float]]) -> Table:
    columns = list(next(iter(rows.values()), {}))
    shown = Table("facts", *columns, title=title)
    for size, row in rows.items():
        shown.add_row(f"{int(size):,}", *(f"{row[column]:g}" for column in columns))
    return shown


def main(*, as_json: bool, plots: Path | None = None) -> int:
    """Measure and print, and draw into the folder ``plots``; the exit code, 1 if nothing can be drawn."""
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    result = asyncio.run(run_speed(Plan(), shown=None if as_json else console.print))
    if as_json:
        sys.stdout.write(json.dumps(result) + "\n")
    return 0 if plots is None else speedplot.drawn(plots, result, own=OWN)
