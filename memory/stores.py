"""The stores together, as the gates and the housekeeping are handed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from memory.db import Database
from memory.embedding import Embeddings
from memory.facts import Facts
from memory.journal import Journal
from memory.nulls import Nulls
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

    @property
    def usage(self) -> Usage:
        """What people's chats cost, in counts."""
        return self.embeddings.usage

    @property
    def entries(self) -> tuple[Profile, Timeline, Facts]:
        """The three stores of long-term memory."""
        return self.profile, self.timeline, self.facts
