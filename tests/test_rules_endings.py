"""What a clause ends of its own accord: partings, jobs given up, habits and places of work left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from memory import rules
from memory.model import PRIVATE
from memory.reconcile import Gate
from tests.conftest import Clock
from tests.rules_fresh import AT, ZONE, in_short
from tests.shelf import Shelf


def ends(text: str) -> list[str]:
    """What a message states, in short."""
    return [in_short(each) for each in rules.candidates(text, message_id=7, at=AT, zone=ZONE)]


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("we broke up", ["=~we broke up", "!girlfriend.name=", "!boyfriend.name="]),
        ("Anna and I broke up.", ["=~Anna and I broke up", "!girlfriend.name=Anna", "!boyfriend.name=Anna"]),
        ("my boyfriend and I split up", ["=~my boyfriend and I split up", "!boyfriend.name="]),
        ("my wife left me", ["=~my wife left me", "!wife.name="]),
        ("我和小雅分手了。", ["=~我和小雅分手了", "!女朋友.name=小雅", "!男朋友.name=小雅"]),
        ("我跟老公离婚了", ["=~我跟老公离婚了", "!老公.name="]),
        ("和女朋友分了", ["=~和女朋友分了", "!女朋友.name="]),
        ("我辞职了", ["=~我辞职了", "!job="]),
        ("I quit my job", ["=~I quit my job", "!job="]),
        ("I no longer work at Barclays", ["!=~I work at Barclays"]),
        ("I don't work at Barclays anymore", ["!=~I work at Barclays"]),
        ("I stopped running, knees are shot", ["!=~I am running"]),
        ("I don't smoke anymore", ["!=~I smoke"]),
        ("不再学法语了", ["!=~我学法语"]),
        ("我已经不在阿里上班了", ["!=~我在阿里上班"]),
        ("我沒有在台積電上班了", ["!=~我在台積電上班"]),
        ("不再吃素了", ["!diet=素"]),
    ],
)
def test_an_end_names_what_it_ends(text: str, stated: list[str]) -> None:
    assert ends(text) == stated


@pytest.mark.parametrize(
    "text",
    [
        "we broke up the fight at the bar",
        "did we break up",
        "if we broke up I'd move",
        "she said we broke up",
        "they broke up",
        "She and I broke up",
        "coffee and I broke up",
        "我和你分手了",
        "我和公司分手了",
        "the band and I broke up the set",
        "my mother left me",
        "Grandma left me",
        "我们离婚礼还有很久",
        "我们分手吧",
        "我差点辞职了",
        "他辞职了",
        "我朋友和他女朋友分手了",
        "今天不学了",
        "I stopped at the store",
        "I almost quit my job",
    ],
)
def test_what_only_sounds_like_an_end_ends_nothing(text: str) -> None:
    assert ends(text) == []


@pytest_asyncio.fixture
async def shelf(tmp_path: Path, clock: Clock) -> AsyncIterator[Shelf]:
    """An open database, closed afterwards."""
    opened = await Shelf.open(tmp_path / "memory.db", clock)
    yield opened
    await opened.db.close()


async def told(shelf: Shelf, text: str) -> None:
    """Say something and put what the rules read in it through the gate."""
    line = await shelf.say(text)
    read = rules.candidates(text, message_id=line.id, at=line.at, zone=ZONE)
    await Gate(shelf.db, shelf).admit(shelf.owner, read, audience=PRIVATE, now=shelf.clock())


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ("My girlfriend is called Anna", "Anna and I broke up", ["Anna and I broke up"]),
        ("My girlfriend is called Anna", "Tom and I broke up", ["Anna", "Tom and I broke up"]),
        ("My sister is called Anna", "Anna and I broke up", ["Anna", "Anna and I broke up"]),
        ("我女朋友叫王小雅", "我和王小雅分手了", ["我和王小雅分手了"]),
        ("I'm a teacher", "I quit my job", ["I quit my job"]),
        ("My wife is a teacher", "I quit my job", ["teacher", "I quit my job"]),
        ("I work at Ikea", "I no longer work at Ikea", []),
        ("I work at Ikea", "I no longer work at Tesco", ["I work at Ikea"]),
    ],
)
async def test_an_end_reaches_what_it_names_and_nothing_else(
    shelf: Shelf, before: str, after: str, left: list[str]
) -> None:
    await told(shelf, before)
    await told(shelf, after)
    live = [*await shelf.profile.live(shelf.owner, now=shelf.clock())]
    facts = [*await shelf.facts.live(shelf.owner, now=shelf.clock())]
    assert [line.value for line in live] + [fact.text for fact in facts] == left
