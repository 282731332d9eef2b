"""What follows "that is wrong": the memories that may be meant, and the way to have them forgotten or put right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from bot.commands.explaining import forget_buttons
from bot.commands.numbering import kept
from bot.commands.order import Order, Pressed, Run
from bot.commands.shown import shown
from bot.message import Button, Incoming, Reply
from config.locales import phrase
from memory import Dispute, Disputed, Memory, disputes
from memory.model import Account, Chat, Entry
from memory.ports import Clock

DISPUTE: Final = "that is wrong"
"""Name of what runs; nobody can type it as a command."""
WRONG: Final = "wrong"
"""Kind of the button under a list: something on this page is wrong."""
MOST: Final = 10
"""Memories that are named one by one; of a longer list the number is asked for."""

_WRONG: Final = re.compile(rf"{WRONG}:(?P<list>\d{{1,18}}):(?P<page>\d{{1,6}})", re.ASCII)


class Disputing:
    """What a person says is wrong. It deletes nothing by itself."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock

    @property
    def runs(self) -> Mapping[str, Run]:
        """It has no command: it is read from what somebody says."""
        return {DISPUTE: self._disputed}

    async def press(self, pressed: Pressed) -> Reply | None:
        """Something on the page of a list is wrong."""
        found, owner = _WRONG.fullmatch(pressed.button), pressed.owner
        if found is None or not owner.owns(int(found["list"])):
            return None
        listed = await self._memory.lists.listed(owner, int(found["list"]), now=pressed.now)
        page = int(found["page"])
        if listed is None or page >= len(listed.pages):
            return None
        room = await self._memory.lists.room(owner, listed)
        ids = [id_ for _, part in listed.pages[page] for id_ in part]
        known = await self._memory.lists.read(owner, room, ids, now=pressed.now)
        first = listed.first(page)
        return self._numbered(owner, {first + place: known[id_] for place, id_ in enumerate(ids) if id_ in known})

    async def read(self, owner: Account, chat: Chat, incoming: Incoming) -> tuple[str, str] | None:
        """The message as a command, if all it says is that a memory is wrong and one was used; None for talk."""
        dispute = disputes(incoming.text)
        if dispute is None or incoming.media or incoming.forward_from is not None:
            return None
        replied_to = None if incoming.reply_to is None else incoming.reply_to.message_id
        found = await self._memory.corrections.disputed(owner, chat, dispute, replied_to=replied_to, now=incoming.at)
        return None if found is None else (DISPUTE, dispute)

    async def _disputed(self, order: Order) -> Reply:
        owner, now = order.owner, self._clock()
        dispute: Dispute = "memory" if order.words == "memory" else "answer"
        found = await self._memory.corrections.disputed(
            owner, order.chat, dispute, replied_to=order.replied_to, now=now
        )
        if found is None:
            return Reply(phrase("dispute.gone", owner.language), private=True)
        return self._numbered(owner, await self._numbers(owner, order.chat, found, now=now))

    async def _numbers(self, owner: Account, chat: Chat, found: Disputed, *, now: datetime) -> dict[int, Entry]:
        """The memories under the numbers they have, or are given now."""
        if found.listed is not None:
            numbers = {id_: number for number, id_ in enumerate(found.listed.ids, 1)}
            return {numbers[entry.id]: entry for entry in found.entries}
        ids = [entry.id for entry in found.entries]
        await kept(self._memory, owner, chat, [[("used", ids)]], now=now)
        return dict(enumerate(found.entries, 1))

    def _numbered(self, owner: Account, numbered: Mapping[int, Entry]) -> Reply:
        few = dict(list(numbered.items())[:MOST]) if len(numbered) <= MOST else {}
        entries = [shown(entry, owner, number) for number, entry in few.items()]
        buttons: Sequence[Button] = forget_buttons({number: entry.id for number, entry in few.items()}, owner)
        return Reply(phrase("dispute.list", owner.language, entries=entries), tuple(buttons), private=True)
