"""Discord behind the vocabulary of :mod:`tests.stages.stage`: the real adapter on the strict gateway and REST."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import patch

from bot.adapters.discord import DiscordAdapter, client
from bot.message import Adapter
from tests.servers.discord_server import EPHEMERAL, DiscordServer, Interaction, User
from tests.stages.stage import PICTURE, Hours, Person, Room, Stage, cancelled, fenced


class Discord:
    """Discord, by gateway and REST. ``slash`` and ``delete`` are its own."""

    name = "discord"
    grows = True
    bearable = 8_000

    def __init__(self, hours: Hours, server: DiscordServer) -> None:
        self._hours = hours
        self.server = server
        self.topic = server.guild("general", thread="boats")
        self.group = (self.topic[0], server.channels(self.topic[0])[0])
        self._adapter: DiscordAdapter
        self._interactions: list[tuple[Person, Interaction]] = []

    @classmethod
    @asynccontextmanager
    async def set(cls, hours: Hours) -> AsyncIterator[Stage]:
        async with DiscordServer() as server:
            # The pause after the last server that is told of is a real one.
            with server.reached(), patch.object(client, "GUILDS_PAUSE", 0.02):
                yield cls(hours, server)

    def adapter(self) -> Adapter:
        self._adapter = DiscordAdapter(self.server.token, now=self._hours.clock, tempo=self._hours.tempo)
        return self._adapter

    async def up(self) -> None:
        await self.server.until(lambda: self._adapter._client is not None)
        assert self._adapter._client is not None
        await self._adapter._client.wait_until_ready()

    async def leave(self, serving: asyncio.Task[None]) -> None:
        await cancelled(serving)

    def passes(self, seconds: float) -> None:
        self.server.advance(seconds)

    def user_id(self, who: Person) -> str:
        return self._user(who).id

    async def say(
        self,
        who: Person,
        text: str,
        room: Room = "private",
        *,
        addressed: bool = True,
        reply_to: str | None = None,
        naming: Person | None = None,
    ) -> str:
        others = () if naming is None else (self._user(naming),)
        text = text.replace("{}", f"<@{others[0].id}>") if others else text
        if room != "private" and addressed:
            text = f"<@{self.server.bot.id}> {text}"
        return await self.server.say(self._user(who), text, place=self._place(room), reply_to=reply_to, mentions=others)

    async def show(self, who: Person, caption: str, pictures: int) -> None:
        files = [self.server.file(f"{number}.png", PICTURE, "image/png") for number in range(pictures)]
        await self.server.say(self._user(who), caption, attachments=files)

    async def forward(self, who: Person, text: str, author: Person) -> None:
        words = self.server.message(self._user(author), "1", text)
        reference = {"type": 1, "channel_id": "1", "message_id": "2"}
        await self.server.say(self._user(who), "", message_reference=reference, message_snapshots=[{"message": words}])

    async def edit(self, who: Person, message_id: str, text: str) -> None:
        await self.server.rewrite(message_id, text)

    async def delete(self, message_id: str) -> None:
        """Take a message back."""
        await self.server.take_back(message_id)

    async def repeat(self, who: Person, message_id: str) -> None:
        await self.server.dispatch("MESSAGE_CREATE", self.server.messages[message_id])

    async def slash(
        self, who: Person, name: str, words: str | None = None, room: Room = "private", *, locale: str = "en-US"
    ) -> None:
        """Choose a command from the menu of an app in some language."""
        used = await self.server.slash(self._user(who), name, words, place=self._place(room), locale=locale)
        self._interactions.append((who, used))

    async def press(self, who: Person, label: str, room: Room = "private", *, of: Person | None = None) -> None:
        place = self._place(room)
        for message in reversed(self.server.answers(self._user(of or who) if place is None else place[1])):
            if any(button["label"] == label for row in message["components"] for button in row["components"]):
                used = await self.server.press(self._user(who), message["id"], label, place=place)
                self._interactions.append((who, used))
                return
        raise AssertionError(f"no button {label!r}")

    def shut(self, who: Person) -> None:
        refusal = {"code": 50007, "message": "Cannot send messages to this user"}
        channel = self.server.channel_of(self._user(who))
        self.server.fault(f"POST /channels/{channel}/messages", status=403, body=refusal, times=9)

    def trouble(self, who: Person) -> None:
        self.server.fault("PATCH /channels", retry_after=0.05)
        self.server.fault("PATCH /channels", lost=True)

    def visible(self, who: Person, room: Room = "private") -> list[str]:
        own = {number for person, used in self._interactions if person == who for number in used.messages}
        place = self._place(room)
        answers = self.server.answers(self._user(who) if place is None else place[1])
        seen = [message for message in answers if not message["flags"] & EPHEMERAL or message["id"] in own]
        return [message["content"] for message in seen if message["content"]]

    def sizes(self, who: Person) -> list[float]:
        return [len(text) / 2_000 for text in self.visible(who)]

    def code(self, who: Person) -> str:
        return fenced(self.visible(who))

    def files(self, who: Person) -> list[bytes]:
        return self.server.uploads(self._user(who))

    def pings(self, room: Room) -> list[str]:
        place = self._place(room)
        assert place is not None
        return [ping for message in self.server.answers(place[1]) for ping in message["pings"]]

    def _user(self, who: Person) -> User:
        return User(str(900_000_000_000_000_000 + who.number), who.name, who.bot)

    def _place(self, room: Room) -> tuple[str, str] | None:
        return {"private": None, "group": self.group, "topic": self.topic}[room]
