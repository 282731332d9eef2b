"""The documentation is complete and the same in both languages: what exists is named, or this is red."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import bot
from bot.cli import cli
from bot.commands import NAMES
from config.complaints import keys
from config.settings import Credentials, Settings

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.zh.md")


def text(name: str) -> str:
    """Return a document of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(markdown: str) -> list[str]:
    """Return the contents of the code blocks, in order; a talk ("text") is told in each language's own."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", markdown, re.DOTALL | re.MULTILINE)
    return [content for language, content in found if language != "text"]


def shape(markdown: str) -> list[str]:
    """Return what both languages must share: heading levels, list items, table rows by width, code blocks."""
    marks = r"^(#+ |- |\d\. |CODE$|\|.*)"
    bare = re.sub(r"^```.*?^```$", "CODE", markdown, flags=re.DOTALL | re.MULTILINE)
    return [f"|{mark.count('|')}" if mark[0] == "|" else mark for mark in re.findall(marks, bare, re.MULTILINE)]


@pytest.mark.parametrize("name", READMES)
def test_the_first_code_block_is_two_whole_commands(name: str) -> None:
    lines = blocks(text(name))[0].splitlines()
    assert len(lines) == 2
    for line, lock, does in zip(
        lines, ("constraints.txt", "constraints-dev.txt"), ("bot chat", "pytest -n auto"), strict=True
    ):
        assert line == (f"python3 -m venv .venv && .venv/bin/pip install -qqr {lock} && .venv/bin/python -m {does}")


def test_both_readmes_have_the_same_shape_and_the_same_code() -> None:
    english, chinese = map(text, READMES)
    assert shape(english) == shape(chinese)
    assert blocks(english) == blocks(chinese)


@pytest.mark.parametrize("name", READMES)
def test_every_setting_is_in_the_readme_with_its_default(name: str) -> None:
    document = text(name)
    table = ""
    rows: dict[tuple[str, str], str] = {}
    for found in re.finditer(r"^\| (?:`\[(\w+)\]`)? ?\| `(\w+)` \| (\S+) \|", document, re.MULTILINE):
        table = found[1] or table
        rows[table, found[2]] = found[3].strip("`")
    for section, key in keys(Settings):
        if key in Credentials.model_fields:
            assert f"`{key.upper()}`" in document
            continue
        table_model = type(getattr(Settings(), section)) if section else Settings
        default = table_model.model_fields[key].default
        shown = rows.pop((section, key))
        assert default is None or shown == json.dumps(default, default=str)
    assert rows == {}, "no longer settings"


@pytest.mark.parametrize("name", READMES)
def test_every_command_is_in_the_readme(name: str) -> None:
    document = text(name)
    chat = set(re.findall(r"^\| `/(\w+)", document, re.MULTILINE))
    assert chat == set(NAMES)
    terminal = {command.name or command.callback.__name__ for command in cli.registered_commands if command.callback}
    for group in cli.registered_groups:
        commands = group.typer_instance.registered_commands if group.typer_instance else []
        terminal |= {f"{group.name} {command.name}" for command in commands}
    assert len(terminal) == 26
    for command in terminal:
        assert re.search(rf"^\| `{command}\b", document, re.MULTILINE), command


@pytest.mark.parametrize("name", [*READMES, "CONTRIBUTING.md"])
def test_every_file_that_is_named_exists(name: str) -> None:
    named = re.findall(r"`((?:bot|memory|config|tests)/[\w./]*)`", text(name)) + re.findall(
        r"\]\((?!http)([^)]+)\)", text(name)
    )
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_prompt_is_named_in_contributing() -> None:
    prompts = {path.name.split(".")[0] for path in (ROOT / "config/prompts").glob("*.md")}
    assert prompts
    assert [prompt for prompt in prompts if f"- `{prompt}`:" not in text("CONTRIBUTING.md")] == []


def test_the_changelog_knows_this_version() -> None:
    assert f"## [{bot.__version__}]" in text("CHANGELOG.md") or "## [Unreleased]" in text("CHANGELOG.md")
