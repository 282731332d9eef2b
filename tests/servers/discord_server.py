"""Discord on loopback: REST and gateway in one strict aiohttp application, for the real SDK.

   async with DiscordServer() as discord, discord.reached():
       ...                                       # start an adapter with discord.token
       await discord.online()
       await discord.say(ALICE, "hello")         # a private chat
       await discord.until(lambda: discord.texts(ALICE) == ["hi"])
       discord.fault("PATCH /channels", status=429, retry_after=0.2)

What it enforces is what the platform does: lengths, blank messages, unknown ids, acknowledgements given
twice or late, tokens that wear off, nonces, mentions, intents, uploads (:mod:`tests.servers.discord_model`).
What the bot does itself comes back as gateway events, too. An unknown route answers 404, never 500, which
the SDK would repeat for 25 seconds.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch

import yarl
from aiohttp import BodyPartReader, web
from discord.asset import Asset
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.servers.discord_gateway import Gateway
from tests.servers.discord_model import EPHEMERAL, READ_HISTORY, Fault, Interaction, Refusal, Request, User
from tests.servers.discord_rest import Rest

__all__ = ["EPHEMERAL", "DiscordServer", "Interaction", "Place", "Request", "User"]

Place = tuple[str, str]
"""A server and a channel or thread in it, by their ids."""


class DiscordServer(Rest):
    """The platform, with one application, its bot and the people who talk to it."""

    def __init__(self, token: str = "bot-token") -> None:
        super().__init__(token)
        self.requests: list[Request] = []
        self.gateway = Gateway(token, self._greeting, self._notify)
        self._faults: list[Fault] = []
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_get("/gateway", self.gateway.serve)
        app.router.add_get("/cdn/{path:.*}", self._download)
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
        await self.gateway.close(1001)
        await self._runner.cleanup()

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Point the SDK's globals here, and back again."""
        with (
            patch.object(Route, "BASE", f"http://127.0.0.1:{self._port}/api/v10"),
            patch.object(Asset, "BASE", self.cdn),
            patch.object(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(self._gateway_url)),
        ):
            yield

    # What a test does

    def advance(self, seconds: float) -> None:
        """Let time pass: acknowledgements, nonces and interaction tokens grow old."""
        self.offset += seconds

    def forbid_content(self) -> None:
        """Switch Message Content Intent off on the application's page."""
        self.content_flag = self.gateway.content_intent = False

    def allow_members(self) -> None:
        """Switch Server Members Intent on on the application's page."""
        self.members_flag = self.gateway.members_intent = True

    async def leave(self, user: User, guild: str) -> None:
        """Let a member leave a server; a bot hears of it that has the intent."""
        if self.gateway.members_intent:
            await self.dispatch("GUILD_MEMBER_REMOVE", {"guild_id": guild, "user": user.payload()})

    def fault(self, match: str, *, retry_after: float | None = None, **how: Any) -> None:
        """Plan a :class:`Fault`; with ``retry_after`` (seconds) it is the platform's own 429."""
        if retry_after is not None:
            body = {"message": "You are being rate limited.", "retry_after": retry_after, "global": False}
            how = {"status": 429, "headers": {"Via": "1.1 google"}, "body": body} | how
        self._faults.append(Fault(re.compile(match), **how))

    def guild(self, channel: str, *, thread: str | None = None, private_thread: bool = False) -> Place:
        """Add a server with one text channel, or a thread in it; call it before the bot is online.

        Returns the ids of the server and of the channel (or thread) to talk in.
        """
        guild_id, channel_id = self.snowflake(), self.snowflake()
        everyone = {"id": guild_id, "name": "@everyone", "permissions": str(READ_HISTORY), "position": 0, "flags": 0}
        own = everyone | {"id": self.snowflake(), "name": self.bot.name, "tags": {"bot_id": self.bot.id}}
        guild: dict[str, Any] = {
            "id": guild_id,
            "name": "A place",
            "owner_id": "1",
            "member_count": 3,
            "roles": [everyone, own],
            "channels": [{"id": channel_id, "type": 0, "name": channel, "position": 0, "guild_id": guild_id}],
            "threads": [],
            "members": [{"user": self.bot.payload(), "roles": [own["id"]], "flags": 0, "joined_at": None}],
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

    def hide(self, place: Place) -> None:
        """Keep a channel from the bot; call it before the bot is online."""
        self._places()[place[1]]["permission_overwrites"] = [
            {"id": place[0], "type": 0, "allow": "0", "deny": str(READ_HISTORY)}
        ]

    async def say(
        self, user: User, text: str, *, place: Place | None = None, reply_to: str | None = None, **more: Any
    ) -> str:
        """Let a person write, in private or at ``place``. Returns the message's id."""
        channel = place[1] if place else self.channel_of(user)
        message = self.message(user, channel, text) | {"type": 19 if reply_to else 0}
        message["mentions"] = self._mentioned(text, more.pop("mentions", ()))
        if place:
            message |= {"guild_id": place[0], "member": {"roles": [], "flags": 0, "joined_at": None}}
        if reply_to:
            message["message_reference"] = {"message_id": reply_to, "channel_id": channel, "type": 0}
            message["referenced_message"] = self.messages.get(reply_to)
        self.keep(message | more)
        await self._deliver()
        return str(message["id"])

    async def rewrite(self, message_id: str, text: str, **more: Any) -> None:
        """Let the author of a message change it."""
        message = self.messages[message_id]
        message |= {"content": text, "edited_timestamp": self.timestamp()} | more
        message["mentions"] = self._mentioned(text, ())
        await self.dispatch("MESSAGE_UPDATE", dict(message))

    async def take_back(self, *message_ids: str) -> None:
        """Let messages of one chat be deleted: one alone, or many at once."""
        gone = [self.gone(self.messages.pop(message_id)) for message_id in message_ids]
        if len(gone) == 1:
            await self.dispatch("MESSAGE_DELETE", gone[0])
        else:
            ids = [one.pop("id") for one in gone]
            await self.dispatch("MESSAGE_DELETE_BULK", gone[0] | {"ids": ids})

    async def slash(
        self, user: User, name: str, text: str | None = None, *, place: Place | None = None, locale: str = "en-US"
    ) -> Interaction:
        """Let a person use a slash command."""
        options = [] if text is None else [{"name": "text", "type": 3, "value": text}]
        data = {"id": "1", "name": name, "type": 1, "options": options}
        return await self._interact(user, 2, data, place=place, locale=locale)

    async def press(self, user: User, message_id: str, label: str, *, place: Place | None = None) -> Interaction:
        """Let a person press the button with this label."""
        message = self.messages[message_id]
        rows = message["components"]
        [custom_id] = [button["custom_id"] for row in rows for button in row["components"] if button["label"] == label]
        data = {"custom_id": custom_id, "component_type": 2}
        return await self._interact(user, 3, data, place=place, source=message)

    async def dispatch(self, event: str, data: Any) -> None:
        """Send a gateway event, to be sent again to a session that resumes."""
        await self.gateway.dispatch(event, data)

    async def reconnect(self) -> None:
        """Ask the client to come back and resume."""
        await self.gateway.broadcast({"op": 7, "d": None})

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; looked at after each request and gateway message."""
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(holds)

    async def online(self, times: int = 1) -> None:
        """Wait until the bot has identified this many times."""
        await self.until(lambda: len(self.gateway.identified) >= times)

    # What a test looks at

    def sent(self, match: str) -> list[Request]:
        """The requests in whose "METHOD path" ``match`` is found."""
        return [request for request in self.requests if re.search(match, str(request))]

    @property
    def connections(self) -> int:
        """How many gateway connections are open."""
        return len(self.gateway.sockets)

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

    def uploads(self, place: User | str) -> list[bytes]:
        """The files the bot's messages in a chat carry."""
        files = (file for message in self.answers(place) for file in message["attachments"])
        return [self.files[file["url"].removeprefix(f"{self.cdn}/")] for file in files]

    def channels(self, guild: str) -> list[str]:
        """The ids of a server's text channels."""
        return [str(channel["id"]) for channel in self._guilds[guild]["channels"]]

    def own_role(self, guild: str) -> str:
        """The id of the role the platform made for the bot in a server."""
        return str(self._guilds[guild]["roles"][1]["id"])

    # HTTP

    @property
    def cdn(self) -> str:
        return f"http://127.0.0.1:{self._port}/cdn"

    @property
    def _gateway_url(self) -> str:
        return f"ws://127.0.0.1:{self._port}/gateway"

    async def _download(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        self.requests.append(Request(request.method, f"/cdn/{path}", {}))
        await self._notify()
        return web.Response(body=self.files[path]) if path in self.files else web.Response(status=404)

    async def _rest(self, request: web.Request) -> web.StreamResponse:
        body, files = await _read(request)
        recorded = Request(request.method, "/" + request.match_info["path"], body, files)
        self.requests.append(recorded)
        await self._notify()
        try:
            return await self._answer(request, recorded)
        finally:
            await self._deliver()
            await self._notify()

    async def _deliver(self) -> None:
        waiting, self.outbox = self.outbox, []
        for event, data in waiting:
            await self.dispatch(event, data)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _answer(self, request: web.Request, recorded: Request) -> web.StreamResponse:
        fault = self._fault_for(recorded)
        if fault is not None and fault.hold is not None:
            await fault.hold.wait()
        if fault is not None and fault.status is not None:
            return _json(fault.body, status=fault.status, headers=fault.headers)
        if fault is not None and fault.drop:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        try:
            result = self.route(recorded, request.headers.get("Authorization", ""), request.query)
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

    # Events

    def _mentioned(self, text: str, others: tuple[User, ...]) -> list[dict[str, Any]]:
        own = [self.bot] if re.search(f"<@!?{self.bot.id}>", text) else []
        return [user.payload() for user in (*others, *own)]

    def _greeting(self, session: str) -> list[tuple[str, Any]]:
        ready = {
            "v": 10,
            "user": self.bot.payload(),
            "guilds": [{"id": guild, "unavailable": True} for guild in self._guilds],
            "session_id": session,
            "resume_gateway_url": self._gateway_url,
            "application": {"id": self.bot.id, "flags": 0},
        }
        return [("READY", ready), *(("GUILD_CREATE", guild) for guild in self._guilds.values())]

    async def _interact(
        self,
        user: User,
        kind: int,
        data: dict[str, Any],
        *,
        place: Place | None,
        locale: str = "en-US",
        source: dict[str, Any] | None = None,
    ) -> Interaction:
        channel = place[1] if place else self.channel_of(user)
        known = self.snowflake()
        interaction = Interaction(known, f"token-{known}", channel, self.offset, source["id"] if source else None)
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


async def _read(request: web.Request) -> tuple[Any, Mapping[str, bytes]]:
    """The JSON of a request, and the files uploaded with it by name."""
    if request.content_type != "multipart/form-data":
        return (await request.json() if request.can_read_body else {}), {}
    body: Any = {}
    files: dict[str, bytes] = {}
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        content = bytes(await part.read())
        if part.name == "payload_json":
            body = json.loads(content)
        elif re.fullmatch(r"files\[\d+\]", part.name or "") and part.filename:
            files[part.filename] = content
    return body, files


def _json(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Answer with the bare content type: the SDK reads JSON under no other."""
    return web.Response(body=json.dumps(body).encode(), status=status, headers=headers, content_type="application/json")
