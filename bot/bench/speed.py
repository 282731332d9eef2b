"""``bench speed``: the vector scan and the whole recall, hot and cold, beside a plain loop and numpy in one run."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import heapq
import json
import random
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from bot.app import built
from bot.message import ChatRef, Incoming, Reply
from config.settings import EmbedderSettings, Settings
from memory import Line, Memory
from memory.model import Account, Chat
from memory.ports import Vector
from memory.vectors import Vectors

DIMENSIONS: Final = 1_024
SIZES: Final = (100, 1_000, 10_000, 100_000)
RECALLED_UP_TO: Final = 10_000
"""Largest memory that is written line by line for the whole recall; above it the scan alone is measured."""
COLD_SIZES: Final = (200, 10_000)
PEOPLE: Final = (1, 1_000)
OWN: Final = 200
"""Lines of one person where the number of people is what changes."""
AT_ONCE: Final = 100
TOP: Final = 10
PIPED_WIDTH: Final = 120
"""Columns of a table that goes to a file; on a terminal it is as wide as that."""
START: Final = datetime(2025, 1, 1, 8, tzinfo=UTC)


class GivenVectors:
    """An embedder that costs next to nothing: a vector of length 1 drawn from the text's own hash."""

    model = "bench/given"
    dimensions = DIMENSIONS

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Draw one vector a text."""
        return [drawn(text) for text in texts]


def drawn(text: str) -> Vector:
    """The vector of a text: the same for the same text, in no direction in particular."""
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
    vector = np.random.default_rng(seed).standard_normal(DIMENSIONS, dtype=np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def sentences(count: int, seed: int) -> Iterator[str]:
    """Made-up lines of ten words each, a few words common and many rare."""
    words = random.Random(seed)  # noqa: S311
    for number in range(count):
        picked = (f"word{int(words.paretovariate(0.6)) % 4_000}" for _ in range(9))
        yield f"{' '.join(picked)} item{number}"


# ---- the scan alone ----------------------------------------------------------------------------------


def scan_times(size: int) -> dict[str, float]:
    """The cached scan of ``size`` vectors against a cosine at a time and a numpy float32 product, one thread each.

    ``recall_at_10`` is the share of the exact ten best that the scan's ten best hold, over 20 questions.
    """
    source = np.random.default_rng(size)
    matrix = source.standard_normal((size, DIMENSIONS), dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    questions = source.standard_normal((20, DIMENSIONS), dtype=np.float32)
    questions /= np.linalg.norm(questions, axis=1, keepdims=True)
    held = Vectors()
    held.add([number.to_bytes(16) for number in range(size)], matrix)
    rows = list(matrix)
    scan = _median(lambda q: _best(held.scan(q)), questions)
    plain = _median(lambda q: _best(matrix @ q), questions)
    loop = _median(lambda q: heapq.nlargest(TOP, [_cosine(row, q) for row in rows]), questions[:3])
    hits = [len(set(_best(held.scan(q))) & set(_best(matrix @ q))) / TOP for q in questions]
    return {
        "scan_ms": round(scan, 4),
        "loop_ms": round(loop, 3),
        "numpy_ms": round(plain, 4),
        "x_loop": round(loop / scan, 1),
        "ratio_numpy": round(scan / plain, 2),
        "recall_at_10": round(statistics.fmean(hits), 4),
    }


def _cosine(first: Vector, second: Vector) -> float:
    return float(np.dot(first, second) / (np.linalg.norm(first) * np.linalg.norm(second)))


def _best(scores: NDArray[np.float32] | None) -> list[int]:
    if scores is None:
        return []
    top = np.argpartition(-scores, TOP)[:TOP] if len(scores) > TOP else np.arange(len(scores))
    return [int(place) for place in top[np.argsort(-scores[top])]]


def _median(work: Callable[[Vector], object], questions: NDArray[np.float32]) -> float:
    work(questions[0])
    return statistics.median(_milliseconds(work, question) for question in questions)


def _milliseconds(work: Callable[[Vector], object], question: Vector) -> float:
    started = time.perf_counter()
    work(question)
    return (time.perf_counter() - started) * 1_000


# ---- the whole recall through the public face --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with lines in the journal."""

    owner: Account
    room: Chat


@contextlib.asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Memory]:
    """Memory over a file, with given vectors."""
    memory = await Memory.open(path, Settings(_env_file=None), clock=lambda: START, count=len, embedder=GivenVectors())
    try:
        yield memory
    finally:
        await memory.close()


async def person(memory: Memory, name: str, lines: int = 0) -> Person:
    """Somebody of that name, with so many more lines, embedded."""
    owner = await memory.account("bench", name, name=name)
    room = await memory.chat(owner, f"dm:{name}")
    for number, text in enumerate(sentences(lines, seed=owner.no)):
        await memory.note(owner, room, Line("user", name, START + timedelta(minutes=number), text))
    if lines:
        await memory.embed(owner)
    return Person(owner, room)


async def recall_ms(memory: Memory, who: Person, questions: Sequence[str]) -> list[float]:
    """Milliseconds of one recall a question, threshold, texts and all; the question's vector is given."""
    times = []
    now = START + timedelta(days=365)
    for question in questions:
        started = time.perf_counter()
        await memory.recall(who.owner, question, room=who.room, now=now)
        times.append((time.perf_counter() - started) * 1_000)
    return times


async def hot_and_cold(folder: Path, size: int) -> dict[str, float]:
    """Recall of a person with ``size`` lines: hot, and the first one after a restart."""
    path = folder / f"{size}.db"
    asked = list(sentences(11, seed=size))
    async with opened(path) as memory:
        who = await person(memory, "ann", size)
        hot = statistics.median((await recall_ms(memory, who, asked))[1:])
    async with opened(path) as memory:
        (first,) = await recall_ms(memory, await person(memory, "ann"), asked[:1])
    async with opened(path) as memory:
        who = await person(memory, "ann")
        tracemalloc.start()
        await recall_ms(memory, who, asked[:1])
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return {"hot_ms": hot, "cold_ms": first, "ram": held / size, "disk": _disk(folder, size) / size}


def _disk(folder: Path, size: int) -> int:
    return sum(file.stat().st_size for file in folder.glob(f"{size}.db*"))


async def growth(folder: Path, people: Sequence[int]) -> dict[str, float]:
    """Hot recall of one person with :data:`OWN` lines among more and more other people."""
    times = {}
    asked = list(sentences(21, seed=1))
    async with opened(folder / "growth.db") as memory:
        who = await person(memory, "ann", OWN)
        there = 1
        for crowd in people:
            for number in range(there, crowd):
                await person(memory, f"other{number}", 2)
            there = crowd
            times[str(crowd)] = round(statistics.median((await recall_ms(memory, who, asked))[1:]), 3)
    return times


async def loop_lag(folder: Path, at_once: int) -> float:
    """Milliseconds the event loop answers late, 99th percentile, while so many people recall at once."""
    async with opened(folder / "lag.db") as memory:
        people = [await person(memory, f"p{number}", OWN // 10) for number in range(at_once)]
        for who in people:
            await recall_ms(memory, who, ["warm"])
        late: list[float] = []
        watch = asyncio.create_task(_watch(late))
        await asyncio.gather(*(recall_ms(memory, who, list(sentences(3, seed=7))) for who in people))
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch
    return statistics.quantiles(late, n=100)[-1] if len(late) > 1 else 0.0


async def _watch(late: list[float]) -> None:
    pause = 0.001
    while True:
        started = time.perf_counter()
        await asyncio.sleep(pause)
        late.append((time.perf_counter() - started - pause) * 1_000)


@dataclass
class _Nobody:
    """A sink that listens to nobody."""

    replies: list[Reply] = field(default_factory=list)

    async def show(self, text: str) -> None:
        """Drop a frame."""

    async def send(self, reply: Reply) -> str | None:
        """Keep the reply."""
        self.replies.append(reply)
        return None

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
            times.append(await _awaited(app.agent.answer(incoming, sink)))
    return statistics.median(times[10:])


async def _awaited(work: Awaitable[object]) -> float:
    started = time.perf_counter()
    await work
    return (time.perf_counter() - started) * 1_000


async def run_speed(
    *,
    sizes: Sequence[int] = SIZES,
    cold_sizes: Sequence[int] = COLD_SIZES,
    people: Sequence[int] = PEOPLE,
    at_once: int = AT_ONCE,
) -> dict[str, Any]:
    """Measure everything, at these numbers of lines of one person, of people in the file, and of recalls at once.

    The keys of the answer are those of ``bench speed --json``. Takes some minutes.
    """
    hot: dict[str, dict[str, float | None]] = {}
    cold: dict[str, dict[str, float]] = {}
    whole: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in sorted({*sizes, *cold_sizes}):
            if size <= RECALLED_UP_TO:
                whole[size] = await hot_and_cold(folder, size)
        for size in sizes:
            recall = round(whole[size]["hot_ms"], 3) if size in whole else None
            hot[str(size)] = {**scan_times(size), "recall_ms": recall}
        for size in cold_sizes:
            first, usual = whole[size]["cold_ms"], whole[size]["hot_ms"]
            cold[str(size)] = {
                "load_ms": round(first - usual, 3),
                "recall_ms": round(first, 3),
                "x_hot": round(first / usual, 1),
            }
        largest = whole[max(whole)]
        return {
            "dimensions": DIMENSIONS,
            "hot": hot,
            "cold": cold,
            "bytes_per_fact": {"ram": round(largest["ram"]), "disk": round(largest["disk"])},
            "growth": await growth(folder, people),
            "turn_overhead_ms": round(await turn_overhead(folder / "turns"), 3),
            "loop_lag_p99_ms": round(await loop_lag(folder, at_once), 3),
        }


def tables(result: Mapping[str, Any]) -> Iterator[Table]:
    """The figures as tables."""
    columns = ("scan_ms", "loop_ms", "numpy_ms", "x_loop", "ratio_numpy", "recall_at_10", "recall_ms")
    hot = Table("lines", *columns, title=f"hot, {result['dimensions']} dimensions")
    for size, row in result["hot"].items():
        hot.add_row(size, *("-" if row[column] is None else f"{row[column]:g}" for column in columns))
    yield hot
    cold = Table("lines", "load_ms", "recall_ms", "x_hot", title="first recall after a restart")
    for size, row in result["cold"].items():
        cold.add_row(size, *(f"{row[column]:g}" for column in ("load_ms", "recall_ms", "x_hot")))
    yield cold
    rest = Table("what", "value", title="the rest")
    for place, value in result["bytes_per_fact"].items():
        rest.add_row(f"bytes a line, {place}", f"{value}")
    for people, value in result["growth"].items():
        rest.add_row(f"recall of {OWN} lines among {people} people, ms", f"{value}")
    rest.add_row("turn without model and embedder, ms", f"{result['turn_overhead_ms']}")
    rest.add_row("loop lag under recalls at once, p99, ms", f"{result['loop_lag_p99_ms']}")
    yield rest


def main(*, as_json: bool) -> int:
    """Measure and print; the exit code."""
    result = asyncio.run(run_speed())
    if as_json:
        sys.stdout.write(json.dumps(result) + "\n")
        return 0
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    for table in tables(result):
        console.print(table)
    return 0
