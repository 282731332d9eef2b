"""``bench recall --trace ID``: how one question of a set was answered, and where its evidence came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from bot.bench import evalset
from bot.bench.evalset import Asked, Conversation, EvalSet
from memory.model import Recalled, Recollection

SHOWN: Final = 10
"""Units that are told in any case; evidence further down is told besides."""
TEXT: Final = 160
"""Characters of a text that are told."""


def question_of(each: EvalSet, id_: str) -> tuple[Conversation, Asked] | None:
    """The question of that id and the conversation it is asked of, None if the set has no such question."""
    asked = next((question for question in each.questions if question.id == id_), None)
    if asked is None:
        return None
    return next(told for told in each.conversations if told.id == asked.conversation), asked


def told(conversation: Conversation, asked: Asked, found: Recollection, ids: Mapping[int, str]) -> Iterator[str]:
    """A trace in lines: the question, its evidence with the places it has, then what was shown and why."""
    texts = {line.id: line for session in conversation.sessions for line in session}
    yield f"{asked.id} ({asked.category}): {asked.text}"
    places = {id_: _place(found.units, id_, ids) for group in asked.groups for id_ in group}
    for number, group in enumerate(asked.groups, start=1):
        for id_ in group:
            where = "not shown" if places[id_] is None else f"place {places[id_]}"
            yield f"  evidence {number}, {id_}, {where}: {_line(texts.get(id_))}"
    for place, unit in enumerate(found.units, start=1):
        hit = {ids[cited] for cited in unit.cites} & places.keys()
        if place <= SHOWN or hit:
            mark = "*" if hit else " "
            terms = " ".join(f"{name} {value:g}" for name, value in unit.scores.items())
            yield f" {mark}{place:3} {unit.score:.2f}  {ids[unit.id]} {unit.speaker}: {_short(unit.text)}"
            yield f"        {terms}"
    yield from (f"  note: {note}" for note in found.notes)


def _place(units: Sequence[Recalled], id_: str, ids: Mapping[int, str]) -> int | None:
    return next((n for n, unit in enumerate(units, start=1) if id_ in {ids[cited] for cited in unit.cites}), None)


def _line(line: evalset.Line | None) -> str:
    return "no such line" if line is None else f"{line.at:%Y-%m-%d} {line.speaker}: {_short(line.text)}"


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= TEXT else f"{plain[: TEXT - 1]}…"
