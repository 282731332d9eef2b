"""From a message to candidates: read it, cut it into clauses, understand each, cite its words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from memory import checks, lifetimes, slots
from memory.model import SELF, Candidate, Citation
from memory.rules.clauses import TONGUES, sentences
from memory.rules.endings import endings
from memory.rules.grammar import FACT, Clause, Statement, understand
from memory.rules.plans import Said, plans
from memory.rules.reading import Reading, read
from memory.rules.remembering import remembered
from memory.script import as_written


def candidates(
    message_text: str, *, message_id: int, at: datetime, language_hint: str | None = None, zone: str = "UTC"
) -> list[Candidate]:
    """Return what a message plainly states about its author or their family, each with its citation.

    ``at`` is when it was said (aware UTC), ``zone`` the author's IANA time zone, in which days are counted. Chinese
    is told by its script, so ``language_hint`` ("zh", "en", None) only keeps English rules off a message hinted to be
    in a third language. Empty for questions, conditions, wishes, reports, quotes, fiction, tasks, jokes, logs,
    secrets, instructions and whatever is longer than :data:`memory.rules.reading.MAX_CHARACTERS`. Whatever the text,
    raises nothing but ZoneInfoNotFoundError for an unknown zone.
    """
    reading = read(message_text)
    if reading is None or is_framed(reading):
        return []
    lines: list[Candidate] = []
    said: list[Statement] = []
    for clauses, found in statements(reading, language_hint):
        said += [each for each in found if _is_fit(each.clause.written)]
        # What ends something may have happened at a time, which makes an event besides.
        taken = {each.clause.start for each in found if not each.negates}
        left = [clause for clause in clauses if clause.start not in taken and _is_fit(clause.written)]
        lines += plans(left, Said(reading, message_id, at, zone))
    lines = [_candidate(each, Said(reading, message_id, at, zone)) for each in _last_word(said)] + lines
    return lines + remembered(reading, lines, message_id=message_id, at=at)


def _is_fit(written: str) -> bool:
    return not checks.secret(written) and not checks.instruction(written)


def is_framed(reading: Reading) -> bool:
    """Whether a message as a whole is a task about words, fiction or play, so that none of it is a statement."""
    return any(tongue.frame.search(reading.folded) for tongue in TONGUES)


def statements(reading: Reading, language_hint: str | None = None) -> Iterator[tuple[list[Clause], list[Statement]]]:
    """Yield the clauses of each sentence that may be read, with what the plain ones state, in order."""
    foreign = language_hint is not None and language_hint[:2] not in ("zh", "en")
    opens = not any(tongue.others.search(reading.folded) for tongue in TONGUES)
    for clauses in sentences(reading):
        about: str | None = None
        readable = [clause for clause in clauses if not (foreign and clause.tongue.code == "en")]
        found: list[Statement] = []
        for clause in clauses:
            if clause.mood not in ("plain", "past") or clause not in readable:
                about, opens = None, False
                continue
            understood = understand(clause, about, reading.folded, opens=opens)
            about, opens = understood.about, False
            if clause.mood == "plain":
                found += understood.statements or endings(clause)
        yield readable, found


def _last_word(said: list[Statement]) -> list[Statement]:
    """Drop what the same message takes back: an earlier value of a slot that holds one, a repeated value."""
    last: dict[tuple[str, str, str], Statement] = {}
    for each in said:
        alone = each.attribute != FACT and not slots.slot(each.attribute).multiple and not each.negates
        one = "" if alone else slots.key(each.value)
        place = (each.subject, each.attribute, one)
        last.pop(place, None)
        last[place] = each
    return list(last.values())


def _candidate(said: Statement, message: Said) -> Candidate:
    cited = (cite(message.reading, said.clause, message.message_id, message.at),)
    language = said.clause.tongue.code
    if said.attribute == FACT:
        whole = Citation(message.message_id, message.reading.text, message.at)
        return Candidate(
            kind="fact",
            citations=cited,
            language=language,
            subject=said.subject,
            text=_ended(said) if said.negates else said.clause.written,
            expires_at=None if said.negates else lifetimes.passes(said.clause.written, whole, message.zone),
            negates=said.negates,
        )
    return Candidate(
        kind="profile",
        citations=cited,
        language=language,
        subject=said.subject,
        text=slots.render(said.attribute, said.value, as_written(cited[0].quote, language), said.subject),
        attribute=said.attribute,
        value=said.value,
        negates=said.negates,
    )


def _ended(said: Statement) -> str:
    """Return the fact that is so no longer, in the words in which it was told ("I work at Ikea", 我在宜家上班)."""
    if said.clause.tongue.code == "zh":
        return f"我{'' if said.subject == SELF else said.subject}{said.value}"
    doing = said.value.split(maxsplit=1)[0].endswith("ing")
    if said.subject == SELF:
        return f"I {'am ' * doing}{said.value}"
    return f"my {said.subject} {'is ' * doing}{said.value}"


def cite(reading: Reading, clause: Clause, message_id: int, at: datetime) -> Citation:
    """Return the citation of one clause: its own words, exactly as written."""
    return Citation(message_id, reading.quote(clause.start, clause.end), at)
