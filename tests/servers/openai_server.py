"""A scripted OpenAI-compatible endpoint on loopback that answers by content, records and is strict.

    async with OpenAIServer() as server:
        server.on("allerg|过敏", reply="Birch pollen.", when_prompt_contains="对花粉过敏")
        server.fault(match="/chat/completions", status=429, headers={"Retry-After": "0"})
        server.embed_with(lambda text: [1.0, 0.0])
        ...                                  # point a client at server.base_url
        assert "花粉" in server.chats[-1].prompt

A request that nothing was scripted for answers 400 (a 500 would be retried and look like a hang) and
fails the test when the server is left. Pictures are refused as models without eyes do it, unless ``sees``.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from aiohttp import web

FOREVER = 1_000_000_000
PIECE = 3
"""Characters in one delta of a streamed reply; small, so that whatever spans deltas is exercised."""

BEGINNINGS = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}
"""How pictures begin, by type; other types are refused."""

EmbedFunction = Callable[[str], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived. ``body`` is the decoded JSON, an empty dict for a GET."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of a chat request."""
        return list(self.body.get("messages", []))

    @property
    def prompt(self) -> str:
        """The words of every message, one "role: content" a line."""
        return "\n".join(f"{message['role']}: {words_of(message['content'])}" for message in self.messages)

    @property
    def last_user(self) -> str:
        """The newest message of a person."""
        users = [words_of(message["content"]) for message in self.messages if message["role"] == "user"]
        return users[-1] if users else ""

    @property
    def pictures(self) -> list[tuple[str, bytes]]:
        """Type and content of every picture. Raises ValueError for one that is none."""
        parts = (part for message in self.messages for part in parts_of(message["content"]))
        return [picture(part["image_url"]["url"]) for part in parts if part["type"] == "image_url"]


def parts_of(content: Any) -> list[dict[str, Any]]:
    """Return the parts of a message's content. Raises ValueError for what OpenAI's API has no name for."""
    match content:
        case str():
            return [{"type": "text", "text": content}]
        case [_, *_]:
            for part in content:
                match part:
                    case {"type": "text", "text": str(text), **rest} if text and not rest:
                        pass
                    case {"type": "image_url", "image_url": {"url": str(), **options}, **rest} if not options | rest:
                        pass
                    case _:
                        raise ValueError(f"no content part: {part}")
            return list(content)
        case _:
            raise ValueError(f"no content: {content!r}")


def words_of(content: object) -> str:
    """Return the words of a message's content."""
    return "\n".join(part["text"] for part in parts_of(content) if part["type"] == "text")


def picture(url: str) -> tuple[str, bytes]:
    """Return type and content of a data URL. Raises ValueError when its content is not what it claims."""
    head, _, data = url.partition(",")
    claim = re.fullmatch(r"data:(image/\w+);base64", head)
    content = base64.b64decode(data, validate=True)
    if claim is None or not content.startswith(BEGINNINGS.get(claim[1], b"\0")):
        raise ValueError(f"not the picture it claims to be: {head}")
    return claim[1], content


@dataclass(slots=True)
class Fault:
    """Something that goes wrong; consulted before any scripted answer, in order, ``times`` times.

    ``match`` is searched in "path body-as-JSON". Without a ``status`` the fault is only its ``delay``
    (seconds) and the request goes on to its answer. A ``body`` that is no string is sent as JSON.
    ``drop`` breaks the connection, ``hang`` never answers.
    """

    match: str = ""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = ""
    delay: float = 0.0
    drop: bool = False
    hang: bool = False
    times: int = 1


class How(TypedDict, total=False):
    """How an answer is given, besides its words."""

    finish: str
    """finish_reason; "stop" unless said otherwise."""
    cut: bool
    """The stream ends cleanly after the words, without a finish_reason."""
    drop: bool
    """The connection breaks after the words."""
    stall: bool
    """Nothing follows the words, and the connection stays open."""
    hold: asyncio.Event
    """The answer waits for this event."""
    pause: float
    """Seconds before each event."""
    reasoning: str
    """Sent as reasoning_content before the words."""
    chunks: Sequence[str]
    """Raw data of the event lines, in place of all that would be made of the reply."""


@dataclass(slots=True)
class Rule:
    """A scripted answer: to a last user message that ``pattern`` is found in."""

    pattern: re.Pattern[str]
    reply: str | Callable[[Request], str]
    needles: tuple[str, ...]
    times: int
    how: How

    def fits(self, request: Request) -> bool:
        """Whether this rule answers the request."""
        return (
            self.times > 0
            and self.pattern.search(request.last_user) is not None
            and all(needle in request.prompt for needle in self.needles)
        )


@dataclass(slots=True)
class Embeddings:
    """How /embeddings answers."""

    function: EmbedFunction
    batch_limit: int
    length_limit: int
    reverse: bool
    drop_last: bool


class OpenAIServer:
    """The endpoint. Use as an asynchronous context manager."""

    def __init__(
        self,
        *,
        models: Sequence[str] = ("scripted",),
        faults: Iterable[Mapping[str, Any]] = (),
        sees: bool = False,
    ) -> None:
        self.models = list(models)
        self.sees = sees
        self.requests: list[Request] = []
        self.unmatched: list[str] = []
        self.port = 0
        self._faults = [Fault(**row) for row in faults]
        self._rules: list[Rule] = []
        self._embeddings: Embeddings | None = None
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None

    @property
    def root(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """What OPENAI_BASE_URL would be."""
        return f"{self.root}/v1"

    @property
    def chats(self) -> list[Request]:
        """The chat requests, oldest first."""
        return [request for request in self.requests if request.path.endswith("/chat/completions")]

    @property
    def embedding_requests(self) -> list[Request]:
        """The embedding requests, oldest first."""
        return [request for request in self.requests if request.path.endswith("/embeddings")]

    def on(
        self,
        pattern: str = "",
        *,
        reply: str | Callable[[Request], str] = "",
        when_prompt_contains: str | Sequence[str] = (),
        times: int = FOREVER,
        **how: Unpack[How],
    ) -> None:
        """Answer a chat whose last user message matches ``pattern`` and whose prompt holds every needle.

        The first rule that fits answers; it leaves after ``times`` answers.
        """
        needles = (when_prompt_contains,) if isinstance(when_prompt_contains, str) else when_prompt_contains
        self._rules.append(Rule(re.compile(pattern, re.DOTALL), reply, tuple(needles), times, how))

    def fault(self, **row: Any) -> None:
        """Append a fault; the keys are the fields of :class:`Fault`."""
        self._faults.append(Fault(**row))

    def mend(self) -> None:
        """Nothing goes wrong from now on."""
        self._faults.clear()

    def embed_with(
        self,
        function: EmbedFunction,
        *,
        batch_limit: int = FOREVER,
        length_limit: int = FOREVER,
        reverse: bool = False,
        drop_last: bool = False,
    ) -> None:
        """Serve /embeddings; more texts or characters than the limits, or a blank text, are refused with 400.

        ``reverse`` turns the order of the items round (the index stays right), ``drop_last`` loses one.
        """
        self._embeddings = Embeddings(function, batch_limit, length_limit, reverse, drop_last)

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{tail:.*}", self._serve)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        if self._runner is not None:
            await self._runner.cleanup()
        if kind is None and self.unmatched:
            raise AssertionError("nothing was scripted for:\n" + "\n---\n".join(self.unmatched))

    async def _serve(self, raw: web.Request) -> web.StreamResponse:
        text = await raw.text()
        request = Request(raw.path, dict(raw.headers), json.loads(text) if text else {})
        self.requests.append(request)
        faulty = await self._fail(raw, request)
        if faulty is not None:
            return faulty
        match raw.path:
            case "/v1/chat/completions":
                return await self._chat(raw, request)
            case "/v1/embeddings":
                return self._embed(request)
            case "/v1/models":
                return web.json_response({"object": "list", "data": [{"id": name} for name in self.models]})
            case _:
                return self._refuse_unmatched(f"{raw.method} {raw.path}")

    async def _fail(self, raw: web.Request, request: Request) -> web.StreamResponse | None:
        haystack = f"{request.path} {json.dumps(request.body, ensure_ascii=False)}"
        due = (fault for fault in self._faults if fault.times > 0 and re.search(fault.match, haystack))
        fault = next(due, None)
        if fault is None:
            return None
        fault.times -= 1
        await asyncio.sleep(fault.delay)
        if fault.hang:
            await self._closing.wait()
        if fault.drop:
            _break(raw)
        if fault.status is None:
            return web.Response(status=204) if fault.hang or fault.drop else None
        if isinstance(fault.body, str):
            return web.Response(status=fault.status, headers=fault.headers, text=fault.body)
        return web.json_response(fault.body, status=fault.status, headers=fault.headers)

    def _refuse_unmatched(self, what: str) -> web.Response:
        self.unmatched.append(what)
        return _refusal(f"no scripted answer for: {what}")

    async def _chat(self, raw: web.Request, request: Request) -> web.StreamResponse:
        try:
            pictures = request.pictures
        except ValueError as error:
            return self._refuse_unmatched(str(error))
        if pictures and not self.sees:
            return _refusal("Invalid content type. image_url is only supported by certain models.")
        rule = next((rule for rule in self._rules if rule.fits(request)), None)
        if rule is None:
            return self._refuse_unmatched(request.prompt)
        rule.times -= 1
        if (hold := rule.how.get("hold")) is not None:
            await hold.wait()
        words = rule.reply if isinstance(rule.reply, str) else rule.reply(request)
        if not request.body.get("stream"):
            return web.json_response(_completion(words, request, rule.how))
        return await self._stream(raw, _events(words, request, rule.how), rule.how)

    async def _stream(self, raw: web.Request, events: Sequence[str], how: How) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(raw)
        for event in events:
            await asyncio.sleep(how.get("pause", 0.0))
            await response.write(f"data: {event}\n\n".encode())
        if how.get("stall"):
            await self._closing.wait()
        if how.get("drop"):
            _break(raw)
        return response

    def _embed(self, request: Request) -> web.Response:
        if self._embeddings is None:
            return self._refuse_unmatched(f"/embeddings {request.body}")
        how, texts = self._embeddings, request.body["input"]
        if len(texts) > how.batch_limit:
            return _refusal(f"batch size is invalid, it should not be larger than {how.batch_limit}")
        if any(not text.strip() for text in texts):
            return _refusal("input cannot be an empty string")
        if any(len(text) > how.length_limit for text in texts):
            return _refusal(f"input is longer than {how.length_limit} characters")
        rows = [
            {"object": "embedding", "index": index, "embedding": list(how.function(text))}
            for index, text in enumerate(texts)
        ]
        rows = rows[:-1] if how.drop_last else rows
        data = rows[::-1] if how.reverse else rows
        usage = {"prompt_tokens": sum(map(len, texts)), "total_tokens": sum(map(len, texts))}
        return web.json_response({"object": "list", "model": "scripted", "data": data, "usage": usage})


def _break(raw: web.Request) -> None:
    assert raw.transport is not None
    raw.transport.abort()


def _refusal(message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "invalid_request_error"}}, status=400)


def _usage(words: str, request: Request) -> dict[str, int]:
    return {
        "prompt_tokens": len(request.prompt),
        "completion_tokens": len(words),
        "total_tokens": len(request.prompt) + len(words),
    }


def _completion(words: str, request: Request, how: How) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": words}
    if reasoning := how.get("reasoning"):
        message["reasoning_content"] = reasoning
    finish = None if how.get("cut") else how.get("finish", "stop")
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": request.body.get("model", ""),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": _usage(words, request),
    }


def _events(words: str, request: Request, how: How) -> list[str]:
    broken = how.get("cut") or how.get("drop") or how.get("stall")
    if "chunks" in how:
        return [*how["chunks"], *([] if broken else ["[DONE]"])]
    events = [_delta({"role": "assistant"})]
    if reasoning := how.get("reasoning"):
        events.append(_delta({"reasoning_content": reasoning}))
    events += [_delta({"content": words[at : at + PIECE]}) for at in range(0, len(words), PIECE)]
    if broken:
        return events
    events.append(_delta({}, how.get("finish", "stop")))
    if (request.body.get("stream_options") or {}).get("include_usage"):
        events.append(json.dumps({"choices": [], "usage": _usage(words, request)}))
    return [*events, "[DONE]"]


def _delta(delta: Mapping[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]})
