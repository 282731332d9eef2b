"""What waits for an answer: durable with its line, taken up after a kill, told once, and never for ever."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from config.settings import Settings
from memory import Line
from memory.journal import in_turns
from memory.model import Account, Chat
from tests.conftest import Clock
from tests.house import House, housed

WEEK = timedelta(days=7)


@pytest.fixture
async def house(tmp_path: Path, clock: Clock) -> AsyncIterator[House]:
    async with housed(tmp_path / "r.db", clock) as opened:
        yield opened


async def waiting(house: House) -> list[str]:
    since = house.clock() - WEEK
    return [one.message.text for one in await house.memory.waiting("test", since=since)]


async def other(house: House, user: str = "1002", name: str = "Bo") -> Account:
    return await house.memory.account("test", user, name=name)


async def group(house: House, owner: Account | None = None, thread: str | None = None) -> Chat:
    return await house.memory.chat(owner or house.owner, "group:-500", private=False, thread=thread)


async def test_a_message_that_wants_an_answer_still_wants_it_after_a_kill(house: House) -> None:
    heard = await house.hear("How are you?", id_="7", waits=True)
    assert (heard.new, heard.waiting) == (True, True)
    await house.reopen()
    (found,) = await house.memory.waiting("test", since=house.clock() - WEEK)
    assert (found.owner, found.key, found.thread, found.private) == (house.owner, "dm:1001", None, True)
    assert (found.message, found.shown, found.begun, found.reply) == (heard.message, (), False, None)
    assert await house.memory.waiting("elsewhere", since=house.clock() - WEEK) == []


async def test_a_line_and_its_waiting_are_written_together_or_not_at_all(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(house.memory._stores.waits, "add", killed)
        with pytest.raises(KeyboardInterrupt):
            await house.hear("How are you?", id_="7", waits=True)
    await house.reopen()
    assert (await house.hear("How are you?", id_="7", waits=True)).new


async def test_a_redelivered_message_is_known_to_wait_until_it_is_answered(house: House) -> None:
    first = await house.hear("How are you?", id_="7", waits=True)
    again = await house.hear("How are you?", id_="7", waits=True)
    assert (again.message, again.new, again.waiting, again.reply) == (first.message, False, True, None)
    reply = await house.reply("Fine.", first.message)
    answered = await house.hear("How are you?", id_="7", waits=True)
    assert (answered.new, answered.waiting, answered.reply) == (False, False, reply)
    assert await waiting(house) == []


async def test_a_message_that_wants_no_answer_does_not_wait_even_when_it_comes_again(house: House) -> None:
    await house.hear("Just saying", id_="7")
    again = await house.hear("Just saying", id_="7", waits=True)
    assert (again.waiting, await waiting(house)) == (False, [])


async def test_what_shows_the_answer_so_far_survives_a_kill(house: House) -> None:
    heard = await house.hear("Tell me a story", waits=True)
    await house.memory.shown(house.owner, heard.message.id, None)
    await house.reopen()
    (found,) = await house.memory.waiting("test", since=house.clock() - WEEK)
    assert (found.begun, found.shown) == (True, ())
    for number in ("501", "502"):
        await house.memory.shown(house.owner, heard.message.id, number)
    await house.reopen()
    (found,) = await house.memory.waiting("test", since=house.clock() - WEEK)
    assert (found.begun, found.shown) == (True, ("501", "502"))


async def test_what_is_shown_of_an_answer_nobody_waits_for_is_not_kept(house: House) -> None:
    heard = await house.hear("Just saying")
    await house.memory.shown(house.owner, heard.message.id, "501")
    await house.memory.shown(await other(house), heard.message.id, "501")
    assert house.rows("SELECT * FROM waiting") == []


async def test_nobody_settles_or_answers_for_somebody_else(house: House) -> None:
    heard = await house.hear("How are you?", waits=True)
    bo = await other(house)
    await house.memory.shown(bo, heard.message.id, "501")
    await house.memory.settled(bo, heard.message.id)
    assert await house.memory.unreply(bo, heard.message.id) == 0
    (found,) = await house.memory.waiting("test", since=house.clock() - WEEK)
    assert found.shown == ()


async def test_a_reply_that_may_not_have_been_delivered_is_kept_until_it_is(house: House) -> None:
    heard = await house.hear("How are you?", waits=True)
    await house.memory.shown(house.owner, heard.message.id, "501")
    reply = await house.reply("Fine.", heard.message, delivered=False)
    await house.reopen()
    (found,) = await house.memory.waiting("test", since=house.clock() - WEEK)
    assert (found.message, found.reply, found.shown) == (heard.message, reply, ("501",))
    await house.memory.settled(house.owner, heard.message.id)
    assert await waiting(house) == []


async def test_a_reply_that_was_not_kept_is_given_anew(house: House) -> None:
    heard = await house.hear("How are you?", waits=True)
    await house.reply("", heard.message, delivered=False)
    await house.reopen()
    for _ in range(2):
        (found,) = await house.memory.waiting("test", since=house.clock() - WEEK)
        assert (found.message, found.reply) == (heard.message, None)
    assert await house.window() == []
    await house.reply("Fine.", heard.message)
    assert await house.window() == ["How are you?", "Fine."]
    assert house.rows("SELECT count(*) FROM journal WHERE role = 'bot'") == [(1,)]


async def test_quick_messages_answered_as_one_wait_no_more_together(house: House) -> None:
    first, second, third = [(await house.hear(text, id_=text, waits=True)).message for text in ("a", "b", "c")]
    assert await waiting(house) == ["a", "b", "c"]
    reply = await house.reply("All three.", third, also=[first.id, second.id, third.id], delivered=False)
    await house.reopen()
    (found,) = await house.memory.waiting("test", since=house.clock() - WEEK)
    assert (found.message.id, found.reply) == (third.id, reply)
    for text in ("a", "b", "c"):
        assert (await house.hear(text, id_=text, waits=True)).reply == reply
    await house.memory.settled(house.owner, third.id)
    assert await waiting(house) == []


async def test_several_messages_are_settled_at_once(house: House) -> None:
    first, second, third = [(await house.hear(text, waits=True)).message for text in ("a", "b", "c")]
    await house.memory.settled(house.owner, first.id, second.id)
    assert await waiting(house) == ["c"]
    await house.memory.settled(house.owner, third.id, third.id)
    assert await waiting(house) == []


async def test_what_waits_comes_in_order_of_arrival_whoever_wrote_it_and_whatever_its_time(house: House) -> None:
    bo = await other(house)
    room, topic = await group(house), await group(house, thread="9")
    now = house.clock()
    for text, owner, chat, seconds in (
        ("1", bo, room, 5),
        ("2", house.owner, room, 5),
        ("3", bo, topic, 5),
        ("4", house.owner, room, 1),
        ("5", bo, room, 1),
    ):
        await house.hear(text, owner=owner, chat=chat, at=now + timedelta(seconds=seconds), waits=True)
    found = await house.memory.waiting("test", since=now)
    assert [(one.message.text, one.owner.no, one.thread) for one in found] == [
        ("1", bo.no, None),
        ("2", house.owner.no, None),
        ("3", bo.no, "9"),
        ("4", house.owner.no, None),
        ("5", bo.no, None),
    ]
    assert {(one.key, one.private) for one in found} == {("group:-500", False)}


async def test_what_is_too_old_is_given_up_and_counted_in_the_log(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    await house.hear("Long ago", waits=True)
    since = house.clock.advance(days=1)
    await house.hear("Just now", waits=True)
    with caplog.at_level(logging.WARNING):
        assert [one.message.text for one in await house.memory.waiting("test", since=since)] == ["Just now"]
    assert "1 messages of test are too old" in caplog.text
    assert "Long ago" not in caplog.text
    assert await waiting(house) == ["Just now"]


async def test_housekeeping_lets_nothing_wait_for_ever(house: House) -> None:
    heard = await house.hear("Long ago", waits=True)
    await house.memory.run_due(now=house.clock.advance(hours=Settings().conversation.recover_hours))
    assert len(house.rows("SELECT * FROM waiting")) == 1
    done = await house.memory.run_due(now=house.clock.advance(days=2))
    assert done["trim"]["given_up"] == 1
    assert house.rows("SELECT * FROM waiting") == []
    assert heard.message.id in await house.memory.entries(house.owner, [heard.message.id])


async def test_what_was_forgotten_does_not_wait(house: House) -> None:
    heard = await house.hear("The safe is in the attic", waits=True)
    await house.hear("Hello", waits=True)
    plan = await house.memory.plan_forgetting(house.owner, house.chat, "attic", now=house.clock())
    assert plan is not None
    await house.memory.forget(house.owner, plan.offer, picks=None, now=house.clock())
    assert await waiting(house) == ["Hello"]
    assert not (await house.memory.note(house.owner, house.chat, Line("user", "Lin", house.clock(), "x"))).waiting
    assert house.rows(f"SELECT * FROM waiting WHERE id = {heard.message.id}") == []


async def test_forgetting_one_of_several_quick_messages_takes_their_one_reply_along(house: House) -> None:
    first, second = [(await house.hear(text)).message for text in ("The safe is in the attic", "Is that wise?")]
    await house.reply("Not at all.", second, also=[first.id])
    plan = await house.memory.plan_forgetting(house.owner, house.chat, "attic", now=house.clock())
    assert plan is not None
    await house.memory.forget(house.owner, plan.offer, picks=None, now=house.clock())
    assert await house.window() == ["Is that wise?"]


async def test_an_answer_under_way_while_something_was_forgotten_is_given_anew_after_a_kill(house: House) -> None:
    await house.hear("The safe is in the attic")
    heard = await house.hear("Where is it?", waits=True)
    plan = await house.memory.plan_forgetting(house.owner, house.chat, "attic", now=house.clock())
    assert plan is not None
    await house.memory.forget(house.owner, plan.offer, picks=None, now=house.clock())
    await house.reply("In the attic.", heard.message, delivered=False, since=heard.message.id)
    (found,) = await house.memory.waiting("test", since=house.clock() - WEEK)
    assert (found.message.id, found.reply) == (heard.message.id, None)


# ---- the window ------------------------------------------------------------------------------------


async def test_the_window_holds_no_line_that_still_waits_and_none_that_is_named(house: House) -> None:
    first = await house.hear("first", waits=True)
    second = await house.hear("second", waits=True)
    third = await house.hear("third")
    assert await house.window() == ["third"]
    await house.reply("to the first", first.message)
    await house.reply("to the second", second.message, delivered=False)
    assert await house.window() == ["first", "to the first", "second", "to the second", "third"]
    but = {second.message.id, third.message.id}
    assert await house.window(but=but) == ["first", "to the first", "to the second"]


async def test_the_window_is_cut_behind_its_choice(house: House) -> None:
    for text in ("one", "two", "three"):
        await house.hear(text)
    await house.hear("later", waits=True)
    assert await house.window(limit=2) == ["two", "three"]


async def test_a_reply_stands_behind_the_last_line_it_answers_whoever_spoke_meanwhile(house: House) -> None:
    bo = await other(house)
    room = await group(house)
    first = await house.hear("Lin 1", chat=room, waits=True)
    second = await house.hear("Lin 2", chat=room, waits=True)
    third = await house.hear("Bo", chat=room, owner=bo, waits=True)
    assert await house.window(chat=room) == []
    await house.reply("to Bo", third.message, chat=room, owner=bo)
    await house.reply("to Lin", first.message, chat=room, also=[second.message.id])
    assert await house.window(chat=room) == ["Lin 1", "Lin 2", "to Lin", "Bo", "to Bo"]


async def test_a_reply_whose_line_is_gone_stands_at_its_own_time(house: House) -> None:
    first = await house.hear("one")
    await house.hear("two")
    reply = await house.reply("to one", first.message)
    lines = await house.memory.window(house.owner, house.chat, now=house.clock())
    assert [line.text for line in lines] == ["one", "to one", "two"]
    assert [line.text for line in in_turns(lines[1:])] == ["two", "to one"]
    assert in_turns([reply]) == [reply]


async def test_a_late_reply_belongs_to_the_session_of_what_it_answers(house: House) -> None:
    heard = await house.hear("Sent while you were away", waits=True)
    house.clock.advance(hours=5)
    reply = await house.reply("Back again.", heard.message)
    assert reply.session == heard.message.session
    assert await house.window() == ["Sent while you were away", "Back again."]
    await house.memory.new_session(house.owner, house.chat, now=house.clock())
    late = await house.reply("One more.", heard.message)
    assert late.session != heard.message.session
