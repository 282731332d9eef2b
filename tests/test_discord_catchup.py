"""What was said on Discord while the bot was away: over the real SDK and a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from bot.adapters.discord import catchup, client, history
from bot.adapters.discord.history import HISTORY, LIVELY
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
from tests.servers.discord_model import EPOCH_MS, START_MS
from tests.servers.discord_server import DiscordServer, Place, User


def ago(hours: float) -> str:
    """The id of a message that was sent so many hours ago."""
    return str(int(START_MS - hours * 3_600_000 - EPOCH_MS) << 22)


BEFORE = ago(48)


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
    async with talking(discord, journal={chat: BEFORE}) as talk:
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
    async with talking(discord, journal={private(MARA.id): BEFORE, private(TOMAS.id): BEFORE}) as talk:
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
    async with talking(discord, journal={channel(place): BEFORE, gone: BEFORE, private(MARA.id): BEFORE}) as talk:
        assert await texts(talk, 1) == ["hi"]

    assert "Missing Access" in caplog.text
    assert "Unknown Channel" in caplog.text


async def test_a_history_that_cannot_be_read_stops_nothing(
    discord: DiscordServer, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    await discord.say(MARA, "hi")
    discord.fault(f"GET /channels/{place[1]}/messages", status=200, body=[{"id": str(1 << 62)}])
    async with talking(discord, journal={channel(place): BEFORE, private(MARA.id): BEFORE}) as talk:
        assert await texts(talk, 1) == ["hi"]

    assert "cannot be read" in caplog.text


async def test_a_channel_without_news_is_not_asked_for(discord: DiscordServer, place: Place) -> None:
    known = await discord.say(MARA, "known", place=place)
    await discord.say(MARA, "hi")
    async with talking(discord, journal={channel(place): known, private(MARA.id): BEFORE}) as talk:
        assert await texts(talk, 1) == ["hi"]

    assert discord.sent(f"GET /channels/{place[1]}/messages") == []


async def test_a_chat_of_another_platform_is_left_alone(discord: DiscordServer) -> None:
    async with talking(discord, journal={ChatRef("telegram", "dm:1"): ago(1), private(MARA.id): BEFORE}) as talk:
        await discord.until(lambda: len(discord.sent("GET .*/messages")) == 1)
        await discord.say(MARA, "hi")
        assert await texts(talk, 1) == ["hi"]

    assert [request.body["recipient_id"] for request in discord.sent("POST /users/@me/channels")] == [int(MARA.id)]


class Books:
    """Histories that are only counted."""

    def __init__(self) -> None:
        self.read_after: list[int] = []

    def known(self, seen: Mapping[ChatRef, str]) -> Mapping[ChatRef, int]:
        return {chat: int(newest) for chat, newest in seen.items()}

    def elsewhere(self, seen: Mapping[ChatRef, str]) -> Mapping[ChatRef, int]:
        return {**dict.fromkeys(seen, 0), private("3"): 3}

    async def read(self, chat: ChatRef, newest: int) -> None:
        self.read_after.append(newest)


async def test_no_history_is_read_before_the_session_is_ready_and_then_each_once_in_order() -> None:
    books = Books()

    async def seen() -> Mapping[ChatRef, str]:
        return {private("2"): "2", private("1"): "1"}

    session = catchup.CatchUp(seen, books, asyncio.sleep)
    running = asyncio.create_task(session.run())
    await session.passed(private("4"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert books.read_after == []
    session.begin_reading()
    await running

    assert books.read_after == [2, 1, 3]


async def test_the_liveliest_private_chats_are_looked_at_and_no_more_of_them_than_is_decent(
    discord: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_PRIVATE", 2)
    people = [User(f"9000000000000{n}", f"P{n}") for n in range(10_000, 10_004)]
    for person in people:
        await discord.say(person, person.name)
    asleep = LIVELY.total_seconds() / 3600 + 1
    newest = [ago(3), ago(asleep), ago(1), ago(2)]
    journal = {private(person.id): number for person, number in zip(people, newest, strict=True)}
    async with talking(discord, journal=journal) as talk:
        assert set(await texts(talk, 2)) == {"P10002", "P10003"}
        await discord.say(MARA, "now")
        assert await texts(talk, 1) == ["now"]

    assert len(discord.sent("POST /users/@me/channels")) == 2


async def test_a_history_that_drops_off_is_asked_for_again(
    discord: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    await discord.say(MARA, "before")
    discord.fault("GET .*/messages", lost=True, times=4)  # aiohttp repeats a GET by itself
    async with talking(discord, journal={private(MARA.id): BEFORE}) as talk:
        await talk.time.let_pass(1.0)
        await talk.time.let_pass(2.0)
        assert await texts(talk, 1) == ["before"]

    assert "cannot be read yet" in caplog.text


async def test_a_history_that_never_comes_is_given_up_with_the_session(discord: DiscordServer) -> None:
    await discord.say(MARA, "before")
    discord.fault("GET .*/messages", status=429, body="slow down", times=99)
    async with talking(discord, journal={private(MARA.id): BEFORE}) as talk:
        for pause in (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 60.0):
            await talk.time.let_pass(pause)

    assert len(discord.sent("GET .*/messages")) == 8


async def test_a_channel_the_journal_does_not_know_is_looked_at_for_what_addressed_the_bot(
    discord: DiscordServer, place: Place
) -> None:
    known = await discord.say(MARA, "known")
    guild, thread = discord.guild("plans", thread="a thread")
    await discord.say(TOMAS, "nice weather", place=place)
    await discord.say(TOMAS, f"<@{discord.bot.id}> first here", place=place)
    await discord.say(TOMAS, f"<@{discord.bot.id}> first there", place=(guild, thread))
    async with talking(discord, journal={private(MARA.id): known}) as talk:
        heard = [(await talk.message())[0] for _ in range(2)]

    there = ChatRef("discord", f"guild:{guild}/{discord.channels(guild)[0]}", private=False, thread=thread)
    assert {(said.chat, said.text) for said in heard} == {(channel(place), "first here"), (there, "first there")}


async def test_channels_without_news_or_out_of_sight_or_past_the_limit_are_not_looked_at(
    discord: DiscordServer, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_CHANNELS", 1)
    quiet, hidden, newest = discord.guild("quiet"), discord.guild("hidden"), discord.guild("newest")
    discord.hide(hidden)
    await discord.say(TOMAS, f"<@{discord.bot.id}> long ago", place=quiet)
    known = await discord.say(MARA, "known")
    for where in (place, newest, hidden):
        await discord.say(TOMAS, f"<@{discord.bot.id}> {where[1]}", place=where)
    async with talking(discord, journal={private(MARA.id): known}) as talk:
        assert await texts(talk, 1) == [newest[1]]
        await discord.say(MARA, "now")
        assert await texts(talk, 1) == ["now"]

    asked = {request.path.split("/")[2] for request in discord.sent("GET .*/messages")}
    assert asked == {newest[1], discord.channel_of(MARA)}


async def test_a_bot_that_heard_nothing_yet_looks_at_no_past(discord: DiscordServer, place: Place) -> None:
    await discord.say(TOMAS, f"<@{discord.bot.id}> before you came", place=place)
    async with talking(discord) as talk:
        await discord.say(MARA, "now")
        assert await texts(talk, 1) == ["now"]
        await asyncio.sleep(2 * client.GUILDS_PAUSE)

    assert discord.sent("GET .*/messages") == []


async def test_what_is_said_now_waits_for_what_was_said_before_in_its_chat_alone(discord: DiscordServer) -> None:
    await discord.say(MARA, "before")
    read = asyncio.Event()
    discord.fault("GET .*/messages", hold=read)
    async with talking(discord, journal={private(MARA.id): BEFORE}) as talk:
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
    async with talking(discord, journal={private(MARA.id): BEFORE}) as talk:
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
    async with talking(discord, journal={private(MARA.id): BEFORE}) as talk:
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
