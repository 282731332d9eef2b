"""Having nothing learned: for a while in one chat, or of one message."""

from __future__ import annotations

from collections.abc import Mapping
from zoneinfo import ZoneInfo

from bot.commands.order import Order, Pressed, Run
from bot.message import Reply
from config.locales import phrase
from memory import Memory


class Pausing:
    """``/pause``, ``/resume``, ``/offrecord``.

    A pause counts from the moment its command is heard (:mod:`bot.hearing`), so that what is said right behind it,
    while an earlier message is still being answered, falls into it. What is here only tells of it.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"pause": self._pause, "resume": self._resume, "offrecord": self._offrecord}

    async def press(self, pressed: Pressed) -> Reply | None:
        """It has no buttons."""
        del pressed
        return None

    async def _pause(self, order: Order) -> Reply:
        owner = order.owner
        since = await self._memory.pauses.since(owner, order.chat)
        at = "" if since is None else f"{since.astimezone(ZoneInfo(owner.zone)):%Y-%m-%d %H:%M}"
        private = order.chat.private
        return Reply(phrase("pause.begun", owner.language, since=at, name=owner.name, private=private))

    async def _resume(self, order: Order) -> Reply:
        owner = order.owner
        return Reply(phrase("pause.ended", owner.language, name=owner.name, private=order.chat.private))

    async def _offrecord(self, order: Order) -> Reply:
        return Reply(phrase("pause.usage", order.owner.language))
