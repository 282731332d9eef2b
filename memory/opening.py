"""What a database file must be before it is opened: ours, whole, and of this version, or brought to it.

Numbered migrations, each in one transaction with its number. A file that is damaged, foreign or from a newer version
is refused before anything in it is touched.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from memory import engine
from memory.private import refuse_link, tighten
from memory.scrubbing import discard
from memory.trouble import RESCUE, DamagedError, DatabaseError, trouble

log = logging.getLogger(__name__)

APPLICATION_ID: Final = 0x7EC011EC
"""Written into the file header, so that no other program's database is ever migrated."""
DATABASE_NAME: Final = "recollect.db"
"""Name of the file in the data folder."""
BUSY_SECONDS: Final = 10.0
"""How long a connection waits for another program's lock."""
PAGE_BYTES: Final = engine.PAGE_BYTES


def migrations() -> list[tuple[int, str, str]]:
    """The shipped migrations as (number, file name, SQL), in order."""
    files = [f for f in resources.files("memory.migrations").iterdir() if f.name.endswith(".sql")]
    return sorted((int(f.name.split("_")[0]), f.name, f.read_text("utf-8")) for f in files)


def prepare(path: Path) -> None:
    """Check the file, then migrate it, each migration in one transaction with its number.

    Raises DatabaseError when it cannot be used, with nothing changed.
    """
    steps = migrations()
    refuse_link(path)
    for loose in tighten(path.parent):
        log.warning("%s could be read by others on this machine; now it is its owner's alone", loose)
    version = inspect(path)
    discard(path)
    due = [step for step in steps if step[0] > version]
    if not due:
        return
    if version:
        copy(path, path.with_suffix(f".v{version}.bak"))
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with contextlib.closing(engine.connect(path, timeout=BUSY_SECONDS)) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # Only a new file takes it.
        for number, name, sql in due:
            log.info("migrating %s to version %d (%s)", path, number, name)
            marks = f"PRAGMA user_version = {number}; PRAGMA application_id = {APPLICATION_ID};"
            script = f"BEGIN IMMEDIATE; {sql}; {marks} COMMIT;"
            try:
                connection.executescript(script)
            except engine.ERROR as error:
                connection.rollback()
                raise DatabaseError(f"{path}: migration {name} failed ({error}); the file is as before.") from error


def drop_copies(path: Path) -> None:
    """Remove what migrations and restores have left beside the file: it may hold what is erased since."""
    for pattern in (f"{path.stem}.v*.bak", f"{path.stem}.replaced-*.db*"):
        for left in path.parent.glob(pattern):
            left.unlink()


def copy(path: Path, copy: Path) -> None:
    """Copy a database whole, what its log holds included, for its owner's eyes only."""
    copy.unlink(missing_ok=True)
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with (
        contextlib.closing(engine.connect(path)) as source,
        contextlib.closing(engine.connect(copy)) as target,
    ):
        source.backup(target)


def inspect(path: Path) -> int:
    """Version of the file at ``path``, 0 for one that is new; it is only read.

    Raises DatabaseError when it is damaged, another program's, or newer than this one.
    """
    newest = migrations()[-1][0]
    if not path.exists() or path.stat().st_size == 0:
        return 0
    # Without a log beside it the file can be read as it is; a plain read-only open would leave a log behind.
    log_file = path.with_name(f"{path.name}-wal")
    how = "mode=ro" if log_file.exists() and log_file.stat().st_size else "mode=ro&immutable=1"
    try:
        with contextlib.closing(engine.connect(f"{path.absolute().as_uri()}?{how}", uri=True)) as connection:
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
            health = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
            lacking = _lacking(connection) if version == newest else ""
    except engine.DATABASE as error:
        found = trouble(path, error)
        if not isinstance(found, DamagedError):
            raise found from error
        raise DamagedError(f"{path} {_unreadable(path, error)}") from error
    if health != "ok":
        raise DamagedError(f"{path} is damaged ({health}). Nothing was changed. {RESCUE}")
    if owner != APPLICATION_ID:
        raise DatabaseError(f"{path} belongs to another program. Set data_dir to a folder of its own.")
    if version > newest:
        raise DatabaseError(
            f"{path} was written by a newer Recollect (version {version}, this one knows {newest}). Nothing was "
            "changed. Update Recollect."
        )
    if lacking:
        raise DatabaseError(
            f"{path} has the version of this Recollect, but not its tables ({lacking}). Nothing was changed. Restore a "
            "backup, or undo what another program did to it."
        )
    return version


def _columns(connection: engine.Opened) -> dict[str, list[str]]:
    """The columns of each table."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {name: [column[1] for column in connection.execute(f"PRAGMA table_info({name})")] for (name,) in tables}


@cache
def _expected() -> Mapping[str, Sequence[str]]:
    """What a file of the newest version has."""
    with contextlib.closing(engine.connect(":memory:", key="")) as connection:
        for _, _, sql in migrations():
            connection.executescript(sql)
        return _columns(connection)


def _lacking(connection: engine.Opened) -> str:
    """What a file that should be of the newest version lacks of it, "" for nothing."""
    there = _columns(connection)
    lacking = (
        f"no table {table}" if table not in there else f"no {column} in {table}"
        for table, columns in _expected().items()
        for column in columns
        if column not in there.get(table, ())
    )
    return next(lacking, "")


def _unreadable(path: Path, error: Exception) -> str:
    """Why a file cannot be read, and what to do."""
    if engine.keyed() and engine.looks_open(path):
        return (
            "is not encrypted, and RECOLLECT_KEY is set. Nothing was changed. Encrypt it with `python -m bot rekey`, "
            "or take RECOLLECT_KEY away."
        )
    if engine.keyed():
        return (
            "is damaged or no SQLite database, or encrypted with another key. Nothing was changed. Set "
            "RECOLLECT_KEY to the key it was written with; if that is the right one, restore a backup."
        )
    return (
        f"is damaged or no SQLite database ({error}). Nothing was changed. {RESCUE} If it is encrypted, set "
        "RECOLLECT_KEY."
    )
