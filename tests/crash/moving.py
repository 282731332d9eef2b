"""An old file is opened by today's bot, which is killed while it migrates it: it is a whole one of some version."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from memory import DATABASE_NAME, opening
from tests.crash.instants import Event, Instant, Phase
from tests.crash.story import Kill, Story
from tests.crash.verdict import Folder
from tests.faults import Nursery

LINES: Final = 300
"""Lines of the old file, each with a memory: enough that a copy of it takes some time."""
FILLED: Final = (
    "INSERT INTO accounts (platform, user_id, name, created_at, next_seq) VALUES ('telegram', '1001', 'Lin', 0, 9999)",
    "INSERT INTO chats (platform, key, private, created_at) VALUES ('telegram', 'dm:1001', 1, 0)",
    "INSERT INTO sessions (chat, started_at, last_at) VALUES (1, 0, 5)",
    "INSERT INTO session_members (session, account, distilled_to) VALUES (1, 1, 33554431)",
    *(
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {LINES}) INSERT INTO {rows} FROM n"
        for rows in (
            "journal SELECT 16777216 + 2 * i, 1, 1, 'user', 'Lin', i, 'A plum of ' || i, 'said', i, 0, 9, x'', NULL",
            f"facts SELECT 16777217 + 2 * i, 'A plum of ' || i, x'', 'en', 'self', 0, 'user', 1, 1, i, i{', NULL' * 6}",
        )
    ),
    "INSERT INTO citations SELECT id, id - 1, text, said_at FROM facts",
)
"""A file as version 1 wrote it."""
KEPT: Final = (
    "SELECT id, role, speaker, at, text, kind, platform_id FROM journal ORDER BY id",
    "SELECT id, text, language, subject, source, said_at, created_at FROM facts ORDER BY id",
    "SELECT * FROM citations ORDER BY entry",
    "SELECT no, platform, user_id, name FROM accounts",
)
SCHEMA: Final = "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"


@contextlib.contextmanager
def _of_version(version: int) -> Iterator[None]:
    steps = opening.migrations()[:version]
    with patch.object(opening, "migrations", lambda: steps):
        opening._expected.cache_clear()  # a file of the newest version was another one before, and will be after
        yield
    opening._expected.cache_clear()


def schema_of(version: int, folder: Path) -> list[Any]:
    """The tables of a file that is new with this version."""
    path = folder / f"schema{version}.db"
    if not path.exists():
        with _of_version(version):
            opening.prepare(path)
    with contextlib.closing(sqlite3.connect(path)) as file:
        return file.execute(SCHEMA).fetchall()


def make_old(path: Path, version: int, mode: str) -> list[Any]:
    """Write a filled file of an old version, with a log or without; returns what has to be kept of it."""
    with _of_version(1):
        opening.prepare(path)
    with contextlib.closing(sqlite3.connect(path)) as file:
        for statement in FILLED:
            file.execute(statement)
        file.commit()
    with _of_version(version):
        opening.prepare(path)
    for copy in path.parent.glob("*.bak"):
        copy.unlink()
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA journal_mode = {mode}").fetchall()
        return [file.execute(sql).fetchall() for sql in KEPT]


@dataclass
class Migration:
    """One old file, one kill."""

    folder: Path
    seed: int
    nursery: Nursery
    wrong: list[str] = field(default_factory=list)

    async def strike(self) -> Kill:
        """Kill the bot while it opens the file, look at what it left, and let it open that again."""
        dice = random.Random(self.seed)
        newest = len(opening.migrations())
        version = dice.randint(1, newest - 1)
        story = Story(self.folder, self.seed, self.nursery)
        story.remains.data.mkdir()
        path = story.remains.data / DATABASE_NAME
        before = make_old(path, version, dice.choice(("WAL", "DELETE")))
        instant = _instant(dice, newest - version)
        story.agreement.arm(instant)
        async with story.begun():
            trouble = await story.rest()
            hit = trouble == ["it ended"]
            self.wrong += [] if hit else trouble
            story.agreement.arm(None)
            story.bot.kill()
            await story.bot.ending
            self._look(story.remains, version, before, killed=True)
            await story.bot.start()
            self.wrong += await story.rest()
            self._look(story.remains, newest, before, killed=False)
        self.wrong += [f"it ended with {story.bot.codes}"] * (story.bot.codes != [0])
        return Kill("migrating", instant, hit, tuple(self.wrong))

    def _look(self, folder: Folder, least: int, before: list[Any], *, killed: bool) -> None:
        """Compare the file with what its version says, and with what it held."""
        # A copy of a file that is in use takes it and its log at two moments.
        rows = folder.of_a_copy if killed else folder.rows
        ((version,),) = rows("PRAGMA user_version")
        when = "after the kill" if killed else "in the end"
        found = [rows(sql) for sql in (SCHEMA, "PRAGMA integrity_check", "PRAGMA foreign_key_check")]
        if version < least or found != [schema_of(version, self.folder), [("ok",)], []]:
            self.wrong.append(f"{when} the file is no whole one of version {version}, at least {least}: {found[1:]}")
        if [rows(sql) for sql in KEPT] != before:
            self.wrong.append(f"{when} rows are other ones than before")
        if not killed:
            self.wrong += [f"{name} is a copy that is not whole" for name in _halves(folder.data, before)]


def _halves(folder: Path, before: list[Any]) -> list[str]:
    """The copies beside the file that hold something else than the file did."""
    halves = []
    for copy in folder.glob("*.bak"):
        with contextlib.closing(sqlite3.connect(copy)) as file:
            if [file.execute(sql).fetchall() for sql in KEPT] != before:
                halves.append(copy.name)
    return halves


def _instant(dice: random.Random, steps: int) -> Instant:
    match dice.choice(("statement", "commit", "during", "file", "writing", "later")):
        case "statement":
            return Instant(Phase.OPENING, Event.STATEMENT, dice.randint(1, 5 * steps))
        case "commit":
            return Instant(Phase.OPENING, Event.COMMIT, dice.randint(1, steps))
        case "during":
            return Instant(Phase.OPENING, Event.COMMIT, dice.randint(1, steps), dice.randint(1, 3_000))
        case "file":
            return Instant(Phase.OPENING, Event.FILE, dice.randint(1, 3))
        case "writing":
            return Instant(Phase.OPENING, Event.FILE, dice.randint(1, 3), dice.randint(1, 10_000))
        case _:
            return Instant(Phase.OPENING, Event.STATEMENT, 1, dice.randint(1, 60_000))
