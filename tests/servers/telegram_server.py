"""A strict Bot API server on loopback: refuses what Telegram refuses, records all it is asked.

    async with TelegramServer() as server:
        server.say(1001, "hello")
        server.fault("sendMessage", retry_after=3)
        ...                                  # point a client at server.base_url with server.token
        await server.until(lambda: server.chat(1001).texts == ["hi"])

Lengths are counted in UTF-16 units. Text is formatted by entities alone: ``parse_mode`` is refused like
every other parameter the server does not know. ``clock`` counts seconds and decides when a flood is over.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

from aiohttp import web

from tests.servers.telegram_chats import DATE, Chat, Chats, dressed
from tests.servers.telegram_rules import (
    MAX_DOWNLOAD,
    MAX_UPLOAD,
    PARAMETERS,
    Refusal,
    bad,
    checked_commands,
    checked_markup,
    checked_text,
    menu_key,
    parameters_of,
    units,
)
from tests.servers.telegram_updates import Updates

LATE_ANSWER: Final = 15.0
"""Seconds after which a pressed button is no longer answered."""

_COMMAND: Final = re.compile(r"^/\w+(?:@\w+)?")
_MENTION: Final = re.compile(r"(?<!\w)@\w{4,}")


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived, its parameters decoded."""

    method: str
    params: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {json.dumps(self.params, ensure_ascii=False, default=len)}"


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
        self.chats = Chats(self.me)
        self.files: dict[str, tuple[bytes, int]] = {}
        self.updates = Updates(self._notice)
        self._clock = clock
        self._floods: dict[tuple[str, Any], float] = {}
        self._presses: dict[str, float] = {}
        self._numbers = itertools.count(1)
        self._changed = asyncio.Condition()
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
        app = web.Application(client_max_size=2 * MAX_UPLOAD)
        app.router.add_route("*", "/bot{token}/{method}", self._serve)
        app.router.add_get("/file/bot{token}/{file_id}", self._download)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}"

    async def _close(self) -> None:
        await self.updates.close()
        if self._runner is not None:
            await self._runner.cleanup()

    # What people do

    def chat(self, chat_id: int) -> Chat:
        """The chat with this id; a person's private chat comes into being when they first write."""
        if chat_id not in self.chats.all:
            self.chats.all[chat_id] = Chat(chat_id, bot_id=self.id)
        return self.chats.all[chat_id]

    def group(self, chat_id: int, *threads: int) -> Chat:
        """Make a group; with topics it is a forum."""
        self.chats.all[chat_id] = Chat(
            chat_id, "supergroup", f"Group {chat_id}", threads=dict.fromkeys(threads, True), bot_id=self.id
        )
        return self.chats.all[chat_id]

    def say(self, user_id: int, text: str | None, chat_id: int | None = None, **more: Any) -> int:
        """A person writes (``text`` None: sends media); commands and mentions carry entities. Returns the message id.

        ``more`` are further fields of the message: ``thread`` puts it in a topic, ``user`` overrides
        fields of the sender, the rest is taken as it is.
        """
        chat = self.chat(user_id if chat_id is None else chat_id)
        message = self.chats.message(
            chat, self.user(user_id, **more.pop("user", {})), text, thread=more.pop("thread", None)
        )
        message |= {"entities": found} if (found := list(_entities(text or ""))) else {}
        message |= {"caption_entities": found} if (found := list(_entities(more.get("caption", "")))) else {}
        message |= more
        self.push({"message": message})
        return int(message["message_id"])

    def edit(self, message_id: int, text: str, chat_id: int, **more: Any) -> None:
        """Somebody changes what they wrote."""
        message = self.chat(chat_id).messages[message_id]
        message |= {"text": text, "edit_date": DATE + 60, "entities": list(_entities(text)), **more}
        self.push({"edited_message": dict(message)})

    def migrate(self, old_id: int, new_id: int, *, tell: bool = True) -> Chat:
        """A group becomes a supergroup; the platform may ``tell`` so in both."""
        old, new = self.chat(old_id), self.group(new_id)
        old.moved_to = new_id
        for chat, told in ((old, {"migrate_to_chat_id": new_id}), (new, {"migrate_from_chat_id": old_id})):
            message = self.chats.message(chat, self.user(1), None, thread=None) | told
            if tell:
                self.push({"message": message})
        return new

    def upload(self, content: bytes, size: int | None = None) -> dict[str, Any]:
        """Somebody's file; ``size`` is what the platform says of it. Returns its description."""
        file_id = f"file{next(self._numbers)}"
        self.files[file_id] = (content, len(content) if size is None else size)
        return {"file_id": file_id, "file_unique_id": f"u{file_id}", "file_size": self.files[file_id][1]}

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
        self.updates.push(update)

    def fault(self, match: str, **how: Any) -> Fault:
        """Plan a :class:`Fault`."""
        self.faults.append(Fault(match, **how))
        return self.faults[-1]

    # What tests look at

    def sent(self, match: str) -> list[Request]:
        """Requests so far whose "method parameters" contain ``match``."""
        return [request for request in self.requests if match in str(request)]

    async def until(self, holds: Callable[[], bool], seconds: float = 5.0) -> None:
        """Wait for something to hold; it is looked at before and after each request, and after each post."""
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
        params = await parameters_of(request)
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
                return await self.updates.fetch(params)
            case "setWebhook":
                return await self.updates.set_webhook(params)
            case "deleteWebhook":
                return await self.updates.remove_webhook(params)
            case "getWebhookInfo":
                return self.updates.webhook_info()
            case "sendChatAction":
                return self.chats.reach(params) is not None
            case "sendMessage":
                text, entities = checked_text(params, "message is too long")
                return self.chats.send(params, dressed(text, entities, checked_markup(params)))
            case "sendMessageDraft":
                return self.chats.draft(params)
            case "sendDocument":
                return self.chats.send(params, {"document": self._store(params)})
            case "editMessageText":
                return self.chats.edit(params)
            case "deleteMessage":
                chat, message = self.chats.own(params, "message to delete not found", "message can't be deleted")
                del chat.messages[message["message_id"]]
                return True
            case "answerCallbackQuery":
                return self._answer_press(params)
            case "setMyCommands":
                self.commands[menu_key(params)] = checked_commands(params)
                return True
            case "getMyCommands":
                return self.commands.get(menu_key(params), [])
            case _:
                return self._locate(params)

    def _store(self, params: Mapping[str, Any]) -> dict[str, Any]:
        document = params["document"]
        if not isinstance(document, dict) or not document["content"]:
            raise bad("file must be non-empty")
        return self.upload(document["content"]) | {"file_name": document["file_name"]}

    def _locate(self, params: Mapping[str, Any]) -> dict[str, Any]:
        file_id = params.get("file_id", "")
        if file_id not in self.files:
            raise bad("wrong file_id or the file is temporarily unavailable")
        size = self.files[file_id][1]
        if size > MAX_DOWNLOAD:
            raise bad("file is too big")
        return {"file_id": file_id, "file_unique_id": f"u{file_id}", "file_size": size, "file_path": file_id}

    async def _download(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != self.token or request.match_info["file_id"] not in self.files:
            return Refusal(404, "Not Found").response()
        return web.Response(body=self.files[request.match_info["file_id"]][0])

    def _answer_press(self, params: Mapping[str, Any]) -> bool:
        pressed = self._presses.pop(str(params["callback_query_id"]), None)
        if pressed is None or self._clock() - pressed > LATE_ANSWER:
            raise bad("query is too old and response timeout expired or query ID is invalid")
        if units(params.get("text", "")) > 200:
            raise bad("MESSAGE_TOO_LONG")
        return True


def _entities(text: str) -> Iterator[dict[str, Any]]:
    for pattern, kind in ((_COMMAND, "bot_command"), (_MENTION, "mention")):
        for found in pattern.finditer(text):
            yield {"type": kind, "offset": units(text[: found.start()]), "length": units(found[0])}
