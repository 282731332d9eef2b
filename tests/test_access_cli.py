"""``access``: who may talk, seen and changed at the terminal while the bot runs; and what ``run`` and ``check`` say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bot import check
from bot.app import _say_who_may_talk, built
from bot.cli import cli
from config.settings import AccessSettings, Settings
from tests.conftest import Clock
from tests.talk import NO_EMBEDDER, talking
from tests.test_access import code_in


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in an empty folder, and give the log back afterwards."""
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield tmp_path
    for handler in set(root.handlers) - set(handlers):
        handler.close()
    root.handlers, root.level = handlers, level


def typed(*words: str) -> Result:
    """Run a command of the group."""
    return CliRunner().invoke(cli, ["access", *words])


async def in_thread(*words: str) -> Result:
    """The same beside a bot that runs."""
    return await asyncio.to_thread(typed, *words)


async def test_the_first_person_is_let_in_at_the_terminal_as_admin_while_the_bot_runs(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.talk.PLATFORM", "telegram")
    clock = Clock(datetime.now(UTC))
    async with talking(data_dir, clock, access=AccessSettings()) as talk:
        code = code_in(await talk.say("hello"))
        asks = await in_thread("list", "--data", str(data_dir))
        assert asks.output.startswith("Nobody is let in by name yet.\ntelegram:1001  asks; the code works until ")
        wrong = await in_thread("approve", "AAAA-AAAA", "--data", str(data_dir))
        assert (wrong.exit_code, wrong.output.startswith("This is no code that works")) == (1, True)
        first = await in_thread("approve", code, "--data", str(data_dir))
        assert first.exit_code == 0
        assert first.output == (
            "telegram:1001 may talk to the bot now, and is an admin: /approve in a chat lets others in. "
            "`python -m bot access remove telegram:1001` takes it back.\n"
        )
        assert [owed.notice.phrase for owed in await talk.app.memory.notices()] == ["access.welcome"]
        assert "Noted" in await talk.say("My name is Kim")
        second = await in_thread("approve", code_in(await talk.say("hello", user="2002")), "--data", str(data_dir))
        assert "admin" not in second.output
        assert "/approve" in await talk.say("/help")
        assert "/approve" not in await talk.say("/help", user="2002")
        listed = (await in_thread("list", "--data", str(data_dir))).output.splitlines()
        assert listed[0].startswith("telegram:1001  name1001, admin, since ")
        gone = await in_thread("remove", "telegram:2002", "--data", str(data_dir))
        assert (gone.exit_code, gone.output) == (
            0,
            "telegram:2002 is let in no more. What the bot keeps of them is not erased.\n",
        )
        assert "stays yours" in await talk.say("I like tea", user="2002")


def test_numbers_are_let_in_without_a_code_and_put_out_again(data_dir: Path) -> None:
    at = ("--data", str(data_dir))
    assert "and is an admin" in typed("allow", "discord:7", "--admin", *at).output
    assert typed("allow", "telegram:-100", *at).output == "Everybody in telegram:-100 may talk to the bot.\n"
    assert typed("allow", "discord:900", "--group", *at).output == "Everybody in discord:900 may talk to the bot.\n"
    today = f"since {datetime.now(UTC):%Y-%m-%d}"
    listed = typed("list", *at).output.splitlines()
    assert set(listed) == {
        f"discord:7  admin, {today}",
        f"telegram:-100  everybody in it, {today}",
        f"discord:900  everybody in it, {today}",
    }
    assert typed("remove", "discord:900", *at).exit_code == 0
    assert typed("remove", "discord:900", *at).exit_code == 1
    assert typed("allow", "kim", *at).exit_code == 2
    assert typed("allow", "telegram:-100", "--admin", *at).exit_code == 2


def test_what_the_settings_name_is_taken_out_there(folder: Path, data_dir: Path) -> None:
    (folder / "recollect.toml").write_text(
        '[access]\nadmins = ["telegram:1"]\nallow = ["telegram:2"]\nopen = "everybody"\n', encoding="utf-8"
    )
    listed = typed("list", "--data", str(data_dir)).output
    assert listed.startswith("Everybody who finds the bot may talk to it")
    assert "telegram:1  admin, named in recollect.toml\ntelegram:2  named in recollect.toml\n" in listed
    refused = typed("remove", "telegram:2", "--data", str(data_dir))
    assert (refused.exit_code, refused.output) == (
        1,
        "telegram:2 is named in recollect.toml ([access]): take it out there and restart.\n",
    )


@pytest.mark.parametrize(
    ("access", "said"),
    [
        (AccessSettings(), "nobody can let others in yet"),
        (AccessSettings(admins=("telegram:1",)), ""),
        (AccessSettings(open="everybody"), "everybody who finds this bot may talk to it, at your cost"),
    ],
)
async def test_a_start_says_who_may_talk_where_that_matters(
    data_dir: Path, caplog: pytest.LogCaptureFixture, access: AccessSettings, said: str
) -> None:
    async with built(Settings(data_dir=data_dir, zone="UTC", embedder=NO_EMBEDDER, access=access)) as app:
        caplog.clear()
        await _say_who_may_talk(app)
    assert bool(caplog.messages) == bool(said)
    assert said in "\n".join(caplog.messages)


def test_check_says_who_may_talk_once_a_platform_is_set_up() -> None:
    assert check.look_at_access(Settings()) == []
    (closed,) = check.look_at_access(Settings(discord_bot_token="t"))
    (wide,) = check.look_at_access(Settings(discord_bot_token="t", access=AccessSettings(open="everybody")))
    assert (closed.level, wide.level) == ("ok", "warn")
