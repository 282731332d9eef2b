"""What a candidate means for what is already known: pure rules, one a kind of memory.

Time is the time something was said, never the time it arrived: a late old statement closes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from memory import slots
from memory.model import EVERYWHERE, PRIVATE, Candidate, Entry, Event, Fact, ProfileLine, Span
from memory.sameness import ALIKE, corrects, fingerprint, opposed, overlap, within

UNSURE: Final = 0.5
SURE: Final = 0.8
"""A statement below UNSURE does not close one of SURE or more: both stay."""
RELATED: Final = 0.5
"""Share of common words from which a correction may mean an event."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with a candidate.

    "confirm" means ``target``. "add" closes the rows ``closes``; with ``closed_by`` the new row is itself
    history at once. "retire" closes ``closes`` and adds nothing.
    """

    action: Literal["add", "confirm", "retire", "drop"]
    reason: str
    target: int = 0
    closes: tuple[int, ...] = ()
    closed_by: int | None = None


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


def said_at(candidate: Candidate) -> datetime:
    """Return when the newest words behind a candidate were said."""
    return max(citation.at for citation in candidate.citations)


def _profile(candidate: Candidate, lines: Sequence[ProfileLine], setting: Setting) -> Verdict:
    slot, wanted, said = slots.slot(candidate.attribute), slots.key(candidate.value), said_at(candidate)
    own = [line for line in lines if line.attribute == candidate.attribute]
    same = [line for line in own if slots.key(line.value) == wanted]
    if candidate.negates:
        return _end(candidate, same if wanted else own, setting)
    if settled := _settled(candidate, same, setting):
        return settled
    rivals = [line for line in lines if line.attribute == slot.opposite and slots.key(line.value) == wanted]
    if not slot.multiple:
        others = [line for line in own if line not in same]
        if any(_live(line, setting) and _cites(line, candidate) for line in others):
            return Verdict("drop", "same_message")
        rivals += others
    return _replace(candidate, same, rivals, setting, said=said)


def _fact(candidate: Candidate, facts: Sequence[Fact], setting: Setting) -> Verdict:
    mark = fingerprint(candidate.text)
    same = [fact for fact in facts if fingerprint(fact.text) == mark]
    if candidate.negates:
        return _end(candidate, same, setting)
    if settled := _settled(candidate, same, setting):
        return settled
    rivals = [fact for fact in facts if opposed(fact.text, candidate.text)]
    verdict = _replace(candidate, same, rivals, setting, said=said_at(candidate))
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
        return _end(candidate, _one([event for event in related if _live(event, setting)]), setting)
    same = [event for event in related if fingerprint(event.text) == fingerprint(candidate.text)]
    if settled := _settled(candidate, [event for event in same if _holds(event.span, when)], setting):
        return settled
    said = said_at(candidate)
    if corrections := [e for e in related if e.provenance.said_at > said and _is_correction(e)]:
        return Verdict("add", "outdated", closed_by=corrections[-1].id)
    finer = [event for event in same if _live(event, setting) and _inside(when, event.span)]
    meant = []
    if corrects(setting.words):
        earlier = [e for e in related if _live(e, setting) and e.provenance.said_at <= said]
        meant = _one([event for event in earlier if not _cites(event, candidate)])
    closes = tuple(dict.fromkeys(event.id for event in (*finer, *meant)))
    return Verdict("add", "corrected" if meant else "refined" if finer else "new", closes=closes)


def _settled(candidate: Candidate, same: Sequence[Entry], setting: Setting) -> Verdict | None:
    """Judge by the memories that say the same thing; None when they leave it open."""
    said = said_at(candidate)
    if any(_cites(entry, candidate) for entry in same):
        return Verdict("drop", "repeated")
    if candidate.expires_at is not None and candidate.expires_at <= setting.now:
        return Verdict("drop", "expired")
    if any(e.provenance.reason == "ended" and (e.provenance.retired_at or said) > said for e in same):
        return Verdict("drop", "outdated")
    for entry in same:
        known = entry.provenance
        # Said again with another end, it is a new stretch of time, unless the old one never ends.
        as_long = known.expires_at in (None, candidate.expires_at) or known.said_at > said
        if _live(entry, setting) and covers(known.audience, setting.audience) and as_long:
            return Verdict("confirm", "repeated_in_other_words", target=entry.id)
    return None


def _replace(
    candidate: Candidate, same: Sequence[Entry], rivals: Sequence[Entry], setting: Setting, *, said: datetime
) -> Verdict:
    """Add a candidate, closing what it takes the place of; or as history when a rival is newer."""
    lasting = [rival for rival in rivals if rival.provenance.expires_at is None]
    newer = [rival for rival in lasting if rival.provenance.said_at > said]
    if newer:
        return Verdict("add", "outdated", closed_by=max(newer, key=lambda entry: entry.provenance.said_at).id)
    restated = [entry.id for entry in same if _live(entry, setting) and _replaceable(entry, candidate, setting)]
    open_rivals = [rival for rival in rivals if _live(rival, setting)]
    if candidate.expires_at is not None and any(rival in lasting for rival in open_rivals):
        # What holds for a few days must not leave nothing behind when they are over.
        return Verdict("add", "temporary", closes=tuple(restated))
    if candidate.confidence < UNSURE and any(rival.provenance.confidence >= SURE for rival in open_rivals):
        return Verdict("add", "unsure", closes=tuple(restated))
    closes = (*(rival.id for rival in open_rivals), *restated)
    return Verdict("add", "superseded" if open_rivals else "restated" if restated else "new", closes=closes)


def _replaceable(entry: Entry, candidate: Candidate, setting: Setting) -> bool:
    """Whether the same statement, said again, holds at least everywhere the old one does, and no shorter."""
    known = entry.provenance
    wider = covers(setting.audience, known.audience)
    return wider and (candidate.expires_at is None or known.expires_at is not None)


def _end(candidate: Candidate, entries: Iterable[Entry], setting: Setting) -> Verdict:
    said = said_at(candidate)
    over = [e.id for e in entries if _live(e, setting) and e.provenance.said_at <= said and not _cites(e, candidate)]
    return Verdict("retire", "ended", closes=tuple(over)) if over else Verdict("drop", "nothing_to_end")


def _one(entries: Sequence[Event]) -> list[Event]:
    """Return the single entry that can be meant; of several the most recently said, if it was said alone."""
    newest = max((entry.provenance.said_at for entry in entries), default=None)
    meant = [entry for entry in entries if entry.provenance.said_at == newest]
    return meant if len(meant) == 1 else []


def _live(entry: Entry, setting: Setting) -> bool:
    return entry.provenance.live(setting.now)


def _cites(entry: Entry, candidate: Candidate) -> bool:
    """Whether an entry already rests on every message the candidate rests on."""
    return {c.message for c in candidate.citations} <= {c.message for c in entry.provenance.citations}


def _related(event: Event, candidate: Candidate) -> bool:
    return within(event.text, candidate.text) or overlap(event.text, candidate.text) >= RELATED


def _is_correction(event: Event) -> bool:
    return any(corrects(citation.quote) for citation in event.provenance.citations)


def _holds(known: Span, wanted: Span) -> bool:
    """Whether the known time says at least as much: the same, or a finer time inside."""
    return known.rrule == wanted.rrule and wanted.start <= known.start and known.end <= wanted.end


def _inside(wanted: Span, known: Span) -> bool:
    return known.rrule == wanted.rrule and known.start <= wanted.start and wanted.end <= known.end
