"""How answers reach Discord: through its real SDK, over a socket, to :mod:`tests.servers.discord_server`."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

import pytest

from bot.adapters.discord.answers import FRAME_PAUSE, TYPING_PAUSE
from bot.delivery import MOST_PARTS
from bot.message import Button, ChatRef, DeliveryError, Incoming, Reply
from bot.outlet import TYPING_END
from tests.discord_talk import (  # noqa: F401 - the fixtures
    MARA,
    TOMAS,
    Talk,
    discord_server,
    general_channel,
    refused,
    running_talk,
    talking,
)
from tests.servers.discord_server import DiscordServer, Place

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
CREATED = "POST /channels/.*/messages"
POSTED = "POST /channels/.*/messages|PATCH"


async def test_an_answer_grows_by_the_newest_frame_at_a_bounded_pace(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()

    await sink.show("H")
    await discord.until(lambda: discord.texts(MARA) == ["H"])
    for frame in ("He", "Hel", "Hell", "Hell"):
        await sink.show(frame)
    await talk.time.let_pass(FRAME_PAUSE * (1 + len("Hell") / 2_000))
    await discord.until(lambda: discord.texts(MARA) == ["Hell"])
    await sink.show("Hello, wor")
    await sink.send(Reply("Hello, world"))

    assert discord.texts(MARA) == ["Hello, world"]
    assert [request.body["content"] for request in discord.sent(POSTED)] == ["H", "Hell", "Hello, world"]


async def test_a_final_text_that_is_already_shown_is_not_sent_again(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.show("Hello")
    await discord.until(lambda: discord.texts(MARA) == ["Hello"])

    number = await sink.send(Reply("Hello"))

    assert number == discord.answers(MARA)[0]["id"]
    assert discord.sent("PATCH") == []


async def test_a_frame_on_the_wire_never_lands_after_the_final_text(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    released = asyncio.Event()
    discord.fault(CREATED, hold=released)
    await sink.show("Hel")
    await discord.until(lambda: len(discord.sent(CREATED)) == 1)

    final = asyncio.create_task(sink.send(Reply("Hello")))
    await asyncio.sleep(0)
    released.set()
    await final

    assert discord.texts(MARA) == ["Hello"]


async def test_a01_one_character_over_the_limit_makes_two_messages_that_join_to_the_answer(
    discord: DiscordServer, talk: Talk
) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()

    number = await sink.send(Reply("汉" * 2_001, buttons=(Button("b", "ok"),)))

    parts = discord.texts(MARA)
    assert len(parts) == 2
    assert all(len(part) <= 2_000 for part in parts)
    assert "".join(parts) == "汉" * 2_001
    assert discord.answers(MARA)[1]["id"] == number
    assert [bool(message["components"]) for message in discord.answers(MARA)] == [False, True]


async def test_an_answer_grows_over_several_messages_and_leaves_none_too_many(
    discord: DiscordServer, talk: Talk
) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.show("字" * 4_100)
    await discord.until(lambda: len(discord.texts(MARA)) == 3)

    number = await sink.send(Reply("短" * 2_001))

    assert "".join(discord.texts(MARA)) == "短" * 2_001
    assert [answer["id"] for answer in discord.answers(MARA)][1:] == [number]


async def test_a_very_long_answer_is_a_file_beside_its_opening(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    whole = "# 一\n\n" + "很长的一句话。\n" * 300 * MOST_PARTS

    await sink.send(Reply(whole, markdown=True))

    first, last = discord.answers(MARA)
    assert first["content"].startswith("# 一")
    assert [file["filename"] for file in last["attachments"]] == ["answer.md"]
    assert discord.uploads(MARA) == [whole.encode()]


async def test_two_replies_to_one_message_are_two_messages(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.send(Reply("one"))
    await sink.send(Reply("two"))

    assert discord.texts(MARA) == ["one", "two"]


@pytest.mark.parametrize("blank", ["", "   \n", "\u200b\u2060", "** **"])
async def test_a06_a_blank_reply_is_refused_here_and_not_by_discord(
    discord: DiscordServer, talk: Talk, blank: str
) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.show(blank)

    assert not (await refused(sink, Reply(blank, markdown=True))).unknown
    assert discord.sent(CREATED) == []


async def test_a_lone_surrogate_does_not_stop_an_answer(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.send(Reply("so\ud83d"))

    assert discord.texts(MARA) == ["so\ufffd"]


# When things go wrong


async def test_a_send_of_unknown_outcome_is_repeated_and_shown_once(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    discord.fault(CREATED, lost=True)

    sending = asyncio.create_task(sink.send(Reply("Hello")))
    await talk.time.let_pass(1.0)
    await sending

    assert len(discord.sent(CREATED)) == 2
    assert discord.texts(MARA) == ["Hello"]


async def test_the_final_text_replaces_a_frame_whose_arrival_was_unknown(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    discord.fault(CREATED, lost=True)
    await sink.show("Hel")
    await discord.until(lambda: discord.texts(MARA) == ["Hel"])

    await sink.send(Reply("Hello", buttons=(Button("b", "ok"),)))

    assert discord.texts(MARA) == ["Hello"]
    assert discord.answers(MARA)[0]["components"]


async def test_a_closed_private_chat_is_a_known_failure(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    discord.unreachable.add(discord.channel_of(MARA))

    failure = await refused(sink, Reply("Hello"))

    assert "Cannot send messages" in str(failure)
    assert not failure.unknown


async def test_an_answer_deleted_while_it_grew_is_delivered_all_the_same(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.show("Hel")
    await discord.until(lambda: discord.texts(MARA) == ["Hel"])
    await discord.take_back(discord.answers(MARA)[0]["id"])

    await sink.send(Reply("Hello"))

    assert discord.texts(MARA) == ["Hello"]


async def test_a_rate_limit_is_waited_out_and_holds_up_no_other_chat(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, to_mara = await talk.message()
    await discord.say(TOMAS, "hi")
    _, to_tomas = await talk.message()
    discord.fault(f"POST /channels/{discord.channel_of(MARA)}/messages", retry_after=0.3, times=2)

    waiting = asyncio.create_task(to_mara.send(Reply("Hello Mara")))
    await discord.until(lambda: len(discord.sent(CREATED)) == 1)
    await to_tomas.send(Reply("Hello Tomas"))
    assert not waiting.done()
    await waiting

    assert discord.texts(MARA) == ["Hello Mara"]
    assert discord.texts(TOMAS) == ["Hello Tomas"]


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        ({"retry_after": 45.0}, 45.0),
        ({"status": 429, "headers": {"Retry-After": "70"}, "body": "slow down"}, 70.0),
        ({"status": 429, "headers": {"Retry-After": "soon"}, "body": "slow down"}, 60.0),
    ],
)
async def test_a_long_wait_closes_the_chat_for_that_long_and_the_answer_follows(
    discord: DiscordServer, talk: Talk, fault: dict[str, object], seconds: float
) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await talk.time.let_pass(TYPING_PAUSE)
    discord.fault(CREATED, **fault)  # type: ignore[arg-type]

    sending = asyncio.create_task(sink.send(Reply("Hello")))
    await talk.time.let_pass(seconds)
    await sending

    assert discord.texts(MARA) == ["Hello"]


async def test_a_refused_frame_is_dropped_and_the_final_text_arrives(
    discord: DiscordServer, talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    discord.fault(CREATED, status=403, body={"code": 50013, "message": "Missing Permissions"})
    await sink.show("Hel")
    await discord.until(lambda: len(discord.sent(CREATED)) == 1)

    await sink.send(Reply("Hello"))

    assert discord.texts(MARA) == ["Hello"]
    assert "frame of an answer was lost" in caplog.text


async def test_the_typing_sign_lasts_until_the_answer(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    for _ in range(3):
        await talk.time.let_pass(TYPING_PAUSE)
    await discord.until(lambda: len(discord.sent("typing")) == 4)
    await sink.send(Reply("Hello"))

    assert talk.time.sleepers == 0


async def test_the_typing_sign_ends_by_itself_too(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    signs = int(TYPING_END / TYPING_PAUSE)
    for _ in range(signs):
        await talk.time.let_pass(TYPING_PAUSE)
    await discord.say(TOMAS, "hi")
    await discord.until(lambda: bool(discord.sent(f"/{discord.channel_of(TOMAS)}/typing")))

    assert len(discord.sent(f"/{discord.channel_of(MARA)}/typing")) == signs


# Servers


async def test_an_answer_in_a_channel_refers_to_the_question_and_pings_nobody(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    number = await discord.say(MARA, f"<@{discord.bot.id}> 帮我问问", place=place)
    _, sink = await talk.message()
    await sink.show(f"@everyone <@{TOMAS.id}>")
    await discord.until(lambda: len(discord.answers(place[1])) == 1)
    await sink.send(Reply(f"@everyone @here <@{TOMAS.id}> <@&{place[0]}> 在吗？", markdown=True))

    [answer] = discord.answers(place[1])
    assert answer["message_reference"]["message_id"] == int(number)
    assert answer["pings"] == []
    assert [request.body["allowed_mentions"] for request in discord.sent(POSTED)] == [
        {"parse": [], "replied_user": True}
    ] * 2


async def test_a_question_deleted_meanwhile_is_answered_all_the_same(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    number = await discord.say(MARA, f"<@{discord.bot.id}> hello", place=place)
    _, sink = await talk.message()
    await discord.take_back(number)
    await sink.send(Reply("hi"))

    assert discord.texts(place[1]) == ["hi"]


async def test_a_private_reply_leaves_a_server_for_the_private_chat_and_says_so(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    await discord.say(MARA, f"<@{discord.bot.id}> /whatdoyouknow", place=place)
    _, sink = await talk.message()
    await sink.send(Reply("You are allergic to pollen.", private=True, hint="I wrote to you privately."))

    assert discord.texts(place[1]) == ["I wrote to you privately."]
    assert discord.texts(MARA) == ["You are allergic to pollen."]


async def test_a_private_reply_to_a_closed_private_chat_is_not_told_in_the_server(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    discord.unreachable.add(discord.channel_of(MARA))
    await discord.say(MARA, f"<@{discord.bot.id}> /whatdoyouknow", place=place)
    _, sink = await talk.message()
    await sink.send(Reply("You are allergic to pollen.", private=True, closed="Let me write to you first."))

    assert discord.texts(place[1]) == ["Let me write to you first."]


# After a restart, and unasked


def question(number: str, place: Place | None = None) -> Incoming:
    """What Mara asked before the restart."""
    chat = (
        ChatRef("discord", f"guild:{place[0]}/{place[1]}", private=False)
        if place
        else ChatRef("discord", f"dm:{MARA.id}")
    )
    return Incoming(chat, MARA.id, "Mara", number, "hi", NOON)


async def test_an_answer_that_was_begun_goes_on_in_the_same_messages(discord: DiscordServer, place: Place) -> None:
    async with talking(discord) as before:
        number = await discord.say(MARA, f"<@{discord.bot.id}> hi", place=place)
        _, sink = await before.message()
        await sink.show("Hel")
        await discord.until(lambda: discord.texts(place[1]) == ["Hel"])
    shown = discord.answers(place[1])[0]["id"]
    async with talking(discord) as after:
        await after.adapter.sink(question(number, place), shown=(shown,), begun=True).send(Reply("Hello"))

    assert [(answer["id"], answer["content"]) for answer in discord.answers(place[1])] == [(shown, "Hello")]


@pytest.mark.parametrize("in_server", [False, True])
async def test_an_answer_sent_right_before_a_kill_is_there_once(
    discord: DiscordServer, place: Place, *, in_server: bool
) -> None:
    where = place if in_server else None
    async with talking(discord) as before:
        number = await discord.say(MARA, f"<@{discord.bot.id}> hi", place=where)
        _, sink = await before.message()
        await sink.send(Reply("Hello"))
    async with talking(discord) as after:
        again = after.adapter.sink(question(number, where), begun=True)
        first = await again.send(Reply("Hello again"))

    [answer] = discord.answers(place[1] if in_server else MARA)
    assert (answer["id"], answer["content"]) == (first, "Hello again")


async def test_what_follows_a_restart_in_a_server_refers_to_the_question_and_keeps_secrets(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    number = await discord.say(MARA, "long ago", place=place)
    await talk.adapter.sink(question(number, place)).send(Reply("Hello"))
    await talk.adapter.sink(question(number, place)).send(Reply("All I know", private=True))

    assert discord.answers(place[1])[0]["message_reference"]["message_id"] == int(number)
    assert (discord.texts(place[1]), discord.texts(MARA)) == (["Hello"], ["All I know"])


async def test_a_receipt_reaches_the_private_chat_and_the_channel(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    await talk.adapter.notify(ChatRef("discord", f"dm:{MARA.id}"), Reply("Erased.", private=True))
    await talk.adapter.notify(ChatRef("discord", f"guild:{place[0]}/{place[1]}", private=False), Reply("Moved."))

    assert discord.texts(MARA) == ["Erased."]
    assert discord.texts(place[1]) == ["Moved."]


async def test_a_private_receipt_is_never_shown_in_a_channel(discord: DiscordServer, talk: Talk, place: Place) -> None:
    chat = ChatRef("discord", f"guild:{place[0]}/{place[1]}", private=False)
    with pytest.raises(DeliveryError):
        await talk.adapter.notify(chat, Reply("Erased.", private=True))

    assert discord.texts(place[1]) == []
