"""One SQLite file: one writer, one reader, short transactions.

Stores hand in SQL; this file sees to it that writes queue up behind one another, and that a cancelled task leaves
no half transaction. What the file must be before that: :mod:`memory.opening`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from memory import engine, opening
from memory.holding import Held, HeldError
from memory.opening import BUSY_SECONDS
from memory.reader import Reader
from memory.scrubbing import FEW, MOST_ROUNDS, NOTES, NewFile, discard, forgetting_notes, keys, noting
from memory.trouble import DamagedError, DatabaseError, is_trouble, trouble
from memory.watching import NOTE, triggers
from memory.writer import Outcome, Work, Writer

__all__ = [
    "BUSY_SECONDS",
    "DamagedError",
    "Database",
    "DatabaseError",
]

log = logging.getLogger(__name__)

T = TypeVar("T")
Tally = tuple[str, str]
"""What is counted, and its label: ("written", "facts"). Words of ours, nobody's."""

PATIENCE_MS: Final = 200
"""How long a rewritten file waits for another process to let go of the old one."""
_CLOSED: Final[tuple[type[Exception], ...]] = (*engine.ERROR, DamagedError, ValueError)
"""What a trip ends with that comes to nothing: the connection is closed, or the file damaged."""
MOST_TOGETHER: Final = 32
"""Pieces that are written in one commit."""
Parameters = Mapping[str, Any] | Sequence[Any]


class Database:
    """An open database. Make one with :meth:`open`, end it with :meth:`close`."""

    def __init__(self, path: Path, writer: Writer, reader: Reader, *, held: Held) -> None:
        self.path = path
        self._held = held
        self._writer = writer
        self._reader = reader
        self._lock = asyncio.Lock()
        self._scrubbing = asyncio.Lock()
        self._watcher: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._touched: set[int] = set()
        self._inside: asyncio.Task[Any] | None = None
        self._due: deque[Work[Any]] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._damage: DamagedError | None = None
        self._busy = False
        self._patience = int(BUSY_SECONDS * 1_000)
        self._uncommitted: Counter[Tally] = Counter()
        self.tallied: Counter[Tally] = Counter()
        """What was done since the file was opened, in counts."""

    @classmethod
    async def open(cls, path: Path) -> Database:
        """Open or create the file at ``path`` and bring it to the newest schema.

        Raises DatabaseError when the file is damaged, not ours, newer than this program or not writable.
        """
        with contextlib.ExitStack() as undo:
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                held = Held(path.parent)
                undo.callback(held.release)
                await asyncio.to_thread(opening.prepare, path)
                writer = await _connect(path)
            except HeldError:
                raise DatabaseError(f"A restore is under way in {path.parent}: start again when it is done.") from None
            except engine.ERROR as error:
                raise trouble(path, error) from error
            except OSError as error:
                raise DatabaseError(f"{path}: {error}. Check that the folder exists and is writable.") from error
            reader = Reader()
            try:
                await reader.open(partial(_reading, path))
            except BaseException:
                await writer.close()
                raise
            undo.pop_all()
        return cls(path, writer, reader, held=held)

    async def close(self) -> None:
        """Wait for a running write, fold the log into the file and close both connections."""
        async with self._scrubbing, self._lock:
            await self._reader.close()
            await self._writer.close()
            self._held.release()

    async def watch(self, watcher: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Await ``watcher`` after every write that touched accounts in a way :mod:`memory.watching` names."""
        self._watcher = watcher
        await self._noting_accounts()

    def touched(self) -> set[int]:
        """Numbers of the accounts that were touched since the last time."""
        touched, self._touched = self._touched, set()
        return touched

    def touch(self, numbers: Iterable[int]) -> None:
        """Count these accounts as touched, too."""
        self._touched |= set(numbers)

    @property
    def any_touched(self) -> bool:
        """Whether any account was."""
        return bool(self._touched)

    async def _noting_accounts(self) -> None:
        # Called in the connection's thread, also for what is rolled back: then one line too many is written.
        await self._writer.create_function(NOTE, 1, self._note)
        await self._writer.executescript(";".join(triggers()))

    def _note(self, number: int) -> None:
        self._touched.add(number)

    async def _tell(self) -> None:
        """Tell the watcher what the transaction that is over has touched."""
        if self._watcher is not None and self._touched and not self.inside:
            await self._watcher()

    @property
    def inside(self) -> bool:
        """Whether the current task has a transaction open (then it must not await the network)."""
        if self._writer.here:
            return True
        return self._inside is not None and not self._reader.here and self._inside is asyncio.current_task()

    def tally(self, name: str, label: str = "", times: int = 1) -> None:
        """Count that something was done; inside a transaction it counts once that is committed."""
        counts = self._uncommitted if self.inside else self.tallied
        if self._writer.here:
            counts = self._writer.piece.tallied
        if times:
            counts[name, label] += times

    async def fetch(self, sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
        """All rows of a query. Inside a transaction it sees that transaction's writes.

        Raises DatabaseError when the file cannot be read.
        """
        # Inside a trip: whoever made it hears what went wrong, and explains it.
        if self._reader.here:
            return self._reader.rows(sql, parameters)
        if self._writer.here:
            return self._writer.rows(sql, parameters)
        with self._explained(writing=self.inside):
            if self.inside:
                return list(await self._writer.execute_fetchall(sql, parameters))
            return await self._reader.fetch(sql, parameters)

    async def together(self, reading: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run ``reading``, which awaits nothing but fetches, in one trip to the reader; it sees one moment.

        What it works out between its queries is worked out in the reader's thread, where all other reads wait for it.
        """
        with self._explained(writing=self.inside):
            if self._reader.here or self.inside:
                return await reading()
            return await self._reader.drive(reading)

    async def written(self, writing: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run ``writing``, which awaits nothing but this file, in one trip: what it writes is whole or not there.

        What others write at the same time shares its commit, so it may be run a second time when that fails; it must
        leave nothing behind but rows. In a transaction that is open it joins in. Raises as :meth:`transaction`.
        """
        if self.inside:
            return await writing()
        work = Work(writing, asyncio.get_running_loop().create_future())
        self._due.append(work)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_due())
        try:
            return await asyncio.shield(work.result)
        except asyncio.CancelledError:
            if work in self._due:
                self._due.remove(work)
            else:
                await asyncio.wait({work.result})
            raise

    async def _write_due(self) -> None:
        """Write what is due, as much of it together as has come meanwhile."""
        while self._due:
            async with self._lock:
                works = [self._due.popleft() for _ in range(min(len(self._due), MOST_TOGETHER))]
                outcomes = [Outcome(error=asyncio.CancelledError()) for _ in works]
                try:
                    self._refuse_damaged()
                    await self._be_patient()
                    outcomes = await _uncancelled(self._writer.together(works))
                    self._busy = False
                except _CLOSED as error:
                    outcomes = [Outcome(error=error) for _ in works]
                finally:
                    if not self._touched:
                        self._settle(works, outcomes)
            try:
                await self._tell()
            finally:
                self._settle(works, outcomes)

    def _settle(self, works: Sequence[Work[Any]], outcomes: Sequence[Outcome]) -> None:
        """Tell everybody what came of their piece."""
        for work, (value, error) in zip(works, outcomes, strict=True):
            if work.result.done():
                continue
            if error is None:
                self.tallied += work.tallied
                work.result.set_result(value)
            elif isinstance(error, asyncio.CancelledError):
                work.result.cancel()
            else:
                work.result.set_exception(self._meaning(error))
                work.result.exception()  # Whoever waited may have been cancelled: then nobody asks for it.

    def _meaning(self, error: BaseException) -> BaseException:
        """What an error of a piece means for whoever wrote it."""
        try:
            with self._explained(writing=True):
                raise error  # noqa: TRY301
        except BaseException as told:  # noqa: BLE001 (it is the asker's)
            return told

    async def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one write, in the open transaction or one of its own; returns the rows it touched."""
        if self._writer.here:
            return self._writer.change(sql, parameters)
        if self.inside:
            return (await self._writer.execute(sql, parameters)).rowcount
        return await self.written(partial(self.execute, sql, parameters))

    async def executemany(self, sql: str, rows: Iterable[Parameters]) -> None:
        """Run one write for each of ``rows``."""
        if self._writer.here:
            self._writer.change_each(sql, rows)
        elif self.inside:
            await (await self._writer.executemany(sql, rows)).close()
        else:
            await self.written(partial(self.executemany, sql, list(rows)))

    async def returning(self, sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
        """Run one write with a RETURNING clause and give back its rows."""
        if self._writer.here:
            return self._writer.rows(sql, parameters)
        if self.inside:
            return list(await self._writer.execute_fetchall(sql, parameters))
        return await self.written(partial(self.returning, sql, parameters))

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Everything this task does inside is written whole or not at all; nested use joins in.

        The write lock is taken at the start (BEGIN IMMEDIATE), so a read followed by a write cannot
        fail half-way. Never await a model, an endpoint or a platform inside. Raises DatabaseError when the
        file does not take the write (locked too long, read-only, disk full).
        """
        if self.inside:
            yield
            return
        async with self._lock:
            self._refuse_damaged()
            try:
                await self._be_patient()
                await self._writer.execute("BEGIN IMMEDIATE")
                self._busy = False
                self._inside = asyncio.current_task()
                yield
                await _uncancelled(self._writer.commit())
                self.tallied += self._uncommitted
            except BaseException:
                # A cancelled statement still runs in the connection's thread; the rollback queues behind it.
                await _uncancelled(self._writer.rollback())
                with self._explained(writing=True):
                    raise
            finally:
                self._inside = None
                self._uncommitted.clear()
        await self._tell()

    @contextlib.contextmanager
    def _explained(self, *, writing: bool) -> Iterator[None]:
        """Turn an error of SQLite into ours; damage is remembered, and nothing is written from then on."""
        try:
            yield
        except engine.ERROR as error:
            if not is_trouble(error, writing=writing):
                raise
            found = trouble(self.path, error)
            if isinstance(found, DamagedError) and self._damage is None:
                self._damage = found
                log.critical("%s", found)
            self._busy |= found.busy
            raise found from error

    async def _be_patient(self) -> None:
        """Wait long for a lock of another program, once; while it lasts the others are not kept waiting as long."""
        wanted = PATIENCE_MS if self._busy else int(BUSY_SECONDS * 1_000)
        if wanted != self._patience:
            await self._writer.execute(f"PRAGMA busy_timeout = {wanted}")
            self._patience = wanted

    def _refuse_damaged(self) -> None:
        """Leave a damaged file as it is. Raises DamagedError."""
        if self._damage is not None:
            raise DamagedError(str(self._damage))

    async def scrub(self) -> None:
        """Rewrite the file and empty its log, so that deleted bytes are gone from both.

        ``secure_delete`` overwrites a row when it goes, but not the copies that page splits left behind, and
        the log keeps old pages until it is truncated. The copies that migrations left beside the file go, too.
        Costs a second for about 100 MB, in which everybody goes on: the new file is written beside the old one
        (:mod:`memory.scrubbing`), and only to put it in its place do writes and reads wait for a moment. Where
        another process has the file open it is rewritten in place instead, and writes wait for all of it.
        Raises DatabaseError if the file cannot be rewritten; it is as before then.
        """
        self._refuse_damaged()
        async with self._scrubbing:
            tables = await asyncio.to_thread(keys, self.path)
            new = NewFile(self.path, tables)
            try:
                placed = await self._rewrite(new, tables)
            except engine.BROKEN as error:
                raise DatabaseError(f"{self.path} could not be rewritten: {error}") from error
            finally:
                await _uncancelled(asyncio.to_thread(discard, self.path))
            if not placed:
                log.warning("%s is open elsewhere, too: it is rewritten in place, and writes wait", self.path)
                await self._vacuum()
            await asyncio.to_thread(opening.drop_copies, self.path)

    async def _rewrite(self, new: NewFile, tables: Mapping[str, str]) -> bool:
        """Write a new file and put it in the place of the old one; False when somebody else has that open."""
        try:
            async with self._lock:
                for statement in noting(tables):
                    await self._writer.execute(statement)
                begun = await self._data_version()
            # To the end in any case: a thread goes on though nobody waits for it, and would write what is removed here.
            await _uncancelled(asyncio.to_thread(new.copy))
            for _ in range(MOST_ROUNDS):
                async with self._lock:
                    changed = await self._changed()
                await _uncancelled(asyncio.to_thread(new.catch_up, changed))
                if sum(map(len, changed.values())) <= FEW:
                    break
            async with self._lock:
                if await self._data_version() != begun:
                    return False
                await _uncancelled(asyncio.to_thread(new.finish, await self._changed()))
                return await _uncancelled(self._swap(new))
        finally:
            async with self._lock:
                for statement in forgetting_notes(tables):
                    await self._writer.execute(statement)

    async def _swap(self, new: NewFile) -> bool:
        """Close the old file, put the new one in its place and open that; False when the old one is not ours alone."""
        alone = False

        def swap() -> None:
            if alone:
                new.take_place()

        def reopened() -> sqlite3.Connection:
            return _reading(self.path)

        async with self._reader.away(reopened):
            try:
                alone = await self._leave_log()
            finally:
                if alone:
                    await self._writer.close()
                    try:
                        await asyncio.to_thread(swap)
                    finally:
                        self._writer = await _connect(self.path)
                        self._patience = int(BUSY_SECONDS * 1_000)
                        if self._watcher is not None:
                            await self._noting_accounts()
        return alone

    async def _leave_log(self) -> bool:
        """Fold the log into the file and do without; False when another connection needs it."""
        await self._writer.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
        try:
            rows = list(await self._writer.execute_fetchall("PRAGMA journal_mode = DELETE"))
        except engine.OPERATIONAL:
            return False
        finally:
            self._patience = int(BUSY_SECONDS * 1_000)
            await self._writer.execute(f"PRAGMA busy_timeout = {self._patience}")
        return bool(rows) and str(rows[0][0]).lower() == "delete"

    async def _data_version(self) -> int:
        """A number that changes when another connection writes."""
        return int(next(iter(await self._writer.execute_fetchall("PRAGMA data_version")))[0])

    async def _changed(self) -> dict[str, list[int | str]]:
        """What has been noted since the last time."""
        rows = list(await self._writer.execute_fetchall(f"SELECT DISTINCT name, key FROM temp.{NOTES}"))
        await self._writer.execute(f"DELETE FROM temp.{NOTES}")
        changed: dict[str, list[int | str]] = {}
        for name, key in rows:
            changed.setdefault(name, []).append(key)
        return changed

    async def _vacuum(self) -> None:
        """Rewrite the file in place."""
        async with self._lock:
            try:
                await self._writer.execute("VACUUM")
                rows = list(await self._writer.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)"))
            except engine.OPERATIONAL as error:
                raise DatabaseError(f"{self.path} could not be rewritten: {error}") from error
        if rows and rows[0][0]:
            raise DatabaseError("the log could not be truncated while it is being read; try again")


async def _uncancelled(work: Coroutine[Any, Any, T]) -> T:
    """Finish ``work`` even if the waiting task is cancelled, then let the cancellation through."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


_PRAGMAS: Final = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON")


def _reading(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, to be used in the thread that opened it."""
    connection = engine.connect(path, timeout=BUSY_SECONDS, rows=True)
    for pragma in (*_PRAGMAS, "query_only = ON"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


async def _connect(path: Path) -> Writer:
    connection = Writer(partial(engine.connect, path, timeout=BUSY_SECONDS, rows=True))
    await connection
    for pragma in _PRAGMAS:
        # Fetched to the end: a statement left open would forbid the VACUUM of an erasure.
        await connection.execute_fetchall(f"PRAGMA {pragma}")
    return connection
