"""The platforms hand things over out of order or twice, and answers to requests get lost: the same bot, once."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.faultline.endpoint import SAID
from tests.faultline.place import Place, Row
from tests.faultline.platforms import (
    ANSWER,
    goes_wrong,
    heals,
    kept,
    lines,
    lost,
    nothing_told,
    on_both,
    on_discord,
    others_go_on,
)
from tests.stages.discord import Discord
from tests.stages.stage import MARA
from tests.stages.telegram import Telegram
from tests.stages.world import World
from tests.talk import Door


async def hands_over(world: World, *events: tuple[str, str]) -> None:
    """Hand over things about messages of Mara that never were told of: kind ("new", "edit", "gone") and text.

    Things of the same message have the same first letter.
    """
    stage = world.stage
    made: dict[str, dict[str, Any]] = {}
    for kind, text in events:
        if isinstance(stage, Telegram):
            platform = stage.server
            chat, user = platform.chat(MARA.number), platform.user(MARA.number, first_name=MARA.name)
            old = made.setdefault(text[0], platform.chats.message(chat, user, text, thread=None) | {"date": stage._now})
            if kind == "new":
                platform.push({"message": old | {"text": text}})
            else:
                platform.push({"edited_message": old | {"text": text, "edit_date": old["date"] + 1}})
        else:
            assert isinstance(stage, Discord)
            author = stage._user(MARA)
            message = stage.server.message(author, stage.server.channel_of(author), text)
            plain = made.setdefault(text[0], message | {"type": 0, "mentions": []}) | {"content": text}
            match kind:
                case "new":
                    await stage.server.dispatch("MESSAGE_CREATE", plain)
                case "edit":
                    changed = plain | {"edited_timestamp": stage.server.timestamp()}
                    await stage.server.dispatch("MESSAGE_UPDATE", changed)
                case _:
                    await stage.server.dispatch("MESSAGE_DELETE", stage.server.gone(plain))


@on_both("reorder: an edit comes before its message")
async def edit_first(place: Place, world: World) -> Row:
    world.hush.clear()
    await hands_over(world, ("edit", SAID), ("new", "mine is another flower"))
    await world.taken(2)
    world.hush.set()
    await others_go_on(world)
    assert world.visible() == [ANSWER]
    assert [chat.last_user for chat in world.model.chats if chat.last_user != "hello there"] == [SAID]
    return Row("one answer, to the newer words", nothing_told(place), kept(world, SAID), await heals(world))


@on_discord("reorder: a deletion comes before its message")
async def deletion_first(place: Place, world: World) -> Row:
    await hands_over(world, ("gone", SAID), ("new", SAID))
    await world.taken(2)
    await others_go_on(world)
    assert world.visible() == []
    assert "heliotrope" not in world.stored()
    return Row("nothing", nothing_told(place), "no word of it", await heals(world))


@on_both("reorder: the answer to one message is still under way when the next two come at once")
async def in_order(place: Place, world: World) -> Row:
    door = world.model.halfway = Door()
    await world.say(SAID)
    await door.reached.wait()
    await asyncio.gather(*(world.stage.say(MARA, text) for text in ("and then?", "and after that?")))
    await world.taken(3)
    world.model.halfway = None
    door.set()
    await others_go_on(world)
    assert world.visible() == [ANSWER] * 2
    asked = [chat.last_user for chat in world.model.chats if chat.last_user != "hello there"]
    assert asked == [SAID, "and then?\n\nand after that?"]
    row = kept(world, SAID, "and then?", "and after that?", answers=2)
    return Row("an answer, then one to both", nothing_told(place), row, await heals(world))


# ---- twice -----------------------------------------------------------------------------------------------


@on_both("duplicate: an update is delivered again, during its answer, after it, and after a restart")
async def again(place: Place, world: World) -> Row:
    door = world.model.halfway = Door()
    number = await world.say(SAID)
    await door.reached.wait()
    await world.stage.repeat(MARA, number)
    await world.taken(2)
    world.model.halfway = None
    door.set()
    await world.settled_in_time()
    assert await world.after(world.stage.repeat(MARA, number)) == []
    await world.restart()
    assert await world.after(world.stage.repeat(MARA, number)) == []
    assert world.visible() == [ANSWER]
    assert len(world.model.chats) == 1
    return Row(
        "the answer, once", nothing_told(place), kept(world, SAID), f"{await heals(world)}; 1 request of a model"
    )


@on_both("duplicate: a button that erases is pressed twice")
async def pressed_twice(place: Place, world: World) -> Row:
    await world.ask("I am allergic to pollen")
    await world.ask("/forget pollen")
    (first,) = await world.after(world.stage.press(MARA, "Forget it"))
    (second,) = await world.after(world.stage.press(MARA, "Forget it"))
    assert first.startswith("Hidden at once: 1 memory")
    assert second.startswith("That choice is no longer open, and nothing was changed.")
    assert lines(world, "SELECT count(*) FROM deletions") == [(1,)]
    return Row(f"{first[:25]} ...; {second}", nothing_told(place), "one deletion", await heals(world))


@on_both("duplicate: a message is sent again, its answer was lost twice")
async def sent_again(place: Place, world: World) -> Row:
    tries = goes_wrong(world, edit=True, times=2, **lost(world, after=True))
    door = world.model.halfway = Door()
    await world.say(SAID)
    await door.reached.wait()
    await world.until(lambda: len(world.visible()) == 1)
    door.set()
    await world.settled_in_time()
    assert world.visible() == [ANSWER]
    assert tries() >= 2
    await others_go_on(world)
    return Row("one message, whole", nothing_told(place), kept(world, SAID), f"{await heals(world)}; {tries()} edits")
