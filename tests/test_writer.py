"""What is written at about the same time shares a commit, and each piece of it is written whole or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memory.db import Database, DatabaseError

ADD = "INSERT INTO job_runs (name, finished_at) VALUES (?, 0)"
NAMES = "SELECT name FROM job_runs ORDER BY name"


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "r.db")
    yield opened
    await opened.close()


async def names(db: Database) -> list[str]:
    return [row["name"] for row in await db.fetch(NAMES)]


def adding(db: Database, *more: str) -> Callable[[], Coroutine[Any, Any, int]]:
    async def write() -> int:
        before = len(await db.fetch(NAMES))
        for name in more:
            await db.execute(ADD, (name,))
        return before

    return write


async def statements(db: Database) -> list[str]:
    """Every statement of the writing connection from now on."""
    seen: list[str] = []
    await db._writer.set_trace_callback(seen.append)
    return seen


async def test_pieces_that_come_at_once_share_a_commit_and_see_one_another_in_order(db: Database) -> None:
    seen = await statements(db)
    found = await asyncio.gather(*(db.written(adding(db, f"{n:02}", f"{n:02}b")) for n in range(10)))
    assert found == [2 * n for n in range(10)]
    assert len(await names(db)) == 20
    assert seen.count("COMMIT") < 10


async def test_nobody_is_told_before_it_is_in_the_file(db: Database) -> None:
    async def written_then_read(name: str) -> bool:
        await db.written(adding(db, name))
        with contextlib.closing(sqlite3.connect(db.path)) as other:
            return (name,) in other.execute(NAMES).fetchall()

    assert all(await asyncio.gather(*(written_then_read(str(n)) for n in range(10))))


async def test_a_piece_that_fails_takes_back_its_own_rows_and_nobody_elses(db: Database) -> None:
    async def fail() -> None:
        await db.execute(ADD, ("half",))
        raise ValueError("stop")

    outcomes = await asyncio.gather(
        db.written(adding(db, "a")), db.written(fail), db.written(adding(db, "b")), return_exceptions=True
    )
    assert isinstance(outcomes[1], ValueError)
    assert await names(db) == ["a", "b"]


async def test_a_rule_of_the_file_that_is_broken_is_told_to_whoever_broke_it(db: Database) -> None:
    outcomes = await asyncio.gather(
        db.written(adding(db, "a")), db.written(adding(db, "a")), db.written(adding(db, "b")), return_exceptions=True
    )
    assert isinstance(outcomes[1], DatabaseError)
    assert await names(db) == ["a", "b"]


async def test_when_the_common_commit_is_lost_each_piece_is_written_by_itself(db: Database) -> None:
    async def spoil() -> None:
        await db.execute(ADD, ("spoilt",))
        db._writer._conn.rollback()  # As SQLite does by itself when the disk is full.
        raise sqlite3.OperationalError("database or disk is full")

    outcomes = await asyncio.gather(
        db.written(adding(db, "a")), db.written(spoil), db.written(adding(db, "b")), return_exceptions=True
    )
    assert isinstance(outcomes[1], DatabaseError)
    assert "full" in str(outcomes[1])
    assert await names(db) == ["a", "b"]
    assert (outcomes[0], outcomes[2]) == (0, 1)


async def test_a_piece_cancelled_before_its_turn_is_not_written_and_one_under_way_is(db: Database) -> None:
    async with db.transaction():
        first = asyncio.create_task(db.written(adding(db, "first")))
        await asyncio.sleep(0)
        second = asyncio.create_task(db.written(adding(db, "second")))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
    await first
    assert await names(db) == ["first"]
    third = asyncio.create_task(db.written(adding(db, "third")))
    for _ in range(3):  # The piece is taken up, and on its way to the thread.
        await asyncio.sleep(0)
    third.cancel()
    with pytest.raises(asyncio.CancelledError):
        await third
    assert await names(db) == ["first", "third"]


async def test_in_an_open_transaction_a_piece_joins_in(db: Database) -> None:
    async def fail() -> None:
        async with db.transaction():
            await db.written(adding(db, "joined"))
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        await fail()
    assert await names(db) == []


async def test_a_transaction_inside_a_piece_is_part_of_it(db: Database) -> None:
    async def fail() -> None:
        async with db.transaction():
            assert db.inside
            await db.executemany(ADD, [("x",), ("y",)])
            await db.returning(f"{ADD} RETURNING name", ("z",))
            assert await names(db) == ["x", "y", "z"]
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        await db.written(fail)
    assert await names(db) == []
    assert not db.inside


async def test_a_piece_that_waits_for_anything_else_is_refused(db: Database) -> None:
    async def wait() -> None:
        await db.execute(ADD, ("half",))
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waits for nothing but"):
        await db.written(wait)
    assert await names(db) == []


async def test_pieces_and_transactions_take_turns(db: Database) -> None:
    async def slowly(name: str) -> None:
        async with db.transaction():
            before = len(await names(db))
            await asyncio.sleep(0)
            await db.execute(ADD, (f"{name} after {before}",))

    works = [slowly(f"t{n}") if n % 3 == 0 else db.written(adding(db, f"w{n}")) for n in range(30)]
    await asyncio.gather(*works)
    assert len(await names(db)) == 30


async def test_a_lock_held_by_another_program_fails_each_piece_plainly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.db.BUSY_SECONDS", 0.05)
    db = await Database.open(tmp_path / "r.db")
    with contextlib.closing(sqlite3.connect(db.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        outcomes = await asyncio.gather(
            *(db.written(partial(db.execute, ADD, (str(n),))) for n in range(2)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [DatabaseError, DatabaseError]
        other.execute("ROLLBACK")
    assert await db.execute(ADD, ("after",)) == 1
    await db.close()


async def test_what_a_piece_counts_is_true_only_once_it_is_written(db: Database) -> None:
    async def fail() -> None:
        db.tally("written", "facts")
        raise ValueError("stop")

    async def count() -> None:
        db.tally("written", "facts")
        await db.execute(ADD, ("a",))

    before = db.tallied["written", "facts"]
    await asyncio.gather(db.written(fail), db.written(count), return_exceptions=True)
    assert db.tallied["written", "facts"] == before + 1
