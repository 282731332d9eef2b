"""Question sets with evidence, read from folders of JSON lines (``conversations.jsonl``, ``questions.jsonl``)."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

CONVERSATIONS: Final = "conversations.jsonl"
QUESTIONS: Final = "questions.jsonl"
BOT_SPEAKER: Final = "assistant"
SEED: Final = 7
"""What samples of questions are drawn with, so that two runs ask the same."""

_UNDATED: Final = datetime(2024, 1, 1, 12, tzinfo=UTC)
_NUMBERS: Final = re.compile(r"\d+")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})")
_MONTH_NAME: Final = re.compile(r"[A-Za-z]+-\d{1,2}-\d{4}")


class DataError(Exception):
    """A folder is no question set; the text names it and says what is missing."""


class NothingToMeasure(DataError):
    """A set is sound, but none of its questions has evidence."""


@dataclass(frozen=True, slots=True)
class Line:
    """One message: its id in the set, who said it, aware UTC time."""

    id: str
    speaker: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Conversation:
    """Sessions of messages, in the order of the file; one without a message is none."""

    id: str
    language: str
    sessions: tuple[tuple[Line, ...], ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question; ``groups`` are its pieces of evidence, any id of a group is enough. ``at`` None: after all of it.

    ``id`` is what the set calls it. ``old`` and ``new`` are the messages with a value that was replaced and with the
    one that holds, if a set says so.
    """

    conversation: str
    category: str
    text: str
    groups: tuple[tuple[str, ...], ...]
    at: datetime | None
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class EvalSet:
    """One set, named after its folder. ``notes`` say in plain words what of it cannot be measured and was left out."""

    name: str
    conversations: tuple[Conversation, ...]
    questions: tuple[Asked, ...]
    notes: tuple[str, ...] = ()


def folders(data: Path) -> list[Path]:
    """The sets of ``data``: itself, or those one folder down. Raises DataError when there is none."""
    found = [data] if _is_set(data) else sorted(path for path in data.glob("*/") if _is_set(path))
    if not found:
        raise DataError(
            f"{data} holds no {CONVERSATIONS} with {QUESTIONS} beside it, neither itself nor one folder down"
        )
    return found


def load(folder: Path) -> EvalSet:
    """Read one set. Raises DataError, NothingToMeasure when no question has evidence."""
    try:
        conversations = [_conversation(row) for row in _rows(folder / CONVERSATIONS)]
        questions = [_question(row) for row in _rows(folder / QUESTIONS)]
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise DataError(f"{folder} is not in the layout of a question set: {error!r}") from error
    told = {conversation.id for conversation in conversations if any(conversation.sessions)}
    measurable = [question for question in questions if question.groups and question.conversation in told]
    left_out = {
        "conversations without a message": len(conversations) - len(told),
        "questions without evidence": sum(not question.groups for question in questions),
        "questions about no conversation": sum(
            bool(question.groups) and question.conversation not in told for question in questions
        ),
    }
    name = folder.resolve().name
    if not measurable:
        raise NothingToMeasure(f"{folder} holds nothing to measure: no question has evidence in its conversations")
    return EvalSet(
        name,
        tuple(conversation for conversation in conversations if conversation.id in told),
        tuple(measurable),
        tuple(f"{name}: {count} {what} left out" for what, count in left_out.items() if count),
    )


def sampled(each: EvalSet, most: int) -> EvalSet:
    """A set of at most so many of its questions, drawn with :data:`SEED`, in their order; its notes say so."""
    if len(each.questions) <= most:
        return each
    drawn = sorted(random.Random(SEED).sample(range(len(each.questions)), most))  # noqa: S311
    told = f"{each.name}: {most} of {len(each.questions)} questions, drawn with seed {SEED}"
    return replace(each, questions=tuple(each.questions[place] for place in drawn), notes=(*each.notes, told))


def _is_set(folder: Path) -> bool:
    return (folder / CONVERSATIONS).is_file() and (folder / QUESTIONS).is_file()


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def _conversation(row: dict[str, Any]) -> Conversation:
    sessions: list[tuple[Line, ...]] = []
    day = _UNDATED
    for session in row["sessions"]:
        day = moment(session["date_time"], otherwise=day + timedelta(days=1))
        lines = (
            Line(m["id"], m["speaker"], m["text"], moment(m.get("time"), otherwise=day, on=day))
            for m in session["messages"]
        )
        sessions.append(tuple(lines))
    return Conversation(row["conversation_id"], row["language"], tuple(filter(None, sessions)))


def _question(row: dict[str, Any]) -> Asked:
    groups = row.get("evidence_groups") or [[id_] for id_ in row["evidence_ids"] or ()]
    stated = row.get("question_date")
    return Asked(
        conversation=row["conversation_id"],
        category=row["category"],
        text=row["question"],
        groups=tuple(tuple(group) for group in groups),
        at=moment(stated, otherwise=_UNDATED) if stated else None,
        old=tuple(row.get("old_ids") or ()),
        new=tuple(row.get("new_ids") or ()),
        id=row.get("question_id") or "",
    )


def moment(text: str | None, *, otherwise: datetime, on: datetime | None = None) -> datetime:
    """A stated time, taken as UTC: ISO, 2024年04月01日 周一 08:11, March-15-2024, a month (its end) or a clock time.

    ``on`` is the day of a lone clock time. Raises ValueError for numbers that are no date.
    """
    if not text:
        return otherwise
    if _MONTH_NAME.fullmatch(text):
        return datetime.strptime(text, "%B-%d-%Y").replace(hour=12, tzinfo=UTC)
    clock = _CLOCK.search(text)
    hour, minute = map(int, clock.groups()) if clock else (12, 0)
    numbers = [int(number) for number in _NUMBERS.findall(text[: clock.start()] if clock else text)]
    if len(numbers) >= 3:  # noqa: PLR2004
        year, month, day = numbers[:3]
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    if on is not None and clock:
        return on.replace(hour=hour, minute=minute)
    if len(numbers) == 2:  # noqa: PLR2004
        year, month = numbers
        return datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC) - timedelta(minutes=1)
    raise ValueError(f"{text!r} is no time")
