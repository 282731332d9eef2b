"""What the bot told others of a group goes with the words it repeats; what they said themselves stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from memory import Line
from memory.model import Account, Chat, Message
from tests.conftest import Clock
from tests.house import House, housed
from tests.shelf import fact


@pytest_asyncio.fixture
async def house(tmp_path: Path, clock: Clock) -> AsyncIterator[House]:
    async with housed(tmp_path / "memory.sqlite", clock) as opened:
        yield opened


class Group:
    """A group of two: Lin, whose house it is, and Bo."""

    def __init__(self, house: House, bo: Account, room: Chat) -> None:
        self.house, self.bo, self.room = house, bo, room

    @classmethod
    async def of(cls, house: House) -> Group:
        bo = await house.memory.account("test", "1002", name="Bo")
        return cls(house, bo, await house.memory.chat(house.owner, "group:-1", private=False))

    async def lin(self, text: str) -> Message:
        return (await self.house.hear(text, chat=self.room)).message

    async def told_bo(self, said: str, reply: str, **more: object) -> Message:
        heard = await self.house.hear(said, owner=self.bo, chat=self.room)
        return await self.house.reply(reply, heard.message, chat=self.room, owner=self.bo, **more)

    async def forget(self, words: str) -> int:
        memory, house = self.house.memory, self.house
        plan = await memory.plan_forgetting(house.owner, house.chat, words, now=house.clock())
        assert plan is not None
        deletion = await memory.forget(house.owner, plan.offer, picks=None, now=house.clock())
        assert deletion is not None
        return deletion.counts["replies"]

    async def texts(self) -> list[str]:
        lines = await self.house.memory.window(self.bo, self.room, now=self.house.clock())
        return [line.text for line in lines]


@pytest_asyncio.fixture
async def group(house: House) -> Group:
    return await Group.of(house)


async def test_an_answer_to_another_member_goes_with_the_word_it_repeats(group: Group) -> None:
    await group.lin("My sister works for Zorblatt and is content there")
    await group.told_bo("What did Lin say?", "That Zorblatt is a good employer.")
    assert await group.forget("Zorblatt") == 1
    assert await group.texts() == ["What did Lin say?"]


async def test_undo_brings_it_back_and_erasure_leaves_no_byte(group: Group) -> None:
    house = group.house
    await group.lin("My sister works for Zorblatt and is content there")
    await group.told_bo("What did Lin say?", "That Zorblatt is a good employer.")
    await group.forget("Zorblatt")
    assert await house.memory.undo(house.owner, now=house.clock()) is not None
    assert "That Zorblatt is a good employer." in await group.texts()
    await group.forget("Zorblatt")
    house.clock.advance(hours=1)
    await house.memory.run_due(now=house.clock())
    assert "zorblatt" not in house.everything().casefold()
    assert all(b"orblatt" not in path.read_bytes() for path in house.path.parent.iterdir())


async def test_what_another_member_said_or_was_told_because_of_their_own_words_stays(group: Group) -> None:
    await group.lin("I am allergic to pollen")
    await group.told_bo("I am allergic to pollen, too", "Then stay away from pollen.")
    await group.told_bo("How long does the season last?", "Until June, mostly.")
    assert await group.forget("pollen") == 0
    assert "Then stay away from pollen." in await group.texts()
    assert "Until June, mostly." in await group.texts()


async def test_an_answer_in_another_session_stays(group: Group) -> None:
    await group.told_bo("Who is hiring?", "Zorblatt is.")
    group.house.clock.advance(hours=3)
    await group.lin("My sister works for Zorblatt and is content there")
    assert await group.forget("Zorblatt") == 0


async def test_a_message_deleted_on_the_platform_takes_the_answers_to_others_with_it(group: Group) -> None:
    house = group.house
    await house.hear("My sister works for Zorblatt", chat=group.room, id_="7")
    await group.told_bo("What did Lin say?", "That Zorblatt is a good employer.")
    await house.memory.withdraw(house.owner, group.room, ["7"], now=house.clock())
    assert "zorblatt" not in house.everything().casefold()


@pytest.mark.parametrize("meanwhile", [True, False])
async def test_an_answer_under_way_to_another_member_is_not_kept(group: Group, *, meanwhile: bool) -> None:
    house = group.house
    await group.lin("My sister works for Zorblatt and is content there")
    if not meanwhile:
        await group.forget("Zorblatt")
        house.clock.advance(minutes=1)
    asked = (await house.hear("What did Lin say?", owner=group.bo, chat=group.room)).message
    house.clock.advance(seconds=1)
    if meanwhile:
        await group.forget("Zorblatt")
    reply = await house.reply("She likes it there.", asked, chat=group.room, owner=group.bo)
    assert (reply.text == "") is meanwhile


def trace(*ids: int, band: str = "full", window: tuple[int, ...] = ()) -> dict[str, object]:
    """A trace as far as it tells what a reply was given with."""
    recalled = [{"id": id_, "kind": "message", "band": band, "score": 1.0, "scores": {}} for id_ in ids]
    return {"recalled": recalled, "window": {"ids": list(window)}}


async def told(
    house: House, chat: Chat, asked: Message, text: str, data: dict[str, object], *, owner: Account | None = None
) -> Message:
    """A reply to a question, of the house's owner or of ``owner``, with the trace of what it was given with."""
    line = Line("bot", "Recollect", house.clock.advance(seconds=5), text, "said", None, asked.id)
    return await house.memory.answered(owner or house.owner, chat, line, data | {"question": asked.id})


@pytest.mark.parametrize("band", ["full", "always"])
async def test_what_was_given_with_an_answer_that_is_no_more_is_found_through_what_that_rested_on(
    house: House, band: str
) -> None:
    fact = (await house.hear("My sister works for Zorblatt and is content there")).message
    house.clock.advance(hours=2)
    first = (await house.hear("Where is she?")).message
    between = await told(house, house.chat, first, "At work, I think.", trace(fact.id, band=band))
    house.clock.advance(hours=2)
    second = (await house.hear("And there?")).message
    await told(house, house.chat, second, "A good place, this Zorblatt.", trace(between.id))
    await house.memory.unreply(house.owner, first.id)
    plan = await house.memory.plan_forgetting(house.owner, house.chat, "sister", now=house.clock())
    assert plan is not None
    assert "A good place, this Zorblatt." in {line.text for line in plan.lines}


async def test_an_answer_that_is_no_more_leads_to_what_another_member_was_told_after_it(group: Group) -> None:
    house = group.house
    fact = await group.lin("My sister works for Zorblatt and is content there")
    house.clock.advance(hours=3)
    asked = (await house.hear("Where does she work?", chat=group.room)).message
    between = await told(house, group.room, asked, "For Zorblatt.", trace(fact.id))
    question = (await house.hear("What was that?", owner=group.bo, chat=group.room)).message
    await told(house, group.room, question, "Zorblatt, I said.", trace(window=(asked.id, between.id)), owner=group.bo)
    await house.memory.unreply(house.owner, asked.id)
    assert await group.forget("sister") == 1
    await house.memory.run_due(now=house.clock.advance(minutes=11))
    assert "zorblatt" not in house.everything().casefold()


async def test_what_is_deleted_on_the_platform_takes_along_what_came_of_an_answer_given_anew(group: Group) -> None:
    house = group.house
    said = (await house.hear("On Saturday we went to Zorblatt", chat=group.room, id_="7")).message
    house.clock.advance(hours=8)
    await house.hear("Good evening.", chat=group.room)
    again = await told(house, group.room, said, "You went to Zorblatt.", trace())
    asked = (await house.hear("Where was that?", chat=group.room)).message
    await told(house, group.room, asked, "Zorblatt.", trace(window=(again.id,)))
    await house.memory.withdraw(house.owner, group.room, ["7"], now=house.clock())
    assert "zorblatt" not in house.everything().casefold()


async def test_what_an_answer_that_is_no_more_was_asked_leads_to_what_came_of_it(house: House) -> None:
    said = (await house.hear("On Saturday we went to Zorblatt")).message
    house.clock.advance(hours=8)
    first = await told(house, house.chat, said, "How nice!", trace())
    house.clock.advance(hours=8)
    asked = (await house.hear("And there?")).message
    await told(house, house.chat, asked, "A good place, this Zorblatt.", trace(first.id))
    await house.memory.unreply(house.owner, said.id)
    plan = await house.memory.plan_forgetting(house.owner, house.chat, "Saturday", now=house.clock())
    assert plan is not None
    assert "A good place, this Zorblatt." in {line.text for line in plan.lines}


async def test_an_edit_takes_along_an_answer_given_anew_in_a_later_talk(group: Group) -> None:
    house = group.house
    said = (await house.hear("On Saturday we went to Zorblatt", chat=group.room, id_="7")).message
    house.clock.advance(hours=8)
    await house.hear("Good evening.", chat=group.room)
    await told(house, group.room, said, "You went to Zorblatt.", trace())
    new = Line("user", "Lin", house.clock(), "On Saturday we stayed at home", platform_id="7")
    await house.memory.revise(house.owner, group.room, "7", new, now=house.clock())
    assert "zorblatt" not in house.everything().casefold()


async def test_what_a_third_person_was_told_is_erased_though_the_answer_it_came_by_is_gone_before(group: Group) -> None:
    house = group.house
    other = await house.memory.chat(group.bo, "group:-2", private=False)
    cy = await house.memory.account("test", "1003", name="Cy")

    async def told(owner: Account, room: Chat, text: str, data: dict[str, object]) -> Message:
        asked = (await house.hear("And?", owner=owner, chat=room)).message
        line = Line("bot", "Recollect", house.clock(), text, "said", None, asked.id)
        return await house.memory.answered(owner, room, line, data | {"question": asked.id})

    await group.lin("My sister works for Zorblatt and is content there")
    first = await told(group.bo, group.room, "She is at Zorblatt.", trace())
    second = await told(group.bo, other, "At Zorblatt.", trace(first.id))
    await told(cy, other, "Zorblatt, as I said.", trace(window=(second.id,)))
    assert await group.forget("sister") == 3
    assert second.answers is not None
    await house.memory.unreply(group.bo, second.answers)
    await house.memory.run_due(now=house.clock.advance(minutes=11))
    assert "zorblatt" not in house.everything().casefold()


@pytest.mark.parametrize("edited", [True, False])
async def test_what_somebody_was_told_again_because_another_was_told_it_goes_too(group: Group, *, edited: bool) -> None:
    house = group.house

    async def told(owner: Account, text: str, data: dict[str, object]) -> Message:
        asked = (await house.hear("And?", owner=owner, chat=group.room)).message
        line = Line("bot", "Recollect", house.clock(), text, "said", None, asked.id)
        return await house.memory.answered(owner, group.room, line, data | {"question": asked.id})

    await house.hear("On Saturday we went to Zorblatt", chat=group.room, id_="7")
    first = await told(group.bo, "They went to Zorblatt.", trace())
    house.clock.advance(hours=8)
    again = await told(group.bo, "To Zorblatt.", trace(first.id))
    await told(house.owner, "Zorblatt, as I told Bo.", trace(window=(again.id,)))
    if edited:
        new = Line("user", "Lin", house.clock(), "On Saturday we stayed at home", platform_id="7")
        await house.memory.revise(house.owner, group.room, "7", new, now=house.clock())
    else:
        await group.forget("Saturday")
        await house.memory.run_due(now=house.clock.advance(minutes=11))
    assert "zorblatt" not in house.everything().casefold()


@pytest.mark.parametrize("edited", [True, False])
async def test_what_a_memory_drew_on_beside_its_words_leads_to_what_was_told_with_it_after_it_is_taken_back(
    group: Group, *, edited: bool
) -> None:
    """A distilled memory may name what was said beside the line it cites; that line goes, then what was beside it."""
    house, memory = group.house, group.house.memory
    await group.lin("On Saturday we went to Zorblatt and it rained")
    cited = (await house.hear("I had tea there", chat=group.room, id_="7")).message
    async with memory._db.transaction():
        candidate = fact(cited, "I had tea at Zorblatt")
        made = await memory._stores.facts.add(house.owner, candidate, audience=group.room.audience, now=house.clock())
    asked = (await house.hear("Where did I have tea?")).message
    recalled = {"id": made.id, "band": "full", "scores": {}}
    line = Line("bot", "Recollect", house.clock(), "At Zorblatt.", "said", None, asked.id)
    await memory.answered(house.owner, house.chat, line, {"recalled": [recalled], "question": asked.id})
    if edited:
        new = Line("user", "Lin", house.clock(), "I had none", platform_id="7")
        await memory.revise(house.owner, group.room, "7", new, now=house.clock())
    else:
        await memory.withdraw(house.owner, group.room, ["7"], now=house.clock())
    assert "At Zorblatt." in await house.window(), "what was said on Saturday stands"
    plan = await memory.plan_forgetting(house.owner, group.room, "here", now=house.clock())
    assert plan is not None
    await memory.forget(house.owner, plan.offer, picks=None, now=house.clock())
    await memory.run_due(now=house.clock.advance(minutes=11))
    assert "zorblatt" not in house.everything().casefold()


async def second_account(house: House) -> tuple[Account, Chat]:
    """Another account that was one person with Lin's for a while."""
    other = await house.memory.account("other", "2001", name="Lin")
    chat = await house.memory.chat(other, "dm:2001")
    code = await house.memory.linking.show(house.owner, house.chat, now=house.clock())
    assert (await house.memory.linking.redeem(other, code.code, now=house.clock())).outcome == "linked"
    await house.memory.linking.unlink(other, now=house.clock())
    return other, chat


async def told_elsewhere(house: House, memory: int, text: str, *, own: str = "") -> Account:
    """The second account is told something with a memory of the first, which is told ``own``; returns the second."""
    other, there = await second_account(house)
    for owner, chat, reply in ((house.owner, house.chat, own), (other, there, text)):
        if reply:
            asked = (await house.hear("Where is that?", owner=owner, chat=chat)).message
            await told(house, chat, asked, reply, trace(memory), owner=owner)
    return other


async def memory_of(house: House, said: Message, text: str) -> int:
    """A distilled memory of a line."""
    memory = house.memory
    async with memory._db.transaction():
        candidate = fact(said, text)
        made = await memory._stores.facts.add(house.owner, candidate, audience=house.chat.audience, now=house.clock())
    return made.id


async def forgotten(house: House, what: str) -> None:
    """All that such words name is forgotten, and erased."""
    memory, clock = house.memory, house.clock
    plan = await memory.plan_forgetting(house.owner, house.chat, what, now=clock())
    assert plan is not None
    await memory.forget(house.owner, plan.offer, picks=None, now=clock(), typed=True)
    await memory.run_due(now=clock.advance(minutes=11))


@pytest.mark.parametrize("own", ["", "Zorblatt, as you told me."])
@pytest.mark.parametrize("way", ["by its words", "here", "everything", "taken back"])
async def test_what_was_asked_to_be_remembered_has_its_words_in_no_line_and_is_found_where_it_was_told(
    house: House, way: str, own: str
) -> None:
    """The line of a command holds no text: the memory alone knows what an answer gives away."""
    said = (await house.hear("", kind="command", id_="7")).message
    decision = await house.memory.remember(house.owner, house.chat, said, "my boat lies at Zorblatt")
    assert decision.entry is not None
    await told_elsewhere(house, decision.entry.id, "At Zorblatt.", own=own)
    if way == "taken back":
        await house.memory.withdraw(house.owner, house.chat, ["7"], now=house.clock())
    else:
        await forgotten(house, "boat" if way == "by its words" else way)
    assert "zorblatt" not in house.everything().casefold()


@pytest.mark.parametrize("way", ["taken back", "edited", "by its words"])
async def test_what_was_told_in_the_words_of_a_memory_goes_though_its_line_has_others(house: House, way: str) -> None:
    said = (await house.hear("我妹妹在卓布拉特上班", id_="7")).message
    made = await memory_of(house, said, "Lin's sister works for Zorblatt")
    await told_elsewhere(house, made, "For Zorblatt.", own="She is fine.")
    if way == "taken back":
        await house.memory.withdraw(house.owner, house.chat, ["7"], now=house.clock())
    elif way == "edited":
        new = Line("user", "Lin", house.clock(), "我妹妹不上班", platform_id="7")
        await house.memory.revise(house.owner, house.chat, "7", new, now=house.clock())
    else:
        await forgotten(house, "Zorblatt")
    assert "zorblatt" not in house.everything().casefold()


async def test_what_was_told_of_a_memory_is_found_after_its_line_has_left_the_journal(house: House) -> None:
    said = (await house.hear("My sister works for Zorblatt")).message
    made = await memory_of(house, said, "Lin's sister works for Zorblatt")
    house.clock.advance(days=170)
    await told_elsewhere(house, made, "For Zorblatt.")
    await house.memory.run_due(now=house.clock.advance(days=20))
    assert not house.rows(f"SELECT 1 FROM journal WHERE id = {said.id}")
    await forgotten(house, "sister")
    assert "zorblatt" not in house.everything().casefold()


@pytest.mark.parametrize("again", ["here", "everything"])
async def test_what_two_deletions_cover_stays_hidden_where_it_was_told_when_the_first_is_undone(
    house: House, again: str
) -> None:
    memory, clock = house.memory, house.clock
    said = (await house.hear("My sister works for Zorblatt")).message
    await told_elsewhere(house, await memory_of(house, said, "Lin's sister works for Zorblatt"), "For Zorblatt.")
    await house.hear("Good evening.")
    first = await memory.plan_forgetting(house.owner, house.chat, "sister", now=clock())
    assert first is not None
    deletion = await memory.forget(house.owner, first.offer, picks=None, now=clock())
    assert deletion is not None
    second = await memory.plan_forgetting(house.owner, house.chat, again, now=clock.advance(minutes=1))
    assert second is not None
    await memory.forget(house.owner, second.offer, picks=None, now=clock(), typed=True)
    await memory.undo(house.owner, deletion.id, now=clock())
    assert not house.rows("SELECT 1 FROM journal WHERE text = 'For Zorblatt.' AND hidden_by IS NULL")
    await memory.run_due(now=clock.advance(minutes=11))
    assert "zorblatt" not in house.everything().casefold()


@pytest.mark.parametrize("edited", [True, False])
async def test_undoing_does_not_bring_back_what_was_told_of_a_message_taken_back_meanwhile(
    house: House, *, edited: bool
) -> None:
    memory, clock = house.memory, house.clock
    said = (await house.hear("My sister works for Zorblatt", id_="7")).message
    await told_elsewhere(house, await memory_of(house, said, "Lin's sister works for Zorblatt"), "For Zorblatt.")
    await house.hear("My dog is called Rex")
    plan = await memory.plan_forgetting(house.owner, house.chat, "here", now=clock())
    assert plan is not None
    await memory.forget(house.owner, plan.offer, picks=None, now=clock())
    if edited:
        new = Line("user", "Lin", clock(), "My sister does not work", platform_id="7")
        await memory.revise(house.owner, house.chat, "7", new, now=clock())
    else:
        await memory.withdraw(house.owner, house.chat, ["7"], now=clock())
    assert await memory.undo(house.owner, now=clock()) is not None
    assert "zorblatt" not in house.everything().casefold()


async def test_what_was_told_with_a_memory_and_names_nothing_of_it_stays(house: House) -> None:
    said = (await house.hear("", kind="command")).message
    decision = await house.memory.remember(house.owner, house.chat, said, "my boat lies at Zorblatt")
    assert decision.entry is not None
    other = await told_elsewhere(house, decision.entry.id, "I cannot tell.", own="At Zorblatt.")
    await forgotten(house, "boat")
    lines = house.rows(f"SELECT text FROM journal WHERE id BETWEEN {other.first_id} AND {other.last_id}")
    assert ("I cannot tell.",) in lines
