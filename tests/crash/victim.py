"""The real program as a process of its own that dies at the instant it is told: ``python -m tests.crash.victim``.

Everything is imported once, as in :mod:`tests.faults_bot`. What is watched is watched from outside: SQLite's own
trace, Python's audit hook, and the names under which the work begins. Nothing of the product knows of it.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from functools import wraps
from pathlib import Path
from typing import Any, Final

import bot.app
import memory.db
from memory.housekeeping import Housekeeping
from tests.crash.instants import Agreement, Event, Phase
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

    def happens(self, event: Event) -> None:
        """Count an event, and die if this is the one."""
        micros = self._agreement.happens(self._phase, event)
        if micros == 0:
            die()
        elif micros is not None:
            threading.Thread(target=die, args=(micros,), daemon=True).start()

    @contextmanager
    def during(self, phase: Phase) -> Iterator[None]:
        """Be in a phase."""
        before, self._phase = self._phase, phase
        try:
            yield
        finally:
            self._phase = before


def die(micros: int = 0) -> None:
    """End, now or in some microseconds, as if the power had gone."""
    if micros:
        time.sleep(micros / 1_000_000)
    os.kill(os.getpid(), signal.SIGKILL)


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
            watch.happens(Event.COMMIT if ends else Event.STATEMENT)

        def commit(self) -> None:
            super().commit()
            watch.happens(Event.COMMITTED)

        def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
            cursor = super().execute(sql, *given)
            if not self.in_transaction and not sql.lstrip().upper().startswith(READING):
                watch.happens(Event.COMMITTED)
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
        writes = event in ("os.rename", "os.remove", "os.truncate", "shutil.move") or (
            event == "open" and isinstance(told[2], int) and told[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        )
        if writes and str(Path(os.fsdecode(told[0])).absolute()).startswith(ours):
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
    prepare, tick = memory.db._prepare, bot.app.App.tick

    def prepared(path: Path) -> None:
        with watch.during(Phase.OPENING):
            prepare(path)

    async def ticked(self: bot.app.App) -> None:
        await tick(self)
        agreement.ended_round()

    memory.db._prepare = prepared
    bot.app.App.tick = ticked  # type: ignore[method-assign]


def set_clock(agreement: Agreement) -> None:
    """Have the clock of the product be ahead by what was agreed."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + timedelta(seconds=agreement.shift)

    assert abs(bot.app.utc_now() - datetime.now(UTC)) < timedelta(seconds=5)
    bot.app.datetime = Ahead  # type: ignore[attr-defined]


def be(folder: str, surroundings: Mapping[str, str], words: Sequence[str], phase: int) -> None:
    """Carry out a command line, watched; ``phase`` is what the process is for."""
    agreement = Agreement.beside(Path(folder))
    watch = Watch(agreement, Phase(phase))
    set_clock(agreement)
    watch_sqlite(watch)
    watch_files(watch, Path(folder) / "data")
    watch_work(watch, agreement)
    watch.happens(Event.BEGUN)
    obey(words, folder, surroundings)


if __name__ == "__main__":
    warm()
    serve(be)
