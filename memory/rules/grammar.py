"""The grammar both languages fill with words: what a rule is, and how a clause is read with rules.

A clause is ``filler* subject adverb* predicate``. Fillers say nothing; the subject tells whom it is about; a rule
matches the *whole* predicate, so that a word nobody listed ("if", 听说, "almost") makes the clause unreadable
rather than misread. What is unreadable is left to distillation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from memory import slots
from memory.model import SELF

Mood = Literal["plain", "question", "intended", "unreal", "reported", "past"]

FACT: Final = "fact"
"""Group of a rule whose words fill no slot: the whole clause is kept as a fact."""
LONGEST_CLAUSE: Final = 160
"""Characters of the longest clause rules look at; keeps every pattern's work bounded."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to say one thing; the named groups of the patterns are attributes of :mod:`memory.slots`.

    ``own`` reads a predicate about the owner, ``others`` one about somebody else (English verbs agree).
    Two groups are no attributes: ``thing`` says of what a favourite is, ``species`` what a pet is. A group
    ``job__stated`` is the attribute job with a looser idea of what fits; :data:`FACT` fills no attribute.
    ``bare`` reads one of the owner whose subject is left out ("allergic to latex", 讨厌早起). ``negates`` marks the
    end of a value; ``unless`` is a pattern that must not occur in the sentence, ``needs`` one that must occur in the
    message. ``opens`` lets a message begin with the bare form, with nobody named before it.
    """

    own: re.Pattern[str]
    others: re.Pattern[str]
    bare: re.Pattern[str]
    negates: bool = False
    unless: re.Pattern[str] | None = None
    needs: re.Pattern[str] | None = None
    opens: bool = False

    def match(self, said: Predicate, clause: Clause, message: str) -> re.Match[str] | None:
        """Match a whole predicate of a clause; ``message`` is folded."""
        if (said.opens and not self.opens) or (self.unless and self.unless.search(clause.sentence)):
            return None
        if self.needs and not self.needs.search(message):
            return None
        words = clause.words[said.start :]
        if said.who != SELF:
            return self.others.fullmatch(words)
        return (None if said.opens else self.own.fullmatch(words)) or (
            self.bare.fullmatch(words) if said.bare else None
        )


@dataclass(frozen=True, slots=True)
class Predicate:
    """What a clause says of ``who``, from ``start`` on; ``bare`` without a subject, ``opens`` first in its message."""

    who: str
    start: int
    bare: bool = False
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a clause is about, and where its predicate begins. ``name`` is the span of a name beside a kinship."""

    who: str
    end: int
    name: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Tongue:
    """One language, as tables.

    ``frame`` makes a whole message somebody else's words or a task (translate, proofread, role play, fiction).
    ``breaks`` splits a sentence into clauses. ``unreal`` and ``joke`` spoil a sentence; ``wish`` and ``reported`` what
    follows them (``harmless`` phrases only look like it); ``intent`` makes it a plan; ``question`` spoils a clause;
    ``past`` what follows until ``present``. ``introduces`` starts a predicate no rule reads after which the next may
    leave its subject out.
    ``subject`` finds whom a clause is about (None: nobody the rules know), ``adverbs`` are skipped after it;
    ``others`` are words for somebody else, beside whom nobody can tell whose a predicate without a subject is.
    ``sentences`` are rules that need no subject. ``splits`` cuts a list of values, ``fits`` says whether a value
    may fill an attribute (folded value, the value and its whole clause as written).
    """

    code: Literal["zh", "en"]
    frame: re.Pattern[str]
    breaks: re.Pattern[str]
    filler: re.Pattern[str]
    tail: re.Pattern[str]
    harmless: re.Pattern[str]
    unreal: re.Pattern[str]
    joke: re.Pattern[str]
    wish: re.Pattern[str]
    intent: re.Pattern[str]
    reported: re.Pattern[str]
    question: re.Pattern[str]
    past: re.Pattern[str]
    present: re.Pattern[str]
    adverbs: re.Pattern[str]
    others: re.Pattern[str]
    introduces: re.Pattern[str]
    subject: Callable[[str, str], Subject | None]
    predicates: tuple[Rule, ...]
    sentences: tuple[Rule, ...]
    splits: Callable[[str, str], list[tuple[int, int]]]
    fits: Callable[[str, str, str, str], bool]


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause without its fillers: ``folded[start:end]`` of the reading, and how it is meant."""

    start: int
    end: int
    words: str
    written: str
    tongue: Tongue
    mood: Mood
    sentence: str


@dataclass(frozen=True, slots=True)
class Statement:
    """What a clause says: one value of one attribute."""

    attribute: str
    value: str
    subject: str
    clause: Clause
    negates: bool = False


@dataclass(frozen=True, slots=True)
class Understood:
    """A clause as read: whom later clauses of the sentence go on about (None: unknown), and what it says."""

    about: str | None
    statements: tuple[Statement, ...] = ()


def understand(clause: Clause, about: str | None, message: str, *, opens: bool = False) -> Understood:
    """Read one plain clause.

    ``about`` is whom the clause before was about; ``message`` is folded. ``opens`` says that the clause is the first
    of its message and nobody else is named in it, so that a predicate without a subject may be the owner's.
    """
    tongue = clause.tongue
    if whole := _first(clause, tongue.sentences, Predicate(SELF, 0), message):
        return Understood(None, tuple(whole))
    subject = tongue.subject(clause.words, clause.written)
    if subject is None and about is None and not opens:
        return Understood(None)
    opens = opens and subject is None
    who, start = (subject.who, subject.end) if subject else (about or SELF, 0)
    skipped = tongue.adverbs.match(clause.words, start)
    behind = skipped.end() if skipped else start
    found = None
    # An adverb tells a liking of one's own from a noun ("really into …", 最喜欢), so that it is read first.
    for place in dict.fromkeys((start, behind) if opens else (behind,)):
        found = found or _first(clause, tongue.predicates, Predicate(who, place, subject is None, opens), message)
    start = behind
    if found is None:
        introduced = tongue.introduces.match(clause.words[start:]) if not opens else None
        return Understood(who if introduced and (subject or introduced.end() == len(clause.words)) else None)
    if subject and subject.name:
        found.append(Statement("name", clause.written[slice(*subject.name)], who, clause))
    return Understood(None if any(each.attribute == "pet" for each in found) else who, tuple(found))


def _first(clause: Clause, rules: tuple[Rule, ...], said: Predicate, message: str) -> list[Statement] | None:
    """Return what the first rule says that matches and whose values all fit; None without one."""
    for rule in rules:
        match = rule.match(said, clause, message)
        if match and (found := _statements(clause, rule, match, said)):
            return found
    return None


def _statements(clause: Clause, rule: Rule, match: re.Match[str], predicate: Predicate) -> list[Statement]:
    """Return one statement a value, or nothing at all when a single value does not fit."""
    who, start = predicate.who, predicate.start
    groups = match.groupdict()
    thing, species = groups.pop("thing", None), groups.pop("species", None)
    said: list[Statement] = []
    for name in [each for each in groups if groups[each] is not None]:
        left, right = (start + place for place in match.span(name))
        for begin, stop in clause.tongue.splits(clause.words[left:right], name):
            words, value = (text[left + begin : left + stop].strip() for text in (clause.words, clause.written))
            if not clause.tongue.fits(name, words, value, clause.written):
                return []
            attribute = slots.favourite(thing) if thing else name.partition("__")[0]
            said.append(Statement(attribute, f"{value} ({species})" if species else value, who, clause, rule.negates))
    return said


def any_of(*lines: str) -> str:
    """Return a pattern for any of the space-separated alternatives in ``lines`` ("_" stands for a space)."""
    return "(?:" + "|".join(word.replace("_", " ") for line in lines for word in line.split()) + ")"
