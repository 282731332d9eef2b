"""Housekeeping: what has to happen behind the replies, one owner at a time, safe to kill and to repeat."""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from structlog.contextvars import bound_contextvars

from memory import engine
from memory.clock import moment, stamp
from memory.db import Database, DatabaseError
from memory.opening import inspect, migrations

log = logging.getLogger(__name__)

LEAP: Final = timedelta(days=3)
"""Since the last run of a daily job, after which what cannot be undone is left for the next one: by then a clock that
has leapt has been put right."""


class LeftOff(Exception):
    """A job was asked to leave off before its end; it is due again at the next start."""


_RUNS = "SELECT name, finished_at, did_at, counts, failures, due_at, run FROM job_runs ORDER BY name"


@dataclass(frozen=True, slots=True)
class Job:
    """A named piece of housekeeping. ``run`` takes the present and returns counts of what it did.

    What is ``lasting`` takes away by age, for good: it does not trust a clock that has just leapt.
    """

    name: str
    every: timedelta
    run: Callable[[datetime], Awaitable[Mapping[str, int]]]
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class JobRun:
    """What is known of a job: when it last came to its end (None: never), when it last did something and what.

    ``failures`` counts the runs that broke off since. ``due_at`` is when it runs next (None: at once), ``run`` the
    number under which the log tells of its last run. Times are aware UTC.
    """

    name: str
    finished_at: datetime | None
    did_at: datetime | None
    counts: Mapping[str, int]
    failures: int
    due_at: datetime | None = None
    run: str = ""


class Runs:
    """Store of when each job last finished, so that a restart neither forgets nor repeats a run.

    Names of jobs and times only: it holds nobody's memory and needs no owner.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    async def due(self, job: Job, *, now: datetime) -> bool:
        """Whether ``job`` has to run: once after any downtime, however many runs were missed."""
        rows = await self._db.fetch("SELECT finished_at FROM job_runs WHERE name = ?", (job.name,))
        if not rows:
            return True
        last = moment(rows[0]["finished_at"])
        # A clock that was set back must not silence a job until it has caught up.
        return bool(now - last >= job.every or last > now)

    async def leapt(self, job: Job, *, now: datetime) -> bool:
        """Whether so much time has passed since the last run that the clock may have leapt; a long stop looks alike."""
        rows = await self._db.fetch("SELECT finished_at FROM job_runs WHERE name = ?", (job.name,))
        return bool(rows and rows[0]["finished_at"]) and now - moment(rows[0]["finished_at"]) > LEAP

    async def finished(self, job: Job, counts: Mapping[str, int], *, now: datetime, run: str = "") -> None:
        """Note that ``job`` ran to its end; of a run that did something also what, until the next one that does."""
        did = any(counts.values())
        await self._db.execute(
            "INSERT INTO job_runs (name, finished_at, did_at, counts, due_at, run)"
            " VALUES (:name, :at, :did_at, :counts, :due_at, :run)"
            " ON CONFLICT (name) DO UPDATE SET finished_at = :at, failures = 0, did_at = coalesce(:did_at, did_at),"
            " counts = iif(:did_at IS NULL, counts, :counts), due_at = :due_at, run = :run",
            {
                "name": job.name,
                "at": stamp(now),
                "due_at": stamp(now + job.every),
                "run": run,
                "did_at": stamp(now) if did else None,
                "counts": json.dumps(dict(counts)) if did else "{}",
            },
        )

    async def failed(self, job: Job, *, run: str = "") -> None:
        """Count that ``job`` broke off; it is due again at once."""
        await self._db.execute(
            "INSERT INTO job_runs (name, finished_at, failures, run) VALUES (:name, 0, 1, :run)"
            " ON CONFLICT (name) DO UPDATE SET failures = failures + 1, due_at = NULL, run = :run",
            {"name": job.name, "run": run},
        )

    async def all(self) -> list[JobRun]:
        """What is known of each job, in the order of their names."""
        return [_run(row) for row in await self._db.fetch(_RUNS)]


def last_runs(path: Path) -> list[JobRun]:
    """What a file tells of its jobs, only read; nothing for one that is new or of an older version."""
    if inspect(path) < migrations()[-1][0]:
        return []
    with contextlib.closing(engine.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, rows=True)) as connection:
        return runs_in(connection)


def runs_in(connection: engine.Opened) -> list[JobRun]:
    """What an open file tells of its jobs."""
    return [_run(row) for row in connection.execute(_RUNS)]


def _run(row: sqlite3.Row) -> JobRun:
    finished = moment(row["finished_at"]) if row["finished_at"] else None
    did, due = moment(row["did_at"]), moment(row["due_at"])
    return JobRun(row["name"], finished, did, json.loads(row["counts"]), row["failures"], due, row["run"])


async def run_due(
    jobs: tuple[Job, ...], runs: Runs, *, now: datetime, leaving: Callable[[], bool] = lambda: False
) -> dict[str, Mapping[str, int]]:
    """Run every job that is due, one after the other; a job that fails is logged and tried again next time.

    None is begun once ``leaving`` says so.

    Returns the counts of each job that ran to its end.
    """
    done: dict[str, Mapping[str, int]] = {}
    for job in jobs:
        if leaving():
            break
        # Whatever the run writes into the log, deep below, carries these two.
        run = secrets.token_hex(4)
        with bound_contextvars(job=job.name, run=run):
            try:
                counts = await _run_if_due(job, runs, now=now, run=run)
            except DatabaseError as error:
                # Of no use to the others either: it is told once, and they are tried with it in the next round.
                log.error("housekeeping waits for the database: %s", error)  # noqa: TRY400 - its words say all
                break
            if counts is not None:
                done[job.name] = counts
    return done


async def _run_if_due(job: Job, runs: Runs, *, now: datetime, run: str) -> Mapping[str, int] | None:
    """Run a job if it is due; what it counted, None of one that was not, that left off or that broke off.

    Raises DatabaseError when the file does not even take the note of it.
    """
    if not await runs.due(job, now=now):
        return None
    try:
        if job.lasting and await runs.leapt(job, now=now):
            log.warning(
                "job %s waits for a day: by the clock it last ran long ago, and the clock may be wrong", job.name
            )
            counts: Mapping[str, int] = {}
        else:
            counts = await job.run(now)
    except LeftOff:
        return None
    except Exception as error:
        if isinstance(error, DatabaseError):
            log.error("job %s failed; it will be tried again: %s", job.name, error)  # noqa: TRY400
        else:
            log.exception("job %s failed; it will be tried again", job.name)
        await runs.failed(job, run=run)
        return None
    await runs.finished(job, counts, now=now, run=run)
    if any(counts.values()):
        log.info("job %s: %s", job.name, dict(counts))
    return counts
