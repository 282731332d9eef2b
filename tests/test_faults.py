"""The real bot killed again and again while both platforms break: what people see in the end (tests/faults.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults import ANNA, MARA, Nursery, Story
from tests.faults_weather import Moment, is_whole

SHOWN = {
    "telegram": Moment("a first message is shown", r"^telegram sendMessage hands over", delay=0.3),
    "discord": Moment("a first message is shown", r"^discord POST messages is done", delay=0.3),
}
# The HTTP client asks a second time by itself.
BROKEN: list[dict[str, Any]] = [{"status": 503, "body": {"message": "sorry", "code": 0}}, {"lost": True, "times": 2}]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as process:
        yield process


async def test_whatever_breaks_everybody_is_answered_once_and_in_order(nursery: Nursery, tmp_path: Path) -> None:
    story = Story(tmp_path, seed=1)
    found = await story.play(nursery, kills=6)
    print(story.table(found))  # noqa: T201 - shown when it fails
    assert found.wrong == []


@pytest.mark.parametrize("platform", ["telegram", "discord"])
async def test_an_answer_begun_before_a_kill_goes_on_though_more_is_said_meanwhile(
    nursery: Nursery, tmp_path: Path, platform: str
) -> None:
    story = Story(tmp_path, seed=1)
    chat = story.anna if platform == "telegram" else story.mara
    async with story.begun(nursery, quiet_seconds=1.0) as bot:
        story.skies.model.pause = 0.02
        await story.ask(chat)
        await story.kill(bot, SHOWN[platform])
        assert (story.kills[0].waiting, story.kills[0].shown) == (1, 1)
        await story.ask(chat)
        await bot.start()
    assert story.verdict().wrong == []


@pytest.mark.parametrize("trouble", BROKEN)
async def test_what_was_said_while_the_bot_was_down_is_heard_though_the_history_breaks_off_once(
    nursery: Nursery, tmp_path: Path, trouble: dict[str, Any]
) -> None:
    story = Story(tmp_path, seed=1)
    async with story.begun(nursery) as bot:
        await story.kill(bot)
        await story.ask(story.mara)
        discord = story.skies.discord
        discord.fault(f"GET /channels/{discord.channel_of(MARA)}/messages", **trouble)
        await bot.start()
        await story.quiet(bot, 8)
        await bot.stop()
    assert story.verdict().wrong == []


async def test_a_message_changed_during_its_answer_leaves_no_half_of_that(nursery: Nursery, tmp_path: Path) -> None:
    story = Story(tmp_path, seed=1)
    async with story.begun(nursery) as bot:
        story.skies.model.pause = 0.02
        telegram = story.skies.telegram
        await story.ask(story.anna)
        await telegram.until(lambda: not all(map(is_whole, telegram.chat(ANNA).texts)))
        message_id, message = list(telegram.chat(ANNA).messages.items())[-2]
        telegram.edit(message_id, f"{message['text']}, and more", ANNA)
        await telegram.until(lambda: not telegram.updates.waiting)
        await story.quiet(bot)
    assert story.verdict().wrong == []
