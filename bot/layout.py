"""The messages that show one reply: request by request from what they show to what they shall show."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from bot.markdown import Part
from bot.message import Button, Posted
from bot.outlet import Flood, Gate, Outlet, Refused, Unconfirmed

REPEAT_PAUSES: Final = (1.0, 2.0, 4.0)
"""Seconds before each repetition of a request of the final text that went unconfirmed."""

_log: Final = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Face:
    """What a message looks like."""

    part: Part
    buttons: tuple[Button, ...] = ()

    def same_as(self, other: _Face, *, plain: bool) -> bool:
        """Whether a platform would call one "not modified" after the other: it trims what it is sent.

        ``plain`` leaves a formatted message alone that says the same words.
        """
        drawn_alike = plain or self.part.marks == other.part.marks
        return self.says(other) and self.buttons == other.buttons and drawn_alike

    def says(self, other: _Face) -> bool:
        """Whether the words are the same."""
        return self.part.text.rstrip() == other.part.text.rstrip()


@dataclass(frozen=True, slots=True)
class _Message:
    """A message of ours: without an id one that may be there, without a face one that shows nobody knows what."""

    id: str | None
    face: _Face | None = None


class Abandoned(Exception):
    """The answer was given up: no more requests are made for it."""


class Layout:
    """The messages of a reply, and request by request the way to what they shall show."""

    def __init__(self, outlet: Outlet, gate: Gate, shown: Sequence[str], *, begun: bool) -> None:
        self.posted: Posted | None = None
        self.abandoned = False
        self.asking = False
        self.cut_short = False
        self._outlet = outlet
        self._gate = gate
        self._shown = [_Message(message_id) for message_id in shown]
        self._slot = len(shown)
        # What silence may have left in the slot that comes next; None is anything.
        self._perhaps: list[_Face | None] = [None] if begun else []
        self._told = False
        self._there = begun or bool(shown)
        self._plain = False
        self._drafted: Part | None = None
        self.lost: Unconfirmed | None = None

    @property
    def last(self) -> str:
        """The id of the last message made or known, "" if there is none."""
        return next((message.id for message in reversed(self._shown) if message.id is not None), "")

    @property
    def doubtful(self) -> bool:
        """Whether a message may be there that nobody can find again."""
        return any(self._perhaps) and not self._outlet.repeatable(self._slot)

    def begin_anew(self) -> None:
        """Leave the messages as they are; what comes next is another reply."""
        self._pass_over()
        self._shown, self._told = [], False
        self._drafted = self.lost = None

    async def step(self, parts: Sequence[Part], buttons: tuple[Button, ...] = (), *, insist: bool = False) -> bool:
        """Make the next request towards showing these parts; False when there is none to make.

        Raises Refused and Unconfirmed; Flood only without ``insist``, which waits floods out and repeats
        what may be repeated.
        """
        for index, part in enumerate(parts):
            face = _Face(part.plain if self._plain else part, buttons if index == len(parts) - 1 else ())
            if index < len(self._shown) and self._shows(self._shown[index], face):
                continue
            try:
                if index < len(self._shown):
                    await self._edit(index, face, insist=insist)
                else:
                    await self._post(face, insist=insist)
            except Refused as refusal:
                self._fall_back(refusal, face.part)
            return True
        return False

    async def draft(self, part: Part) -> bool:
        """Show a part without a message; False when that is not to be had. Raises Flood and Unconfirmed."""
        part = part.plain if self._plain else part
        if part == self._drafted:
            return True
        try:
            taken = await self._ask(lambda: self._outlet.draft(part), again=False, insist=False)
        except Refused as refusal:
            if not refusal.formatting or not part.marks:
                return False
            self._plain = True
            return await self.draft(part)
        self._drafted = part
        return taken

    async def attach(self, name: str, content: bytes) -> None:
        """Add a file as the last message. Raises Refused and Unconfirmed."""
        self._pass_over()
        await self._make(lambda: self._outlet.attach(self._slot, name, content), None, insist=True)

    async def cut_to(self, count: int) -> None:
        """Take back the messages after the first ``count``. One that cannot be taken back stays."""
        await self._find()
        surplus = [message.id for message in self._shown[count:] if message.id is not None]
        del self._shown[count:]
        for message_id in surplus:
            await self._take_back(message_id)

    async def _find(self) -> None:
        """Learn the id of what silence may have left behind: asked for again, it is there once."""
        face = self._perhaps[-1] if self._perhaps else None
        if face is not None and not self.doubtful:
            with suppress(Refused, Unconfirmed):
                await self._make(lambda: self._outlet.post(self._slot, face.part, face.buttons), face, insist=True)

    def _pass_over(self) -> None:
        """Leave a slot to what silence may have put there."""
        self._slot += bool(self._perhaps)
        self._perhaps.clear()

    def _shows(self, message: _Message, face: _Face) -> bool:
        if message.id is None:
            return True
        return message.face is not None and message.face.same_as(face, plain=self._plain)

    def _fall_back(self, refusal: Refused, part: Part) -> None:
        """Go on without formatting if that is what was refused; else raise the refusal."""
        if not refusal.formatting or not part.marks:
            raise refusal
        _log.warning("A reply goes on without formatting: %s", refusal)
        self._plain = True

    async def _post(self, face: _Face, *, insist: bool) -> None:
        try:
            await self._make(lambda: self._outlet.post(self._slot, face.part, face.buttons), face, insist=insist)
        except Unconfirmed as silence:
            if not insist or not silence.left:
                raise
            # Most such messages have arrived: the rest still goes out, and whoever asked hears of it then.
            _log.warning("A message is not sent again, since it may have arrived: %s", silence)
            self.lost = silence
            self._shown.append(_Message(None))
            self._perhaps.append(face)
            self._pass_over()

    async def _make(self, request: Callable[[], Awaitable[str]], face: _Face | None, *, insist: bool) -> None:
        again = self._outlet.repeatable(self._slot)
        if face is not None and not again and any(earlier and earlier.says(face) for earlier in self._perhaps):
            raise Unconfirmed("a frame with the same words went unconfirmed")
        try:
            message_id = await self._ask(lambda: self._announced(request), again=again, insist=insist)
        except Unconfirmed as silence:
            if silence.left:
                self._there = True
                self._perhaps.append(face)
            raise
        # Asked again, the platform may have returned what an earlier request had made.
        as_asked = not again or all(earlier == face for earlier in self._perhaps)
        self._shown.append(_Message(message_id, face if as_asked else None))
        self._there = True
        self._slot += 1
        self._perhaps.clear()
        await self._tell(message_id)

    async def _announced(self, request: Callable[[], Awaitable[str]]) -> str:
        """Make a request that the book-keeper knows of, for as long as a first message may come of it."""
        if self._told:
            return await request()
        await self._tell(None)
        if self.abandoned:
            await self._take_word_back()
            raise Abandoned
        try:
            return await request()
        except (Flood, Refused, Unconfirmed) as end:
            if not (isinstance(end, Unconfirmed) and end.left):
                await self._take_word_back()
            raise

    async def _edit(self, index: int, face: _Face, *, insist: bool) -> None:
        message_id = self._shown[index].id
        assert message_id is not None
        self._shown[index] = _Message(message_id)  # for the case that nobody will know
        try:
            await self._ask(lambda: self._outlet.edit(message_id, face.part, face.buttons), again=True, insist=insist)
        except Refused as refusal:
            if not refusal.gone:
                raise
            # The messages after it move up and the last part is posted: the order stays.
            _log.info("A message is gone while it was written: %s", refusal)
            del self._shown[index]
        else:
            self._shown[index] = _Message(message_id, face)

    async def _take_back(self, message_id: str) -> None:
        try:
            await self._ask(lambda: self._outlet.delete(message_id), again=True, insist=True)
        except (Refused, Unconfirmed) as trouble:
            if not (isinstance(trouble, Refused) and trouble.gone):
                _log.warning("A message that should go stays: %s", trouble)

    async def _ask(self, request: Callable[[], Awaitable[T]], *, again: bool, insist: bool) -> T:
        """Make a request. Raises Refused, Unconfirmed (``left`` if any attempt may have), Flood if not insisting."""
        pauses = iter(REPEAT_PAUSES if insist else ())
        left = False
        while True:
            if insist:
                await self._gate.opened()
            elif (seconds := self._gate.closed_for) > 0:
                raise Flood(seconds)
            if self.abandoned:
                raise Abandoned
            self.asking = True
            try:
                return await request()
            except asyncio.CancelledError:
                self.cut_short = True
                raise
            except Flood as flood:
                self._gate.close(flood.seconds)
                if not insist:
                    raise
            except Unconfirmed as silence:
                left = left or silence.left
                pause = next(pauses, None)
                if pause is None or (silence.left and not again):
                    raise Unconfirmed(str(silence), left=left) from silence
                self.asking = False
                await self._gate.tempo.sleep(pause)
            finally:
                self.asking = False

    async def _tell(self, message_id: str | None) -> None:
        self._told = True
        if self.posted is not None:
            await _noted(self.posted(message_id))

    async def _take_word_back(self) -> None:
        """Tell that nothing began, unless something may be there from before."""
        if self._there:
            return
        self._told = False
        if self.posted is not None:
            await _noted(self.posted.unbegun())


async def _noted(word: Coroutine[Any, Any, None]) -> None:
    try:
        await word
    except Exception:  # noqa: BLE001 - whatever the book-keeping suffers from, the reader gets the answer
        _log.exception("What an answer is shown in was not written down")
