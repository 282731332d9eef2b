"""The conversation: order, turns made of quick words, what is cancelled or changed, failures told, a clean stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.conversation import PATIENCE, QUEUE, Conversation
from bot.message import (
    ChatRef,
    Deleted,
    DeliveryError,
    Edited,
    Incoming,
    Posted,
    Press,
    Reply,
    Sink,
    Update,
)
from bot.turn import Apology, Heard, Said
from bot.worker import MOST_JOINED
from config.locales import phrase
from config.settings import ConversationSettings
from memory.model import Account, Chat, Message
from tests.conftest import Clock

CHAT = ChatRef("test", "dm:1")


class Shown:
    """A sink that keeps what was sent; the first ``failures`` sends do not arrive. ``broken`` raises at its end."""

    def __init__(self, failures: int = 0, *, broken: bool = False) -> None:
        self.sent: list[str] = []
        self.dones = 0
        self.withdrawn = 0
        self.beyond = False
        self.failures = failures
        self.broken = broken

    def watch(self, posted: Posted) -> None:
        raise AssertionError("the desk of these tests watches nothing")

    async def show(self, text: str) -> None:
        raise AssertionError(f"nothing streams in these tests: {text}")

    async def send(self, reply: Reply) -> str | None:
        if self.failures:
            self.failures -= 1
            raise DeliveryError("lost")
        self.sent.append(reply.text)
        return None

    async def abandon(self, *, keep: bool) -> bool:
        self.withdrawn += not keep
        return not self.beyond

    async def done(self) -> None:
        self.dones += 1
        if self.broken:
            raise RuntimeError("the platform is gone")


def said(text: str, chat: str = "dm:1", language: str = "en", *, user: str = "", album: str | None = None) -> Incoming:
    """What somebody writes; its text is its id."""
    return Incoming(
        ChatRef("test", chat, private=chat.startswith("dm:")),
        user or chat.split(":")[1],
        "",
        text,
        text,
        datetime(2026, 3, 2, tzinfo=UTC),
        language,
        album=album,
    )


Answer = Callable[[str, Sink], Awaitable[None]]


async def echo(text: str, sink: Sink) -> None:
    await sink.send(Reply(text))


class Front:
    """A desk without a memory: numbers what it hears, answers through ``reply``, keeps who was given up."""

    def __init__(self, reply: Answer = echo) -> None:
        self.reply = reply
        self.turns: list[str] = []
        self.given_up: list[str] = []
        self.numbers: dict[str, int] = {}
        self.deaf: Exception | None = None
        self.edits_wait = True

    async def hear(self, update: Update) -> Heard | None:
        if self.deaf is not None:
            raise self.deaf
        if isinstance(update, Press):
            return update
        if isinstance(update, Edited):
            return self.line(update.message) if self.edits_wait else None
        return self.line(update) if isinstance(update, Incoming) else None

    def line(self, incoming: Incoming) -> Said:
        number = self.numbers.setdefault(incoming.message_id, len(self.numbers) + 1)
        owner = Account(int(incoming.user_id), "test", incoming.user_id, language=incoming.language or "en")
        chat = Chat(1, "test", incoming.chat.key, private=incoming.chat.private)
        message = Message(number, 1, 1, "user", "", incoming.at, incoming.text)
        command = (incoming.text[1:], "") if incoming.text.startswith("/") else None
        return Said(incoming, owner, chat, message, command)

    async def answer(self, turn: Sequence[Said], sink: Sink) -> None:
        text = " + ".join(one.incoming.text for one in turn)
        if turn[0].command is not None and turn[0].command[1]:
            text = " ".join(turn[0].command)
        self.turns.append(text)
        await self.reply(text, sink)

    async def press(self, press: Press, sink: Sink) -> None:
        self.turns.append(press.button_id)
        await self.reply(press.button_id, sink)

    async def give_up(self, said: Sequence[Said]) -> None:
        self.given_up += [one.incoming.text for one in said]


def talking(
    desk: Front,
    clock: Clock,
    *,
    quiet: float = 0,
    turns: int = 0,
    behind: Callable[[], None] = lambda: None,
    **bounds: int,
) -> Conversation:
    """A conversation in which time passes only where it waits."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0.01)  # long enough for whoever is about to speak; no time of the test's clock
        clock.advance(seconds=seconds)

    settings = ConversationSettings(quiet_seconds=quiet, turns_a_minute=turns, **bounds)
    return Conversation(desk, clock, settings, behind=behind, sleep=sleep)


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


class Gate:
    """An answer that waits for ``open`` while it reads a certain text."""

    def __init__(self, held: str) -> None:
        self.held = held
        self.reached = asyncio.Event()
        self.open = asyncio.Event()
        self.cancelled = 0

    async def __call__(self, text: str, sink: Sink) -> None:
        if text.split(" + ", maxsplit=1)[0] == self.held:
            self.reached.set()
            try:
                await self.open.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        await sink.send(Reply(text))


# ---- order -----------------------------------------------------------------------------------------------


async def test_f09_messages_of_a_chat_are_answered_in_order_while_other_chats_go_on(clock: Clock) -> None:
    gate = Gate("slow")
    desk = Front(gate)
    conversation = talking(desk, clock)
    sinks = {name: Shown() for name in ("slow", "after", "other")}
    await conversation.submit(said("slow"), sinks["slow"])
    await gate.reached.wait()
    await conversation.submit(said("after"), sinks["after"])
    await conversation.submit(said("other", "dm:2"), sinks["other"])
    while not sinks["other"].sent:  # noqa: ASYNC110 - it is the sink that knows, and a sink is no event
        await asyncio.sleep(0)
    assert desk.turns == ["slow", "other"]
    gate.open.set()
    await conversation.idle()
    assert desk.turns == ["slow", "other", "after"]
    assert all(sink.dones == 1 for sink in sinks.values())


async def test_a_message_is_heard_before_submit_returns(clock: Clock) -> None:
    gate = Gate("hello")
    desk = Front(gate)
    conversation = talking(desk, clock)
    await conversation.submit(said("hello"), Shown())
    assert desk.numbers == {"hello": 1}
    assert desk.turns == []
    gate.open.set()
    await conversation.idle()


async def test_a_message_that_waits_already_is_not_queued_again(clock: Clock) -> None:
    gate = Gate("slow")
    desk = Front(gate)
    conversation = talking(desk, clock)
    first, again = Shown(), Shown()
    await conversation.submit(said("slow"), first)
    await gate.reached.wait()
    await conversation.submit(said("slow"), again)
    await conversation.resume(desk.line(said("slow")), again, still=yes)
    gate.open.set()
    await conversation.idle()
    assert (first.sent, again.sent, again.dones) == (["slow"], [], 2)


async def test_what_nobody_waits_for_is_ended_and_no_worker_stays_for_it(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock)
    sink = Shown()
    await conversation.submit(Deleted(CHAT, ("unknown",), clock()), sink)
    assert (sink.dones, desk.turns, conversation._workers) == (1, [], {})
    await conversation.submit(said("hi"), Shown())
    await conversation.idle()
    assert conversation._workers == {}


async def test_what_was_settled_meanwhile_is_not_resumed(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock)
    sink = Shown()
    await conversation.resume(desk.line(said("settled")), sink, still=no)
    await conversation.resume(desk.line(said("waits")), sink, still=yes)
    await conversation.idle()
    assert (desk.turns, sink.dones) == (["waits"], 2)


# ---- turns -----------------------------------------------------------------------------------------------


async def test_quick_messages_of_one_person_become_one_turn_answered_where_the_last_came_from(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock, quiet=1.0)
    sinks = [Shown() for _ in range(3)]
    for text, sink in zip(("hi", "one thing", "where is it?"), sinks, strict=True):
        await conversation.submit(said(text), sink)
    await conversation.idle()
    assert desk.turns == ["hi + one thing + where is it?"]
    assert [sink.sent for sink in sinks] == [[], [], ["hi + one thing + where is it?"]]
    assert [sink.dones for sink in sinks] == [1, 1, 1]


async def test_words_after_the_quiet_time_are_a_turn_of_their_own(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock, quiet=1.0)
    await conversation.submit(said("hi"), Shown())
    await conversation.idle()
    await conversation.submit(said("later"), Shown())
    await conversation.idle()
    assert desk.turns == ["hi", "later"]


async def test_whoever_writes_without_a_pause_is_answered_all_the_same(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock, quiet=1.0)
    for number in range(3 * PATIENCE):
        await conversation.submit(said(str(number)), Shown())
        clock.advance(seconds=0.9)
        for _ in range(5):
            await asyncio.sleep(0)
    assert desk.turns
    assert len(desk.turns[0].split(" + ")) <= PATIENCE + 2
    await conversation.idle()


async def test_messages_during_a_reply_join_the_next_turn(clock: Clock) -> None:
    gate = Gate("first")
    desk = Front(gate)
    conversation = talking(desk, clock)
    await conversation.submit(said("first"), Shown())
    await gate.reached.wait()
    for text in ("second", "third"):
        await conversation.submit(said(text), Shown())
    gate.open.set()
    await conversation.idle()
    assert desk.turns == ["first", "second + third"]


async def test_two_people_of_a_group_are_never_one_turn(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock, quiet=1.0)
    for text, user in (("a1", "7"), ("a2", "7"), ("b1", "8"), ("a3", "7")):
        await conversation.submit(said(text, "group:-5", user=user), Shown())
    await conversation.idle()
    assert desk.turns == ["a1 + a2", "b1", "a3"]


async def test_a_command_waits_for_no_quiet_and_joins_nothing(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock, quiet=1.0)
    noon = clock()
    await conversation.submit(said("hello"), Shown())
    await conversation.submit(said("/new"), Shown())
    await conversation.idle()
    assert desk.turns == ["hello", "/new"]
    assert clock() == noon


async def test_the_pictures_of_an_album_are_one_turn_even_without_a_quiet_time(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock, quiet=0.0)
    for text in ("our dog", "p2", "p3"):
        await conversation.submit(said(text, album="G1"), Shown())
        for _ in range(5):
            await asyncio.sleep(0)
    await conversation.idle()
    assert desk.turns == ["our dog + p2 + p3"]


async def test_one_turn_holds_so_many_messages_and_not_more(clock: Clock) -> None:
    gate = Gate("first")
    desk = Front(gate)
    conversation = talking(desk, clock)
    await conversation.submit(said("first"), Shown())
    await gate.reached.wait()
    for number in range(MOST_JOINED + 1):
        await conversation.submit(said(str(number)), Shown())
    gate.open.set()
    await conversation.idle()
    assert [len(turn.split(" + ")) for turn in desk.turns] == [1, MOST_JOINED, 1]


# ---- cancelling, changing, taking back -------------------------------------------------------------------


async def test_cancel_stops_the_reply_at_once_and_what_waits_behind_it(clock: Clock) -> None:
    gate = Gate("slow")
    desk = Front(gate)
    conversation = talking(desk, clock)
    slow, behind, cancel = Shown(), Shown(), Shown()
    await conversation.submit(said("slow"), slow)
    await gate.reached.wait()
    await conversation.submit(said("behind"), behind)
    await conversation.submit(said("/cancel"), cancel)
    await conversation.idle()
    assert gate.cancelled == 1
    assert (slow.sent, behind.sent, cancel.sent) == ([], [], ["cancel stopped"])
    assert (slow.dones, behind.dones, cancel.dones) == (1, 1, 1)
    assert sorted(desk.given_up) == ["behind", "slow"]


async def test_a_reply_beyond_stopping_arrives_and_cancel_does_not_claim_otherwise(clock: Clock) -> None:
    gate = Gate("slow")
    desk = Front(gate)
    conversation = talking(desk, clock)
    slow, cancel = Shown(), Shown()
    slow.beyond = True
    await conversation.submit(said("slow"), slow)
    await gate.reached.wait()
    await conversation.submit(said("/cancel"), cancel)
    while not cancel.sent:  # noqa: ASYNC110 - it is the sink that knows, and a sink is no event
        await asyncio.sleep(0.01)
    gate.open.set()
    await conversation.idle()
    assert (slow.sent, cancel.sent, desk.given_up) == (["slow"], ["/cancel"], [])


async def test_a_cancel_that_could_not_be_carried_out_is_not_said_to_be(clock: Clock) -> None:
    class Stuck(Front):
        async def give_up(self, said: Sequence[Said]) -> None:
            raise Apology("error.unwritable", "en")

    gate = Gate("slow")
    conversation = talking(Stuck(gate), clock)
    cancel = Shown()
    await conversation.submit(said("slow"), Shown())
    await gate.reached.wait()
    await conversation.submit(said("/cancel"), cancel)
    await conversation.idle()
    assert [text.split(":")[0] for text in cancel.sent] == ["My memory cannot be written just now"]


async def test_a_picture_of_an_album_that_comes_behind_another_message_joins_its_album(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock, quiet=0.0)
    for text, user, album in (("our dog", "7", "G"), ("hello", "8", None), ("p2", "7", "G")):
        await conversation.submit(said(text, "group:-5", user=user, album=album), Shown())
    await conversation.idle()
    assert desk.turns == ["our dog + p2", "hello"]


async def test_a_command_that_is_edited_is_run_once_as_it_was_given(clock: Clock) -> None:
    gate = Gate("first")
    desk = Front(gate)
    conversation = talking(desk, clock)
    await conversation.submit(said("first"), Shown())
    await gate.reached.wait()
    command = Shown()
    await conversation.submit(said("/remember tea"), command)
    desk.edits_wait = False
    await conversation.submit(changed("/remember tea", "/remember coffee"), Shown())
    gate.open.set()
    await conversation.idle()
    assert (desk.turns, command.sent) == (["first", "/remember tea"], ["/remember tea"])


async def test_what_is_heard_during_a_stop_is_not_begun(clock: Clock) -> None:
    gate = Gate("running")
    desk = Front(gate)
    conversation = talking(desk, clock)
    await conversation.submit(said("running"), Shown())
    await gate.reached.wait()
    stopping = asyncio.create_task(conversation.stop())
    await asyncio.sleep(0)
    late = Shown()
    await conversation.submit(said("late"), late)
    gate.open.set()
    await stopping
    assert (desk.turns, late.dones, "late" in desk.numbers) == (["running"], 1, True)


async def test_cancel_with_nothing_to_stop_says_so(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock)
    await conversation.submit(said("/cancel"), Shown())
    await conversation.idle()
    assert (desk.turns, desk.given_up) == (["/cancel"], [])


async def test_nobody_cancels_the_reply_to_somebody_else(clock: Clock) -> None:
    gate = Gate("slow")
    desk = Front(gate)
    conversation = talking(desk, clock)
    slow = Shown()
    await conversation.submit(said("slow", "group:-5", user="7"), slow)
    await gate.reached.wait()
    await conversation.submit(said("/cancel", "group:-5", user="8"), Shown())
    await asyncio.sleep(0.02)
    gate.open.set()
    await conversation.idle()
    assert (slow.sent, gate.cancelled, desk.given_up) == (["slow"], 0, [])


async def test_cancel_leaves_a_command_under_way_alone(clock: Clock) -> None:
    gate = Gate("/forget")
    desk = Front(gate)
    conversation = talking(desk, clock)
    sink = Shown()
    await conversation.submit(said("/forget"), sink)
    await gate.reached.wait()
    await conversation.submit(said("/cancel"), Shown())
    await asyncio.sleep(0.02)
    gate.open.set()
    await conversation.idle()
    assert (sink.sent, gate.cancelled) == (["/forget"], 0)


def changed(old: str, new: str) -> Edited:
    return Edited(replace(said(old), text=new), datetime(2026, 3, 2, tzinfo=UTC))


async def test_an_edit_of_the_message_being_answered_starts_the_answer_anew(clock: Clock) -> None:
    gate = Gate("slwo")
    desk = Front(gate)
    conversation = talking(desk, clock)
    old, new = Shown(), Shown()
    await conversation.submit(said("slwo"), old)
    await gate.reached.wait()
    await conversation.submit(changed("slwo", "slow"), new)
    await conversation.idle()
    assert (old.sent, new.sent, gate.cancelled) == ([], ["slow"], 1)
    assert (old.withdrawn, new.withdrawn) == (1, 0)


async def test_an_edit_that_changes_no_word_disturbs_nothing(clock: Clock) -> None:
    gate = Gate("see example.org")
    desk = Front(gate)
    conversation = talking(desk, clock)
    sink, preview = Shown(), Shown()
    await conversation.submit(said("see example.org"), sink)
    await gate.reached.wait()
    await conversation.submit(changed("see example.org", "see example.org"), preview)
    gate.open.set()
    await conversation.idle()
    assert (sink.sent, preview.sent, preview.dones) == (["see example.org"], [], 1)


async def test_an_edit_of_a_queued_message_keeps_its_place(clock: Clock) -> None:
    gate = Gate("first")
    desk = Front(gate)
    conversation = talking(desk, clock)
    group = {"chat": "group:-5"}
    await conversation.submit(said("first", **group, user="7"), Shown())
    await gate.reached.wait()
    for text, user in (("b", "8"), ("a", "7"), ("c", "9")):
        await conversation.submit(said(text, **group, user=user), Shown())
    edit = Edited(replace(said("a", **group, user="7"), text="A!"), clock())
    await conversation.submit(edit, Shown())
    gate.open.set()
    await conversation.idle()
    assert desk.turns == ["first", "b", "A!", "c"]


async def test_a_deleted_message_is_not_answered_and_the_rest_of_its_turn_is(clock: Clock) -> None:
    gate = Gate("one")
    desk = Front(gate)
    conversation = talking(desk, clock, quiet=1.0)
    for text in ("one", "two"):
        await conversation.submit(said(text), Shown())
    await gate.reached.wait()
    await conversation.submit(Deleted(CHAT, ("one",), clock()), Shown())
    await conversation.idle()
    assert desk.turns == ["one + two", "two"]


# ---- failures --------------------------------------------------------------------------------------------


def failing(on: str = "", error: Exception | None = None) -> Answer:
    async def answer(text: str, sink: Sink) -> None:
        if not on or text == on:
            raise error or RuntimeError("secret detail")
        await sink.send(Reply("fine"))

    return answer


async def test_a_failing_turn_is_told_with_a_number_and_the_next_goes_on(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    conversation = talking(Front(failing("boom")), clock)
    sink = Shown()
    await conversation.submit(said("boom", language="zh"), sink)
    await conversation.idle()
    await conversation.submit(said("ok"), sink)
    await conversation.idle()
    apology, fine = sink.sent
    assert "出了点问题" in apology
    assert "secret" not in apology
    number = apology.rstrip("。").split()[-1]
    assert number in caplog.text
    assert (fine, sink.dones) == ("fine", 2)


async def test_an_apology_is_said_in_the_persons_language_and_its_cause_is_logged(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    error = Apology("error.model", "zh")
    error.__cause__ = TimeoutError("no answer in 60 s")
    conversation = talking(Front(failing(error=error)), clock)
    sink = Shown()
    await conversation.submit(said("hello"), sink)
    await conversation.idle()
    assert sink.sent[0].startswith("我现在连不上语言模型")
    assert "no answer in 60 s" in caplog.text


async def test_a_message_that_cannot_be_heard_is_told_and_the_next_one_is_heard(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock)
    sink = Shown()
    desk.deaf = Apology("error.unwritable", "en")
    await conversation.submit(said("lost"), sink)
    desk.deaf = None
    await conversation.submit(said("kept"), sink)
    await conversation.idle()
    assert sink.sent[0].startswith("My memory cannot be written")
    assert (sink.sent[1:], sink.dones) == (["kept"], 2)


async def test_failures_are_told_at_most_once_a_minute_in_a_chat(clock: Clock) -> None:
    conversation = talking(Front(failing()), clock)
    sink = Shown()
    for seconds in (0, 59, 1):
        clock.advance(seconds=seconds)
        await conversation.submit(said(f"after {seconds}"), sink)
        await conversation.idle()
    assert len(sink.sent) == 2


async def test_a_reply_that_does_not_arrive_stops_nothing(clock: Clock) -> None:
    conversation = talking(Front(), clock)
    sink = Shown(failures=1)
    for text in ("lost", "found"):
        await conversation.submit(said(text), sink)
        await conversation.idle()
    assert (sink.sent, sink.dones) == (["found"], 2)


async def test_a_sink_that_breaks_at_its_end_stops_nothing(clock: Clock) -> None:
    conversation = talking(Front(), clock)
    sink = Shown(broken=True)
    for text in ("one", "two"):
        await conversation.submit(said(text), sink)
        await conversation.idle()
    assert (sink.sent, sink.dones) == (["one", "two"], 2)


async def test_a_full_queue_says_so_once_and_gives_up_what_it_cannot_answer(clock: Clock) -> None:
    gate = Gate("first")
    desk = Front(gate)
    conversation = talking(desk, clock)
    taken, refused = Shown(), Shown()
    await conversation.submit(said("first"), taken)
    await gate.reached.wait()
    for n in range(QUEUE):
        await conversation.submit(said(str(n)), taken)
    for n in range(3):
        await conversation.submit(said(f"too much {n}"), refused)
    await conversation.submit(Press(CHAT, "1", "", "forget:1:all", clock()), refused)
    gate.open.set()
    await conversation.idle()
    told = [text for text in refused.sent if text.startswith("That is more than I can answer at once.")]
    assert (len(told), refused.dones) == (1, 4)
    assert " + ".join(desk.turns) == " + ".join(["first", *map(str, range(QUEUE)), "forget:1:all"])
    assert desk.given_up == ["too much 0", "too much 1", "too much 2"]


async def test_only_so_many_turns_are_answered_at_once_and_commands_wait_for_none_of_them(clock: Clock) -> None:
    most, under_way = 0, 0
    hold = asyncio.Event()

    async def answer(text: str, sink: Sink) -> None:
        nonlocal most, under_way
        if not text.startswith("/"):
            under_way += 1
            most = max(most, under_way)
            await hold.wait()
            under_way -= 1
        await sink.send(Reply(text))

    conversation = talking(Front(answer), clock, turns_at_once=3)
    sinks = [Shown() for _ in range(10)]
    for number, sink in enumerate(sinks, start=1):
        await conversation.submit(said(f"{number}", f"dm:{number}"), sink)
    command = Shown()
    await conversation.submit(said("/forget", "dm:99"), command)
    while not command.sent:  # noqa: ASYNC110 - it is the sink that knows, and a sink is no event
        await asyncio.sleep(0)
    assert (most, [sink.sent for sink in sinks]) == (3, [[]] * 10)
    hold.set()
    await conversation.idle()
    assert most == 3
    assert [sink.sent for sink in sinks] == [[f"{number}"] for number in range(1, 11)]


def holding(hold: asyncio.Event) -> Answer:
    """Echoes, but "first" only after ``hold``."""

    async def answer(text: str, sink: Sink) -> None:
        if text == "first":
            await hold.wait()
        await sink.send(Reply(text))

    return answer


async def test_what_somebody_says_while_they_wait_for_the_model_is_one_turn_and_costs_them_no_place(
    clock: Clock,
) -> None:
    hold = asyncio.Event()
    desk = Front(holding(hold))
    conversation = talking(desk, clock, turns_at_once=1)
    await conversation.submit(said("first", "dm:1"), Shown())
    await asyncio.sleep(0.01)
    for text, chat in (("one", "dm:2"), ("other", "dm:3"), ("two", "dm:2"), ("three", "dm:2")):
        await conversation.submit(said(text, chat), Shown())
        await asyncio.sleep(0.01)
    assert desk.turns == ["first"]
    hold.set()
    await conversation.idle()
    assert desk.turns == ["first", "one + two + three", "other"]


async def test_a_command_behind_talk_that_is_taken_back_waits_for_no_model(clock: Clock) -> None:
    hold = asyncio.Event()
    desk = Front(holding(hold))
    conversation = talking(desk, clock, turns_at_once=1)
    await conversation.submit(said("first", "dm:1"), Shown())
    await asyncio.sleep(0.01)
    taken_back, command = said("never mind", "dm:2"), Shown()
    await conversation.submit(taken_back, Shown())
    await asyncio.sleep(0.01)
    await conversation.submit(said("/help", "dm:2"), command)
    assert command.sent == []
    await conversation.submit(Deleted(taken_back.chat, (taken_back.message_id,), clock()), Shown())
    await asyncio.sleep(0.01)
    assert command.sent == ["/help"]
    again = Shown()
    await conversation.submit(said("there again", "dm:2"), again)
    await asyncio.sleep(0.01)
    assert again.sent == []
    hold.set()
    await conversation.idle()
    assert again.sent == ["there again"]
    assert desk.turns == ["first", "/help", "there again"]


class Slow(Front):
    """A desk that hears "slow" only after ``hold``."""

    def __init__(self, hold: asyncio.Event) -> None:
        super().__init__()
        self.hold = hold

    async def hear(self, update: Update) -> Heard | None:
        if isinstance(update, Incoming) and update.text == "slow":
            await self.hold.wait()
        return await super().hear(update)


async def test_what_comes_is_heard_before_more_is_answered_but_commands_are_obeyed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.conversation.HEARING_SECONDS", 60.0)
    hold = asyncio.Event()
    desk = Slow(hold)
    conversation = talking(desk, clock)
    slow = [asyncio.create_task(conversation.submit(said("slow", f"dm:{n}"), Shown())) for n in range(10, 30)]
    await asyncio.sleep(0)
    talk, command = Shown(), Shown()
    await conversation.submit(said("one", "dm:1"), talk)
    await conversation.submit(said("two", "dm:1"), talk)
    await conversation.submit(said("/help", "dm:2"), command)
    await asyncio.sleep(0.02)
    assert (talk.sent, command.sent) == ([], ["/help"])
    hold.set()
    await asyncio.gather(*slow)
    await conversation.idle()
    assert talk.sent == ["one + two"]
    assert len(desk.turns) == 22


async def test_a_flood_stops_no_answer_for_good(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.conversation.HEARING_SECONDS", 0.01)
    hold = asyncio.Event()
    conversation = talking(Slow(hold), clock)
    slow = [asyncio.create_task(conversation.submit(said("slow", f"dm:{n}"), Shown())) for n in range(10, 30)]
    await asyncio.sleep(0)
    sinks = [Shown() for _ in range(5)]
    for number, sink in enumerate(sinks):
        await conversation.submit(said("talk", f"dm:{number}"), sink)
    while not all(sink.sent for sink in sinks):  # noqa: ASYNC110 - it is the sink that knows, and a sink is no event
        await asyncio.sleep(0.01)
    hold.set()
    await asyncio.gather(*slow)
    await conversation.idle()


async def test_what_waits_of_all_people_is_bounded_and_whoever_comes_then_is_told_in_their_language(
    clock: Clock,
) -> None:
    hold = asyncio.Event()

    async def answer(text: str, sink: Sink) -> None:
        if not text.startswith("/"):
            await hold.wait()
        await sink.send(Reply(text))

    desk = Front(answer)
    conversation = talking(desk, clock, turns_at_once=2, waiting_at_most=5)
    sinks = [Shown() for _ in range(5)]
    for number, sink in enumerate(sinks, start=1):
        await conversation.submit(said(f"{number}", f"dm:{number}"), sink)
    late, command = Shown(), Shown()
    await conversation.submit(said("晚了", "dm:6", "zh"), late)
    await conversation.submit(said("/forget", "dm:6", "zh"), command)
    await asyncio.sleep(0.01)
    assert (late.sent, late.dones) == ([phrase("error.busy", "zh")], 1)
    assert command.sent == ["/forget"]
    assert desk.given_up == ["晚了"]
    hold.set()
    await conversation.idle()
    assert [sink.sent for sink in sinks] == [[f"{number}"] for number in range(1, 6)]
    await conversation.submit(said("again", "dm:6"), late)
    await conversation.idle()
    assert late.sent[-1] == "again"


async def test_two_programs_that_answer_each_other_are_stopped_with_one_word(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock, turns=20)
    sink = Shown()
    for number in range(60):
        clock.advance(seconds=0.5)
        await conversation.submit(said(str(number)), sink)
        await conversation.idle()
    assert len(desk.turns) == 21
    assert [text.startswith("We are going round in circles") for text in sink.sent] == [False] * 21 + [True]
    assert len(desk.given_up) == 39
    await conversation.submit(said("/help"), sink)
    await conversation.idle()
    assert sink.sent[-1] == "/help"
    clock.advance(minutes=6)
    await conversation.submit(said("are you there?"), sink)
    await conversation.idle()
    assert sink.sent[-1] == "are you there?"


async def test_somebody_who_is_only_fast_is_always_answered(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock, turns=20)
    for number in range(60):
        clock.advance(seconds=2.5)
        await conversation.submit(said(str(number)), Shown())
        await conversation.idle()
    assert len(desk.turns) == 60


async def test_a_failure_and_a_full_queue_are_both_told_within_a_minute(clock: Clock) -> None:
    gate = asyncio.Event()

    async def answer(text: str, sink: Sink) -> None:
        await gate.wait()
        raise RuntimeError(text)

    conversation = talking(Front(answer), clock)
    sink = Shown()
    await conversation.submit(said("first"), sink)
    await asyncio.sleep(0.01)
    for n in range(QUEUE + 3):
        await conversation.submit(said(str(n)), sink)
    gate.set()
    await conversation.idle()
    assert [text.split()[0] for text in sorted(sink.sent)] == ["Something", "That"]


async def test_who_was_told_of_a_failure_is_not_remembered_for_ever(clock: Clock) -> None:
    conversation = talking(Front(failing()), clock)
    for n in range(50):
        clock.advance(seconds=30)
        await conversation.submit(said("x", f"dm:{n + 1}"), Shown())
        await conversation.idle()
    assert len(conversation._apologies._told) <= 2


async def test_a_chat_whose_platform_is_away_keeps_its_order(clock: Clock) -> None:
    away = True

    async def answer(text: str, sink: Sink) -> None:
        if away:
            raise DeliveryError("away", later=True)
        await sink.send(Reply(text))

    desk = Front(answer)
    conversation = talking(desk, clock)
    sink = Shown()
    await conversation.submit(said("one"), Shown())
    await conversation.idle()
    await conversation.submit(said("two"), sink)
    await conversation.submit(said("other", "dm:2"), Shown())
    await conversation.idle()
    assert (desk.turns, conversation.unreached) == (["one", "other"], {"test"})
    away = False
    await conversation.resume(replace(desk.line(said("one")), begun=True), sink, still=yes)
    conversation.reconnect("test")
    await conversation.idle()
    assert sink.sent == ["one", "two"]
    assert conversation._workers == {}


async def test_an_answer_that_has_begun_is_to_nothing_that_was_said_since(clock: Clock) -> None:
    desk = Front()
    conversation = talking(desk, clock, quiet=1.0)
    await conversation.resume(replace(desk.line(said("one")), begun=True), Shown(), still=yes)
    await conversation.submit(said("two"), Shown())
    await conversation.idle()
    assert desk.turns == ["one", "two"]


# ---- the end ---------------------------------------------------------------------------------------------


async def test_a_stop_answers_what_was_already_taken_without_waiting_for_quiet(clock: Clock) -> None:
    gate = Gate("running")
    desk = Front(gate)
    conversation = talking(desk, clock, quiet=30.0)
    await conversation.submit(said("/x"), Shown())
    await conversation.submit(said("running"), Shown())
    stopping = asyncio.create_task(conversation.stop())
    await gate.reached.wait()
    gate.open.set()
    await stopping
    assert desk.turns == ["/x", "running"]


async def test_a_stop_does_not_wait_for_ever(clock: Clock) -> None:
    gate = Gate("hangs")
    conversation = talking(Front(gate), clock)
    sink = Shown()
    await conversation.submit(said("hangs"), sink)
    await gate.reached.wait()
    await conversation.stop(grace_seconds=0.01)
    assert (sink.dones, gate.cancelled) == (1, 1)


async def test_housekeeping_is_woken_behind_each_answer(clock: Clock) -> None:
    woken: list[int] = []
    desk = Front()
    conversation = talking(desk, clock, behind=lambda: woken.append(len(desk.turns)))
    await conversation.submit(said("hi"), Shown())
    await conversation.idle()
    assert woken == [1]
