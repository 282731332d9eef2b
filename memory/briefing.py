"""What the model is told about a session, in three zones, and the form its answer has to take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import accumulate
from typing import Any, Final
from zoneinfo import ZoneInfo

from config.locales import phrase
from config.prompts import render
from config.templates import Language, written
from memory.block import quoted
from memory.embedding import spoken
from memory.model import Account, Entry, Message
from memory.pieces import Piece, joined, pieces
from memory.script import language
from memory.sessions import Batch, Reach
from memory.slots import SLOTS
from memory.verify import EXAMPLE_NAMES, Evidence
from memory.words import terms
from memory.zones import shown

BATCH_CHARACTERS: Final = 12_000
"""Shown of all new messages: with the rest of the prompt below 16,000 tokens in Chinese, too."""
CONTEXT_CHARACTERS: Final = 2_000
"""Shown of a message that may not be cited: an earlier one, or the bot's."""
BEFORE_CHARACTERS: Final = 300
"""Shown, as something earlier, of a message's words before the piece of it that is read now."""
KNOWN_LINES: Final = 40
"""Memories shown so that they are not repeated: those that share most words with the session."""
GAP: Final = timedelta(hours=6)
"""A silence that ends a batch even inside one session: an imported log has one session for years."""
MOST_MESSAGES: Final = 60
"""Messages in one request unless the settings say otherwise."""


@dataclass(frozen=True, slots=True)
class Briefing:
    """One request, and how far it reads."""

    messages: tuple[Mapping[str, str], ...]
    schema: Mapping[str, Any]
    evidence: Evidence
    reach: Reach

    @property
    def citable(self) -> list[int]:
        """Numbers of the owner's own words, the only ones a claim may rest on."""
        return [number for number, message in self.evidence.lines.items() if citable(message)]


def citable(message: Message) -> bool:
    """Whether a message is the owner's own words: not the bot's, not forwarded, not a command, not blank."""
    return message.role == "user" and message.kind == "said" and any(mark.isalnum() for mark in message.text)


def brief(
    owner: Account,
    batch: Batch,
    known: Sequence[Entry],
    *,
    most: int = MOST_MESSAGES,
    halvings: int = 0,
    fault: str = "",
) -> Briefing:
    """Lay out a batch for the model.

    ``most`` bounds the messages of a request, ``halvings`` says how often one has come to nothing since, ``fault``
    what was wrong with the last answer ("" at first, else an ``answers.Fault``).
    """
    parts = fitting(batch.messages, read=batch.read, most=most, halvings=halvings)
    covered = [part.cut for part in parts]
    own = [message for message in covered if citable(message)]
    said = " ".join(message.text for message in own)
    tongue = written(language(said) or owner.language)
    lines = dict(enumerate(covered, start=1))
    system = render(
        "distil",
        tongue,
        person=quoted(_one_line(owner.name)) if _one_line(owner.name) else {"en": "the person", "zh": "对方"}[tongue],
        attributes=", ".join(_attribute(name) for name in SLOTS),
        example=EXAMPLE_NAMES[tongue],
        retry=fault,
    )
    before = _before(batch.earlier, parts)
    content = render(
        "session",
        tongue,
        zone=shown(owner, private=batch.chat.private, at=own[-1].at if own else covered[-1].at),
        known=nearest(known, said),
        earlier=[_line(message, owner.zone, tongue) for message in before],
        new=[_line(message, owner.zone, tongue, number=number) for number, message in lines.items()],
    )
    earlier = [message.text for message in before if citable(message)]
    return Briefing(
        messages=({"role": "system", "content": system}, {"role": "user", "content": content}),
        schema=schema([number for number, message in lines.items() if citable(message)]),
        evidence=Evidence(lines, "\n".join([*earlier, *(message.text for message in own)]), owner.zone),
        reach=_reach(parts),
    )


def fitting(
    messages: Sequence[Message],
    *,
    read: Mapping[int, int] | None = None,
    most: int = MOST_MESSAGES,
    halvings: int = 0,
) -> list[Piece]:
    """Return the first messages, or pieces of long ones, that make one request; each message once, at least one.

    ``read`` counts by id the characters that were read before. What ends at a long silence or is all there is goes
    as a whole. What is too much is cut at its longest silence, not before its middle, so that there are at most twice
    the requests; among equal silences at the last, so that a message is cut only where nothing else can be.
    """
    done = read or {}
    stretch = [part for each in _stretch(messages) for part in _pieces(each, done.get(each.id, 0))]
    whole = _prefix(stretch, most)
    if halvings:
        whole = _prefix(stretch, max(1, whole >> halvings))
    if whole == len(stretch):
        return joined(stretch)
    middle = (whole + 1) // 2
    cut = max(range(middle, whole + 1), key=lambda place: (*_silence(stretch[place - 1], stretch[place]), place))
    return joined(stretch[:cut])


def _pieces(message: Message, start: int) -> list[Piece]:
    """A message in pieces; of what may not be cited, as the bot's own words, only the beginning."""
    if citable(message):
        return pieces(message, start=start)
    shown = replace(message, text=message.text[:CONTEXT_CHARACTERS])
    return [Piece(shown, 0, len(shown.text))]


def _silence(one: Piece, other: Piece) -> tuple[timedelta, bool]:
    """How long it was quiet between two pieces, and whether a message ends between them."""
    return other.message.at - one.message.at, one.last


def _stretch(messages: Sequence[Message]) -> list[Message]:
    """Return the first messages up to a silence that ends a batch in any case."""
    ends = (place for place in range(1, len(messages)) if messages[place].at - messages[place - 1].at > GAP)
    return list(messages[: next(ends, len(messages))])


def _prefix(parts: Sequence[Piece], most: int) -> int:
    """Count the first pieces that have room in a request, at least one."""
    sizes = accumulate(part.end - part.start for part in parts[:most])
    return max(1, sum(size <= BATCH_CHARACTERS for size in sizes))


def _reach(parts: Sequence[Piece]) -> Reach:
    """How far pieces reach: the messages that are read to their end, and the one that is not."""
    last = parts[-1]
    ended = [part.message.id for part in parts if part.last]
    begun = tuple(part.message.id for part in parts if part.start == 0)
    half = None if last.last else (last.message.id, last.end)
    return Reach(upto=max(ended, default=0), ended=tuple(ended), begun=begun, half=half)


def _before(earlier: Sequence[Message], parts: Sequence[Piece]) -> list[Message]:
    """The lines shown for pronouns: earlier ones, and what a half-read message said just before."""
    first = parts[0]
    shown = [replace(message, text=message.text[:CONTEXT_CHARACTERS]) for message in earlier]
    if not first.start:
        return shown
    text = first.message.text[max(0, first.start - BEFORE_CHARACTERS) : first.start]
    return [*shown, replace(first.message, text=text)]


def nearest(known: Sequence[Entry], said: str) -> list[str]:
    """Return the memories that share most words with what was said, as lines, at most KNOWN_LINES."""
    words = set(terms(said))
    shared = [(len(words & set(terms(entry.text))), entry) for entry in known]
    ranked = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])
    return [_one_line(entry.text) for _, entry in ranked[:KNOWN_LINES]]


def schema(numbers: Sequence[int]) -> dict[str, Any]:
    """Return the JSON schema of an answer that may cite the messages ``numbers`` and no other."""
    text, yes_no, degree = {"type": "string"}, {"type": "boolean"}, {"type": "number"}
    cite = _object({"message": {"type": "integer", "enum": list(numbers)}, "quote": text})
    item = _object(
        {
            "kind": {"type": "string", "enum": ["profile", "event", "fact"]},
            "subject": text,
            "text": text,
            "attribute": text,
            "value": text,
            "when": text,
            "start": text,
            "end": text,
            "until": text,
            "confidence": degree,
            "importance": degree,
            "forgettable": yes_no,
            "negates": yes_no,
            "cites": {"type": "array", "items": cite},
        }
    )
    return _object({"items": {"type": "array", "items": item}})


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _line(message: Message, zone: str, tongue: Language, *, number: int | None = None) -> str:
    """Return a message as one line; only the owner's own words of the new zone carry a number."""
    local = message.at.astimezone(ZoneInfo(zone))
    weekday = phrase("time.weekdays", tongue).split(",")[local.weekday()]
    mark = f"[{number}] " if number is not None and citable(message) else ""
    said = _one_line(spoken(message.speaker, message.text))
    return f"{mark}{local:%Y-%m-%d} {weekday} {local:%H:%M} {said}"


def _one_line(text: str) -> str:
    """Keep a message from looking like lines of the prompt."""
    return " / ".join(part.strip() for part in text.splitlines() if part.strip())


def _attribute(name: str) -> str:
    return f"{name}:thing" if name == "favourite" else name
