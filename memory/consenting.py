"""Asking people whether sensitive matters may be kept, and what follows from their answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from memory.accounts import Chats
from memory.consents import Consents
from memory.db import Database
from memory.forget import Forgetting, Plan
from memory.model import Account, Chat, Decision, Message
from memory.reserve import Reserve, Standing
from memory.sensitive import MATTERS, Matter, matters_of
from memory.sessions import Sessions
from memory.stores import Stores

Choice = Literal["yes", "no", "once"]
Learn = Callable[[Account, Chat, Message], Awaitable[Sequence[Decision]]]


@dataclass(frozen=True, slots=True)
class Question:
    """What the owner is asked: about which matter, for how many lines that wait, until when (aware UTC)."""

    matter: Matter
    lines: int
    until: datetime


@dataclass(frozen=True, slots=True)
class Stand:
    """How a matter stands with the owner, how many lines wait for their word, and whether they gave one."""

    matter: Matter
    standing: Standing
    lines: int
    answered: bool


class Consenting:
    """The owner's words about sensitive matters. ``learn`` is what a line that may be kept is given to.

    ``changed`` is told whose lines are other ones now.
    """

    def __init__(
        self,
        db: Database,
        chats: Chats,
        sessions: Sessions,
        stores: Stores,
        *,
        consents: Consents,
        reserve: Reserve,
        forgetting: Forgetting,
        patience: timedelta,
        learn: Learn,
        changed: Callable[[Account], None],
    ) -> None:
        self._db = db
        self._chats = chats
        self._sessions = sessions
        self._stores = stores
        self._consents = consents
        self._reserve = reserve
        self._forgetting = forgetting
        self._patience = patience
        self._learn = learn
        self._changed = changed

    async def refuses(self, owner: Account, text: str, *, now: datetime) -> bool:
        """Whether a text touches a matter of which nothing is kept."""
        return await self._reserve.refuses(owner, text, now=now)

    async def question(self, owner: Account, *, now: datetime) -> Question | None:
        """What the owner is to be asked now, and counts as asked from now on; None almost always."""
        async with self._db.transaction():
            held = await self._consents.held(owner)
            asked = await self._consents.all(owner) if held else {}
            for matter in MATTERS:
                lines = [line for line, waits in held if matter in waits and line.role == "user"]
                if lines and matter not in asked:
                    await self._consents.put(owner, matter, None, at=now)
                    return Question(matter, len(lines), now + self._patience)
        return None

    async def answer(self, owner: Account, matter: Matter, choice: Choice, *, now: datetime) -> int:
        """Keep a matter always, never, or only what waits just now; returns how many lines are kept by that.

        What waits for another matter as well goes on waiting for that. Lines that are not kept go as what was said off
        the record does.
        """
        async with self._db.transaction():
            if choice == "once":
                await self._consents.remove(owner, matter)
            else:
                await self._consents.put(owner, matter, choice == "yes", at=now)
            waiting = [(line, waits - {matter}) for line, waits in await self._consents.held(owner) if matter in waits]
            if choice == "no":
                await self._consents.let_go(owner, [line.id for line, _ in waiting])
                return 0
            for line, left in waiting:
                await self._consents.waits_for(owner, line.id, left)
            freed = [line for line, left in waiting if not left and line.role == "user"]
            for line in freed:
                await self._sessions.rewind(owner, line.session, before=line.id)
        lines = await self._stores.journal.lines(owner, [line.id for line in freed])
        self._changed(owner)
        for line in lines.values():
            await self._learn(owner, await self._chats.numbered(owner, line.chat), line)
        return len(freed)

    async def revoke(self, owner: Account, chat: Chat, matter: Matter, *, now: datetime) -> Plan | None:
        """Keep nothing of a matter from now on, and offer to forget what is known of it; None when that is nothing."""
        await self.answer(owner, matter, "no", now=now)
        known = [entry for store in self._stores.entries for entry in await store.history(owner)]
        chosen = [entry.id for entry in known if matter in matters_of(entry)]
        return await self._forgetting.choose(owner, chat, chosen, now=now) if chosen else None

    async def stands(self, owner: Account, *, now: datetime) -> list[Stand]:
        """How each matter stands with the owner."""
        standings = await self._reserve.standings(owner, now=now)
        given = {matter for matter, consent in (await self._consents.all(owner)).items() if consent.answer is not None}
        held = await self._consents.held(owner)
        return [
            Stand(
                matter,
                standings[matter],
                sum(matter in waits and line.role == "user" for line, waits in held),
                matter in given,
            )
            for matter in MATTERS
        ]
