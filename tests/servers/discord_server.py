"""Discord on loopback: REST and gateway in one strict aiohttp application, for the real SDK.

    async with DiscordServer() as discord, discord.reached():
        ...                                       # start an adapter with discord.token
        await discord.online()
        await discord.say(ALICE, "hello")         # a private chat
        await discord.until(lambda: discord.texts(ALICE) == ["hi"])
        discord.fault("PATCH /channels", status=429, retry_after=0.2)

What it enforces is what the platform does (API reference, "Opcodes and Status Codes"): lengths, blank
messages, unknown ids, acknowledgements given twice or late, nonces, mentions, tokens and intents. An
unknown route answers 404, never 500, which the SDK would repeat for 25 seconds.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch

import yarl
from aiohttp import WSMsgType, web
from discord.gateway import DiscordWebSocket
from discord.http import Route

EPOCH_MS = 1_420_070_400_000
"""Milliseconds of 2015-01-01: snowflakes count from there."""
START_MS = 1_772_452_800_000
"""The server's present when it starts: Monday, 2 March 2026, 12:00 UTC."""
MESSAGE_LIMIT = 2_000
ACKNOWLEDGE_SECONDS = 3
TOKEN_SECONDS = 900
EPHEMERAL = 64
MESSAGE_CONTENT = 1 << 15
PRIVILEGED = (1 << 1) | (1 << 8) | MESSAGE_CONTENT
CONTENT_FLAG = 1 << 19
"""Application flag: Message Content Intent is switched on (for a bot in fewer than 100 servers)."""
BLANK = re.compile(r"[\s\u200b-\u200f\u2060-\u2064\ufeff]*")


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with an account."""

    id: str
    name: str
    bot: bool = False

    def payload(self) -> dict[str, Any]:
        """The user as the API gives it."""
        return {
            "id": self.id,
            "username": self.name.lower(),
            "global_name": self.name,
            "discriminator": "0",
            "avatar": None,
            "bot": self.bot,
        }


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived; ``body`` is its JSON, an empty dict without one."""

    method: str
    path: str
    body: Any

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(slots=True)
class Fault:
    """Something that goes wrong with the next ``times`` requests in whose "METHOD path" ``match`` is found.

    ``lost`` carries the request out and breaks the connection before the answer; ``hold`` waits first.
    """

    match: re.Pattern[str]
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    times: int = 1
    lost: bool = False
    hold: asyncio.Event | None = None


@dataclass(slots=True)
class Interaction:
    """A slash command or a press, and what was answered. ``source`` is the pressed message."""

    id: str
    token: str
    channel: str
    made: float
    source: str | None = None
    acknowledged: int | None = None
    ephemeral: bool = False
    messages: list[str] = field(default_factory=list)


class Refusal(Exception):
    """The answer to a request that the platform would refuse."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"message": message, "code": code}


class DiscordServer:
    """The platform, with one application, its bot and the people who talk to it."""

    def __init__(self, token: str = "bot-token") -> None:
        self.token = token
        self.bot = User("900000000000000555", "Recollect", bot=True)
        self.requests: list[Request] = []
        self.identified: list[dict[str, Any]] = []
        self.resumed = 0
        self.messages: dict[str, dict[str, Any]] = {}
        self.interactions: dict[str, Interaction] = {}
        self.commands: list[dict[str, Any]] = []
        self.content_intent = True
        self.unreachable: set[str] = set()
        self._faults: list[Fault] = []
        self._guilds: dict[str, dict[str, Any]] = {}
        self._private: dict[str, str] = {}
        self._nonces: dict[tuple[str, str], str] = {}
        self.events: list[dict[str, Any]] = []
        self._session = ""
        self._sockets: list[web.WebSocketResponse] = []
        self._offset = 0.0
        self._ids = itertools.count(1)
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/gateway", self._gateway)
        app.router.add_route("*", "/api/v10/{path:.*}", self._rest)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self.close_gateway(1001)
        await self._runner.cleanup()

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Point the SDK's two globals here, and back again."""
        with (
            patch.object(Route, "BASE", f"http://127.0.0.1:{self._port}/api/v10"),
            patch.object(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(self._gateway_url)),
        ):
            yield

    # What a test does

    def snowflake(self) -> str:
        """A fresh id that carries the server's present."""
        now = int(START_MS + self._offset * 1_000)
        return str((now - EPOCH_MS) << 22 | next(self._ids))

    def advance(self, seconds: float) -> None:
        """Let time pass: acknowledgements and interaction tokens grow old."""
        self._offset += seconds

    def fault(self, match: str, *, retry_after: float | None = None, **how: Any) -> None:
        """Plan a :class:`Fault`; with ``retry_after`` (seconds) it is the platform's own 429."""
        if retry_after is not None:
            body = {"message": "You are being rate limited.", "retry_after": retry_after, "global": False}
            how = {"status": 429, "headers": {"Via": "1.1 google"}, "body": body} | how
        self._faults.append(Fault(re.compile(match), **how))

    def guild(self, channel: str, *, thread: str | None = None, private_thread: bool = False) -> tuple[str, str]:
        """Add a server with one text channel, or a thread in it; call it before the bot is online.

        Returns the ids of the server and of the channel (or thread) to talk in.
        """
        guild_id, channel_id = self.snowflake(), self.snowflake()
        guild: dict[str, Any] = {
            "id": guild_id,
            "name": "A place",
            "owner_id": "1",
            "member_count": 3,
            "roles": [{"id": guild_id, "name": "@everyone", "permissions": "0", "position": 0, "flags": 0}],
            "channels": [{"id": channel_id, "type": 0, "name": channel, "position": 0, "guild_id": guild_id}],
            "threads": [],
        }
        self._guilds[guild_id] = guild
        if thread is None:
            return guild_id, channel_id
        metadata = {"archived": False, "auto_archive_duration": 60, "archive_timestamp": "2026-03-02T12:00:00+00:00"}
        guild["threads"].append(
            {
                "id": self.snowflake(),
                "parent_id": channel_id,
                "owner_id": "1",
                "name": thread,
                "type": 12 if private_thread else 11,
                "message_count": 0,
                "member_count": 1,
                "thread_metadata": metadata,
                "guild_id": guild_id,
            }
        )
        return guild_id, str(guild["threads"][0]["id"])

    def channel_of(self, user: User) -> str:
        """The private channel between a person and the bot."""
        if user.id not in self._private:
            self._private[user.id] = self.snowflake()
        return self._private[user.id]

    async def say(
        self, user: User, text: str, *, place: tuple[str, str] | None = None, reply_to: str | None = None, **more: Any
    ) -> str:
        """Let a person write, in private or at ``place`` (server, channel). Returns the message's id."""
        channel = place[1] if place else self.channel_of(user)
        message = self._message(user, channel, text) | {"type": 19 if reply_to else 0}
        mentioned = [known.payload() for known in more.pop("mentions", ())]
        if f"<@{self.bot.id}>" in text or f"<@!{self.bot.id}>" in text:
            mentioned.append(self.bot.payload())
        message["mentions"] = mentioned
        if place:
            message |= {"guild_id": place[0], "member": {"roles": [], "flags": 0, "joined_at": None}}
        if reply_to:
            message["message_reference"] = {"message_id": reply_to, "channel_id": channel, "type": 0}
            message["referenced_message"] = self.messages.get(reply_to)
        message |= more
        self.messages[message["id"]] = message
        await self.dispatch("MESSAGE_CREATE", message)
        return str(message["id"])

    async def slash(
        self,
        user: User,
        name: str,
        text: str | None = None,
        *,
        place: tuple[str, str] | None = None,
        locale: str = "en-US",
    ) -> Interaction:
        """Let a person use a slash command."""
        options = [] if text is None else [{"name": "text", "type": 3, "value": text}]
        data = {"id": "1", "name": name, "type": 1, "options": options}
        return await self._interact(user, 2, data, place=place, locale=locale)

    async def press(
        self, user: User, message_id: str, label: str, *, place: tuple[str, str] | None = None
    ) -> Interaction:
        """Let a person press the button with this label."""
        message = self.messages[message_id]
        rows = message["components"]
        [custom_id] = [button["custom_id"] for row in rows for button in row["components"] if button["label"] == label]
        data = {"custom_id": custom_id, "component_type": 2}
        return await self._interact(user, 3, data, place=place, source=message)

    async def dispatch(self, event: str, data: Any) -> None:
        """Send a gateway event, to be sent again to a session that resumes."""
        payload = {"op": 0, "t": event, "s": len(self.events) + 1, "d": data}
        self.events.append(payload)
        await self._broadcast(payload)

    async def reconnect(self) -> None:
        """Ask the client to come back and resume."""
        await self._broadcast({"op": 7, "d": None})

    async def invalidate(self) -> None:
        """End the session: the client has to identify anew."""
        self._session = ""
        await self._broadcast({"op": 9, "d": False})

    async def close_gateway(self, code: int) -> None:
        """Close every gateway connection with a code."""
        for socket in tuple(self._sockets):
            await socket.close(code=code)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; looked at after each request and gateway message."""
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(holds)

    async def online(self, times: int = 1) -> None:
        """Wait until the bot has identified this many times."""
        await self.until(lambda: len(self.identified) >= times)

    # What a test looks at

    def sent(self, match: str) -> list[Request]:
        """The requests in whose "METHOD path" ``match`` is found."""
        return [request for request in self.requests if re.search(match, str(request))]

    @property
    def connections(self) -> int:
        """How many gateway connections are open."""
        return len(self._sockets)

    def answers(self, place: User | str) -> list[dict[str, Any]]:
        """The bot's messages in a private chat or channel, as they stand now."""
        channel = self.channel_of(place) if isinstance(place, User) else place
        return [
            message
            for message in self.messages.values()
            if message["channel_id"] == channel and message["author"]["id"] == self.bot.id
        ]

    def texts(self, place: User | str) -> list[str]:
        """What the bot's messages in a chat say now."""
        return [message["content"] for message in self.answers(place)]

    def channels(self, guild: str) -> list[str]:
        """The ids of a server's text channels."""
        return [str(channel["id"]) for channel in self._guilds[guild]["channels"]]

    # REST

    async def _rest(self, request: web.Request) -> web.StreamResponse:
        path = "/" + request.match_info["path"]
        body = await request.json() if request.can_read_body else {}
        recorded = Request(request.method, path, body)
        self.requests.append(recorded)
        await self._notify()
        try:
            return await self._answer(request, recorded)
        finally:
            await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _answer(self, request: web.Request, recorded: Request) -> web.StreamResponse:
        fault = self._fault_for(recorded)
        if fault is not None and fault.hold is not None:
            await fault.hold.wait()
        if fault is not None and fault.status is not None:
            return _json(fault.body, status=fault.status, headers=fault.headers)
        try:
            result = self._route(recorded, request.headers.get("Authorization", ""), request.query)
        except Refusal as refusal:
            return _json(refusal.body, status=refusal.status)
        if fault is not None and fault.lost:
            assert request.transport is not None
            request.transport.abort()
        headers = {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "49", "X-RateLimit-Reset-After": "1"}
        if result is None:
            return web.Response(status=204, headers=headers)
        return _json(result, headers=headers)

    def _fault_for(self, request: Request) -> Fault | None:
        for fault in self._faults:
            if fault.times and fault.match.search(str(request)):
                fault.times -= 1
                return fault
        return None

    def _route(self, request: Request, authorization: str, query: Mapping[str, str]) -> Any:
        path = request.path.strip("/").split("/")
        if path[0] not in {"webhooks", "interactions"} and authorization != f"Bot {self.token}":
            raise Refusal(401, 0, "401: Unauthorized")
        match request.method, *path:
            case "GET", "users", "@me":
                return self.bot.payload()
            case "GET", "oauth2", "applications", "@me":
                return self._application()
            case "POST", "users", "@me", "channels":
                return self._open_private(str(request.body["recipient_id"]))
            case "POST", "channels", channel, "messages":
                return self._create(channel, request.body)
            case "PATCH", "channels", channel, "messages", message:
                return self._edit(self._own(message, channel), request.body)
            case "DELETE", "channels", channel, "messages", message:
                del self.messages[self._own(message, channel)["id"]]
                return None
            case "POST", "channels", channel, "typing":
                self._reach(channel)
                return None
            case "GET", "applications", self.bot.id, "commands":
                localised = query.get("with_localizations") == "true"
                return [command if localised else _unlocalised(command) for command in self.commands]
            case "PUT", "applications", self.bot.id, "commands":
                return self._register(request.body)
            case "POST", "interactions", number, token, "callback":
                return self._acknowledge(number, token, request.body)
            case "POST", "webhooks", self.bot.id, token:
                return self._follow_up(self._open(token), request.body)
            case "PATCH", "webhooks", self.bot.id, token, "messages", message:
                return self._edit_answer(self._open(token), message, request.body)
        raise Refusal(404, 0, f"404: Not Found {request}")

    def _application(self) -> dict[str, Any]:
        return {
            "id": self.bot.id,
            "name": self.bot.name,
            "description": "",
            "icon": None,
            "bot_public": True,
            "bot_require_code_grant": False,
            "verify_key": "",
            "owner": User("900000000000000001", "Operator").payload(),
            "flags": CONTENT_FLAG if self.content_intent else 0,
        }

    def _open_private(self, user_id: str) -> dict[str, Any]:
        known = self.channel_of(User(user_id, "Somebody"))
        return {"id": known, "type": 1, "recipients": [User(user_id, "Somebody").payload()]}

    def _reach(self, channel: str) -> None:
        if channel in self.unreachable:
            raise Refusal(403, 50007, "Cannot send messages to this user")
        channels = {part["id"] for guild in self._guilds.values() for part in guild["channels"] + guild["threads"]}
        if channel not in channels | set(self._private.values()):
            raise Refusal(404, 10003, "Unknown Channel")

    def _create(self, channel: str, body: dict[str, Any]) -> dict[str, Any]:
        self._reach(channel)
        _check_content(body.get("content"))
        nonce = body.get("nonce", "")
        if len(nonce) > 25:
            raise Refusal(400, 50035, "Invalid Form Body: nonce")
        if body.get("enforce_nonce") and (channel, nonce) in self._nonces:
            return self.messages[self._nonces[channel, nonce]]
        reference = body.get("message_reference")
        if (
            reference
            and str(reference["message_id"]) not in self.messages
            and reference.get("fail_if_not_exists", True)
        ):
            raise Refusal(400, 50035, "Invalid Form Body: message_reference: Unknown message")
        message = self._message(self.bot, channel, body["content"].strip())
        self._dress(message, body)
        if reference:
            message["message_reference"] = reference
        self.messages[message["id"]] = message
        self._nonces[channel, nonce] = message["id"]
        return message

    def _own(self, message_id: str, channel: str) -> dict[str, Any]:
        message = self.messages.get(message_id)
        if message is None or message["channel_id"] != channel:
            raise Refusal(404, 10008, "Unknown Message")
        if message["author"]["id"] != self.bot.id:
            raise Refusal(403, 50005, "Cannot edit a message authored by another user")
        return message

    def _edit(self, message: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        _check_content(body.get("content", message["content"]))
        message["content"] = body.get("content", message["content"]).strip()
        self._dress(message, body)
        return message

    def _dress(self, message: dict[str, Any], body: dict[str, Any]) -> None:
        """Apply components, and work out whom the text pings."""
        if "components" in body:
            _check_components(body["components"])
            message["components"] = body["components"]
        allowed = body.get("allowed_mentions", {"parse": ["everyone", "users", "roles"], "replied_user": True})
        parse, text = allowed.get("parse", []), message["content"]
        pings = {"everyone"} if "everyone" in parse and re.search("@(everyone|here)", text) else set()
        if "users" in parse:
            pings |= set(re.findall(r"<@!?(\d+)>", text))
        if "roles" in parse:
            pings |= set(re.findall(r"<@&(\d+)>", text))
        message["pings"] = sorted(set(message.get("pings", ())) | pings)

    def _register(self, commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for command in commands:
            described = [command["description"], *(command.get("description_localizations") or {}).values()]
            named = re.fullmatch(r"[-_\w]{1,32}", command["name"])
            if (
                not named
                or command["name"] != command["name"].lower()
                or not all(1 <= len(d) <= 100 for d in described)
            ):
                raise Refusal(400, 50035, "Invalid Form Body: commands")
        self.commands = [
            _without_false(command) | {"id": self.snowflake(), "application_id": self.bot.id, "version": "1"}
            for command in commands
        ]
        return self.commands

    # Interactions

    async def _interact(
        self,
        user: User,
        kind: int,
        data: dict[str, Any],
        *,
        place: tuple[str, str] | None,
        locale: str = "en-US",
        source: dict[str, Any] | None = None,
    ) -> Interaction:
        channel = place[1] if place else self.channel_of(user)
        known = self.snowflake()
        interaction = Interaction(known, f"token-{known}", channel, self._offset, source["id"] if source else None)
        self.interactions[interaction.token] = interaction
        payload: dict[str, Any] = {
            "id": interaction.id,
            "application_id": self.bot.id,
            "type": kind,
            "token": interaction.token,
            "version": 1,
            "data": data,
            "locale": locale,
            "attachment_size_limit": 1 << 20,
            "entitlements": [],
            "authorizing_integration_owners": {},
            "context": 0 if place else 1,
            "channel": {"id": channel, "type": 0 if place else 1, "name": "c", "position": 0},
        }
        if place:
            member = {"user": user.payload(), "roles": [], "flags": 0, "joined_at": None, "permissions": "0"}
            payload |= {"guild_id": place[0], "member": member}
        else:
            payload |= {"user": user.payload()}
            payload["channel"] |= {"recipients": [user.payload()]}
        if source:
            payload["message"] = source
        await self.dispatch("INTERACTION_CREATE", payload)
        return interaction

    def _acknowledge(self, number: str, token: str, body: dict[str, Any]) -> dict[str, Any]:
        interaction = self.interactions.get(token)
        if interaction is None or interaction.id != number or self._offset - interaction.made > ACKNOWLEDGE_SECONDS:
            raise Refusal(404, 10062, "Unknown interaction")
        if interaction.acknowledged is not None:
            raise Refusal(400, 40060, "Interaction has already been acknowledged.")
        if (body["type"] == 6) != (interaction.source is not None):
            raise Refusal(400, 50035, "Invalid Form Body: type")
        interaction.acknowledged = body["type"]
        interaction.ephemeral = bool((body.get("data") or {}).get("flags", 0) & EPHEMERAL)
        return {"interaction": {"id": interaction.id, "type": 2, "response_message_loading": body["type"] == 5}}

    def _open(self, token: str) -> Interaction:
        interaction = self.interactions.get(token)
        if interaction is None or interaction.acknowledged is None:
            raise Refusal(404, 10015, "Unknown Webhook")
        if self._offset - interaction.made > TOKEN_SECONDS:
            raise Refusal(401, 50027, "Invalid Webhook Token")
        return interaction

    def _follow_up(self, interaction: Interaction, body: dict[str, Any]) -> dict[str, Any]:
        _check_content(body.get("content"))
        message = self._message(self.bot, interaction.channel, body["content"].strip())
        message["flags"] = body.get("flags", 0) & EPHEMERAL
        self._dress(message, body)
        return self._keep(interaction, message)

    def _edit_answer(self, interaction: Interaction, message_id: str, body: dict[str, Any]) -> dict[str, Any]:
        if message_id != "@original":
            if message_id not in interaction.messages:
                raise Refusal(404, 10008, "Unknown Message")
            return self._edit(self.messages[message_id], body)
        if interaction.source is not None:
            return self._edit(self.messages[interaction.source], body)
        if interaction.messages:
            return self._edit(self.messages[interaction.messages[0]], body)
        _check_content(body.get("content"))
        message = self._message(self.bot, interaction.channel, body["content"].strip())
        message["flags"] = EPHEMERAL if interaction.ephemeral else 0
        self._dress(message, body)
        return self._keep(interaction, message)

    def _keep(self, interaction: Interaction, message: dict[str, Any]) -> dict[str, Any]:
        self.messages[message["id"]] = message
        interaction.messages.append(message["id"])
        return message

    def _message(self, author: User, channel: str, text: str) -> dict[str, Any]:
        return {
            "id": self.snowflake(),
            "channel_id": channel,
            "author": author.payload(),
            "content": text,
            "timestamp": "2026-03-02T12:00:00.000000+00:00",
            "tts": False,
            "mention_everyone": False,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "type": 0,
            "flags": 0,
            "components": [],
        }

    # Gateway

    @property
    def _gateway_url(self) -> str:
        return f"ws://127.0.0.1:{self._port}/gateway"

    async def _gateway(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 41_250}})
        try:
            async for frame in socket:
                if frame.type is WSMsgType.TEXT:
                    await self._received(socket, json.loads(frame.data))
                    await self._notify()
        finally:
            if socket in self._sockets:
                self._sockets.remove(socket)
        return socket

    async def _received(self, socket: web.WebSocketResponse, payload: dict[str, Any]) -> None:
        match payload["op"]:
            case 1:
                await socket.send_json({"op": 11})
            case 2:
                await self._identify(socket, payload["d"])
            case 6:
                await self._resume(socket, payload["d"])

    async def _identify(self, socket: web.WebSocketResponse, data: dict[str, Any]) -> None:
        if data["token"] != self.token:
            await socket.close(code=4004, message=b"Authentication failed.")
            return
        if data["intents"] & PRIVILEGED & ~(MESSAGE_CONTENT if self.content_intent else 0):
            await socket.close(code=4014, message=b"Disallowed intent(s).")
            return
        self._session = f"session-{self.snowflake()}"
        self._sockets.append(socket)
        ready = {
            "v": 10,
            "user": self.bot.payload(),
            "guilds": [{"id": guild, "unavailable": True} for guild in self._guilds],
            "session_id": self._session,
            "resume_gateway_url": self._gateway_url,
            "application": {"id": self.bot.id, "flags": 0},
        }
        await self.dispatch("READY", ready)
        for guild in self._guilds.values():
            await self.dispatch("GUILD_CREATE", guild)
        self.identified.append(data)

    async def _resume(self, socket: web.WebSocketResponse, data: dict[str, Any]) -> None:
        if data["session_id"] != self._session:
            await socket.send_json({"op": 9, "d": False})
            return
        for event in self.events[data["seq"] :]:
            await socket.send_json(event)
        self._sockets.append(socket)
        self.resumed += 1
        await self.dispatch("RESUMED", {})

    async def _broadcast(self, payload: dict[str, Any]) -> None:
        for socket in tuple(self._sockets):
            if not socket.closed:
                await socket.send_json(payload)


def _json(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Answer with the bare content type: the SDK reads JSON under no other."""
    return web.Response(body=json.dumps(body).encode(), status=status, headers=headers, content_type="application/json")


def _check_content(text: str | None) -> None:
    if text is None or BLANK.fullmatch(text):
        raise Refusal(400, 50006, "Cannot send an empty message")
    if len(text) > MESSAGE_LIMIT:
        raise Refusal(400, 50035, "Invalid Form Body: content: Must be 2000 or fewer in length.")
    text.encode()  # a lone surrogate never leaves a bot


def _check_components(rows: list[dict[str, Any]]) -> None:
    buttons = [button for row in rows for button in row["components"]]
    fits = len(rows) <= 5 and all(len(row["components"]) <= 5 for row in rows)
    named = all(1 <= len(button["custom_id"]) <= 100 and 1 <= len(button["label"]) <= 80 for button in buttons)
    if not (fits and named):
        raise Refusal(400, 50035, "Invalid Form Body: components")


def _unlocalised(command: dict[str, Any]) -> dict[str, Any]:
    return command | {"name_localizations": None, "description_localizations": None}


def _without_false(value: Any) -> Any:
    """As the API gives commands back: what is false or empty is left out."""
    if isinstance(value, dict):
        return {key: _without_false(part) for key, part in value.items() if part not in (False, None, {}, [])}
    return [_without_false(part) for part in value] if isinstance(value, list) else value
