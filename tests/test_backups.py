"""Backups: whole, looked through, for their owner's eyes, never half; and what is no backup is refused."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli import cli
from memory import DATABASE_NAME, BackupError, backups, engine
from memory.holding import Held
from memory.opening import PAGE_BYTES
from tests.conftest import Clock
from tests.house import housed
from tests.talk import talking


def names(folder: Path, pattern: str = "*") -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in folder.glob(pattern))


def mode(path: Path) -> int:
    """Who may do what with a file."""
    return stat.S_IMODE(path.stat().st_mode)


def right(tool: str, listed: Path) -> bool:
    """Whether a tool for checksums agrees with a list of them."""
    return subprocess.run([tool, "--check", listed.name], cwd=listed.parent, check=False).returncode == 0


async def filled(data_dir: Path, clock: Clock) -> Path:
    """A folder with a little memory in it; returns its database."""
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is blue")
    return data_dir / DATABASE_NAME


async def test_a_backup_is_taken_while_everybody_writes_and_holds_what_was_committed_before(
    clock: Clock, tmp_path: Path
) -> None:
    async with housed(tmp_path / "r.db", clock) as house:
        for number in range(200):
            await house.hear(f"My boat number {number} is blue", id_=str(number))
        taking = asyncio.create_task(asyncio.to_thread(backups.take, house.path, tmp_path / "b.db", now=clock()))
        written = 0
        while not taking.done():
            await house.hear(f"My bike number {written} is red", id_=f"later-{written}")
            written += 1
        made = await taking
        assert written > 1  # Writers did not wait for it.
        assert 200 <= made.counts["journal"] <= 200 + written
        assert backups.verify(made.path).counts == made.counts


async def test_a_backup_is_for_its_owners_eyes_and_its_checksum_is_read_by_other_tools(
    data_dir: Path, clock: Clock, tmp_path: Path
) -> None:
    database = await filled(data_dir, clock)
    made = backups.take(database, tmp_path / "out" / "b.db", now=clock())
    for name in ("b.db", "b.db.sha256"):
        assert mode(tmp_path / "out" / name) == 0o600
    assert names(tmp_path / "out") == ["b.db", "b.db.sha256"]
    assert backups.made_at(made.path) == clock().replace(microsecond=0)
    if tool := shutil.which("sha256sum"):
        assert right(tool, tmp_path / "out" / "b.db.sha256")


async def test_a_backup_overwrites_nothing(data_dir: Path, clock: Clock, tmp_path: Path) -> None:
    database = await filled(data_dir, clock)
    (tmp_path / "b.db").write_text("mine")
    with pytest.raises(BackupError, match="overwrites nothing"):
        backups.take(database, tmp_path / "b.db", now=clock())
    assert (tmp_path / "b.db").read_text() == "mine"
    assert not names(tmp_path, ".b.db*")


async def test_without_room_on_the_disk_nothing_is_begun(
    data_dir: Path, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await filled(data_dir, clock)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10_000_000))
    with pytest.raises(BackupError, match=r"has 10 MB left and a backup needs 1[67] MB"):
        backups.take(database, tmp_path / "b.db", now=clock())
    assert not names(tmp_path, "*b.db*")


async def test_a_copy_that_is_not_whole_never_gets_the_name(
    data_dir: Path, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await filled(data_dir, clock)

    def torn(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(PAGE_BYTES * 5)
            file.write(b"\xff" * PAGE_BYTES)

    monkeypatch.setattr(backups, "sync", lambda path: torn(path) if path.suffix == backups.PART else None)
    with pytest.raises(BackupError):
        backups.take(database, tmp_path / "b.db", now=clock())
    assert not names(tmp_path, "*b.db*")


async def test_what_is_no_backup_is_refused_with_the_reason(data_dir: Path, clock: Clock, tmp_path: Path) -> None:
    database = await filled(data_dir, clock)
    made = backups.take(database, tmp_path / "b.db", now=clock())
    assert backups.verify(made.path).sealed

    changed = tmp_path / "changed.db"
    shutil.copy(made.path, changed)
    shutil.copy(f"{made.path}.sha256", f"{changed}.sha256")
    with changed.open("r+b") as file:
        file.seek(100)
        file.write(b"x")
    with pytest.raises(BackupError, match="its checksum is another one"):
        backups.verify(changed)

    other = tmp_path / "other.db"
    with contextlib.closing(engine.connect(other)) as file_:
        file_.execute("CREATE TABLE t (a)")
    cut = tmp_path / "cut.db"
    cut.write_bytes(made.path.read_bytes()[: made.size // 2])
    orphaned = tmp_path / "orphaned.db"
    shutil.copy(made.path, orphaned)
    with contextlib.closing(engine.connect(orphaned)) as file_, file_:
        file_.execute("UPDATE journal SET chat = 999")
    empty = tmp_path / "empty.db"
    empty.touch()
    for path, said in [
        (tmp_path / "none.db", "is no file"),
        (other, "belongs to another program"),
        (cut, "damaged"),
        (orphaned, "rows point at nothing"),
        (empty, "is empty"),
    ]:
        with pytest.raises(Exception, match=said):
            backups.verify(path)


async def test_only_our_own_old_backups_are_thinned_out(data_dir: Path, clock: Clock) -> None:
    database = await filled(data_dir, clock)
    folder = data_dir / "backups"
    for _ in range(4):
        clock.advance(hours=1)
        backups.take(database, folder / backups.name_at(clock()), now=clock())
    (folder / "recollect-by-hand.db").write_text("mine")
    (folder / "recollect-20260302T110000Z.db.sha256").write_text("of a backup that a stop kept from its name")
    newest = [path.name for path in backups.own(folder)][-2:]
    assert backups.thin(folder, 2) == 2
    assert names(folder) == sorted([*newest, *(f"{name}.sha256" for name in newest), "recollect-by-hand.db"])


async def test_the_command_says_what_it_made_and_whether_the_bot_looks_after_it(
    data_dir: Path, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(data_dir, clock)
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    done = run(cli, ["backup", "b.db", "--data", str(data_dir)])
    assert done.exit_code == 0, done.output
    assert "1 account, 1 memory" in done.output
    assert "does not look after this file" in done.output
    assert run(cli, ["backup", "b.db", "--data", str(data_dir)]).exit_code == 1
    assert run(cli, ["backup", "c.db", "--to", ".", "--data", str(data_dir)]).exit_code == 2
    assert run(cli, ["backup", "--data", str(tmp_path / "nowhere")]).exit_code == 1
    assert not (tmp_path / "nowhere").exists()
    done = run(cli, ["backup", "--keep", "3", "--data", str(data_dir)])
    assert done.exit_code == 0
    assert "does not look after" not in done.output
    assert len(backups.own(data_dir / "backups")) == 1


async def test_nobody_opens_a_folder_that_a_restore_holds_and_a_restore_none_that_is_open(
    data_dir: Path, clock: Clock
) -> None:
    database = await filled(data_dir, clock)
    held = Held(data_dir, alone=True)
    with pytest.raises(Exception, match="restore is under way"):
        await filled(data_dir, clock)
    with pytest.raises(BackupError, match="restore is under way"):
        backups.take(database, data_dir / "b.db", now=clock())
    held.release()
    await filled(data_dir, clock)
