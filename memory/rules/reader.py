"""From a message to candidates: read it, cut it into clauses, understand each, cite its words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from memory import checks, slots
from memory.model import Candidate, Citation
from memory.rules.clauses import TONGUES, sentences
from memory.rules.grammar import Clause, Statement, understand
from memory.rules.reading import Reading, read
from memory.rules.remembering import remembered


def candidates(
    message_text: str, *, message_id: int, at: datetime, language_hint: str | None = None
) -> list[Candidate]:
    """Return what a message plainly states about its author or their family, each with its citation.

    ``at`` is when it was said (aware UTC). Chinese is told by its script, so ``language_hint`` ("zh", "en", None)
    only keeps English rules off a message hinted to be in a third language. Empty for questions, conditions,
    wishes, reports, quotes, fiction, tasks, jokes, logs, secrets, instructions and whatever is longer than
    :data:`memory.rules.reading.MAX_CHARACTERS`. Never raises for any text.
    """
    reading = read(message_text)
    if reading is None or is_framed(reading):
        return []
    said = [
        statement
        for statement in statements(reading, language_hint)
        if not checks.secret(statement.clause.written) and not checks.instruction(statement.clause.written)
    ]
    lines = [_profile(each, reading, message_id, at) for each in _last_word(said)]
    return lines + remembered(reading, lines, message_id=message_id, at=at)


def is_framed(reading: Reading) -> bool:
    """Whether a message as a whole is a task about words, fiction or play, so that none of it is a statement."""
    return any(tongue.frame.search(reading.folded) for tongue in TONGUES)


def statements(reading: Reading, language_hint: str | None = None) -> Iterator[Statement]:
    """Yield what the plain clauses of a reading say, in order."""
    foreign = language_hint is not None and language_hint[:2] not in ("zh", "en")
    for clauses in sentences(reading):
        about: str | None = None
        for clause in clauses:
            if clause.mood not in ("plain", "past") or (foreign and clause.tongue.code == "en"):
                about = None
                continue
            understood = understand(clause, about, reading.folded)
            about = understood.about
            if clause.mood == "plain":
                yield from understood.statements


def _last_word(said: list[Statement]) -> list[Statement]:
    """Drop what the same message takes back: an earlier value of a slot that holds one, a repeated value."""
    last: dict[tuple[str, str, str], Statement] = {}
    for each in said:
        one = "" if not slots.slot(each.attribute).multiple and not each.negates else slots.key(each.value)
        place = (each.subject, each.attribute, one)
        last.pop(place, None)
        last[place] = each
    return list(last.values())


def _profile(said: Statement, reading: Reading, message_id: int, at: datetime) -> Candidate:
    return Candidate(
        kind="profile",
        citations=(cite(reading, said.clause, message_id, at),),
        language=said.clause.tongue.code,
        subject=said.subject,
        text=slots.render(said.attribute, said.value, said.clause.tongue.code, said.subject),
        attribute=said.attribute,
        value=said.value,
        negates=said.negates,
    )


def cite(reading: Reading, clause: Clause, message_id: int, at: datetime) -> Citation:
    """Return the citation of one clause: its own words, exactly as written."""
    return Citation(message_id, reading.quote(clause.start, clause.end), at)
