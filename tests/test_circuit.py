"""An endpoint that fails is left alone and comes back by itself, and nobody's bad request shuts it for others."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from bot.circuit import FIRST_REST, LONGEST_ASKED_REST, LONGEST_REST, MOST_FAILURES, SPREAD, Circuit, RestingError
from bot.llm import LLM, LLMError
from config.settings import ModelSettings
from memory.ports import CompleterResting, CompleterUnavailable
from tests.servers.openai_server import FOREVER, OpenAIServer
from tests.talk import Door


@dataclass
class Ticks:
    """Seconds that pass when told to."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def circuit(ticks: Ticks) -> Circuit:
    return Circuit("the endpoint", ticks=ticks, spread=lambda: 0.0)


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as running:
        yield running


@pytest.fixture
async def llm(server: OpenAIServer, ticks: Ticks) -> AsyncIterator[LLM]:
    async with client(server.base_url, ticks) as one:
        yield one


def client(base_url: str, ticks: Ticks, **settings: Any) -> LLM:
    chosen = ModelSettings(**{"timeout_seconds": 5, "retries": 0, **settings})
    return LLM(base_url, "k", "scripted", chosen, ticks=ticks)


async def ask(llm: LLM, whose: int, text: str = "hi") -> str:
    """The answer, or which failure came instead of one."""
    stream = llm.stream([{"role": "user", "content": text}], max_tokens=50, whose=whose)
    try:
        async for _ in stream:
            pass
    except LLMError as error:
        return error.kind
    return stream.outcome.text


async def shut(llm: LLM) -> None:
    """Have enough different people fail."""
    for whose in range(MOST_FAILURES):
        assert await ask(llm, whose) != "resting"
    assert llm.resting


async def failed(circuit: Circuit, whose: object) -> None:
    ticket = circuit.ticket(whose)
    await ticket.admit()
    ticket.failed()
    ticket.leave()


async def test_five_people_in_a_row_open_it_and_one_trial_after_the_rest_closes_it(
    circuit: Circuit, ticks: Ticks
) -> None:
    for whose in range(MOST_FAILURES):
        assert not circuit.resting
        await failed(circuit, whose)
    with pytest.raises(RestingError) as told:
        await circuit.ticket(9).admit()
    assert told.value.seconds == FIRST_REST
    ticks.now += FIRST_REST
    trial = circuit.ticket(9)
    await trial.admit()
    trial.answered()
    assert not circuit.resting


async def test_one_person_alone_never_opens_it(circuit: Circuit) -> None:
    for _ in range(50):
        await failed(circuit, 1)
    assert not circuit.resting


async def test_an_answer_to_anybody_begins_the_count_anew(circuit: Circuit) -> None:
    for whose in range(50):
        await failed(circuit, whose)
        if whose % 4 == 3:
            circuit.answered()
    assert not circuit.resting


async def test_connections_that_nobody_takes_open_it_for_one_person_too(circuit: Circuit) -> None:
    for _ in range(MOST_FAILURES):
        circuit.ticket(1).failed(taken=False)
    assert circuit.resting


async def test_each_trial_that_fails_doubles_the_rest_up_to_a_bound(circuit: Circuit, ticks: Ticks) -> None:
    for whose in range(MOST_FAILURES):
        await failed(circuit, whose)
    rests = []
    for _ in range(7):
        with pytest.raises(RestingError) as told:
            await circuit.ticket().admit()
        rests.append(told.value.seconds)
        ticks.now += told.value.seconds
        await failed(circuit, "trial")
    assert rests == [10.0, 20.0, 40.0, 80.0, LONGEST_REST, LONGEST_REST, LONGEST_REST]


async def test_the_rest_varies_so_that_programs_do_not_come_back_together(ticks: Ticks) -> None:
    rests = set()
    for spread in (0.0, 0.5, 0.999):
        circuit = Circuit("e", ticks=ticks, spread=lambda spread=spread: spread)  # type: ignore[misc]
        for whose in range(MOST_FAILURES):
            await failed(circuit, whose)
        with pytest.raises(RestingError) as told:
            await circuit.ticket().admit()
        rests.add(round(told.value.seconds, 3))
    assert rests == {10.0, 11.25, round(FIRST_REST * (1 + SPREAD * 0.999), 3)}


@pytest.mark.parametrize(("asked", "rest"), [(7, FIRST_REST), (33, 33), (90_000, LONGEST_ASKED_REST)])
async def test_an_endpoint_may_ask_for_a_longer_rest_and_not_for_a_day(
    circuit: Circuit, asked: float, rest: float
) -> None:
    for whose in range(MOST_FAILURES):
        circuit.ticket(whose).failed(asked_rest=asked)
    with pytest.raises(RestingError) as told:
        await circuit.ticket().admit()
    assert told.value.seconds == rest


async def test_whoever_comes_during_a_trial_waits_for_it_and_is_let_through(circuit: Circuit, ticks: Ticks) -> None:
    for whose in range(MOST_FAILURES):
        await failed(circuit, whose)
    ticks.now += FIRST_REST
    trial = circuit.ticket("trial")
    await trial.admit()
    others = [asyncio.create_task(circuit.ticket(n).admit()) for n in range(20)]
    await asyncio.sleep(0)
    assert not any(other.done() for other in others)
    trial.answered()
    assert await asyncio.gather(*others) == [None] * 20


async def test_a_trial_that_is_given_up_leaves_the_next_one_to_try(circuit: Circuit, ticks: Ticks) -> None:
    for whose in range(MOST_FAILURES):
        await failed(circuit, whose)
    ticks.now += FIRST_REST
    first, second = circuit.ticket(1), circuit.ticket(2)
    await first.admit()
    waiting = asyncio.create_task(second.admit())
    await asyncio.sleep(0)
    first.leave()
    await waiting
    second.answered()
    assert not circuit.resting


async def test_a_trial_that_hangs_keeps_nobody_waiting_long(
    circuit: Circuit, ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.circuit.PATIENCE", 0.01)
    for whose in range(MOST_FAILURES):
        await failed(circuit, whose)
    ticks.now += FIRST_REST
    await circuit.ticket("trial").admit()
    with pytest.raises(RestingError):
        await circuit.ticket(2).admit()


async def test_what_fails_late_neither_lengthens_a_rest_nor_ends_a_trial(circuit: Circuit, ticks: Ticks) -> None:
    late = [circuit.ticket(f"late {n}") for n in range(9)]
    for ticket in late:
        await ticket.admit()
    for whose in range(MOST_FAILURES):
        await failed(circuit, whose)
    for ticket in late[:4]:
        ticks.now += 1
        ticket.failed()
    ticks.now += FIRST_REST - 4
    trial = circuit.ticket("trial")
    await trial.admit()
    for ticket in late[4:]:
        ticket.failed()
    trial.answered()
    assert not circuit.resting


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 422])
async def test_a_refusal_is_an_answer_and_opens_nothing(server: OpenAIServer, llm: LLM, status: int) -> None:
    server.fault(status=status, body={"error": {"message": "no"}}, times=FOREVER)
    for whose in range(3 * MOST_FAILURES):
        assert await ask(llm, whose) not in ("resting", "")
    assert len(server.chats) == 3 * MOST_FAILURES


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
async def test_an_endpoint_that_fails_is_left_alone_then_asked_once(
    server: OpenAIServer, llm: LLM, ticks: Ticks, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.on("hi", reply="Hello")
    server.fault(match="chat", status=status, body={"error": {"message": "no"}}, times=MOST_FAILURES + 1)
    await shut(llm)
    assert await asyncio.gather(*(ask(llm, whose) for whose in range(20))) == ["resting"] * 20
    assert len(server.chats) == MOST_FAILURES
    ticks.now += FIRST_REST * (1 + SPREAD)
    assert await ask(llm, 7) != "resting"
    assert await ask(llm, 8) == "resting"
    ticks.now += 2 * FIRST_REST * (1 + SPREAD)
    assert await asyncio.gather(*(ask(llm, whose) for whose in range(20))) == ["Hello"] * 20
    told = [r.getMessage() for r in caplog.records if r.name == "bot.circuit"]
    assert [line.split(" ", 1)[1][:13] for line in told] == ["fails; it is ", "fails; it is ", "answers again"]


async def test_the_key_is_told_to_be_wrong_and_works_again_at_once_when_it_is_right(
    server: OpenAIServer, llm: LLM
) -> None:
    server.on("hi", reply="Hello")
    server.fault(status=401, body={"error": {"message": "bad key"}}, times=20)
    assert {await ask(llm, whose) for whose in range(20)} == {"unauthorised"}
    assert await ask(llm, 1) == "Hello"


async def test_the_message_one_endpoint_fails_on_does_not_shut_it_for_others(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", reply="Hello")
    server.fault(match="poison", status=500, body={"error": {"message": "crashed"}}, times=FOREVER)
    for _ in range(3 * MOST_FAILURES):
        assert await ask(llm, 1, "poison") == "overloaded"
    assert await ask(llm, 2) == "Hello"


async def test_an_endpoint_that_hangs_is_given_up_by_a_few_and_told_at_once_to_the_rest(
    server: OpenAIServer, ticks: Ticks
) -> None:
    server.fault(match="chat", hang=True, times=FOREVER)
    async with client(server.base_url, ticks, timeout_seconds=0.05) as llm:
        await shut(llm)
        assert await ask(llm, 99) == "resting"


async def test_a_stream_that_is_opened_and_stays_silent_is_a_failure(server: OpenAIServer, ticks: Ticks) -> None:
    server.on("hi", chunks=[], stall=True)
    async with client(server.base_url, ticks, timeout_seconds=0.05) as llm:
        await shut(llm)


async def test_an_overload_told_inside_a_stream_is_a_failure(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", chunks=['{"error": {"message": "overloaded", "code": 503}}'])
    await shut(llm)


async def test_answers_that_break_off_shut_nothing(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", reply="Hello", drop=True)
    for whose in range(3 * MOST_FAILURES):
        assert await ask(llm, whose) == "Hello"


async def test_an_answer_that_is_cancelled_says_nothing_of_the_endpoint(
    server: OpenAIServer, llm: LLM, ticks: Ticks
) -> None:
    gate = Door()
    server.fault(match="chat", status=503, times=MOST_FAILURES)
    server.on("hi", reply="Hello", hold=gate)
    await shut(llm)
    ticks.now += FIRST_REST * (1 + SPREAD)
    cancelled = asyncio.create_task(ask(llm, 1))
    await gate.reached.wait()
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    assert llm.resting
    gate.set()
    assert await ask(llm, 2) == "Hello"


async def test_distillation_is_told_whether_it_was_asked_at_all(server: OpenAIServer, llm: LLM) -> None:
    server.fault(match="chat", status=503, times=FOREVER)
    with pytest.raises(CompleterUnavailable) as asked:
        await llm.complete([{"role": "user", "content": "distil"}], max_tokens=9)
    assert not isinstance(asked.value, CompleterResting)
    for whose in range(MOST_FAILURES - 1):
        await ask(llm, whose)
    with pytest.raises(CompleterResting):
        await llm.complete([{"role": "user", "content": "distil"}], max_tokens=9)


async def test_a_minute_of_outage_with_a_hundred_chats_is_no_storm(server: OpenAIServer, ticks: Ticks) -> None:
    """Everybody writes every five seconds; left alone with two retries each that were 3,600 requests."""
    server.on("hi", reply="Hello")
    server.fault(match="chat", status=503, headers={"Retry-After": "0.01"}, times=FOREVER)
    came: Counter[str] = Counter()
    async with client(server.base_url, ticks, retries=2) as llm:
        for second in range(0, 60, 5):
            ticks.now = 1_000.0 + second
            came.update(await asyncio.gather(*(ask(llm, whose) for whose in range(100))))
        stormed = len(server.chats)
        server.mend()
        healed = None
        for second in range(60, 180, 5):
            ticks.now = 1_000.0 + second
            if "Hello" in await asyncio.gather(*(ask(llm, whose) for whose in range(100))):
                healed = second - 60
                break
    assert sum(came.values()) == 1_200
    assert set(came) <= {"overloaded", "resting"}
    assert stormed <= 100 + 3 * 3, "those under way at the first failure, then a trial at a time"
    assert healed is not None
    assert healed <= 50
