"""What adapters give and get for delivery: single requests, the gate to each chat, and how a request can end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from bot import metrics
from bot.markdown import Part
from bot.message import Button, DeliveryError

WIDER_EVERY: Final = 2_000
"""Characters by which a text has grown when the pause between two of its frames is wider by itself once more:
who reads a long text is served by fewer jumps."""
WIDEST: Final = 3.0
"""How many times the pause it may become."""
TYPING_END: Final = 120.0
"""Seconds after which an answer has its typing sign shown no more, whatever became of it."""
KEPT: Final = 60.0
"""Seconds for which a gate is remembered that nobody uses any more."""

_log: Final = logging.getLogger(__name__)

T = TypeVar("T")
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Tempo:
    """The time by which things are paced: ``clock`` counts seconds and never goes back, ``sleep`` lets them pass."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Flood(Exception):
    """The platform did nothing and asks to be left alone for ``seconds``."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the platform asks to wait {seconds:g} s")
        self.seconds = seconds


class Refused(Exception):
    """Certain: it was not done, and would not be if asked again.

    ``gone``: the message to be changed is no more, or none that can hold text. ``formatting``: the same
    may be taken as ``Part.plain``. The text holds no secret and nothing of the message.
    """

    def __init__(self, message: str, *, gone: bool = False, formatting: bool = False) -> None:
        super().__init__(message)
        self.gone = gone
        self.formatting = formatting


class Unconfirmed(Exception):
    """Nobody knows whether it was done; when not ``left``, the request never reached the platform.

    The text holds no secret and nothing of the message.
    """

    def __init__(self, message: str, *, left: bool = True) -> None:
        super().__init__(message)
        self.left = left


class Outlet(Protocol):
    """Where the messages of one answer go. Its requests raise Flood, Refused, Unconfirmed and nothing else."""

    def parts(self, text: str, *, markdown: bool, most: int | None = None) -> Sequence[Part]:
        """Cut a text to the platform's limit, at most its first ``most`` parts; none of them is blank. Pure."""

    def repeatable(self, slot: int) -> bool:
        """Tell whether posting message number ``slot`` again after silence cannot show it twice."""

    async def post(self, slot: int, part: Part, buttons: Sequence[Button]) -> str:
        """Make message number ``slot`` (from 0, the same again only after silence); return its id.

        May return what an earlier request for the slot had made, with what that one had in it.
        """

    async def edit(self, message_id: str, part: Part, buttons: Sequence[Button]) -> None:
        """Change a message; that it shows this already is no error."""

    async def delete(self, message_id: str) -> None:
        """Take a message back."""

    async def attach(self, slot: int, name: str, content: bytes) -> str:
        """Make message number ``slot`` of a file; return its id."""

    async def draft(self, part: Part) -> bool:
        """Show a growing part without a message. False: there are no drafts here, frames become messages."""

    async def typing(self) -> None:
        """Show for some seconds that an answer is on its way."""


class Budget:
    """What all chats of one bot together may spend on frames: ``a_second`` of them, one after the other.

    Final texts do not ask: they always go, and the platform tells when it has had enough.
    """

    def __init__(self, tempo: Tempo, a_second: float) -> None:
        self._tempo = tempo
        self._pause = 1 / a_second
        self._next = float("-inf")

    async def spent(self) -> None:
        """Wait until it is one more frame's turn."""
        now = self._tempo.clock()
        turn = self._next = max(now, self._next + self._pause)
        while (left := turn - self._tempo.clock()) > 0:
            await self._tempo.sleep(left)


class Gate:
    """When one chat may be written to. Each chat has its own, so that a flood in one holds up no other.

    ``pause``: seconds between two frames of a short text; see WIDER_EVERY and WIDEST. ``budget``: what the
    chats share.
    """

    def __init__(self, tempo: Tempo, pause: float, budget: Budget | None = None) -> None:
        self.tempo = tempo
        self._pause = pause
        self._budget = budget
        self._closed_until = float("-inf")
        self._drawn_at = float("-inf")
        self._turn = asyncio.Lock()
        self._signs: dict[str | None, Sign] = {}

    def sign(self, topic: str | None) -> Sign:
        """The typing sign of the chat, or of a topic of it."""
        return self._signs.setdefault(topic, Sign(self))

    def close(self, seconds: float) -> None:
        """Let nothing through for that long; a longer wait that was asked for before stands."""
        metrics.FLOODS.inc()
        metrics.FLOOD_SECONDS.inc(max(seconds, 0.0))
        self._closed_until = max(self._closed_until, self.tempo.clock() + seconds)

    @property
    def quiet_for(self) -> float:
        """Seconds for which it has been open with nothing drawn."""
        return self.tempo.clock() - max(self._closed_until, self._drawn_at)

    @property
    def closed_for(self) -> float:
        """Seconds for which nothing may go through; 0 or less when the gate is open."""
        return self._closed_until - self.tempo.clock()

    async def opened(self) -> None:
        """Wait until no flood holds the chat."""
        await self._until(lambda: self._closed_until)

    async def paced(self, length: int) -> None:
        """Wait until a frame of ``length`` characters may be drawn, and take this turn: the next one waits again."""
        pause = self._pause * min(1 + length / WIDER_EVERY, WIDEST)
        async with self._turn:
            await self._until(lambda: max(self._closed_until, self._drawn_at + pause))
            if self._budget is not None:
                await self._budget.spent()
            self.drawn()

    def drawn(self) -> None:
        """Count the pause to the next frame from now on."""
        self._drawn_at = self.tempo.clock()

    async def _until(self, moment: Callable[[], float]) -> None:
        while (left := moment() - self.tempo.clock()) > 0:
            await self.tempo.sleep(left)


class Gates(Generic[Key]):
    """The gates of a bot's chats. One nobody uses is forgotten when it has been quiet for KEPT seconds."""

    def __init__(self, tempo: Tempo, budget: Budget) -> None:
        self._tempo = tempo
        self._budget = budget
        self._used: WeakValueDictionary[Key, Gate] = WeakValueDictionary()
        self._kept: dict[Key, Gate] = {}
        self._look_at = float("-inf")

    def get(self, key: Key, pause: float) -> Gate:
        """The gate of a chat; ``pause`` as in Gate."""
        now = self._tempo.clock()
        if now >= self._look_at:
            self._look_at = now + KEPT
            self._kept = {key: gate for key, gate in self._kept.items() if gate.quiet_for < KEPT}
        gate = self._used.get(key) or Gate(self._tempo, pause, self._budget)
        self._used[key] = self._kept[key] = gate
        return gate


class Sign:
    """The typing sign of one place: a request a pause, however many answers are on their way there."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._wanted: dict[object, tuple[Outlet, float]] = {}
        self._shown: asyncio.Task[None] | None = None

    def want(self, who: object, outlet: Outlet, errands: Errands, *, pause: float) -> None:
        """Have it shown for somebody until it is unwanted, a request fails, or TYPING_END seconds are over."""
        self._wanted.setdefault(who, (outlet, self._gate.tempo.clock() + TYPING_END))
        if self._shown is None or self._shown.done():
            self._shown = asyncio.create_task(self._show(errands, pause))

    def unwant(self, who: object) -> None:
        """Have it shown for others only; a request under way may finish."""
        self._wanted.pop(who, None)
        if not self._wanted and self._shown is not None:
            self._shown.cancel()
            self._shown = None

    async def _show(self, errands: Errands, pause: float) -> None:
        with suppress(DeliveryError):  # shut down
            while True:
                await self._gate.opened()
                if self._current() is None:
                    return
                request = errands.start(self._request())
                await asyncio.wait({request})
                if request.cancelled() or request.exception() or not request.result():
                    self._wanted.clear()
                    return
                await self._gate.tempo.sleep(pause)

    async def _request(self) -> bool:
        """Show it if it is still wanted; False when the platform does not."""
        try:
            if (outlet := self._current()) is not None:
                await outlet.typing()
        except Flood as flood:
            self._gate.close(flood.seconds)
            return False
        except (Refused, Unconfirmed):
            return False
        return True

    def _current(self) -> Outlet | None:
        """Where the first goes for whom it is still wanted."""
        now = self._gate.tempo.clock()
        self._wanted = {who: (outlet, end) for who, (outlet, end) in self._wanted.items() if end > now}
        return next((outlet for outlet, _ in self._wanted.values()), None)


class Errands:
    """Background tasks of an adapter that outlive whoever asked for them; a stop waits for them."""

    def __init__(self) -> None:
        self._open = True
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, errand: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin one. Raises DeliveryError once finished."""
        if not self._open:
            errand.close()
            raise DeliveryError("the platform is shutting down", later=True)
        task = asyncio.create_task(errand)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def finish(self, seconds: float) -> None:
        """Wait for what is under way, also for what that begins, then cancel what is late and begin no more."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while self._tasks and (left := end - loop.time()) > 0:
            await asyncio.wait(set(self._tasks), timeout=left)
        self._open = False
        late = set(self._tasks)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, DeliveryError):  # which is logged where it is raised
            _log.error("An errand broke off", exc_info=error)
