"""How the Telegram adapter comes up, polls, survives and goes down: nothing lost, every fix named."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace

import httpx
import pytest

from bot.adapters.telegram import Webhook, check, connection
from bot.adapters.telegram.connection import PollRequest
from bot.adapters.telegram.polling import Conflicts
from bot.message import AdapterError, ChatRef, CommandSpec, DeliveryError, Incoming, Moved, Reply, Sink, Update
from tests.telegram_world import ANNA, BERT, GROUP, Time, World, nothing_seen, stop

pytest_plugins = ("tests.telegram_fixtures",)

MENU = (CommandSpec("help", {"en": "What I can do"}),)
CONFLICT = "Conflict: terminated by other getUpdates request"
WRONG = "123456789:ABC-DEF1234ghIkl-zyx57W2v1u123ew00"
Start = Callable[[World], Awaitable[object]]


# Nothing lost, nothing doubled


async def test_messages_sent_while_the_bot_was_down_are_answered_once(world: World) -> None:
    world.server.say(ANNA, "are you there?")
    async with world.running():
        assert (await world.desk.message())[0].text == "are you there?"
    world.server.say(ANNA, "and now?")
    async with world.running():
        assert (await world.desk.message())[0].text == "and now?"
    assert world.desk.updates.empty()


async def test_an_update_is_confirmed_only_after_it_was_taken(world: World) -> None:
    for text in ("one", "two"):
        world.server.say(ANNA, text)
    world.desk.hold = asyncio.Event()
    async with world.running():
        assert (await world.desk.message())[0].text == "one"
        await asyncio.sleep(0.05)
        assert world.desk.updates.empty()
        assert len(world.server.updates.waiting) == 2
        world.desk.hold.set()
        assert (await world.desk.message())[0].text == "two"
        await world.server.until(lambda: not world.server.updates.waiting)


async def test_different_chats_are_taken_together_and_one_chat_in_order(
    world: World,
) -> None:
    for user, text in ((ANNA, "one"), (BERT, "two"), (ANNA, "three")):
        world.server.say(user, text)
    world.desk.hold = asyncio.Event()
    async with world.running():
        assert {(await world.desk.message())[0].text for _ in range(2)} == {"one", "two"}
        await asyncio.sleep(0.05)
        assert world.desk.updates.empty()
        assert len(world.server.updates.waiting) == 3
        world.desk.hold.set()
        assert (await world.desk.message())[0].text == "three"
        await world.server.until(lambda: not world.server.updates.waiting)


async def test_one_person_is_heard_in_order_over_their_chats(world: World) -> None:
    world.server.group(GROUP)
    for user, text, chat in (
        (ANNA, "/one", ANNA),
        (ANNA, "/two", GROUP),
        (BERT, "/three", GROUP),
        (BERT, "/four", BERT),
    ):
        world.server.say(user, text, chat)
    world.server.say(BERT + 1, "beside")
    world.desk.hold = asyncio.Event()
    async with world.running():
        assert {(await world.desk.message())[0].text for _ in range(2)} == {"/one", "beside"}
        await asyncio.sleep(0.05)
        assert world.desk.updates.empty()
        world.desk.hold.set()
        assert [(await world.desk.message())[0].text for _ in range(3)] == ["/two", "/three", "/four"]


async def test_what_concerns_more_than_one_chat_is_taken_by_itself_in_its_place(world: World) -> None:
    world.server.say(ANNA, "one")
    world.server.group(GROUP)
    world.server.migrate(GROUP, GROUP - 1)
    world.server.say(BERT, "two")
    world.desk.hold = asyncio.Event()
    taken: list[Update] = []
    async with world.running():
        while len(taken) < 4:
            taken.append((await world.desk.next())[0])
            await asyncio.sleep(0.05)
            assert world.desk.updates.empty()
            world.desk.hold, held = asyncio.Event(), world.desk.hold
            held.set()
        world.desk.hold.set()
    assert [type(update) for update in taken] == [Incoming, Moved, Moved, Incoming]


async def test_what_is_taken_behind_what_could_not_be_is_not_confirmed_either(world: World) -> None:
    async def broken(update: Update, sink: Sink) -> None:
        if isinstance(update, Incoming) and update.text == "two":
            raise OSError("disk full")

    for user, text in ((ANNA, "one"), (BERT, "two"), (ANNA, "three")):
        world.server.say(user, text)
    with pytest.raises(OSError, match="disk full"):
        await asyncio.wait_for(world.adapter().run(broken, (), nothing_seen), 5)
    async with world.running():
        assert {(await world.desk.message())[0].text for _ in range(2)} == {"two", "three"}


async def test_what_was_not_confirmed_when_the_process_died_comes_again(world: World) -> None:
    world.server.say(ANNA, "remember this")
    world.desk.hold = asyncio.Event()
    killed = world.start()
    await world.desk.message()
    async with world.server.outage():  # nothing it still says is heard
        killed.cancel()
        world.desk.hold.set()
        await asyncio.wait({killed})
    async with world.running():
        assert (await world.desk.message())[0].text == "remember this"


async def test_what_waits_from_before_is_taken_up_before_anything_new_is_fetched(world: World) -> None:
    adapter = world.adapter()
    fetched: list[int] = []
    old = Incoming(ChatRef("telegram", f"dm:{ANNA}"), str(ANNA), "Anna", "7", "hello?", world.clock())

    async def seen() -> Mapping[ChatRef, str]:
        fetched.append(len(world.server.sent("getUpdates")))
        await adapter.sink(old).send(Reply("late, but here"))
        return {}

    running = asyncio.create_task(adapter.run(world.desk.submit, (), seen))
    await world.shows("late, but here")
    await world.server.until(lambda: bool(world.server.sent("getUpdates")))
    await stop(running)
    assert fetched == [0]


async def test_what_could_not_be_taken_is_not_confirmed(world: World) -> None:
    async def broken(update: Update, sink: Sink) -> None:
        raise OSError("disk full")

    world.server.say(ANNA, "remember this")
    with pytest.raises(OSError, match="disk full"):
        await asyncio.wait_for(world.adapter().run(broken, (), nothing_seen), 5)
    async with world.running():
        assert (await world.desk.message())[0].text == "remember this"


async def test_a_stop_finishes_the_update_in_hand_and_confirms_no_other(world: World) -> None:
    for text in ("one", "two"):
        world.server.say(ANNA, text)
    world.desk.hold = asyncio.Event()
    running = world.start()
    await world.desk.message()
    stopping = asyncio.create_task(stop(running))
    await asyncio.sleep(0.05)
    assert not stopping.done()
    world.desk.hold.set()
    await stopping
    assert world.desk.updates.empty()
    assert [update["message"]["text"] for update in world.server.updates.waiting] == ["two"]


async def test_one_update_that_cannot_be_read_stops_no_other_and_its_words_reach_no_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.server.say(ANNA, "one")
    world.server.push({"message": {"message_id": 1, "text": "my secret", "date": "yesterday"}})
    world.server.say(ANNA, "my secret", entities=[{"type": "text_mention", "offset": 0, "length": 2, "user": 5}])
    world.server.say(ANNA, None, photo=[{"file_id": "f", "file_unique_id": "u", "width": {}, "height": 1}])
    photo = {"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1}
    broken = {"type": "mention", "offset": "my secret", "length": 1}
    world.server.group(GROUP)
    world.server.say(ANNA, None, GROUP, photo=[photo], media_group_id="G", caption="a", caption_entities=[broken])
    world.server.say(ANNA, "two")
    async with world.running():
        assert [(await world.desk.message())[0].text for _ in range(2)] == ["one", "two"]
        await world.server.until(lambda: not world.server.updates.waiting)
    assert all(f"Update {number} cannot be read" in caplog.text for number in (7001, 7002, 7003, 7004))
    assert "my secret" not in caplog.text


async def test_a_reply_under_way_arrives_although_the_bot_is_stopped(world: World) -> None:
    running = world.start()
    sink = await world.asked()
    held = world.server.fault("sendMessage", hold=asyncio.Event())
    reply = asyncio.create_task(sink.send(Reply("a" * 5_000)))
    await world.server.until(lambda: held.times == 0)
    reply.cancel()
    stopping = asyncio.create_task(stop(running))
    await world.server.until(lambda: '"timeout": 1' not in str(world.server.sent("getUpdates")[-1]))
    assert not stopping.done()
    assert held.hold is not None
    held.hold.set()
    await stopping
    assert "".join(world.server.chat(ANNA).texts) == "a" * 5_000
    with pytest.raises(DeliveryError) as late:
        await sink.send(Reply("too late"))
    assert not late.value.unknown


# Trouble on the way


async def test_the_bot_comes_up_although_the_network_is_late(world: World) -> None:
    world.server.fault("getMe", status=502, description="Bad Gateway")
    running = world.start()
    await world.time.passes(1.0)
    await (await world.asked()).send(Reply("hi"))
    await stop(running)
    assert world.server.chat(ANNA).texts == ["hi"]


async def test_a_poll_that_fails_is_made_again_after_growing_pauses(
    here: World, caplog: pytest.LogCaptureFixture
) -> None:
    here.server.fault("getUpdates", status=502, description="Bad Gateway", times=2)
    await here.asked()
    for pause in (1.0, 2.0):
        await here.time.passes(pause)
    await here.asked("still there?")
    assert "Bad Gateway" in caplog.text


async def test_a_flood_of_polls_is_waited_out(here: World) -> None:
    here.server.fault("getUpdates", retry_after=3)
    await here.asked()
    await here.time.passes(3.0)
    await here.asked("still there?")


async def test_a_poll_that_never_comes_back_is_given_up_and_the_connection_made_anew(
    here: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[httpx.AsyncClient] = []
    build = PollRequest._build_client

    def recorded(request: PollRequest) -> httpx.AsyncClient:
        built.append(build(request))
        return built[-1]

    monkeypatch.setattr(PollRequest, "_build_client", recorded)
    hanging = here.server.fault("getUpdates", hold=asyncio.Event())
    await here.asked()
    await here.server.until(lambda: hanging.times == 0)
    here.time.advance(30)
    await asyncio.sleep(0.05)
    assert "connection is made anew" not in caplog.text
    here.time.advance(1.1)
    await here.asked("still there?")
    assert "connection is made anew" in caplog.text
    assert len(built) == 1


async def test_a_connection_that_does_not_even_close_is_left_alone(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(client: httpx.AsyncClient) -> None:
        client._state = httpx._client.ClientState.CLOSED  # as the real one does before it closes its connections
        await asyncio.Event().wait()

    monkeypatch.setattr(connection, "_CLOSE_SECONDS", 0.01)
    hanging = here.server.fault("getUpdates", hold=asyncio.Event())
    await here.asked()
    await here.server.until(lambda: hanging.times == 0)
    with monkeypatch.context() as patch:
        patch.setattr(httpx.AsyncClient, "aclose", hang)
        here.time.advance(31.1)
        await here.asked("still there?")


# Tokens, other pollers, webhooks left behind


@pytest.mark.parametrize(
    "start",
    [
        lambda world: world.start(token=WRONG),
        lambda world: check(WRONG, world.server.base_url),
        lambda world: world.start(token="nonsense"),
        lambda world: check("", world.server.base_url),
    ],
)
async def test_a_wrong_token_is_told_with_its_fix_and_without_the_token(
    world: World, caplog: pytest.LogCaptureFixture, start: Start
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(AdapterError, match=r"TELEGRAM_BOT_TOKEN.*@BotFather") as refusal:
        await start(world)
    assert refusal.value.__suppress_context__
    assert "ew00" not in caplog.text + str(refusal.value)


async def test_neither_the_token_nor_what_is_said_reaches_a_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    world.server.fault("sendMessage", drop=True)
    world.server.fault("getUpdates", drop=True)
    async with world.running(MENU):
        await world.time.passes(1.0)
        with pytest.raises(DeliveryError) as lost:
            await (await world.asked("my secret")).send(Reply("your secret"))
    assert world.server.token.partition(":")[2] not in caplog.text + str(lost.value)
    assert "secret" not in caplog.text


async def test_a_token_that_is_withdrawn_ends_the_run_with_its_fix(world: World) -> None:
    running = world.start()
    await world.asked()
    world.server.token = WRONG
    for pause in (1.0, 5.0, 15.0):
        assert not running.done()
        await world.time.passes(pause)
    with pytest.raises(AdapterError, match="TELEGRAM_BOT_TOKEN"):
        await asyncio.wait_for(running, 5)


async def test_a_server_on_the_way_that_once_knows_nothing_ends_no_run(here: World) -> None:
    here.server.fault("getUpdates", status=404, description="Not Found")
    here.server.fault("getMe", status=404, description="Not Found")
    await here.asked()
    for pause in (1.0, 5.0, 1.0):
        await here.time.passes(pause)
    await here.asked("still there?")


async def test_a_second_poller_is_told_soon_with_its_fix(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async with AsyncExitStack() as both:
        await both.enter_async_context(world.running())
        await both.enter_async_context(world.running())
        for _ in range(2):  # each ends the other's poll
            await world.time.passes(1.0)
        await world.time.somebody_sleeps(2.0)
    assert caplog.text.count("Another process polls") == 1


async def test_a_single_conflict_as_after_a_poll_that_broke_blames_nobody(
    here: World, caplog: pytest.LogCaptureFixture
) -> None:
    here.server.fault("getUpdates", status=409, description=CONFLICT)
    await here.asked()
    await here.time.passes(1.0)
    await here.asked("still there?")
    assert "Another process polls" not in caplog.text


async def test_a_second_poller_that_stays_ends_the_run(world: World) -> None:
    running = world.start()
    await world.asked()
    world.server.fault("getUpdates", status=409, description=CONFLICT, times=1_000)
    for pause in (1.0, 2.0, 5.0, 10.0, 30.0):
        await world.time.passes(pause)
    assert not running.done()
    await world.time.passes(30.0)
    with pytest.raises(AdapterError, match="Stop the other process"):
        await asyncio.wait_for(running, 5)


def test_a_conflict_that_passes_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    """As when the old process is still going down while the new one comes up."""
    time = Time()
    conflicts = Conflicts(time)
    for _ in range(3):
        for _ in range(3):
            conflicts.met()
            time.advance(15)
        time.advance(61)
    conflicts.met()
    assert caplog.text.count("Another process polls") == 3


def test_polls_that_succeed_between_conflicts_do_not_hide_a_second_poller() -> None:
    time = Time()
    conflicts = Conflicts(time)
    for _ in range(3):
        conflicts.met()
        time.advance(25)
    with pytest.raises(AdapterError):
        conflicts.met()


async def test_a_webhook_left_behind_is_removed_and_nothing_that_waits_is_lost(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.server.say(ANNA, "sent to the webhook")
    await world.server.updates.set_webhook({"url": "https://old.example/hook"})
    async with world.running():
        assert (await world.desk.message())[0].text == "sent to the webhook"
    assert "A webhook was set" in caplog.text
    assert not world.server.updates.webhook


async def test_a_webhook_somebody_sets_meanwhile_is_told_with_its_fix(
    here: World, caplog: pytest.LogCaptureFixture
) -> None:
    await here.server.updates.set_webhook({"url": "https://other.example/hook"})
    await here.time.passes(1.0)
    await here.time.somebody_sleeps(2.0)
    assert "remove its webhook" in caplog.text


# check


async def test_check_names_the_bot(world: World) -> None:
    assert await check(f" {world.server.token}\n", world.server.base_url + "/", polls=True) == "@recollect_bot"


async def test_check_names_a_webhook_that_keeps_the_bot_from_polling(world: World) -> None:
    await world.server.updates.set_webhook({"url": "https://other.example/hook"})
    assert await check(world.server.token, world.server.base_url) == "@recollect_bot"
    with pytest.raises(AdapterError, match=r"A webhook is set for @recollect_bot.*@BotFather"):
        await check(world.server.token, world.server.base_url, polls=True)


@pytest.mark.parametrize("secret", [None, "two words"])
async def test_check_names_a_webhook_that_run_would_refuse(world: World, secret: str | None) -> None:
    webhook = Webhook("https://bot.example.org/telegram", "a-good_secret")
    assert await check(world.server.token, world.server.base_url, webhook=webhook) == "@recollect_bot"
    with pytest.raises(AdapterError, match="Set TELEGRAM_WEBHOOK_SECRET"):
        await check(world.server.token, world.server.base_url, webhook=replace(webhook, secret=secret))


async def test_check_tells_a_server_that_cannot_be_reached(unused_tcp_port: int) -> None:
    with pytest.raises(AdapterError, match="Check the network, and base_url and proxy"):
        await check(WRONG, f"http://127.0.0.1:{unused_tcp_port}")


@pytest.mark.parametrize("proxy", ["nonsense", "ftp://user:hidden@127.0.0.1"])
async def test_an_impossible_proxy_is_told_without_its_password(world: World, proxy: str) -> None:
    with pytest.raises(AdapterError, match="proxy") as refusal:
        await check(world.server.token, world.server.base_url, proxy)
    with pytest.raises(AdapterError, match="proxy"):
        await world.adapter(proxy=proxy).run(world.desk.submit, (), nothing_seen)
    assert "hidden" not in str(refusal.value)
