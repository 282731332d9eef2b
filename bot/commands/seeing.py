"""Seeing what is remembered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from bot.commands.disputing import WRONG
from bot.commands.numbering import kept
from bot.commands.order import Order, Pressed, Run, excerpt
from bot.commands.paging import cut, turners
from bot.commands.shown import shown
from bot.message import Button, Reply
from config.locales import phrase
from memory import Listed, Memory, Page
from memory.model import Account
from memory.ports import Clock

_PAGE: Final = re.compile(r"known:(?P<list>\d{1,18}):(?P<page>\d{1,6})", re.ASCII)


class Seeing:
    """``/whatdoyouknow``."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"whatdoyouknow": self._whatdoyouknow}

    async def press(self, pressed: Pressed) -> Reply | None:
        """Turn a page of the list that was seen last."""
        found = _PAGE.fullmatch(pressed.button)
        if found is None or not pressed.owner.owns(int(found["list"])):
            return None
        listed = await self._memory.lists.listed(pressed.owner, int(found["list"]), now=pressed.now)
        page = int(found["page"])
        if listed is None or page >= len(listed.pages):
            return None
        return replace(await self._page(pressed.owner, listed, page, now=pressed.now), in_place=True)

    async def _whatdoyouknow(self, order: Order) -> Reply:
        reply = await self._listed(order)
        if await self._memory.pauses.since(order.owner, order.chat) is None:
            return reply
        return replace(reply, text=f"{reply.text}\n{phrase('pause.here', order.owner.language)}")

    async def _listed(self, order: Order) -> Reply:
        owner, chat, now = order.owner, order.chat, self._clock()
        seen = await self._memory.overview.of(owner, chat, words=order.words, now=now)
        if not seen.entries:
            key, more = ("known.none", {"words": excerpt(order.words)}) if seen.chosen else ("known.nothing", {})
            return Reply(phrase(key, owner.language, private=chat.private, **more), private=True)
        numbers = iter(range(1, len(seen.entries) + 1))
        ids = [entry.id for entry in seen.entries]
        lines = [(title, [shown(e, owner, next(numbers), now=now) for e in entries]) for title, entries in seen.groups]
        pages: list[Page] = [
            [(title, [ids[line.number - 1] for line in part]) for title, part in page] for page in cut(lines)
        ]
        listed = await kept(self._memory, owner, chat, pages, now=now, chosen=seen.chosen)
        return await self._page(owner, listed, 0, now=now, words=excerpt(order.words))

    async def _page(self, owner: Account, listed: Listed, page: int, *, now: datetime, words: str = "") -> Reply:
        """One page of a list as it is now; what was forgotten since has left a gap in the numbers."""
        room = await self._memory.lists.room(owner, listed)
        found = await self._memory.lists.read(owner, room, listed.ids, now=now)
        groups: list[dict[str, object]] = []
        number = listed.first(page)
        for title, ids in listed.pages[page]:
            lines = [shown(found[id_], owner, number + place, now=now) for place, id_ in enumerate(ids) if id_ in found]
            number += len(ids)
            if lines:
                groups.append({"title": title, "entries": lines})
        text = phrase(
            "known.list",
            owner.language,
            groups=groups,
            count=len(found),
            page=page + 1,
            pages=len(listed.pages),
            words=words,
            chosen=listed.chosen,
            private=room.private,
        )
        wrong = Button(f"{WRONG}:{listed.id}:{page}", phrase("dispute.button", owner.language))
        return Reply(text, (*turners("known", listed.id, page, len(listed.pages)), wrong), private=True)
