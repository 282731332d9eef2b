"""Journal and sessions: durable lines, ends by silence, and a cursor that skips nothing and repeats nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from memory.journal import Line
from memory.model import Message
from memory.sessions import SPENDING_DAYS, Batch, Reach, Session, next_day
from tests.conftest import Clock
from tests.shelf import Shelf


@pytest.fixture
async def shelf(tmp_path: Path, clock: Clock) -> AsyncIterator[Shelf]:
    opened = await Shelf.open(tmp_path / "r.db", clock)
    yield opened
    await opened.db.close()


async def due(shelf: Shelf) -> list[Session]:
    return await shelf.sessions.due(shelf.owner, now=shelf.clock())


async def claim(shelf: Shelf, session: int, limit: int = 60) -> Batch | None:
    return await shelf.sessions.claim(shelf.owner, session, now=shelf.clock(), lease_seconds=600, limit=limit)


async def finish(shelf: Shelf, session: int, upto: Message) -> None:
    async with shelf.db.transaction():
        await shelf.sessions.finish(shelf.owner, session, Reach(upto.id))


def whole(message: Message) -> Reach:
    """Of a message read from its beginning to its end."""
    return Reach(message.id, (message.id,), (message.id,))


async def test_a_session_ends_by_silence_and_the_next_message_begins_another(shelf: Shelf) -> None:
    first, second = await shelf.say("早"), await shelf.say("今天有点忙")
    assert first.session == second.session
    shelf.clock.advance(minutes=28)
    assert (await shelf.say("回来了")).session == first.session
    shelf.clock.advance(minutes=30)
    assert await shelf.sessions.current(shelf.owner, shelf.chat, now=shelf.clock()) is None
    assert (await shelf.say("晚安")).session != first.session


async def test_a_session_that_was_ended_takes_no_more_lines(shelf: Shelf) -> None:
    first = await shelf.say("早")
    assert await shelf.sessions.end(shelf.owner, shelf.chat, at=shelf.clock())
    assert not await shelf.sessions.end(shelf.owner, shelf.chat, at=shelf.clock())
    assert (await shelf.say("再来")).session != first.session
    assert [session.no for session in await due(shelf)] == [first.session]


async def test_nobody_ends_a_session_they_take_no_part_in(shelf: Shelf) -> None:
    first = await shelf.say("早")
    other = await shelf.accounts.meet("console", "1002", name="", language="zh", zone="UTC", at=shelf.clock())
    assert not await shelf.sessions.end(other, shelf.chat, at=shelf.clock())
    assert await shelf.journal.of_session(other, first.session, limit=9) == []
    assert (await shelf.say("还在")).session == first.session


async def test_the_window_reads_the_newest_lines_in_order_without_commands(shelf: Shelf) -> None:
    for text in "一二三":
        last = await shelf.say(text)
    await shelf.say("", kind="command")
    lines = await shelf.journal.of_session(shelf.owner, last.session, limit=2)
    assert [line.text for line in lines] == ["二", "三"]


async def test_the_same_platform_message_is_found_again(shelf: Shelf) -> None:
    line = Line("user", "Lin", shelf.clock(), "早", platform_id="77")
    async with shelf.db.transaction():
        session = await shelf.sessions.touch(shelf.owner, shelf.chat, line.at)
        (message,) = await shelf.journal.add(shelf.owner, shelf.chat, session, [line])
    assert await shelf.journal.delivered(shelf.owner, shelf.chat, "77") == message
    assert await shelf.journal.delivered(shelf.owner, shelf.chat, "78") is None
    await shelf.journal.hide(shelf.owner, [message.id], 5)
    forgotten = await shelf.journal.delivered(shelf.owner, shelf.chat, "77")
    assert forgotten is not None
    assert (forgotten.id, forgotten.text, forgotten.kind) == (message.id, "", "command")
    await shelf.journal.unhide(shelf.owner, 5)
    assert await shelf.journal.delivered(shelf.owner, shelf.chat, "77", "bot") is None
    with pytest.raises(Exception, match="UNIQUE"):
        async with shelf.db.transaction():
            await shelf.journal.add(shelf.owner, shelf.chat, session, [line])


async def test_a_session_is_due_only_when_it_is_idle(shelf: Shelf) -> None:
    message = await shelf.say("早")
    assert await due(shelf) == []
    shelf.clock.advance(minutes=30)
    assert [session.no for session in await due(shelf)] == [message.session]
    assert await shelf.sessions.owners_due(now=shelf.clock()) == [shelf.owner.no]


async def test_f04_a_claim_excludes_others_until_its_lease_ends(shelf: Shelf) -> None:
    message = await shelf.say("早")
    shelf.clock.advance(minutes=30)
    assert await claim(shelf, message.session) is not None
    assert await due(shelf) == []
    assert await claim(shelf, message.session) is None
    shelf.clock.advance(minutes=10)
    assert [session.attempts for session in await due(shelf)] == [1]
    assert await claim(shelf, message.session) is not None


async def test_every_line_is_handed_out_once_however_the_session_grows(shelf: Shelf) -> None:
    seen: list[str] = []
    for text in "一二三四五":
        last = await shelf.say(text)
    shelf.clock.advance(minutes=30)
    while batch := await claim(shelf, last.session, limit=2):
        seen += [message.text for message in batch.messages]
        assert [m.text for m in batch.earlier] == seen[: len(seen) - len(batch.messages)]
        await finish(shelf, last.session, batch.messages[-1])
    assert seen == list("一二三四五")
    assert await due(shelf) == []


async def test_a_line_that_arrives_during_a_distillation_waits_for_the_next(shelf: Shelf) -> None:
    first = await shelf.say("一")
    shelf.clock.advance(minutes=29)
    await shelf.sessions.end(shelf.owner, shelf.chat, at=shelf.clock())
    batch = await claim(shelf, first.session)
    assert batch is not None
    line = Line("user", "Lin", shelf.clock(), "二")
    async with shelf.db.transaction():
        await shelf.journal.add(shelf.owner, shelf.chat, first.session, [line])
    await finish(shelf, first.session, batch.messages[-1])
    again = await claim(shelf, first.session)
    assert again is not None
    assert [message.text for message in again.messages] == ["二"]


async def test_a_session_that_grows_keeps_count_of_its_tries(shelf: Shelf) -> None:
    message = await shelf.say("一")
    for _ in range(2):
        shelf.clock.advance(minutes=31)
        assert await claim(shelf, message.session)
        await shelf.sessions.fail(shelf.owner, message.session, reason="cut", retry_at=shelf.clock())
    async with shelf.db.transaction():
        await shelf.sessions.touch(shelf.owner, shelf.chat, message.at)
    assert [(session.attempts, session.failed) for session in await due(shelf)] == [(2, "cut")]


async def test_lines_that_are_set_aside_carry_the_reason_and_hold_up_nothing_behind_them(shelf: Shelf) -> None:
    poison, fine = await shelf.say("一", id_="1"), await shelf.say("二")
    shelf.clock.advance(minutes=31)
    batch = await claim(shelf, poison.session, limit=1)
    assert batch is not None
    async with shelf.db.transaction():
        await shelf.sessions.set_aside(shelf.owner, batch, whole(poison), reason="no_json", now=shelf.clock())
    batch = await claim(shelf, poison.session)
    assert batch is not None
    assert [message.id for message in batch.messages] == [fine.id]
    await finish(shelf, poison.session, fine)
    assert await marks(shelf) == {poison.id: "no_json", fine.id: None}

    await shelf.journal.rewrite(shelf.owner, poison, Line("user", "Lin", poison.at, "三"))
    await shelf.sessions.again(shelf.owner, poison.session)
    batch = await claim(shelf, poison.session)
    assert batch is not None
    assert [message.text for message in batch.messages] == ["三"]
    async with shelf.db.transaction():
        await shelf.sessions.finish(shelf.owner, poison.session, whole(poison))
    assert set((await marks(shelf)).values()) == {None}


async def marks(shelf: Shelf) -> dict[int, str | None]:
    return {row["id"]: row["set_aside"] for row in await shelf.db.fetch("SELECT id, set_aside FROM journal")}


async def test_a_claim_is_held_until_another_takes_its_place(shelf: Shelf) -> None:
    message = await shelf.say("一")
    shelf.clock.advance(minutes=31)
    first = await claim(shelf, message.session)
    assert first is not None
    assert await shelf.sessions.holds(shelf.owner, first)
    shelf.clock.advance(minutes=11)
    second = await claim(shelf, message.session)
    assert second is not None
    assert not await shelf.sessions.holds(shelf.owner, first)
    await shelf.sessions.postpone(shelf.owner, message.session, now=shelf.clock(), until=next_day(shelf.clock()))
    assert await shelf.sessions.holds(shelf.owner, second)


async def test_tokens_are_counted_by_person_and_day_of_utc(shelf: Shelf) -> None:
    other = await shelf.accounts.meet("console", "1002", name="", language="en", zone="UTC", at=shelf.clock())
    now = shelf.clock()
    for owner, tokens in ((shelf.owner, 70), (shelf.owner, -20), (other, 5), (other, -100)):
        await shelf.sessions.charge(owner, tokens, now=now)
    assert await shelf.sessions.spent(shelf.owner, now=now) == (50, 50)
    assert await shelf.sessions.spent(other, now=now) == (0, 50)
    assert await shelf.sessions.spent(shelf.owner, now=next_day(now)) == (0, 0)
    assert await shelf.sessions.spent(shelf.owner, now=next_day(now) - timedelta(microseconds=1)) == (50, 50)
    await shelf.sessions.charge(shelf.owner, 1, now=now + timedelta(days=SPENDING_DAYS + 1))
    assert await shelf.sessions.spent(shelf.owner, now=now) == (0, 0)


async def test_hidden_lines_and_commands_are_not_handed_out(shelf: Shelf) -> None:
    hidden, kept = await shelf.say("一"), await shelf.say("二")
    await shelf.say("", kind="command")
    await shelf.journal.hide(shelf.owner, [hidden.id], 5)
    shelf.clock.advance(minutes=30)
    batch = await claim(shelf, kept.session)
    assert batch is not None
    assert [message.text for message in batch.messages] == ["二"]


async def test_old_lines_are_trimmed_and_hidden_ones_left_to_their_erasure(shelf: Shelf) -> None:
    old, hidden = await shelf.say("旧"), await shelf.say("藏")
    await shelf.journal.hide(shelf.owner, [hidden.id], 5)
    shelf.clock.advance(days=10)
    new = await shelf.say("新")
    assert await shelf.journal.trim(shelf.owner, before=new.at) == 1
    assert [line.text for line in await shelf.journal.said(shelf.owner)] == ["新"]
    assert [line.text for line in await shelf.journal.hidden(shelf.owner, 5)] == ["藏"]
    assert await shelf.journal.lines(shelf.owner, [old.id]) == {}


async def test_units_of_the_journal_know_session_speaker_and_audience(shelf: Shelf) -> None:
    message = await shelf.say("早")
    (unit,) = await shelf.journal.units(shelf.owner)
    assert (unit.id, unit.session, unit.speaker, unit.role) == (message.id, message.session, "Lin", "user")
    assert (unit.audience, unit.cites) == (0, (message.id,))
    assert await shelf.journal.units(shelf.owner, after=message.id) == []
