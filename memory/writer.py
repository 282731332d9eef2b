"""The connection that writes, in a thread of its own: a whole transaction in one trip, and many in one commit.

A commit waits for the disk, some 1 to 10 ms, and every statement of a transaction that goes to the thread and back by
itself costs more than the statement (NUMBERS, section 6). So what is to be written at about the same time is written
together; each part of it whole or not at all, and nobody is told before it is on the disk.
"""

from __future__ import annotations

import asyncio
import contextvars
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import aiosqlite

from memory import engine

T = TypeVar("T")

ITER_CHUNK: Final = 64
"""What the library calls its default."""


@dataclass(eq=False, slots=True)
class Work(Generic[T]):
    """A piece to be written whole, and whoever waits for it. It may be begun again when others have spoilt it."""

    writing: Callable[[], Coroutine[Any, Any, T]]
    result: asyncio.Future[T]
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    tallied: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What it counts, which is true once it is written."""


class Outcome(NamedTuple):
    """What came of a piece."""

    value: Any = None
    error: BaseException | None = None


class Writer(aiosqlite.Connection):
    """The library's connection, that runs coroutines of the stores in its thread as well."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connect, ITER_CHUNK)
        self._driving = 0
        self._piece: Work[Any] | None = None

    @property
    def piece(self) -> Work[Any]:
        """The piece that is being written; only :attr:`here`."""
        assert self._piece is not None
        return self._piece

    @property
    def here(self) -> bool:
        """Whether the caller is being run in this very thread, inside a transaction."""
        return self._driving == threading.get_ident()

    def rows(self, sql: str, parameters: Any) -> list[sqlite3.Row]:
        """All rows of a query or of a write with a RETURNING clause; only :attr:`here`."""
        return self._conn.execute(sql, parameters).fetchall()

    def change(self, sql: str, parameters: Any) -> int:
        """Run a write; returns the rows it touched. Only :attr:`here`."""
        return self._conn.execute(sql, parameters).rowcount

    def change_each(self, sql: str, rows: Any) -> None:
        """Run a write for each of ``rows``; only :attr:`here`."""
        self._conn.executemany(sql, rows)

    async def together(self, works: Sequence[Work[Any]]) -> list[Outcome]:
        """Write pieces in one trip and, if all goes well, in one commit; what came of each, in their order."""
        in_thread = cast("Callable[..., Coroutine[Any, Any, list[Outcome]]]", self._execute)
        return await in_thread(self._all, works)

    def _all(self, works: Sequence[Work[Any]]) -> list[Outcome]:
        self._driving = threading.get_ident()
        try:
            outcomes = self._one_commit(works)
            # A full disk or a broken rule may have taken back what others wrote: then each stands alone.
            return outcomes or [self._alone(work) for work in works]
        finally:
            self._driving = 0

    def _one_commit(self, works: Sequence[Work[Any]]) -> list[Outcome]:
        """Write all in one transaction; nothing, with nothing written, when that cannot be."""
        if len(works) == 1:
            return [self._alone(works[0])]
        connection, outcomes = self._conn, list[Outcome]()
        try:
            connection.execute("BEGIN IMMEDIATE")
        except engine.ERROR as error:
            return [Outcome(error=error) for _ in works]  # Somebody else holds the file: nobody waits for it twice.
        try:
            for work in works:
                connection.execute("SAVEPOINT piece")
                outcome = self._driven(work)
                if outcome.error is not None:
                    connection.execute("ROLLBACK TO piece")
                connection.execute("RELEASE piece")
                outcomes.append(outcome)
            connection.execute("COMMIT")
        except engine.ERROR:
            connection.rollback()
            return []
        return outcomes

    def _alone(self, work: Work[Any]) -> Outcome:
        connection = self._conn
        try:
            connection.execute("BEGIN IMMEDIATE")
            outcome = self._driven(work)
            if outcome.error is None:
                connection.execute("COMMIT")
        except engine.ERROR as error:
            outcome = Outcome(error=error)
        if outcome.error is not None:
            connection.rollback()
        return outcome

    def _driven(self, work: Work[Any]) -> Outcome:
        """Run a piece, which awaits nothing but statements of this thread, to its end."""
        self._piece, work.tallied = work, Counter()
        writing = work.writing()
        try:
            work.context.run(writing.send, None)
        except StopIteration as end:
            return Outcome(end.value)
        except BaseException as error:  # noqa: BLE001 (it is the asker's)
            return Outcome(error=error)
        writing.close()
        return Outcome(error=RuntimeError("what is written in one trip waits for nothing but the writer"))
