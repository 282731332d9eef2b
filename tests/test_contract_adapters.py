"""One conversation on three platforms: the whole bot behind the terminal, Telegram and Discord, and what people see.

A scenario that a platform has no such thing for is skipped there, with the reason. Cases of the A group carry
their number in the name.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from config.settings import AccessSettings
from tests.conftest import Clock
from tests.stages.discord import Discord
from tests.stages.stage import MARA, ROBOT, TOMAS, Person
from tests.stages.world import World, streamed, world_on
from tests.talk import Door

ALONE = "one person sits at a terminal: there is nobody else, and no group"
IN_TURN = "a terminal reads the next line when the last one is answered"
PRINTED = "what was typed at a terminal stands as it is, and has no number"
WORDS = "nothing but words comes out of a terminal's keyboard"
UNTOLD = "the platform tells no bot that a message was deleted"
NO_NONCE = "only Discord knows by a nonce what it was sent before"
NO_EPHEMERAL = "only Discord has answers in a group that one person sees"

POLLEN = "I am allergic to pollen"
ASKED = "What am I allergic to?"


@pytest.fixture(params=["console", "telegram", "discord"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def world(name: str, data_dir: Path, clock: Clock) -> AsyncIterator[World]:
    async with world_on(name, data_dir, clock) as world:
        yield world


@pytest.fixture
async def closed(name: str, data_dir: Path, clock: Clock) -> AsyncIterator[World]:
    """A bot with nothing set: nobody is let in but the terminal."""
    async with world_on(name, data_dir, clock, access=AccessSettings()) as world:
        yield world


def on(*, console: str = "", telegram: str = "", discord: str = "", wrong: str = "") -> pytest.MarkDecorator:
    """Every platform but those for which there is a reason against it.

    ``wrong`` names what the product does wrong on those that are left: the day it is put right, the mark goes.
    """
    without = {"console": console, "telegram": telegram, "discord": discord}
    otherwise = [pytest.mark.xfail(strict=True, reason=wrong)] if wrong else []
    return pytest.mark.parametrize(
        "name",
        [pytest.param(one, marks=pytest.mark.skip(reason=why) if why else otherwise) for one, why in without.items()],
    )


among_others = on(console=ALONE)


def prose(characters: int) -> str:
    """Chinese Markdown of about that length: numbered sentences in paragraphs, a long block of code in the middle."""
    sentences = [f"第{n:04}句：记忆要能被证明，也要能被**忘掉**，不多也不少。" for n in range(characters // 40)]
    paragraphs = ["".join(sentences[n : n + 6]) for n in range(0, len(sentences), 6)]
    middle = len(paragraphs) // 2
    code = "\n".join(f"print('第 {n:03} 行')  # keep me in order" for n in range(characters // 120))
    return "\n\n".join([*paragraphs[:middle], f"```python\n{code}\n```", *paragraphs[middle:]])


def numbers(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"第\s?(\d{3,4})", text)]


# ---- memory ----------------------------------------------------------------------------------------------


async def test_what_was_told_is_recalled_after_a_restart(world: World) -> None:
    world.model.on("allergic to pollen", reply="I will keep that in mind.", times=1)
    world.model.on("What am I", reply="To pollen.", when_prompt_contains=POLLEN, times=1)
    assert await world.ask(POLLEN) == ["I will keep that in mind."]
    await world.ask("/new")
    await world.restart()
    assert await world.ask(ASKED) == ["To pollen."]


async def test_whatdoyouknow_lists_what_one_told(world: World) -> None:
    world.model.on(reply="I see.")
    (nothing,) = await world.ask("/whatdoyouknow")
    assert nothing.startswith("I do not know anything about you yet.")
    await world.ask(POLLEN)
    (listed,) = await world.ask("/whatdoyouknow")
    assert listed.startswith("I know 1 thing about you.")
    assert "pollen" in listed


async def test_a_memory_is_forgotten_and_brought_back_by_its_owners_buttons(world: World) -> None:
    world.model.on(reply="I see.")
    await world.ask(POLLEN)
    (offer,) = await world.ask("/forget pollen")
    assert "Nothing is deleted yet" in offer
    assert len(await world.known()) == 1
    (hidden,) = await world.after(world.stage.press(MARA, "Forget it"))
    assert hidden.startswith("Hidden at once: 1 memory")
    assert await world.known() == []
    (back,) = await world.after(world.stage.press(MARA, "Undo"))
    assert back.startswith("Back again: 1 memory")
    assert len(await world.known()) == 1


@among_others
async def test_a_button_pressed_by_somebody_else_changes_nothing(world: World) -> None:
    world.model.on(reply="I see.")
    await world.ask(POLLEN)
    await world.ask("hello there", TOMAS)
    await world.ask("/forget pollen")
    before = await world.known()
    await world.after(world.stage.press(TOMAS, "Forget it", of=MARA))
    assert await world.known() == before != []
    (hidden,) = await world.after(world.stage.press(MARA, "Forget it"))
    assert hidden.startswith("Hidden at once: 1 memory")


async def test_everything_that_is_kept_of_somebody_is_handed_to_them_as_files(world: World) -> None:
    world.model.on(reply="I see.")
    await world.ask(POLLEN)
    told = await world.ask("/export")
    assert told[0].startswith("Here is all I keep of you: 1 line of a profile")
    data, page = world.stage.files(MARA)
    assert json.loads(data)["profile"][0]["value"] == "pollen"
    assert page.decode().startswith("<!doctype html>")


@among_others
async def test_nothing_is_handed_over_in_a_group(world: World) -> None:
    world.model.on(reply="I see.")
    await world.ask(POLLEN)
    await world.ask("/export", room="group")
    assert world.stage.files(MARA) == []
    assert not [text for text in world.visible(room="group") if "pollen" in text]


# ---- answers ---------------------------------------------------------------------------------------------


async def test_an_answer_grows_and_then_stands_whole_once(world: World) -> None:
    answer = "Lisbon has seven hills and more stairs than anyone has counted."
    door = world.model.halfway = Door()
    world.model.on(reply=answer, times=1)
    await world.say("Tell me about Lisbon")
    await door.reached.wait()
    if world.stage.grows:
        await world.until(lambda: len(world.visible()) == 1)
        (frame,) = world.visible()
        assert answer.startswith(frame.rstrip(" …"))
        assert len(frame) < len(answer)
    door.set()
    await world.settled()
    assert world.visible() == [answer]


async def test_an_answer_that_breaks_off_says_so_and_is_not_kept_as_if_it_were_whole(world: World) -> None:
    world.model.on("Lisbon", reply="Lisbon has seven", drop=True, times=1)
    world.model.on("hello", reply="Hello!", times=1)
    assert await world.ask("Tell me about Lisbon") == [
        "Lisbon has seven\n\n(The answer broke off here. Ask again for the rest.)"
    ]
    await world.ask("hello again")
    assert "seven" not in world.prompt


async def test_a_flood_and_a_lost_request_cost_time_and_nothing_else(world: World) -> None:
    answer = "Lisbon has seven hills and more stairs than anyone has counted."
    door = world.model.halfway = Door()
    world.model.on(reply=answer, times=1)
    await world.say("Tell me about Lisbon")
    await door.reached.wait()
    await world.until(lambda: len(world.visible()) == world.stage.grows)
    world.stage.trouble(MARA)
    door.set()
    await world.settled_in_time()
    assert world.visible() == [answer]


async def test_a_long_answer_arrives_whole_in_order_within_the_limits_and_its_code_stays_code(world: World) -> None:
    answer = prose(world.stage.bearable)
    world.model.on(chunks=streamed(answer), times=1)
    parts = await world.ask("写长一点")
    assert (len(parts) == 1) == (world.stage.name == "console")
    assert world.stage.files(MARA) == []
    assert all(size <= 1 for size in world.stage.sizes(MARA))
    assert numbers("\n".join(parts)) == numbers(answer)
    assert world.stage.code(MARA) == answer.partition("```python\n")[2].partition("\n```")[0]


async def test_a_very_long_answer_is_a_file_beside_its_summary(world: World) -> None:
    answer = prose(60_000)
    world.model.on(chunks=streamed(answer), times=1)
    (shown,) = await world.ask("写一本书")
    if world.stage.name == "console":
        assert shown == answer
        return
    assert [file.decode() for file in world.stage.files(MARA)] == [answer]
    assert numbers(shown)[:3] == [0, 1, 2]
    assert "…" in shown
    assert len(shown) < 2_000


@pytest.mark.parametrize("answer", ["\U0001f600" * 3_000, "字" * 2_001], ids=["emoji", "chinese"])
async def test_a01_no_answer_is_cut_inside_a_character_or_loses_one(world: World, answer: str) -> None:
    world.model.on(chunks=streamed(answer), times=1)
    parts = await world.ask("go on")
    assert "".join(parts) == answer
    assert all(size <= 1 for size in world.stage.sizes(MARA))


async def test_a03_hostile_markdown_is_shown_whole_and_once(world: World) -> None:
    answer = "若 a<b && b>c 则用 `x<y`，见 [doc](https://ex.org/?a=1&b=2) 与 snake_case_name，3 * 4 * 5。**没有收尾"
    world.model.on(reply=answer, times=1)
    (shown,) = await world.ask("比较一下")
    plain = shown.replace("\\", "")
    for words in ("若 a<b && b>c 则用", "x<y", "doc", "snake_case_name", "3 * 4 * 5", "**没有收尾"):
        assert plain.count(words) == 1, shown


async def test_a06_a_blank_answer_is_one_notice_and_never_remembered(world: World) -> None:
    world.model.on("^hi$", reply="   \n")
    world.model.on("hello again", reply="Hello!", times=1)
    (told,) = await world.ask("hi")
    assert told.startswith("My language model gave no answer. Please ask again or put it differently. (log: ")
    assert await world.ask("hello again") == ["Hello!"]
    assert [line["role"] for line in world.model.chats[-1].messages] == ["system", "user"]
    assert await world.known() == []


async def test_a_model_that_fails_is_told_of_once_a_minute_with_a_number_for_the_log(world: World) -> None:
    world.model.fault(match="/chat/completions", status=500, times=3)
    (told,) = await world.ask("one")
    assert re.search(r"I cannot reach my language model just now.*\(log: [0-9a-f]{8}\)", told)
    assert await world.ask("two") == []
    world.passes(60)
    (again,) = await world.ask("three")
    assert again != told


# ---- order -----------------------------------------------------------------------------------------------


@on(console=IN_TURN)
async def test_quick_messages_of_one_person_are_one_turn(world: World) -> None:
    world.model.on(reply="One thing after the other.", times=1)
    world.hush.clear()
    for text in ("I have a question", "or rather two", "where is Lisbon?"):
        await world.say(text, after=0.2)
    world.hush.set()
    await world.settled()
    assert world.visible() == ["One thing after the other."]
    (asked,) = world.model.chats
    assert asked.last_user.endswith("I have a question\n\nor rather two\n\nwhere is Lisbon?")


@on(console=IN_TURN)
async def test_what_is_said_during_an_answer_joins_the_next_turn(world: World) -> None:
    door = Door()
    world.model.on("first", reply="one", hold=door, times=1)
    world.model.on("third", reply="two", times=1)
    await world.say("the first question")
    await door.reached.wait()
    for text in ("the second question", "the third question"):
        await world.say(text)
    door.set()
    await world.settled()
    assert world.visible() == ["one", "two"]
    assert "second" not in world.model.chats[0].prompt
    assert world.model.chats[1].last_user.endswith("the second question\n\nthe third question")


@on(console=IN_TURN)
async def test_cancel_stops_the_answer_at_once_and_the_talk_goes_on(world: World) -> None:
    door = Door()
    world.model.on("a story", reply="never read", hold=door, times=1)
    world.model.on("hello", reply="Hello!", times=1)
    await world.say("tell me a story")
    await door.reached.wait()
    assert await world.ask("/cancel") == ["Stopped."]
    assert await world.ask("hello") == ["Hello!"]


async def test_order1_what_a_kill_left_unanswered_is_answered_once_after_the_next_start(world: World) -> None:
    door = Door()
    world.model.on("pollen", reply="never read", hold=door, times=1)
    world.model.on("pollen", reply="Stay inside.", times=1)
    number = await world.say("I am allergic to pollen, what can I do?")
    await door.reached.wait()
    await world.stop(killed=True)
    await world.start()
    await world.until(lambda: world.visible() == ["Stay inside."])
    if world.stage.name != "console":
        assert await world.after(world.stage.repeat(MARA, number)) == []
    assert world.visible() == ["Stay inside."]


@on(console="what a terminal has printed stays, and the answer follows below")
async def test_order1_a_kill_in_the_middle_of_an_answer_leaves_no_half_of_it(world: World) -> None:
    answer = "Lisbon has seven hills and more stairs than anyone has counted."
    door = world.model.halfway = Door()
    world.model.on(reply=answer)
    await world.say("Tell me about Lisbon")
    await door.reached.wait()
    await world.until(lambda: len(world.visible()) == 1)
    await world.stop(killed=True)
    (half,) = world.visible()
    assert half != answer
    world.model.halfway = None
    await world.start()
    await world.until(lambda: world.visible() != [half])
    await world.settled()
    assert world.visible() == [answer]


@on(console=PRINTED)
async def test_order1_an_update_that_comes_again_is_answered_once(world: World) -> None:
    world.model.on(reply="Hello!", times=1)
    number = await world.say("good evening")
    await world.settled()
    assert await world.after(world.stage.repeat(MARA, number)) == []
    await world.restart()
    assert await world.after(world.stage.repeat(MARA, number)) == []
    assert world.visible() == ["Hello!"]


@on(console=IN_TURN)
async def test_what_was_said_while_the_bot_was_down_is_answered_as_one_turn(world: World) -> None:
    world.model.on("^hello$", reply="Hello!", times=1)
    world.model.on("Lisbon", reply="In Portugal.", times=1)
    await world.ask("hello")
    await world.stop()
    for text in ("are you there?", "where is Lisbon?"):
        world.passes(5)
        await world.stage.say(MARA, text)
    world.hush.clear()
    await world.start()
    await world.taken(3)
    world.hush.set()
    await world.settled()
    assert world.visible() == ["Hello!", "In Portugal."]
    assert world.model.chats[-1].last_user.endswith("are you there?\n\nwhere is Lisbon?")


# ---- edits and deletions ---------------------------------------------------------------------------------


@on(console=PRINTED)
async def test_an_edit_of_the_last_message_is_answered_anew_and_memory_follows(world: World) -> None:
    world.model.on("pollen", reply="Poor you, pollen!", times=1)
    world.model.on("peanuts", reply="Poor you, peanuts!", times=1)
    number = await world.say(POLLEN)
    await world.settled()
    assert await world.after(world.stage.edit(MARA, number, "I am allergic to peanuts")) == ["Poor you, peanuts!"]
    assert await world.known() == ["I am allergic to peanuts"]
    assert "pollen" not in world.prompt
    assert "pollen" not in world.stored()


@on(console=PRINTED, telegram=NO_NONCE)
async def test_order1_a_kill_after_an_edit_costs_no_answer(world: World) -> None:
    door = Door()
    world.model.on("pollen", reply="Poor you, pollen!", times=1)
    world.model.on("peanuts", reply="never read", hold=door, times=1)
    world.model.on("peanuts", reply="Poor you, peanuts!", times=1)
    number = await world.say(POLLEN)
    await world.settled()
    await world.stage.edit(MARA, number, "I am allergic to peanuts")
    await door.reached.wait()
    await world.stop(killed=True)
    await world.start()
    await world.until(lambda: len(world.model.chats) == 3)
    await world.settled()
    assert world.visible()[-1] == "Poor you, peanuts!"


@on(console=PRINTED)
async def test_an_edit_before_its_answer_is_answered_once_as_it_stands(world: World) -> None:
    world.model.on("peanuts", reply="Poor you, peanuts!", times=1)
    world.hush.clear()
    number = await world.say(POLLEN)
    await world.stage.edit(MARA, number, "I am allergic to peanuts")
    await world.taken(2)
    world.hush.set()
    await world.settled()
    assert world.visible() == ["Poor you, peanuts!"]
    assert "pollen" not in world.stored()


@on(console=PRINTED)
async def test_an_edit_during_its_answer_leaves_nothing_of_that_answer(world: World) -> None:
    door = world.model.halfway = Door()
    world.model.on("pollen", reply="Poor you, pollen is everywhere in spring!", times=1)
    world.model.on("peanuts", reply="Poor you, peanuts!", times=1)
    number = await world.say(POLLEN)
    await door.reached.wait()
    await world.until(lambda: len(world.visible()) == 1)
    world.model.halfway = None
    await world.after(world.stage.edit(MARA, number, "I am allergic to peanuts"))
    assert world.visible() == ["Poor you, peanuts!"]


@on(console=PRINTED, telegram=UNTOLD)
async def test_a_message_that_is_deleted_during_its_answer_is_answered_no_further(world: World) -> None:
    assert isinstance(world.stage, Discord)
    door = world.model.halfway = Door()
    world.model.on("pollen", reply="Poor you, pollen is everywhere in spring!", times=1)
    number = await world.say(POLLEN)
    await door.reached.wait()
    await world.until(lambda: len(world.visible()) == 1)
    await world.after(world.stage.delete(number))
    assert "pollen" not in world.stored()
    assert world.visible() == []


@on(console=PRINTED, telegram=UNTOLD)
async def test_a_message_that_is_deleted_is_withdrawn_with_what_was_remembered(world: World) -> None:
    assert isinstance(world.stage, Discord)
    world.model.on(reply="I see.")
    number = await world.say(POLLEN)
    await world.settled()
    assert await world.after(world.stage.delete(number)) == []
    assert await world.known() == []
    assert "pollen" not in world.stored()
    await world.ask("hello again")
    assert "pollen" not in world.prompt


# ---- groups ----------------------------------------------------------------------------------------------


@among_others
async def test_a12_what_is_not_said_to_the_bot_is_neither_answered_nor_kept(world: World) -> None:
    world.model.on("well", reply="Very well.", times=1)
    await world.stage.say(MARA, "nice weather, everyone", "group", addressed=False)
    assert await world.ask("are you well?", MARA, "group") == ["Very well."]
    assert "weather" not in world.prompt
    assert "weather" not in world.stored()


@among_others
async def test_other_bots_are_not_answered(world: World) -> None:
    world.model.on("well", reply="Very well.", times=1)
    await world.stage.say(ROBOT, "are you well?", "group")
    await world.stage.say(ROBOT, "I am a bot, too")
    assert await world.ask("are you well?", MARA, "group") == ["Very well."]
    assert world.visible(MARA, "group") == ["Very well."]
    assert world.visible(ROBOT) == []
    assert "Robot" not in world.stored()


@among_others
async def test_what_the_bot_knows_of_one_reaches_that_one_alone(world: World) -> None:
    world.model.on(reply="I see.")
    await world.ask("hello")
    await world.ask(POLLEN, MARA, "group")
    assert await world.ask("/whatdoyouknow", MARA, "group") == ["I have sent you the answer privately."]
    assert await world.ask("/whatdoyouknow", MARA, "topic") == ["I have sent you the answer privately."]
    assert world.visible(TOMAS, "group") == ["I see.", "I have sent you the answer privately."]
    for listed in world.visible(MARA)[-2:]:
        assert "pollen" in listed
    assert world.visible(TOMAS) == []


@on(console=ALONE)
async def test_what_was_told_in_private_is_not_denied_when_a_group_asks(world: World) -> None:
    world.model.on(reply="I see.")
    await world.ask(POLLEN)
    await world.ask("/whatdoyouknow", MARA, "group")
    assert "I do not know anything about you yet" not in world.visible(MARA)[-1]


@among_others
async def test_who_cannot_be_written_to_is_told_how_that_can_be_changed(world: World) -> None:
    world.model.on(reply="I see.")
    world.stage.shut(MARA)
    (told,) = await world.ask("/whatdoyouknow", MARA, "group")
    assert told.startswith("That answer is for you alone, and I cannot write to you privately yet")
    assert world.visible(MARA) == []


@on(console=NO_EPHEMERAL, telegram=NO_EPHEMERAL)
async def test_a05_a_slash_command_in_a_group_is_answered_for_its_user_alone(world: World) -> None:
    assert isinstance(world.stage, Discord)
    world.model.on(reply="I see.")
    await world.ask(POLLEN, MARA, "group")
    (listed,) = await world.after(world.stage.slash(MARA, "whatdoyouknow", None, "group"), MARA, "group")
    assert "pollen" in listed
    assert world.visible(TOMAS, "group") == ["I see."]
    (offer,) = await world.after(world.stage.slash(MARA, "forget", "pollen", "group"), MARA, "group")
    assert "Nothing is deleted yet" in offer
    used = world.stage.slash(TOMAS, "whatdoyouknow", None, "group", locale="zh-CN")
    (nothing,) = await world.after(used, TOMAS, "group")
    assert nothing.startswith("关于你，没有属于那个群的记忆。")
    (refused,) = await world.after(world.stage.press(TOMAS, "Forget it", "group"), TOMAS, "group")
    assert refused.startswith("这个选择已经失效，什么都没有改变。")
    assert len(await world.known()) == 1
    (hidden,) = await world.after(world.stage.press(MARA, "Forget it", "group"), MARA, "group")
    assert hidden.startswith("Hidden at once: 1 memory")
    assert world.visible(ROBOT, "group") == ["I see."]


@among_others
async def test_two_who_write_at_once_in_a_group_are_answered_one_by_one(world: World) -> None:
    world.model.on("Mara: ", reply="To Mara.", times=1)
    world.model.on("Tomas: ", reply="To Tomas.", times=1)
    world.hush.clear()
    await world.say("where is Lisbon?", MARA, "group", after=0.2)
    await world.say("and where is Porto?", TOMAS, "group", after=0.2)
    world.hush.set()
    await world.settled()
    assert world.visible(ROBOT, "group") == ["To Mara.", "To Tomas."]
    assert "Porto" not in world.model.chats[0].prompt


@among_others
async def test_a_memory_of_one_is_never_in_the_answer_to_another(world: World) -> None:
    world.model.on(reply="I see.")
    await world.ask("I am allergic to peanuts")
    await world.ask(POLLEN, MARA, "group")
    await world.ask("/new", MARA, "group")
    await world.ask(ASKED, TOMAS, "group")
    assert "pollen" not in world.prompt
    assert "peanuts" not in world.prompt
    await world.ask(ASKED, MARA, "group")
    assert "pollen" in world.prompt
    assert "peanuts" not in world.prompt


@among_others
async def test_a08_a_reply_to_anothers_message_quotes_it_by_name_and_tells_nothing_about_the_asker(
    world: World,
) -> None:
    world.model.on(reply="听起来不错", times=1)
    number = await world.stage.say(TOMAS, "我打算下个月搬去里斯本", "group", addressed=False)
    assert await world.ask("你怎么看这个？", MARA, "group", reply_to=number) == ["听起来不错"]
    asked = world.model.chats[-1].last_user
    assert "Tomas" in asked
    assert "我打算下个月搬去里斯本" in asked
    assert asked.endswith("Mara: 你怎么看这个？")
    assert await world.known() == []
    assert "里斯本" not in world.stored()


@on(console=WORDS)
async def test_what_is_forwarded_are_anothers_words_and_tell_nothing_about_who_passes_them_on(world: World) -> None:
    world.model.on("pollen", reply="Poor Tomas.", times=1)
    assert await world.after(world.stage.forward(MARA, POLLEN, TOMAS)) == ["Poor Tomas."]
    asked = world.model.chats[-1].last_user
    assert "these are not the person's words" in asked
    assert ("Tomas" in asked) == (world.stage.name == "telegram"), "Discord does not tell whose they were"
    assert await world.known() == []


@among_others
async def test_a12_mentions_come_in_as_names_and_go_out_without_a_ping(world: World) -> None:
    answer = f"@everyone @here <@{world.stage.user_id(TOMAS)}> 在吗？"
    world.model.on(reply=answer, times=1)
    (shown,) = await world.ask("帮我问 {} 在不在", MARA, "group", naming=TOMAS)
    assert "Tomas 在不在" in world.model.chats[-1].last_user
    assert world.stage.user_id(TOMAS) not in world.prompt
    assert "everyone" in shown
    assert world.stage.pings("group") == []


@among_others
async def test_a10_a_topic_keeps_its_own_place_and_its_own_window(world: World) -> None:
    world.model.on("Osprey", reply="A fine name.", times=1)
    world.model.on("called", reply="I do not know.", times=1)
    world.model.on("name of it", reply="Osprey.", when_prompt_contains="Osprey", times=1)
    assert await world.ask("the boat is called Osprey", MARA, "topic") == ["A fine name."]
    assert await world.ask("what is the boat called?", TOMAS, "group") == ["I do not know."]
    assert "Osprey" not in world.prompt
    assert await world.ask("the name of it, please", TOMAS, "topic") == ["Osprey."]
    assert world.visible(MARA, "group") == ["I do not know."]


# ---- pictures and languages ------------------------------------------------------------------------------


@on(console=WORDS)
async def test_a09_a_picture_without_words_gets_one_notice_and_no_model(world: World) -> None:
    (told,) = await world.after(world.stage.show(MARA, "", 1))
    assert told == "I cannot see pictures yet.\nPlease tell me in words what matters."
    assert world.model.chats == []


@on(console=WORDS)
async def test_a09_pictures_sent_as_one_are_one_turn_with_their_words(world: World) -> None:
    world.model.on("豆豆", reply="真可爱", times=1)
    world.hush.clear()
    await world.stage.show(MARA, "这是我家的狗豆豆", 3)
    await world.taken(1 if world.stage.name == "discord" else 3)
    world.hush.set()
    await world.settled()
    assert world.visible() == ["真可爱"]
    (asked,) = world.model.chats
    assert asked.last_user.endswith("这是我家的狗豆豆")


async def test_chinese_is_answered_in_chinese_until_another_language_is_chosen(world: World) -> None:
    world.model.on("你好", reply="你好！")
    assert await world.ask("你好，今天天气不错") == ["你好！"]
    (nothing,) = await world.ask("/whatdoyouknow")
    assert nothing.startswith("我还不知道你的任何事。")
    (offer,) = await world.ask("/language")
    assert offer == "你用哪种语言写，我就用哪种语言回答；现在是中文。请选择："
    assert await world.after(world.stage.press(MARA, "English")) == ["From now on I answer you in English."]
    await world.ask("你好，今天天气不错")
    (nothing,) = await world.ask("/whatdoyouknow")
    assert nothing.startswith("I do not know anything about you yet.")
    assert await world.ask("/language 中文") == ["从现在起我用中文回答你。"]


# ---- who is let in ---------------------------------------------------------------------------------------


def code_in(told: str) -> str:
    """The code in what a stranger is told."""
    (found,) = re.findall(r"(?:to them: |管理我的人：)(\S{4}-\S{4})", told)
    return str(found)


async def approved(world: World, who: Person, told: str) -> None:
    """Have somebody let in by the code they were shown, as the terminal does; they hear of it."""
    access, now = world.app.memory.access, world.app.clock()
    ruling = await access.approve(code_in(told), by="console:access", zone="UTC", now=now, admin=True)
    assert ruling.name == f"{world.stage.name}:{world.stage.user_id(who)}"
    await world.app.tick()


async def test_nobody_is_let_in_by_themselves_but_whoever_sits_at_the_terminal(closed: World) -> None:
    closed.model.on(reply="I see.")
    told = await closed.ask(POLLEN)
    if closed.stage.name == "console":
        assert told == ["I see."]
        assert await closed.known() == [POLLEN]
        return
    assert told[0].startswith("Hello! I talk only to people who were let in")
    assert "python -m bot access approve" in told[0]
    assert await closed.ask("are you there? I said pollen") == []
    assert await closed.ask("/whatdoyouknow") == []
    assert await closed.ask("/start") == []
    assert closed.model.chats == []
    assert "pollen" not in closed.stored()
    assert await closed.app.memory.known_account(closed.stage.name, closed.stage.user_id(MARA)) is None


@among_others
async def test_a_code_lets_somebody_in_and_a_removal_puts_them_out_at_once(closed: World) -> None:
    closed.model.on(reply="I see.")
    (told,) = await closed.ask("你好，我想和你聊聊天")
    assert told.startswith("你好！我只跟管理员同意过的人聊天")
    await approved(closed, MARA, told)
    assert closed.visible()[-1].startswith("你获准了")
    assert await closed.ask(POLLEN) == ["I see."]
    await closed.app.memory.access.remove(f"{closed.stage.name}:{closed.stage.user_id(MARA)}")
    asked = len(closed.model.chats)
    (told,) = await closed.ask("do you like peanuts?")
    assert "stays yours" in told
    assert await closed.ask("do you like peanuts?") == []
    (listed,) = await closed.ask("/whatdoyouknow")
    assert "pollen" in listed
    await closed.ask("/export")
    assert len(closed.stage.files(MARA)) == 2
    (offer,) = await closed.ask("/forget pollen")
    assert "Nothing is deleted yet" in offer
    (hidden,) = await closed.after(closed.stage.press(MARA, "Forget it"))
    assert hidden.startswith("Hidden at once: 1 memory")
    assert len(closed.model.chats) == asked
    assert "peanuts" not in closed.stored()


@among_others
async def test_files_edits_and_forwards_of_a_stranger_are_not_taken(closed: World) -> None:
    (told,) = await closed.after(closed.stage.show(MARA, "my pollen", 1))
    assert told.startswith("Hello! I talk only to people")
    number = await closed.say("is it pollen?")
    assert await closed.after(closed.stage.edit(MARA, number, "is it more pollen?")) == []
    assert await closed.after(closed.stage.forward(MARA, POLLEN, TOMAS)) == []
    assert closed.model.chats == []
    assert "pollen" not in closed.stored()


@among_others
async def test_a_group_is_silent_for_strangers_until_an_admin_opens_it(closed: World) -> None:
    closed.model.on(reply="I see.")
    (told,) = await closed.ask("hello, who are you?")
    await approved(closed, MARA, told)
    assert await closed.ask("is it pollen?", TOMAS, "group") == []
    assert await closed.ask("/approve", TOMAS, "group") == []
    assert closed.visible(TOMAS) == []
    assert "pollen" not in closed.stored()
    assert await closed.ask("hello", MARA, "group") == ["I see."]
    (opened,) = await closed.ask("/approve", MARA, "group")
    assert opened.startswith("From now on everybody in this group may talk to me.")
    assert await closed.ask("is it pollen?", TOMAS, "group") == ["I see."]
    assert await closed.ask("and here?", TOMAS, "topic") == ["I see."]
    (private,) = await closed.ask("and in private?", TOMAS)
    assert private.startswith("Hello! I talk only to people")
    assert "python -m bot" not in private
    await closed.ask("/deny", MARA, "group")
    assert await closed.ask("and now?", TOMAS, "group") == []


@on(console=ALONE, telegram=NO_EPHEMERAL)
async def test_a_slash_command_of_a_stranger_is_answered_once(closed: World) -> None:
    assert isinstance(closed.stage, Discord)
    (told,) = await closed.after(closed.stage.slash(MARA, "start", None, "private", locale="zh-TW"))
    assert told.startswith("你好！我只跟管理員同意過的人聊天")
    assert await closed.after(closed.stage.slash(MARA, "whatdoyouknow", None, "group"), MARA, "group") == []
    assert "Mara" not in closed.stored()
