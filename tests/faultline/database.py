"""The file cannot be read or written; nothing is lost in silence, and a damaged file stays as it was found."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from bot.check import look_at_database
from memory import DATABASE_NAME, DamagedError, DatabaseError
from memory import db as database
from memory.db import Database
from tests.faultline.endpoint import SAID
from tests.faultline.place import PRIVATE, Place, Row, fault
from tests.servers.openai_server import OpenAIServer
from tests.talk import Door, Talk

UNWRITABLE: Final = "My memory cannot be written just now: nothing was saved or changed. Please try again later."
HOLDER: Final = (
    "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN IMMEDIATE');"
    " print('held', flush=True); sys.stdin.readline(); c.execute('ROLLBACK')"
)


def lines(talk: Talk) -> list[str]:
    """What people said, as the journal has it."""
    return [text for (text,) in talk.rows("SELECT text FROM journal WHERE role = 'user' AND text != '' ORDER BY id")]


def whole(reply: str) -> str:
    """A reply without the number for the log."""
    return reply.split(" (log", maxsplit=1)[0]


@contextlib.contextmanager
def held(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the write lock of a file until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError, ValueError):
                process.stdin.close()
            process.wait(10)


@contextlib.contextmanager
def patience(seconds: float, short_ms: int = 20) -> Iterator[None]:
    """How long a write waits for a lock, at first and afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "BUSY_SECONDS", seconds)
        patch.setattr(database, "PATIENCE_MS", short_ms)
        yield


@fault("database", "f01: locked for a moment, 20 chats and two jobs")
async def locked_for_a_moment(place: Place) -> Row:
    async with place.served() as (_, talk):
        await talk.say("hi")
        place.clock.advance(minutes=40)
        with held(talk.app.settings.data_dir / DATABASE_NAME) as process:
            said = [asyncio.create_task(talk.say(f"{PRIVATE} {n}", user=str(2_000 + n))) for n in range(20)]
            ticks = [asyncio.create_task(talk.app.tick()) for _ in range(2)]
            await asyncio.sleep(0.3)
            assert not any(task.done() for task in said)
            assert process.stdin is not None
            process.stdin.close()
            replies = await asyncio.gather(*said)
            await asyncio.gather(*ticks)
        assert replies == ["Hello"] * 20
        assert sorted(lines(talk)[1:]) == sorted(f"{PRIVATE} {n}" for n in range(20))
        assert place.heard.lines == []
    return Row("the answer, when the lock is gone", "nothing", "all 20 messages, once; both jobs ran", "by itself")


@fault("database", "f01: locked for longer than anybody waits")
async def locked_for_long(place: Place) -> Row:
    with patience(0.5):
        async with place.served() as (_, talk):
            await talk.say("hi")
            with held(talk.app.settings.data_dir / DATABASE_NAME):
                begin = asyncio.get_running_loop().time()
                replies = await asyncio.gather(*(talk.say(f"{PRIVATE} {n}", user=str(2_000 + n)) for n in range(20)))
                took = asyncio.get_running_loop().time() - begin
                # Twenty waits of half a second each behind one another would be ten.
                assert took < 4
                assert {whole(reply) for reply in replies} == {UNWRITABLE}
                assert whole(await talk.say("/whatdoyouknow", user="2000")) in (UNWRITABLE, "")
                await talk.app.tick()
            told = place.logged("another program holds it: end that program")
            place.logged("housekeeping waits for the database", most=1)
            place.clock.advance(minutes=2)
            assert await talk.say(SAID, user="2000") == "Hello"
            assert lines(talk) == ["hi", SAID]
            await talk.app.tick()
    return Row(f"{UNWRITABLE} (all 20 within {took:.1f} s)", told, "nothing, and that is said", "at the next message")


@fault("database", "locked while the model answers")
async def locked_meanwhile(place: Place) -> Row:
    """The message is in the journal; the answer that cannot be written down is delivered all the same."""
    with patience(0.2):
        async with OpenAIServer() as server, place.talk(server, model={"timeout_seconds": 10.0}) as talk:
            gate = Door()
            server.on("^hi$", reply="Hello")
            server.on(PRIVATE, reply="A fine flower.", hold=gate)
            await talk.say("hi")
            saying = asyncio.create_task(talk.say(SAID))
            await gate.reached.wait()
            with held(talk.app.settings.data_dir / DATABASE_NAME):
                gate.set()
                reply = await saying
            assert reply == "A fine flower."
            assert SAID in lines(talk)
            told = place.logged("the reply was not journaled|still counts as waiting")
    return Row(reply, told, "the message; the answer is not, and is given again after a restart", "by itself")


@contextlib.asynccontextmanager
async def small_disk(place: Place) -> AsyncIterator[bool]:
    """Put the data folder on a disk of three megabytes, where that is allowed."""
    data = place.folder / "data"
    mounted = sys.platform == "linux" and os.geteuid() == 0 and shutil.which("mount") is not None
    if mounted:
        mounted = (await _command("mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(data))) == 0
    try:
        yield mounted
    finally:
        if mounted:
            await _command("umount", "-l", str(data))


async def _command(*words: str) -> int:
    process = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.DEVNULL)
    return await process.wait()


async def fill(talk: Talk, *, disk: bool) -> Path:
    """Leave no room: on the small disk by a file, elsewhere by the most pages that the file may have."""
    filler = talk.app.settings.data_dir / "filler"
    if disk:
        with contextlib.suppress(OSError), filler.open("wb") as file:
            while True:
                file.write(b"x" * 4_096)
                file.flush()
    else:
        writer = talk.app.memory._db._writer
        await writer.execute("PRAGMA max_page_count = 1")
    return filler


async def make_room(talk: Talk, filler: Path) -> None:
    """Undo it."""
    await asyncio.to_thread(filler.unlink, missing_ok=True)
    await talk.app.memory._db._writer.execute("PRAGMA max_page_count = 1000000")


@fault("database", "disk full in the middle of a write")
async def disk_full(place: Place) -> Row:
    async with small_disk(place) as disk, place.served() as (_, talk):
        assert await talk.say("my name is Lin") == "Hello"
        before = lines(talk)
        filler = await fill(talk, disk=disk)
        long = f"{SAID} " + "and more of it " * 6_500
        reply = await talk.say(long)
        assert whole(reply) == UNWRITABLE
        await talk.app.tick()
        told = place.logged("the disk is full: make room")
        assert lines(talk) == before
        assert integrity(talk) == "ok"
        known = await talk.say("/help")
        assert "/forget" in known or whole(known) == UNWRITABLE
        await make_room(talk, filler)
        place.clock.advance(minutes=2)
        assert await talk.say(SAID) == "Hello"
        assert lines(talk) == [*before, SAID]
        await talk.app.tick()
        assert integrity(talk) == "ok"
    how = "a disk of 3 MB" if disk else "max_page_count"
    return Row(whole(reply), told, f"all from before, nothing half written ({how})", "at the next message with room")


@fault("database", "disk full while a session is distilled and forgotten")
async def disk_full_in_jobs(place: Place) -> Row:
    async with small_disk(place) as disk, place.served() as (_, talk):
        await talk.say("I keep bees")
        place.clock.advance(minutes=40)
        filler = await fill(talk, disk=disk)
        for _ in range(3):
            await talk.app.tick()
            place.clock.advance(minutes=3)
        told = place.logged("the disk is full: make room", most=9)
        assert talk.rows("SELECT max(waiting) FROM session_members") == [(1,)]
        await make_room(talk, filler)
        place.clock.advance(minutes=30)
        await talk.app.tick()
        assert talk.rows("SELECT max(waiting) FROM session_members") == [(0,)]
    return Row("nothing", told, "the session waits, whole", "the next round with room")


def integrity(talk: Talk) -> str:
    """What SQLite says of the file."""
    return str(talk.rows("PRAGMA integrity_check")[0][0])


def digest(path: Path) -> str:
    """What a file holds."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def damage(path: Path, table: str) -> None:
    """Overwrite the page a table begins on."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)
        file.flush()
        os.fsync(file.fileno())


@fault("database", "a corrupt page, found at the start")
async def corrupt_at_start(place: Place) -> Row:
    path = place.folder / "data" / DATABASE_NAME
    async with place.served() as (_, talk):
        await talk.say(SAID)
    damage(path, "facts")
    before = {each.name: digest(each) for each in path.parent.iterdir() if each.is_file()}
    with pytest.raises(DamagedError) as refused:
        async with place.talk():
            pass
    finding = look_at_database(path)
    assert finding.level == "fail"
    assert "damaged" in finding.line
    assert "Restore a backup" in finding.line
    assert {each.name: digest(each) for each in path.parent.iterdir() if each.is_file()} == before
    told = re.sub(r"/\S*/", "", str(refused.value))
    return Row(
        "nothing: the bot does not start", told, "every byte of the file", "with a backup; `check` says the same"
    )


@fault("database", "a corrupt page, met while running")
async def corrupt_meanwhile(place: Place) -> Row:
    path = place.folder / "data" / DATABASE_NAME
    async with place.served() as (_, talk):
        for n in range(3):
            await talk.say(f"{SAID} {n}")
        await cold(talk)
        damage(path, "journal")
        await cold(talk)
        before = digest(path)
        reply = whole(await talk.say("what is my flower?"))
        assert reply.startswith("My memory is damaged: I can neither look anything up nor keep anything"), reply
        place.clock.advance(minutes=2)
        again = whole(await talk.say("and now?"))
        other = whole(await talk.say("hello", user="1002"))
        for _ in range(3):
            await talk.app.tick()
            place.clock.advance(minutes=40)
        with pytest.raises(DamagedError):
            await talk.app.memory._db.scrub()
        assert {again, other} <= {reply, ""}
        assert digest(path) == before
        assert not path.with_name(f"{path.name}-wal").exists() or not path.with_name(f"{path.name}-wal").stat().st_size
    assert digest(path) == before, "closing it changes nothing either"
    place.logged("Nothing more is written to it. Stop the bot and keep the file as it is")
    told = re.sub(r"/\S*/", "", place.logged("is damaged"))
    with pytest.raises(DatabaseError):
        await Database.open(path)
    return Row(reply, told, "every byte of the file as it was found", "with a backup")


async def cold(talk: Talk) -> None:
    """Have nothing of the file in memory: what is read next is read from the disk."""
    db = talk.app.memory._db
    await db._writer.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
    await db._writer.execute("PRAGMA shrink_memory")
    await db._reader.fetch("PRAGMA shrink_memory", ())


@fault("database", "read-only folder at the start")
async def read_only_at_start(place: Place) -> Row:
    path = place.folder / "data" / DATABASE_NAME
    async with small_disk(place) as disk:
        async with place.served() as (_, talk):
            await talk.say(SAID)
        async with read_only(path.parent, mounted=disk) as really:
            before = digest(path)
            if not really:
                return Row("(cannot be brought about here)", "-", "-", "-")
            with pytest.raises(DatabaseError) as refused:
                async with place.talk():
                    pass
            finding = look_at_database(path)
            assert finding.level == "fail"
            assert "cannot be written" in finding.line
            assert digest(path) == before
        async with place.served() as (_, talk):
            assert await talk.say("hi", id="later") == "Hello"
            assert lines(talk) == [SAID, "hi"]
    told = re.sub(r"/\S*/", "", str(refused.value))
    assert re.search("cannot be written|is writable|cannot be opened", told), told
    return Row("nothing: the bot does not start", told, "everything", "when the folder can be written")


@contextlib.asynccontextmanager
async def read_only(folder: Path, *, mounted: bool) -> AsyncIterator[bool]:
    """Take the right to write away; whether that could be done."""
    if mounted:
        assert await _command("mount", "-o", "remount,ro,bind", str(folder)) == 0
    else:
        _allow(folder, "r")
    try:
        yield mounted or os.geteuid() != 0
    finally:
        if mounted:
            await _command("mount", "-o", "remount,rw,bind", str(folder))
        else:
            _allow(folder, "rw")


def _allow(folder: Path, what: str) -> None:
    for file in folder.iterdir():
        file.chmod(0o600 if "w" in what else 0o400)
    folder.chmod(0o700 if "w" in what else 0o500)


@fault("database", "read-only while it runs")
async def read_only_meanwhile(place: Place) -> Row:
    async with place.served() as (_, talk):
        await talk.say("my name is Lin")
        writer = talk.app.memory._db._writer
        await writer.execute("PRAGMA query_only = ON")
        reply = whole(await talk.say(SAID))
        assert reply == UNWRITABLE
        await talk.app.tick()
        told = re.sub(r"/\S*/", "", place.logged("give the file and its folder to the user the bot runs as"))
        place.logged("housekeeping waits for the database", most=1)
        await writer.execute("PRAGMA query_only = OFF")
        place.clock.advance(minutes=2)
        assert await talk.say(SAID) == "Hello"
        assert lines(talk) == ["my name is Lin", SAID]
    return Row(reply, told, "all from before", "at the next message")


@fault("database", "written by a newer version")
async def newer(place: Place) -> Row:
    path = place.folder / "data" / DATABASE_NAME
    async with place.served() as (_, talk):
        await talk.say(SAID)
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 999")
    before = digest(path)
    with pytest.raises(DatabaseError, match="newer Recollect") as refused:
        async with place.talk():
            pass
    assert digest(path) == before
    told = re.sub(r"/\S*/", "", str(refused.value))
    return Row("nothing: the bot does not start", told, "every byte of the file", "with the newer program")


@fault("database", "f06: the right version, and a column missing")
async def column_missing(place: Place) -> Row:
    path = place.folder / "data" / DATABASE_NAME
    async with place.served() as (_, talk):
        await talk.say(SAID)
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("ALTER TABLE job_runs DROP COLUMN failures")
    before = digest(path)
    with pytest.raises(DatabaseError, match="job_runs") as refused:
        async with place.talk():
            pass
    assert digest(path) == before
    finding = look_at_database(path)
    assert finding.level == "fail"
    told = re.sub(r"/\S*/", "", str(refused.value))
    return Row("nothing: the bot does not start", told, "every byte of the file", "with a backup, or the lost column")
