"""The webhook: only who knows the secret is heard, and Telegram is told only what was taken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest

from bot.adapters.telegram import Webhook
from bot.message import AdapterError, Reply
from tests.telegram_world import ANNA, World, nothing_seen, stop

pytest_plugins = ("tests.telegram_fixtures",)

SECRET = "correct-horse_battery"
HEADER = "X-Telegram-Bot-Api-Secret-Token"


@pytest.fixture
def webhook(world: World, unused_tcp_port: int) -> Webhook:
    """Return a webhook the server's posts arrive at."""
    world.server.updates.webhook_at = f"http://127.0.0.1:{unused_tcp_port}"
    return Webhook("https://bot.example.org/telegram", SECRET, "127.0.0.1", unused_tcp_port)


@asynccontextmanager
async def outsider(world: World) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(world.server.updates.webhook_at) as session:
        yield session


async def test_messages_arrive_in_order_by_the_webhook_and_are_answered(world: World, webhook: Webhook) -> None:
    for text in ("one", "two", "three"):
        world.server.say(ANNA, text)
    async with world.running(webhook=webhook):
        messages = [await world.desk.message() for _ in range(3)]
        await messages[0][1].send(Reply("hi"))
    assert [incoming.text for incoming, _ in messages] == ["one", "two", "three"]
    assert world.server.chat(ANNA).texts == ["hi"]
    assert {status for _, status in world.server.updates.delivered} == {200}
    asked = world.server.sent("setWebhook")[0].params
    assert asked["secret_token"] == SECRET
    assert asked["allowed_updates"] == ["message", "edited_message", "callback_query", "my_chat_member", "chat_member"]
    assert not world.server.sent("getUpdates")


async def test_telegram_hears_that_an_update_arrived_only_after_it_was_taken(world: World, webhook: Webhook) -> None:
    world.desk.hold = asyncio.Event()
    world.server.say(ANNA, "hello")
    async with world.running(webhook=webhook):
        await world.desk.message()
        await asyncio.sleep(0.05)
        assert not world.server.updates.delivered
        world.desk.hold.set()
        await world.server.until(lambda: bool(world.server.updates.delivered))
    assert not world.server.updates.waiting


async def test_what_came_while_the_webhook_was_down_is_posted_again(world: World, webhook: Webhook) -> None:
    async with world.running(webhook=webhook):
        pass
    world.server.say(ANNA, "are you there?")
    await world.server.until(lambda: bool(world.server.updates.delivered))
    assert world.server.updates.delivered[0][1] == 0
    async with world.running(webhook=webhook):
        assert (await world.desk.message())[0].text == "are you there?"


@pytest.mark.parametrize("other", ["", "https://other.example/hook"])
async def test_a_webhook_that_is_taken_away_is_set_again(
    world: World, webhook: Webhook, caplog: pytest.LogCaptureFixture, other: str
) -> None:
    async with world.running(webhook=webhook):
        await world.time.somebody_sleeps(300.0)
        world.server.fault("getWebhookInfo", status=502, description="Bad Gateway")
        await world.time.passes(300.0)
        await world.time.somebody_sleeps(300.0)
        assert "Bad Gateway" in caplog.text
        await world.time.passes(300.0)
        await world.time.somebody_sleeps(300.0)
        assert len(world.server.sent("setWebhook")) == 1
        await world.server.updates.remove_webhook({})
        world.server.updates.webhook = {"url": other}
        await world.time.passes(300.0)
        await world.server.until(lambda: len(world.server.sent("setWebhook")) == 2)
        await world.asked("still there?")
    assert caplog.text.count("it is set again") == 1


async def test_a_token_that_is_withdrawn_ends_the_run(world: World, webhook: Webhook) -> None:
    running = asyncio.create_task(world.adapter(webhook=webhook).run(world.desk.submit, (), nothing_seen))
    await world.time.somebody_sleeps(300.0)
    world.server.token = world.server.token.replace("ABC", "CBA")
    for pause in (300.0, 1.0, 5.0, 15.0):
        await world.time.passes(pause)
    with pytest.raises(AdapterError, match="TELEGRAM_BOT_TOKEN"):
        await asyncio.wait_for(running, 5)


async def test_a_stop_finishes_the_update_in_hand_and_tells_telegram(world: World, webhook: Webhook) -> None:
    world.desk.hold = asyncio.Event()
    world.server.say(ANNA, "hello")
    running = asyncio.create_task(world.adapter(webhook=webhook).run(world.desk.submit, (), nothing_seen))
    await world.desk.message()
    stopping = asyncio.create_task(stop(running))
    await asyncio.sleep(0.05)
    assert not stopping.done()
    world.desk.hold.set()
    await stopping
    assert [status for _, status in world.server.updates.delivered] == [200]
    assert world.server.updates.webhook  # stays set: Telegram keeps what comes meanwhile


async def test_the_secret_reaches_no_log(world: World, webhook: Webhook, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    world.server.fault("setWebhook", status=502)
    async with world.running(webhook=webhook):
        await world.time.passes(1.0)
        await world.asked()
    assert SECRET not in caplog.text


@pytest.mark.parametrize("headers", [{}, {HEADER: "wrong"}, {HEADER: SECRET[:-1]}, {HEADER: "ü"}], ids=str)
async def test_whoever_does_not_know_the_secret_is_not_heard(
    world: World, webhook: Webhook, headers: dict[str, str]
) -> None:
    async with world.running(webhook=webhook), outsider(world) as session:
        update = {"update_id": 1, "message": {"message_id": 1, "text": "/forget all"}}
        answer = await session.post("/telegram", json=update, headers=headers)
        assert answer.status == 403
    assert world.desk.updates.empty()


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/telegram", b"{}", 400),
        ("/telegram", b"[]", 400),
        ("/telegram", b"no json", 400),
        ("/telegram", b"\xff", 400),
        ("/telegram", b" " * 1_000_001, 413),
        ("/elsewhere", b"{}", 404),
    ],
)
async def test_what_is_no_update_is_refused(
    world: World, webhook: Webhook, path: str, body: bytes, status: int
) -> None:
    async with world.running(webhook=webhook), outsider(world) as session:
        assert (await session.post(path, data=body, headers={HEADER: SECRET})).status == status
    assert world.desk.updates.empty()


async def test_an_update_that_cannot_be_read_is_not_asked_for_again(world: World, webhook: Webhook) -> None:
    world.server.push({"message": {"message_id": 1, "date": "yesterday"}})
    world.server.say(ANNA, "hello")
    async with world.running(webhook=webhook):
        assert (await world.desk.message())[0].text == "hello"


@pytest.mark.parametrize("secret", [None, "", "two words", "a" * 257])
async def test_a_webhook_without_a_proper_secret_is_refused_with_the_fix(
    world: World, webhook: Webhook, secret: str | None
) -> None:
    adapter = world.adapter(webhook=replace(webhook, secret=secret))
    with pytest.raises(AdapterError, match="Set TELEGRAM_WEBHOOK_SECRET"):
        await adapter.run(world.desk.submit, (), nothing_seen)
    assert not world.server.sent("setWebhook")


async def test_an_address_telegram_does_not_take_is_told_with_the_fix(world: World, webhook: Webhook) -> None:
    adapter = world.adapter(webhook=replace(webhook, url="http://bot.example.org/telegram"))
    with pytest.raises(AdapterError, match="webhook_url under"):
        await adapter.run(world.desk.submit, (), nothing_seen)


async def test_a_port_somebody_else_has_is_told_with_the_fix(world: World, webhook: Webhook) -> None:
    taken = int(world.server.base_url.rpartition(":")[2])
    with pytest.raises(AdapterError, match="webhook_port"):
        await world.adapter(webhook=replace(webhook, port=taken)).run(world.desk.submit, (), nothing_seen)


def test_the_secret_is_not_shown_with_the_webhook(webhook: Webhook) -> None:
    assert SECRET not in repr(webhook)
