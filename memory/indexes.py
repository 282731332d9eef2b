"""The indexes of the people who talked last: who works on one, and which are let go of."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from config.settings import RecallSettings
from memory.index import OwnerIndex
from memory.model import Account
from memory.refreshing import Refresher
from memory.stores import Stores

T = TypeVar("T")

MEGABYTE: Final = 1_000_000
MOST_BYTES: Final = RecallSettings().index_mb * MEGABYTE
"""Memory all indexes may hold unless settings say otherwise; the person who talked longest ago goes first."""


@dataclass(eq=False, slots=True)
class _Held:
    """An index, who may work on it now, and the bytes it is known to hold."""

    model: str | None
    index: OwnerIndex = field(default_factory=OwnerIndex)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    nbytes: int = 0


class Hold:
    """An index that is somebody's to work on, until the block of :meth:`Indexes.held` is over."""

    def __init__(
        self, index: OwnerIndex, owner: Account, stores: Stores, refresher: Refresher, let_go: Callable[[], None]
    ) -> None:
        """``let_go`` lets go of the index, so that nobody uses it any more."""
        self.left = index
        """The index as it was left."""
        self._owner = owner
        self._stores = stores
        self._refresher = refresher
        self._let_go = let_go
        self._fresh = False

    async def refreshed(self) -> OwnerIndex:
        """The index as of now."""
        if not self._fresh:
            with self._whole_or_let_go():
                await self._refresher.refresh(self._owner, self.left)
            self._fresh = True
        return self.left

    async def at_once(self, work: Callable[[OwnerIndex], Coroutine[Any, Any, T]]) -> T | None:
        """What ``work`` makes of the index as of now, in one trip to the file, and so as of one moment.

        It awaits nothing but the file, and is little: all other reads wait for it. Two trips, one for what is new and
        one for the texts of what was found, took a quarter of a recall of 200 facts. None where much is new or ``work``
        gives None: then it is to be done on the loop with what :meth:`refreshed` gives.
        """
        with self._whole_or_let_go():
            self._fresh, made = await self._stores.db.together(partial(self._within, work))
        return made

    async def _within(self, work: Callable[[OwnerIndex], Coroutine[Any, Any, T]]) -> tuple[bool, T | None]:
        fresh = await self._refresher.take_at_once(self._owner, self.left)
        return fresh, await work(self.left) if fresh else None

    @contextmanager
    def _whole_or_let_go(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            # Half of what is new may be there, and a thread still at work on it.
            self._let_go()
            raise


class Indexes:
    """The indexes of the people who talked last, bounded by bytes, built and brought up to date on demand."""

    def __init__(self, stores: Stores, *, most_bytes: int = MOST_BYTES) -> None:
        self._stores = stores
        self._refresher = Refresher(stores)
        self._most_bytes = most_bytes
        self._held: OrderedDict[int, _Held] = OrderedDict()
        self._weight = 0

    @asynccontextmanager
    async def held(self, owner: Account) -> AsyncIterator[Hold]:
        """The owner's index as it was left; nobody else reads or changes it while the block runs."""
        while True:
            held = self._current(owner)
            async with held.lock:
                if self._held.get(owner.no) is not held:
                    continue  # Let go of while we waited for it.
                known = held.index.newest
                try:
                    yield Hold(held.index, owner, self._stores, self._refresher, partial(self._let_go, owner, held))
                finally:
                    if held.index.newest != known:
                        self._weigh(owner, held)
                return

    @asynccontextmanager
    async def of(self, owner: Account) -> AsyncIterator[OwnerIndex]:
        """The owner's index as of now; nobody else reads or changes it while the block runs."""
        async with self.held(owner) as hold:
            yield await hold.refreshed()

    def forget(self, owner: Account) -> None:
        """Let go of an owner's index at once; one that is being built serves its builder and nobody after."""
        gone = self._held.pop(owner.no, None)
        self._weight -= 0 if gone is None else gone.nbytes

    def _let_go(self, owner: Account, held: _Held) -> None:
        if self._held.get(owner.no) is held:
            self.forget(owner)

    def clear(self) -> None:
        """Let go of every index."""
        self._held.clear()
        self._weight = 0

    @property
    def nbytes(self) -> int:
        """Memory held by all indexes, bytes."""
        return self._weight

    def _current(self, owner: Account) -> _Held:
        model = self._stores.embeddings.model
        held = self._held.get(owner.no)
        if held is None or held.model != model:
            self.forget(owner)
            held = self._held[owner.no] = _Held(model)
        self._held.move_to_end(owner.no)
        return held

    def _weigh(self, owner: Account, held: _Held) -> None:
        """Count what an index holds now, and let go of those that were asked longest ago while it is too much.

        Only one that has changed is counted anew: to count all of them at every recall took longer than the recall.
        """
        if self._held.get(owner.no) is held:
            self._weight -= held.nbytes
            held.nbytes = held.index.nbytes
            self._weight += held.nbytes
        while self._weight > self._most_bytes and (longest_ago := self._idle(held)) is not None:
            self._weight -= self._held.pop(longest_ago).nbytes

    def _idle(self, held: _Held) -> int | None:
        """Whose index was asked longest ago, but for this one and those that somebody works on, which would go on."""
        return next((no for no, each in self._held.items() if each is not held and not each.lock.locked()), None)
