"""One number leads from what a person was told to the log, and from there to the trace; jobs have theirs."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot import logs
from config.settings import LogSettings
from memory.jobs import Job, Runs, run_due
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import talking


def lines(folder: Path) -> list[dict[str, object]]:
    """The lines of the log."""
    return [json.loads(line) for line in (folder / logs.FILE).read_text("utf-8").splitlines()]


def of_jobs(folder: Path) -> list[dict[str, object]]:
    """Those that housekeeping wrote."""
    return [line for line in lines(folder) if "job" in line]


async def test_the_number_of_an_apology_is_in_the_log_and_in_the_trace(data_dir: Path, clock: Clock) -> None:
    logs.start(data_dir, secrets=[], how=LogSettings(format="json"))
    async with OpenAIServer() as server:
        gone = server.base_url
    async with talking(data_dir, clock, model={"retries": 0}, openai_base_url=gone, openai_model="scripted") as talk:
        told = await talk.say("My name is Kim. Tell me a story about the pelican")
        (data,) = talk.rows("SELECT data FROM traces")[0]
    found = re.search(r"\(log: (\w{8})\)", told)
    assert found is not None
    assert json.loads(data)["turn"] == found[1]
    (line,) = [line for line in lines(data_dir) if line["level"] == "error"]
    assert line["turn"] == found[1]
    assert "pelican" not in (data_dir / logs.FILE).read_text("utf-8")


async def test_each_turn_has_a_number_of_its_own_and_jobs_have_none_of_them(data_dir: Path, clock: Clock) -> None:
    logs.start(data_dir, secrets=[], how=LogSettings(format="json"))
    async with talking(data_dir, clock) as talk:
        talk.app.scheduler.start()  # each answer wakes it
        for text in ("My name is Kim", "/forget Kim", "/forget yes", *["What is my name?"] * 15):
            await talk.say(text)
        await talk.app.conversation.idle()
        async with asyncio.timeout(20):
            # Housekeeping rests between its runs; an answer has woken the next one.
            while not of_jobs(data_dir):  # noqa: ASYNC110 (a file tells nobody)
                await asyncio.sleep(0.05)
        await talk.app.scheduler.stop()
        numbers = [json.loads(data)["turn"] for (data,) in talk.rows("SELECT data FROM traces")]
    assert len({*numbers, ""}) == len(numbers) + 1 > 10
    jobs = of_jobs(data_dir)
    assert jobs
    assert all("turn" not in line and re.fullmatch(r"\w{8}", str(line["run"])) for line in jobs)


async def test_a_job_that_fails_is_logged_with_its_name_and_the_number_of_its_run(data_dir: Path, clock: Clock) -> None:
    logs.start(data_dir, secrets=[], how=LogSettings(format="json"))

    async def broken(now: object) -> dict[str, int]:
        logging.getLogger("deep.below").warning("it creaks")
        raise RuntimeError("it broke")

    async with talking(data_dir, clock) as talk:
        job = Job("break", clock() - clock(), broken)
        for _ in range(2):
            await run_due((job,), Runs(talk.app.memory._db), now=clock())
    runs = [(line["event"], line["run"]) for line in lines(data_dir) if line.get("job") == "break"]
    assert [event for event, _ in runs[:2]] == ["it creaks", "job break failed; it will be tried again"]
    assert runs[0][1] == runs[1][1] != runs[2][1]


@pytest.fixture(autouse=True)
def _leave_no_handler() -> Iterator[None]:
    yield
    logging.basicConfig(level=logging.WARNING, handlers=[logging.NullHandler()], force=True)
