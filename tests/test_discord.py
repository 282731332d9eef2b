"""Discord through its real SDK, over a socket, to :mod:`tests.servers.discord_server`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import discord as sdk
import pytest

from bot.adapters.discord import FRAME_PAUSE, TYPING_END, TYPING_PAUSE, DiscordAdapter, check
from bot.message import (
    AdapterError,
    Button,
    ChatRef,
    CommandSpec,
    DeliveryError,
    Incoming,
    Press,
    Reply,
    Sink,
    Update,
)
from tests.servers.discord_server import EPHEMERAL, DiscordServer, User

MARA = User("900000000000002001", "Mara")
TOMAS = User("900000000000000777", "Tomas")
ROBOT = User("900000000000009009", "Robot", bot=True)
COMMANDS = (
    CommandSpec("whatdoyouknow", {"en": "What I remember about you", "zh": "我记得你的哪些事"}),
    CommandSpec("forget", {"en": "Forget something", "zh": "忘掉某件事"}),
)
Place = tuple[str, str]


class Time:
    """Seconds that pass only when told to, and only as many as somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._changed = asyncio.Condition()

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        woken = asyncio.get_running_loop().create_future()
        async with self._changed:
            self._sleepers.append((self.now + seconds, woken))
            self._changed.notify_all()
        await woken

    @property
    def sleepers(self) -> int:
        return sum(not woken.done() for _, woken in self._sleepers)

    async def let_pass(self, seconds: float) -> None:
        """Wait until somebody sleeps for exactly this long, then let the time pass."""
        end = self.now + seconds
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(lambda: any(due == end and not woken.done() for due, woken in self._sleepers))
        self.now = end
        for due, woken in self._sleepers:
            if due <= end and not woken.done():
                woken.set_result(None)


@dataclass
class Talk:
    """The adapter at work, and what it has submitted."""

    adapter: DiscordAdapter
    time: Time
    submitted: asyncio.Queue[tuple[Update, Sink]] = field(default_factory=asyncio.Queue)

    async def submit(self, update: Update, sink: Sink) -> None:
        self.submitted.put_nowait((update, sink))

    async def next(self) -> tuple[Update, Sink]:
        async with asyncio.timeout(10):
            return await self.submitted.get()

    async def message(self) -> tuple[Incoming, Sink]:
        update, sink = await self.next()
        assert isinstance(update, Incoming)
        return update, sink


@asynccontextmanager
async def talking(server: DiscordServer) -> AsyncIterator[Talk]:
    """Run an adapter against the server; a failure of the adapter fails the test."""
    time = Time()
    talk = Talk(DiscordAdapter(server.token, clock=time.clock, sleep=time.sleep), time)
    sessions = len(server.identified)
    run = asyncio.create_task(talk.adapter.run(talk.submit, COMMANDS))
    online = asyncio.create_task(server.online(sessions + 1))
    await asyncio.wait({run, online}, return_when=asyncio.FIRST_COMPLETED)
    assert not run.done(), run.exception()
    yield talk
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


@pytest.fixture
async def discord() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as server:
        with server.reached():
            yield server


@pytest.fixture
def place(discord: DiscordServer) -> Place:
    return discord.guild("general")


@pytest.fixture
async def talk(discord: DiscordServer, place: Place) -> AsyncIterator[Talk]:
    async with talking(discord) as running:
        yield running


# Private chats


async def test_a_private_message_is_submitted_whole_and_answered(discord: DiscordServer, talk: Talk) -> None:
    number = await discord.say(MARA, "我对花粉过敏")
    message, sink = await talk.message()

    assert message == Incoming(
        chat=ChatRef("discord", f"dm:{MARA.id}"),
        user_id=MARA.id,
        name="Mara",
        message_id=number,
        text="我对花粉过敏",
        at=datetime(2026, 3, 2, 12, 0, tzinfo=UTC),
    )
    assert await sink.send(Reply("记住了。")) == discord.answers(MARA)[0]["id"]
    assert discord.texts(MARA) == ["记住了。"]


async def test_an_answer_grows_by_the_newest_frame_at_a_bounded_pace(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()

    await sink.show("H")
    await discord.until(lambda: discord.texts(MARA) == ["H"])
    for frame in ("He", "Hel", "Hell", "Hell", ""):
        await sink.show(frame)
    await talk.time.let_pass(FRAME_PAUSE)
    await discord.until(lambda: discord.texts(MARA) == ["Hell"])
    await sink.show("Hello, wor")
    await sink.send(Reply("Hello, world"))

    assert discord.texts(MARA) == ["Hello, world"]
    assert [request.body["content"] for request in discord.sent("POST .*/messages|PATCH")] == [
        "H",
        "Hell",
        "Hello, world",
    ]


async def test_a_final_text_that_is_already_shown_is_not_sent_again(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.show("Hello")
    await discord.until(lambda: discord.texts(MARA) == ["Hello"])

    number = await sink.send(Reply("Hello"))

    assert number == discord.answers(MARA)[0]["id"]
    assert discord.sent("PATCH") == []


async def test_a_frame_on_the_wire_never_lands_after_the_final_text(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    released = asyncio.Event()
    discord.fault("POST .*/messages", hold=released)
    await sink.show("Hel")
    await discord.until(lambda: len(discord.sent("POST .*/messages")) == 1)

    final = asyncio.create_task(sink.send(Reply("Hello")))
    await asyncio.sleep(0)
    released.set()
    await final

    assert discord.texts(MARA) == ["Hello"]


async def test_a_long_answer_comes_in_parts_that_join_to_the_whole(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.show("汉" * 1_990)
    await discord.until(lambda: len(discord.texts(MARA)) == 1)

    number = await sink.send(Reply("汉" * 2_001, buttons=(Button("b", "ok"),)))

    parts = discord.texts(MARA)
    assert len(parts) == 2
    assert discord.answers(MARA)[1]["id"] == number
    assert "".join(parts) == "汉" * 2_001
    assert [bool(message["components"]) for message in discord.answers(MARA)] == [False, True]


async def test_an_answer_grows_over_several_messages_and_leaves_none_too_many(
    discord: DiscordServer, talk: Talk
) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.show("字" * 4_100)
    await discord.until(lambda: len(discord.texts(MARA)) == 3)

    number = await sink.send(Reply("短" * 2_001))

    assert "".join(discord.texts(MARA)) == "短" * 2_001
    assert [answer["id"] for answer in discord.answers(MARA)][1:] == [number]


async def test_two_replies_to_one_message_are_two_messages(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.send(Reply("one"))
    await sink.show("t")
    await discord.until(lambda: discord.texts(MARA) == ["one", "t"])
    await sink.send(Reply("two"))

    assert discord.texts(MARA) == ["one", "two"]


@pytest.mark.parametrize("blank", ["", "   \n", "\u200b\u2060", "** **"])
async def test_a_blank_reply_is_refused_here_and_not_by_discord(discord: DiscordServer, talk: Talk, blank: str) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.show(blank)

    with pytest.raises(DeliveryError) as refused:
        await sink.send(Reply(blank))

    assert not refused.value.unknown
    assert discord.sent("POST .*/messages") == []


async def test_a_lone_surrogate_does_not_stop_an_answer(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.send(Reply("so\ud83d"))

    assert discord.texts(MARA) == ["so\ufffd"]


async def test_a_message_without_text_is_still_a_message(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "")
    message, _ = await talk.message()

    assert message.text == ""


async def test_forwarded_words_are_not_the_senders_own(discord: DiscordServer, talk: Talk) -> None:
    words = {"content": "I moved to Lisbon", "embeds": [], "attachments": [], "mentions": [], "type": 0, "flags": 0}
    words |= {"timestamp": "2026-03-01T12:00:00+00:00", "edited_timestamp": None}
    reference = {"type": 1, "channel_id": "1", "message_id": "2"}
    await discord.say(MARA, "", message_reference=reference, message_snapshots=[{"message": words}])
    message, _ = await talk.message()

    assert (message.text, message.forward_from, message.reply_to) == ("I moved to Lisbon", "?", None)


# Delivery when things go wrong


async def test_a_send_of_unknown_outcome_is_repeated_and_shown_once(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    discord.fault("POST .*/messages", lost=True)

    sending = asyncio.create_task(sink.send(Reply("Hello")))
    await talk.time.let_pass(0.5)
    await sending

    assert len(discord.sent("POST .*/messages")) == 2
    assert discord.texts(MARA) == ["Hello"]


async def test_the_final_text_replaces_a_frame_whose_arrival_was_unknown(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    discord.fault("POST .*/messages", lost=True)
    await sink.show("Hel")
    await discord.until(lambda: discord.texts(MARA) == ["Hel"])

    await sink.send(Reply("Hello", buttons=(Button("b", "ok"),)))

    assert discord.texts(MARA) == ["Hello"]
    assert discord.answers(MARA)[0]["components"]


async def test_an_unconfirmed_reply_that_is_sent_again_is_not_doubled(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    discord.fault("POST .*/messages", lost=True, times=4)

    sending = asyncio.create_task(sink.send(Reply("Hello")))
    for pause in (0.5, 1.0, 2.0):
        await talk.time.let_pass(pause)
    with pytest.raises(DeliveryError) as unconfirmed:
        await sending
    await sink.send(Reply("Hello"))

    assert unconfirmed.value.unknown
    assert discord.texts(MARA) == ["Hello"]


async def test_a_closed_private_chat_is_a_known_failure(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    discord.unreachable.add(discord.channel_of(MARA))

    with pytest.raises(DeliveryError, match="Cannot send messages") as refused:
        await sink.send(Reply("Hello"))

    assert not refused.value.unknown


async def test_an_answer_deleted_while_it_grew_is_delivered_all_the_same(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.show("Hel")
    await discord.until(lambda: discord.texts(MARA) == ["Hel"])
    del discord.messages[discord.answers(MARA)[0]["id"]]

    await sink.send(Reply("Hello"))

    assert discord.texts(MARA) == ["Hello"]


async def test_a_rate_limit_is_waited_out_and_holds_up_no_other_chat(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, to_mara = await talk.message()
    await discord.say(TOMAS, "hi")
    _, to_tomas = await talk.message()
    discord.fault(f"POST /channels/{discord.channel_of(MARA)}/messages", retry_after=0.3, times=2)

    waiting = asyncio.create_task(to_mara.send(Reply("Hello Mara")))
    await discord.until(lambda: len(discord.sent("POST .*/messages")) == 1)
    await to_tomas.send(Reply("Hello Tomas"))
    assert not waiting.done()
    await waiting

    assert discord.texts(MARA) == ["Hello Mara"]
    assert discord.texts(TOMAS) == ["Hello Tomas"]


async def test_a_refused_frame_is_dropped_and_the_final_text_arrives(
    discord: DiscordServer, talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    discord.fault("POST .*/messages", status=403, body={"code": 50013, "message": "Missing Permissions"})
    await sink.show("Hel")
    await discord.until(lambda: len(discord.sent("POST .*/messages")) == 1)

    await sink.send(Reply("Hello"))

    assert discord.texts(MARA) == ["Hello"]
    assert "lost a frame" in caplog.text


async def test_the_typing_sign_lasts_until_the_answer(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    for _ in range(3):
        await talk.time.let_pass(TYPING_PAUSE)
    await discord.until(lambda: len(discord.sent("typing")) == 4)
    await sink.send(Reply("Hello"))

    assert talk.time.sleepers == 0


async def test_the_typing_sign_ends_when_there_will_be_no_answer(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await talk.time.let_pass(TYPING_PAUSE)
    await discord.until(lambda: len(discord.sent("typing")) == 2)
    await sink.done()
    await discord.say(TOMAS, "hi")
    await (await talk.message())[1].send(Reply("hello"))

    assert talk.time.sleepers == 0


async def test_the_typing_sign_ends_by_itself_too(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    signs = int(TYPING_END / TYPING_PAUSE)
    for _ in range(signs):
        await talk.time.let_pass(TYPING_PAUSE)
    await discord.say(TOMAS, "hi")
    await discord.until(lambda: bool(discord.sent(f"/{discord.channel_of(TOMAS)}/typing")))

    assert len(discord.sent(f"/{discord.channel_of(MARA)}/typing")) == signs


# Servers


async def test_a_server_channel_is_heard_only_when_the_bot_is_addressed(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    await discord.say(MARA, "nice weather everyone", place=place)
    await discord.say(ROBOT, f"<@{discord.bot.id}> hello from a bot", place=place)
    await discord.say(MARA, f"<@{discord.bot.id}> hello", place=place)
    message, sink = await talk.message()
    await sink.send(Reply("hi"))

    assert message.chat == ChatRef("discord", f"guild:{place[0]}/{place[1]}", private=False)
    assert message.text == "hello"
    assert discord.answers(place[1])[0]["message_reference"]["message_id"] == int(message.message_id)
    assert talk.submitted.empty()


async def test_a_server_the_bot_does_not_know_of_is_not_taken_for_a_private_chat(
    discord: DiscordServer, talk: Talk
) -> None:
    unknown = (discord.snowflake(), discord.snowflake())
    await discord.say(MARA, "nice weather everyone", place=unknown)
    await discord.say(MARA, f"<@{discord.bot.id}> hello", place=unknown)
    message, _ = await talk.message()

    assert message.chat == ChatRef("discord", f"guild:{unknown[0]}/{unknown[1]}", private=False)


async def test_what_nobody_wrote_is_not_heard(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "", type=6)
    await discord.say(MARA, "from a webhook", webhook_id="900000000000005005")
    await discord.say(MARA, "hello")

    assert (await talk.message())[0].text == "hello"


@pytest.mark.parametrize("form", ["<@{}>", "<@!{}>"])
async def test_the_bots_mention_is_removed_and_others_are_names(
    discord: DiscordServer, talk: Talk, place: Place, form: str
) -> None:
    text = f"{form.format(discord.bot.id)} 帮我问 {form.format(TOMAS.id)} 在不在"
    await discord.say(MARA, text, place=place, mentions=(TOMAS,))
    message, sink = await talk.message()
    await sink.show(f"@everyone <@{TOMAS.id}>")
    await discord.until(lambda: len(discord.answers(place[1])) == 1)
    await sink.send(Reply(f"@everyone @here <@{TOMAS.id}> <@&{place[0]}> 在吗？"))

    assert message.text == "帮我问 @Tomas 在不在"
    [answer] = discord.answers(place[1])
    assert answer["pings"] == []
    assert [request.body["allowed_mentions"] for request in discord.sent("POST .*/messages|PATCH")] == [
        {"parse": [], "replied_user": True}
    ] * 2


async def test_a_reply_to_the_bot_addresses_it_and_quotes_it(discord: DiscordServer, talk: Talk, place: Place) -> None:
    await discord.say(MARA, f"<@{discord.bot.id}> plans?", place=place)
    _, sink = await talk.message()
    answer = await sink.send(Reply("One: train. Two: car."))
    await discord.say(MARA, "tell me more about two", place=place, reply_to=answer)
    message, _ = await talk.message()

    assert message.reply_to is not None
    assert message.reply_to.text == "One: train. Two: car."
    assert (message.reply_to.user_id, message.reply_to.message_id) == (discord.bot.id, answer)


async def test_a_question_deleted_meanwhile_is_answered_all_the_same(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    number = await discord.say(MARA, f"<@{discord.bot.id}> hello", place=place)
    _, sink = await talk.message()
    del discord.messages[number]
    await sink.send(Reply("hi"))

    assert discord.texts(place[1]) == ["hi"]


async def test_a_quoted_message_keeps_its_author(discord: DiscordServer, talk: Talk, place: Place) -> None:
    quoted = await discord.say(TOMAS, "我打算下个月搬去里斯本", place=place)
    await discord.say(MARA, f"<@{discord.bot.id}> 你怎么看？", place=place, reply_to=quoted)
    message, _ = await talk.message()

    assert message.text == "你怎么看？"
    assert message.reply_to is not None
    assert (message.reply_to.name, message.reply_to.user_id) == ("Tomas", TOMAS.id)
    assert message.reply_to.text == "我打算下个月搬去里斯本"


async def test_a_reply_to_a_message_that_is_gone_is_no_error(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "and this?", reply_to="900000000000123456")
    message, _ = await talk.message()

    assert message.reply_to is not None
    assert (message.reply_to.text, message.reply_to.message_id) == ("", "900000000000123456")


async def test_a_private_reply_leaves_a_server_for_the_private_chat(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    await discord.say(MARA, f"<@{discord.bot.id}> /whatdoyouknow", place=place)
    _, sink = await talk.message()
    await sink.send(Reply("You are allergic to pollen.", private=True))

    assert discord.texts(place[1]) == []
    assert discord.texts(MARA) == ["You are allergic to pollen."]


@pytest.mark.parametrize("private", [False, True])
async def test_a_public_thread_belongs_to_its_channel_and_a_private_one_to_itself(
    discord: DiscordServer, *, private: bool
) -> None:
    guild, thread = discord.guild("general", thread="a thread", private_thread=private)
    async with talking(discord) as talk:
        await discord.say(MARA, f"<@{discord.bot.id}> hi", place=(guild, thread))
        message, sink = await talk.message()
        await sink.send(Reply("hi"))
        await talk.adapter.notify(message.chat, Reply("and a receipt"))

    parent = discord.channels(guild)[0]
    expected = (
        ChatRef("discord", f"guild:{guild}/{thread}", private=False)
        if private
        else ChatRef("discord", f"guild:{guild}/{parent}", private=False, thread=thread)
    )
    assert message.chat == expected
    assert discord.texts(thread) == ["hi", "and a receipt"]


async def test_an_edit_is_ignored_and_harms_nothing(discord: DiscordServer, talk: Talk) -> None:
    number = await discord.say(MARA, "hi")
    await discord.dispatch("MESSAGE_UPDATE", discord.messages[number] | {"content": "hi!"})
    await discord.dispatch("MESSAGE_DELETE", {"id": number, "channel_id": discord.channel_of(MARA)})
    await discord.say(MARA, "still there?")

    assert [(await talk.message())[0].text for _ in range(2)] == ["hi", "still there?"]
    assert talk.submitted.empty()


# Slash commands and buttons


async def test_a_slash_command_is_deferred_first_and_answered_to_the_caller_alone(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    used = await discord.slash(MARA, "whatdoyouknow", place=place, locale="zh-CN")
    message, sink = await talk.message()

    assert used.acknowledged == 5
    assert used.ephemeral
    assert (message.text, message.language, message.message_id) == ("/whatdoyouknow", "zh-CN", used.id)
    assert message.chat == ChatRef("discord", f"guild:{place[0]}/{place[1]}", private=False)

    discord.advance(8)
    await sink.send(Reply("字" * 4_100, buttons=(Button("page:2", "下一页"),), private=True))
    answers = discord.answers(place[1])
    assert "".join(answer["content"] for answer in answers) == "字" * 4_100
    assert [answer["flags"] for answer in answers] == [EPHEMERAL] * 3
    assert [bool(answer["components"]) for answer in answers] == [False, False, True]


async def test_a_slash_command_in_private_is_answered_in_the_open(discord: DiscordServer, talk: Talk) -> None:
    used = await discord.slash(MARA, "forget", "my phone number")
    message, sink = await talk.message()
    await sink.show("Look")
    await sink.send(Reply("Looking done @everyone"))
    await sink.send(Reply(f"And <@{TOMAS.id}> more"))

    assert message.text == "/forget my phone number"
    assert message.chat == ChatRef("discord", f"dm:{MARA.id}")
    assert not used.ephemeral
    assert discord.texts(MARA) == ["Looking done @everyone", f"And <@{TOMAS.id}> more"]
    assert [answer["pings"] for answer in discord.answers(MARA)] == [[], []]


async def test_a_command_whose_acknowledgement_is_refused_is_not_run(
    discord: DiscordServer, talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    discord.fault("/callback", status=404, body={"code": 10062, "message": "Unknown interaction"})
    await discord.slash(MARA, "forget", "电话")
    await discord.until(lambda: len(discord.sent("/callback")) == 1)
    await discord.say(MARA, "hi")
    message, sink = await talk.message()
    await sink.send(Reply("hello"))

    assert message.text == "hi"
    assert talk.submitted.empty()
    assert "is not run" in caplog.text


async def test_a_command_delivered_twice_is_run_once(discord: DiscordServer, talk: Talk) -> None:
    await discord.slash(MARA, "forget", "电话")
    await talk.message()
    await discord.dispatch("INTERACTION_CREATE", discord.events[-1]["d"])
    await discord.until(lambda: len(discord.sent("/callback")) == 2)
    await discord.say(MARA, "hi")
    message, _ = await talk.message()

    assert message.text == "hi"
    assert talk.submitted.empty()


async def test_the_deferred_answer_survives_a_lost_connection(discord: DiscordServer, talk: Talk) -> None:
    await discord.slash(MARA, "whatdoyouknow")
    _, sink = await talk.message()
    discord.fault("PATCH /webhooks", lost=True)
    sending = asyncio.create_task(sink.send(Reply("All I know")))
    await talk.time.let_pass(0.5)
    await sending

    assert discord.texts(MARA) == ["All I know"]


async def test_a_follow_up_of_unknown_outcome_is_not_repeated(discord: DiscordServer, talk: Talk) -> None:
    await discord.slash(MARA, "whatdoyouknow")
    _, sink = await talk.message()
    discord.fault("POST /webhooks", lost=True)

    with pytest.raises(DeliveryError) as unconfirmed:
        await sink.send(Reply("字" * 2_500))

    assert unconfirmed.value.unknown
    assert "".join(discord.texts(MARA)) == "字" * 2_500


async def test_a_growing_answer_makes_no_follow_up_that_could_come_twice(discord: DiscordServer, talk: Talk) -> None:
    await discord.slash(MARA, "whatdoyouknow")
    _, sink = await talk.message()
    discord.fault("POST /webhooks", lost=True)
    await sink.show("字" * 4_100)
    await discord.until(lambda: len(discord.texts(MARA)) == 1)
    await sink.show("字" * 4_200)
    await talk.time.let_pass(FRAME_PAUSE)

    with pytest.raises(DeliveryError):
        await sink.send(Reply("字" * 4_000))

    assert "".join(discord.texts(MARA)) == "字" * 4_000


async def test_a_press_is_acknowledged_and_names_who_pressed(discord: DiscordServer, talk: Talk, place: Place) -> None:
    await discord.say(MARA, f"<@{discord.bot.id}> /forget 电话", place=place)
    _, sink = await talk.message()
    number = await sink.send(Reply("Forget this?", buttons=(Button("f:1:yes", "Yes"), Button("f:1:no", "No"))))
    assert number is not None

    pressed = await discord.press(TOMAS, number, "Yes", place=place)
    press, sink = await talk.next()
    await sink.send(Reply("These are not your memories."))

    assert press == Press(
        chat=ChatRef("discord", f"guild:{place[0]}/{place[1]}", private=False),
        user_id=TOMAS.id,
        name="Tomas",
        button_id="f:1:yes",
        at=datetime(2026, 3, 2, 12, 0, tzinfo=UTC),
        language="en-US",
    )
    assert pressed.acknowledged == 6
    assert discord.texts(place[1]) == ["Forget this?", "These are not your memories."]
    assert discord.answers(place[1])[1]["flags"] == EPHEMERAL


async def test_buttons_work_after_a_restart(discord: DiscordServer) -> None:
    async with talking(discord) as before:
        await discord.say(MARA, "/forget 电话")
        _, sink = await before.message()
        number = await sink.send(Reply("Forget this?", buttons=(Button("f:1:yes", "Yes"),)))
        assert number is not None
        assert before.adapter._client is not None
        assert before.adapter._client.persistent_views == []
    async with talking(discord) as after:
        await discord.press(MARA, number, "Yes")
        press, sink = await after.next()
        await sink.send(Reply("Forgotten."))

    assert isinstance(press, Press)
    assert press.button_id == "f:1:yes"
    assert discord.texts(MARA) == ["Forget this?", "Forgotten."]


async def test_commands_are_registered_in_each_language(discord: DiscordServer, talk: Talk) -> None:
    await discord.until(lambda: len(discord.commands) == 2)
    forget = discord.commands[1]

    assert forget["name"] == "forget"
    assert forget["description"] == "Forget something"
    assert forget["description_localizations"] == {"zh-CN": "忘掉某件事", "zh-TW": "忘掉某件事"}
    assert forget["contexts"] == [0, 1]
    assert forget["options"][0]["name"] == "text"


async def test_commands_are_registered_again_only_when_they_changed(discord: DiscordServer) -> None:
    for _ in range(2):
        async with talking(discord):
            await discord.until(lambda: len(discord.commands) == 2 and len(discord.sent("GET .*/commands")) > 0)
    assert len(discord.sent("PUT")) == 1

    discord.commands[0]["description_localizations"]["zh-CN"] = "从前的说法"
    async with talking(discord):
        await discord.until(lambda: len(discord.sent("PUT")) == 2)
    assert discord.commands[0]["description_localizations"]["zh-CN"] == "我记得你的哪些事"


async def test_refused_commands_do_not_stop_the_bot(discord: DiscordServer, caplog: pytest.LogCaptureFixture) -> None:
    discord.fault("PUT", status=400, body={"code": 30034, "message": "daily limit reached"})
    async with talking(discord) as talk:
        await discord.until(lambda: len(discord.sent("PUT")) == 1)
        await discord.say(MARA, "hi")
        _, sink = await talk.message()
        await sink.send(Reply("hello"))

    assert discord.texts(MARA) == ["hello"]
    assert "daily limit" in caplog.text


# Connection


async def test_a_reconnect_resumes_and_loses_nothing(discord: DiscordServer, talk: Talk) -> None:
    await discord.reconnect()
    await discord.say(MARA, "said in between")
    message, sink = await talk.message()
    await discord.until(lambda: discord.resumed == 1)
    await sink.send(Reply("heard"))

    assert message.text == "said in between"
    assert discord.texts(MARA) == ["heard"]
    assert len(discord.identified) == 1


async def test_an_invalid_session_is_identified_anew(
    discord: DiscordServer, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def at_once(*_: object, **__: object) -> None: ...

    monkeypatch.setattr(sdk.Client, "before_identify_hook", at_once)
    await discord.invalidate()
    await discord.online(2)
    await discord.say(MARA, "hi")

    assert (await talk.message())[0].text == "hi"


async def test_a_malformed_event_ends_neither_the_bot_nor_an_answer_under_way(
    discord: DiscordServer, talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    await discord.say(MARA, "before")
    _, sink = await talk.message()
    await sink.show("Half")
    await discord.dispatch("MESSAGE_CREATE", {"channel_id": "not a number"})
    await sink.send(Reply("Half and half"))
    await talk.time.let_pass(1.0)
    await discord.online(2)
    await discord.say(MARA, "after")

    assert (await talk.message())[0].text == "after"
    assert discord.texts(MARA) == ["Half and half"]
    assert discord.connections == 1
    assert "connecting again" in caplog.text


async def test_a_login_that_fails_in_passing_is_tried_again(discord: DiscordServer) -> None:
    time = Time()
    adapter = DiscordAdapter(discord.token, clock=time.clock, sleep=time.sleep)
    discord.fault("GET /users/@me", lost=True, times=2)  # aiohttp repeats a GET by itself
    talk = Talk(adapter, time)
    run = asyncio.create_task(adapter.run(talk.submit, ()))
    await time.let_pass(1.0)
    await discord.online()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def _fails(discord: DiscordServer, token: str) -> str:
    talk = Talk(DiscordAdapter(token), Time())
    with pytest.raises(AdapterError) as failed:
        async with asyncio.timeout(10):
            await talk.adapter.run(talk.submit, COMMANDS)
    assert token not in str(failed.value)
    return str(failed.value)


async def test_a_wrong_token_says_where_to_find_the_right_one(discord: DiscordServer) -> None:
    words = await _fails(discord, "a-wrong-token")

    assert "DISCORD_BOT_TOKEN" in words
    assert "page Bot" in words


async def test_a_missing_intent_names_the_page_and_the_switch(discord: DiscordServer) -> None:
    discord.content_intent = False
    words = await _fails(discord, discord.token)

    assert "page Bot" in words
    assert "Message Content Intent" in words


@pytest.mark.parametrize(("code", "words"), [(4004, "DISCORD_BOT_TOKEN"), (4011, "4011")])
async def test_a_connection_closed_for_good_ends_with_the_reason(discord: DiscordServer, code: int, words: str) -> None:
    talk = Talk(DiscordAdapter(discord.token), Time())
    run = asyncio.create_task(talk.adapter.run(talk.submit, ()))
    await discord.online()
    await discord.close_gateway(code)

    with pytest.raises(AdapterError, match=words):
        await run


async def test_a_stop_during_an_answer_is_clean_and_the_answer_learns_of_it(
    discord: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with talking(discord) as talk:
        await discord.say(MARA, "hi")
        _, sink = await talk.message()
        await sink.show("Hel")
        await discord.until(lambda: discord.texts(MARA) == ["Hel"])
        await sink.show("Hell")

    await sink.show("Hello")
    assert [task for task in asyncio.all_tasks() if "adapters" in repr(task)] == []
    with pytest.raises(DeliveryError):
        await sink.send(Reply("Hello"))
    await sink.done()
    assert discord.texts(MARA) == ["Hel"]
    assert caplog.records == []


async def test_a_stop_under_a_rate_limited_answer_is_a_delivery_error(discord: DiscordServer) -> None:
    async with talking(discord) as talk:
        await discord.say(MARA, "hi")
        _, sink = await talk.message()
        discord.fault("POST .*/messages", retry_after=0.1)
        sending = asyncio.create_task(sink.send(Reply("Hello")))
        await discord.until(lambda: len(discord.sent("POST .*/messages")) == 1)

    with pytest.raises(DeliveryError) as stopped:
        await sending
    assert stopped.value.unknown


# What nobody asked for, and check


async def test_a_receipt_reaches_the_private_chat_and_the_channel(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    await talk.adapter.notify(ChatRef("discord", f"dm:{MARA.id}"), Reply("Erased.", private=True))
    await talk.adapter.notify(ChatRef("discord", f"guild:{place[0]}/{place[1]}", private=False), Reply("Moved."))

    assert discord.texts(MARA) == ["Erased."]
    assert discord.texts(place[1]) == ["Moved."]


async def test_a_private_receipt_is_never_shown_in_a_channel(discord: DiscordServer, talk: Talk, place: Place) -> None:
    chat = ChatRef("discord", f"guild:{place[0]}/{place[1]}", private=False)
    with pytest.raises(DeliveryError):
        await talk.adapter.notify(chat, Reply("Erased.", private=True))

    assert discord.texts(place[1]) == []


async def test_a_receipt_without_a_connection_is_a_delivery_error() -> None:
    with pytest.raises(DeliveryError):
        await DiscordAdapter("token").notify(ChatRef("discord", "dm:1"), Reply("Erased."))


async def test_check_returns_the_name_of_the_bot(discord: DiscordServer) -> None:
    assert "recollect" in await check(discord.token)


async def _break_token(discord: DiscordServer) -> None:
    discord.token = "another"


async def _break_intent(discord: DiscordServer) -> None:
    discord.content_intent = False


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
