"""The real ``bot run`` as a process, watched from outside: its pages, its status, its log."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import httpx2

from bot import logs
from tests.servers.telegram_server import TelegramServer

ROOT = Path(__file__).parent.parent
TOML = """
[http]
port = {port}
[log]
format = "json"
[telegram]
base_url = "{telegram}"
[embedder]
kind = "none"
"""


async def bot(folder: Path, *words: str) -> asyncio.subprocess.Process:
    """A command of the bot in a process of its own."""
    ours = ("OPENAI_", "TELEGRAM_", "DISCORD_", "RECOLLECT_")
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    surroundings |= {"PYTHONPATH": str(ROOT), "TELEGRAM_BOT_TOKEN": TelegramServer().token}
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot", *words, cwd=folder, env=surroundings, stdout=pipe, stderr=pipe
    )


async def status(folder: Path) -> dict[str, Any]:
    """What ``status --json`` prints."""
    process = await bot(folder, "status", "--json")
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    told: dict[str, Any] = json.loads(out)
    return told


async def page(port: int, name: str, *, until: int) -> httpx2.Response:
    """A page, asked for again until it answers with that status."""
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        while True:
            try:
                answer = await client.get(name)
            except httpx2.TransportError:
                await asyncio.sleep(0.1)
                continue
            if answer.status_code == until:
                return answer
            await asyncio.sleep(0.1)


async def test_a_running_bot_is_watched_from_start_to_stop(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with TelegramServer() as telegram:
        toml = TOML.format(port=port, telegram=telegram.base_url)
        await asyncio.to_thread((tmp_path / "recollect.toml").write_text, toml)
        running = await bot(tmp_path, "run")
        ready = await page(port, "/readyz", until=200)
        assert ready.json() == {"ready": True, "database": True, "platform_telegram": True}
        assert (await page(port, "/healthz", until=200)).json() == {"alive": True}
        telegram.say(1001, "I am allergic to tamarind")
        await telegram.until(lambda: bool(telegram.sent("sendMessage")), 30.0)
        measured = (await page(port, "/metrics", until=200)).text
        assert 'recollect_written_total{store="profile"} 1.0' in measured
        assert 'recollect_turns_total{outcome="answered"} 1.0' in measured
        assert "1001" not in measured
        told = await status(tmp_path)
        assert (told["running"], told["people"]) == (True, 1)
        async with telegram.outage():
            assert (await page(port, "/readyz", until=503)).json()["platform_telegram"] is False
        await page(port, "/readyz", until=200)
        running.send_signal(signal.SIGTERM)
        await running.communicate()
        assert running.returncode == 0
    assert (await status(tmp_path))["running"] is False
    log = await asyncio.to_thread((tmp_path / "data" / logs.FILE).read_text, "utf-8")
    (answered,) = [told for line in log.splitlines() if (told := json.loads(line))["event"] == "answered"]
    assert len(answered["turn"]) == 8
    assert "tamarind" not in log
