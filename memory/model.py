"""The things memory speaks of, all of them immutable.

Four numbers are easily mixed up and are kept apart everywhere: the *owner* (whose memory it is), the
*subject* (whom it is about), the *speaker* (who said it) and the *audience* (where it may be used).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from datetime import datetime

Kind = Literal["profile", "event", "fact", "message"]
Role = Literal["user", "bot"]
Source = Literal["user", "summary", "tool"]
Precision = Literal["minute", "hour", "day", "week", "month", "season", "year"]
Extent = Literal["whole", "passage", "gist"]
MessageKind = Literal["said", "command", "forwarded"]

SEQ_BITS: Final = 24
"""Bits of a row id that count an owner's rows: 16.7 million rows for one person (NUMBERS: clustered ids)."""

PRIVATE: Final = 0
"""Audience of what was said in a private chat: usable in private chats with its owner only."""
EVERYWHERE: Final = -1
"""Audience of what its owner opened to every place. Any other audience is the number of one chat."""

SELF: Final = "self"
"""Subject of a memory about its owner. Every other subject is the name or kinship the owner used."""


@dataclass(frozen=True, slots=True)
class Account:
    """One user of one platform; the owner of memories.

    ``no`` is internal and never reused. ``language`` is "en", "zh" or "zh-TW" (traditional), ``zone`` an IANA zone.
    ``language_fixed`` tells that the owner chose the language and what they write does not change it, ``zone_from``
    where the zone comes from: the operator's "default", what the owner "said", or what they "set" by command.
    """

    no: int
    platform: str
    user_id: str
    name: str = ""
    language: str = "en"
    zone: str = "UTC"
    language_fixed: bool = False
    zone_from: Literal["default", "said", "set"] = "default"

    @property
    def first_id(self) -> int:
        """Lowest row id this account can own."""
        return self.no << SEQ_BITS

    @property
    def last_id(self) -> int:
        """Highest row id this account can own."""
        return (self.no << SEQ_BITS) | ((1 << SEQ_BITS) - 1)

    def owns(self, row_id: int) -> bool:
        """Whether a row id lies in this account's range."""
        return self.first_id <= row_id <= self.last_id


@dataclass(frozen=True, slots=True)
class Chat:
    """A place to talk. ``no`` is internal and survives a group's migration to a new platform id.

    ``past`` tells that ``key`` is one the chat had before it moved; its messages are numbered apart.
    """

    no: int
    platform: str
    key: str
    private: bool
    parent: int | None = None
    past: bool = False

    @property
    def audience(self) -> int:
        """The audience of what is said here (a topic shares its parent's)."""
        if self.private:
            return PRIVATE
        return self.parent if self.parent is not None else self.no

    def message_id(self, platform_id: str) -> str:
        """A platform's id of a message here as the journal keeps it: one of a past key is told apart by the key."""
        return f"{self.key}/{platform_id}" if self.past else platform_id


@dataclass(frozen=True, slots=True)
class Sight:
    """Who may see a room: everybody, or nobody, but for those who are named.

    The names mean something to the platform alone. ``by`` are let in where not ``everybody`` is, ``but`` are shut out
    where everybody else is let in.
    """

    everybody: bool
    by: frozenset[str] = frozenset()
    but: frozenset[str] = frozenset()

    def opens(self, before: Sight) -> bool:
        """Whether somebody may see the room now who could not ``before``."""
        if before.everybody:
            return bool(before.but - self.but if self.everybody else before.but & self.by)
        return self.everybody or bool(self.by - before.by)


@dataclass(frozen=True, slots=True)
class Message:
    """One journal line.

    ``id`` lies in the range of the account it is *for*: the author of a person's line, the person
    answered for a bot's line. ``at`` is aware UTC. ``answers`` is the id of the line a reply answers;
    ``turn`` is the id of the line whose reply answers this one, too, when several were answered as one.
    ``kind`` "command" lines carry no text; "forwarded" lines are somebody else's words. A ``fleeting`` line was
    said off the record or while learning was paused: it is there to be answered, and nothing is made of it;
    one that is ``held`` waits for its owner to agree to have these matters kept.
    """

    id: int
    chat: int
    session: int
    role: Role
    speaker: str
    at: datetime
    text: str
    kind: MessageKind = "said"
    platform_id: str | None = None
    answers: int | None = None
    tokens: int = 0
    turn: int | None = None
    fleeting: bool = False
    held: str = ""


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a memory comes from: the journal line, the very words, and when they were said (aware UTC).

    The quote is the smallest clause that carries the memory, so that a trimmed or forgotten journal
    line orphans nothing and gives away nothing else.
    """

    message: int
    quote: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Provenance:
    """What every long-term memory carries besides its content. Times are aware UTC.

    ``doubts`` is the sure memory this unsure one was said against, as long as that one stands; ``asked_at`` when
    its owner was asked which of the two holds. ``ended_at`` is when the words were said that ended it where
    nothing took its place, ``ended_by`` the line they stand in, ``retired_at`` when that was worked out.
    ``overtaken`` is when another account of the person said otherwise; worked out when reading, and stored nowhere.
    """

    audience: int
    source: Source
    said_at: datetime
    created_at: datetime
    confidence: float = 1.0
    importance: float = 0.5
    confirmed_at: datetime | None = None
    confirmations: int = 1
    expires_at: datetime | None = None
    retired_at: datetime | None = None
    successor: int | None = None
    reason: str | None = None
    citations: tuple[Citation, ...] = ()
    doubts: int | None = None
    asked_at: datetime | None = None
    ended_at: datetime | None = None
    ended_by: int | None = None
    overtaken: datetime | None = None
    cold_at: datetime | None = None

    @property
    def unsure(self) -> bool:
        """Whether something surer says otherwise."""
        return self.doubts is not None

    def live(self, now: datetime) -> bool:
        """Neither superseded nor expired at ``now``."""
        return self.retired_at is None and (self.expires_at is None or self.expires_at > now)


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """A structured value: ``attribute`` is a slot name of :mod:`memory.slots`, ``text`` the line as shown."""

    id: int
    subject: str
    attribute: str
    value: str
    text: str
    provenance: Provenance
    kind: Literal["profile"] = "profile"


@dataclass(frozen=True, slots=True)
class Span:
    """When something happens: half-open ``[start, end)`` in aware UTC, to a stated precision.

    ``words`` are the original words ("下周三下午"), ``zone`` the IANA zone they were said in, ``rrule``
    an RFC 5545 rule for what recurs (then ``start``/``end`` are its first occurrence).
    """

    start: datetime
    end: datetime
    precision: Precision
    zone: str
    words: str = ""
    rrule: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """Episodic memory: something with a time."""

    id: int
    subject: str
    text: str
    span: Span
    provenance: Provenance
    kind: Literal["event"] = "event"


@dataclass(frozen=True, slots=True)
class Fact:
    """Semantic memory: one sentence, one fact."""

    id: int
    subject: str
    text: str
    provenance: Provenance
    kind: Literal["fact"] = "fact"


Entry = ProfileLine | Event | Fact


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that asks to be written; rules and distillation both end here, in front of one gate.

    ``kind`` "profile" needs ``attribute`` and ``value``; "event" needs ``text`` and ``span``; "fact" needs
    ``text``. ``negates`` marks the end of a slot value without a new one ("I don't live in Oslo").
    """

    kind: Literal["profile", "event", "fact"]
    citations: tuple[Citation, ...]
    language: str
    subject: str = SELF
    text: str = ""
    attribute: str = ""
    value: str = ""
    span: Span | None = None
    source: Source = "user"
    confidence: float = 1.0
    importance: float = 0.5
    forgettable: bool = False
    expires_at: datetime | None = None
    negates: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a candidate, and why: the receipt of a write.

    ``entry`` is the row as stored (None when dropped); ``closed`` are ids of rows it superseded.
    """

    action: Literal["added", "confirmed", "superseded", "retired", "dropped"]
    reason: str
    entry: Entry | None = None
    closed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """What the recall index holds of one row: a journal line or a live long-term memory.

    ``text`` is the bare text (a profile line's rendered line); ``speaker`` is set for journal lines, ``span``
    for events. ``text_hash`` keys the vector: of ``text``, for a journal line of "speaker: text".
    ``cites`` are the journal lines a memory cites, for a journal line its own id.
    """

    id: int
    kind: Kind
    text: str
    at: datetime
    audience: int
    text_hash: bytes
    subject: str = SELF
    speaker: str = ""
    role: Role = "user"
    session: int = 0
    attribute: str = ""
    span: Span | None = None
    expires_at: datetime | None = None
    confidence: float = 1.0
    importance: float = 0.5
    cites: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Recalled:
    """One unit of the one list that recall returns, best first.

    ``cites`` are the ids of the journal lines the unit is or cites; ``scores`` name each term that
    made up ``score``; ``band`` is "always" for always-read lines, "full" or "perhaps" otherwise. ``outdated``
    is when what a journal line said was closed by something newer, None while it stands. ``when`` is the time
    of an event. ``extent`` is how much of a long text ``text`` is.
    """

    id: int
    kind: Kind
    text: str
    at: datetime
    score: float
    cites: tuple[int, ...]
    band: Literal["always", "full", "perhaps"] = "full"
    subject: str = SELF
    speaker: str = ""
    scores: dict[str, float] = field(default_factory=dict)
    outdated: datetime | None = None
    when: Span | None = None
    extent: Extent = "whole"


@dataclass(frozen=True, slots=True)
class Recollection:
    """What recall found for one question, what it left out and why; goes whole into the trace.

    ``level`` is the percentile (0 to 1) of the question among the null; None when there is no null.
    ``left_out`` pairs a row id with the reason. ``notes`` name degraded arms ("no embedder", "timeout") and what
    became of other wordings; ``arms`` tell, by arm, the rows looked at, the best score by words, the best cosine, the
    rows in a time asked about, and the rows offered.
    """

    units: tuple[Recalled, ...] = ()
    level: float | None = None
    left_out: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()
    milliseconds: float = 0.0
    arms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def verdict(self) -> Literal["full", "perhaps", "nothing"]:
        """Whether anything fitted the question: surely, perhaps, or not at all. What is read anyway does not count."""
        bands = {unit.band for unit in self.units if unit.scores or unit.band != "always"}
        return "full" if bands & {"full", "always"} else "perhaps" if bands else "nothing"
