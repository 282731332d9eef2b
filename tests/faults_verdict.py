"""What must have come of a story: each chat, the journal and the log compared with what they must be."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memory import DATABASE_NAME
from tests.faults_weather import WORD, is_whole

SILENCE: Final = "silence"
KILL: Final = "a kill"
"""Why nobody knows whether a message was made."""
LOST: Final = "lost, as the log says"
"""Answers that never left Telegram's side of a broken connection, or may not have: they are not sent twice."""


@dataclass(slots=True)
class Chat:
    """A chat: how people write there, and the bot's messages as they stand (id and text, in order).

    ``asked`` are the words of messages that want an answer, ``aside`` those of others.
    """

    name: str
    say: Callable[[str], Coroutine[Any, Any, None]]
    shows: Callable[[], list[tuple[str, str]]]
    asked: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Verdict:
    """Everything that is not as it must be, and the figures of the table."""

    wrong: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Left:
    """A message that waited when the bot was killed. ``reply`` is the answer if it was journaled."""

    platform: str
    key: str
    message_id: str
    begun: bool
    shown: tuple[str, ...]
    reply: str | None


class Remains:
    """The data folder, looked at from outside."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._database = folder / "data" / DATABASE_NAME

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of the file while the bot has it open; none as long as there is no such file or table."""
        return _rows(f"file:{self._database}?mode=ro", sql)

    def heard(self) -> set[str]:
        """The words in people's lines."""
        return {word for (text,) in self.rows("SELECT text FROM journal WHERE role = 'user'") for word in words(text)}

    def waiting(self) -> list[Left]:
        """What waits, read from a copy: a look must not tidy up what a kill has left."""
        copy = self._folder / "left.db"
        for end in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(f"{self._database}{end}", f"{copy}{end}")
        rows = _rows(
            f"file:{copy}",
            "SELECT c.platform, c.key, j.platform_id, w.begun, w.shown, r.text FROM waiting w"
            " JOIN journal j ON j.id = w.id JOIN chats c ON c.no = j.chat LEFT JOIN journal r ON r.id = w.reply",
        )
        for end in ("", "-wal", "-shm"):
            Path(f"{copy}{end}").unlink(missing_ok=True)
        return [
            Left(platform, key, message_id, bool(begun), tuple(json.loads(shown)), reply)
            for platform, key, message_id, begun, shown, reply in rows
        ]

    def log(self) -> str:
        """What was logged into the file."""
        return "".join(map(_text, sorted((self._folder / "data").glob("recollect.log*"))))

    def said_aloud(self) -> str:
        """What was printed."""
        return _text(self._folder / "stderr.txt")


def judge_chat(chat: Chat, unsure: Mapping[str, str], excused: set[str], found: Verdict) -> None:
    """Compare one chat with what was asked in it.

    ``unsure`` are messages of which nobody told the bot that they were made, with the reason, ``excused`` the words
    whose answer it may not send again.
    """
    shown = chat.shows()
    sure = [(number, text) for number, text in shown if number not in unsure]
    found.wrong += [
        f"{chat.name}: a half is left, {number}: {text[-60:]!r}" for number, text in sure if not is_whole(text)
    ]
    order: list[str] = []
    for word in chat.asked:
        whole = [number for number, text in sure if is_whole(text) and word in text]
        perhaps = [number for number, text in shown if is_whole(text) and word in text]
        if len(whole) > 1:
            found.wrong.append(f"{chat.name}: {word} is answered {len(whole)} times: {whole}")
        if perhaps:
            order.append((whole or perhaps)[0])
        elif word in excused:
            found.figures[LOST] += 1
        else:
            found.wrong.append(f"{chat.name}: {word} is not answered")
    if order != sorted(order, key=int):
        found.wrong.append(f"{chat.name}: answers are out of order: {order}")
    found.figures["messages"] += len(chat.asked)
    found.figures["answers"] += len(set(order))
    for number, _ in shown:
        if number in unsure and number not in order:
            found.figures[f"strays after {unsure[number]}"] += 1


def judge_journal(remains: Remains, chats: Iterable[Chat], found: Verdict) -> None:
    """Every message that was for the bot is one line, and has one answer; nothing waits."""
    lines: dict[str, Counter[str]] = {"user": Counter(), "bot": Counter()}
    for role, text in remains.rows("SELECT role, text FROM journal"):
        lines[role].update(set(words(text)))
    for chat in chats:
        for word in chat.asked:
            if (heard := lines["user"][word]) != 1:
                found.wrong.append(f"{chat.name}: {word} is {heard} lines of the journal")
            if (given := lines["bot"][word]) != 1:
                found.wrong.append(f"{chat.name}: the journal holds {given} answers to {word}")
        found.wrong += [f"{chat.name}: {word} was for others" for word in chat.aside if lines["user"][word]]
    if waiting := remains.rows("SELECT * FROM waiting"):
        found.wrong.append(f"still waiting: {waiting}")
    if remains.rows("PRAGMA integrity_check") != [("ok",)]:
        found.wrong.append("the file is damaged")


def judge_log(remains: Remains, secrets: Iterable[str], found: Verdict) -> None:
    """No traceback, no secret and no words of people; and what may be lost is told."""
    log = remains.log()
    told = log + remains.said_aloud()
    for text in ("Traceback", "kumquat", *secrets):
        if (line := next((line for line in told.splitlines() if text in line), None)) is not None:
            found.wrong.append(f"the log holds {text!r}: {line[:300]}")
    found.figures["log: a reply may not have arrived"] = log.count("may not have arrived")
    found.figures["log: a frame was lost"] = log.count("A frame of an answer was lost")
    if found.figures[LOST] and not found.figures["log: a reply may not have arrived"]:
        found.wrong.append("answers are lost and the log does not say so")
    if found.figures[f"strays after {SILENCE}"] > len(
        re.findall("A frame of an answer was lost|may not have arr", log)
    ):
        found.wrong.append("beginnings are left and the log does not say so")


def words(text: str) -> list[str]:
    """The words of messages in a text."""
    return WORD.findall(text)


def _rows(address: str, sql: str) -> list[tuple[Any, ...]]:
    with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(address, uri=True)) as file:
        return list(file.execute(sql))
    return []


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
