"""The jobs of memory: what each does, how often, and for whom. Running them is :mod:`memory.jobs`."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from config.settings import Settings
from memory.accounts import Accounts
from memory.cooling import Cooling
from memory.copying import Copies
from memory.distill import Distiller
from memory.fleeting import Fleeting
from memory.forget import ErasureError, Forgetting
from memory.freshness import Freshness
from memory.indexes import Indexes
from memory.jobs import Job, LeftOff
from memory.ledger import Ledger
from memory.model import Account
from memory.ports import EmbedderUnavailable
from memory.recall import Recall
from memory.reconcile import Gate
from memory.rezoning import Rezoning
from memory.sealing import Sealing
from memory.sessions import Sessions
from memory.stores import Stores
from memory.tallies import Tallies

log = logging.getLogger(__name__)

T = TypeVar("T")

ALWAYS: Final = timedelta(0)
"""Looked at in every round: the question whether there is work is one cheap query."""
HOURLY: Final = timedelta(hours=1)
DAILY: Final = timedelta(days=1)


class Housekeeping:
    """Distil, embed, erase, expire, seal, merge, trim: each owner by owner, each safe to kill and to repeat."""

    def __init__(
        self,
        settings: Settings,
        accounts: Accounts,
        sessions: Sessions,
        stores: Stores,
        *,
        forgetting: Forgetting,
        rezoning: Rezoning,
        gate: Gate,
        indexes: Indexes,
        recall: Recall,
        sealing: Sealing,
        fleeting: Fleeting,
        freshness: Freshness,
        tallies: Tallies,
        ledger: Ledger,
        copies: Copies,
        distiller: Distiller | None,
    ) -> None:
        self._settings = settings
        self._accounts = accounts
        self._sessions = sessions
        self._stores = stores
        self._forgetting = forgetting
        self._rezoning = rezoning
        self._gate = gate
        self._indexes = indexes
        self._recall = recall
        self._sealing = sealing
        self._fleeting = fleeting
        self._freshness = freshness
        self._tallies = tallies
        self._ledger = ledger
        self._copies = copies
        self._distiller = distiller
        self._cooling = Cooling(stores, days=settings.memory.cool_days)
        self.leaving = False
        """Whether the program is about to end: then no job begins with anybody more."""

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs, those first whose delay a person would notice."""
        return (
            Job("erase", ALWAYS, self.erase),
            Job("fleeting", ALWAYS, self.end_fleeting),
            Job("embed", ALWAYS, self.embed),
            Job("distil", ALWAYS, self.distil),
            Job("expire", HOURLY, self.expire),
            Job("seal", HOURLY, self.seal),
            Job("merge", DAILY, self.merge),
            Job("cool", DAILY, self.cool),
            Job("trim", DAILY, self.trim, lasting=True),
            Job("second chance", DAILY, self.second_chance),
            Job("usage", ALWAYS, self.usage),
            Job("ledger", ALWAYS, self.write_down),
            Job("backups", ALWAYS, self._copies.run),
        )

    async def erase(self, now: datetime) -> Mapping[str, int]:
        """Carry out the deletions whose time for undo is over; a receipt only after the search."""
        erased = failed = 0
        for number in self._each(await self._stores.promises.owners_due(now=now)):
            owner = await self._accounts.numbered(number)
            self._indexes.forget(owner)
            try:
                erased += len(await self._forgetting.erase_due(owner, now=now))
            except ErasureError:
                log.exception("an erasure is not complete; no receipt was given")
                failed += 1
        return {"erased": erased, "failed": failed}

    async def end_fleeting(self, now: datetime) -> Mapping[str, int]:
        """Erase what was said off the record or while learning was paused, once its session is over."""
        return {"fleeting": await self._fleeting.sweep(now=now)}

    async def embed(self, now: datetime) -> Mapping[str, int]:
        """Give the texts whose time has come the vectors they lack, the shipped questions first.

        A failure leaves the rest for later.
        """
        embedded = 0
        await self._recall.warm()
        numbers = self._stores.embeddings.owners_waiting(await self._accounts.numbers())
        waiting = [number for number in numbers if self._freshness.may_be_due(number, now=now)]
        distilling = set(await self._sessions.owners_due(now=now)) if self._distiller and waiting else set()
        for number in self._each(waiting):
            owner = await self._accounts.numbered(number)
            if not await self._freshness.is_due(owner, now=now, distilling=distilling):
                continue
            try:
                embedded += await self._freshness.fill(owner)
            except EmbedderUnavailable as error:
                log.info("vectors wait: %s", error)
                break
        return {"embedded": embedded}

    async def distil(self, now: datetime) -> Mapping[str, int]:
        """Distil the sessions that have gone idle, a few at a time, each once; one that fails stops no other."""
        if await self._sessions.astray(now=now):
            set_right = await self._sessions.set_right(now=now)
            log.warning("the clock was set back: %d times that lay in the future are the present now", set_right)
        if self._distiller is None:
            return {}
        distiller, limit = self._distiller, self._settings.distil
        gate = asyncio.Semaphore(limit.at_once)
        totals: Counter[str] = Counter()

        async def one(number: int) -> None:
            owner = await self._accounts.numbered(number)
            for session in await self._sessions.due(owner, now=now):
                async with gate:
                    if totals["unavailable"] or self.leaving:
                        break  # The model is down, or we are about to end: the others wait for the next round.
                    try:
                        report = await distiller.distil(owner, session)
                    except Exception:
                        log.exception("the distillation of session %d failed; it is tried again", session.no)
                        continue
                    totals.update(report.counts)
                if report.decisions:
                    await self._rezoning.settle(owner)
                    self._indexes.forget(owner)
                    self._stores.embeddings.disturbed(owner)
            async with gate:
                if not self.leaving:
                    await self._embedded_with_it(owner)

        due = await self._sessions.owners_due(now=now)
        outcomes = await asyncio.gather(*(one(number) for number in due), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                log.error("a distillation failed; it is tried again", exc_info=outcome)
        if self.leaving:
            raise LeftOff
        return totals

    async def _embedded_with_it(self, owner: Account) -> None:
        """Embed a session together with what its distillation wrote; one that failed has waited long enough, too."""
        if not self._stores.embeddings.owners_waiting([owner.no]):
            return
        try:
            await self._freshness.fill(owner)
        except EmbedderUnavailable as error:
            log.info("vectors wait: %s", error)

    def _each(self, some: Iterable[T]) -> Iterator[T]:
        """One after the other. Raises LeftOff, between two of them, once we are about to end."""
        for each in some:
            if self.leaving:
                raise LeftOff
            yield each

    async def expire(self, now: datetime) -> Mapping[str, int]:
        """Close what has outlived its time, and open again what a clock gone wrong had closed before its time."""
        expired = revived = 0
        for owner in self._each(await self._accounts.all()):
            count, back = await self._stores.db.written(partial(self._expire, owner, now=now))
            if count or back:
                self._indexes.forget(owner)
            expired, revived = expired + count, revived + back
        return {"expired": expired, "revived": revived}

    async def _expire(self, owner: Account, *, now: datetime) -> tuple[int, int]:
        """How many memories of the owner were closed, and how many opened again; inside a transaction."""
        early = [entry for store in self._stores.entries for entry in await store.revive(owner, now=now)]
        back = await self._gate.restore(owner, early, now=now) if early else []
        return sum([await store.expire(owner, now=now) for store in self._stores.entries]), len(back)

    async def cool(self, now: datetime) -> Mapping[str, int]:
        """Let rest what has been of no use for a long time."""
        cooled = warmed = 0
        for owner in self._each(await self._accounts.all()):
            rested, woken = await self._cooling.cool(owner, now=now)
            if rested or woken:
                self._indexes.forget(owner)
            cooled, warmed = cooled + rested, warmed + woken
        return {"cooled": cooled, "warmed": warmed}

    async def seal(self, now: datetime) -> Mapping[str, int]:
        """Make ready what recall needs of old rows; a change since the last time may have undone some of it."""
        del now
        await self._recall.measured.settle()
        centre = self._recall.centre()
        return {
            "sealed": sum([await self._sealing.seal(owner, centre) for owner in self._each(await self._accounts.all())])
        }

    async def merge(self, now: datetime) -> Mapping[str, int]:
        """Fold memories that say the same into one."""
        merged = 0
        for owner in self._each(await self._accounts.all()):
            decisions = await self._gate.merge_duplicates(owner, now=now)
            if decisions:
                self._indexes.forget(owner)
            merged += len(decisions)
        return {"merged": merged}

    async def second_chance(self, now: datetime) -> Mapping[str, int]:
        """Have what could not be distilled a while ago tried once more."""
        if self._distiller is None:
            return {}
        owners = self._each(await self._accounts.all())
        return {"lines": sum([await self._sessions.second_chance(owner, now=now) for owner in owners])}

    async def usage(self, now: datetime) -> Mapping[str, int]:
        """Write what was used behind the replies, distillations and vectors, and what was done."""
        for number in self._stores.usage.owners_pending():
            await self._stores.usage.store(await self._accounts.numbered(number))
        await self._tallies.store(now=now)
        return {}

    async def write_down(self, now: datetime) -> Mapping[str, int]:
        """See to it that the ledger of what must not come back is whole."""
        del now
        await self._ledger.settle()
        return {}

    async def trim(self, now: datetime) -> Mapping[str, int]:
        """Drop journal lines and traces that are older than the settings keep them, and give up old answers."""
        lines = traces = given_up = 0
        answer_within = timedelta(hours=self._settings.conversation.recover_hours) + DAILY
        journal_days, trace_days = self._settings.journal.keep_days, self._settings.trace.keep_days
        for owner in self._each(await self._accounts.all()):
            given_up += await self._stores.waits.trim(owner, before=now - answer_within)
            await self._stores.usage.trim(owner, now=now)
            if journal_days:
                trimmed = await self._stores.journal.trim(owner, before=now - timedelta(days=journal_days))
                await self._stores.embeddings.sweep(owner)
                if trimmed:
                    await self._stores.nulls.erase(owner)
                    self._indexes.forget(owner)
                lines += trimmed
            if trace_days:
                traces += await self._stores.traces.trim(owner, before=now - timedelta(days=trace_days))
        return {"lines": lines, "traces": traces, "given_up": given_up}
