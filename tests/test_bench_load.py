"""``bench load`` judges strictly, and a bounded sample of it holds: counts alone, how long it took is the machine's."""

from __future__ import annotations

import json
import tracemalloc
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bot.bench import load, people
from bot.bench.crowd import COMMAND_EVERY, Due, schedule, signs
from bot.bench.delivery import Lag
from bot.bench.hall import Answered, Hall, Told
from bot.cli import cli
from bot.message import Reply
from config.locales import phrase
from memory import Memory

SMALL = load.Plan(chats=6, rate=15, seconds=3, model_seconds=0.1, quiet_seconds=0.1)


def hall(*dues: Due) -> tuple[Hall, list[Answered]]:
    judge = Hall(iter(()))
    sinks = []
    for due in dues:
        told = judge.told[due.sign] = Told(due)
        told.sink = Answered(judge, told)
        sinks.append(told.sink)
    return judge, sinks


def due(person: int, number: int, text: str = "") -> Due:
    return Due(0.1 * number, (person, number), text or f"hello #{person}-{number}", "en")


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return load.run_load(SMALL)


def test_a_small_crowd_is_answered_whole_in_order_and_apart(result: dict[str, Any]) -> None:
    assert result["said"] > 20
    assert result["answered"] + result["obeyed"] == result["said"]
    assert result["refused"] == 0
    assert result["wrong"] == {}
    assert 0 < result["turns"] <= result["answered"], "quick messages are one turn"
    assert result["cpu"]["all"] > 0
    assert result["file_bytes"] > 0
    assert set(result["jobs"]) >= {"distil", "merge", "seal", "trim"}
    assert [failure for failure in result["failures"] if "job" in failure] == []
    json.dumps(result)


async def test_each_message_that_is_lost_doubled_or_answered_out_of_order_is_found() -> None:
    judge, (first, second, third) = hall(due(1, 1), due(1, 2), due(1, 3))
    await second.send(Reply("#1-2: yes"))
    await second.send(Reply("#1-2: yes again"))
    await first.send(Reply("#1-1: late"))
    for sink in (first, second, third):
        await sink.done()
    assert judge.verdict() == {
        "more than one reply to a message": 1,
        "a reply after one to a later message": 1,
        "messages lost": 1,
    }


async def test_an_answer_to_what_nobody_has_written_yet_is_found() -> None:
    judge, (mine, early) = hall(due(1, 1), due(1, 2))
    early.told.said = False
    await mine.send(Reply("#1-1 #1-2: both"))
    await mine.done()
    wrong = judge.verdict()
    assert wrong["a reply to what was never said"] == 1
    assert "messages lost" not in wrong, "what was not written is not lost"


def test_what_the_judge_remembers_takes_no_more_memory_at_the_end() -> None:
    told = [Told(due(person, 1)) for person in range(1, 200)]
    lag, looks = Lag(seconds=10), 2_000
    values = [0.1 * look for look in range(looks)]
    tracemalloc.start()
    try:
        for one in told:
            one.waited, one.fate = one.due.at + 0.25, "answered"
        for value in values:
            lag.note(value, value)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 500
    assert told[0].waited == pytest.approx(0.35)
    assert list(lag.late) == values
    lag.note(7.0, 1.0)
    assert lag.late[-1] == 7.0
    assert lag.own[-1] == 1.0


async def test_another_persons_words_in_a_reply_are_found() -> None:
    judge, (mine, others) = hall(due(1, 1), due(2, 1))
    await mine.send(Reply("#1-1: as #2-1 said"))
    await others.send(Reply("#2-1: fine"))
    for sink in (mine, others):
        await sink.done()
    assert judge.verdict()["another person's words in a reply"] == 1


async def test_messages_answered_as_one_are_each_answered_once() -> None:
    judge, (first, second) = hall(due(1, 1), due(1, 2))
    await first.done()
    await second.send(Reply("#1-1 #1-2: both"))
    await second.done()
    assert judge.verdict() == {}
    assert [told.fate for told in judge.told.values()] == ["answered", "answered"]


async def test_a_command_must_be_obeyed_and_talk_may_be_put_off_politely() -> None:
    judge, (talk, command) = hall(due(1, 1), due(1, 2, "/usage"))
    for sink in (talk, command):
        await sink.send(Reply(phrase("error.busy", "en")))
        await sink.done()
    assert [told.fate for told in judge.told.values()] == ["refused", "obeyed"]
    assert judge.verdict() == {}


async def test_whoever_was_put_off_a_moment_ago_is_not_told_again() -> None:
    judge, (first, second, other) = hall(due(1, 1), due(1, 2), due(2, 1))
    await first.send(Reply(phrase("error.busy", "en")))
    for sink in (first, second, other):
        await sink.done()
    assert judge.verdict() == {"messages lost": 1}
    assert [told.fate for told in judge.told.values()] == ["refused", "refused", None]


async def test_a_failure_is_no_answer() -> None:
    judge, (talk,) = hall(due(1, 1))
    await talk.send(Reply(phrase("error.model", "en", number="123abc")))
    await talk.done()
    assert judge.verdict() == {"messages that were answered with a failure": 1}


def test_what_comes_in_is_the_same_each_time_and_as_much_as_asked_for() -> None:
    said = list(schedule(chats=100, rate=50, seconds=60))
    assert said == list(schedule(chats=100, rate=50, seconds=60))
    assert len(said) == pytest.approx(3_000, rel=0.15)
    assert all(one.at <= next_.at for one, next_ in pairwise(said))
    assert len({each.sign for each in said}) == len(said)
    assert all(signs(each.text) == [each.sign] for each in said if not each.is_command)
    assert sum(each.is_command for each in said) == pytest.approx(len(said) / COMMAND_EVERY, rel=0.5)


def test_each_failure_is_named(result: dict[str, Any]) -> None:
    bad = deepcopy(result)
    bad |= {"loop_lag_ms": {"p99": 80.0}, "wrong": {"messages lost": 2}, "reached": 1.0, "said": 60_000, "seconds": 600}
    bad["memory_mb"] |= {"growth_an_hour": 500.0, "caches_growth_an_hour": 100.0}
    bad["jobs"]["merge"]["failures"] = 1
    told = load.failures(bad)
    for words in ("messages lost: 2", "80 ms late", "messages a second", "grew by 400 MB", "merge failed"):
        assert any(words in line for line in told), words


def test_the_command_prints_one_json_object() -> None:
    done = CliRunner().invoke(
        cli, ["bench", "load", "--chats", "3", "--rate", "5", "--seconds", "1", "--embedder", "none", "--json"]
    )
    assert json.loads(done.stdout)["chats"] == 3


@pytest.mark.parametrize(("index_mb", "held"), [(1, 1), (256, 3)])
async def test_indexes_take_no_more_memory_than_the_setting_says(data_dir: Path, index_mb: int, held: int) -> None:
    names = ("ann", "bo", "cy")
    path = data_dir / "many.db"
    await people.fill(path, names, 500, alike=True)
    settings = load.Plan(index_mb=index_mb).settings
    memory = await Memory.open(path, settings, clock=lambda: people.START, count=len, embedder=people.GivenVectors())
    try:
        sizes = []
        for name in names:
            who = await people.person(memory, name)
            await memory.recall(who.owner, people.asked(1)[0], room=who.room, now=people.NOW)
            sizes.append(memory.cached_bytes)
    finally:
        await memory.close()
    assert sizes[0] > 524_288, "two of them are more than a megabyte"
    assert max(sizes) == pytest.approx(held * sizes[0], rel=0.01)
