"""What the answers in one chat share: its gate and its typing sign; and the errands they all are."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator

import pytest

from bot.delivery import Budget, Delivery, Flood, Gate, Gates, Refused, Unconfirmed
from bot.message import Reply
from bot.outlet import KEPT, TYPING_END
from tests.outlets import StillTime, StrictOutlet, World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.errands.finish(0)
    made.outlet.check()


async def test_a_longer_flood_is_not_shortened_by_a_later_word(world: World) -> None:
    world.gate.close(30)
    world.gate.close(2)
    await world.time.until(asyncio.create_task(world.gate.opened()))
    assert world.time.now == 30


@pytest.mark.parametrize(("length", "pause"), [(0, 4.0), (1_000, 6.0), (4_000, 12.0), (1_000_000, 12.0)])
async def test_the_pause_widens_with_the_text_but_not_without_end(world: World, length: int, pause: float) -> None:
    gate = Gate(world.time.tempo, 4.0)
    gate.drawn()
    await world.time.until(asyncio.create_task(gate.paced(length)))
    assert world.time.now == pause


async def test_two_answers_in_one_chat_draw_by_turns(world: World) -> None:
    first, second = world.delivery(), world.delivery()
    for words in ("a", "b", "aa"):
        world.outlet.expect(*(("edit", "m0", words) if words == "aa" else ("post", 0, words)))
    await first.show("a")
    await second.show("b")
    await world.time.pass_by(0.5)
    assert world.outlet.calls == [("post", 0, "a")]
    await first.show("aa")
    await world.time.pass_by(1.0)
    assert world.outlet.calls[1:] == [("post", 0, "b")]
    await world.time.pass_by(1.5)


async def test_typing_goes_on_until_a_frame_is_drawn(world: World) -> None:
    delivery = world.delivery(typing_pause=4.5)
    for call in (("typing",), ("typing",), ("typing",), ("post", 0, "a")):
        world.outlet.expect(*call)
    delivery.type()
    delivery.type()
    await world.time.pass_by(10)
    await world.frame(delivery, "a", then=60)


async def test_typing_ends_with_the_final_text(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("typing")
    world.outlet.expect("post", 0, "a")
    delivery.type()
    await world.time.pass_by(1)
    await world.deliver(delivery, Reply("a"))
    await world.time.pass_by(60)


async def test_typing_has_a_hard_end(world: World) -> None:
    delivery = world.delivery(typing_pause=50)
    for _ in range(3):
        world.outlet.expect("typing")
    delivery.type()
    await world.time.pass_by(TYPING_END + 500)
    assert len(world.outlet.calls) == 3


@pytest.mark.parametrize("trouble", [Refused("no"), Unconfirmed("silence"), Flood(1)])
async def test_an_error_ends_typing_without_a_word(
    world: World, trouble: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    world.outlet.expect("typing", end=trouble)
    world.delivery().type()
    await world.time.pass_by(60)
    assert "bot" not in {record.name.split(".")[0] for record in caplog.records}


async def test_typing_waits_for_a_flood_and_ends_with_done(world: World) -> None:
    delivery = world.delivery()
    world.gate.close(20)
    delivery.type()
    await world.time.pass_by(19)
    assert world.outlet.calls == []
    world.outlet.expect("typing")
    await world.time.pass_by(2)
    await delivery.done()
    await world.time.pass_by(60)


async def test_many_answers_on_their_way_share_one_typing_sign(world: World) -> None:
    waiting = [world.delivery() for _ in range(20)]
    for delivery in waiting:
        delivery.type()
    for _ in range(3):
        world.outlet.expect("typing")
    await world.time.pass_by(10)
    for delivery in waiting:
        await delivery.done()
    await world.time.pass_by(60)


async def test_typing_goes_on_for_the_answers_that_still_wait(world: World) -> None:
    first, second = world.delivery(), world.delivery()
    for delivery in (first, second):
        delivery.type()
    world.outlet.expect("typing")
    world.outlet.expect("post", 0, "a")
    world.outlet.expect("typing")
    world.outlet.expect("post", 0, "b")
    await world.time.pass_by(1)
    await world.deliver(first, Reply("a"))
    await world.time.pass_by(4)
    await world.deliver(second, Reply("b"))
    await world.time.pass_by(60)


async def test_each_answer_has_its_own_hard_end_of_typing(world: World) -> None:
    world.delivery(typing_pause=50).type()
    for _ in range(5):  # the first until 120 s, the second until 220 s
        world.outlet.expect("typing")
    await world.time.pass_by(100)
    world.delivery(typing_pause=50).type()
    await world.time.pass_by(2 * TYPING_END)


async def test_every_topic_of_a_chat_has_its_own_typing_sign(world: World) -> None:
    world.outlet.expect("typing")
    world.outlet.expect("typing")
    for topic in ("7", "8", "7"):
        world.delivery().type(topic)
    await world.time.pass_by(1)


async def test_no_typing_sign_begins_once_the_final_text_is_on_its_way(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "whole")
    delivery.type()
    await asyncio.sleep(0)  # the sign is due, its request has not begun
    await delivery.send(Reply("whole"))
    await world.time.pass_by(60)


async def test_a_chat_takes_its_turn_when_it_really_draws(world: World) -> None:
    """However long the other chats keep the bot busy, two frames of one chat keep their pause."""
    budget, drawn = Budget(world.time.tempo, a_second=1), list[float]()
    gate = Gate(world.time.tempo, 4.0, budget)

    async def draw() -> None:
        await gate.paced(0)
        drawn.append(world.time.now)

    others = [asyncio.create_task(budget.spent()) for _ in range(10)]
    await world.time.pass_by()
    topics = [asyncio.create_task(draw()) for _ in range(2)]
    for task in (*others, *topics):
        await world.time.until(task)
    assert drawn == [10.0, 14.0]


async def test_a_chat_keeps_its_gate_while_it_is_used_closed_or_was_just_drawn_in() -> None:
    time = StillTime()
    gates: Gates[str] = Gates(time.tempo, Budget(time.tempo, 20))
    used = gates.get("used", 1.0)
    gates.get("flooded", 1.0).close(10 * KEPT)
    gates.get("drawn", 1.0).drawn()
    time.now = KEPT - 1
    gates.get("drawn", 1.0).drawn()
    time.now = KEPT + 1
    gates.get("other", 1.0)
    gc.collect()
    assert gates.get("used", 1.0) is used
    assert gates.get("flooded", 1.0).closed_for > 0
    assert gates.get("drawn", 1.0).quiet_for == 2


async def test_a_gate_nobody_uses_any_more_is_forgotten() -> None:
    time = StillTime()
    gates: Gates[int] = Gates(time.tempo, Budget(time.tempo, 20))
    for number in range(50):
        gates.get(number, 1.0).drawn()
    time.now = KEPT
    gates.get(50, 1.0)
    gc.collect()
    assert [known for known in gc.get_objects() if isinstance(known, Gate) and known.tempo is time.tempo] == [
        gates.get(50, 1.0)
    ]


async def test_a_flood_in_one_chat_holds_up_no_other(world: World) -> None:
    delivery = world.delivery()
    other = StrictOutlet()
    other.expect("post", 0, "elsewhere")
    world.outlet.expect("post", 0, "here", end=Flood(600))
    await world.frame(delivery, "here")

    await world.deliver(Delivery(other, Gate(world.time.tempo, 1.0), world.errands), Reply("elsewhere"))

    assert world.time.now == 1.5
    other.check()


async def test_a_stop_waits_for_errands_and_for_what_they_begin(world: World) -> None:
    ended: list[str] = []

    async def errand(name: str, *, then: str | None = None) -> None:
        if then is not None:
            world.errands.start(errand(then))
        else:
            await world.time.pass_by()
        ended.append(name)

    world.errands.start(errand("first", then="second"))
    await world.errands.finish(5)
    assert ended == ["first", "second"]


async def test_an_errand_that_breaks_off_is_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async def errand() -> None:
        raise ZeroDivisionError

    world.errands.start(errand())
    await world.errands.finish(5)
    assert "ZeroDivisionError" in caplog.text
