"""A real database with the stores the write path needs, one person and one private chat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self

from memory.accounts import Accounts, Chats
from memory.db import Database
from memory.echoes import Echoes
from memory.facts import Facts
from memory.forget import Forgetting
from memory.journal import Journal, Line
from memory.model import Account, Candidate, Chat, Citation, Entry, Message, ProfileLine
from memory.persons import Persons
from memory.profile import Profile
from memory.sessions import Sessions
from memory.stores import Stores
from memory.timeline import Timeline
from tests.conftest import Clock


@dataclass
class Shelf:
    """Fits :class:`memory.reconcile.Gate`; ``say`` journals a line as the bot would."""

    db: Database
    clock: Clock
    owner: Account
    chat: Chat
    accounts: Accounts
    sessions: Sessions
    journal: Journal
    profile: Profile
    timeline: Timeline
    facts: Facts
    said: list[Message] = field(default_factory=list)

    @classmethod
    async def open(cls, path: Path, clock: Clock, *, zone: str = "Asia/Shanghai", language: str = "zh") -> Self:
        """Open a database at ``path`` with one person in it."""
        db = await Database.open(path)
        accounts = Accounts(db)
        owner = await accounts.meet("console", "1001", name="Lin", language=language, zone=zone, at=clock())
        chat = await Chats(db).enter(owner, "dm:1001", private=True, at=clock())
        return cls(
            db,
            clock,
            owner,
            chat,
            accounts,
            Sessions(db, timedelta(minutes=30)),
            Journal(db, accounts),
            Profile(db, accounts),
            Timeline(db, accounts),
            Facts(db, accounts),
        )

    async def say(
        self, text: str, *, bot: bool = False, kind: str = "said", at: datetime | None = None, id_: str | None = None
    ) -> Message:
        """Journal a line a minute after the last one (or at ``at``); ``id_`` is its number on the platform."""
        moment = at or self.clock.advance(minutes=1)
        line = Line("bot" if bot else "user", "Recollect" if bot else "Lin", moment, text, kind, id_)  # type: ignore[arg-type]
        async with self.db.transaction():
            session = await self.sessions.touch(self.owner, self.chat, moment)
            (message,) = await self.journal.add(self.owner, self.chat, session, [line])
        self.said.append(message)
        return message

    @property
    def entries(self) -> tuple[Profile, Timeline, Facts]:
        """The three stores of long-term memory."""
        return self.profile, self.timeline, self.facts

    async def live(self) -> list[Entry]:
        """What holds now, of every kind."""
        now = self.clock()
        return [
            *await self.profile.live(self.owner, now=now),
            *await self.timeline.live(self.owner, now=now),
            *await self.facts.live(self.owner, now=now),
        ]

    async def history(self) -> list[Entry]:
        """Everything, closed rows included."""
        return [
            *await self.profile.history(self.owner),
            *await self.timeline.history(self.owner),
            *await self.facts.history(self.owner),
        ]


def forgetting(shelf: Shelf, stores: Stores) -> Forgetting:
    """The forget gate over a shelf; ten minutes to undo."""
    echoes = Echoes(shelf.accounts, shelf.sessions, stores, Persons(shelf.db), changed=lambda _: None)
    return Forgetting(shelf.db, stores, shelf.sessions, timedelta(minutes=10), echoes)


def cite(message: Message, quote: str = "") -> tuple[Citation, ...]:
    """A citation of a message (of all its words by default)."""
    return (Citation(message.id, quote or message.text, message.at),)


def profile(message: Message, attribute: str, value: str, **changes: object) -> Candidate:
    """A profile candidate from a message."""
    return Candidate("profile", cite(message), "zh", attribute=attribute, value=value, **changes)  # type: ignore[arg-type]


def fact(message: Message, text: str, **changes: object) -> Candidate:
    """A fact candidate from a message."""
    return Candidate("fact", cite(message), "zh", text=text, **changes)  # type: ignore[arg-type]


def values(entries: Sequence[Entry]) -> list[str]:
    """What entries say, in order: the value of a profile line, else the text."""
    return [entry.value if isinstance(entry, ProfileLine) else entry.text for entry in entries]
