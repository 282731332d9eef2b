"""What was said on Discord while the bot was away: over the real SDK and a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from bot.adapters.discord import catchup, client
from bot.adapters.discord.client import HISTORY
from bot.message import ChatRef, Deleted, Incoming, Reply
from tests.discord_talk import (  # noqa: F401 - the fixtures
    MARA,
    ROBOT,
    TOMAS,
    Talk,
    discord_server,
    general_channel,
    new_talk,
    prompt,
    running_talk,
    talking,
)
from tests.servers.discord_server import DiscordServer, Place


@pytest.fixture(autouse=True)
def few_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a session be ready sooner: all the servers there are come at once."""
    monkeypatch.setattr(client, "GUILDS_PAUSE", 0.05)


def private(user_id: str) -> ChatRef:
    return ChatRef("discord", f"dm:{user_id}")


def channel(place: Place) -> ChatRef:
    return ChatRef("discord", f"guild:{place[0]}/{place[1]}", private=False)


async def texts(talk: Talk, count: int) -> list[str]:
    return [(await talk.message())[0].text for _ in range(count)]


async def test_what_was_said_meanwhile_is_heard_in_order_and_answered(discord: DiscordServer, place: Place) -> None:
    known = await discord.say(MARA, "known")
    for text in ("one", "two", "three"):
        await discord.say(MARA, text)
    async with talking(discord, journal={private(MARA.id): known}) as talk:
        assert await texts(talk, 2) == ["one", "two"]
        message, sink = await talk.message()
        await sink.send(Reply("four"))

    assert (message.chat, message.text, message.name) == (private(MARA.id), "three", "Mara")
    assert discord.texts(MARA) == ["four"]


async def test_in_a_server_only_what_addressed_the_bot_is_heard(discord: DiscordServer, place: Place) -> None:
    known = await discord.say(MARA, "known", place=place)
    await discord.say(TOMAS, "nice weather", place=place)
    await discord.say(ROBOT, f"<@{discord.bot.id}> beep", place=place)
    asked = await discord.say(
        MARA, f"<@{discord.bot.id}> hello", place=place, attachments=[discord.file("a.txt", b"x")]
    )
    async with talking(discord, journal={channel(place): known}) as talk:
        message, sink = await talk.message()
        await sink.send(Reply("hi"))

    assert (message.chat, message.text, message.message_id) == (channel(place), "hello", asked)
    assert [media.name for media in message.media] == ["a.txt"]
    assert discord.answers(place[1])[0]["message_reference"]["message_id"] == int(asked)
    assert talk.submitted.empty()


async def test_a_thread_is_caught_up_with_as_itself(discord: DiscordServer) -> None:
    guild, thread = discord.guild("general", thread="a thread")
    await discord.say(MARA, f"<@{discord.bot.id}> hi", place=(guild, thread))
    chat = ChatRef("discord", f"guild:{guild}/{discord.channels(guild)[0]}", private=False, thread=thread)
    async with talking(discord, journal={chat: "1"}) as talk:
        assert (await talk.message())[0].chat == chat


async def test_only_the_last_messages_and_the_last_day_are_looked_at(
    discord: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    discord.offset = -25 * 3600
    await discord.say(TOMAS, "the day before yesterday")
    discord.offset = -1
    await discord.say(TOMAS, "just now")
    for n in range(HISTORY + 5):
        await discord.say(MARA, f"line {n}")
    async with talking(discord, journal={private(MARA.id): "1", private(TOMAS.id): "1"}) as talk:
        heard = await texts(talk, HISTORY + 1)

    assert talk.submitted.empty()
    assert [text for text in heard if text != "just now"] == [f"line {n + 5}" for n in range(HISTORY)]
    assert len(discord.sent("typing")) <= 2
    assert "only the last 100 messages" in caplog.text


async def test_a_chat_that_is_gone_or_closed_is_skipped(
    discord: DiscordServer, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    await discord.say(MARA, "hi")
    discord.unreachable.add(place[1])
    gone = channel((place[0], "900000000000001234"))
    async with talking(discord, journal={channel(place): "3", gone: "2", private(MARA.id): "1"}) as talk:
        assert await texts(talk, 1) == ["hi"]

    assert "Missing Access" in caplog.text
    assert "Unknown Channel" in caplog.text


async def test_a_history_that_cannot_be_read_stops_nothing(
    discord: DiscordServer, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    await discord.say(MARA, "hi")
    discord.fault(f"GET /channels/{place[1]}/messages", status=200, body=[{"id": str(1 << 62)}])
    async with talking(discord, journal={channel(place): "2", private(MARA.id): "1"}) as talk:
        assert await texts(talk, 1) == ["hi"]

    assert "cannot be read" in caplog.text


async def test_a_channel_without_news_is_not_asked_for(discord: DiscordServer, place: Place) -> None:
    known = await discord.say(MARA, "known", place=place)
    await discord.say(MARA, "hi")
    async with talking(discord, journal={channel(place): known, private(MARA.id): "1"}) as talk:
        assert await texts(talk, 1) == ["hi"]

    assert discord.sent(f"GET /channels/{place[1]}/messages") == []


async def test_a_chat_of_another_platform_is_left_alone(discord: DiscordServer) -> None:
    async with talking(discord, journal={ChatRef("telegram", "dm:1"): "7", private(MARA.id): "1"}) as talk:
        await discord.until(lambda: len(discord.sent("GET .*/messages")) == 1)
        await discord.say(MARA, "hi")
        assert await texts(talk, 1) == ["hi"]

    assert [request.body["recipient_id"] for request in discord.sent("POST /users/@me/channels")] == [int(MARA.id)]


async def test_no_history_is_read_before_the_session_is_ready_and_then_the_liveliest_first() -> None:
    read: list[str] = []

    async def seen() -> Mapping[ChatRef, str]:
        return {private("1"): "998", private("2"): "1002", private("3"): "1001"}

    async def remember(chat: ChatRef, newest: str) -> None:
        read.append(newest)

    session = catchup.CatchUp(seen, remember, "discord")
    running = asyncio.create_task(session.run())
    await session.passed(private("4"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert read == []
    session.begin_reading()
    await running

    assert read == ["1002", "1001", "998"]


async def test_what_is_said_now_waits_for_what_was_said_before_in_its_chat_alone(discord: DiscordServer) -> None:
    await discord.say(MARA, "before")
    read = asyncio.Event()
    discord.fault("GET .*/messages", hold=read)
    async with talking(discord, journal={private(MARA.id): "1"}) as talk:
        await discord.until(lambda: len(discord.sent("GET .*/messages")) == 1)
        now = await discord.say(MARA, "now")
        taken_back = await discord.say(MARA, "oops")
        await discord.take_back(taken_back)
        await discord.say(TOMAS, "elsewhere")
        assert await texts(talk, 1) == ["elsewhere"]
        read.set()
        heard = [(await talk.submitted.get())[0] for _ in range(5)]

    said = [update.text if isinstance(update, Incoming) else "" for update in heard]
    # The history was read after "now" was said: that comes twice, and the journal knows its id.
    assert said == ["before", "now", "now", "oops", ""]
    assert isinstance(heard[-1], Deleted)
    assert [update.message_id for update in heard[1:3] if isinstance(update, Incoming)] == [now, now]


async def test_what_is_said_now_waits_no_longer_than_is_decent(
    discord: DiscordServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(catchup, "PATIENCE", 0.0)
    read = asyncio.Event()
    discord.fault("GET .*/messages", hold=read)
    async with talking(discord, journal={private(MARA.id): "1"}) as talk:
        await discord.say(MARA, "now")
        assert await texts(talk, 1) == ["now"]
        read.set()

    assert "takes long" in caplog.text


async def test_a_journal_that_cannot_be_asked_holds_up_nobody(
    discord: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> Mapping[ChatRef, str]:
        raise OSError("disk full")

    talk = new_talk(discord.token)
    run = asyncio.create_task(talk.adapter.run(talk.submit, (), broken))
    await discord.online()
    await discord.say(MARA, "hi")

    assert await texts(talk, 1) == ["hi"]
    assert "disk full" in caplog.text
    run.cancel()
    await asyncio.wait({run})


@pytest.mark.usefixtures("prompt")
async def test_a_new_session_is_caught_up_with_and_a_resumed_one_is_not(discord: DiscordServer, place: Place) -> None:
    async with talking(discord, journal={private(MARA.id): "1"}) as talk:
        await discord.until(lambda: len(discord.sent("GET .*/messages")) == 1)
        await discord.reconnect()
        await discord.until(lambda: discord.gateway.resumed == 1)
        await discord.say(MARA, "heard")
        assert await texts(talk, 1) == ["heard"]
        assert len(discord.sent("GET .*/messages")) == 1

        lost = discord.message(MARA, discord.channel_of(MARA), "nobody was told")
        discord.messages[lost["id"]] = lost
        await discord.gateway.invalidate()
        assert await texts(talk, 2) == ["heard", "nobody was told"]
