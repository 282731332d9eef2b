"""What a command is given and what a group of commands is: the contract between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from bot.message import Reply
from memory.model import Account, Chat, Message

EXCERPT: Final = 80
"""Characters of a memory that a list of candidates shows."""


@dataclass(frozen=True, slots=True)
class Order:
    """A command as it was given: ``message`` is its (wordless) journal line, ``words`` what followed the name.

    ``replied_to`` is the platform's id of the message it answers, if it answers one.
    """

    owner: Account
    chat: Chat
    message: Message
    name: str
    words: str
    replied_to: str | None = None


@dataclass(frozen=True, slots=True)
class Pressed:
    """A button as it was pressed: by whom, in which chat, its id, and when (aware UTC)."""

    owner: Account
    chat: Chat
    button: str
    now: datetime


Run = Callable[[Order], Awaitable[Reply]]


class Group(Protocol):
    """Commands that belong together, and the buttons under their replies."""

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each of its commands, by name."""

    async def press(self, pressed: Pressed) -> Reply | None:
        """Obey a button of the group; None for one that is not the group's, or not the presser's own."""


def excerpt(text: str, longest: int = EXCERPT) -> str:
    """A text on one line, at most ``longest`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
