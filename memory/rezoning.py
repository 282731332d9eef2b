"""Times that were reckoned in a guessed zone keep their hour in the one that is known now.

Who says "Friday at 5" means five on their own clock. As long as nobody has told where that stands, the operator's
zone is taken; once it is told, the same hour there is what was meant.
"""

from __future__ import annotations

from memory.accounts import Accounts
from memory.db import Database
from memory.indexes import Indexes
from memory.model import Account
from memory.timeline import Timeline


class Rezoning:
    """Moves what was reckoned by a guess."""

    def __init__(self, db: Database, accounts: Accounts, timeline: Timeline, indexes: Indexes) -> None:
        self._db = db
        self._accounts = accounts
        self._timeline = timeline
        self._indexes = indexes

    async def settle(self, owner: Account) -> int:
        """Let the owner's events keep their hours if their zone was guessed until now and is not any more.

        ``owner`` is as they were read before that. Returns how many events moved.
        """
        if owner.zone_from != "default":
            return 0
        now = await self._accounts.numbered(owner.no)
        if now.zone_from == "default" or now.zone == owner.zone:
            return 0
        async with self._db.transaction():
            moved = await self._timeline.rezone(now, owner.zone)
        if moved:
            self._indexes.forget(owner)
        return moved
