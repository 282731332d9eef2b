"""What people send on Telegram, as the conversation gets it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from telegram import Update as TelegramUpdate
from telegram import User

from bot.adapters.telegram.reading import Reader
from bot.message import ChatRef, Edited, Incoming, MediaError, Quote
from bot.text import clean, is_blank, utf16_length
from tests.servers.telegram_chats import DATE
from tests.telegram_world import ANNA, BERT, GROUP, SAID_AT, World

pytest_plugins = ("tests.telegram_fixtures",)

THING = {"file_id": "f", "file_unique_id": "u"}
PHOTO = [THING | {"width": 1, "height": 1}]


async def test_a_private_message_arrives_whole(here: World) -> None:
    number = here.server.say(ANNA, "我对花粉过敏 😀", user={"last_name": "Li", "language_code": "zh-hans"})
    incoming, _ = await here.desk.message()
    assert incoming == Incoming(
        chat=ChatRef("telegram", "dm:1001"),
        user_id="1001",
        name="User 1001 Li",
        message_id=str(number),
        text="我对花粉过敏 😀",
        at=SAID_AT,
        language="zh-hans",
    )


async def test_messages_of_a_chat_arrive_in_the_order_they_were_written(here: World) -> None:
    for number in range(20):
        here.server.say(ANNA if number % 2 else BERT, f"message {number}")
    heard = [(await here.desk.message())[0] for _ in range(20)]
    for user, first in ((BERT, 0), (ANNA, 1)):
        texts = [incoming.text for incoming in heard if incoming.user_id == str(user)]
        assert texts == [f"message {number}" for number in range(first, 20, 2)]


async def test_lone_surrogates_and_controls_from_outside_are_made_harmless(here: World) -> None:
    here.server.say(ANNA, "a\ud83db\x00", user={"first_name": "An\ude00na\x07"})
    incoming, _ = await here.desk.message()
    assert (incoming.text, incoming.name) == ("a\ufffdb", "An\ufffdna")


async def test_the_same_update_twice_carries_the_same_message_id(here: World) -> None:
    number = here.server.say(ANNA, "once")
    first, _ = await here.desk.message()
    here.server.push({"message": here.server.chat(ANNA).messages[number]})
    second, _ = await here.desk.message()
    assert first == second
    assert second.message_id == str(number)


async def test_what_no_person_says_to_the_bot_is_passed_over(here: World) -> None:
    here.server.say(BERT, "I am a bot", user={"is_bot": True})
    here.server.say(here.server.id, "I am the bot", ANNA, user={"is_bot": True})
    here.server.say(ANNA, "made by a bot", via_bot=here.server.user(77, is_bot=True, username="other_bot"))
    here.server.group(GROUP)
    here.server.say(ANNA, "/news", GROUP, is_automatic_forward=True)
    pinned = {"message_id": 1, "date": 0, "chat": {"id": ANNA, "type": "private"}}
    here.server.say(ANNA, None, pinned_message=pinned)
    here.server.say(ANNA, None, story={"id": 1, "chat": {"id": ANNA, "type": "private"}})
    here.server.say(ANNA, None, new_chat_title="Ours")
    here.server.say(ANNA, "hello")
    incoming, _ = await here.desk.message()
    assert incoming.text == "hello"


# Edits


async def test_an_edit_tells_what_a_message_says_now_and_when_it_was_changed(here: World) -> None:
    number = here.server.say(ANNA, "I moved to Lisbon")
    first, _ = await here.desk.message()
    here.server.edit(number, "I moved to Porto", ANNA)
    edited, _ = await here.desk.next()
    assert isinstance(edited, Edited)
    assert (edited.message.message_id, edited.message.text) == (first.message_id, "I moved to Porto")
    assert (edited.message.at, edited.at) == (SAID_AT, datetime.fromtimestamp(DATE + 60, UTC))


async def test_an_edit_that_takes_our_name_out_still_comes_but_is_not_addressed(here: World) -> None:
    here.server.group(GROUP)
    number = here.server.say(ANNA, "@recollect_bot I like jazz", GROUP)
    await here.desk.message()
    here.server.edit(number, "never mind", GROUP)
    edited, _ = await here.desk.next()
    assert isinstance(edited, Edited)
    assert (edited.message.text, edited.message.addressed) == ("never mind", False)


# Words of others


async def test_a08_quoted_and_forwarded_words_are_marked_as_theirs(here: World) -> None:
    bert = here.server.user(BERT)
    theirs = {"message_id": 7, "date": DATE, "chat": {"id": ANNA, "type": "private"}, "from": bert, "text": "I ski"}
    origin = {"type": "user", "date": DATE, "sender_user": bert}
    hidden = {"type": "hidden_user", "date": DATE, "sender_user_name": "Someone"}
    for message in (
        {"reply_to_message": theirs},
        {"reply_to_message": theirs, "quote": {"text": "ski", "position": 2}},
        {"external_reply": {"origin": hidden}, "quote": {"text": "far", "position": 0}},
        {"reply_to_message": theirs | {"forward_origin": hidden}},
    ):
        here.server.say(ANNA, "me too", **message)
    quotes = [(await here.desk.message())[0].reply_to for _ in range(4)]
    assert quotes == [
        Quote("I ski", "User 1002", "1002", "7"),
        Quote("ski", "User 1002", "1002", "7"),
        Quote("far", "Someone"),
        Quote("I ski", "Someone", None, "7"),
    ]
    here.server.say(ANNA, "I ski", forward_origin=origin)
    here.server.say(ANNA, "I fly", forward_origin=hidden)
    assert [(await here.desk.message())[0].forward_from for _ in range(2)] == ["User 1002", "Someone"]


async def test_a08_a_reply_to_a_photo_quotes_its_caption_and_one_to_the_bot_names_it(here: World) -> None:
    photo = {"message_id": 7, "date": DATE, "chat": {"id": ANNA, "type": "private"}, "from": here.server.user(BERT)}
    here.server.say(ANNA, "whose?", reply_to_message=photo | {"photo": PHOTO, "caption": "新家钥匙"})
    here.server.say(ANNA, "and this?", reply_to_message=photo | {"photo": PHOTO})
    captioned, bare = [(await here.desk.message())[0].reply_to for _ in range(2)]
    assert (captioned, bare) == (Quote("新家钥匙", "User 1002", "1002", "7"), Quote("", "User 1002", "1002", "7"))
    ours = {"message_id": 8, "date": DATE, "chat": {"id": ANNA, "type": "private"}, "from": here.server.me}
    here.server.say(ANNA, "展开第三点", reply_to_message=ours | {"text": "方案一：…方案三：租车"})
    incoming, _ = await here.desk.message()
    assert incoming.reply_to == Quote("方案一：…方案三：租车", "Recollect", str(here.server.id), "8")


async def test_somebody_named_without_an_at_name_is_shown_by_their_name(here: World) -> None:
    mention = {"type": "text_mention", "offset": 6, "length": 3, "user": here.server.user(BERT, first_name="Tomas")}
    here.server.say(ANNA, "😀 ask Tom and @mara_k", entities=[mention | {"offset": 7}])
    incoming, _ = await here.desk.message()
    assert incoming.text == "😀 ask Tomas and @mara_k"


# Whatever they write


def written(text: str, *entities: dict[str, Any], group: bool = True) -> TelegramUpdate:
    """Return an update as the SDK hands it over."""
    chat = {"id": GROUP, "type": "group", "title": "G"} if group else {"id": ANNA, "type": "private"}
    author = {"id": ANNA, "is_bot": False, "first_name": "Anna"}
    message = {"message_id": 1, "date": DATE, "chat": chat, "from": author, "text": text, "entities": list(entities)}
    return TelegramUpdate.de_json({"update_id": 1, "message": message}, None)


def reader() -> Reader:
    async def nothing(file_id: str, limit: int) -> bytes:
        raise AssertionError(f"nobody wants {file_id} of {limit} bytes")

    return Reader(User(9, "Recollect", is_bot=True, username="recollect_bot"), nothing, lambda: SAID_AT)


@given(before=st.text(), after=st.text())
def test_our_name_goes_and_every_word_around_it_stays(before: str, after: str) -> None:
    mention = {"type": "mention", "offset": utf16_length(before), "length": len("@recollect_bot")}
    incoming = reader().read(written(f"{before}@recollect_bot{after}", mention))
    left = clean(f"{before}{after}")
    if is_blank(left) or left.lstrip().startswith("/"):
        return
    assert isinstance(incoming, Incoming)
    assert "".join(incoming.text.split()) == "".join(left.split())


@given(
    text=st.text(),
    offset=st.integers(0, 50),
    length=st.integers(0, 50),
    kind=st.sampled_from(("mention", "text_mention")),
)
def test_entities_that_fit_no_text_break_nothing(text: str, offset: int, length: int, kind: str) -> None:
    user = {"user": {"id": BERT, "is_bot": False, "first_name": "Bert"}} if kind == "text_mention" else {}
    entity = {"type": kind, "offset": offset, "length": length, **user}
    incoming = reader().read(written(text, entity, group=False))
    assert incoming is None or (isinstance(incoming, Incoming) and not is_blank(incoming.text))


# Media


async def test_a09_each_kind_of_media_is_named_and_measured(here: World) -> None:
    sticker = THING | {"type": "regular", "width": 1, "height": 1, "is_animated": False, "is_video": False}
    film = THING | {"width": 1, "height": 1, "duration": 3, "mime_type": "video/mp4", "file_size": 5}
    said: list[tuple[dict[str, Any], tuple[str, str, str, int | None], str]] = [
        ({"photo": PHOTO}, ("image", "", "image/jpeg", None), ""),
        ({"voice": THING | {"duration": 3, "mime_type": "audio/ogg"}}, ("voice", "", "audio/ogg", None), ""),
        ({"audio": THING | {"duration": 3, "file_name": "a.mp3"}}, ("audio", "a.mp3", "", None), ""),
        ({"video": film}, ("video", "", "video/mp4", 5), ""),
        ({"video_note": THING | {"length": 1, "duration": 3}}, ("video", "", "", None), ""),
        ({"animation": film, "document": film}, ("video", "", "video/mp4", 5), ""),
        ({"sticker": sticker | {"emoji": "😺"}}, ("sticker", "", "image/webp", None), "😺"),
        ({"sticker": sticker}, ("sticker", "", "image/webp", None), ""),
        ({"document": THING | {"file_name": "a.c", "mime_type": "text/x-c"}}, ("file", "a.c", "text/x-c", None), ""),
        ({"document": THING | {"mime_type": "image/png"}}, ("image", "", "image/png", None), ""),
        ({"photo": PHOTO, "caption": "my cat"}, ("image", "", "image/jpeg", None), "my cat"),
    ]  # fmt: skip
    for message, _, _ in said:
        here.server.say(ANNA, None, **message)
    for _, expected, text in said:
        incoming, _ = await here.desk.message()
        (media,) = incoming.media
        assert ((media.kind, media.name, media.mime, media.size), incoming.text) == (expected, text)


async def test_the_largest_size_of_a_photo_that_can_be_fetched_is_read(here: World) -> None:
    small, large = here.server.upload(b"small"), here.server.upload(b"large")
    huge = here.server.upload(b"", size=20_000_001)
    sizes = [small | {"width": 90, "height": 90}, large | {"width": 900, "height": 900}]
    here.server.say(ANNA, None, photo=[*sizes, huge | {"width": 9_000, "height": 9_000}])
    (media,) = (await here.desk.message())[0].media
    assert await media.read(100) == b"large"
    with pytest.raises(MediaError, match="5 bytes, more than 4"):
        await media.read(4)


async def test_a_file_that_cannot_be_had_says_so(here: World) -> None:
    huge, lying, gone = here.server.upload(b"", size=20_000_001), here.server.upload(b"abcde", size=1), THING
    for file in (huge, lying, gone):
        here.server.say(ANNA, None, document=file)
    for limit, told in ((100_000_000, "too big"), (4, "more than 4 bytes"), (100, "file_id")):
        (media,) = (await here.desk.message())[0].media
        with pytest.raises(MediaError, match=told):
            await media.read(limit)


@pytest.mark.parametrize(
    "thing",
    [
        {"location": {"longitude": 1.0, "latitude": 1.0}},
        {"contact": {"phone_number": "1", "first_name": "Bo"}},
        {"dice": {"value": 3, "emoji": "🎲"}},
    ],
    ids=str,
)
async def test_what_has_no_content_for_us_is_a_file_that_cannot_be_read_and_in_groups_nothing(
    here: World, thing: dict[str, Any]
) -> None:
    here.server.group(GROUP)
    ours = {"message_id": 8, "date": DATE, "chat": here.server.chat(GROUP).payload(), "from": here.server.me}
    here.server.say(ANNA, None, GROUP, reply_to_message=ours, **thing)
    here.server.say(ANNA, None, **thing)
    incoming, _ = await here.desk.message()
    assert incoming.chat.private
    assert [(media.kind, media.name) for media in incoming.media] == [("file", "")]
    with pytest.raises(MediaError):
        await incoming.media[0].read(100)


async def test_a09_the_items_of_an_album_carry_its_name(here: World) -> None:
    captions: tuple[dict[str, str], ...] = ({"caption": "这是我家的狗豆豆"}, {}, {})
    for words in captions:
        here.server.say(ANNA, None, None, photo=PHOTO, media_group_id="G1", **words)
    items = [(await here.desk.message())[0] for _ in range(3)]
    assert [(item.album, item.text) for item in items] == [("G1", "这是我家的狗豆豆"), ("G1", ""), ("G1", "")]


async def test_an_album_whose_caption_names_the_bot_comes_whole_also_what_lies_before_the_caption(world: World) -> None:
    world.server.group(GROUP)
    for words, album in (({}, "G1"), ({"caption": "@recollect_bot which one?"}, "G1"), ({}, "G1"), ({}, "G2")):
        world.server.say(ANNA, None, GROUP, photo=PHOTO, media_group_id=album, **words)
    async with world.running():
        items = [(await world.desk.message())[0] for _ in range(3)]
        world.server.say(ANNA, None, GROUP, photo=PHOTO, media_group_id="G1")
        late, _ = await world.desk.message()
    assert [item.text for item in (*items, late)] == ["", "which one?", "", ""]
    assert {item.album for item in (*items, late)} == {"G1"}
    assert world.desk.updates.empty()
