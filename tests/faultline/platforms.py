"""The platforms fail: floods, lost connections, things out of order or twice; the whole bot over the real SDKs."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final
from unittest.mock import patch

import discord as sdk

from tests.faultline.endpoint import SAID
from tests.faultline.place import Place, Row, fault
from tests.stages.discord import Discord
from tests.stages.stage import MARA, TOMAS, Stage
from tests.stages.telegram import Telegram
from tests.stages.world import World, world_on
from tests.talk import Door, Talk

ANSWER: Final = "A flower that turns to the sun, and so do those who look after it."
PLATFORMS: Final = ("telegram", "discord")
Deed = Callable[[Place, World], Awaitable[Row]]


def on(*names: str) -> Callable[[str], Callable[[Deed], Deed]]:
    """Enter a scenario into the table for some platforms; the bot is up there, and its model answers ANSWER."""

    def named(what: str) -> Callable[[Deed], Deed]:
        def enter(deed: Deed) -> Deed:
            for name in names:
                fault(name, what)(_scenario(name, deed))
            return deed

        return enter

    return named


def _scenario(name: str, deed: Deed) -> Callable[[Place], Awaitable[Row]]:
    async def scenario(place: Place) -> Row:
        async with world_on(name, place.folder / "data", place.clock) as world:
            world.model.on("^hello there$", reply="Hello")
            world.model.on(reply=ANSWER)
            row = await deed(place, world)
            assert lines(world, "SELECT * FROM waiting") == [], "somebody still waits"
            assert server(world.stage).token not in "\n".join(place.heard.whole)
            return row

    return scenario


on_both = on(*PLATFORMS)
on_telegram, on_discord = on("telegram"), on("discord")


def server(stage: Stage) -> Any:
    """The double of the platform."""
    assert isinstance(stage, Telegram | Discord)
    return stage.server


def is_telegram(world: World) -> bool:
    return isinstance(world.stage, Telegram)


def goes_wrong(world: World, *, edit: bool = False, **how: Any) -> Callable[[], int]:
    """Have the next message to Mara (or the next ``edit`` of one) fail; returns what counts the tries so far."""
    platform = server(world.stage)
    if is_telegram(world):
        match = "editMessageText" if edit else f'sendMessage {{"chat_id": {MARA.number}'
    else:
        channel = platform.channel_of(world.stage._user(MARA))  # type: ignore[attr-defined]
        match = f"{'PATCH' if edit else 'POST'} /channels/{channel}/messages"
    platform.fault(match, **how)
    return lambda: len(platform.sent(match))


def refused(world: World, seconds: float) -> dict[str, Any]:
    """What a fault is that is a flood; the pauses of Discord's SDK are real ones."""
    return {"retry_after": int(seconds) if is_telegram(world) else seconds / 10}


def lost(world: World, *, after: bool) -> dict[str, Any]:
    """What a fault is that breaks the connection, before or ``after`` the request is carried out."""
    if is_telegram(world):
        return {"drop": True, "after": after}
    return {"lost": True} if after else {"drop": True}


def lines(world: World, sql: str = "SELECT role, text FROM journal ORDER BY id") -> list[tuple[Any, ...]]:
    """Rows of the file."""
    return Talk(world.app, world._hours.clock, []).rows(sql)


def kept(world: World, *said: str, answers: int = 1) -> str:
    """That the journal holds what was said, each once and in this order, and so many answers."""
    rows = lines(world)
    assert [text for role, text in rows if role == "user" and text != "hello there"] == list(said)
    assert [text for role, text in rows if role == "bot" and text != "Hello"] == [ANSWER] * answers
    return f"{len(said)} message{'s' * (len(said) > 1)}, each once; {answers} answer{'s' * (answers > 1)}"


def nothing_told(place: Place) -> str:
    assert place.heard.lines == []
    return "nothing"


async def passing(world: World, holds: Callable[[], bool]) -> None:
    """Let time pass until something holds."""

    def held() -> bool:
        world.passes(0.2)
        return holds()

    await world.until(held)


async def others_go_on(world: World) -> None:
    """Somebody else writes and is answered."""
    await world.say("hello there", TOMAS)
    await world.settled_in_time()
    assert world.visible(TOMAS) == ["Hello"]


async def heals(world: World) -> str:
    """The next message is answered as ever."""
    assert await world.ask("hello there") == ["Hello"]
    return "by itself"


# ---- floods ----------------------------------------------------------------------------------------------


@on_both("flood: a message is refused for a while (429)")
async def flood(place: Place, world: World) -> Row:
    tries = goes_wrong(world, **refused(world, 3))
    await world.say(SAID)
    await world.until(lambda: tries() == 1)
    await others_go_on(world)
    assert world.visible() == [ANSWER]
    assert tries() == 2, "it asked again during the flood"
    told = nothing_told(place) if is_telegram(world) else told_of_a_rate(place, "Retrying in 0.30 seconds")
    return Row("the answer, later", told, kept(world, SAID), f"{await heals(world)}; 2 requests in all")


def told_of_a_rate(place: Place, how: str) -> str:
    """What the SDK says of a flood; it names the way of the request and no words."""
    return re.sub(r"http://\S+?/channels/\d+", "/channels/N", place.logged(how, most=1))


@on_both("flood: an edit of a growing answer is refused, the next one is lost")
async def flood_of_edits(place: Place, world: World) -> Row:
    door = world.model.halfway = Door()
    await world.say(SAID)
    await door.reached.wait()
    await world.until(lambda: len(world.visible()) == 1)
    world.stage.trouble(MARA)
    door.set()
    await others_go_on(world)
    assert world.visible() == [ANSWER]
    told = nothing_told(place) if is_telegram(world) else told_of_a_rate(place, "being rate limited")
    return Row("one message that grows, whole in the end", told, kept(world, SAID), await heals(world))


@on_discord("flood: of 40 s, longer than the SDK waits")
async def long_flood(place: Place, world: World) -> Row:
    tries = goes_wrong(world, retry_after=40)
    begun = world._hours.time.now
    await world.say(SAID)
    await others_go_on(world)
    took = world._hours.time.now - begun
    assert world.visible() == [ANSWER]
    assert (tries(), took >= 40) == (2, True)
    told = told_of_a_rate(place, "Timeout of 40.00 was too long")
    return Row("the answer, later", told, kept(world, SAID), f"{await heals(world)}, after the 40 s; 2 requests")


@on_telegram("flood: polls are refused for a while (429)")
async def flood_of_polls(place: Place, world: World) -> Row:
    platform = server(world.stage)
    flooded = platform.fault("getUpdates", retry_after=3)
    await passing(world, lambda: flooded.times == 0)
    before = len(platform.sent("getUpdates"))
    await world.stage.say(MARA, SAID)
    await asyncio.sleep(0.1)
    assert len(platform.sent("getUpdates")) == before, "it asked again during the flood"
    world.passes(3.3)
    await world.taken(1)
    await others_go_on(world)
    assert world.visible() == [ANSWER]
    return Row("the answer, later", nothing_told(place), kept(world, SAID), f"{await heals(world)}, after the 3 s")


@on_both("flood: one person sends 30 messages at once")
async def crowd(place: Place, world: World) -> Row:
    said = [f"part {number} of it" for number in range(30)]
    for text in said:
        await world.stage.say(MARA, text)
    await world.taken(30)
    await others_go_on(world)
    answers = len(world.visible())
    assert set(world.visible()) == {ANSWER}
    assert answers <= 15
    assert all(any(text in chat.last_user for chat in world.model.chats) for text in said)
    return Row(
        f"{answers} answers, each to several messages", nothing_told(place), kept(world, *said, answers=answers),
        await heals(world),
    )  # fmt: skip


# ---- lost connections ------------------------------------------------------------------------------------


@on_both("drop: the connection breaks before the first message of an answer is made")
async def lost_before(place: Place, world: World) -> Row:
    goes_wrong(world, **lost(world, after=False))
    await world.say(SAID)
    await others_go_on(world)
    assert world.visible() == [ANSWER]
    return Row("the answer, once", nothing_told(place), kept(world, SAID), await heals(world))


@on_both("drop: the connection breaks when the first message of an answer was made")
async def lost_after(place: Place, world: World) -> Row:
    goes_wrong(world, **lost(world, after=True))
    await world.say(SAID)
    await others_go_on(world)
    *beginning, whole = world.visible()
    assert whole == ANSWER
    # Telegram has no way to tell whether a message was made, nor to make it only once.
    assert len(beginning) == is_telegram(world)
    assert all(ANSWER.startswith(text) and text != ANSWER for text in beginning)
    user = "the answer, once" if not beginning else "the answer, once, below its first characters, which stay"
    return Row(user, nothing_told(place), kept(world, SAID), await heals(world))


@on_both("drop: the same for the reply to a command, before it is made")
async def receipt_before(place: Place, world: World) -> Row:
    goes_wrong(world, **lost(world, after=False))
    return await receipt(place, world, seen=0)


@on_both("drop: the same for the reply to a command, when it was made")
async def receipt_after(place: Place, world: World) -> Row:
    goes_wrong(world, **lost(world, after=True))
    return await receipt(place, world, seen=1)


async def receipt(place: Place, world: World, *, seen: int) -> Row:
    """A command is given and its one message fails; ``seen`` is how many of it Telegram shows."""
    await world.say("/pause")
    await world.settled_in_time()
    shown = world.visible()
    assert len(shown) == (seen if is_telegram(world) else 1)
    told = place.logged("A reply may not have arrived", most=1) if is_telegram(world) else nothing_told(place)
    assert lines(world, "SELECT count(*) FROM pauses") == [(1,)]
    user = f"{shown[0].splitlines()[0]} (once)" if shown else "nothing: it is not sent again, for it may have arrived"
    (again,) = await world.ask("/pause")
    assert again.startswith("Paused")
    return Row(user, told, "what the command did, once", "at the next command")


@on_both("drop: the platform answers a message with 502, again and again")
async def bad_gateway(place: Place, world: World) -> Row:
    if is_telegram(world):
        tries = goes_wrong(world, status=502, description="Bad Gateway", times=2)
    else:
        tries = goes_wrong(world, status=502, body={"message": "bad gateway", "code": 0}, times=3)
    await world.say(SAID)
    await world.settled_in_time()
    shown = world.visible()
    assert shown == ([] if is_telegram(world) else [ANSWER])
    told = place.logged("A reply may not have arrived", most=1) if is_telegram(world) else nothing_told(place)
    user = "the answer, once" if shown else "nothing: it is not sent again, for it may have arrived"
    row, requests = kept(world, SAID), tries()
    assert requests <= 4
    return Row(user, told, row, f"{await heals(world)}; {requests} requests")


@on_telegram("drop: polls break off, before and after updates were handed over")
async def lost_polls(place: Place, world: World) -> Row:
    platform = server(world.stage)
    broken = [platform.fault("getUpdates", drop=True, after=after) for after in (True, False)]
    await world.stage.say(MARA, SAID)
    await passing(world, lambda: not any(one.times for one in broken))
    await passing(world, lambda: world._taken == 1)
    await others_go_on(world)
    assert world.visible() == [ANSWER]
    told = place.logged("Polling Telegram failed, trying again", most=2)
    return Row("the answer, once", told, kept(world, SAID), f"{await heals(world)}, after pauses of 1 s and 2 s")


@on_telegram("drop: Telegram is out of reach for a minute")
async def outage(place: Place, world: World) -> Row:
    assert await world.ask("hello there") == ["Hello"]
    async with server(world.stage).outage():
        await world.stage.say(MARA, SAID)
        for _ in range(60):
            world.passes(1)
            await asyncio.sleep(0.005)
    failed = place.logged("Polling Telegram failed, trying again")
    count = len(place.heard.lines)
    assert 3 <= count <= 20, place.heard.lines
    await passing(world, lambda: world._taken == 2)
    await world.settled_in_time()
    assert world.visible() == ["Hello", ANSWER]
    user = "the answer, when Telegram is back"
    return Row(user, f"{failed} ({count} lines in a minute)", kept(world, SAID), f"{await heals(world)}, within 30 s")


@on_discord("drop: the gateway closes in the middle of an answer, and the session is resumed")
async def resumed(place: Place, world: World) -> Row:
    platform, door = server(world.stage), Door()
    world.model.halfway = door
    await world.say(SAID)
    await door.reached.wait()
    await platform.gateway.close(4000)
    await world.stage.say(MARA, "said meanwhile")
    await platform.until(lambda: platform.gateway.resumed == 1)
    await world.taken(2)
    door.set()
    world.model.halfway = None
    await others_go_on(world)
    assert world.visible() == [ANSWER] * 2
    assert len(platform.gateway.identified) == 1
    return Row(
        "both answers, each once", nothing_told(place), kept(world, SAID, "said meanwhile", answers=2),
        f"{await heals(world)}, what was said meanwhile is replayed",
    )  # fmt: skip


@contextlib.asynccontextmanager
async def identified_anew(world: World) -> AsyncIterator[Any]:
    """The session of the gateway is over; what happens meanwhile no event tells. The SDK's own pause is left out."""
    platform = server(world.stage)

    async def at_once(*_: object, **__: object) -> None: ...

    with patch.object(sdk.Client, "before_identify_hook", at_once):
        await platform.gateway.invalidate()
        yield platform
        await platform.online(2)


@on_discord("drop: the gateway's session is lost; what was said meanwhile is in no event")
async def session_lost(place: Place, world: World) -> Row:
    assert await world.ask("hello there") == ["Hello"]
    async with identified_anew(world) as platform:
        channel = platform.channel_of(world.stage._user(MARA))  # type: ignore[attr-defined]
        said = platform.message(world.stage._user(MARA), channel, SAID)  # type: ignore[attr-defined]
        platform.keep(said | {"type": 0, "mentions": []})
        platform.outbox.clear()
    await passing(world, lambda: world._taken == 2)
    await world.settled_in_time()
    assert world.visible() == ["Hello", ANSWER]
    return Row(
        "the answer, once", nothing_told(place), kept(world, SAID), f"{await heals(world)}, from the chat's history"
    )
