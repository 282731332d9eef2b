"""Store of fleeting lines: the end of words that were answered and are not to be remembered."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from memory.accounts import Accounts
from memory.answering import Answering
from memory.clock import stamp
from memory.db import Database
from memory.model import SEQ_BITS, Account
from memory.sessions import OVER, Sessions
from memory.stores import Stores

LONGEST: Final = timedelta(days=1)
"""After which a fleeting line goes although its session has not ended or its answer is still owed."""


class Fleeting:
    """Ends what is not to be remembered: lines, the replies to them, and the traces of those."""

    def __init__(
        self,
        db: Database,
        accounts: Accounts,
        sessions: Sessions,
        stores: Stores,
        *,
        answering: Answering,
        patience: timedelta,
    ) -> None:
        """``patience`` is how long a line waits for its owner to agree to have it kept."""
        self._db = db
        self._accounts = accounts
        self._sessions = sessions
        self._stores = stores
        self._answering = answering
        self._patience = patience

    async def owners(self) -> list[int]:
        """Numbers of the accounts that have fleeting lines; where the job starts from."""
        rows = await self._db.fetch(
            f"SELECT DISTINCT id >> {SEQ_BITS} AS no FROM journal WHERE fleeting = 1 ORDER BY no"
        )
        return [int(row["no"]) for row in rows]

    async def due(self, owner: Account, *, now: datetime) -> list[int]:
        """The owner's fleeting lines whose session is over and that wait for nothing, and those of LONGEST ago.

        One that is held stays until nobody is likely to agree any more.
        """
        rows = await self._db.fetch(
            "SELECT j.id FROM journal j JOIN sessions s ON s.no = j.session WHERE j.fleeting = 1"
            " AND j.id BETWEEN :lo AND :hi AND (j.held != '' AND j.at <= :patient OR j.held IS NULL"
            f" AND (j.at <= :day OR {OVER} AND NOT EXISTS (SELECT 1 FROM waiting w WHERE w.id = j.id"
            " OR w.reply = j.id))) ORDER BY j.id",
            {
                "lo": owner.first_id,
                "hi": owner.last_id,
                "day": stamp(now - LONGEST),
                "patient": stamp(now - self._patience),
                "since": self._sessions.idle_since(now),
            },
        )
        return [int(row["id"]) for row in rows]

    async def erase_due(self, owner: Account, *, now: datetime) -> int:
        """Erase what is over; returns how many lines went. The file is to be scrubbed behind it."""
        async with self._db.transaction():
            lines = await self.due(owner, now=now)
            if lines:
                await self._answering.erase(owner, lines)
        return len(lines)

    async def sweep(self, *, now: datetime) -> int:
        """Erase what is over of every account, and every old copy of it in the file; returns how many lines went."""
        gone = 0
        for number in await self.owners():
            gone += await self.erase_due(await self._accounts.numbered(number), now=now)
        if gone:
            await self._db.scrub()
        return gone
