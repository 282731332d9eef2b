"""Budgets of a day and the pace of a minute: announced, refused politely, and never in the way of what is one's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.message import ChatRef, Edited, Incoming
from bot.rates import Rates
from config.settings import AccessSettings, BudgetSettings
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import PLATFORM, Screen, Talk, talking

SECRET = "zanzibarine"
NEAR = "(Of your budget of today 4 of 5 messages are used; it begins anew at 00:00 (UTC).)"


def budget(**limits: int) -> dict[str, Any]:
    """Settings with limits."""
    return {"budget": BudgetSettings(**limits)}


async def test_the_end_is_announced_once_and_then_told_with_the_hour_it_goes_on(data_dir: Path, clock: Clock) -> None:
    limits = budget(messages_per_person_a_day=5)
    async with OpenAIServer() as server, talking(data_dir, clock, server, **limits) as talk:
        server.on(reply="Yes.")
        answers = [await talk.say(f"Is this number {number}?") for number in range(5)]
        assert answers == ["Yes.", "Yes.", "Yes.", f"Yes.\n\n{NEAR}", "Yes."]
        told = await talk.say(f"I am allergic to {SECRET}")
        assert told == (
            "Your budget of today is used up (5 of 5 messages), so I have not read this and keep nothing of it. We go "
            "on at 00:00 (UTC). Commands such as /whatdoyouknow and /forget work all the time."
        )
        assert await talk.ask("And this?") == []
        clock.advance(minutes=10)
        assert "used up" in await talk.say("And this?")
        assert len(server.chats) == 5
        assert SECRET not in talk.everything_stored()
        clock.advance(hours=13)
        assert await talk.say("Good morning to you") == "Yes."


async def test_what_is_ones_own_can_be_seen_and_erased_when_the_budget_is_used_up(data_dir: Path, clock: Clock) -> None:
    limits = budget(messages_per_person_a_day=1)
    async with OpenAIServer() as server, talking(data_dir, clock, server, **limits) as talk:
        server.on(reply="I see.")
        await talk.say(f"I am allergic to {SECRET}")
        assert "used up" in await talk.say("/retry")
        assert SECRET in await talk.say("/whatdoyouknow")
        assert "Your budget of today: 1 of 1 messages." in await talk.say("/usage")
        assert "This would be forgotten" in await talk.say(f"please forget my {SECRET}")
        assert "Hidden at once" in await talk.say("/forget yes")
        assert len(server.chats) == 1


async def test_tokens_are_those_of_the_chat_model_and_outlive_a_restart(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server:
        server.on(reply="Yes.")
        async with talking(data_dir, clock, server) as talk:
            await talk.say("Is it late?")
            used = sum(talk.traces[-1].tokens[way] or 0 for way in ("in", "out"))
        async with talking(data_dir, clock, server, **budget(tokens_per_person_a_day=used + 1)) as talk:
            assert await talk.say("Is it late, though?", id="x") == (
                f"Yes.\n\n(Of your budget of today {2 * used:,} of {used + 1:,} tokens are used; it begins anew at "
                "00:00 (UTC).)"
            ).replace(f"{2 * used:,}", _shown(talk, used))
            assert "of the language model" in await talk.say("/usage", id="y")
            assert "used up" in await talk.say("And now?", id="z")


def _shown(talk: Talk, used: int) -> str:
    return f"{used + sum(talk.traces[-1].tokens[way] or 0 for way in ('in', 'out')):,}"


async def test_a_group_has_a_budget_of_its_own_beside_its_members(data_dir: Path, clock: Clock) -> None:
    limits = budget(messages_per_group_a_day=5, messages_per_person_a_day=4)
    async with OpenAIServer() as server, talking(data_dir, clock, server, **limits, zone="Asia/Shanghai") as talk:
        server.on(reply="Yes.")
        for user in ("1001", "2002"):
            await talk.say("In private, this counts for me alone", user=user)
        for number in range(3):
            assert await talk.say(f"Is it {number}?", user="2002", chat="group:-5", thread="7") == "Yes."
        assert await talk.say("Is it me?", chat="group:-5") == (
            "Yes.\n\n(Of today's budget of this group 4 of 5 messages are used; it begins anew at 00:00 UTC.)"
        )
        (refused,) = await talk.ask("One more?", user="2002", chat="group:-5")
        assert refused.private
        assert refused.text.startswith("Your budget of today is used up (4 of 4 messages)")
        assert await talk.say("Is it me still?", chat="group:-5") == "Yes."
        assert "Today's budget of this group is used up" in await talk.say("Is it?", user="3003", chat="group:-5")
        assert await talk.say("Is it?", user="3003", chat="group:-6") == "Yes."
        assert await talk.say("你好，今天怎么样？", user="1001") == (
            "Yes.\n\n（你今天的额度已用 4，共 4 条消息；08:00 (Asia/Shanghai) 重新开始。）"
        )
        assert "Today's budget of that group: 5 of 5 messages." in await talk.say(
            "/usage", user="3003", chat="group:-5"
        )


async def test_the_linked_accounts_of_one_person_share_a_budget(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock, **budget(messages_per_person_a_day=2)) as talk:
        code = (await talk.say("/link")).partition("/link ")[2][:9]
        assert "Linked" in await talk.say(f"/link {code}", user="2002")
        await talk.say("My name is Kim")
        await talk.say("I live in Lyon", user="2002")
        assert "used up (2 of 2 messages)" in await talk.say("I like tea")
        assert "used up (2 of 2 messages)" in await talk.say("I like tea", user="2002")


async def test_admins_have_no_budget_of_a_day(data_dir: Path, clock: Clock) -> None:
    access = AccessSettings(admins=("test:1001",), open="everybody")
    limits = budget(messages_per_person_a_day=1, messages_per_group_a_day=1)
    async with OpenAIServer() as server, talking(data_dir, clock, server, access=access, **limits) as talk:
        server.on(reply="Yes.")
        for chat in ("", "group:-5"):
            for number in range(3):
                assert await talk.say(f"Is it {number}?", chat=chat) == "Yes."
        assert "budget of this group is used up" in await talk.say("Is it?", user="2002", chat="group:-5")


async def test_an_edit_is_taken_up_and_not_answered_anew_when_the_budget_is_used_up(
    data_dir: Path, clock: Clock
) -> None:
    limits = budget(messages_per_person_a_day=1)
    async with OpenAIServer() as server, talking(data_dir, clock, server, **limits) as talk:
        server.on(reply="I see.")
        await talk.say(f"I am allergic to {SECRET}", id="e")
        said = Incoming(ChatRef(PLATFORM, "dm:1001"), "1001", "Kim", "e", "I am allergic to quince", clock())
        screen = Screen()
        await talk.app.conversation.submit(Edited(said, clock.advance(seconds=5)), screen)
        await screen.finished.wait()
        assert (screen.replies, len(server.chats)) == ([], 1)
        assert SECRET not in talk.everything_stored()
        assert await talk.texts() == ["I am allergic to quince"]


async def test_no_limit_is_asked_for_and_nothing_is_said_by_default(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        for number in range(9):
            assert "budget" not in await talk.say(f"I like tea number {number}")
        assert "budget" not in await talk.say("/usage")


# ---- pace ------------------------------------------------------------------------------------------------


async def quickly(talk: Talk, text: str, **more: Any) -> str:
    """Say something in the same minute."""
    now = talk.clock()
    told = await talk.say(text, **more)
    talk.clock.now = now
    return told


async def test_who_writes_too_fast_is_told_once_and_commands_go_on(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock, **budget(messages_per_person_a_minute=3)) as talk:
        for _ in range(3):
            assert "faster" not in await quickly(talk, "I like tea")
        assert (await quickly(talk, f"I like {SECRET}")).startswith("You write faster than I can read")
        assert await quickly(talk, f"I like {SECRET}") == ""
        assert "I know" in await quickly(talk, "/whatdoyouknow")
        assert await quickly(talk, "I like tea", user="2002")
        assert SECRET not in talk.everything_stored()
        clock.advance(minutes=1, seconds=1)
        assert "faster" not in await quickly(talk, "I like coffee")


async def test_a_chat_that_is_too_fast_is_told_so(data_dir: Path, clock: Clock) -> None:
    limits = budget(messages_per_chat_a_minute=2, messages_per_person_a_minute=9)
    async with talking(data_dir, clock, **limits) as talk:
        for user in ("1", "2"):
            assert await quickly(talk, "I like tea", user=user, chat="group:-5")
        told = await quickly(talk, "你好，我喜欢喝茶", user="3", chat="group:-5")
        assert told.startswith("这里写得太快")
        assert await quickly(talk, "I like tea", user="1", chat="group:-5") == ""
        assert await quickly(talk, "I like tea", user="1", chat="group:-6")


@given(
    most=st.integers(1, 5), steps=st.lists(st.integers(-90, 90), max_size=60), keys=st.lists(st.booleans(), min_size=60)
)
def test_no_key_ever_gets_more_than_its_share_of_a_minute_while_the_clock_runs(
    most: int, steps: list[int], keys: list[bool]
) -> None:
    rates, now = Rates(most), datetime(2026, 3, 2, 12, tzinfo=UTC)
    taken: dict[bool, list[datetime]] = {False: [], True: []}
    for step, key in zip(steps, keys, strict=False):
        now += timedelta(seconds=step)
        before = [at for at in taken[key] if at >= now - timedelta(minutes=1)]
        if step < 0:
            taken = {False: [], True: []}  # A clock that was set back begins anew rather than lock anybody out.
            rates = Rates(most)
            before = []
        pace = rates.take(key, now=now)
        assert (pace == "in") == (len(before) < most)
        if pace == "in":
            taken[key].append(now)


def test_a_clock_that_is_set_back_locks_nobody_out() -> None:
    rates, now = Rates(1), datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert rates.take("a", now=now) == "in"
    assert rates.take("a", now=now) == "first"
    assert rates.take("a", now=now) == "over"
    assert rates.take("a", now=now - timedelta(hours=3)) == "in"


@pytest.mark.parametrize("most", [0])
def test_no_limit_takes_everything(most: int) -> None:
    rates, now = Rates(most), datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert {rates.take("a", now=now) for _ in range(500)} == {"in"}
