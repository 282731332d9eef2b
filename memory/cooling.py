"""What rests: memories of no use for a long time. Which they are is a rule, worked out anew by a job."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from memory.model import Account
from memory.slots import SLOTS
from memory.stores import Stores

IMPORTANT: Final = 0.5
"""Above this importance a memory never rests; what rules write has just this, what /remember keeps has more."""
HARD: Final = tuple(name for name, slot in SLOTS.items() if slot.always)
"""Attributes that are read on every turn (allergies, diet ...): of others they never rest. The owner's own profile
never rests at all: it is short, and what it says is asked for once in years."""


class Cooling:
    """Lets memories rest and wakes them. ``days`` unrecalled is what it takes; 0 lets nothing rest."""

    def __init__(self, stores: Stores, *, days: int) -> None:
        self._stores = stores
        self._days = days

    async def cool(self, owner: Account, *, now: datetime) -> tuple[int, int]:
        """Let rest what has come to it, and wake what should not rest at ``now``; how many of each.

        It is worked out from the rows alone, so a run too many, too late or after the clock was wrong does no harm.
        """
        before = now - timedelta(days=self._days) if self._days else None

        async def writing() -> tuple[int, int]:
            cooled = warmed = 0
            for store in self._stores.entries:
                rested, woken = await store.cool(owner, before=before, important=IMPORTANT, hard=HARD, now=now)
                cooled, warmed = cooled + rested, warmed + woken
            return cooled, warmed

        return await self._stores.db.written(writing)
