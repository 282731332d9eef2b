"""From candidates to what is shown: texts read again, near-copies thinned, the budget kept."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from memory.judge import Candidate, visible
from memory.lexicon import language
from memory.model import Account, Chat, Entry, Message, Recalled
from memory.stores import Stores
from memory.words import terms

SHORT: Final = {"zh": 12, "en": 40}
"""Characters up to which a line is too short to be understood without the question before it."""
COVERED: Final = 0.8
"""Share of a row's terms that a shown one with the same source must hold for the row to add nothing."""


@dataclass(frozen=True, slots=True)
class Read:
    """The rows as the stores hold them now: what was closed, hidden or expired since is not among them."""

    lines: dict[int, Message]
    entries: dict[int, Entry]


async def read(stores: Stores, owner: Account, candidates: Sequence[Candidate], *, room: Chat, now: datetime) -> Read:
    """Read candidates, and the questions that short lines answer, through the live filter of the stores."""
    ids = [c.id for c in candidates if c.kind == "message"]
    lines = await stores.journal.lines(owner, ids) if ids else {}
    asked = {c.asked for c in candidates} | {line.answers for line in lines.values()}
    missing = [id_ for id_ in asked if id_ is not None and id_ not in lines]
    if missing:
        lines |= await stores.journal.lines(owner, missing)
    entries: dict[int, Entry] = {}
    for store in stores.entries:
        wanted = [c.id for c in candidates if c.kind == store.kind]
        if wanted:
            entries |= await store.get(owner, wanted)
    holding = {
        id_: entry
        for id_, entry in entries.items()
        if entry.provenance.live(now) and visible(entry.provenance.audience, room)
    }
    return Read(lines, holding)


def units(
    candidates: Iterable[Candidate], found: Read, exclude: frozenset[int]
) -> Iterable[Recalled | tuple[int, str]]:
    """Each candidate as it would be shown, or its id and why it is not."""
    for candidate in candidates:
        if candidate.kind != "message":
            entry = found.entries.get(candidate.id)
            yield (candidate.id, "closed") if entry is None else memory_unit(candidate, entry)
        else:
            line = found.lines.get(candidate.id)
            yield (candidate.id, "closed") if line is None else _line_unit(candidate, line, found.lines, exclude)


def memory_unit(candidate: Candidate, entry: Entry) -> Recalled:
    """A memory as shown."""
    return Recalled(
        id=entry.id,
        kind=entry.kind,
        text=entry.text,
        at=entry.provenance.said_at,
        score=candidate.score,
        cites=tuple(c.message for c in entry.provenance.citations),
        band=candidate.band,
        subject=entry.subject,
        scores=candidate.scores or {},
    )


def _line_unit(
    candidate: Candidate, line: Message, lines: dict[int, Message], exclude: frozenset[int]
) -> Recalled | tuple[int, str]:
    """A journal line; with the question it answers when it is short, and a reply of the bot never without."""
    unit = Recalled(
        id=line.id,
        kind="message",
        text=line.text,
        at=line.at,
        score=candidate.score,
        cites=(line.id,),
        band=candidate.band,
        speaker=line.speaker,
        scores=candidate.scores or {},
    )
    if line.answers is not None:
        question = lines.get(line.answers)
        if question is None:
            return line.id, "answers what is gone"
        return unit if question.id in exclude else _with_question(unit, question)
    question = lines.get(candidate.asked) if candidate.asked is not None else None
    short = len(line.text) <= SHORT[language(line.text)]
    return _with_question(unit, question) if short and question is not None and question.id not in exclude else unit


def _with_question(unit: Recalled, question: Message) -> Recalled:
    return replace(unit, text=f"{question.text} → {unit.text}", cites=(unit.id, question.id))


class Shelf:
    """The list as it grows: near-copies thinned, the token budget kept."""

    def __init__(self, cost: Callable[[Recalled], int], budget: int | None) -> None:
        """``cost`` counts the tokens of a unit as it is put before the model; without a budget all fit."""
        self._cost = cost
        self._budget = budget
        self._spent = 0
        self._words: list[frozenset[str]] = []
        self._texts: dict[str, int] = {}
        self.units: list[Recalled] = []

    def put(self, unit: Recalled, *, within: int | None = None) -> str | None:
        """Take a unit; or the reason why not: "shown" (that very unit is), "repeats", "budget".

        ``within`` bounds what may have been spent after it, below the whole budget.
        """
        twin = self._twin(unit)
        if twin is not None:
            kept = self.units[twin]
            # An always-read line that is found as well keeps what spoke for it: it is about the question, too.
            better = unit if unit.score > kept.score else kept
            cites = tuple(dict.fromkeys(kept.cites + unit.cites))
            self.units[twin] = replace(kept, cites=cites, score=better.score, scores=better.scores)
            return "shown" if kept.id == unit.id else "repeats"
        if self._budget is not None:
            spent = self._spent + self._cost(unit)
            if spent > min(self._budget, self._budget if within is None else within):
                return "budget"
            self._spent = spent
        self._texts[_plain(unit.text)] = len(self.units)
        self._words.append(frozenset(terms(unit.text)))
        self.units.append(unit)
        return None

    def _twin(self, unit: Recalled) -> int | None:
        """The unit shown already that says the same: in equal words, or more of them from the same source."""
        same = self._texts.get(_plain(unit.text))
        if same is not None:
            return same
        words, sources = frozenset(terms(unit.text)), set(unit.cites)
        for place, (kept, said) in enumerate(zip(self.units, self._words, strict=True)):
            if sources.intersection(kept.cites) and len(words & said) >= COVERED * len(words):
                return place
        return None


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold())) or text
