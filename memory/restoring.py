"""Bringing an older copy of the file up to what was forgotten, closed and taken back since, before anybody reads it.

What is added to a memory since the copy was made is lost; what was taken out of it since stays out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from memory import backups, engine, ledger
from memory.accounts import Accounts
from memory.backups import Backup, BackupError
from memory.clock import stamp
from memory.db import Database, DatabaseError
from memory.echoes import Echoes
from memory.erasing import Erasing
from memory.erasures import Erasures
from memory.holding import HeldError, alone
from memory.ledger import COUNTED, Known, Standing, admission
from memory.model import EVERYWHERE, SEQ_BITS, Account
from memory.opening import inspect, migrations
from memory.persons import Persons
from memory.ports import Clock
from memory.private import sync
from memory.sessions import Sessions
from memory.stores import Stores

MARGIN: Final = 1 << 18
"""Numbers that are passed over where nobody knows how many were given out since: more than a person uses in years."""
_ENDS: Final = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did. ``known`` tells where it learned what had been forgotten since: "database", "ledger"."""

    backup: Backup
    migrated_from: int | None
    aside: Path | None
    damaged: bool
    known: tuple[str, ...]
    counts: Mapping[str, int] = field(default_factory=dict)


class Reapplying:
    """One database, to which is done again what was done to a later copy of it."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._accounts = Accounts(db)
        stores = Stores.over(db, self._accounts, None, clock)
        self._stores = stores
        self._persons = Persons(db)
        sessions = Sessions(db, timedelta(minutes=30))
        echoes = Echoes(self._accounts, sessions, stores, self._persons, changed=lambda _: None)
        self._erasing = Erasing(db, stores, Erasures(db), echoes)

    async def forget(self, known: Known) -> int:
        """Erase what is known as erased or hidden, and rewrite the file; returns how many rows went."""
        erased = 0
        for owner in await self._accounts.all():
            if (standing := await self._known(owner, known)) is not None:
                erased += await self._forget(owner, standing)
        if erased:
            await self._db.scrub()
        return erased

    async def all(self, known: Known, *, exact: bool) -> Mapping[str, int]:
        """Do again everything that is known; returns counts by what was done.

        Without ``exact`` numbers were given out that nobody knows of: a wide margin is left.
        """
        counts: Counter[str] = Counter()
        now, related = self._clock(), False
        for owner in await self._accounts.all():
            standing = await self._known(owner, known)
            await self._count_on(owner, 0 if standing is None else standing.next, exact=exact)
            if standing is None:
                continue
            related = True
            counts["erased"] += await self._forget(owner, standing)
            async with self._db.transaction():
                counts["kept"] += await self._settle(owner, standing, now=now)
                counts["closed"] += await self._close(owner, standing)
                counts["paused"] += await self._take_over(owner, standing)
                counts["unlinked"] += await self._unlink(owner, standing)
                await self._heard(owner, standing, now=now)
        async with self._db.transaction():
            if related and known.allowed is not None:
                counts["shut"] = await self._shut(known.allowed)
            counts["waiting"] = await self._db.execute("DELETE FROM waiting")
            for table in COUNTED:
                await self._count_table_on(table, known.counters.get(table, 0), exact=exact)
        if counts["erased"]:
            await self._db.scrub()
        return counts

    async def _shut(self, allowed: Mapping[str, bool]) -> int:
        """Have nobody talk to the bot, or run it, who was shut out since; codes that strangers were shown are void."""
        shut = 0
        for row in await self._db.fetch("SELECT name, kind, admin FROM allowed"):
            now = allowed.get(admission(row["name"], row["kind"]))
            which = (row["name"], row["kind"])
            if now is None:
                shut += await self._db.execute("DELETE FROM allowed WHERE name = ? AND kind = ?", which)
            elif row["admin"] and not now:
                shut += await self._db.execute("UPDATE allowed SET admin = 0 WHERE name = ? AND kind = ?", which)
        await self._db.execute("DELETE FROM pairing WHERE refused = 0")
        return shut

    async def _known(self, owner: Account, known: Known) -> Standing | None:
        (row,) = await self._db.fetch("SELECT created_at FROM accounts WHERE no = ?", (owner.no,))
        return known.standings.get((owner.no, int(row["created_at"])))

    async def _forget(self, owner: Account, standing: Standing) -> int:
        """Erase what was erased, or was about to be: nobody can take that back in a copy that never hid it."""
        ranges = [*standing.erased, *standing.hidden]
        return await self._erasing.again(owner, ranges, now=self._clock(), scrub=False)

    async def _settle(self, owner: Account, standing: Standing, *, now: datetime) -> int:
        """Deletions the copy waits to carry out are carried out, or were undone; returns how many rows are back."""
        shown = 0
        pending = await self._db.fetch(
            "SELECT id FROM deletions WHERE id BETWEEN ? AND ? AND undone_at IS NULL AND erased_at IS NULL",
            (owner.first_id, owner.first_id + standing.next - 1),
        )
        for (deletion,) in [tuple(row) for row in pending]:
            back = await self._stores.journal.unhide(owner, deletion)
            back += sum([await store.unhide(owner, deletion) for store in self._stores.entries])
            column = "undone_at" if back else "erased_at"
            await self._db.execute(f"UPDATE deletions SET {column} = ? WHERE id = ?", (stamp(now), deletion))
            shown += back
        return shown

    async def _close(self, owner: Account, standing: Standing) -> int:
        """Have what is open in the copy, and was closed since, be used only where it was said."""
        closed = 0
        for store in self._stores.entries:
            for entry in await store.history(owner):
                if entry.provenance.audience == EVERYWHERE and entry.id not in standing.open:
                    closed += await store.unshare(owner, entry.id)
        return closed

    async def _take_over(self, owner: Account, standing: Standing) -> int:
        """Pauses, consents and departures as they were last; returns how many pauses and consents changed."""
        before = await self._stands(owner)
        await self._db.execute("DELETE FROM pauses WHERE account = ?", (owner.no,))
        await self._db.executemany(
            "INSERT INTO pauses (account, place, since) SELECT ?, no, ? FROM chats WHERE no = ?",
            [(owner.no, stamp(self._clock()), place) for place in standing.paused],
        )
        await self._db.execute("DELETE FROM consents WHERE account = ?", (owner.no,))
        await self._db.executemany(
            "INSERT INTO consents (account, matter, answer, at) VALUES (?, ?, ?, ?)",
            [(owner.no, matter, answer, at) for matter, (answer, at) in standing.agreed.items()],
        )
        await self._db.executemany(
            "INSERT OR IGNORE INTO departures (chat, account, at) SELECT no, ?, ? FROM chats WHERE no = ?",
            [(owner.no, stamp(self._clock()), chat) for chat in standing.left],
        )
        return len(before ^ await self._stands(owner))

    async def _stands(self, owner: Account) -> set[tuple[object, ...]]:
        rows = await self._db.fetch(
            "SELECT 'pause', place, 0 FROM pauses WHERE account = :no"
            " UNION ALL SELECT 'consent', matter, answer FROM consents WHERE account = :no",
            {"no": owner.no},
        )
        return {tuple(row) for row in rows}

    async def _unlink(self, owner: Account, standing: Standing) -> int:
        """Take back a link that was taken back since; links that were made since are not made again."""
        others = await self._persons.others(owner)
        if not others or set(others) <= set(standing.linked):
            return 0
        await self._persons.part(owner)
        return 1

    async def _heard(self, owner: Account, standing: Standing, *, now: datetime) -> None:
        """Leave a mark without words of the newest message heard in each chat.

        A platform that tells again what was said since the copy was made would tell what was forgotten, too.
        """
        for chat, newest in standing.heard.items():
            rows = await self._db.fetch("SELECT no FROM sessions WHERE chat = ? ORDER BY no DESC LIMIT 1", (chat,))
            if not rows:
                continue
            (id_,) = await self._accounts.next_ids(owner)
            await self._db.execute(
                "INSERT OR IGNORE INTO journal (id, chat, session, role, speaker, at, text, kind, platform_id, tokens,"
                " text_hash) VALUES (?, ?, ?, 'user', '', ?, '', 'command', ?, 0, x'')",
                (id_, chat, int(rows[0]["no"]), stamp(now), newest),
            )

    async def _count_on(self, owner: Account, upto: int, *, exact: bool) -> None:
        """See to it that the owner's next number is one that was never given out."""
        margin = 0 if exact else MARGIN
        await self._db.execute(
            "UPDATE accounts SET next_seq = max(next_seq, ?) + ? WHERE no = ? AND max(next_seq, ?) + ? < ?",
            (upto, margin, owner.no, upto, margin, 1 << SEQ_BITS),
        )

    async def _count_table_on(self, table: str, upto: int, *, exact: bool) -> None:
        await self._db.execute(
            "INSERT INTO sqlite_sequence (name, seq) SELECT :table, 0 WHERE NOT EXISTS"
            " (SELECT 1 FROM sqlite_sequence WHERE name = :table)",
            {"table": table},
        )
        await self._db.execute(
            "UPDATE sqlite_sequence SET seq = max(seq, ?) + ? WHERE name = ?",
            (upto, 0 if exact else MARGIN, table),
        )


async def restore(file: Path, database: Path, *, clock: Clock, folder_of_backups: Path | None = None) -> Restored:
    """Put the backup ``file`` in the place of ``database``; what was there is kept aside.

    What was forgotten since is taken out of the bot's own backups in ``folder_of_backups``, too.

    Whatever goes wrong, the database is as before until the new one is whole, checked and up to what was forgotten.
    Raises BackupError when the file is no backup or the folder is in use, DatabaseError when it cannot be written.
    """
    found = await asyncio.to_thread(backups.verify, file)
    folder = database.parent
    try:
        await asyncio.to_thread(_look_for_room, found, database)
        with alone(folder), _workshop(folder) as work:
            done = await _restored(found, database, work, clock=clock)
        if folder_of_backups is not None:
            await _clean_all(folder_of_backups, database, clock=clock)
    except HeldError:
        raise BackupError(f"{folder} is in use: stop the bot (and every chat) first, then restore.") from None
    except OSError as error:
        raise BackupError(f"{folder} could not be written ({error}). The database is as before.") from error
    return done


async def _clean_all(folder: Path, database: Path, *, clock: Clock) -> None:
    known = await asyncio.to_thread(ledger.read, ledger.ledger_of(database))
    for own in await asyncio.to_thread(backups.own, folder):
        if await asyncio.to_thread(backups.condition, own) == "whole":
            await clean(own, known, clock=clock)


def ensure_alone(folder: Path) -> None:
    """Raise DatabaseError when anybody has a database of this folder open."""
    try:
        if folder.is_dir():
            with alone(folder):
                pass
    except HeldError:
        raise DatabaseError(f"{folder} is in use: stop the bot (and every chat) first.") from None


async def _restored(found: Backup, database: Path, work: Path, *, clock: Clock) -> Restored:
    new, old = work / "new" / database.name, work / "old" / database.name
    known = ledger.read(ledger.ledger_of(database)).joined(ledger.read(found.path.with_name(_ledger_name(database))))
    sources = ["ledger"] if known.standings else []
    there, exact = _is_there(database), False
    if there and await _readable(database, old):
        async with opened(old) as db:
            known = known.joined(await ledger.all_known(db))
            await Reapplying(db, clock).forget(known)
        exact = True
        sources.insert(0, "database")
    await asyncio.to_thread(_place, found.path, new)
    async with opened(new) as db:
        counts = await Reapplying(db, clock).all(known, exact=exact)
        known = known.joined(await ledger.all_known(db))
    await asyncio.to_thread(backups.looked_through, new)
    ledger.write(ledger.ledger_of(database), known)
    aside = _set_aside(database, old if exact else None, now=clock()) if there else None
    _take_place(new, database)
    old_schema = found.version if found.version < migrations()[-1][0] else None
    return Restored(found, old_schema, aside, there and not exact, tuple(sources), counts)


async def clean(file: Path, known: Known, *, clock: Clock) -> int:
    """Take out of a backup what was erased since it was made; returns how many rows went, 0 where it holds none of it.

    The backup is as before until a clean one takes its place. Raises BackupError for one that is damaged.
    """
    if not _wants_cleaning(file, known):
        return 0
    with _workshop(file.parent) as work:
        part = work / file.name
        await asyncio.to_thread(_place, file, part)
        async with opened(part) as db:
            erased = await Reapplying(db, clock).forget(known.without_hidden())
        await asyncio.to_thread(backups.seal_again, part, file)
    return erased


@contextlib.asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Database]:
    """A copy of a database, of the newest schema, that is whole in one file afterwards."""
    db = await Database.open(path)
    try:
        yield db
    finally:
        await db.close()


def _wants_cleaning(file: Path, known: Known) -> bool:
    """Whether anything is known as erased that a backup does not know as erased. Raises BackupError."""
    try:
        if inspect(file) < migrations()[-1][0]:
            return True
        with contextlib.closing(engine.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as held:
            accounts = {(int(no), int(since)) for no, since in held.execute("SELECT no, created_at FROM accounts")}
            erased = {(int(first), int(last)) for first, last in held.execute("SELECT first, last FROM erased")}
    except engine.ERROR as error:
        raise BackupError(f"{file} cannot be read ({error}).") from error
    wanted = {(r.first, r.last) for key, each in known.standings.items() if key in accounts for r in each.erased}
    return not wanted <= erased


async def _readable(database: Path, copy: Path) -> bool:
    """Copy a database; whether it is whole, so that it tells all that was done to it."""
    try:
        await asyncio.to_thread(_copy_checked, database, copy)
    except DatabaseError:
        return False
    except engine.ERROR:
        return False
    return True


def _copy_checked(database: Path, copy: Path) -> None:
    copy.parent.mkdir(mode=0o700)
    backups.copy_whole(database, copy)
    backups.looked_through(copy)


def _place(file: Path, copy: Path) -> None:
    copy.parent.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    shutil.copyfile(file, copy)


def _is_there(database: Path) -> bool:
    return database.exists()


def _take_place(new: Path, database: Path) -> None:
    """Put the new file in the place of the old one, whose log must not be taken for its own."""
    for end in _ENDS[1:]:
        database.with_name(database.name + end).unlink(missing_ok=True)
    new.replace(database)
    sync(database.parent)


def _set_aside(database: Path, cleaned: Path | None, *, now: datetime) -> Path:
    """Keep what was there under another name: the cleaned copy of it, or the damaged file as it lies there."""
    aside = database.with_name(f"{database.stem}.replaced-{now:%Y%m%dT%H%M%SZ}.db")
    if cleaned is not None:
        cleaned.replace(aside)
        return aside
    for end in _ENDS:
        there = database.with_name(database.name + end)
        if there.exists():
            shutil.copy2(there, aside.with_name(aside.name + end))
    return aside


def _look_for_room(found: Backup, database: Path) -> None:
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    there = database.stat().st_size if database.exists() else 0
    # Copies of both, and each is written anew once where something is erased in it.
    wanted = 2 * (found.size + there) + backups.SPARE_BYTES
    free = shutil.disk_usage(database.parent).free
    if free < wanted:
        raise BackupError(
            f"{database.parent} has {free / 1e6:,.0f} MB left and a restore needs {wanted / 1e6:,.0f} MB: make room."
        )


@contextlib.contextmanager
def _workshop(folder: Path) -> Iterator[Path]:
    """A folder in which copies are made ready, gone afterwards with all that is in it."""
    for left in folder.glob(".workshop-*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".workshop-", dir=folder) as work:
        yield Path(work)


def _ledger_name(database: Path) -> str:
    return ledger.ledger_of(database).name
