"""Slash commands, buttons and the menu on Discord: over the real SDK and a socket."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.adapters.discord.answers import FRAME_PAUSE
from bot.delivery import MOST_PARTS
from bot.message import Button, ChatRef, CommandSpec, Press, Reply
from tests.discord_talk import (  # noqa: F401 - the fixtures
    COMMANDS,
    MARA,
    TOMAS,
    Talk,
    discord_server,
    general_channel,
    refused,
    running_talk,
    talking,
)
from tests.servers.discord_server import EPHEMERAL, DiscordServer, Place

WORN_OFF = 15 * 60 + 1
"""Seconds after which an interaction cannot be answered any more."""


async def test_a05_a_slash_command_is_deferred_first_and_answered_to_the_caller_alone(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    used = await discord.slash(MARA, "whatdoyouknow", place=place, locale="zh-CN")
    message, sink = await talk.message()

    assert used.acknowledged == 5
    assert used.ephemeral
    assert (message.text, message.language, message.message_id) == ("/whatdoyouknow", "zh-CN", used.id)
    assert message.chat == ChatRef("discord", f"guild:{place[0]}/{place[1]}", private=False)

    discord.advance(8)
    await sink.send(Reply("字" * 4_100, buttons=(Button("page:2", "下一页"),), private=True))
    answers = discord.answers(place[1])
    assert "".join(answer["content"] for answer in answers) == "字" * 4_100
    assert [answer["flags"] for answer in answers] == [EPHEMERAL] * 3
    assert [bool(answer["components"]) for answer in answers] == [False, False, True]


async def test_a_slash_command_in_private_is_answered_in_the_open(discord: DiscordServer, talk: Talk) -> None:
    used = await discord.slash(MARA, "forget", "my phone number")
    message, sink = await talk.message()
    await sink.show("Look")
    await sink.send(Reply("Looking done @everyone", markdown=True))
    await sink.send(Reply(f"And <@{TOMAS.id}> more", markdown=True))

    assert message.text == "/forget my phone number"
    assert message.chat == ChatRef("discord", f"dm:{MARA.id}")
    assert not used.ephemeral
    assert len(discord.texts(MARA)) == 2
    assert [answer["pings"] for answer in discord.answers(MARA)] == [[], []]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"code": 10062, "message": "Unknown interaction"}),
        (400, {"code": 40060, "message": "Interaction has already been acknowledged."}),
    ],
)
async def test_a05_a_command_whose_acknowledgement_is_refused_is_not_run(
    discord: DiscordServer, talk: Talk, caplog: pytest.LogCaptureFixture, status: int, body: dict[str, Any]
) -> None:
    discord.fault("/callback", status=status, body=body)
    await discord.slash(MARA, "forget", "电话")
    await discord.until(lambda: len(discord.sent("/callback")) == 1)
    await discord.say(MARA, "hi")
    message, sink = await talk.message()
    await sink.send(Reply("hello"))

    assert message.text == "hi"
    assert talk.submitted.empty()
    assert "is not run" in caplog.text


async def test_a_command_delivered_twice_is_run_once(discord: DiscordServer, talk: Talk) -> None:
    await discord.slash(MARA, "forget", "电话")
    await talk.message()
    await discord.dispatch("INTERACTION_CREATE", discord.gateway.events[-1]["d"])
    await discord.until(lambda: len(discord.sent("/callback")) == 2)
    await discord.say(MARA, "hi")

    assert (await talk.message())[0].text == "hi"
    assert talk.submitted.empty()


async def test_the_deferred_answer_survives_a_lost_connection(discord: DiscordServer, talk: Talk) -> None:
    await discord.slash(MARA, "whatdoyouknow")
    _, sink = await talk.message()
    discord.fault("PATCH /webhooks", lost=True)
    sending = asyncio.create_task(sink.send(Reply("All I know")))
    await talk.time.let_pass(1.0)
    await sending

    assert discord.texts(MARA) == ["All I know"]


async def test_a_follow_up_of_unknown_outcome_is_not_repeated(discord: DiscordServer, talk: Talk) -> None:
    await discord.slash(MARA, "whatdoyouknow")
    _, sink = await talk.message()
    discord.fault("POST /webhooks", lost=True)

    assert (await refused(sink, Reply("字" * 2_500))).unknown
    assert "".join(discord.texts(MARA)) == "字" * 2_500


async def test_a_growing_answer_makes_no_follow_up_that_could_come_twice(discord: DiscordServer, talk: Talk) -> None:
    await discord.slash(MARA, "whatdoyouknow")
    _, sink = await talk.message()
    discord.fault("POST /webhooks", lost=True)
    await sink.show("字" * 2_100)
    await discord.until(lambda: len(discord.texts(MARA)) == 2)
    await sink.show("字" * 2_200)

    assert (await refused(sink, Reply("字" * 2_100))).unknown
    assert "".join(discord.texts(MARA)) == "字" * 2_100
    assert talk.time.now < FRAME_PAUSE


async def test_a_very_long_command_output_is_a_file_for_the_caller_alone(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    await discord.slash(MARA, "export", place=place)
    _, sink = await talk.message()
    whole = "a line of a long list\n" * 100 * MOST_PARTS
    await sink.send(Reply(whole))

    assert [answer["flags"] for answer in discord.answers(place[1])] == [EPHEMERAL] * 2
    assert discord.uploads(place[1]) == [whole.encode()]


async def test_an_answer_ready_after_the_interaction_wore_off_goes_to_the_private_chat(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    await discord.slash(MARA, "retry", place=place)
    _, sink = await talk.message()
    discord.advance(WORN_OFF)
    await sink.send(Reply("字" * 2_001, private=True))

    assert discord.texts(place[1]) == []
    assert "".join(discord.texts(MARA)) == "字" * 2_001


async def test_an_answer_whose_interaction_wears_off_on_the_way_is_whole_in_the_private_chat(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    await discord.slash(MARA, "retry", place=place)
    _, sink = await talk.message()
    await sink.show("Half")
    await discord.until(lambda: discord.texts(place[1]) == ["Half"])
    discord.advance(WORN_OFF)
    await sink.send(Reply("Half and half"))

    assert discord.texts(MARA) == ["Half and half"]


async def test_an_ephemeral_answer_that_was_dismissed_is_sent_again(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    await discord.slash(MARA, "retry", place=place)
    _, sink = await talk.message()
    await sink.show("Hel")
    await discord.until(lambda: discord.texts(place[1]) == ["Hel"])
    del discord.messages[discord.answers(place[1])[0]["id"]]
    await sink.send(Reply("Hello"))

    assert [(answer["content"], answer["flags"]) for answer in discord.answers(place[1])] == [("Hello", EPHEMERAL)]


# Buttons


async def test_a_press_is_acknowledged_and_names_who_pressed(discord: DiscordServer, talk: Talk, place: Place) -> None:
    await discord.say(MARA, f"<@{discord.bot.id}> /forget 电话", place=place)
    _, sink = await talk.message()
    number = await sink.send(Reply("Forget this?", buttons=(Button("f:1:yes", "Yes"), Button("f:1:no", "No"))))
    assert number is not None

    pressed = await discord.press(TOMAS, number, "Yes", place=place)
    press, sink = await talk.next(Press)
    await sink.send(Reply("These are not your memories."))

    assert press == Press(
        chat=ChatRef("discord", f"guild:{place[0]}/{place[1]}", private=False),
        user_id=TOMAS.id,
        name="Tomas",
        button_id="f:1:yes",
        at=datetime(2026, 3, 2, 12, 0, tzinfo=UTC),
        language="en-US",
        message_id=number,
    )
    assert pressed.acknowledged == 6
    assert discord.texts(place[1]) == ["Forget this?", "These are not your memories."]
    assert discord.answers(place[1])[1]["flags"] == EPHEMERAL


async def test_buttons_work_after_a_restart(discord: DiscordServer) -> None:
    async with talking(discord) as before:
        await discord.say(MARA, "/forget 电话")
        _, sink = await before.message()
        number = await sink.send(Reply("Forget this?", buttons=(Button("f:1:yes", "Yes"),)))
        assert number is not None
        assert before.adapter._client is not None
        assert before.adapter._client.persistent_views == []
    async with talking(discord) as after:
        await discord.press(MARA, number, "Yes")
        press, sink = await after.next(Press)
        await sink.send(Reply("Forgotten."))

    assert press.button_id == "f:1:yes"
    assert discord.texts(MARA) == ["Forget this?", "Forgotten."]


# The menu


async def test_commands_are_registered_in_each_language(discord: DiscordServer, talk: Talk) -> None:
    await discord.until(lambda: len(discord.commands) == 3)
    know, forget, link = discord.commands

    assert (forget["name"], forget["description"]) == ("forget", "Forget something")
    assert forget["description_localizations"] == {"zh-CN": "忘掉某件事", "zh-TW": "忘掉某件事情"}
    assert know["description_localizations"]["zh-TW"] == know["description_localizations"]["zh-CN"]
    assert forget["options"][0]["name"] == "text"
    assert forget["options"][0]["name_localizations"] == {"zh-CN": "内容", "zh-TW": "內容"}
    assert [command["contexts"] for command in (know, forget, link)] == [[0, 1], [0, 1], [1]]


async def test_commands_are_registered_again_only_when_they_changed(discord: DiscordServer) -> None:
    for _ in range(2):
        async with talking(discord):
            await discord.until(lambda: len(discord.commands) == 3 and len(discord.sent("GET .*/commands")) > 0)
    assert len(discord.sent("PUT")) == 1

    discord.commands[0]["description_localizations"]["zh-CN"] = "从前的说法"
    async with talking(discord):
        await discord.until(lambda: len(discord.sent("PUT")) == 2)
    assert discord.commands[0]["description_localizations"]["zh-CN"] == "我记得你的哪些事"

    async with talking(discord, commands=(*COMMANDS[:2], CommandSpec("link", COMMANDS[2].descriptions))):
        await discord.until(lambda: len(discord.sent("PUT")) == 3)
    assert discord.commands[2]["contexts"] == [0, 1]


async def test_refused_commands_do_not_stop_the_bot(discord: DiscordServer, caplog: pytest.LogCaptureFixture) -> None:
    discord.fault("PUT", status=400, body={"code": 30034, "message": "daily limit reached"})
    async with talking(discord) as talk:
        await discord.until(lambda: len(discord.sent("PUT")) == 1)
        await discord.say(MARA, "hi")
        _, sink = await talk.message()
        await sink.send(Reply("hello"))

    assert discord.texts(MARA) == ["hello"]
    assert "daily limit" in caplog.text
