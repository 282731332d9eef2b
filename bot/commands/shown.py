"""A memory as a list shows it, in its reader's zone."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from bot.commands.order import excerpt
from memory import attribute_label
from memory.model import SELF, Account, Chat, Entry, Event, Message, ProfileLine


@dataclass(frozen=True, slots=True)
class Shown:
    """A memory as a list shows it; ``when`` is the day of an event, ``since`` the day it was said, both ISO."""

    number: int
    label: str
    text: str
    subject: str
    when: str
    since: str
    inferred: bool
    unsure: bool


def shown(entry: Entry, owner: Account, number: int) -> Shown:
    """A memory under its number in a list."""
    zone = ZoneInfo(owner.zone)
    label, text = "", entry.text
    # A label says nothing about which thing is the favourite; the whole line does.
    if isinstance(entry, ProfileLine) and ":" not in entry.attribute:
        label, text = attribute_label(entry.attribute, owner.language), entry.value
    return Shown(
        number=number,
        label=label,
        text=text,
        subject="" if entry.subject == SELF else entry.subject,
        when=entry.span.start.astimezone(zone).date().isoformat() if isinstance(entry, Event) else "",
        since=entry.provenance.said_at.astimezone(zone).date().isoformat(),
        inferred=entry.provenance.source == "summary",
        unsure=entry.provenance.unsure,
    )


def reason(unit: Entry | Message, owner: Account, chat: Chat) -> dict[str, object]:
    """A recalled memory and the words it rests on; in a group without them, for they may come from elsewhere."""
    zone = ZoneInfo(owner.zone)
    if isinstance(unit, Message):
        return {
            "speaker": "" if unit.speaker == owner.name else unit.speaker,
            "text": excerpt(unit.text),
            "date": unit.at.astimezone(zone).date().isoformat(),
            "quote": "",
        }
    citation = unit.provenance.citations[-1]
    return {
        "speaker": "",
        "text": excerpt(unit.text),
        "date": citation.at.astimezone(zone).date().isoformat(),
        "quote": excerpt(citation.quote) if chat.private else "",
    }
