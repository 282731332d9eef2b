"""Buttons that belong to somebody else, pressed on both platforms: nothing of their owner changes, or is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.conftest import Clock
from tests.stages.discord import Discord
from tests.stages.stage import MARA, TOMAS, Room
from tests.stages.telegram import Telegram
from tests.stages.world import World, world_on
from tests.talk import Talk
from tests.test_injection import KEPT

SHOWN: Final[tuple[tuple[str, Room], ...]] = (
    ("/remember I live in Lyon", "private"),
    ("/whatdoyouknow", "private"),
    ("/share Lyon", "private"),
    ("/forget Lyon", "private"),
    ("/language", "private"),
    ("/why", "private"),
    ("/share harbour", "group"),
    ("/forget harbour", "group"),
)
"""What shows Mara buttons; asked for in a group they come in her private chat."""
KINDS: Final = {"unreplace", "wrong", "share", "forget", "language", "row"}
"""The kinds that must have been among them."""


def buttons(world: World) -> list[tuple[str, str]]:
    """Label and id of each button of the newest message to Mara that has some."""
    server: Any = world.stage.server  # type: ignore[attr-defined]
    if isinstance(world.stage, Telegram):
        keyboards = (message.get("reply_markup", {}) for message in reversed(server.chat(MARA.number).ours))
        rows = next(board["inline_keyboard"] for board in keyboards if board)
        return [(key["text"], key["callback_data"]) for row in rows for key in row]
    assert isinstance(world.stage, Discord)
    answers = reversed(server.answers(world.stage._user(MARA)))
    rows = next(message["components"] for message in answers if message["components"])
    return [(button["label"], button["custom_id"]) for row in rows for button in row["components"]]


def of_mara(world: World) -> list[list[tuple[Any, ...]]]:
    """All that is kept, but for what language Tomas is spoken to: that is his own to choose."""
    talk = Talk(world.app, world._hours.clock, [])
    rows = [sorted(talk.rows(query), key=repr) for query in KEPT]
    tomas = world.stage.user_id(TOMAS)
    rows[0] = [row for row in rows[0] if row[2] != tomas]
    return rows


@pytest.mark.parametrize("name", ["telegram", "discord"])
async def test_no_button_of_one_person_does_anything_for_another(name: str, data_dir: Path, clock: Clock) -> None:
    """Apps show a private chat to nobody else; whoever speaks to the platform by themselves may press anything."""
    async with world_on(name, data_dir, clock) as world:
        world.model.on(reply="I see.")
        await world.ask("I live in Oslo")
        await world.ask("I feed the stray cats at the harbour every evening", room="group")
        await world.ask("hello there", TOMAS)
        pressed: set[str] = set()
        for words, room in SHOWN:
            await world.ask(words, room=room)
            assert not [text for text in world.visible(TOMAS, "group") if "Lyon" in text]
            before = of_mara(world)
            for label, id_ in buttons(world):
                answer = await world.after(world.stage.press(TOMAS, label, of=MARA), TOMAS)
                assert of_mara(world) == before, (words, label)
                assert not any(secret in text for text in answer for secret in ("Lyon", "Oslo", "harbour"))
                pressed.add(id_.partition(":")[0])
        assert pressed == KINDS
        # They are not used up by that: the last offer still stands for Mara.
        await world.after(world.stage.press(MARA, "Forget it"))
        assert of_mara(world) != before
