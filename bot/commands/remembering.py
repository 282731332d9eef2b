"""Keeping what somebody asks for in so many words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from bot.commands.order import Order, Pressed, Run
from bot.commands.shown import shown
from bot.message import Button, Reply
from bot.trace import may_be_named
from config.locales import phrase
from memory import Memory
from memory.model import Message
from memory.ports import Clock

_PUT_BACK: Final = re.compile(r"unreplace:(?P<id>\d{1,18})", re.ASCII)


class Remembering:
    """``/remember``."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"remember": self._remember}

    async def press(self, pressed: Pressed) -> Reply | None:
        """A replacement is taken back."""
        found, owner = _PUT_BACK.fullmatch(pressed.button), pressed.owner
        if found is None or not owner.owns(int(found["id"])):
            return None
        reopened = await self._memory.corrections.put_back(owner, int(found["id"]), now=pressed.now)
        if not reopened:
            return None
        named = [entry.text for entry in reopened if may_be_named(entry, pressed.chat)]
        return Reply(phrase("remember.back", owner.language, back=named), private=True)

    async def _remember(self, order: Order) -> Reply:
        language = order.owner.language
        if not order.words:
            return Reply(phrase("remember.usage", language))
        decision = await self._memory.remember(order.owner, order.chat, order.message, order.words)
        if decision.entry is None:
            return Reply(phrase("remember.refused", language, reason=decision.reason), private=True)
        named = may_be_named(decision.entry, order.chat)
        closed = await self._memory.entries(order.owner, decision.closed)
        replaced = [e.text for e in closed.values() if not isinstance(e, Message) and may_be_named(e, order.chat)]
        text = phrase(
            "remember.kept",
            language,
            # What was said in private before stays there: a group hears back only what was just said to it.
            text=decision.entry.text if named else order.words,
            when=shown(decision.entry, order.owner, 1, now=self._clock()).when if named else "",
            ended=named and decision.action == "retired",
            known=named and decision.action == "confirmed",
            replaced=[] if decision.action == "retired" else replaced,
        )
        if await self._memory.pauses.since(order.owner, order.chat) is not None:
            text = f"{text}\n{phrase('pause.kept_anyway', language)}"
        buttons: tuple[Button, ...] = ()
        if decision.action == "superseded":
            buttons = (Button(f"unreplace:{decision.entry.id}", phrase("remember.button_undo", language)),)
        return Reply(text, buttons, private=True)
