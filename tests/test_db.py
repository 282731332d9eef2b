"""The database file: who may open it, what a cancelled or failed write leaves, what erased bytes leave."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import stat
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from memory import Line, engine, opening
from memory import db as database
from memory.db import Database, DatabaseError
from memory.opening import APPLICATION_ID, migrations
from memory.scrubbing import NewFile, target_of
from tests.conftest import Clock
from tests.house import housed

ADD = "INSERT INTO job_runs (name, finished_at) VALUES (?, 0)"
NAMES = "SELECT name FROM job_runs ORDER BY name"


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "r.db")
    yield opened
    await opened.close()


async def names(db: Database) -> list[str]:
    return [row["name"] for row in await db.fetch(NAMES)]


def test_migrations_are_numbered_without_a_gap_or_a_double() -> None:
    assert [number for number, _, _ in migrations()] == list(range(1, len(migrations()) + 1))


async def test_a_new_file_has_the_newest_schema_and_is_readable_by_its_owner_alone(db: Database) -> None:
    (row,) = await db.fetch("PRAGMA user_version")
    assert row[0] == migrations()[-1][0]
    assert stat.S_IMODE(db.path.stat().st_mode) == 0o600


async def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    await (await Database.open(path)).close()
    before = snapshot(path)
    await (await Database.open(path)).close()
    assert snapshot(path) == before


async def test_a_transaction_that_fails_leaves_nothing(db: Database) -> None:
    async def fail() -> None:
        async with db.transaction():
            await db.execute(ADD, ("a",))
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        await fail()
    assert await names(db) == []


async def test_a_nested_transaction_is_part_of_the_outer_one(db: Database) -> None:
    async def fail() -> None:
        async with db.transaction():
            async with db.transaction():
                await db.execute(ADD, ("a",))
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        await fail()
    assert await names(db) == []


async def test_a_transaction_sees_its_own_writes_and_others_do_not(db: Database) -> None:
    async with db.transaction():
        await db.execute(ADD, ("a",))
        assert await names(db) == ["a"]
        assert await asyncio.create_task(names(db)) == []
    assert await names(db) == ["a"]


async def test_a_cancelled_write_leaves_no_half_transaction_and_no_lock(db: Database) -> None:
    begun = asyncio.Event()

    async def write() -> None:
        async with db.transaction():
            await db.execute(ADD, ("half",))
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(write())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await db.execute(ADD, ("whole",))
    assert await names(db) == ["whole"]


async def test_many_writers_at_once_all_get_through(db: Database) -> None:
    async def read_then_write(name: str) -> None:
        async with db.transaction():
            before = len(await names(db))
            await db.execute(ADD, (f"{name} after {before}",))

    await asyncio.gather(*(read_then_write(str(i)) for i in range(20)))
    assert sorted(name.split()[-1] for name in await names(db)) == sorted(str(i) for i in range(20))


async def test_f01_a_write_waits_for_another_process_that_holds_the_lock(db: Database) -> None:
    other = engine.connect(db.path)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(db.execute(ADD, ("late",)))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    other.execute("COMMIT")
    other.close()
    await waiting
    assert await names(db) == ["late"]


async def test_a_lock_that_never_ends_is_a_plain_error(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await db.close()
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    patient = await Database.open(db.path)
    other = engine.connect(db.path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseError, match="locked"):
        await patient.execute(ADD, ("never",))
    other.close()
    await patient.close()
    db._writer, db._reader = patient._writer, patient._reader


def snapshot(path: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in path.parent.iterdir()}


async def refused(path: Path, words: str) -> None:
    before = snapshot(path)
    with pytest.raises(DatabaseError, match=words):
        await Database.open(path)
    assert snapshot(path) == before


async def test_a_file_that_is_no_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    path.write_bytes(b"this is a diary, not a database" * 100)
    await refused(path, "damaged or no SQLite database")


async def test_a_damaged_file_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    await (await Database.open(path)).close()
    content = bytearray(path.read_bytes())
    content[4096 * 2 : 4096 * 3] = b"\xff" * 4096
    path.write_bytes(content)
    await refused(path, "damaged")


async def test_f06_a_file_of_a_newer_version_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    await (await Database.open(path)).close()
    with engine.connect(path) as raw:
        raw.execute("PRAGMA user_version = 999")
    raw.close()
    await refused(path, "newer Recollect")


async def test_another_programs_file_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    with engine.connect(path) as raw:
        raw.execute("CREATE TABLE theirs (x)")
    raw.close()
    await refused(path, "another program")


async def test_a_folder_that_cannot_be_made_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseError, match="writable"):
        await Database.open(tmp_path / "file" / "r.db")


async def test_f06_a_failing_migration_leaves_the_file_as_it_was_and_a_copy_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.db"
    opened = await Database.open(path)
    await opened.execute(ADD, ("kept",))
    await opened.close()
    last = migrations()[-1][0]
    broken = [*migrations(), (last + 1, "9999_broken.sql", "CREATE TABLE half (x); SELECT no_such_thing;")]
    monkeypatch.setattr(opening, "migrations", lambda: broken)
    with pytest.raises(DatabaseError, match=r"9999_broken\.sql"):
        await Database.open(path)
    monkeypatch.undo()
    again = await Database.open(path)
    assert await names(again) == ["kept"]
    assert await again.fetch("SELECT 1 FROM sqlite_schema WHERE name = 'half'") == []
    await again.close()
    with engine.connect(path.with_suffix(f".v{last}.bak")) as copy:
        assert copy.execute(NAMES).fetchall() == [("kept",)]
    copy.close()


async def test_f06_a_migration_keeps_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.db"
    opened = await Database.open(path)
    await opened.execute(ADD, ("早",))
    await opened.close()
    last = migrations()[-1][0]
    step = (last + 1, "9999_more.sql", "ALTER TABLE job_runs ADD COLUMN more TEXT NOT NULL DEFAULT 'x';")
    with monkeypatch.context() as patch:
        patch.setattr(opening, "migrations", lambda: [*migrations(), step])
        again = await Database.open(path)
        (row,) = await again.fetch("SELECT name, more FROM job_runs")
        assert tuple(row) == ("早", "x")
        await again.close()


FILLED = (
    "INSERT INTO accounts (platform, user_id, name, created_at, next_seq) VALUES ('test', '1001', 'Lin', 0, 9)",
    "INSERT INTO chats (platform, key, private, created_at) VALUES ('test', 'dm:1001', 1, 0)",
    "INSERT INTO sessions (chat, started_at, last_at) VALUES (1, 0, 5)",
    "INSERT INTO session_members (session, account, distilled_to) VALUES (1, 1, 16777217)",
    "INSERT INTO journal VALUES (16777217, 1, 1, 'user', 'Lin', 5, '早', 'said', '7', NULL, 4, x'01', NULL)",
    (
        "INSERT INTO facts VALUES (16777218, '用户早起', x'02', 'zh', 'self', 0, 'user', 1, 1, 5, 5, NULL, NULL, 6,"
        " NULL, 'ended', NULL)"
    ),
    "INSERT INTO citations (entry, message, quote, at) VALUES (16777218, 16777217, '早', 5)",
)
"""A file as version 1 wrote it."""


async def test_f06_a_file_of_version_1_is_carried_over_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.db"
    with monkeypatch.context() as patch:
        patch.setattr(opening, "migrations", lambda: migrations()[:1])
        await (await Database.open(path)).close()
    with engine.connect(path) as raw:
        for statement in FILLED:
            raw.execute(statement)
        tables = [name for (name,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        before = {table: raw.execute(f"SELECT * FROM {table}").fetchall() for table in tables}
    raw.close()
    opened = await Database.open(path)
    for table, rows in before.items():
        after = [tuple(row) for row in await opened.fetch(f"SELECT * FROM {table}")]
        assert [row[: len(old)] for row, old in zip(after, rows, strict=True)] == rows, table
    assert [tuple(row) for row in await opened.fetch("SELECT turn, revised FROM journal")] == [(None, 0)]
    assert [row["language_fixed"] for row in await opened.fetch("SELECT language_fixed FROM accounts")] == [0]
    assert await opened.fetch("SELECT * FROM waiting") == []
    doubts = await opened.fetch("SELECT doubts, asked_at, ended_at FROM facts")
    assert [tuple(row) for row in doubts] == [(None, None, None)]
    schema = "SELECT type, name, sql FROM sqlite_schema ORDER BY name"
    carried = [tuple(row) for row in await opened.fetch(schema)]
    await opened.close()
    fresh = await Database.open(tmp_path / "new.db")
    assert [tuple(row) for row in await fresh.fetch(schema)] == carried
    await fresh.close()


async def test_what_version_1_knew_is_edited_deleted_and_moved_like_anything_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    path = tmp_path / "r.db"
    with monkeypatch.context() as patch:
        patch.setattr(opening, "migrations", lambda: migrations()[:1])
        await (await Database.open(path)).close()
    with engine.connect(path) as raw:
        for statement in FILLED:
            raw.execute(statement)
    raw.close()
    async with housed(path, clock) as house:
        (entry,) = await house.memory.history(house.owner)
        assert entry.text == "用户早起"
        assert (await house.hear("早", id_="7", waits=True)).waiting is False
        line = Line("user", "Lin", clock(), "晚", platform_id="7")
        revision = await house.memory.revise(house.owner, house.chat, "7", line, now=clock())
        assert revision is not None
        assert (revision.withdrawn, revision.message.text) == (("用户早起",), "晚")
        assert await house.memory.withdraw(house.owner, house.chat, ["7"], now=clock()) == 1


async def test_scrubbing_leaves_no_byte_of_a_deleted_row(db: Database) -> None:
    marker = "缬沙坦-marker-7f3a"
    await db.executemany(ADD, [(f"{marker} {i}",) for i in range(500)])
    await db.executemany(ADD, [(f"innocent {i}",) for i in range(500)])
    await db.execute("DELETE FROM job_runs WHERE name LIKE ?", (f"{marker}%",))
    await db.scrub()
    for file in db.path.parent.iterdir():
        assert marker.encode() not in file.read_bytes(), file.name
    assert len(await names(db)) == 500


async def test_what_is_written_while_the_file_is_rewritten_is_in_the_new_one(db: Database) -> None:
    await db.executemany(ADD, [(f"old {i}",) for i in range(3_000)])
    whole, started, go_on = NewFile.copy, threading.Event(), threading.Event()

    def slow(new: NewFile) -> None:
        whole(new)
        started.set()
        assert go_on.wait(10)

    with patch.object(NewFile, "copy", slow):
        scrubbing = asyncio.create_task(db.scrub())
        await asyncio.to_thread(started.wait, 10)
        await db.executemany(ADD, [(f"new {i}",) for i in range(500)])
        await db.execute("DELETE FROM job_runs WHERE name = 'old 7'")
        await db.execute("UPDATE job_runs SET name = 'changed' WHERE name = 'old 8'")
        await db.execute("INSERT INTO accounts (platform, user_id, created_at) VALUES ('test', '1', 0)")
        for _ in range(2):
            await db.execute(
                "INSERT INTO spending (account, day, tokens) VALUES (1, 2, 3)"
                " ON CONFLICT (account, day) DO UPDATE SET tokens = tokens + 1"
            )
        go_on.set()
        await scrubbing
    found = await names(db)
    assert len(found) == 3_499
    assert {"new 0", "new 499", "changed"} <= set(found)
    assert not {"old 7", "old 8"} & set(found)
    assert [tuple(row) for row in await db.fetch("SELECT * FROM spending")] == [(1, 2, 4)]
    assert [tuple(row) for row in await db.fetch("PRAGMA quick_check")] == [("ok",)]
    await db.execute(ADD, ("after",))
    assert "after" in await names(db)
    assert {file.name for file in db.path.parent.iterdir()} == {f"{db.path.name}{end}" for end in ("", "-wal", "-shm")}


async def test_the_new_file_is_as_the_old_one_but_for_the_rest_of_what_is_gone(db: Database) -> None:
    before = await schema(db)
    await db.execute("INSERT INTO accounts (platform, user_id, created_at) VALUES ('test', '1', 0)")
    await db.execute("DELETE FROM accounts")
    await db.scrub()
    assert await schema(db) == before
    await db.execute("INSERT INTO accounts (platform, user_id, created_at) VALUES ('test', '2', 0)")
    # A number that was given out is never given out again.
    assert [row["no"] for row in await db.fetch("SELECT no FROM accounts")] == [2]
    assert [tuple(row) for row in await db.fetch("PRAGMA journal_mode")] == [("wal",)]
    assert db.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("writes", [True, False])
async def test_a_file_that_another_process_has_open_is_rewritten_in_place(db: Database, *, writes: bool) -> None:
    await db.executemany(ADD, [(f"gardenia {i}",) for i in range(500)])
    await db.execute("DELETE FROM job_runs")
    with contextlib.closing(engine.connect(db.path, one_thread=False)) as other:
        other.execute("SELECT count(*) FROM job_runs").fetchall()
        whole = NewFile.copy

        def meanwhile(new: NewFile) -> None:
            whole(new)
            if writes:
                other.execute(ADD, ("theirs",))

        with patch.object(NewFile, "copy", meanwhile):
            await db.scrub()
        other.execute(ADD, ("later",))
    assert sorted(await names(db)) == ["later"] + ["theirs"] * writes
    assert b"gardenia" not in db.path.read_bytes()


async def test_a_rewriting_that_fails_leaves_the_file_as_it_was(db: Database) -> None:
    await db.execute(ADD, ("kept",))

    def full(new: NewFile, *_: object) -> None:
        raise OSError("no space left")

    for step in ("copy", "catch_up", "finish", "take_place"):
        with patch.object(NewFile, step, full), pytest.raises(DatabaseError, match="no space left"):
            await db.scrub()
        await db.execute(ADD, (f"after {step}",))
    assert len(await names(db)) == 5
    assert not target_of(db.path).exists()


async def test_a_new_file_left_by_a_kill_is_gone_after_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    target_of(path).write_bytes(b"forgotten")
    await (await Database.open(path)).close()
    assert not target_of(path).exists()


async def schema(db: Database) -> list[tuple[Any, ...]]:
    """Everything that is declared in the file."""
    rows = await db.fetch("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
    return [
        *map(tuple, rows),
        *map(tuple, await db.fetch("PRAGMA user_version")),
        *map(tuple, await db.fetch("PRAGMA page_size")),
    ]


async def test_scrubbing_takes_the_copies_of_migrations_along(db: Database) -> None:
    copy = db.path.with_suffix(".v1.bak")
    copy.write_bytes(b"forgotten")
    other = db.path.with_name("diary.txt")
    other.write_text("not ours")
    await db.scrub()
    assert (copy.exists(), other.exists()) == (False, True)


def test_the_application_id_is_the_one_in_the_file_header() -> None:
    assert 0 < APPLICATION_ID < 2**31


async def test_what_is_read_together_sees_one_moment_and_takes_one_trip(db: Database) -> None:
    await db.execute(ADD, ("a",))
    other = engine.connect(db.path, one_thread=False)

    async def twice() -> tuple[list[str], list[str]]:
        before = await names(db)
        other.execute(ADD, ("b",))
        return before, await names(db)

    assert await db.together(twice) == (["a"], ["a"])
    other.close()
    assert await names(db) == ["a", "b"]


async def test_inside_a_transaction_what_is_read_together_sees_its_writes(db: Database) -> None:
    async with db.transaction():
        await db.execute(ADD, ("a",))
        assert await db.together(lambda: names(db)) == ["a"]


async def test_reading_together_waits_for_nothing_else_and_its_errors_come_through(db: Database) -> None:
    async def broken() -> None:
        await db.fetch("SELECT missing")

    with pytest.raises(RuntimeError, match="nothing but the reader"):
        await db.together(lambda: asyncio.sleep(0))
    with pytest.raises(engine.OPERATIONAL, match="no such column"):
        await db.together(broken)
    assert await db.together(lambda: names(db)) == []


async def test_of_many_that_read_at_once_each_gets_its_own_answer(db: Database) -> None:
    questions = [f"SELECT {number} AS n" for number in range(50)] + ["SELECT nothing", "SELECT 50 AS n"]
    answers = await asyncio.gather(*map(db.fetch, questions), return_exceptions=True)
    assert [answer[0]["n"] for answer in answers if not isinstance(answer, BaseException)] == list(range(51))
    assert isinstance(answers[-2], engine.OPERATIONAL)


async def test_who_gives_up_while_many_read_spoils_nobodys_answer(db: Database) -> None:
    reading = [asyncio.create_task(db.fetch(f"SELECT {number} AS n")) for number in range(20)]
    await asyncio.sleep(0)
    reading[3].cancel()
    answers = await asyncio.gather(*reading, return_exceptions=True)
    assert isinstance(answers[3], asyncio.CancelledError)
    assert all(answer[0]["n"] == n for n, answer in enumerate(answers) if not isinstance(answer, BaseException))


async def blocked(go_on: threading.Event) -> None:
    assert go_on.wait(10)


async def test_what_is_ready_does_not_wait_for_the_trip_behind_it(db: Database) -> None:
    go_on, told = threading.Event(), threading.Event()
    first = asyncio.create_task(db.together(lambda: blocked(go_on)))
    await asyncio.sleep(0)
    small = asyncio.create_task(db.fetch("SELECT 1 AS n"))
    small.add_done_callback(lambda _: told.set())
    last = asyncio.create_task(db.together(lambda: blocked(told)))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(first, small, last)


async def test_a_trip_that_nobody_waits_for_any_more_is_not_made(db: Database) -> None:
    go_on, made = threading.Event(), list[str]()

    async def noted(name: str) -> None:
        made.append(name)

    first = asyncio.create_task(db.together(lambda: blocked(go_on)))
    await asyncio.sleep(0)
    given_up, kept = [asyncio.create_task(db.together(partial(noted, name))) for name in ("given up", "kept")]
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(first, kept)
    assert made == ["kept"]


async def test_nobody_reads_from_a_closed_database(db: Database) -> None:
    await db.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        await db.fetch(NAMES)
