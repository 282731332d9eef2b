"""The stores together, as the gates and the housekeeping are handed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

from memory.accounts import Accounts
from memory.db import Database
from memory.embedding import Embeddings
from memory.facts import Facts
from memory.journal import Journal
from memory.nulls import Nulls
from memory.ports import Clock, Embedder
from memory.profile import Profile
from memory.promises import Promises
from memory.sealed import Segments
from memory.timeline import Timeline
from memory.traces import Traces
from memory.usage import Usage
from memory.waiting import Waits


class EntryStores(Protocol):
    """Whoever has the three stores of long-term memory."""

    @property
    def entries(self) -> tuple[Profile, Timeline, Facts]:
        """The three stores."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores that hold a person's words; forgetting has to reach each of them."""

    journal: Journal
    profile: Profile
    timeline: Timeline
    facts: Facts
    embeddings: Embeddings
    traces: Traces
    promises: Promises
    waits: Waits
    segments: Segments
    nulls: Nulls
    db: Database

    @classmethod
    def over(cls, db: Database, accounts: Accounts, embedder: Embedder | None, clock: Clock) -> Self:
        """The stores of a database; vectors come from ``embedder``, from nowhere without one."""
        return cls(
            journal=Journal(db, accounts),
            profile=Profile(db, accounts),
            timeline=Timeline(db, accounts),
            facts=Facts(db, accounts),
            embeddings=Embeddings(db, accounts, embedder, clock),
            traces=Traces(db, accounts),
            promises=Promises(db, accounts),
            waits=Waits(db),
            segments=Segments(db),
            nulls=Nulls(db),
            db=db,
        )

    @property
    def usage(self) -> Usage:
        """What people's chats cost, in counts."""
        return self.embeddings.usage

    @property
    def entries(self) -> tuple[Profile, Timeline, Facts]:
        """The three stores of long-term memory."""
        return self.profile, self.timeline, self.facts
