"""Who is where: what was said in a group is usable there by those who are in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from memory.accounts import Accounts
from memory.db import Database
from memory.departures import Departures
from memory.model import Account, Chat, Sight
from memory.sights import Sights

NOWHERE: Final = -2
"""Number of a group in which nothing was ever said: whoever left one sees it as if it were this."""


class Rooms:
    """Comings and goings. Leaving changes no memory, so that coming back needs none to be changed again."""

    def __init__(self, db: Database, accounts: Accounts, *, changed: Callable[[], None]) -> None:
        """``changed`` is called when what was said in a room may be used there no more."""
        self._db = db
        self._accounts = accounts
        self._changed = changed
        self._departures = Departures(db)
        self._sights = Sights(db)

    async def left(self, owner: Account, key: str, *, at: datetime) -> None:
        """The owner is no longer in the group ``key``, or in those of the server ``key``.

        What they said there is for their private chat alone until they write there again; nobody is answered there
        on their behalf.
        """
        async with self._db.transaction():
            groups = await self._departures.leave(owner, key, at=at)
            await self._departures.give_up(owner, groups)

    async def shut_out(self, owner: Account, keys: Collection[str], *, at: datetime) -> None:
        """The owner is no longer in any of these groups; of those they were in this is what :meth:`left` does."""
        for key in await self._departures.places(owner, keys):
            await self.left(owner, key, at=at)

    async def removed(self, platform: str, key: str, *, at: datetime) -> None:
        """The bot is no longer in a group, or a server: nobody is with it there until they write to it again.

        Who leaves while it is away does so unseen, so that having been there before counts for nothing.
        """
        for number in await self._departures.members(platform, key):
            await self.left(await self._accounts.numbered(number), key, at=at)

    async def seen(self, platform: str, told: Mapping[str, Sight], *, at: datetime) -> None:
        """Take note of who may see rooms from ``at`` on, by their keys; of what changed, and what that leads to.

        Where more people see a room than before, what was said there until now is for private chats alone: only its
        owner can open it to others. Where some see it no more, nobody counts as being there until they write again,
        as :meth:`removed` has it; whoever still is loses nothing by that, and no answer is given up.
        """
        known = await self._sights.known(platform, told)
        news = {key: sight for key, sight in told.items() if known.get(key) != sight}
        if not news:
            return
        async with self._db.transaction():
            await self._sights.keep(platform, news)
            changes = {key: (known[key], sight) for key, sight in news.items() if key in known}
            opened = await self._followed(platform, changes, at=at)
        if opened:
            self._changed()

    async def moved(self, platform: str, old_key: str, new_key: str, *, at: datetime) -> None:
        """Who may see the group ``old_key`` is known of ``new_key``, under which it goes on from ``at``.

        What was told of the new key already counts against what was told of the old one, as :meth:`seen` has it.
        Called before the group has its new key, inside the transaction that gives it.
        """
        known = await self._sights.known(platform, (old_key, new_key))
        if old_key == new_key or old_key not in known:
            return
        if new_key in known:
            await self._followed(platform, {old_key: (known[old_key], known[new_key])}, at=at)
        else:
            await self._sights.keep(platform, {new_key: known[old_key]})
        await self._sights.drop(platform, old_key)

    async def _followed(self, platform: str, changes: Mapping[str, tuple[Sight, Sight]], *, at: datetime) -> bool:
        """Do what follows of who saw rooms before and sees them now; whether talks were kept to private chats."""
        talks = 0
        for key, (before, now) in changes.items():
            if now.opens(before):
                talks += await self._sights.opened(platform, key, at=at)
            if before.opens(now):
                for number in await self._departures.members(platform, key):
                    await self._departures.leave(await self._accounts.numbered(number), key, at=at)
        return bool(talks)

    async def spoke(self, owner: Account, chat: Chat, *, at: datetime) -> None:
        """The owner wrote in a chat at ``at``: if they had left before, they are back."""
        if not chat.private:
            await self._departures.back(owner, chat, at=at)

    async def seen_by(self, owner: Account, room: Chat) -> Chat:
        """A room as the owner's memory may be used in it: as it is, or, once they left, as one without a past."""
        if room.private or not await self._departures.left(owner, room):
            return room
        return replace(room, no=NOWHERE, parent=None)
