"""One call of the write gate while it is worked through, and what is asked of each candidate on its way in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from memory import slots
from memory.model import Account, Candidate, Citation, Entry, Event, Message, ProfileLine
from memory.sameness import fingerprint, says_no_more
from memory.verdicts import cites, said_at

MAX_RETIREMENTS: Final = 8
"""Memories one batch may close; beyond it old and new both stay. A model that misreads a session can then spoil
little, and each closed row keeps its successor so that it can be reopened (PEERS.md: 16 to 49 % lost elsewhere)."""


@dataclass
class Batch:
    """One call of the gate while it is being worked through."""

    owner: Account
    audience: int
    now: datetime
    lines: dict[int, Message]
    known: dict[str, dict[int, Entry]] = field(default_factory=dict)
    may_close: int = MAX_RETIREMENTS

    def said(self, candidate: Candidate) -> list[Citation]:
        """The whole messages a candidate cites; a command is journaled without its words, so its quote stands in."""
        return [replace(c, quote=self.lines[c.message].text or c.quote) for c in candidate.citations]

    def words(self, candidate: Candidate) -> str:
        """Their words."""
        return " ".join(citation.quote for citation in self.said(candidate))


def refusal(batch: Batch, candidate: Candidate) -> str | None:
    """Why a candidate may not even be weighed; None when it may."""
    if candidate.source == "tool":
        return "tool"
    if candidate.forgettable:
        return "forgettable"
    if not candidate.citations:
        return "no_citation"
    if candidate.kind == "profile" and not slots.known(candidate.attribute):
        return "unknown_attribute"
    lines = [batch.lines.get(citation.message) for citation in candidate.citations]
    if None in lines:
        return "forgotten"
    if any(line.role != "user" or line.kind == "forwarded" for line in lines if line is not None):
        return "not_owner"
    return None


def is_told_by(candidate: Candidate, entry: Entry) -> bool:
    """Whether a memory holds all that a candidate says."""
    if entry.subject != candidate.subject:
        return False
    if cites(entry, candidate) and says_no_more(candidate.text, entry.text):
        return True
    return fingerprint(entry.text) == fingerprint(candidate.text)


def as_said(entry: Entry) -> Candidate:
    """A memory as the candidate it once was, to be weighed again."""
    known = entry.provenance
    return Candidate(
        entry.kind,
        known.citations,
        "",
        subject=entry.subject,
        text=entry.text,
        attribute=entry.attribute if isinstance(entry, ProfileLine) else "",
        value=entry.value if isinstance(entry, ProfileLine) else "",
        span=entry.span if isinstance(entry, Event) else None,
        source=known.source,
        confidence=known.confidence,
        importance=known.importance,
        expires_at=known.expires_at,
    )


def by_time(candidates: Sequence[Candidate]) -> list[int]:
    """Places of the candidates in the order in which they were said; those without a citation first."""
    return sorted(
        range(len(candidates)),
        key=lambda place: (said_at(candidates[place]).timestamp() if candidates[place].citations else 0.0, place),
    )
