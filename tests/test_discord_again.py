"""The same message twice on Discord, and answers that may be there already: over the real SDK and a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from bot.adapters.discord import client
from bot.message import Button, ChatRef, Reply
from tests.discord_talk import (  # noqa: F401 - the fixtures
    MARA,
    Talk,
    discord_server,
    general_channel,
    refused,
    running_talk,
    talking,
)
from tests.servers.discord_server import DiscordServer, Place

CREATED = "POST /channels/.*/messages"
APOLOGY = Reply("I could not write that down.")
LONG = "a line of a long answer\n" * 1_000


async def test_an_apology_is_not_taken_for_the_answer_to_the_same_message_after_a_restart(
    discord: DiscordServer, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "GUILDS_PAUSE", 0.05)
    known = await discord.say(MARA, "known")
    async with talking(discord) as before:
        await discord.say(MARA, "hello")
        await (await before.message())[1].send(APOLOGY)
    journal: Mapping[ChatRef, str] = {ChatRef("discord", f"dm:{MARA.id}"): known}
    async with talking(discord, journal=journal) as after:
        said, sink = await after.message()
        await sink.send(Reply("Hello."))

    assert said.text == "hello"
    assert discord.texts(MARA) == ["Hello."]


async def test_an_apology_is_not_taken_for_the_answer_when_the_message_is_handed_in_again(
    discord: DiscordServer, talk: Talk
) -> None:
    await discord.say(MARA, "hello")
    event = discord.gateway.events[-1]["d"]
    await (await talk.message())[1].send(APOLOGY)
    await discord.dispatch("MESSAGE_CREATE", event)
    _, sink = await talk.message()
    await sink.send(Reply("Hello.", buttons=(Button("b", "ok"),)))

    [answer] = discord.answers(MARA)
    assert answer["content"] == "Hello."
    assert answer["components"]


@pytest.mark.parametrize(
    ("first", "then", "files"), [("one" * 900, LONG, [LONG.encode()]), (LONG, "two" * 900, [])], ids=["file", "text"]
)
async def test_every_message_of_an_answer_shows_what_was_asked_for_and_nothing_older(
    discord: DiscordServer, talk: Talk, first: str, then: str, files: list[bytes]
) -> None:
    number = await discord.say(MARA, "hello")
    said, sink = await talk.message()
    await sink.send(Reply(first))
    await talk.adapter.sink(said, begun=True).send(Reply(then))

    assert number == said.message_id
    assert len(discord.answers(MARA)) == 2
    assert discord.uploads(MARA) == files
    if not files:
        assert "".join(discord.texts(MARA)) == then


async def test_an_answer_that_is_new_is_not_changed(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hello")
    _, sink = await talk.message()
    await sink.send(Reply(LONG, buttons=(Button("b", "ok"),)))

    assert discord.sent("PATCH") == []


@pytest.mark.parametrize("body", ["<html>gateway</html>", {"ok": 1}, [], None])
async def test_a_success_that_says_nothing_is_no_success(discord: DiscordServer, talk: Talk, body: Any) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    discord.fault(CREATED, status=200, body=body)
    sending = asyncio.create_task(sink.send(Reply("Hello")))
    await talk.time.let_pass(1.0)
    await sending

    assert discord.texts(MARA) == ["Hello"]


# Slash commands


@pytest.mark.parametrize("in_server", [False, True])
async def test_a_command_that_gets_no_answer_leaves_nobody_waiting(
    discord: DiscordServer, talk: Talk, place: Place, *, in_server: bool
) -> None:
    used = await discord.slash(MARA, "forget", place=place if in_server else None)
    _, sink = await talk.message()
    await sink.done()

    await discord.until(lambda: used.withdrawn)


async def test_an_open_answer_that_cannot_be_taken_back_hurts_nothing(discord: DiscordServer, talk: Talk) -> None:
    await discord.slash(MARA, "forget")
    _, sink = await talk.message()
    discord.fault("DELETE /webhooks", status=403, body={"code": 50013, "message": "Missing Permissions"})
    await sink.done()
    await discord.until(lambda: len(discord.sent("DELETE /webhooks")) == 1)
    await discord.say(MARA, "hi")

    assert (await talk.message())[0].text == "hi"


async def test_a_command_whose_answer_is_under_way_when_all_is_done_keeps_it(
    discord: DiscordServer, talk: Talk
) -> None:
    used = await discord.slash(MARA, "whatdoyouknow")
    _, sink = await talk.message()
    released = asyncio.Event()
    discord.fault("PATCH /webhooks", hold=released)
    sending = asyncio.create_task(sink.send(Reply("All I know")))
    await discord.until(lambda: len(discord.sent("PATCH /webhooks")) == 1)
    sending.cancel()
    await sink.done()
    released.set()
    await discord.until(lambda: discord.texts(MARA) == ["All I know"])
    await discord.say(MARA, "hi")
    await talk.message()

    assert not used.withdrawn


async def test_an_answered_press_has_nothing_to_take_back(discord: DiscordServer, talk: Talk, place: Place) -> None:
    await discord.slash(MARA, "whatdoyouknow", place=place)
    _, sink = await talk.message()
    await sink.send(Reply("All I know"))
    await sink.done()

    assert discord.texts(place[1]) == ["All I know"]
    assert discord.sent("DELETE") == []


async def test_an_answer_that_may_be_there_is_not_sent_to_the_private_chat_too(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    await discord.slash(MARA, "whatdoyouknow", place=place)
    _, sink = await talk.message()
    discord.fault("PATCH /webhooks", lost=True)
    sending = asyncio.create_task(refused(sink, Reply("All I know")))
    await discord.until(lambda: discord.texts(place[1]) == ["All I know"])
    discord.advance(15 * 60 + 1)
    for pause in (1.0, 2.0, 4.0):
        await talk.time.let_pass(pause)

    assert (await sending).unknown
    assert discord.texts(MARA) == []


async def test_an_answer_that_is_not_what_may_be_there_goes_to_the_private_chat(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    await discord.slash(MARA, "whatdoyouknow", place=place)
    _, sink = await talk.message()
    discord.fault("PATCH /webhooks", lost=True)
    await sink.show("All")
    await discord.until(lambda: discord.texts(place[1]) == ["All"])
    discord.advance(15 * 60 + 1)
    await sink.send(Reply("All I know"))

    assert discord.texts(MARA) == ["All I know"]
