"""Two accounts of one human, told to the bot by a code: shown on the one, typed on the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from zoneinfo import ZoneInfo

from bot.commands.order import Order, Pressed, Run
from bot.message import Reply
from config.locales import phrase
from memory import Memory
from memory.model import Account
from memory.ports import Clock

LONGEST_CODE: Final = 40
"""Characters of what may be a code, with whatever people put between its signs."""


class Linking:
    """``/link``, ``/unlink``, in private chats."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"link": self._link, "unlink": self._unlink}

    async def press(self, pressed: Pressed) -> Reply | None:
        """It has no buttons."""
        del pressed
        return None

    async def _link(self, order: Order) -> Reply:
        owner, now, linking = order.owner, self._clock(), self._memory.linking
        typed = order.words[:LONGEST_CODE]
        if not order.chat.private:
            # Whoever reads along could be quicker with it.
            void = bool(typed) and await linking.void(owner, typed, now=now)
            return Reply(phrase("link.not_here", owner.language, void=void), private=True)
        if typed:
            result = await linking.redeem(owner, typed, now=now)
            platform = "" if result.other is None else result.other.platform
            return Reply(phrase("link.done", owner.language, outcome=result.outcome, platform=platform), private=True)
        shown = await linking.show(owner, order.chat, now=now)
        until = f"{shown.until.astimezone(ZoneInfo(owner.zone)):%H:%M}"
        linked = _platforms(await linking.linked(owner))
        text = phrase("link.code", owner.language, code=shown.code, until=until, linked=linked)
        return Reply(text, private=True)

    async def _unlink(self, order: Order) -> Reply:
        owner = order.owner
        if not order.chat.private:
            return Reply(phrase("link.not_here", owner.language, void=False), private=True)
        others = await self._memory.linking.unlink(owner, now=self._clock())
        return Reply(phrase("unlink.done", owner.language, others=_platforms(others)), private=True)


def _platforms(accounts: list[Account]) -> list[str]:
    return [account.platform.title() for account in accounts]
