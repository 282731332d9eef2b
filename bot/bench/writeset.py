"""The sets of ``bench write``: messages to store or to skip, updates, dates, and observed conversations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

from bot.bench.evalset import CONVERSATIONS, Conversation, DataError, Line, moment

Label = Literal["store", "ephemeral", "skip", "sensitive", "injection"]
Relation = Literal[
    "supersede",
    "correction",
    "supplement",
    "duplicate",
    "hypothetical_no_update",
    "past_fact_no_update",
    "unrelated_subject",
    "delete",
]
Days = tuple[date, date]
"""The first and the last day of a time, both included."""

WRITEPATH: Final = "writepath"
LOCOMO: Final = "locomo"
OBSERVATIONS: Final = "observations.jsonl"

_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class Lone:
    """A message told alone; ``must_contain`` are strings of what has to be stored of it."""

    id: str
    language: str
    label: Label
    text: str
    must_contain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """Two messages, what each says about the question, and what the second means for the first."""

    id: str
    language: str
    relation: Relation
    old_message: str
    new_message: str
    question: str
    old_value: str
    new_value: str


@dataclass(frozen=True, slots=True)
class Dated:
    """A message with one time in it. ``accepted`` are the right days, the expected ones first.

    ``recurring`` is MM-DD of a day of every year, then ``accepted`` may be empty.
    """

    id: str
    language: str
    at: datetime
    text: str
    accepted: tuple[Days, ...]
    recurring: str | None


@dataclass(frozen=True, slots=True)
class Observation:
    """A fact somebody noted about a speaker of a conversation, and the ids of the messages that say it."""

    conversation: str
    speaker: str
    text: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WriteSet:
    """Everything a folder holds for the write path; conversations and observations may be missing."""

    lone: tuple[Lone, ...]
    updates: tuple[Update, ...]
    dates: tuple[Dated, ...]
    talks: tuple[Conversation, ...] = ()
    observations: tuple[Observation, ...] = ()


def load(data: Path) -> WriteSet:
    """Read ``data``/writepath, and ``data``/locomo where there is one. Raises DataError, which names the file."""
    folder, observed = data / WRITEPATH, data / LOCOMO
    talks, observations = observed / CONVERSATIONS, observed / OBSERVATIONS
    both = talks.is_file() and observations.is_file()
    return WriteSet(
        lone=_read(folder / "store.jsonl", _lone),
        updates=_read(folder / "updates.jsonl", _update),
        dates=_read(folder / "dates.jsonl", _dated),
        talks=_read(talks, _talk) if both else (),
        observations=_read(observations, _observation) if both else (),
    )


def _read(path: Path, make: Callable[[Mapping[str, Any]], _Row]) -> tuple[_Row, ...]:
    try:
        with path.open(encoding="utf-8") as file:
            rows = tuple(make(json.loads(line)) for line in file if line.strip())
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror}): --data names the folder that holds {WRITEPATH}"
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path} is not in the layout of the write path's data: {error!r}") from error
    if not rows:
        raise DataError(f"{path} holds nothing to measure")
    return rows


def _lone(row: Mapping[str, Any]) -> Lone:
    return Lone(row["id"], row["language"], _one_of(Label, row["label"]), row["text"], tuple(row["must_contain"]))


def _update(row: Mapping[str, Any]) -> Update:
    return Update(
        id=row["id"],
        language=row["language"],
        relation=_one_of(Relation, row["relation"]),
        old_message=row["old_message"],
        new_message=row["new_message"],
        question=row["question"],
        old_value=row["old_value"],
        new_value=row["new_value"],
    )


def _dated(row: Mapping[str, Any]) -> Dated:
    readings = (row["expected"], *row.get("also_accept", ()))
    return Dated(
        id=row["id"],
        language=row["language"],
        at=datetime.fromisoformat(row["message_time"]).replace(tzinfo=UTC),
        text=row["text"],
        accepted=tuple(
            (date.fromisoformat(each["start"]), date.fromisoformat(each["end"])) for each in readings if "start" in each
        ),
        recurring=row["expected"].get("recurring"),
    )


def _talk(row: Mapping[str, Any]) -> Conversation:
    sessions = []
    for session in row["sessions"]:
        at = moment(session["date_time"], otherwise=datetime(2024, 1, 1, 12, tzinfo=UTC))
        sessions.append(tuple(Line(m["id"], m["speaker"], m["text"], at) for m in session["messages"]))
    return Conversation(row["conversation_id"], row["language"], tuple(filter(None, sessions)))


def _observation(row: Mapping[str, Any]) -> Observation:
    return Observation(row["conversation_id"], row["speaker"], row["text"], tuple(row["evidence_ids"]))


def _one_of(kinds: Any, word: str) -> Any:
    if word not in get_args(kinds):
        raise ValueError(f"{word!r} is none of {', '.join(get_args(kinds))}")
    return word
