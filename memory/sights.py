"""Store of who may see a room, as its platform tells it, and what follows when that changes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from memory.clock import stamp
from memory.db import Database
from memory.model import PRIVATE, Sight

_HEARD: Final = ("profile", "timeline", "facts")
_WHOLE: Final = (
    "SELECT no FROM chats WHERE platform = :platform AND key = :key AND private = 0 AND moved_to IS NULL"
    " AND parent IS NULL"
)
_ROOMS: Final = f"SELECT no FROM chats WHERE no IN ({_WHOLE}) OR parent IN ({_WHOLE})"


class Sights:
    """What was told last of each room. Nobody's: it says who could have heard, not what was said."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def known(self, platform: str, keys: Collection[str]) -> dict[str, Sight]:
        """What was told last of the rooms ``keys``."""
        rows = await self._db.fetch(
            "SELECT key, sight FROM sights WHERE platform = ? AND key IN (SELECT value FROM json_each(?))",
            (platform, json.dumps(list(keys))),
        )
        return {str(row["key"]): _sight(row["sight"]) for row in rows}

    async def keep(self, platform: str, told: Mapping[str, Sight]) -> None:
        """Keep what is told of rooms now."""
        await self._db.executemany(
            "INSERT INTO sights (platform, key, sight) VALUES (?, ?, ?)"
            " ON CONFLICT (platform, key) DO UPDATE SET sight = excluded.sight",
            [(platform, key, _written(each)) for key, each in told.items()],
        )

    async def drop(self, platform: str, key: str) -> None:
        """Know nothing more of who may see the room ``key``: it has another key now."""
        await self._db.execute("DELETE FROM sights WHERE platform = ? AND key = ?", (platform, key))

    async def opened(self, platform: str, key: str, *, at: datetime) -> int:
        """Keep for private chats alone what was said in a room, its threads included, before ``at``.

        Its talk ends: what is said from now on is of another. Only the owner of a memory can open it to more people,
        so that none follows whom somebody else let in. Returns how many talks it was. Needs an open transaction.
        """
        where = {"platform": platform, "key": key}
        for table in _HEARD:
            for column in ("audience", "shared_from"):
                await self._db.execute(f"UPDATE {table} SET {column} = {PRIVATE} WHERE {column} IN ({_WHOLE})", where)
        return await self._db.execute(
            f"UPDATE sessions SET aside = 1, ended_at = coalesce(ended_at, :at) WHERE chat IN ({_ROOMS}) AND aside = 0",
            where | {"at": stamp(at)},
        )


def _written(sight: Sight) -> str:
    return json.dumps({"everybody": sight.everybody, "by": sorted(sight.by), "but": sorted(sight.but)})


def _sight(written: str) -> Sight:
    told = json.loads(written)
    return Sight(told["everybody"], frozenset(told["by"]), frozenset(told["but"]))
