"""The platform and the model of ``bench delivery``, in a process of their own: a strict Bot API and a stream."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Final

from aiohttp import web

from bot.bench.script import Fault, Script, Shown, answer, asked, frames, is_serial, question

TOKEN: Final = "123456789:bench-delivery-does-not-leave-127-0-0-1"  # noqa: S105 - opens nothing
MODEL: Final = "scripted"
_MAX_UNITS: Final = 4_096
_MAX_BATCH: Final = 100
_ME: Final = {"id": 123456789, "is_bot": True, "first_name": "Recollect", "username": "recollect_bot"}


@dataclass(frozen=True, slots=True)
class Report:
    """What stands in each chat at the end, and how often which request was refused or lost."""

    chats: Mapping[int, list[Shown]]
    troubles: Mapping[str, int]


class Doubles:
    """Both servers, running: ``base_url`` for Telegram, ``model_url`` for the model."""

    def __init__(self, base_url: str, pipe: Connection) -> None:
        self.base_url = base_url
        self.model_url = f"{base_url}/v1"
        self._pipe = pipe

    def report(self) -> Report:
        """What came of it; afterwards the servers are gone."""
        self._pipe.send(None)
        report = self._pipe.recv()
        assert isinstance(report, Report)
        return report


@contextmanager
def running(script: Script, *, now: int) -> Iterator[Doubles]:
    """Start the servers; ``now`` (Unix seconds) is when people write."""
    # Spawned, not forked: nothing of this process is in the other one.
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_main, args=(script, now, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        yield Doubles(ours.recv(), ours)
    finally:
        ours.close()
        process.join()


def _main(script: Script, now: int, pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end of the pipe ends this process
    with suppress(EOFError):
        asyncio.run(_serve(script, now, pipe))


async def _serve(script: Script, now: int, pipe: Connection) -> None:
    telegram = Telegram(script, now)
    model = Model(script, telegram)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", model.complete)
    app.router.add_post(f"/bot{TOKEN}/{{method}}", telegram.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=script.chats + 128).start()
        host, port = runner.addresses[0][:2]
        pipe.send(f"http://{host}:{port}")
        await asyncio.to_thread(pipe.recv)
        pipe.send(telegram.report())
    finally:
        await runner.cleanup()


class _Refusal(Exception):
    """A request that is not carried out. ``more`` are the response's parameters."""

    def __init__(self, status: int, description: str, **more: float) -> None:
        super().__init__(description)
        self.status = status
        self.more = more

    def response(self) -> web.Response:
        body = {"ok": False, "error_code": self.status, "description": str(self), "parameters": self.more}
        return web.json_response(body, status=self.status)


class _Swallowed(Exception):
    """A request that is answered and not carried out."""


@dataclass(slots=True)
class _Message:
    """A message of the bot."""

    chat: int
    text: str
    entities: list[dict[str, Any]]
    first: float
    last: float
    edits: int = 0

    @property
    def code(self) -> str:
        coded = self.text.encode("utf-16-le")
        spans = [(mark["offset"], mark["offset"] + mark["length"]) for mark in self.entities if mark["type"] == "pre"]
        return "".join(coded[2 * start : 2 * end].decode("utf-16-le") for start, end in spans)


@dataclass(slots=True)
class _Chat:
    """A chat: when it was first asked something, until when it takes nothing, and what was requested so far."""

    asked_at: float = 0.0
    closed_until: float = 0.0
    requests: Counter[str] = field(default_factory=Counter)


class Telegram:
    """The Bot API as far as the bot uses it. Each fault of the script happens once."""

    def __init__(self, script: Script, now: int) -> None:
        self._now = now
        self._script = script
        self._faults: dict[tuple[int, str, int], Fault] = {
            (fault.chat, fault.method, fault.nth): fault for fault in script.faults
        }
        self._chats = {number: _Chat() for number in script.numbers}
        self._messages: dict[int, _Message] = {}
        self._commands: dict[str, Any] = {}
        self._last_id = 0
        self._troubles: Counter[str] = Counter()
        self._begun = False
        self._updates: list[dict[str, Any]] = []
        self._arrived = asyncio.Event()

    def say(self, chat: int, number: int) -> None:
        """A person asks question ``number``."""
        person = {"id": chat, "first_name": f"Person {chat}"}
        self._last_id += 1
        message = {
            "message_id": self._last_id,
            "from": person | {"is_bot": False, "language_code": "en"},
            "chat": person | {"type": "private"},
            "date": self._now,
            "text": question(chat, number),
        }
        self._chats[chat].asked_at = self._chats[chat].asked_at or time.monotonic()
        self._updates.append({"update_id": self._last_id, "message": message})
        self._arrived.set()

    def report(self) -> Report:
        """What stands in each chat, in order."""
        chats: dict[int, list[Shown]] = {number: [] for number in self._chats}
        for _, message in sorted(self._messages.items()):
            since = self._chats[message.chat].asked_at
            shown = Shown(message.text, message.code, message.edits, message.first - since, message.last - since)
            chats[message.chat].append(shown)
        return Report(chats, dict(self._troubles))

    async def serve(self, request: web.Request) -> web.Response:
        """Answer one request of the bot."""
        method = request.match_info["method"]
        params = {name: _decoded(name, str(value)) for name, value in (await request.post()).items()}
        try:
            result = await self._result(method, params, request)
        except _Refusal as refusal:
            self._troubles[f"{method}: {refusal}"] += 1
            return refusal.response()
        return web.json_response({"ok": True, "result": result})

    async def _result(self, method: str, params: Mapping[str, Any], request: web.Request) -> Any:
        match method:
            case "getMe":
                return _ME
            case "getWebhookInfo":
                return {"url": "", "has_custom_certificate": False, "pending_update_count": len(self._updates)}
            case "deleteWebhook":
                return True
            case "getUpdates":
                return await self._fetch(params)
            case "getMyCommands":
                return self._commands.get(_menu(params), [])
            case "setMyCommands":
                self._commands[_menu(params)] = params["commands"]
                return True
            case "sendMessage" | "editMessageText" | "deleteMessage" | "sendChatAction":
                return self._in_chat(method, params, request)
            case _:
                raise _Refusal(404, "Not Found")

    async def _fetch(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Hold the poll until somebody writes; the first poll finds that everybody just has."""
        if not self._begun:
            self._begun = True
            for chat in self._script.numbers:
                for number in (1,) if is_serial(chat) else (1, 2):
                    self.say(chat, number)
        self._updates = [update for update in self._updates if update["update_id"] >= params.get("offset", 0)]
        if not self._updates:
            self._arrived.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), params.get("timeout", 0))
        return self._updates[: params.get("limit", _MAX_BATCH)]

    def _in_chat(self, method: str, params: Mapping[str, Any], request: web.Request) -> Any:
        number = params["chat_id"]
        chat = self._chats.get(number)
        if chat is None:
            raise _Refusal(400, "Bad Request: chat not found")
        chat.requests[method] += 1
        edited = self._messages.get(params.get("message_id", 0))
        if method == "editMessageText" and edited is not None:
            edited.edits += 1
        try:
            self._go_wrong(number, chat, method, request)
        except _Swallowed:
            assert edited is not None, "only an edit can be swallowed: a message needs an id"
            return self._payload(params["message_id"], edited)
        match method:
            case "sendMessage":
                return self._send(number, params)
            case "editMessageText":
                return self._edit(number, params)
            case "deleteMessage":
                self._own(number, params, "message to delete not found")
                del self._messages[params["message_id"]]
        return True

    def _go_wrong(self, number: int, chat: _Chat, method: str, request: web.Request) -> None:
        """Refuse what comes during a flood wait, and let the script's faults happen."""
        now = time.monotonic()
        if now < chat.closed_until:
            raise _flood(chat.closed_until - now, "during the wait of a flood")
        match self._faults.get((number, method, chat.requests[method])):
            case Fault(kind="flood", seconds=seconds):
                chat.closed_until = now + seconds
                raise _flood(seconds, "a flood")
            case Fault(kind="drop"):
                if request.transport is not None:
                    request.transport.abort()
                raise _Refusal(500, "dropped on the way")
            case Fault(kind="swallow"):
                raise _Swallowed

    def _send(self, number: int, params: Mapping[str, Any]) -> dict[str, Any]:
        text, entities = _checked(params)
        self._last_id += 1
        now = time.monotonic()
        message = self._messages[self._last_id] = _Message(number, text, entities, now, now)
        return self._payload(self._last_id, message)

    def _edit(self, number: int, params: Mapping[str, Any]) -> dict[str, Any]:
        message = self._own(number, params, "message to edit not found")
        text, entities = _checked(params)
        if (text, entities) == (message.text, message.entities):
            raise _Refusal(400, "Bad Request: message is not modified")
        message.text, message.entities, message.last = text, entities, time.monotonic()
        return self._payload(params["message_id"], message)

    def _own(self, number: int, params: Mapping[str, Any], missing: str) -> _Message:
        message = self._messages.get(params["message_id"])
        if message is None or message.chat != number:
            raise _Refusal(400, f"Bad Request: {missing}")
        return message

    def _payload(self, message_id: int, message: _Message) -> dict[str, Any]:
        chat = {"id": message.chat, "type": "private", "first_name": f"Person {message.chat}"}
        return {"message_id": message_id, "from": _ME, "chat": chat, "date": self._now, "text": message.text}


class Model:
    """An endpoint that knows the answers. A serial chat asks its second question in the middle of the first answer."""

    def __init__(self, script: Script, telegram: Telegram) -> None:
        self._script = script
        self._telegram = telegram

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Stream the answer to what a prompt ends with, frame by frame; 400 for any other request."""
        body = await request.json()
        try:
            chat, numbers = asked(body["messages"][-1]["content"])
        except ValueError as error:
            return web.json_response({"error": {"message": str(error), "type": "invalid_request_error"}}, status=400)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        begun = time.monotonic()
        for count, piece in enumerate(frames(answer(chat, numbers).markdown, self._script.frames)):
            # By the clock of the whole answer: what one frame loses the next one makes up.
            await asyncio.sleep(begun + count * self._script.frame_seconds - time.monotonic())
            if count == self._script.frames // 2 and is_serial(chat) and numbers == (1,):
                self._telegram.say(chat, 2)
            await response.write(_event({"content": piece}))
        await response.write(_event({}, finish="stop"))
        await response.write(b"data: [DONE]\n\n")
        return response


def _event(delta: Mapping[str, str], *, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": MODEL, "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


def _flood(seconds: float, why: str) -> _Refusal:
    # Whole seconds, as the platform counts; a flood of less than one is for tests, which have no time.
    wait = seconds if seconds < 1 else int(-(-seconds // 1))
    return _Refusal(429, f"Too Many Requests: {why}", retry_after=wait)


def _checked(params: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The text and entities of a request, as the platform takes them."""
    text, entities = params.get("text", ""), params.get("entities", [])
    units = len(text.encode("utf-16-le")) // 2
    if not text.strip():
        raise _Refusal(400, "Bad Request: message text is empty")
    if units > _MAX_UNITS:
        raise _Refusal(400, "Bad Request: message is too long")
    if any(mark["offset"] < 0 or mark["length"] < 1 or mark["offset"] + mark["length"] > units for mark in entities):
        raise _Refusal(400, "Bad Request: can't parse entities: ENTITY_BOUNDS_INVALID")
    return text, entities


def _menu(params: Mapping[str, Any]) -> str:
    return json.dumps([params.get("scope"), params.get("language_code")], sort_keys=True)


def _decoded(name: str, value: str) -> Any:
    """A form's value: JSON where it is no string."""
    if name in ("text", "action", "language_code"):
        return value
    return json.loads(value)
