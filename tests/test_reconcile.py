from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from memory.batches import MAX_RETIREMENTS
from memory.model import EVERYWHERE, PRIVATE, Account, Candidate, Citation, Decision, Event, Span
from memory.reconcile import Gate
from memory.sameness import corrects, fingerprint, opposed
from tests.conftest import Clock
from tests.shelf import Shelf, cite, fact, profile, values

GROUP = 77


@pytest_asyncio.fixture
async def shelf(tmp_path: Path, clock: Clock) -> AsyncIterator[Shelf]:
    opened = await Shelf.open(tmp_path / "memory.sqlite", clock)
    yield opened
    await opened.db.close()


@pytest.fixture
def gate(shelf: Shelf) -> Gate:
    return Gate(shelf.db, shelf)


async def admit(gate: Gate, shelf: Shelf, *candidates: Candidate, audience: int = PRIVATE) -> list[Decision]:
    return await gate.admit(shelf.owner, candidates, audience=audience, now=shelf.clock())


def event(message: tuple[Citation, ...], text: str, start: str, hours: float = 1, **changes: object) -> Candidate:
    begin = datetime.fromisoformat(start).astimezone(UTC)
    span = Span(begin, begin + timedelta(hours=hours), "hour" if hours < 24 else "day", "Asia/Shanghai")
    return Candidate("event", message, "zh", text=text, span=span, **changes)  # type: ignore[arg-type]


# ---- slots ---------------------------------------------------------------------------------------


async def test_time_1_a_newer_value_of_a_slot_closes_the_old_one_and_is_pointed_at(gate: Gate, shelf: Shelf) -> None:
    (first,) = await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    (second,) = await admit(gate, shelf, profile(await shelf.say("我搬到成都了"), "home", "成都"))
    assert (first.action, second.action, second.reason) == ("added", "superseded", "superseded")
    assert first.entry is not None
    assert second.closed == (first.entry.id,)
    assert values(await shelf.live()) == ["成都"]
    old, new = await shelf.history()
    assert (old.provenance.successor, old.provenance.retired_at) == (new.id, shelf.clock())


async def test_time_2_saying_it_twice_confirms_and_keeps_one_row(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    again = await shelf.say("我家在杭州")
    (decision,) = await admit(gate, shelf, profile(again, "home", "杭州。"))
    assert decision.action == "confirmed"
    assert decision.entry is not None
    assert decision.entry.provenance.confirmations == 2
    assert decision.entry.provenance.confirmed_at == again.at
    assert values(await shelf.live()) == ["杭州"]


async def test_the_same_candidates_again_change_nothing(gate: Gate, shelf: Shelf) -> None:
    one, two, three = await shelf.say("我住在杭州"), await shelf.say("我搬到成都了"), await shelf.say("我养了猫")
    wanted = [profile(one, "home", "杭州"), profile(two, "home", "成都"), fact(three, "我养了一只猫")]
    await admit(gate, shelf, *wanted)
    before = await shelf.history()
    decisions = await admit(gate, shelf, *wanted)
    assert {(d.action, d.reason) for d in decisions} == {("dropped", "repeated")}
    assert await shelf.history() == before


async def test_an_old_statement_that_arrives_late_is_history_at_once(gate: Gate, shelf: Shelf) -> None:
    old, new = await shelf.say("我住在杭州"), await shelf.say("我搬到成都了")
    await admit(gate, shelf, profile(new, "home", "成都"))
    (late,) = await admit(gate, shelf, profile(old, "home", "杭州"))
    assert (late.action, late.reason) == ("added", "outdated")
    assert late.entry is not None
    (live,) = await shelf.live()
    assert late.entry.provenance.successor == live.id
    assert values([live]) == ["成都"]


async def test_one_batch_is_decided_in_the_order_of_saying(gate: Gate, shelf: Shelf) -> None:
    old, new = await shelf.say("我住在杭州"), await shelf.say("我搬到成都了")
    decisions = await admit(gate, shelf, profile(new, "home", "成都"), profile(old, "home", "杭州"))
    assert [d.action for d in decisions] == ["superseded", "added"]
    assert values(await shelf.live()) == ["成都"]


async def test_several_values_of_a_multiple_slot_live_side_by_side(gate: Gate, shelf: Shelf) -> None:
    message = await shelf.say("我对花生和虾过敏")
    await admit(gate, shelf, profile(message, "allergy", "花生"), profile(message, "allergy", "虾"))
    assert values(await shelf.live()) == ["花生", "虾"]


async def test_a_dislike_closes_the_like_of_the_same_thing(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, profile(await shelf.say("我喜欢香菜"), "like", "香菜"))
    await admit(gate, shelf, profile(await shelf.say("我喜欢芹菜"), "like", "芹菜"))
    (decision,) = await admit(gate, shelf, profile(await shelf.say("我不喜欢香菜了"), "dislike", "香菜"))
    assert (decision.action, len(decision.closed)) == ("superseded", 1)
    assert values(await shelf.live()) == ["芹菜", "香菜"]


async def test_a_late_like_does_not_close_a_newer_dislike(gate: Gate, shelf: Shelf) -> None:
    like, dislike = await shelf.say("我喜欢香菜"), await shelf.say("我不喜欢香菜了")
    await admit(gate, shelf, profile(dislike, "dislike", "香菜"))
    (decision,) = await admit(gate, shelf, profile(like, "like", "香菜"))
    assert decision.reason == "outdated"
    assert [entry.attribute for entry in await shelf.profile.live(shelf.owner, now=shelf.clock())] == ["dislike"]


async def test_an_end_without_a_new_value_closes_the_matching_one(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    elsewhere = await shelf.say("我不住成都")
    (nothing,) = await admit(gate, shelf, profile(elsewhere, "home", "成都", negates=True))
    assert (nothing.action, nothing.reason, nothing.closed) == ("retired", "end", ())
    assert values(await shelf.live()) == ["杭州"]
    gone = await shelf.say("我不住杭州了")
    (ended,) = await admit(gate, shelf, profile(gone, "home", "杭州", negates=True))
    assert (ended.action, ended.reason) == ("retired", "ended")
    assert ended.entry is not None
    assert ended.entry.provenance.retired_at == shelf.clock()
    assert await shelf.live() == []


async def test_what_was_ended_is_not_brought_back_by_an_older_message(gate: Gate, shelf: Shelf) -> None:
    older = await shelf.say("我在杭州安家")
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    await admit(gate, shelf, profile(await shelf.say("我不住杭州了"), "home", "杭州", negates=True))
    (late,) = await admit(gate, shelf, profile(older, "home", "杭州"))
    assert (late.reason, await shelf.live()) == ("outdated", [])
    (back,) = await admit(gate, shelf, profile(await shelf.say("我又住回杭州了"), "home", "杭州"))
    assert back.action == "added"


@pytest.mark.parametrize("kind", ["profile", "fact", "event"])
async def test_an_end_that_arrives_first_meets_the_older_statement_and_no_newer_one(
    gate: Gate, shelf: Shelf, kind: str
) -> None:
    when = Span(shelf.clock() + timedelta(days=3), shelf.clock() + timedelta(days=4), "day", "UTC")
    contents: dict[str, dict[str, Any]] = {
        "profile": {"attribute": "home", "value": "杭州"},
        "fact": {"text": "我在学法语"},
        "event": {"text": "我去里斯本出差", "span": when},
    }
    content = contents[kind]
    older, end = await shelf.say("从前的话"), await shelf.say("现在不了")
    await admit(gate, shelf, Candidate(kind, cite(end), "zh", negates=True, **content))  # type: ignore[arg-type]
    assert await shelf.live() == []
    await admit(gate, shelf, Candidate(kind, cite(older), "zh", **content))  # type: ignore[arg-type]
    assert await shelf.live() == []
    await admit(gate, shelf, Candidate(kind, cite(end), "zh", negates=True, **content))  # type: ignore[arg-type]
    assert len(await shelf.history()) == 2
    again = await shelf.say("现在又是了")
    await admit(gate, shelf, Candidate(kind, cite(again), "zh", **content))  # type: ignore[arg-type]
    assert len(await shelf.live()) == 1


async def test_an_end_meets_what_stood_before_what_it_ended(gate: Gate, shelf: Shelf) -> None:
    bergen, oslo, end = [await shelf.say(words) for words in ("卑尔根", "奥斯陆", "不住奥斯陆了")]
    for message, value, negates in ((end, "奥斯陆", True), (bergen, "卑尔根", False), (oslo, "奥斯陆", False)):
        await admit(gate, shelf, profile(message, "home", value, negates=negates))
    assert await shelf.live() == []


@pytest.mark.parametrize(
    ("known", "denied", "over"),
    [
        ((2, 3, None), (2, 3, None), True),
        ((2, 3, None), (1, 8, None), True),
        ((2, 3, None), (4, 5, None), False),
        ((2, 3, "FREQ=WEEKLY;BYDAY=FR"), (2, 3, None), False),
        ((2, 3, "FREQ=WEEKLY;BYDAY=FR"), (9, 10, "FREQ=WEEKLY;BYDAY=FR"), True),
        ((2, 3, "FREQ=WEEKLY;BYDAY=FR"), (2, 3, "FREQ=WEEKLY;BYDAY=MO"), False),
    ],
)
async def test_a_denied_time_ends_only_what_lies_there(
    gate: Gate,
    shelf: Shelf,
    known: tuple[int, int, str | None],
    denied: tuple[int, int, str | None],
    over: bool,  # noqa: FBT001
) -> None:
    """ "I'm not flying on Friday" is no word about the flight of next Tuesday."""
    start = shelf.clock()

    def span(days: tuple[int, int, str | None]) -> Span:
        return Span(start + timedelta(days=days[0]), start + timedelta(days=days[1]), "day", "UTC", rrule=days[2])

    flight = await shelf.say("I fly to Lisbon")
    await admit(gate, shelf, Candidate("event", cite(flight), "en", text="I fly to Lisbon", span=span(known)))
    no = await shelf.say("I do not fly to Lisbon then")
    await admit(
        gate, shelf, Candidate("event", cite(no), "en", text="I fly to Lisbon", span=span(denied), negates=True)
    )
    assert (await shelf.live() == []) == over


async def test_an_unsure_statement_does_not_close_a_sure_one(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    (doubt,) = await admit(gate, shelf, profile(await shelf.say("可能在成都吧"), "home", "成都", confidence=0.3))
    assert (doubt.action, doubt.reason) == ("added", "unsure")
    assert values(await shelf.live()) == ["杭州", "成都"]


async def test_two_readings_of_one_message_leave_the_first(gate: Gate, shelf: Shelf) -> None:
    message = await shelf.say("我住在杭州西湖边")
    await admit(gate, shelf, profile(message, "home", "杭州"))
    (decision,) = await admit(gate, shelf, profile(message, "home", "杭州西湖边", source="summary"))
    assert (decision.action, decision.reason) == ("dropped", "same_message")


async def test_subjects_do_not_touch_each_other(gate: Gate, shelf: Shelf) -> None:
    message = await shelf.say("我女儿对花生过敏，我自己对青霉素过敏")
    mine = profile(message, "allergy", "青霉素")
    await admit(gate, shelf, mine, replace(mine, subject="女儿", value="花生"))
    assert [(e.subject, e.text) for e in await shelf.live()] == [("self", "我对青霉素过敏"), ("女儿", "女儿对花生过敏")]
    await admit(gate, shelf, replace(profile(await shelf.say("女儿住校"), "home", "学校"), subject="女儿"))
    await admit(gate, shelf, profile(await shelf.say("我住杭州"), "home", "杭州"))
    assert len(await shelf.live()) == 4


# ---- facts ---------------------------------------------------------------------------------------


async def test_c08_two_cats_stay_two_and_a_repeat_adds_nothing(gate: Gate, shelf: Shelf) -> None:
    message = await shelf.say("养了两只猫，一只叫煤球，一只叫年糕，平时喝黑咖啡")
    cats = [fact(message, "用户有一只猫叫煤球"), fact(message, "用户有一只猫叫年糕"), fact(message, "用户喝黑咖啡")]
    await admit(gate, shelf, *cats)
    again = await shelf.say("我喝黑咖啡")
    (confirmed,) = await admit(gate, shelf, fact(again, "我喝黑咖啡。"))
    assert confirmed.action == "confirmed"
    assert confirmed.entry is not None
    assert [c.message for c in confirmed.entry.provenance.citations] == [message.id, again.id]
    assert len(await shelf.live()) == 3


async def test_time_9_differing_numbers_never_merge(gate: Gate, shelf: Shelf) -> None:
    message = await shelf.say("I have an SR-052 and an SR-053")
    decisions = await admit(gate, shelf, fact(message, "I have an SR-052"), fact(message, "I have an SR-053"))
    assert [d.reason for d in decisions] == ["new", "new"]
    assert len(await shelf.live()) == 2


async def test_near_but_different_facts_are_both_kept_and_marked(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, fact(await shelf.say("我每周三下午都去健身房"), "我每周三下午都去健身房"))
    (decision,) = await admit(gate, shelf, fact(await shelf.say("我每周五下午都去健身房"), "我每周五下午都去健身房"))
    assert (decision.action, decision.reason) == ("added", "kept_both")
    assert len(await shelf.live()) == 2


async def test_a_denial_of_a_fact_closes_it_and_a_late_one_does_not(gate: Gate, shelf: Shelf) -> None:
    first, second = await shelf.say("我吃鱼"), await shelf.say("我不吃鱼了")
    await admit(gate, shelf, fact(first, "我吃鱼"))
    await admit(gate, shelf, fact(second, "我不吃鱼"))
    assert values(await shelf.live()) == ["我不吃鱼"]
    before = await shelf.history()
    await admit(gate, shelf, fact(first, "我吃鱼"))
    assert await shelf.history() == before


async def test_a_sentence_that_says_what_the_profile_says_confirms_the_profile(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, profile(await shelf.say("我对花粉过敏"), "allergy", "花粉"))
    (decision,) = await admit(gate, shelf, fact(await shelf.say("花粉让我过敏"), "用户对花粉过敏"))
    assert decision.action == "confirmed"
    assert [entry.kind for entry in await shelf.live()] == ["profile"]


# ---- events --------------------------------------------------------------------------------------


async def test_c10_a_correction_leaves_exactly_the_new_event(gate: Gate, shelf: Shelf) -> None:
    shelf.clock.now = datetime(2025, 3, 10, 1, 0, tzinfo=UTC)
    wrong = await shelf.say("面试在周二下午两点")
    await admit(gate, shelf, event(cite(wrong), "面试", "2025-03-11T14:00+08:00"))
    right = await shelf.say("不对，我是说周三")
    (decision,) = await admit(gate, shelf, event(cite(right), "面试", "2025-03-12T14:00+08:00"))
    assert (decision.action, decision.reason) == ("superseded", "corrected")
    (live,) = await shelf.live()
    assert isinstance(live, Event)
    assert live.span.start == datetime(2025, 3, 12, 6, 0, tzinfo=UTC)
    closed = next(entry for entry in await shelf.history() if entry.id != live.id)
    assert closed.provenance.successor == live.id


async def test_c10_a_correction_that_arrives_first_still_wins(gate: Gate, shelf: Shelf) -> None:
    wrong, right = await shelf.say("面试在周二下午两点"), await shelf.say("不对，我是说周三")
    await admit(gate, shelf, event(cite(right), "面试", "2026-03-04T14:00+08:00"))
    (late,) = await admit(gate, shelf, event(cite(wrong), "面试", "2026-03-03T14:00+08:00"))
    assert late.reason == "outdated"
    assert len(await shelf.live()) == 1


async def test_two_events_of_one_name_stay_two_without_a_correction(gate: Gate, shelf: Shelf) -> None:
    message = await shelf.say("周二和周三都有面试")
    await admit(
        gate,
        shelf,
        event(cite(message), "面试", "2026-03-03T14:00+08:00"),
        event(cite(message), "面试", "2026-03-04T14:00+08:00"),
    )
    assert len(await shelf.live()) == 2


async def test_a_finer_time_takes_the_place_of_the_day_and_the_day_then_only_confirms(gate: Gate, shelf: Shelf) -> None:
    day = event(cite(await shelf.say("周三面试")), "面试", "2026-03-04T00:00+08:00", 24)
    await admit(gate, shelf, day)
    (finer,) = await admit(gate, shelf, event(cite(await shelf.say("周三两点面试")), "面试", "2026-03-04T14:00+08:00"))
    assert (finer.action, finer.reason) == ("superseded", "refined")
    (again,) = await admit(gate, shelf, replace(day, citations=cite(await shelf.say("周三要面试"))))
    assert again.action == "confirmed"
    assert len(await shelf.live()) == 1


async def test_a_cancelled_event_is_ended(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, event(cite(await shelf.say("周三面试")), "面试", "2026-03-04T14:00+08:00"))
    cancelled = event(cite(await shelf.say("面试取消了")), "面试", "2026-03-04T14:00+08:00", negates=True)
    (decision,) = await admit(gate, shelf, cancelled)
    assert decision.action == "retired"
    assert await shelf.live() == []


# ---- lifetimes, audiences, limits ----------------------------------------------------------------


async def test_c13_what_ends_is_gone_after_its_end_and_never_replaces_what_lasts(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    until = shelf.clock() + timedelta(days=2)
    trip = profile(await shelf.say("这几天住东京"), "home", "东京", expires_at=until)
    (decision,) = await admit(gate, shelf, trip)
    assert decision.reason == "temporary"
    assert values(await shelf.live()) == ["杭州", "东京"]
    shelf.clock.advance(days=3)
    assert values(await shelf.live()) == ["杭州"]
    (late,) = await admit(gate, shelf, replace(trip, citations=cite(await shelf.say("我在东京"))))
    assert (late.action, late.reason) == ("dropped", "expired")


async def test_the_same_statement_with_a_later_end_takes_the_place_of_the_earlier(gate: Gate, shelf: Shelf) -> None:
    soon, later = shelf.clock() + timedelta(days=2), shelf.clock() + timedelta(days=9)
    await admit(gate, shelf, fact(await shelf.say("我在东京出差到周三"), "我在东京出差", expires_at=soon))
    (longer,) = await admit(gate, shelf, fact(await shelf.say("我在东京出差到下周"), "我在东京出差", expires_at=later))
    assert (longer.action, longer.reason) == ("superseded", "restated")
    (live,) = await shelf.live()
    assert live.provenance.expires_at == later


async def test_a_private_memory_said_again_in_a_group_becomes_usable_there(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, fact(await shelf.say("我养猫"), "我养猫"))
    (decision,) = await admit(gate, shelf, fact(await shelf.say("我养猫"), "我养猫"), audience=GROUP)
    assert (decision.action, decision.reason) == ("superseded", "restated")
    assert [entry.provenance.audience for entry in await shelf.live()] == [GROUP]
    (again,) = await admit(gate, shelf, fact(await shelf.say("我养猫"), "我养猫"), audience=PRIVATE)
    assert again.action == "confirmed"


async def test_a_group_memory_is_not_confirmed_from_another_group(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, fact(await shelf.say("我养猫"), "我养猫"), audience=GROUP)
    await admit(gate, shelf, fact(await shelf.say("我养猫"), "我养猫"), audience=GROUP + 1)
    assert [entry.provenance.audience for entry in await shelf.live()] == [GROUP, GROUP + 1]


async def test_time_3_a_batch_closes_a_bounded_number_of_memories(gate: Gate, shelf: Shelf) -> None:
    names = [f"thing {number}" for number in range(MAX_RETIREMENTS + 3)]
    for name in names:
        await admit(gate, shelf, profile(await shelf.say(f"I like {name}"), "like", name))
    message = await shelf.say("I hate all of it")
    decisions = await admit(gate, shelf, *(profile(message, "dislike", name) for name in names))
    assert sum(len(d.closed) for d in decisions) == MAX_RETIREMENTS
    assert decisions[-1].reason == "too_many_closed"
    live = await shelf.profile.live(shelf.owner, now=shelf.clock())
    assert {line.value for line in live} == set(names)


async def test_a_closed_memory_can_be_reopened(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    (decision,) = await admit(gate, shelf, profile(await shelf.say("我搬到成都了"), "home", "成都"))
    assert await shelf.profile.reopen(shelf.owner, decision.closed[0])
    assert values(await shelf.live()) == ["杭州", "成都"]


# ---- whose words ---------------------------------------------------------------------------------


async def test_c06_only_the_owners_own_words_write_or_confirm(gate: Gate, shelf: Shelf) -> None:
    await admit(gate, shelf, fact(await shelf.say("我最喜欢蓝色"), "我最喜欢蓝色"))
    before = await shelf.history()
    echo = await shelf.say("既然你最喜欢蓝色，选藏青色吧", bot=True)
    forwarded = await shelf.say("我最喜欢蓝色", kind="forwarded")
    for message in (echo, forwarded):
        (decision,) = await admit(gate, shelf, fact(message, "我最喜欢蓝色"))
        assert (decision.action, decision.reason) == ("dropped", "not_owner")
    assert await shelf.history() == before


async def test_what_a_command_asks_to_keep_is_the_owners_word_though_the_line_holds_no_text(
    gate: Gate, shelf: Shelf
) -> None:
    command = await shelf.say("", kind="command")
    asked = replace(fact(command, "我养猫"), citations=cite(command, "我养猫"))
    (decision,) = await admit(gate, shelf, asked)
    assert decision.action == "added"


async def test_a_forgotten_message_writes_nothing(gate: Gate, shelf: Shelf) -> None:
    message = await shelf.say("我住在杭州")
    await shelf.journal.hide(shelf.owner, [message.id], 1)
    (decision,) = await admit(gate, shelf, profile(message, "home", "杭州"))
    assert (decision.action, decision.reason) == ("dropped", "forgotten")


async def test_another_persons_message_writes_nothing(gate: Gate, shelf: Shelf) -> None:
    message = await shelf.say("我住在杭州")
    stranger: Account = await shelf.accounts.meet("console", "2", name="", language="zh", zone="UTC", at=shelf.clock())
    (decision,) = await gate.admit(stranger, [profile(message, "home", "杭州")], audience=PRIVATE, now=shelf.clock())
    assert (decision.action, decision.reason) == ("dropped", "forgotten")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"source": "tool"}, "tool"),
        ({"forgettable": True}, "forgettable"),
        ({"citations": ()}, "no_citation"),
        ({"attribute": "shoe_size"}, "unknown_attribute"),
    ],
)
async def test_what_may_not_be_written_is_refused_with_its_reason(
    gate: Gate, shelf: Shelf, changes: dict[str, object], reason: str
) -> None:
    candidate = replace(profile(await shelf.say("我住在杭州"), "home", "杭州"), **changes)  # type: ignore[arg-type]
    (decision,) = await admit(gate, shelf, candidate)
    assert (decision.action, decision.reason, decision.entry) == ("dropped", reason, None)


# ---- whole or not at all -------------------------------------------------------------------------


async def test_a_failure_in_the_middle_leaves_nothing_half_done(
    gate: Gate, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    await admit(gate, shelf, profile(await shelf.say("我住在杭州"), "home", "杭州"))
    before = await shelf.history()
    wanted = profile(await shelf.say("我搬到成都了"), "home", "成都")

    async def broken(*_: object, **__: object) -> bool:
        raise ConnectionError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(shelf.profile, "retire", broken)
        with pytest.raises(ConnectionError):
            await admit(gate, shelf, wanted)
    assert await shelf.history() == before
    await admit(gate, shelf, wanted)
    assert values(await shelf.live()) == ["成都"]


async def test_the_gate_joins_a_transaction_that_is_open(gate: Gate, shelf: Shelf) -> None:
    message = await shelf.say("我住在杭州")

    async def killed_behind_the_gate() -> None:
        async with shelf.db.transaction():
            await admit(gate, shelf, profile(message, "home", "杭州"))
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await killed_behind_the_gate()
    assert await shelf.history() == []


# ---- merging -------------------------------------------------------------------------------------


async def test_time_10_duplicates_are_folded_into_the_widest_and_oldest(gate: Gate, shelf: Shelf) -> None:
    messages = [await shelf.say("我养猫") for _ in range(3)]
    for message, audience in zip(messages, (PRIVATE, GROUP, EVERYWHERE), strict=True):
        async with shelf.db.transaction():
            await shelf.facts.add(shelf.owner, fact(message, "我养猫"), audience=audience, now=shelf.clock())
    decisions = await gate.merge_duplicates(shelf.owner, now=shelf.clock())
    assert [d.reason for d in decisions] == ["duplicate", "duplicate"]
    (live,) = await shelf.live()
    assert live.provenance.audience == EVERYWHERE
    assert [c.message for c in live.provenance.citations] == [m.id for m in messages]
    assert await gate.merge_duplicates(shelf.owner, now=shelf.clock()) == []


async def test_merging_keeps_what_differs_in_number_subject_end_or_group(gate: Gate, shelf: Shelf) -> None:
    message = await shelf.say("我养猫，两只")
    later = shelf.clock() + timedelta(days=1)
    kept = [
        (fact(message, "我养一只猫"), GROUP),
        (fact(message, "我养两只猫"), GROUP),
        (fact(message, "我养一只猫", subject="女儿"), GROUP),
        (fact(message, "我养一只猫", expires_at=later), GROUP),
        (fact(message, "我养一只猫"), GROUP + 1),
    ]
    async with shelf.db.transaction():
        for candidate, audience in kept:
            await shelf.facts.add(shelf.owner, candidate, audience=audience, now=shelf.clock())
    assert await gate.merge_duplicates(shelf.owner, now=shelf.clock()) == []


async def test_merging_is_bounded_and_goes_on_the_next_night(gate: Gate, shelf: Shelf) -> None:
    async with shelf.db.transaction():
        for _ in range(MAX_RETIREMENTS + 3):
            message = shelf.said[0] if shelf.said else await shelf.say("我养猫")
            await shelf.facts.add(shelf.owner, fact(message, "我养猫"), audience=PRIVATE, now=shelf.clock())
    assert len(await gate.merge_duplicates(shelf.owner, now=shelf.clock())) == MAX_RETIREMENTS
    assert len(await gate.merge_duplicates(shelf.owner, now=shelf.clock())) == 2
    assert len(await shelf.live()) == 1


# ---- sameness ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("用户住在成都", "我住成都。"),
        ("The user lives in Oslo", "I live in Oslo!"),
        ("我喜歡貓", "我喜欢猫"),
        ("I don't eat fish", "User does not eat fish"),
    ],
)
def test_sentences_that_say_the_same_have_one_fingerprint(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("我去过日本", "我去日本"),
        ("I moved to Oslo", "I moved from Oslo"),
        ("I can swim", "I will swim"),
        ("Anna likes Ben", "Ben likes Anna"),
        ("小明打小红", "小红打小明"),
        ("I am a nurse", "I was a nurse"),
        ("I run 3.5 km", "I run 35 km"),
        ("我吃鱼", "我不吃鱼"),
    ],
)
def test_sentences_that_differ_in_what_they_say_do_not(one: str, other: str) -> None:
    assert fingerprint(one) != fingerprint(other)


def test_a_denial_is_opposed_and_a_double_denial_is_not() -> None:
    assert opposed("I eat fish", "I don't eat fish")
    assert opposed("我没养猫", "我养猫")
    assert not opposed("I eat fish", "I don't eat meat")
    assert not opposed("我不是不吃鱼", "我是吃鱼")


@pytest.mark.parametrize(
    "words", ["不对，我是说周三", "No, I meant Wednesday", "改到周三了", "Actually it is on Friday"]
)
def test_a_correction_is_heard(words: str) -> None:
    assert corrects(words)


@pytest.mark.parametrize("words", ["我是说书人", "Actually I have another interview on Friday", "周三面试"])
def test_what_takes_nothing_back_is_no_correction(words: str) -> None:
    assert not corrects(words)


def test_what_is_kept_of_a_sentence_for_the_next_comparison_is_small() -> None:
    texts = [f"In the year {n} the owner walked with Ann to harbour {n % 7}" for n in range(1_000, 1_500)]
    fingerprint("The tables are there.")
    tracemalloc.start()
    try:
        for text in texts:
            fingerprint(text)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / len(texts) < 700, "bytes of a sentence, beside itself"
