"""What deliveries are tested in: time that stands still, a strict outlet, and a chat as a reader sees it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from bot.delivery import Delivery, Discreet, Errands, Flood, Gate, Refused, Tempo, Unconfirmed
from bot.markdown import Mark, Part
from bot.message import Button, Reply
from bot.text import is_blank

Fate = Literal["done", "flood", "lost", "never", "unsent", "formatting", "gone", "refused"]
"""How a request ends. "lost" and "never" look the same to whoever asked: done or not, no answer came."""

PATIENCE = 40
"""Turns of the event loop after which every task that can go on has done so."""


class StillTime:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = 0.0
        self.tempo = Tempo(lambda: self.now, self._sleep)
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    async def pass_by(self, seconds: float = 0.0) -> None:
        """Let time pass; whoever sleeps wakes when its time comes, and goes on before more passes."""
        end = self.now + seconds
        await self._settle()
        while (due := self._next()) is not None and due <= end:
            await self._wake(due)
        self.now = end

    async def until(self, task: asyncio.Task[Any]) -> None:
        """Let time pass until a task ends."""
        await self._settle()
        while not task.done():
            due = self._next()
            assert due is not None, "waits for what never comes"
            await self._wake(due)

    async def _sleep(self, seconds: float) -> None:
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, sleeper))
        await sleeper

    def _next(self) -> float | None:
        self._sleepers = [(due, sleeper) for due, sleeper in self._sleepers if not sleeper.done()]
        return min((due for due, _ in self._sleepers), default=None)

    async def _wake(self, due: float) -> None:
        self.now = max(self.now, due)
        for moment, sleeper in self._sleepers:
            if moment <= due and not sleeper.done():
                sleeper.set_result(None)
        await self._settle()

    @staticmethod
    async def _settle() -> None:
        for _ in range(PATIENCE):
            await asyncio.sleep(0)


def cut(text: str, *, markdown: bool) -> list[Part]:
    """Cut at every "|". In Markdown a star makes a part bold."""
    bold = (Mark("bold", 0, 1),) if markdown else ()
    return [Part(words, bold if "*" in words else ()) for words in text.split("|") if not is_blank(words)]


@dataclass(frozen=True)
class _Expected:
    call: tuple[object, ...]
    end: object = None
    after: asyncio.Event | None = None


class StrictOutlet:
    """An Outlet that takes the calls it was told of, in their order, and holds every other against the test.

    A call is (name, arguments ...): ("post", 0, "words"), ("edit", "m0", "words"), ("delete", "m0"),
    ("attach", 1, "name", "content"), ("draft", "words"), ("typing",). A part with marks is written as
    its words between "<b>" and "</b>", buttons follow as their ids. Without ``drafts`` the question whether
    there are some is only counted.
    """

    def __init__(self, *, repeatable: bool = False, drafts: bool = False) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.faults: list[str] = []
        self.asked_for_drafts = 0
        self._repeatable = repeatable
        self._drafts = drafts
        self._script: deque[_Expected] = deque()

    def expect(self, *call: object, end: object = None, after: asyncio.Event | None = None) -> None:
        """Take this call next: it waits for ``after``, then returns or raises ``end``."""
        self._script.append(_Expected(call, end, after))

    def check(self) -> None:
        """Fail the test for calls that came unexpectedly or did not come."""
        assert self.faults == []
        assert [expected.call for expected in self._script] == []

    def parts(self, text: str, *, markdown: bool, most: int | None = None) -> Sequence[Part]:
        return cut(text, markdown=markdown)[:most]

    def repeatable(self, slot: int) -> bool:
        return self._repeatable

    async def post(self, slot: int, part: Part, buttons: Sequence[Button]) -> str:
        end = await self._take("post", slot, _written(part), *_ids(buttons))
        return f"m{slot}" if end is None else str(end)

    async def edit(self, message_id: str, part: Part, buttons: Sequence[Button]) -> None:
        await self._take("edit", message_id, _written(part), *_ids(buttons))

    async def delete(self, message_id: str) -> None:
        await self._take("delete", message_id)

    async def attach(self, slot: int, name: str, content: bytes) -> str:
        end = await self._take("attach", slot, name, content.decode())
        return f"m{slot}" if end is None else str(end)

    async def draft(self, part: Part) -> bool:
        self.asked_for_drafts += 1
        if self._drafts:
            await self._take("draft", _written(part))
        return self._drafts

    async def typing(self) -> None:
        await self._take("typing")

    async def _take(self, *call: object) -> object:
        self.calls.append(call)
        expected = self._script.popleft() if self._script else _Expected(())
        if call != expected.call:
            self.faults.append(f"{call} came where {expected.call} was due")
            raise Refused("unexpected")
        if expected.after is not None:
            await expected.after.wait()
        if isinstance(expected.end, Exception):
            raise expected.end
        return expected.end


def _written(part: Part) -> str:
    return f"<b>{part.text}</b>" if part.marks else part.text


def _ids(buttons: Sequence[Button]) -> tuple[str, ...]:
    return tuple(button.id for button in buttons)


class Book:
    """What a book-keeper was told: None, ids, and "unbegun"."""

    def __init__(self, told: list[str | None]) -> None:
        self._told = told

    async def __call__(self, message_id: str | None) -> None:
        self._told.append(message_id)

    async def unbegun(self) -> None:
        self._told.append("unbegun")


class World:
    """A strict outlet, its chat's gate, and time."""

    def __init__(self) -> None:
        self.time = StillTime()
        self.errands = Errands()
        self.gate = Gate(self.time.tempo, 1.0)
        self.outlet = StrictOutlet()
        self.told: list[str | None] = []
        self.posted = Book(self.told)

    def delivery(self, outlet: StrictOutlet | None = None, **given: Any) -> Delivery:
        """A delivery over the outlet, watched."""
        self.outlet = outlet or self.outlet
        made = Delivery(self.outlet, self.gate, self.errands, **given)
        made.watch(self.posted)
        return made

    async def frame(self, delivery: Delivery, text: str, *, then: float = 1.5) -> None:
        """Show a frame and let time pass."""
        await delivery.show(text)
        await self.time.pass_by(then)

    async def deliver(self, delivery: Delivery | Discreet, reply: Reply) -> str | None:
        """Send a reply, and let time pass until it is out."""
        sending = asyncio.create_task(delivery.send(reply))
        await self.time.until(sending)
        return await sending


@dataclass
class Shown:
    """A message as its reader sees it; ``known`` when whoever posted it was told its id."""

    words: str
    buttons: tuple[str, ...] = ()
    known: bool = True


@dataclass
class SimulatedChat:
    """A chat on a platform that floods, loses confirmations and refuses, as an Outlet; later it behaves.

    ``fates`` are what becomes of the requests, in their order, and then all is well; never more than
    ``most_silences`` in a row, floods apart, go unconfirmed. Each request takes ``latency`` seconds. A request during a
    flood is a fault.
    """

    time: StillTime
    fates: Iterable[Fate] = ()
    repeatable_slots: bool = False
    drafts: bool = False
    latency: float = 0.2
    flood: float = 7.0
    most_silences: int = 3
    refusing: bool = True
    messages: dict[str, Shown] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    troubles: list[Fate] = field(default_factory=list)
    doubtful_posts: int = 0

    def __post_init__(self) -> None:
        self._fates = deque(self.fates)
        self._ids = count(1)
        self._slots: dict[int, str] = {}
        self._silences = 0
        self._flooded_until = float("-inf")

    @property
    def visible(self) -> list[Shown]:
        """The messages from top to bottom."""
        return list(self.messages.values())

    def parts(self, text: str, *, markdown: bool, most: int | None = None) -> Sequence[Part]:
        return cut(text, markdown=markdown)[:most]

    def repeatable(self, slot: int) -> bool:
        return self.repeatable_slots

    async def post(self, slot: int, part: Part, buttons: Sequence[Button]) -> str:
        return await self._make("post", slot, Shown(part.text, _ids(buttons)), part)

    async def attach(self, slot: int, name: str, content: bytes) -> str:
        return await self._make("attach", slot, Shown(f"{name}: {content.decode()}"), Part(name))

    async def edit(self, message_id: str, part: Part, buttons: Sequence[Button]) -> None:
        fate = await self._meet("edit", part)
        if fate == "gone":
            self.messages.pop(message_id, None)
        if message_id not in self.messages:
            raise Refused("no such message", gone=True)
        if fate not in ("never", "unsent"):
            self.messages[message_id] = Shown(part.text, _ids(buttons))
        self._answer(fate)

    async def delete(self, message_id: str) -> None:
        fate = await self._meet("delete", Part(""))
        if fate not in ("never", "unsent") and self.messages.pop(message_id, None) is None:
            raise Refused("no such message", gone=True)
        self._answer(fate)

    async def draft(self, part: Part) -> bool:
        if self.drafts:
            self._answer(await self._meet("draft", part))
        return self.drafts

    async def typing(self) -> None:
        self._answer(await self._meet("typing", Part("")))

    async def _make(self, name: str, slot: int, shown: Shown, part: Part) -> str:
        fate = await self._meet(name, part)
        message_id = self._slots.get(slot) if self.repeatable_slots else None
        if fate in ("lost", "never"):
            self.doubtful_posts += 1
        if message_id is None and fate not in ("never", "unsent"):
            message_id = self._slots[slot] = str(next(self._ids))
            shown.known = fate != "lost"
            self.messages[message_id] = shown
        self._answer(fate)
        assert message_id is not None
        if message_id in self.messages:
            self.messages[message_id].known = True
        return message_id

    async def _meet(self, name: str, part: Part) -> Fate:
        """What becomes of a request that changes nothing yet. Raises for one that is certain to change nothing."""
        if self.time.now < self._flooded_until:
            self.faults.append(f"{name} during a flood")
        self.requests.append(name)
        fate = self._next_fate(part)
        await self.time.tempo.sleep(self.latency)
        if fate == "flood":
            self._flooded_until = self.time.now + self.flood
            raise Flood(self.flood)
        if fate == "formatting":
            raise Refused("bad entities", formatting=True)
        if fate == "refused":
            raise Refused("not here")
        return fate

    def _next_fate(self, part: Part) -> Fate:
        fate = self._fates.popleft() if self._fates else "done"
        if (fate == "formatting" and not part.marks) or (fate == "refused" and not self.refusing):
            fate = "done"
        silent = fate in ("lost", "never", "unsent")
        if silent and self._silences == self.most_silences:
            fate, silent = "done", False
        if fate != "flood":  # after which the same request is made again
            self._silences = self._silences + 1 if silent else 0
        self.troubles += [fate] if fate != "done" else []
        return fate

    @staticmethod
    def _answer(fate: Fate) -> None:
        if fate in ("lost", "never", "unsent"):
            raise Unconfirmed("no answer", left=fate != "unsent")
