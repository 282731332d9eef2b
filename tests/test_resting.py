"""What rests after a year of no use, what wakes it, and what never rests."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from memory import Line
from memory.model import Candidate, Citation
from memory.ports import Vector
from tests.conftest import Clock
from tests.house import House, housed
from tests.talk import talking

TOLD = "The gasometer at Reichenbach leans to the left"


@pytest.fixture
async def house(tmp_path: Path, clock: Clock) -> AsyncIterator[House]:
    async with housed(tmp_path / "m.db", clock) as house:
        yield house


async def write(house: House, text: str, *, importance: float = 0.4, **more: object) -> int:
    """Write a fact that rests on a line of the owner."""
    heard = await house.hear(f"by the way {len(text)}")
    memory = house.memory
    cited = Citation(heard.message.id, text, heard.message.at)
    async with memory._db.transaction():
        candidate = Candidate(
            kind="fact",
            citations=(cited,),
            language="en",
            text=text,
            importance=importance,
            **more,  # type: ignore[arg-type]
        )
        entry = await memory._stores.facts.add(house.owner, candidate, audience=0, now=house.clock())
    return entry.id


async def states(house: House) -> dict[str, bool]:
    """Whether each memory rests."""
    known = await house.memory.known(house.owner, room=house.chat, now=house.clock())
    return {entry.text: entry.provenance.cold_at is not None for entry in known}


async def found(house: House, question: str) -> list[str]:
    """What recall brings back that is no journal line."""
    recalled = await house.memory.recall(house.owner, question, room=house.chat, now=house.clock())
    return [unit.text for unit in recalled.units if unit.kind != "message"]


async def test_a_memory_of_no_use_rests_after_a_year_and_not_a_day_before(house: House) -> None:
    await write(house, TOLD)
    house.clock.advance(days=364.9)
    await house.memory.run_due(now=house.clock())
    assert await states(house) == {TOLD: False}
    house.clock.advance(days=1)
    assert (await house.memory.run_due(now=house.clock()))["cool"] == {"cooled": 1, "warmed": 0}
    assert await states(house) == {TOLD: True}


class Likening:
    """An embedder to which a tilting building and the leaning gasometer are nearly one thing, and nothing else is."""

    model = "likening"
    dimensions = 256

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        random = np.random.default_rng(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()))
        vector = random.standard_normal(self.dimensions).astype(np.float32)
        if "gasometer" in text or "tilting" in text:
            vector[0] += 60
        return np.asarray(vector / np.linalg.norm(vector), np.float32)


async def test_what_rests_is_found_by_its_exact_words_alone_and_wakes_when_used(tmp_path: Path, clock: Clock) -> None:
    async with housed(tmp_path / "m.db", clock, embedder=Likening()) as house:
        id_ = await write(house, TOLD)
        for number in range(30):
            await write(house, f"Tower {number} stands by the harbour", importance=0.9)
        await house.memory.run_due(now=house.clock.advance(hours=1))
        assert TOLD in await found(house, "Which building is tilting?")
        house.clock.advance(days=400)
        await house.memory.run_due(now=house.clock())
        assert (await states(house))[TOLD] is True
        assert TOLD not in await found(house, "Which building is tilting?"), "meaning alone does not wake it"
        assert TOLD in await found(house, "Where is the gasometer?")
        heard = await house.hear("Where is the gasometer?")
        trace = {"recalled": [{"id": id_, "kind": "fact", "band": "full", "scores": {"words": 1.0}}]}
        line = Line("bot", "Recollect", house.clock(), "At Reichenbach.", "said", None, heard.message.id)
        await house.memory.answered(house.owner, house.chat, line, trace)
        assert (await states(house))[TOLD] is False
        assert TOLD in await found(house, "Which building is tilting?")


async def test_important_things_the_owners_own_profile_and_what_is_to_come_never_rest(house: House) -> None:
    await write(house, TOLD, importance=0.9)
    await house.hear("I am allergic to pollen")
    await house.hear("I live in Oslo")
    await house.hear("I have a dentist appointment every Wednesday at 3 pm")
    house.clock.advance(days=800)
    await house.memory.run_due(now=house.clock())
    rests = await states(house)
    assert len(rests) == 4
    assert not any(rests.values())


async def test_a_clock_that_was_wrong_leaves_nothing_resting(house: House) -> None:
    await write(house, TOLD)
    now = house.clock()
    await house.memory.run_due(now=now.replace(year=now.year + 10))
    assert await states(house) == {TOLD: True}
    assert (await house.memory.run_due(now=now))["cool"] == {"cooled": 0, "warmed": 1}
    assert await states(house) == {TOLD: False}


async def test_to_rest_makes_no_segment_again(house: House) -> None:
    for number in range(200):
        await write(house, f"{TOLD} {number}")
    await house.memory.run_due(now=house.clock())
    sealed = house.rows("SELECT count(*) FROM segments")
    assert sealed != [(0,)]
    house.clock.advance(days=400)
    await house.memory._housekeeping.cool(house.clock())
    assert house.rows("SELECT count(*) FROM segments") == sealed
    assert house.rows("SELECT count(*) FROM facts WHERE cold_at IS NOT NULL") == [(200,)]


async def test_whatdoyouknow_says_that_it_rests_and_zero_days_lets_nothing_rest(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/remember the gasometer leans to the left")
        talk.alter("UPDATE facts SET importance = 0.3")
        clock.advance(days=400)
        await talk.app.tick()
        assert ", resting)" in await talk.say("/whatdoyouknow")
    async with talking(data_dir, clock, memory={"cool_days": 0}) as talk:
        clock.advance(days=2)
        await talk.app.tick()
        assert "resting" not in await talk.say("/whatdoyouknow", id="again")
