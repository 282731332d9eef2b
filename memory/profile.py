"""Store of the profile: attribute and value, updated exactly, its history kept."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

from memory.clock import stamp
from memory.entries import LIVE, EntryStore, Row
from memory.model import SELF, Account, Candidate, ProfileLine, Provenance
from memory.script import as_written
from memory.slots import SLOTS, render
from memory.zones import told

_HARD: Final = json.dumps([name for name, slot in SLOTS.items() if slot.always])


class Profile(EntryStore[ProfileLine]):
    """Structured facts about the owner, or about somebody the owner spoke of."""

    table = "profile"
    kind = "profile"
    restable = "subject != 'self' AND attribute NOT IN (SELECT value FROM json_each(:hard))"

    async def slot(self, owner: Account, subject: str, attribute: str) -> list[ProfileLine]:
        """The open lines of one slot, oldest first."""
        return await self._select(
            owner,
            "retired_at IS NULL AND subject = :subject AND attribute = :attribute",
            subject=subject,
            attribute=attribute,
        )

    async def always(self, owner: Account, *, now: datetime) -> list[ProfileLine]:
        """The owner's own lines that are read on every turn and hold at ``now``, oldest first."""
        return await self._select(
            owner,
            f"{LIVE} AND subject = :own AND attribute IN (SELECT value FROM json_each(:hard))",
            now=stamp(now),
            own=SELF,
            hard=_HARD,
        )

    def _content(self, candidate: Candidate) -> dict[str, Any]:
        language = as_written(candidate.citations[-1].quote, candidate.language)
        text = render(candidate.attribute, candidate.value, language, candidate.subject)
        zone = told(candidate.subject, candidate.attribute, candidate.value)
        return {"attribute": candidate.attribute, "value": candidate.value, "text": text, "zone": zone}

    def _entry(self, row: Row, provenance: Provenance) -> ProfileLine:
        return ProfileLine(row["id"], row["subject"], row["attribute"], row["value"], row["text"], provenance)
