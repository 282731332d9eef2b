"""What ``bot run`` serves, watched from outside from its start to its stop: its pages, its status, its log."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from bot import app, logs, status
from config.settings import AccessSettings, EmbedderSettings, HttpSettings, LogSettings, Settings, TelegramSettings
from tests.servers.telegram_server import TelegramServer


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(app, "keep_out_of_collections", lambda: None)
    yield
    logging.basicConfig(level=logging.WARNING, handlers=[logging.NullHandler()], force=True)


def chosen(data_dir: Path, telegram: TelegramServer) -> Settings:
    """A bot on Telegram's double, for everybody, with pages on a port that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return Settings(
        data_dir=data_dir,
        telegram_bot_token=SecretStr(telegram.token),
        telegram=TelegramSettings(base_url=telegram.base_url),
        embedder=EmbedderSettings(kind="none"),
        access=AccessSettings(open="everybody"),
        http=HttpSettings(port=port),
        log=LogSettings(format="json"),
    )


async def page(settings: Settings, name: str, *, until: int) -> httpx2.Response:
    """A page, asked for again until it answers with that status."""
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{settings.http.port}", trust_env=False) as client:
        while True:
            try:
                answer = await client.get(name)
            except httpx2.TransportError:
                answer = None
            if answer is not None and answer.status_code == until:
                return answer
            await asyncio.sleep(0.05)


def told(settings: Settings) -> dict[str, Any]:
    """What status tells."""
    return status.report(settings, now=datetime.now(UTC))


async def test_a_running_bot_is_watched_from_start_to_stop(data_dir: Path) -> None:
    async with TelegramServer() as telegram:
        settings = chosen(data_dir, telegram)
        logs.start(data_dir, secrets=[], how=settings.log)
        running = asyncio.create_task(app.run(settings))
        ready = await page(settings, "/readyz", until=200)
        assert ready.json() == {"ready": True, "database": True, "platform_telegram": True}
        assert (await page(settings, "/healthz", until=200)).json() == {"alive": True}
        # Said today: housekeeping is awake, and takes away what is older than [journal] keep_days.
        telegram.say(1001, "I am allergic to tamarind", date=int(datetime.now(UTC).timestamp()))
        await telegram.until(lambda: bool(telegram.sent("sendMessage")), 30.0)
        measured = (await page(settings, "/metrics", until=200)).text
        assert 'recollect_written_total{store="profile"} 1.0' in measured
        assert "recollect_connected_telegram 1.0" in measured
        # The value of a sample may be any number: it names nobody.
        assert "1001" not in re.sub(r" [0-9.e+-]+$", "", measured, flags=re.MULTILINE)
        assert (told(settings)["running"], told(settings)["people"]) == (True, 1)
        async with telegram.outage():
            assert (await page(settings, "/readyz", until=503)).json()["platform_telegram"] is False
        await page(settings, "/readyz", until=200)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await running == 0
    assert told(settings)["running"] is False
    log = await asyncio.to_thread((data_dir / logs.FILE).read_text, "utf-8")
    (answered,) = [line for line in map(json.loads, log.splitlines()) if line["event"] == "answered"]
    assert len(answered["turn"]) == 8
    assert "tamarind" not in log
