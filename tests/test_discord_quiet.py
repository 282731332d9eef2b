"""What the Discord adapter keeps out of the log: words of people, tokens of interactions, passwords of proxies."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Self
from unittest.mock import patch

import pytest
from discord.http import Route

from bot.adapters.discord import DiscordAdapter
from bot.message import Reply
from tests.conftest import Clock
from tests.discord_talk import (  # noqa: F401 - the fixtures
    MARA,
    Talk,
    discord_server,
    general_channel,
    new_talk,
    running_talk,
    talking,
)
from tests.servers.discord_server import DiscordServer, Place

PASSWORD = "hunter2pw"
LEAKS = (PASSWORD, b64encode(f"user:{PASSWORD}".encode()).decode())


@pytest.fixture
async def proxy() -> AsyncIterator[str]:
    """The address of a proxy that lets nobody through."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        yield f"http://user:{PASSWORD}@127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_proxy_that_refuses_the_login_is_named_by_its_status(
    proxy: str, caplog: pytest.LogCaptureFixture
) -> None:
    talk = new_talk("token")
    talk.adapter = DiscordAdapter("token", proxy, now=Clock(), tempo=talk.time.tempo)
    with patch.object(Route, "BASE", "https://127.0.0.1:9/api/v10"):
        run = asyncio.create_task(talk.run())
        await talk.time.let_pass(1.0)
        await talk.time.let_pass(2.0)
        run.cancel()
        await asyncio.wait({run})

    assert "ClientHttpProxyError 407" in caplog.text
    assert not any(leak in caplog.text for leak in LEAKS)


class Ear(logging.Handler):
    """Hears when something is logged."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words
        self._said = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if self._words in record.getMessage():
            self._said.set()

    async def __aenter__(self) -> Self:
        logging.getLogger().addHandler(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            async with asyncio.timeout(10):
                await self._said.wait()
        finally:
            logging.getLogger().removeHandler(self)


async def test_a_proxy_that_refuses_the_gateway_is_named_by_its_status(
    discord: DiscordServer, proxy: str, caplog: pytest.LogCaptureFixture
) -> None:
    with patch.object(DiscordServer, "_gateway_url", "wss://127.0.0.1:9/gateway"):
        async with talking(discord) as talk, Ear("Attempting a reconnect"):
            assert talk.adapter._client is not None
            talk.adapter._client.http.proxy = proxy
            await discord.gateway.close(1001)

    assert "ClientHttpProxyError 407" in caplog.text
    assert not any(leak in caplog.text for leak in LEAKS)


async def test_an_event_that_cannot_be_read_is_logged_without_its_words(
    discord: DiscordServer, talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    await discord.dispatch("MESSAGE_CREATE", {"id": "my secret diary", "channel_id": "1", "author": MARA.payload()})
    await discord.dispatch("INTERACTION_CREATE", {"id": "1", "type": 2, "token": "t", "data": "my secret diary"})
    await discord.say(MARA, "hi")
    await talk.message()

    assert "MESSAGE_CREATE that cannot be read: ValueError" in caplog.text
    assert "secret" not in caplog.text


async def test_what_breaks_while_an_event_is_dealt_with_is_logged_without_its_words(
    discord: DiscordServer, talk: Talk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    words = "my secret diary"
    monkeypatch.setattr("bot.adapters.discord.reading.incoming", lambda *_, **__: int(words))
    async with Ear("was not dealt with"):
        await discord.say(MARA, "hi")

    assert "event message was not dealt with: ValueError" in caplog.text
    assert "secret" not in caplog.text


async def test_no_words_and_no_token_are_logged_however_much_is_logged(
    discord: DiscordServer, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with talking(discord) as talk:
        await discord.say(MARA, "secret words")
        _, sink = await talk.message()
        await sink.send(Reply("secret answer"))
        used = await discord.slash(MARA, "forget", "a secret", place=place)
        _, sink = await talk.message()
        discord.fault("PATCH /webhooks", retry_after=0.01)
        await sink.send(Reply("secret list"))

    assert caplog.records
    assert "secret" not in caplog.text
    assert used.token not in caplog.text
    assert discord.token not in caplog.text
