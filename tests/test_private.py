"""Files are their owner's alone, whatever the umask and whatever they were before; no link leads out of the folder."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot import heartbeat, logs
from bot.check import look_at_files
from config.settings import Settings
from memory import DATABASE_NAME, DatabaseError
from memory.backups import take
from memory.db import Database
from tests.conftest import Clock
from tests.house import housed


@pytest.fixture(autouse=True)
def careless() -> Iterator[None]:
    """The umask of a system on which everybody may read what everybody makes."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in before:
            handler.close()
    root.handlers[:] = before
    root.setLevel(level)


def modes(folder: Path) -> dict[str, int]:
    """What others may do with each file and folder, where they may do anything."""
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    return {name: mode for name, mode in found.items() if mode & 0o077}


async def test_everything_the_bot_writes_is_its_owners_alone(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "data"
    logs.start(folder, secrets=[])
    async with housed(folder / DATABASE_NAME, clock) as house:
        await house.hear("I am allergic to pollen")
        assert {f"{DATABASE_NAME}-wal", f"{DATABASE_NAME}-shm"} <= {path.name for path in _all(folder)}
        take(folder / DATABASE_NAME, folder / "backups" / "recollect-20260302T120000Z.db", now=clock())
        await house.memory._db.scrub()

    async def once(_seconds: float) -> None:
        assert modes(folder) == {}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await heartbeat.beat(folder, sleep=once)
    assert modes(folder) == {}


def _let_in(folder: Path) -> None:
    folder.chmod(0o755)


def _all(folder: Path) -> list[Path]:
    return list(folder.rglob("*"))


def test_a_log_that_is_turned_over_stays_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_BYTES", 500)
    logs.start(tmp_path / "data", secrets=[])
    for number in range(20):
        logging.getLogger("bot.test").warning("line %d of a log that is soon full", number)
    assert len(_all(tmp_path / "data")) > 2
    assert modes(tmp_path / "data") == {}


async def test_what_was_looser_before_is_tightened_and_check_tells_of_it(data_dir: Path, clock: Clock) -> None:
    _let_in(data_dir)
    async with housed(data_dir / DATABASE_NAME, clock) as house:
        await house.hear("I am allergic to pollen")
    logs.start(data_dir, secrets=[])
    (data_dir / "recollect.v3.bak").write_bytes(b"old")
    for path in _all(data_dir):
        path.chmod(0o664)
    told = [finding.line for finding in look_at_files(data_dir, Settings(data_dir=data_dir)) if finding.level == "warn"]
    assert {line.split()[1].rpartition("/")[2] for line in told} == {
        "data", DATABASE_NAME, "recollect.log", "recollect.v3.bak"
    }  # fmt: skip
    assert f"chmod 700 {data_dir}" in told[0]
    logs.start(data_dir, secrets=[])
    await (await Database.open(data_dir / DATABASE_NAME)).close()
    assert modes(data_dir) == {"data": 0o755}  # A folder may hold more than ours.


async def test_a_link_in_the_place_of_a_file_is_not_followed(data_dir: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"")
    for name in (DATABASE_NAME, logs.FILE):
        (data_dir / name).symlink_to(outside)
    with pytest.raises(DatabaseError, match="is a symbolic link: set data_dir to the folder it leads to"):
        await Database.open(data_dir / DATABASE_NAME)
    with pytest.raises(OSError, match="symbolic link"):
        logs.start(data_dir, secrets=[])
    # What a rewriting would be put under is no way out either.
    (data_dir / DATABASE_NAME).unlink()
    (data_dir / f"{DATABASE_NAME}.new").symlink_to(outside)
    db = await Database.open(data_dir / DATABASE_NAME)
    await db.scrub()
    await db.close()
    assert outside.read_bytes() == b""
