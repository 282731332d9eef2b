"""Sharing, leaving and linking as people do them on the platforms, by the real adapters."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Clock
from tests.stages.discord import Discord
from tests.stages.stage import MARA, TOMAS
from tests.stages.telegram import Telegram
from tests.stages.world import World, world_on

POLLEN = "I am allergic to pollen"
ASKED = "What am I allergic to?"
HELD = "Are you there"
CODE = re.compile(r"/link (\w{4}-\w{4})")


@pytest.fixture(params=["telegram", "discord"])
async def world(request: pytest.FixtureRequest, data_dir: Path, clock: Clock) -> AsyncIterator[World]:
    async with world_on(str(request.param), data_dir, clock) as world:
        # The first rule that fits answers: what a test scripts for this question must not come after one for all.
        world.model.on(rf"\A(?!.*{HELD})", reply="Noted.")
        yield world


async def leaves(world: World, who: str) -> None:
    """Let somebody (or the bot) leave the group, as the platform tells it."""
    stage = world.stage
    if isinstance(stage, Telegram):
        user = stage.server.me if who == "bot" else stage.server.user(MARA.number)
        stage.server.say(TOMAS.number, None, stage.group, left_chat_member=user, date=stage._now)
    elif isinstance(stage, Discord):
        if who == "bot":
            await stage.server.dispatch("GUILD_DELETE", {"id": stage.group[0]})
        else:
            await stage.server.dispatch(
                "GUILD_MEMBER_REMOVE", {"guild_id": stage.group[0], "user": stage._user(MARA).payload()}
            )


async def test_a_memory_is_shared_and_taken_back_by_its_number(world: World) -> None:
    await world.ask(POLLEN)
    await world.ask("/whatdoyouknow")
    await world.ask(ASKED, MARA, "group")
    assert "pollen" not in world.prompt
    (receipt,) = await world.ask("/share 1")
    assert receipt.startswith("allergy: pollen\nFrom now on I may use this everywhere")
    await world.ask(ASKED, MARA, "group")
    assert "pollen" in world.prompt
    (back,) = await world.after(world.stage.press(MARA, "Only where I said it"))
    assert back.startswith("allergy: pollen\nFrom now on I use this only in our private chat")
    await world.ask("/new", MARA, "group")
    await world.ask(ASKED, MARA, "group")
    assert "pollen" not in world.prompt


async def test_what_somebody_said_in_a_group_they_left_is_read_in_private_alone(world: World) -> None:
    await world.ask(POLLEN, MARA, "group")
    await world.ask("And I like tea", TOMAS, "topic")
    await world.after(leaves(world, "mara"))
    await world.ask("What are we like?", TOMAS, "group")
    assert "pollen" not in world.prompt
    await world.ask(ASKED)
    assert "pollen" in world.prompt
    await world.ask("Here I am again. What am I allergic to?", MARA, "group")
    assert "pollen" in world.prompt


async def test_a_bot_that_has_to_leave_says_nothing_more_there(world: World) -> None:
    door = asyncio.Event()
    world.model.on(HELD, reply="Too late.", hold=door)
    await world.say(f"{HELD}?", MARA, "group")
    await world.until(lambda: HELD in str(world.model.chats[-1].body) if world.model.chats else False)
    seen = world.visible(MARA, "group")
    assert seen == [], "the answer is still held"
    assert await world.after(leaves(world, "bot"), MARA, "group") == []
    door.set()
    await world.settled()
    assert world.visible(MARA, "group") == seen


async def test_two_accounts_are_linked_in_private_and_never_in_a_group(world: World) -> None:
    await world.ask(POLLEN)
    (shown,) = await world.ask("/link")
    code = CODE.search(shown)
    assert code is not None
    await world.ask("hello", TOMAS)
    assert (await world.ask(f"/link {code[1]}", TOMAS))[-1].startswith("Linked: this account and yours on")
    await world.ask(ASKED, TOMAS)
    assert "pollen" in world.prompt
    assert any("no longer linked" in text for text in await world.ask("/unlink"))
    await world.ask("/new", TOMAS)
    await world.ask(ASKED, TOMAS)
    assert "pollen" not in world.prompt
    (shown,) = await world.ask("/link")
    code = CODE.search(shown)
    assert code is not None
    await world.ask(f"/link {code[1]}", TOMAS, "group")
    assert "no code that works" in (await world.ask(f"/link {code[1]}", TOMAS))[-1]
