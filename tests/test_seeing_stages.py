"""The list of what is known as people see it on each platform, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Clock
from tests.stages.stage import MARA, TOMAS, Room
from tests.stages.world import World, world_on
from tests.talk import Talk


@pytest.fixture(params=["console", "telegram", "discord"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def world(name: str, data_dir: Path, clock: Clock) -> AsyncIterator[World]:
    async with world_on(name, data_dir, clock) as world:
        yield world


among_others = pytest.mark.parametrize("name", ["telegram", "discord"])


async def many(world: World, room: Room = "private", count: int = 20) -> None:
    for number in range(count):
        await world.ask(f"/remember my box {number} holds {number * 7919} <b>screws</b>_*", MARA, room)


def numbers(text: str) -> list[int]:
    return [int(line.partition(".")[0].strip("\\")) for line in text.splitlines() if line[:1].isdigit()]


async def test_a_long_list_is_one_message_a_page_and_the_buttons_turn_it(world: World) -> None:
    await many(world)
    (first,) = await world.ask("/whatdoyouknow")
    assert "Page 1 of 2" in first
    before = world.visible()
    await world.after(world.stage.press(MARA, "›"))
    last = next(text for text in reversed(world.visible()) if "Page" in text)
    assert "Page 2 of 2" in last
    assert numbers(first) + numbers(last) == list(range(1, 21))
    assert all(size <= 1 for size in world.stage.sizes(MARA))
    await world.after(world.stage.press(MARA, "‹"))
    last = next(text for text in reversed(world.visible()) if "Page" in text)
    assert numbers(last) == numbers(first)
    assert len(before) > 0


@among_others
async def test_a_turned_page_takes_the_place_of_the_one_before(world: World) -> None:
    await many(world)
    before = len(world.visible())
    await world.ask("/whatdoyouknow")
    for label, page in (("›", 2), ("‹", 1), ("›", 2)):
        await world.after(world.stage.press(MARA, label))
        (only,) = world.visible()[before:]
        assert f"Page {page} of 2" in only
    await world.restart()
    await world.after(world.stage.press(MARA, "‹"))
    (only,) = world.visible()[before:]
    assert "Page 1 of 2" in only


@among_others
async def test_a_page_whose_message_is_gone_comes_as_another_one(world: World) -> None:
    await many(world)
    (first,) = await world.ask("/whatdoyouknow")
    if world.stage.name == "telegram":
        world.stage.server.fault("editMessageText", status=400, description="Bad Request: message can't be edited")  # type: ignore[attr-defined]
    else:
        body = {"code": 10008, "message": "Unknown Message"}
        world.stage.server.fault("PATCH /channels", status=404, body=body)  # type: ignore[attr-defined]
    await world.after(world.stage.press(MARA, "›"))
    assert first in world.visible()
    assert "Page 2 of 2" in world.visible()[-1]


@pytest.mark.parametrize("name", ["discord"])
async def test_a_list_for_one_persons_eyes_in_a_server_is_turned_in_place_too(world: World) -> None:
    world.model.on(reply="ok")
    await many(world, "group")
    server = world.stage.server  # type: ignore[attr-defined]
    place = world.stage.group  # type: ignore[attr-defined]
    before = len(server.answers(place[1]))
    taken = world._taken
    await server.slash(world.stage._user(MARA), "whatdoyouknow", place=place)  # type: ignore[attr-defined]
    await world.until(lambda: world._taken > taken)
    await world.settled()
    (listed,) = server.answers(place[1])[before:]
    assert "Page 1 of 2" in listed["content"]
    await world.after(world.stage.press(MARA, "›", "group"), MARA, "group")
    (turned,) = server.answers(place[1])[before:]
    assert turned["id"] == listed["id"]
    assert "Page 2 of 2" in turned["content"]


async def test_a_short_list_is_one_message_without_buttons_to_turn_it(world: World) -> None:
    await many(world, count=2)
    (only,) = await world.ask("/whatdoyouknow")
    assert "Page" not in only
    with pytest.raises((AssertionError, IndexError)):
        await world.stage.press(MARA, "›")


@among_others
async def test_somebody_elses_press_turns_no_page(world: World) -> None:
    world.model.on(reply="ok")
    await world.ask("hello there", TOMAS)
    await many(world)
    await world.ask("/whatdoyouknow")
    await world.after(world.stage.press(TOMAS, "›", of=MARA))
    assert not any("screws" in text for text in world.visible(TOMAS))


@among_others
async def test_in_a_group_the_list_of_what_belongs_there_goes_to_the_private_chat(world: World) -> None:
    world.model.on(reply="ok")
    await world.ask("hello there")
    await world.ask("/remember my bike is in the cellar")
    await many(world, "group", count=2)
    in_group, in_private = len(world.visible(MARA, "group")), len(world.visible())
    await world.ask("/whatdoyouknow", MARA, "group")
    (hint,) = world.visible(MARA, "group")[in_group:]
    (listed,) = world.visible()[in_private:]
    assert "privately" in hint
    assert "screws" not in hint
    assert numbers(listed) == [1, 2]
    assert "bike" not in listed


def number_of(world: World, text: str) -> str:
    """The platform's id of the bot's message that says ``text``."""
    server = world.stage.server  # type: ignore[attr-defined]
    if world.stage.name == "telegram":
        return str(next(m["message_id"] for m in server.chat(MARA.number).ours if m.get("text") == text))
    return str(next(id_ for id_, message in server.messages.items() if message["content"] == text))


@among_others
async def test_why_as_a_reply_to_an_older_answer_explains_that_one(world: World) -> None:
    world.model.on("favourite color?", reply="Blue it is.")
    world.model.on("boat?", reply="It is in the harbour.")
    world.model.on(reply="ok")
    await world.ask("My favourite color is blue")
    await world.ask("/remember my boat is in the harbour")
    await world.ask("/new")
    await world.ask("What is my favourite color?")
    await world.ask("/new")
    await world.ask("Where is my boat?")
    for text, held, other in (("Blue it is.", "blue", "harbour"), ("It is in the harbour.", "harbour", "blue")):
        (why,) = await world.ask("/why", reply_to=number_of(world, text))
        used = why.partition("Looked at")[0]
        assert used.startswith("For that answer I had")
        assert held in used
        assert other not in used
    await world.restart()
    (again,) = await world.ask("/why", reply_to=number_of(world, "Blue it is."))
    assert "blue" in again


async def test_what_is_called_wrong_after_an_answer_is_shown_with_a_way_to_have_it_forgotten(world: World) -> None:
    world.model.on("Where do I live", reply="You live in Oslo.")
    world.model.on(reply="ok")
    await world.ask("I live in Oslo")
    await world.ask("/new")
    await world.ask("Where do I live?")
    (shown,) = await world.ask("That's wrong!")
    assert "Oslo" in shown
    assert len(await world.known()) == 1
    (offer,) = await world.after(world.stage.press(MARA, "Forget 1"))
    assert "Nothing is deleted yet" in offer
    await world.ask("/forget yes")
    assert await world.known() == []


async def test_a_doubt_is_asked_about_with_buttons_that_settle_it_and_take_it_back(world: World) -> None:
    world.model.on(reply="ok")
    await world.ask("/remember I live in Berlin")
    await world.ask("/remember I live in Lyon")
    talk = Talk(world.app, world._hours.clock, [])
    talk.alter("UPDATE profile SET retired_at = NULL, successor = NULL, reason = NULL WHERE value = 'Berlin'")
    talk.alter(
        "UPDATE profile SET confidence = 0.3, doubts = (SELECT id FROM profile WHERE value = 'Berlin')"
        " WHERE value = 'Lyon'"
    )
    (asked,) = await world.ask("How are you today, my friend?")
    assert "Which holds?" in asked
    (noted,) = await world.after(world.stage.press(MARA, "The new one"))
    assert noted.startswith("Noted: I live in Lyon")
    assert await world.known() == ["I live in Lyon"]
    (back,) = await world.after(world.stage.press(MARA, "Undo that"))
    assert back.startswith("Taken back")
    assert len(await world.known()) == 2
