"""Which writes of an account must not be undone by bringing an older copy of the file back.

Temporary triggers on the one connection that writes note the number of every account such a write touches, whoever
makes it and however it comes about; :mod:`memory.ledger` writes down how these accounts stand now.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from memory.model import SEQ_BITS

NOTE: Final = "note_account"
"""Name of the SQL function that is called with the number of an account."""

_ROWS: Final = {
    "journal": ("hidden_by",),
    "profile": ("hidden_by", "audience"),
    "timeline": ("hidden_by", "audience"),
    "facts": ("hidden_by", "audience"),
}
"""Tables of rows in an owner's range, with the columns whose change counts."""
ADMISSIONS: Final = 0
"""Stands for no account, but for who may talk to the bot at all."""
_STANDS: Final = ("pauses", "consents", "links", "departures")
"""Tables whose rows name an account, and count however they change."""


def triggers() -> list[str]:
    """The statements that make the triggers; the function has to be there before."""
    return list(_made())


def _made() -> Iterator[str]:
    for table, columns in _ROWS.items():
        changed = " OR ".join(f"old.{column} IS NOT new.{column}" for column in columns)
        yield (
            f"CREATE TEMP TRIGGER watch_{table} AFTER UPDATE OF {', '.join(columns)} ON main.{table} WHEN {changed}"
            f" BEGIN SELECT {NOTE}(new.id >> {SEQ_BITS}); END"
        )
    for what in ("INSERT", "UPDATE", "DELETE"):
        yield (
            f"CREATE TEMP TRIGGER watch_allowed_{what.lower()} AFTER {what} ON main.allowed"
            f" BEGIN SELECT {NOTE}({ADMISSIONS}); END"
        )
    for what in ("INSERT", "UPDATE"):
        yield (
            f"CREATE TEMP TRIGGER watch_erased_{what.lower()} AFTER {what} ON main.erased"
            f" BEGIN SELECT {NOTE}(new.first >> {SEQ_BITS}); END"
        )
    for table in _STANDS:
        for what, row in (("INSERT", "new"), ("UPDATE", "new"), ("DELETE", "old")):
            yield (
                f"CREATE TEMP TRIGGER watch_{table}_{what.lower()} AFTER {what} ON main.{table}"
                f" BEGIN SELECT {NOTE}({row}.account); END"
            )
