"""The chat model behind any OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Literal, Self

from bot.answer import Finish, Outcome, Reading
from bot.connection import FAILURES, Connection, Events, Opened, tell
from bot.dialect import Dialect, response_format
from bot.endpoint import (
    ContextTooLong,
    LLMError,
    PicturesRefused,
    normalise_base_url,
    picture_refusal,
)
from bot.media import Content, Picture, as_content
from bot.text import clean
from config.settings import ModelSettings
from memory.ports import CompleterResting, CompleterUnavailable, Completion

__all__ = [
    "LLM",
    "Connection",
    "ContextTooLong",
    "Finish",
    "LLMError",
    "Outcome",
    "PicturesRefused",
    "Stream",
    "normalise_base_url",
]

Messages = Sequence[Mapping[str, Content]]
Explain = Callable[[Exception], LLMError]

TAIL_SECONDS: Final = 2.0
"""Longest wait for what may follow the end of an answer (the token count)."""
MOST_SILENCES: Final = 10
"""Times the longest silence: the time of a whole answer. A slow machine writes 1,000 tokens in that; one that drips
word by word, each within the silence, holds nobody for hours."""
_PROBE_TOKENS: Final = 512
"""Room for the answer to a probe; some models think aloud before they say yes."""
_PROBE_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
_PROBE_PICTURE: Final = Picture(
    "image/png",
    b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PQQkAAAgAsetfWiP4FgYrsKZeS0BAQEBAQEBAQEBAQEBAQEBAQEBA"
        "QEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEDgsqnc8OJg6Ln3AAAAAElFTkSuQmCC"
    ),
    "red.png",
)
"""A red square of 64 by 64; some models refuse pictures of a few pixels."""
_FINISHES: Final[dict[Finish, Literal["stop", "length", "other"]]] = {"stop": "stop", "length": "length"}

_END: Final = object()

log = logging.getLogger(__name__)


class Stream:
    """The visible answer as it grows.

    Iterating yields frames, none of them empty: each is the whole visible text so far and replaces the
    one before, for what was shown may turn out to be thinking. The request is made by the first step.
    However a begun answer ends, the iteration ends with it and ``outcome`` tells how; LLMError is
    raised when nothing visible came of it. Use it as a context manager, or ``aclose`` it when leaving early.
    """

    def __init__(self, opening: Callable[[], Awaitable[Opened]], explain: Explain, silence: float) -> None:
        self._opening = opening
        self._explain = explain
        self._silence = silence
        self._until = 0.0
        self._reading = Reading()
        self._outcome: Outcome | None = None
        self._frames = self._grow()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        return await anext(self._frames)

    async def aclose(self) -> None:
        """Stop the answer and let go of the connection."""
        await self._frames.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def outcome(self) -> Outcome:
        """How the answer ended; "cut" as long as it has not."""
        return self._outcome or Outcome(self._reading.visible, "cut")

    async def _grow(self) -> AsyncGenerator[str, None]:
        opened = await self._opening()
        self._until = asyncio.get_running_loop().time() + MOST_SILENCES * self._silence
        problem: LLMError | None = None
        shown = ""
        try:
            async for event in self._events(opened.events):
                first = not self._reading.begun
                self._reading.take(event)
                if first:
                    opened.ticket.answered()
                frame = self._reading.visible
                if frame and frame != shown:
                    yield frame
                    shown = frame
                if self._reading.overflows:
                    break
        except (*FAILURES, LLMError) as error:
            known = self._explain(error)
            if not self._reading.begun:
                tell(opened.ticket, known)
            problem = None if self._reading.finished else known
        finally:
            opened.ticket.leave()
            await opened.events.close()
        self._outcome = self._reading.outcome(problem)

    async def _events(self, events: Events) -> AsyncIterator[object]:
        media_type = events.response.headers.get("content-type", "").lower()
        if "json" in media_type:
            async with asyncio.timeout(self._silence):
                body = await events.response.aread()
            yield json.loads(body)
        elif "html" in media_type:
            raise LLMError("bad_answer", "a web page")
        else:
            while True:
                async with asyncio.timeout_at(self._patience()):
                    event = await anext(events, _END)
                if event is _END:
                    return
                yield event

    def _patience(self) -> float:
        """Until when the next event is waited for, by the loop's time."""
        now = asyncio.get_running_loop().time()
        return min(self._until, now + (TAIL_SECONDS if self._reading.finished else self._silence))


class LLM:
    """One model at one endpoint; a ``memory.ports.Completer`` as well.

    ``ticks`` gives seconds that only ever grow. Raises ValueError for an unusable address or key, with the
    setting's name.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        model: str,
        settings: ModelSettings,
        *,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self._settings = settings
        self._dialect = Dialect()
        self._connection = Connection(
            base_url, api_key, timeout=settings.timeout_seconds, retries=settings.retries, ticks=ticks
        )

    @property
    def resting(self) -> bool:
        """Whether the endpoint failed again and again and is not asked for a while."""
        return self._connection.circuit.resting

    @property
    def base_url(self) -> str:
        """The address in use."""
        return self._connection.base_url

    def stream(self, messages: Messages, *, max_tokens: int, whose: Hashable = None) -> Stream:
        """Answer ``messages`` (role and content each) in at most ``max_tokens`` tokens, for ``whose`` sake.

        The stream raises PicturesRefused when there were pictures and the endpoint may want none.
        """
        return self._stream(messages, {}, max_tokens, whose)

    async def complete(
        self,
        messages: Messages,
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int,
    ) -> Completion:
        """Answer in one piece, as JSON of ``schema`` where the endpoint can; see ``memory.ports.Completer``.

        Where it cannot, the prompt alone must ask for the form. ``tokens`` counts both directions.
        Raises CompleterUnavailable, CompleterResting when it was not even asked.
        """
        try:
            outcome = await self._complete(messages, schema, max_tokens)
        except LLMError as error:
            raise (CompleterResting if error.kind == "resting" else CompleterUnavailable)(str(error)) from error
        tokens_in, tokens_out = outcome.tokens_in or 0, outcome.tokens_out or 0
        finish = _FINISHES.get(outcome.finish, "other")
        return Completion(outcome.text, finish, tokens_in + tokens_out, tokens_in, tokens_out)

    async def models(self) -> list[str]:
        """Return the names of the models the endpoint serves. Raises LLMError."""
        match await self._connection.get("/models"):
            case {"data": [*rows]}:
                return [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
            case {"data": None}:
                return []
            case other:
                raise self._connection.explain(LLMError("bad_answer", repr(other)))

    async def probe_json(self) -> bool:
        """Whether the model answers in JSON when asked to. Raises LLMError when it does not answer at all."""
        question = 'Answer with the JSON object {"ok": true} and nothing else.'
        outcome = await self._complete([{"role": "user", "content": question}], _PROBE_SCHEMA, _PROBE_TOKENS)
        try:
            return isinstance(json.loads(outcome.text), dict)
        except ValueError:
            return False

    async def probe_images(self) -> bool:
        """Whether the model sees the colour of a picture. Raises PicturesRefused or another LLMError."""
        question = "Which colour is this picture? Answer with one English word."
        outcome = await self._complete(
            [{"role": "user", "content": as_content(question, [_PROBE_PICTURE])}], None, _PROBE_TOKENS
        )
        return "red" in outcome.text.lower()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _stream(self, messages: Messages, extra: Mapping[str, Any], max_tokens: int, whose: Hashable = None) -> Stream:
        fields = {
            "model": self.model,
            "messages": [{name: _sendable(content) for name, content in message.items()} for message in messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            **({} if self._settings.temperature is None else {"temperature": self._settings.temperature}),
            **extra,
        }
        pictured = any(isinstance(message["content"], list) for message in messages)
        explain = self._explain_pictured if pictured else self._connection.explain
        caller = str(messages[-1]["content"]) if whose is None else whose
        return Stream(lambda: self._open(fields, max_tokens, explain, caller), explain, self._settings.timeout_seconds)

    def _explain_pictured(self, error: Exception) -> LLMError:
        return picture_refusal(self._connection.explain(error))

    async def _open(self, fields: Mapping[str, Any], max_tokens: int, explain: Explain, whose: Hashable) -> Opened:
        while True:
            body = self._dialect.phrase(fields, max_tokens=max_tokens)
            try:
                return await self._connection.open("/chat/completions", body, whose=whose)
            except LLMError as refusal:
                if not self._dialect.learn(refusal, body):
                    raise explain(refusal) from None
                log.info("the endpoint refused part of the request, going on without: %s", refusal)

    async def _complete(self, messages: Messages, schema: Mapping[str, Any] | None, max_tokens: int) -> Outcome:
        if schema is None:
            return await _drain(self._stream(messages, {}, max_tokens))
        forms = self._dialect.json_forms()
        for form in forms:
            stream = self._stream(messages, response_format(form, schema), max_tokens)
            try:
                outcome = await _drain(stream)
            except LLMError as refusal:
                if form == forms[-1] or refusal.kind != "refused" or refusal.status is None:
                    raise
                log.info("the endpoint refused to answer as %s: %s", form, refusal)
            else:
                self._dialect.keep_json_form(form)
                return outcome
        raise AssertionError("the last form either answers or raises")


def _sendable(content: Content) -> Content:
    """A content whose words the SDK can encode."""
    if isinstance(content, str):
        return clean(content)
    return [part | {"text": clean(part["text"])} if "text" in part else part for part in content]


async def _drain(stream: Stream) -> Outcome:
    async for _ in stream:
        pass
    return stream.outcome
