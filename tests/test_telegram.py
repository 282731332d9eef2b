"""Answers on Telegram: through the real SDK and a real socket to the strict server."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from telegram.error import RetryAfter

from bot.adapters.telegram import line
from bot.adapters.telegram.connection import seconds
from bot.message import ChatRef, DeliveryError, Reply
from tests.servers.openai_server import OpenAIServer
from tests.servers.telegram_rules import units
from tests.talk import Talk, talking
from tests.telegram_world import ANNA, BERT, GROUP, SAID_AT, World, stop

pytest_plugins = ("tests.telegram_fixtures",)


async def test_an_answer_grows_by_edits_and_ends_with_the_whole_text_once(here: World) -> None:
    sink = await here.asked()
    for frame in ("", "  ", "H"):
        await sink.show(frame)
    await here.shows("H")
    for frame in ("He", "Hel", "Hell"):
        await sink.show(frame)
    await here.time.passes(1.0)
    await here.shows("Hell")
    await sink.show("Hello")
    await here.time.somebody_sleeps(1.0)
    await sink.send(Reply("Hello!"))
    await here.asked("and me?", BERT)
    assert here.server.chat(ANNA).texts == ["Hello!"]
    shown = [request.params["text"] for request in here.server.requests if "text" in request.params]
    assert shown == ["H", "Hell", "Hello!"]


async def test_a_frame_that_changes_nothing_is_not_sent(here: World) -> None:
    sink = await here.asked()
    await sink.show("Hello")
    await here.shows("Hello")
    await sink.show("Hello ")
    await here.time.passes(1.0)
    await sink.send(Reply("Hello\n"))
    assert not here.server.sent("editMessageText")


async def test_a_final_text_waits_for_the_frame_under_way(here: World) -> None:
    sink = await here.asked()
    held = here.server.fault("sendMessage", hold=asyncio.Event())
    await sink.show("Hel")
    await here.server.until(lambda: held.times == 0)
    final = asyncio.create_task(sink.send(Reply("Hello")))
    await asyncio.sleep(0)
    assert held.hold is not None
    held.hold.set()
    await final
    assert here.server.chat(ANNA).texts == ["Hello"]
    assert len(here.server.sent("sendMessage")) == 1


@pytest.mark.parametrize(
    ("text", "parts"),
    [("😀" * 3_000, 2), ("👩‍👩‍👧‍👦" * 500, 2), ("a" * 4_096, 1), ("汉" * 4_097, 2)],
    ids=["emoji", "families", "letters", "Han"],
)
async def test_a01_a_long_answer_arrives_in_parts_that_join_to_it(here: World, text: str, parts: int) -> None:
    sink = await here.asked("give me emoji")
    await sink.send(Reply(text))
    texts = here.server.chat(ANNA).texts
    assert len(texts) == parts
    assert "".join(texts) == text
    assert all(units(part) <= 4_096 and not part.startswith("\u200d") for part in texts)


async def test_a_growing_answer_goes_on_in_a_second_message(here: World) -> None:
    sink = await here.asked()
    await sink.show("a" * 4_000)
    await here.server.until(lambda: len(here.server.chat(ANNA).texts) == 1)
    await sink.show("a" * 4_100)
    await here.time.passes(3.0)
    await here.server.until(lambda: len(here.server.chat(ANNA).texts) == 2)
    await sink.send(Reply("a" * 9_000))
    assert [len(text) for text in here.server.chat(ANNA).texts] == [4_096, 4_096, 808]


async def test_a_final_text_shorter_than_what_was_shown_leaves_nothing_behind(here: World) -> None:
    sink = await here.asked()
    await sink.show("a" * 5_000)
    await here.server.until(lambda: len(here.server.chat(ANNA).texts) == 2)
    await sink.send(Reply("Sorry, I lost my thread."))
    assert here.server.chat(ANNA).texts == ["Sorry, I lost my thread."]


async def test_a_very_long_answer_comes_as_a_file_beside_its_beginning(here: World) -> None:
    sink = await here.asked("everything, please")
    text = "\n\n".join(f"Paragraph {number} " + "汉" * 500 for number in range(100))
    await sink.send(Reply(text, markdown=True))
    opening, attached = here.server.chat(ANNA).ours
    assert opening["text"].startswith("Paragraph 0")
    assert attached["document"]["file_name"] == "answer.md"
    assert here.server.files[attached["document"]["file_id"]][0].decode() == text


async def test_what_no_platform_takes_is_cleaned_out_of_an_answer(here: World) -> None:
    sink = await here.asked()
    await sink.send(Reply("a\ud83d\x00b\ud83d\ude00"))
    assert here.server.chat(ANNA).texts == ["a\ufffdb😀"]


@pytest.mark.parametrize("text", ["", "   \n", "\u200b\u2060", "** **"])
async def test_a06_a_blank_answer_is_never_sent(here: World, text: str) -> None:
    sink = await here.asked("hi")
    await sink.show(text)
    with pytest.raises(DeliveryError) as refusal:
        await sink.send(Reply(text, markdown=True))
    assert not refusal.value.unknown
    assert not here.server.sent("sendMessage")


async def test_a_receipt_nobody_asked_for_reaches_its_chat(world: World) -> None:
    world.server.chat(ANNA)
    async with world.running() as adapter:
        await adapter.notify(ChatRef("telegram", "dm:1001"), Reply("Erased."))
    assert world.server.chat(ANNA).texts == ["Erased."]
    with pytest.raises(DeliveryError):
        await adapter.notify(ChatRef("telegram", "dm:1001"), Reply("Erased."))


# Formatting

HOSTILE = "若 a<b && b>c 则用 x<y，见 snake_case_name，3 * 4 * 5。**没有收尾 &lt; _*["


async def test_a03_hostile_characters_arrive_exactly(here: World) -> None:
    sink = await here.asked("比较一下")
    await sink.send(Reply(HOSTILE))
    assert here.server.chat(ANNA).texts == [HOSTILE]
    assert "entities" not in here.server.chat(ANNA).ours[0]


async def test_a03_markdown_arrives_as_words_and_entities(here: World) -> None:
    sink = await here.asked("比较一下")
    await sink.send(Reply("若 a<b && b>c 则用 `x<y`，见 [doc](https://ex.org/?a=1&b=2) 😀 **好**", markdown=True))
    (message,) = here.server.chat(ANNA).ours
    assert message["text"] == "若 a<b && b>c 则用 x<y，见 doc 😀 好"
    coded = message["text"].encode("utf-16-le")
    marked = {
        entity["type"]: coded[2 * entity["offset"] : 2 * (entity["offset"] + entity["length"])].decode("utf-16-le")
        for entity in message["entities"]
    }
    assert marked == {"code": "x<y", "text_link": "doc", "bold": "好"}


@pytest.mark.parametrize("said", ["can't parse entities: unsupported", "ENTITY_BOUNDS_INVALID"])
async def test_a03_what_the_platform_cannot_format_is_sent_once_more_as_it_reads(here: World, said: str) -> None:
    here.server.fault('"entities"', status=400, description=f"Bad Request: {said}", times=9)
    sink = await here.asked()
    await sink.send(Reply("a **bold** word", markdown=True))
    assert here.server.chat(ANNA).texts == ["a bold word"]
    assert len(here.server.sent("sendMessage")) == 2


async def test_no_answer_opens_a_preview_of_its_links(here: World) -> None:
    await (await here.asked()).send(Reply("https://ex.org"))
    assert here.server.sent("sendMessage")[0].params["link_preview_options"] == {"is_disabled": True}


# Drafts


async def test_with_drafts_a_growing_answer_is_no_message_until_it_is_whole(world: World) -> None:
    async with world.running(drafts=True):
        sink = await world.asked()
        await sink.show("One")
        await world.server.until(lambda: "One" in world.server.chat(ANNA).drafts.values())
        await sink.show("One two")
        await world.time.passes(1.0)
        await world.server.until(lambda: list(world.server.chat(ANNA).drafts.values()) == ["One two"])
        assert world.server.chat(ANNA).texts == []
        await sink.send(Reply("One two three"))
    assert world.server.chat(ANNA).texts == ["One two three"]
    assert not world.server.chat(ANNA).drafts
    assert not world.server.sent("editMessageText")


async def test_where_drafts_are_refused_the_answer_grows_by_edits(world: World) -> None:
    world.server.fault("sendMessageDraft", status=400, description="Bad Request: DRAFTS_NOT_HERE", times=9)
    async with world.running(drafts=True):
        sink = await world.asked()
        await sink.show("One")
        await world.shows("One")
        await sink.send(Reply("One two"))
    assert world.server.chat(ANNA).texts == ["One two"]
    assert len(world.server.sent("sendMessageDraft")) == 1


# Floods and broken connections


async def test_a_flood_on_the_first_send_is_waited_out(here: World) -> None:
    sink = await here.asked()
    here.server.fault("sendMessage", retry_after=3)
    final = asyncio.create_task(sink.send(Reply("hi")))
    await here.time.passes(3.0)
    await final
    assert here.server.chat(ANNA).texts == ["hi"]
    assert len(here.server.sent("sendMessage")) == 2


async def test_a_flood_amid_the_frames_loses_no_words(here: World) -> None:
    sink = await here.asked()
    await sink.show("One")
    await here.shows("One")
    here.server.fault("editMessageText", retry_after=5)
    await sink.show("One two")
    await here.time.passes(1.0)
    await here.time.somebody_sleeps(5.0)
    await sink.show("One two three")
    await here.time.passes(5.0)
    await here.shows("One two three")
    await sink.send(Reply("One two three four"))
    assert here.server.chat(ANNA).texts == ["One two three four"]
    assert len(here.server.sent("editMessageText")) == 3


async def test_a_flood_on_the_last_edit_is_waited_out(here: World) -> None:
    sink = await here.asked()
    await sink.show("One")
    await here.shows("One")
    here.server.fault("editMessageText", retry_after=7)
    final = asyncio.create_task(sink.send(Reply("One two")))
    await here.time.passes(7.0)
    await final
    assert here.server.chat(ANNA).texts == ["One two"]


async def test_a_flood_in_one_chat_holds_up_no_other(here: World) -> None:
    anna, bert = await here.asked(user_id=ANNA), await here.asked(user_id=BERT)
    here.server.fault(f'sendMessage {{"chat_id": {ANNA}', retry_after=600)
    waiting = asyncio.create_task(anna.send(Reply("to Anna")))
    await here.time.somebody_sleeps(600.0)
    await bert.send(Reply("to Bert"))
    assert here.server.chat(BERT).texts == ["to Bert"]
    here.time.advance(600.0)
    await waiting
    assert here.server.chat(ANNA).texts == ["to Anna"]


@pytest.mark.parametrize("setting", ["0", "1"])
@pytest.mark.filterwarnings("ignore::telegram.warnings.PTBDeprecationWarning")
def test_both_kinds_of_waits_the_sdk_tells_are_understood(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", setting)
    assert seconds(RetryAfter(3)) == seconds(RetryAfter(timedelta(seconds=3))) == 3.0


@pytest.mark.parametrize("how", [{"drop": True}, {"drop": True, "after": True}, {"status": 502}])
async def test_a_first_send_of_unknown_outcome_is_not_repeated(here: World, how: dict[str, Any]) -> None:
    sink = await here.asked()
    here.server.fault("sendMessage", **how)
    with pytest.raises(DeliveryError) as lost:
        await sink.send(Reply("hi"))
    assert lost.value.unknown
    assert len(here.server.sent("sendMessage")) == 1


async def test_a_first_send_that_never_left_is_made_again(here: World) -> None:
    sink = await here.asked()
    await here.time.somebody_sleeps(4.5)
    async with here.server.outage():
        final = asyncio.create_task(sink.send(Reply("hi")))
        await here.time.somebody_sleeps(1.0)
    while not final.done():
        here.time.advance(1.0)
        await asyncio.sleep(0.01)
    assert here.server.chat(ANNA).texts == ["hi"]


@pytest.mark.parametrize("after", [False, True])
async def test_a_last_edit_of_unknown_outcome_is_repeated(here: World, after: bool) -> None:  # noqa: FBT001
    sink = await here.asked()
    await sink.show("One")
    await here.shows("One")
    here.server.fault("editMessageText", drop=True, after=after)
    final = asyncio.create_task(sink.send(Reply("One two")))
    await here.time.passes(1.0)
    await final
    assert here.server.chat(ANNA).texts == ["One two"]


async def test_a_last_edit_that_never_gets_through_is_told(here: World) -> None:
    sink = await here.asked()
    await sink.show("One")
    await here.shows("One")
    here.server.fault("editMessageText", drop=True, times=9)
    final = asyncio.create_task(sink.send(Reply("One two")))
    for pause in (1.0, 2.0, 4.0):
        await here.time.passes(pause)
    with pytest.raises(DeliveryError) as lost:
        await final
    assert lost.value.unknown


async def test_an_answer_whose_message_was_deleted_is_sent_anew(here: World) -> None:
    sink = await here.asked()
    await sink.show("One")
    await here.shows("One")
    del here.server.chat(ANNA).messages[here.server.chat(ANNA).ours[0]["message_id"]]
    await sink.send(Reply("One two"))
    assert here.server.chat(ANNA).texts == ["One two"]


async def test_a_person_who_blocked_the_bot_is_not_reached(here: World) -> None:
    sink = await here.asked()
    here.server.chat(ANNA).blocked = True
    await sink.show("One")
    with pytest.raises(DeliveryError) as refusal:
        await sink.send(Reply("One two"))
    assert not refusal.value.unknown


# After a restart


async def test_an_answer_is_taken_up_in_the_messages_that_show_it(world: World) -> None:
    async with world.running():
        world.server.say(ANNA, "hello")
        incoming, sink = await world.desk.message()
        await sink.show("a" * 5_000)
        await world.server.until(lambda: len(world.server.chat(ANNA).texts) == 2)
    shown = tuple(str(message["message_id"]) for message in world.server.chat(ANNA).ours)
    async with world.running() as adapter:
        await adapter.sink(incoming, shown=shown, begun=True).send(Reply("Hello!"))
    assert world.server.chat(ANNA).texts == ["Hello!"]
    with pytest.raises(DeliveryError):
        adapter.sink(incoming)


async def test_an_answer_that_met_nothing_but_a_flood_before_a_stop_is_given_after_the_next_start(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def up(talk: Talk) -> asyncio.Task[None]:
        adapter, app = world.adapter(), talk.app
        return asyncio.create_task(adapter.run(app.conversation.submit, (), partial(app.recovery.seen, adapter)))

    monkeypatch.setattr(line, "_STOP_SECONDS", 0.0)
    world.clock.now = SAID_AT
    world.server.fault("sendMessage", retry_after=600)
    world.server.say(ANNA, "What can I do today?")
    async with OpenAIServer() as model, talking(tmp_path, world.clock, model) as talk:
        model.on(reply="Stay inside.")
        running = up(talk)
        await world.time.somebody_sleeps(600.0)
        await talk.app.conversation.stop(grace_seconds=0)
        await stop(running)
    assert world.server.chat(ANNA).texts == []
    world.time.advance(600)
    world.clock.advance(minutes=10)
    async with talking(tmp_path, world.clock) as talk:
        running = up(talk)
        await world.shows("Stay inside.")
        await talk.app.conversation.idle()
        await stop(running)


# Typing


async def test_typing_is_shown_until_there_is_something_to_read(here: World) -> None:
    sink = await here.asked()
    await here.time.passes(4.5)
    await here.server.until(lambda: len(here.server.sent("sendChatAction")) == 2)
    await here.time.somebody_sleeps(4.5)
    await sink.send(Reply("hi"))
    here.time.advance(20)
    await here.asked("again", BERT)
    assert len(here.server.sent(f'sendChatAction {{"chat_id": {ANNA}')) == 2


async def test_many_messages_of_one_chat_share_a_typing_sign(here: World) -> None:
    sinks = [await here.asked(f"{number}") for number in range(20)]
    await here.time.passes(4.5)
    await here.server.until(lambda: len(here.server.sent("sendChatAction")) == 2)
    await here.time.somebody_sleeps(4.5)
    assert len(here.server.sent("sendChatAction")) == 2
    for sink in sinks:
        await sink.done()


async def test_two_topics_of_a_group_each_have_their_typing_sign(here: World) -> None:
    here.server.group(GROUP, 7, 8)
    for thread in (7, 8, 7):
        here.server.say(ANNA, "@recollect_bot hi", GROUP, thread=thread)
    for _ in range(3):
        await here.desk.message()
    await here.server.until(lambda: len(here.server.sent("sendChatAction")) >= 2)
    typed = [request.params["message_thread_id"] for request in here.server.sent("sendChatAction")]
    assert sorted(typed) == [7, 8]


async def test_typing_ends_when_there_will_be_no_answer(here: World) -> None:
    sink = await here.asked()
    await here.time.somebody_sleeps(4.5)
    await sink.done()
    await asyncio.sleep(0)
    assert all(woken.cancelled() for _, length, woken in here.time.sleepers if length == 4.5)


async def test_a_refused_typing_sign_costs_nothing_else(here: World) -> None:
    here.server.fault("sendChatAction", status=400, description="Bad Request: CHAT_WRITE_FORBIDDEN")
    sink = await here.asked()
    await here.server.until(lambda: bool(here.server.sent("sendChatAction")))
    await sink.send(Reply("hi"))
    assert here.server.chat(ANNA).texts == ["hi"]
