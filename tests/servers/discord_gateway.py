"""The gateway of the Discord server of the tests: sessions that are identified, resumed and ended."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.servers.discord_model import MEMBERS, MESSAGE_CONTENT, PRIVILEGED


@dataclass(slots=True)
class Gateway:
    """One session at a time. ``greeting`` gives READY and what follows it, ``changed`` hears of every frame."""

    token: str
    greeting: Callable[[str], list[tuple[str, Any]]]
    changed: Callable[[], Awaitable[None]]
    content_intent: bool = True
    members_intent: bool = False
    identified: list[dict[str, Any]] = field(default_factory=list)
    resumed: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    _session: str = ""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Talk to one client until it leaves."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 41_250}})
        try:
            async for frame in socket:
                if frame.type is WSMsgType.TEXT:
                    await self._received(socket, json.loads(frame.data))
                    await self.changed()
        finally:
            if socket in self.sockets:
                self.sockets.remove(socket)
        return socket

    async def dispatch(self, event: str, data: Any) -> None:
        """Send an event, to be sent again to a session that resumes."""
        payload = {"op": 0, "t": event, "s": len(self.events) + 1, "d": data}
        self.events.append(payload)
        await self.broadcast(payload)

    async def invalidate(self) -> None:
        """End the session: the client has to identify anew."""
        self._session = ""
        await self.broadcast({"op": 9, "d": False})

    async def broadcast(self, payload: dict[str, Any]) -> None:
        """Send a frame as it is."""
        for socket in tuple(self.sockets):
            if not socket.closed:
                await socket.send_json(payload)

    async def close(self, code: int) -> None:
        """Close every connection with a code."""
        for socket in tuple(self.sockets):
            await socket.close(code=code)

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
        allowed = (MESSAGE_CONTENT if self.content_intent else 0) | (MEMBERS if self.members_intent else 0)
        if data["intents"] & PRIVILEGED & ~allowed:
            await socket.close(code=4014, message=b"Disallowed intent(s).")
            return
        self._session = f"session-{len(self.identified)}"
        self.sockets.append(socket)
        for event, content in self.greeting(self._session):
            await self.dispatch(event, content)
        self.identified.append(data)

    async def _resume(self, socket: web.WebSocketResponse, data: dict[str, Any]) -> None:
        if data["session_id"] != self._session:
            await socket.send_json({"op": 9, "d": False})
            return
        for event in self.events[data["seq"] :]:
            await socket.send_json(event)
        self.sockets.append(socket)
        self.resumed += 1
        await self.dispatch("RESUMED", {})
