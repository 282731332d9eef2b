"""Store of what deletions cover beside what they hide, of what is gone for good, and of all else about an owner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from memory.db import Database
from memory.model import SEQ_BITS, Account
from memory.offloop import off_loop

_WORDY: Final = ("journal", "profile", "timeline", "facts")
"""Tables whose rows hold words of their owner, and can be hidden."""
_MARKS: Final = " AND text_hash != x''"
"""Leaves out the marks that stay of a platform's messages: they hold no word."""
_ABOUT: Final = ("traces", "offers", "chunks", "segments")
"""Tables in an owner's range whose rows tell of rows with words, or were made of them."""


class Range(NamedTuple):
    """Row numbers of one owner that are erased, both ends included."""

    first: int
    last: int


class Erasures:
    """Rows in the range of one account."""

    def __init__(self, db: Database) -> None:
        self._db = db

    # ---- several deletions over one row --------------------------------------------------------------

    async def claim(self, owner: Account, rows: Iterable[int], deletion: int) -> None:
        """Note that a deletion covers rows, too, which another one hides already. Needs an open transaction."""
        mine = [(row, deletion) for row in rows if owner.owns(row)]
        await self._db.executemany("INSERT OR IGNORE INTO also_hidden (row, deletion) VALUES (?, ?)", mine)

    async def claimed(self, owner: Account, deletion: int) -> list[int]:
        """The rows that a deletion covers and another one hides."""
        rows = await self._db.fetch(
            "SELECT row FROM also_hidden WHERE deletion = :deletion AND row BETWEEN :lo AND :hi",
            _range(owner) | {"deletion": deletion},
        )
        return [int(row["row"]) for row in rows]

    async def holders(self, owner: Account, deletion: int) -> list[int]:
        """Numbers of the other accounts of whose rows a deletion of the owner's covers some, too."""
        rows = await self._db.fetch(
            f"SELECT DISTINCT row >> {SEQ_BITS} AS no FROM also_hidden"
            " WHERE deletion = :deletion AND row NOT BETWEEN :lo AND :hi",
            _range(owner) | {"deletion": deletion},
        )
        return [int(row["no"]) for row in rows]

    async def release(self, owner: Account, deletion: int) -> None:
        """Forget what a deletion covers beside what it hides: it is undone, or carried out."""
        await self._db.execute(
            "DELETE FROM also_hidden WHERE deletion = :deletion AND row BETWEEN :lo AND :hi",
            _range(owner) | {"deletion": deletion},
        )

    # ---- what is gone for good -----------------------------------------------------------------------

    async def note(self, owner: Account, deletion: int, rows: Sequence[int]) -> None:
        """Write down in ranges which rows a deletion erases. Needs an open transaction."""
        gone = set(rows)
        living = [row for row in await self._living(owner) if row not in gone] if len(gone) > 1 else []
        ranges = await off_loop(lambda: spans(gone, living), size=len(gone) + len(living))
        await self._write(owner, deletion, ranges)

    async def note_all(self, owner: Account, deletion: int) -> None:
        """Write down that all of an account is erased, up to a deletion."""
        await self._write(owner, deletion, [Range(owner.first_id, deletion)])

    async def ranges(self, owner: Account) -> list[Range]:
        """Everything of the owner that is erased."""
        rows = await self._db.fetch(
            "SELECT first, max(last) AS last FROM erased WHERE first BETWEEN :lo AND :hi GROUP BY first ORDER BY first",
            _range(owner),
        )
        return [Range(row["first"], row["last"]) for row in rows]

    async def keep(self, owner: Account, ranges: Iterable[Range]) -> None:
        """Take over what another copy of the file had noted."""
        await self._write(owner, 0, ranges)

    async def within(self, owner: Account, first: int, last: int) -> list[int]:
        """The owner's rows with words whose numbers lie in a range, hidden ones included."""
        parts = (
            f"SELECT id FROM {table} WHERE id BETWEEN :first AND :last" + _MARKS * (table == "journal")
            for table in _WORDY
        )
        bounds = {"first": max(first, owner.first_id), "last": min(last, owner.last_id)}
        rows = await self._db.fetch(" UNION ALL ".join(parts), bounds)
        return [int(row["id"]) for row in rows]

    async def requote(self, owner: Account, first: int, last: int) -> None:
        """Have the owner's memories keep only their own words of lines whose numbers lie in a range."""
        texts = " UNION ALL ".join(f"SELECT id, text FROM {table}" for table in _WORDY if table != "journal")
        await self._db.execute(
            f"UPDATE citations SET quote = (SELECT text FROM ({texts}) WHERE id = citations.entry)"
            " WHERE message BETWEEN :first AND :last AND entry BETWEEN :lo AND :hi",
            _range(owner) | {"first": first, "last": last},
        )

    async def _write(self, owner: Account, deletion: int, ranges: Iterable[Range]) -> None:
        await self._db.executemany(
            "INSERT INTO erased (first, last, deletion) VALUES (?, ?, ?)"
            " ON CONFLICT (first, deletion) DO UPDATE SET last = max(last, excluded.last)",
            [(first, last, deletion) for first, last in ranges if owner.owns(first) and owner.owns(last)],
        )

    async def _living(self, owner: Account) -> list[int]:
        """The numbers of all rows of the owner that hold words, in order."""
        parts = (
            f"SELECT id FROM {table} WHERE id BETWEEN :lo AND :hi" + _MARKS * (table == "journal") for table in _WORDY
        )
        rows = await self._db.fetch(f"{' UNION ALL '.join(parts)} ORDER BY id", _range(owner))
        return [int(row["id"]) for row in rows]

    # ---- all of an account ---------------------------------------------------------------------------

    async def commands(self, owner: Account, upto: int) -> list[int]:
        """The owner's lines without text: they still name their speaker."""
        rows = await self._db.fetch(
            "SELECT id FROM journal WHERE id BETWEEN :lo AND :upto AND kind = 'command'",
            _range(owner) | {"upto": upto},
        )
        return [int(row["id"]) for row in rows]

    async def wipe(self, owner: Account, upto: int, *, now: datetime) -> None:
        """Remove what tells of an owner beside their words.

        That is: traces, offers, receipts that were sent, which talks they took part in, what was spent on them before
        today, which matters they were asked about, their name and their zone.

        The account itself stays, for its numbers may never be given out again; so does the language they are spoken
        to in, and a talk that goes on. Needs an open transaction.
        """
        within = _range(owner) | {"upto": upto, "owner": owner.no, "today": now.astimezone(UTC).toordinal()}
        for table in _ABOUT:
            await self._db.execute(f"DELETE FROM {table} WHERE id BETWEEN :lo AND :upto", within)
        await self._db.execute("DELETE FROM notices WHERE id BETWEEN :lo AND :upto AND sent_at IS NOT NULL", within)
        await self._db.execute("DELETE FROM spending WHERE account = :owner AND day < :today", within)
        await self._db.execute("DELETE FROM consents WHERE account = :owner", within)
        await self._db.execute(
            "DELETE FROM session_members WHERE account = :owner AND NOT EXISTS (SELECT 1 FROM journal j"
            " WHERE j.session = session_members.session AND j.id BETWEEN :lo AND :hi AND j.text_hash != x'')",
            within,
        )
        await self._db.execute(
            "UPDATE accounts SET name = '', zone_set = NULL, zone_asked = 0 WHERE no = :owner", within
        )

    async def left(self, owner: Account, upto: int) -> int:
        """How many rows up to a number still hold a word of the owner, or tell of one."""
        counts = [
            f"SELECT count(*) AS n FROM {table} WHERE id BETWEEN :lo AND :upto"
            for table in ("profile", "timeline", "facts", *_ABOUT)
        ]
        counts += [
            "SELECT count(*) FROM journal WHERE id BETWEEN :lo AND :upto AND (text != '' OR speaker != '')",
            "SELECT count(*) FROM citations WHERE entry BETWEEN :lo AND :upto",
            "SELECT count(*) FROM accounts WHERE no = :owner AND name != ''",
        ]
        rows = await self._db.fetch(" UNION ALL ".join(counts), _range(owner) | {"upto": upto, "owner": owner.no})
        return sum(int(row["n"]) for row in rows)


def spans(rows: Iterable[int], living: Sequence[int]) -> list[Range]:
    """Numbers as the fewest ranges in which none of the ``living`` (in order) lies."""
    made: list[Range] = []
    place = 0
    for row in sorted(set(rows)):
        while place < len(living) and living[place] < (made[-1].last if made else row):
            place += 1
        if made and not (place < len(living) and living[place] < row):
            made[-1] = Range(made[-1].first, row)
        else:
            made.append(Range(row, row))
    return made


def _range(owner: Account) -> dict[str, int]:
    return {"lo": owner.first_id, "hi": owner.last_id}
