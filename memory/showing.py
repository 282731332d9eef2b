"""From candidates to what is shown: texts read again, long ones told shortly, near-copies thinned, the budget kept.

A text of more than :data:`memory.passages.LONG` characters is shown by its gist, one line that is marked as such.
More of it is shown only when its own words were hit: it holds a rare word of the question, or it is the nearest
in meaning of all that was found, by one of its chunks or as a whole. Then it is shown whole where that leaves most
of the budget to the rest (:data:`WHOLE_SHARE`), else as the passage that was hit, and as its gist when that does
not fit either. The question that a short answer is shown with is always told by its gist.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

from memory.embedding import spoken
from memory.judge import Contender, visible
from memory.lexicon import asked_in
from memory.model import Account, Chat, Extent, Kind, Message, Recalled
from memory.passages import LONG, Span, gist, passage
from memory.rules import is_small_talk
from memory.stores import Stores
from memory.texts import MemoryText, memory_texts, outdated
from memory.words import terms

SHORT: Final = {"zh": 12, "en": 40}
"""Characters up to which a line is too short to be understood without the question before it."""
OFTEN: Final = "uses"
"""Score that says why a memory is read on every turn: how many replies were given with it."""
COVERED: Final = 0.8
"""Share of a row's terms that those shown from the same source must hold for the row to add nothing."""
WHOLE_SHARE: Final = 3
"""A long text that was hit is shown whole if it takes no more than this part (1/3) of what is left of the budget."""
_NO_LETTERS: Final = re.compile(r"[\W_]+")
_CLAUSE: Final = re.compile(r"[,.;!?，。；！？\n]+")


@dataclass(frozen=True, slots=True)
class Read:
    """The rows as the stores hold them now: what was closed, hidden or expired since is not among them."""

    lines: dict[int, Message]
    memories: dict[int, MemoryText]
    outdated: dict[int, datetime]

    @property
    def texts(self) -> dict[int, str]:
        """The words of each, by id; a line's with who said it."""
        lines = {id_: spoken(line.speaker, line.text) for id_, line in self.lines.items()}
        return lines | {id_: memory.text for id_, memory in self.memories.items()}


@dataclass(frozen=True, slots=True)
class LongHits:
    """What of long texts was hit.

    ``rare`` are the question's words that few rows hold, ``nearest`` is where in a row its chunk nearest
    in meaning is, by row id, ``best`` the row that is nearest of all.
    """

    rare: frozenset[str] = frozenset()
    nearest: Mapping[int, Span] = field(default_factory=dict)
    best: int | None = None

    def joined(self, other: LongHits) -> LongHits:
        """These and what another wording of the question hit; where both hit one row, this is where."""
        return LongHits(self.rare | other.rare, {**other.nearest, **self.nearest}, self.best)


NO_HITS: Final = LongHits()


class LeftOut(NamedTuple):
    """A row that is not shown, and why."""

    id: int
    reason: str


Told = Callable[[str], str]
"""How a text reads beside what is shown with it."""
Forms = tuple[Recalled, ...]
"""One unit in the forms in which it may be shown, the fullest first."""


async def read(stores: Stores, owner: Account, candidates: Sequence[Contender], *, room: Chat, now: datetime) -> Read:
    """Read candidates, and the questions that short lines answer, through the live filter of the stores."""
    wanted: dict[Kind, list[int]] = {}
    for candidate in candidates:
        wanted.setdefault(candidate.kind, []).append(candidate.id)
    ids = wanted.get("message", [])
    before = (c.asked for c in candidates if c.asked is not None)
    # Before a group was opened to more people its lines were said to fewer, whatever an index knows that was let go of.
    visible_lines = partial(stores.journal.lines, owner, aside=room.private)
    lines = await visible_lines(dict.fromkeys([*ids, *before])) if ids else {}
    missing = {line.answers for line in lines.values() if line.answers is not None} - lines.keys()
    if missing:
        lines |= await visible_lines(missing)
    found = await memory_texts(stores.db, owner, wanted, now=now)
    holding = {id_: memory for id_, memory in found.items() if visible(memory.audience, room)}
    return Read(lines, holding, await outdated(stores.db, owner, ids, now=now))


def units(
    candidates: Iterable[Contender], found: Read, hits: LongHits, exclude: frozenset[int]
) -> Iterable[Forms | LeftOut]:
    """Each candidate as it would be shown, or its id and why it is not."""
    for candidate in candidates:
        if candidate.kind != "message":
            memory = found.memories.get(candidate.id)
            yield LeftOut(candidate.id, "closed") if memory is None else forms(memory_unit(candidate, memory), hits)
        else:
            line = found.lines.get(candidate.id)
            yield (
                LeftOut(candidate.id, "closed") if line is None else _line_forms(candidate, line, found, hits, exclude)
            )


def forms(unit: Recalled, hits: LongHits = NO_HITS, told: Told = str) -> Forms:
    """A unit whole, or when its text is long its gist, behind the text and the passage where its words were hit."""
    text = unit.text
    if len(text) <= LONG:
        return (unit if told is str else replace(unit, text=told(text)),)
    nearest = hits.nearest.get(unit.id)
    shown: list[tuple[Extent, str]] = [("gist", gist(text, nearest))]
    if unit.id == hits.best or not hits.rare.isdisjoint(terms(text)):
        shown = [("whole", text), ("passage", passage(text, hits.rare, nearest)), *shown]
    return tuple(replace(unit, text=told(part), extent=extent) for extent, part in shown)


def memory_unit(candidate: Contender, memory: MemoryText) -> Recalled:
    """A memory as shown."""
    return Recalled(
        id=memory.id,
        kind=memory.kind,
        text=memory.text,
        at=memory.at,
        score=candidate.score,
        cites=memory.cites,
        band=candidate.band,
        subject=memory.subject,
        scores=candidate.reasons,
        when=memory.when,
    )


def _line_forms(
    candidate: Contender, line: Message, found: Read, hits: LongHits, exclude: frozenset[int]
) -> Forms | LeftOut:
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
        scores=candidate.reasons,
        outdated=found.outdated.get(line.id),
    )
    lines = found.lines
    if line.answers is not None:
        question = lines.get(line.answers)
        if question is None:
            return LeftOut(line.id, "answers what is gone")
        return forms(unit, hits) if question.id in exclude else _with_question(unit, question, hits)
    question = lines.get(candidate.asked) if candidate.asked is not None else None
    if question is None or question.id in exclude or len(line.text) > SHORT[asked_in(line.text)]:
        return forms(unit, hits)
    return _with_question(unit, question, hits)


def _with_question(unit: Recalled, question: Message, hits: LongHits) -> Forms:
    asked = question.text if len(question.text) <= LONG else gist(question.text)
    return forms(replace(unit, cites=(unit.id, question.id)), hits, lambda text: f"{asked} → {text}")


class Shelf:
    """The list as it grows: near-copies thinned, the token budget kept."""

    def __init__(self, cost: Callable[[Recalled, Recalled | None], int], budget: int | None) -> None:
        """``cost`` counts the tokens of a unit as it is put before the model, behind another one or as the first.

        Without a budget all fit.
        """
        self._cost = cost
        self._budget = budget
        self._spent = 0
        self._texts: dict[str, int] = {}
        self._words = _Words()
        self._sources: dict[int, _Source] = {}
        self.units: list[Recalled] = []

    def put(self, unit: Forms, *, within: int | None = None) -> str | None:
        """Take a unit in the fullest form that fits; or the reason why not: "shown" (it is), "repeats", "budget".

        ``within`` bounds what may have been spent after it, below the whole budget.
        """
        whole = unit[0]
        plain = _plain(whole.text)
        twin = self._twin(whole, plain)
        if twin is not None:
            kept = self.units[twin]
            # An always-read line that is found as well keeps what spoke for it: it is about the question, too.
            better = whole if whole.score > kept.score else kept
            cites = tuple(dict.fromkeys(kept.cites + whole.cites))
            self._learned_from(cites[len(kept.cites) :], twin)
            # One that is read on every turn for its use alone is found like any other once it is asked about.
            band = whole.band if OFTEN in kept.scores else kept.band
            self.units[twin] = replace(kept, cites=cites, score=better.score, scores=better.scores, band=band)
            return "shown" if kept.id == whole.id else "repeats"
        form = self._fitting(unit, within)
        if form is None:
            return "budget"
        self._texts[plain] = len(self.units)
        self._learned_from(dict.fromkeys(whole.cites), len(self.units))
        self.units.append(form)
        return None

    def _learned_from(self, sources: Iterable[int], place: int) -> None:
        for source in sources:
            if source not in self._sources:
                self._sources[source] = _Source(self._words)
            self._sources[source].places.append(place)

    def _fitting(self, unit: Forms, within: int | None) -> Recalled | None:
        """The fullest form that there is room for, which is spent; None when not even the shortest fits."""
        if self._budget is None:
            return unit[0]
        left = min(self._budget, self._budget if within is None else within) - self._spent
        for form in unit:
            cost = self._cost(form, self.units[-1] if self.units else None)
            if cost <= (left // WHOLE_SHARE if form.extent == "whole" and len(unit) > 1 else left):
                self._spent += cost
                return form
        return None

    def _twin(self, unit: Recalled, plain: str) -> int | None:
        """The unit shown already that says the same: in equal words, or most of what those of the same source say.

        A line may be said whole by several: its name by one profile line, its allergy by another.
        """
        same = self._texts.get(plain)
        if same is not None:
            return same
        near = [source for source in map(self._sources.get, dict.fromkeys(unit.cites)) if source is not None]
        if not near:
            return None
        words = self._words[_without_small_talk(unit.text)]
        need = COVERED * len(words)
        said = [source.said(self.units) for source in near]
        if len(words.intersection(said[0] if len(said) == 1 else set().union(*said))) < need:
            return None
        places = {place: source for source in near for place in source.places}
        return max(
            sorted(places),
            key=lambda place: (len(words & places[place].words[place]) >= need, self.units[place].score),
        )


class _Words(dict[str, frozenset[str]]):
    """The words of the texts that one list was made of, each worked out once."""

    def __missing__(self, text: str) -> frozenset[str]:
        found = self[text] = frozenset(terms(text))
        return found


class _Source:
    """A journal line that units shown were learned from: where they are, and the words they hold."""

    def __init__(self, words: _Words) -> None:
        self._words = words
        self.places: list[int] = []
        self.words: dict[int, frozenset[str]] = {}
        self._all: set[str] = set()

    def said(self, units: Sequence[Recalled]) -> set[str]:
        """All words of these units, worked out once another one of the same source comes after them."""
        for place in self.places[len(self.words) :]:
            self.words[place] = self._words[units[place].text]
            self._all |= self.words[place]
        return self._all


def _without_small_talk(text: str) -> str:
    """A text without its greetings and thanks, which no memory repeats."""
    return " ".join(clause for clause in _CLAUSE.split(text) if clause and not is_small_talk(clause))


def _plain(text: str) -> str:
    folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return _NO_LETTERS.sub("", folded) or text
