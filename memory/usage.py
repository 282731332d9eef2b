"""Store of what people's chats cost: counts by day and kind, no word of anybody.

What was used is counted in memory first and written with the next reply or round of housekeeping, so that counting
costs no answer a write of its own.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from memory.db import Database
from memory.model import Account, Chat
from memory.ports import Clock

UsageKind = Literal["message", "reply", "distil", "embed", "rewrite", "rerank"]
"""What is counted: messages heard, replies of the chat model, and what memory asks of models behind them."""

KEPT_DAYS: Final = 366
"""Days for which the counts of a day are kept: a year, to be looked back on."""
BYTES_A_TOKEN: Final = 4
"""Of UTF-8, where nobody tells: an English word has 4 and more, a Han character 3. Rather too few than too many."""

_Key = tuple[int, int, UsageKind, int]
"""Account, day, kind, and the group it was used in, 0 for none."""


@dataclass(frozen=True, slots=True)
class Spent:
    """How often something was asked for, and the tokens that went in and came out."""

    times: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def __add__(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(self.times + other.times, self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out)


class Usage:
    """Counts by account, day of UTC and kind; of groups, too, whoever used it there."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._pending: dict[_Key, Spent] = {}

    def count(
        self,
        owner: Account,
        kind: UsageKind,
        *,
        times: int = 1,
        tokens_in: int = 0,
        tokens_out: int = 0,
        chat: Chat | None = None,
    ) -> None:
        """Count something for the owner, today, and for the group ``chat`` belongs to, if it does to one.

        It is written by the next :meth:`store` or :meth:`write`.
        """
        key = (owner.no, day_of_utc(self._clock()), kind, _group(chat))
        self._pending[key] = self._pending.get(key, Spent()) + Spent(times, tokens_in, tokens_out)
        # Whatever becomes of an open transaction: what was used was used.
        self._db.tallied.update(
            {("used", kind): times, ("tokens_in", kind): tokens_in, ("tokens_out", kind): tokens_out}
        )

    async def store(self, owner: Account) -> None:
        """Write what was counted for the owner."""
        async with self.taken(owner) as counted:
            await self.write(owner, counted)

    @asynccontextmanager
    async def taken(self, owner: Account) -> AsyncIterator[Mapping[_Key, Spent]]:
        """What was counted for the owner, for one writer alone; what it fails to write is there for the next."""
        counted = {key: spent for key, spent in self._pending.items() if key[0] == owner.no}
        for key in counted:
            del self._pending[key]
        try:
            yield counted
        except BaseException:
            for key, spent in counted.items():
                self._pending[key] = self._pending.get(key, Spent()) + spent
            raise

    async def write(self, owner: Account, counted: Mapping[_Key, Spent]) -> None:
        """Write what was :meth:`taken`, in the open transaction or one of its own."""
        if any(number != owner.no for number, _, _, _ in counted):
            raise ValueError("counts of somebody else")
        await self._db.executemany(
            "INSERT INTO usage (account, day, kind, times, tokens_in, tokens_out) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (account, day, kind) DO UPDATE SET times = times + excluded.times,"
            " tokens_in = tokens_in + excluded.tokens_in, tokens_out = tokens_out + excluded.tokens_out",
            [
                (account, day, kind, spent.times, spent.tokens_in, spent.tokens_out)
                for (account, day, kind, _), spent in counted.items()
            ],
        )
        await self._db.executemany(
            "INSERT INTO group_usage (chat, day, kind, times, tokens_in, tokens_out) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (chat, day, kind) DO UPDATE SET times = times + excluded.times,"
            " tokens_in = tokens_in + excluded.tokens_in, tokens_out = tokens_out + excluded.tokens_out",
            [
                (chat, day, kind, spent.times, spent.tokens_in, spent.tokens_out)
                for (_, day, kind, chat), spent in counted.items()
                if chat
            ],
        )

    def owners_pending(self) -> Sequence[int]:
        """Numbers of the accounts for which something is still to be written."""
        return sorted({number for number, _, _, _ in self._pending})

    async def today(self, owner: Account, *, now: datetime) -> dict[UsageKind, Spent]:
        """What the owner's chats have used since midnight UTC, by kind."""
        await self.store(owner)
        rows = await self._db.fetch(
            "SELECT kind, times, tokens_in, tokens_out FROM usage WHERE account = ? AND day = ?",
            (owner.no, day_of_utc(now)),
        )
        return {row["kind"]: Spent(row["times"], row["tokens_in"], row["tokens_out"]) for row in rows}

    async def spent(self, owner: Account, *, now: datetime) -> dict[UsageKind, Spent]:
        """The same; nothing is written for it."""
        rows = await self._db.fetch(
            "SELECT kind, times, tokens_in, tokens_out FROM usage WHERE account = ? AND day = ?",
            (owner.no, day_of_utc(now)),
        )
        return _summed(rows, (spent for spent in self._pending.items() if spent[0][0] == owner.no), day_of_utc(now))

    async def spent_in(self, owner: Account, chat: Chat, *, now: datetime) -> dict[UsageKind, Spent]:
        """What everybody together has used since midnight UTC in the group that the owner writes in."""
        del owner
        rows = await self._db.fetch(
            "SELECT kind, times, tokens_in, tokens_out FROM group_usage WHERE chat = ? AND day = ?",
            (_group(chat), day_of_utc(now)),
        )
        pending = (spent for spent in self._pending.items() if spent[0][3] == _group(chat))
        return _summed(rows, pending, day_of_utc(now))

    async def tell(self, owner: Account, chat: Chat | None, *, now: datetime) -> bool:
        """Whether the owner is to be told that today's budget nears its end, or the group is: once a day."""
        told = await self._db.execute(
            "INSERT OR IGNORE INTO budget_told (account, chat, day) VALUES (?, ?, ?)",
            (0 if _group(chat) else owner.no, _group(chat), day_of_utc(now)),
        )
        return told > 0

    async def trim(self, owner: Account, *, now: datetime) -> int:
        """Drop what is older than a year; returns how many counts went."""
        day = day_of_utc(now)
        await self._db.execute("DELETE FROM group_usage WHERE day < ?", (day - KEPT_DAYS,))
        await self._db.execute("DELETE FROM budget_told WHERE day < ?", (day,))
        return await self._db.execute("DELETE FROM usage WHERE account = ? AND day < ?", (owner.no, day - KEPT_DAYS))


def _group(chat: Chat | None) -> int:
    """The number under which a group's use is counted, 0 for a private chat."""
    return 0 if chat is None or chat.private else chat.audience


def _summed(rows: Iterable[sqlite3.Row], pending: Iterable[tuple[_Key, Spent]], today: int) -> dict[UsageKind, Spent]:
    """What is written and what is counted and not written yet."""
    spent: defaultdict[UsageKind, Spent] = defaultdict(Spent)
    for row in rows:
        spent[row["kind"]] += Spent(row["times"], row["tokens_in"], row["tokens_out"])
    for (_, day, kind, _), more in pending:
        if day == today:
            spent[kind] += more
    return dict(spent)


def day_of_utc(now: datetime) -> int:
    """The ordinal of the day of UTC."""
    return now.astimezone(UTC).toordinal()


def tokens(told: int | None, *texts: str) -> int:
    """The tokens of texts as an endpoint told them; a guess where it told none."""
    return told or sum(-(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN) for text in texts)
