"""Forgetting: show what would go, hide it at once, bring it back on request. Erasing it is :mod:`memory.erasing`.

Everything here takes the owner and touches only the owner's rows. What is meant is read by :mod:`memory.scope`; what
goes along is found by :mod:`memory.reach`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from memory.clock import moment, stamp
from memory.db import Database
from memory.echoes import Echoes, Lost
from memory.erasing import Erasing, ErasureError
from memory.erasures import Erasures, Range
from memory.journal import Place
from memory.model import Account, Chat, Entry, Message, ProfileLine
from memory.needles import Needles, giveaways
from memory.offloop import off_loop
from memory.promises import Deletion, Offer
from memory.reach import ROWS_A_LINE, Reach, Reached, holding
from memory.scope import CHOSEN, WORDS, Kind, Scope, read
from memory.sessions import Sessions
from memory.slots import slot
from memory.stores import Stores
from memory.verdicts import covers
from memory.words import terms

__all__ = ["ErasureError", "Forgetting", "PickError", "Plan", "PrivateOnlyError", "UntypedError"]

OFFER_LASTS: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Plan:
    """What ``/forget`` would delete: ``entries`` in the order they are numbered, and journal lines."""

    offer: int
    entries: tuple[Entry, ...]
    lines: tuple[Message, ...]
    scope: Scope = WORDS


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked for: how much, the words as they are looked for, and numbers of memories picked from a list."""

    scope: Scope
    words: str = ""
    query: Needles = field(default_factory=lambda: Needles([]))
    chosen: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Found:
    """What is named: memories and lines, and of both what is hidden already."""

    entries: Sequence[Entry]
    lines: Sequence[int] = ()
    hidden: Sequence[Entry] = ()
    hidden_lines: Sequence[int] = ()

    def __bool__(self) -> bool:
        return bool(self.entries or self.lines)


@dataclass(frozen=True, slots=True)
class _Doomed:
    """What a yes deletes, as of row ``newest``: memories and lines, those that another deletion hides already, too.

    ``quotes`` are other memories, each with a line that it may not quote any more.
    """

    newest: int
    entries: Sequence[Entry]
    reached: Reached
    hidden: Sequence[Entry] = ()
    quotes: Sequence[tuple[Entry, int]] = ()

    @property
    def lost(self) -> Lost:
        """All of it: what the bot told others because of it goes, whichever deletion hides it."""
        return Lost([*self.reached.lines, *self.reached.concealed], [*self.entries, *self.hidden])


class Forgetting:
    """The forget gate. ``changed`` is told of an owner whose visible memory is another one now.

    ``copies`` tells within how many hours what is erased is gone from the bot's own backups, 0 where there are none.
    """

    def __init__(
        self,
        db: Database,
        stores: Stores,
        sessions: Sessions,
        undo: timedelta,
        echoes: Echoes,
        *,
        changed: Callable[[Account], None] = lambda _: None,
        copies: Callable[[], float] = lambda: 0,
    ) -> None:
        self._db = db
        self._echoes = echoes
        self._stores = stores
        self._sessions = sessions
        self._undo = undo
        self._changed = changed
        self._reach = Reach(stores, echoes)
        self._erasures = Erasures(db)
        self._erasing = Erasing(db, stores, self._erasures, echoes, copies=copies)
        self._named: dict[tuple[int, int], Needles] = {}
        """What the open plan of an owner and chat was asked for; in memory only, for a file would keep the words."""

    # ---- showing -------------------------------------------------------------------------------------

    async def plan(self, owner: Account, chat: Chat, words: str, *, now: datetime) -> Plan | None:
        """Find what ``words`` mean (:func:`memory.scope.read`) and offer to delete it.

        Words name closed and expired memories, too. A plan is shown, so in a group it holds what may be shown there
        and was said there, nothing else. Returns None when nothing matches; nothing is deleted yet. Raises
        PrivateOnlyError when all of a memory is to go and this is a group.
        """
        scope = read(words, now=now, zone=owner.zone)
        if scope.kind == "everything" and not chat.private:
            raise PrivateOnlyError
        if scope.kind != "words":
            return await self._planned(owner, chat, _Asked(scope), now=now)
        query = Needles([words])
        return await self._planned(owner, chat, _Asked(scope, words, query), now=now) if query else None

    async def choose(self, owner: Account, chat: Chat, entries: Sequence[int], *, now: datetime) -> Plan | None:
        """Offer to delete memories that were picked from a list; None when none of them may be shown any more."""
        return await self._planned(owner, chat, _Asked(CHOSEN, chosen=frozenset(entries)), now=now)

    async def pending(self, owner: Account, chat: Chat, *, now: datetime) -> Offer | None:
        """The plan that waits for a yes in this chat."""
        return await self._stores.promises.offered(owner, chat.no, "forget", now=now)

    async def _planned(self, owner: Account, chat: Chat, asked: _Asked, *, now: datetime) -> Plan | None:
        scope = asked.scope
        newest = await self._stores.journal.newest(owner)
        found = await self._find(owner, chat, asked)
        # Looked through before, for it takes its time; what came meanwhile is looked at in the one transaction that
        # offers, so that every memory the plan could not see has a higher number than the offer.
        async with self._db.transaction():
            if await self._stores.journal.newest(owner) != newest:
                found = await self._find(owner, chat, asked)
            if not found:
                return None
            data = {
                "scope": scope.kind,
                "since": None if scope.since is None else stamp(scope.since),
                "entries": [entry.id for entry in found.entries],
                "lines": [*found.lines, *found.hidden_lines],
                "hidden": [entry.id for entry in found.hidden],
            }
            offer = await self._stores.promises.offer(owner, chat.no, "forget", data, expires_at=now + OFFER_LASTS)
        self._named.pop((owner.no, chat.no), None)
        if asked.query:
            self._named[owner.no, chat.no] = asked.query
        reached = await self._reach.of(owner, found.entries, found.lines, searches=scope.searches)
        lines = tuple(m for m in reached.lines if chat.private or m.chat == chat.no)
        return Plan(offer.id, tuple(found.entries), lines, scope)

    async def _find(self, owner: Account, chat: Chat, asked: _Asked) -> _Found:
        scope = asked.scope
        said = await self._stores.journal.said(owner)
        entries = [entry for store in self._stores.entries for entry in await store.history(owner)]
        if scope.kind == "everything":
            return _Found(entries, [m.id for m in said])
        shown = [entry for entry in entries if covers(entry.provenance.audience, chat.audience)]
        here = [m for m in said if chat.private or m.chat == chat.no]
        if scope.kind == "chosen":
            return _Found([entry for entry in shown if entry.id in asked.chosen])
        hidden = await self._concealed(owner)
        concealed = await self._stores.journal.concealed(owner)
        if scope.kind == "words":
            size = (len(shown) + len(hidden)) * ROWS_A_LINE
            named, also = await off_loop(lambda: [_named(asked, lot) for lot in (shown, hidden)], size=size)
            beside = [m for m in concealed if chat.private or m.chat == chat.no]
            lines, hidden_lines = [[m.id for m in await holding(asked.query, lot)] for lot in (here, beside)]
            return _Found(named, lines, also, hidden_lines)
        places = await self._stores.journal.places(owner, _cited([*entries, *hidden]))
        # What was said here before more people could see the chat is used in private alone, and goes with its words.
        shown = [e for e in entries if covers(e.provenance.audience, chat.audience) or _only_in(chat, e, places)]
        if scope.kind == "last":
            return _last(chat, shown, [m for m in here if m.chat == chat.no], places)
        bounds = _Bounds(scope, chat, places)
        lines, hidden_lines = [[m.id for m in lot if bounds.hold_line(m)] for lot in (here, concealed)]
        return _Found([e for e in shown if bounds.hold(e)], lines, [e for e in hidden if bounds.hold(e)], hidden_lines)

    # ---- doing ---------------------------------------------------------------------------------------

    async def carry_out(
        self, owner: Account, offer: int, *, picks: Sequence[int] | None, now: datetime, typed: bool = False
    ) -> Deletion | None:
        """Hide what an offer named, at once and everywhere; erasure follows after the time for undo.

        ``picks`` are 1-based numbers of the plan's entries; None takes the whole plan. Returns None when the
        offer is not open any more. Raises PickError for a number it does not have, and UntypedError when all of a
        memory is to go and that was not ``typed`` in so many words; the offer stays open then.
        """
        waiting = await self._stores.promises.standing(owner, offer, now=now)
        if waiting is None or waiting.kind != "forget":
            return None
        scope = _scope(waiting)
        if scope.kind == "everything" and not (typed and picks is None):
            raise UntypedError
        doomed = await self._doomed(owner, waiting, scope, picks)
        async with self._db.transaction():
            taken = await self._stores.promises.take(owner, offer, now=now)
            if taken is None:
                return None
            if await self._stores.journal.newest(owner) != doomed.newest:
                doomed = await self._doomed(owner, taken, scope, picks)
            searches = scope.searches or picks is not None
            hidden = await self._hide(owner, taken, doomed, scope, searches=searches, now=now)
        self._named.pop((owner.no, taken.chat), None)
        self._changed(owner)
        return hidden

    async def cancel(self, owner: Account, offer: int, *, now: datetime) -> bool:
        """Close an offer without deleting anything."""
        taken = await self._stores.promises.take(owner, offer, now=now)
        if taken is not None:
            self._named.pop((owner.no, taken.chat), None)
        return taken is not None

    async def undo(
        self, owner: Account, deletion: int | None, *, now: datetime, asked_at: datetime | None = None
    ) -> Deletion | None:
        """Bring back what a deletion hid (the newest one if None); None when there is nothing to undo.

        What another deletion covers, too, stays hidden by that one. ``asked_at`` is when the person asked: a request
        that was carried out and is delivered again undoes nothing more.
        """
        async with self._db.transaction():
            if asked_at is not None and await self._stores.promises.undone_since(owner, asked_at):
                return None
            for found in await self._stores.promises.undoable(owner, now=now):
                if deletion in (None, found.id):
                    shown = await self._show_again(owner, found, now=now)
                    break
            else:
                return None
        self._changed(owner)
        return found if shown else None

    async def empty(self, owner: Account, chat: int, *, now: datetime) -> Deletion:
        """Open a deletion that hides nothing yet, asked for in the chat of this number. Needs an open transaction."""
        deletion = await self._stores.promises.delete(owner, chat, at=now, erase_at=now + self._undo)
        counts = {"memories": 0, "messages": 0, "replies": 0}
        return await self._stores.promises.counted(owner, deletion, counts)

    def changed(self, owner: Account) -> None:
        """Tell that the owner's visible memory is another one now."""
        self._changed(owner)

    async def erase_due(self, owner: Account, *, now: datetime) -> list[Deletion]:
        """Erase what has waited long enough; see :meth:`memory.erasing.Erasing.erase_due`."""
        return await self._erasing.erase_due(owner, now=now)

    async def erased(self, owner: Account) -> list[Range]:
        """The rows of the owner that were erased, as ranges of numbers without a word: to be kept beside a backup."""
        return await self._erasures.ranges(owner)

    async def erase_again(self, owner: Account, ranges: Iterable[Range], *, now: datetime) -> int:
        """Erase what an older copy of the file has brought back; see :meth:`memory.erasing.Erasing.again`."""
        return await self._erasing.again(owner, ranges, now=now)

    async def _doomed(self, owner: Account, offer: Offer, scope: Scope, picks: Sequence[int] | None) -> _Doomed:
        """What a yes to an offer deletes now. Raises PickError."""
        newest = await self._stores.journal.newest(owner)
        if scope.kind == "everything":
            entries = [entry for store in self._stores.entries for entry in await store.history(owner)]
            hidden_lines = await self._stores.journal.concealed(owner)
            reached = Reached(tuple(await self._stores.journal.said(owner)), tuple(hidden_lines))
            return _Doomed(newest, entries, reached, await self._concealed(owner))
        ids, lines_named, hidden_named = _chosen(offer, picks)
        query = self._named.get((owner.no, offer.chat))
        if picks is None and query is not None:
            # What the owner said since the plan was shown is new; what the bot said may still rest on the old.
            since = await self._stores.journal.said(owner, after=offer.id)
            lines_named += [m.id for m in await holding(query, since) if m.role == "bot"]
        searches = scope.searches or picks is not None
        entries = [e for store in self._stores.entries for e in (await store.get(owner, ids)).values()]
        entries += await self._twins(owner, entries) if searches else []
        also = [entry for entry in await self._concealed(owner) if entry.id in hidden_named]
        reached = await self._reach.of(owner, [*entries, *also], lines_named, searches=searches)
        if since_shown := await self._made_of(owner, reached.lines, after=offer.id, bounded=not searches):
            entries += since_shown
            reached = await self._reach.of(owner, [*entries, *also], lines_named, searches=searches)
        quotes = await self._quotes(owner, entries, reached.lines, searches=searches)
        return _Doomed(newest, entries, reached, also, quotes)

    async def _concealed(self, owner: Account) -> list[Entry]:
        """The owner's memories that some deletion hides."""
        return [entry for store in self._stores.entries for entry in await store.concealed(owner)]

    async def _hide(
        self, owner: Account, offer: Offer, doomed: _Doomed, scope: Scope, *, searches: bool, now: datetime
    ) -> Deletion:
        ids, lines = [entry.id for entry in doomed.entries], [m.id for m in doomed.reached.lines]
        kind: Kind = "words" if searches else scope.kind
        promises, journal = self._stores.promises, self._stores.journal
        deletion = await promises.delete(owner, offer.chat, at=now, erase_at=now + self._undo, scope=kind)
        for entry, message in doomed.quotes:
            (store,) = [each for each in self._stores.entries if each.kind == entry.kind]
            await store.requote(owner, entry.id, message, entry.text)
        if not searches:
            await self._say_again(owner, doomed.entries)
        await self._sessions.unread(owner, lines)
        echoed = await self._echoes.hide(owner, doomed.lost, deletion=deletion)
        replies = [m.id for m in doomed.reached.lines if m.role == "bot"]
        counts = {
            "memories": sum([await store.hide(owner, ids, deletion) for store in self._stores.entries]),
            "messages": await journal.hide(owner, [m.id for m in doomed.reached.lines if m.role == "user"], deletion),
            "replies": echoed + await journal.hide(owner, replies, deletion),
        }
        await self._erasures.claim(owner, [each.id for each in (*doomed.hidden, *doomed.reached.concealed)], deletion)
        await self._stores.waits.remove(owner, lines)
        return await promises.counted(owner, deletion, counts)

    async def _twins(self, owner: Account, entries: Sequence[Entry]) -> list[Entry]:
        """The memories that say the very same, such as one that was closed when it was said once more."""
        ids, texts = {entry.id for entry in entries}, {entry.text for entry in entries}
        known = [entry for store in self._stores.entries for entry in await store.history(owner)]
        return [entry for entry in known if entry.id not in ids and entry.text in texts]

    async def _made_of(self, owner: Account, lines: Sequence[Message], *, after: int, bounded: bool) -> list[Entry]:
        """The memories that were made of these lines while a plan waited for its yes, and so are not in it.

        Where only a time or a place is meant (``bounded``), what also rests on other lines stays.
        """
        ids = {line.id for line in lines}
        found = [e for store in self._stores.entries for e in await store.citing(owner, ids) if e.id > after]
        return [e for e in found if not bounded or {c.message for c in e.provenance.citations} <= ids]

    async def _quotes(
        self, owner: Account, forgotten: Sequence[Entry], lines: Sequence[Message], *, searches: bool
    ) -> list[tuple[Entry, int]]:
        """The other memories that quote a forgotten line: they keep only their own words of it.

        With ``searches`` a quote that gives nothing of the forgotten away may stay.
        """
        ids, gone = {entry.id for entry in forgotten}, {line.id for line in lines}
        citing = [e for store in self._stores.entries for e in await store.citing(owner, gone) if e.id not in ids]
        if not citing:
            return []
        needles = await off_loop(lambda: giveaways(forgotten), size=len(ids) * ROWS_A_LINE)
        whole = not (searches and ids)
        return [
            (entry, citation.message)
            for entry in citing
            for citation in entry.provenance.citations
            if citation.message in gone and (whole or needles.found_in(citation.quote))
        ]

    async def _say_again(self, owner: Account, forgotten: Sequence[Entry]) -> None:
        """What was closed because it was said once more holds again when only the later saying is forgotten."""
        later = {entry.id: entry.text for entry in forgotten}
        for store in self._stores.entries:
            for entry in await store.closed_by(owner, later, []):
                if entry.id not in later and entry.text == later.get(entry.provenance.successor or 0):
                    await store.reopen(owner, entry.id)

    async def _show_again(self, owner: Account, deletion: Deletion, *, now: datetime) -> bool:
        """Show what a deletion hid; False when it has been erased meanwhile."""
        covered = len(await self._erasures.claimed(owner, deletion.id))
        await self._erasures.release(owner, deletion.id)
        lines = await self._stores.journal.hidden(owner, deletion.id)
        await self._echoes.show_again(owner, deletion.id)
        shown = await self._stores.journal.unhide(owner, deletion.id)
        for store in self._stores.entries:
            shown += await store.unhide(owner, deletion.id)
        # What was hidden before its session was distilled has its turn now.
        await self._sessions.resume(owner, [line.id for line in lines])
        return shown + covered > 0 and await self._stores.promises.undone(owner, deletion.id, at=now)


class PickError(ValueError):
    """A number that the plan does not have; ``count`` is how many it has."""

    def __init__(self, count: int) -> None:
        super().__init__(f"the plan has the numbers 1 to {count}")
        self.count = count


class UntypedError(ValueError):
    """All of a memory goes only when its owner has typed so."""


class PrivateOnlyError(ValueError):
    """All of a memory goes only in a private chat with its owner."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    """A time from which, or the place where, something was said; ``places`` are the chats of lines by number."""

    scope: Scope
    chat: Chat
    places: Mapping[int, Place]

    def hold_line(self, said: Message) -> bool:
        """Whether a line was said within."""
        if said.chat != self.chat.no and (self.scope.since is None or not self.chat.private):
            return False
        return self.scope.since is None or said.at >= self.scope.since

    def hold(self, entry: Entry) -> bool:
        """Whether a memory rests on nothing but what was said within."""
        citations = entry.provenance.citations
        if self.scope.since is not None and any(c.at < self.scope.since for c in citations):
            return False
        if self.scope.since is not None and self.chat.private:
            return True
        known = {self.places[c.message].chat for c in citations if c.message in self.places}
        # Of what the journal has dropped with time only the audience tells where it was said.
        return known == {self.chat.no} or (not known and entry.provenance.audience == self.chat.audience)


def _only_in(chat: Chat, entry: Entry, places: Mapping[int, Place]) -> bool:
    """Whether all that a memory rests on was said in a chat, as far as the journal still has it."""
    return {places[c.message].chat for c in entry.provenance.citations if c.message in places} == {chat.no}


def _last(chat: Chat, shown: Sequence[Entry], here: Sequence[Message], places: Mapping[int, Place]) -> _Found:
    """What was remembered last in the newest talk of a chat, or the last thing said in it when that is nothing.

    Of one message there may be several memories.
    """
    lines = [m for m in here if m.role == "user" and m.text]
    there = {m for m in _cited(shown) if m in places and places[m].chat == chat.no}
    talk = max([*(m.session for m in lines), *(places[m].session for m in there)], default=0)
    latest: dict[int, list[Entry]] = {}
    for entry in shown:
        said = [c.message for c in entry.provenance.citations if c.message in there]
        if said and places[max(said)].session == talk:
            latest.setdefault(max(said), []).append(entry)
    if latest:
        return _Found(latest[max(latest)])
    return _Found([], [m.id for m in lines if m.session == talk][-1:])


def _scope(offer: Offer) -> Scope:
    since = offer.data.get("since")
    return Scope(offer.data.get("scope", "words"), None if since is None else moment(since))


def _chosen(offer: Offer, picks: Sequence[int] | None) -> tuple[list[int], list[int], set[int]]:
    """The memories, lines and hidden memories of an offer, or only the memories with these numbers."""
    ids: list[int] = list(offer.data["entries"])
    if picks is None:
        return ids, list(offer.data["lines"]), set(offer.data.get("hidden", ()))
    if not picks or not all(1 <= pick <= len(ids) for pick in picks):
        raise PickError(len(ids))
    return [ids[pick - 1] for pick in dict.fromkeys(picks)], [], set()


def _cited(entries: Iterable[Entry]) -> set[int]:
    return {citation.message for entry in entries for citation in entry.provenance.citations}


def _named(asked: _Asked, entries: Sequence[Entry]) -> list[Entry]:
    """The memories that words name: they stand in one, or all their terms do, or they name its slot."""
    wanted = set(terms(asked.words))
    return [entry for entry in entries if _names(asked.query, wanted, entry)]


def _names(query: Needles, wanted: set[str], entry: Entry) -> bool:
    texts = [entry.text, *(c.quote for c in entry.provenance.citations)]
    if isinstance(entry, ProfileLine):
        texts += [entry.value, *slot(entry.attribute).labels.values()]
    if any(query.found_in(text) for text in texts):
        return True
    return bool(wanted) and wanted <= {term for text in texts for term in terms(text)}
