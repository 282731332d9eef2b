"""What people do on a platform and what they see of the bot there: one small vocabulary for all of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from bot.delivery import Tempo
from bot.message import Adapter
from tests.conftest import Clock
from tests.telegram_world import Time

Room = Literal["private", "group", "topic"]
PICTURE: Final = b"\x89PNG picture"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with an account on every platform."""

    name: str
    number: int
    bot: bool = False


MARA: Final = Person("Mara", 1001)
TOMAS: Final = Person("Tomas", 1002)
ROBOT: Final = Person("Robot", 1003, bot=True)


@dataclass(frozen=True, slots=True)
class Hours:
    """The one time of a test: what o'clock it is, and the seconds by which an adapter paces itself."""

    clock: Clock
    time: Time

    @property
    def tempo(self) -> Tempo:
        return Tempo(self.time, self.time.sleep)


class Stage(Protocol):
    """A platform. ``room`` is where: a person's private chat, a group, a topic (thread) of that group."""

    name: str
    grows: bool
    """Whether an answer is seen while it grows."""
    bearable: int
    """Characters of an answer that takes several messages and is no file yet."""

    def adapter(self) -> Adapter:
        """The adapter for one start of the bot."""

    async def up(self) -> None:
        """Wait until the bot hears."""

    async def leave(self, serving: asyncio.Task[None]) -> None:
        """Have the adapter stop."""

    def passes(self, seconds: float) -> None:
        """Let the platform's own clock go on."""

    def user_id(self, who: Person) -> str:
        """What the platform calls somebody."""

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
        """Write; "{}" in a text that is ``naming`` somebody is the mention. Returns the id of the message."""

    async def show(self, who: Person, caption: str, pictures: int) -> None:
        """Send pictures at once, in private."""

    async def forward(self, who: Person, text: str, author: Person) -> None:
        """Pass on what somebody else wrote, in private."""

    async def edit(self, who: Person, message_id: str, text: str) -> None:
        """Change what was written in private."""

    async def repeat(self, who: Person, message_id: str) -> None:
        """Deliver a private message once more."""

    async def press(self, who: Person, label: str, room: Room = "private", *, of: Person | None = None) -> None:
        """Press the newest such button in a room or, which no app allows, in the private chat ``of`` somebody else."""

    def shut(self, who: Person) -> None:
        """Let the bot not write to somebody in private."""

    def trouble(self, who: Person) -> None:
        """Let the next change of a message to somebody meet a flood, and the one after it get lost unheard of."""

    def visible(self, who: Person, room: Room = "private") -> list[str]:
        """What of the bot somebody sees in a room now, message by message."""

    def sizes(self, who: Person) -> list[float]:
        """The same in private: how much of the platform's limit each message takes, 1 is full."""

    def code(self, who: Person) -> str:
        """What of it is drawn as a block of code, in private."""

    def files(self, who: Person) -> list[bytes]:
        """The files somebody was sent in private."""

    def pings(self, room: Room) -> list[str]:
        """Whom the bot has pinged."""


def fenced(texts: Sequence[str]) -> str:
    """What stands between fences, each text by itself; one that is left open is an error."""
    assert all(text.count("```") % 2 == 0 for text in texts), "a fence is left open"
    blocks = (block for text in texts for block in re.findall(r"```\w*\n(.*?)\n?```", text, re.DOTALL))
    return "\n".join(block.strip("\n") for block in blocks)


async def cancelled(serving: asyncio.Task[None]) -> None:
    serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving
