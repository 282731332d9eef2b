"""Forgetting, and taking it back. Nothing is deleted before its owner has seen what would go."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from bot.commands.folding import MERGE, Folding
from bot.commands.order import Order, Pressed, Run, excerpt
from bot.commands.shown import shown
from bot.message import Button, Reply
from config.locales import phrase
from memory import Memory, PickError, Plan, PrivateOnlyError, UntypedError
from memory.model import Account, Chat, Message
from memory.ports import Clock

LONGEST_NUMBER: Final = 3
"""Digits of a number that a list may have; longer ones are words to be forgotten, a year or a phone number."""
MOST_BUTTONS: Final = 20
"""Numbers that get a button; a longer list is chosen from by typing (platforms take 25 to 100 buttons)."""
MOST_LISTED: Final = 100
"""Memories that are named one by one where words name them."""
EXAMPLES: Final = 10
"""Memories that are named where a time or a place means them: they are many, and what is meant is plain."""
LINES: Final = 3
"""Messages that are shown as examples."""

_OFFER: Final = re.compile(r"forget:(?P<id>\d{1,18}):(?P<choice>\w+)", re.ASCII)
_UNDO: Final = re.compile(r"undo:(?P<id>\d{1,18})", re.ASCII)
_ROW: Final = re.compile(r"row:(?P<id>\d{1,18})", re.ASCII)
"""A memory by its id, which no other will ever have."""
_YES: Final = frozenset({"yes", "y", "ok", "all", "是", "好", "确认", "確認", "全部"})
_NO: Final = frozenset({"no", "n", "cancel", "否", "不", "取消"})
_MEANS_ALL: Final = frozenset({"all", "全部"})
"""A yes to what is offered, or all there is when nothing is."""


class Forgetting:
    """``/forget``, ``/undo``."""

    def __init__(self, memory: Memory, clock: Clock, folding: Folding) -> None:
        """``folding`` answers ``/undo merge``."""
        self._memory = memory
        self._clock = clock
        self._folding = folding

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"forget": self._forget, "undo": self._undo}

    async def press(self, pressed: Pressed) -> Reply | None:
        """A choice under an offer, undo, or one memory of a list picked to be forgotten."""
        owner, now = pressed.owner, pressed.now
        if (found := _OFFER.fullmatch(pressed.button)) and owner.owns(int(found["id"])):
            return await self._chosen(owner, int(found["id"]), found["choice"], now=now)
        if (found := _UNDO.fullmatch(pressed.button)) and owner.owns(int(found["id"])):
            return await self._undone(owner, int(found["id"]), now=now)
        if (found := _ROW.fullmatch(pressed.button)) and owner.owns(int(found["id"])):
            plan = await self._memory.forgetting.choose(owner, pressed.chat, [int(found["id"])], now=now)
            if plan is None:
                return Reply(phrase("forget.number_gone", owner.language, count=1), private=True)
            return await self._shown(owner, pressed.chat, plan)
        return None

    async def _forget(self, order: Order) -> Reply:
        now, owner = self._clock(), order.owner
        words = unicodedata.normalize("NFKC", order.words).strip()
        choice = words.casefold()
        offer = await self._memory.forgetting.pending(owner, order.chat, now=now)
        if offer is None:
            if not words or (choice in (_YES | _NO) - _MEANS_ALL):
                return Reply(phrase("forget.usage", owner.language), private=True)
        elif choice in _YES or choice in _NO:
            return await self._chosen(owner, offer.id, choice, now=now)
        if not words:
            return Reply(phrase("forget.usage", owner.language), private=True)
        if _is_typed(words):
            if offer is not None and offer.data.get("scope") == "everything":
                return await self._carried_out(owner, offer.id, None, now=now, typed=True)
            return await self._offer(order, "everything", now=now)
        if numbers := _numbers(words):
            listed = await self._memory.lists.seen_last(owner, order.chat, now=now)
            if listed is not None and (offer is None or listed > offer.id):
                return await self._listed(order, numbers, now=now)
            if offer is not None:
                return await self._chosen(owner, offer.id, choice, now=now)
        return await self._offer(order, order.words, now=now)

    async def _listed(self, order: Order, numbers: Sequence[int], *, now: datetime) -> Reply:
        """Offer to delete what has these numbers in the list that was shown last."""
        lists, language = self._memory.lists, order.owner.language
        count = await lists.count(order.owner, order.chat, now=now)
        if not all(1 <= number <= count for number in numbers):
            return Reply(phrase("forget.no_such_number", language, count=count), private=True)
        found = [await lists.numbered(order.owner, order.chat, n, now=now) for n in dict.fromkeys(numbers)]
        ids = [entry.id for entry in found if entry is not None]
        plan = await self._memory.forgetting.choose(order.owner, order.chat, ids, now=now) if ids else None
        if plan is None:
            return Reply(phrase("forget.number_gone", language, count=len(found)), private=True)
        return await self._shown(order.owner, order.chat, plan)

    async def _offer(self, order: Order, words: str, *, now: datetime) -> Reply:
        language = order.owner.language
        try:
            plan = await self._memory.plan_forgetting(order.owner, order.chat, words, now=now)
        except PrivateOnlyError:
            return Reply(phrase("forget.not_here", language), private=True)
        if plan is None:
            text = phrase("forget.none", language, words=excerpt(words), private=order.chat.private)
            return Reply(text, private=True)
        return await self._shown(order.owner, order.chat, plan)

    async def _shown(self, owner: Account, chat: Chat, plan: Plan) -> Reply:
        """What a plan would delete, and how to say yes or no to it."""
        private, kind = chat.private, plan.scope.kind
        most = EXAMPLES if kind in ("since", "here", "everything") else MOST_LISTED
        told = {
            "entries": [shown(entry, owner, number) for number, entry in enumerate(plan.entries[:most], 1)],
            "count": len(plan.entries),
            "messages": sum(line.role == "user" for line in plan.lines),
            "replies": sum(line.role == "bot" for line in plan.lines),
            "lines": [excerpt(line.text) for line in _examples(plan)],
        }
        if kind == "everything":
            linked = sorted({account.platform for account in await self._memory.linking.linked(owner)})
            typed = phrase("forget.phrase", owner.language)
            text = phrase("forget.everything", owner.language, phrase=typed, linked=linked, **told)
            return Reply(
                text, (Button(f"forget:{plan.offer}:no", phrase("forget.button_no", owner.language)),), private=True
            )
        since = _moment(plan.scope.since, owner)
        text = phrase("forget.offer", owner.language, kind=kind, since=since, private=private, **told)
        single, listed = len(plan.entries) == 1, min(len(plan.entries), most, MOST_BUTTONS)
        labels = {
            "all": phrase("forget.button_all", owner.language, single=single),
            "no": phrase("forget.button_no", owner.language),
        }
        choices = (*([] if single else map(str, range(1, listed + 1))), *labels)
        buttons = [Button(f"forget:{plan.offer}:{choice}", labels.get(choice, choice)) for choice in choices]
        return Reply(text, tuple(buttons), private=True)

    async def _chosen(self, owner: Account, offer: int, choice: str, *, now: datetime) -> Reply:
        if choice in _NO:
            kept = await self._memory.forgetting.cancel(owner, offer, now=now)
            return Reply(phrase("forget.kept" if kept else "button.stale", owner.language), private=True)
        return await self._carried_out(owner, offer, None if choice in _YES else _numbers(choice), now=now)

    async def _carried_out(
        self, owner: Account, offer: int, picks: Sequence[int] | None, *, now: datetime, typed: bool = False
    ) -> Reply:
        language = owner.language
        try:
            deletion = await self._memory.forget(owner, offer, picks=picks, now=now, typed=typed)
        except PickError as error:
            return Reply(phrase("forget.no_such_number", language, count=error.count), private=True)
        except UntypedError:
            return Reply(phrase("forget.type_it", language, phrase=phrase("forget.phrase", language)), private=True)
        if deletion is None:
            return Reply(phrase("button.stale", language), private=True)
        at = deletion.erase_at.astimezone(ZoneInfo(owner.zone))
        text = phrase("forget.hidden", language, at=f"{at:%H:%M}", **deletion.counts)
        undo = Button(f"undo:{deletion.id}", phrase("forget.button_undo", language))
        return Reply(text, (undo,), private=True)

    async def _undo(self, order: Order) -> Reply:
        if (found := MERGE.fullmatch(order.words.strip())) is not None:
            return await self._folding.undo(order, found["number"])
        return await self._undone(order.owner, None, now=self._clock(), asked_at=order.message.at)

    async def _undone(
        self, owner: Account, deletion: int | None, *, now: datetime, asked_at: datetime | None = None
    ) -> Reply:
        undone = await self._memory.undo(owner, deletion, now=now, asked_at=asked_at)
        if undone is None:
            return Reply(phrase("undo.nothing", owner.language), private=True)
        return Reply(phrase("undo.done", owner.language, **undone.counts), private=True)


def _examples(plan: Plan) -> Sequence[Message]:
    """Messages of a person that show what would go; none where memories show it, and none that may not be repeated."""
    if plan.entries and plan.scope.searches:
        return ()
    return [line for line in plan.lines if line.role == "user" and not line.fleeting][:LINES]


def _moment(since: datetime | None, owner: Account) -> str:
    return "" if since is None else f"{since.astimezone(ZoneInfo(owner.zone)):%Y-%m-%d %H:%M}"


def _is_typed(words: str) -> bool:
    """Whether somebody typed that all of it is to go, in any language, with or without its commas."""
    return any(_letters(words) == _letters(phrase("forget.phrase", language)) for language in ("en", "zh", "zh-TW"))


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _numbers(words: str) -> Sequence[int]:
    """Numbers such as "1 3" or "1,3"; nothing when there is anything else, or a number no list would have."""
    parts = words.replace(",", " ").replace("，", " ").replace("、", " ").split()
    return [int(part) for part in parts] if all(p.isdecimal() and len(p) <= LONGEST_NUMBER for p in parts) else []
