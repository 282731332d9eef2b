"""The connection that only reads, in a thread of its own: one trip for as many queries as belong together.

A trip costs more than most queries (70 us against 5, NUMBERS, section 6), and far more once threads compete. What many
ask at once is answered together.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")
Settling = Callable[[], None]
"""Tells an asker, on its loop, what came of its work."""
Work = Callable[[], Settling]

TOLD_TOGETHER: Final = 0.0005
"""Seconds for which what is ready waits for what else is asked: a loop is woken once for all of it. To wake it costs
some 20 us, as much as a small query."""


class _Asked(NamedTuple):
    """Something to do, and whether it is a trip, which takes its time: what is ready does not wait for it."""

    work: Work
    trip: bool


class Reader:
    """A thread that works on one connection for one event loop, in the order it is asked."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[_Asked | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="reader", daemon=True)
        self._connection: sqlite3.Connection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread.start()

    async def open(self, connect: Callable[[], sqlite3.Connection]) -> None:
        """Open the connection. Raises what ``connect`` raises, and the thread ends."""

        def opened() -> None:
            self._connection = connect()

        try:
            await self._do(opened)
        except BaseException:
            self._asked.put(None)
            raise

    @contextlib.asynccontextmanager
    async def away(self, connect: Callable[[], sqlite3.Connection]) -> AsyncIterator[None]:
        """Have no connection inside the block; what is asked for meanwhile waits for the one opened after it."""
        gone, back = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def wait() -> None:
            if self._connection is not None:
                self._connection.close()
            loop.call_soon_threadsafe(gone.set)
            back.wait()
            self._connection = connect()

        waiting = asyncio.ensure_future(self._do(wait))
        try:
            await gone.wait()
            yield
        finally:
            back.set()
            await waiting

    async def close(self) -> None:
        """Let what was asked for end, then close the connection and end the thread."""
        if self._thread.is_alive():
            self._asked.put(None)
            await asyncio.to_thread(self._thread.join)

    @property
    def here(self) -> bool:
        """Whether the caller runs in this very thread."""
        return threading.get_ident() == self._thread.ident

    def rows(self, sql: str, parameters: Any) -> list[sqlite3.Row]:
        """All rows of a query; only :attr:`here`."""
        if self._connection is None:
            raise sqlite3.ProgrammingError("the database is closed")
        return self._connection.execute(sql, parameters).fetchall()

    async def fetch(self, sql: str, parameters: Any) -> list[sqlite3.Row]:
        """All rows of a query, in one trip."""
        return await self._do(lambda: self.rows(sql, parameters))

    async def drive(self, reading: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine that awaits nothing but queries of this connection, in one trip, as of one moment."""
        return await self._do(lambda: self._at_one_moment(reading), trip=True)

    def _at_one_moment(self, reading: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self.rows("BEGIN", ())
        try:
            return _driven(reading())
        finally:
            self.rows("COMMIT", ())

    async def _do(self, work: Callable[[], T], *, trip: bool = False) -> T:
        if not self._thread.is_alive():
            raise sqlite3.ProgrammingError("the database is closed")
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()

        def done() -> Settling:
            if result.cancelled():
                return lambda: None  # Nobody waits for it any more, and others do.
            try:
                value = work()
            except BaseException as error:  # noqa: BLE001 (it is the asker's)
                return partial(_fail, result, error)
            return partial(_settle, result, value)

        self._loop = loop
        self._asked.put(_Asked(done, trip))
        return await result

    def _work(self) -> None:
        running = True
        while running:
            ready, asked = list[Settling](), self._asked.get()
            since = time.monotonic()
            while asked is not None:
                if asked.trip and ready:
                    self._tell(ready)
                    ready = []
                ready.append(asked.work())
                if self._asked.empty() or time.monotonic() - since > TOLD_TOGETHER:
                    break
                asked = self._asked.get()
            running = asked is not None
            self._tell(ready)
            del ready, asked  # What they held is not kept until somebody asks again.
        if self._connection is not None:
            self._connection.close()

    def _tell(self, ready: Sequence[Settling]) -> None:
        """Wake the loop once for all that is ready."""

        def tell() -> None:
            for settle in ready:
                settle()

        if ready and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # The loop was closed: nobody waits any more.
                self._loop.call_soon_threadsafe(tell)


def _driven(reading: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never has to wait."""
    try:
        reading.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    reading.close()
    raise RuntimeError("what reads in one trip waits for nothing but the reader")


def _settle(result: asyncio.Future[T], value: T) -> None:
    if not result.done():
        result.set_result(value)


def _fail(result: asyncio.Future[T], error: BaseException) -> None:
    if not result.done():
        result.set_exception(error)
