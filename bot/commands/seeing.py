"""Seeing what is remembered, and why an answer was as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.commands.order import Order, Pressed, Run
from bot.commands.shown import reason, shown
from bot.message import Reply
from config.locales import phrase
from memory import Memory
from memory.model import Entry, Event, ProfileLine
from memory.ports import Clock


class Seeing:
    """``/whatdoyouknow``, ``/why``."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"whatdoyouknow": self._whatdoyouknow, "why": self._why}

    async def press(self, pressed: Pressed) -> Reply | None:
        """It has no buttons."""
        del pressed
        return None

    async def _whatdoyouknow(self, order: Order) -> Reply:
        reply = await self._listed(order)
        if await self._memory.pauses.since(order.owner, order.chat) is None:
            return reply
        return replace(reply, text=f"{reply.text}\n{phrase('pause.here', order.owner.language)}")

    async def _listed(self, order: Order) -> Reply:
        entries = await self._memory.known(order.owner, room=order.chat, now=self._clock())
        if not entries:
            return Reply(phrase("known.nothing", order.owner.language, private=order.chat.private), private=True)
        profile = [e for e in entries if isinstance(e, ProfileLine)]
        events = sorted((e for e in entries if isinstance(e, Event)), key=lambda e: e.span.start)
        facts = [e for e in entries if not isinstance(e, ProfileLine | Event)]
        groups: list[dict[str, object]] = []
        number = 0
        page: list[tuple[str, list[int]]] = []
        grouped: tuple[tuple[str, Sequence[Entry]], ...] = (("about", profile), ("events", events), ("facts", facts))
        for title, members in grouped:
            if members:
                listed = [shown(entry, order.owner, number + place) for place, entry in enumerate(members, 1)]
                groups.append({"title": title, "entries": listed})
                page.append((title, [entry.id for entry in members]))
                number += len(members)
        await self._memory.lists.keep(order.owner, order.chat, [page], now=self._clock())
        text = phrase("known.list", order.owner.language, groups=groups, count=number, private=order.chat.private)
        return Reply(text, private=True)

    async def _why(self, order: Order) -> Reply:
        owner = order.owner
        trace = await self._memory.why(owner, order.chat)
        recalled = [] if trace is None else trace.data["recalled"]
        found = await self._memory.entries(owner, [unit["id"] for unit in recalled])
        used = [
            reason(found[unit["id"]], owner, order.chat) | {"band": unit["band"], "score": f"{unit['score']:.2f}"}
            for unit in recalled
            if unit["id"] in found
        ]
        if not used:
            return Reply(phrase("why.nothing", owner.language), private=True)
        gone = len(recalled) - len(used)
        left_out = len(trace.data["left_out"]) if trace is not None else 0
        return Reply(phrase("why.list", owner.language, used=used, gone=gone, left_out=left_out), private=True)
