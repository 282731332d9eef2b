"""The nulls of everybody's memory: measured when one is first needed, stored, and renewed when nobody waits."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import blake2b
from typing import Final

import numpy as np

from memory.index import OwnerIndex
from memory.indexes import Indexes
from memory.judge import Limits, usable_rows
from memory.model import PRIVATE, Account, Unit
from memory.nulls import Case
from memory.offloop import off_loop
from memory.segments import reading
from memory.shipped import Probes, probes, shipped_texts, told_texts
from memory.stores import Stores
from memory.threshold import Null, measure, telling

KEPT: Final = 4_096
"""Nulls held in memory; each is a handful of numbers."""
SOON: Final = 2_000
"""Rows up to which a null that has aged is measured again at once: it takes some 15 ms, and they change fast."""
MOST_AGED: Final = 2.0
"""Times by which a memory may outgrow its null before even a large one is measured again while somebody waits."""
_WIDTH: Final = 8


@dataclass(slots=True)
class Kept:
    """A null in memory, the question it was last used for, and whether it is to be stored or measured again."""

    owner: Account
    null: Null
    foreign: Probes
    limits: Limits
    erasures: int
    stored: bool = False
    aged: bool = False

    def serving(self, index: OwnerIndex, foreign: Probes, limits: Limits, *, talk: bool) -> Null | None:
        """The null, if it may be used for one more reply; None where it is to be measured again first."""
        pool = usable_rows(index, limits)
        rows, vectors = int(pool.sum()), _vectors(index, foreign, talk=talk)
        if not _serves(self.null, rows, vectors):
            return None
        # Which lines a model sees anyway is no matter here, and they are many.
        self.foreign, self.limits = foreign, replace(limits, exclude=frozenset())
        self.aged = not self.null.fits(rows, vectors=vectors)
        return self.null


class Measured:
    """What foreign questions find in a memory, by owner and case."""

    def __init__(self, stores: Stores, indexes: Indexes) -> None:
        self._stores = stores
        self._indexes = indexes
        self._held: OrderedDict[tuple[int, Case], Kept] = OrderedDict()
        self._program: bytes | None = None

    async def program(self) -> bytes:
        """How this program measures; worked out once, in some 50 ms."""
        if self._program is None:
            self._program = await asyncio.to_thread(measuring)
        return self._program

    def at_hand(self, owner: Account, limits: Limits, *, language: str, talk: bool) -> Kept | None:
        """What was measured last for questions, or ``talk``, in a language; None where that is not in memory."""
        key = owner.no, self._case(limits, language, talk=talk)
        if key in self._held:
            self._held.move_to_end(key)
        return self._held.get(key)

    async def null(
        self, owner: Account, index: OwnerIndex, foreign: Probes, limits: Limits, *, language: str, talk: bool
    ) -> Null | None:
        """The null for a question, or ``talk``, in a language; None where nothing that may be used tells anything.

        One that has aged serves until :meth:`settle` renews it, if to measure it would keep the asker waiting.
        """
        pool = usable_rows(index, limits)
        if not telling(index, pool).any():
            return None
        case = self._case(limits, language, talk=talk)
        held = self._held.get((owner.no, case)) or await self._stored(owner, case, foreign, limits)
        null = None if held is None else held.serving(index, foreign, limits, talk=talk)
        if held is None or null is None:
            size = (1 + int(pool.sum())) * len(foreign.asked.terms)
            null = await off_loop(partial(measure, index, foreign, pool, talk=talk), size=size)
            held = Kept(owner, null, foreign, replace(limits, exclude=frozenset()), self._stores.nulls.erasures)
        self._keep(owner, case, held)
        return null

    def _case(self, limits: Limits, language: str, *, talk: bool) -> Case:
        place = PRIVATE if limits.room.private else limits.room.audience
        return Case(place, language, talk, self._stores.embeddings.model or "")

    async def settle(self) -> None:
        """Measure again what has aged, and store what is new."""
        for (_, case), held in list(self._held.items()):
            if held.aged:
                await self._renew(case, held)
        await self.store()

    async def store(self) -> None:
        """Store what is new."""
        program = await self.program()
        for (_, case), held in list(self._held.items()):
            if not held.stored:
                held.stored = True
                data = held.null.packed()
                await self._stores.nulls.put(held.owner, case, program, data, erasures=held.erasures)

    async def _renew(self, case: Case, held: Kept) -> None:
        async with self._indexes.of(held.owner) as index:
            pool = usable_rows(index, held.limits)
            if not telling(index, pool).any():
                return
            erasures, size = self._stores.nulls.erasures, len(index.rows) * len(held.foreign.asked.terms)
            null = await off_loop(partial(measure, index, held.foreign, pool, talk=case.talk), size=size)
        self._keep(held.owner, case, Kept(held.owner, null, held.foreign, held.limits, erasures))

    async def _stored(self, owner: Account, case: Case, foreign: Probes, limits: Limits) -> Kept | None:
        program = await self.program()
        data = await self._stores.nulls.get(owner, case, program)
        if data is None:
            return None
        return Kept(owner, Null.unpacked(data), foreign, limits, self._stores.nulls.erasures, stored=True)

    def _keep(self, owner: Account, case: Case, held: Kept) -> None:
        self._held[owner.no, case] = held
        self._held.move_to_end((owner.no, case))
        if len(self._held) > KEPT:
            self._held.popitem(last=False)


def _vectors(index: OwnerIndex, foreign: Probes, *, talk: bool) -> int:
    lot = foreign.talk if talk else foreign.asked
    return 0 if lot.vectors is None else len(index.vectors)


def _serves(null: Null, rows: int, vectors: int) -> bool:
    """Whether a null may be used for one more reply: it fits, or it nearly does and would take long to measure."""
    if null.fits(rows, vectors=vectors):
        return True
    pairs = ((rows, null.rows), (vectors, null.vectors))
    return rows > SOON and all(max(now, then) <= MOST_AGED * min(now, then) for now, then in pairs)


@cache
def measuring() -> bytes:
    """What tells nulls of two programs apart: a hash of what is measured in a memory of the shipped statements."""
    source = np.random.default_rng(0)
    index, now = OwnerIndex(), datetime(1970, 1, 1, tzinfo=UTC)
    told = [text for language in ("zh", "en") for text in told_texts(language)]
    keys = [number.to_bytes(16, "little") for number in range(1, len(told) + 1)]
    index.add(
        Unit(number, "fact", text, now, PRIVATE, key)
        for number, (text, key) in enumerate(zip(told, keys, strict=True), start=1)
    )
    index.add_vectors(keys, source.standard_normal((len(told), _WIDTH), dtype=np.float32))
    pool = np.ones(len(told), np.bool_)
    found = [reading()]
    for language in ("zh", "en"):
        foreign = probes(language, source.standard_normal((len(shipped_texts(language)), _WIDTH), dtype=np.float32))
        found += [measure(index, foreign, pool, talk=talk).packed().encode() for talk in (False, True)]
    return blake2b(b"".join(found), digest_size=8).digest()
