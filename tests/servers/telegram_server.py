"""A strict Bot API server on loopback: refuses what Telegram refuses, records all it is asked.

    async with TelegramServer() as server:
        server.say(1001, "hello")
        server.fault("sendMessage", retry_after=3)
        ...                                  # point a client at server.base_url with server.token
        await server.until(lambda: server.chat(1001).texts == ["hi"])

Lengths are counted in UTF-16 units. Formatted text is not spoken here: ``parse_mode`` and ``entities``
are refused like every other parameter the server does not know. ``clock`` counts seconds and decides
when a flood is over. Error texts are the customary ones.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import parse_qsl

from aiohttp import web

PARAMETERS: Final[Mapping[str, frozenset[str]]] = {
    "getMe": frozenset(),
    "getUpdates": frozenset({"offset", "limit", "timeout", "allowed_updates"}),
    "deleteWebhook": frozenset({"drop_pending_updates"}),
    "sendMessage": frozenset(
        {"chat_id", "text", "message_thread_id", "reply_markup", "reply_parameters", "link_preview_options"}
    ),
    "editMessageText": frozenset({"chat_id", "message_id", "text", "reply_markup", "link_preview_options"}),
    "deleteMessage": frozenset({"chat_id", "message_id"}),
    "sendChatAction": frozenset({"chat_id", "action", "message_thread_id"}),
    "answerCallbackQuery": frozenset({"callback_query_id", "text", "show_alert"}),
    "setMyCommands": frozenset({"commands", "scope", "language_code"}),
    "getMyCommands": frozenset({"scope", "language_code"}),
}
"""Every method this server knows, with all it takes. Another method is 404, another parameter 400."""

GENERAL: Final = 1
"""Id of a forum's General topic, which is never sent to by its id."""
DATE: Final = 1_772_452_800
"""When everything is sent: 2 March 2026, 12:00 UTC."""
MAX_TEXT: Final = 4_096
MAX_COMMANDS: Final = 100
LATE_ANSWER: Final = 15.0
"""Seconds after which a pressed button is no longer answered."""

_COMMAND: Final = re.compile(r"^/\w+(?:@\w+)?")
_MENTION: Final = re.compile(r"(?<!\w)@\w{4,}")


def units(text: str) -> int:
    """UTF-16 units of a text."""
    return sum(2 if ord(char) > 0xFFFF else 1 for char in text)


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived, its parameters decoded."""

    method: str
    params: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {json.dumps(self.params, ensure_ascii=False)}"


@dataclass(slots=True)
class Fault:
    """Something that goes wrong; the first whose ``match`` is in "method parameters" is used, ``times`` times.

    ``retry_after`` is a flood: until so many seconds have passed by the server's clock the method is
    refused in that chat. ``drop`` breaks the connection, ``after`` carries the request out first.
    ``hold`` keeps the request waiting until it is set.
    """

    match: str
    status: int = 500
    description: str = "Internal Server Error"
    retry_after: int | None = None
    drop: bool = False
    after: bool = False
    hold: asyncio.Event | None = None
    times: int = 1


class Refusal(Exception):
    """A request the platform does not carry out."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.status = status
        self.parameters = parameters

    def response(self) -> web.Response:
        body: dict[str, Any] = {"ok": False, "error_code": self.status, "description": str(self)}
        return web.json_response(
            body | ({"parameters": self.parameters} if self.parameters else {}), status=self.status
        )


def bad(description: str) -> Refusal:
    """A request that is wrong in itself."""
    return Refusal(400, f"Bad Request: {description}")


@dataclass(slots=True)
class Chat:
    """A chat and what stands in it; ``threads`` are its topics with whether each is open."""

    id: int
    type: str = "private"
    title: str = ""
    blocked: bool = False
    threads: dict[int, bool] = field(default_factory=dict)
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    bot_id: int = 0

    @property
    def ours(self) -> list[dict[str, Any]]:
        """The bot's messages as they stand now, in order."""
        return [message for message in self.messages.values() if message["from"]["id"] == self.bot_id]

    @property
    def texts(self) -> list[str]:
        """What the bot's messages say now, in order."""
        return [message["text"] for message in self.ours]

    def payload(self) -> dict[str, Any]:
        named = {"first_name": f"User {self.id}"} if self.type == "private" else {"title": self.title}
        return {"id": self.id, "type": self.type, **named}


class TelegramServer:
    """The platform: people write and press, the bot polls and answers."""

    def __init__(
        self,
        token: str = "123456789:ABC-DEF1234ghIkl-zyx57W2v1u123ew11",
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.token = token
        self.id = int(token.partition(":")[0])
        self.me = {"id": self.id, "is_bot": True, "first_name": "Recollect", "username": "recollect_bot"}
        self.base_url = ""
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.commands: dict[tuple[str, str], list[dict[str, str]]] = {}
        self.chats: dict[int, Chat] = {}
        self.updates: list[dict[str, Any]] = []
        self._clock = clock
        self._floods: dict[tuple[str, Any], float] = {}
        self._presses: dict[str, float] = {}
        self._allowed: list[str] = []
        self._numbers = itertools.count(1)
        self._update_numbers = itertools.count(7_000)
        self._changed = asyncio.Condition()
        self._poll = asyncio.Event()
        self._arrived = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        await self._open(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """Be out of reach for a while; what was stored stays."""
        await self._close()
        yield
        await self._open(int(self.base_url.rpartition(":")[2]))

    async def _open(self, port: int) -> None:
        app = web.Application()
        app.router.add_route("*", "/bot{token}/{method}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}"

    async def _close(self) -> None:
        self._poll.set()
        if self._runner is not None:
            await self._runner.cleanup()

    # What people do

    def chat(self, chat_id: int) -> Chat:
        """The chat with this id; a person's private chat comes into being when they first write."""
        if chat_id not in self.chats:
            self.chats[chat_id] = Chat(chat_id, bot_id=self.id)
        return self.chats[chat_id]

    def group(self, chat_id: int, *threads: int) -> Chat:
        """Make a group; with topics it is a forum."""
        self.chats[chat_id] = Chat(
            chat_id, "supergroup", f"Group {chat_id}", threads=dict.fromkeys(threads, True), bot_id=self.id
        )
        return self.chats[chat_id]

    def say(self, user_id: int, text: str | None, chat_id: int | None = None, **more: Any) -> int:
        """A person writes (``text`` None: sends media); commands and mentions carry entities. Returns the message id.

        ``more`` are further fields of the message: ``thread`` puts it in a topic, ``user`` overrides
        fields of the sender, the rest is taken as it is.
        """
        chat = self.chat(user_id if chat_id is None else chat_id)
        message = self._message(chat, self.user(user_id, **more.pop("user", {})), text, thread=more.pop("thread", None))
        message |= {"entities": found} if (found := list(_entities(text or ""))) else {}
        message |= more
        self.push({"message": message})
        return int(message["message_id"])

    def press(self, user_id: int, message_id: int, data: str, chat_id: int | None = None) -> str:
        """A person presses a button of one of the bot's messages. Returns the query's id."""
        chat = self.chat(user_id if chat_id is None else chat_id)
        query_id = str(next(self._numbers))
        self._presses[query_id] = self._clock()
        message = chat.messages[message_id]
        keys = [key["callback_data"] for row in message["reply_markup"]["inline_keyboard"] for key in row]
        assert data in keys, f"no button {data!r} under message {message_id}"
        query = {"id": query_id, "from": self.user(user_id), "message": message, "data": data, "chat_instance": "1"}
        self.push({"callback_query": query})
        return query_id

    def user(self, user_id: int, **fields: Any) -> dict[str, Any]:
        """A person, as the platform describes them."""
        return {"id": user_id, "is_bot": False, "first_name": f"User {user_id}", "language_code": "en"} | fields

    def push(self, update: Mapping[str, Any]) -> None:
        """Let an update wait for the bot, if it asked for that kind."""
        if not self._allowed or next(iter(update)) in self._allowed:
            self.updates.append({"update_id": next(self._update_numbers), **update})
            self._arrived.set()

    def fault(self, match: str, **how: Any) -> Fault:
        """Plan a :class:`Fault`."""
        self.faults.append(Fault(match, **how))
        return self.faults[-1]

    # What tests look at

    def sent(self, match: str) -> list[Request]:
        """Requests so far whose "method parameters" contain ``match``."""
        return [request for request in self.requests if match in str(request)]

    async def until(self, holds: Callable[[], bool], seconds: float = 5.0) -> None:
        """Wait for something to hold; it is looked at before and after each request."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(holds)

    # What the bot does

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        try:
            asked = await self._read(request)
            self.requests.append(asked)
            await self._notice()
            return web.json_response({"ok": True, "result": await self._judge(asked, request)})
        except Refusal as refusal:
            return refusal.response()
        finally:
            await self._notice()

    async def _notice(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _read(self, request: web.Request) -> Request:
        token, method = request.match_info["token"], request.match_info["method"]
        if not re.fullmatch(r"\d+:[\w-]{30,}", token) or method not in PARAMETERS:
            raise Refusal(404, "Not Found")
        if token != self.token:
            raise Refusal(401, "Unauthorized")
        params = await _parameters(request)
        if unknown := params.keys() - PARAMETERS[method]:
            raise bad(f"this server knows no parameter {', '.join(sorted(unknown))} of {method}")
        return Request(method, params)

    async def _judge(self, asked: Request, request: web.Request) -> Any:
        self._refuse_flooded(asked)
        fault = next((fault for fault in self.faults if fault.times > 0 and fault.match in str(asked)), None)
        if fault is None:
            return await self._answer(asked)
        fault.times -= 1
        if fault.hold is not None:
            await fault.hold.wait()
            return await self._answer(asked)
        if fault.after:
            await self._answer(asked)
        if fault.drop and request.transport is not None:
            request.transport.abort()
        if fault.retry_after is not None:
            self._floods[asked.method, asked.params.get("chat_id")] = self._clock() + fault.retry_after
            self._refuse_flooded(asked)
        raise Refusal(fault.status, fault.description)

    def _refuse_flooded(self, asked: Request) -> None:
        left = self._floods.get((asked.method, asked.params.get("chat_id")), 0.0) - self._clock()
        if left > 0:
            seconds = int(-(-left // 1))
            raise Refusal(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)

    async def _answer(self, asked: Request) -> Any:
        params = asked.params
        match asked.method:
            case "getMe":
                return self.me
            case "getUpdates":
                return await self._get_updates(params)
            case "deleteWebhook" | "sendChatAction":
                return self._reach(params) is not None if "chat_id" in params else True
            case "sendMessage":
                return self._send(params)
            case "editMessageText":
                return self._edit(params)
            case "deleteMessage":
                chat, message = self._own(params, "message to delete not found", "message can't be deleted")
                del chat.messages[message["message_id"]]
                return True
            case "answerCallbackQuery":
                return self._answer_press(params)
            case "setMyCommands":
                return self._set_commands(params)
            case _:
                return self.commands.get(_menu_key(params), [])

    async def _get_updates(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        offset, limit = int(params.get("offset", 0)), int(params.get("limit", 100))
        if not 1 <= limit <= 100:
            raise bad("limit must be between 1 and 100")
        self._allowed = params.get("allowed_updates", self._allowed)
        if offset < 0:
            self.updates = self.updates[offset:]
        elif offset:
            self.updates = [update for update in self.updates if update["update_id"] >= offset]
        self._poll.set()  # a newer poll ends an older one
        mine = self._poll = asyncio.Event()
        if not self.updates:
            await self._wait_for_update(mine, float(params.get("timeout", 0)))
        if mine.is_set():
            raise Refusal(
                409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
            )
        return self.updates[:limit]

    async def _wait_for_update(self, superseded: asyncio.Event, seconds: float) -> None:
        self._arrived.clear()
        waiting = [asyncio.create_task(event.wait()) for event in (superseded, self._arrived)]
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()

    def _send(self, params: Mapping[str, Any]) -> dict[str, Any]:
        chat = self._reach(params)
        text = _checked_text(params.get("text", ""), "message is too long")
        thread = params.get("message_thread_id")
        if answered := params.get("reply_parameters"):
            known = int(answered["message_id"]) in chat.messages
            if not known and not answered.get("allow_sending_without_reply"):
                raise bad("message to be replied not found")
        markup = _checked_markup(params)
        message = self._message(chat, self.me, text, thread=None if thread is None else int(thread))
        return self._dress(message, text, markup)

    def _edit(self, params: Mapping[str, Any]) -> dict[str, Any]:
        _, message = self._own(params, "message to edit not found", "message can't be edited")
        text = _checked_text(params.get("text", ""), "MESSAGE_TOO_LONG")
        markup = _checked_markup(params)
        # The platform trims what it is sent, so a trailing blank changes nothing.
        if text.strip() == message["text"].strip() and markup == message.get("reply_markup"):
            raise bad(
                "message is not modified: specified new message content and reply markup are exactly the same as a "
                "current content and reply markup of the message"
            )
        return self._dress(message, text, markup)

    def _dress(self, message: dict[str, Any], text: str, markup: Any) -> dict[str, Any]:
        message["text"] = text
        message.pop("reply_markup", None)
        if markup is not None:
            message["reply_markup"] = markup
        return message

    def _own(self, params: Mapping[str, Any], missing: str, foreign: str) -> tuple[Chat, dict[str, Any]]:
        chat = self._reach(params)
        message = chat.messages.get(int(params["message_id"]))
        if message is None:
            raise bad(missing)
        if message["from"]["id"] != self.id:
            raise bad(foreign)
        return chat, message

    def _reach(self, params: Mapping[str, Any]) -> Chat:
        chat = self.chats.get(int(params["chat_id"]))
        if chat is None:
            raise bad("chat not found")
        if chat.blocked:
            kicked = "bot was kicked from the supergroup chat"
            raise Refusal(403, f"Forbidden: {'bot was blocked by the user' if chat.type == 'private' else kicked}")
        if (thread := params.get("message_thread_id")) is not None:
            if int(thread) == GENERAL or int(thread) not in chat.threads:
                raise bad("message thread not found")
            if not chat.threads[int(thread)]:
                raise bad("TOPIC_CLOSED")
        return chat

    def _answer_press(self, params: Mapping[str, Any]) -> bool:
        pressed = self._presses.pop(str(params["callback_query_id"]), None)
        if pressed is None or self._clock() - pressed > LATE_ANSWER:
            raise bad("query is too old and response timeout expired or query ID is invalid")
        if units(params.get("text", "")) > 200:
            raise bad("MESSAGE_TOO_LONG")
        return True

    def _set_commands(self, params: Mapping[str, Any]) -> bool:
        commands = params["commands"]
        if len(commands) > MAX_COMMANDS:
            raise bad("BOT_COMMANDS_TOO_MUCH")
        for command in commands:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", command["command"]):
                raise bad("BOT_COMMAND_INVALID")
            if not 1 <= len(command["description"]) <= 256:
                raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
        self.commands[_menu_key(params)] = commands
        return True

    def _message(
        self, chat: Chat, author: Mapping[str, Any], text: str | None, *, thread: int | None
    ) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {
            "message_id": number,
            "from": dict(author),
            "chat": chat.payload(),
            "date": DATE,
        }
        if text is not None:
            message["text"] = text
        if thread is not None:
            message |= {"message_thread_id": thread, "is_topic_message": True}
        chat.messages[number] = message
        return message


def _entities(text: str) -> Iterator[dict[str, Any]]:
    pattern, kind = (_COMMAND, "bot_command") if _COMMAND.match(text) else (_MENTION, "mention")
    for found in pattern.finditer(text):
        yield {"type": kind, "offset": units(text[: found.start()]), "length": units(found[0])}


async def _parameters(request: web.Request) -> dict[str, Any]:
    """Decode a JSON body or a form whose values are JSON where they are no strings."""
    body = await request.read()
    with _only_valid_text():
        if request.content_type == "application/json":
            params: dict[str, Any] = json.loads(body)
        else:
            fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(body), errors="strict")
            params = {name: value if name == "text" else _decoded(value) for name, value in fields}
        json.dumps(params, ensure_ascii=False).encode()
    return params


@contextmanager
def _only_valid_text() -> Iterator[None]:
    try:
        yield
    except UnicodeError:
        raise bad("strings must be encoded in UTF-8") from None


def _decoded(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def _checked_text(text: str, too_long: str) -> str:
    if not text.strip():
        raise bad("message text is empty")
    if units(text) > MAX_TEXT:
        raise bad(too_long)
    return text


def _checked_markup(params: Mapping[str, Any]) -> Any:
    markup = params.get("reply_markup")
    for row in markup["inline_keyboard"] if markup else []:
        for key in row:
            if not 1 <= len(key["callback_data"].encode()) <= 64:
                raise bad("BUTTON_DATA_INVALID")
    return markup


def _menu_key(params: Mapping[str, Any]) -> tuple[str, str]:
    return params.get("scope", {"type": "default"})["type"], params.get("language_code", "")
