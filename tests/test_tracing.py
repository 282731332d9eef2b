"""``trace``: from the number in an apology to how the reply came to be; words only for who asks for them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bot import tracing
from bot.tracing import Asked
from config.settings import Settings
from tests.busy import PRIVATE, busy
from tests.conftest import Clock
from tests.talk import talking


def traced(
    data_dir: Path, capsys: pytest.CaptureFixture[str], *, as_json: bool = False, **asked: Any
) -> tuple[int, str, str]:
    """Exit code, output and error output."""
    code = tracing.main(Settings(data_dir=data_dir), Asked(**asked), as_json=as_json)
    out, err = capsys.readouterr()
    return code, out, err


async def test_without_words_there_are_numbers_and_nothing_of_anybody(
    data_dir: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    async with busy(data_dir, clock, trace={"keep_days": 0}) as talk:
        count = talk.rows("SELECT count(*) FROM traces")[0][0]
        for as_json in (False, True):
            code, out, _ = traced(data_dir, capsys, last=1_000, as_json=as_json)
            assert code == 0
            assert not [word for word in PRIVATE if word.lower() in out.lower()]
        assert len(json.loads(out)) == count > 10
        assert "recalled: " in traced(data_dir, capsys, last=1_000)[1]


async def test_with_words_what_was_asked_replied_and_recalled_is_shown(
    data_dir: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    async with busy(data_dir, clock) as talk:
        await talk.say("What am I allergic to?", user="1001")
        code, out, _ = traced(data_dir, capsys, words=True)
    assert code == 0
    assert "  asked: What am I allergic to?\n  replied: I see.\n" in out
    assert re.search(r"recalled: \d+ profile \w+ [\d.]+ \(words .*\)\n    I am allergic to tamarind\n", out)
    assert "tokens " in out
    assert "ms learn" in out


async def test_the_number_of_an_apology_finds_the_trace_and_a_foreign_number_says_why_not(
    data_dir: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    async with talking(
        data_dir, clock, model={"retries": 0}, openai_base_url="http://127.0.0.1:9/v1", openai_model="scripted"
    ) as talk:
        await talk.say("Hello there, how is it going?", user="2002")
        told = await talk.say("Tell me a story about the pelican")
        number = re.search(r"log: (\w+)", told)
        assert number is not None
        code, out, _ = traced(data_dir, capsys, turn=number[1])
        assert code == 0
        assert out.startswith(f"turn {number[1]}  ")
        assert "test:1001\n  finish failed; tokens none" in out
        assert out.count("turn ") == 1
    code, out, err = traced(data_dir, capsys, turn="00000000")
    assert (code, out) == (1, "")
    assert "No reply has the number 00000000" in err


async def test_only_the_replies_to_one_account_are_shown_and_nobody_is_told_by_name(
    data_dir: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    async with talking(data_dir, clock) as talk:
        for user in ("1001", "2002", "1001"):
            await talk.say("What do you know?", user=user)
        _, out, _ = traced(data_dir, capsys, owner="test:1001", last=9, as_json=True)
        assert [told["owner"] for told in json.loads(out)] == ["test:1001"] * 2
        code, _, err = traced(data_dir, capsys, owner="test:404")
    assert code == 1
    assert "Nobody is known as test:404" in err


async def test_what_was_forgotten_is_not_shown_before_its_erasure_either(
    data_dir: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to tamarind")
        await talk.say("/remember my spare key is with the pelican")
        await talk.say("What am I allergic to?")
        assert "tamarind" in traced(data_dir, capsys, words=True)[1]
        await talk.say("/forget tamarind")
        await talk.say("/forget yes")
        code, out, _ = traced(data_dir, capsys, words=True, last=9)
    assert code == 0
    assert "tamarind" not in out
    assert "(forgotten, or of another account)" in out


def test_without_a_database_it_says_so(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = traced(data_dir, capsys)
    assert code == 1
    assert "nobody has talked to the bot" in err
