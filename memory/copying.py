"""The bot's own backups: made by themselves where the settings say so, and cleaned of what was erased since."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from config.settings import BackupSettings
from memory import backups, ledger, restoring
from memory.db import Database, DatabaseError
from memory.ports import Clock

log = logging.getLogger(__name__)

AGAIN: Final = timedelta(hours=1)
"""Pause after a failure."""


class Copies:
    """Makes, cleans and thins out the backups in one folder."""

    def __init__(self, db: Database, settings: BackupSettings, folder: Path, *, clock: Clock) -> None:
        self._db = db
        self._settings = settings
        self._folder = folder
        self._clock = clock
        self._cleaned: datetime | None = None
        self._not_before: datetime | None = None

    @property
    def cycle(self) -> timedelta:
        """Within how long what is erased is gone from the backups, too."""
        return timedelta(hours=self._settings.cycle_hours)

    def cycle_hours(self) -> float:
        """The same in hours, 0 where there are no backups that could hold what is erased."""
        return self._settings.cycle_hours if backups.own(self._folder) else 0

    async def run(self, now: datetime) -> Mapping[str, int]:
        """Do what is due: a new backup, what was erased out of the others, the oldest away."""
        if self._not_before is not None and self._not_before - AGAIN <= now < self._not_before:
            return {}
        try:
            made = await self._make(now)
            cleaned = await self._clean(now)
            thinned = await asyncio.to_thread(backups.thin, self._folder, self._settings.keep) if made else 0
        except (DatabaseError, OSError):
            log.exception("the backups wait: they are tried again in an hour")
            self._not_before = now + AGAIN
            return {"failed": 1}
        self._not_before = None
        return {"made": made, "cleaned": cleaned, "thinned": thinned}

    async def _make(self, now: datetime) -> int:
        if not self._settings.every_hours:
            return 0
        newest = max((at for path in backups.own(self._folder) if (at := backups.made_at(path))), default=None)
        # A clock that was set back must not end backups until it has caught up.
        if newest is not None and timedelta(0) <= now - newest < self.cycle:
            return 0
        target = self._folder / backups.name_at(now)
        await asyncio.to_thread(backups.take, self._db.path, target, now=now)
        return 1

    async def _clean(self, now: datetime) -> int:
        """Take out of each backup what was erased since; one that cannot be read goes: it would keep what it holds."""
        if self._cleaned is not None and timedelta(0) <= now - self._cleaned < self.cycle:
            return 0
        rows = 0
        if files := backups.own(self._folder):
            known = await ledger.all_known(self._db)
            for file in files:
                match await asyncio.to_thread(backups.condition, file):
                    case "whole":
                        rows += await restoring.clean(file, known, clock=self._clock)
                    case "damaged":
                        log.warning("%s is damaged; it is deleted, for nothing can be taken out of it", file)
                        await asyncio.to_thread(backups.remove, file)
                    case "unreadable":
                        log.warning("%s needs another key, or is damaged: what is erased stays in it. Delete it.", file)
        self._cleaned = now
        return rows
