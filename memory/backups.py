"""Backups: whole copies of the file, taken while everybody goes on, and looked through before they count.

A copy is written row by row (no byte of what was erased is in it) under a name that no backup has, checked, and only
then given its own. Beside it lies a list with its checksum, in the form ``sha256sum --check`` reads.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from memory import engine
from memory.db import DatabaseError
from memory.holding import Held, HeldError
from memory.opening import inspect
from memory.private import sync

ENDING: Final = ".sha256"
"""What is added to the name of a backup for the file with its checksum."""
PART: Final = ".part"
"""What is added to the name of a file that is no backup yet."""
_NAME: Final = re.compile(r"recollect-(\d{8}T\d{6}Z)(?:-\d+)?\.db")
_FORM: Final = "%Y%m%dT%H%M%SZ"
_COUNTED: Final = ("accounts", "journal", "profile", "timeline", "facts")
"""Tables whose rows are told to whoever makes or restores a backup."""
SPARE_BYTES: Final = 16_000_000
"""What a disk has to have left beside the copy."""
_CHUNK: Final = 1 << 20
_PROBLEMS: Final = 3
"""Problems of a damaged file that are told."""


Condition = Literal["whole", "damaged", "unreadable"]


class BackupError(DatabaseError):
    """A backup could not be made or cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A file that was looked through: its schema ``version``, rows by table, ``size`` in bytes, and when it was made.

    ``made_at`` is None for a file that does not tell; ``sealed`` whether a checksum beside it was right.
    """

    path: Path
    version: int
    counts: Mapping[str, int]
    size: int
    made_at: datetime | None = None
    sealed: bool = False
    all_counts: Mapping[str, int] = field(default_factory=dict, repr=False)


def name_at(now: datetime) -> str:
    """The name of a backup made at ``now`` (aware)."""
    return f"recollect-{now.astimezone(UTC):{_FORM}}.db"


def own(folder: Path) -> list[Path]:
    """The backups in a folder that bear the names we give, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name) and path.is_file())


def made_at(path: Path) -> datetime | None:
    """When a backup was made, by the list beside it or by its name; None if neither tells."""
    with contextlib.suppress(OSError, ValueError, UnicodeDecodeError):
        found = re.search(r"^# made (\S+)", path.with_name(path.name + ENDING).read_text("utf-8"), re.MULTILINE)
        if found:
            return datetime.fromisoformat(found[1])
    named = _NAME.fullmatch(path.name)
    return datetime.strptime(named[1], _FORM).replace(tzinfo=UTC) if named else None


def take(database: Path, target: Path, *, now: datetime) -> Backup:
    """Copy the database at ``database`` to the new file ``target``; takes its time and belongs in a thread.

    Nobody waits for it: it reads one moment, and what is written meanwhile is not in it. Raises BackupError when there
    is nothing to copy, when ``target`` exists, when the disk has no room for it, and when the copy is not whole.
    """
    if not inspect(database):
        raise BackupError(f"{database} does not exist yet: there is nothing to back up.")
    _refuse_existing(target)
    held = None
    try:
        held = Held(database.parent)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _look_for_room(database, target.parent)
        part = target.with_name(f".{target.name}{PART}")
        try:
            expected = copy_whole(database, part)
            made = looked_through(part)
            if expected is not None and expected != made.all_counts:
                raise BackupError(f"{part} does not hold what {database} holds; try again.")
            _seal(part, target, now=now, version=made.version)
            give_name(part, target)
        finally:
            _drop(part)
    except HeldError:
        raise BackupError(f"A restore is under way in {database.parent}: try again when it is done.") from None
    except engine.BROKEN as error:
        raise BackupError(f"{target} could not be written: {error}. Nothing was changed.") from error
    finally:
        if held is not None:
            held.release()
    return Backup(target, made.version, made.counts, made.size, now, sealed=True, all_counts=made.all_counts)


def verify(path: Path) -> Backup:
    """Look through a file that is said to be a backup: checksum, every page, every reference, what is in it.

    Raises BackupError, which says what is wrong; the file is only read.
    """
    if not path.is_file():
        raise BackupError(f"{path} is no file: name a backup.")
    if path.name.endswith(PART):
        raise BackupError(f"{path} is the beginning of a backup that was never finished: choose another one.")
    told = _told_checksum(path)
    if told is not None and told != checksum(path):
        raise BackupError(f"{path} is not what was written: its checksum is another one. Choose another backup.")
    if not inspect(path):
        raise BackupError(f"{path} is empty: choose another backup.")
    try:
        found = looked_through(path)
    except engine.ERROR as error:
        raise BackupError(f"{path} cannot be read ({error}): choose another backup.") from error
    return Backup(
        path, found.version, found.counts, found.size, made_at(path), sealed=told is not None,
        all_counts=found.all_counts,
    )  # fmt: skip


def condition(path: Path) -> Condition:
    """Whether a file is a database without damage, a damaged one, or one that needs another key than ours, or none."""
    try:
        looked_through(path)
    except BackupError:
        return "damaged"
    except engine.DATABASE:
        return "damaged" if engine.looks_open(path) and not engine.keyed() else "unreadable"
    return "whole"


def remove(path: Path) -> None:
    """Delete a backup and its checksum."""
    path.unlink(missing_ok=True)
    path.with_name(path.name + ENDING).unlink(missing_ok=True)


def thin(folder: Path, keep: int) -> int:
    """Delete our own backups in a folder but the newest ``keep``, and what was never finished; returns how many."""
    for left in folder.glob(f".recollect-*{PART}*"):
        left.unlink(missing_ok=True)
    for listed in folder.glob(f"*{ENDING}"):
        # It is written before the backup has its name, so that a stop in between leaves it alone.
        path = listed.with_name(listed.name.removesuffix(ENDING))
        if _NAME.fullmatch(path.name) and not path.exists():
            listed.unlink(missing_ok=True)
    old = own(folder)[:-keep]
    for path in old:
        remove(path)
    return len(old)


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    seen = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_CHUNK):
            seen.update(piece)
    return seen.hexdigest()


def give_name(part: Path, target: Path) -> None:
    """Give a finished file its name, all at once, unless something has that name. Raises BackupError, OSError."""
    try:
        os.link(part, target)
    except FileExistsError:
        _refuse_existing(target)
    except OSError:  # A file system without hard links.
        _refuse_existing(target)
        part.rename(target)
    sync(target.parent)


def seal_again(part: Path, target: Path) -> None:
    """Put a finished file in the place of a backup that is there, with its new checksum and the old time."""
    when = made_at(target)
    made = looked_through(part)
    old = target.with_name(target.name + ENDING)
    # Without its checksum a backup is still one; with a wrong one it is none. So the old one goes first.
    old.unlink(missing_ok=True)
    part.replace(target)
    if when is not None:
        _seal(target, target, now=when, version=made.version)
    sync(target.parent)


def _refuse_existing(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise BackupError(f"{target} exists, and a backup overwrites nothing: choose another name.")


def _look_for_room(database: Path, folder: Path) -> None:
    log = database.with_name(f"{database.name}-wal")
    wanted = database.stat().st_size + (log.stat().st_size if log.exists() else 0) + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise BackupError(
            f"{folder} has {free / 1e6:,.0f} MB left and a backup needs {wanted / 1e6:,.0f} MB: make room, or choose "
            "another folder."
        )


def copy_whole(database: Path, part: Path) -> dict[str, int] | None:
    """Write all rows as of one moment, for the owner's eyes only.

    Returns how many rows each table had, or None when somebody wrote meanwhile: nobody knows it of that moment then.
    """
    _drop(part)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with (
        contextlib.closing(engine.connect(database, timeout=10.0)) as source,
        contextlib.closing(engine.connect(database, timeout=10.0)) as watch,
    ):
        begun = _data_version(watch)
        source.execute("VACUUM INTO ?", (str(part),))
        expected = _counts(watch)
        undisturbed = _data_version(watch) == begun
    sync(part)
    return expected if undisturbed else None


def _drop(part: Path) -> None:
    for end in ("", "-journal", "-wal", "-shm"):
        part.with_name(part.name + end).unlink(missing_ok=True)


def looked_through(path: Path) -> Backup:
    """Read every page of a file that nobody writes to, and see that every reference points at something.

    Raises BackupError and engine.ERROR.
    """
    with _opened(path) as connection:
        problems = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_PROBLEMS})")]
        if problems != ["ok"]:
            raise BackupError(f"{path} is damaged ({'; '.join(problems)}): choose another backup.")
        if broken := connection.execute("PRAGMA foreign_key_check").fetchall():
            raise BackupError(f"{path} is damaged ({len(broken)} rows point at nothing): choose another backup.")
        every = _counts(connection)
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    return Backup(path, version, {t: every.get(t, 0) for t in _COUNTED}, path.stat().st_size, all_counts=every)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A file that is read as it lies there, without a log beside it."""
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with contextlib.closing(engine.connect(address, uri=True)) as connection:
        yield connection


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    ).fetchall()
    return {name: int(connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]) for (name,) in tables}


def _data_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _seal(file: Path, target: Path, *, now: datetime, version: int) -> None:
    """Write the list that goes beside ``target``, all at once."""
    made = now.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    text = f"# made {made} schema {version}\n{checksum(file)}  {target.name}\n"
    listed = target.with_name(target.name + ENDING)
    part = target.with_name(f".{listed.name}{PART}")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
    sync(part)
    part.replace(listed)


def _told_checksum(path: Path) -> str | None:
    """The checksum beside a backup, None where there is none for it. Raises BackupError for one that is no checksum."""
    listed = path.with_name(path.name + ENDING)
    try:
        text = listed.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BackupError(f"{listed} cannot be read ({type(error).__name__}): delete it to do without.") from error
    found = re.search(r"^([0-9a-f]{64})  ", text, re.MULTILINE)
    if found is None:
        raise BackupError(f"{listed} holds no checksum: delete it to do without.")
    return found[1]
