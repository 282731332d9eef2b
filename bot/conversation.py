"""One worker a chat: order inside a chat, chats side by side, and no failure that stops more than one turn.

A message is journaled before it is queued. Quick messages of one person become one turn, and so do those
that come in while the last turn is being answered. ``/cancel`` does not queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Final, Protocol

from bot.apologies import Apologies
from bot.breaker import Breaker
from bot.language import language_of
from bot.message import ChatRef, Deleted, Edited, Press, Sink, Update
from bot.turn import Heard, Said
from config.settings import ConversationSettings
from memory.ports import Clock

log = logging.getLogger(__name__)

QUEUE: Final = 100
"""Updates of one chat that may wait for an answer; a message beyond them is kept, but answered with a word only."""
PATIENCE: Final = 5
"""Quiet times after which a person who writes and writes is answered all the same."""
ALBUM_SECONDS: Final = 1.0
"""Quiet time after a picture of an album, whatever the settings: its pictures come as messages of their own."""
MOST_JOINED: Final = 20
"""Messages that one turn may answer."""
CANCEL: Final = "cancel"


class Desk(Protocol):
    """Who hears updates and answers them: the agent."""

    async def hear(self, update: Update) -> Heard | None:
        """Make an update durable. Returns what now waits for an answer. Raises Apology."""

    async def answer(self, turn: Sequence[Said], sink: Sink) -> None:
        """Answer what one person said as one. Raises Apology and DeliveryError."""

    async def press(self, press: Press, sink: Sink) -> None:
        """Obey a button. Raises Apology and DeliveryError."""

    async def give_up(self, said: Sequence[Said]) -> None:
        """Let messages wait no longer; they stay in the journal and are not answered."""


@dataclass(frozen=True, slots=True)
class _Item:
    """Something that waits for an answer since ``at``."""

    heard: Heard
    sink: Sink
    at: datetime

    @property
    def said(self) -> Said | None:
        return self.heard if isinstance(self.heard, Said) else None

    @property
    def chat(self) -> ChatRef:
        return self.heard.chat if isinstance(self.heard, Press) else self.heard.incoming.chat

    @property
    def language(self) -> str:
        return language_of(self.heard) if isinstance(self.heard, Press) else self.heard.owner.language

    def is_talk_of(self, account: int) -> bool:
        """Whether it is that account's ordinary talk, which may be cancelled."""
        return self.said is not None and self.said.is_talk and self.said.owner.no == account

    def is_one_of(self, messages: Container[int]) -> bool:
        """Whether it is one of these journaled messages."""
        return self.said is not None and self.said.message.id in messages


@dataclass(slots=True)
class _Worker:
    """A chat that is being served. ``door`` lets updates in one after the other; ``running`` is being answered."""

    door: asyncio.Lock = field(default_factory=asyncio.Lock)
    coming: int = 0
    stirred: asyncio.Event = field(default_factory=asyncio.Event)
    queue: deque[_Item] = field(default_factory=deque)
    running: list[_Item] = field(default_factory=list)
    answering: asyncio.Task[None] | None = None
    task: asyncio.Task[None] | None = None

    @property
    def held(self) -> list[Said]:
        """Every message that is queued or being answered."""
        return [item.said for item in (*self.running, *self.queue) if item.said is not None]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is done here and nothing comes in."""
        return not (self.coming or self.queue) and (self.task is None or self.task.done())

    def put(self, items: Iterable[_Item], *, place: int | None = None) -> None:
        """Queue items at ``place``, by default behind the others."""
        waiting = list(self.queue)
        at = len(waiting) if place is None else place
        self.queue = deque([*waiting[:at], *items, *waiting[at:]])
        self.stirred.set()

    def pull(self, chosen: Callable[[_Item], bool]) -> list[_Item]:
        """Take items out of the queue."""
        pulled = [item for item in self.queue if chosen(item)]
        self.queue = deque(item for item in self.queue if not chosen(item))
        self.stirred.set()
        return pulled

    async def interrupt(self) -> list[_Item]:
        """Stop the answer under way; returns what it was to answer."""
        stopped = self.running
        if self.answering is not None:
            self.answering.cancel()
            await asyncio.wait({self.answering})
        return stopped


class Conversation:
    """Queues updates by chat and has them answered in order by ``desk``.

    ``behind`` is called after each answer, to wake what happens behind the replies. ``sleep`` lets
    seconds pass; ``clock`` tells how many did.
    """

    def __init__(
        self,
        desk: Desk,
        clock: Clock,
        settings: ConversationSettings,
        *,
        behind: Callable[[], None] = lambda: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._desk = desk
        self._behind = behind
        self._clock = clock
        self._sleep = sleep
        self._quiet = settings.quiet_seconds
        self._breaker = Breaker(settings.turns_a_minute)
        self._workers: dict[ChatRef, _Worker] = {}
        self._apologies = Apologies(clock)
        self._asides: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def submit(self, update: Update, sink: Sink) -> None:
        """Have an update heard and queued; it is durable when this returns. Failures are told, never raised."""
        async with self._at_work(update.chat) as worker:
            try:
                if isinstance(update, Edited | Deleted):
                    await self._change(worker, update, sink)
                else:
                    await self._take(worker, await self._desk.hear(update), sink)
            except Exception as error:  # noqa: BLE001
                # The border of one update: whatever broke, its chat hears of it and goes on.
                await self._apologies.explain(error, update.chat, language_of(update), sink)
                await _end(sink)

    async def resume(self, said: Said, sink: Sink, *, still: Callable[[], Awaitable[bool]]) -> None:
        """Queue a message that was journaled before a stop, unless it is here already or does not wait ``still``."""
        async with self._at_work(said.incoming.chat) as worker:
            await self._take(worker, said if await still() else None, sink)

    def holds(self, said: Said) -> bool:
        """Whether a message is queued or being answered here."""
        worker = self._workers.get(said.incoming.chat)
        return worker is not None and any(held.message.id == said.message.id for held in worker.held)

    async def idle(self) -> None:
        """Wait until everything submitted so far is answered."""
        while running := self._running():
            await asyncio.wait(running)

    async def stop(self, grace_seconds: float = 20.0) -> None:
        """Answer what was submitted, for at most ``grace_seconds``; what is left waits for the next start."""
        self._stopping = True
        for worker in self._workers.values():
            worker.stirred.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await self.idle()
        late = self._running()
        if late:
            waiting = sum(len(worker.held) for worker in self._workers.values())
            log.warning("stopped with %d messages unanswered; the next start answers them", waiting)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def _at_work(self, chat: ChatRef) -> AsyncIterator[_Worker]:
        """The worker of a chat, for one update at a time; afterwards it works off what it was given."""
        worker = self._workers.setdefault(chat, _Worker())
        worker.coming += 1
        try:
            async with worker.door:
                yield worker
        finally:
            worker.coming -= 1
            if worker.queue and (worker.task is None or worker.task.done()):
                worker.task = asyncio.create_task(self._work(chat, worker), name=f"chat {chat.key}")
            self._leave(chat, worker)

    def _leave(self, chat: ChatRef, worker: _Worker) -> None:
        if worker.is_idle:
            self._workers.pop(chat, None)

    async def _take(self, worker: _Worker, heard: Heard | None, sink: Sink) -> None:
        """Queue what waits for an answer, unless it waits already."""
        if heard is None or (isinstance(heard, Said) and self.holds(heard)):
            await _end(sink)
            return
        item = _Item(heard, sink, self._clock())
        if item.said is not None and item.said.command is not None and item.said.command[0] == CANCEL:
            self._aside(self._cancel(worker, item.said, sink))
        elif len(worker.queue) >= QUEUE:
            # Told on the side: a platform hands in updates one by one, and one chat's flood wait must not hold them.
            self._aside(self._refuse(item))
        else:
            worker.put([item])

    async def _change(self, worker: _Worker, update: Edited | Deleted, sink: Sink) -> None:
        """Hear that messages are other than they were, or no more: nobody is answered as if they still stood."""
        ids = update.message_ids if isinstance(update, Deleted) else (update.message.message_id,)
        held = {said.message.id: said for said in worker.held if said.incoming.message_id in ids}
        if any(isinstance(update, Edited) and said.incoming.text == update.message.text for said in held.values()):
            await _end(sink)  # a link got its preview
            return
        place = next((n for n, item in enumerate(worker.queue) if item.is_one_of(held)), None if not held else 0)
        rest = await self._without(worker, held)
        try:
            if (heard := await self._desk.hear(update)) is None:
                await _end(sink)
            else:
                rest.append(_Item(heard, sink, self._clock()))
        finally:
            worker.put(rest, place=place)

    async def _without(self, worker: _Worker, gone: Container[int]) -> list[_Item]:
        """Take messages out of the queue and out of the answer under way; returns what else that was to answer."""
        for item in worker.pull(lambda item: item.is_one_of(gone)):
            await _end(item.sink)
        if not any(item.is_one_of(gone) for item in worker.running):
            return []
        return [item for item in await worker.interrupt() if not item.is_one_of(gone)]

    async def _cancel(self, worker: _Worker, said: Said, sink: Sink) -> None:
        """Stop whatever the sender of a /cancel waits for, the answer under way too, and say so."""
        dropped = worker.pull(lambda item: item.is_talk_of(said.owner.no))
        for item in dropped:
            await _end(item.sink)
        if worker.running and worker.running[-1].is_talk_of(said.owner.no):
            dropped += await worker.interrupt()
        stopped = [item.said for item in dropped if item.said is not None]
        try:
            await self._desk.give_up(stopped)
        finally:
            obeyed = replace(said, command=(CANCEL, "stopped" if stopped else ""))
            await self._turn([_Item(obeyed, sink, self._clock())])

    async def _work(self, chat: ChatRef, worker: _Worker) -> None:
        try:
            while turn := await self._next(worker):
                worker.running = turn
                worker.answering = asyncio.create_task(self._turn(turn))
                try:
                    await asyncio.wait({worker.answering})
                finally:
                    await worker.interrupt()
                    worker.running, worker.answering = [], None
                    self._behind()
        finally:
            worker.task = None
            self._leave(chat, worker)

    async def _next(self, worker: _Worker) -> list[_Item]:
        """Wait until a turn is whole, and take it out of the queue; nothing when the queue is empty."""
        while worker.queue:
            turn = _joined(worker.queue)
            more_may_come = len(turn) == len(worker.queue) and len(turn) < MOST_JOINED and not self._stopping
            left = self._quiet_left(turn) if more_may_come else 0.0
            worker.stirred.clear()
            if left > 0:
                await _either(self._sleep(left), worker.stirred.wait())
            if not worker.stirred.is_set():
                for _ in turn:
                    worker.queue.popleft()
                return turn
        return []

    def _quiet_left(self, turn: Sequence[_Item]) -> float:
        """Seconds to wait for more of a turn."""
        if turn[-1].said is None or not turn[-1].said.is_talk:
            return 0.0
        albums = any(item.said is not None and item.said.incoming.album is not None for item in turn)
        quiet = max(self._quiet, ALBUM_SECONDS) if albums else self._quiet
        now = self._clock()
        since_first, since_last = ((now - item.at).total_seconds() for item in (turn[0], turn[-1]))
        # Never longer than the quiet time itself, whatever the clock of the machine does meanwhile.
        return min(quiet, quiet - since_last, PATIENCE * quiet - since_first)

    async def _turn(self, turn: Sequence[_Item]) -> None:
        """Answer one turn where its last message came from."""
        *earlier, last = turn
        for item in earlier:
            await _end(item.sink)
        try:
            if isinstance(last.heard, Press):
                await self._desk.press(last.heard, last.sink)
            elif await self._goes_on(turn):
                await self._desk.answer([item.said for item in turn if item.said is not None], last.sink)
        except Exception as error:  # noqa: BLE001
            # The border of one turn: whatever broke, its chat hears of it and goes on.
            await self._apologies.explain(error, last.chat, last.language, last.sink)
        finally:
            await _end(last.sink)

    async def _goes_on(self, turn: Sequence[_Item]) -> bool:
        """Whether a turn is to be answered; not when two programs seem to talk to each other."""
        said = [item.said for item in turn if item.said is not None]
        chat = turn[-1].chat
        verdict = self._breaker.judge((chat, said[-1].owner.no), self._clock())
        if verdict == "go":
            return True
        await self._desk.give_up(said)
        if verdict == "opened":
            log.warning("chat %s: too many turns a minute, nobody is answered there for a while", chat.key)
            await self._apologies.tell(chat, "error.loop", turn[-1].language, turn[-1].sink)
        return False

    async def _refuse(self, item: _Item) -> None:
        """Tell that the queue is full; what was said is kept all the same."""
        try:
            if item.said is not None:
                await self._desk.give_up([item.said])
            await self._apologies.tell(item.chat, "error.busy", item.language, item.sink)
        except Exception as error:  # noqa: BLE001
            await self._apologies.explain(error, item.chat, item.language, item.sink)
        finally:
            await _end(item.sink)

    def _aside(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)

    def _running(self) -> list[asyncio.Task[None]]:
        workers = [w.task for w in self._workers.values() if w.task is not None and not w.task.done()]
        return [*workers, *self._asides]


def _joined(queue: Sequence[_Item]) -> list[_Item]:
    """The first items of a queue that are one turn."""
    first = queue[0].said
    if first is None:
        return [queue[0]]
    run = takewhile(lambda item: item.said is not None and first.joins(item.said), list(queue)[:MOST_JOINED])
    return list(run) or [queue[0]]


async def _either(*works: Awaitable[object]) -> None:
    """Wait until one of several things has happened."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _end(sink: Sink) -> None:
    """End an update for its platform, whose failure there is nobody else's."""
    try:
        await sink.done()
    except Exception:
        log.exception("a platform did not end an update")
