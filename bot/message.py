"""What adapters and the agent tell each other: the language every platform is translated into."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Protocol, runtime_checkable


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


MediaKind = Literal["image", "voice", "audio", "video", "sticker", "file"]


class MediaError(Exception):
    """A file that came with a message cannot be had: too large, gone, or the platform does not answer."""


@dataclass(frozen=True, slots=True)
class Media:
    """Something beside the words of a message.

    ``size`` is in bytes, None where the platform does not tell. ``read(limit)`` fetches the content; it
    raises MediaError when that is more than ``limit`` bytes or cannot be had.
    """

    kind: MediaKind
    read: Callable[[int], Awaitable[bytes]]
    name: str = ""
    mime: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message from a person.

    ``at`` is aware UTC. ``language`` is the platform's hint (BCP 47) or None. ``message_id`` is unique
    within the chat and names the message for ever; the same id again is the same message. ``text`` may be
    empty when there is ``media``. Messages with the same ``album`` were sent as one.
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
    media: tuple[Media, ...] = ()
    album: str | None = None


@dataclass(frozen=True, slots=True)
class Edited:
    """A message was changed: ``message`` is what it says now, ``message.at`` still when it was first sent.

    ``at`` is when it was changed. Comes for messages we may never have read, too; never runs a command.
    """

    message: Incoming
    at: datetime

    @property
    def chat(self) -> ChatRef:
        """The chat of the message."""
        return self.message.chat

    @property
    def language(self) -> str | None:
        """The platform's hint."""
        return self.message.language


@dataclass(frozen=True, slots=True)
class Deleted:
    """Messages were taken back on the platform, by whomever; ``message_ids`` may name some we never read."""

    chat: ChatRef
    message_ids: tuple[str, ...]
    at: datetime
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """The group ``chat`` has a new key on its platform; everything of it belongs there from now on."""

    chat: ChatRef
    key: str
    at: datetime
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """Somebody, or the bot itself (``user_id`` None), is no longer in the group ``chat``.

    The chat may be a server ("guild:900"): then it is all of its channels, or, with ``rooms``, those with these keys.
    """

    chat: ChatRef
    user_id: str | None
    at: datetime
    language: str | None = None
    rooms: frozenset[str] | None = None

    def concerns(self, chat: ChatRef) -> bool:
        """Whether a chat is the group, a topic of it, or a channel of the server."""
        mine = self.chat.key
        if self.rooms is not None:
            return chat.platform == self.chat.platform and chat.key in self.rooms
        return chat.platform == self.chat.platform and (chat.key == mine or chat.key.startswith(f"{mine}/"))


@dataclass(frozen=True, slots=True)
class Sight:
    """Who may see a room: ``everybody`` but those who are shut out (``but``), or only those let in (``by``).

    The names mean something to the platform alone; nobody is named who sees what everybody does.
    """

    everybody: bool
    by: frozenset[str] = frozenset()
    but: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Sighted:
    """Who may see the rooms of the server ``chat`` now, by the keys of the rooms; it may tell of some of them only.

    Comes when the platform is up, and whenever somebody changes it there.
    """

    chat: ChatRef
    rooms: Mapping[str, Sight] = field(repr=False)
    at: datetime
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Press:
    """A person pressed a button (or typed what stands for it); ``message_id`` is the message it was on, if known."""

    chat: ChatRef
    user_id: str
    name: str
    button_id: str
    at: datetime
    language: str | None = None
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Button:
    """A choice under a reply. ``id`` is at most 64 bytes (Telegram's limit for callback data)."""

    id: str
    label: str


@dataclass(frozen=True, slots=True)
class File:
    """Something for a person to keep: a name without folders, bytes, and their media type ("text/html")."""

    name: str
    content: bytes = field(repr=False)
    mime: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a person gets to see; ``text`` is Markdown if ``markdown``, else to be shown as it is.

    ``private`` asks the platform to show it to that person alone. Where that means another place than the
    chat, the chat gets ``hint`` instead ("I have written to you privately"), or ``closed`` when the person
    cannot be written to there ("open a private chat with me first"). ``files`` come behind the text. One
    that is ``in_place`` takes the place of the message whose button was pressed, if that can be changed.
    """

    text: str
    buttons: tuple[Button, ...] = ()
    private: bool = False
    markdown: bool = False
    hint: str = ""
    closed: str = ""
    files: tuple[File, ...] = ()
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command for the platform's menu.

    ``descriptions`` by language: "en", "zh" (simplified), "zh-TW" (traditional). One that is ``private``
    makes sense in a private chat only.
    """

    name: str
    descriptions: dict[str, str] = field(default_factory=dict)
    private: bool = False


class Posted(Protocol):
    """Keeps book of the messages an answer is shown in.

    What it is told survives a kill: with these ids an answer goes on where it was.
    """

    async def __call__(self, message_id: str | None) -> None:
        """Be told None right before the first message goes out, then the platform's id of each that did."""

    async def unbegun(self) -> None:
        """Be told that None was too early: nothing went out, for sure. It is told again before the next try."""


class Sink(Protocol):
    """Where the answer to one message goes. Made by the adapter, used by the conversation."""

    def watch(self, posted: Posted) -> None:
        """Have ``posted`` told of every message the answer is shown in. Called before anything is shown."""

    async def show(self, text: str) -> None:
        """Show the answer (Markdown) as far as it has grown. May drop frames; never raises for a lost frame."""

    async def send(self, reply: Reply) -> str | None:
        """Deliver the final reply, whole. Returns the platform's message id if there is one.

        Raises DeliveryError when the reply did not arrive.
        """

    async def abandon(self, *, keep: bool) -> bool:
        """Give an answer up, also one whose final text waits to go out; no request follows the one under way.

        What is shown of it stays if ``keep``, else it is taken back. False when the answer is there, or beyond
        stopping; it then stays if ``keep``.
        """

    async def done(self) -> None:
        """Called once, when the update has been dealt with, whatever came of it.

        Typing ends here, and so do frames: what a cancelled answer has not shown by now is never shown.
        """


class DeliveryError(Exception):
    """The platform did not take the reply.

    ``unknown`` is True when it may have arrived all the same, ``later`` when it is sure that nothing of it did
    and the platform may take it another time: it could not be reached.
    """

    def __init__(self, message: str, *, unknown: bool = False, later: bool = False) -> None:
        super().__init__(message)
        self.unknown = unknown
        self.later = later


class AdapterError(Exception):
    """An adapter cannot work as configured; the text names the fix and holds no secret."""


Update = Incoming | Press | Edited | Deleted | Moved | Left | Sighted
Submit = Callable[[Update, Sink], Awaitable[None]]
"""Hands an update to the conversation. Returns once it is durable and queued, before it is answered: only then
may an adapter tell its platform that it has the update. Never raises."""


Seen = Callable[[], Awaitable[Mapping[ChatRef, str]]]
"""Called by an adapter each time it is up (its ``sink`` works) before it hands in anything: what still waits for an
answer is queued first. Returns the newest message the journal has of each chat, for a platform that does not
keep what was said meanwhile."""


@runtime_checkable
class Connects(Protocol):
    """An adapter that can tell whether its platform is there just now."""

    @property
    def connected(self) -> bool:
        """Whether what is said there is heard at this moment, as far as is known."""


class Adapter(Protocol):
    """One platform."""

    name: str
    repeats_for: timedelta
    """How long a first message of an answer may be sent again without being shown twice (Discord's nonce); mostly 0."""

    async def run(self, submit: Submit, commands: tuple[CommandSpec, ...], seen: Seen) -> None:
        """Serve until cancelled or out of input; on cancellation stop cleanly. Raises AdapterError."""

    async def notify(self, chat: ChatRef, reply: Reply) -> None:
        """Send something nobody asked for just now (a receipt). Raises DeliveryError."""

    def sink(self, incoming: Incoming, *, shown: tuple[str, ...] = (), begun: bool = False) -> Sink:
        """Where the answer to a message of the past goes, taken up after a restart.

        ``shown`` are the ids of the messages that show it already, ``begun`` tells that one more may.
        Raises DeliveryError when the platform is not up.
        """
