"""The recall gate: from one question to one list of memories, each with the reasons for and against it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from config.settings import RecallSettings
from memory import newer
from memory.asking import Asked, Asking, search_text
from memory.block import frame, line
from memory.calibrating import Calibration, calibrate
from memory.fusing import fused
from memory.index import OwnerIndex
from memory.indexes import Indexes
from memory.judge import REASONS_KEPT, Contender, Judged, Limits, Rows, judge, visible
from memory.lexicon import is_question, needs_context, personal
from memory.measured import Kept, Measured
from memory.model import SELF, Account, Chat, Entry, ProfileLine, Recalled, Recollection
from memory.offloop import INLINE_ROWS, off_loop
from memory.ports import Completer, Reranker, TokenCounter, Vector
from memory.reranking import reranked
from memory.rewriting import Rewriter
from memory.score import WEIGHTS, Question
from memory.shipped import Shipped
from memory.showing import NO_HITS, OFTEN, Forms, LeftOut, LongHits, Read, Shelf, forms, memory_unit, read, units
from memory.slots import slot
from memory.stores import Stores
from memory.texts import MemoryText
from memory.threshold import NOTHING_BELOW
from memory.usage import tokens
from memory.words import query_terms

__all__ = ["SCORE_TERMS", "Recall", "RecallOptions", "visible"]

SCORE_TERMS: Final = (*WEIGHTS, newer.TERM)
"""What ``RecallOptions.without`` may name."""

ALWAYS_TOKENS: Final = 200
"""Budget of the lines that are read on every turn, within the whole."""
OFTEN_MOST: Final = 5
OFTEN_FROM: Final = 3
OFTEN_DAYS: Final = 90
"""The most used memories are read on every turn, too: this many at most, each behind this many replies at least,
the last of them no longer ago than that. Three, for a subject that is asked about again the same day is no habit."""
OFTEN_READ: Final = 20
"""How many are looked at: some may not be used in the room."""
REFUSALS: Final = 5
"""Units that did not fit the budget after which no shorter one is looked for."""
READ_AT_ONCE: Final = 32
"""Candidates whose texts are read at a time: about as many as a budget holds."""
AT_ONCE: Final = 2
"""Recalls worked on at a time; the loop's lag is that times the work of one (NUMBERS, section 6), and others' reading
waits no longer for the small ones that are worked on where the file is read."""
SCORED: Final = 10
"""Rows scored in the time in which one is made ready: they are columns by then. A thousand take 1.5 ms in all."""
RECURRING: Final = 30
"""Rows made ready in the time that it takes to know whether something daily happens in a year that is asked about."""


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """How to recall.

    ``max_tokens`` None is no budget; ``threshold`` False shows the best however little speaks for them;
    ``exclude`` are journal lines the model sees anyway; ``asked`` is the line of the question itself, which
    counts for nothing (its neighbours would hear its words); ``context`` are the turns before, newest last, read
    only when the question needs them; ``everything`` gives all that is known instead of what matches; ``without``
    names terms of the score that are left out, to measure what each is worth. ``by_words`` tells that the question is
    to leave no trace: it goes to no embedder and no other model. ``asker`` is the account that asks, when another
    account of the same person is searched: no model is asked for that, and no vector made, a second time.
    """

    max_tokens: int | None = None
    threshold: bool = True
    exclude: frozenset[int] = frozenset()
    asked: int = 0
    context: tuple[str, ...] = ()
    everything: bool = False
    without: frozenset[str] = frozenset()
    by_words: bool = False
    asker: Account | None = None


FirstRead = tuple[list[Forms], Read]
"""What is read on every turn, and the first of the candidates."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What answers a question, what of long texts was hit, and the texts, where they were read as of that moment."""

    judged: Judged = field(default_factory=Judged)
    hits: LongHits = NO_HITS
    read: FirstRead | None = None


class Recall:
    """Finds what an owner's memory holds for a question, and may keep silent."""

    def __init__(
        self,
        stores: Stores,
        indexes: Indexes,
        settings: RecallSettings,
        count: TokenCounter,
        *,
        completer: Completer | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        """``completer`` puts unclear questions into other words, where the settings ask for it."""
        self._stores = stores
        self._indexes = indexes
        self._settings = settings
        self._reranker = reranker
        self._count = count
        self._rewriter = None
        if completer is not None and settings.rewrite:
            self._rewriter = Rewriter(completer, stores.usage, seconds=settings.rewrite_seconds)
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._shipped = Shipped(stores.embeddings)
        self._asking = Asking(stores, self._shipped, timeout_seconds=settings.timeout_seconds)
        self.measured = Measured(stores, indexes)
        """What foreign questions find in the memories."""

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """A turn to work something out, on the loop; behind it everything else that waits for the loop is let by."""
        async with self._at_once:
            yield
            # With the turn: else who is next would be as soon as this one is done, and then the one behind.
            await asyncio.sleep(0)

    async def warm(self) -> None:
        """Embed the shipped questions now, so that no recall has to wait for it; a failure is tried again later."""
        for tongue in ("zh", "en"):
            await self._shipped.fetch(tongue)
        await self.measured.program()

    def centre(self) -> Vector | None:
        """What vectors of the present model are coded around; None until what ships has vectors."""
        return self._shipped.centre()

    async def calibrate(self, owner: Account, *, now: datetime) -> Calibration:
        """How well the owner's whole memory tells what it was told from what it was not. Raises EmbedderUnavailable."""
        await self.warm()
        foreign = {tongue: self._shipped.probes(tongue) for tongue in ("zh", "en")}
        anywhere = Chat(0, owner.platform, "", private=True)
        limits = Limits(anywhere, now, false_positives=self._settings.false_positives)
        async with self._indexes.of(owner) as index:
            return await calibrate(owner, index, self._stores, foreign, limits)

    async def recall(
        self, owner: Account, question: str, *, now: datetime, room: Chat, options: RecallOptions
    ) -> Recollection:
        """One list, best first, of what may be used in ``room`` at ``now`` (aware UTC) and fits the budget."""
        started = time.perf_counter()
        notes: list[str] = []
        limits = Limits(room, now, options.exclude, options.asked, options.threshold, self._settings.false_positives)
        found = _Found()
        if question.strip() and not options.everything:
            found = await self._found(owner, question, limits, options=options, notes=notes)
        judged, hits = found.judged, found.hits
        # A model is asked outside the queue: while it answers, others may recall.
        candidates = judged.candidates
        if not options.by_words:
            candidates = await self._ordered(owner, question, candidates, limits, notes)
        read_before = found.read
        if read_before is None:
            reading = partial(self._first_read, owner, candidates, room=room, now=now)
            read_before = await self._stores.db.together(reading)
        always_read, first = read_before
        async with self._turn():
            shelf = self.shelf(owner, options, settled=not judged.fused)
            if newer.TERM not in options.without:
                candidates = newer.newer_first(question, candidates, _told(owner, first))
            left_out = _fill(shelf, always_read, within=ALWAYS_TOKENS)
            always = len(shelf.units)
            if options.everything:
                left_out += _fill(shelf, await self._known(owner, room=room, now=now))
            left_out += await self._show(shelf, owner, candidates, hits, limits, first=first)
        if judged.fused:
            # What the question found has its place for sure; only then is it put in order.
            shelf.units[always:] = sorted(shelf.units[always:], key=lambda unit: -unit.score)
        return Recollection(
            units=tuple(shelf.units),
            level=judged.level,
            left_out=(*left_out[:REASONS_KEPT], *judged.left_out),
            notes=tuple(notes),
            milliseconds=round((time.perf_counter() - started) * 1_000, 3),
            arms=judged.arms,
        )

    async def _first_read(
        self, owner: Account, candidates: Sequence[Contender], *, room: Chat, now: datetime
    ) -> FirstRead:
        """What is read on every turn, and the first of the candidates: one trip to the file for nearly every recall."""
        always = await self._always(owner, room=room, now=now)
        return always, await read(self._stores, owner, candidates[:READ_AT_ONCE], room=room, now=now)

    async def _show(
        self,
        shelf: Shelf,
        owner: Account,
        candidates: Sequence[Contender],
        hits: LongHits,
        limits: Limits,
        *,
        first: Read,
    ) -> list[tuple[int, str]]:
        """Read candidates, the best first, and put them on the shelf until it is full; what is not shown and why.

        ``first`` is what the first of them are.
        """
        left_out: list[tuple[int, str]] = []
        for start in range(0, len(candidates), READ_AT_ONCE):
            part, found = candidates[start : start + READ_AT_ONCE], first
            if start:
                reading = partial(read, self._stores, owner, part, room=limits.room, now=limits.now)
                found = await self._stores.db.together(reading)
            refused = sum(reason == "budget" for _, reason in left_out)
            left_out += _fill(shelf, units(part, found, hits, limits.exclude), refused=refused)
            if sum(reason == "budget" for _, reason in left_out) >= REFUSALS:
                break
        return left_out

    async def _found(
        self, owner: Account, question: str, limits: Limits, *, options: RecallOptions, notes: list[str]
    ) -> _Found:
        """What answers the question; asked in other words, too, where it says too little or finds too little."""
        first = await self._asked(owner, question, limits, options=options, notes=notes)
        as_it_stands = options.by_words or options.asker is not None
        if self._rewriter is None or as_it_stands or not _unclear(question, first.judged, limits):
            return first
        queries, note = await self._rewriter.queries(owner, question, context=options.context, now=limits.now)
        notes.append(note)
        alone = replace(options, context=())
        hits, others = first.hits, list[Judged]()
        for query in queries:
            other = await self._asked(owner, query, limits, options=alone, notes=notes)
            others.append(other.judged)
            hits = hits.joined(other.hits)
        # Not what was read: it was some time ago.
        return _Found(fused(first.judged, others) if others else first.judged, hits)

    async def _ordered(
        self, owner: Account, question: str, candidates: Sequence[Contender], limits: Limits, notes: list[str]
    ) -> Sequence[Contender]:
        """The candidates as the reranking model would have them, if there is one."""
        if self._reranker is None or not candidates:
            return candidates
        first = candidates[:READ_AT_ONCE]
        reading = partial(read, self._stores, owner, first, room=limits.room, now=limits.now)
        found: Read = await self._stores.db.together(reading)
        seconds, noted = self._settings.timeout_seconds, len(notes)
        ordered = await reranked(self._reranker, question, candidates, found.texts, seconds=seconds, notes=notes)
        if len(notes) == noted and len(found.texts) > 1:
            self._stores.usage.count(owner, "rerank", tokens_in=tokens(None, question, *found.texts.values()))
        return ordered

    def shelf(self, owner: Account, options: RecallOptions, *, settled: bool) -> Shelf:
        """An empty list, as long as the budget.

        ``settled`` says that its order stays, so that a day is told once for a run.
        """

        def cost(unit: Recalled, before: Recalled | None) -> int:
            return self._count(f"{line(unit, owner, before=before if settled else None)}\n")

        if options.max_tokens is None:
            return Shelf(cost, None)
        return Shelf(cost, max(options.max_tokens - self._count(frame(owner)), 0))

    async def _always(self, owner: Account, *, room: Chat, now: datetime) -> list[Forms]:
        """What holds whatever is asked: the owner's name, allergies and the like, then the few most used memories."""
        held = [e for e in await self._stores.profile.always(owner, now=now) if visible(e.provenance.audience, room)]
        lines = [_known_unit(entry, always=True) for entry in held]
        often = [
            _known_unit(entry, always=True, scores={OFTEN: float(uses)})
            for uses, entry in await self._often(owner, now=now)
            if visible(entry.provenance.audience, room) and not _is_always(entry)
        ]
        return lines + often[:OFTEN_MOST]

    async def _often(self, owner: Account, *, now: datetime) -> list[tuple[int, Entry]]:
        """The memories that answered most often of late, with the number of times, the most used first."""
        used = await self._stores.traces.most_used(
            owner, least=OFTEN_FROM, since=now - timedelta(days=OFTEN_DAYS), most=OFTEN_READ
        )
        held: dict[int, Entry] = {}
        for store in self._stores.entries if used else ():
            held |= await store.get(owner, used)
        return [(uses, held[id_]) for id_, uses in used.items() if id_ in held and held[id_].provenance.live(now)]

    async def _known(self, owner: Account, *, room: Chat, now: datetime) -> list[Forms]:
        """All that is known, the profile first, then what is important and was said last."""
        held = [
            entry
            for store in self._stores.entries
            for entry in await store.live(owner, now=now)
            if visible(entry.provenance.audience, room)
        ]
        return [_known_unit(entry) for entry in sorted(held, key=_weight, reverse=True)]

    async def _asked(
        self, owner: Account, question: str, limits: Limits, *, options: RecallOptions, notes: list[str]
    ) -> _Found:
        """What answers one wording of the question. All that waits for the embedder is done outside the queue."""
        asker = options.asker or owner
        search = search_text(question, options.context)
        vector = None
        if options.by_words:
            notes.append("by words alone")
        else:
            vector = await self._asking.vector(asker, search, notes)
        async with self._turn():
            asked = self._asking.ready(asker, question, search, vector, now=limits.now, without=options.without)
        return await self._judge(owner, asked, limits)

    async def _judge(self, owner: Account, asked: Asked, limits: Limits) -> _Found:
        """What answers the question: in one trip to the file where the memory is small, else on the loop."""
        # In this order: who has a turn never waits for somebody who has an index.
        async with self._indexes.held(owner) as hold:
            if hold.left.newest and _size(hold.left, asked.question) <= INLINE_ROWS:
                kept = self.measured.at_hand(owner, limits, language=asked.language, talk=not asked.question.asks)
                async with self._turn():
                    found = await hold.at_once(partial(self._in_a_trip, owner, asked, limits, kept))
                if found is not None:
                    return found
            index = await hold.refreshed()
            async with self._turn():
                return await self._on_the_loop(owner, index, asked, limits)

    async def _in_a_trip(
        self, owner: Account, asked: Asked, limits: Limits, kept: Kept | None, index: OwnerIndex
    ) -> _Found | None:
        """What answers the question, with its texts, inside a trip; None where first a null is to be measured."""
        question, foreign, null, judged, hits = asked.question, asked.foreign, None, Judged(), NO_HITS
        rows = Rows.of(index, question, limits)
        if not limits.threshold or rows.offered.any():
            if limits.threshold:
                null = None if kept is None else kept.serving(index, foreign, limits, talk=not question.asks)
                if null is None:
                    return None
            judged = judge(index, question, null, foreign, limits, rows=rows)
            hits = _hits(index, question, judged)
        if self._reranker is not None:
            return _Found(judged, hits)  # A model puts them in another order first, and takes its time.
        first = await self._first_read(owner, judged.candidates, room=limits.room, now=limits.now)
        return _Found(judged, hits, first)

    async def _on_the_loop(self, owner: Account, index: OwnerIndex, asked: Asked, limits: Limits) -> _Found:
        """What answers the question, without the texts."""
        question, foreign, null = asked.question, asked.foreign, None
        rows = Rows.of(index, question, limits)
        if limits.threshold and not rows.offered.any():
            return _Found()
        if limits.threshold:
            null = await self.measured.null(
                owner, index, foreign, limits, language=asked.language, talk=not question.asks
            )
        judging = partial(judge, index, question, null, foreign, limits, rows=rows)
        judged = await off_loop(judging, size=_size(index, question))
        return _Found(judged, _hits(index, question, judged))


def _size(index: OwnerIndex, question: Question) -> int:
    """How many rows could be made ready in the time that it takes to judge an index."""
    recurring = sum(span.rrule is not None for span in index.spans.values()) if question.spans else 0
    return max(len(index.rows), len(index.vectors)) // SCORED + recurring * RECURRING


def _told(owner: Account, found: Read) -> dict[int, newer.Told]:
    """What was read, as statements that may have a newer twin; the owner is "" whichever way they are named."""
    told = {
        line.id: newer.Told(line.text, line.at, "" if line.speaker == owner.name else line.speaker)
        for line in found.lines.values()
        if line.role == "user"
    }
    for memory in found.memories.values():
        told[memory.id] = newer.Told(memory.text, memory.at, "" if memory.subject == SELF else memory.subject)
    return told


def _unclear(question: str, first: Judged, limits: Limits) -> bool:
    """Whether a question is worth a model's other words: it says too little alone, or what it finds is in doubt.

    Only what asks is, in a memory that holds something; mere talk needs no search, let alone a second one.
    """
    if first.level is None or not is_question(question):
        return False
    grey = NOTHING_BELOW <= first.level < 1 - limits.false_positives
    return needs_context(question, len(query_terms(question))) or (grey and personal(question))


def _fill(
    shelf: Shelf, shown: Iterable[Forms | LeftOut], *, within: int | None = None, refused: int = 0
) -> list[tuple[int, str]]:
    """Put units on the shelf; returns the ids of those that are not shown, with the reason.

    ``refused`` is how many did not fit the budget before.
    """
    left_out: list[tuple[int, str]] = []
    for unit in shown:
        if refused >= REFUSALS:
            break
        if isinstance(unit, LeftOut):
            left_out.append(unit)
        elif (reason := shelf.put(unit, within=within)) is not None and reason != "shown":
            left_out.append((unit[0].id, reason))
            refused += reason == "budget"
    return left_out


def _known_unit(entry: Entry, *, always: bool = False, scores: dict[str, float] | None = None) -> Forms:
    known = Contender(entry.id, entry.kind, 0.0, "always" if always else "full", scores=scores)
    return forms(memory_unit(known, MemoryText.of(entry)))


def _hits(index: OwnerIndex, question: Question, judged: Judged) -> LongHits:
    """What of the long texts among the candidates was hit."""
    vector = question.vector
    near = {} if vector is None else index.nearest_chunks((c.id for c in judged.candidates), vector)
    return LongHits(index.rare(question.terms), near, judged.nearest)


def _is_always(entry: Entry) -> bool:
    return isinstance(entry, ProfileLine) and entry.subject == SELF and slot(entry.attribute).always


def _weight(entry: Entry) -> tuple[bool, float, datetime]:
    return entry.kind == "profile", entry.provenance.importance, entry.provenance.said_at
