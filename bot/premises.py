"""What ``check`` looks at on this machine: who can read the files, room on the disk, the log, the backups."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from bot import logs
from bot.finding import Finding
from config.settings import Settings
from memory import DATABASE_NAME, DatabaseError, backup_made_at, own_backups, verify_backup
from memory.ports import Clock

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
LITTLE: Final = 500_000_000
"""Bytes left on a disk below which it is worth a warning."""
TOO_LITTLE: Final = 20_000_000
"""Bytes left below which messages are lost soon."""
OLD: Final = timedelta(days=7)
"""Age of a backup made by hand from which it is worth a warning."""
LATE: Final = 2.0
"""Cycles after which a backup that was to be made by itself is missing."""


def look_at_premises(settings: Settings, *, clock: Clock) -> list[Finding]:
    """Look at everything; changes nothing, and says nothing of what is not there yet."""
    return [
        *look_at_readers(settings),
        look_at_disk(settings.data_dir),
        look_at_log(settings.data_dir),
        *look_at_backups(settings, now=clock()),
    ]


def look_at_readers(settings: Settings) -> list[Finding]:
    """Whether others on this machine can read what people said."""
    files = [*_held(settings.data_dir), *(own_backups(settings.backup_dir))]
    open_ = [path for path in files if stat.S_IMODE(path.stat().st_mode) & OTHERS]
    return [
        Finding("warn", f"{path} can be read by others on this machine", f"chmod 600 {path}")
        if path.is_file()
        else Finding("warn", f"{path} can be entered by others on this machine", f"chmod 700 {path}")
        for path in open_
    ]


def look_at_disk(folder: Path) -> Finding:
    """Whether there is room for what people will say."""
    try:
        free = shutil.disk_usage(_nearest(folder)).free
    except OSError as error:
        return Finding("fail", f"disk: {folder} cannot be looked at", error.strerror or "")
    told = f"disk: {free / 1e9:,.1f} GB left for {folder}"
    if free < TOO_LITTLE:
        return Finding("fail", told, "make room: nothing can be remembered without it")
    return Finding("warn", told, "make room, or move data_dir") if free < LITTLE else Finding("ok", told)


def look_at_log(folder: Path) -> Finding:
    """Whether the log can be written."""
    file = folder / logs.FILE
    place = file if file.exists() else _nearest(folder)
    if (file.exists() and not file.is_file()) or not os.access(place, os.W_OK):
        return Finding("fail", f"log: {place} cannot be written", "give it to the user the bot runs as")
    return Finding("ok", f"log: {file}")


def look_at_backups(settings: Settings, *, now: datetime) -> list[Finding]:
    """Whether there is a backup that could be restored, and whether it is as young as it should be."""
    if not (settings.data_dir / DATABASE_NAME).exists():
        return []  # There is nothing to lose yet.
    hours, folder = settings.backup.every_hours, settings.backup_dir
    fix = "see the log" if hours else "set [backup] every_hours = 24, or run `python -m bot backup`"
    if not os.access(_nearest(folder), os.W_OK):
        return [Finding("fail", f"backups: {folder} cannot be written", "give it to the user the bot runs as")]
    dated = [(at, path) for path in own_backups(folder) if (at := backup_made_at(path)) is not None]
    if not dated:
        return [Finding("warn", f"backups: none in {folder}", fix)]
    at, newest = max(dated)
    told = f"backups: {len(dated)} in {folder}, the newest of {at:%Y-%m-%d %H:%M} UTC"
    try:
        verify_backup(newest)
    except DatabaseError as error:
        return [Finding("fail", told, f"{error}")]
    if at - now > timedelta(hours=1):
        return [Finding("warn", told, "that is in the future: is this machine's clock right?")]
    if now - at > (timedelta(hours=hours * LATE) if hours else OLD):
        return [Finding("warn", told, f"that is old: {fix}")]
    return [Finding("ok", f"{told}, looked through")]


def _held(folder: Path) -> Iterator[Path]:
    """What holds words, and the folder they are in."""
    if folder.is_dir():
        yield folder
        yield from (path for path in sorted(folder.glob("recollect.*")) if path.is_file())


def _nearest(path: Path) -> Path:
    return next(each for each in (path, *path.absolute().parents) if each.exists())
