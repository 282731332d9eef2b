"""Store of what people agreed to have kept of sensitive matters, and of the lines that wait for their word."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from memory.clock import moment, stamp
from memory.db import Database
from memory.journal import LINE, line
from memory.model import Account, Message
from memory.sensitive import MATTERS, Matter, joined, parted


@dataclass(frozen=True, slots=True)
class Consent:
    """An owner's word about a matter: ``answer`` is yes or no for always, None while they were only asked, ``at``."""

    answer: bool | None
    at: datetime


class Consents:
    """Words about matters, and the lines that wait for them."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def all(self, owner: Account) -> dict[Matter, Consent]:
        """What the owner was asked about, with their answer."""
        rows = await self._db.fetch("SELECT matter, answer, at FROM consents WHERE account = ?", (owner.no,))
        found = {row["matter"]: row for row in rows}
        return {
            matter: Consent(
                None if found[matter]["answer"] is None else bool(found[matter]["answer"]),
                moment(int(found[matter]["at"])),
            )
            for matter in MATTERS
            if matter in found
        }

    async def put(self, owner: Account, matter: Matter, answer: bool | None, *, at: datetime) -> None:  # noqa: FBT001
        """Write an answer down, or (None) that the owner is asked now."""
        await self._db.execute(
            "INSERT INTO consents (account, matter, answer, at) VALUES (:no, :matter, :answer, :at)"
            " ON CONFLICT (account, matter) DO UPDATE SET answer = :answer, at = :at",
            {"no": owner.no, "matter": matter, "answer": answer, "at": stamp(at)},
        )

    async def remove(self, owner: Account, matter: Matter) -> None:
        """As if the owner had never been asked about a matter."""
        await self._db.execute("DELETE FROM consents WHERE account = ? AND matter = ?", (owner.no, matter))

    async def held(self, owner: Account) -> list[tuple[Message, frozenset[Matter]]]:
        """The lines that wait for the owner's word, oldest first, each with the matters it waits for."""
        rows = await self._db.fetch(
            f"SELECT {LINE} FROM journal j WHERE j.held != '' AND j.id BETWEEN ? AND ? ORDER BY j.id",
            (owner.first_id, owner.last_id),
        )
        return [(line(row), parted(row["held"])) for row in rows]

    async def hold(self, owner: Account, lines: Iterable[int], found: Collection[Matter]) -> None:
        """Have ordinary lines, and the replies to them, wait for the owner's word."""
        turns = (
            "SELECT coalesce(turn, id) FROM journal WHERE id IN (SELECT value FROM json_each(:ids))"
            " AND id BETWEEN :lo AND :hi"
        )
        await self._db.execute(
            "UPDATE journal SET fleeting = 1, held = :held WHERE fleeting = 0 AND text != '' AND id BETWEEN :lo AND :hi"
            f" AND (id IN (SELECT value FROM json_each(:ids)) OR answers IN ({turns}))",
            {"held": joined(found), "ids": json.dumps(list(lines)), "lo": owner.first_id, "hi": owner.last_id},
        )

    async def waits_for(self, owner: Account, id_: int, found: Collection[Matter]) -> None:
        """Have a held line wait for these matters alone; for none it is an ordinary line that was agreed to."""
        await self._db.execute(
            "UPDATE journal SET held = :held, fleeting = :held != '' WHERE id = :id AND id BETWEEN :lo AND :hi"
            " AND held != ''",
            {"held": joined(found), "id": id_, "lo": owner.first_id, "hi": owner.last_id},
        )

    async def let_go(self, owner: Account, ids: Iterable[int]) -> None:
        """Have held lines wait no more: they go as what was said off the record does."""
        await self._db.execute(
            "UPDATE journal SET held = NULL WHERE id IN (SELECT value FROM json_each(?)) AND id BETWEEN ? AND ?"
            " AND held != ''",
            (json.dumps(list(ids)), owner.first_id, owner.last_id),
        )

    async def agreed(self, owner: Account, ids: Collection[int]) -> bool:
        """Whether the owner has agreed to have every one of these lines kept."""
        rows = await self._db.fetch(
            "SELECT count(*) AS agreed FROM journal WHERE id IN (SELECT value FROM json_each(?)) AND id BETWEEN ? AND ?"
            " AND held = ''",
            (json.dumps(list(ids)), owner.first_id, owner.last_id),
        )
        return int(rows[0]["agreed"]) == len(set(ids))
