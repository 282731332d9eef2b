"""Encryption at rest: with a key no file holds a word, without it nobody reads one, and the key can be changed."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli import cli
from config.settings import SettingsError, load
from memory import DATABASE_NAME, DatabaseError, engine, inspect
from memory.backups import take, verify
from memory.db import Database
from memory.opening import copy
from memory.rekeying import new_key, rekey
from tests.conftest import Clock
from tests.house import housed

ONE, OTHER = "5a" * 32, "c3" * 32
WORD = "zanzibar"
SQLITE = b"SQLite format 3"


@pytest.fixture(autouse=True)
def no_key_at_first(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECOLLECT_KEY", raising=False)
    engine.use("")


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@contextlib.contextmanager
def keyed(key: str) -> Iterator[None]:
    engine.use(key)
    try:
        yield
    finally:
        engine.use("")


async def filled(path: Path, clock: Clock) -> list[str]:
    """Put something into a memory at ``path`` and return what it knows."""
    async with housed(path, clock) as house:
        await house.hear(f"I live in {WORD.title()}")
        await house.hear("I am allergic to pollen")
        return await house.known()


def tables_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    with contextlib.closing(engine.connect(path)) as opened:
        names = [name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(map(tuple, opened.execute(f'SELECT * FROM "{name}"')), key=repr) for name in names}


async def known(path: Path, clock: Clock) -> list[str]:
    async with housed(path, clock) as house:
        return await house.known()


def holding(folder: Path) -> list[str]:
    """The files under a folder that hold the word, or begin as an open database does."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files
    return [
        file.name
        for file in files
        if WORD.encode() in (data := file.read_bytes()).lower() or WORD.encode("utf-16-le") in data.lower()
        or data.startswith(SQLITE)
    ]  # fmt: skip


async def test_with_a_key_no_file_holds_a_word_at_any_time(data_dir: Path, clock: Clock) -> None:
    path = data_dir / DATABASE_NAME
    with keyed(ONE):
        async with housed(path, clock) as house:
            await house.hear(f"I live in {WORD.title()}")
            assert path.with_name(f"{DATABASE_NAME}-wal").stat().st_size > 0
            assert await house.known() == [f"I live in {WORD.title()}"]
            assert holding(data_dir) == []
            take(path, data_dir / "backups" / "a.db", now=clock())
            copy(path, data_dir / "recollect.v1.bak")
            assert holding(data_dir) == []
            assert verify(data_dir / "backups" / "a.db").counts["journal"] == 1
            assert inspect(data_dir / "recollect.v1.bak") == inspect(path)
            db: Database = house.memory._db
            await db.scrub()
            assert holding(data_dir) == []
            assert await house.known() == [f"I live in {WORD.title()}"]
    await filled(data_dir / "open.db", clock)
    assert holding(data_dir) == ["open.db"]


@pytest.mark.parametrize(
    ("written", "read", "says"),
    [
        (ONE, OTHER, "encrypted with another key"),
        (ONE, "", "(?i)if it is encrypted, set RECOLLECT_KEY"),
        ("", ONE, "is not encrypted, and RECOLLECT_KEY is set"),
    ],
    ids=["another key", "no key", "a key for an open file"],
)
async def test_what_cannot_be_read_is_left_alone_and_says_what_to_do(
    data_dir: Path, clock: Clock, written: str, read: str, says: str
) -> None:
    path = data_dir / DATABASE_NAME
    with keyed(written):
        await filled(path, clock)
    before = bytes_of(data_dir)
    with keyed(read):
        with pytest.raises(DatabaseError, match=says) as error:
            await Database.open(path)
        with pytest.raises(DatabaseError, match=says):
            rekey(path, new_key())
    assert ONE not in str(error.value)
    assert bytes_of(data_dir) == before
    with keyed(written):
        assert len(await known(path, clock)) == 2


async def test_a_key_is_put_on_changed_and_taken_off_and_nothing_is_lost(data_dir: Path, clock: Clock) -> None:
    path = data_dir / DATABASE_NAME
    told = await filled(path, clock)
    tables = tables_of(path)
    for key in (ONE, OTHER, ""):
        rekey(path, key)
        assert tables_of(path) == tables
        assert await known(path, clock) == told
        assert (holding(data_dir) == []) is bool(key)
        assert path.stat().st_mode & 0o777 == 0o600
        tables = tables_of(path)
    engine.use("")


async def test_the_bytes_of_the_old_file_are_written_over(data_dir: Path, clock: Clock) -> None:
    path = data_dir / DATABASE_NAME
    await filled(path, clock)
    with path.open("rb") as old:
        assert WORD.encode() in old.read().lower()
        rekey(path, ONE)
        old.seek(0)
        assert set(old.read()) == {0}


async def test_a_backup_gets_another_key_and_its_checksum_with_it(data_dir: Path, clock: Clock) -> None:
    path = data_dir / DATABASE_NAME
    await filled(path, clock)
    backup = take(path, data_dir / "b" / "recollect-20260302T120000Z.db", now=clock()).path
    made = verify(backup).made_at
    rekey(backup, ONE)
    found = verify(backup)
    assert (found.sealed, found.made_at, found.counts["journal"]) == (True, made, 2)
    assert holding(data_dir / "b") == []


async def test_nothing_is_changed_while_the_bot_runs_or_when_the_new_file_is_not_whole(
    data_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = data_dir / DATABASE_NAME
    await filled(path, clock)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    async with housed(path, clock):
        with pytest.raises(DatabaseError, match="stop the bot first"):
            rekey(path, ONE)
    monkeypatch.setattr("memory.rekeying._export", lambda *_: {"journal": 3})
    with pytest.raises(DatabaseError, match=r"does not hold what|could not be written"):
        rekey(path, ONE)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert list(bytes_of(data_dir)) == [DATABASE_NAME]
    assert not engine.keyed()


def test_a_key_is_64_digits_and_needs_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", new_key())
    assert new_key() != new_key()
    for bad in ("abc", "g" * 64, "a" * 63, "a" * 65, "'; DROP TABLE facts; --"):
        with pytest.raises(engine.KeyRefused, match="64 hexadecimal digits") as error:
            engine.use(bad)
        assert bad not in str(error.value) or bad == "abc"
        (tmp_path / ".env").write_text(f'RECOLLECT_KEY="{bad}"\n')
        with pytest.raises(SettingsError, match="RECOLLECT_KEY"):
            load(cwd=tmp_path)
    monkeypatch.setattr(engine, "_cipher", None)
    with pytest.raises(engine.KeyRefused, match="install the package sqlcipher3"):
        engine.use(ONE)


def test_the_command_makes_a_key_and_changes_to_it(
    data_dir: Path, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = data_dir / DATABASE_NAME
    told = asyncio.run(filled(path, clock))
    run = CliRunner()
    line = run.invoke(cli, ["rekey", "--new"]).output.strip()
    assert re.fullmatch("RECOLLECT_NEW_KEY=[0-9a-f]{64}", line)
    neither = run.invoke(cli, ["rekey", "--data", str(data_dir)])
    assert (neither.exit_code, "one of the two" in neither.output) == (2, True)
    (tmp_path / ".env").write_text(f"{line}\n")
    done = run.invoke(cli, ["rekey", "--data", str(data_dir)])
    assert (done.exit_code, "written anew and found again" in done.output) == (0, True), done.output
    key = line.partition("=")[2]
    assert key not in done.output
    assert holding(data_dir) == []
    with keyed(key):
        assert asyncio.run(known(path, clock)) == told
    # The old name still holds no key: the bot says so and touches nothing.
    stopped = run.invoke(cli, ["check", "--data", str(data_dir)])
    assert "set RECOLLECT_KEY" in stopped.output
    (tmp_path / ".env").write_text(f"RECOLLECT_KEY={key}\n")
    off = run.invoke(cli, ["rekey", "--off", "--data", str(data_dir)])
    assert off.exit_code == 0, off.output
    engine.use("")
    assert asyncio.run(known(path, clock)) == told
