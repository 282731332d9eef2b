"""Where a person's clock stands: what they set, else what they said, else the operator's zone; asked for once."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import zone_named
from memory.model import SELF, Event
from memory.zones import _CHINESE, _ENGLISH, told
from tests.conftest import Clock
from tests.house import House, housed
from tests.servers.openai_server import OpenAIServer
from tests.talk import talking

NAMED = {
    "Europe/Berlin": "Europe/Berlin",
    "europe/berlin": "Europe/Berlin",
    " Berlin. ": "Europe/Berlin",
    "New York": "America/New_York",
    "america/new_york": "America/New_York",
    "Buenos Aires": "America/Buenos_Aires",
    "Munich": "Europe/Berlin",
    "上海": "Asia/Shanghai",
    "北京时间": "Asia/Shanghai",
    "成都市": "Asia/Shanghai",
    "東京": "Asia/Tokyo",
    "臺北": "Asia/Taipei",
    "紐約": "America/New_York",
    "东八区": "Asia/Shanghai",
    "東八區": "Asia/Shanghai",
    "东9区": "Etc/GMT-9",
    "西五区": "Etc/GMT+5",
    "西十一区": "Etc/GMT+11",
    "UTC+8": "Etc/GMT-8",
    "GMT -3": "Etc/GMT+3",
    "utc+0": "Etc/UTC",
    "the Tokyo time zone": "Asia/Tokyo",
}
NOT_NAMED = (
    "", "the moon", "Springfield", "home", "我家", "东十五区", "UTC+15", "UTC-13", "UTC+99", "Berlin or Paris",
    "London, Ontario", "Berlin " * 20, "/etc/passwd", "../Berlin", "西二十区",
)  # fmt: skip


@pytest.mark.parametrize(("words", "zone"), NAMED.items())
def test_a_place_or_a_distance_names_a_zone(words: str, zone: str) -> None:
    assert zone_named(words) == zone


@pytest.mark.parametrize("words", NOT_NAMED)
def test_what_names_no_certain_zone_names_none(words: str) -> None:
    assert zone_named(words) is None


@given(st.text(max_size=60) | st.from_regex(r"(?i)(utc|gmt)[+-]\d{1,3}|[东西].{1,3}区", fullmatch=True))
def test_whatever_is_named_is_a_zone_there_is(words: str) -> None:
    zone = zone_named(words)
    assert zone is None or ZoneInfo(zone).key == zone


@pytest.mark.parametrize("zone", [*_CHINESE, *_ENGLISH])
def test_the_tables_name_zones_there_are(zone: str) -> None:
    assert ZoneInfo(zone).key == zone


def test_only_the_owners_home_and_zone_tell_it() -> None:
    assert told(SELF, "home", "Berlin") == told(SELF, "timezone", "Europe/Berlin") == "Europe/Berlin"
    assert told("sister", "home", "Berlin") is None
    assert told(SELF, "hometown", "Berlin") is None


async def zone(house: House) -> tuple[str, str]:
    """The owner's zone and where it comes from, as the next message finds them."""
    account = await house.memory.known_account("test", "1001")
    assert account is not None
    return account.zone, account.zone_from


async def test_what_is_set_goes_before_what_was_said_and_that_before_the_operators(
    tmp_path: Path, clock: Clock
) -> None:
    async with housed(tmp_path / "r.db", clock) as house:
        assert await zone(house) == ("UTC", "default")
        await house.hear("I live in Berlin.")
        assert await zone(house) == ("Europe/Berlin", "said")
        await house.memory.fix_zone(house.owner, "Asia/Tokyo")
        await house.hear("I moved to Lisbon.")
        assert await zone(house) == ("Asia/Tokyo", "set")
        await house.memory.fix_zone(house.owner, None)
        assert await zone(house) == ("Europe/Lisbon", "said")
        await house.hear("I moved to Springfield.")
        assert await zone(house) == ("UTC", "default")


@pytest.mark.parametrize(
    ("said", "zone_then"),
    [
        ("My time zone is Asia/Tokyo.", "Asia/Tokyo"),
        ("我的时区是东八区", "Asia/Shanghai"),
        ("我在东八区", "Asia/Shanghai"),
        ("我現在在東九區", "Etc/GMT-9"),
        ("我搬到柏林了", "Europe/Berlin"),
        ("I used to live in Paris.", "UTC"),
        ("Do I live in Paris?", "UTC"),
        ("If I lived in Paris, I would eat better.", "UTC"),
        ("我不在东八区", "UTC"),
        ("我想住在东京", "UTC"),
    ],
)
async def test_a_zone_is_learned_from_a_plain_statement_alone(
    tmp_path: Path, clock: Clock, said: str, zone_then: str
) -> None:
    async with housed(tmp_path / "r.db", clock) as house:
        await house.hear(said)
        assert (await zone(house))[0] == zone_then


async def test_a_zone_that_was_said_is_forgotten_with_the_words(tmp_path: Path, clock: Clock) -> None:
    async with housed(tmp_path / "r.db", clock) as house:
        await house.hear("I live in Berlin.")
        plan = await house.memory.plan_forgetting(house.owner, house.chat, "Berlin", now=clock())
        assert plan is not None
        await house.memory.forget(house.owner, plan.offer, picks=None, now=clock())
        assert await zone(house) == ("UTC", "default")
        await house.memory.undo(house.owner, now=clock())
        assert await zone(house) == ("Europe/Berlin", "said")
        plan = await house.memory.plan_forgetting(house.owner, house.chat, "Berlin", now=clock())
        assert plan is not None
        await house.memory.forget(house.owner, plan.offer, picks=None, now=clock())
        await house.memory.run_due(now=clock.advance(minutes=11))
        assert "Berlin" not in house.everything()


async def test_one_persons_place_is_nobody_elses_zone(tmp_path: Path, clock: Clock) -> None:
    async with housed(tmp_path / "r.db", clock) as house:
        bo = await house.memory.account("test", "1002", name="Bo")
        room = await house.memory.chat(bo, "dm:1002")
        await house.hear("I live in Tokyo.", owner=bo, chat=room)
        await house.hear("My sister lives in Berlin.")
        assert await zone(house) == ("UTC", "default")
        other = await house.memory.known_account("test", "1002")
        assert other is not None
        assert other.zone == "Asia/Tokyo"


async def test_the_command_shows_and_sets_the_zone(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        assert "have not told me" in await talk.say("/timezone")
        await talk.say("I live in Berlin.")
        assert "Europe/Berlin, going by what you told me" in await talk.say("/timezone")
        assert "Asia/Tokyo, as you set it" in await talk.say("/timezone tokyo")
        assert 'no time zone "Atlantis"' in await talk.say("/timezone Atlantis")
        assert (await talk.owner()).zone == "Asia/Tokyo"
        assert "Europe/Berlin" in await talk.say("/timezone auto")


PLAN = "I have a dentist appointment on Friday at 10 am."


async def test_a_person_is_asked_for_the_zone_once_and_only_where_a_time_was_guessed(
    data_dir: Path, clock: Clock
) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="Fine.")
        assert "time zone" not in await talk.say("I like tea.")
        assert "in which time zone are you?" in await talk.say(PLAN)
        assert "time zone" not in await talk.say("I have a meeting on Monday at 3 pm.")


async def test_the_question_waits_for_an_answer_that_carries_it(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="Fine.")
        server.fault(match="/chat/completions", status=400, times=1)
        assert "cannot reach my language model" in await talk.say(PLAN)
        assert "in which time zone are you?" in await talk.say("I have a meeting on Monday at 3 pm.")


@pytest.mark.parametrize("before", ["/timezone Berlin", "I live in Berlin."])
async def test_nobody_is_asked_for_a_zone_that_is_known(data_dir: Path, clock: Clock, before: str) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say(before)
        assert "time zone" not in await talk.say(PLAN)


async def test_nobody_is_asked_for_the_zone_in_a_group(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        assert "time zone" not in await talk.say(PLAN, chat="group:-5")
        assert "time zone" in await talk.say("I have a meeting on Monday at 3 pm.")


async def spans(house: House) -> list[str]:
    """The beginnings of the person's events on their own clock."""
    owner = await house.memory.known_account("test", "1001")
    assert owner is not None
    known = await house.memory.known(owner, room=house.chat, now=house.clock())
    events = (entry for entry in known if isinstance(entry, Event))
    return [f"{event.span.start.astimezone(ZoneInfo(owner.zone)):%a %H:%M}" for event in events]


@pytest.mark.parametrize("told", ["I live in Berlin.", "/timezone Berlin"])
async def test_an_hour_that_was_guessed_is_the_same_hour_in_the_zone_that_is_told(
    tmp_path: Path, clock: Clock, told: str
) -> None:
    async with housed(tmp_path / "r.db", clock) as house:
        await house.hear("I have a dentist appointment on Friday at 10 am.")
        assert await spans(house) == ["Fri 10:00"]
        if told.startswith("/"):
            await house.memory.fix_zone(house.owner, "Europe/Berlin")
        else:
            await house.hear(told)
        assert await spans(house) == ["Fri 10:00"]
        assert await zone(house) == ("Europe/Berlin", "set" if told.startswith("/") else "said")


async def test_an_hour_said_in_a_known_zone_is_another_one_elsewhere(tmp_path: Path, clock: Clock) -> None:
    async with housed(tmp_path / "r.db", clock) as house:
        await house.memory.fix_zone(house.owner, "Europe/Berlin")
        house.owner = await house.memory.account("test", "1001")
        await house.hear("I have a dentist appointment on Friday at 10 am.")
        await house.memory.fix_zone(house.owner, "Asia/Tokyo")
        assert await spans(house) == ["Fri 18:00"]
