"""Model servers of this machine, found or not; never an error."""

from __future__ import annotations

import socket
import time

from bot.discovery import SECONDS, Found, find
from tests.servers.openai_server import OpenAIServer


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_servers_that_list_models_are_found_and_the_rest_is_not_there() -> None:
    async with OpenAIServer(models=["qwen3:8b"]) as one, OpenAIServer(models=[]) as empty, OpenAIServer() as page:
        page.fault(status=200, body="<html>", headers={"Content-Type": "text/html"})
        ports = [("Ollama", one.port), ("nobody", closed_port()), ("web page", page.port), ("idle", empty.port)]
        found = await find(ports)
    assert found == [Found("Ollama", one.base_url, ("qwen3:8b",)), Found("idle", empty.base_url, ())]


async def test_silent_servers_cost_one_wait_together() -> None:
    async with OpenAIServer() as one, OpenAIServer() as two:
        for server in (one, two):
            server.fault(hang=True)
        begin = time.perf_counter()
        assert await find([("a", one.port), ("b", two.port)]) == []
    assert time.perf_counter() - begin < 2 * SECONDS
