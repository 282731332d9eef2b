from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from telegram.error import RetryAfter
from telegram.warnings import PTBDeprecationWarning

from bot.adapters.telegram import Pace, TelegramAdapter, _seconds, check
from bot.message import (
    Adapter,
    AdapterError,
    Button,
    ChatRef,
    CommandSpec,
    DeliveryError,
    Incoming,
    Press,
    Quote,
    Reply,
    Sink,
    Update,
)
from tests.conftest import Clock
from tests.servers.telegram_server import DATE, TelegramServer, units

ANNA, BERT = 1001, 1002
GROUP = -500
SAID_AT = datetime.fromtimestamp(DATE, UTC)
MENU = (
    CommandSpec("help", {"en": "What I can do", "zh": "我能做什么"}),
    CommandSpec("forget", {"en": "Forget something", "zh": "忘掉一件事"}),
)


class Time:
    """Seconds that pass only when told to; whoever sleeps is woken when their time has come."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sleepers: list[tuple[float, float, asyncio.Future[None]]] = []
        self._news = asyncio.Event()

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.sleepers.append((self.now + seconds, seconds, woken))
        self._news.set()
        await woken

    async def somebody_sleeps(self, seconds: float) -> None:
        """Wait until somebody sleeps for that long."""
        async with asyncio.timeout(5):
            while not any(abs(length - seconds) < 1e-6 for _, length, woken in self.sleepers if not woken.done()):
                self._news.clear()
                await self._news.wait()

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for moment, _, woken in self.sleepers:
            if moment <= self.now and not woken.done():
                woken.set_result(None)
        self.sleepers = [sleeper for sleeper in self.sleepers if not sleeper[2].done()]


@dataclass
class Desk:
    """Where updates arrive: the conversation's side of an adapter."""

    updates: asyncio.Queue[tuple[Update, Sink]] = field(default_factory=asyncio.Queue)

    async def submit(self, update: Update, sink: Sink) -> None:
        await self.updates.put((update, sink))

    async def next(self) -> tuple[Update, Sink]:
        return await asyncio.wait_for(self.updates.get(), 5)

    async def message(self) -> tuple[Incoming, Sink]:
        update, sink = await self.next()
        assert isinstance(update, Incoming)
        return update, sink


class World:
    """A platform, the bot on it, and a clock both go by."""

    def __init__(self, server: TelegramServer, time: Time, clock: Clock) -> None:
        self.server = server
        self.time = time
        self.clock = clock
        self.desk = Desk()

    def adapter(self, token: str | None = None) -> Adapter:
        pace = Pace(long_poll=1, poll_pause=0.01, monotonic=self.time, sleep=self.time.sleep)
        return TelegramAdapter(
            token or self.server.token, clock=self.clock, base_url=self.server.base_url + "/", pace=pace
        )

    def start(self, commands: tuple[CommandSpec, ...] = (), token: str | None = None) -> asyncio.Task[None]:
        return asyncio.create_task(self.adapter(token).run(self.desk.submit, commands))

    @asynccontextmanager
    async def running(self, commands: tuple[CommandSpec, ...] = ()) -> AsyncIterator[Adapter]:
        adapter, polls = self.adapter(), len(self.server.sent("getUpdates"))
        running = asyncio.create_task(adapter.run(self.desk.submit, commands))
        try:
            await self.server.until(lambda: len(self.server.sent("getUpdates")) > polls or running.done())
            yield adapter
        finally:
            await stop(running)

    async def asked(self, text: str = "hello", user_id: int = ANNA) -> Sink:
        """Have somebody write and return where the answer goes."""
        self.server.say(user_id, text)
        _, sink = await self.desk.message()
        return sink


async def stop(running: asyncio.Task[None]) -> None:
    running.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(running), 10)


@pytest.fixture
async def world(clock: Clock) -> AsyncIterator[World]:
    time = Time()
    async with TelegramServer(clock=time) as server:
        yield World(server, time, clock)


@pytest.fixture
async def here(world: World) -> AsyncIterator[World]:
    """A world in which the bot is up."""
    async with world.running():
        yield world


# A private chat


async def test_a_private_message_arrives_whole_and_is_answered(here: World) -> None:
    number = here.server.say(ANNA, "我对花粉过敏 😀", user={"last_name": "Li", "language_code": "zh-hans"})
    incoming, sink = await here.desk.message()
    assert incoming == Incoming(
        chat=ChatRef("telegram", "dm:1001"),
        user_id="1001",
        name="User 1001 Li",
        message_id=str(number),
        text="我对花粉过敏 😀",
        at=SAID_AT,
        language="zh-hans",
    )
    answered = await sink.send(Reply("记住了"))
    assert here.server.chat(ANNA).texts == ["记住了"]
    assert answered == str(here.server.chat(ANNA).ours[0]["message_id"])


async def test_messages_arrive_in_the_order_they_were_written(here: World) -> None:
    for number in range(20):
        here.server.say(ANNA if number % 2 else BERT, f"message {number}")
    assert [(await here.desk.message())[0].text for _ in range(20)] == [f"message {n}" for n in range(20)]


async def test_an_answer_grows_by_edits_and_ends_with_the_whole_text_once(here: World) -> None:
    sink = await here.asked()
    for frame in ("", "  ", "H"):
        await sink.show(frame)
    await here.server.until(lambda: here.server.chat(ANNA).texts == ["H"])
    for frame in ("He", "Hel", "Hell"):
        await sink.show(frame)
    await here.time.somebody_sleeps(1.0)
    here.time.advance(1.0)
    await here.server.until(lambda: here.server.chat(ANNA).texts == ["Hell"])
    await sink.show("Hello")
    await here.time.somebody_sleeps(1.0)
    await sink.send(Reply("Hello!"))
    here.time.advance(1.0)
    await here.asked("and me?", BERT)
    assert here.server.chat(ANNA).texts == ["Hello!"]
    shown = [request.params["text"] for request in here.server.requests if "text" in request.params]
    assert shown == ["H", "Hell", "Hello!"]


async def test_a_frame_that_changes_nothing_is_not_sent(here: World) -> None:
    sink = await here.asked()
    await sink.show("Hello")
    await here.server.until(lambda: here.server.chat(ANNA).texts == ["Hello"])
    await sink.show("Hello ")
    await here.time.somebody_sleeps(1.0)
    here.time.advance(1.0)
    await sink.send(Reply("Hello\n"))
    assert not here.server.sent("editMessageText")


async def test_a_final_text_waits_for_the_frame_under_way(here: World) -> None:
    sink = await here.asked()
    held = here.server.fault("sendMessage", hold=asyncio.Event())
    await sink.show("Hel")
    await here.server.until(lambda: bool(here.server.sent("sendMessage")) or held.times == 0)
    final = asyncio.create_task(sink.send(Reply("Hello")))
    await asyncio.sleep(0)
    assert held.hold is not None
    held.hold.set()
    await final
    assert here.server.chat(ANNA).texts == ["Hello"]
    assert len(here.server.sent("sendMessage")) == 1


@pytest.mark.parametrize(
    ("text", "parts"),
    [("😀" * 3_000, 2), ("👩‍👩‍👧‍👦" * 500, 2), ("a" * 4_096, 1), ("汉" * 4_097, 2)],
    ids=["emoji", "families", "letters", "Han"],
)
async def test_a01_a_long_answer_arrives_in_parts_that_join_to_it(here: World, text: str, parts: int) -> None:
    sink = await here.asked("give me emoji")
    await sink.send(Reply(text))
    texts = here.server.chat(ANNA).texts
    assert len(texts) == parts
    assert "".join(texts) == text
    assert all(units(part) <= 4_096 and not part.startswith("\u200d") for part in texts)


async def test_a_growing_answer_goes_on_in_a_second_message(here: World) -> None:
    sink = await here.asked()
    await sink.show("a" * 4_000)
    await here.server.until(lambda: len(here.server.chat(ANNA).texts) == 1)
    await sink.show("a" * 4_100)
    await here.time.somebody_sleeps(1.0)
    here.time.advance(1.0)
    await here.server.until(lambda: len(here.server.chat(ANNA).texts) == 2)
    await sink.send(Reply("a" * 9_000))
    assert [len(text) for text in here.server.chat(ANNA).texts] == [4_096, 4_096, 808]


async def test_a_final_text_shorter_than_what_was_shown_leaves_nothing_behind(here: World) -> None:
    sink = await here.asked()
    await sink.show("a" * 5_000)
    await here.server.until(lambda: len(here.server.chat(ANNA).texts) == 2)
    await sink.send(Reply("Sorry, I lost my thread."))
    assert here.server.chat(ANNA).texts == ["Sorry, I lost my thread."]


async def test_a03_hostile_characters_arrive_exactly(here: World) -> None:
    sink = await here.asked("比较一下")
    text = (
        "若 a<b && b>c 则用 `x<y`，见 [doc](https://ex.org/?a=1&b=2) 与 snake_case_name，3 * 4 * 5。**没有收尾 &lt; _*["
    )
    await sink.send(Reply(text))
    assert here.server.chat(ANNA).texts == [text]


async def test_what_no_platform_takes_is_cleaned_out_of_an_answer(here: World) -> None:
    sink = await here.asked()
    await sink.send(Reply("a\ud83d\x00b\ud83d\ude00"))
    assert here.server.chat(ANNA).texts == ["a\ufffdb😀"]


@pytest.mark.parametrize("text", ["", "   \n", "\u200b\u2060", "** **"])
async def test_a06_a_blank_answer_is_never_sent(here: World, text: str) -> None:
    sink = await here.asked("hi")
    await sink.show(text)
    with pytest.raises(DeliveryError) as refusal:
        await sink.send(Reply(text))
    assert not refusal.value.unknown
    assert not here.server.sent("sendMessage")


async def test_a_part_in_which_nothing_can_be_seen_is_left_out(here: World) -> None:
    sink = await here.asked()
    await sink.send(Reply("a" + "\n" * 9_000 + "b"))
    assert [text.strip() for text in here.server.chat(ANNA).texts] == ["a", "b"]


async def test_a_receipt_nobody_asked_for_reaches_its_chat(world: World) -> None:
    world.server.chat(ANNA)
    async with world.running() as adapter:
        await adapter.notify(ChatRef("telegram", "dm:1001"), Reply("Erased."))
    assert world.server.chat(ANNA).texts == ["Erased."]
    with pytest.raises(DeliveryError):
        await adapter.notify(ChatRef("telegram", "dm:1001"), Reply("Erased."))


# Floods and broken connections


async def test_a_flood_on_the_first_send_is_waited_out(here: World) -> None:
    sink = await here.asked()
    here.server.fault("sendMessage", retry_after=3)
    final = asyncio.create_task(sink.send(Reply("hi")))
    await here.time.somebody_sleeps(3.0)
    here.time.advance(3.0)
    await final
    assert here.server.chat(ANNA).texts == ["hi"]
    assert len(here.server.sent("sendMessage")) == 2


async def test_a_flood_amid_the_frames_loses_no_words(here: World) -> None:
    sink = await here.asked()
    await sink.show("One")
    await here.server.until(lambda: here.server.chat(ANNA).texts == ["One"])
    here.server.fault("editMessageText", retry_after=5)
    await sink.show("One two")
    await here.time.somebody_sleeps(1.0)
    here.time.advance(1.0)
    await here.time.somebody_sleeps(5.0)
    await sink.show("One two three")
    here.time.advance(5.0)
    await here.server.until(lambda: here.server.chat(ANNA).texts == ["One two three"])
    await sink.send(Reply("One two three four"))
    assert here.server.chat(ANNA).texts == ["One two three four"]
    assert len(here.server.sent("editMessageText")) == 3


async def test_a_flood_on_the_last_edit_is_waited_out(here: World) -> None:
    sink = await here.asked()
    await sink.show("One")
    await here.server.until(lambda: here.server.chat(ANNA).texts == ["One"])
    here.server.fault("editMessageText", retry_after=7)
    final = asyncio.create_task(sink.send(Reply("One two")))
    await here.time.somebody_sleeps(7.0)
    here.time.advance(7.0)
    await final
    assert here.server.chat(ANNA).texts == ["One two"]


async def test_a_flood_in_one_chat_holds_up_no_other(here: World) -> None:
    anna, bert = await here.asked(user_id=ANNA), await here.asked(user_id=BERT)
    here.server.fault(f'sendMessage {{"chat_id": {ANNA}', retry_after=600)
    waiting = asyncio.create_task(anna.send(Reply("to Anna")))
    await here.time.somebody_sleeps(600.0)
    await bert.send(Reply("to Bert"))
    assert here.server.chat(BERT).texts == ["to Bert"]
    here.time.advance(600.0)
    await waiting
    assert here.server.chat(ANNA).texts == ["to Anna"]


@pytest.mark.parametrize("setting", ["0", "1"])
@pytest.mark.filterwarnings("ignore::telegram.warnings.PTBDeprecationWarning")
def test_both_kinds_of_waits_the_sdk_tells_are_understood(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    assert issubclass(PTBDeprecationWarning, Warning)
    monkeypatch.setenv("PTB_TIMEDELTA", setting)
    assert _seconds(RetryAfter(3)) == _seconds(RetryAfter(timedelta(seconds=3))) == 3.0


@pytest.mark.parametrize("how", [{"drop": True}, {"drop": True, "after": True}, {"status": 502}])
async def test_a_first_send_of_unknown_outcome_is_not_repeated(here: World, how: dict[str, Any]) -> None:
    sink = await here.asked()
    here.server.fault("sendMessage", **how)
    with pytest.raises(DeliveryError) as lost:
        await sink.send(Reply("hi"))
    assert lost.value.unknown
    assert len(here.server.sent("sendMessage")) == 1


async def test_a_first_send_that_never_left_is_made_again(here: World) -> None:
    sink = await here.asked()
    await here.time.somebody_sleeps(4.5)
    async with here.server.outage():
        final = asyncio.create_task(sink.send(Reply("hi")))
        await here.time.somebody_sleeps(1.0)
    here.time.advance(1.0)
    await final
    assert here.server.chat(ANNA).texts == ["hi"]


@pytest.mark.parametrize("after", [False, True])
async def test_a_last_edit_of_unknown_outcome_is_repeated(here: World, after: bool) -> None:  # noqa: FBT001
    sink = await here.asked()
    await sink.show("One")
    await here.server.until(lambda: here.server.chat(ANNA).texts == ["One"])
    here.server.fault("editMessageText", drop=True, after=after)
    final = asyncio.create_task(sink.send(Reply("One two")))
    await here.time.somebody_sleeps(1.0)
    here.time.advance(1.0)
    await final
    assert here.server.chat(ANNA).texts == ["One two"]


async def test_a_last_edit_that_never_gets_through_is_told(here: World) -> None:
    sink = await here.asked()
    await sink.show("One")
    await here.server.until(lambda: here.server.chat(ANNA).texts == ["One"])
    here.server.fault("editMessageText", drop=True, times=9)
    final = asyncio.create_task(sink.send(Reply("One two")))
    for pause in (1.0, 2.0, 4.0):
        await here.time.somebody_sleeps(pause)
        here.time.advance(pause)
    with pytest.raises(DeliveryError) as lost:
        await final
    assert lost.value.unknown


async def test_a_first_frame_of_unknown_outcome_ends_the_frames_but_not_the_answer(here: World) -> None:
    sink = await here.asked()
    here.server.fault("sendMessage", drop=True)
    await sink.show("One")
    await here.server.until(lambda: bool(here.server.sent("sendMessage")))
    await here.asked("and me?", BERT)
    await sink.show("One two")
    await here.asked("and me?", BERT)
    assert len(here.server.sent("sendMessage")) == 1
    await sink.send(Reply("One two three"))
    assert here.server.chat(ANNA).texts == ["One two three"]
    assert not here.server.sent("editMessageText")


async def test_an_answer_whose_message_was_deleted_is_sent_anew(here: World) -> None:
    sink = await here.asked()
    await sink.show("One")
    await here.server.until(lambda: here.server.chat(ANNA).texts == ["One"])
    del here.server.chat(ANNA).messages[here.server.chat(ANNA).ours[0]["message_id"]]
    await sink.send(Reply("One two"))
    assert here.server.chat(ANNA).texts == ["One two"]


async def test_a_person_who_blocked_the_bot_is_not_reached(here: World) -> None:
    sink = await here.asked()
    here.server.chat(ANNA).blocked = True
    await sink.show("One")
    with pytest.raises(DeliveryError) as refusal:
        await sink.send(Reply("One two"))
    assert not refusal.value.unknown


# Typing


async def test_typing_is_shown_until_there_is_something_to_read(here: World) -> None:
    sink = await here.asked()
    await here.time.somebody_sleeps(4.5)
    here.time.advance(4.5)
    await here.server.until(lambda: len(here.server.sent("sendChatAction")) == 2)
    await here.time.somebody_sleeps(4.5)
    await sink.send(Reply("hi"))
    here.time.advance(60)
    await here.asked("again", BERT)
    assert len(here.server.sent(f'sendChatAction {{"chat_id": {ANNA}')) == 2


async def test_typing_ends_after_a_minute_at_most(here: World) -> None:
    await here.asked()
    for _ in range(13):
        await here.time.somebody_sleeps(4.5)
        here.time.advance(4.5)
    await here.asked("and me?", BERT)
    assert len(here.server.sent(f'sendChatAction {{"chat_id": {ANNA}')) == 13


async def test_typing_ends_when_there_will_be_no_answer(here: World) -> None:
    sink = await here.asked()
    await here.time.somebody_sleeps(4.5)
    await sink.done()
    await asyncio.sleep(0)
    assert all(woken.cancelled() for *_, woken in here.time.sleepers)


async def test_a_refused_typing_sign_costs_nothing_else(here: World) -> None:
    here.server.fault("sendChatAction", retry_after=30)
    sink = await here.asked()
    await here.server.until(lambda: bool(here.server.sent("sendChatAction")))
    await sink.send(Reply("hi"))
    assert here.server.chat(ANNA).texts == ["hi"]


# What is no message to us


async def test_an_edited_command_is_not_run(world: World) -> None:
    number = world.server.say(ANNA, "/forget everything")
    world.server.updates.clear()
    edited = dict(world.server.chat(ANNA).messages[number], edit_date=DATE + 5)
    world.server.push({"edited_message": edited})
    world.server.say(ANNA, "still there?")
    async with world.running():
        incoming, _ = await world.desk.message()
    assert incoming.text == "still there?"
    assert world.desk.updates.empty()


async def test_bots_and_messages_without_words_are_passed_over(here: World) -> None:
    here.server.say(BERT, "I am a bot", user={"is_bot": True})
    here.server.say(ANNA, "made by a bot", via_bot=here.server.user(77, is_bot=True, username="other_bot"))
    sticker = {"file_id": "f", "file_unique_id": "u", "type": "regular", "width": 1, "height": 1}
    for media in (
        {"sticker": sticker | {"is_animated": False, "is_video": False}},
        {"voice": {"file_id": "f", "file_unique_id": "u", "duration": 3}},
        {"photo": [{"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1}]},
        {"pinned_message": {"message_id": 1, "date": 0, "chat": {"id": ANNA, "type": "private"}}},
    ):
        here.server.say(ANNA, None, **media)
    here.server.say(ANNA, "hello")
    incoming, _ = await here.desk.message()
    assert incoming.text == "hello"


async def test_a_caption_counts_as_words(here: World) -> None:
    photo = [{"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1}]
    here.server.say(ANNA, None, caption="my cat", photo=photo)
    incoming, _ = await here.desk.message()
    assert incoming.text == "my cat"


async def test_lone_surrogates_and_controls_from_outside_are_made_harmless(here: World) -> None:
    here.server.say(ANNA, "a\ud83db\x00", user={"first_name": "An\ude00na\x07"})
    incoming, _ = await here.desk.message()
    assert (incoming.text, incoming.name) == ("a\ufffdb", "An\ufffdna")


async def test_the_same_update_twice_carries_the_same_message_id(here: World) -> None:
    number = here.server.say(ANNA, "once")
    first, _ = await here.desk.message()
    message = here.server.chat(ANNA).messages[number]
    here.server.push({"message": message})
    second, _ = await here.desk.message()
    assert first == second
    assert second.message_id == str(number)


async def test_quoted_and_forwarded_words_are_marked_as_theirs(here: World) -> None:
    bert = here.server.user(BERT)
    theirs = {"message_id": 7, "date": DATE, "chat": {"id": ANNA, "type": "private"}, "from": bert, "text": "I ski"}
    here.server.say(ANNA, "me too", reply_to_message=theirs)
    here.server.say(ANNA, "me too", reply_to_message=theirs, quote={"text": "ski", "position": 2})
    origin = {"type": "user", "date": DATE, "sender_user": bert}
    here.server.say(ANNA, "I ski", forward_origin=origin)
    hidden = {"type": "hidden_user", "date": DATE, "sender_user_name": "Someone"}
    here.server.say(ANNA, "me too", external_reply={"origin": hidden}, quote={"text": "far", "position": 0})
    whole, part, forwarded, outside = [(await here.desk.message())[0] for _ in range(4)]
    assert whole.reply_to == Quote("I ski", "User 1002", "1002", "7")
    assert part.reply_to == Quote("ski", "User 1002", "1002", "7")
    assert (forwarded.forward_from, forwarded.reply_to, whole.forward_from) == ("User 1002", None, None)
    assert outside.reply_to == Quote("far", "Someone")


# Groups


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("hello everybody", None),
        ("@recollect_bot hello", "hello"),
        ("😀 hey @Recollect_Bot what is up", "😀 hey what is up"),
        ("@other_bot hello", None),
        ("/help", "/help"),
        ("/forget@recollect_bot my phone", "/forget my phone"),
        ("/help@other_bot", None),
        ("/etc/passwd is a file", None),
        ("mail me at anna@recollect_bot.example", None),
    ],
)
async def test_in_a_group_only_what_is_addressed_to_the_bot_is_heard(here: World, text: str, heard: str | None) -> None:
    here.server.group(GROUP)
    here.server.say(ANNA, text, GROUP)
    here.server.say(ANNA, "@recollect_bot over", GROUP)
    incoming, _ = await here.desk.message()
    assert incoming.text == (heard or "over")
    assert incoming.chat == ChatRef("telegram", "group:-500", private=False)


async def test_an_answer_to_the_bot_in_a_group_is_addressed_to_it(here: World) -> None:
    here.server.group(GROUP)
    here.server.say(ANNA, "@recollect_bot hello", GROUP)
    _, sink = await here.desk.message()
    await sink.send(Reply("Yes?"))
    ours = here.server.chat(GROUP).ours[0]
    here.server.say(BERT, "and me", GROUP, reply_to_message=ours, message_thread_id=ours["message_id"])
    incoming, _ = await here.desk.message()
    assert incoming.reply_to == Quote("Yes?", "Recollect", str(here.server.id), str(ours["message_id"]))
    assert incoming.chat.thread is None


async def test_an_answer_stays_in_its_topic_and_points_to_its_question(here: World) -> None:
    here.server.group(GROUP, 42)
    number = here.server.say(ANNA, "/help", GROUP, thread=42)
    incoming, sink = await here.desk.message()
    assert incoming.chat == ChatRef("telegram", "group:-500", private=False, thread="42")
    await sink.send(Reply("Like this."))
    sent = here.server.sent("sendMessage")[-1].params
    assert sent["message_thread_id"] == 42
    assert sent["reply_parameters"]["message_id"] == number


async def test_every_message_in_a_topic_the_bot_made_is_not_an_answer_to_it(here: World) -> None:
    here.server.group(GROUP, 42)
    opened = {
        "message_id": 42,
        "date": DATE,
        "chat": here.server.chat(GROUP).payload(),
        "from": here.server.me,
        "forum_topic_created": {"name": "Trips", "icon_color": 0},
    }
    here.server.say(ANNA, "just talking", GROUP, thread=42, reply_to_message=opened)
    here.server.say(ANNA, "/help", GROUP, thread=42, reply_to_message=opened)
    incoming, _ = await here.desk.message()
    assert (incoming.text, incoming.reply_to) == ("/help", None)


async def test_edits_in_a_group_lie_further_apart(here: World) -> None:
    here.server.group(GROUP)
    here.server.say(ANNA, "/help", GROUP)
    _, sink = await here.desk.message()
    await sink.show("One")
    await here.server.until(lambda: here.server.chat(GROUP).texts == ["One"])
    await sink.show("One two")
    await here.time.somebody_sleeps(4.0)
    await sink.send(Reply("One two three"))
    assert here.server.chat(GROUP).texts == ["One two three"]


# Buttons and menus


async def test_a_pressed_button_arrives_and_is_acknowledged(here: World) -> None:
    sink = await here.asked("/forget phone")
    buttons = (Button("forget:yes:1", "Yes"), Button("forget:no:1", "No"), Button("好" * 21, "Later"))
    await sink.show("Forget")
    answered = await sink.send(Reply("Forget your phone number?", buttons))
    assert answered is not None
    here.server.press(ANNA, int(answered), "forget:yes:1")
    press, sink = await here.desk.next()
    assert press == Press(
        ChatRef("telegram", "dm:1001"), "1001", "User 1001", "forget:yes:1", here.clock(), language="en"
    )
    await here.server.until(lambda: bool(here.server.sent("answerCallbackQuery")))
    await sink.send(Reply("Hidden."))
    assert here.server.chat(ANNA).texts == ["Forget your phone number?", "Hidden."]


async def test_a_press_answered_too_late_still_counts(here: World) -> None:
    sink = await here.asked()
    answered = await sink.send(Reply("Sure?", (Button("yes", "Yes"),)))
    here.server.press(ANNA, int(answered or 0), "yes")
    here.time.advance(60)
    press, _ = await here.desk.next()
    assert isinstance(press, Press)


async def test_menus_are_written_once_for_each_language(world: World) -> None:
    async with world.running(MENU):
        pass
    async with world.running(MENU):
        pass
    assert world.server.commands["default", ""] == [
        {"command": "help", "description": "What I can do"},
        {"command": "forget", "description": "Forget something"},
    ]
    assert [command["description"] for command in world.server.commands["default", "zh"]] == [
        "我能做什么",
        "忘掉一件事",
    ]
    assert len(world.server.sent("getMyCommands")) == 4
    assert len(world.server.sent("setMyCommands")) == 2


async def test_a_menu_that_is_refused_stops_nothing(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.server.fault("setMyCommands", status=400, description="Bad Request: BOT_COMMANDS_TOO_MUCH")
    async with world.running(MENU):
        await (await world.asked()).send(Reply("hi"))
    assert world.server.chat(ANNA).texts == ["hi"]
    assert "too_much" in caplog.text


# Start and stop


async def test_messages_sent_while_the_bot_was_down_are_answered_once(world: World) -> None:
    world.server.say(ANNA, "are you there?")
    async with world.running():
        assert (await world.desk.message())[0].text == "are you there?"
    world.server.say(ANNA, "and now?")
    async with world.running():
        assert (await world.desk.message())[0].text == "and now?"
    assert world.desk.updates.empty()


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


async def test_the_bot_comes_up_although_the_network_is_late(world: World) -> None:
    world.server.fault("getMe", status=502, description="Bad Gateway")
    running = world.start()
    await world.time.somebody_sleeps(1.0)
    world.time.advance(1.0)
    await (await world.asked()).send(Reply("hi"))
    await stop(running)
    assert world.server.chat(ANNA).texts == ["hi"]


async def test_a_poll_that_fails_is_made_again(here: World, caplog: pytest.LogCaptureFixture) -> None:
    here.server.fault("getUpdates", status=502, description="Bad Gateway", times=2)
    await here.asked()
    await here.asked("still there?")
    assert "Bad Gateway" in caplog.text


WRONG = "123456789:ABC-DEF1234ghIkl-zyx57W2v1u123ew00"
Start = Callable[[World], Awaitable[object]]


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


async def test_no_token_reaches_a_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with world.running(MENU):
        await (await world.asked()).send(Reply("hi"))
    assert world.server.token.partition(":")[2] not in caplog.text


async def test_a_token_that_is_withdrawn_ends_the_run_with_its_fix(world: World) -> None:
    running = world.start()
    await world.asked()
    world.server.token = WRONG
    with pytest.raises(AdapterError, match="TELEGRAM_BOT_TOKEN"):
        await asyncio.wait_for(running, 5)


async def test_a_second_poller_is_told_apart_with_its_fix(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async with AsyncExitStack() as both:
        await both.enter_async_context(world.running())
        await both.enter_async_context(world.running())
        await world.server.until(lambda: "Another process polls" in caplog.text)
    assert caplog.text.count("Another process polls") <= 2


async def test_a_second_poller_that_stays_ends_the_run(world: World) -> None:
    conflict = "Conflict: terminated by other getUpdates request"
    running = world.start()
    await world.asked()
    world.server.fault("getUpdates", status=409, description=conflict, times=1_000)
    asked = len(world.server.sent("getUpdates"))
    await world.server.until(lambda: len(world.server.sent("getUpdates")) > asked + 1)
    assert not running.done()
    world.time.advance(61)
    with pytest.raises(AdapterError, match="Stop the other process"):
        await asyncio.wait_for(running, 5)


async def test_a_conflict_that_passes_is_forgotten(world: World) -> None:
    """As when the old process is still going down while the new one comes up."""
    running = world.start()
    for _ in range(2):
        world.server.fault("getUpdates", status=409, description="Conflict: terminated by other getUpdates request")
        await world.asked()
        await world.asked()
        world.time.advance(61)
    assert not running.done()
    await stop(running)


async def test_check_names_the_bot(world: World) -> None:
    assert await check(f" {world.server.token}\n", world.server.base_url + "/") == "@recollect_bot"


async def test_check_tells_a_server_that_cannot_be_reached(unused_tcp_port: int) -> None:
    with pytest.raises(AdapterError, match="Check the network, and base_url and proxy"):
        await check(WRONG, f"http://127.0.0.1:{unused_tcp_port}")


@pytest.mark.parametrize("proxy", ["nonsense", "ftp://user:hidden@127.0.0.1"])
async def test_an_impossible_proxy_is_told_without_its_password(world: World, proxy: str) -> None:
    with pytest.raises(AdapterError, match="proxy") as refusal:
        await check(world.server.token, world.server.base_url, proxy)
    assert "hidden" not in str(refusal.value)


# The server itself: what it must refuse, or the tests above prove little


@pytest.mark.parametrize(
    ("method", "params", "refusal"),
    [
        ("sendMessage", {"chat_id": ANNA, "text": " \n"}, "message text is empty"),
        ("sendMessage", {"chat_id": ANNA, "text": "😀" * 2_048 + "a"}, "message is too long"),
        ("sendMessage", {"chat_id": ANNA, "text": "a\ud83d"}, "strings must be encoded in UTF-8"),
        ("sendMessage", {"chat_id": 9, "text": "hi"}, "chat not found"),
        ("sendMessage", {"chat_id": ANNA, "text": "hi", "parse_mode": "HTML"}, "this server knows no parameter"),
        ("sendMessage", {"chat_id": GROUP, "text": "hi", "message_thread_id": 1}, "message thread not found"),
        ("sendMessage", {"chat_id": GROUP, "text": "hi", "message_thread_id": 43}, "TOPIC_CLOSED"),
        ("sendMessage", {"chat_id": ANNA, "text": "hi", "reply_parameters": {"message_id": 999}}, "to be replied"),
        (
            "sendMessage",
            {
                "chat_id": ANNA,
                "text": "hi",
                "reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": "好" * 22}]]},
            },
            "BUTTON_DATA_INVALID",
        ),
        ("editMessageText", {"chat_id": ANNA, "message_id": 1, "text": "mine"}, "message can't be edited"),
        ("editMessageText", {"chat_id": ANNA, "message_id": 999, "text": "hi"}, "message to edit not found"),
        ("editMessageText", {"chat_id": ANNA, "message_id": 2, "text": "ours "}, "message is not modified"),
        ("editMessageText", {"chat_id": ANNA, "message_id": 2, "text": "a" * 4_097}, "MESSAGE_TOO_LONG"),
        ("answerCallbackQuery", {"callback_query_id": "77"}, "query is too old"),
        ("setMyCommands", {"commands": [{"command": "Help", "description": "x"}]}, "BOT_COMMAND_INVALID"),
        ("setMyCommands", {"commands": [{"command": "a", "description": ""}]}, "BOT_COMMAND_DESCRIPTION_INVALID"),
        ("getUpdates", {"limit": 101}, "limit must be"),
        ("getFile", {}, "Not Found"),
    ],
)
async def test_the_server_refuses_what_the_platform_refuses(method: str, params: dict[str, Any], refusal: str) -> None:
    async with TelegramServer() as server, aiohttp.ClientSession(server.base_url) as session:
        server.say(ANNA, "theirs")
        server.group(GROUP, 42, 43).threads[43] = False
        await session.post(f"/bot{server.token}/sendMessage", json={"chat_id": ANNA, "text": "ours"})
        answer = await session.post(f"/bot{server.token}/{method}", json=params)
        assert refusal in (await answer.json())["description"]
        assert server.chat(ANNA).texts == ["ours"]


async def test_the_server_sends_updates_again_until_they_are_confirmed() -> None:
    async with TelegramServer() as server, aiohttp.ClientSession(server.base_url) as session:

        async def poll(**params: int) -> list[str]:
            answer = await session.post(f"/bot{server.token}/getUpdates", json=params)
            return [update["message"]["text"] for update in (await answer.json())["result"]]

        for text in "abc":
            server.say(ANNA, text)
        assert await poll() == await poll(limit=100) == ["a", "b", "c"]
        assert await poll(offset=server.updates[1]["update_id"], limit=1) == ["b"]
        assert await poll(offset=-1) == ["c"]
        assert await poll(offset=server.updates[-1]["update_id"] + 1) == []
