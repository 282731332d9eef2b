"""Question sets with evidence, read from folders of JSON lines (``conversations.jsonl``, ``questions.jsonl``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

CONVERSATIONS: Final = "conversations.jsonl"
QUESTIONS: Final = "questions.jsonl"
BOT_SPEAKER: Final = "assistant"

_UNDATED: Final = datetime(2024, 1, 1, 12, tzinfo=UTC)
_NUMBERS: Final = re.compile(r"\d+")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})")
_MONTH_NAME: Final = re.compile(r"[A-Za-z]+-\d{1,2}-\d{4}")


class DataError(Exception):
    """A folder is no question set; the text names it and says what is missing."""


@dataclass(frozen=True, slots=True)
class Line:
    """One message: its id in the set, who said it, aware UTC time."""

    id: str
    speaker: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Conversation:
    """Sessions of messages, in the order of the file."""

    id: str
    language: str
    sessions: tuple[tuple[Line, ...], ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question; ``groups`` are its pieces of evidence, any id of a group is enough. ``at`` None: after all of it."""

    conversation: str
    category: str
    text: str
    groups: tuple[tuple[str, ...], ...]
    at: datetime | None


@dataclass(frozen=True, slots=True)
class EvalSet:
    """One set, named after its folder. Questions without evidence are left out."""

    name: str
    conversations: tuple[Conversation, ...]
    questions: tuple[Asked, ...]


def load(data: Path) -> list[EvalSet]:
    """Read ``data``: one set, or a folder of sets. Raises DataError."""
    folders = [data] if _is_set(data) else sorted(path for path in data.glob("*/") if _is_set(path))
    if not folders:
        raise DataError(
            f"{data} holds no {CONVERSATIONS} with {QUESTIONS} beside it, neither itself nor one folder down"
        )
    try:
        return [_read_set(folder) for folder in folders]
    except (KeyError, ValueError) as error:
        raise DataError(f"{data} is not in the layout of a question set: {error!r}") from error


def _is_set(folder: Path) -> bool:
    return (folder / CONVERSATIONS).is_file() and (folder / QUESTIONS).is_file()


def _read_set(folder: Path) -> EvalSet:
    conversations = tuple(_conversation(row) for row in _rows(folder / CONVERSATIONS))
    questions = tuple(_question(row) for row in _rows(folder / QUESTIONS) if row["evidence_ids"])
    return EvalSet(folder.resolve().name, conversations, questions)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def _conversation(row: dict[str, Any]) -> Conversation:
    sessions: list[tuple[Line, ...]] = []
    day = _UNDATED
    for session in row["sessions"]:
        day = moment(session["date_time"], otherwise=day + timedelta(days=1))
        sessions.append(
            tuple(
                Line(m["id"], m["speaker"], m["text"], moment(m.get("time"), otherwise=day, on=day))
                for m in session["messages"]
            )
        )
    return Conversation(row["conversation_id"], row["language"], tuple(sessions))


def _question(row: dict[str, Any]) -> Asked:
    groups = row.get("evidence_groups") or [[id_] for id_ in row["evidence_ids"]]
    stated = row.get("question_date")
    return Asked(
        conversation=row["conversation_id"],
        category=row["category"],
        text=row["question"],
        groups=tuple(tuple(group) for group in groups),
        at=moment(stated, otherwise=_UNDATED) if stated else None,
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
