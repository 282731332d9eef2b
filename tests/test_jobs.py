"""The jobs: once over restarts, once after a downtime, whatever the clock does, and never half."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bot.check import look_at_jobs
from memory import DATABASE_NAME
from memory.jobs import Job, Runs, run_due
from memory.model import Candidate, Citation
from tests.conftest import Clock
from tests.house import House, housed
from tests.talk import Talk, talking

DAY = timedelta(days=1)


@pytest.fixture
async def house(tmp_path: Path, clock: Clock) -> AsyncIterator[House]:
    async with housed(tmp_path / "m.db", clock) as house:
        yield house


class Counting:
    """A job that counts its runs and breaks off when told to."""

    def __init__(self, every: timedelta = DAY) -> None:
        self.ran: list[datetime] = []
        self.broken = False
        self.job = Job("count", every, self.run)

    async def run(self, now: datetime) -> Mapping[str, int]:
        if self.broken:
            raise ConnectionError
        self.ran.append(now)
        return {"ran": 1}

    async def due(self, house: House, now: datetime) -> None:
        await run_due((self.job,), Runs(house.memory._db), now=now)


async def test_a_job_runs_once_over_restarts(house: House) -> None:
    counting = Counting()
    for _ in range(3):
        await counting.due(house, house.clock.advance(hours=1))
        await house.reopen()
    assert len(counting.ran) == 1


async def test_a_job_catches_up_with_one_run_after_a_downtime(house: House) -> None:
    counting = Counting()
    await counting.due(house, house.clock())
    house.clock.advance(days=30)
    for _ in range(3):
        await counting.due(house, house.clock.advance(minutes=1))
    assert len(counting.ran) == 2


async def test_a_clock_that_is_set_back_silences_no_job(house: House) -> None:
    counting = Counting()
    ahead = house.clock() + timedelta(days=3650)
    await counting.due(house, ahead)
    await counting.due(house, house.clock())
    assert counting.ran == [ahead, house.clock()]
    await counting.due(house, house.clock.advance(hours=23))
    assert len(counting.ran) == 2
    await counting.due(house, house.clock.advance(hours=1))
    assert len(counting.ran) == 3


@pytest.mark.parametrize("day", [datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)])
async def test_a_day_is_24_hours_whatever_the_clocks_of_people_do(house: House, day: datetime) -> None:
    counting = Counting()
    berlin = ZoneInfo("Europe/Berlin")
    for hour in range(72):
        await counting.due(house, (day + timedelta(hours=hour)).astimezone(berlin))
    assert [ran.astimezone(UTC) for ran in counting.ran] == [day, day + DAY, day + 2 * DAY]


async def test_a_job_that_breaks_off_is_counted_and_due_again_at_once(house: House) -> None:
    counting = Counting()
    counting.broken = True
    for _ in range(2):
        await counting.due(house, house.clock.advance(minutes=1))
    (run,) = [run for run in await house.memory.job_runs() if run.name == "count"]
    assert (run.finished_at, run.failures) == (None, 2)
    counting.broken = False
    await counting.due(house, house.clock.advance(minutes=1))
    (run,) = [run for run in await house.memory.job_runs() if run.name == "count"]
    assert (run.finished_at, run.failures, run.counts) == (house.clock(), 0, {"ran": 1})


async def test_what_a_job_did_last_is_kept_while_there_is_nothing_to_do(house: House) -> None:
    await fact(house, "I keep bees")
    await fact(house, "I keep bees")
    did = house.clock()
    await house.memory.run_due(now=did)
    await house.memory.run_due(now=house.clock.advance(days=1))
    await house.reopen()
    merge = {run.name: run for run in await house.memory.job_runs()}["merge"]
    assert (merge.did_at, merge.counts, merge.finished_at) == (did, {"merged": 1}, house.clock())


async def test_check_tells_what_the_jobs_did_and_which_fail(data_dir: Path, clock: Clock) -> None:
    assert look_at_jobs(data_dir / DATABASE_NAME) == []
    async with talking(data_dir, clock) as talk:
        await talk.app.tick()
        talk.alter("UPDATE job_runs SET did_at = finished_at, counts = '{\"merged\": 2}' WHERE name = 'merge'")
        talk.alter("UPDATE job_runs SET failures = 3 WHERE name = 'trim'")
        found = [finding.line for finding in look_at_jobs(data_dir / DATABASE_NAME)]
    assert found == [
        "ok    job merge: merged 2, 2026-03-02 12:00 UTC",
        "warn  job trim: broke off, 3 times in a row — see recollect.log; it is tried again by itself",
    ]


# ---- each job: killed in the middle, and run again ------------------------------------------------------------


async def fact(house: House, text: str, **more: object) -> int:
    """Write a fact that rests on a line of the owner."""
    heard = await house.hear(f"by the way {house.clock()}")
    cited = Citation(heard.message.id, text, heard.message.at)
    async with house.memory._db.transaction():
        candidate = Candidate(kind="fact", citations=(cited,), language="en", text=text, **more)  # type: ignore[arg-type]
        return (await house.memory._stores.facts.add(house.owner, candidate, audience=0, now=house.clock())).id


KILLED = {
    "expire": ("memory.facts.Facts.expire", "SELECT count(*) FROM facts WHERE reason = 'expired'"),
    "merge": ("memory.facts.Facts.retire", "SELECT count(*) FROM facts WHERE reason = 'duplicate'"),
    "cool": ("memory.facts.Facts.cool", "SELECT count(*) FROM facts WHERE cold_at IS NOT NULL"),
    "trim": ("memory.embedding.Embeddings.sweep", "SELECT count(*) = 0 FROM journal"),
}


@pytest.mark.parametrize("name", KILLED)
async def test_a_job_that_is_killed_in_the_middle_does_the_rest_the_next_time(
    house: House, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, done = KILLED[name]
    ends = house.clock() + timedelta(days=1) if name == "expire" else None
    await fact(house, "The gasometer leans", importance=0.2, expires_at=ends)
    if name == "merge":
        await fact(house, "The gasometer leans", importance=0.2)
    house.clock.advance(days=400)

    async def killed(*_: object, **__: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(place, killed)
        did = await house.memory.run_due(now=house.clock())
        assert name not in did
    await house.reopen()
    assert name in await house.memory.run_due(now=house.clock.advance(minutes=1))
    assert house.rows(done) == [(1,)]
    assert name not in await house.memory.run_due(now=house.clock.advance(minutes=1)), "once"


async def test_what_a_wrong_clock_let_expire_holds_again_when_the_clock_is_right(house: House) -> None:
    now = house.clock()
    await fact(house, "The gasometer is closed", expires_at=now + timedelta(days=30))
    await house.memory.run_due(now=now + timedelta(days=3650))
    assert await house.known() == []
    did = await house.memory.run_due(now=house.clock())
    assert did["expire"] == {"expired": 0, "revived": 1}
    assert await house.known() == ["The gasometer is closed"]


# ---- merges are shown and taken back -------------------------------------------------------------------------


def same_words(talk: Talk) -> None:
    """Have all facts say what the first one says, as two sessions distilled at the same time may leave them."""
    first = "(SELECT text_hash FROM facts ORDER BY id LIMIT 1)"
    talk.alter(f"UPDATE facts SET text = 'I keep bees', text_hash = {first}")


async def test_undo_merge_shows_what_was_folded_and_brings_it_back_for_good(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        assert await talk.say("/undo merge") == "I have folded nothing of yours together lately."
        for words in ("I keep bees", "We keep the bees"):
            await talk.say(f"/remember {words}")
        talk.alter(
            "UPDATE facts SET text = 'I keep bees', text_hash = (SELECT text_hash FROM facts ORDER BY id LIMIT 1)"
        )
        await talk.app.tick()
        assert await talk.texts() == ["I keep bees"]
        shown = await talk.say("/undo merge")
        assert "1. I keep bees (you said so on 2026-03-02) went into: I keep bees (2026-03-02; the same words)" in shown
        assert "There is no such number." in await talk.say("/undo merge 7")
        assert (await talk.say("/undo merge 1")).startswith("Back as a memory of its own: I keep bees.")
        assert await talk.texts() == ["I keep bees", "I keep bees"]
        quotes = [[c.quote for c in entry.provenance.citations] for entry in await talk.known()]
        assert quotes == [["I keep bees"], ["We keep the bees"]], "each rests on its own words again"
        clock.advance(days=2)
        await talk.app.tick()
        assert len(await talk.texts()) == 2, "never again"
        assert await talk.say("/undo 合并") == "I have folded nothing of yours together lately."


async def test_a_button_takes_a_merge_apart_once_and_only_for_its_owner(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        for words in ("I keep bees", "We keep the bees"):
            await talk.say(f"/remember {words}")
        same_words(talk)
        await talk.app.tick()
        (offer,) = await talk.ask("/undo merge")
        await talk.say("hello there", user="2002")
        stale = "That choice is no longer open, and nothing was changed. Please give the command again."
        assert await talk.press(offer.buttons[0].id, user="2002") == stale
        assert (await talk.press(offer.buttons[0].id)).startswith("Back as a memory of its own")
        assert await talk.press(offer.buttons[0].id) == stale
        assert offer.private
