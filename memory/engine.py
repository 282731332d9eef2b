"""The library that opens the file: SQLite, or SQLCipher once there is a key. Nothing else opens a database.

A process has one data folder and one key. The key is told once (:func:`use`), before the first file is opened, and goes
for every file after that: the memory, its log, its copies, its backups and what an erasure writes anew. Whatever is
written is encrypted page by page (AES-256, HMAC-SHA-512), the log (``-wal``) too.
"""

from __future__ import annotations

import re
import sqlite3
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

PAGE_BYTES: Final = 8_192
"""A vector of 1,024 numbers (2.1 kB a row) wastes half of a 4 kB page."""
STATEMENTS: Final = 512
"""Statements a connection keeps ready: there are more of them than the 128 that Python keeps by itself."""
_KEY: Final = re.compile(r"[0-9a-f]{64}", re.IGNORECASE)
_NO_CIPHER: Final = "a key needs SQLCipher: install the package sqlcipher3"
_BEGINNING: Final = b"SQLite format 3\0"
"""What a file begins with that is not encrypted."""

try:
    _cipher: Any = import_module("sqlcipher3.dbapi2")
except ImportError:  # No wheel for this machine.
    _cipher = None


def _both(name: str) -> tuple[type[Exception], ...]:
    """An error of SQLite, and the one of the same name of SQLCipher, which is no relation of it."""
    return tuple(getattr(module, name) for module in (sqlite3, _cipher) if module is not None)


ERROR: Final = _both("Error")
OPERATIONAL: Final = _both("OperationalError")
DATABASE: Final = _both("DatabaseError")
BROKEN: Final[tuple[type[Exception], ...]] = (*ERROR, OSError)
REFUSED: Final[tuple[type[Exception], ...]] = (*OPERATIONAL, *_both("IntegrityError"))
"""What a write ends with that was not done."""


class KeyRefused(Exception):
    """A key that is none, or none that can be used here; the text says what to do and holds nothing of it."""


class _Keys:
    """The key of this process, "" for none."""

    now: str = ""


def use(key: str | None) -> None:
    """Open every file with ``key`` (64 hexadecimal digits) from now on, or without one.

    Raises KeyRefused when that is no key, or SQLCipher is not installed.
    """
    _Keys.now = checked(key or "")


def checked(key: str) -> str:
    """Return a key as it is used, "" for none. Raises KeyRefused."""
    if not key:
        return ""
    if _KEY.fullmatch(key) is None:
        raise KeyRefused("a key is 64 hexadecimal digits; `python -m bot rekey --new` makes one")
    if _cipher is None:
        raise KeyRefused(_NO_CIPHER)
    return key.lower()


def keyed() -> bool:
    """Whether there is a key."""
    return bool(_Keys.now)


Opened = sqlite3.Connection
"""An open file, whichever library opened it."""


def connect(
    database: Path | str,
    *,
    uri: bool = False,
    timeout: float = 5.0,
    rows: bool = False,
    one_thread: bool = True,
    key: str | None = None,
) -> Opened:
    """Open a file; each statement is a transaction unless one is begun, and ``rows`` are told by their columns' names.

    Waits ``timeout`` seconds for others. ``one_thread``: only the one that opened it may use it. ``key`` instead of
    that of the process. Raises what ERROR names; a wrong key shows at the first statement.
    """
    key = _Keys.now if key is None else key
    if not key:
        connection = sqlite3.connect(
            database,
            uri=uri,
            isolation_level=None,
            timeout=timeout,
            check_same_thread=one_thread,
            cached_statements=STATEMENTS,
        )
        connection.row_factory = sqlite3.Row if rows else None
        return connection
    cipher = _by_cipher(str(database), key, uri=uri, timeout=timeout, one_thread=one_thread)
    cipher.row_factory = _cipher.Row if rows else None
    return cipher


def connect_by_cipher(path: Path) -> Opened:
    """Open a file by the library that knows keys, with the key of this process or none: both can be attached to it."""
    return _by_cipher(str(path), _Keys.now)


def attach(opened: Opened, path: Path, name: str, key: str) -> None:
    """Attach another file, with a key of its own or none, to what :func:`connect_by_cipher` opened."""
    opened.execute(f"ATTACH ? AS {name} KEY {_raw(key)}", (str(path),))
    if not key:
        opened.execute(f"PRAGMA {name}.page_size = {PAGE_BYTES}").fetchall()


def _by_cipher(database: str, key: str, *, uri: bool = False, timeout: float = 5.0, one_thread: bool = True) -> Opened:
    if _cipher is None:
        raise KeyRefused(_NO_CIPHER)
    # The same interface (PEP 249 and what sqlite3 adds to it), by another library.
    how = {
        "uri": uri,
        "isolation_level": None,
        "timeout": timeout,
        "check_same_thread": one_thread,
        "cached_statements": STATEMENTS,
    }
    opened = cast("sqlite3.Connection", _cipher.connect(database, **how))
    for pragma in ("cipher_log_level = NONE", f"cipher_default_page_size = {PAGE_BYTES}"):
        opened.execute(f"PRAGMA {pragma}").fetchall()
    if key:
        opened.execute(f"PRAGMA key = {_raw(key)}").fetchall()
    return opened


def _raw(key: str) -> str:
    """A key as SQLCipher takes it without deriving one from it: it is random enough, and every opening is quick."""
    return f"\"x'{key}'\"" if key else "''"


def looks_open(path: Path) -> bool:
    """Whether a file begins as one that is not encrypted does."""
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING
