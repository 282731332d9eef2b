"""When a claim says that something happens. Where our own rules can read the words, the model has to agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from dateutil.relativedelta import relativedelta

from memory.claims import Claim
from memory.dates import Lean, mentions, occurrences, recurrence
from memory.model import Message, Precision, Span

FARTHEST: Final = timedelta(days=120 * 366)
"""Between a message and a time in it that only the model can read; a life is no longer."""

_LEANS: Final[Sequence[Lean]] = ("future", "past")
_FORMS: Final[Sequence[tuple[str, Precision, relativedelta]]] = (
    ("%Y-%m-%d", "day", relativedelta(days=1)),
    ("%Y-%m", "month", relativedelta(months=1)),
    ("%Y", "year", relativedelta(years=1)),
)


class DateDisagreement(Exception):
    """The model's date is none, or none that the words allow."""


@dataclass(frozen=True, slots=True)
class Words:
    """The cited words of one message."""

    message: Message
    text: str


def spans(cited: Sequence[Words], zone: str) -> list[Span]:
    """Every reading our rules have of the times in cited words, whichever way a weekday leans."""
    return list(dict.fromkeys(span for each in cited for span in _readings(each, zone)))


def event_span(claim: Claim, cited: Sequence[Words], own_words: str, zone: str) -> Span:
    """Return when a claimed event is. Raises DateDisagreement.

    With a time from the model, the reading of ours that it falls into; the model may know the hour of that day
    if the owner named that hour in ``own_words``. Without one, our only reading. Words that we cannot read are
    left to the model.
    """
    told = _told(claim, cited)
    if not claim.start:
        plain = {span for each in told for span in _plain(each, zone)}
        if len(plain) != 1:
            raise DateDisagreement
        return plain.pop()
    theirs, ours, anchor = _local(claim.start, claim.end, zone), spans(told, zone), cited[-1].message
    agreed = [span for span in ours if occurrences(span, theirs.start, theirs.end)]
    if agreed:
        best = min(agreed, key=lambda span: abs(span.start - theirs.start))
        named = _finer(theirs, best) and _names_hour(Words(anchor, own_words), theirs, zone)
        return replace(theirs, words=best.words) if named else best
    quoted = bool(claim.when) and any(claim.when in each.text for each in cited)
    if ours or not quoted or abs(theirs.start - anchor.at) > FARTHEST:
        raise DateDisagreement
    return replace(theirs, words=claim.when)


def until(claim: Claim, cited: Sequence[Words], zone: str) -> datetime | None:
    """Return the aware UTC end of a claim's life, the end of the local day it names. Raises DateDisagreement."""
    if not claim.until:
        return None
    end = _local(claim.until, "", zone)
    ours = spans(cited, zone)
    if end.end <= max(each.message.at for each in cited):
        raise DateDisagreement
    if ours and not any(span.start < end.end and end.start <= span.end for span in ours):
        raise DateDisagreement
    return end.end


def _told(claim: Claim, cited: Sequence[Words]) -> list[Words]:
    """Narrow the cited words to the ones the model names as the time, where they are among them."""
    told = [replace(each, text=claim.when) for each in cited if claim.when and claim.when in each.text]
    return [each for each in told if _plain(each, "UTC")] or list(cited)


def _plain(words: Words, zone: str) -> list[Span]:
    """Read words once: what recurs, else every time that is mentioned."""
    recurs = recurrence(words.text, at=words.message.at, zone=zone)
    return [recurs] if recurs else mentions(words.text, at=words.message.at, zone=zone)


def _readings(words: Words, zone: str) -> Iterator[Span]:
    yield from _plain(words, zone)
    for lean in _LEANS:
        yield from mentions(words.text, at=words.message.at, zone=zone, lean=lean)


def _finer(theirs: Span, ours: Span) -> bool:
    return ours.rrule is None and ours.precision == "day" and ours.start <= theirs.start and theirs.end <= ours.end


def _names_hour(own_words: Words, theirs: Span, zone: str) -> bool:
    local = theirs.start.astimezone(ZoneInfo(zone))
    named = (span.start.astimezone(ZoneInfo(zone)) for span in _readings(own_words, zone) if _timed(span))
    return any((hour.hour, hour.minute) == (local.hour, local.minute) for hour in named)


def _timed(span: Span) -> bool:
    return span.precision in {"minute", "hour"}


def _local(start: str, end: str, zone: str) -> Span:
    """Read local ISO times as a half-open span. Raises DateDisagreement for what is no ISO time."""
    first, precision, length = _moment(start, zone)
    last = first + length
    if end:
        stop, _, whole = _moment(end, zone)
        # A day or a month given as the end is meant to its end; an hour is the hour it ends.
        last = stop if precision == "minute" else stop + whole
    if last <= first:
        last = first + length
    return Span(first.astimezone(UTC), last.astimezone(UTC), precision, zone)


def _moment(text: str, zone: str) -> tuple[datetime, Precision, relativedelta]:
    for form, precision, length in _FORMS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=ZoneInfo(zone)), precision, length
        except (ValueError, OverflowError):
            continue
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise DateDisagreement from error
    local = moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))
    return local, "minute", relativedelta(hours=1)
