"""A reply meant for one person alone, in a chat that others read."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.delivery import Discreet, Refused
from bot.message import Button, DeliveryError, Posted, Reply
from tests.outlets import World

YES = Button("yes", "Yes")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.errands.finish(0)
    made.outlet.check()


class Aside:
    """A Sink to one person's eyes; an error is raised instead of taking a reply."""

    def __init__(self, error: DeliveryError | None = None) -> None:
        self.sent: list[Reply] = []
        self.ended = False
        self.posted: Posted | None = None
        self._error = error

    def watch(self, posted: Posted) -> None:
        self.posted = posted

    async def show(self, text: str) -> None:
        pytest.fail("frames are never private")

    async def send(self, reply: Reply) -> str:
        assert self.posted is not None
        await self.posted(None)
        if self._error is not None:
            raise self._error
        self.sent.append(reply)
        await self.posted("id in another chat")
        return "id in another chat"

    async def abandon(self, *, keep: bool) -> bool:
        pytest.fail("what is private is never given up")

    async def done(self) -> None:
        self.ended = True


PRIVATE = Reply("for you", (YES,), private=True, hint="I wrote to you", closed="Write to me first")


def discreet(world: World, aside: Aside) -> Discreet:
    """A sink over the world's outlet and what lies aside of it."""
    made = Discreet(world.delivery(), aside)
    made.watch(world.posted)
    return made


async def test_what_is_not_private_goes_to_the_chat(world: World) -> None:
    aside = Aside()
    sink = discreet(world, aside)
    world.outlet.expect("post", 0, "for")
    world.outlet.expect("edit", "m0", "for all")
    await sink.show("for")
    await world.time.pass_by(2)
    assert await world.deliver(sink, Reply("for all")) == "m0"
    await sink.done()
    assert aside.sent == []
    assert aside.ended


async def test_a_private_reply_goes_aside_and_the_chat_gets_a_hint(world: World) -> None:
    aside = Aside()
    world.outlet.expect("post", 0, "I wrote to you")
    assert await world.deliver(discreet(world, aside), PRIVATE) == "m0"
    assert aside.sent == [PRIVATE]
    assert "id in another chat" not in world.told
    assert world.told[0] is None


async def test_without_a_hint_the_chat_gets_nothing(world: World) -> None:
    aside = Aside()
    assert await world.deliver(discreet(world, aside), Reply("for you", private=True)) is None
    assert len(aside.sent) == 1


async def test_when_nothing_can_go_aside_the_chat_says_how_it_could(world: World) -> None:
    world.outlet.expect("post", 0, "Write to me first")
    await world.deliver(discreet(world, Aside(DeliveryError("blocked"))), PRIVATE)


@pytest.mark.parametrize(
    ("error", "reply"),
    [
        (DeliveryError("blocked"), Reply("for you", private=True)),
        (DeliveryError("silence", unknown=True), PRIVATE),
        (DeliveryError("no route", later=True), PRIVATE),
    ],
)
async def test_a_private_reply_that_did_not_arrive_is_a_delivery_error(
    world: World, error: DeliveryError, reply: Reply
) -> None:
    with pytest.raises(DeliveryError) as failed:
        await world.deliver(discreet(world, Aside(error)), reply)
    assert failed.value is error


async def test_what_was_not_begun_aside_after_all_is_not_begun(world: World) -> None:
    aside = Aside()
    discreet(world, aside)
    assert aside.posted is not None
    await aside.posted(None)
    await aside.posted.unbegun()
    assert world.told == [None, "unbegun"]


async def test_a_hint_that_fails_does_not_fail_the_reply(world: World) -> None:
    aside = Aside()
    world.outlet.expect("post", 0, "I wrote to you", end=Refused("no"))
    assert await world.deliver(discreet(world, aside), PRIVATE) is None
    assert aside.sent == [PRIVATE]
