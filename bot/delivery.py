"""How a reply reaches its reader: whole, once, in order, however the platform behaves. Knows no SDK.

Frames may be lost, the final text may not. An adapter gives an Outlet, which makes single requests and says
how each ended (bot/outlet.py); which request comes next is told in bot/layout.py; when, is decided here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from bot.layout import Abandoned, Layout
from bot.markdown import Part, summary
from bot.message import Button, DeliveryError, Posted, Reply, Sink
from bot.outlet import Budget, Errands, Flood, Gate, Gates, Outlet, Refused, Sign, Tempo, Unconfirmed
from bot.text import clean, is_blank

__all__ = [
    "Budget",
    "Delivery",
    "Discreet",
    "Errands",
    "Flood",
    "Gate",
    "Gates",
    "InPlace",
    "Outlet",
    "Refused",
    "Tempo",
    "Unconfirmed",
]

MOST_PARTS: Final = 5
"""Messages an answer may take; a longer one goes as a file beside its summary, and frames show no more of it.
Discord bears about five messages in five seconds in a channel, and nobody scrolls through more."""
MOST_FRAMES: Final = 60
"""Frames drawn of one reply; each takes at most MOST_PARTS requests, nearly always one. The end still comes."""
SUMMARY_LENGTH: Final = 1_500
"""Characters of a summary: fits into one message of either platform, also when signs in it are escaped."""

_log: Final = logging.getLogger(__name__)


class Delivery:
    """A Sink over an Outlet: the newest frame wins, and then the final text arrives, once.

    The lock is held during each piece of work, and requests run as errands: none is cut short by whoever
    gives up waiting. ``shown`` and ``begun`` as in ``Adapter.sink``; ``typing_pause`` in seconds is a
    little less than the platform shows a typing sign for. After ``send`` the next answer begins anew.
    """

    def __init__(
        self,
        outlet: Outlet,
        gate: Gate,
        errands: Errands,
        *,
        shown: Sequence[str] = (),
        begun: bool = False,
        typing_pause: float = 4.5,
    ) -> None:
        self._outlet = outlet
        self._gate = gate
        self._errands = errands
        self._typing_pause = typing_pause
        self._layout = Layout(outlet, gate, shown, begun=begun)
        self._lock = asyncio.Lock()
        self._frame: str | None = None
        self._frames_left = MOST_FRAMES
        self._drafts = not shown
        self._over = False
        self._delivering = False
        self._taken_back = False
        self._pump: asyncio.Task[None] | None = None
        self._sign: Sign | None = None
        self._final: asyncio.Task[str] | None = None

    def watch(self, posted: Posted) -> None:
        """Have ``posted`` told of every message. What it raises is logged and hurts nothing."""
        self._layout.posted = posted

    def type(self, topic: str | None = None) -> None:
        """Show the typing sign of the chat, or of a topic, until a frame is drawn, the reply sent, or all done.

        Answers to the same place share the sign, and none has it shown for more than TYPING_END seconds.
        """
        if not self._quiet:
            self._sign = self._gate.sign(topic)
            self._sign.want(self, self._outlet, self._errands, pause=self._typing_pause)

    async def show(self, text: str) -> None:
        """Keep the newest frame for the next time the chat takes one. Never raises."""
        if self._quiet or not self._frames_left:
            return
        self._frame = text
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._stream())

    async def send(self, reply: Reply) -> str:
        """Deliver the reply whole, even if the caller is cancelled; return the id of its last message.

        Floods are waited out. Raises DeliveryError.
        """
        self._rest()
        final = self._final = self._errands.start(self._deliver(reply))
        try:
            return await asyncio.shield(final)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if final.cancelled() and caller is not None and not caller.cancelling():
                cut = self._layout.cut_short
                raise DeliveryError("the platform was shut down meanwhile", unknown=cut, later=not cut) from None
            raise

    async def abandon(self, *, keep: bool) -> bool:
        """Give the answer up; what is not kept of it is taken back in the background."""
        final = self._final
        beyond = final is not None and (final.done() or (self._delivering and self._layout.asking))
        if keep and beyond:
            return False
        self._over = self._layout.abandoned = True
        self._rest()
        if final is not None and not beyond:
            final.cancel()  # it waits, for a flood or for a frame: no request is cut short
        if not keep:
            self._taken_back = True
            with suppress(DeliveryError):  # nothing can be taken back any more
                self._errands.start(self._take_back())
        return not beyond

    async def done(self) -> None:
        """End typing and frames at once; a request under way may finish, none follows it."""
        self._over = True
        self._rest()

    @property
    def _quiet(self) -> bool:
        """Whether frames are out of place: the final text is on its way, or nothing more is to come."""
        return self._over or (self._final is not None and not self._final.done())

    def _rest(self) -> None:
        self._frame = None
        self._end_typing()
        if self._pump is not None:
            self._pump.cancel()
            self._pump = None

    def _end_typing(self) -> None:
        if self._sign is not None:
            self._sign.unwant(self)
            self._sign = None

    async def _stream(self) -> None:
        with suppress(DeliveryError):  # shut down
            while (frame := self._frame) is not None and self._frames_left and not is_blank(clean(frame)):
                await self._gate.paced(len(frame))
                await asyncio.wait({self._errands.start(self._draw())})

    async def _draw(self) -> None:
        async with self._lock:
            frame, self._frame = self._frame, None
            if frame is None:
                return
            self._frames_left -= 1
            try:
                if not (parts := self._outlet.parts(clean(frame), markdown=True, most=MOST_PARTS)):
                    return
                await self._grow(parts)
            except Flood:
                self._frame = self._frame or frame
            except Abandoned:
                return
            except (Refused, Unconfirmed) as trouble:
                # Where one frame is refused, or may be there twice with the next one, only the final text goes on.
                if isinstance(trouble, Refused) or self._layout.doubtful:
                    self._frames_left = 0
                _log.info("A frame of an answer was lost: %s", trouble)
            else:
                self._end_typing()
            finally:
                self._gate.drawn()

    async def _grow(self, parts: Sequence[Part]) -> None:
        """Draw a frame. With drafts the parts that are full are messages, and only the last one is a draft."""
        if self._drafts:
            await self._step_through(parts[:-1])
            if not self._quiet:
                self._drafts = await self._layout.draft(parts[-1])
        if not self._drafts:
            await self._step_through(parts)

    async def _step_through(self, parts: Sequence[Part]) -> None:
        while not self._quiet and await self._layout.step(parts):
            pass

    async def _take_back(self) -> None:
        async with self._lock:
            self._layout.abandoned = False
            with suppress(Refused, Unconfirmed):
                await self._layout.cut_to(0)

    async def _deliver(self, reply: Reply) -> str:
        async with self._lock:
            self._delivering = True
            try:
                return await self._lay_out(reply)
            except Abandoned:
                raise DeliveryError("the reply was given up") from None
            except (Refused, Unconfirmed) as trouble:
                unknown = self._layout.lost is not None or (isinstance(trouble, Unconfirmed) and trouble.left)
                _log.warning("A reply %s: %s", "may not have arrived" if unknown else "did not arrive", trouble)
                # What is known to stand in the chat is only edited again; nothing can be shown twice.
                later = isinstance(trouble, Unconfirmed) and not (self._layout.lost or self._layout.doubtful)
                told = f"the platform did not take a reply: {trouble}"
                raise DeliveryError(told, unknown=unknown, later=later) from trouble
            finally:
                self._delivering = False
                if not self._taken_back:
                    self._layout.begin_anew()
                self._frame = None
                self._frames_left = MOST_FRAMES
                self._gate.drawn()

    async def _lay_out(self, reply: Reply) -> str:
        """Make the chat show the reply and nothing else of this answer; return the id of its last message."""
        text = clean(reply.text)
        parts = self._outlet.parts(text, markdown=reply.markdown)
        if not parts:
            raise DeliveryError("a blank reply is never sent")
        if len(parts) <= MOST_PARTS or not await self._as_file(text, reply):
            await self._settle(parts, reply.buttons)
        for file in reply.files:
            await self._layout.attach(file.name, file.content)
        if self._layout.lost is not None:
            raise self._layout.lost
        return self._layout.last

    async def _settle(self, parts: Sequence[Part], buttons: tuple[Button, ...]) -> None:
        while await self._layout.step(parts, buttons, insist=True):
            pass
        await self._layout.cut_to(len(parts))

    async def _as_file(self, text: str, reply: Reply) -> bool:
        """Send a summary and the whole as a file; False where files are not taken."""
        opening = self._outlet.parts(summary(text, SUMMARY_LENGTH), markdown=reply.markdown)
        await self._settle(opening, reply.buttons)
        try:
            await self._layout.attach("answer.md" if reply.markdown else "answer.txt", text.encode())
        except Refused as refusal:
            _log.warning("A long answer goes as messages, its file was refused: %s", refusal)
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Nameless:
    """Keeps book of what goes aside: that something did, but no id, which would mean another message in the chat."""

    posted: Posted

    async def __call__(self, message_id: str | None) -> None:
        if message_id is None:
            await self.posted(None)

    async def unbegun(self) -> None:
        await self.posted.unbegun()


class Discreet:
    """A Sink that keeps private replies out of a chat others read: they go ``aside``, all else to ``open``."""

    def __init__(self, open: Delivery, aside: Sink) -> None:  # noqa: A002 - the opposite of aside
        self._open = open
        self._aside = aside

    def watch(self, posted: Posted) -> None:
        """Have ``posted`` told of the messages in the chat, and of one begun aside, whose id means nothing here."""
        self._open.watch(posted)
        self._aside.watch(_Nameless(posted))

    async def show(self, text: str) -> None:
        """Show a frame in the chat."""
        await self._open.show(text)

    async def send(self, reply: Reply) -> str | None:
        """Deliver a reply where it belongs; return the id of the message in the chat, if there is one.

        Raises DeliveryError when the reply did not arrive and the chat was not told how to get it.
        """
        if not reply.private:
            return await self._open.send(reply)
        try:
            await self._aside.send(reply)
        except DeliveryError as trouble:
            if trouble.unknown or trouble.later or not reply.closed:
                raise
            return await self._open.send(Reply(reply.closed))
        try:
            return await self._open.send(Reply(reply.hint)) if reply.hint else None
        except DeliveryError:  # logged where it is raised; the reply itself has arrived
            return None

    async def abandon(self, *, keep: bool) -> bool:
        """Give up what is shown in the chat; only commands answer aside, and they are seen through."""
        return await self._open.abandon(keep=keep)

    async def done(self) -> None:
        """End both."""
        await self._open.done()
        await self._aside.done()


class InPlace:
    """A Sink for what a button brings: what is ``in_place`` changes the message it was on, all else goes ``beside``.

    ``there`` shows that message; where it can be changed no more, it makes another one.
    """

    def __init__(self, beside: Sink, there: Delivery) -> None:
        self._beside = beside
        self._there = there

    def watch(self, posted: Posted) -> None:
        """Have ``posted`` told of the messages of either."""
        self._beside.watch(posted)
        self._there.watch(posted)

    async def show(self, text: str) -> None:
        """Show a frame beside: what takes a message's place is there at once."""
        await self._beside.show(text)

    async def send(self, reply: Reply) -> str | None:
        """Deliver a reply where it belongs. Raises DeliveryError."""
        return await (self._there if reply.in_place else self._beside).send(reply)

    async def abandon(self, *, keep: bool) -> bool:
        """Give up what is shown beside; a message that was pressed stays."""
        return await self._beside.abandon(keep=keep)

    async def done(self) -> None:
        """End both."""
        await self._beside.done()
        await self._there.done()
