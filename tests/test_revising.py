"""Edits and deletions on the platform: the journal follows, what only the old words said is gone from everywhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory import Line, Revision
from memory.embedding import text_hash
from memory.model import Account, Chat, Message, MessageKind
from memory.ports import Completion, Vector
from tests.conftest import Clock
from tests.house import House, housed


class HashEmbedder:
    """Any text gets a vector of its own."""

    model = "hash"
    dimensions = 8

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        made: list[Vector | None] = []
        for text in texts:
            vector = np.frombuffer(text_hash(text), np.uint8)[:8].astype(np.float32) + 1
            made.append(vector / np.linalg.norm(vector))
        return made


@dataclass
class Script:
    """A model that gives its answers in order; ``meanwhile`` happens while it is asked."""

    answers: list[list[dict[str, Any]]] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        assert schema is not None
        assert max_tokens > 0
        self.prompts.append("\n".join(message["content"] for message in messages))
        if self.meanwhile is not None:
            work, self.meanwhile = self.meanwhile, None
            await work()
        assert self.answers, f"asked once too often: {self.prompts[-1]}"
        return Completion(json.dumps({"items": self.answers.pop(0)}), "stop", 10)


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
async def house(tmp_path: Path, clock: Clock, script: Script) -> AsyncIterator[House]:
    async with housed(tmp_path / "r.db", clock, embedder=HashEmbedder(), completer=script) as opened:
        yield opened


def fact(number: int, text: str, *more: int) -> dict[str, Any]:
    return {"kind": "fact", "text": text, "cites": [{"message": one} for one in (number, *more)]}


async def edit(
    house: House,
    id_: str,
    text: str,
    *,
    kind: MessageKind = "said",
    owner: Account | None = None,
    chat: Chat | None = None,
    learn: bool = True,
) -> Revision | None:
    person, room = owner or house.owner, chat or house.chat
    line = Line("user", "somebody", house.clock.advance(seconds=1), text, kind, id_, tokens=7)
    revision = await house.memory.revise(person, room, id_, line, now=house.clock())
    if revision is not None and learn:
        await house.memory.learn(person, room, revision.message)
    return revision


async def withdraw(house: House, *ids: str, owner: Account | None = None, chat: Chat | None = None) -> int:
    return await house.memory.withdraw(
        owner or house.owner, chat or house.chat, ids, now=house.clock.advance(seconds=1)
    )


async def distil(house: House) -> Mapping[str, int]:
    done = await house.memory.run_due(now=house.clock.advance(hours=1))
    return done["distil"]


async def recalled(house: House, question: str) -> list[str]:
    found = await house.memory.recall(house.owner, question, room=house.chat, now=house.clock())
    return [unit.text for unit in found.units]


# ---- edits -----------------------------------------------------------------------------------------


async def test_an_edit_changes_the_line_and_nothing_else_of_it(house: House) -> None:
    heard = await house.hear("I live in Oslo", id_="7")
    revision = await edit(house, "7", "The weather is fine", learn=False)
    assert revision is not None
    before = heard.message
    assert revision.message == Message(
        before.id, before.chat, before.session, "user", "Lin", before.at, "The weather is fine", "said", "7", None, 7
    )
    assert await house.window() == ["The weather is fine"]


async def test_the_old_words_are_gone_from_every_table_and_from_recall(house: House) -> None:
    heard = await house.hear("I live in Trondheim and I am allergic to walnuts", id_="7")
    await house.reply("Trondheim is lovely.", heard.message)
    await house.hear("See you")
    assert await house.known() != []
    await house.memory.embed(house.owner)
    assert any("Trondheim" in text for text in await recalled(house, "Where do I live? Trondheim?"))
    vectors = len(house.rows("SELECT * FROM embeddings"))
    revision = await edit(house, "7", "Good morning")
    assert revision is not None
    assert any("Trondheim" in text for text in revision.withdrawn)
    for word in ("Trondheim", "walnut"):
        assert word not in house.everything()
    assert await house.known() == []
    assert not any("Trondheim" in text for text in await recalled(house, "Where do I live? Trondheim?"))
    await house.memory.embed(house.owner)
    assert len(house.rows("SELECT * FROM embeddings")) < vectors
    kept = {row for (row,) in house.rows("SELECT text_hash FROM embeddings")}
    held = {h for t in ("journal", "profile", "facts") for (h,) in house.rows(f"SELECT text_hash FROM {t}")}
    assert kept <= held


async def test_an_edit_that_changes_no_word_or_that_nobody_heard_is_none(house: House) -> None:
    await house.hear("I live in Oslo", id_="7")
    bo = await house.memory.account("test", "1002", name="Bo")
    elsewhere = await house.memory.chat(house.owner, "dm:other")
    before = house.everything()
    assert await edit(house, "7", "I live in Oslo") is None
    assert await edit(house, "8", "I live in Bergen") is None
    assert await edit(house, "7", "I live in Bergen", owner=bo) is None
    assert await edit(house, "7", "I live in Bergen", chat=elsewhere) is None
    assert house.everything() == before


async def test_a_value_the_old_words_took_the_place_of_holds_again(house: House) -> None:
    await house.hear("I live in Oslo", id_="1")
    await house.hear("I live in Bergen", id_="2")
    (home,) = await house.known()
    assert "Bergen" in home
    await edit(house, "2", "I was in Bergen for a day")
    (home,) = await house.known()
    assert "Oslo" in home


async def test_a_new_value_in_the_edited_words_takes_the_old_place(house: House) -> None:
    await house.hear("I live in Oslo", id_="1")
    await house.hear("I live in Bergen", id_="2")
    await edit(house, "2", "I live in Stavanger")
    (home,) = await house.known()
    assert "Stavanger" in home
    assert "Bergen" not in house.everything()
    (before,) = [e for e in await house.memory.history(house.owner) if e.provenance.retired_at is not None]
    assert "Oslo" in before.text


async def test_a_value_that_something_newer_holds_stays_closed_and_points_there(house: House) -> None:
    await house.hear("I live in Oslo", id_="1")
    await house.hear("I live in Bergen", id_="2")
    await house.hear("I live in Stavanger", id_="3")
    await edit(house, "2", "Nice weather")
    (home,) = await house.known()
    assert "Stavanger" in home
    oslo, stavanger = await house.memory.history(house.owner)
    assert oslo.provenance.successor == stavanger.id
    await edit(house, "3", "Nice weather indeed")
    (home,) = await house.known()
    assert "Oslo" in home


async def test_what_the_old_words_ended_holds_again(house: House) -> None:
    await house.hear("I live in Oslo", id_="1")
    await house.hear("I no longer live in Oslo", id_="2")
    assert await house.known() == []
    await edit(house, "2", "I still live here")
    (home,) = await house.known()
    assert "Oslo" in home


async def test_a_memory_with_another_citation_keeps_it_and_loses_this_one(house: House) -> None:
    first = await house.hear("I live in Oslo", id_="1")
    second = await house.hear("I live in Oslo", id_="2")
    (home,) = await house.memory.known(house.owner, room=house.chat, now=house.clock())
    assert {c.message for c in home.provenance.citations} == {first.message.id, second.message.id}
    revision = await edit(house, "2", "Nothing much")
    assert revision is not None
    assert revision.withdrawn == ()
    (kept,) = await house.memory.known(house.owner, room=house.chat, now=house.clock())
    assert [c.message for c in kept.provenance.citations] == [first.message.id]
    assert (kept.provenance.said_at, kept.provenance.confirmed_at) == (first.message.at, None)


async def test_a_line_edited_into_a_command_keeps_only_that_it_came(house: House) -> None:
    heard = await house.hear("I live in Oslo", id_="7", waits=True)
    revision = await edit(house, "7", "", kind="command")
    assert revision is not None
    assert (revision.message.id, revision.message.text, revision.message.kind) == (heard.message.id, "", "command")
    assert not revision.waits
    assert await house.window() == []
    assert "Oslo" not in house.everything()
    again = await house.hear("I live in Oslo", id_="7")
    assert (again.new, again.message.text) == (False, "")


async def test_a_command_edited_into_words_is_a_line_from_now_on(house: House) -> None:
    await house.hear("", id_="7", kind="command")
    assert await edit(house, "7", "", kind="command") is None
    assert await edit(house, "7", "I live in Oslo") is not None
    assert await house.window() == ["I live in Oslo"]
    assert len(await house.known()) == 1


async def test_a_reply_stays_unless_it_gives_away_what_was_withdrawn(house: House) -> None:
    one = await house.hear("I live in Oslo", id_="1")
    await house.reply("Lovely.", one.message)
    two = await house.hear("I live in Bergen", id_="2")
    await house.reply("Bergen is rainy.", two.message)
    for id_ in ("1", "2"):
        revision = await edit(house, id_, f"Hello {id_}")
        assert revision is not None
        assert revision.was_answered
    assert await house.window() == ["Hello 1", "Lovely.", "Hello 2"]
    assert house.rows("SELECT count(*) FROM traces") == [(1,)]


async def test_a_revision_tells_what_the_answer_to_the_line_has_come_to(house: House) -> None:
    first = await house.hear("one", id_="1", waits=True)
    second = await house.hear("two", id_="2", waits=True)
    revision = await edit(house, "2", "two!")
    assert revision is not None
    assert (revision.was_answered, revision.waits, revision.newest) == (False, True, True)
    await house.reply("both", second.message, also=[first.message.id], delivered=False)
    for id_ in ("1", "2"):
        revision = await edit(house, id_, f"changed {id_}")
        assert revision is not None
        assert (revision.was_answered, revision.waits, revision.newest) == (True, id_ == "2", True)
    await house.memory.settled(house.owner, second.message.id)
    await house.hear("three")
    revision = await edit(house, "2", "two?")
    assert revision is not None
    assert (revision.was_answered, revision.waits, revision.newest) == (True, False, False)


async def test_only_the_last_message_of_the_session_that_goes_on_is_the_newest(house: House) -> None:
    room = await house.memory.chat(house.owner, "group:-5", private=False)
    bo = await house.memory.account("test", "1002", name="Bo")
    await house.hear("mine", id_="1", chat=room)
    theirs = await house.hear("theirs", id_="2", chat=room, owner=bo)
    revision = await edit(house, "1", "mine!", chat=room)
    assert revision is not None
    assert not revision.newest
    await withdraw(house, "2", owner=bo, chat=room)
    revision = await edit(house, "1", "mine?", chat=room)
    assert revision is not None
    assert revision.newest
    assert theirs.message.session == revision.message.session
    await house.memory.new_session(house.owner, room, now=house.clock())
    revision = await edit(house, "1", "mine.", chat=room)
    assert revision is not None
    assert not revision.newest


async def test_what_was_forgotten_is_not_brought_back_by_an_edit(house: House) -> None:
    await house.hear("The safe is in the attic", id_="7")
    plan = await house.memory.plan_forgetting(house.owner, house.chat, "attic", now=house.clock())
    assert plan is not None
    await house.memory.forget(house.owner, plan.offer, picks=None, now=house.clock())
    assert await edit(house, "7", "The safe is in the cellar") is None
    assert await house.window() == []
    await house.memory.undo(house.owner, now=house.clock())
    assert await house.window() == ["The safe is in the cellar"]
    assert "attic" not in house.everything()
    plan = await house.memory.plan_forgetting(house.owner, house.chat, "cellar", now=house.clock())
    assert plan is not None
    await house.memory.forget(house.owner, plan.offer, picks=None, now=house.clock())
    await house.memory.run_due(now=house.clock.advance(minutes=11))
    assert await edit(house, "7", "The safe is in the shed") is None
    assert not any(word in house.everything() for word in ("attic", "cellar", "shed"))


async def test_rules_that_read_the_old_words_meanwhile_write_nothing(house: House) -> None:
    line = Line("user", "Lin", house.clock(), "I live in Oslo", platform_id="7")
    heard = await house.memory.note(house.owner, house.chat, line)
    await edit(house, "7", "I live in Bergen")
    decisions = await house.memory.learn(house.owner, house.chat, heard.message)
    assert [(decision.action, decision.reason) for decision in decisions] == [("dropped", "withdrawn")]
    kept = await house.memory.remember(house.owner, house.chat, heard.message, "I live in Oslo")
    assert (kept.action, kept.reason) == ("dropped", "withdrawn")
    assert "Oslo" not in house.everything()


async def test_rules_and_edits_at_the_same_moment_leave_nothing_of_the_old_words(house: House) -> None:
    for number in range(8):
        line = Line("user", "Lin", house.clock.advance(minutes=1), f"I live in Oslo{number}", platform_id=str(number))
        heard = await house.memory.note(house.owner, house.chat, line)
        work = [
            house.memory.learn(house.owner, house.chat, heard.message),
            edit(house, str(number), f"I live in Bergen{number}"),
            house.memory.embed(house.owner),
        ]
        await asyncio.gather(*work[number % 2 :], *work[: number % 2])
        assert f"Oslo{number}" not in house.everything()
        (home,) = await house.known()
        assert f"Bergen{number}" in home
        old = text_hash(f"Lin: I live in Oslo{number}").hex()
        assert house.rows(f"SELECT 1 FROM embeddings WHERE hex(text_hash) = upper('{old}')") == []


async def test_a_kill_in_the_middle_of_an_edit_leaves_everything_as_it_was(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.hear("I live in Oslo", id_="1")
    await house.hear("I live in Bergen", id_="2")
    before = house.everything()

    async def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(house.memory._sessions, "again", killed)
        with pytest.raises(KeyboardInterrupt):
            await edit(house, "2", "Hello")
    await house.reopen()
    assert house.everything() == before


# ---- edits and distillation ------------------------------------------------------------------------


async def test_a_distillation_under_way_writes_nothing_of_the_old_words(house: House, script: Script) -> None:
    await house.hear("My cat Pluto came from Bergen", id_="7")

    async def meanwhile() -> None:
        await edit(house, "7", "My cat Miso came from Bergen")

    script.meanwhile = meanwhile
    script.answers = [[fact(1, "The user has a cat named Pluto")], [fact(1, "The user has a cat named Miso")]]
    assert (await distil(house))["retry"] == 1
    assert "Pluto" not in house.everything()
    assert (await distil(house))["added"] >= 1
    assert "Pluto" not in script.prompts[-1]
    assert "Pluto" not in house.everything()
    assert any("Miso" in text for text in await house.known())


async def test_a_line_deleted_while_it_is_distilled_gives_nothing(house: House, script: Script) -> None:
    await house.hear("My cat Pluto came from Bergen", id_="7")

    async def meanwhile() -> None:
        await withdraw(house, "7")

    script.meanwhile = meanwhile
    script.answers = [[fact(1, "The user has a cat named Pluto")]]
    assert (await distil(house))["retry"] == 1
    await distil(house)
    assert "Pluto" not in house.everything()


async def test_an_edited_line_alone_is_distilled_again(house: House, script: Script) -> None:
    for number, text in enumerate(("Pluto the cat sleeps a lot", "Work was long today", "My boat is called Ella")):
        await house.hear(text, id_=str(number))
    script.answers = [[fact(1, "The user's cat Pluto sleeps a lot"), fact(3, "The user's boat is called Ella")]]
    await distil(house)
    await edit(house, "0", "Pluto the cat sleeps on the sofa a lot")
    assert not any("Pluto" in text for text in await house.known())
    script.answers = [[fact(1, "The user's cat Pluto sleeps on the sofa a lot")]]
    await distil(house)
    assert "[1]" in script.prompts[-1]
    assert "Ella" not in script.prompts[-1].rsplit("New:", 1)[1]
    boat = [e for e in await house.memory.history(house.owner) if "Ella" in e.text]
    assert [entry.provenance.confirmations for entry in boat] == [1]
    assert any("sofa" in text for text in await house.known())
    await distil(house)
    assert len(script.prompts) == 2


async def test_a_line_edited_while_later_ones_are_distilled_has_its_turn_afterwards(
    house: House, script: Script
) -> None:
    await house.hear("Pluto the cat sleeps a lot", id_="0")
    script.answers = [[]]
    await distil(house)
    later = await house.hear("My boat is called Ella", id_="1")

    async def meanwhile() -> None:
        await edit(house, "0", "Pluto the cat sleeps on the sofa a lot")

    script.meanwhile = meanwhile
    script.answers = [[fact(1, "The user's boat is called Ella")], [fact(1, "Pluto sleeps on the sofa a lot")]]
    await distil(house)
    await distil(house)
    assert script.answers == []
    assert later.message.id in await house.memory.entries(house.owner, [later.message.id])
    assert "sofa" in script.prompts[-1]


async def test_an_edit_far_behind_what_is_being_distilled_is_not_lost(house: House, script: Script) -> None:
    first = (await house.hear("Pluto the cat sleeps a lot", id_="0")).message
    for number in range(1, 9):
        last = (await house.hear(f"Nothing new today {number}", id_=str(number))).message
    script.answers = [[]]
    await distil(house)
    # The session goes on: a late reply woke it.
    await house.reply("I see.", last)
    later = (await house.hear("My boat is called Ella", id_="9")).message
    assert later.session == first.session

    async def meanwhile() -> None:
        await edit(house, "0", "Pluto the cat sleeps on the sofa a lot")

    script.meanwhile = meanwhile
    script.answers = [[fact(2, "The user's boat is called Ella")], [fact(1, "Pluto sleeps on the sofa a lot")]]
    assert "added" in await distil(house)
    assert "Pluto" not in script.prompts[-1]
    assert "added" in await distil(house)
    assert "sofa" in script.prompts[-1].rsplit("New:", 1)[1]
    assert await distil(house) == {}


async def test_what_is_known_is_not_confirmed_by_the_line_it_came_from(house: House, script: Script) -> None:
    await house.hear("My cat Pluto sleeps a lot", id_="0")
    await edit(house, "0", "My cat Pluto sleeps a lot!")
    script.answers = [[fact(1, "The user's cat Pluto sleeps a lot")]]
    await distil(house)
    await edit(house, "0", "My cat Pluto sleeps a lot.")
    script.answers = [[fact(1, "The user's cat Pluto sleeps a lot")]]
    await distil(house)
    found = [e for e in await house.memory.history(house.owner) if "sleeps" in e.text]
    assert [(e.provenance.confirmations, e.provenance.confirmed_at) for e in found] == [(1, None)]


# ---- deletions -------------------------------------------------------------------------------------


async def test_a_deleted_message_leaves_a_mark_without_words_and_takes_all_of_it_along(house: House) -> None:
    await house.hear("I live in Oslo", id_="1")
    heard = await house.hear("I live in Trondheim", id_="2", waits=True)
    await house.reply("It rains in that town.", heard.message, delivered=False)
    await house.hear("See you", id_="3")
    await house.memory.embed(house.owner)
    assert await withdraw(house, "2", "9", "2") == 1
    assert "Trondheim" not in house.everything()
    assert "It rains" not in house.everything()
    assert await house.window() == ["I live in Oslo", "See you"]
    assert house.rows("SELECT * FROM waiting UNION ALL SELECT id, 1, 1, '', 1 FROM traces") == []
    (home,) = await house.known()
    assert "Oslo" in home
    again = await house.hear("I live in Trondheim", id_="2", waits=True)
    assert (again.new, again.waiting, again.message.text, again.message.kind) == (False, False, "", "command")
    assert await withdraw(house, "2") == 0
    assert "Trondheim" not in house.everything()


async def test_a_deleted_quick_message_takes_the_one_reply_along(house: House) -> None:
    first = await house.hear("The safe is in the attic", id_="1")
    second = await house.hear("Is that wise?", id_="2")
    await house.reply("The attic is fine.", second.message, also=[first.message.id])
    assert await withdraw(house, "1") == 1
    assert await house.window() == ["Is that wise?"]
    assert "attic" not in house.everything()


async def test_nobody_deletes_what_another_person_said(house: House) -> None:
    room = await house.memory.chat(house.owner, "group:-5", private=False)
    await house.hear("I live in Oslo", id_="1", chat=room)
    bo = await house.memory.account("test", "1002", name="Bo")
    assert await withdraw(house, "1", owner=bo, chat=room) == 0
    assert await withdraw(house, "1") == 0
    assert len(await house.known(room=room)) == 1


async def test_whose_message_was_deleted_is_found_by_its_number(house: House) -> None:
    bo = await house.memory.account("test", "1002", name="Bo")
    room = await house.memory.chat(bo, "group:-5", private=False, thread="9")
    await house.hear("Hello", id_="1", chat=room, owner=bo)
    await house.hear("Hello", id_="1")
    assert await house.memory.author_of("test", "group:-5", "9", "1") == bo
    assert await house.memory.author_of("test", "dm:1001", None, "1") == house.owner
    await withdraw(house, "1", owner=bo, chat=room)
    assert await house.memory.author_of("test", "group:-5", "9", "1") == bo
    for key, thread, id_ in (("group:-5", None, "1"), ("group:-5", "9", "2"), ("group:-6", "9", "1")):
        assert await house.memory.author_of("test", key, thread, id_) is None


async def test_an_answer_under_way_to_a_deleted_message_is_kept_without_its_words(house: House) -> None:
    heard = await house.hear("The safe is in the attic", id_="1", waits=True)
    await withdraw(house, "1")
    reply = await house.reply("In the attic, I see.", heard.message, delivered=False, since=heard.message.id)
    assert (reply.text, reply.kind) == ("", "command")
    assert "attic" not in house.everything()
    assert await house.memory.waiting("test", since=heard.message.at) == []


async def test_a_deletion_on_the_platform_owes_no_receipt_and_cannot_be_undone(house: House) -> None:
    await house.hear("The safe is in the attic", id_="1")
    await withdraw(house, "1")
    await house.memory.run_due(now=house.clock.advance(minutes=30))
    assert await house.memory.notices() == []
    assert await house.memory.undo(house.owner, now=house.clock()) is None


async def test_what_was_hidden_goes_with_its_deleted_message_and_gives_no_place_back(house: House) -> None:
    await house.hear("I live in Oslo", id_="1")
    await house.hear("I live in Bergen", id_="2")
    plan = await house.memory.plan_forgetting(house.owner, house.chat, "Bergen", now=house.clock())
    assert plan is not None
    await house.memory.forget(house.owner, plan.offer, picks=None, now=house.clock())
    assert await withdraw(house, "2") == 1
    assert "Bergen" not in house.everything()
    assert await house.known() == []


# ---- answers given anew ----------------------------------------------------------------------------


async def test_an_answer_can_be_given_anew(house: House) -> None:
    heard = await house.hear("How is Oslo?", id_="1", waits=True)
    await house.reply("Rainy.", heard.message)
    assert await house.memory.unreply(house.owner, heard.message.id, waits=True) == 1
    assert "Rainy" not in house.everything()
    assert house.rows("SELECT * FROM traces") == []
    await house.reopen()
    (found,) = await house.memory.waiting("test", since=heard.message.at)
    assert (found.message, found.reply, found.shown) == (heard.message, None, ())
    await house.reply("Sunny.", heard.message)
    assert await house.window() == ["How is Oslo?", "Sunny."]
    assert await house.memory.unreply(house.owner, heard.message.id) == 1
    assert await house.memory.unreply(house.owner, heard.message.id) == 0
    assert await house.memory.waiting("test", since=heard.message.at) == []


async def test_the_one_answer_to_quick_messages_goes_by_any_of_them(house: House) -> None:
    first, second = await house.hear("one", id_="1"), await house.hear("two", id_="2")
    await house.reply("both", second.message, also=[first.message.id])
    assert await house.memory.unreply(house.owner, first.message.id) == 1
    assert await house.window() == ["one", "two"]


async def test_a_quick_message_that_is_answered_alone_after_an_edit_has_its_own_answer(house: House) -> None:
    first, second = await house.hear("one", id_="1"), await house.hear("two", id_="2")
    await house.reply("both", second.message, also=[first.message.id])
    await edit(house, "1", "one!")
    await house.memory.unreply(house.owner, first.message.id, waits=True)
    reply = await house.reply("only the first", first.message)
    assert (await house.hear("one!", id_="1")).reply == reply
    assert (await house.hear("two", id_="2")).reply is None
    assert await house.window() == ["one!", "only the first", "two"]
    assert await house.memory.unreply(house.owner, first.message.id) == 1


async def test_a_message_that_waits_already_keeps_its_place_when_its_answer_is_given_anew(house: House) -> None:
    first = await house.hear("one", waits=True)
    second = await house.hear("two", waits=True)
    await house.memory.shown(house.owner, first.message.id, "501")
    await house.reply("to the first", first.message, delivered=False)
    await house.memory.unreply(house.owner, first.message.id, waits=True)
    found = await house.memory.waiting("test", since=first.message.at)
    assert [(one.message.id, one.shown, one.reply) for one in found] == [
        (first.message.id, ("501",), None),
        (second.message.id, (), None),
    ]
