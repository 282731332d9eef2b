"""What is known of somebody, in groups a person reads, all of it or what a word or a time picks out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from memory import dates
from memory.model import SELF, Account, Chat, Entry, Event, ProfileLine, Span
from memory.needles import Needles
from memory.offloop import off_loop
from memory.recall import Recall, RecallOptions
from memory.slots import slot
from memory.together import Together
from memory.words import terms, weights

Title = Literal["about", "coming", "happened", "other"]

COSTLY: Final = 10
"""What it costs to look for words in a memory, in the rows that :func:`memory.offloop.off_loop` counts by."""
_FILLER: Final = re.compile(
    r"的?(?:事情?|东西|内容|记忆|信息)$|^(?:关于|有关|我的?)|的$"
    r"|\b(?:things?|stuff|memor(?:y|ies)|facts?|events?|everything|all|said|told|from|since|during|in|on|at|of)\b"
)
"""Words around a time or a subject that pick out nothing themselves."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Memories by group, in the order in which they are numbered.

    "about" is the owner's own profile, "coming" events that are not over, with ``next`` saying when each takes place
    next (aware UTC), "happened" those that are, "other" the rest. ``chosen`` tells that words picked them.
    """

    groups: tuple[tuple[Title, tuple[Entry, ...]], ...]
    chosen: bool

    @property
    def entries(self) -> list[Entry]:
        """All of them, in order."""
        return [entry for _, entries in self.groups for entry in entries]


class Overviews:
    """Looks over an owner's memory for its owner."""

    def __init__(self, together: Together, recall: Recall) -> None:
        self._together = together
        self._recall = recall

    async def of(self, owner: Account, room: Chat, *, words: str = "", now: datetime) -> Overview:
        """What holds at ``now`` (aware UTC) and may be shown in ``room``, or what of it ``words`` pick.

        A period in them (上周, "last month") takes what happened or was said in it; any other words take what
        they stand in, what they name a kind of (饮食, "home"), and what is near to them in meaning.
        """
        held = await self._together.known(owner, room=room, now=now)
        if words.strip():
            held = await self._chosen(owner, room, held, words, now=now)
        return Overview(_grouped(held, now), bool(words.strip()))

    async def _chosen(
        self, owner: Account, room: Chat, held: Sequence[Entry], words: str, *, now: datetime
    ) -> list[Entry]:
        spans = _periods(words, now=now, zone=owner.zone)
        rest = _without(words, spans)
        in_time = [entry for entry in held if not spans or any(_in(span, entry) for span in spans)]
        if not rest and spans:
            return in_time
        named = _naming(rest or words, quotes=room.private)
        size = len(in_time) * COSTLY
        found = await off_loop(lambda: {entry.id for entry in in_time if named(entry)}, size=size)
        found |= await self._meant(owner, rest or words, room=room, now=now)
        return [entry for entry in in_time if entry.id in found]

    async def _meant(self, owner: Account, words: str, *, room: Chat, now: datetime) -> set[int]:
        """The memories that recall would answer such a question with, and would be sure of."""
        meant: set[int] = set()
        for place in await self._together.places(owner, room):
            options = RecallOptions(asker=None if place.account.no == owner.no else owner)
            found = await self._recall.recall(place.account, words, now=now, room=place.room, options=options)
            meant |= {unit.id for unit in found.units if unit.band == "full" and unit.kind != "message"}
        return meant


def next_time(entry: Event, now: datetime) -> tuple[datetime, datetime] | None:
    """When an event takes place that is not over at ``now``, begun or yet to come (aware UTC); None when it is over."""
    if entry.span.rrule is None:
        return (entry.span.start, entry.span.end) if entry.span.end > now else None
    return dates.upcoming(entry.span, now)


def _grouped(held: Sequence[Entry], now: datetime) -> tuple[tuple[Title, tuple[Entry, ...]], ...]:
    groups: dict[Title, list[tuple[float, Entry]]] = {"about": [], "coming": [], "happened": [], "other": []}
    for place, entry in enumerate(held):
        if isinstance(entry, Event):
            ahead = next_time(entry, now)
            if ahead is not None:
                groups["coming"].append((ahead[0].timestamp(), entry))
            else:
                groups["happened"].append((-entry.span.start.timestamp(), entry))
        else:
            own = isinstance(entry, ProfileLine) and entry.subject == SELF
            groups["about" if own else "other"].append((place, entry))
    return tuple(
        (title, tuple(entry for _, entry in sorted(members, key=lambda member: (member[0], member[1].id))))
        for title, members in groups.items()
        if members
    )


def _periods(words: str, *, now: datetime, zone: str) -> list[Span]:
    """The times that words name; one that may lie on either side ("May", "Friday") is meant on both."""
    leans: tuple[dates.Lean, ...] = ("past", "future")
    return [span for lean in leans for span in dates.mentions(words, at=now, zone=zone, lean=lean)]


def _without(words: str, spans: Sequence[Span]) -> str:
    """What words say beside the times in them; "" when that is nothing."""
    left = words
    for span in spans:
        left = left.replace(span.words, " ")
    if spans:
        left = _FILLER.sub(" ", left.strip(" \t\n,，、。.?？!！"))
    return left.strip() if terms(left) else ""


def _in(span: Span, entry: Entry) -> bool:
    """Whether a memory took place, or was said, in a period."""
    if isinstance(entry, Event) and dates.takes_place(entry.span, span.start, span.end):
        return True
    said = (entry.provenance.said_at, *(citation.at for citation in entry.provenance.citations))
    return any(span.start <= at < span.end for at in said)


def _naming(words: str, *, quotes: bool) -> Callable[[Entry], bool]:
    """A test whether words name a memory: they stand in it or in its ``quotes``, or are the name of its slot."""
    needles = Needles([words])
    every = list(dict.fromkeys(terms(words)))
    wanted = {term for term, weight in zip(every, weights(every), strict=True) if weight == 1} or set(every)

    def names(entry: Entry) -> bool:
        texts = [entry.text, "" if entry.subject == SELF else entry.subject]
        texts += [citation.quote for citation in entry.provenance.citations] if quotes else []
        if isinstance(entry, ProfileLine):
            texts += [entry.value, *slot(entry.attribute).labels.values()]
        if isinstance(entry, Event):
            texts.append(entry.span.words)
        if any(needles.found_in(text) for text in texts):
            return True
        return bool(wanted) and wanted <= {term for text in texts for term in terms(text)}

    return names
