"""Another key for a file: encrypted for the first time, with a new key, or no more.

The file is written anew beside the old one, looked through, and only then put in its place; whatever breaks off before
leaves it as it was. The bytes of the old one are written over, as far as the disk lets a program do that.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

from memory import engine
from memory.backups import ENDING, seal_again
from memory.db import DatabaseError
from memory.holding import HeldError, alone
from memory.opening import DATABASE_NAME, inspect
from memory.private import sync

REKEYED: Final = ".rekey"
"""What is added to the name of a file while it is written anew."""
_CHUNK: Final = 1 << 20


def new_key() -> str:
    """A key nobody can guess: 32 random bytes as hexadecimal digits."""
    return secrets.token_hex(32)


def rekey(path: Path, new: str) -> int:
    """Write the file at ``path``, opened with the key of this process, with the key ``new`` ("" for none).

    Afterwards the process goes by the new key. Returns how many rows were carried over and found again. Nobody else may
    have the folder open. Raises DatabaseError, after which the file is as before, and KeyRefused.
    """
    new = engine.checked(new)
    if not inspect(path):
        raise DatabaseError(f"{path} does not exist yet: set RECOLLECT_KEY, and the first start makes it encrypted.")
    part = path.with_name(path.name + REKEYED)
    try:
        with alone(path.parent):
            try:
                return _rekeyed(path, part, new)
            finally:
                _drop(part)
    except HeldError:
        raise DatabaseError(f"{path.parent} is in use: stop the bot first.") from None
    except engine.BROKEN as error:
        raise DatabaseError(f"{path} could not be written with another key: {error}. It is as before.") from error


def _rekeyed(path: Path, part: Path, new: str) -> int:
    _drop(part)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    before = _export(path, part, new)
    after = _rows(part, new)
    if before != after:
        raise DatabaseError(f"{part} does not hold what {path} holds; nothing was changed. Try again.")
    sync(part)
    is_backup = path.with_name(path.name + ENDING).exists()
    with path.open("r+b") as old:
        engine.use(new)
        if is_backup:
            seal_again(part, path)
        else:
            part.replace(path)
            sync(path.parent)
        _overwrite(old.fileno())
    if path.name == DATABASE_NAME:
        for copy in path.parent.glob(f"{path.stem}.v*.bak"):  # Of an older version, with the old key.
            copy.unlink()
    return sum(after.values())


def _export(path: Path, part: Path, new: str) -> dict[str, int]:
    """Write every row of a file to another one with the key ``new``; returns how many rows each table has."""
    with contextlib.closing(engine.connect_by_cipher(path)) as old:
        old.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        old.execute("PRAGMA journal_mode = DELETE").fetchall()
        engine.attach(old, part, "fresh", new)
        old.execute("SELECT sqlcipher_export('fresh')").fetchall()
        for name in ("user_version", "application_id"):
            (number,) = old.execute(f"PRAGMA main.{name}").fetchone()
            old.execute(f"PRAGMA fresh.{name} = {int(number)}").fetchall()
        old.execute("DETACH fresh")
        return _counts(old)


def _rows(path: Path, key: str) -> dict[str, int]:
    with contextlib.closing(engine.connect(path, key=key)) as opened:
        problems = [str(row[0]) for row in opened.execute("PRAGMA integrity_check(1)")]
        if problems != ["ok"]:
            raise DatabaseError(f"{path} is not whole ({problems[0]}); nothing was changed. Try again.")
        return _counts(opened)


def _counts(opened: engine.Opened) -> dict[str, int]:
    tables = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {name: int(opened.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]) for (name,) in tables}


def _overwrite(file: int) -> None:
    """Write zeros over what no name leads to any more."""
    left = os.fstat(file).st_size
    os.lseek(file, 0, os.SEEK_SET)
    while left > 0:
        left -= os.write(file, b"\0" * min(left, _CHUNK))
    os.fsync(file)


def _drop(part: Path) -> None:
    for end in ("", "-journal", "-wal", "-shm"):
        part.with_name(part.name + end).unlink(missing_ok=True)
