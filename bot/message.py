"""What adapters and the agent tell each other. Adapters import this file and their SDK, nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ChatRef:
    """A chat as its platform names it: ``key`` is "dm:1001", "group:-500" or "guild:900/c1"."""

    platform: str
    key: str
    private: bool = True
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of another message that a message answers or quotes; never the sender's own."""

    text: str
    name: str = ""
    user_id: str | None = None
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message from a person.

    ``at`` is aware UTC. ``language`` is the platform's hint (BCP 47) or None. ``message_id`` is unique
    within the chat and names the message for ever; the same id again is the same message.
    ``wants_reply`` False journals and learns without calling the model.
    """

    chat: ChatRef
    user_id: str
    name: str
    message_id: str
    text: str
    at: datetime
    language: str | None = None
    addressed: bool = True
    reply_to: Quote | None = None
    forward_from: str | None = None
    wants_reply: bool = True


@dataclass(frozen=True, slots=True)
class Press:
    """A person pressed a button (or typed what stands for it)."""

    chat: ChatRef
    user_id: str
    name: str
    button_id: str
    at: datetime
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Button:
    """A choice under a reply. ``id`` is at most 64 bytes (Telegram's limit for callback data)."""

    id: str
    label: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a person gets to see. ``private`` asks the platform to show it to that person alone."""

    text: str
    buttons: tuple[Button, ...] = ()
    private: bool = False


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command for the platform's menu; ``descriptions`` by language ("en", "zh")."""

    name: str
    descriptions: dict[str, str] = field(default_factory=dict)


class Sink(Protocol):
    """Where the answer to one message goes. Made by the adapter, used by the conversation."""

    async def show(self, text: str) -> None:
        """Show the answer as far as it has grown. May drop frames; never raises for a lost frame."""

    async def send(self, reply: Reply) -> str | None:
        """Deliver the final reply, whole. Returns the platform's message id if there is one.

        Raises DeliveryError when the reply did not arrive.
        """

    async def done(self) -> None:
        """Called once, when the update has been dealt with, whatever came of it; typing ends here."""


class DeliveryError(Exception):
    """The platform did not take the reply. ``unknown`` is True when it may have arrived all the same."""

    def __init__(self, message: str, *, unknown: bool = False) -> None:
        super().__init__(message)
        self.unknown = unknown


class AdapterError(Exception):
    """An adapter cannot work as configured; the text names the fix and holds no secret."""


Update = Incoming | Press
Submit = Callable[[Update, Sink], Awaitable[None]]
"""Hands an update to the conversation. Returns once it is queued, before it is answered."""


class Adapter(Protocol):
    """One platform."""

    name: str

    async def run(self, submit: Submit, commands: tuple[CommandSpec, ...]) -> None:
        """Serve until cancelled or out of input; on cancellation stop cleanly. Raises AdapterError."""

    async def notify(self, chat: ChatRef, reply: Reply) -> None:
        """Send something nobody asked for just now (a receipt). Raises DeliveryError."""
