"""``/usage``: what a person's chats cost today, in counts that outlive restarts and hold no word."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memory import Spent
from memory.usage import tokens
from tests.conftest import Clock
from tests.house import housed
from tests.servers.openai_server import OpenAIServer
from tests.talk import Screen, talking

SECRET = "zanzibarine"


async def test_a_reply_is_counted_with_the_tokens_the_endpoint_told(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="Hello there")
        await talk.say("How are you today?")
        owner = await talk.owner()
        spent = await talk.app.memory.usage.today(owner, now=clock())
        told = talk.traces[-1].tokens
        assert told["in"]
        assert told["out"]
        assert spent["reply"] == Spent(1, told["in"], told["out"])
        assert spent["message"] == Spent(1)
        shown = await talk.say("/usage")
        assert f"- answers: 1, {told['in']:,} tokens read, {told['out']} written" in shown
        assert "- messages of yours: 1" in shown
        assert "Price" not in shown
        assert "Budget" not in shown


async def test_the_counts_outlive_a_restart_and_begin_anew_at_midnight_utc(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server:
        server.on(reply="Hello there")
        async with talking(data_dir, clock, server, zone="Asia/Shanghai") as talk:
            await talk.say("How are you today?")
        async with talking(data_dir, clock, server, zone="Asia/Shanghai") as talk:
            await talk.say("And how is the weather?", id="x1")
            shown = await talk.say("/usage")
            assert "Since 08:00 (Asia/Shanghai), which is midnight UTC" in shown
            assert "- messages of yours: 2" in shown
            assert "- answers: 2," in shown
            clock.advance(hours=12)
            assert "- messages of yours: 0" in await talk.say("/usage")


async def test_what_others_use_is_not_counted_for_anybody_else(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="Hello there")
        for _ in range(3):
            await talk.say("How are you today?", user="2002")
        await talk.say("How are you today?")
        assert "- answers: 1," in await talk.say("/usage")
        assert "- answers: 3," in await talk.say("/usage", user="2002")


async def test_prices_and_budgets_are_shown_where_they_are_set(data_dir: Path, clock: Clock) -> None:
    model = {"price_in": 1_000_000.0, "price_out": 0.0, "currency": "EUR"}
    async with OpenAIServer() as server:
        server.on(reply="Hello there")
        async with talking(
            data_dir, clock, server, model=model, distil={"tokens_per_person_a_day": 20_000, "tokens_a_day": 1}
        ) as talk:
            await talk.say("How are you today?")
            told = talk.traces[-1].tokens["in"]
            shown = await talk.say("/usage")
            assert f"Price of the language model: {told}.0000 EUR." in shown
            assert "Budget for readings of finished talks: 0 of 20,000 tokens." in shown
            assert "budget of all people" not in shown


async def test_distillation_is_counted_with_its_tokens_and_a_spent_budget_is_told(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server:
        server.on(reply='{"items": []}')
        async with talking(data_dir, clock, server, distil={"tokens_a_day": 1}) as talk:
            await talk.say("我昨天去了一趟杭州的西湖")
            clock.advance(hours=1)
            await talk.app.tick()
            shown = await talk.say("/usage")
            assert "- 聊完后的整理：1 次，读入 " in shown
            assert "所有人合用的额度今天用完了" in shown
            owner = await talk.owner()
            spent = (await talk.app.memory.usage.today(owner, now=clock()))["distil"]
            own, _ = await talk.app.memory.distilled(owner, now=clock())
            assert spent.tokens_in + spent.tokens_out == own > 0


async def test_an_answer_that_was_cancelled_is_counted_as_far_as_it_came(
    data_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="Hello there my friend", stall=True)
        begun = asyncio.Event()

        async def shown(screen: Screen, text: str) -> None:
            screen.frames.append(text)
            begun.set()

        monkeypatch.setattr(Screen, "show", shown)
        asking = asyncio.create_task(talk.say("Tell me a story, please"))
        await begun.wait()
        assert await talk.say("/cancel") == "Stopped."
        await asking
        spent = await talk.app.memory.usage.today(await talk.owner(), now=clock())
        assert spent["reply"].times == 1
        assert spent["reply"].tokens_in > spent["reply"].tokens_out > 0


async def test_nothing_is_counted_where_no_model_answered(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server, model={"retries": 0}) as talk:
        server.fault(status=500, times=9)
        await talk.say("How are you today?")
        spent = await talk.app.memory.usage.today(await talk.owner(), now=clock())
        assert spent == {"message": Spent(1)}


async def test_counts_hold_no_word_and_stay_when_words_are_forgotten(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="Hello there")
        await talk.say(f"I am allergic to {SECRET}")
        await talk.say(f"/forget {SECRET}")
        await talk.say("/forget yes")
        clock.advance(minutes=30)
        await talk.app.tick()
        assert SECRET not in talk.everything_stored()
        assert "- messages of yours: 1" in await talk.say("/usage")


async def test_counts_are_the_persons_alone_in_a_group(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        (reply,) = await talk.ask("/usage", chat="group:-5")
        assert reply.private


async def test_what_is_counted_while_it_is_written_is_written_next_time(tmp_path: Path, clock: Clock) -> None:
    async with housed(tmp_path / "m.db", clock) as house:
        usage = house.memory.usage
        usage.count(house.owner, "embed", times=2, tokens_in=10)
        async with usage.taken(house.owner) as counted:
            usage.count(house.owner, "embed", tokens_in=1)
            await usage.write(house.owner, counted)
        assert list(usage.owners_pending()) == [house.owner.no]
        assert await usage.today(house.owner, now=clock()) == {"embed": Spent(3, 11)}
        assert list(usage.owners_pending()) == []


async def test_two_that_write_at_once_write_nothing_twice(tmp_path: Path, clock: Clock) -> None:
    async with housed(tmp_path / "m.db", clock) as house:
        usage = house.memory.usage
        usage.count(house.owner, "embed", times=2, tokens_in=10)
        async with usage.taken(house.owner) as counted:
            await usage.store(house.owner)
            await usage.write(house.owner, counted)
        assert await usage.today(house.owner, now=clock()) == {"embed": Spent(2, 10)}


async def test_what_could_not_be_written_is_written_next_time(tmp_path: Path, clock: Clock) -> None:
    async with housed(tmp_path / "m.db", clock) as house:
        usage = house.memory.usage
        usage.count(house.owner, "embed", times=2, tokens_in=10)

        async def fail() -> None:
            async with usage.taken(house.owner):
                usage.count(house.owner, "embed", tokens_in=1)
                raise OSError("the disk is full")

        with pytest.raises(OSError, match="full"):
            await fail()
        assert await usage.today(house.owner, now=clock()) == {"embed": Spent(3, 11)}


async def test_counts_of_a_day_are_kept_for_a_year(tmp_path: Path, clock: Clock) -> None:
    async with housed(tmp_path / "m.db", clock) as house:
        house.memory.usage.count(house.owner, "reply", tokens_in=1)
        await house.memory.usage.store(house.owner)
        clock.advance(days=366)
        assert await house.memory.usage.trim(house.owner, now=clock()) == 0
        clock.advance(days=1)
        assert await house.memory.usage.trim(house.owner, now=clock()) == 1


@pytest.mark.parametrize(("told", "texts", "guess"), [(7, ("abcd",), 7), (None, ("abcd", "a"), 2), (0, ("花粉",), 2)])
def test_tokens_that_nobody_tells_are_guessed(told: int | None, texts: tuple[str, ...], guess: int) -> None:
    assert tokens(told, *texts) == guess
