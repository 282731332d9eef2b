"""Who may talk to the bot: strangers are shown a code, and whoever runs the bot lets them in by it. No memory.

Names are those of the settings: a platform and a number ("telegram:1001", "telegram:-1002", "discord:900").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from memory import codes
from memory.accounts import Accounts, Chats
from memory.admissions import Admissions, Allowed, Asking, How, Sort, Standing
from memory.db import Database
from memory.promises import Promises

LASTS: Final = timedelta(days=1)
"""For which a code may be typed. As long nothing more is said to whoever was shown it."""
REFUSED_FOR: Final = timedelta(days=30)
"""For which nothing is said to somebody who was refused."""
MOST_ASKING: Final = 100
"""Strangers who may have a code at a time; further ones get no answer, so that a crowd cannot fill the file."""
TRIES: Final = 5
TRIES_WITHIN: Final = timedelta(minutes=10)
"""Wrong codes after which whoever types them is not listened to for a while."""
WELCOME: Final = "access.welcome"

Outcome = Literal["done", "wrong", "too_many_tries"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What came of a typed code; ``name`` is whose it was."""

    outcome: Outcome
    name: str = ""


class Access:
    """The list of who may talk, and the codes by which it grows. Every look at it reads the file: a removal counts."""

    def __init__(self, db: Database, accounts: Accounts, chats: Chats, promises: Promises) -> None:
        self._db = db
        self._store = Admissions(db)
        self._accounts = accounts
        self._chats = chats
        self._promises = promises

    async def standing(self, person: str, places: Sequence[str]) -> Standing:
        """What is written down of a person in a place that goes by these names."""
        return await self._store.standing(person, places)

    async def ask(self, person: str, *, key: str, language: str, now: datetime) -> str | None:
        """A code for a stranger to hand on; None when they were shown one, were refused, or too many ask already.

        ``key`` is their private chat, ``language`` what they are welcomed in.
        """
        if await self._store.is_asking(person, now=now):
            return None
        async with self._db.transaction():
            await self._store.drop_old(now=now, tries_since=now - TRIES_WITHIN)
            if len(await self._store.asking(now=now)) >= MOST_ASKING:
                return None
            new = codes.fresh()
            asking = Asking(
                person, key, language, new.salt, new.hash, refused=False, asked_at=now, expires_at=now + LASTS
            )
            await self._store.ask(asking)
        return new.shown

    async def unasked(self, person: str) -> None:
        """A stranger never got their code: they may ask again."""
        await self._store.settle(person)

    async def approve(self, typed: str, *, by: str, zone: str, now: datetime, admin: bool = False) -> Ruling:
        """Let in whoever was shown this code, and have them told. A code works once, however many type it."""
        async with self._db.transaction():
            ruling, asking = await self._ruled(typed, by=by, now=now)
            if asking is not None:
                await self._store.allow(asking.name, "person", how="code", admin=admin, at=now)
                await self._welcome(asking, zone=zone, now=now)
        return ruling

    async def refuse(self, typed: str, *, by: str, now: datetime) -> Ruling:
        """Have a code be worth nothing. Whoever was shown it is not told, and hears nothing more for a while."""
        async with self._db.transaction():
            ruling, asking = await self._ruled(typed, by=by, now=now)
            if asking is not None:
                await self._store.refuse(asking.name, until=now + REFUSED_FOR)
        return ruling

    async def allow(
        self, name: str, kind: Sort, *, zone: str, now: datetime, admin: bool = False, how: How = "name"
    ) -> bool:
        """Let a person or a group in by its number; whether that is news. One who asks to be let in is told."""
        async with self._db.transaction():
            news = await self._store.allow(name, kind, how=how, admin=admin, at=now)
            asking = {each.name: each for each in await self._store.asking(now=now)}.get(name)
            if asking is not None and kind == "person":
                await self._welcome(asking, zone=zone, now=now)
        return news

    async def remove(self, name: str) -> list[Sort]:
        """Let a person or group in no more, from this moment on; as what they were in. Nothing they told is erased."""
        async with self._db.transaction():
            gone = await self._store.remove(name)
            if gone:
                await self._store.settle(name)
        return gone

    async def everyone(self) -> list[Allowed]:
        """Who is in beside those the settings name."""
        return await self._store.everyone()

    async def asking(self, *, now: datetime) -> list[Asking]:
        """Who has a code that may still be typed."""
        return [each for each in await self._store.asking(now=now) if not each.refused]

    async def _ruled(self, typed: str, *, by: str, now: datetime) -> tuple[Ruling, Asking | None]:
        """Whose code was typed. Needs an open transaction."""
        await self._store.drop_old(now=now, tries_since=now - TRIES_WITHIN)
        if await self._store.misses(by) >= TRIES:
            return Ruling("too_many_tries"), None
        found = codes.matching(await self.asking(now=now), typed)
        if found is None:
            await self._store.missed(by, at=now)
            return Ruling("wrong"), None
        return Ruling("done", found.name), found

    async def _welcome(self, asking: Asking, *, zone: str, now: datetime) -> None:
        """Owe somebody who was let in the word of it, where and in the language they asked. Needs a transaction."""
        platform, _, user_id = asking.name.partition(":")
        owner = await self._accounts.meet(platform, user_id, name="", language=asking.language, zone=zone, at=now)
        chat = await self._chats.enter(owner, asking.key, private=True, at=now)
        await self._promises.notify(owner, chat.no, WELCOME, {}, at=now)
        await self._store.settle(asking.name)
