"""What was folded into one because it says the same, and the way back: ``/undo merge``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from zoneinfo import ZoneInfo

from bot.commands.order import Order, Pressed, Run, excerpt
from bot.message import Button, Reply
from config.locales import phrase
from memory import Memory
from memory.model import Account
from memory.ports import Clock

MERGE: Final = re.compile(r"(?:merges?|合并|合併)\s*(?P<number>\d{1,2})?", re.IGNORECASE)
"""What follows ``/undo`` for this, with a number of the list or none."""

_UNMERGE: Final = re.compile(r"unmerge:(?P<id>\d{1,18})", re.ASCII)


class Folding:
    """The merges of a person; ``/undo`` hands over to it, and its buttons come here."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock

    @property
    def runs(self) -> Mapping[str, Run]:
        """It has no command of its own."""
        return {}

    async def press(self, pressed: Pressed) -> Reply | None:
        """A memory is to be its own again."""
        found = _UNMERGE.fullmatch(pressed.button)
        if found is None or not pressed.owner.owns(int(found["id"])):
            return None
        return await self._back(pressed.owner, int(found["id"]))

    async def undo(self, order: Order, number: str | None) -> Reply:
        """The last merges; with a number, bring that one back."""
        owner, language = order.owner, order.owner.language
        merges = await self._memory.merging.recent(owner, order.chat, now=self._clock())
        if not merges:
            return Reply(phrase("merge.none", language, private=order.chat.private), private=True)
        if number is not None and 0 < int(number) <= len(merges):
            return await self._back(owner, merges[int(number) - 1].double.id)
        zone = ZoneInfo(owner.zone)
        listed = [
            {
                "number": place,
                "double": excerpt(merge.double.text),
                "kept": excerpt(merge.kept.text),
                "said": merge.double.provenance.said_at.astimezone(zone).date().isoformat(),
                "at": (merge.double.provenance.retired_at or self._clock()).astimezone(zone).date().isoformat(),
                "reason": merge.double.provenance.reason,
            }
            for place, merge in enumerate(merges, 1)
        ]
        text = phrase("merge.list", language, merges=listed, unknown=number is not None)
        buttons = [Button(f"unmerge:{merge.double.id}", str(place)) for place, merge in enumerate(merges, 1)]
        return Reply(text, tuple(buttons), private=True)

    async def _back(self, owner: Account, double: int) -> Reply:
        back = await self._memory.merging.undo(owner, double, now=self._clock())
        if back is None:
            return Reply(phrase("button.stale", owner.language), private=True)
        return Reply(phrase("merge.back", owner.language, text=excerpt(back.text)), private=True)
