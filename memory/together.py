"""One person's memory over all their accounts: read together, each row by its own account, nothing written across."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from memory import slots
from memory.accounts import Accounts
from memory.judge import visible
from memory.model import Account, Chat, Entry, Message, ProfileLine, Recalled, Recollection
from memory.persons import Persons
from memory.rooms import Rooms
from memory.showing import Shelf
from memory.stores import Stores
from memory.verdicts import DENIED, END, ENDED, UNDONE, Weight

MOST_LEFT_OUT: Final = 40
"""Rows named in the trace among those left out, of all accounts."""


@dataclass(frozen=True, slots=True)
class Place:
    """One account of a person, and a room as this account's memory may be used in it."""

    account: Account
    room: Chat


class Together:
    """Reads over the accounts of a person. For somebody with one account it costs a look at a dictionary."""

    def __init__(self, accounts: Accounts, persons: Persons, rooms: Rooms, stores: Stores) -> None:
        self._accounts = accounts
        self._persons = persons
        self._rooms = rooms
        self._stores = stores

    async def places(self, owner: Account, room: Chat) -> list[Place]:
        """The person's accounts, the one that asks first, each with the room as it sees it.

        In a group each account brings only what was said there by it: the number of a group is no other's, on
        whatever platform.
        """
        others = [await self._accounts.numbered(number) for number in await self._persons.others(owner)]
        return [Place(each, await self._rooms.seen_by(each, room)) for each in (owner, *others)]

    async def known(self, owner: Account, *, room: Chat, now: datetime) -> list[Entry]:
        """What holds now and may be shown in ``room``, of every account: profile, events, facts.

        What a newer word of another account closed is marked (``provenance.overtaken``), and stands.
        """
        places = await self.places(owner, room)
        found: list[Entry] = [
            entry
            for store in self._stores.entries
            for place in places
            for entry in await store.live(place.account, now=now)
            if visible(entry.provenance.audience, place.room)
        ]
        overtaken = await self.overtaken([place.account for place in places], now=now)
        return [marked(entry, overtaken) for entry in found]

    async def shown(self, owner: Account, ids: Sequence[int], *, room: Chat, now: datetime) -> dict[int, Entry]:
        """Those of the person's memories among ``ids`` that are not forgotten and may be shown in ``room``, marked."""
        places = await self.places(owner, room)
        overtaken = await self.overtaken([place.account for place in places], now=now)
        found: list[Entry] = []
        for place in places:
            mine = [id_ for id_ in ids if place.account.owns(id_)]
            for store in self._stores.entries if mine else ():
                held: Iterable[Entry] = (await store.get(place.account, mine)).values()
                found += [entry for entry in held if visible(entry.provenance.audience, place.room)]
        return {entry.id: marked(entry, overtaken) for entry in found}

    async def entries(self, owner: Account, ids: Sequence[int]) -> dict[int, Entry | Message]:
        """The visible memories and journal lines among ``ids``, of every account of the person."""
        found: dict[int, Entry | Message] = {}
        for number in (owner.no, *await self._persons.others(owner)):
            account = owner if number == owner.no else await self._accounts.numbered(number)
            mine = [id_ for id_ in ids if account.owns(id_)]
            if mine:
                found |= await self._stores.journal.lines(account, mine)
                for store in self._stores.entries:
                    found |= await store.get(account, mine)
        return found

    async def overtaken(self, accounts: Sequence[Account], *, now: datetime) -> dict[int, datetime]:
        """The open profile lines that another account's newer word closes, by id, with the time of that word.

        Worked out when reading, by the rule of the write gate: the newer statement of a slot that has one value, if
        it is as sure and lasts as long; and an end of the same value.
        """
        if len(accounts) == 1:
            return {}
        said: dict[tuple[str, str], list[tuple[int, ProfileLine]]] = defaultdict(list)
        for account in accounts:
            for line in await self._stores.profile.history(account):
                said[line.subject, line.attribute].append((account.no, line))
        closed: dict[int, datetime] = {}
        for lines in said.values():
            for account_no, line in lines:
                if line.provenance.live(now):
                    rivals = [other for no, other in lines if no != account_no]
                    ends = [end for other in rivals if (end := _end_of(line, other, now)) is not None]
                    if ends:
                        closed[line.id] = max(ends)
        return closed

    async def joined(self, found: Sequence[tuple[Place, Recollection]], *, now: datetime, shelf: Shelf) -> Recollection:
        """What each account's memory found as one list, within the budget of ``shelf``, the surest first."""
        overtaken = await self.overtaken([place.account for place, _ in found], now=now)
        lists = [
            (place.account, await self._marked(place.account, part.units, overtaken, now=now)) for place, part in found
        ]
        left_out = [pair for _, part in found for pair in part.left_out]
        for unit in _in_order(lists):
            if unit.band == "always" and unit.outdated is not None:
                left_out.append((unit.id, "outdated"))
            elif (reason := shelf.put((unit,))) is not None and reason != "shown":
                left_out.append((unit.id, reason))
        asked = found[0][1]
        levels = [part.level for _, part in found if part.level is not None]
        arms = dict(asked.arms)
        for place, part in found[1:]:
            arms |= {f"{name}, account {place.account.no}": told for name, told in part.arms.items()}
        return Recollection(
            units=tuple(shelf.units),
            level=max(levels, default=None),
            left_out=tuple(left_out[:MOST_LEFT_OUT]),
            notes=tuple(dict.fromkeys(note for _, part in found for note in part.notes)),
            milliseconds=round(sum(part.milliseconds for _, part in found), 3),
            arms=arms,
        )

    async def _marked(
        self, account: Account, units: Sequence[Recalled], overtaken: dict[int, datetime], *, now: datetime
    ) -> list[Recalled]:
        """Units with what another account's word closed marked; a name of the person's own accounts is none."""
        own = [unit if unit.speaker != account.name else replace(unit, speaker="") for unit in units]
        if not overtaken:
            return own
        lines = [unit.id for unit in own if unit.kind == "message"]
        citing: list[Entry] = [e for store in self._stores.entries for e in await store.citing(account, lines)]
        since: dict[int, datetime] = dict(overtaken)
        for id_ in lines:
            live = [
                e for e in citing if e.provenance.live(now) and any(c.message == id_ for c in e.provenance.citations)
            ]
            if live and all(entry.id in overtaken for entry in live):
                since[id_] = max(overtaken[entry.id] for entry in live)
        return [unit if unit.id not in since else replace(unit, outdated=since[unit.id]) for unit in own]


def marked(entry: Entry, overtaken: dict[int, datetime]) -> Entry:
    """A memory, marked with when another account's word closed it."""
    since = overtaken.get(entry.id)
    return entry if since is None else replace(entry, provenance=replace(entry.provenance, overtaken=since))


def _end_of(line: ProfileLine, other: ProfileLine, now: datetime) -> datetime | None:
    """When another account's line closes this one; None when it does not."""
    known, same = other.provenance, slots.key(other.value) == slots.key(line.value)
    if known.reason in {END, ENDED}:
        ended = known.ended_at or known.retired_at
        return ended if same and ended is not None and ended > line.provenance.said_at else None
    if same or slots.slot(line.attribute).multiple or known.reason in {UNDONE, DENIED} or not known.live(now):
        return None
    return known.said_at if Weight.of(other).replaces(Weight.of(line)) else None


def _in_order(lists: Iterable[tuple[Account, list[Recalled]]]) -> list[Recalled]:
    """The units of several lists as one: what is read on every turn, then by how sure each is, each in its order."""
    waiting = [units for _, units in lists]
    always = [unit for units in waiting for unit in units if unit.band == "always"]
    heads = [[unit for unit in units if unit.band != "always"] for units in waiting]
    merged: list[Recalled] = []
    while any(heads):
        first = max((units for units in heads if units), key=lambda units: _surety(units[0]))
        merged.append(first.pop(0))
    return [*always, *merged]


def _surety(unit: Recalled) -> tuple[bool, float, float]:
    return unit.band == "full", unit.scores.get("level", 0.0), unit.score
