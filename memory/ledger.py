"""What a restored backup has to know: how each account stands in what must not come back, in numbers without a word.

A file beside the database, a line an account, added whenever something is erased, hidden or taken back, before the
person is told. It outlives the database: a backup that is restored after that was lost forgets again what was forgotten
since, and opens to nobody what was closed since.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from memory import engine
from memory.accounts import Accounts
from memory.db import Database
from memory.erasures import Erasures, Range
from memory.model import EVERYWHERE, Account
from memory.watching import ADMISSIONS

log = logging.getLogger(__name__)

ENDING: Final = ".ledger"
"""What stands for ".db" in the name of the file."""
GROWTH: Final = 4
LEAST_BYTES: Final = 1_000_000
"""A file of this size that has grown this many times is written anew with the newest line of each account alone."""
_WORDY: Final = ("journal", "profile", "timeline", "facts")
COUNTED: Final = ("accounts", "chats", "sessions", "models", "persons")
"""Tables whose numbers are never given out twice."""

Key = tuple[int, int]
"""An account's number and the microsecond it was made: the same in every copy of one file, and in no other file."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How an account stands: ids and times in microseconds only.

    ``next`` is the number its next row gets; ``erased`` and ``hidden`` are ranges of its rows (the latter of deletions
    that may still be undone); ``open`` its memories that may be used everywhere; ``paused`` and ``left`` numbers of
    chats; ``agreed`` its word about a matter and when; ``linked`` the accounts that are one person with it; ``heard``
    the newest message of it in each chat, as the platform numbers it.
    """

    no: int
    since: int
    next: int
    erased: tuple[Range, ...] = ()
    hidden: tuple[Range, ...] = ()
    open: tuple[int, ...] = ()
    paused: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    agreed: Mapping[str, tuple[int | None, int]] = field(default_factory=dict)
    linked: tuple[int, ...] = ()
    heard: Mapping[int, str] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """What it is found by."""
        return self.no, self.since

    def later(self, other: Standing) -> Standing:
        """The newer of two (``other`` on a tie), with everything that either knows as erased."""
        newer, older = (self, other) if self.next > other.next else (other, self)
        erased = tuple(sorted({*newer.erased, *older.erased}))
        return replace(newer, erased=erased)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of every account, and the highest number that each counted table has given out.

    ``allowed`` are who may talk to the bot, as hashes of their names (:func:`admission`), and whether as an admin; None
    where nobody has told.
    """

    standings: Mapping[Key, Standing] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    allowed: Mapping[str, bool] | None = None

    def joined(self, later: Known) -> Known:
        """Together with what was written down later."""
        standings = dict(self.standings)
        for key, standing in later.standings.items():
            standings[key] = standings[key].later(standing) if key in standings else standing
        names = {*self.counters, *later.counters}
        counters = {n: max(self.counters.get(n, 0), later.counters.get(n, 0)) for n in names}
        return Known(standings, counters, self.allowed if later.allowed is None else later.allowed)

    def without_hidden(self) -> Known:
        """What is erased for good alone."""
        return Known({key: replace(each, hidden=()) for key, each in self.standings.items()})


def ledger_of(database: Path) -> Path:
    """The file beside a database."""
    return database.with_suffix(ENDING)


def read(file: Path) -> Known:
    """What a file tells; nothing if there is none. A line that was cut off by a stop tells nothing."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return Known()
    standings: dict[Key, Standing] = {}
    counters: dict[str, int] = {}
    allowed: dict[str, bool] | None = None
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
            if "counters" in told:
                for name, value in told["counters"].items():
                    counters[name] = max(counters.get(name, 0), int(value))
            elif "allowed" in told:
                allowed = {str(name): bool(admin) for name, admin in told["allowed"].items()}
            else:
                standing = _standing(told)
                before = standings.get(standing.key)
                standings[standing.key] = standing if before is None else before.later(standing)
        except (ValueError, KeyError, TypeError):
            log.warning("line %d of %s cannot be read", number, file)
    return Known(standings, counters, allowed)


async def standing(db: Database, owner: Account) -> Standing:
    """How an account stands in a database now, as of one moment."""

    async def reading() -> Standing:
        (row,) = await db.fetch("SELECT created_at, next_seq FROM accounts WHERE no = ?", (owner.no,))
        within = {"lo": owner.first_id, "hi": owner.last_id, "no": owner.no}

        async def numbers(sql: str) -> tuple[int, ...]:
            return tuple(int(found[0]) for found in await db.fetch(sql, within))

        pending = await numbers("SELECT 1 FROM deletions WHERE undone_at IS NULL AND erased_at IS NULL LIMIT 1")
        opened = " UNION ALL ".join(
            f"SELECT id FROM {table} WHERE id BETWEEN :lo AND :hi AND audience = {EVERYWHERE}"
            for table in ("profile", "timeline", "facts")
        )
        concealed = " UNION ALL ".join(
            f"SELECT id FROM {table} WHERE id BETWEEN :lo AND :hi AND hidden_by IS NOT NULL" for table in _WORDY
        )
        consents = await db.fetch("SELECT matter, answer, at FROM consents WHERE account = :no", within)
        heard = await db.fetch(
            "SELECT chat, max(CAST(platform_id AS INTEGER)) AS newest FROM journal WHERE id BETWEEN :lo AND :hi"
            " AND role = 'user' AND platform_id != '' AND platform_id NOT GLOB '*[^0-9]*' GROUP BY chat",
            within,
        )
        return Standing(
            owner.no,
            int(row["created_at"]),
            int(row["next_seq"]),
            tuple(await Erasures(db).ranges(owner)),
            runs(await numbers(f"{concealed} ORDER BY id")) if pending else (),
            await numbers(f"{opened} ORDER BY id"),
            await numbers("SELECT place FROM pauses WHERE account = :no ORDER BY place"),
            await numbers("SELECT chat FROM departures WHERE account = :no ORDER BY chat"),
            {row["matter"]: (row["answer"], int(row["at"])) for row in consents},
            await numbers(
                "SELECT o.account FROM links m JOIN links o ON o.person = m.person AND o.account != m.account"
                " WHERE m.account = :no ORDER BY o.account"
            ),
            {int(row["chat"]): str(row["newest"]) for row in heard},
        )

    return await db.together(reading)


async def counters(db: Database) -> dict[str, int]:
    """The highest number that each counted table has given out; nobody's memory."""
    rows = await db.fetch("SELECT name, seq FROM sqlite_sequence")
    return {row["name"]: int(row["seq"]) for row in rows if row["name"] in COUNTED}


async def admitted(db: Database) -> dict[str, bool]:
    """Who may talk to the bot; nobody's memory."""
    rows = await db.fetch("SELECT name, kind, admin FROM allowed")
    return {admission(row["name"], row["kind"]): bool(row["admin"]) for row in rows}


def admission(name: str, kind: str) -> str:
    """What a person or a group that may talk is recognised by."""
    return blake2b(f"{kind} {name}".encode(), digest_size=12).hexdigest()


async def all_known(db: Database) -> Known:
    """How every account stands in a database now."""
    standings = [await standing(db, owner) for owner in await Accounts(db).all()]
    return Known({each.key: each for each in standings}, await counters(db), await admitted(db))


class Ledger:
    """Writes down how accounts stand, whenever that changes. Opened with the database, and goes with it."""

    def __init__(self, db: Database, accounts: Accounts, *, copy_in: Path | None = None) -> None:
        """In the folder ``copy_in``, where the backups are, a second one is kept: it outlives the disk of the first."""
        self._db = db
        self._accounts = accounts
        self._file = ledger_of(db.path)
        self._copy = None if copy_in is None else copy_in / self._file.name
        self._lock = asyncio.Lock()
        self._whole = False
        self._size = 0

    async def open(self) -> None:
        """Be told from now on. What happened before is written by :meth:`settle`."""
        await self._db.watch(self.flush)

    async def flush(self) -> None:
        """Write how the accounts stand that were touched since the last time; safe on the disk when this returns."""
        async with self._lock:
            numbers, written = self._db.touched(), False
            try:
                chosen = numbers - {ADMISSIONS}
                if ADMISSIONS in numbers:
                    # By an account of it a restore sees that the list is of the same memory.
                    chosen.update((await self._accounts.numbers())[:1])
                owners = [await self._accounts.numbered(number) for number in sorted(chosen)]
                lines = [_told(await standing(self._db, owner)) for owner in owners]
                if ADMISSIONS in numbers:
                    lines.append(json.dumps({"allowed": await admitted(self._db)}))
                if lines:
                    lines.append(json.dumps({"counters": await counters(self._db)}))
                    await asyncio.to_thread(self._append, lines)
                written = True
            except engine.BROKEN:
                # The person's wish is carried out all the same; the next write, or the housekeeping, tries again.
                log.exception("%s could not be written: what was erased last may come back with a backup", self._file)
            finally:
                if not written:
                    self._db.touch(numbers)

    async def settle(self) -> int:
        """Write the file anew, once after each start and when it has grown; returns how many accounts are in it.

        What a stop left unwritten is in it, and what it knows of accounts that this database does not have stays.
        """
        if self._whole:
            if self._db.any_touched:
                await self.flush()
            return 0
        async with self._lock:
            self._db.touched()
            now = await all_known(self._db)
            known = (await asyncio.to_thread(read, self._file)).joined(now)
            await asyncio.to_thread(self._rewrite, known)
        return len(known.standings)

    def _append(self, lines: Sequence[str]) -> None:
        data = "".join(f"\n{line}" for line in lines).encode() + b"\n"
        if _added(self._file, data) > max(LEAST_BYTES, GROWTH * self._size):
            self._whole = False
        self._beside(lambda file: _added(file, data))

    def _rewrite(self, known: Known) -> None:
        self._size = write(self._file, known)
        self._whole = True
        self._beside(lambda file: write(file, read(file).joined(known)))

    def _beside(self, put: Callable[[Path], object]) -> None:
        """Do the same to the copy beside the backups, if that folder is there; a failure is made up for later."""
        if self._copy is None or not self._copy.parent.is_dir():
            return
        try:
            put(self._copy)
        except OSError:
            log.warning("%s could not be written; it is tried again", self._copy, exc_info=True)
            self._whole = False


def _added(file: Path, data: bytes) -> int:
    """Add to a file, safe on the disk when this returns; returns its size."""
    # A full disk may take a part without a word; the buffer goes on until all is written, or raises.
    with os.fdopen(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "ab") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
        return os.fstat(opened.fileno()).st_size


def write(file: Path, known: Known) -> int:
    """Write a ledger anew, all at once; returns its bytes."""
    lines = [*map(_told, known.standings.values()), json.dumps({"counters": known.counters})]
    if known.allowed is not None:
        lines.append(json.dumps({"allowed": known.allowed}))
    data = "\n".join(lines).encode() + b"\n"
    part = file.with_name(f".{file.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
    part.replace(file)
    return len(data)


def runs(numbers: Iterable[int]) -> tuple[Range, ...]:
    """Numbers in order as ranges without a gap."""
    made: list[Range] = []
    for number in numbers:
        if made and number == made[-1].last + 1:
            made[-1] = Range(made[-1].first, number)
        else:
            made.append(Range(number, number))
    return tuple(made)


def _told(standing: Standing) -> str:
    return json.dumps({name: value for name, value in asdict(standing).items() if value}, separators=(",", ":"))


def _standing(told: Mapping[str, Any]) -> Standing:
    def ranges(name: str) -> tuple[Range, ...]:
        return tuple(Range(int(first), int(last)) for first, last in told.get(name, ()))

    def numbers(name: str) -> tuple[int, ...]:
        return tuple(int(number) for number in told.get(name, ()))

    return Standing(
        int(told["no"]),
        int(told["since"]),
        int(told["next"]),
        ranges("erased"),
        ranges("hidden"),
        numbers("open"),
        numbers("paused"),
        numbers("left"),
        {str(matter): (None if a is None else int(a), int(at)) for matter, (a, at) in told.get("agreed", {}).items()},
        numbers("linked"),
        {int(chat): str(int(newest)) for chat, newest in told.get("heard", {}).items()},
    )
