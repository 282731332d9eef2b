"""The platform of ``bench load``: people write on schedule, and every answer is held against what was said.

Strict: an answer belongs to one message, comes once, names what it answers in order, and names nobody else's words.
"""

from __future__ import annotations

import asyncio
import math
import time
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from bot.apologies import APOLOGY_EVERY
from bot.bench.crowd import Due, Sign, signs
from bot.message import ChatRef, CommandSpec, Incoming, Posted, Reply, Seen, Sink, Submit
from config.locales import phrase

PLATFORM: Final = "bench"
TOLD_SECONDS: Final = APOLOGY_EVERY.total_seconds()
"""How long a person who was told that there is too much to do is not told again."""

BATCH: Final = 100
"""Messages handed in together at most; Telegram's poll gives no more."""

Fate = Literal["answered", "obeyed", "refused", "failed"]
"""What became of a message: answered by the model, obeyed, answered that there is too much to do, or that it failed."""


@dataclass(slots=True)
class Told:
    """A message and what became of it. It takes no more memory at the end than at the beginning."""

    due: Due
    said: bool = True
    """Whether its person has written it by now."""
    sink: Answered | None = None
    fate: Fate | None = None
    ended: int = 0
    put_off: bool = False
    """Whether its person was told shortly before that there is too much to do."""
    _waited: array[float] = field(default_factory=lambda: array("d", [0.0]))

    @property
    def waited(self) -> float:
        """Seconds from when it was due, be it handed in later or not, to what became of it."""
        return self._waited[0]

    @waited.setter
    def waited(self, seconds: float) -> None:
        self._waited[0] = seconds


@dataclass
class Hall:
    """An adapter and its judge.

    What has come meanwhile is handed in together, as an adapter that polls does it: of one person in order.
    """

    script: Iterator[Due]
    name: str = PLATFORM
    repeats_for: timedelta = timedelta(0)
    told: dict[Sign, Told] = field(default_factory=dict)
    wrong: Counter[str] = field(default_factory=Counter)
    """What must not happen, and how often it did."""
    submitted: int = 0
    began: float = 0.0
    """When people began to write; ``time.perf_counter()``."""
    longest_queue: int = 0
    written: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when everything was handed in."""
    up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when people begin to write."""
    due_over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the last message was written, handed in or not."""
    _refused: dict[int, float] = field(default_factory=dict)
    _newest: dict[int, int] = field(default_factory=dict)

    async def run(self, submit: Submit, commands: tuple[CommandSpec, ...], seen: Seen) -> None:
        """Hand in the whole script, each message when it is due; then wait to be cancelled."""
        del commands
        await seen()
        # Before anything is looked at: what the judge has to remember is no growth of the bot's.
        script = [Told(due, said=False) for due in self.script]
        self.told = {told.due.sign: told for told in script}
        queue: asyncio.Queue[Told] = asyncio.Queue()
        self.began = time.perf_counter()
        self.up.set()
        writing = asyncio.create_task(self._write(script, queue))
        try:
            while self.submitted < len(script):
                batch = [await queue.get()]
                while len(batch) < BATCH and not queue.empty():
                    batch.append(queue.get_nowait())
                await self._hand_over(batch, submit)
            self.written.set()
            await asyncio.Event().wait()
        finally:
            writing.cancel()

    async def _hand_over(self, batch: Sequence[Told], submit: Submit) -> None:
        """Hand in a batch: one person's messages one after the other, different people's together."""

        async def in_order(some: Sequence[Told]) -> None:
            for told in some:
                assert told.sink is not None
                await submit(_incoming(told.due), told.sink)
                self.submitted += 1

        by_person: dict[int, list[Told]] = {}
        for told in batch:
            by_person.setdefault(told.due.sign[0], []).append(told)
        await asyncio.gather(*map(in_order, by_person.values()))

    async def _write(self, script: Sequence[Told], queue: asyncio.Queue[Told]) -> None:
        """Have people write by the clock, however far behind whoever answers is."""
        for told in script:
            if (left := self.began + told.due.at - time.perf_counter()) > 0:
                await asyncio.sleep(left)
            told.said = True
            told.sink = Answered(self, told)
            queue.put_nowait(told)
            self.longest_queue = max(self.longest_queue, queue.qsize())
        self.due_over.set()

    async def notify(self, chat: ChatRef, reply: Reply) -> None:
        """Nobody is written to unasked here."""
        del chat, reply
        self.wrong["a notice nobody asked for"] += 1

    def sink(self, incoming: Incoming, *, shown: tuple[str, ...] = (), begun: bool = False) -> Sink:
        """Nothing is taken up here: there is no stop."""
        del shown, begun
        self.wrong["an answer taken up though nothing stopped"] += 1
        return Answered(self, Told(Due(0.0, (0, 0), incoming.text, "en")))

    @property
    def said(self) -> list[Told]:
        """The messages that were written so far."""
        return [told for told in self.told.values() if told.said]

    @property
    def settled(self) -> int:
        """How many messages something has become of."""
        return sum(told.fate is not None for told in self.told.values())

    def judge(self, told: Told, reply: Reply) -> None:
        """Hold a reply against the message at whose place it came."""
        at, (person, number) = time.perf_counter(), told.due.sign
        if told.fate is not None:
            self.wrong["more than one reply to a message"] += 1
            return
        named = signs(reply.text)
        if any(who != person for who, _ in signs(reply.text)):
            self.wrong["another person's words in a reply"] += 1
        if told.due.is_command:
            self._settle(told, "obeyed", at)
        elif named:
            self._answer(told, [n for who, n in named if who == person], at)
        else:
            busy = reply.text == phrase("error.busy", told.due.language)
            self._settle(told, "refused" if busy else "failed", at)
            if busy:
                self._refused[person] = at
        if told.fate != "refused" and number < self._newest.get(person, 0):
            self.wrong["a reply after one to a later message"] += 1
        if told.fate != "refused":
            self._newest[person] = max(number, self._newest.get(person, 0))

    def _answer(self, told: Told, numbers: list[int], at: float) -> None:
        person, number = told.due.sign
        if numbers != sorted(set(numbers)) or numbers[-1:] != [number]:
            self.wrong["a reply that does not end with its message, or names one out of order"] += 1
        for each in numbers:
            other = self.told.get((person, each))
            if other is None or not other.said:
                self.wrong["a reply to what was never said"] += 1
            elif other.fate in ("answered", "obeyed"):
                self.wrong["a message answered twice"] += 1
            elif other.fate is None:
                self._settle(other, "answered", at)

    def end(self, told: Told) -> None:
        """Note that a message is over; without a reply it may be one with a later one, or was put off before."""
        told.ended += 1
        told.sink = None
        told.put_off = time.perf_counter() - self._refused.get(told.due.sign[0], -math.inf) < TOLD_SECONDS

    def _settle(self, told: Told, fate: Fate, at: float) -> None:
        told.fate, told.waited = fate, at - self.began - told.due.at

    def verdict(self) -> Counter[str]:
        """What must not be, once everything should be over."""
        wrong = Counter(self.wrong)
        said = self.said
        for told in said:
            if told.fate is None and told.put_off:
                told.fate = "refused"
        wrong["messages lost"] = sum(told.fate is None for told in said)
        wrong["messages that were answered with a failure"] = sum(told.fate == "failed" for told in said)
        wrong["messages ended not once"] = sum(told.ended != 1 for told in said)
        wrong["commands refused"] = sum(told.due.is_command and told.fate == "refused" for told in said)
        return +wrong


@dataclass(slots=True)
class Answered:
    """Where the answer to one message goes: shown as it grows, then whole."""

    hall: Hall
    told: Told
    posted: Posted | None = None
    _posting: asyncio.Task[None] | None = None

    def watch(self, posted: Posted) -> None:
        """Keep book of the one message that shows an answer, as platforms do."""
        self.posted = posted

    async def show(self, text: str) -> None:
        """Post the message with the first frame; it is edited after that."""
        del text
        if self.told.ended:
            self.hall.wrong["a frame after the end"] += 1
        if self._posting is None:
            self._posting = asyncio.create_task(self._post())

    async def send(self, reply: Reply) -> str | None:
        """Take the reply, and judge it."""
        if self._posting is None:
            self._posting = asyncio.create_task(self._post())
        await self._posting
        if self.told.ended:
            self.hall.wrong["a reply after the end"] += 1
        self.hall.judge(self.told, reply)
        return self._id

    async def abandon(self, *, keep: bool) -> bool:
        """Nobody cancels or takes back anything here."""
        del keep
        self.hall.wrong["an answer abandoned"] += 1
        return True

    async def done(self) -> None:
        """Note that it is over."""
        self.hall.end(self.told)

    @property
    def _id(self) -> str:
        return "a{}-{}".format(*self.told.due.sign)

    async def _post(self) -> None:
        if self.posted is not None:
            await self.posted(None)
            await self.posted(self._id)


def _incoming(due: Due) -> Incoming:
    person, number = due.sign
    chat = ChatRef(PLATFORM, f"dm:{person}")
    return Incoming(chat, str(person), f"Person {person}", str(number), due.text, datetime.now(UTC), due.language)
