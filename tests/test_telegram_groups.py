"""Telegram groups: who is meant, where the answer goes, what only one person may see; buttons and menus."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.message import Button, ChatRef, CommandSpec, DeliveryError, Incoming, Left, Moved, Press, Quote, Reply
from tests.servers.telegram_chats import DATE
from tests.telegram_world import ANNA, BERT, GROUP, NEW_GROUP, SAID_AT, World

pytest_plugins = ("tests.telegram_fixtures",)

MENU = (
    CommandSpec("help", {"en": "What I can do", "zh": "我能做什么", "zh-TW": "我能做什麼"}),
    CommandSpec("forget", {"en": "Forget something", "zh": "忘掉一件事", "zh-TW": "忘掉一件事"}),
    CommandSpec("link", {"en": "Link accounts", "zh": "关联账号", "zh-TW": "關聯帳號"}, private=True),
)
SECRET = Reply("You live in Lisbon.", private=True, hint="I have written to you.", closed="Open a chat with me first.")


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("hello everybody", None),
        ("@recollect_bot hello", "hello"),
        ("😀 hey @Recollect_Bot what is up", "😀 hey what is up"),
        ("@other_bot hello", None),
        ("/help", "/help"),
        ("/forget@recollect_bot my phone", "/forget my phone"),
        ("/help@other_bot", None),
        ("/forget@otherbot all", None),
        ("/help@other_bot @recollect_bot", None),
        ("/etc/passwd is a file", None),
        ("mail me at anna@recollect_bot.example", None),
        ("@recollect_bot", "@recollect_bot"),
    ],
)
async def test_a12_in_a_group_only_what_is_addressed_to_the_bot_is_heard(
    here: World, text: str, heard: str | None
) -> None:
    here.server.group(GROUP)
    here.server.say(ANNA, text, GROUP)
    here.server.say(ANNA, "@recollect_bot over", GROUP)
    incoming, _ = await here.desk.message()
    assert incoming.text == (heard or "over")
    assert incoming.chat == ChatRef("telegram", "group:-500", private=False)


async def test_the_bot_is_heard_when_it_is_named_in_a_caption_or_without_its_at_name(here: World) -> None:
    here.server.group(GROUP)
    photo = [{"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1}]
    here.server.say(ANNA, None, GROUP, photo=photo, caption="@recollect_bot what is this?")
    mention = {"type": "text_mention", "offset": 0, "length": 9, "user": here.server.me}
    here.server.say(ANNA, "Recollect, what is this?", GROUP, entities=[mention])
    heard = [(await here.desk.message())[0].text for _ in range(2)]
    assert heard == ["what is this?", ", what is this?"]


async def test_an_answer_to_the_bot_in_a_group_is_addressed_to_it(here: World) -> None:
    here.server.group(GROUP)
    sink = await here.asked("@recollect_bot hello", chat_id=GROUP)
    await sink.send(Reply("Yes?"))
    ours = here.server.chat(GROUP).ours[0]
    here.server.say(BERT, "and me", GROUP, reply_to_message=ours, message_thread_id=ours["message_id"])
    incoming, _ = await here.desk.message()
    assert incoming.reply_to == Quote("Yes?", "Recollect", str(here.server.id), str(ours["message_id"]))
    assert incoming.chat.thread is None


async def test_edits_in_a_group_lie_further_apart(here: World) -> None:
    here.server.group(GROUP)
    sink = await here.asked("/help", chat_id=GROUP)
    await sink.show("One")
    await here.shows("One", chat_id=GROUP)
    await sink.show("One two")
    await here.time.somebody_sleeps(4.0)
    await sink.send(Reply("One two three"))
    assert here.server.chat(GROUP).texts == ["One two three"]


# Topics


async def test_a10_answers_and_typing_stay_in_their_topic_and_point_to_their_question(here: World) -> None:
    here.server.group(GROUP, 11, 12)
    for user, thread in ((ANNA, 11), (BERT, 12)):
        number = here.server.say(user, "@recollect_bot the boat is called Osprey", GROUP, thread=thread)
        incoming, sink = await here.desk.message()
        assert incoming.chat == ChatRef("telegram", "group:-500", private=False, thread=str(thread))
        await here.time.somebody_sleeps(4.5)
        assert here.server.sent("sendChatAction")[-1].params["message_thread_id"] == thread
        await sink.send(Reply("a" * 5_000))
        first, second = (request.params for request in here.server.sent("sendMessage")[-2:])
        assert first["message_thread_id"] == second["message_thread_id"] == thread
        assert first["reply_parameters"]["message_id"] == number
        assert "reply_parameters" not in second


async def test_a10_the_number_of_a_chain_of_replies_is_not_taken_for_a_topic(here: World) -> None:
    here.server.group(GROUP, 11)
    here.server.say(ANNA, "@recollect_bot hello from General", GROUP, message_thread_id=77)
    here.server.say(ANNA, "@recollect_bot hello from General", GROUP, message_thread_id=1, is_topic_message=True)
    for _ in range(2):
        incoming, sink = await here.desk.message()
        assert incoming.chat.thread is None
        await sink.send(Reply("Hello."))
    assert here.server.chat(GROUP).texts == ["Hello.", "Hello."]
    assert not here.server.sent("message_thread_id")


async def test_a10_an_answer_whose_topic_is_gone_arrives_once_without_it(here: World) -> None:
    here.server.group(GROUP, 11)
    here.server.say(ANNA, "@recollect_bot hello", GROUP, thread=11)
    _, sink = await here.desk.message()
    here.server.chat(GROUP).threads.clear()
    await sink.send(Reply("a" * 5_000))
    assert "".join(here.server.chat(GROUP).texts) == "a" * 5_000
    assert len([message for message in here.server.sent("sendMessage") if "message_thread_id" in message.params]) == 1


async def test_every_message_in_a_topic_the_bot_made_is_not_an_answer_to_it(here: World) -> None:
    here.server.group(GROUP, 42)
    opened = {
        "message_id": 42,
        "date": DATE,
        "chat": here.server.chat(GROUP).payload(),
        "from": here.server.me,
        "forum_topic_created": {"name": "Trips", "icon_color": 0},
    }
    here.server.say(ANNA, "just talking", GROUP, thread=42, reply_to_message=opened)
    here.server.say(ANNA, "/help", GROUP, thread=42, reply_to_message=opened)
    incoming, _ = await here.desk.message()
    assert (incoming.text, incoming.reply_to) == ("/help", None)


async def test_a_flood_in_one_topic_holds_up_the_others_of_its_group(here: World) -> None:
    here.server.group(GROUP, 11, 12)
    sinks = []
    for thread in (11, 12):
        here.server.say(ANNA, "/help", GROUP, thread=thread)
        sinks.append((await here.desk.message())[1])
    here.server.fault("sendMessage", retry_after=9)
    answers = [asyncio.create_task(sinks[0].send(Reply("one")))]
    await here.time.somebody_sleeps(9.0)
    answers.append(asyncio.create_task(sinks[1].send(Reply("two"))))
    await here.asked(user_id=ANNA)
    assert len(here.server.sent("sendMessage")) == 1
    here.time.advance(9.0)
    await asyncio.gather(*answers)
    assert sorted(here.server.chat(GROUP).texts) == ["one", "two"]


# A group that becomes a supergroup


async def test_a12_both_notices_of_a_move_are_passed_on(here: World) -> None:
    here.server.group(GROUP)
    here.server.migrate(GROUP, NEW_GROUP)
    expected = Moved(ChatRef("telegram", "group:-500", private=False), "group:-100500", SAID_AT)
    assert [(await here.desk.next())[0] for _ in range(2)] == [expected, expected]


async def test_a12_an_answer_to_a_group_that_has_moved_arrives_once_in_the_new_one(here: World) -> None:
    here.server.group(GROUP, 11)
    here.server.say(ANNA, "/help", GROUP, thread=11)
    _, sink = await here.desk.message()
    here.server.migrate(GROUP, NEW_GROUP, tell=False)
    await sink.send(Reply("Like this."))
    assert (here.server.chat(GROUP).texts, here.server.chat(NEW_GROUP).texts) == ([], ["Like this."])
    moved, _ = await here.desk.next()
    assert moved == Moved(ChatRef("telegram", "group:-500", private=False), "group:-100500", here.clock())
    assert here.desk.updates.empty()


async def test_an_answer_that_was_growing_while_its_group_moved_is_whole_with_the_new_one(here: World) -> None:
    here.server.group(GROUP)
    sink = await here.asked("/help", chat_id=GROUP)
    await sink.show("a" * 5_000)
    await here.server.until(lambda: len(here.server.chat(GROUP).texts) == 2)
    new = here.server.migrate(GROUP, NEW_GROUP, tell=False)
    await sink.send(Reply("a" * 6_000))
    # What stood in the old group stays readable above the new one; its last message was not whole.
    assert here.server.chat(GROUP).texts[0] + "".join(new.texts) == "a" * 6_000


# Somebody leaves


def member(here: World, user_id: int, status: str, kind: str = "chat_member", **more: Any) -> dict[str, Any]:
    """The update that tells of a change of a member of the group."""
    user = here.server.me if user_id == here.server.id else here.server.user(user_id)
    states = [{"status": each, "user": user} for each in ("member", status)]
    change = {"chat": here.server.chat(GROUP).payload(), "from": user, "date": DATE}
    return {kind: change | {"old_chat_member": states[0], "new_chat_member": states[1] | more}}


@pytest.mark.parametrize("status", ["left", "kicked"])
async def test_who_leaves_or_has_to_is_told_of(here: World, status: str) -> None:
    here.server.group(GROUP)
    more: dict[str, Any] = {"until_date": 0} if status == "kicked" else {}
    here.server.push(member(here, ANNA, status, **more))
    assert (await here.desk.next())[0] == Left(ChatRef("telegram", "group:-500", private=False), "1001", SAID_AT)


async def test_the_note_that_somebody_left_counts_where_the_bot_is_no_administrator(here: World) -> None:
    here.server.group(GROUP)
    here.server.say(BERT, None, GROUP, left_chat_member=here.server.user(ANNA))
    assert (await here.desk.next())[0] == Left(ChatRef("telegram", "group:-500", private=False), "1001", SAID_AT)


async def test_that_the_bot_has_to_go_is_told_once_as_a_change_and_once_as_a_note(here: World) -> None:
    here.server.group(GROUP)
    here.server.push(member(here, here.server.id, "kicked", "my_chat_member", until_date=0))
    here.server.say(BERT, None, GROUP, left_chat_member=here.server.me)
    expected = Left(ChatRef("telegram", "group:-500", private=False), None, SAID_AT)
    assert [(await here.desk.next())[0] for _ in range(2)] == [expected, expected]


RIGHTS = (
    "can_send_messages", "can_send_audios", "can_send_documents", "can_send_photos", "can_send_videos",
    "can_send_video_notes", "can_send_voice_notes", "can_send_polls", "can_send_other_messages",
    "can_add_web_page_previews", "can_change_info", "can_invite_users", "can_pin_messages", "can_manage_topics",
    "can_edit_tag", "can_react_to_messages",
)  # fmt: skip


@pytest.mark.parametrize("inside", [True, False])
async def test_who_is_restricted_has_left_only_if_they_are_not_inside(here: World, *, inside: bool) -> None:
    here.server.group(GROUP)
    more: dict[str, Any] = dict.fromkeys(RIGHTS, False) | {"is_member": inside, "until_date": 0}
    here.server.push(member(here, ANNA, "restricted", **more))
    here.server.say(ANNA, "/help", GROUP)
    update, _ = await here.desk.next()
    assert isinstance(update, Incoming if inside else Left)


async def test_who_comes_and_other_bots_that_go_and_who_blocks_the_bot_are_nothing_to_us(here: World) -> None:
    here.server.group(GROUP)
    here.server.push(member(here, ANNA, "member"))
    here.server.say(BERT, None, GROUP, left_chat_member=here.server.user(77, is_bot=True))
    blocked = member(here, here.server.id, "kicked", "my_chat_member", until_date=0)
    blocked["my_chat_member"]["chat"] = here.server.chat(ANNA).payload()
    here.server.push(blocked)
    here.server.say(ANNA, "/help", GROUP)
    assert isinstance((await here.desk.next())[0], Incoming)


# What only one person may see


async def test_a_private_reply_in_a_group_goes_to_the_person_and_the_group_gets_a_hint(here: World) -> None:
    here.server.chat(ANNA)
    here.server.group(GROUP)
    sink = await here.asked("/whatdoyouknow", chat_id=GROUP)
    await sink.send(SECRET)
    assert here.server.chat(ANNA).texts == [SECRET.text]
    assert here.server.chat(GROUP).texts == [SECRET.hint]


async def test_a_person_who_cannot_be_written_to_is_told_in_the_group_what_to_do(here: World) -> None:
    here.server.chat(ANNA).started = False
    here.server.group(GROUP)
    sink = await here.asked("/whatdoyouknow", chat_id=GROUP)
    await sink.send(SECRET)
    assert here.server.chat(GROUP).texts == [SECRET.closed]


async def test_what_is_asked_in_private_is_answered_there(here: World) -> None:
    await (await here.asked("/whatdoyouknow")).send(SECRET)
    assert here.server.chat(ANNA).texts == [SECRET.text]


async def test_a_private_reply_to_a_press_in_a_group_goes_to_who_pressed(here: World) -> None:
    here.server.chat(BERT)
    here.server.group(GROUP)
    sink = await here.asked("/help", chat_id=GROUP)
    answered = await sink.send(Reply("What?", (Button("know", "What do you know"),)))
    here.server.press(BERT, int(answered or 0), "know", GROUP)
    press, sink = await here.desk.next()
    assert isinstance(press, Press)
    assert (press.user_id, press.chat) == (str(BERT), ChatRef("telegram", "group:-500", private=False))
    await sink.send(SECRET)
    assert here.server.chat(BERT).texts == [SECRET.text]
    assert here.server.chat(GROUP).texts == ["What?", SECRET.hint]


# Buttons and menus


async def test_a_pressed_button_arrives_and_is_acknowledged(here: World) -> None:
    sink = await here.asked("/forget phone")
    buttons = (Button("forget:yes:1", "Yes"), Button("forget:no:1", "No"), Button("好" * 21, "Later"))
    await sink.show("Forget")
    answered = await sink.send(Reply("Forget your phone number?", buttons))
    assert answered is not None
    here.server.press(ANNA, int(answered), "forget:yes:1")
    press, sink = await here.desk.next()
    assert press == Press(
        ChatRef("telegram", "dm:1001"),
        "1001",
        "User 1001",
        "forget:yes:1",
        here.clock(),
        language="en",
        message_id=answered,
    )
    await here.server.until(lambda: bool(here.server.sent("answerCallbackQuery")))
    await sink.send(Reply("Hidden."))
    assert here.server.chat(ANNA).texts == ["Forget your phone number?", "Hidden."]


async def test_buttons_stand_two_in_a_row_and_long_ones_alone(here: World) -> None:
    labels = ("Yes", "No", "把这两条记忆都永远忘掉", "Later", "Tell me more about it first", "Why", "Undo")
    await (await here.asked()).send(Reply("?", tuple(Button(str(n), label) for n, label in enumerate(labels))))
    rows = here.server.chat(ANNA).ours[0]["reply_markup"]["inline_keyboard"]
    assert [[key["text"] for key in row] for row in rows] == [
        ["Yes", "No"],
        ["把这两条记忆都永远忘掉"],
        ["Later"],
        ["Tell me more about it first"],
        ["Why", "Undo"],
    ]


async def test_signs_and_numbers_stand_five_in_a_row(here: World) -> None:
    labels = ("1", "2", "3", "4", "5", "6", "‹", "12/30", "›", "Not right?")
    await (await here.asked()).send(Reply("?", tuple(Button(str(n), label) for n, label in enumerate(labels))))
    rows = here.server.chat(ANNA).ours[0]["reply_markup"]["inline_keyboard"]
    assert [[key["text"] for key in row] for row in rows] == [
        ["1", "2", "3", "4", "5"],
        ["6", "‹", "12/30", "›"],
        ["Not right?"],
    ]


async def test_a_press_answered_too_late_still_counts(here: World) -> None:
    sink = await here.asked()
    answered = await sink.send(Reply("Sure?", (Button("yes", "Yes"),)))
    here.server.press(ANNA, int(answered or 0), "yes")
    here.time.advance(20)
    press, _ = await here.desk.next()
    assert isinstance(press, Press)


async def test_a_button_of_a_message_too_old_to_be_read_still_works(here: World) -> None:
    old = {"message_id": 3, "date": 0, "chat": here.server.chat(ANNA).payload()}
    query = {"id": "9", "from": here.server.user(ANNA), "message": old, "data": "undo:1", "chat_instance": "1"}
    here.server.push({"callback_query": query})
    press, _ = await here.desk.next()
    assert isinstance(press, Press)
    assert (press.button_id, press.chat) == ("undo:1", ChatRef("telegram", "dm:1001"))


async def test_a_button_the_platform_does_not_take_is_told(here: World) -> None:
    with pytest.raises(DeliveryError):
        await (await here.asked()).send(Reply("Sure?", (Button("好" * 22, "Yes"),)))


async def test_menus_are_written_once_for_each_kind_of_chat_and_language(world: World) -> None:
    for _ in range(2):
        async with world.running(MENU):
            await world.server.until(lambda: len(world.server.sent("getMyCommands")) % 4 == 0)
    menus = {key: [command["command"] for command in menu] for key, menu in world.server.commands.items()}
    assert menus == {
        ("all_private_chats", ""): ["help", "forget", "link"],
        ("all_private_chats", "zh"): ["help", "forget", "link"],
        ("all_group_chats", ""): ["help", "forget"],
        ("all_group_chats", "zh"): ["help", "forget"],
    }
    assert world.server.commands["all_group_chats", "zh"][0]["description"] == "我能做什么"
    assert len(world.server.sent("getMyCommands")) == 8
    assert len(world.server.sent("setMyCommands")) == 4


async def test_menus_hold_nothing_up_and_one_that_is_refused_stops_no_other(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    held = world.server.fault("getMyCommands", hold=asyncio.Event())
    world.server.fault("setMyCommands", status=400, description="Bad Request: BOT_COMMANDS_TOO_MUCH")
    async with world.running(MENU):
        await (await world.asked()).send(Reply("hi"))
        assert held.hold is not None
        held.hold.set()
        await world.server.until(lambda: len(world.server.commands) == 3)
    assert world.server.chat(ANNA).texts == ["hi"]
    assert "too_much" in caplog.text


async def test_a_menu_refused_by_a_flood_is_written_later(world: World) -> None:
    world.server.fault("setMyCommands", retry_after=40)
    async with world.running(MENU):
        await world.time.passes(40.0)
        await world.server.until(lambda: len(world.server.commands) == 4)


async def test_a_menu_refused_by_floods_is_given_up_in_the_end(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.server.fault("all_group_chats", retry_after=9, times=6)
    async with world.running(MENU[:1]):
        for _ in range(5):
            await world.time.passes(9.0)
        await world.server.until(lambda: "was not written" in caplog.text)


async def test_a_menu_that_waits_holds_up_no_stop(world: World) -> None:
    world.server.fault("getMyCommands", retry_after=4_000)
    async with world.running(MENU):
        await world.time.somebody_sleeps(4_000.0)
        async with asyncio.timeout(5):
            await world.server.until(lambda: bool(world.server.sent("getUpdates")))


async def test_nothing_private_is_written_into_a_group_unasked(world: World) -> None:
    world.server.group(GROUP)
    async with world.running() as adapter:
        with pytest.raises(DeliveryError) as refusal:
            await adapter.notify(ChatRef("telegram", f"group:{GROUP}", private=False), Reply("yours", private=True))
        await adapter.notify(ChatRef("telegram", f"group:{GROUP}", private=False), Reply("everybody's"))
    assert (refusal.value.later, refusal.value.unknown) == (False, False)
    assert world.server.chat(GROUP).texts == ["everybody's"]
