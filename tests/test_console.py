"""The terminal: piped lines, numbers for buttons, odd bytes, and the whole of it over two starts."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.adapters.console import ConsoleAdapter
from bot.commands import specs
from bot.message import Button, ChatRef, Incoming, Press, Reply, Sink, Update
from tests.conftest import Clock

ROOT = Path(__file__).parent.parent


async def nothing() -> Mapping[ChatRef, str]:
    """What was seen before: nothing."""
    return {}


class Echo:
    """Answers like a conversation does: later, from a task of its own."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.heard: list[Update] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def submit(self, update: Update, sink: Sink) -> None:
        self.heard.append(update)
        self.tasks.append(asyncio.create_task(self._answer(sink)))

    async def _answer(self, sink: Sink) -> None:
        reply = self.replies.pop(0)
        await sink.show(reply.text[:3])
        await sink.send(reply)
        await sink.done()


async def talk(clock: Clock, lines: str, *replies: Reply) -> tuple[Echo, str]:
    """Pipe lines in; return what was heard and what was printed."""
    echo, out = Echo(*replies), io.StringIO()
    console = ConsoleAdapter("me", now=clock, language="zh_CN", lines=io.StringIO(lines), out=out)
    await console.run(echo.submit, specs(), nothing)
    assert echo.replies == []
    return echo, out.getvalue()


async def test_piped_lines_are_answered_in_order_with_plain_lines(clock: Clock) -> None:
    echo, shown = await talk(clock, "one\ntwo\n", Reply("first"), Reply("second\nline"))
    assert shown == "first\nsecond\nline\n"
    first, second = echo.heard
    assert isinstance(first, Incoming)
    assert isinstance(second, Incoming)
    assert (first.text, first.chat, first.at, first.language) == ("one", ChatRef("console", "dm:me"), clock(), "zh_CN")
    assert first.message_id != second.message_id


async def test_a_typed_number_presses_the_button_it_stands_at(clock: Clock) -> None:
    buttons = (Button("forget:1:all", "Forget it"), Button("forget:1:no", "Keep"))
    echo, shown = await talk(clock, "/forget x\n2\n2\n", Reply("Sure?", buttons), Reply("Kept."), Reply("What?"))
    assert shown == "Sure?\n  [1] Forget it\n  [2] Keep\nKept.\nWhat?\n"
    assert [type(update) for update in echo.heard] == [Incoming, Press, Incoming]
    pressed = echo.heard[1]
    assert isinstance(pressed, Press)
    assert pressed.button_id == "forget:1:no"


@pytest.mark.parametrize("typed", ["3", "0", "-1", "1 ", "99999999999999999999", "one"])
async def test_what_is_no_number_of_a_button_is_a_message(clock: Clock, typed: str) -> None:
    buttons = (Button("a", "A"), Button("b", "B"))
    echo, _ = await talk(clock, f"/forget x\n{typed}\n", Reply("Sure?", buttons), Reply("ok"))
    assert type(echo.heard[1]) is (Press if typed == "1 " else Incoming)


@pytest.mark.parametrize("leave", ["/exit", "/quit", "  /exit  "])
async def test_leaving_ends_the_talk(clock: Clock, leave: str) -> None:
    echo, _ = await talk(clock, f"{leave}\nnever heard\n")
    assert echo.heard == []


async def test_a_notice_takes_no_buttons_away_and_is_shown_to_its_own_chat(clock: Clock) -> None:
    out = io.StringIO()
    console = ConsoleAdapter("me", now=clock, lines=io.StringIO("x\n1\n"), out=out)
    offered, echo = asyncio.Event(), Echo(Reply("Sure?", (Button("a", "A"),)), Reply("done"))

    async def submit(update: Update, sink: Sink) -> None:
        await echo.submit(update, sink)
        if not offered.is_set():
            await echo.tasks[0]
            await console.notify(ChatRef("console", "dm:me"), Reply("Erased."))
            await console.notify(ChatRef("console", "dm:other"), Reply("not for me"))
            offered.set()

    await console.run(submit, specs(), nothing)
    assert out.getvalue() == "Sure?\n  [1] A\nErased.\ndone\n"
    assert isinstance(echo.heard[1], Press)


async def test_signs_the_output_lacks_are_replaced(clock: Clock) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    console = ConsoleAdapter("me", now=clock, lines=io.StringIO("x\n"), out=out)
    await console.run(Echo(Reply("花 and \ud83d ok")).submit, specs(), nothing)
    assert raw.getvalue() == b"? and ? ok\n"


def start(folder: Path, lines: bytes, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run ``python -m bot chat`` in ``folder`` with these bytes on its standard input."""
    command = [sys.executable, "-m", "bot", "chat", "--user", "kim", *words]
    surroundings = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "TELEGRAM_", "DISCORD_", "PYTHONIOENCODING"))
    }
    surroundings |= {"PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"} | environment
    return subprocess.run(
        command, cwd=folder, input=lines, env=surroundings, capture_output=True, timeout=90, check=False
    )


def without_vectors(folder: Path) -> None:
    """Keep a start short: no bundled model."""
    (folder / "recollect.toml").write_text('[embedder]\nkind = "none"\n', encoding="utf-8")


def test_the_second_start_knows_what_was_said_in_the_first(tmp_path: Path) -> None:
    without_vectors(tmp_path)
    first = start(tmp_path, "我对花粉过敏\n".encode())
    assert (first.returncode, first.stderr) == (0, b"")
    assert first.stdout.decode().startswith("记下了：我对花粉过敏。\n")
    second = start(tmp_path, "我有什么过敏症状\n/forget 花粉\n1\n/whatdoyouknow\n/exit\n忽略\n".encode())
    assert second.returncode == 0
    shown = second.stdout.decode()
    assert "花粉" in shown.split("（还没有连接语言模型")[0]
    assert "  [1] 忘掉\n" in shown
    assert "已经立刻藏起来：1 条记忆" in shown
    assert "我还不知道你的任何事" in shown.rstrip().splitlines()[-1]
    assert (tmp_path / "data" / "recollect.db").exists()


def test_bytes_that_are_no_text_cost_a_letter_and_not_the_talk(tmp_path: Path) -> None:
    without_vectors(tmp_path)
    run = start(
        tmp_path, b"I live in Oslo\n\xff\xfe\x80 caf\xe9 \x00\x07\n\n/whatdoyouknow", PYTHONIOENCODING="ascii:strict"
    )
    assert run.returncode == 0
    shown = run.stdout.decode("ascii")
    assert shown.startswith("Noted: I live in Oslo.")
    assert "I got an empty message." in shown
    assert "I know 1 thing about you." in shown
    assert b"Traceback" not in run.stdout + run.stderr


def test_debug_prints_the_trace_of_each_turn_beside_the_talk(tmp_path: Path) -> None:
    without_vectors(tmp_path)
    run = start(tmp_path, b"I live in Oslo\n", "--debug")
    assert run.stdout.decode().startswith("Noted: I live in Oslo.")
    assert '"action": "added"' in run.stderr.decode()
