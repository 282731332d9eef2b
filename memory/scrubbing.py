"""A file written anew beside the old one, while everybody goes on reading and writing that.

Rewriting a file in place holds every writer up for as long as it takes, seconds for a large one. Here the old file is
copied row by row into a new one, without a byte that no row holds; what is written meanwhile is noted by its key
(temporary triggers on the one connection that writes) and carried over in rounds; only for the last, short one do
writers wait, and then the new file takes the place of the old one.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from memory import engine
from memory.private import sync

NOTES: Final = "scrub_changed"
"""Name of the temporary table in which changes are noted."""
ENDING: Final = ".new"
FEW: Final = 200
"""Changed rows that are carried over while writers wait; more get a round of their own before."""
MOST_ROUNDS: Final = 20
"""Rounds after which writers have to wait however much they have written."""

Changed = Mapping[str, Sequence[int | str]]
"""Keys of changed rows by table."""


def target_of(path: Path) -> Path:
    """Where the new file of a database is written."""
    return path.with_name(f"{path.name}{ENDING}")


def discard(path: Path) -> None:
    """Remove what is left of a new file that never took its place: it may hold what is erased since."""
    for end in ("", "-journal", "-wal", "-shm"):
        target_of(path).with_name(f"{target_of(path).name}{end}").unlink(missing_ok=True)


def noting(tables: Mapping[str, str]) -> list[str]:
    """Statements that have a connection note the key of every row it changes; ``tables`` name theirs."""
    # Without a key of its own: what the changing statement does about conflicts goes for its triggers, too.
    made = [f"CREATE TEMP TABLE {NOTES} (name TEXT, key)"]
    for table, key in tables.items():
        for what, rows in (("INSERT", ("new",)), ("DELETE", ("old",)), ("UPDATE", ("old", "new"))):
            notes = " ".join(f"INSERT INTO {NOTES} VALUES ('{table}', {row}.{key});" for row in rows)
            made.append(
                f"CREATE TEMP TRIGGER {NOTES}_{table}_{what.lower()} AFTER {what} ON main.{table} BEGIN {notes} END"
            )
    return made


def forgetting_notes(tables: Mapping[str, str]) -> list[str]:
    """Statements that undo :func:`noting`, wherever it got to."""
    triggers = (f"{NOTES}_{table}_{what}" for table in tables for what in ("insert", "delete", "update"))
    return [*(f"DROP TRIGGER IF EXISTS temp.{name}" for name in triggers), f"DROP TABLE IF EXISTS temp.{NOTES}"]


def keys(path: Path) -> dict[str, str]:
    """By which column a changed row is found again in each table: its number, else the first column of its key."""
    found = {}
    with contextlib.closing(engine.connect(path)) as connection:
        tables = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        for name, sql in tables:
            columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
            first = next((column[1] for column in columns if column[5] == 1), "rowid")
            found[name] = first if "WITHOUT ROWID" in sql.upper() else "rowid"
    return found


class NewFile:
    """The new file, from its first row to its last; every method takes its time and belongs in a thread."""

    def __init__(self, path: Path, tables: Mapping[str, str]) -> None:
        self._path = path
        self._target = target_of(path)
        self._tables = tables
        self._triggers: list[str] = []

    def copy(self) -> None:
        """Write all rows as of this moment, for the owner's eyes only. Raises engine.ERROR and OSError."""
        discard(self._path)
        os.close(os.open(self._target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with contextlib.closing(engine.connect(self._path)) as old:
            old.execute("VACUUM INTO ?", (str(self._target),))
        with self._opened() as new:
            self._triggers = [sql for (sql,) in new.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'")]
            # They follow up changes of the old file; what they did there is carried over as well.
            for (name,) in new.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                new.execute(f"DROP TRIGGER {name}")
        self._settle()

    def catch_up(self, changed: Changed) -> None:
        """Carry over rows that were changed, added or removed since."""
        with self._opened() as new:
            new.execute("ATTACH ? AS old", (str(self._path),))
            new.execute("BEGIN")
            for table, rows in changed.items():
                chosen = f"{self._tables[table]} IN (SELECT value FROM json_each(?))"
                new.execute(f"DELETE FROM main.{table} WHERE {chosen}", (json.dumps(rows),))
                new.execute(f"INSERT INTO main.{table} SELECT * FROM old.{table} WHERE {chosen}", (json.dumps(rows),))
            # Numbers that were given out are never given out again, though their rows be gone.
            new.execute("DELETE FROM main.sqlite_sequence")
            new.execute("INSERT INTO main.sqlite_sequence SELECT * FROM old.sqlite_sequence")
            new.execute("COMMIT")
        self._settle()

    def finish(self, changed: Changed) -> None:
        """Carry over the last changes; from now on the file is complete."""
        self.catch_up(changed)
        with self._opened() as new:
            for sql in self._triggers:
                new.execute(sql)
        self._settle()

    def take_place(self) -> None:
        """Become the file; nobody may have the old one open."""
        self._target.replace(self._path)
        sync(self._path.parent)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(engine.connect(self._target)) as connection:
            connection.execute("PRAGMA secure_delete = ON").fetchall()
            yield connection

    def _settle(self) -> None:
        """See to it that what was written is on the disk before anybody relies on it."""
        sync(self._target)
