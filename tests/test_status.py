"""``status``: true numbers of a house, bot or no bot, with nothing touched and no word of anybody."""

from __future__ import annotations

import json
import logging
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot import logs, status
from bot.heartbeat import FILE
from config.settings import LogSettings, Settings
from memory import DATABASE_NAME, DatabaseError, use_key
from tests.busy import PRIVATE, busy
from tests.conftest import Clock
from tests.talk import talking


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    yield
    logging.basicConfig(level=logging.WARNING, handlers=[logging.NullHandler()], force=True)


def told(data_dir: Path, clock: Clock, **more: Any) -> dict[str, Any]:
    """What status tells, as JSON."""
    return status.report(Settings(data_dir=data_dir, model=more.pop("model", {})), now=clock(), **more)


def printed(data_dir: Path, clock: Clock, capsys: pytest.CaptureFixture[str]) -> str:
    """What status prints for people."""
    assert status.main(Settings(data_dir=data_dir), now=clock(), as_json=False) == 0
    return capsys.readouterr().out


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("how", ["text", "json"])
async def test_its_numbers_are_those_of_the_database_while_the_bot_runs_and_after(
    data_dir: Path, clock: Clock, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.start(data_dir, secrets=[], how=LogSettings.model_validate({"format": how}))
    async with busy(data_dir, clock) as talk:
        await talk.say("/remember the pelican is asleep", user="3003")
        await talk.say("What do you think of the weather?", user="3003")
        await talk.say("/forget pelican", user="3003")
        await talk.say("/forget yes", user="3003")
        running = told(data_dir, clock, people=2, model={"price_in": 1.0, "price_out": 2.0})
        first = printed(data_dir, clock, capsys)
        assert running["people"] == 3
        for store in ("profile", "timeline", "facts"):
            assert running["memories"][store]["all"] == talk.rows(f"SELECT count(*) FROM {store}")[0][0]
        assert running["messages"] == talk.rows("SELECT count(*) FROM journal")[0][0]
        assert (running["erasures"]["hidden"], running["erasures"]["due"]) == (1, 0)
        assert running["sessions"]["open"] == 1
        assert {job["name"] for job in running["jobs"]} == {name for (name,) in talk.rows("SELECT name FROM job_runs")}
        assert all(job["next"] >= job["last"] and len(job["run"]) == 8 for job in running["jobs"])
        assert running["troubles"][0]["turn"]
        assert "503" in running["troubles"][0]["what"]
        used = dict(
            talk.rows("SELECT kind, sum(times) FROM usage WHERE day = (SELECT max(day) FROM usage) GROUP BY kind")
        )
        assert (
            {kind: of["times"] for kind, of in running["today"]["used"].items()} == used == {"message": 1, "reply": 1}
        )
    clock.advance(minutes=20)
    stopped = told(data_dir, clock)
    assert stopped["erasures"]["due"] == 1
    assert stopped["memories"] == running["memories"]
    log = (data_dir / logs.FILE).read_text("utf-8")
    assert log.count("answered") >= 10
    assert len(re.findall(r'turn(?:=|": ")[0-9a-f]{8}', log)) > 10
    shown = first + printed(data_dir, clock, capsys) + json.dumps([running, stopped]) + log
    assert not [word for word in (*PRIVATE, "hunter2") if word.lower() in shown.lower()]


async def test_those_who_spent_most_are_named_with_what_it_cost_only_when_asked(data_dir: Path, clock: Clock) -> None:
    async with busy(data_dir, clock) as talk:
        await talk.say("What do you think of the weather?", user="2002")
        prices = {"price_in": 1_000_000.0, "price_out": 0.0, "currency": "EUR"}
        asked = told(data_dir, clock, people=5, model=prices)
        (tokens,) = talk.rows("SELECT tokens_in FROM usage WHERE kind = 'reply' ORDER BY day DESC, account DESC")[0]
    (person,) = asked["people_today"]
    assert (person["account"], person["tokens_in"], person["price"]) == ("test:2002", tokens, float(tokens))
    assert asked["today"]["price"] == float(tokens)
    assert "1001" not in json.dumps(told(data_dir, clock))


async def test_looking_changes_nothing_not_even_the_folder(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("My name is Kim")
    before = contents(data_dir)
    assert told(data_dir, clock)["memories"]["profile"] == {"hold": 1, "all": 1}
    assert contents(data_dir) == before


def test_whether_the_bot_runs_is_told_by_its_heartbeat(
    data_dir: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "does not run (no heartbeat)" in printed(data_dir, clock, capsys)
    data_dir.mkdir(exist_ok=True)
    (data_dir / FILE).touch()
    for seconds, runs in ((30, True), (600, False)):
        beat = (clock() - timedelta(seconds=seconds)).timestamp()
        os.utime(data_dir / FILE, (beat, beat))
        assert told(data_dir, clock)["running"] is runs
    assert "does not run (last heartbeat 0:10:00 ago)" in printed(data_dir, clock, capsys)


def test_without_a_database_it_says_so_and_makes_none(
    data_dir: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is not there yet: nobody has talked to the bot" in printed(data_dir, clock, capsys)
    assert not (data_dir / DATABASE_NAME).exists()


async def test_a_file_of_an_older_version_is_named_with_what_to_do(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("My name is Kim")
    with closing(sqlite3.connect(data_dir / DATABASE_NAME)) as connection:
        connection.execute("PRAGMA user_version = 1")
    with pytest.raises(DatabaseError, match=r"older version .* start the bot once"):
        told(data_dir, clock)


async def test_a_job_that_breaks_off_is_told_with_its_run(data_dir: Path, clock: Clock) -> None:
    logs.start(data_dir, secrets=[])
    async with talking(data_dir, clock) as talk:
        await talk.say("My name is Kim")
        talk.alter("DROP TABLE deletions")
        await talk.app.memory.run_due(now=clock())
        with pytest.raises(DatabaseError, match="cannot be read"):
            told(data_dir, clock)
        talk.alter("CREATE TABLE deletions (id, undone_at, erased_at, erase_at)")
        (job,) = [job for job in told(data_dir, clock)["jobs"] if job["name"] == "erase"]
    assert (job["name"], job["failures"], job["next"]) == ("erase", 1, None)
    assert f"run={job['run']}" in (data_dir / logs.FILE).read_text("utf-8")


async def test_an_encrypted_memory_is_told_of_like_any_other(data_dir: Path, clock: Clock) -> None:
    pytest.importorskip("sqlcipher3")
    use_key("ab" * 32)
    try:
        async with talking(data_dir, clock) as talk:
            await talk.say("My name is Kim")
            assert told(data_dir, clock)["memories"]["profile"] == {"hold": 1, "all": 1}
        assert told(data_dir, clock)["memories"]["profile"] == {"hold": 1, "all": 1}
    finally:
        use_key(None)
    with pytest.raises(DatabaseError, match="cannot be read"):
        told(data_dir, clock)
