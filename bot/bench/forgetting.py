"""``bench forget``: one person with a large memory is erased from a file that holds many others."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.console import Console
from rich.table import Table

from bot.bench.people import PLATFORM, START, GivenVectors, Person, fill, person, sentences, stores_in
from config.settings import Settings
from memory import Line, Memory
from memory.accounts import Accounts, Chats
from memory.db import Database
from memory.model import PRIVATE, Account, Candidate, Citation
from memory.sealing import Sealing
from memory.sessions import Sessions
from memory.shipped import Shipped

MARKER: Final = "gardenia7f3a"
"""Stands in all that the person ever said; in nothing of anybody else."""
ERASED: Final = "erased"
TALKING: Final = "talking"
PAUSE: Final = 0.02
"""Seconds between two messages of somebody else while the person is erased."""
CHUNK: Final = 1 << 24
PIPED_WIDTH: Final = 120

Result = TypeVar("Result")


@dataclass
class Watch:
    """How long messages of somebody else waited to be durable, ms, by what was done meanwhile."""

    waits: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    async def during(self, memory: Memory, who: Person, name: str, work: Awaitable[Result]) -> Result:
        """Do ``work`` while somebody else goes on talking."""
        waits = self.waits.setdefault(name, [])
        talk = asyncio.create_task(_talk(memory, who, waits))
        started = time.perf_counter()
        try:
            return await work
        finally:
            self.seconds[name] = time.perf_counter() - started
            talk.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await talk

    @property
    def figures(self) -> dict[str, dict[str, float]]:
        """Seconds that each thing took, and the longest that a message waited during it, ms."""
        return {
            name: {"seconds": round(self.seconds[name], 3), "longest_wait_ms": round(max(waits, default=0.0), 1)}
            for name, waits in self.waits.items()
        }


async def _talk(memory: Memory, who: Person, waits: list[float]) -> None:
    """Journal a message every PAUSE seconds, as hearing does before anything else."""
    number = 0
    while True:
        number += 1
        started = time.perf_counter()
        try:
            await memory.note(who.owner, who.room, Line("user", who.owner.name, START, f"still here, {number}"))
        finally:
            waits.append((time.perf_counter() - started) * 1_000)
        await asyncio.sleep(PAUSE)


async def run_forget(folder: Path, *, people: int, each: int, facts: int) -> dict[str, Any]:
    """Erase one person with ``facts`` from a file in ``folder`` with so many people of ``each``; returns figures."""
    path = folder / "recollect.db"
    others = [f"p{number}" for number in range(people)]
    await fill(path, others, each, alike=True)
    await _tell(path, facts)
    moment = [START]
    watch = Watch()
    theirs = await _others(path)
    async with _opened(path, moment) as memory:
        who, other = await person(memory, ERASED), await person(memory, TALKING)
        before = _size(folder)

        async def shown(words: str) -> int:
            plan = await memory.plan_forgetting(who.owner, who.room, words, now=moment[0])
            if plan is None or len(plan.entries) != facts:
                raise ValueError("everything that was told is to be found")
            return plan.offer

        await watch.during(memory, other, "show what words name", shown(MARKER))
        offer = await watch.during(memory, other, "show everything", shown("everything"))
        hide = memory.forget(who.owner, offer, picks=None, now=moment[0], typed=True)
        if await watch.during(memory, other, "hide", hide) is None:
            raise ValueError("the offer was open")
        moment[0] += timedelta(hours=1)
        scrubbing = _timed(memory)
        with scrubbing as scrub:
            await watch.during(memory, other, "erase", _erased(memory, moment[0]))
        receipts = [owed for owed in await memory.notices() if owed.owner.no == who.owner.no]
    after = _size(folder)
    return {
        "people": people,
        "facts_of_others": people * each,
        "facts_erased": facts,
        "steps": watch.figures,
        "scrub_seconds": round(sum(scrub), 3),
        "bytes_before": before,
        "bytes_after": after,
        "marker_found_in_files": await asyncio.to_thread(found_in_files, folder),
        "receipts": [dict(owed.notice.data) for owed in receipts],
        "others_untouched": theirs == await _others(path),
    }


async def _erased(memory: Memory, now: datetime) -> None:
    """Let the job run that erases."""
    (job,) = [job for job in memory.jobs if job.name == "erase"]
    done = await job.run(now)
    if done["erased"] != 1 or done["failed"]:
        raise ValueError(f"one deletion was due: {done}")


async def _tell(path: Path, facts: int) -> None:
    """Have one person say so many sentences, each answered, and each a memory with its vector."""
    database = await Database.open(path)
    try:
        accounts = Accounts(database)
        owner = await accounts.meet(PLATFORM, ERASED, name=ERASED, language="en", zone="UTC", at=START)
        chat = await Chats(database).enter(owner, f"dm:{ERASED}", private=True, at=START)
        await accounts.meet(PLATFORM, TALKING, name=TALKING, language="en", zone="UTC", at=START)
        stores, texts = stores_in(database, accounts), [f"{text} {MARKER}" for text in sentences(facts, seed=1)]
        async with database.transaction():
            session = await Sessions(database, timedelta(hours=1)).touch(owner, chat, START)
            said = await stores.journal.add(owner, chat, session, [_line(owner, text) for text in texts])
            told = [Line("bot", "Recollect", START, f"Noted: {m.text}", answers=m.id) for m in said]
            replies = await stores.journal.add(owner, chat, session, told)
            made = [Candidate("fact", (Citation(m.id, m.text, START),), "en", text=m.text) for m in said]
            await stores.facts.add_all(owner, made, audience=PRIVATE, now=START)
            for message, reply in zip(said, replies, strict=True):
                trace = {"recalled": [{"id": message.id, "kind": "message", "band": "full", "scores": {}}]}
                await stores.traces.add(owner, chat, reply.id, trace, at=START)
        shipped = Shipped(stores.embeddings)
        await shipped.fetch("en")
        await stores.embeddings.fill(owner)
        await Sealing(database, stores).seal(owner, shipped.centre())
    finally:
        await database.close()


def _line(owner: Account, text: str) -> Line:
    return Line("user", owner.name, START, text, platform_id=text.split()[-2])


@contextlib.asynccontextmanager
async def _opened(path: Path, moment: list[datetime]) -> AsyncIterator[Memory]:
    """Memory over a file at a moment that can be put on."""
    memory = await Memory.open(
        path, Settings(_env_file=None), clock=lambda: moment[0], count=len, embedder=GivenVectors()
    )
    try:
        yield memory
    finally:
        await memory.close()


@contextlib.contextmanager
def _timed(memory: Memory) -> Iterator[list[float]]:
    """While the block runs, note the seconds that rewriting the file takes."""
    taken: list[float] = []
    database = memory._db  # noqa: SLF001
    whole = database.scrub

    async def timed() -> None:
        started = time.perf_counter()
        await whole()
        taken.append(time.perf_counter() - started)

    database.scrub = timed  # type: ignore[method-assign]
    try:
        yield taken
    finally:
        del database.scrub


async def _others(path: Path) -> list[str]:
    """A hash of all that is known of each but the one who is erased and the one who talks meanwhile."""
    database = await Database.open(path)
    try:
        accounts = Accounts(database)
        stores, found = stores_in(database, accounts), []
        for other in [account for account in await accounts.all() if account.user_id not in (ERASED, TALKING)]:
            digest = hashlib.blake2b(digest_size=16)
            for store in stores.entries:
                digest.update(repr(await store.history(other)).encode())
            digest.update(repr(await stores.journal.said(other)).encode())
            held = await stores.embeddings.pages(other)
            for page in [] if held is None else held.pages:
                digest.update(page.data.tobytes() + page.scales.tobytes())
            found.append(digest.hexdigest())
        return found
    finally:
        await database.close()


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def found_in_files(folder: Path) -> int:
    """How often the marker stands in any file of a folder, whatever reads those bytes."""
    marker, count = MARKER.encode(), 0
    for path in folder.iterdir():
        with path.open("rb") as file:
            rest = b""
            while piece := file.read(CHUNK):
                count += (rest + piece).count(marker)
                rest = (rest + piece)[-len(marker) + 1 :]
    return count


def table(figures: dict[str, Any]) -> Table:
    """The figures, for a person."""
    made = Table("", "seconds", "longest wait of another's message, ms", title=_title(figures))
    for name, step in figures["steps"].items():
        made.add_row(name, f"{step['seconds']:.2f}", f"{step['longest_wait_ms']:.0f}")
    made.add_row("  of it rewriting the file", f"{figures['scrub_seconds']:.2f}", "")
    made.caption = (
        f"Bytes of all files: {figures['bytes_before']:,} before, {figures['bytes_after']:,} after. The marker stands"
        f" in them {figures['marker_found_in_files']} times. Rows of others"
        f" {'are as they were' if figures['others_untouched'] else 'HAVE CHANGED'}. Receipt: {figures['receipts']}."
    )
    return made


def _title(figures: dict[str, Any]) -> str:
    return (
        f"One person with {figures['facts_erased']:,} facts erased beside {figures['facts_of_others']:,} facts"
        f" of {figures['people']:,} others"
    )


def main(*, people: int, each: int, facts: int, as_json: bool) -> int:
    """Run it in a scratch folder and print; 1 when anything of the person is left or others were touched."""
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(run_forget(Path(folder), people=people, each=each, facts=facts))
    if as_json:
        sys.stdout.write(f"{json.dumps(figures)}\n")
    else:
        Console(width=None if sys.stdout.isatty() else PIPED_WIDTH).print(table(figures))
    return 0 if figures["others_untouched"] and not figures["marker_found_in_files"] and figures["receipts"] else 1
