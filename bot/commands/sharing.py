"""Where a memory may be used: everywhere, or only where it was said. Its owner alone decides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from bot.commands.order import Order, Pressed, Run, excerpt
from bot.commands.shown import shown
from bot.message import Button, Reply
from config.locales import phrase
from memory import Memory
from memory.model import EVERYWHERE, PRIVATE, Account
from memory.ports import Clock

LONGEST_NUMBER: Final = 3
"""Digits of a number in a list; longer ones are words."""
MOST_OFFERED: Final = 20
"""Memories that get a button; who means another names it more closely."""

Way = Literal["share", "unshare"]
_BUTTON: Final = re.compile(r"(?P<way>share|unshare):(?P<id>\d{1,18})", re.ASCII)


class Sharing:
    """``/share``, ``/unshare``."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"share": self._share, "unshare": self._unshare}

    async def press(self, pressed: Pressed) -> Reply | None:
        """A choice among memories, or the way back."""
        found = _BUTTON.fullmatch(pressed.button)
        if found is None or await self._memory.linking.holder(pressed.owner, int(found["id"])) is None:
            return None
        way: Way = "share" if found["way"] == "share" else "unshare"
        return await self._carried_out(pressed.owner, int(found["id"]), way, now=pressed.now)

    async def _share(self, order: Order) -> Reply:
        return await self._asked(order, "share")

    async def _unshare(self, order: Order) -> Reply:
        return await self._asked(order, "unshare")

    async def _asked(self, order: Order, way: Way) -> Reply:
        """A number is done at once, for the list has shown what it means; of words it is shown first what they mean."""
        owner, now = order.owner, self._clock()
        if not order.words:
            return Reply(phrase("share.usage", owner.language, way=way), private=True)
        if order.words.isdecimal() and len(order.words) <= LONGEST_NUMBER:
            return await self._numbered(order, int(order.words), way, now=now)
        found = await self._memory.sharing.named(owner, order.words, room=order.chat, now=now)
        open_already = way == "unshare"
        fitting = [entry for entry in found if (entry.provenance.audience == EVERYWHERE) == open_already]
        if not fitting:
            known = len(found)
            text = phrase("share.none", owner.language, way=way, words=excerpt(order.words), known=known)
            return Reply(text, private=True)
        listed = [shown(entry, owner, number) for number, entry in enumerate(fitting[:MOST_OFFERED], 1)]
        single = len(listed) == 1
        label = phrase(f"share.button_{way}", owner.language)
        buttons = [
            Button(f"{way}:{entry.id}", label if single else f"{label} {number}")
            for number, entry in enumerate(fitting[:MOST_OFFERED], 1)
        ]
        more = len(fitting) - len(listed)
        text = phrase("share.offer", owner.language, way=way, entries=listed, more=more)
        return Reply(text, tuple(buttons), private=True)

    async def _numbered(self, order: Order, number: int, way: Way, *, now: datetime) -> Reply:
        """What has this number in the list its owner saw last, and nothing else."""
        owner, lists = order.owner, self._memory.lists
        entry = await lists.numbered(owner, order.chat, number, now=now)
        if entry is not None and entry.provenance.live(now):
            return await self._carried_out(owner, entry.id, way, now=now)
        count = await lists.count(owner, order.chat, now=now)
        return Reply(phrase("share.no_such_number", owner.language, count=count), private=True)

    async def _carried_out(self, owner: Account, id_: int, way: Way, *, now: datetime) -> Reply:
        """The receipt is built from the row as it is stored afterwards."""
        sharing = self._memory.sharing
        change = sharing.share if way == "share" else sharing.unshare
        holder = await self._memory.linking.holder(owner, id_)
        opened = None if holder is None else await change(holder, id_, now=now)
        if opened is None:
            return Reply(phrase("button.stale", owner.language), private=True)
        audience = opened.entry.provenance.audience
        where = {EVERYWHERE: "everywhere", PRIVATE: "private"}.get(audience, "group")
        text = phrase(
            "share.done", owner.language, entry=shown(opened.entry, owner, 1), where=where, changed=opened.changed
        )
        back: Way = "unshare" if audience == EVERYWHERE else "share"
        return Reply(text, (Button(f"{back}:{id_}", phrase(f"share.button_{back}", owner.language)),), private=True)
