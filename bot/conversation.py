"""One worker a chat: order inside a chat, chats side by side, and no failure that stops more than one turn."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from bot.language import language_of
from bot.message import ChatRef, DeliveryError, Incoming, Reply, Sink, Update
from config.locales import phrase
from memory.ports import Clock

log = logging.getLogger(__name__)

QUEUE: Final = 100
"""Updates of one chat that may wait for an answer; a message beyond them is kept, but answered with a word only."""
APOLOGY_EVERY: Final = timedelta(minutes=1)
"""A failure of one sort is told to a chat at most this often; every one is in the log."""

Answer = Callable[[Update, Sink], Awaitable[None]]


@dataclass(slots=True)
class _Worker:
    queue: deque[tuple[Update, Sink]] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None


class _Unheard:
    """The sink of a message whose sender was told already that it gets no answer."""

    async def show(self, text: str) -> None:
        """Show nothing."""

    async def send(self, reply: Reply) -> str | None:
        """Send nothing."""

    async def done(self) -> None:
        """Nothing was begun."""


class Conversation:
    """Queues updates by chat and answers them in order through ``answer``.

    ``behind`` is called after each answer, to wake what happens behind the replies.
    """

    def __init__(self, answer: Answer, clock: Clock, behind: Callable[[], None] = lambda: None) -> None:
        self._answer = answer
        self._behind = behind
        self._clock = clock
        self._workers: dict[ChatRef, _Worker] = {}
        self._told: dict[tuple[ChatRef, str], datetime] = {}
        self._refusals: set[asyncio.Task[None]] = set()

    async def submit(self, update: Update, sink: Sink) -> None:
        """Queue an update and return at once. What a full queue cannot answer is kept without an answer, and told."""
        worker = self._workers.setdefault(update.chat, _Worker())
        if len(worker.queue) < QUEUE:
            worker.queue.append((update, sink))
        else:
            # Told on the side: a platform hands in updates one by one, and one chat's flood wait must not hold them.
            refusal = asyncio.create_task(self._refuse(update, sink))
            self._refusals.add(refusal)
            refusal.add_done_callback(self._refusals.discard)
            if not isinstance(update, Incoming):
                return
            worker.queue.append((replace(update, wants_reply=False), _Unheard()))
        if worker.task is None or worker.task.done():
            worker.task = asyncio.create_task(self._work(update.chat, worker), name=f"chat {update.chat.key}")

    async def idle(self) -> None:
        """Wait until everything submitted so far is answered."""
        while running := self._running():
            await asyncio.wait(running)

    async def stop(self, grace_seconds: float = 20.0) -> None:
        """Answer what was submitted, for at most ``grace_seconds``; then cancel what is left."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await self.idle()
        late = self._running()
        if late:
            waiting = sum(len(worker.queue) for worker in self._workers.values())
            log.warning("stopped in the middle of %d replies, with %d messages unanswered", len(late), waiting)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _running(self) -> list[asyncio.Task[None]]:
        workers = [w.task for w in self._workers.values() if w.task is not None and not w.task.done()]
        return [*workers, *self._refusals]

    async def _work(self, chat: ChatRef, worker: _Worker) -> None:
        while worker.queue:
            update, sink = worker.queue.popleft()
            try:
                await self._answer(update, sink)
            except DeliveryError as error:
                log.warning("chat %s: the reply did not arrive (%s)", chat.key, error)
            except Exception:
                # The border of one turn: whatever broke, the chat hears of it and goes on.
                number = secrets.token_hex(3)
                log.exception("turn %s in chat %s failed", number, update.chat.key)
                await self._tell(update, sink, "error.internal", number=number)
            finally:
                await _end(sink)
                self._behind()
        self._workers.pop(chat, None)

    async def _refuse(self, update: Update, sink: Sink) -> None:
        await self._tell(update, sink, "error.busy")
        await _end(sink)

    async def _tell(self, update: Update, sink: Sink, key: str, **values: str) -> None:
        now = self._clock()
        self._told = {told: at for told, at in self._told.items() if now - at < APOLOGY_EVERY}
        if (update.chat, key) in self._told:
            return
        self._told[update.chat, key] = now
        try:
            await sink.send(Reply(phrase(key, language_of(update), **values)))
        except DeliveryError as error:
            log.warning("chat %s could not be told of a failure (%s)", update.chat.key, error)
        except Exception:
            log.exception("chat %s could not be told of a failure", update.chat.key)


async def _end(sink: Sink) -> None:
    """End an update for its platform, whose failure there is nobody else's."""
    try:
        await sink.done()
    except Exception:
        log.exception("a platform did not end an update")
