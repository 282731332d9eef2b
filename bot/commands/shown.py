"""A memory as a list shows it, in its reader's zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from bot.commands.order import excerpt
from memory import attribute_label, next_time
from memory.model import EVERYWHERE, PRIVATE, SELF, Account, Entry, Event, ProfileLine

SOON: Final = timedelta(days=14)
"""What expires within this time is shown with its day."""
LONGEST_ENTRY: Final = 600
"""Characters of a memory that a list shows; the gate keeps none that is longer, but an older file may hold one."""
LONGEST_SUBJECT: Final = 40


@dataclass(frozen=True, slots=True)
class Shown:
    """A memory as a list shows it; days are ISO, of its reader's zone.

    ``when`` is the time of an event, the next one if it ``recurs``; ``since`` the day it was said; ``until`` the day
    on which it expires, if that is soon. ``shared`` tells that it may be used everywhere, ``grouped`` that it belongs
    to a group, ``outdated`` the day on which another account of the same person said otherwise, ``resting`` that
    only its own words bring it back.
    """

    number: int
    label: str
    text: str
    subject: str
    when: str
    recurs: bool
    since: str
    inferred: bool
    unsure: bool
    until: str
    shared: bool
    grouped: bool
    outdated: str
    resting: bool = False


def shown(entry: Entry, owner: Account, number: int, *, now: datetime | None = None) -> Shown:
    """A memory under its number in a list; with ``now`` (aware UTC) what is next and what expires soon is told."""
    zone = ZoneInfo(owner.zone)
    label, text = "", entry.text
    # A label says nothing about which thing is the favourite; the whole line does.
    if isinstance(entry, ProfileLine) and ":" not in entry.attribute:
        label, text = attribute_label(entry.attribute, owner.language), entry.value
    end, overtaken = entry.provenance.expires_at, entry.provenance.overtaken
    return Shown(
        number=number,
        label=label,
        text=excerpt(text, LONGEST_ENTRY),
        subject="" if entry.subject == SELF else excerpt(entry.subject, LONGEST_SUBJECT),
        when=_when(entry, zone, now) if isinstance(entry, Event) else "",
        recurs=isinstance(entry, Event) and entry.span.rrule is not None,
        since=entry.provenance.said_at.astimezone(zone).date().isoformat(),
        inferred=entry.provenance.source == "summary",
        unsure=entry.provenance.unsure,
        until="" if end is None or now is None or end - now > SOON else _last_day(end, zone),
        shared=entry.provenance.audience == EVERYWHERE,
        grouped=entry.provenance.audience not in (PRIVATE, EVERYWHERE),
        outdated="" if overtaken is None else overtaken.astimezone(zone).date().isoformat(),
        resting=entry.provenance.cold_at is not None,
    )


def _when(event: Event, zone: ZoneInfo, now: datetime | None) -> str:
    """When an event is, as exactly as is known: a minute, a day, or the days it takes."""
    ahead = None if now is None else next_time(event, now)
    start, end = ahead or (event.span.start, event.span.end)
    first = start.astimezone(zone)
    if event.span.precision in ("minute", "hour"):
        return f"{first:%Y-%m-%d %H:%M}"
    last = _last_day(end, zone)
    return last if first.date().isoformat() == last else f"{first.date().isoformat()} – {last}"


def _last_day(end: datetime, zone: ZoneInfo) -> str:
    """The last day before a moment, on which something that ends then still holds."""
    return (end - timedelta(microseconds=1)).astimezone(zone).date().isoformat()
