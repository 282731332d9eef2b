"""What a person's chats cost: counts, no words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from bot.budgets import PRICED, Budgets
from bot.commands.order import Order, Pressed, Run
from bot.message import Reply
from config.locales import phrase
from config.settings import ModelSettings, Settings
from memory import Memory, Spent, UsageKind
from memory.ports import Clock

MILLION: Final = 1_000_000


class Spending:
    """``/usage``."""

    def __init__(self, memory: Memory, clock: Clock, settings: Settings, budgets: Budgets) -> None:
        self._memory = memory
        self._budgets = budgets
        self._clock = clock
        self._settings = settings

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"usage": self._usage}

    async def press(self, pressed: Pressed) -> Reply | None:
        """It has no buttons."""
        del pressed
        return None

    async def _usage(self, order: Order) -> Reply:
        owner, now = order.owner, self._clock()
        spent = await self._memory.usage.today(owner, now=now)
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        text = phrase(
            "usage.today",
            owner.language,
            since=f"{midnight.astimezone(ZoneInfo(owner.zone)):%H:%M}",
            zone=owner.zone,
            messages=spent.get("message", Spent()).times,
            spent={kind: _shown(spent[kind]) for kind in spent if kind != "message"},
            price=self._price(spent),
            budget=await self._budget(order, now),
            limits=[use.shown for use in await self._budgets.uses(owner, order.chat, now=now)],
        )
        return Reply(text, private=True)

    def _price(self, spent: Mapping[UsageKind, Spent]) -> str:
        """What the chat model cost, "" without prices; one that is left out is nothing."""
        model = self._settings.model
        price = price_of([spent[kind] for kind in PRICED if kind in spent], model)
        return "" if price is None else f"{price:.4f} {model.currency}"

    async def _budget(self, order: Order, now: datetime) -> dict[str, object]:
        """The budget of a day for distillation, as far as it is this person's to know."""
        limits = self._settings.distil
        own, whole = await self._memory.distilled(order.owner, now=now)
        return {
            "own": _number(own),
            "most": _number(limits.tokens_per_person_a_day) if limits.tokens_per_person_a_day else "",
            "all_spent": bool(limits.tokens_a_day) and whole >= limits.tokens_a_day,
        }


def price_of(spent: Iterable[Spent], model: ModelSettings) -> float | None:
    """What tokens of the chat model cost, in ``model.currency``; None without prices. One left out is nothing."""
    if model.price_in is None and model.price_out is None:
        return None
    whole = sum(spent, Spent())
    return (whole.tokens_in * (model.price_in or 0) + whole.tokens_out * (model.price_out or 0)) / MILLION


def _shown(spent: Spent) -> dict[str, object]:
    return {"times": spent.times, "tokens_in": _number(spent.tokens_in), "tokens_out": _number(spent.tokens_out)}


def _number(count: int) -> str:
    return f"{count:,}"
