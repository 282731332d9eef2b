"""The form of what is imported: an export, checked field by field. Its description is ``config/export.schema.json``."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from memory.exporting import FORMAT, VERSION
from memory.model import Precision, Source
from memory.sensitive import Matter

LARGEST: Final = 200_000_000
"""Bytes of a file that is read."""
LONGEST_LINE: Final = 200_000
"""Signs of one journal line: as much as a text file that came along."""
LONGEST: Final = 4_000
"""Signs of a memory, of its words, of a name."""
MOST: Final = 2_000_000
"""Rows of one kind."""
TOLD: Final = 5
"""Faults of a file that are told; the others are counted."""
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_LAST: Final = datetime(2200, 1, 1, tzinfo=UTC)


class ImportRefusedError(Exception):
    """A file that cannot be imported; the text says what is wrong, a line each. Nothing was changed."""


def _clean(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("holds signs that no text has (control characters)")
    return text


def _time(at: datetime) -> datetime:
    if at.tzinfo is None or not datetime(1970, 1, 1, tzinfo=UTC) <= at < _LAST:
        raise ValueError('must be a time of UTC between 1970 and 2200, like "2026-03-02T12:00:00Z"')
    return at.astimezone(UTC)


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise ValueError("must be the name of a time zone") from None
    return name


Short = Annotated[str, StringConstraints(max_length=LONGEST), AfterValidator(_clean)]
Said = Annotated[str, StringConstraints(max_length=LONGEST_LINE), AfterValidator(_clean)]
Time = Annotated[datetime, AfterValidator(_time)]
Number = Annotated[int, Field(strict=True, ge=1, le=(1 << 63) - 1)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Zone = Annotated[str, StringConstraints(max_length=100), AfterValidator(_zone)]


class Part(BaseModel):
    """A part of an export; what is not in its form is a fault."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Whose(Part):
    """The account an export is of."""

    platform: Annotated[str, StringConstraints(pattern=r"^[a-z]{1,32}$")]
    user_id: Annotated[str, StringConstraints(pattern=r"^\S{1,64}$")]
    name: Short
    since: Time


class Agreed(Part):
    """Its owner's word about a sensitive matter."""

    matter: Matter
    agreed: bool
    at: Time


class Chosen(Part):
    """What its owner had chosen."""

    language: Literal["en", "zh", "zh-TW"]
    language_fixed: bool
    zone: Zone
    zone_from: Literal["default", "said", "set"]
    paused_chats: tuple[Number, ...]
    consents: tuple[Agreed, ...] = ()


class Link(Part):
    """Another account of the person."""

    platform: Short
    user_id: Short


class Room(Part):
    """A chat."""

    number: Number
    key: Annotated[str, StringConstraints(pattern=r"^\S{1,200}$")]
    private: bool
    parent: Number | None


class Pending(Part):
    """A deletion that could still be undone; it names nothing."""

    number: Number
    at: Time
    erased_at: Time
    counts: dict[str, int]


class Quote(Part):
    """A citation."""

    line: Number
    quote: Short
    at: Time


class Held(Part):
    """What every memory has."""

    number: Number
    about: Annotated[Short, StringConstraints(min_length=1, max_length=200)]
    text: Annotated[Short, StringConstraints(min_length=1)]
    source: Source
    audience: Literal["private", "everywhere"] | Number
    confidence: Share
    importance: Share
    said_at: Time
    written_at: Time
    confirmed_at: Time | None
    expires_at: Time | None
    closed_at: Time | None
    closed_because: Annotated[str, StringConstraints(pattern=r"^[a-z_ ]{1,40}$")] | None
    replaced_by: Number | None
    unsure_against: Number | None
    citations: Annotated[tuple[Quote, ...], Field(min_length=1, max_length=1_000)]


class HeldLine(Held):
    """A line of the profile."""

    attribute: Annotated[Short, StringConstraints(max_length=200)]
    value: Annotated[Short, StringConstraints(min_length=1)]


class HeldEvent(Held):
    """An event."""

    start: Time
    end: Time
    precision: Precision
    zone: Zone
    words: Short
    recurs: Annotated[str, StringConstraints(max_length=500)] | None


class Spoken(Part):
    """A line of the journal."""

    number: Number
    at: Time
    chat: Number
    by: Literal["you", "bot", "other"]
    speaker: Short
    forwarded: bool
    answers: Number | None
    text: Annotated[Said, StringConstraints(min_length=1)]
    private_only: bool = False


class Imported(Part):
    """An export, as it is read."""

    format: Literal["recollect-export"]
    version: Literal[1]
    made_at: Time
    account: Whose
    settings: Chosen
    links: tuple[Link, ...]
    chats: Annotated[tuple[Room, ...], Field(max_length=100_000)]
    pending_deletions: tuple[Pending, ...]
    profile: Annotated[tuple[HeldLine, ...], Field(max_length=MOST)]
    timeline: Annotated[tuple[HeldEvent, ...], Field(max_length=MOST)]
    facts: Annotated[tuple[Held, ...], Field(max_length=MOST)]
    journal: Annotated[tuple[Spoken, ...], Field(max_length=MOST)]


def parse(data: bytes) -> Imported:
    """Read an export. Raises ImportRefusedError, which names each fault by its place, never by the words there."""
    if len(data) > LARGEST:
        raise ImportRefusedError(f"The file has more than {LARGEST // 1_000_000} MB: that is no export of one person.")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise ImportRefusedError(
            "This is no JSON: name the .json file of an export (a .zip has to be unpacked first)."
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ImportRefusedError("This is no export of Recollect: it does not begin with its format.")
    if document.get("version") != VERSION:
        raise ImportRefusedError(
            f"This export has a form of another version than {VERSION}: update Recollect, or export it anew."
        )
    try:
        read = Imported.model_validate(document)
    except ValidationError as error:
        raise ImportRefusedError("\n".join(_faults(error))) from None
    _refuse_doubles(read)
    return read


def _refuse_doubles(read: Imported) -> None:
    numbers = [each.number for part in (read.profile, read.timeline, read.facts, read.journal) for each in part]
    if len(set(numbers)) < len(numbers):
        raise ImportRefusedError("Some number stands for two things in this file: it is no export as it was made.")
    rooms = {room.number for room in read.chats}
    missing = {line.chat for line in read.journal} - rooms
    missing |= {e.audience for e in (*read.profile, *read.timeline, *read.facts) if isinstance(e.audience, int)} - rooms
    if missing:
        raise ImportRefusedError(f"chats: {len(missing)} that are named in the file are not listed there")


def _faults(error: ValidationError) -> list[str]:
    faults = error.errors(include_url=False, include_input=False)
    lines = []
    for fault in faults[:TOLD]:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
        lines.append(f"{place}: {str(fault['msg']).removeprefix('Value error, ')}")
    if len(faults) > TOLD:
        lines.append(f"and {len(faults) - TOLD} faults more")
    return lines
