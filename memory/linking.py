"""Accounts of one human become one person by a code that is shown on the one and typed on the other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from memory import codes
from memory.accounts import Accounts
from memory.db import Database
from memory.model import Account, Chat
from memory.persons import Persons
from memory.promises import Promises

LASTS: Final = timedelta(minutes=10)
"""For which a code may be typed."""
OWN_TRIES: Final = 5
ALL_TRIES: Final = 100
"""Wrong codes in LASTS after which an account, or anybody, is not listened to for a while."""
MOST_ACCOUNTS: Final = 8
"""Of one person; every one of them is searched in every recall."""

Outcome = Literal["linked", "wrong", "own", "already", "too_many_tries", "too_many_accounts"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A code to be shown once, in groups of four signs, and the moment it ends at."""

    code: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Linked:
    """What came of a typed code; ``other`` is the account that had shown it."""

    outcome: Outcome
    other: Account | None = None


class Linking:
    """Links and unlinks. Linking is a view: nothing is written in anybody's memory."""

    def __init__(self, db: Database, accounts: Accounts, persons: Persons, promises: Promises) -> None:
        self._db = db
        self._accounts = accounts
        self._persons = persons
        self._promises = promises

    async def show(self, owner: Account, chat: Chat, *, now: datetime) -> Shown:
        """A new code of the owner's, to be typed on another account within LASTS; an earlier one ends.

        Raises ValueError outside a private chat: there others read it.
        """
        if not chat.private:
            raise ValueError("a code is shown in a private chat alone")
        new = codes.fresh()
        async with self._db.transaction():
            await self._persons.show_code(owner, chat, new.salt, new.hash, expires_at=now + LASTS)
        return Shown(new.shown, now + LASTS)

    async def redeem(self, owner: Account, typed: str, *, now: datetime) -> Linked:
        """Link the owner with the account that was shown this code, and tell the accounts that become one with it.

        A code works once, however many type it at the same time.
        """
        async with self._db.transaction():
            own, whole = await self._persons.misses(owner, since=now - LASTS)
            if own >= OWN_TRIES or whole >= ALL_TRIES:
                return Linked("too_many_tries")
            found = codes.matching(await self._persons.open_codes(now=now), typed)
            if found is None:
                await self._persons.missed(owner, at=now)
                return Linked("wrong")
            if found.account == owner.no:
                return Linked("own")
            await self._persons.use(found.account)
            other = await self._accounts.numbered(found.account)
            mine, theirs = await self._persons.others(owner), await self._persons.others(other)
            if other.no in mine:
                return Linked("already", other)
            if len(mine) + len(theirs) + 2 > MOST_ACCOUNTS:
                return Linked("too_many_accounts", other)
            await self._persons.join(owner, other, at=now)
            await self._promises.notify(other, found.chat, "link.notice", {"platform": owner.platform}, at=now)
            for number in (*mine, *theirs):
                joined = other if number in mine else owner
                await self._tell(await self._accounts.numbered(number), "link.joined", joined, now=now)
        self._persons.forget_who_is_who()
        return Linked("linked", other)

    async def void(self, owner: Account, typed: str, *, now: datetime) -> bool:
        """A code was typed where others read it: it is worth nothing any more; whether it was one."""
        async with self._db.transaction():
            found = codes.matching(await self._persons.open_codes(now=now), typed)
            if found is not None:
                await self._persons.use(found.account)
            else:
                await self._persons.missed(owner, at=now)
        return found is not None

    async def unlink(self, owner: Account, *, now: datetime) -> list[Account]:
        """Take the owner's account out of its person, and tell the others; returns these."""
        async with self._db.transaction():
            others = [await self._accounts.numbered(number) for number in await self._persons.others(owner)]
            await self._persons.part(owner)
            await self._persons.use(owner.no)
            for other in others:
                await self._tell(other, "unlink.notice", owner, now=now)
        self._persons.forget_who_is_who()
        return others

    async def linked(self, owner: Account) -> list[Account]:
        """The owner's other accounts."""
        return [await self._accounts.numbered(number) for number in await self._persons.others(owner)]

    async def holder(self, owner: Account, row_id: int) -> Account | None:
        """Which of the person's accounts a row belongs to; None for a row of somebody else."""
        return next((each for each in (owner, *await self.linked(owner)) if each.owns(row_id)), None)

    async def _tell(self, account: Account, phrase: str, about: Account, *, now: datetime) -> None:
        chat = await self._persons.private_chat(account)
        if chat is not None:
            await self._promises.notify(account, chat, phrase, {"platform": about.platform}, at=now)
