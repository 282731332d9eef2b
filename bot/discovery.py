"""Looks for a model server on this very machine, on the ports that the usual programs use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from bot.llm import LLM, LLMError
from config.settings import ModelSettings


@dataclass(frozen=True, slots=True)
class Found:
    """A server that answers: its usual name, its base URL and the models it serves (there may be none)."""

    name: str
    base_url: str
    models: tuple[str, ...]


USUAL_PORTS: Final = (("Ollama", 11_434), ("LM Studio", 1_234), ("llama.cpp", 8_080))
"""Name and default port of each program, best known first."""
SECONDS: Final = 0.5
"""Longest wait for each; a server on the same machine lists its models in a few milliseconds."""

_HASTY: Final = ModelSettings(timeout_seconds=SECONDS, retries=0)


async def find(ports: Sequence[tuple[str, int]] = USUAL_PORTS) -> list[Found]:
    """Ask every port at once and return the servers that list their models, in the order of ``ports``.

    Never raises: what does not answer, or answers something else, is not there.
    """
    async with AsyncExitStack() as stack:
        # All clients first: making one takes up to 0.1 s, which would count as waiting for the other servers.
        servers = [
            await stack.enter_async_context(LLM(f"http://127.0.0.1:{port}/v1", None, "", _HASTY)) for _, port in ports
        ]
        answers = await asyncio.gather(*(_ask(name, server) for (name, _), server in zip(ports, servers, strict=True)))
    return [found for found in answers if found is not None]


async def _ask(name: str, server: LLM) -> Found | None:
    try:
        return Found(name, server.base_url, tuple(await server.models()))
    except LLMError:
        return None
