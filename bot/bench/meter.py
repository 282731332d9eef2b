"""An OpenAI-compatible endpoint on this machine that answers by script and counts what it is asked for."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from aiohttp import web

from bot.bench.people import drawn
from bot.bench.proposals import ScriptedModel, is_distillation
from bot.tokens import MESSAGE_TOKENS
from memory.ports import TokenCounter

Purpose = Literal["reply", "distillation", "reconciliation", "question", "embedding"]
"""What a request is for: "question" is the vector of what was just asked, "embedding" those of what is kept."""

_REPLY: Final = "Thank you for telling me, this is answer {}. I am glad to help with anything that comes of it."
"""No two the same, for a text that is known already costs no vector."""
_WIDTH: Final = 64
"""Numbers kept of a drawn vector; what they are does not matter here."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request: what for, how many texts it carried, and its tokens in both directions."""

    purpose: Purpose
    texts: int
    tokens_in: int
    tokens_out: int = 0


class Meter:
    """Answers whoever talks, distillations by ``model``, and embeds; ``calls`` are the requests so far.

    ``told`` are the messages of people, by which the vector of a question is told from those of what is kept.
    """

    def __init__(self, model: ScriptedModel, told: Collection[str], count: TokenCounter) -> None:
        self.calls: list[Call] = []
        self.base_url = ""
        self._model = model
        self._told = frozenset(told)
        self._count = count

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer a chat request, as the stream the bot asks for."""
        body = await request.json()
        messages = body["messages"]
        purpose, text = await self._answer(messages, _schema(body))
        tokens_in = sum(self._count(message["content"]) + MESSAGE_TOKENS for message in messages)
        tokens_out = self._count(text)
        self.calls.append(Call(purpose, 1, tokens_in, tokens_out))
        return await _streamed(request, text, tokens_in, tokens_out)

    async def embed(self, request: web.Request) -> web.Response:
        """Embed texts."""
        texts = (await request.json())["input"]
        tokens = sum(map(self._count, texts))
        purpose: Purpose = "question" if len(texts) == 1 and texts[0].splitlines()[-1] in self._told else "embedding"
        self.calls.append(Call(purpose, len(texts), tokens))
        rows = [{"index": at, "embedding": drawn(text)[:_WIDTH].tolist()} for at, text in enumerate(texts)]
        return web.json_response({"data": rows, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})

    async def _answer(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None
    ) -> tuple[Purpose, str]:
        if schema is None:
            return "reply", _REPLY.format(len(self.calls))
        completion = await self._model.complete(messages, schema=schema, max_tokens=0)
        return "distillation" if is_distillation(schema) else "reconciliation", completion.text


def _schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The form an answer has to take, None for plain talk."""
    schema: Mapping[str, Any] | None = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return schema


async def _streamed(request: web.Request, text: str, tokens_in: int, tokens_out: int) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    shared = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
    for event in (
        shared | {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]},
        shared | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        shared | {"choices": [], "usage": usage},
    ):
        await response.write(f"data: {json.dumps(event)}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    return response


@contextlib.asynccontextmanager
async def serving(meter: Meter) -> AsyncIterator[Meter]:
    """Serve ``meter`` at its ``base_url`` on a free port of this machine."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", meter.chat)
    app.router.add_post("/v1/embeddings", meter.embed)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        meter.base_url = f"http://{host}:{port}/v1"
        yield meter
    finally:
        await runner.cleanup()
