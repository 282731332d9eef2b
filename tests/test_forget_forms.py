"""The forms of ``/forget``: by number, the last thing, since a time, this chat, all; and deletions that overlap."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.message import Reply
from memory import Line, engine
from memory.erasures import Range, spans
from memory.scope import Scope, read
from tests.conftest import Clock
from tests.house import housed
from tests.servers.openai_server import OpenAIServer
from tests.talk import Talk, talking

NOW = datetime(2026, 3, 4, 10, 30, tzinfo=UTC)
"""A Wednesday, 18:30 in Shanghai."""


def ids(reply: Reply) -> list[str]:
    """What the buttons of a reply choose."""
    return [each.id.rsplit(":", 1)[1] for each in reply.buttons]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("everything", "everything"),
        ("Everything you know about me", "everything"),
        ("all my data", "everything"),
        ("关于我的一切", "everything"),
        ("所有事情", "everything"),
        ("last", "last"),
        ("That.", "last"),
        ("what I just said", "last"),
        ("刚才那条", "last"),
        ("剛才那條", "last"),
        ("最后一句", "last"),
        ("here", "here"),
        ("this chat", "here"),
        ("这个聊天", "here"),
        ("這個聊天", "here"),
        ("本群", "here"),
        ("everything about my boat", "words"),
        ("from Berlin", "words"),
        ("since we moved in March", "words"),
        ("since tomorrow", "words"),
        ("my job since 2019", "words"),
        ("从小就怕狗", "words"),
        ("从成都来", "words"),
        ("last week", "words"),
        ("this", "last"),
        ("this boat", "words"),
        ("here and now", "words"),
        ("%", "words"),
    ],
)
def test_words_are_read_as_a_form_only_where_they_are_nothing_else(words: str, kind: str) -> None:
    assert read(words, now=NOW, zone="Asia/Shanghai").kind == kind


@pytest.mark.parametrize(
    ("words", "start"),
    [
        ("since yesterday", "2026-03-03 00:00"),
        ("since 14:00", "2026-03-04 14:00"),
        ("since 23:00", "2026-03-03 23:00"),
        ("from yesterday on", "2026-03-03 00:00"),
        ("everything since last Monday", "2026-03-02 00:00"),
        ("the last hour", "2026-03-04 17:30"),
        ("the last 2 hours", "2026-03-04 16:30"),
        ("today", "2026-03-04 00:00"),
        ("从昨天起", "2026-03-03 00:00"),
        ("昨天以来", "2026-03-03 00:00"),
        ("从14:00起", "2026-03-04 14:00"),
        ("从下午两点开始", "2026-03-04 14:00"),
        ("最近半小时", "2026-03-04 18:00"),
        ("今天说的话", "2026-03-04 00:00"),
    ],
)
def test_a_time_is_reckoned_in_the_owners_zone_and_lies_behind(words: str, start: str) -> None:
    local = datetime.fromisoformat(f"{start}+08:00")
    assert read(words, now=NOW, zone="Asia/Shanghai") == Scope("since", local.astimezone(UTC))


def test_ranges_hold_no_row_that_was_left_alone() -> None:
    assert spans([7, 3, 4, 9, 20], [1, 8, 15]) == [Range(3, 7), Range(9, 9), Range(20, 20)]
    assert spans([3, 9], []) == [Range(3, 9)]
    assert spans([], [1]) == []


def holding(folder: Path, marker: str) -> list[str]:
    """The files below a folder that hold a marker, be it in bytes that no table reads."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and marker.encode() in path.read_bytes()]


def restore(backup: Path, folder: Path) -> None:
    """Put a copy of the file in the place of the one there is."""
    for file in folder.glob("recollect.db*"):
        file.unlink()
    backup.rename(folder / "recollect.db")


async def learned(talk: Talk, *lines: str, chat: str = "") -> None:
    """Say what the rules keep."""
    for line in lines:
        await talk.say(line, chat=chat)


async def test_numbers_mean_the_list_that_was_shown_last(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await learned(talk, "/remember my bike is red", "/remember my boat is blue", "/remember my car is green")
        await talk.say("/whatdoyouknow")
        (offer,) = await talk.ask("/forget 2")
        assert "my boat is blue" in offer.text
        assert ids(offer) == ["all", "no"]
        assert len(await talk.known()) == 3
        # The offer was shown after the list, so a number now means what it offers.
        assert (await talk.say("/forget 3")).startswith("There is no such number: choose 1.")
        assert (await talk.say("/forget yes")).startswith("Hidden at once: 1 memory")
        assert await talk.texts() == ["my bike is red", "my car is green"]
        assert (await talk.say("/forget 2")).startswith("What had that number is forgotten already")
        (offer,) = await talk.ask("/forget 1, 3")
        assert ids(offer) == ["1", "2", "all", "no"]
        assert (await talk.say("/forget 9")).startswith("There is no such number: choose from 1 to 2.")
        await talk.say("/whatdoyouknow")
        # Now the list is newer: its first memory is offered, and nothing is deleted by the older offer.
        (offer,) = await talk.ask("/forget 1")
        assert "my bike is red" in offer.text
        assert len(await talk.known()) == 2


async def test_the_last_thing_is_what_was_noted_last_in_this_talk(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await learned(talk, "/remember my bike is red", "My name is Kim")
        await talk.say("ok, nice")
        (offer,) = await talk.ask("/forget last")
        assert "Kim" in offer.text
        assert "bike" not in offer.text
        await talk.say("/forget yes")
        assert await talk.texts() == ["my bike is red"]
        await talk.say("/new")
        await talk.say("So the attic was full of wasps that summer, was it not?")
        (offer,) = await talk.ask("/forget that")
        assert "This would go: 1 of your messages" in offer.text
        assert "full of wasps" in offer.text
        assert (await talk.say("/forget yes")).startswith("Hidden at once: 0 memories, 1 of your messages")
        assert await talk.texts() == ["my bike is red"]


async def test_since_a_time_takes_what_was_said_from_then_on_and_nothing_older(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply=lambda request: f"You said: {request.last_user[-40:]}")
        await learned(talk, "My name is Kim", "I am allergic to pollen")
        clock.advance(hours=3)
        hour = f"{clock():%H:%M}"
        await learned(talk, "I live in Oslo", "Tell me about pollen, please")
        (offer,) = await talk.ask(f"/forget since {hour}")
        assert f"Said since {clock():%Y-%m-%d} {hour}:" in offer.text
        assert "Oslo" in offer.text
        assert "2 of your messages and 2 of my replies" in offer.text
        assert "Kim" not in offer.text
        await talk.press(offer.buttons[-2].id)
        assert sorted(await talk.texts()) == ["I am allergic to pollen", "My name is Kim"]
        clock.advance(minutes=11)
        await talk.app.tick()
        stored = talk.everything_stored()
        assert "Oslo" not in stored
        assert "allergic to pollen" in stored
        (owed,) = await talk.app.memory.notices()
        assert owed.notice.data["memories"] == 1
        assert owed.notice.data["messages"] == 2


async def test_this_chat_takes_what_was_said_here_and_what_was_made_of_it_alone(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await learned(talk, "I live in Oslo", "I am allergic to pollen")
        await learned(talk, "I am allergic to pollen", "/remember my boat is blue", chat="group:-500")
        (offer,) = await talk.ask("/forget this chat", chat="group:-500")
        assert offer.private
        assert "my boat is blue" in offer.text
        assert "Oslo" not in offer.text
        await talk.press(offer.buttons[-2].id, chat="group:-500")
        texts = " ".join(await talk.texts())
        assert "Oslo" in texts
        assert "pollen" in texts
        assert "boat" not in texts
        (offer,) = await talk.ask("/forget here")
        assert "Said in this chat:" in offer.text
        await talk.press(offer.buttons[-2].id)
        assert await talk.texts() == []


async def test_everything_goes_by_a_typed_phrase_and_by_nothing_less(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply=lambda request: f"Noted: {request.last_user}")
        await talk.say("/timezone Lisbon")
        await learned(talk, "My name is Zerbino and I am allergic to gardenias")
        await learned(talk, "My boat is called Gardenia", chat="group:-500")
        await talk.say("I live in Gardenstadt", user="1002")
        refused = await talk.say("/forget everything", chat="group:-500")
        assert refused.startswith("That is for our private chat")
        (offer,) = await talk.ask("/forget everything")
        assert ids(offer) == ["no"]
        assert "/forget yes, forget all of me" in offer.text
        before = sorted(await talk.texts())
        for words in ("yes", "all", "1"):
            assert "If you are sure, type" in await talk.say(f"/forget {words}")
        assert "If you are sure, type" in await talk.press(offer.buttons[0].id.replace(":no", ":all"))
        assert sorted(await talk.texts()) == before
        (hidden,) = await talk.ask("/forget Yes, forget all of me!")
        assert hidden.text.startswith("Hidden at once: ")
        assert await talk.texts() == []
        assert (await talk.say("/whatdoyouknow")).startswith("I do not know anything about you yet")
        assert (await talk.say("/undo")).startswith("Back again")
        assert sorted(await talk.texts()) == before
        await talk.say("/forget everything")
        await talk.say("/forget 是的忘掉我的一切")
        clock.advance(minutes=11)
        await talk.app.tick()
        stored = talk.everything_stored()
        for marker in ("Zerbino", "ardenia", "name1001", "Lisbon"):
            assert marker not in stored, marker
        assert "Gardenstadt" in stored
        owner = await talk.owner()
        assert (owner.name, owner.zone_from, owner.language) == ("", "default", "en")
        assert await talk.texts(user="1002") != []
        assert holding(data_dir, "Zerbino") == []


async def test_what_is_said_after_everything_was_forgotten_is_kept(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await learned(talk, "I am allergic to pollen")
        await talk.say("/forget everything")
        await talk.say("/forget yes, forget all of me")
        await learned(talk, "I live in Oslo")
        clock.advance(minutes=11)
        await talk.app.tick()
        assert len(await talk.known()) == 1
        assert "pollen" not in talk.everything_stored()
        assert "I live in Oslo" in talk.everything_stored()


@pytest.mark.parametrize("text", ["Please forget everything about me", "请忘掉我的一切", "Delete all my data, please."])
async def test_plain_words_for_everything_ask_for_the_same_phrase(data_dir: Path, clock: Clock, text: str) -> None:
    async with talking(data_dir, clock) as talk:
        await learned(talk, "I am allergic to pollen")
        (offer,) = await talk.ask(text)
        assert ids(offer) == ["no"]
        assert len(await talk.known()) == 1


async def test_undoing_one_of_two_deletions_shows_nothing_that_the_other_covers(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await learned(talk, "/remember my tea is green", "/remember my coffee is black")
        await talk.say("So it is tea or coffee for the two of us, as ever, is it?")
        await talk.say("/forget tea")
        (first,) = await talk.ask("/forget yes")
        await talk.say("/forget coffee")
        (second,) = await talk.ask("/forget yes")
        assert "tea or coffee" not in await said(talk)
        assert (await talk.press(first.buttons[0].id)).startswith("Back again")
        # The line holds both words; it stays hidden by the second, and goes with it.
        assert await talk.texts() == ["my tea is green"]
        assert "tea or coffee" not in await said(talk)
        assert (await talk.press(second.buttons[0].id)).startswith("Back again")
        assert "tea or coffee" in await said(talk)
        assert sorted(await talk.texts()) == ["my coffee is black", "my tea is green"]


@pytest.mark.parametrize("undone", [0, 1])
async def test_the_deletion_that_stays_is_carried_out_whole(data_dir: Path, clock: Clock, undone: int) -> None:
    async with talking(data_dir, clock) as talk:
        await learned(talk, "/remember my tea is green", "/remember my coffee is black")
        await talk.say("So it is tea or coffee for the two of us, as ever, is it?")
        hidden = []
        for word in ("tea", "coffee"):
            await talk.say(f"/forget {word}")
            hidden += await talk.ask("/forget yes")
        await talk.press(hidden[undone].buttons[0].id)
        clock.advance(minutes=11)
        await talk.app.tick()
        stored = talk.everything_stored()
        assert "tea or coffee" not in stored
        assert (("tea is" in stored), ("coffee is" in stored)) == (undone == 0, undone == 1)
        assert len(await talk.app.memory.notices()) == 1


async def said(talk: Talk) -> str:
    """What the owner can be told of what was said."""
    owner = await talk.owner()
    lines = [id_ for (id_,) in talk.rows("SELECT id FROM journal")]
    return " | ".join(entry.text for entry in (await talk.app.memory.entries(owner, lines)).values())


async def test_a_restored_copy_forgets_again_what_was_erased(data_dir: Path, clock: Clock, tmp_path: Path) -> None:
    async with talking(data_dir, clock) as talk:
        await learned(talk, "/remember my boat is blue", "/remember my bike is red", "I live in Oslo")
        backup = tmp_path / "backup.db"
        with contextlib.closing(engine.connect(data_dir / "recollect.db")) as file:
            file.execute("VACUUM INTO ?", (str(backup),))
        await talk.say("/forget boat")
        await talk.say("/forget yes")
        clock.advance(minutes=11)
        await talk.app.tick()
        owner = await talk.owner()
        ranges = await talk.app.memory.forgetting.erased(owner)
        assert ranges
        assert "boat" not in str(ranges)
    restore(backup, data_dir)
    async with talking(data_dir, clock) as talk:
        assert len(await talk.known()) == 3
        assert await talk.app.memory.forgetting.erase_again(owner, ranges, now=clock()) > 0
        assert len(await talk.known()) == 2
        assert "boat" not in talk.everything_stored()
        assert holding(data_dir, "boat is blue") == []
        assert await talk.app.memory.forgetting.erased(owner) == ranges


async def test_a_line_that_was_edited_since_a_backup_has_its_old_words_taken_away(clock: Clock, tmp_path: Path) -> None:
    async with housed(tmp_path / "r.db", clock) as house:
        await house.hear("My bike is in the attic", id_="1")
        await house.hear("My boat is in the harbour", id_="2")
        backup = tmp_path / "backup.db"
        with contextlib.closing(engine.connect(house.path)) as file:
            file.execute("VACUUM INTO ?", (str(backup),))
        line = Line("user", "Lin", clock(), "My bike is in the cellar", platform_id="1")
        await house.memory.revise(house.owner, house.chat, "1", line, now=clock())
        await house.memory.withdraw(house.owner, house.chat, ["2"], now=clock())
        ranges = await house.memory.forgetting.erased(house.owner)
        # What the file itself has erased is not erased in it again: the new words stay.
        assert await house.memory.forgetting.erase_again(house.owner, ranges, now=clock()) == 0
        assert "cellar" in house.everything()
    async with housed(backup, clock) as house:
        assert "attic" in house.everything()
        assert await house.memory.forgetting.erase_again(house.owner, ranges, now=clock()) > 0
        assert "attic" not in house.everything()
        assert "harbour" not in house.everything()
