"""Made-up people for the speed benchmark: facts in the store of facts, with given vectors."""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from config.settings import Settings
from memory import Memory
from memory.accounts import Accounts, Chats
from memory.db import Database
from memory.facts import Facts
from memory.journal import Journal, Line
from memory.model import PRIVATE, Account, Candidate, Chat, Citation
from memory.ports import Vector
from memory.sealing import Sealing
from memory.sessions import Sessions
from memory.shipped import Shipped
from memory.stores import Stores

DIMENSIONS: Final = 1_024
START: Final = datetime(2025, 1, 1, 8, tzinfo=UTC)
NOW: Final = START + timedelta(days=30)
OWN: Final = 200
"""Facts of one person where the number of people is what changes."""
AT_ONCE: Final = 1_024
"""Facts embedded before they are sealed."""
PLATFORM: Final = "bench"


class GivenVectors:
    """An embedder that costs next to nothing: a vector of length 1 drawn from the text's own hash."""

    model = "bench/given"
    dimensions = DIMENSIONS

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Draw one vector a text."""
        return [drawn(text) for text in texts]


@lru_cache(maxsize=1_024)
def drawn(text: str) -> Vector:
    """The vector of a text: the same for the same text, in no direction in particular. The last ones are kept."""
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
    vector = np.random.default_rng(seed).standard_normal(DIMENSIONS, dtype=np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def sentences(count: int, seed: int) -> list[str]:
    """Made-up sentences of ten words each, a few words common and many rare."""
    words = random.Random(seed)  # noqa: S311
    return [f"{' '.join(_words(words, 9))} item{number}" for number in range(count)]


def asked(count: int, seed: int = 0) -> list[str]:
    """Questions: five words of a made-up sentence each."""
    return [" ".join(sentence.split()[:5]) for sentence in sentences(count, seed)]


def _words(source: random.Random, count: int) -> Iterator[str]:
    return (f"word{int(source.paretovariate(0.6)) % 4_000}" for _ in range(count))


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a memory, and the private chat to ask it in."""

    owner: Account
    room: Chat


@contextlib.asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Memory]:
    """Memory over a file, with given vectors."""
    memory = await Memory.open(path, Settings(_env_file=None), clock=lambda: START, count=len, embedder=GivenVectors())
    try:
        yield memory
    finally:
        await memory.close()


async def person(memory: Memory, name: str) -> Person:
    """Somebody of that name, as they are in the file."""
    owner = await memory.account(PLATFORM, name, name=name)
    return Person(owner, await memory.chat(owner, f"dm:{name}"))


async def fill(path: Path, people: Sequence[str], facts: int, *, alike: bool = False) -> None:
    """Give each of these people so many facts that cite one message of theirs, and their vectors.

    With ``alike`` all know the same, which is made faster.

    All rows are written by the stores themselves, in one transaction; the write gate, which would compare each
    fact with each, is passed by. Everything is sealed then, as housekeeping does within the hour.
    """
    database = await Database.open(path)
    accounts = Accounts(database)
    try:
        owners = []
        shared = sentences(facts, seed=0) if alike else None
        async with database.transaction():
            for name in people:
                owner = await accounts.meet(PLATFORM, name, name=name, language="en", zone="UTC", at=START)
                await _know(database, accounts, owner, shared or sentences(facts, seed=owner.no))
                owners.append(owner)
        stores = stores_in(database, accounts)
        shipped = Shipped(stores.embeddings)
        for tongue in ("zh", "en"):
            await shipped.fetch(tongue)
        for owner in owners:
            texts = shared or sentences(facts, seed=owner.no)
            for start in range(0, len(texts), AT_ONCE):
                await stores.embeddings.fill(owner, texts[start : start + AT_ONCE])
                await Sealing(database, stores).seal(owner, shipped.centre())
    finally:
        await database.close()


def stores_in(database: Database, accounts: Accounts) -> Stores:
    """All stores of a file, with given vectors."""
    return Stores.over(database, accounts, GivenVectors(), lambda: START)


async def _know(database: Database, accounts: Accounts, owner: Account, texts: Sequence[str]) -> None:
    """Write facts that all cite one message."""
    chat = await Chats(database).enter(owner, f"dm:{owner.user_id}", private=True, at=START)
    session = await Sessions(database, timedelta(hours=1)).touch(owner, chat, START)
    line = Line("user", owner.name, START, "all of it")
    (message,) = await Journal(database, accounts).add(owner, chat, session, [line])
    store, cited = Facts(database, accounts), (Citation(message.id, line.text, START),)
    facts = [Candidate("fact", cited, "en", text=text) for text in texts]
    await store.add_all(owner, facts, audience=PRIVATE, now=START)
