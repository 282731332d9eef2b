"""Putting right what is remembered: what a person calls wrong, doubts they are asked about, replacements taken back.

Nothing here deletes. What is wrong is offered to be forgotten by its owner, and what was decided can be taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from memory.db import Database
from memory.doubts import Doubt, Doubts, Holds
from memory.entries import any_doubted
from memory.lists import Listed, Lists
from memory.model import Account, Chat, Entry, ProfileLine
from memory.reasons import Explained, Reasons, rests_on_memory
from memory.reconcile import Gate
from memory.rules.disputing import Dispute
from memory.stores import Stores
from memory.words import terms, weights

SETTLED: Final = "settled"
"""Kind of the offer to take an answer about a doubt back."""
SETTLED_LASTS: Final = timedelta(days=7)
WRITTEN: Final = frozenset({"added", "superseded", "confirmed"})
"""What a decision of the write gate that leaves a memory standing may be called."""
FRESH: Final = timedelta(hours=1)
"""How long "that is wrong" may mean the last answer or list without saying so; later, who means it points at it."""


class AlreadyAskedError(Exception):
    """Somebody has been asked about this doubt already."""


@dataclass(frozen=True, slots=True)
class Disputed:
    """What a person may mean who says that something is wrong: memories, or a whole list they were shown."""

    entries: tuple[Entry, ...]
    listed: Listed | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """A doubt as its owner settled it; ``undo`` is the offer that takes it back."""

    doubt: Doubt
    choice: Holds
    undo: int = 0


class Corrections:
    """What an owner puts right. ``changed`` is told of an owner whose memory is another one now."""

    def __init__(
        self,
        db: Database,
        stores: Stores,
        gate: Gate,
        *,
        lists: Lists,
        reasons: Reasons,
        changed: Callable[[Account], None],
    ) -> None:
        self._db = db
        self._stores = stores
        self._gate = gate
        self._lists = lists
        self._reasons = reasons
        self._changed = changed
        self._doubts = Doubts(stores)

    # ---- "that is wrong" -----------------------------------------------------------------------------

    async def disputed(
        self, owner: Account, chat: Chat, dispute: Dispute, *, replied_to: str | None, now: datetime
    ) -> Disputed | None:
        """What the owner may mean with "that is wrong" in a chat; None when no memory was used: then it is talk.

        As a reply (``replied_to`` is the platform's id of that message) it means the memories of that answer. Else
        it means the list or the answer that came last, if that was within the hour (``now`` is aware UTC); an answer
        only as far as it says what a memory says, unless the owner speaks of remembering.
        """
        if replied_to is not None:
            explained = await self._reasons.of_message(owner, chat, replied_to)
            return _some([] if explained is None else rests_on_memory(explained))
        explained = await self._reasons.latest(owner, chat)
        list_ = await self._lists.seen_last(owner, chat, now=now)
        if list_ is not None and (explained is None or list_ > explained.trace.id):
            return await self._listed(owner, chat, list_, now=now)
        if explained is None or now - explained.trace.at > FRESH:
            return None
        if receipt := await self._noted(owner, explained, now=now):
            return _some(receipt)
        used = rests_on_memory(explained)
        return _some(used if dispute == "memory" else await self._repeated(owner, explained, used))

    async def _listed(self, owner: Account, chat: Chat, list_: int, *, now: datetime) -> Disputed | None:
        listed = await self._lists.listed(owner, list_, now=now)
        if listed is None or now - listed.at > FRESH:
            return None
        found = await self._lists.read(owner, chat, listed.ids, now=now)
        return Disputed(tuple(found[id_] for id_ in listed.ids if id_ in found), listed) if found else None

    async def _noted(self, owner: Account, explained: Explained, *, now: datetime) -> list[Entry]:
        """The memories that an answer without a model said it had noted: such an answer says nothing else."""
        reply, learned = explained.trace.reply or 0, explained.trace.data.get("learned", ())
        line = (await self._stores.journal.lines(owner, [reply])).get(reply)
        if line is not None and line.text:
            return []
        noted = [await self._entry(owner, kept["id"]) for kept in learned if kept["action"] in WRITTEN and kept["id"]]
        return [entry for entry in noted if entry is not None and entry.provenance.live(now)]

    async def _repeated(self, owner: Account, explained: Explained, used: Sequence[Entry]) -> list[Entry]:
        """The memories whose own words an answer says: what it says besides is nobody's memory."""
        question, reply = explained.trace.data.get("question", 0), explained.trace.reply or 0
        lines = await self._stores.journal.lines(owner, [question, reply])
        if reply not in lines or not lines[reply].text:
            return list(used)  # without a model an answer is nothing but memories, and is not kept
        asked = set(terms(lines[question].text)) if question in lines else set()
        said = set(terms(lines[reply].text))
        return [entry for entry in used if _says(entry, said, asked)]

    # ---- doubts --------------------------------------------------------------------------------------

    async def doubt(self, owner: Account, chat: Chat, *, now: datetime) -> Doubt | None:
        """What the owner is to be asked about behind an answer in ``chat``: one thing, once, never in a group."""
        if not chat.private or not await any_doubted(self._db, owner, self._stores.entries):
            return None
        return next(iter(await self._doubts.open(owner, now=now)), None)

    async def asked(self, owner: Account, doubt: Doubt, *, at: datetime) -> None:
        """Note, in the transaction that journals the answer, that the owner is asked. Raises AlreadyAskedError."""
        if not await self._doubts.asked(owner, doubt, at=at):
            raise AlreadyAskedError

    async def settle(self, owner: Account, chat: Chat, unsure: int, choice: Holds, *, now: datetime) -> Settled | None:
        """Carry out what the owner says of the doubt about the memory ``unsure``; None when that is open no more."""
        async with self._db.transaction():
            doubt = await self._open(owner, unsure, now=now)
            if doubt is None:
                return None
            await self._gate.decide(owner, doubt, choice, now=now)
            data = {
                "unsure": doubt.unsure.id,
                "sure": doubt.sure.id,
                "choice": choice,
                "confidence": doubt.unsure.provenance.confidence,
            }
            offer = await self._stores.promises.offer(owner, chat.no, SETTLED, data, expires_at=now + SETTLED_LASTS)
        self._changed(owner)
        return Settled(doubt, choice, offer.id)

    async def unsettle(self, owner: Account, settled: int, *, now: datetime) -> Doubt | None:
        """Take an answer about a doubt back: both stand again, and nobody is asked anew. None when it is too late."""
        async with self._db.transaction():
            offer = await self._stores.promises.standing(owner, settled, now=now)
            if offer is None or offer.kind != SETTLED:
                return None
            await self._stores.promises.take(owner, settled, now=now)
            sure, unsure = await self._entry(owner, offer.data["sure"]), await self._entry(owner, offer.data["unsure"])
            if sure is None or unsure is None:
                return None
            doubt = Doubt(sure, unsure)
            confidence: float = offer.data["confidence"]
            if not await self._gate.undecide(owner, doubt, offer.data["choice"], confidence=confidence):
                return None
        self._changed(owner)
        return doubt

    async def _open(self, owner: Account, unsure: int, *, now: datetime) -> Doubt | None:
        """The doubt about a memory as long as both stand, and the owner was asked."""
        entry = await self._entry(owner, unsure)
        sure = None if entry is None else await self._entry(owner, entry.provenance.doubts or 0)
        if entry is None or sure is None or entry.provenance.asked_at is None:
            return None
        return Doubt(sure, entry) if entry.provenance.live(now) and sure.provenance.live(now) else None

    # ---- replacements --------------------------------------------------------------------------------

    async def put_back(self, owner: Account, id_: int, *, now: datetime) -> list[Entry]:
        """Open again what a memory took the place of when it was written; that one then counts no more.

        Returns what is open again: nothing when it was done before, or something newer says otherwise.
        """
        async with self._db.transaction():
            closed = [e for store in self._stores.entries for e in await store.closed_by(owner, [id_], [])]
            times = [e.provenance.retired_at for e in closed if e.provenance.retired_at is not None]
            reopened = await self._gate.undo(owner, at=max(times), now=now, successor=id_) if times else []
        if reopened:
            self._changed(owner)
        return reopened

    async def _entry(self, owner: Account, id_: int) -> Entry | None:
        for store in self._stores.entries:
            if (found := (await store.get(owner, [id_])).get(id_)) is not None:
                return found
        return None


def _some(entries: Sequence[Entry]) -> Disputed | None:
    return Disputed(tuple(entries)) if entries else None


def _says(entry: Entry, said: set[str], asked: set[str]) -> bool:
    """Whether an answer says a memory's own words, or the question held them all (a yes or no is then about it)."""
    every = list(dict.fromkeys(terms(entry.value if isinstance(entry, ProfileLine) else entry.text)))
    own = {term for term, weight in zip(every, weights(every), strict=True) if weight == 1}
    return bool(own) and (own <= asked or not (own - asked).isdisjoint(said))
