"""Keeping what somebody asks for in so many words."""

from __future__ import annotations

from collections.abc import Mapping

from bot.commands.order import Order, Pressed, Run
from bot.message import Reply
from bot.trace import may_be_named
from config.locales import phrase
from memory import Memory
from memory.model import Message


class Remembering:
    """``/remember``."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"remember": self._remember}

    async def press(self, pressed: Pressed) -> Reply | None:
        """It has no buttons."""
        del pressed
        return None

    async def _remember(self, order: Order) -> Reply:
        language = order.owner.language
        if not order.words:
            return Reply(phrase("remember.usage", language))
        decision = await self._memory.remember(order.owner, order.chat, order.message, order.words)
        if decision.entry is None:
            return Reply(phrase("remember.refused", language, reason=decision.reason), private=True)
        named = may_be_named(decision.entry, order.chat)
        closed = await self._memory.entries(order.owner, decision.closed)
        text = phrase(
            "remember.kept",
            language,
            # What was said in private before stays there: a group hears back only what was just said to it.
            text=decision.entry.text if named else order.words,
            known=named and decision.action == "confirmed",
            replaced=[e.text for e in closed.values() if not isinstance(e, Message) and may_be_named(e, order.chat)],
        )
        if await self._memory.pauses.since(order.owner, order.chat) is not None:
            text = f"{text}\n{phrase('pause.kept_anyway', language)}"
        return Reply(text, private=True)
