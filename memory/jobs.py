"""Housekeeping: what has to happen behind the replies, one owner at a time, safe to kill and to repeat."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory.clock import moment, stamp
from memory.db import Database

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """A named piece of housekeeping. ``run`` takes the present and returns counts of what it did."""

    name: str
    every: timedelta
    run: Callable[[datetime], Awaitable[Mapping[str, int]]]


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

    async def finished(self, job: Job, *, now: datetime) -> None:
        """Note that ``job`` ran to its end."""
        await self._db.execute(
            "INSERT INTO job_runs (name, finished_at) VALUES (:name, :at)"
            " ON CONFLICT (name) DO UPDATE SET finished_at = :at",
            {"name": job.name, "at": stamp(now)},
        )


async def run_due(jobs: tuple[Job, ...], runs: Runs, *, now: datetime) -> dict[str, Mapping[str, int]]:
    """Run every job that is due, one after the other; a job that fails is logged and tried again next time.

    Returns the counts of each job that ran to its end.
    """
    done: dict[str, Mapping[str, int]] = {}
    for job in jobs:
        if not await runs.due(job, now=now):
            continue
        try:
            counts = await job.run(now)
        except Exception:
            log.exception("job %s failed; it will be tried again", job.name)
            continue
        await runs.finished(job, now=now)
        done[job.name] = counts
        if any(counts.values()):
            log.info("job %s: %s", job.name, dict(counts))
    return done
