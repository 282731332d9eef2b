"""A turn goes to the file seldom: what belongs together is read, or written, in one trip."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memory.reader import Reader
from memory.writer import Writer
from tests.conftest import Clock
from tests.talk import NO_EMBEDDER, talking


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the reader's thread was asked, pieces were written together, and single statements were run."""
    counted: Counter[str] = Counter()
    asked, together = Reader._do, Writer.together
    statement: Any = Writer._execute  # The library's, which has no types.

    async def counting_asked(self: Reader, work: Any, **more: Any) -> Any:
        counted["read"] += 1
        return await asked(self, work, **more)

    async def counting_together(self: Writer, works: Any) -> Any:
        counted["written"] += 1
        counted["alone"] -= 1  # It is one statement of the library's connection.
        return await together(self, works)

    async def counting_statement(self: Writer, *args: Any, **more: Any) -> Any:
        counted["alone"] += 1
        return await statement(self, *args, **more)

    monkeypatch.setattr(Reader, "_do", counting_asked)
    monkeypatch.setattr(Writer, "together", counting_together)
    monkeypatch.setattr(Writer, "_execute", counting_statement)
    return counted


async def test_a_turn_of_somebody_known_reads_in_five_trips_and_writes_in_three(
    tmp_path: Path, clock: Clock, trips: Counter[str]
) -> None:
    async with talking(tmp_path, clock, embedder=NO_EMBEDDER) as talk:
        for text in ("My sister lives in Oslo.", "She paints houses.", "It rains a lot there."):
            await talk.say(text)
            await talk.say("What did I say about houses?")
        trips.clear()
        reply = await talk.say("And what did I say about Oslo?")
        seen = Counter(trips)
    assert "Oslo" in reply
    assert seen["read"] <= 5
    assert seen["written"] <= 3
    assert seen["alone"] == 0


async def test_what_the_rules_read_is_written_in_one_trip(tmp_path: Path, clock: Clock, trips: Counter[str]) -> None:
    async with talking(tmp_path, clock, embedder=NO_EMBEDDER) as talk:
        for text in ("Good morning.", "How are you?", "Fine weather."):
            await talk.say(text)
        trips.clear()
        await talk.say("I'm allergic to peanuts.")
        seen = Counter(trips)
        assert await talk.texts()
    assert seen["written"] <= 4
    assert seen["alone"] == 0
