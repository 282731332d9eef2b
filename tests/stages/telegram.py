"""Telegram behind the vocabulary of :mod:`tests.stages.stage`: the real adapter polls the strict server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from bot.adapters.telegram import Pace, TelegramAdapter
from bot.message import Adapter
from tests.servers.telegram_rules import units
from tests.servers.telegram_server import TelegramServer
from tests.stages.stage import MARA, PICTURE, Hours, Person, Room, Stage, cancelled


class Telegram:
    """Telegram, by long polling."""

    name = "telegram"
    grows = True
    bearable = 12_000
    group, topic = -500, 11

    def __init__(self, hours: Hours, server: TelegramServer) -> None:
        self._hours = hours
        self.server = server

    @classmethod
    @asynccontextmanager
    async def set(cls, hours: Hours) -> AsyncIterator[Stage]:
        async with TelegramServer(clock=hours.time) as server:
            server.group(cls.group, cls.topic)
            yield cls(hours, server)

    def adapter(self) -> Adapter:
        pace = Pace(long_poll=1, tempo=self._hours.tempo)
        return TelegramAdapter(self.server.token, clock=self._hours.clock, base_url=self.server.base_url, pace=pace)

    async def up(self) -> None:
        """Updates wait at the platform."""

    async def leave(self, serving: asyncio.Task[None]) -> None:
        await cancelled(serving)

    def passes(self, seconds: float) -> None:
        """The server goes by the clock of the test."""

    def user_id(self, who: Person) -> str:
        return str(who.number)

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
        chat = self._chat(who, room)
        more = self._sender(who)
        if room == "topic":
            more["thread"] = self.topic
        if reply_to is not None:
            more["reply_to_message"] = self.server.chat(chat).messages[int(reply_to)]
        if room != "private" and addressed and not text.startswith("/"):
            text = f"@{self.server.me['username']} {text}"
        if naming is not None:
            text, more["entities"] = self._named(text, naming)
        return str(self.server.say(who.number, text, chat, **more))

    def _named(self, text: str, other: Person) -> tuple[str, list[dict[str, Any]]]:
        """A text and its entities: our name in front, and that of another without an @."""
        user = self.server.user(other.number, first_name=other.name)
        ours = {"type": "mention", "offset": 0, "length": len(f"@{self.server.me['username']}")}
        theirs = {"type": "text_mention", "offset": units(text.partition("{}")[0]), "length": units(other.name)}
        return text.replace("{}", other.name), [ours, theirs | {"user": user}]

    async def show(self, who: Person, caption: str, pictures: int) -> None:
        for number in range(pictures):
            photo = [self.server.upload(PICTURE) | {"width": 90, "height": 90}]
            more = self._sender(who) | {"photo": photo}
            more |= {"caption": caption} if caption and not number else {}
            more |= {"media_group_id": "G1"} if pictures > 1 else {}
            self.server.say(who.number, None, **more)

    async def forward(self, who: Person, text: str, author: Person) -> None:
        user = self.server.user(author.number, first_name=author.name)
        origin = {"type": "user", "date": self._now, "sender_user": user}
        self.server.say(who.number, text, **self._sender(who), forward_origin=origin)

    async def edit(self, who: Person, message_id: str, text: str) -> None:
        self.server.edit(int(message_id), text, who.number, edit_date=self._now)

    async def repeat(self, who: Person, message_id: str) -> None:
        self.server.push({"message": self.server.chat(who.number).messages[int(message_id)]})

    async def press(self, who: Person, label: str, room: Room = "private", *, of: Person | None = None) -> None:
        chat = self._chat(of or who, room)
        for message in reversed(self.server.chat(chat).ours):
            for row in message.get("reply_markup", {}).get("inline_keyboard", ()):
                for key in row:
                    if key["text"] == label:
                        self.server.press(who.number, message["message_id"], key["callback_data"], chat)
                        return
        raise AssertionError(f"no button {label!r}")

    def shut(self, who: Person) -> None:
        self.server.chat(who.number).started = False

    def trouble(self, who: Person) -> None:
        self.server.fault("editMessageText", retry_after=3)
        self.server.fault("editMessageText", drop=True, after=True)

    def visible(self, who: Person, room: Room = "private") -> list[str]:
        return [message["text"] for message in self._ours(who, room) if "text" in message]

    def sizes(self, who: Person) -> list[float]:
        return [units(text) / 4_096 for text in self.visible(who)]

    def code(self, who: Person) -> str:
        return "\n".join(
            _units(message["text"], entity["offset"], entity["length"]).strip("\n")
            for message in self._ours(who, "private")
            for entity in message.get("entities", ())
            if entity["type"] == "pre"
        )

    def files(self, who: Person) -> list[bytes]:
        ours = self._ours(who, "private")
        return [self.server.files[message["document"]["file_id"]][0] for message in ours if "document" in message]

    def pings(self, room: Room) -> list[str]:
        entities = [entity for message in self._ours(MARA, room) for entity in message.get("entities", ())]
        return [entity["type"] for entity in entities if entity["type"] in ("mention", "text_mention")]

    def _ours(self, who: Person, room: Room) -> Sequence[dict[str, Any]]:
        thread = self.topic if room == "topic" else None
        chat = self.server.chat(self._chat(who, room))
        return [message for message in chat.ours if message.get("message_thread_id") == thread]

    def _chat(self, who: Person, room: Room) -> int:
        return who.number if room == "private" else self.group

    def _sender(self, who: Person) -> dict[str, Any]:
        return {"user": {"first_name": who.name, "is_bot": who.bot}, "date": self._now}

    @property
    def _now(self) -> int:
        return int(self._hours.clock().timestamp())


def _units(text: str, offset: int, length: int) -> str:
    coded = text.encode("utf-16-le")
    return coded[2 * offset : 2 * (offset + length)].decode("utf-16-le")
