"""Who is let in. Asked in one place, before anything is journaled (:mod:`bot.hearing`), for every platform alike."""

from __future__ import annotations

from functools import partial
from typing import Final

from bot.language import language_of
from bot.message import ChatRef, Incoming, Press
from bot.personas import places
from bot.turn import TurnedAway
from config.locales import phrase
from config.settings import AccessSettings
from memory import Memory
from memory.model import Account, Chat
from memory.ports import Clock

TERMINAL: Final = "console"
"""The platform of whoever sits at the machine itself: always let in, and an admin."""


class Doorkeeper:
    """Knows the lists of the settings and the one that admins made. A removal counts from the next message on."""

    def __init__(self, memory: Memory, access: AccessSettings, clock: Clock) -> None:
        self._memory = memory
        self._access = access
        self._clock = clock

    async def permits(self, chat: ChatRef, user_id: str) -> bool:
        """Whether somebody may talk in a chat: they are let in themselves, or everybody there is."""
        if chat.platform == TERMINAL or self._access.open == "everybody":
            return True
        person = f"{chat.platform}:{user_id}"
        names = [] if chat.private else list(places(chat))
        if person in (*self._access.admins, *self._access.allow) or not set(names).isdisjoint(self._access.groups):
            return True
        standing = await self._memory.access.standing(person, names)
        return standing.person or standing.group

    async def is_admin(self, owner: Account) -> bool:
        """Whether somebody runs this bot: at the terminal, named in the settings, or let in as an admin."""
        if owner.platform == TERMINAL or name_of(owner) in self._access.admins:
            return True
        return (await self._memory.access.standing(name_of(owner), ())).admin

    async def admit(self, update: Incoming | Press, *, own: bool) -> None:
        """Let an update in, or raise TurnedAway.

        ``own`` tells that it only shows, hands over or erases what is kept of its author: in private that is never
        refused to anybody of whom something may be kept. A stranger is answered once, in private, with a code.
        """
        chat = update.chat
        if await self.permits(chat, update.user_id):
            return
        owner = await self._memory.known_account(chat.platform, update.user_id) if chat.private else None
        if own and owner is not None:
            return
        if not chat.private or isinstance(update, Press):
            raise TurnedAway
        person, access = f"{chat.platform}:{update.user_id}", self._memory.access
        language = language_of(update) if owner is None else owner.language
        code = await access.ask(person, key=chat.key, language=language, now=self._clock())
        if code is None:
            raise TurnedAway
        text = phrase("access.ask", language, code=code, known=owner is not None, first=not await self.has_admin())
        raise TurnedAway(text, partial(access.unasked, person))

    async def has_admin(self) -> bool:
        """Whether there is an admin beside the terminal."""
        return bool(self._access.admins) or any(each.admin for each in await self._memory.access.everyone())

    async def moved(self, chat: ChatRef, key: str) -> None:
        """A group has a new key: if everybody there was let in, they are let in there, too."""
        old, new = group_name(chat.platform, chat.key), group_name(chat.platform, key)
        access = self._memory.access
        if old in self._access.groups or (await access.standing("", (old,))).group:
            await access.allow(new, "group", zone="UTC", now=self._clock(), how="moved")


def name_of(owner: Account) -> str:
    """A person as the settings name them."""
    return f"{owner.platform}:{owner.user_id}"


def group_name(platform: str, key: str) -> str:
    """A group or channel as the settings name it; a topic or thread goes by its chat."""
    return next(places(ChatRef(platform, key, private=False)))


def room_name(chat: Chat) -> str:
    """The same of a chat that memory knows."""
    return group_name(chat.platform, chat.key)
