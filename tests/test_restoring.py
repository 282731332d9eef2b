"""The restore drill: what was forgotten, closed or taken back after a backup does not come back with it."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli import cli
from config.settings import BackupSettings, JournalSettings, TraceSettings
from memory import DATABASE_NAME, BackupError, Line, backups, engine, ledger, restoring
from memory.model import SEQ_BITS
from memory.opening import PAGE_BYTES, migrations
from memory.restoring import MARGIN, restore
from tests.conftest import Clock
from tests.house import House, housed
from tests.talk import Talk, talking
from tests.test_forget_forms import holding
from tests.test_forget_traces import yes
from tests.test_linking import CODE


def damage(data_dir: Path) -> None:
    """Overwrite most of the database."""
    file = data_dir / DATABASE_NAME
    file.write_bytes(b"\xff" * file.stat().st_size)


def lose(data_dir: Path) -> None:
    """Delete the database, the ledger stays."""
    (data_dir / DATABASE_NAME).unlink()


def leave(data_dir: Path) -> None:
    """Let the database be as it is."""
    assert (data_dir / DATABASE_NAME).exists()


def take(data_dir: Path, clock: Clock, file: Path) -> Path:
    """Make a backup of the memory in a folder."""
    return backups.take(data_dir / DATABASE_NAME, file, now=clock()).path


def as_of(file: Path, version: int) -> None:
    """Take out of a database what came to its schema after a version."""
    with (
        contextlib.closing(engine.connect(":memory:")) as before,
        contextlib.closing(engine.connect(file)) as held,
    ):
        for number, _, sql in migrations():
            if number <= version:
                before.executescript(sql)
        listed = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type = 'table'"
        known = set(before.execute(listed))
        for kind, name in held.execute(listed).fetchall():
            if (kind, name) not in known:
                held.execute(f"DROP {kind} {name}")
            elif kind == "table":
                columns = {row[1] for row in before.execute(f"PRAGMA table_info({name})")}
                for row in held.execute(f"PRAGMA table_info({name})").fetchall():
                    if row[1] not in columns:
                        held.execute(f"ALTER TABLE {name} DROP COLUMN {row[1]}")
        held.execute(f"PRAGMA user_version = {version}")


async def forget(talk: Talk, words: str) -> None:
    """Forget it, and let the time for undo pass."""
    await talk.say(f"/forget {words}")
    await yes(talk)
    talk.clock.advance(minutes=11)
    await talk.app.tick()


def files(folder: Path, pattern: str) -> list[Path]:
    """What lies in a folder."""
    return sorted(folder.glob(pattern))


@pytest.mark.parametrize("fate", [leave, damage, lose])
async def test_the_drill(data_dir: Path, clock: Clock, tmp_path: Path, fate: Callable[[Path], None]) -> None:
    """Talk, back up, forget, talk, lose the file, restore, prove."""
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is a Valkyrie")
        await talk.say("/remember my bike is red")
        await talk.say("/remember my locker is Marigold seven")
        backup = take(data_dir, clock, tmp_path / "b.db")
        own = take(data_dir, clock, data_dir / "backups" / backups.name_at(clock()))
        assert holding(tmp_path, "Valkyrie") != []
        await forget(talk, "Valkyrie")
        await talk.say("/forget Marigold")  # Hidden, and not erased yet, when the file is lost.
        await yes(talk)
        await talk.say("/remember my car is green")
        owner = await talk.owner()
        newest = await talk.app.memory.mark(owner)
    fate(data_dir)
    database = data_dir / DATABASE_NAME
    done = await restore(backup, database, clock=clock, folder_of_backups=own.parent)
    assert backups.verify(own).sealed
    assert done.damaged is (fate is damage)
    assert done.known == (("database", "ledger") if fate is leave else ("ledger",))
    assert done.counts["erased"] > 0
    for word in ("Valkyrie", "Marigold"):
        assert holding(data_dir, word) == []
    async with talking(data_dir, clock) as talk:
        talk._numbers = 100  # The platform goes on counting where it was.
        shown = await talk.say("/whatdoyouknow")
        assert "bike is red" in shown
        assert "Valkyrie" not in shown
        await talk.app.tick()
        assert len(await talk.known()) == 1
        # No number is given out twice: an old button hits nothing new.
        first = (await talk.owner()).first_id
        await talk.say("What a day it is")
        new = [id_ for (id_,) in talk.rows("SELECT id FROM journal ORDER BY id DESC LIMIT 1")]
        assert new[0] > newest > first
        await forget(talk, "bike")
        assert files(data_dir, "*.replaced-*") == []  # What was set aside goes with the next erasure.
        clock.advance(hours=25)
        await talk.app.tick()
    for word in ("Valkyrie", "Marigold", "bike is red"):
        assert holding(data_dir, word) == []


async def test_without_database_and_ledger_a_wide_margin_is_left_and_it_is_said_loudly(
    data_dir: Path, clock: Clock, tmp_path: Path
) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is blue")
        owner = await talk.owner()
        before = await talk.app.memory.mark(owner)
        backup = take(data_dir, clock, tmp_path / "b.db")
    shutil.rmtree(data_dir)
    done = await asyncio.to_thread(CliRunner().invoke, cli, ["restore", str(backup), "--data", str(data_dir)])
    assert done.exit_code == 0, done.output
    assert "IT MAY BE BACK" in done.output
    async with talking(data_dir, clock) as talk:
        assert await talk.app.memory.mark(owner) >= before + MARGIN
        assert len(await talk.known()) == 1
        await talk.say("hello", user="2002")
        assert (await talk.owner("2002")).no > MARGIN


async def test_a_restore_refuses_while_the_bot_runs_and_what_is_no_backup(
    data_dir: Path, clock: Clock, tmp_path: Path
) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is blue")
        backup = take(data_dir, clock, tmp_path / "b.db")
        with pytest.raises(BackupError, match="stop the bot"):
            await restore(backup, data_dir / DATABASE_NAME, clock=clock)
    before = (data_dir / DATABASE_NAME).read_bytes()
    torn = tmp_path / "torn.db"
    torn.write_bytes(backup.read_bytes()[: PAGE_BYTES * 8])
    run = await asyncio.to_thread(CliRunner().invoke, cli, ["restore", str(torn), "--data", str(data_dir)])
    assert run.exit_code == 1
    assert "damaged" in run.output
    assert (data_dir / DATABASE_NAME).read_bytes() == before
    assert files(data_dir, ".workshop*") == []


async def test_a_restore_that_breaks_off_leaves_the_database_as_it_was(
    data_dir: Path, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is blue")
        backup = take(data_dir, clock, tmp_path / "b.db")
        await talk.say("/remember my car is green")
    before = (data_dir / DATABASE_NAME).read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(restoring, "_take_place", full)
    with pytest.raises(BackupError, match="as before"):
        await restore(backup, data_dir / DATABASE_NAME, clock=clock)
    assert (data_dir / DATABASE_NAME).read_bytes() == before
    assert files(data_dir, ".workshop*") == []


async def test_what_was_closed_paused_refused_and_unlinked_since_stays_so(
    data_dir: Path, clock: Clock, tmp_path: Path
) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is blue")
        await talk.say("/remember my bike is red")
        owner, sharing = await talk.owner(), talk.app.memory.sharing
        boat, bike = [id_ for (id_,) in talk.rows("SELECT id FROM facts ORDER BY id")]
        for id_ in (boat, bike):
            assert await sharing.share(owner, id_, now=clock())
        found = CODE.search(await talk.say("/link"))
        assert found
        await talk.say(f"/link {found[1]}", user="2002")
        assert talk.rows("SELECT count(*) FROM links")[0][0] == 2
        backup = take(data_dir, clock, tmp_path / "b.db")
        assert await sharing.unshare(owner, boat, now=clock())
        await talk.say("/pause")
        await talk.say("/privacy health no")
        await talk.say("/unlink", user="2002")
        assert talk.rows("SELECT count(*) FROM links")[0][0] == 0
    lose(data_dir)
    done = await restore(backup, data_dir / DATABASE_NAME, clock=clock)
    assert done.counts["closed"] == 1
    async with talking(data_dir, clock) as talk:
        assert [text for (text,) in talk.rows("SELECT text FROM facts WHERE audience = -1")] == ["my bike is red"]
        assert talk.rows("SELECT count(*) FROM pauses")[0][0] == 1
        assert talk.rows("SELECT matter, answer FROM consents") == [("health", 0)]
        assert talk.rows("SELECT count(*) FROM links")[0][0] == 0


async def test_who_was_shut_out_since_stays_out_and_who_was_let_in_is_not(
    data_dir: Path, clock: Clock, tmp_path: Path
) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is blue")
        access = talk.app.memory.access
        for name, admin in (("test:1", False), ("test:2", True), ("test:3", False)):
            await access.allow(name, "person", zone="UTC", admin=admin, now=clock())
        backup = take(data_dir, clock, tmp_path / "b.db")
        await access.remove("test:1")
        await access.remove("test:2")
        await access.allow("test:2", "person", zone="UTC", admin=False, now=clock())
        await access.allow("test:4", "person", zone="UTC", admin=True, now=clock())
    lose(data_dir)
    done = await restore(backup, data_dir / DATABASE_NAME, clock=clock)
    assert done.counts["shut"] == 2
    async with talking(data_dir, clock) as talk:
        assert sorted(talk.rows("SELECT name, admin FROM allowed")) == [("test:2", 0), ("test:3", 0)]


async def test_what_was_undone_since_is_not_erased_after_all(data_dir: Path, clock: Clock, tmp_path: Path) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is blue")
        await talk.say("/forget boat")
        await yes(talk)
        backup = take(data_dir, clock, tmp_path / "b.db")
        assert (await talk.say("/undo")).startswith("Back again")
    lose(data_dir)
    await restore(backup, data_dir / DATABASE_NAME, clock=clock)
    async with talking(data_dir, clock) as talk:
        clock.advance(minutes=30)
        await talk.app.tick()
        assert len(await talk.known()) == 1


async def test_what_a_platform_tells_again_after_a_restore_is_not_learned_again(clock: Clock, tmp_path: Path) -> None:
    async with housed(tmp_path / "r.db", clock) as house:
        await house.hear("My bike is in the attic", id_="100")
        backup = backups.take(house.path, tmp_path / "out" / "b.db", now=clock()).path
        await house.hear("My boat is in the harbour", id_="120")
        await withdraw(house, "120")
        heard = await house.memory.newest_heard(house.owner.platform)
        assert list(heard.values()) == ["120"]
    house.path.unlink()
    await restore(backup, house.path, clock=clock)
    async with housed(house.path, clock) as house:
        assert await house.memory.newest_heard(house.owner.platform) == heard


async def withdraw(house: House, id_: str) -> None:
    """Take a message back on the platform."""
    await house.memory.withdraw(house.owner, house.chat, [id_], now=house.clock())


async def test_an_older_schema_is_brought_up_and_forgets_the_same(data_dir: Path, clock: Clock, tmp_path: Path) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is a Valkyrie")
        await talk.say("/remember my bike is red")
        old = take(data_dir, clock, tmp_path / "b.db")
        await forget(talk, "Valkyrie")
    version = migrations()[-2][0]
    as_of(old, version)
    old.with_name(old.name + backups.ENDING).unlink()
    lose(data_dir)
    done = await restore(old, data_dir / DATABASE_NAME, clock=clock)
    assert done.migrated_from == version
    async with talking(data_dir, clock) as talk:
        assert len(await talk.known()) == 1
    assert holding(data_dir, "Valkyrie") == []


async def test_another_installations_ledger_erases_nothing(data_dir: Path, clock: Clock, tmp_path: Path) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is blue")
        backup = take(data_dir, clock, tmp_path / "b.db")
    other = tmp_path / "other"
    clock.advance(hours=1)
    async with talking(other, clock) as talk:
        await talk.say("/remember my house is tall")
        await forget(talk, "everything")
    done = await restore(backup, other / DATABASE_NAME, clock=clock)
    assert done.counts["erased"] == 0
    async with talking(other, clock) as talk:
        assert "boat" in " ".join(await talk.texts())


async def test_backups_are_cleaned_of_what_was_erased_in_the_next_cycle_and_the_receipt_says_so(
    data_dir: Path, clock: Clock
) -> None:
    settings = BackupSettings(every_hours=6.0, keep=3)
    folder = data_dir / "backups"
    async with talking(data_dir, clock, backup=settings) as talk:
        await talk.say("/remember my boat is a Valkyrie")
        await talk.app.tick()
        (first,) = backups.own(folder)
        assert holding(folder, "Valkyrie") != []
        await forget(talk, "Valkyrie")
        (owed,) = await talk.app.memory.notices()
        assert owed.notice.phrase == "forget.receipt_copies"
        assert owed.notice.data["hours"] == 6
        clock.advance(hours=6)
        await talk.app.tick()
        assert len(backups.own(folder)) == 2
        assert holding(data_dir, "Valkyrie") == []
        assert backups.verify(first).sealed
        for _ in range(4):
            clock.advance(hours=6)
            await talk.app.tick()
        assert len(backups.own(folder)) == 3
        await talk.app.tick()
        assert len(backups.own(folder)) == 3


@pytest.mark.parametrize(("place", "left"), [(PAGE_BYTES * 5, 0), (0, 2)])
async def test_a_backup_that_nothing_can_be_taken_out_of_is_deleted_but_not_one_that_may_have_another_key(
    data_dir: Path, clock: Clock, place: int, left: int
) -> None:
    folder = data_dir / "backups"
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is a Valkyrie")
        made = take(data_dir, clock, folder / backups.name_at(clock()))
        await forget(talk, "Valkyrie")
        with made.open("r+b") as file:
            file.seek(place)
            file.write(b"\xff" * PAGE_BYTES)
        clock.advance(hours=25)
        await talk.app.tick()
    assert len(files(folder, "*")) == left


async def test_the_ledger_holds_no_word_and_outlives_a_torn_line(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is a Valkyrie")
        await forget(talk, "Valkyrie")
        owner = await talk.owner()
        ranges = await talk.app.memory.forgetting.erased(owner)
        database = data_dir / DATABASE_NAME
        file = ledger.ledger_of(database)
        text = file.read_text()
        assert "Valkyrie" not in text
        assert owner.user_id not in text
        file.write_text(text + '{"no":1,"since":')
        (standing,) = ledger.read(file).standings.values()
        assert set(ranges) <= set(standing.erased)
        await talk.say("/remember my bike is red")
        await forget(talk, "bike")
        (standing,) = ledger.read(file).standings.values()
        assert set(await talk.app.memory.forgetting.erased(owner)) <= set(standing.erased)


async def test_a_forgetting_is_carried_out_though_the_ledger_cannot_be_written_and_is_written_later(
    data_dir: Path, clock: Clock
) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is blue")
        file = ledger.ledger_of(data_dir / DATABASE_NAME)
        file.mkdir()
        await talk.say("/forget boat")
        await yes(talk)
        assert await talk.known() == []
        file.rmdir()
        await talk.app.tick()
        (standing,) = ledger.read(file).standings.values()
        assert standing.hidden


async def test_what_others_were_told_of_it_is_in_their_ledger_too(clock: Clock, tmp_path: Path) -> None:
    async with housed(tmp_path / "r.db", clock) as house:
        memory = house.memory
        group = await memory.chat(house.owner, "group:-5", private=False)
        bo = await memory.account("test", "2002", name="Bo")
        said = await house.hear("My medicine is called Valsartan", id_="1", chat=group)
        await house.reply("Noted.", said.message, chat=group)
        asked = await house.hear("What is it called?", id_="2", owner=bo, chat=group)
        line = Line("bot", "Recollect", clock.advance(seconds=5), "Valsartan, she said.", answers=asked.message.id)
        told = await memory.answered(bo, group, line, {"recalled": []}, since=await memory.mark(bo))
        await memory.withdraw(house.owner, group, ["1"], now=clock())
        assert any(r.first <= told.id <= r.last for r in await memory.forgetting.erased(bo))


@pytest.mark.parametrize("stop", ["before the place is taken", "before anything is set aside"])
async def test_a_restore_that_is_killed_can_be_done_again(
    data_dir: Path, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember my boat is a Valkyrie")
        await talk.say("/remember my bike is red")
        backup = take(data_dir, clock, tmp_path / "b.db")
        await forget(talk, "Valkyrie")

    class Killed(BaseException):
        """Nothing after this is done."""

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(restoring, "_take_place" if "place" in stop else "_set_aside", killed)
        with contextlib.suppress(Killed):
            await restore(backup, data_dir / DATABASE_NAME, clock=clock)
    await restore(backup, data_dir / DATABASE_NAME, clock=clock)
    async with talking(data_dir, clock) as talk:
        assert len(await talk.known()) == 1
    assert holding(data_dir, "Valkyrie") == []


def test_a_number_of_an_account_leaves_room_for_margins() -> None:
    assert (1 << SEQ_BITS) // MARGIN >= 64


@pytest.mark.parametrize("hours", [0.0, 6.0])
async def test_privacy_tells_what_becomes_of_backups_as_the_settings_have_it(
    data_dir: Path, clock: Clock, hours: float
) -> None:
    async with talking(data_dir, clock, backup=BackupSettings(every_hours=hours, keep=3)) as talk:
        told = await talk.say("/privacy")
        assert ("in no backup of mine" in told) is (hours == 0)
        assert ("every 6 hours, the newest 3 of them" in told) is (hours == 6)
        take(data_dir, clock, data_dir / "backups" / backups.name_at(clock()))
        told = await talk.say("/privacy")
        assert f"taken out of them within {hours or 24:g} hours" in told
        assert "in 1 backup made by hand" in told or hours
        await talk.say("你好")
        assert f"{hours or 24:g} 小时之内也会从备份里抹掉" in await talk.say("/privacy")


async def test_the_ledger_beside_the_backups_outlives_the_disk_of_the_database(
    data_dir: Path, clock: Clock, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    async with talking(data_dir, clock, backup=BackupSettings(every_hours=24.0, folder=elsewhere)) as talk:
        await talk.say("/remember my boat is a Valkyrie")
        await talk.say("/remember my bike is red")
        await talk.app.tick()
        (backup,) = backups.own(elsewhere)
        await talk.say("/forget Valkyrie")
        await yes(talk)
    shutil.rmtree(data_dir)
    done = await restore(backup, data_dir / DATABASE_NAME, clock=clock)
    assert done.known == ("ledger",)
    assert holding(data_dir, "Valkyrie") == []
    async with talking(data_dir, clock) as talk:
        assert len(await talk.known()) == 1


async def test_everything_goes_when_the_settings_and_privacy_say_so(data_dir: Path, clock: Clock) -> None:
    async with talking(
        data_dir,
        clock,
        backup=BackupSettings(every_hours=24.0, keep=2),
        journal=JournalSettings(keep_days=3),
        trace=TraceSettings(keep_days=2),
    ) as talk:
        await talk.say("The weather is as Valkyrie as it gets")
        told = await talk.say("/privacy")
        assert "for 3 days" in told
        assert "without words, for 2 days" in told
        assert "every 24 hours, the newest 2 of them" in told
        assert "in them for up to 72 hours more" in told
        last_traced = last_said = last_held = 0
        for day in range(8):
            await talk.app.tick()
            last_traced = day if talk.rows("SELECT count(*) FROM traces")[0][0] else last_traced
            last_said = day if talk.rows("SELECT count(*) FROM journal WHERE text != ''")[0][0] else last_said
            last_held = day if holding(data_dir / "backups", "Valkyrie") else last_held
            clock.advance(days=1)
        assert (last_traced, last_said) == (1, 2)  # On the day after, it is older than that.
        assert last_said < last_held <= last_said + 3
    assert holding(data_dir, "Valkyrie") == []
