"""What is said on Discord, and changed and taken back: over the real SDK and a socket."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.message import ChatRef, Deleted, Edited, Incoming, Media, MediaError, Quote, Reply
from tests.discord_talk import (  # noqa: F401 - the fixtures
    MARA,
    ROBOT,
    TOMAS,
    Talk,
    discord_server,
    general_channel,
    running_talk,
    talking,
)
from tests.servers.discord_server import DiscordServer, Place

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def private() -> ChatRef:
    return ChatRef("discord", f"dm:{MARA.id}")


def channel(place: Place) -> ChatRef:
    return ChatRef("discord", f"guild:{place[0]}/{place[1]}", private=False)


def snapshot(text: str, **more: Any) -> dict[str, Any]:
    """A message as it is carried along by one that forwards it."""
    words = {"content": text, "embeds": [], "attachments": [], "mentions": [], "type": 0, "flags": 0}
    return words | {"timestamp": "2026-03-01T12:00:00+00:00", "edited_timestamp": None} | more


async def forwarded(discord: DiscordServer, words: dict[str, Any]) -> None:
    reference = {"type": 1, "channel_id": "1", "message_id": "2"}
    await discord.say(MARA, "", message_reference=reference, message_snapshots=[{"message": words}])


# Who is heard


async def test_a_private_message_is_submitted_whole(discord: DiscordServer, talk: Talk) -> None:
    number = await discord.say(MARA, "我对花粉过敏")
    message, sink = await talk.message()

    assert message == Incoming(private(), MARA.id, "Mara", number, "我对花粉过敏", NOON)
    assert await sink.send(Reply("记住了。")) == discord.answers(MARA)[0]["id"]


async def test_a_server_channel_is_heard_only_when_the_bot_is_addressed(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    await discord.say(MARA, "nice weather everyone", place=place)
    await discord.say(ROBOT, f"<@{discord.bot.id}> hello from a bot", place=place)
    await discord.say(MARA, f"<@{discord.bot.id}> hello", place=place)
    message, sink = await talk.message()
    await sink.send(Reply("hi"))

    assert message.chat == channel(place)
    assert message.text == "hello"
    assert talk.submitted.empty()


async def test_what_nobody_wrote_is_not_heard(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "", type=6)
    await discord.say(MARA, "from a webhook", webhook_id="900000000000005005")
    await discord.say(MARA, "hello")

    assert (await talk.message())[0].text == "hello"


async def test_a_server_the_bot_does_not_know_of_is_not_taken_for_a_private_chat(
    discord: DiscordServer, talk: Talk
) -> None:
    unknown = (discord.snowflake(), discord.snowflake())
    await discord.say(MARA, "nice weather everyone", place=unknown)
    await discord.say(MARA, f"<@{discord.bot.id}> hello", place=unknown)

    assert (await talk.message())[0].chat == channel(unknown)


@pytest.mark.parametrize("own", [False, True])
async def test_a_public_thread_belongs_to_its_channel_and_a_private_one_to_itself(
    discord: DiscordServer, *, own: bool
) -> None:
    guild, thread = discord.guild("general", thread="a thread", private_thread=own)
    async with talking(discord) as talk:
        await discord.say(MARA, f"<@{discord.bot.id}> hi", place=(guild, thread))
        message, sink = await talk.message()
        await sink.send(Reply("hi"))
        await talk.adapter.notify(message.chat, Reply("and a receipt"))

    parent = channel((guild, discord.channels(guild)[0]))
    in_parent = ChatRef(parent.platform, parent.key, private=False, thread=thread)
    assert message.chat == (channel((guild, thread)) if own else in_parent)
    assert discord.texts(thread) == ["hi", "and a receipt"]


# What is said


@pytest.mark.parametrize("form", ["<@{}>", "<@!{}>"])
async def test_a12_the_bots_mention_is_removed_and_others_are_names(
    discord: DiscordServer, talk: Talk, place: Place, form: str
) -> None:
    text = f"{form.format(discord.bot.id)} 帮我问 {form.format(TOMAS.id)} 在不在"
    await discord.say(MARA, text, place=place, mentions=(TOMAS,))

    assert (await talk.message())[0].text == "帮我问 @Tomas 在不在"


async def test_the_bots_own_role_addresses_it_and_places_emoji_and_commands_have_names(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    role = discord.own_role(place[0])
    text = f"<@&{role}> meet in <#{place[1]}> <:smile:900000000000004004>, try </forget:900000000000005005>"
    await discord.say(MARA, text, place=place, mention_roles=[role])

    assert (await talk.message())[0].text == "meet in #general :smile:, try /forget"


async def test_a_reply_to_the_bot_addresses_it_and_quotes_it(discord: DiscordServer, talk: Talk, place: Place) -> None:
    await discord.say(MARA, f"<@{discord.bot.id}> plans?", place=place)
    _, sink = await talk.message()
    answer = await sink.send(Reply("One: train. Two: car."))
    await discord.say(MARA, "tell me more about two", place=place, reply_to=answer)

    quote = (await talk.message())[0].reply_to
    assert quote == Quote("One: train. Two: car.", "Recollect", discord.bot.id, answer)


async def test_a_quoted_message_keeps_its_author(discord: DiscordServer, talk: Talk, place: Place) -> None:
    quoted = await discord.say(TOMAS, "我打算下个月搬去里斯本", place=place)
    await discord.say(MARA, f"<@{discord.bot.id}> 你怎么看？", place=place, reply_to=quoted)
    message, _ = await talk.message()

    assert message.text == "你怎么看？"
    assert message.reply_to == Quote("我打算下个月搬去里斯本", "Tomas", TOMAS.id, quoted)


async def test_a_reply_to_a_message_that_is_gone_is_no_error(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "and this?", reply_to="900000000000123456")

    assert (await talk.message())[0].reply_to == Quote("", message_id="900000000000123456")


async def test_forwarded_words_are_not_the_senders_own(discord: DiscordServer, talk: Talk) -> None:
    await forwarded(discord, snapshot("I moved to Lisbon"))
    message, _ = await talk.message()

    assert (message.text, message.forward_from, message.reply_to) == ("I moved to Lisbon", "?", None)


async def test_a_forwarded_card_is_read_and_its_files_come_along(discord: DiscordServer, talk: Talk) -> None:
    files = [discord.file("list.txt", b"milk", "text/plain; charset=utf-8")]
    embeds = [{"type": "rich", "title": "Weather", "description": "Rain all day"}]
    await forwarded(discord, snapshot("", embeds=embeds, attachments=files))
    message, _ = await talk.message()

    assert message.text == "Weather\nRain all day"
    assert [(media.kind, media.mime) for media in message.media] == [("file", "text/plain")]


# What comes beside the words


async def test_a_message_without_words_is_still_a_message(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "", attachments=[discord.file("dog.png", b"PNG", "image/png")])
    message, _ = await talk.message()

    assert message.text == ""
    [picture] = message.media
    assert (picture.kind, picture.name, picture.mime, picture.size) == ("image", "dog.png", "image/png", 3)
    assert discord.sent("/cdn") == []
    assert await picture.read(3) == b"PNG"


async def test_what_was_attached_is_called_by_what_it_is(discord: DiscordServer, talk: Talk) -> None:
    files = [
        discord.file("a.mp3", b"."),
        discord.file("b", b".", "video/mp4"),
        discord.file("c.pdf", b"."),
        discord.file("d", b"."),
    ]
    await discord.say(MARA, "these", attachments=files)
    await discord.say(MARA, "", attachments=[discord.file("voice-message.ogg", b".", "audio/ogg")], flags=1 << 13)
    (several, _), (voice, _) = await talk.message(), await talk.message()

    assert [media.kind for media in several.media] == ["audio", "video", "file", "file"]
    assert [media.kind for media in voice.media] == ["voice"]


async def test_a_sticker_is_a_picture_with_a_name(discord: DiscordServer, talk: Talk) -> None:
    discord.files["stickers/7.png"] = b"PNG"
    await discord.say(MARA, "", sticker_items=[{"id": "7", "name": "Wave", "format_type": 1}])
    message, _ = await talk.message()

    [sticker] = message.media
    assert (message.text, sticker.kind, sticker.name, sticker.mime) == ("", "sticker", "Wave", "image/png")
    assert await sticker.read(10) == b"PNG"


async def sent(discord: DiscordServer, talk: Talk, file: dict[str, Any]) -> Media:
    await discord.say(MARA, "", attachments=[file])
    return (await talk.message())[0].media[0]


async def test_a_file_over_the_limit_is_not_even_fetched(discord: DiscordServer, talk: Talk) -> None:
    media = await sent(discord, talk, discord.file("long.txt", b"12345"))
    with pytest.raises(MediaError, match="5 bytes"):
        await media.read(4)

    assert discord.sent("/cdn") == []


async def test_a_file_larger_than_told_or_gone_cannot_be_had(discord: DiscordServer, talk: Talk) -> None:
    larger = await sent(discord, talk, discord.file("a.txt", b"12345", size=2))
    with pytest.raises(MediaError, match="5 bytes"):
        await larger.read(4)

    gone = await sent(discord, talk, discord.file("b.txt", b"12345"))
    discord.files.clear()
    with pytest.raises(MediaError, match="NotFound"):
        await gone.read(10)


# What is changed


async def test_an_edit_in_private_says_what_the_message_says_now(discord: DiscordServer, talk: Talk) -> None:
    number = await discord.say(MARA, "my cat is Tom")
    said, _ = await talk.message()
    discord.advance(60)
    await discord.rewrite(number, "my cat is Tim")
    edited, sink = await talk.next(Edited)
    await sink.send(Reply("Tim it is."))

    assert (edited.message.message_id, edited.message.text) == (number, "my cat is Tim")
    assert (edited.message.at, edited.at) == (said.at, said.at + timedelta(seconds=60))
    assert discord.texts(MARA) == ["Tim it is."]


async def test_the_answer_to_an_edit_is_not_taken_for_the_answer_to_the_first_words(
    discord: DiscordServer, talk: Talk
) -> None:
    number = await discord.say(MARA, "two and two?")
    await (await talk.message())[1].send(Reply("4"))
    await discord.rewrite(number, "two and three?")
    _, sink = await talk.next(Edited)
    await sink.send(Reply("5"))

    assert discord.texts(MARA) == ["4", "5"]


async def test_every_edit_in_a_server_is_handed_over_as_addressed_or_not(
    discord: DiscordServer, talk: Talk, place: Place
) -> None:
    idle = await discord.say(TOMAS, "nice weather", place=place)
    await discord.rewrite(idle, "nice weather today")
    unaddressed, _ = await talk.next(Edited)
    discord.advance(1)
    await discord.rewrite(idle, f"nice weather, <@{discord.bot.id}>?")
    newly, _ = await talk.next(Edited)

    assert (unaddressed.message.message_id, unaddressed.message.addressed) == (idle, False)
    assert (newly.message.message_id, newly.message.text, newly.message.addressed) == (idle, "nice weather, ?", True)


async def test_an_edit_that_drops_the_mention_is_heard_after_a_restart(discord: DiscordServer, place: Place) -> None:
    async with talking(discord) as before:
        asked = await discord.say(MARA, f"<@{discord.bot.id}> I live in Porto", place=place)
        await before.message()
    async with talking(discord) as after:
        await discord.rewrite(asked, "never mind")
        edited, _ = await after.next(Edited)

    assert (edited.message.message_id, edited.message.addressed) == (asked, False)


async def test_without_the_intent_an_edit_whose_words_are_hidden_is_not_heard(
    discord: DiscordServer, place: Place
) -> None:
    discord.forbid_content()
    async with talking(discord) as talk:
        asked = await discord.say(MARA, f"<@{discord.bot.id}> hello", place=place)
        answer = await (await talk.message())[1].send(Reply("hi"))
        replied = await discord.say(MARA, "", place=place, reply_to=answer)
        await discord.rewrite(replied, "")
        await discord.rewrite(asked, "")
        edited, _ = await talk.next(Edited)

    assert (edited.message.message_id, edited.message.addressed) == (asked, False)


async def test_a_link_that_gets_its_preview_is_no_edit_nor_is_what_cannot_be_read_the_end(
    discord: DiscordServer, talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    number = await discord.say(MARA, "look: https://example.org")
    await discord.dispatch("MESSAGE_UPDATE", discord.messages[number] | {"embeds": [{"type": "link"}]})
    only_preview = {"id": number, "channel_id": discord.channel_of(MARA), "embeds": [{"type": "link"}]}
    await discord.dispatch("MESSAGE_UPDATE", only_preview)
    await talk.message()
    await discord.rewrite(number, "see: https://example.org")
    await talk.next(Edited)
    await discord.dispatch("MESSAGE_UPDATE", discord.messages[number] | {"embeds": [{"type": "link"}]})
    await discord.say(MARA, "still there?")

    assert (await talk.message())[0].text == "still there?"
    assert talk.submitted.empty()
    assert len(discord.gateway.identified) == 1
    assert "MESSAGE_UPDATE that cannot be read" in caplog.text
    assert "Ignoring exception" not in caplog.text


async def test_what_the_bot_writes_and_rewrites_itself_is_not_heard(discord: DiscordServer, talk: Talk) -> None:
    await discord.say(MARA, "hi")
    _, sink = await talk.message()
    await sink.show("Hel")
    await discord.until(lambda: discord.texts(MARA) == ["Hel"])
    await sink.send(Reply("Hello"))
    await discord.say(MARA, "again")

    assert [event["t"] for event in discord.gateway.events[-3:]] == [
        "MESSAGE_CREATE",
        "MESSAGE_UPDATE",
        "MESSAGE_CREATE",
    ]
    assert (await talk.message())[0].text == "again"


# What is taken back


async def test_a_deleted_message_is_taken_back_in_its_chat(discord: DiscordServer, talk: Talk, place: Place) -> None:
    here = await discord.say(MARA, "hi")
    there = await discord.say(MARA, f"<@{discord.bot.id}> hi", place=place)
    await discord.take_back(here)
    await discord.take_back(there)
    await talk.message()
    await talk.message()

    assert (await talk.next(Deleted))[0] == Deleted(private(), (here,), NOON)
    assert (await talk.next(Deleted))[0] == Deleted(channel(place), (there,), NOON)
    assert discord.sent("GET /channels") == []


async def test_many_messages_are_taken_back_at_once(discord: DiscordServer, talk: Talk, place: Place) -> None:
    several = [await discord.say(MARA, f"line {n}", place=place) for n in range(3)]
    await discord.take_back(*several)

    assert (await talk.next(Deleted))[0] == Deleted(channel(place), tuple(several), NOON)


async def test_a_message_deleted_after_a_restart_is_still_known_to_be_maras(
    discord: DiscordServer, place: Place
) -> None:
    number = await discord.say(MARA, "hi")
    async with talking(discord) as talk:
        await discord.take_back(number)

        assert (await talk.next(Deleted))[0] == Deleted(private(), (number,), NOON)


async def test_a_deletion_in_a_channel_nobody_knows_of_is_logged(
    discord: DiscordServer, talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    await discord.dispatch("MESSAGE_DELETE", {"id": "1", "channel_id": "900000000000001234"})
    await discord.until(lambda: len(discord.sent("GET /channels/900000000000001234")) == 1)
    await discord.say(MARA, "hi")

    assert (await talk.message())[0].text == "hi"
    assert "Unknown Channel" in caplog.text
