"""Forgetting, and taking it back. Nothing is deleted before its owner has seen what would go."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from bot.commands.order import Order, Pressed, Run, excerpt
from bot.commands.shown import shown
from bot.message import Button, Reply
from config.locales import phrase
from memory import Memory, PickError
from memory.model import Account
from memory.ports import Clock

LONGEST_NUMBER: Final = 3
"""Digits of a number that a list may have; longer ones are words to be forgotten, a year or a phone number."""
MOST_BUTTONS: Final = 20
"""Numbers that get a button; a longer list is chosen from by typing (platforms take 25 to 100 buttons)."""

_OFFER: Final = re.compile(r"forget:(?P<id>\d{1,18}):(?P<choice>\w+)", re.ASCII)
_UNDO: Final = re.compile(r"undo:(?P<id>\d{1,18})", re.ASCII)
_YES: Final = frozenset({"yes", "y", "ok", "all", "是", "好", "确认", "確認", "全部"})
_NO: Final = frozenset({"no", "n", "cancel", "否", "不", "取消"})


class Forgetting:
    """``/forget``, ``/undo``."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"forget": self._forget, "undo": self._undo}

    async def press(self, pressed: Pressed) -> Reply | None:
        """A choice under an offer, or undo."""
        owner, now = pressed.owner, pressed.now
        if (found := _OFFER.fullmatch(pressed.button)) and owner.owns(int(found["id"])):
            return await self._chosen(owner, int(found["id"]), found["choice"], now=now)
        if (found := _UNDO.fullmatch(pressed.button)) and owner.owns(int(found["id"])):
            return await self._undone(owner, int(found["id"]), now=now)
        return None

    async def _forget(self, order: Order) -> Reply:
        now, language = self._clock(), order.owner.language
        words = unicodedata.normalize("NFKC", order.words).strip()
        offer = await self._memory.pending_forgetting(order.owner, order.chat, now=now)
        choice = words.casefold()
        if not words or (offer is None and (choice in _YES or choice in _NO)):
            return Reply(phrase("forget.usage", language), private=True)
        if offer is not None and (choice in _YES or choice in _NO or _numbers(words)):
            return await self._chosen(order.owner, offer, choice, now=now)
        return await self._offer(order, order.words, now=now)

    async def _offer(self, order: Order, words: str, *, now: datetime) -> Reply:
        owner = order.owner
        plan = await self._memory.plan_forgetting(owner, order.chat, words, now=now)
        if plan is None:
            text = phrase("forget.none", owner.language, words=excerpt(words), private=order.chat.private)
            return Reply(text, private=True)
        listed = [shown(entry, owner, number) for number, entry in enumerate(plan.entries, 1)]
        text = phrase(
            "forget.offer",
            owner.language,
            entries=listed,
            messages=sum(line.role == "user" for line in plan.lines),
            replies=sum(line.role == "bot" for line in plan.lines),
            private=order.chat.private,
        )
        single = len(listed) == 1
        labels = {
            "all": phrase("forget.button_all", owner.language, single=single),
            "no": phrase("forget.button_no", owner.language),
        }
        numbers = [] if single else [str(number) for number in range(1, min(len(listed), MOST_BUTTONS) + 1)]
        choices = (*numbers, *labels)
        buttons = [Button(f"forget:{plan.offer}:{choice}", labels.get(choice, choice)) for choice in choices]
        return Reply(text, tuple(buttons), private=True)

    async def _chosen(self, owner: Account, offer: int, choice: str, *, now: datetime) -> Reply:
        if choice in _NO:
            kept = await self._memory.forgetting.cancel(owner, offer, now=now)
            return Reply(phrase("forget.kept" if kept else "button.stale", owner.language), private=True)
        picks = None if choice in _YES else _numbers(choice)
        try:
            deletion = await self._memory.forget(owner, offer, picks=picks, now=now)
        except PickError as error:
            return Reply(phrase("forget.no_such_number", owner.language, count=error.count), private=True)
        if deletion is None:
            return Reply(phrase("button.stale", owner.language), private=True)
        at = deletion.erase_at.astimezone(ZoneInfo(owner.zone))
        text = phrase("forget.hidden", owner.language, at=f"{at:%H:%M}", **deletion.counts)
        undo = Button(f"undo:{deletion.id}", phrase("forget.button_undo", owner.language))
        return Reply(text, (undo,), private=True)

    async def _undo(self, order: Order) -> Reply:
        return await self._undone(order.owner, None, now=self._clock(), asked_at=order.message.at)

    async def _undone(
        self, owner: Account, deletion: int | None, *, now: datetime, asked_at: datetime | None = None
    ) -> Reply:
        undone = await self._memory.undo(owner, deletion, now=now, asked_at=asked_at)
        if undone is None:
            return Reply(phrase("undo.nothing", owner.language), private=True)
        return Reply(phrase("undo.done", owner.language, **undone.counts), private=True)


def _numbers(words: str) -> Sequence[int]:
    """Numbers such as "1 3" or "1,3"; nothing when there is anything else, or a number no list would have."""
    parts = words.replace(",", " ").replace("，", " ").replace("、", " ").split()
    return [int(part) for part in parts] if all(p.isdecimal() and len(p) <= LONGEST_NUMBER for p in parts) else []
