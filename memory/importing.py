"""Taking in what a person took away: into the account it came from, or another one, here or in another installation.

Nothing counts twice, however often it is done; what was erased here does not come back; and every text passes what it
would have had to pass to be remembered here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from memory import checks
from memory.accounts import Accounts, Chats
from memory.clock import stamp
from memory.consents import Consents
from memory.db import Database
from memory.erasures import Erasures, Range
from memory.imported import Held, HeldEvent, HeldLine, Imported, Quote, Room, Spoken
from memory.journal import Line
from memory.model import PRIVATE, Account, Candidate, Chat, Citation, MessageKind, Role, Span
from memory.origins import Origins, origin
from memory.pauses import Pauses
from memory.reconcile import Gate
from memory.reserve import Reserve
from memory.rules import detect_language
from memory.sessions import Sessions
from memory.slots import known as known_slot
from memory.stores import Stores

AHEAD: Final = timedelta(days=1)
"""How far in the future something may have been said: clocks differ, and so do zones."""


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What became of an import: rows by outcome. ``made`` tells that the account is new here."""

    owner: Account
    made: bool
    counts: Mapping[str, int]


@dataclass(slots=True)
class _Work:
    """One import under way."""

    owner: Account
    document: Imported
    now: datetime
    rows: dict[int, int] = field(default_factory=dict)
    """Rows here by their number in the file."""
    there: set[int] = field(default_factory=set)
    erased: Sequence[Range] = ()
    rooms: dict[int, Chat] = field(default_factory=dict)
    new: dict[bytes, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def origin(self, number: int) -> bytes:
        """What a row of the file is recognised by."""
        return origin(self.document.account, number)

    def takes(self, number: int) -> bool:
        """Whether a row of the file is neither here, nor was here, nor was erased where it comes from."""
        if number in self.rows or number in self.there:
            self.counts["there"] += 1
            return False
        if any(first <= number <= last for first, last in self.erased):
            self.counts["erased"] += 1
            return False
        return True

    def became(self, number: int, row: int) -> None:
        """Note what a row of the file is here."""
        self.rows[number] = row
        self.new[self.origin(number)] = row


class Imports:
    """Takes in an export, whole or not at all."""

    def __init__(
        self,
        db: Database,
        accounts: Accounts,
        chats: Chats,
        sessions: Sessions,
        stores: Stores,
        *,
        gate: Gate,
        reserve: Reserve,
        pauses: Pauses,
        consents: Consents,
    ) -> None:
        self._db = db
        self._accounts = accounts
        self._chats = chats
        self._sessions = sessions
        self._stores = stores
        self._gate = gate
        self._reserve = reserve
        self._pauses = pauses
        self._consents = consents
        self._origins = Origins(db)
        self._erasures = Erasures(db)

    async def take_in(self, owner: Account, document: Imported, *, made: bool, now: datetime) -> TakenIn:
        """Add what an export holds to the owner's memory; ``made`` tells that the account was made for it."""
        async with self._db.transaction():
            work = await self._begun(owner, document, now=now)
            if made:
                await self._agreements(work)
            for line in sorted(document.journal, key=lambda line: (line.at, line.number)):
                await self._line(work, line)
            held = [*document.profile, *document.timeline, *document.facts]
            for each in sorted(held, key=lambda each: (each.said_at, each.number)):
                await self._memory(work, each)
            await self._point(work, held)
            if made:
                await self._choices(work)
            await self._origins.note(owner, work.new)
        return TakenIn(owner, made, work.counts)

    async def _begun(self, owner: Account, document: Imported, *, now: datetime) -> _Work:
        work = _Work(owner, document, now)
        taken = await self._origins.rows(owner)
        held: list[Held] = [*document.profile, *document.timeline, *document.facts]
        numbers = [*(each.number for each in held), *(line.number for line in document.journal)]
        cited = [citation.line for each in held for citation in each.citations]
        for number in {*numbers, *cited}:
            if (row := taken.get(work.origin(number))) is not None:
                work.rows[number] = row
        source = await self._accounts.find(document.account.platform, document.account.user_id)
        if source is not None and await self._origins.known_since(source) == stamp(document.account.since):
            # It was exported from this very memory.
            work.erased = await self._erasures.ranges(source)
            if source.no == owner.no:
                work.there = await self._origins.standing(owner, numbers)
                work.rows |= {number: number for number in work.there}
        for room in document.chats:
            work.rooms[room.number] = await self._room(work, room)
        return work

    async def _room(self, work: _Work, room: Room) -> Chat:
        """The chat here that a chat of the file is; one of another platform, or account, is the private one."""
        owner, account = work.owner, work.document.account
        same = (owner.platform, owner.user_id) == (account.platform, account.user_id)
        if room.private or owner.platform != account.platform:
            key = room.key if room.private and same else f"dm:{owner.user_id}"
            return await self._chats.enter(owner, key, private=True, at=work.now)
        # Topics and threads share the audience of what they are part of.
        parents = {each.number: each for each in work.document.chats}
        whole = parents.get(room.parent or room.number, room)
        return await self._chats.enter(owner, whole.key, private=False, at=work.now)

    async def _line(self, work: _Work, line: Spoken) -> None:
        if not work.takes(line.number):
            return
        answers = None if line.answers is None else work.rows.get(line.answers)
        if line.at > work.now + AHEAD:
            work.counts["future"] += 1
            return
        if line.by == "bot" and answers is None:
            work.counts["unanswered"] += 1  # What it answers was left out, and it may tell of that.
            return
        chat = work.rooms[line.chat]
        if line.private_only and not chat.private:
            chat = await self._chats.enter(work.owner, f"dm:{work.owner.user_id}", private=True, at=work.now)
        role: Role = "bot" if line.by == "bot" else "user"
        kind: MessageKind = "forwarded" if line.forwarded else "said"
        new = Line(role, line.speaker, line.at, line.text, kind, None, answers)
        if (await self._reserve.marked(work.owner, chat, new)).fleeting:
            work.counts["sensitive"] += 1
            return
        session = await self._sessions.past(work.owner, chat, line.at)
        (made,) = await self._stores.journal.add(work.owner, chat, session, [new])
        work.became(line.number, made.id)
        work.counts["lines"] += 1

    async def _memory(self, work: _Work, held: Held) -> None:
        if not work.takes(held.number):
            return
        if (reason := _unfit(held, work.now)) is not None:
            work.counts[reason] += 1
            return
        candidate = await self._candidate(work, held)
        audience = self._audience(work, held)
        if held.closed_at is None:
            (decision,) = await self._gate.admit(work.owner, [candidate], audience=audience, now=work.now)
            if decision.entry is None:
                work.counts[decision.reason or "dropped"] += 1
                return
            work.became(held.number, decision.entry.id)
            work.counts["memories" if decision.action in ("added", "superseded") else "there"] += 1
        else:
            standing, _ = await self._reserve.verdict(work.owner, candidate, asked_for=False, now=work.now)
            if standing != "keep":
                work.counts["sensitive"] += 1
                return
            (store,) = [each for each in self._stores.entries if each.kind == candidate.kind]
            entry = await store.add(work.owner, candidate, audience=audience, now=min(work.now, held.written_at))
            work.became(held.number, entry.id)
            reason = held.closed_because or "superseded"
            await store.retire(work.owner, entry.id, at=min(work.now, held.closed_at), successor=None, reason=reason)
            work.counts["memories"] += 1
        if held.audience == "everywhere":
            for store in self._stores.entries:
                await store.share(work.owner, work.rows[held.number], now=work.now)

    async def _candidate(self, work: _Work, held: Held) -> Candidate:
        citations = tuple([Citation(await self._cited(work, held, c), c.quote, c.at) for c in held.citations])
        language = detect_language(held.text) or work.document.settings.language
        span = None
        if isinstance(held, HeldEvent):
            span = Span(held.start, held.end, held.precision, held.zone, held.words, held.recurs)
        line = held if isinstance(held, HeldLine) else None
        return Candidate(
            "profile" if line else "event" if span else "fact",
            citations,
            language,
            held.about,
            held.text,
            line.attribute if line else "",
            line.value if line else "",
            span,
            held.source,
            held.confidence,
            held.importance,
            expires_at=held.expires_at,
        )

    async def _cited(self, work: _Work, held: Held, quote: Quote) -> int:
        """The number here of a line that is cited; for one that is not in the file a mark without words is made."""
        if quote.line not in work.rows:
            chat = work.rooms.get(held.audience) if isinstance(held.audience, int) else None
            if chat is None:
                key = f"dm:{work.owner.user_id}"
                chat = await self._chats.enter(work.owner, key, private=True, at=work.now)
            session = await self._sessions.past(work.owner, chat, quote.at)
            (mark,) = await self._stores.journal.add(
                work.owner, chat, session, [Line("user", "", quote.at, "", "command")]
            )
            work.became(quote.line, mark.id)
        return work.rows[quote.line]

    def _audience(self, work: _Work, held: Held) -> int:
        return work.rooms[held.audience].audience if isinstance(held.audience, int) else PRIVATE

    async def _point(self, work: _Work, held: Iterable[Held]) -> None:
        """Have what was replaced point at what took its place."""
        for each in held:
            if each.replaced_by in work.rows and self._is_new(work, each.number):
                for store in self._stores.entries:
                    await store.succeed(work.owner, work.rows[each.number], work.rows[each.replaced_by])

    def _is_new(self, work: _Work, number: int) -> bool:
        return work.new.get(work.origin(number)) is not None

    async def _agreements(self, work: _Work) -> None:
        """What an account that is new here agreed to have kept, before its lines are read: it is asked of them."""
        for consent in work.document.settings.consents:
            at = min(consent.at, work.now)
            await self._consents.put(work.owner, consent.matter, consent.agreed, at=at)

    async def _choices(self, work: _Work) -> None:
        """What an account that is new here takes over of what its owner had chosen: language, zone, pauses."""
        chosen = work.document.settings
        await self._accounts.fix_language(work.owner, chosen.language if chosen.language_fixed else None)
        if chosen.zone_from == "set":
            await self._accounts.fix_zone(work.owner, chosen.zone)
        for number in chosen.paused_chats:
            if number in work.rooms:
                await self._pauses.pause(work.owner, work.rooms[number], now=work.now)


def _unfit(held: Held, now: datetime) -> str | None:
    """Why a memory may not be taken in, by the rules that hold for everything that is remembered; None if it may."""
    if held.said_at > now + AHEAD:
        return "future"
    everything = " ".join([held.text, *(citation.quote for citation in held.citations)])
    if isinstance(held, HeldLine):
        everything += f" {held.value}"
        if not known_slot(held.attribute):
            return "unknown"
    if checks.secret(everything):
        return "secret"
    if checks.instruction(everything):
        return "instruction"
    if isinstance(held, HeldEvent) and held.end <= held.start:
        return "no time"
    return None
