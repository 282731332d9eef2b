"""Store of which accounts are one person, and of the codes by which they become one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memory.clock import stamp
from memory.db import Database
from memory.model import Account, Chat


@dataclass(frozen=True, slots=True)
class Code:
    """A code that was shown and not used yet, as it is kept: whose, where it was shown, salt and keyed hash."""

    account: int
    chat: int
    salt: bytes
    hash: bytes


class Persons:
    """Persons as sets of account numbers. What is known of them is kept at hand, for every recall asks."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._others: dict[int, tuple[int, ...]] = {}

    async def others(self, owner: Account) -> tuple[int, ...]:
        """Numbers of the owner's other accounts; none for nearly everybody, at the price of a look at a dictionary."""
        known = self._others.get(owner.no)
        if known is None:
            rows = await self._db.fetch(
                "SELECT o.account FROM links m JOIN links o ON o.person = m.person AND o.account != m.account"
                " WHERE m.account = ? ORDER BY o.at, o.account",
                (owner.no,),
            )
            known = tuple(int(row["account"]) for row in rows)
            if not self._db.inside:
                self._others[owner.no] = known
        return known

    def forget_who_is_who(self) -> None:
        """Ask the file again: a link was made or taken back."""
        self._others.clear()

    async def join(self, owner: Account, other: Account, *, at: datetime) -> None:
        """Make two accounts, and all that are linked with either, one person. Needs an open transaction."""
        now = stamp(at)
        made = await self._db.returning("INSERT INTO persons (made_at) VALUES (?) RETURNING no", (now,))
        person = int(made[0]["no"])
        pair = (owner.no, other.no)
        await self._db.execute(
            "UPDATE links SET person = ? WHERE person IN (SELECT person FROM links WHERE account IN (?, ?))",
            (person, *pair),
        )
        for account in pair:
            await self._db.execute(
                "INSERT OR IGNORE INTO links (account, person, at) VALUES (?, ?, ?)", (account, person, now)
            )

        await self._db.execute(
            "INSERT OR IGNORE INTO once_linked (account, other) SELECT one.account, two.account FROM links one"
            " JOIN links two ON two.person = one.person AND two.account != one.account WHERE one.person = ?",
            (person,),
        )

    async def ever_linked(self, owner: Account) -> list[int]:
        """Numbers of the accounts that are, or once were, one person with the owner's."""
        rows = await self._db.fetch("SELECT other FROM once_linked WHERE account = ? ORDER BY other", (owner.no,))
        return [int(row["other"]) for row in rows]

    async def part(self, owner: Account) -> None:
        """Take the owner's account out of its person; who is left alone is no person of several accounts any more."""
        await self._db.execute(
            "DELETE FROM links WHERE account = :owner OR person IN (SELECT person FROM links GROUP BY person"
            " HAVING count(*) <= 2 AND max(account = :owner))",
            {"owner": owner.no},
        )

    async def show_code(self, owner: Account, chat: Chat, salt: bytes, digest: bytes, *, expires_at: datetime) -> None:
        """Keep what a code is recognised by; an earlier one of the owner's is worth nothing any more."""
        await self._db.execute(
            "INSERT OR REPLACE INTO link_codes (account, chat, salt, hash, expires_at) VALUES (?, ?, ?, ?, ?)",
            (owner.no, chat.no, salt, digest, stamp(expires_at)),
        )

    async def open_codes(self, *, now: datetime) -> list[Code]:
        """Every code that may still be typed, whosesoever; those that are too old are dropped."""
        await self._db.execute("DELETE FROM link_codes WHERE expires_at <= ?", (stamp(now),))
        rows = await self._db.fetch("SELECT account, chat, salt, hash FROM link_codes ORDER BY account")
        return [Code(row["account"], row["chat"], row["salt"], row["hash"]) for row in rows]

    async def use(self, account: int) -> None:
        """Have the code of an account be used up."""
        await self._db.execute("DELETE FROM link_codes WHERE account = ?", (account,))

    async def missed(self, owner: Account, *, at: datetime) -> None:
        """Count a wrong code that the owner typed."""
        await self._db.execute("INSERT INTO link_tries (account, at) VALUES (?, ?)", (owner.no, stamp(at)))

    async def misses(self, owner: Account, *, since: datetime) -> tuple[int, int]:
        """How many wrong codes there were since a moment: of the owner, and of everybody; older ones are dropped."""
        await self._db.execute("DELETE FROM link_tries WHERE at < ?", (stamp(since),))
        rows = await self._db.fetch(
            "SELECT coalesce(sum(account = ?), 0) AS own, count(*) AS whole FROM link_tries", (owner.no,)
        )
        return int(rows[0]["own"]), int(rows[0]["whole"])

    async def private_chat(self, account: Account) -> int | None:
        """The private chat in which an account spoke last; None for one that never did."""
        rows = await self._db.fetch(
            "SELECT s.chat FROM session_members m JOIN sessions s ON s.no = m.session JOIN chats c ON c.no = s.chat"
            " WHERE m.account = ? AND c.private = 1 ORDER BY s.last_at DESC, s.no DESC LIMIT 1",
            (account.no,),
        )
        return int(rows[0]["chat"]) if rows else None
