"""What must be true of the data folder whenever the program is at rest, however often it was killed before."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final

from memory import DATABASE_NAME, DatabaseError, own_backups
from memory.backups import verify as look_through
from memory.model import SEQ_BITS
from tests.crash.people import WORD, Statement
from tests.faults_verdict import Remains

ENTRIES: Final = ("profile", "timeline", "facts")
LEDGER: Final = "recollect.ledger"
"""What was erased, by numbers: it is kept with the backups, for one that is restored."""
SAID: Final = (
    "SELECT j.role, c.key, a.user_id, j.text, j.platform_id, j.hidden_by, j.set_aside, j.id FROM journal j"
    f" JOIN chats c ON c.no = j.chat JOIN accounts a ON a.no = j.id >> {SEQ_BITS}"
)
NEVER: Final = (
    ("SELECT * FROM waiting", "still waits for an answer"),
    ("SELECT id, set_aside FROM journal WHERE set_aside IS NOT NULL", "was set aside"),
    ("SELECT e.entry FROM citations e WHERE NOT EXISTS (SELECT 1 FROM journal WHERE id = e.message)", "cites nothing"),
    ("PRAGMA foreign_key_check", "points at no row"),
    ("SELECT id FROM deletions WHERE erased_at IS NULL AND undone_at IS NULL AND erase_at < {now}", "is not erased"),
    ("SELECT id FROM notices WHERE sent_at IS NULL", "is a receipt that nobody got"),
    ("SELECT part_of FROM chunks WHERE part_of NOT IN ({all})", "is a piece of nothing"),
    ("SELECT row FROM also_hidden WHERE deletion NOT IN (SELECT id FROM deletions WHERE erased_at IS NULL)", "hangs"),
    ("SELECT answers FROM journal WHERE answers IS NOT NULL AND answers NOT IN (SELECT id FROM journal)", "is no line"),
    ("SELECT name FROM job_runs WHERE failures > 0", "is a job that failed"),
    *((f"SELECT id FROM {table} WHERE id NOT IN (SELECT entry FROM citations)", "cites nothing") for table in ENTRIES),
    *(
        (f"SELECT id FROM {table} WHERE successor IS NOT NULL AND successor NOT IN ({{all}})", "has no successor")
        for table in ENTRIES
    ),
)
"""What there is never at rest, and what to say of it. ``now`` are stamps, ``all`` the ids of everything with words."""
RESTING: Final = (
    "SELECT * FROM session_members WHERE waiting = 1 OR attempts != 0 OR failed IS NOT NULL",
    "is a session that was not distilled",
)
"""The same, when every session is over."""


class Folder(Remains):
    """The data folder, compared with what must be in it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.data = folder / "data"
        self.copies = folder / "copies"

    def acknowledged(self, waiting: Iterable[dict[str, Any]], said: Sequence[tuple[int, int]]) -> list[str]:
        """Which messages (chat, number) the platform was told of as handled, that no line is of.

        Read from a copy, right after a kill: a look must not tidy up. ``waiting`` are the platform's updates.
        """
        unconfirmed = {
            (update["message"]["chat"]["id"], update["message"]["message_id"])
            for update in waiting
            if "message" in update
        }
        lines = {(key, number) for key, number in self.of_a_copy(_NUMBERS)}
        return [
            f"message {number} of chat {chat} was acknowledged and is not in the journal"
            for chat, number in said
            if (chat, number) not in unconfirmed and (_key(chat), str(number)) not in lines
        ]

    def of_a_copy(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of the file as a kill has left it; none when there is no such table."""
        source = self.data / DATABASE_NAME
        copy = self.data.parent / "left.db"
        for end in ("", "-wal", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(f"{source}{end}", f"{copy}{end}")
        try:
            with contextlib.closing(sqlite3.connect(copy)) as file:
                return list(file.execute(sql))
        except sqlite3.OperationalError:
            return []
        finally:
            for end in ("", "-wal", "-shm", "-journal"):
                Path(f"{copy}{end}").unlink(missing_ok=True)

    def known(self, words: Iterable[str]) -> set[str]:
        """Which of these words a memory holds already."""
        wanted = set(words)
        return {found for (text,) in self.rows("SELECT text FROM facts") for found in WORD.findall(text)} & wanted

    def backups(self) -> list[Path]:
        """The backups there are."""
        return own_backups(self.copies)

    def holding(self, word: str, *, but: AbstractSet[Path]) -> list[str]:
        """Which files hold a word, wherever in them, ``but`` for some."""
        marker = word.encode()
        files = sorted(file for file in set(self.data.parent.rglob("*")) - but if file.is_file())
        return [file.name for file in files if marker in _bytes(file)]


def judge_copies(folder: Folder, said: Sequence[Statement]) -> list[str]:
    """Every file that bears the name of a backup is whole; the newest one holds all that was said."""
    wrong = []
    for file in own_backups(folder.copies):
        try:
            made = look_through(file)
        except DatabaseError as error:
            wrong.append(f"a backup is not whole: {error}")
        else:
            wrong += [f"{file.name} has no checksum"] * (not made.sealed)
    known = {name for file in own_backups(folder.copies) for name in (file.name, f"{file.name}.sha256")}
    known.add(LEDGER)
    wrong += [f"{file.name} was left beside the backups" for file in folder.copies.iterdir() if file.name not in known]
    for file in own_backups(folder.copies)[-1:]:
        with contextlib.closing(sqlite3.connect(file)) as newest:
            held = {found for (text,) in newest.execute("SELECT text FROM journal") for found in WORD.findall(text)}
        missing = {statement.word for statement in said if statement.state != "erased"} - held
        wrong += [f"the newest backup lacks {sorted(missing)}"] * bool(missing)
    return wrong


_NUMBERS: Final = "SELECT c.key, j.platform_id FROM journal j JOIN chats c ON c.no = j.chat WHERE j.role = 'user'"


def judge(folder: Folder, said: Sequence[Statement], *, now: int, over: bool, forgetful: set[int]) -> list[str]:
    """Everything in the folder that is not as it must be; ``over`` tells that every session has ended.

    ``forgetful`` are the people who have forgotten something: answers that rested on it went with it.
    """
    wrong = [f"the file is damaged: {row}" for row in folder.rows("PRAGMA integrity_check") if row != ("ok",)]
    everything = " UNION ALL ".join(f"SELECT id FROM {table}" for table in ("journal", *ENTRIES))
    for sql, what in (*NEVER, *([RESTING] if over else [])):
        rows = folder.rows(sql.format(now=now, all=everything))
        wrong += [f"{row} {what}" for row in rows[:3]]
    wrong += _of_lines(folder, said, forgetful)
    wrong += _of_memories(folder, said)
    for statement in said:
        if statement.state == "erased" and (files := folder.holding(statement.word, but=statement.older)):
            wrong.append(f"{statement.word} is erased and stands in {files}")
    left = [file.name for file in folder.data.iterdir() if file.name.endswith((".new", ".bak", "-journal"))]
    wrong += [f"{name} was left behind" for name in left]
    log = folder.log() + folder.said_aloud()
    wrong += [f"the log tells of {line[:200]!r}" for line in log.splitlines() if WORD.search(line)]
    _, traceback, rest = log.partition("Traceback")
    wrong += [f"the log holds a traceback{rest[:3000]}"] * bool(traceback)
    return wrong


def _of_lines(folder: Folder, said: Sequence[Statement], forgetful: set[int]) -> list[str]:
    lines: Counter[tuple[str, str, str, bool]] = Counter()
    for role, key, _, text, _, hidden, _, _ in folder.rows(SAID):
        lines.update((role, key, found, hidden is not None) for found in set(WORD.findall(text)))
    wrong = []
    for statement in said:
        for role in ("user", "bot"):
            shown, hidden = (lines[role, _key(statement.chat), statement.word, how] for how in (False, True))
            count = 2 if statement.twice else 1
            wanted = {"kept": (count, 0), "hidden": (0, count), "erased": (0, 0)}[statement.state]
            may_be_gone = role == "bot" and statement.person in forgetful
            if (shown, hidden) != wanted and not (may_be_gone and shown <= wanted[0] and hidden <= wanted[1]):
                wrong.append(
                    f"{statement.word} ({statement.state}): {shown} lines of the {role} in chat {statement.chat} are"
                    f" shown and {hidden} hidden"
                )
    return wrong


def _of_memories(folder: Folder, said: Sequence[Statement]) -> list[str]:
    rows: dict[str, list[tuple[Any, ...]]] = {}
    cited = "(SELECT count(*) FROM citations c WHERE c.entry = e.id)"
    for table in ENTRIES:
        sql = f"SELECT text, retired_at IS NULL, hidden_by IS NULL, {cited}, reason, '{table}' FROM {table} e"
        for text, *row in folder.rows(sql):
            for found in set(WORD.findall(text)):
                rows.setdefault(found, []).append(tuple(row))
    return [fault for statement in said for fault in _of_one(statement, sorted(rows.get(statement.word, [])))]


def _of_one(statement: Statement, rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Compare the memories of one statement: live, shown, number of citations, reason, table."""
    shown = statement.state == "kept"
    table = "profile" if statement.rule else "facts"
    live = [row for row in rows if row[0]]
    if statement.state == "erased":
        wanted = not rows
    elif statement.merged:
        wanted = len(rows) == 2 and [row[:3] for row in live] == [(1, int(shown), 2)]
    else:
        wanted = [(*row[:3], row[4]) for row in rows] == [(1, int(shown), 1, table)] * (1 + statement.twice)
    return [] if wanted else [f"{statement} is remembered as {list(rows)}"]


def _key(chat: int) -> str:
    """The key of a chat of the platform."""
    return f"dm:{chat}" if chat > 0 else f"group:{chat}"


def _bytes(file: Path) -> bytes:
    with contextlib.suppress(FileNotFoundError):
        return file.read_bytes()
    return b""
