"""The conversation: order in a chat, chats side by side, failures told once a minute, a stop that finishes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from bot.conversation import QUEUE, Conversation
from bot.message import ChatRef, DeliveryError, Incoming, Press, Reply, Sink, Update
from tests.conftest import Clock


class Shown:
    """A sink that keeps what was sent; the first ``failures`` sends do not arrive. ``broken`` raises at its end."""

    def __init__(self, failures: int = 0, *, broken: bool = False) -> None:
        self.sent: list[str] = []
        self.dones = 0
        self.failures = failures
        self.broken = broken

    async def show(self, text: str) -> None:
        raise AssertionError(f"nothing streams in these tests: {text}")

    async def send(self, reply: Reply) -> str | None:
        if self.failures:
            self.failures -= 1
            raise DeliveryError("lost")
        self.sent.append(reply.text)
        return None

    async def done(self) -> None:
        self.dones += 1
        if self.broken:
            raise RuntimeError("the platform is gone")


def said(text: str, chat: str = "dm:1", language: str = "en") -> Incoming:
    return Incoming(
        ChatRef("test", chat), chat.split(":")[1], "", text, text, datetime(2026, 3, 2, tzinfo=UTC), language
    )


Answer = Callable[[Update, Sink], Awaitable[None]]


def texts(update: Update) -> str:
    assert isinstance(update, Incoming)
    return update.text


async def test_f09_messages_of_a_chat_are_answered_in_order_while_other_chats_go_on(clock: Clock) -> None:
    order: list[str] = []
    gate, answered = asyncio.Event(), asyncio.Event()

    async def answer(update: Update, sink: Sink) -> None:
        if texts(update) == "slow":
            await gate.wait()
        order.append(texts(update))
        await sink.send(Reply(texts(update)))
        answered.set()

    conversation = Conversation(answer, clock)
    sinks = {name: Shown() for name in ("slow", "after", "other")}
    await conversation.submit(said("slow"), sinks["slow"])
    await conversation.submit(said("after"), sinks["after"])
    await conversation.submit(said("other", "dm:2"), sinks["other"])
    await answered.wait()
    assert order == ["other"]
    gate.set()
    await conversation.idle()
    assert order == ["other", "slow", "after"]
    assert all(sink.dones == 1 for sink in sinks.values())


async def test_a_failing_turn_is_told_with_a_number_and_the_next_goes_on(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(update: Update, sink: Sink) -> None:
        if texts(update) == "boom":
            raise RuntimeError("secret detail")
        await sink.send(Reply("fine"))

    conversation = Conversation(answer, clock)
    sink = Shown()
    await conversation.submit(said("boom", language="zh"), sink)
    await conversation.submit(said("ok"), sink)
    await conversation.idle()
    apology, fine = sink.sent
    assert "出了点问题" in apology
    assert "secret" not in apology
    number = apology.rstrip("。").split()[-1]
    assert number in caplog.text
    assert (fine, sink.dones) == ("fine", 2)


async def test_failures_are_told_at_most_once_a_minute_in_a_chat(clock: Clock) -> None:
    async def answer(update: Update, sink: Sink) -> None:
        raise RuntimeError(texts(update))

    conversation = Conversation(answer, clock)
    sink = Shown()
    for seconds in (0, 59, 1):
        clock.advance(seconds=seconds)
        await conversation.submit(said(f"after {seconds}"), sink)
        await conversation.idle()
    assert len(sink.sent) == 2


async def test_a_reply_that_does_not_arrive_stops_nothing(clock: Clock) -> None:
    async def answer(update: Update, sink: Sink) -> None:
        await sink.send(Reply(texts(update)))

    conversation = Conversation(answer, clock)
    sink = Shown(failures=1)
    await conversation.submit(said("lost"), sink)
    await conversation.submit(said("found"), sink)
    await conversation.idle()
    assert (sink.sent, sink.dones) == (["found"], 2)


async def test_a_sink_that_breaks_at_its_end_stops_nothing(clock: Clock) -> None:
    async def answer(update: Update, sink: Sink) -> None:
        await sink.send(Reply(texts(update)))

    conversation = Conversation(answer, clock)
    sink = Shown(broken=True)
    await conversation.submit(said("one"), sink)
    await conversation.submit(said("two"), sink)
    await conversation.idle()
    assert (sink.sent, sink.dones) == (["one", "two"], 2)


async def test_a_full_queue_says_so_once_and_keeps_in_order_what_it_cannot_answer(clock: Clock) -> None:
    gate = asyncio.Event()
    answered: list[str] = []
    kept: list[str] = []

    async def answer(update: Update, sink: Sink) -> None:
        await gate.wait()
        assert isinstance(update, Incoming)
        (answered if update.wants_reply else kept).append(texts(update))
        await sink.send(Reply("done"))

    conversation = Conversation(answer, clock)
    taken, refused = Shown(), Shown()
    await conversation.submit(said("first"), taken)
    await asyncio.sleep(0)
    for n in range(QUEUE):
        await conversation.submit(said(str(n)), taken)
    for n in range(3):
        await conversation.submit(said(f"too much {n}"), refused)
    press = Press(ChatRef("test", "dm:1"), "1", "", "forget:1:all", clock())
    await conversation.submit(press, refused)
    gate.set()
    await conversation.idle()
    assert (len(refused.sent), refused.dones) == (1, 4)
    assert refused.sent[0].startswith("That is more than I can answer at once.")
    assert answered == ["first", *map(str, range(QUEUE))]
    assert kept == ["too much 0", "too much 1", "too much 2"]


async def test_a_failure_and_a_full_queue_are_both_told_within_a_minute(clock: Clock) -> None:
    gate = asyncio.Event()

    async def answer(update: Update, sink: Sink) -> None:
        await gate.wait()
        raise RuntimeError(texts(update))

    conversation = Conversation(answer, clock)
    sink = Shown()
    for n in range(QUEUE + 3):
        await conversation.submit(said(str(n)), sink)
    gate.set()
    await conversation.idle()
    assert [text.split()[0] for text in sorted(sink.sent)] == ["Something", "That"]


async def test_who_was_told_of_a_failure_is_not_remembered_for_ever(clock: Clock) -> None:
    async def answer(update: Update, sink: Sink) -> None:
        raise RuntimeError(texts(update))

    conversation = Conversation(answer, clock)
    for n in range(50):
        clock.advance(seconds=30)
        await conversation.submit(said("x", f"dm:{n}"), Shown())
        await conversation.idle()
    assert len(conversation._told) <= 2


async def test_a_stop_answers_what_was_already_taken(clock: Clock) -> None:
    gate = asyncio.Event()
    answered: list[str] = []

    async def answer(update: Update, sink: Sink) -> None:
        await gate.wait()
        answered.append(texts(update))

    conversation = Conversation(answer, clock)
    sink = Shown()
    await conversation.submit(said("running"), sink)
    await conversation.submit(said("queued"), sink)
    await asyncio.sleep(0)
    stopping = asyncio.create_task(conversation.stop())
    await asyncio.sleep(0)
    gate.set()
    await stopping
    assert answered == ["running", "queued"]


async def test_a_stop_does_not_wait_for_ever(clock: Clock) -> None:
    async def answer(update: Update, sink: Sink) -> None:
        await asyncio.Event().wait()

    conversation = Conversation(answer, clock)
    sink = Shown()
    await conversation.submit(said("hangs"), sink)
    await asyncio.sleep(0)
    await conversation.stop(grace_seconds=0.01)
    assert sink.dones == 1


async def test_housekeeping_is_woken_behind_each_answer(clock: Clock) -> None:
    woken: list[int] = []

    async def answer(update: Update, sink: Sink) -> None:
        assert len(woken) == 0

    conversation = Conversation(answer, clock, behind=lambda: woken.append(1))
    await conversation.submit(said("hi"), Shown())
    await conversation.idle()
    assert woken == [1]
