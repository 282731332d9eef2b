"""The commands about the talk itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from bot.commands.order import Order, Pressed, Run
from bot.message import Reply
from config.locales import phrase
from memory import Memory
from memory.model import Account
from memory.ports import Clock


class Talking:
    """``/start``, ``/help``, ``/new``, ``/cancel``, ``/retry``."""

    def __init__(self, memory: Memory, clock: Clock, names: Callable[[Account], Awaitable[Sequence[str]]]) -> None:
        """``names`` are those of the commands that somebody may give, for ``/help``."""
        self._memory = memory
        self._clock = clock
        self._names = names

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {
            "start": self._start,
            "help": self._help,
            "new": self._new,
            "cancel": self._cancel,
            "retry": self._retry,
        }

    async def press(self, pressed: Pressed) -> Reply | None:
        """It has no buttons."""
        del pressed
        return None

    async def _start(self, order: Order) -> Reply:
        text = phrase("start", order.owner.language)
        if await self._memory.pauses.since(order.owner, order.chat) is not None:
            text = f"{text}\n{phrase('pause.here', order.owner.language)}"
        return Reply(text)

    async def _help(self, order: Order) -> Reply:
        language = order.owner.language
        listed = [
            {"name": name, "does": phrase(f"command.{name}", language)} for name in await self._names(order.owner)
        ]
        return Reply(phrase("help", language, commands=listed))

    async def _new(self, order: Order) -> Reply:
        await self._memory.new_session(order.owner, order.chat, now=self._clock())
        return Reply(phrase("new", order.owner.language))

    async def _retry(self, order: Order) -> Reply:
        """Only what cannot be answered again comes here (:mod:`bot.hearing`), with the reason as its words."""
        return Reply(phrase("retry.busy" if order.words == "busy" else "retry.nothing", order.owner.language))

    async def _cancel(self, order: Order) -> Reply:
        """Stopping is the conversation's work, which tells by the words whether there was anything to stop."""
        return Reply(phrase("cancel.stopped" if order.words else "cancel.nothing", order.owner.language))
