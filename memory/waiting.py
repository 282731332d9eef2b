"""Store of what waits for an answer: which messages, what of the answer is shown, and which reply is on its way."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from memory.clock import stamp
from memory.db import Database
from memory.model import SEQ_BITS, Account


@dataclass(frozen=True, slots=True)
class Wait:
    """A message (``id`` is its journal line) without its answer.

    ``arrived`` orders the waiting of all owners. ``shown`` are the platform's ids of the messages that show the
    answer so far, ``begun`` tells that one more may. ``reply`` is the journal line of an answer that may not have
    been delivered.
    """

    id: int
    arrived: int
    shown: tuple[str, ...] = ()
    begun: bool = False
    reply: int | None = None


class Waits:
    """One row for each message that waits, in its owner's range; none outlives its message."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def add(self, owner: Account, message: int) -> None:
        """Have a line wait for a whole answer from now on; one that waits already keeps its place.

        Needs the transaction that writes the line, or takes its reply back.
        """
        if not (self._db.inside and owner.owns(message)):
            raise RuntimeError("a message waits from the transaction on that writes it, for its owner")
        await self._db.execute(
            "INSERT INTO waiting (id, arrived) SELECT ?, coalesce(max(arrived), 0) + 1 FROM waiting WHERE true"
            " ON CONFLICT (id) DO UPDATE SET reply = NULL",
            (message,),
        )

    async def waits(self, owner: Account, message: int) -> bool:
        """Whether a line waits, be it only for a reply to be delivered."""
        rows = await self._db.fetch(
            "SELECT 1 FROM waiting WHERE id = ? AND id BETWEEN ? AND ?", (message, owner.first_id, owner.last_id)
        )
        return bool(rows)

    async def shown(self, owner: Account, message: int, platform_id: str | None) -> None:
        """Note that a message of the answer may go out (None), or the platform's id of one that did.

        Of a line that waits no more, because the words of its answer are not kept, the id belongs to that answer.
        """
        change = "begun = 1" if platform_id is None else "shown = json_insert(shown, '$[#]', :shown)"
        values = {"shown": platform_id, "id": message, "lo": owner.first_id, "hi": owner.last_id}

        async def writing() -> None:
            waited = await self._db.execute(
                f"UPDATE waiting SET {change} WHERE id = :id AND id BETWEEN :lo AND :hi", values
            )
            if platform_id is not None and not waited:
                await self._db.execute(
                    "INSERT INTO shown (id, platform_ids) SELECT max(j.id), json_array(:shown) FROM journal j"
                    " WHERE j.answers = :id AND j.id BETWEEN :lo AND :hi HAVING max(j.id) IS NOT NULL"
                    " ON CONFLICT (id) DO UPDATE SET platform_ids = json_insert(platform_ids, '$[#]', :shown)",
                    values,
                )

        await self._db.written(writing)

    async def unbegun(self, owner: Account, message: int) -> None:
        """Note that nothing of the answer went out after all; ids of what did are kept."""
        await self._db.execute(
            "UPDATE waiting SET begun = 0 WHERE id = ? AND id BETWEEN ? AND ?",
            (message, owner.first_id, owner.last_id),
        )

    async def replied(self, owner: Account, message: int, reply: int | None) -> None:
        """Have a line wait only for its reply to be delivered; with None for a whole answer again."""
        await self._db.execute(
            "UPDATE waiting SET reply = ? WHERE id = ? AND id BETWEEN ? AND ?",
            (reply, message, owner.first_id, owner.last_id),
        )

    async def remove(self, owner: Account, messages: Iterable[int]) -> int:
        """Have these lines wait no more; returns how many did."""
        chosen = list(messages)
        if not chosen:
            return 0
        return await self._db.execute(
            "DELETE FROM waiting WHERE id IN (SELECT value FROM json_each(?)) AND id BETWEEN ? AND ?",
            (json.dumps(chosen), owner.first_id, owner.last_id),
        )

    async def rewrite(self, owner: Account, message: int, shown: Iterable[str]) -> None:
        """Have the whole answer that a line waits for go where these messages of the platform are."""
        await self._db.execute(
            "UPDATE waiting SET shown = ?, begun = 0 WHERE id = ? AND id BETWEEN ? AND ?",
            (json.dumps(list(shown)), message, owner.first_id, owner.last_id),
        )

    async def delivered(self, owner: Account, messages: Iterable[int]) -> None:
        """Keep where the replies to these lines are shown, now that they wait no more; and have them wait no more."""
        chosen = (json.dumps(list(messages)), owner.first_id, owner.last_id)

        async def writing() -> None:
            await self._db.execute(
                "INSERT OR REPLACE INTO shown (id, platform_ids) SELECT reply, shown FROM waiting"
                " WHERE reply IS NOT NULL AND shown != '[]' AND id IN (SELECT value FROM json_each(?))"
                " AND id BETWEEN ? AND ?",
                chosen,
            )
            await self.remove(owner, json.loads(chosen[0]))

        await self._db.written(writing)

    async def shown_in(self, owner: Account, replies: Iterable[int]) -> tuple[str, ...]:
        """The platform's ids of the messages that show these replies, as far as they are known."""
        rows = await self._db.fetch(
            "SELECT platform_ids FROM shown WHERE id IN (SELECT value FROM json_each(?)) AND id BETWEEN ? AND ?"
            " ORDER BY id",
            (json.dumps(list(replies)), owner.first_id, owner.last_id),
        )
        return tuple(id_ for row in rows for id_ in json.loads(row["platform_ids"]))

    async def trim(self, owner: Account, *, before: datetime) -> int:
        """Give up what was said before ``before``, and what has no line any more; returns how many."""
        return await self._db.execute(
            "DELETE FROM waiting WHERE id BETWEEN ? AND ? AND NOT EXISTS"
            " (SELECT 1 FROM journal j WHERE j.id = waiting.id AND j.at >= ?)",
            (owner.first_id, owner.last_id, stamp(before)),
        )

    async def all(self, owner: Account) -> list[Wait]:
        """What waits of the owner, in order of arrival."""
        rows = await self._db.fetch(
            "SELECT id, arrived, shown, begun, reply FROM waiting WHERE id BETWEEN ? AND ? ORDER BY arrived",
            (owner.first_id, owner.last_id),
        )
        return [_wait(row) for row in rows]

    async def owners_waiting(self, platform: str) -> list[int]:
        """Numbers of a platform's accounts that wait for an answer; where taking up begins."""
        rows = await self._db.fetch(
            f"SELECT no FROM accounts WHERE platform = ? AND no IN (SELECT id >> {SEQ_BITS} FROM waiting) ORDER BY no",
            (platform,),
        )
        return [int(row["no"]) for row in rows]


def _wait(row: sqlite3.Row) -> Wait:
    return Wait(row["id"], row["arrived"], tuple(json.loads(row["shown"])), bool(row["begun"]), row["reply"])
