"""What one process can bear: many people who ask at once, and many facts that come at once."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bot.bench.people import NOW, OWN, GivenVectors, Person, asked, fill, opened, person, stores_in
from bot.bench.scan import TOP
from memory import Memory
from memory.accounts import Accounts
from memory.db import Database
from memory.index import OwnerIndex
from memory.indexes import Indexes
from memory.model import Account
from memory.ports import Vector

ROUNDS: Final = 3
"""Questions each person asks, one after the other."""


async def at_once(folder: Path, people: int) -> dict[str, float]:
    """How many recalls a second so many people with OWN facts get, and how late the event loop answers, p99."""
    path, names = folder / "lag.db", [f"p{number}" for number in range(people)]
    await fill(path, names, OWN)
    async with opened(path) as memory:
        those = [await person(memory, name) for name in names]
        await asyncio.gather(*(_ask(memory, who, asked(1)) for who in those))
        late: list[float] = []
        watch = asyncio.create_task(_watch(late))
        started = time.perf_counter()
        await asyncio.gather(*(_ask(memory, who, asked(ROUNDS, seed=7)) for who in those))
        seconds = time.perf_counter() - started
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch
    return {
        "loop_lag_p99_ms": round(statistics.quantiles(late, n=100)[-1] if len(late) > 1 else 0.0, 3),
        "recalls_a_second": round(people * ROUNDS / seconds),
        "vector_recalls_a_second": round(await _by_vector(path, people)),
    }


async def inserts(folder: Path, facts: int) -> float:
    """Seconds to write so many facts of a new person in one batch, with their vectors, words and citations, sealed."""
    path = folder / "inserts.db"
    await fill(path, ["ann"], 1)
    started = time.perf_counter()
    await fill(path, ["bob"], facts)
    return time.perf_counter() - started


async def _ask(memory: Memory, who: Person, questions: list[str]) -> None:
    for question in questions:
        await memory.recall(who.owner, question, room=who.room, now=NOW)


async def _by_vector(path: Path, people: int) -> float:
    """Recalls a second of the nearest facts alone: a scan of what is in cache, and the facts read from the file."""
    questions = [vector for vector in await GivenVectors().embed(asked(ROUNDS, seed=7)) if vector is not None]
    database = await Database.open(path)
    try:
        accounts = Accounts(database)
        stores, owners = stores_in(database, accounts), (await accounts.all())[:people]
        indexes = Indexes(stores)

        async def recall(owner: Account, vectors: Sequence[Vector]) -> None:
            for vector in vectors:
                async with indexes.of(owner) as index:
                    near = index.by_row(_scanned(index, vector))
                    ids = index.rows["id"][np.argsort(-np.nan_to_num(near, nan=-1.0))[:TOP]].tolist()
                found = await database.together(partial(stores.facts.get, owner, ids))
                if len(found) != TOP:
                    raise ValueError("each question finds as many facts")

        await asyncio.gather(*(recall(owner, questions[:1]) for owner in owners))
        started = time.perf_counter()
        await asyncio.gather(*(recall(owner, questions) for owner in owners))
        return len(owners) * len(questions) / (time.perf_counter() - started)
    finally:
        await database.close()


def _scanned(index: OwnerIndex, vector: Vector) -> NDArray[np.float32]:
    found = index.vectors.scan(vector)
    if found is None:
        raise ValueError("every fact has a vector")
    return found


async def _watch(late: list[float]) -> None:
    pause = 0.001
    while True:
        started = time.perf_counter()
        await asyncio.sleep(pause)
        late.append((time.perf_counter() - started - pause) * 1_000)
