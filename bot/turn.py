"""What a turn is made of: messages that are journaled and wait, and the apology for one that failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.message import Incoming, Press
from memory.model import Account, Chat, Message


@dataclass(frozen=True, slots=True)
class Said:
    """A message that is in the journal and waits for an answer; ``message`` is its line.

    ``command`` is (name, words) for a command. ``reply`` was given before a stop and is not known to have
    arrived: it is delivered, not made again. ``lost`` tells that what it asked for was not written down, a
    command or a picture, and was not done before a stop. ``begun`` tells that a message may show its answer
    already: only an answer to it, and to nothing said after it, can go on there. ``rewrites`` are the platform's ids
    of the messages that show an answer which this one is to take the place of.
    """

    incoming: Incoming
    owner: Account
    chat: Chat
    message: Message
    command: tuple[str, str] | None = None
    reply: Message | None = None
    lost: bool = False
    begun: bool = False
    rewrites: tuple[str, ...] = ()

    @property
    def is_talk(self) -> bool:
        """Whether it is ordinary talk, which may be answered together with more of it."""
        return self.command is None and self.reply is None and not self.lost

    def joins(self, other: Said) -> bool:
        """Whether both are one person's talk, to be answered as one."""
        return self.is_talk and other.is_talk and self.owner.no == other.owner.no


Heard = Said | Press


class Apology(Exception):
    """A turn that could not be answered. ``key`` names the phrase for it, ``language`` the person's language."""

    def __init__(self, key: str, language: str) -> None:
        super().__init__(key)
        self.key = key
        self.language = language


class TurnedAway(Exception):
    """An update that is not taken: nothing of it is kept. ``text`` is what to say to that, "" for nothing.

    ``undelivered`` is to be called when that did not arrive, so that it is said another time.
    """

    def __init__(self, text: str = "", undelivered: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__("turned away")
        self.text = text
        self.undelivered = undelivered
