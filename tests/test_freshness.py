"""When texts get their vectors: one request a session, earlier only where somebody would miss them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from config.settings import Settings
from memory.embedding import BATCH
from memory.freshness import SILENCES
from memory.ports import CompleterUnavailable, Completion, EmbedderUnavailable, Vector
from tests.conftest import Clock
from tests.house import House, housed

IDLE = timedelta(minutes=Settings().session.idle_minutes)
FISH = {
    "kind": "fact",
    "subject": "self",
    "text": "I keep a carp",
    "cites": [{"message": 1, "quote": "I keep a carp"}],
}


class Requests:
    """An embedder that keeps what each request held; while it is ``down`` none is answered."""

    model = "m1"
    dimensions: int | None = 8

    def __init__(self) -> None:
        self.made: list[list[str]] = []
        self.down = False

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        if self.down:
            raise EmbedderUnavailable("down")
        self.made.append(list(texts))
        return [np.full(8, 1 + len(text) % 7, np.float32) for text in texts]

    def taken(self) -> list[list[str]]:
        """The requests since the last look."""
        made, self.made = self.made, []
        return made


class Noting:
    """A model that notes the carp in every session; while it is ``down`` it does not answer."""

    def __init__(self) -> None:
        self.down = False

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        if self.down:
            raise CompleterUnavailable("no answer")
        return Completion(json.dumps({"items": [FISH]}), "stop")


@pytest.fixture
def requests() -> Requests:
    return Requests()


@pytest.fixture
def model() -> Noting:
    return Noting()


@pytest.fixture
async def house(tmp_path: Path, clock: Clock, requests: Requests, model: Noting) -> AsyncIterator[House]:
    async with housed(tmp_path / "r.db", clock, embedder=requests, completer=model) as opened:
        await opened.memory.run_due(now=clock())
        requests.taken()
        yield opened


@pytest.fixture
async def modelless(tmp_path: Path, clock: Clock, requests: Requests) -> AsyncIterator[House]:
    async with housed(tmp_path / "r.db", clock, embedder=requests) as opened:
        await opened.memory.run_due(now=clock())
        requests.taken()
        yield opened


async def turn(house: House, text: str, **more: Any) -> None:
    """Say something, be answered, and let housekeeping look, as it does behind every answer."""
    heard = await house.hear(text, **more)
    await house.reply(f"ok, {text}", heard.message, chat=more.get("chat"))
    await house.memory.run_due(now=house.clock())


async def test_lines_and_what_is_distilled_from_them_go_in_one_request(house: House, requests: Requests) -> None:
    await turn(house, "I keep a carp in the garden")
    await turn(house, "What does it eat?")
    assert requests.taken() == []
    await house.memory.run_due(now=house.clock.advance(seconds=IDLE.total_seconds()))
    (request,) = requests.taken()
    assert {"I keep a carp", "Lin: I keep a carp in the garden", "Lin: What does it eat?"} <= set(request)
    await house.memory.run_due(now=house.clock.advance(hours=5))
    assert requests.taken() == []


async def test_a_session_that_was_ended_by_hand_waits_for_nothing(house: House, requests: Requests) -> None:
    await turn(house, "I keep a carp in the garden")
    await house.memory.new_session(house.owner, house.chat, now=house.clock())
    await house.memory.run_due(now=house.clock())
    (request,) = requests.taken()
    assert "I keep a carp" in request


async def test_a_model_that_is_down_keeps_no_text_from_its_vector(
    house: House, requests: Requests, model: Noting
) -> None:
    model.down = True
    await turn(house, "I keep a carp in the garden")
    await house.memory.run_due(now=house.clock.advance(seconds=IDLE.total_seconds()))
    assert ["Lin: I keep a carp in the garden" in request for request in requests.taken()] == [True]


async def test_without_a_model_a_session_is_embedded_when_it_ends(modelless: House, requests: Requests) -> None:
    await turn(modelless, "I keep a carp in the garden")
    assert requests.taken() == []
    await modelless.memory.run_due(now=modelless.clock.advance(seconds=IDLE.total_seconds()))
    assert len(requests.taken()) == 1


async def test_a_talk_without_end_is_embedded_after_a_while(house: House, requests: Requests) -> None:
    begun = house.clock()
    while not (made := requests.taken()):
        assert house.clock() - begun < IDLE * (SILENCES + 1)
        house.clock.advance(minutes=9)
        await turn(house, f"The carp is {house.clock():%H:%M} old")
    assert house.clock() - begun >= IDLE * SILENCES
    assert len(made) == 1


async def test_what_fills_a_request_is_embedded_at_once(house: House, requests: Requests) -> None:
    for number in range(BATCH // 2):
        assert requests.taken() == []
        house.clock.now -= timedelta(seconds=60)
        await turn(house, f"Number {number}")
    assert [len(request) for request in requests.taken()] == [BATCH]


async def test_after_a_start_everything_is_embedded_at_once(house: House, requests: Requests) -> None:
    await turn(house, "I keep a carp in the garden")
    await house.reopen()
    await house.memory.run_due(now=house.clock())
    assert ["Lin: I keep a carp in the garden" in request for request in requests.taken()] == [True]


async def test_another_chat_finds_a_minute_later_what_was_said_here(house: House, requests: Requests) -> None:
    await turn(house, "I keep a carp in the garden")
    assert requests.taken() == []
    elsewhere = await house.memory.chat(house.owner, "dm:other")
    asked = await house.hear("Which fish do I have?", chat=elsewhere)
    await house.memory.recall(house.owner, asked.message.text, room=elsewhere, now=house.clock())
    stored, question = requests.taken()
    assert "Lin: I keep a carp in the garden" in stored
    assert question == ["Which fish do I have?"]


async def test_a_talk_in_one_place_asks_for_no_more_than_the_question(house: House, requests: Requests) -> None:
    for _ in range(3):
        asked = await house.hear("Which fish do I have?")
        await house.memory.recall(house.owner, asked.message.text, room=house.chat, now=house.clock())
    assert requests.taken() == [["Which fish do I have?"]]


async def test_a_clock_that_was_set_back_makes_nothing_wait(house: House, requests: Requests) -> None:
    await turn(house, "I keep a carp in the garden")
    house.clock.now -= timedelta(days=400)
    await house.memory.run_due(now=house.clock())
    assert len(requests.taken()) == 1


async def test_what_an_embedder_that_was_down_left_is_embedded_in_the_next_round(
    house: House, requests: Requests
) -> None:
    await turn(house, "I keep a carp in the garden")
    requests.down = True
    await house.memory.run_due(now=house.clock.advance(seconds=IDLE.total_seconds()))
    requests.down = False
    await house.memory.run_due(now=house.clock.advance(seconds=30))
    assert ["I keep a carp" in request for request in requests.taken()] == [True]


async def test_nobody_waits_with_somebody_else(house: House, requests: Requests) -> None:
    bo = await house.memory.account("test", "1002", name="Bo")
    room = await house.memory.chat(bo, "dm:1002")
    await house.hear("I keep a tench", owner=bo, chat=room)
    await turn(house, "I keep a carp in the garden")
    await house.memory.new_session(house.owner, house.chat, now=house.clock())
    await house.memory.run_due(now=house.clock())
    (request,) = requests.taken()
    assert not any("tench" in text for text in request)
