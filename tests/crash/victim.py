"""The real program as a process of its own that dies at the instant it is told: ``python -m tests.crash.victim``.

Everything is imported once, as in :mod:`tests.faults_bot`. What is watched is watched from outside: SQLite's own
trace, Python's audit hook, and the names under which the work begins. Nothing of the product knows of it.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta, tzinfo
from functools import wraps
from pathlib import Path
from typing import Any, Final

import bot.app
import memory.opening
from bot.scheduler import Scheduler
from memory.db import Database
from memory.housekeeping import Housekeeping
from tests.crash.instants import Agreement, Event, Phase
from tests.crash.sabotage import SABOTAGES
from tests.faults_bot import obey, serve, warm

READING: Final = ("SELECT", "PRAGMA", "EXPLAIN", "--", "SAVEPOINT", "RELEASE")
PHASES: Final = {"distil": Phase.DISTILLING, "merge": Phase.MERGING, "erase": Phase.ERASING}
OTHERS: Final = ("end_fleeting", "embed", "expire", "seal", "cool", "trim", "second_chance", "usage")
CHECKPOINT_PAGES: Final = 12
"""After so many pages the log is folded into the file, which is small: else no kill would ever meet that."""


class Watch:
    """Knows in which phase the process is, and kills it at the instant agreed on."""

    def __init__(self, agreement: Agreement, phase: Phase) -> None:
        self._agreement = agreement
        self._phase = phase

    def happens(self, event: Event, sql: str = "") -> None:
        """Count an event, and die if this is the one."""
        if "JOB_RUNS" in sql:
            return  # How often a job looked for work depends on the machine.
        micros = self._agreement.happens(self._phase, event)
        if micros == 0:
            os.kill(os.getpid(), self._agreement.signal)
        elif micros is not None:
            threading.Thread(target=self._die, args=(micros,), daemon=True).start()

    def _die(self, micros: int) -> None:
        time.sleep(micros / 1_000_000)
        os.kill(os.getpid(), self._agreement.signal)

    @contextmanager
    def during(self, phase: Phase) -> Iterator[None]:
        """Be in a phase."""
        before, self._phase = self._phase, phase
        try:
            yield
        finally:
            self._phase = before


def watch_sqlite(watch: Watch) -> None:
    """Have every connection tell what it writes."""

    class Watched(sqlite3.Connection):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            super().execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}").fetchall()
            self.set_trace_callback(self._begins)

        def _begins(self, sql: str) -> None:
            words = sql.lstrip().upper()
            if words.startswith(READING):
                return
            ends = words.startswith("COMMIT") or not (self.in_transaction or words.startswith(("BEGIN", "END")))
            watch.happens(Event.COMMIT if ends else Event.STATEMENT, words)

        def commit(self) -> None:
            super().commit()
            watch.happens(Event.COMMITTED)

        def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
            cursor = super().execute(sql, *given)
            words = sql.lstrip().upper()
            if not self.in_transaction and not words.startswith(READING):
                watch.happens(Event.COMMITTED, words)
            return cursor

    connect = sqlite3.connect

    @wraps(connect)
    def connected(*given: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **{"factory": Watched, **named})
        return connection

    sqlite3.connect = connected  # type: ignore[assignment]


def watch_files(watch: Watch, folder: Path) -> None:
    """Have every change of a file of ours tell; of what happens inside a file SQLite tells."""
    ours = str(folder)

    def heard(event: str, told: tuple[Any, ...]) -> None:
        writes = event in ("os.rename", "os.remove", "os.truncate", "os.link") or (
            event == "open" and isinstance(told[2], int) and told[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        )
        if writes and not isinstance(told[0], int) and str(Path(os.fsdecode(told[0])).absolute()).startswith(ours):
            watch.happens(Event.FILE)

    synchronise = os.fsync

    def fsync(fd: Any) -> None:
        watch.happens(Event.FILE)
        synchronise(fd)

    os.fsync = fsync
    sys.addaudithook(heard)


def watch_work(watch: Watch, agreement: Agreement) -> None:
    """Have each phase tell that it begins, and each round of housekeeping that it ends."""

    def phased(work: Callable[..., Awaitable[Any]], phase: Phase) -> Callable[..., Awaitable[Any]]:
        @wraps(work)
        async def watched(*given: Any, **named: Any) -> Any:
            with watch.during(phase):
                return await work(*given, **named)

        return watched

    for name in (*PHASES, *OTHERS):
        setattr(Housekeeping, name, phased(getattr(Housekeeping, name), PHASES.get(name, Phase.HOUSEKEEPING)))
    Database.scrub = phased(Database.scrub, Phase.REWRITING)  # type: ignore[assignment,method-assign]
    prepare, tick = memory.opening.prepare, bot.app.App.tick

    def prepared(path: Path) -> None:
        with watch.during(Phase.OPENING):
            prepare(path)

    async def ticked(self: bot.app.App) -> None:
        await tick(self)
        agreement.ended_round()

    begin = Scheduler.start

    def begun(self: Scheduler) -> None:
        begin(self)
        loop = asyncio.get_running_loop()
        threading.Thread(target=_pass_on, args=(agreement, loop, self.wake), daemon=True).start()

    Scheduler.start = begun  # type: ignore[method-assign]
    memory.opening.prepare = prepared
    bot.app.App.tick = ticked  # type: ignore[method-assign]


def _pass_on(agreement: Agreement, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
    """Wake the housekeeping as often as it is asked for: ever so often by itself would take all the time there is."""
    seen = agreement.wanted
    while not loop.is_closed():
        if agreement.wanted != seen:
            seen = agreement.wanted
            with suppress(RuntimeError):  # It was closed just now.
                loop.call_soon_threadsafe(wake)
        time.sleep(0.01)


def set_clock(agreement: Agreement) -> None:
    """Have the clock of the product be ahead by what was agreed."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + timedelta(seconds=agreement.shift)

    assert abs(bot.app.utc_now() - datetime.now(UTC)) < timedelta(seconds=5)
    bot.app.datetime = Ahead  # type: ignore[attr-defined]


def be(folder: str, surroundings: Mapping[str, str], words: Sequence[str], phase: int, sabotage: str = "") -> None:
    """Carry out a command line, watched; ``phase`` is what the process is for, ``sabotage`` what it does wrong."""
    if sabotage:
        SABOTAGES[sabotage].commit()
    agreement = Agreement.beside(Path(folder))
    watch = Watch(agreement, Phase(phase))
    set_clock(agreement)
    watch_sqlite(watch)
    watch_files(watch, Path(folder))
    watch_work(watch, agreement)
    watch.happens(Event.BEGUN)
    obey(words, folder, surroundings)


if __name__ == "__main__":
    warm()
    serve(be)
