"""/whatdoyouknow: what is known, in groups, picked out by words and times, on pages that are turned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import Talk, talking


async def told(talk: Talk, *said: str, **more: str) -> None:
    for words in said:
        assert (await talk.say(f"/remember {words}", **more)).startswith(("Remembered", "记住了"))


def headings(text: str) -> list[str]:
    """The lines of a list that are neither entries nor around them."""
    return [line for line in text.splitlines()[1:-1] if line and not line[0].isdigit()]


def entries(text: str) -> list[str]:
    return [line for line in text.splitlines() if line[:1].isdigit()]


async def test_what_is_known_stands_in_groups_and_what_is_next_comes_first(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await told(talk, "my bike is in the cellar", "I have a dentist appointment on 20 March at 15:00")
        await told(talk, "I play chess every Wednesday at 19:00", "I am allergic to pollen")
        clock.advance(days=1)
        listed = await talk.say("/whatdoyouknow")
        assert headings(listed) == ["About you", "Coming up", "Other"]
        about, chess, dentist, other = entries(listed)
        assert about == "1. allergy: pollen (you said so on 2026-03-02)"
        assert "[next: 2026-03-04 19:00]" in chess
        assert "[2026-03-20 15:00]" in dentist
        assert other == "4. my bike is in the cellar (you said so on 2026-03-02)"
        clock.advance(days=20)
        later = await talk.say("/whatdoyouknow")
        assert headings(later) == ["About you", "Coming up", "Happened", "Other"]
        assert "[next: 2026-03-25 19:00]" in entries(later)[1]
        assert "dentist" in entries(later)[2]


async def test_times_are_in_the_persons_zone_and_words_in_their_language(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("/timezone Asia/Tokyo")
        await talk.say("/language zh")
        clock.advance(hours=6)
        await told(talk, "我对花粉过敏", "3月20日下午三点我要看牙医")
        listed = await talk.say("/whatdoyouknow")
        assert listed.splitlines()[0] == "我知道你的 2 件事。"
        assert headings(listed) == ["关于你", "接下来"]
        assert entries(listed)[0] == "1. 过敏：花粉（2026-03-03 你说的）"
        assert "[2026-03-20 15:00]" in entries(listed)[1]


async def test_words_pick_out_what_they_stand_in_and_what_they_name(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await told(talk, "I am a vegetarian", "I live in Oslo", "my boats are in the harbour", "my bike is red")
        assert [line.partition(" (")[0] for line in entries(await talk.say("/whatdoyouknow 饮食"))] == [
            "1. diet: vegetarian"
        ]
        assert "home: Oslo" in entries(await talk.say("/whatdoyouknow home"))[0]
        boats = await talk.say("/whatdoyouknow boat")
        assert boats.splitlines()[0] == "I know 1 thing about you that has to do with “boat”."
        assert "harbour" in boats
        nothing = await talk.say("/whatdoyouknow submarine")
        assert nothing.startswith("I know nothing about you that has to do with “submarine”.")


async def test_a_period_picks_out_what_was_said_or_happens_in_it(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await told(talk, "my bike is red", "I have a dentist appointment on 20 April at 15:00")
        clock.advance(days=30)  # 1 April
        await told(talk, "my boat is blue", "my boat is blue and my kite is green")
        month = await talk.say("/whatdoyouknow last month")
        assert [line.split()[1:4] for line in entries(month)] == [["I", "have", "a"], ["my", "bike", "is"]]
        week = await talk.say("/whatdoyouknow 这周")
        assert "blue" in week
        assert "bike" not in week
        ahead = await talk.say("/whatdoyouknow 20 April")
        assert len(entries(ahead)) == 1
        assert "dentist" in ahead
        both = await talk.say("/whatdoyouknow kite this week")
        assert len(entries(both)) == 1
        assert "kite" in both
        assert (await talk.say("/whatdoyouknow bike this week")).startswith("I know nothing")


@pytest.mark.parametrize(
    "words", ["%", "☕️", "x" * 3_000, "'; DROP TABLE facts; --", "上周的事", "the", "?!", "{{ x }}"]
)
async def test_wild_words_are_only_words(data_dir: Path, clock: Clock, words: str) -> None:
    async with talking(data_dir, clock) as talk:
        await told(talk, "my bike is red")
        answer = await talk.say(f"/whatdoyouknow {words}")
        assert answer.startswith("I know nothing about you that has to do with")
        assert len(answer) < 300


async def test_what_is_unsure_ends_soon_or_came_from_the_model_is_marked(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await told(talk, "my bike is red", "my boat is blue", "my kite is green")
        talk.alter("UPDATE facts SET expires_at = ? WHERE text LIKE '%bike%'", str(_micros(clock, days=3)))
        talk.alter(
            "UPDATE facts SET source = 'summary', expires_at = ? WHERE text LIKE '%kite%'", str(_micros(clock, days=40))
        )
        talk.alter("UPDATE facts SET doubts = (SELECT id FROM facts WHERE text LIKE '%bike%') WHERE text LIKE '%boat%'")
        bike, boat, kite = entries(await talk.say("/whatdoyouknow"))
        assert bike.endswith("(you said so on 2026-03-02, until 2026-03-05)")
        assert boat.endswith("(you said so on 2026-03-02, unsure)")
        assert kite.endswith("(gathered from your words of 2026-03-02)")


def _micros(clock: Clock, *, days: int) -> int:
    return int((clock.now.timestamp() + days * 86_400) * 1_000_000)


async def test_in_private_what_came_from_a_group_or_is_shared_is_marked_and_a_group_sees_only_its_own(
    data_dir: Path, clock: Clock
) -> None:
    async with talking(data_dir, clock) as talk:
        await told(talk, "my bike is red", "my boat is blue")
        await told(talk, "my tent is green", chat="group:-500")
        talk.alter("UPDATE facts SET audience = -1 WHERE text LIKE '%boat%'")
        bike, boat, tent = entries(await talk.say("/whatdoyouknow"))
        assert bike.endswith("(you said so on 2026-03-02)")
        assert boat.endswith("shared everywhere)")
        assert tent.endswith("from a group)")
        (reply,) = await talk.ask("/whatdoyouknow", chat="group:-500")
        assert reply.private
        assert [line.split()[2] for line in entries(reply.text)] == ["boat", "tent"]
        assert "the rest" in await talk.say("/whatdoyouknow bike", chat="group:-500")


async def test_a_page_turned_in_a_group_stays_a_page_of_what_the_group_may_see(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await told(talk, *(f"my box {n} holds {n * 7919} screws" for n in range(20)), chat="group:-500")
        await told(talk, "my bike is red")
        (first,) = await talk.ask("/whatdoyouknow", chat="group:-500")
        assert [button.label for button in first.buttons[:2]] == ["1/2", "›"]
        for chat in ("group:-500", "dm:1001"):
            second = await talk.press(first.buttons[1].id, chat=chat)
            assert "that may be shown in that group" in second
            assert "bike" not in second
            assert "7919" not in entries(second)[0]
        talk.alter("UPDATE facts SET audience = 0 WHERE text LIKE 'my box 19 %'")
        assert "box 19" not in await talk.press(first.buttons[1].id)


async def test_the_numbers_of_a_page_stay_when_rows_come_and_go(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await told(talk, *(f"my box {n} holds {n * 7919} screws" for n in range(20)))
        (first,) = await talk.ask("/whatdoyouknow")
        await talk.say("/forget box 15")
        await talk.say("/forget yes")
        await told(talk, "my aardvark is grey")
        second = await talk.press(first.buttons[1].id)
        numbers = [int(line.partition(".")[0]) for line in entries(second)]
        assert numbers == [n for n in range(numbers[0], 21) if n != 16]
        owner, room = await talk.owner(), await talk.room()
        assert await talk.app.memory.lists.numbered(owner, room, 16, now=clock()) is None
        seventeenth = await talk.app.memory.lists.numbered(owner, room, 17, now=clock())
        assert seventeenth is not None
        assert seventeenth.text == "my box 16 holds 126704 screws"


async def test_another_persons_page_and_an_old_one_do_nothing(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await told(talk, *(f"my box {n} holds {n * 7919} screws" for n in range(20)))
        (old,) = await talk.ask("/whatdoyouknow")
        assert (await talk.press(old.buttons[1].id, user="1002")).startswith("That choice is no longer open")
        (new,) = await talk.ask("/whatdoyouknow")
        assert (await talk.press(old.buttons[1].id)).startswith("That choice is no longer open")
        assert "Page 2 of 2" in await talk.press(new.buttons[1].id)
        clock.advance(days=8)
        assert (await talk.press(new.buttons[1].id)).startswith("That choice is no longer open")


@pytest.mark.parametrize(
    "press", ["known:", "known:1:1", f"known:{'9' * 30}:1", "known:-1:0", "known:٣:0", "known:1:x"]
)
async def test_a_page_that_never_was_is_no_page(data_dir: Path, clock: Clock, press: str) -> None:
    async with talking(data_dir, clock) as talk:
        await told(talk, "my bike is red")
        await talk.ask("/whatdoyouknow")
        assert (await talk.press(press)).startswith("That choice is no longer open")


async def test_it_survives_a_restart_between_two_pages(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await told(talk, *(f"my box {n} holds {n * 7919} screws" for n in range(20)))
        (first,) = await talk.ask("/whatdoyouknow")
    async with talking(data_dir, clock) as talk:
        assert "Page 2 of 2" in await talk.press(first.buttons[1].id)


async def test_looking_asks_no_model_and_leaves_no_words(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        await told(talk, "my bike is red")
        await talk.say("/whatdoyouknow bike")
        await talk.say("/whatdoyouknow submarines")
        assert server.chats == []
        assert "submarine" not in talk.everything_stored()
