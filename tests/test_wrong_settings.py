"""Every setting with a value it cannot have: each is named with its place, all of them at once, with the exit code."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from bot import premises
from bot.cli import cli
from bot.logs import FILE
from config.complaints import keys
from config.settings import Credentials, Settings, SettingsError, load
from memory import DATABASE_NAME, backups
from tests.conftest import Clock
from tests.talk import talking

OWN = {("", "personas"): "'here' = 'x'", ("access", "admins"): "'nobody'"}
"""What no rule below makes."""
NAMES = {
    "telegram_bot_token": "two words",
    "telegram_webhook_secret": "two words",
    "discord_bot_token": "two words",
    "openai_api_key": "two words",
    "openai_base_url": "localhost:11434",
}
"""Names of the environment that can be wrong by themselves, with a value that is; the others take any text."""


def field(table: str, key: str) -> Any:
    """What a setting may be."""
    model: type[BaseModel] = type(getattr(Settings(), table)) if table else Settings
    return model.model_fields[key].annotation


def wrong(kind: Any) -> str:
    """A value, as TOML writes it, that something of this kind cannot have."""
    if get_origin(kind) is Annotated:
        return wrong(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return wrong(next(each for each in get_args(kind) if each is not type(None)))
    if get_origin(kind) is Literal:
        return "'none of these'"
    return {str: "3", Path: "3", bool: "'yes'", int: "'many'", float: "'long'"}.get(kind, "3")


def everything_wrong() -> dict[tuple[str, str], str]:
    """A wrong value for every key of the file."""
    return {
        (table, key): OWN.get((table, key)) or wrong(field(table, key))
        for table, key in keys(Settings)
        if key not in Credentials.model_fields
    }


def written(values: dict[tuple[str, str], str]) -> str:
    """The file with these values."""
    tables: dict[str, list[str]] = {}
    for (table, key), value in values.items():
        if key == "personas":
            tables["personas"] = [value]
        else:
            tables.setdefault(table, []).append(f"{key} = {value}")
    top = "\n".join(tables.pop("", []))
    return top + "".join(f"\n[{table}]\n" + "\n".join(lines) for table, lines in tables.items())


@pytest.mark.parametrize(("place", "value"), everything_wrong().items())
def test_each_setting_with_a_wrong_value_is_named(tmp_path: Path, place: tuple[str, str], value: str) -> None:
    (tmp_path / "recollect.toml").write_text(written({place: value}), encoding="utf-8")
    with pytest.raises(SettingsError) as wrong_one:
        load(cwd=tmp_path)
    (line,) = str(wrong_one.value).splitlines()
    table, key = place
    where = f"[{key}]" if key == "personas" else f"[{table}] {key}" if table else key
    assert line.startswith(f"recollect.toml: {where}")
    assert ": must " in line, line


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = everything_wrong()
    text = f"OPENAI_MODEL = 'x'\nnot_one = 1\n{written(values)}"
    Path("recollect.toml").write_text(text, encoding="utf-8")
    Path(".env").write_text("".join(f"{name.upper()}='{value}'\n" for name, value in NAMES.items()), encoding="utf-8")
    done = CliRunner().invoke(cli, ["check"])
    assert done.exit_code == 2
    lines = done.output.splitlines()
    assert len(lines) == len(values) + len(NAMES) + 2
    assert all(line.startswith("fail  settings — ") for line in lines)
    assert "two words" not in done.output
    assert any("OPENAI_MODEL belongs in .env" in line for line in lines)
    assert not Path("data").exists()


def test_a_file_that_cannot_be_read_hides_nothing_of_the_other(tmp_path: Path) -> None:
    (tmp_path / "recollect.toml").write_text("[recall\n", encoding="utf-8")
    (tmp_path / ".env").write_bytes(b"OPENAI_API_KEY=\xff\xfe")
    with pytest.raises(SettingsError) as wrong_ones:
        load(cwd=tmp_path)
    assert [line.split()[0] for line in str(wrong_ones.value).splitlines()] == ["recollect.toml", ".env"]


def test_what_does_not_go_together_is_told_with_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "recollect.toml").write_text("[model]\ncontext_tokens = 2048\n[trace]\nkeep_days = -1\n")
    with pytest.raises(SettingsError) as wrong_ones:
        load(cwd=tmp_path)
    text = str(wrong_ones.value)
    assert "[trace] keep_days = -1: must be at least 0" in text
    assert "60 % of [model] context_tokens (1228)" in text


def test_the_exit_codes_are_what_the_help_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    Path("recollect.toml").write_text("[embedder]\nkind = 'none'\n", encoding="utf-8")
    done = run(cli, ["check"])
    assert done.exit_code == 0, done.output  # No model, no platform: warnings.
    assert "warn" in done.output
    assert run(cli, ["check", "--strict"]).exit_code == 1
    Path("data").write_text("a file", encoding="utf-8")
    assert run(cli, ["check"]).exit_code == 1
    Path("recollect.toml").write_text("[embedder]\nkind = 'some'\n", encoding="utf-8")
    assert run(cli, ["check"]).exit_code == 2


def modes(data_dir: Path, folder: int, database: int) -> None:
    """Let others in, or keep them out."""
    data_dir.chmod(folder)
    (data_dir / DATABASE_NAME).chmod(database)


async def test_files_that_others_can_read_are_named_with_the_cure(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("hello")
    settings = Settings(data_dir=data_dir)
    modes(data_dir, 0o700, 0o600)
    assert premises.look_at_readers(settings) == []
    database = data_dir / DATABASE_NAME
    modes(data_dir, 0o755, 0o644)
    found = premises.look_at_readers(settings)
    assert [finding.fix for finding in found] == [f"chmod 700 {data_dir}", f"chmod 600 {database}"]


@pytest.mark.parametrize(("free", "level"), [(10**7, "fail"), (10**8, "warn"), (10**10, "ok")])
def test_a_full_disk_is_told_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, level: str) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))
    assert premises.look_at_disk(tmp_path / "not" / "there").level == level


def test_a_log_that_cannot_be_written_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert premises.look_at_log(tmp_path).level == "ok"
    (tmp_path / FILE).mkdir()
    assert premises.look_at_log(tmp_path).level == "fail"
    (tmp_path / FILE).rmdir()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert premises.look_at_log(tmp_path).level == "fail"


async def test_the_age_of_backups_is_told_by_what_the_settings_want(data_dir: Path, clock: Clock) -> None:
    by_hand = Settings(data_dir=data_dir)
    by_itself = Settings.model_validate({"data_dir": data_dir, "backup": {"every_hours": 24.0}})
    assert premises.look_at_backups(by_hand, now=clock()) == []
    async with talking(data_dir, clock) as talk:
        await talk.say("hello")
    (none,) = premises.look_at_backups(by_hand, now=clock())
    assert (none.level, "every_hours = 24" in none.fix) == ("warn", True)
    made = backups.take(data_dir / DATABASE_NAME, data_dir / "backups" / backups.name_at(clock()), now=clock())
    for settings, days, level in [
        (by_hand, 0, "ok"), (by_hand, 8, "warn"), (by_itself, 1, "ok"), (by_itself, 3, "warn"), (by_hand, -3, "warn"),
    ]:  # fmt: skip
        (finding,) = premises.look_at_backups(settings, now=clock() + timedelta(days=days))
        assert finding.level == level, finding
    made.path.write_bytes(b"torn")
    (finding,) = premises.look_at_backups(by_hand, now=clock())
    assert finding.level == "fail"
    assert "checksum" in finding.fix
