"""Dated plans, habits and past events of a message, as events with the time their words name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memory import dates
from memory.model import SELF, Candidate, Citation, Span
from memory.rules.grammar import LONGEST_CLAUSE, Clause, Mood
from memory.rules.happening import Calendar, Doing, Time
from memory.rules.plans_chinese import CALENDAR as CHINESE
from memory.rules.plans_english import CALENDAR as ENGLISH
from memory.rules.reading import HIDDEN, Reading

CALENDARS: Final[Mapping[str, Calendar]] = {"zh": CHINESE, "en": ENGLISH}
INTENDED: Final = 0.8
"""Confidence of what somebody only intends ("I'm going to", 打算); what they state has 1."""
_MOODS: Final[frozenset[Mood]] = frozenset({"plain", "intended"})
_TIMES: Final[Sequence[Time]] = ("habit", "ahead", "past", "due")
_EDGE: Final = " ,，"


@dataclass(frozen=True, slots=True)
class Said:
    """When a message was said (aware) and in which IANA zone its author counts days; its number and its reading."""

    reading: Reading
    message_id: int
    at: datetime
    zone: str


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Neighbouring clauses that say one thing, ``folded[start:end]`` of the reading: folded words, and as written."""

    clause: Clause
    start: int
    end: int
    words: str
    written: str

    @property
    def calendar(self) -> Calendar:
        return CALENDARS[self.clause.tongue.code]


@dataclass(frozen=True, slots=True)
class _Timed:
    """A stretch with its one time; ``rest`` are the places of the words without it."""

    stretch: _Stretch
    span: Span
    rest: tuple[int, ...]

    @property
    def words(self) -> str:
        return "".join(self.stretch.words[place] for place in self.rest)

    @property
    def written(self) -> str:
        return "".join(self.stretch.written[place] for place in self.rest)


def plans(clauses: Sequence[Clause], said: Said) -> list[Candidate]:
    """Return the events that the clauses of one sentence state; ``clauses`` are those that no other rule has read.

    Raises ZoneInfoNotFoundError for an unknown zone.
    """
    if not any(dates.holds_time(clause.written) for clause in clauses):
        return []
    found = (_event(stretch, said) for stretch in _stretches(clauses, said))
    return [event for event in found if event is not None]


def _stretches(clauses: Sequence[Clause], said: Said) -> Iterator[_Stretch]:
    """Yield each clause, widened to a time that stands alone beside it ("On Friday, I fly").

    A lone time goes with what follows, else with what came before. What somebody says behind it is a report.
    """
    alone = [_is_time_alone(_stretch(clause, clause, clause, said), said) for clause in clauses]
    for number, clause in enumerate(clauses):
        reported = [later.mood for later in clauses[number + 1 : number + 2]] == ["reported"]
        if alone[number] or reported or clause.mood not in _MOODS:
            continue
        before = number > 0 and alone[number - 1]
        behind = not before and alone[number + 1 :] == [True]
        stretch = _stretch(clause, clauses[number - before], clauses[number + behind], said)
        if HIDDEN not in stretch.words and len(stretch.words) <= LONGEST_CLAUSE:
            yield stretch


def _stretch(clause: Clause, first: Clause, last: Clause, said: Said) -> _Stretch:
    place = slice(first.start, last.end)
    return _Stretch(clause, first.start, last.end, said.reading.folded[place], said.reading.clean[place])


def _is_time_alone(stretch: _Stretch, said: Said) -> bool:
    if stretch.clause.mood not in _MOODS or HIDDEN in stretch.words:
        return False
    return any(
        timed is not None and stretch.calendar.links.fullmatch(timed.words)
        for timed in (_timed(stretch, said, "habit"), _timed(stretch, said, "ahead"))
    )


def _timed(stretch: _Stretch, said: Said, time: Time) -> _Timed | None:
    """Find the one time that a stretch names: what recurs, or a single date; None without one or for several.

    The doing knows better than the words around whether a bare weekday lies ahead ("was moved to Friday").
    """
    lean: dates.Lean = "past" if time == "past" else "future"
    spans = dates.mentions(stretch.written, at=said.at, zone=said.zone, lean=lean)
    if time != "habit":
        owned = len(spans) == 1 and f"{spans[0].words}'s" in stretch.written  # "Friday's meeting"
        return _without(stretch, spans[0], due=time == "due") if len(spans) == 1 and not owned else None
    recurs = dates.recurrence(stretch.written, at=said.at, zone=said.zone)
    # The day of an anniversary is a date as well; any other date beside a habit is a second time.
    if recurs is None or any(span.words not in recurs.words for span in spans):
        return None
    return _without(stretch, recurs)


def _without(stretch: _Stretch, span: Span, *, due: bool = False) -> _Timed | None:
    """Take out a time, the words that lead to it, and the blanks and commas that it leaves at an edge or doubles.

    A deadline goes with the words that make it one; None where ``due`` asks for one and there are none.
    """
    words = stretch.words
    start = stretch.written.index(span.words)
    end = start + len(span.words)
    if due:
        before, behind = stretch.calendar.due
        limits = before.search(words, 0, start), behind.match(words, end)
        if not any(limits):
            return None
        start, end = limits[0].start() if limits[0] else start, limits[1].end() if limits[1] else end
    elif led := stretch.calendar.leads.search(words, 0, start):
        start = led.start()
    rest: list[int] = []
    for place in [*range(start), *range(end, len(words))]:
        if words[place] not in _EDGE or (rest and words[rest[-1]] not in _EDGE):
            rest.append(place)
    while rest and words[rest[-1]] in _EDGE:
        rest.pop()
    return _Timed(stretch, span, tuple(rest))


def _event(stretch: _Stretch, said: Said) -> Candidate | None:
    """Return what the first doing that reads the stretch makes of it."""
    for time in _TIMES:
        timed = _timed(stretch, said, time)
        if timed is None or not _lies(timed.span, time, said.at) or not _is_sure(timed, time):
            continue
        for doing, who, match in _matches(timed, time):
            return Candidate(
                kind="event",
                citations=(Citation(said.message_id, said.reading.quote(stretch.start, stretch.end), said.at),),
                language=stretch.clause.tongue.code,
                subject=who,
                text=stretch.written if time == "habit" and not doing.ends else _told(timed, match),
                span=timed.span,
                confidence=INTENDED if stretch.clause.mood == "intended" else 1.0,
                negates=doing.ends,
            )
    return None


def _lies(span: Span, time: Time, at: datetime) -> bool:
    return time == "habit" or (span.start <= at if time == "past" else span.end > at)


def _is_sure(timed: _Timed, time: Time) -> bool:
    calendar, words = timed.stretch.calendar, timed.words
    return not calendar.unsure.search(words) and not (time in ("ahead", "due") and calendar.usually.search(words))


def _matches(timed: _Timed, time: Time) -> Iterator[tuple[Doing, str, re.Match[str]]]:
    """Yield the doings of a time that read the words, with whom they are about; without a subject it is the owner."""
    calendar, words = timed.stretch.calendar, timed.words
    if subject := calendar.subject(words, timed.written):
        skipped = calendar.adverbs.match(words, subject.end)
        start = skipped.end() if skipped else subject.end
        for doing in calendar.doings:
            if doing.time == time and (match := doing.match(words, start, subject.who)):
                yield doing, subject.who, match
    if subject is None or subject.who == SELF:
        for doing in calendar.alone:
            if doing.time == time and (match := doing.match(words, 0, SELF)):
                yield doing, SELF, match


def _told(timed: _Timed, match: re.Match[str]) -> str:
    """Return the words of an event without its time, and without what denies it when it is given up."""
    places = {name: range(*match.span(name)) for name, words in match.groupdict().items() if words}
    left_out = {*places.get("no", ()), *places.get("rest", ())}
    written = timed.written
    told = (written[place] for place in places.get("told", range(len(written))) if place not in left_out)
    return "".join(told).strip(_EDGE)
