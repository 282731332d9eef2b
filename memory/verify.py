"""Believes nothing a model proposes: each claim is held against the words it cites, in code.

A claim comes out as a candidate whose citation holds the person's own words and whose dates our own rules agree
with, or as the reason why it was dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from memory import checks, slots
from memory.claims import Claim
from memory.model import SELF, Candidate, Citation, Message, Span
from memory.polarity import contradicts
from memory.quotes import locate, narrow
from memory.sameness import corrects, overlap
from memory.script import folded, language
from memory.timing import DateDisagreement, Words, event_span, spans, until


class Drop(StrEnum):
    """Why a claim was dropped; counted in the report."""

    NO_CITATION = "no_citation"
    UNKNOWN_MESSAGE = "unknown_message"
    NOT_OWNER = "not_owner"
    QUOTE_NOT_IN_MESSAGE = "quote_not_in_message"
    EMPTY = "empty"
    EXAMPLE = "example"
    FORGETTABLE = "forgettable"
    SECRET = "secret"  # noqa: S105
    INSTRUCTION = "instruction"
    SEVERAL_FACTS = "several_facts"
    SUBJECT_MISSING = "subject_missing"
    WRONG_LANGUAGE = "wrong_language"
    UNSUPPORTED_NUMBER = "unsupported_number"
    UNSUPPORTED_NAME = "unsupported_name"
    UNSUPPORTED_POLARITY = "unsupported_polarity"
    UNSUPPORTED_WORDS = "unsupported_words"
    BAD_DATE = "bad_date"


EXAMPLE_NAMES: Final[Mapping[str, str]] = {"en": "Qvexil", "zh": "喹克西"}
"""Nobody's names: they mark the example in the prompt, and a claim that holds one is an echo of it."""

LONGEST: Final = 240
"""Characters of one fact; more is a story."""

_NAMES: Final = frozenset({"name", "address", "pet"})
"""Slots that hold a name, which nobody can conclude from anything: it was said, or it is made up."""
_TOLD: Final = frozenset({"home", "origin", "allergy"})
"""Slots of which some word was said, whatever else is put in other words."""

_SEVERAL: Final = re.compile(
    r"[。！？!?;；\n](?=.*\w)|[.](?=\s+\w)"
    r"|[,，]\s*(?:并且?|而且|同时|另外|此外|还(?:有|养|喜欢|会|是|在)|也(?:有|养|喜欢|会|是|在))"
    r"|\b(?:and|also|but) (?:also )?(?:has|have|is|am|are|likes?|loves?|lives?|works?|owns?|wants?|I|my|they|he|she)\b"
)
_TOGETHER: Final = re.compile(r"^(?:[Mm]y )?\w+(?:[ -]\w+)? and I\b")
"""Two people who do one thing ("Anna and I broke up") are one fact."""
_ABBREVIATION: Final = re.compile(r"\b(?:[A-Z]|Mr|Mrs|Ms|Dr|St|No)\.")
_SEPARATOR: Final = re.compile(r"\s*[、,，;；]\s*")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a claim is held against.

    ``lines`` are the messages as they were numbered in the prompt, the bot's included; ``own_words`` everything
    the owner said in the session, to name a subject or a time of day by. ``zone`` is the owner's IANA zone.
    """

    lines: Mapping[int, Message]
    own_words: str
    zone: str


def unbundle(claim: Claim) -> list[Claim]:
    """Split a profile claim that lists several values into one claim a value, where its slot takes several."""
    if claim.kind != "profile" or not slots.known(claim.attribute) or not slots.slot(claim.attribute).multiple:
        return [claim]
    parts = [part for part in _SEPARATOR.split(claim.value) if part]
    return [replace(claim, value=part) for part in parts] or [claim]


def verify(claim: Claim, evidence: Evidence) -> Candidate | Drop:
    """Return the candidate a claim proves, or why it proves none."""
    cited = _cited(claim, evidence)
    if isinstance(cited, Drop):
        return cited
    claim = _as_fact_if_undated(claim)
    statement = claim.value if claim.kind == "profile" else claim.text
    words = "\n".join(each.text for each in cited)
    if fault := _unfit(claim, statement, words):
        return fault
    if folded(statement) not in folded(words) and not checks.same_language(statement, words):
        return Drop.WRONG_LANGUAGE
    try:
        span = event_span(claim, cited, evidence.own_words, evidence.zone) if claim.kind == "event" else None
        ends = until(claim, cited, evidence.zone)
    except DateDisagreement:
        return Drop.BAD_DATE
    # A time may be written out (周三 as the 12th of March), who "she" is may be said a message earlier, and models
    # like to call the person by the name they were shown.
    owners = " ".join(dict.fromkeys(each.message.speaker for each in cited))
    derived = _written_out([*spans(cited, evidence.zone), *([span] if span else [])], evidence.zone)
    derived = f"{derived}\n{owners if claim.subject == SELF else claim.subject}"
    if fault := _unsupported(statement, words, derived, evidence.own_words) or _misread(
        claim, statement, words, evidence
    ):
        return fault
    return Candidate(
        kind=claim.kind,
        citations=tuple(_citation(each, statement) for each in cited),
        language=language(words) or language(statement) or "en",
        subject=claim.subject,
        text="" if claim.kind == "profile" else claim.text,
        attribute=claim.attribute if claim.kind == "profile" else "",
        value=claim.value if claim.kind == "profile" else "",
        span=span,
        source="summary",
        confidence=claim.confidence,
        importance=claim.importance,
        expires_at=None if claim.kind == "event" else ends,
        negates=claim.negates,
    )


def _cited(claim: Claim, evidence: Evidence) -> list[Words] | Drop:
    """Find the cited words in the owner's messages, each message once."""
    if not claim.cites:
        return Drop.NO_CITATION
    found: dict[int, Words] = {}
    for cite in claim.cites:
        message = evidence.lines.get(cite.number)
        if message is None:
            return Drop.UNKNOWN_MESSAGE
        if message.role != "user" or message.kind != "said":
            return Drop.NOT_OWNER
        words = locate(cite.quote, message.text) if cite.quote else message.text.strip()
        if not words:
            return Drop.QUOTE_NOT_IN_MESSAGE
        before = found.get(message.id)
        # Two quotes of one message: all of it, so that the memory keeps one citation a message.
        found[message.id] = Words(message, message.text.strip() if before else words)
    return list(found.values())


def _as_fact_if_undated(claim: Claim) -> Claim:
    """An event nobody dated, and a value of a slot we do not have, are facts: what is unknown stays unknown."""
    undated = claim.kind == "event" and not (claim.start or claim.when)
    slotless = claim.kind == "profile" and not (slots.known(claim.attribute) and claim.value)
    return replace(claim, kind="fact") if undated or slotless else claim


def _unfit(claim: Claim, statement: str, words: str) -> Drop | None:
    """What disqualifies a claim whatever was said."""
    everything = f"{claim.subject} {claim.text} {claim.value}"
    if not any(mark.isalnum() for mark in statement):
        return Drop.EMPTY
    if any(name.casefold() in everything.casefold() for name in EXAMPLE_NAMES.values()):
        return Drop.EXAMPLE
    if checks.secret(everything) or checks.secret(words):
        return Drop.SECRET
    if checks.instruction(statement) or checks.instruction(words):
        return Drop.INSTRUCTION
    if claim.forgettable:
        return Drop.FORGETTABLE
    single = _TOGETHER.sub("we", _ABBREVIATION.sub("", statement)).rstrip("。.!！ ")
    if len(statement) > LONGEST or _SEVERAL.search(single):
        return Drop.SEVERAL_FACTS
    return None


def _unsupported(statement: str, words: str, derived: str, own_words: str) -> Drop | None:
    """What of a claim is neither in the cited words nor derived from them.

    Where these only point at somebody ("she", "you", 那里), the name may be one that the person said in the session.
    """
    bearing = f"{words}\n{derived}"
    if checks.numbers(statement) - checks.numbers(bearing):
        return Drop.UNSUPPORTED_NUMBER
    said = folded(f"{bearing}\n{own_words}" if checks.points(words) else bearing)
    if any(name not in said for name in checks.names(statement)):
        return Drop.UNSUPPORTED_NAME
    opening = checks.opening_name(statement)
    if opening and opening not in said and not overlap(opening, said):
        return Drop.UNSUPPORTED_NAME
    return None


def _misread(claim: Claim, statement: str, words: str, evidence: Evidence) -> Drop | None:
    """What a claim makes of the words that they do not say: about whom, yes or no."""
    if claim.subject != SELF:
        if claim.kind != "profile" and folded(claim.subject) not in folded(statement):
            return Drop.SUBJECT_MISSING
        if folded(claim.subject) not in folded(evidence.own_words):
            return Drop.UNSUPPORTED_NAME
    if _invented(claim, words, evidence.own_words):
        return Drop.UNSUPPORTED_WORDS
    # A quote shows what a claim rests on; without one it must at least speak of the same thing.
    if not any(cite.quote for cite in claim.cites) and not overlap(_sentence(claim, words), words):
        return Drop.UNSUPPORTED_WORDS
    if not claim.negates and contradicts(_sentence(claim, words), narrow(words, statement)):
        return Drop.UNSUPPORTED_POLARITY
    return None


def _invented(claim: Claim, words: str, own_words: str) -> bool:
    """Whether a value of those slots was never said. Who is meant by "she" or "that" may have been said before."""
    if claim.kind != "profile" or claim.negates:
        return False
    said = f"{words}\n{own_words}" if checks.points(words) else words
    if claim.attribute in _NAMES:
        return slots.key(claim.value) not in folded(said) and folded(claim.value) not in folded(said)
    return claim.attribute in _TOLD and slots.key(claim.value) not in folded(said) and not overlap(claim.value, said)


def _sentence(claim: Claim, words: str) -> str:
    """Return a claim as a sentence in the language of the words."""
    if claim.kind != "profile":
        return claim.text
    return slots.render(claim.attribute, claim.value, language(words) or "en")


def _citation(cited: Words, statement: str) -> Citation:
    """Cite the smallest clause; a correction keeps the words that show it is one."""
    clause = narrow(cited.text, statement)
    if corrects(cited.text) and not corrects(clause):
        clause = cited.text
    return Citation(cited.message.id, clause, cited.message.at)


def _written_out(times: Sequence[Span], zone: str) -> str:
    """Return what a person may write for these times: year, month, day, hour, minute, weekday."""
    ends = (moment.astimezone(ZoneInfo(zone)) for span in times for moment in (span.start, span.end))
    return " ".join(f"{moment:%Y %m %d %H %M %A %B}" for moment in ends)
