"""Staying connected to Discord, stopping, and what only the operator can change: over the real SDK and a socket."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from bot.adapters.discord import DiscordAdapter, check
from bot.message import AdapterError, ChatRef, DeliveryError, Incoming, Reply
from tests.conftest import Clock
from tests.discord_talk import (  # noqa: F401 - the fixtures
    MARA,
    Talk,
    discord_server,
    general_channel,
    new_talk,
    prompt,
    refused,
    running_talk,
    talking,
)
from tests.servers.discord_server import DiscordServer, Place


async def test_a_reconnect_resumes_and_loses_nothing(discord: DiscordServer, talk: Talk) -> None:
    await discord.reconnect()
    await discord.say(MARA, "said in between")
    message, sink = await talk.message()
    await discord.until(lambda: discord.gateway.resumed == 1)
    await sink.send(Reply("heard"))

    assert message.text == "said in between"
    assert discord.texts(MARA) == ["heard"]
    assert len(discord.gateway.identified) == 1


@pytest.mark.usefixtures("prompt")
async def test_an_invalid_session_is_identified_anew(discord: DiscordServer, talk: Talk) -> None:
    await discord.gateway.invalidate()
    await discord.online(2)
    await discord.say(MARA, "hi")

    assert (await talk.message())[0].text == "hi"


async def test_a_malformed_event_costs_only_itself(
    discord: DiscordServer, talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    await discord.dispatch("MESSAGE_CREATE", {"channel_id": "not a number"})
    await discord.say(MARA, "after")

    assert (await talk.message())[0].text == "after"
    assert len(discord.gateway.identified) == 1
    assert "MESSAGE_CREATE that cannot be read" in caplog.text


async def test_a_frame_that_cannot_be_read_ends_neither_the_bot_nor_an_answer_under_way(
    discord: DiscordServer, talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    await discord.say(MARA, "before")
    _, sink = await talk.message()
    await sink.show("Half")
    await discord.until(lambda: discord.texts(MARA) == ["Half"])
    await discord.gateway.broadcast({"op": 0, "t": "READY", "s": 99, "d": {}})
    await sink.send(Reply("Half and half"))
    await talk.time.let_pass(1.0)
    await discord.online(2)
    await discord.say(MARA, "after")

    assert (await talk.message())[0].text == "after"
    assert discord.texts(MARA) == ["Half and half"]
    assert discord.connections == 1
    assert "connecting again" in caplog.text


async def test_a_login_that_fails_in_passing_is_tried_again(discord: DiscordServer) -> None:
    discord.fault("GET /users/@me", lost=True, times=2)  # aiohttp repeats a GET by itself
    talk = new_talk(discord.token)
    run = asyncio.create_task(talk.run())
    await talk.time.let_pass(1.0)
    await discord.online()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_a_wrong_token_says_where_to_find_the_right_one(discord: DiscordServer) -> None:
    with pytest.raises(AdapterError) as failed:
        await new_talk("a-wrong-token").run()

    assert "DISCORD_BOT_TOKEN" in str(failed.value)
    assert "page Bot" in str(failed.value)
    assert "a-wrong-token" not in str(failed.value)


async def test_without_the_intent_the_fix_is_said_once_and_mentions_and_private_chats_are_heard(
    discord: DiscordServer, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    discord.forbid_content()
    async with talking(discord) as talk:
        await discord.say(MARA, f"<@{discord.bot.id}> hello", place=place)
        _, sink = await talk.message()
        answer = await sink.send(Reply("hi"))
        # Discord leaves out the words of a reply that does not mention the bot.
        await discord.say(MARA, "", place=place, reply_to=answer)
        await discord.say(MARA, "psst")
        assert (await talk.message())[0].text == "psst"

    fixes = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert len(fixes) == 1
    assert "page Bot" in fixes[0]
    assert "Message Content Intent" in fixes[0]


@pytest.mark.parametrize(("code", "words"), [(4004, "DISCORD_BOT_TOKEN"), (4011, "4011")])
async def test_a_connection_closed_for_good_ends_with_the_reason(discord: DiscordServer, code: int, words: str) -> None:
    run = asyncio.create_task(new_talk(discord.token).run())
    await discord.online()
    await discord.gateway.close(code)

    with pytest.raises(AdapterError, match=words):
        await run


# Stopping


async def test_a_stop_lets_an_answer_that_is_being_sent_arrive(discord: DiscordServer) -> None:
    async with talking(discord) as talk:
        await discord.say(MARA, "hi")
        _, sink = await talk.message()
        discord.fault("POST .*/messages", retry_after=0.1)
        sending = asyncio.create_task(sink.send(Reply("Hello")))
        await discord.until(lambda: len(discord.sent("POST .*/messages")) == 1)

    await sending
    assert discord.texts(MARA) == ["Hello"]


async def test_a_stop_right_after_the_start_leaves_nothing_behind(discord: DiscordServer, place: Place) -> None:
    async with talking(discord):
        assert [task for task in asyncio.all_tasks() if "_delay_ready" in repr(task)]

    assert not [task for task in asyncio.all_tasks() if "_delay_ready" in repr(task)]


async def test_a_stop_during_an_answer_is_clean_and_the_answer_learns_of_it(
    discord: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with talking(discord) as talk:
        await discord.say(MARA, "hi")
        _, sink = await talk.message()
        await sink.show("Hel")
        await discord.until(lambda: discord.texts(MARA) == ["Hel"])

    await sink.show("Hello")
    await refused(sink, Reply("Hello"))
    await sink.done()
    assert discord.texts(MARA) == ["Hel"]
    assert caplog.records == []


async def test_without_a_connection_there_is_no_receipt_and_no_answer() -> None:
    adapter = DiscordAdapter("token", now=Clock())
    chat = ChatRef("discord", "dm:1")
    with pytest.raises(DeliveryError):
        await adapter.notify(chat, Reply("Erased."))
    with pytest.raises(DeliveryError):
        adapter.sink(Incoming(chat, "1", "Mara", "2", "hi", Clock()()))


# check


async def test_check_returns_the_name_of_the_bot(discord: DiscordServer) -> None:
    assert "recollect" in await check(discord.token)


async def _break_token(discord: DiscordServer) -> None:
    discord.token = "another"


async def _break_intent(discord: DiscordServer) -> None:
    discord.forbid_content()


async def _break_network(discord: DiscordServer) -> None:
    discord.fault("GET /users/@me", lost=True, times=2)  # aiohttp repeats a GET by itself


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (_break_token, "DISCORD_BOT_TOKEN"),
        (_break_intent, "Message Content Intent"),
        (_break_network, "cannot be reached"),
    ],
)
async def test_check_names_the_fix(
    discord: DiscordServer, trouble: Callable[[DiscordServer], Awaitable[None]], words: str
) -> None:
    token = discord.token
    await trouble(discord)
    with pytest.raises(AdapterError, match=words):
        await check(token)
