"""One worker a chat: order inside a chat, chats side by side, and no failure that stops more than one turn.

A message is journaled before it is queued. Quick messages of one person become one turn, and so do those
that come in while the last turn is being answered. ``/cancel`` does not queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol

from bot import correlation, metrics
from bot.apologies import Apologies
from bot.breaker import Breaker
from bot.language import language_of
from bot.message import ChatRef, Deleted, DeliveryError, Edited, Left, Press, Reply, Sighted, Sink, Update
from bot.text import clean
from bot.turn import Apology, Heard, Said, TurnedAway
from bot.worker import MOST_JOINED, Item, Worker, albums, joined
from config.settings import ConversationSettings
from memory.ports import Clock

log = logging.getLogger(__name__)

QUEUE: Final = 100
"""Messages of one person that may wait in a chat; one beyond them is kept, but answered with a word only."""
PATIENCE: Final = 5
"""Quiet times after which a person who writes and writes is answered all the same."""
ALBUM_SECONDS: Final = 1.0
"""Quiet time after a picture of an album, whatever the settings: its pictures come as messages of their own."""
HEARING_SECONDS: Final = 0.25
"""How long a turn lets what is being heard go first, so that a flood stops no answer for good."""
CANCEL: Final = "cancel"

Sleep = Callable[[float], Awaitable[None]]
"""Lets so many seconds pass."""


class Desk(Protocol):
    """Who hears updates and answers them: the agent."""

    async def hear(self, update: Update) -> Heard | None:
        """Make an update durable. Returns what now waits for an answer. Raises Apology and TurnedAway."""

    async def answer(self, turn: Sequence[Said], sink: Sink) -> None:
        """Answer what one person said as one. Raises Apology and DeliveryError."""

    async def press(self, press: Press, sink: Sink) -> None:
        """Obey a button. Raises Apology and DeliveryError."""

    async def give_up(self, said: Sequence[Said]) -> None:
        """Let messages wait no longer; they stay in the journal and are not answered."""


class Conversation:
    """Queues updates by chat and has them answered in order by ``desk``.

    ``behind`` is called after each answer, to wake what happens behind the replies. ``sleep`` lets
    seconds pass; ``clock`` tells how many did. ``reach`` gives the place where an answer stands that is to be written
    anew, None where it cannot be had.
    """

    def __init__(
        self,
        desk: Desk,
        clock: Clock,
        settings: ConversationSettings,
        *,
        behind: Callable[[], None] = lambda: None,
        sleep: Sleep = asyncio.sleep,
        reach: Callable[[Said], Sink | None] = lambda said: None,  # noqa: ARG005
    ) -> None:
        self._desk = desk
        self._reach = reach
        self._behind = behind
        self._clock = clock
        self._sleep = sleep
        self._quiet = settings.quiet_seconds
        self._breaker = Breaker(settings.turns_a_minute)
        self._most_waiting = settings.waiting_at_most
        self._room = asyncio.Semaphore(settings.turns_at_once)
        self._coming = 0
        self._none_comes = asyncio.Event()
        self._none_comes.set()
        self._beginning = asyncio.Lock()
        self._workers: dict[ChatRef, Worker] = {}
        self._apologies = Apologies(clock)
        self._asides: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._stopped = False
        self.unreached: set[str] = set()
        """Platforms that could not be reached when an answer was to be delivered."""

    @property
    def queued(self) -> int:
        """How many messages wait for their turn."""
        return sum(len(worker.queue) for worker in self._workers.values())

    @property
    def answering(self) -> int:
        """In how many chats an answer is under way."""
        return sum(bool(worker.running) for worker in self._workers.values())

    async def submit(self, update: Update, sink: Sink) -> None:
        """Have an update heard and queued; it is durable when this returns. Failures are told, never raised."""
        metrics.UPDATES.labels(update.chat.platform).inc()
        if isinstance(update, Left):
            await self._leave(update, sink)
            return
        if isinstance(update, Sighted):
            await self._sight(update, sink)
            return
        async with self._at_work(update.chat) as worker:
            with correlation.turn(correlation.fresh()):
                await self._heard(worker, update, sink)

    @contextlib.contextmanager
    def _comes(self) -> Iterator[None]:
        """Count an update while it is being written down; that waits for no platform."""
        self._coming += 1
        self._none_comes.clear()
        try:
            yield
        finally:
            self._coming -= 1
            if not self._coming:
                self._none_comes.set()

    async def _hearing_first(self) -> None:
        """Wait while anything is being heard, some milliseconds; turns begin one after the other where many wait.

        What is heard is safe, and what one person wrote meanwhile is answered as one: a bot that has more to do than
        it can falls behind with answers by seconds, not with hearing by minutes.
        """
        if self._none_comes.is_set() and not self._beginning.locked():
            return
        async with self._beginning:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARING_SECONDS):
                    await self._none_comes.wait()

    async def _heard(self, worker: Worker, update: Update, sink: Sink) -> None:
        try:
            if isinstance(update, Edited | Deleted):
                await self._change(worker, update, sink)
            else:
                with self._comes():
                    heard = await self._desk.hear(update)
                await self._take(worker, heard, sink)
        except TurnedAway as away:
            self._aside(_turn_away(away, sink))
        except Exception as error:  # noqa: BLE001
            # The border of one update: whatever broke, its chat hears of it and goes on. On the side, for
            # a platform hands in updates one by one, and one chat's flood wait must not hold them.
            self._aside(self._excuse(error, update, sink))

    async def _excuse(self, error: Exception, update: Update, sink: Sink) -> None:
        await self._apologies.explain(error, update.chat, language_of(update), sink)
        await _end(sink)

    async def resume(self, said: Said, sink: Sink, *, still: Callable[[], Awaitable[bool]]) -> None:
        """Queue a message that was journaled before a stop, unless it is here already or does not wait ``still``."""
        async with self._at_work(said.incoming.chat) as worker:
            if worker.cut_off and await still():
                worker.cut_off = False
                worker.queue.appendleft(Item(said, sink, self._clock()))
            else:
                await self._take(worker, said if await still() else None, sink)

    def reconnect(self, platform: str) -> None:
        """Go on in every chat of a platform that can be reached again."""
        for chat, worker in list(self._workers.items()):
            if chat.platform == platform and worker.cut_off:
                worker.cut_off = False
                self._go_on(chat, worker)

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
        self._stopped = True  # a worker that is cancelled must not begin the next turn
        late = self._running()
        if late:
            waiting = sum(len(worker.held) for worker in self._workers.values())
            log.warning("stopped with %d messages unanswered; the next start answers them", waiting)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def _at_work(self, chat: ChatRef) -> AsyncIterator[Worker]:
        """The worker of a chat, for one update at a time; afterwards it works off what it was given."""
        worker = self._workers.setdefault(chat, Worker())
        worker.coming += 1
        try:
            async with worker.door:
                yield worker
        finally:
            worker.coming -= 1
            self._go_on(chat, worker)

    def _go_on(self, chat: ChatRef, worker: Worker) -> None:
        """Have a chat's worker do what there is to do, or let it go."""
        if self._stopped:
            return
        if worker.queue and not worker.cut_off and (worker.task is None or worker.task.done()):
            worker.task = asyncio.create_task(self._work(chat, worker), name=f"chat {chat.key}")
        if worker.is_idle:
            self._workers.pop(chat, None)

    async def _take(self, worker: Worker, heard: Heard | None, sink: Sink) -> None:
        """Queue what waits for an answer, unless it waits already."""
        if heard is None or self._stopping or (isinstance(heard, Said) and self.holds(heard)):
            await _end(sink)  # what is heard during a stop waits for the next start
            return
        if isinstance(heard, Said) and heard.rewrites and (there := self._reach(heard)) is not None:
            await _end(sink)
            sink = there
        item = Item(heard, sink, self._clock())
        if item.said is not None and item.said.command is not None and item.said.command[0] == CANCEL:
            self._aside(self._cancel(item.said, sink))
        elif item.said is not None and self._is_too_much(worker, item.said):
            self._aside(self._refuse(item))
        else:
            worker.put([item])

    def _is_too_much(self, worker: Worker, said: Said) -> bool:
        """Whether so much waits, of one person or of all, that this is not answered; a command always is."""
        if not said.is_talk:
            return False
        own = sum(item.is_talk_of(said.owner.no) for item in worker.queue)
        held = sum(len(each.queue) + len(each.running) for each in self._workers.values())
        return own >= QUEUE or held >= self._most_waiting

    async def _change(self, worker: Worker, update: Edited | Deleted, sink: Sink) -> None:
        """Hear that messages are other than they were, or no more: no talk is answered as if they still stood."""
        ids = update.message_ids if isinstance(update, Deleted) else (update.message.message_id,)
        held = {s.message.id: s for s in worker.held if s.is_talk and s.incoming.message_id in ids}
        if isinstance(update, Edited) and any(
            clean(s.incoming.text) == clean(update.message.text) for s in held.values()
        ):
            await _end(sink)  # a link got its preview
            return
        stopped = await worker.interrupt(lambda item: item.is_one_of(held), keep=False)
        # Nothing is begun before it is known what the queue reads now.
        waiting = [*stopped, *worker.pull(lambda _: True)]
        changed: Item | None = None
        answers = False
        try:
            heard = await self._desk.hear(update)
            changed = None if heard is None or self._stopping else Item(heard, sink, self._clock())
            answers = changed is not None
        except TurnedAway:
            answers = True
            raise
        finally:
            gone = [item for item in waiting if item.is_one_of(held)]
            place = waiting.index(gone[0]) if gone else len(waiting)
            rest = [item for item in waiting if not item.is_one_of(held)]
            worker.put([*rest[:place], *([changed] if changed else []), *rest[place:]])
            for ended in (*(item.sink for item in gone if item not in stopped), *([] if answers else [sink])):
                await _end(ended)

    async def _leave(self, update: Left, sink: Sink) -> None:
        """Give up, without a word, what is owed in a group to somebody who is gone from it, or to all of it."""

        def is_owed(item: Item) -> bool:
            return update.user_id in (None, item.user_id)

        try:
            await self._desk.hear(update)
            for chat in [chat for chat in self._workers if update.concerns(chat)]:
                async with self._at_work(chat) as worker:
                    stopped = await worker.interrupt(is_owed, keep=False)
                    pulled = worker.pull(is_owed)
                    await self._desk.give_up([item.said for item in stopped if item.said is not None])
                    for item in pulled:
                        await self._desk.give_up([] if item.said is None else [item.said])
                        await _end(item.sink)
        except Exception:
            # Nobody is there to be told.
            log.exception("chat %s: that somebody left was not dealt with", update.chat.key)
        await _end(sink)

    async def _sight(self, update: Sighted, sink: Sink) -> None:
        """Take note of who may see the rooms of a server; nobody waits for it."""
        try:
            await self._desk.hear(update)
        except Exception:
            # Nobody is there to be told.
            log.exception("chat %s: who may see its rooms was not dealt with", update.chat.key)
        await _end(sink)

    async def _cancel(self, said: Said, sink: Sink) -> None:
        """Stop whatever the sender of a /cancel waits for, the answer under way too, and say so."""

        def is_mine(item: Item) -> bool:
            return item.is_talk_of(said.owner.no)

        try:
            async with self._at_work(said.incoming.chat) as worker:
                stopped = await worker.interrupt(is_mine, keep=True)
                pulled = worker.pull(is_mine)
                dropped = [*stopped, *pulled]
                await self._desk.give_up([item.said for item in dropped if item.said is not None])
        except Exception as error:  # noqa: BLE001 - it is said that it failed, never that it was done
            await self._apologies.explain(error, said.incoming.chat, said.owner.language, sink)
            await _end(sink)
            return
        for item in pulled:
            await _end(item.sink)
        obeyed = replace(said, command=(CANCEL, "stopped" if dropped else ""))
        await self._turn([Item(obeyed, sink, self._clock())])

    async def _work(self, chat: ChatRef, worker: Worker) -> None:
        try:
            while await self._whole(worker):
                admitted = await self._admitted(worker)
                try:
                    # Only now: what came while others were answered is of this turn, too.
                    await self._run(worker, worker.take(joined(worker.queue)) if worker.ready else [])
                finally:
                    if admitted:
                        self._room.release()
        finally:
            worker.task = None
            self._go_on(chat, worker)

    async def _run(self, worker: Worker, turn: list[Item]) -> None:
        """Have one turn answered, if it is one; what happens behind it is woken then."""
        if not turn:
            return
        worker.running = turn
        worker.answering = asyncio.create_task(self._turn(turn))
        try:
            await asyncio.wait({worker.answering})
        finally:
            await worker.halt()
            worker.running, worker.answering = [], None
            self._behind()

    async def _admitted(self, worker: Worker) -> bool:
        """Wait for room for the talk that is next in a chat, as long as one is; whether room was taken."""
        if not worker.next_is_talk:
            return False  # A command is obeyed however many wait for a model.
        await self._hearing_first()
        if not self._room.locked():
            return await self._room.acquire()
        waiting, admitted = asyncio.ensure_future(self._room.acquire()), False
        try:
            # What comes meanwhile must not cost the chat its place in the row.
            while worker.next_is_talk and not waiting.done():
                worker.stirred.clear()
                await _either(asyncio.wait({waiting}), worker.stirred.wait())
            admitted = waiting.done()
        finally:
            if not admitted:
                waiting.cancel()
                await asyncio.wait({waiting})
                if not waiting.cancelled():
                    self._room.release()
        return admitted

    async def _whole(self, worker: Worker) -> bool:
        """Wait until the turn that is next is whole; False when nothing is."""
        while worker.ready:
            turn = joined(worker.queue)
            left = 0.0 if self._stopping else self._quiet_left(turn, alone=len(turn) == len(worker.queue))
            worker.stirred.clear()
            if left > 0:
                await _either(self._sleep(left), worker.stirred.wait())
            if not worker.stirred.is_set():
                return True
        return False

    def _quiet_left(self, turn: Sequence[Item], *, alone: bool) -> float:
        """Seconds to wait for more of a turn; ``alone`` tells that nothing is queued behind it."""
        said = turn[-1].said
        if said is None or not said.is_talk or len(turn) == MOST_JOINED:
            return 0.0
        quiet = self._quiet if alone else 0.0
        if albums(turn):
            quiet = max(quiet, ALBUM_SECONDS)
        now = self._clock()
        since_first, since_last = ((now - item.at).total_seconds() for item in (turn[0], turn[-1]))
        # Never longer than the quiet time itself, whatever the clock of the machine does meanwhile.
        return min(quiet, quiet - since_last, PATIENCE * quiet - since_first)

    async def _turn(self, turn: Sequence[Item]) -> None:
        """Answer one turn where its last message came from; all its lines in the log have the number of that."""
        with correlation.turn(turn[-1].turn):
            await self._answer(turn)

    async def _answer(self, turn: Sequence[Item]) -> None:
        *earlier, last = turn
        for item in earlier:
            await _end(item.sink)
        try:
            if isinstance(last.heard, Press):
                await self._desk.press(last.heard, last.sink)
                metrics.TURNS.labels("button").inc()
            else:
                await self._say(turn)
        except Exception as error:  # noqa: BLE001
            # The border of one turn: whatever broke, its chat hears of it and goes on.
            await self._fail(turn, error)
        finally:
            await _end(last.sink)

    async def _say(self, turn: Sequence[Item]) -> None:
        if await self._goes_on(turn):
            await self._desk.answer([item.said for item in turn if item.said is not None], turn[-1].sink)
            self._breaker.answered(_who(turn[-1]), self._clock())
            metrics.TURNS.labels("answered").inc()
            metrics.REPLY_SECONDS.observe(max((self._clock() - turn[-1].at).total_seconds(), 0.0))

    async def _fail(self, turn: Sequence[Item], error: Exception) -> None:
        """Explain why a turn has no answer. Only what a platform could not be reached for is tried again."""
        last = turn[-1]
        metrics.TURNS.labels(_outcome(error)).inc()
        if isinstance(error, DeliveryError):
            if error.later and last.said is not None:
                self.unreached.add(last.chat.platform)
                self._workers[last.chat].cut_off = True
        elif not isinstance(error, Apology):
            try:
                await self._desk.give_up([item.said for item in turn if item.said is not None])
            except Exception:
                log.exception("what could not be answered still waits; the next start tries it again")
        await self._apologies.explain(error, last.chat, last.language, last.sink)

    async def _goes_on(self, turn: Sequence[Item]) -> bool:
        """Whether a turn is to be answered; talk is not when two programs seem to talk to each other."""
        said = [item.said for item in turn if item.said is not None]
        last = turn[-1]
        if not said[-1].is_talk or self._breaker.lets(_who(last), arrived=turn[0].at, now=self._clock()):
            return True
        log.warning("chat %s: nobody is answered there for a while, it looks like two bots in a loop", last.chat.key)
        metrics.TURNS.labels("loop").inc()
        await self._desk.give_up(said)
        await self._apologies.tell(last.chat, "error.loop", last.language, last.sink)
        return False

    async def _refuse(self, item: Item) -> None:
        """Tell that the queue is full; what was said is kept all the same."""
        metrics.TURNS.labels("busy").inc()
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


def _outcome(error: Exception) -> str:
    """How a turn ended that was not answered."""
    match error:
        case DeliveryError():
            return "undelivered"
        case Apology():
            return "apologised"
        case _:
            return "failed"


def _who(item: Item) -> tuple[ChatRef, int]:
    """A person in a chat."""
    return (item.chat, item.said.owner.no if item.said is not None else 0)


async def _either(*works: Awaitable[object]) -> None:
    """Wait until one of several things has happened."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _turn_away(away: TurnedAway, sink: Sink) -> None:
    """Say why an update is not taken."""
    try:
        await sink.send(Reply(away.text, private=True))
    except Exception as error:  # noqa: BLE001 - the border of one update, of which nothing was begun
        log.warning("somebody could not be told that they are not let in yet: %s", error)
        if away.undelivered is not None and not (isinstance(error, DeliveryError) and error.unknown):
            await away.undelivered()
    finally:
        await _end(sink)


async def _end(sink: Sink) -> None:
    """End an update for its platform, whose failure there is nobody else's."""
    try:
        await sink.done()
    except Exception:
        log.exception("a platform did not end an update")
