"""What a person can do about a file that SQLite cannot use: one sentence for each sort of trouble."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from memory import engine

_BUSY, _LOCKED, _PERM, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _NOTADB = 5, 6, 3, 8, 10, 11, 13, 14, 26
"""Codes of SQLite, by their names there; SQLCipher's errors bear none, only their words."""
_WORDS: Final = {
    "malformed": _CORRUPT,
    "not a database": _NOTADB,
    "locked": _BUSY,
    "full": _FULL,
    "readonly": _READONLY,
    "unable to open": _CANTOPEN,
    "disk I/O": _IOERR,
}
_DAMAGED: Final = frozenset({_CORRUPT, _NOTADB})
_HELD: Final = frozenset({_BUSY, _LOCKED})
_FIXES: Final = {
    _BUSY: "another program holds it: end that program",
    _LOCKED: "another program holds it: end that program",
    _FULL: "the disk is full: make room, and it goes on by itself",
    _READONLY: "it cannot be written: give the file and its folder to the user the bot runs as, and see that the disk "
    "is not mounted read-only",
    _CANTOPEN: "it cannot be opened: check that its folder is there and belongs to the bot's user",
    _PERM: "it may not be used: give it to the user the bot runs as",
    _IOERR: "the disk does not read or write it: check whether it is full or fails",
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


def trouble(path: Path, error: BaseException) -> DatabaseError:
    """Return what an error of SQLite means for the file at ``path``."""
    sort = _sort(error)
    if sort in _DAMAGED:
        return DamagedError(f"{path} is damaged ({error}). Nothing more is written to it. {RESCUE}")
    fix = _FIXES.get(sort)
    found = DatabaseError(f"{path}: {error}" + (f"; {fix}." if fix else "."))
    found.busy = sort in _HELD
    return found


def is_trouble(error: BaseException, *, writing: bool) -> bool:
    """Whether it is the file's trouble, or its refusal of what was written, and no mistake in a question of ours."""
    return (writing and isinstance(error, engine.REFUSED)) or _sort(error) in _DAMAGED | _FIXES.keys()


def _sort(error: BaseException) -> int:
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int):
        return code & _SORT
    words = str(error)
    return next((sort for told, sort in _WORDS.items() if told in words), 0)
