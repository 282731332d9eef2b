"""Why an answer was as it was: which memories it had before it, what spoke for each, and what became of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from memory.judge import visible
from memory.model import Account, Chat, Entry, Message
from memory.script import is_han
from memory.showing import OFTEN
from memory.stores import Stores
from memory.together import Together
from memory.traces import Trace, rested_on
from memory.words import terms

Why = Literal["always", "often", "all", "words", "before", "meaning", "date", "person", "beside"]
"""What speaks for a memory: it is always read, or often used, everything was asked for, words or meaning or time are
those of the question, its words were those of the talk before, it is about the person named, or it stands beside
something that fits."""

_CLEAR: Final = 0.5
"""A term of the score that adds less is told of no memory: it did not decide."""
_TOLD: Final[Mapping[str, Why]] = {
    "words": "words",
    "meaning": "meaning",
    "near": "meaning",
    "date": "date",
    "when": "date",
    "speaker": "person",
}
_TOKEN: Final = re.compile(r"\w+(?:[-_./:']\w+)*")


@dataclass(frozen=True, slots=True)
class Reason:
    """A memory or a journal line that an answer had before it.

    ``whys`` are what spoke for it, the strongest first; ``words`` those it shares with the question; ``sure`` tells
    that it was found related, not only perhaps. ``data`` is what the trace has of it. ``kept`` are the memories that
    were made of a journal line and hold.
    """

    unit: Entry | Message
    whys: tuple[Why, ...]
    words: tuple[str, ...]
    sure: bool
    data: Mapping[str, Any]
    kept: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class Explained:
    """An answer explained.

    ``gone`` counts what was forgotten since or may not be shown any more, ``left_out`` what was looked at and not
    used, by reason.
    """

    trace: Trace
    reasons: tuple[Reason, ...]
    gone: int
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a memory: what took its place, if anything did, and the closed ones whose place it took.

    Why and when each was closed stands in its provenance.
    """

    entry: Entry
    successor: Entry | None = None
    replaced: tuple[Entry, ...] = ()


class Reasons:
    """Explains the answers that were given to an owner, from their traces and what the stores hold now."""

    def __init__(self, stores: Stores, together: Together) -> None:
        self._stores = stores
        self._together = together

    async def latest(self, owner: Account, chat: Chat) -> Explained | None:
        """The newest answer to the owner in a chat; None when none is on record."""
        trace = await self._stores.traces.latest(owner, chat)
        return None if trace is None else await self.explain(owner, chat, trace)

    async def of_message(self, owner: Account, chat: Chat, platform_id: str) -> Explained | None:
        """The answer that a message of the platform shows; None for one that shows none, or another person's."""
        trace = await self._stores.traces.shown_in(owner, chat, platform_id)
        return None if trace is None else await self.explain(owner, chat, trace)

    async def explain(self, owner: Account, room: Chat, trace: Trace) -> Explained:
        """What the stores hold now of what a trace names, as far as it may be shown in ``room``."""
        recalled: Sequence[Mapping[str, Any]] = trace.data.get("recalled", ())
        found = await self._read(owner, room, [unit["id"] for unit in recalled])
        question = (await self._stores.journal.lines(owner, [trace.data.get("question", 0)])).values()
        asked = next((line.text for line in question), "")
        kept = await self._kept(owner, room, [id_ for id_, unit in found.items() if isinstance(unit, Message)])
        reasons = tuple(
            replace(_reason(found[unit["id"]], unit, asked), kept=tuple(kept.get(unit["id"], ())))
            for unit in recalled
            if unit["id"] in found
        )
        left_out: dict[str, int] = {}
        for _, reason in trace.data.get("left_out", ()):
            left_out[reason] = left_out.get(reason, 0) + 1
        return Explained(trace, reasons, len(recalled) - len(reasons), left_out)

    async def fates(self, owner: Account, room: Chat, ids: Collection[int]) -> dict[int, Fate]:
        """What became of the owner's memories among ``ids``, as far as it may be shown in ``room``."""
        found = {id_: unit for id_, unit in (await self._read(owner, room, ids)).items() if not _is_line(unit)}
        entries = [unit for unit in found.values() if not isinstance(unit, Message)]
        ends = [entry.provenance.successor for entry in entries if entry.provenance.successor is not None]
        successors = await self._read(owner, room, ends)
        replaced: dict[int, list[Entry]] = {}
        for place in await self._together.places(owner, room):
            mine = [entry.id for entry in entries if place.account.owns(entry.id)]
            for store in self._stores.entries if mine else ():
                for closed in await store.closed_by(place.account, mine, []):
                    if visible(closed.provenance.audience, place.room):
                        replaced.setdefault(closed.provenance.successor or 0, []).append(closed)
        fates = {}
        for entry in entries:
            successor = successors.get(entry.provenance.successor or 0)
            after = None if isinstance(successor, Message) else successor
            fates[entry.id] = Fate(entry, after, tuple(replaced.get(entry.id, ())))
        return fates

    async def texts(self, owner: Account, room: Chat, ids: Collection[int]) -> dict[int, str]:
        """The words of the owner's memories and lines among ``ids`` that may be shown in ``room``."""
        return {id_: unit.text for id_, unit in (await self._read(owner, room, ids)).items()}

    async def _kept(self, owner: Account, room: Chat, lines: Collection[int]) -> dict[int, list[Entry]]:
        """The memories that cite each of these lines, are not closed and may be shown in ``room``."""
        kept: dict[int, list[Entry]] = {}
        for place in await self._together.places(owner, room) if lines else ():
            mine = [id_ for id_ in lines if place.account.owns(id_)]
            for store in self._stores.entries if mine else ():
                for entry in await store.citing(place.account, mine):
                    if entry.provenance.retired_at is None and visible(entry.provenance.audience, place.room):
                        for citation in entry.provenance.citations:
                            kept.setdefault(citation.message, []).append(entry)
        return kept

    async def _read(self, owner: Account, room: Chat, ids: Collection[int]) -> dict[int, Entry | Message]:
        found: dict[int, Entry | Message] = {}
        for place in await self._together.places(owner, room) if ids else ():
            mine = [id_ for id_ in ids if place.account.owns(id_)]
            if not mine:
                continue
            found |= await self._stores.journal.lines(place.account, mine, aside=room.private)
            for store in self._stores.entries:
                held: Iterable[Entry] = (await store.get(place.account, mine)).values()
                found |= {entry.id: entry for entry in held if visible(entry.provenance.audience, place.room)}
        return found


def rests_on_memory(explained: Explained) -> list[Entry]:
    """The memories that an answer was given with because they were asked about, or whose very words were recalled.

    See :func:`memory.traces.rested_on`.
    """
    used = set(rested_on(explained.trace.data))
    rested: dict[int, Entry] = {}
    for reason in explained.reasons:
        if isinstance(reason.unit, Message):
            spoke = reason.data["band"] == "full" and reason.data.get("scores")
            rested |= {entry.id: entry for entry in reason.kept if spoke}
        elif reason.unit.id in used:
            rested[reason.unit.id] = reason.unit
    return list(rested.values())


def shared_words(question: str, text: str) -> tuple[str, ...]:
    """The words of a text that stand in a question, too, as the text has them, in its order, each once.

    Of Han characters the longest runs of two or more that both have.
    """
    asked = set(terms(question))
    found: dict[str, str] = {}
    for token in _TOKEN.findall(text):
        if any(map(is_han, token)):
            for run in _runs(token, asked):
                found.setdefault(run, run)
        elif (own := terms(token)) and asked.issuperset(own):
            found.setdefault(token.casefold(), token)
    return tuple(found.values())


def _runs(token: str, asked: set[str]) -> list[str]:
    """The runs of Han characters of which every pair is among the terms ``asked``."""
    runs, start = [], 0
    for place in range(1, len(token) + 1):
        pair = token[place - 1 : place + 1]
        if place < len(token) and is_han(pair[0]) and is_han(pair[1]) and asked.intersection(terms(pair)[2:]):
            continue
        if place - start > 1:
            runs.append(token[start:place])
        start = place
    return runs


def _reason(unit: Entry | Message, data: Mapping[str, Any], question: str) -> Reason:
    scores: Mapping[str, float] = data.get("scores", {})
    words = shared_words(question, unit.text)
    return Reason(unit, _whys(data["band"], scores, bool(words)), words, data["band"] != "perhaps", data)


def _whys(band: str, scores: Mapping[str, float], words: bool) -> tuple[Why, ...]:  # noqa: FBT001
    """What spoke for a memory, the strongest first. ``words`` tells that it shares some with the question itself."""
    strength: dict[Why, float] = {}
    for name, told in _TOLD.items():
        value, why = scores.get(name, 0.0), told if words or told != "words" else "before"
        if value >= _CLEAR:
            strength[why] = max(value, strength.get(why, 0.0))
    found = tuple(sorted(strength, key=lambda why: -strength[why]))
    if band == "always":
        return ("often" if OFTEN in scores else "always", *found)
    return found or (("beside",) if scores else ("all",))


def _is_line(unit: Entry | Message) -> bool:
    return isinstance(unit, Message)
