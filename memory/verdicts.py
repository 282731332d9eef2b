"""What a candidate means for what is already known: pure rules, one a kind of memory.

Time is the time something was said, never the time it arrived: a late old statement closes nothing. A statement
takes the place of an older one that it contradicts if it is as sure and holds as long (:class:`Weight`); whatever
order statements arrive in, the same ones stand. What is newer but less sure stands beside the sure one as a doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, Self

from memory import slots
from memory.model import EVERYWHERE, PRIVATE, Candidate, Citation, Entry, Event, Fact, ProfileLine, Span
from memory.sameness import ALIKE, corrects, fingerprint, opposed, overlap, within

SURE: Final = 0.5
"""Confidence from which a statement is sure. An unsure one closes no sure one: both stay, and the doubt is marked.
One limit and not two, so that what stands does not depend on the order of arrival."""
ENDED: Final = "ended"
"""Reason of a memory that words ended without putting anything in its place."""
END: Final = "end"
"""Reason of a row that is no memory but an end: closed from the start, it says from when on a statement, whenever it
may arrive, is over."""
UNDONE: Final = "undone"
"""Reason of a memory whose own retirements were undone: it stays as history and weighs nothing."""
DENIED: Final = "denied"
"""Reason of an unsure memory whose owner, asked, said that the sure one stays: it weighs nothing any more."""
RELATED: Final = 0.5
"""Share of common words from which a correction may mean an event."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with a candidate.

    "confirm" means ``target``. "add" closes the rows ``closes``, as a "confirm" does; with ``closed_by`` or ``ended``
    (the words that ended it before it came) the new row is itself history at once. "end" adds an end. "retire" closes
    ``closes`` and adds nothing. ``doubts`` is the row that the new one is an unsure word against; ``doubted_by`` are
    unsure rows that are newer than it.
    """

    action: Literal["add", "confirm", "retire", "end", "drop"]
    reason: str
    target: int = 0
    closes: tuple[int, ...] = ()
    closed_by: int | None = None
    ended: Citation | None = None
    doubts: int | None = None
    doubted_by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Weight:
    """What decides between statements that contradict each other; ``place`` is time and number of the newest words."""

    place: tuple[datetime, int]
    sure: bool
    lasting: bool

    @classmethod
    def of(cls, statement: Candidate | Entry) -> Self:
        """Weigh a candidate or a memory."""
        known = statement if isinstance(statement, Candidate) else statement.provenance
        newest = max(((citation.at, citation.message) for citation in known.citations), default=None)
        if newest is None:
            newest = (said_at(statement) if isinstance(statement, Candidate) else statement.provenance.said_at, 0)
        return cls(newest, known.confidence >= SURE, known.expires_at is None)

    def no_less(self, other: Weight) -> bool:
        """Whether this is as sure as the other and holds as long."""
        return self.sure >= other.sure and self.lasting >= other.lasting

    def replaces(self, other: Weight) -> bool:
        """Whether this takes the place of the other: newer, and no less."""
        return self.place > other.place and self.no_less(other)

    def questions(self, other: Weight) -> bool:
        """Whether this would take the place of the other, were it sure."""
        return self.place > other.place and other.sure > self.sure and self.lasting >= other.lasting


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and when a verdict is passed. ``words`` are the whole messages the candidate cites."""

    audience: int
    now: datetime
    words: str = ""


def covers(known: int, wanted: int) -> bool:
    """Whether a memory of one audience may be used wherever one of another may."""
    return known in (wanted, EVERYWHERE) or wanted == PRIVATE


def judge(candidate: Candidate, known: Sequence[Entry], setting: Setting) -> Verdict:
    """Weigh a candidate against the owner's visible memories of its kind, closed ones included."""
    about = [entry for entry in known if entry.subject == candidate.subject]
    if candidate.kind == "profile":
        return _profile(candidate, [entry for entry in about if isinstance(entry, ProfileLine)], setting)
    if candidate.kind == "event":
        return _event(candidate, [entry for entry in about if isinstance(entry, Event)], setting)
    return _fact(candidate, [entry for entry in about if isinstance(entry, Fact)], setting)


def cites(entry: Entry, candidate: Candidate) -> bool:
    """Whether an entry already rests on every message the candidate rests on."""
    return {c.message for c in candidate.citations} <= {c.message for c in entry.provenance.citations}


def said_at(candidate: Candidate) -> datetime:
    """Return when the newest words behind a candidate were said."""
    return max(citation.at for citation in candidate.citations)


def _profile(candidate: Candidate, lines: Sequence[ProfileLine], setting: Setting) -> Verdict:
    slot, wanted = slots.slot(candidate.attribute), slots.key(candidate.value)
    own = [line for line in lines if line.attribute == candidate.attribute]
    same = [line for line in own if slots.key(line.value) == wanted]
    if candidate.negates:
        return _end(candidate, same if wanted else own, setting) if wanted or own else Verdict("drop", "nothing_to_end")
    rivals = [line for line in lines if line.attribute == slot.opposite and slots.key(line.value) == wanted]
    others = [] if slot.multiple else [line for line in own if line not in same]
    rivals += others
    if settled := _settled(candidate, same, rivals, setting):
        return settled
    if any(_live(line, setting) and cites(line, candidate) for line in others):
        return Verdict("drop", "same_message")
    return _replace(candidate, same, rivals, setting)


def _fact(candidate: Candidate, facts: Sequence[Fact], setting: Setting) -> Verdict:
    mark = fingerprint(candidate.text)
    same = [fact for fact in facts if fingerprint(fact.text) == mark]
    if candidate.negates:
        return _end(candidate, same, setting)
    rivals = [fact for fact in facts if opposed(fact.text, candidate.text)]
    if settled := _settled(candidate, same, rivals, setting):
        return settled
    verdict = _replace(candidate, same, rivals, setting)
    if verdict.reason == "new" and any(
        _live(fact, setting) and overlap(fact.text, candidate.text) >= ALIKE for fact in facts
    ):
        return replace(verdict, reason="kept_both")
    return verdict


def _event(candidate: Candidate, events: Sequence[Event], setting: Setting) -> Verdict:
    when = candidate.span
    if when is None:
        raise ValueError("an event needs a span")
    related = [event for event in events if _related(event, candidate)]
    if candidate.negates:
        return _end_of_event(candidate, [event for event in related if _meets(event.span, when)], setting)
    same = [event for event in related if fingerprint(event.text) == fingerprint(candidate.text)]
    over = [event for event in related if event.provenance.reason == END and _meets(event.span, when)]
    if settled := _settled(candidate, [*(event for event in same if _holds(event.span, when)), *over], (), setting):
        return settled
    weight = Weight.of(candidate)
    corrections = [event for event in related if _is_correction(event) and _states(event)]
    if outdating := [event for event in corrections if Weight.of(event).replaces(weight)]:
        return Verdict("add", "outdated", closed_by=_newest(outdating).id)
    finer = [event for event in same if _live(event, setting) and _inside(when, event.span)]
    meant: list[Event] = []
    if corrects(setting.words):
        earlier = [e for e in related if _live(e, setting) and Weight.of(e).place < weight.place]
        meant = _one([event for event in earlier if not cites(event, candidate)])
    closes = [event for event in dict.fromkeys((*finer, *meant)) if weight.sure or not Weight.of(event).sure]
    doubted = [event for event in meant if event not in closes]
    doubts = [event.id for event in corrections if _live(event, setting) and Weight.of(event).questions(weight)]
    reason = "unsure" if doubted else "corrected" if meant else "refined" if closes else "new"
    return Verdict(
        "add",
        reason,
        closes=tuple(event.id for event in closes),
        doubts=doubted[0].id if doubted else None,
        doubted_by=tuple(doubts),
    )


def _end_of_event(candidate: Candidate, events: Sequence[Event], setting: Setting) -> Verdict:
    """End the one event that can be meant; of several open ones none."""
    live = [event for event in events if _live(event, setting)]
    return _end(candidate, [*_one(live), *(event for event in events if event not in live)], setting)


def _settled(candidate: Candidate, same: Sequence[Entry], rivals: Sequence[Entry], setting: Setting) -> Verdict | None:
    """Judge by the memories that say the same thing; None when they leave it open."""
    if any(cites(entry, candidate) for entry in same):
        return Verdict("drop", "repeated")
    if candidate.expires_at is not None and candidate.expires_at <= setting.now:
        return Verdict("drop", "expired")
    weight = Weight.of(candidate)
    if over := _over(candidate, same):
        beaten = [r.id for r in rivals if _live(r, setting) and weight.replaces(Weight.of(r))]
        return Verdict("add", "outdated", closes=tuple(beaten), ended=over)
    for entry in same:
        if not _live(entry, setting) or not covers(entry.provenance.audience, setting.audience):
            continue
        if weight.place > Weight.of(entry).place and not weight.no_less(Weight.of(entry)):
            # It would carry the surer or longer statement on to a time at which nobody made it.
            return Verdict("drop", "weaker")
        if _restates(candidate, entry):
            closes = [r.id for r in rivals if _live(r, setting) and weight.replaces(Weight.of(r))]
            return Verdict("confirm", "repeated_in_other_words", target=entry.id, closes=tuple(closes))
    return None


def _restates(candidate: Candidate, entry: Entry) -> bool:
    """Whether the candidate is the same statement once more. With another end it is a new stretch of time."""
    ours, theirs = Weight.of(candidate), Weight.of(entry)
    if ours.place < theirs.place:
        return theirs.no_less(ours)
    return ours.no_less(theirs) and candidate.expires_at == entry.provenance.expires_at


def _replace(candidate: Candidate, same: Sequence[Entry], rivals: Sequence[Entry], setting: Setting) -> Verdict:
    """Add a candidate, closing what it takes the place of; or as history when a rival does that to it."""
    weight = Weight.of(candidate)
    if outdating := [rival for rival in rivals if _states(rival) and Weight.of(rival).replaces(weight)]:
        return Verdict("add", "outdated", closed_by=_newest(outdating).id)
    restated = [entry.id for entry in same if _live(entry, setting) and _replaceable(entry, candidate, setting)]
    open_rivals = [rival for rival in rivals if _live(rival, setting)]
    beaten = [rival for rival in open_rivals if weight.replaces(Weight.of(rival))]
    questioned = [rival for rival in open_rivals if weight.questions(Weight.of(rival))]
    reason = "superseded" if beaten else "restated" if restated else "new"
    if questioned:
        reason = "unsure"
    elif candidate.expires_at is not None and any(rival.provenance.expires_at is None for rival in open_rivals):
        # What holds for a few days must not leave nothing behind when they are over.
        reason = "temporary"
    return Verdict(
        "add",
        reason,
        closes=(*(rival.id for rival in beaten), *restated),
        doubts=_newest(questioned).id if questioned else None,
        doubted_by=tuple(rival.id for rival in open_rivals if Weight.of(rival).questions(weight)),
    )


def _replaceable(entry: Entry, candidate: Candidate, setting: Setting) -> bool:
    """Whether the same statement, said again, holds at least everywhere the old one does, and no shorter."""
    return covers(setting.audience, entry.provenance.audience) and Weight.of(candidate).no_less(Weight.of(entry))


def _end(candidate: Candidate, entries: Sequence[Entry], setting: Setting) -> Verdict:
    """End what is meant; what is yet to arrive of it will meet the end, too."""
    weight = Weight.of(candidate)
    meant = [e for e in entries if _live(e, setting) and Weight.of(e).place < weight.place and not cites(e, candidate)]
    over = [entry.id for entry in meant if weight.sure or not Weight.of(entry).sure]
    if over:
        return Verdict("retire", ENDED, closes=tuple(over))
    if meant:
        return Verdict("drop", "unsure")
    told = {citation.message for citation in candidate.citations}
    if any(cites(e, candidate) or e.provenance.ended_by in told for e in entries):
        return Verdict("drop", "repeated")
    if candidate.kind == "profile" and not slots.key(candidate.value):
        return Verdict("drop", "nothing_to_end")
    return Verdict("end", END)


def _over(candidate: Candidate, same: Iterable[Entry]) -> Citation | None:
    """The newest words that ended what a candidate says after it was said; an unsure end is none of a sure one."""
    said, sure = said_at(candidate), Weight.of(candidate).sure
    ends: list[Citation] = []
    for entry in same:
        known = entry.provenance
        counts = known.reason == ENDED or (known.reason == END and (Weight.of(entry).sure or not sure))
        at = known.ended_at or known.retired_at
        if counts and at is not None and at > said:
            ends.append(Citation(known.ended_by or 0, "", at))
    return max(ends, key=lambda end: end.at, default=None)


def _one(entries: Sequence[Event]) -> list[Event]:
    """Return the single entry that can be meant; of several the most recently said, if it was said alone."""
    newest = max((entry.provenance.said_at for entry in entries), default=None)
    meant = [entry for entry in entries if entry.provenance.said_at == newest]
    return meant if len(meant) == 1 else []


def _newest(entries: Sequence[Entry]) -> Entry:
    return max(entries, key=lambda entry: Weight.of(entry).place)


def _states(entry: Entry) -> bool:
    """Whether a memory, closed or not, weighs as a statement: one that was undone does not, and an end is none."""
    return entry.provenance.reason not in {UNDONE, DENIED, END}


def _live(entry: Entry, setting: Setting) -> bool:
    return entry.provenance.live(setting.now)


def _related(event: Event, candidate: Candidate) -> bool:
    return within(event.text, candidate.text) or overlap(event.text, candidate.text) >= RELATED


def _is_correction(event: Event) -> bool:
    return any(corrects(citation.quote) for citation in event.provenance.citations)


def _holds(known: Span, wanted: Span) -> bool:
    """Whether the known time says at least as much: the same, or a finer time inside."""
    return known.rrule == wanted.rrule and wanted.start <= known.start and known.end <= wanted.end


def _inside(wanted: Span, known: Span) -> bool:
    return known.rrule == wanted.rrule and known.start <= wanted.start and wanted.end <= known.end


def _meets(known: Span, denied: Span) -> bool:
    """Whether a denial of one time can mean what is known for another: one that comes round is not over for once."""
    if known.rrule != denied.rrule:
        return False
    return known.rrule is not None or (known.start < denied.end and denied.start < known.end)
