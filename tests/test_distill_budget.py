"""What distillation may cost: tokens of a day, counted in the file, and what is over them waits."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from config.settings import DistilSettings
from memory.distill import Distiller
from memory.model import Account
from memory.ports import CompleterUnavailable, Completion
from memory.sessions import next_day
from tests.conftest import Clock
from tests.shelf import Shelf
from tests.test_distill import Script, items


@pytest_asyncio.fixture
async def shelf(tmp_path: Path, clock: Clock) -> AsyncIterator[Shelf]:
    opened = await Shelf.open(tmp_path / "r.db", clock)
    yield opened
    await opened.db.close()


def build(shelf: Shelf, *answers: Any, **limits: int) -> tuple[Distiller, Script]:
    script = Script(shelf, deque(answers))
    settings = DistilSettings(**limits)
    distiller = Distiller(shelf.db, shelf, shelf.sessions, completer=script, clock=shelf.clock, settings=settings)
    return distiller, script


def nothing(tokens: int) -> Completion:
    return Completion(items(), "stop", tokens)


async def say_and_distil(shelf: Shelf, distiller: Distiller, text: str = "我住成都") -> list[str]:
    """Say something, wait until it is due, and distil all that is; the outcomes."""
    await shelf.say(text)
    shelf.clock.advance(minutes=31)
    return await distil(shelf, distiller)


async def distil(shelf: Shelf, distiller: Distiller) -> list[str]:
    sessions = await shelf.sessions.due(shelf.owner, now=shelf.clock())
    return [(await distiller.distil(shelf.owner, session)).outcome for session in sessions]


async def test_a_session_over_the_persons_tokens_waits_for_the_next_day_and_is_logged_once(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    distiller, script = build(shelf, nothing(600), nothing(600), nothing(1), nothing(1), tokens_per_person_a_day=1_000)
    for expected in ("distilled", "distilled", "postponed", "postponed"):
        assert await say_and_distil(shelf, distiller, "我住成都") == [expected]
    assert len(script.requests) == 2
    assert [r.message for r in caplog.records if "waits for the next day" in r.message] == [
        f"distillation of account {shelf.owner.no} waits for the next day: 1200 of 1000 tokens spent"
    ]
    shelf.clock.now = next_day(shelf.clock())
    assert await distil(shelf, distiller) == ["distilled", "distilled"]
    assert await shelf.sessions.due(shelf.owner, now=shelf.clock.advance(days=1)) == []


async def test_the_tokens_of_a_day_outlive_a_restart(shelf: Shelf, tmp_path: Path) -> None:
    distiller, _ = build(shelf, nothing(1_000), tokens_per_person_a_day=1_000)
    assert await say_and_distil(shelf, distiller) == ["distilled"]
    await shelf.db.close()
    again = await Shelf.open(tmp_path / "r.db", shelf.clock)
    distiller, _ = build(again, tokens_per_person_a_day=1_000)
    assert await say_and_distil(again, distiller) == ["postponed"]
    await again.db.close()


async def test_the_tokens_of_everybody_are_shared_and_one_persons_are_not(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    other = await shelf.accounts.meet("console", "1002", name="Bo", language="zh", zone="UTC", at=shelf.clock())
    await shelf.sessions.charge(other, 900, now=shelf.clock())
    distiller, _ = build(shelf, nothing(200), tokens_per_person_a_day=500, tokens_a_day=1_000)
    assert await say_and_distil(shelf, distiller) == ["distilled"]
    assert await say_and_distil(shelf, distiller) == ["postponed"]
    assert "distillation of everybody waits for the next day: 1100 of 1000 tokens spent" in caplog.text


async def test_without_a_limit_nothing_waits(shelf: Shelf) -> None:
    distiller, _ = build(shelf, nothing(10**7))
    await shelf.sessions.charge(shelf.owner, 10**9, now=shelf.clock())
    assert await say_and_distil(shelf, distiller) == ["distilled"]


async def spent(shelf: Shelf, owner: Account | None = None) -> int:
    return (await shelf.sessions.spent(owner or shelf.owner, now=shelf.clock()))[0]


@pytest.mark.parametrize(("tokens", "least", "most"), [(0, 900, 4_000), (-5, 900, 4_000), (10**30, 10**7, 10**7)])
async def test_a_count_that_cannot_be_right_is_replaced_by_our_own(
    shelf: Shelf, tokens: int, least: int, most: int
) -> None:
    distiller, script = build(shelf, nothing(tokens))
    await say_and_distil(shelf, distiller)
    assert least <= await spent(shelf) <= most
    assert len(script.prompt) > 0


@pytest.mark.parametrize("answer", [Completion('{"items": [', "length", 70), Completion("Sorry.", "stop", 70)])
async def test_an_answer_that_is_none_costs_its_tokens_all_the_same(shelf: Shelf, answer: Completion) -> None:
    distiller, _ = build(shelf, answer)
    assert await say_and_distil(shelf, distiller) == ["retry"]
    assert await spent(shelf) == 70


async def test_a_model_that_is_away_costs_nothing(shelf: Shelf) -> None:
    distiller, _ = build(shelf, CompleterUnavailable("down"))
    assert await say_and_distil(shelf, distiller) == ["unavailable"]
    assert await spent(shelf) == 0


async def test_a_call_during_which_the_program_ends_is_not_free(shelf: Shelf) -> None:
    distiller, script = build(shelf)

    async def killed() -> None:
        assert await spent(shelf) > 900
        raise ConnectionResetError

    script.meanwhile = killed
    with pytest.raises(ConnectionResetError):
        await say_and_distil(shelf, distiller)
    assert await spent(shelf) > 900


async def test_a_session_without_a_citable_line_costs_nothing(shelf: Shelf) -> None:
    distiller, _ = build(shelf)
    assert await say_and_distil(shelf, distiller, "👍") == ["distilled"]
    assert await spent(shelf) == 0


async def test_the_log_names_the_day_anew(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    distiller, _ = build(shelf, tokens_per_person_a_day=1)
    for _ in range(2):
        await shelf.sessions.charge(shelf.owner, 5, now=shelf.clock())
        assert "postponed" in await say_and_distil(shelf, distiller)
        shelf.clock.now = next_day(shelf.clock())
    assert caplog.text.count("waits for the next day") == 2
