"""How the running bot stands: what ``/readyz`` and ``/metrics`` tell of it, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bot.budgets import PRICED
from bot.commands.spending import price_of
from bot.conversation import Conversation
from bot.llm import LLM
from bot.message import Adapter, Connects
from bot.metrics import Page, Tallied
from config.settings import Settings
from memory import DatabaseError, Memory, Spent
from memory.ports import Clock


class Watching:
    """Looks at a bot from outside; ``serving`` are the platforms that are up, of those in ``adapters``."""

    def __init__(
        self,
        settings: Settings,
        memory: Memory,
        conversation: Conversation,
        clock: Clock,
        *,
        model: LLM | None,
        adapters: Mapping[str, Adapter],
        serving: Callable[[str], bool],
    ) -> None:
        self._settings = settings
        self._memory = memory
        self._conversation = conversation
        self._clock = clock
        self._model = model
        self._adapters = adapters
        self._serving = serving
        prices = settings.model
        self._page = Page(
            Tallied(
                lambda: memory.tallies.since_start,
                PRICED,
                lambda read, written: price_of([Spent(0, read, written)], prices),
                prices.currency,
            )
        )

    async def readiness(self) -> Mapping[str, bool]:
        """Whether the file takes writes, platforms are connected, and the endpoint is asked.

        That its migrations are done goes without saying: nobody is here before that.
        """
        try:
            await self._memory.tallies.prove_writable(now=self._clock())
            writable = True
        except DatabaseError:
            writable = False
        found = {"database": writable}
        found |= {f"platform_{name}": self._connected(name, adapter) for name, adapter in self._adapters.items()}
        if self._model is not None:
            found["endpoint"] = not self._model.resting
        return found

    async def metrics(self) -> bytes:
        """The page for Prometheus. Raises DatabaseError."""
        idle_minutes = self._settings.session.idle_minutes
        waiting = await self._memory.tallies.waiting(now=self._clock(), idle_seconds=idle_minutes * 60)
        queues = {"queued": self._conversation.queued, "chats_answered": self._conversation.answering}
        connected = {f"connected_{name}": self._connected(name, adapter) for name, adapter in self._adapters.items()}
        resting = {} if self._model is None else {"endpoint_resting": self._model.resting}
        return self._page.text({**waiting, **queues, **connected, **resting})

    def _connected(self, name: str, adapter: Adapter) -> bool:
        return self._serving(name) and (adapter.connected if isinstance(adapter, Connects) else True)
