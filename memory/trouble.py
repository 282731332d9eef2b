"""What a person can do about a file that SQLite cannot use: one sentence for each sort of trouble."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_HELD: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_FIXES: Final = {
    sqlite3.SQLITE_BUSY: "another program holds it: end that program",
    sqlite3.SQLITE_LOCKED: "another program holds it: end that program",
    sqlite3.SQLITE_FULL: "the disk is full: make room, and it goes on by itself",
    sqlite3.SQLITE_READONLY: "it cannot be written: give the file and its folder to the user the bot runs as, and see "
    "that the disk is not mounted read-only",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check that its folder is there and belongs to the bot's user",
    sqlite3.SQLITE_PERM: "it may not be used: give it to the user the bot runs as",
    sqlite3.SQLITE_IOERR: "the disk does not read or write it: check whether it is full or fails",
}
_SORT: Final = 0xFF
"""The part of SQLite's code that names the sort; the rest tells more of it."""
RESCUE: Final = (
    "Stop the bot and keep the file as it is; `python -m bot check` says what is wrong with it. Restore a backup, or "
    "move the file away to start empty."
)
"""What to do about a damaged file."""


class DatabaseError(Exception):
    """The database cannot be used or did not take a write; the text says why. Nothing was changed.

    ``busy``: another program holds it, which passes.
    """

    busy = False


class DamagedError(DatabaseError):
    """The file is damaged: it is written to no more, so that whoever mends it finds it as it is."""


def trouble(path: Path, error: sqlite3.Error) -> DatabaseError:
    """Return what an error of SQLite means for the file at ``path``."""
    sort = _sort(error)
    if sort in _DAMAGED:
        return DamagedError(f"{path} is damaged ({error}). Nothing more is written to it. {RESCUE}")
    fix = _FIXES.get(sort)
    found = DatabaseError(f"{path}: {error}" + (f"; {fix}." if fix else "."))
    found.busy = sort in _HELD
    return found


def is_trouble(error: sqlite3.Error, *, writing: bool) -> bool:
    """Whether it is the file's trouble, or its refusal of what was written, and no mistake in a question of ours."""
    refused = writing and isinstance(error, sqlite3.OperationalError | sqlite3.IntegrityError)
    return refused or _sort(error) in _DAMAGED | _FIXES.keys()


def _sort(error: sqlite3.Error) -> int:
    return (getattr(error, "sqlite_errorcode", None) or 0) & _SORT
