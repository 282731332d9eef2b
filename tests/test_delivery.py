"""How a reply reaches its reader: frames, floods, silence and refusals, and what is to be seen in the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from bot.delivery import (
    MOST_FRAMES,
    MOST_PARTS,
    SUMMARY_LENGTH,
    Flood,
    Refused,
    Unconfirmed,
)
from bot.markdown import summary
from bot.message import Button, DeliveryError, Reply
from tests.outlets import Book, StrictOutlet, World, cut

YES, NO = Button("yes", "Yes"), Button("no", "No")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.errands.finish(0)
    made.outlet.check()


async def test_the_newest_frame_wins_and_frames_keep_their_pause(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "a")
    world.outlet.expect("edit", "m0", "abc")
    world.outlet.expect("edit", "m0", "abcd")

    await world.frame(delivery, "a", then=0.4)
    await world.frame(delivery, "ab", then=0.4)
    await world.frame(delivery, "abc", then=0.1)
    assert world.outlet.calls == [("post", 0, "a")]
    await world.time.pass_by(0.2)
    assert world.outlet.calls[-1] == ("edit", "m0", "abc")
    await world.deliver(delivery, Reply("abcd"))


@pytest.mark.parametrize("blank", ["", " \n", "\u200b", "** **"])
async def test_blank_frames_are_never_sent_and_hold_nothing_up(world: World, blank: str) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "a")
    await world.frame(delivery, blank, then=0)
    await world.frame(delivery, "a", then=0)


async def test_an_unchanged_frame_is_never_sent(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "a")
    await world.frame(delivery, "a")
    await world.frame(delivery, "a")
    await world.frame(delivery, "a\n")
    assert await world.deliver(delivery, Reply("a")) == "m0"


async def test_a_frame_under_a_flood_waits_and_makes_way_for_a_newer_one(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "a", end=Flood(30))
    world.outlet.expect("post", 0, "abc")
    await world.frame(delivery, "a", then=10)
    await world.frame(delivery, "ab", then=10)
    await world.frame(delivery, "abc", then=9.5)
    assert len(world.outlet.calls) == 1
    await world.time.pass_by(0.6)


async def test_a_frame_kept_from_a_flood_is_drawn_when_no_newer_one_came(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "a", end=Flood(300))
    world.outlet.expect("post", 0, "a")
    await world.frame(delivery, "a", then=301)


async def test_a_frame_that_met_a_flood_makes_way_for_one_that_came_meanwhile(world: World) -> None:
    delivery, answered = world.delivery(), asyncio.Event()
    world.outlet.expect("post", 0, "a", end=Flood(30), after=answered)
    world.outlet.expect("post", 0, "ab")
    await world.frame(delivery, "a")
    await world.frame(delivery, "ab")
    answered.set()
    await world.time.pass_by(31)


async def test_the_final_text_waits_every_flood_out(world: World) -> None:
    delivery = world.delivery()
    for seconds in (30, 60, 600, 5):
        world.outlet.expect("post", 0, "whole", end=Flood(seconds))
    world.outlet.expect("post", 0, "whole")
    assert await world.deliver(delivery, Reply("whole")) == "m0"
    assert world.time.now == 695


async def test_of_several_messages_only_what_changed_is_sent(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "one")
    world.outlet.expect("post", 1, "tw")
    world.outlet.expect("edit", "m1", "two")
    world.outlet.expect("post", 2, "three", "yes")
    await world.frame(delivery, "one|tw")
    await world.frame(delivery, "one|two")
    assert await world.deliver(delivery, Reply("one|two|three", (YES,))) == "m2"


async def test_a_final_text_shorter_than_what_was_shown_takes_the_rest_back(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    delivery = world.delivery()
    for slot, words in enumerate(("one", "two", "three")):
        world.outlet.expect("post", slot, words)
    world.outlet.expect("edit", "m0", "sorry")
    world.outlet.expect("delete", "m1", end=Refused("gone", gone=True))
    world.outlet.expect("delete", "m2", end=Flood(3))
    world.outlet.expect("delete", "m2")
    await world.frame(delivery, "one|two|three")
    assert await world.deliver(delivery, Reply("sorry")) == "m0"
    assert caplog.text == ""


async def test_a_message_that_cannot_be_taken_back_does_not_fail_the_reply(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "one")
    world.outlet.expect("post", 1, "two")
    world.outlet.expect("delete", "m1", end=Refused("too old"))
    await world.frame(delivery, "one|two")
    assert await world.deliver(delivery, Reply("one")) == "m0"


async def test_buttons_are_on_the_last_part_only(world: World) -> None:
    world.outlet.expect("post", 0, "one")
    world.outlet.expect("post", 1, "two", "yes", "no")
    await world.deliver(world.delivery(), Reply("one|two", (YES, NO)))


async def test_buttons_come_to_a_message_that_is_whole_already(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "Sure?")
    world.outlet.expect("edit", "m0", "Sure?", "yes")
    await world.frame(delivery, "Sure?")
    await world.deliver(delivery, Reply("Sure?", (YES,)))


async def test_a_blank_reply_is_never_sent(world: World) -> None:
    with pytest.raises(DeliveryError) as failed:
        await world.deliver(world.delivery(), Reply("\u200b \n"))
    assert not failed.value.unknown


async def test_drafts_stand_for_frames_and_the_final_text_is_posted(world: World) -> None:
    delivery = world.delivery(StrictOutlet(drafts=True))
    world.outlet.expect("draft", "a")
    world.outlet.expect("draft", "<b>a*</b>")
    world.outlet.expect("post", 0, "<b>a*b</b>")
    await world.frame(delivery, "a")
    await world.frame(delivery, "a")
    await world.frame(delivery, "a*")
    assert world.told == []
    await world.deliver(delivery, Reply("a*b", markdown=True))


async def test_with_drafts_the_parts_that_are_full_become_messages(world: World) -> None:
    delivery = world.delivery(StrictOutlet(drafts=True))
    world.outlet.expect("draft", "one")
    world.outlet.expect("post", 0, "one")
    world.outlet.expect("draft", "tw")
    world.outlet.expect("post", 1, "two")
    await world.frame(delivery, "one")
    await world.frame(delivery, "one|tw")
    await world.deliver(delivery, Reply("one|two"))


async def test_a_draft_whose_formatting_is_refused_is_drawn_plain(world: World) -> None:
    delivery = world.delivery(StrictOutlet(drafts=True))
    world.outlet.expect("draft", "<b>a*</b>", end=Refused("entities", formatting=True))
    world.outlet.expect("draft", "a*")
    world.outlet.expect("post", 0, "a*b")
    await world.frame(delivery, "a*")
    await world.deliver(delivery, Reply("a*b", markdown=True))


async def test_where_drafts_are_refused_frames_are_messages(world: World) -> None:
    delivery = world.delivery(StrictOutlet(drafts=True))
    world.outlet.expect("draft", "a", end=Refused("no drafts in groups"))
    world.outlet.expect("post", 0, "a")
    world.outlet.expect("edit", "m0", "ab")
    await world.frame(delivery, "a")
    await world.frame(delivery, "ab")


async def test_whether_there_are_drafts_is_asked_once(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "a")
    world.outlet.expect("edit", "m0", "ab")
    await world.frame(delivery, "a")
    await world.frame(delivery, "ab")
    assert world.outlet.asked_for_drafts == 1


async def test_nothing_is_drawn_after_done(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "a")
    await world.frame(delivery, "a", then=0.1)
    await world.frame(delivery, "ab", then=0.1)
    await delivery.done()
    await delivery.show("abc")
    delivery.type()
    await world.time.pass_by(60)


async def test_a_request_under_way_may_finish_after_done_and_none_follows_it(world: World) -> None:
    delivery, answered = world.delivery(), asyncio.Event()
    world.outlet.expect("post", 0, "one", after=answered)
    await world.frame(delivery, "one|two")
    await delivery.done()
    answered.set()
    await world.time.pass_by(60)
    assert world.told == [None, "m0"]


async def test_no_draft_follows_a_message_under_way_when_done(world: World) -> None:
    delivery, answered = world.delivery(StrictOutlet(drafts=True)), asyncio.Event()
    world.outlet.expect("post", 0, "one", after=answered)
    await world.frame(delivery, "one|two")
    await delivery.done()
    answered.set()
    await world.time.pass_by(60)


async def test_frames_that_come_while_the_final_text_goes_out_are_not_drawn(world: World) -> None:
    delivery, answered = world.delivery(), asyncio.Event()
    world.outlet.expect("post", 0, "whole", after=answered)
    sending = asyncio.create_task(delivery.send(Reply("whole")))
    await world.frame(delivery, "who")
    answered.set()
    await world.time.pass_by(60)
    assert await sending == "m0"


async def test_the_final_text_waits_for_the_request_of_a_frame_and_no_longer(world: World) -> None:
    delivery, answered = world.delivery(), asyncio.Event()
    world.outlet.expect("post", 0, "one", after=answered)
    world.outlet.expect("edit", "m0", "whole")
    await world.frame(delivery, "one|two|three")
    sending = asyncio.create_task(delivery.send(Reply("whole")))
    await world.time.pass_by(5)
    assert not sending.done()
    answered.set()
    await world.time.until(sending)


async def test_each_send_is_a_reply_of_its_own(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "first")
    world.outlet.expect("post", 1, "second")
    world.outlet.expect("post", 2, "thi")
    world.outlet.expect("edit", "m2", "third")
    assert await world.deliver(delivery, Reply("first")) == "m0"
    assert await world.deliver(delivery, Reply("second")) == "m1"
    await world.frame(delivery, "thi")
    assert await world.deliver(delivery, Reply("third")) == "m2"


async def test_replies_sent_at_the_same_time_come_one_after_the_other(world: World) -> None:
    delivery, answered = world.delivery(), asyncio.Event()
    world.outlet.expect("post", 0, "one", after=answered)
    world.outlet.expect("post", 1, "two")
    world.outlet.expect("post", 2, "three")
    sending = [asyncio.create_task(delivery.send(Reply(text))) for text in ("one|two", "three")]
    await world.time.pass_by(1)
    answered.set()
    assert [await sent for sent in sending] == ["m1", "m2"]


async def test_a_caller_that_gives_up_does_not_stop_the_delivery(world: World) -> None:
    delivery, answered = world.delivery(), asyncio.Event()
    world.outlet.expect("post", 0, "one", after=answered)
    world.outlet.expect("post", 1, "two")
    sending = asyncio.create_task(delivery.send(Reply("one|two")))
    await world.time.pass_by(1)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await delivery.done()
    answered.set()
    await world.time.pass_by(1)


async def test_a_stop_in_the_middle_is_a_delivery_error_of_unknown_outcome(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "one", after=asyncio.Event())
    sending = asyncio.create_task(delivery.send(Reply("one")))
    await world.time.pass_by(1)
    await world.errands.finish(0)
    with pytest.raises(DeliveryError) as failed:
        await sending
    assert failed.value.unknown


async def test_after_a_stop_nothing_is_begun(world: World) -> None:
    delivery = world.delivery()
    await world.errands.finish(0)
    delivery.type()
    await world.frame(delivery, "a")
    with pytest.raises(DeliveryError) as failed:
        await delivery.send(Reply("whole"))
    assert not failed.value.unknown


async def test_the_book_keeper_is_told_before_the_first_message_and_of_each(world: World) -> None:
    delivery = world.delivery()
    asked = asyncio.Event()
    world.outlet.expect("post", 0, "one", after=asked)
    world.outlet.expect("post", 1, "two")
    await world.frame(delivery, "one")
    assert world.told == [None]
    asked.set()
    await world.deliver(delivery, Reply("one|two"))
    assert world.told == [None, "m0", "m1"]


async def test_the_book_keeper_is_told_nothing_while_a_flood_holds_the_first_message(world: World) -> None:
    world.gate.close(30)
    world.outlet.expect("post", 0, "whole")
    sending = asyncio.create_task(world.delivery().send(Reply("whole")))
    await world.time.pass_by(29)
    assert world.told == []
    await world.time.until(sending)
    assert world.told == [None, "m0"]


@pytest.mark.parametrize("trouble", [Flood(600), Unconfirmed("no route", left=False), Refused("no", formatting=True)])
async def test_the_book_keeper_is_told_when_a_first_message_certainly_did_not_begin(
    world: World, trouble: Exception
) -> None:
    world.outlet.expect("post", 0, "<b>*</b>", end=trouble)
    world.outlet.expect("post", 0, "*" if isinstance(trouble, Refused) else "<b>*</b>")
    await world.deliver(world.delivery(), Reply("*", markdown=True))
    assert world.told == [None, "unbegun", None, "m0"]


async def test_a_stop_while_a_flood_holds_the_first_message_leaves_it_unbegun(world: World) -> None:
    world.outlet.expect("post", 0, "whole", end=Flood(600))
    sending = asyncio.create_task(world.delivery().send(Reply("whole")))
    await world.time.pass_by(5)
    await world.errands.finish(0)
    with pytest.raises(DeliveryError):
        await sending
    assert world.told == [None, "unbegun"]


async def test_a_first_message_that_may_be_there_is_not_unbegun_by_what_follows(world: World) -> None:
    delivery = world.delivery(StrictOutlet(repeatable=True))
    world.outlet.expect("post", 0, "a", end=Unconfirmed("silence"))
    world.outlet.expect("post", 0, "a", end=Unconfirmed("no route", left=False))
    world.outlet.expect("post", 0, "a", end=Flood(5))
    world.outlet.expect("post", 0, "a")
    await world.deliver(delivery, Reply("a"))
    assert world.told == [None, "m0"]


async def test_an_answer_begun_before_a_stop_is_not_unbegun_by_a_flood(world: World) -> None:
    world.outlet.expect("post", 0, "a", end=Flood(5))
    world.outlet.expect("post", 0, "a")
    await world.deliver(world.delivery(begun=True), Reply("a"))
    assert world.told == [None, "m0"]


async def test_a_first_message_given_up_while_it_is_written_down_never_leaves(world: World) -> None:
    delivery = world.delivery()

    class Slow(Book):
        async def __call__(self, message_id: str | None) -> None:
            await super().__call__(message_id)
            await world.time.tempo.sleep(1)

    delivery.watch(Slow(world.told))
    sending = asyncio.create_task(delivery.send(Reply("whole")))
    await world.time.pass_by()
    await delivery.abandon(keep=False)
    await world.time.until(sending)
    assert isinstance(sending.exception(), DeliveryError)
    assert world.told == [None, "unbegun"]


async def test_a_book_keeper_that_fails_is_logged_and_hurts_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing:
        async def __call__(self, message_id: str | None) -> None:
            raise OSError("disk full")

        async def unbegun(self) -> None:
            raise OSError("disk full")

    delivery = world.delivery()
    delivery.watch(Failing())
    world.outlet.expect("post", 0, "whole", end=Flood(1))
    world.outlet.expect("post", 0, "whole")
    assert await world.deliver(delivery, Reply("whole")) == "m0"
    assert caplog.text.count("OSError: disk full") == 4


async def test_frames_of_one_reply_are_bounded_and_the_end_still_comes(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "0")
    for number in range(1, MOST_FRAMES):
        world.outlet.expect("edit", "m0", str(number))
    world.outlet.expect("edit", "m0", "the end")
    for number in range(MOST_FRAMES + 40):
        await world.frame(delivery, str(number), then=2)
    await world.deliver(delivery, Reply("the end"))

    world.outlet.expect("post", 1, "next")
    await world.frame(delivery, "next")


LONG = "|".join(["many words " * 200] * (MOST_PARTS + 1))


@pytest.mark.parametrize(("markdown", "name"), [(True, "answer.md"), (False, "answer.txt")])
async def test_a_very_long_answer_goes_as_a_file_beside_its_summary(world: World, markdown: bool, name: str) -> None:  # noqa: FBT001
    opening = [part.text for part in cut(summary(LONG, SUMMARY_LENGTH), markdown=False)]
    for slot, words in enumerate(opening):
        world.outlet.expect("post", slot, words, *(["yes"] if slot == len(opening) - 1 else []))
    world.outlet.expect("attach", len(opening), name, LONG, end="file")
    assert await world.deliver(world.delivery(), Reply(LONG, (YES,), markdown=markdown)) == "file"
    assert world.told[-1] == "file"


async def test_where_files_are_refused_a_very_long_answer_goes_as_messages(world: World) -> None:
    opening, *more = [part.text for part in cut(summary(LONG, SUMMARY_LENGTH), markdown=False)]
    assert more == []
    parts = [part.text for part in cut(LONG, markdown=False)]
    world.outlet.expect("post", 0, opening)
    world.outlet.expect("attach", 1, "answer.txt", LONG, end=Refused("no files here"))
    world.outlet.expect("edit", "m0", parts[0])
    for slot, words in enumerate(parts[1:], 1):
        world.outlet.expect("post", slot, words)
    assert await world.deliver(world.delivery(), Reply(LONG)) == f"m{len(parts) - 1}"


async def test_frames_show_of_a_very_long_answer_what_fits(world: World) -> None:
    delivery = world.delivery()
    for slot in range(MOST_PARTS):
        world.outlet.expect("post", slot, str(slot))
    await world.frame(delivery, "|".join(map(str, range(MOST_PARTS))))
    await world.frame(delivery, "|".join(map(str, range(MOST_PARTS + 3))))


async def test_an_edit_of_unknown_outcome_is_repeated_three_times(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "a")
    for _ in range(3):
        world.outlet.expect("edit", "m0", "ab", end=Unconfirmed("silence"))
    world.outlet.expect("edit", "m0", "ab")
    await world.frame(delivery, "a", then=0)
    assert await world.deliver(delivery, Reply("ab")) == "m0"
    assert world.time.now == 1 + 2 + 4


@pytest.mark.parametrize("left", [True, False])
async def test_an_edit_that_is_never_confirmed_is_a_delivery_error(world: World, left: bool) -> None:  # noqa: FBT001
    delivery = world.delivery()
    world.outlet.expect("post", 0, "a")
    for number in range(4):
        world.outlet.expect("edit", "m0", "ab", end=Unconfirmed("silence", left=left and number == 1))
    await world.frame(delivery, "a")
    with pytest.raises(DeliveryError) as failed:
        await world.deliver(delivery, Reply("ab"))
    assert failed.value.unknown is left


async def test_a_post_that_never_left_is_repeated(world: World) -> None:
    world.outlet.expect("post", 0, "a", end=Unconfirmed("no route", left=False))
    world.outlet.expect("post", 0, "a")
    assert await world.deliver(world.delivery(), Reply("a")) == "m0"
    assert world.told == [None, "unbegun", None, "m0"]


async def test_a_first_post_of_unknown_outcome_is_logged_and_not_repeated(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.outlet.expect("post", 0, "secret words", end=Unconfirmed("timed out"))
    with pytest.raises(DeliveryError) as failed:
        await world.deliver(world.delivery(), Reply("secret words"))
    assert failed.value.unknown
    assert "it may have arrived: timed out" in caplog.text
    assert world.told == [None]


async def test_what_follows_a_message_of_unknown_outcome_still_goes_out(world: World) -> None:
    world.outlet.expect("post", 0, "one")
    world.outlet.expect("post", 1, "two", end=Unconfirmed("timed out"))
    world.outlet.expect("post", 2, "three", "yes")
    with pytest.raises(DeliveryError) as failed:
        await world.deliver(world.delivery(), Reply("one|two|three", (YES,)))
    assert failed.value.unknown


async def test_a_refusal_after_a_message_of_unknown_outcome_leaves_the_outcome_unknown(world: World) -> None:
    world.outlet.expect("post", 0, "one", end=Unconfirmed("timed out"))
    world.outlet.expect("post", 1, "two", end=Refused("no"))
    with pytest.raises(DeliveryError) as failed:
        await world.deliver(world.delivery(), Reply("one|two"))
    assert failed.value.unknown


async def test_a_repeatable_post_is_repeated_under_its_number(world: World) -> None:
    delivery = world.delivery(StrictOutlet(repeatable=True))
    world.outlet.expect("post", 0, "a", end=Unconfirmed("silence"))
    world.outlet.expect("post", 0, "a", end=Unconfirmed("silence", left=False))
    world.outlet.expect("post", 0, "a")
    assert await world.deliver(delivery, Reply("a")) == "m0"


async def test_a_repeated_post_that_may_show_an_earlier_frame_is_edited(world: World) -> None:
    delivery = world.delivery(StrictOutlet(repeatable=True))
    world.outlet.expect("post", 0, "a", end=Unconfirmed("silence"))
    world.outlet.expect("post", 0, "ab")
    world.outlet.expect("edit", "m0", "ab")
    await world.frame(delivery, "a")
    await world.deliver(delivery, Reply("ab"))


async def test_a_repeatable_message_of_a_frame_that_may_be_there_is_found_and_taken_back(world: World) -> None:
    delivery = world.delivery(StrictOutlet(repeatable=True))
    world.outlet.expect("post", 0, "one")
    world.outlet.expect("post", 1, "two", end=Unconfirmed("silence"))
    world.outlet.expect("post", 1, "two")
    world.outlet.expect("delete", "m1")
    await world.frame(delivery, "one|two")
    await world.deliver(delivery, Reply("one"))


async def test_a_number_that_may_be_taken_is_not_given_to_the_next_reply(world: World) -> None:
    delivery = world.delivery(StrictOutlet(repeatable=True))
    for _ in range(4):
        world.outlet.expect("post", 0, "a", end=Unconfirmed("silence"))
    world.outlet.expect("post", 1, "sorry")
    with pytest.raises(DeliveryError):
        await world.deliver(delivery, Reply("a"))
    await world.deliver(delivery, Reply("sorry"))


async def test_a_first_frame_of_unknown_outcome_ends_frames_but_not_the_reply(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "a", end=Unconfirmed("silence"))
    world.outlet.expect("post", 0, "whole")
    await world.frame(delivery, "a")
    await world.frame(delivery, "ab")
    assert await world.deliver(delivery, Reply("whole")) == "m0"


async def test_a_frame_of_unknown_outcome_with_the_very_same_words_is_not_followed_by_them(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "whole", end=Unconfirmed("silence"))
    await world.frame(delivery, "whole")
    with pytest.raises(DeliveryError) as failed:
        await world.deliver(delivery, Reply("whole"))
    assert failed.value.unknown


async def test_after_an_edit_nobody_knows_of_the_final_text_is_sent_even_if_it_was_shown_before(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "a")
    world.outlet.expect("edit", "m0", "ab", end=Unconfirmed("silence"))
    world.outlet.expect("edit", "m0", "a")
    await world.frame(delivery, "a")
    await world.frame(delivery, "ab")
    await world.deliver(delivery, Reply("a"))


async def test_a_frame_that_is_refused_is_the_last_one(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "a", end=Refused("no right to write"))
    world.outlet.expect("post", 0, "whole")
    await world.frame(delivery, "a")
    await world.frame(delivery, "ab")
    await world.deliver(delivery, Reply("whole"))


async def test_a_reply_that_is_refused_is_a_delivery_error_of_known_outcome(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.outlet.expect("post", 0, "a", end=Refused("no right to write"))
    with pytest.raises(DeliveryError, match="no right to write") as failed:
        await world.deliver(world.delivery(), Reply("a"))
    assert not failed.value.unknown
    assert "did not arrive: no right to write" in caplog.text


async def test_refused_formatting_is_left_out_from_then_on(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "<b>*a</b>", end=Refused("entities", formatting=True))
    world.outlet.expect("post", 0, "*a")
    world.outlet.expect("edit", "m0", "*ab")
    world.outlet.expect("post", 1, "*c")
    await world.frame(delivery, "*a")
    await world.deliver(delivery, Reply("*ab|*c", markdown=True))


async def test_a_message_shown_with_formatting_keeps_it_when_that_of_another_is_refused(world: World) -> None:
    delivery = world.delivery()
    world.outlet.expect("post", 0, "<b>*a</b>")
    world.outlet.expect("post", 1, "<b>*b</b>", end=Refused("entities", formatting=True))
    world.outlet.expect("post", 1, "*b")
    await world.frame(delivery, "*a|*b")
    await world.deliver(delivery, Reply("*a|*b", markdown=True))


async def test_words_that_are_refused_without_formatting_are_not_tried_again(world: World) -> None:
    world.outlet.expect("post", 0, "<b>*a</b>", end=Refused("entities", formatting=True))
    world.outlet.expect("post", 0, "*a", end=Refused("entities", formatting=True))
    with pytest.raises(DeliveryError):
        await world.deliver(world.delivery(), Reply("*a", markdown=True))


async def test_a_message_that_is_gone_is_made_up_for_and_the_order_stays(world: World) -> None:
    delivery = world.delivery()
    for slot, words in enumerate(("one", "two", "three")):
        world.outlet.expect("post", slot, words)
    world.outlet.expect("edit", "m1", "TWO", end=Refused("deleted", gone=True))
    world.outlet.expect("edit", "m2", "TWO")
    world.outlet.expect("post", 3, "three")
    await world.frame(delivery, "one|two|three")
    assert await world.deliver(delivery, Reply("one|TWO|three")) == "m3"


async def test_an_answer_taken_up_again_goes_on_in_the_messages_it_has(world: World) -> None:
    delivery = world.delivery(StrictOutlet(drafts=True), shown=("old1", "old2"), begun=True)
    world.outlet.expect("edit", "old1", "one")
    world.outlet.expect("edit", "old2", "two")
    world.outlet.expect("post", 2, "three")
    await world.frame(delivery, "one")
    assert await world.deliver(delivery, Reply("one|two|three")) == "m2"


async def test_an_answer_taken_up_again_takes_back_what_is_too_much(world: World) -> None:
    world.outlet.expect("edit", "old1", "one")
    world.outlet.expect("delete", "old2")
    assert await world.deliver(world.delivery(shown=("old1", "old2")), Reply("one")) == "old1"


async def test_what_a_begun_message_shows_is_set_right(world: World) -> None:
    delivery = world.delivery(StrictOutlet(repeatable=True), begun=True)
    world.outlet.expect("post", 0, "one")
    world.outlet.expect("edit", "m0", "one")
    await world.deliver(delivery, Reply("one"))


async def test_the_number_a_begun_message_may_have_goes_to_no_other_reply(world: World) -> None:
    delivery = world.delivery(StrictOutlet(repeatable=True), shown=("old",), begun=True)
    world.outlet.expect("edit", "old", "one")
    world.outlet.expect("post", 2, "two")
    await world.deliver(delivery, Reply("one"))
    await world.deliver(delivery, Reply("two"))


async def test_the_number_a_begun_message_may_have_goes_to_no_file(world: World) -> None:
    delivery = world.delivery(StrictOutlet(repeatable=True), shown=("old",), begun=True)
    world.outlet.expect("edit", "old", cut(summary(LONG, SUMMARY_LENGTH), markdown=False)[0].text)
    world.outlet.expect("attach", 2, "answer.txt", LONG)
    await world.deliver(delivery, Reply(LONG))


async def test_a_begun_message_does_not_end_frames_when_one_is_lost(world: World) -> None:
    delivery = world.delivery(begun=True)
    world.outlet.expect("post", 0, "a", end=Unconfirmed("no route", left=False))
    world.outlet.expect("post", 0, "ab")
    await world.frame(delivery, "a")
    await world.frame(delivery, "ab")


async def test_the_log_holds_nothing_of_a_message(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "bot")
    delivery = world.delivery()
    world.outlet.expect("post", 0, "<b>*words</b>", end=Refused("entities", formatting=True))
    world.outlet.expect("post", 0, "*words")
    world.outlet.expect("edit", "m0", "*words more", end=Unconfirmed("silence"))
    world.outlet.expect("edit", "m0", "*words whole", end=Refused("deleted", gone=True))
    world.outlet.expect("post", 1, "*words whole", end=Unconfirmed("silence"))
    await world.frame(delivery, "*words")
    await world.frame(delivery, "*words more")
    with pytest.raises(DeliveryError) as failed:
        await world.deliver(delivery, Reply("*words whole", markdown=True))
    assert "silence" in caplog.text
    assert "words" not in caplog.text + str(failed.value)
