"""Long polling: an update is confirmed to Telegram only once it is handed over, so a kill loses none.

The SDK's own loop confirms what it fetched with its next poll, before anybody has written it down.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Any, Final

from telegram import Bot
from telegram import Update as TelegramUpdate
from telegram.error import Conflict, InvalidToken, RetryAfter, TelegramError

from bot.adapters.telegram.connection import UPDATES, Pace, PollRequest, doubt, growing, insist, seconds
from bot.message import AdapterError

CONFLICT: Final = (
    "Another process polls Telegram with the same TELEGRAM_BOT_TOKEN, or a webhook is set for it. Stop the "
    "other process or remove its webhook; if you know of none, get a new token from @BotFather with /revoke."
)

_log: Final = logging.getLogger(__name__)

_CONFLICT_PATIENCE: Final = 60.0
"""Seconds after which a second poller is no passing thing (a restart is)."""
_CONFLICTS_TOLD: Final = 2
"""The conflict of a row that is told."""
_STALL_GRACE: Final = 30.0
"""Seconds a poll may take longer than it was asked to, and longest it may take in all."""
_STALL_LIMIT: Final = 120.0
_CONFIRM_SECONDS: Final = 5.0
"""Time for the last confirmation at a stop."""

Take = Callable[[TelegramUpdate], Awaitable[None]]
"""Hands one update over; returns once it is durable."""


class Poller:
    """Fetches updates in order. ``look_ahead`` sees each of a batch before ``take`` gets the first.

    Messages of one chat or one person are taken one after the other, others that come in one batch together: so they
    share what it costs to write them down. Whatever else comes is taken by itself, in its place.
    """

    def __init__(self, bot: Bot, connection: PollRequest, pace: Pace) -> None:
        self._bot = bot
        self._connection = connection
        self._pace = pace
        self._offset: int | None = None
        self._conflicts = Conflicts(pace.tempo.clock)
        self._out_of_reach = False
        self.well = True
        """Whether the last poll succeeded."""

    async def run(self, look_ahead: Callable[[TelegramUpdate], None], take: Take) -> None:
        """Poll until cancelled, then finish the updates in hand and confirm them.

        Raises AdapterError when the token is refused or another process keeps polling with it.
        """
        await self._remove_webhook()
        try:
            while True:
                batch = await self._next_batch()
                for update in batch:
                    look_ahead(update)
                for some in _together(batch):
                    await self._hand_over(some, take)
        finally:
            await self._confirm()

    async def _remove_webhook(self) -> None:
        """Polling and a webhook exclude each other; what waits is kept."""
        tempo = self._pace.tempo
        if (await insist(self._bot.get_webhook_info, tempo, on="the state of the webhook")).url:
            _log.warning("A webhook was set for this bot. It is removed now, since the bot is to poll.")
            await insist(self._bot.delete_webhook, tempo, on="the removal of the webhook")

    async def _hand_over(self, updates: Sequence[TelegramUpdate], take: Take) -> None:
        """Have updates taken; those before the first that could not be, and no other, will be confirmed.

        What is taken behind that one comes again, and is known by its id. When this is cancelled what is in hand is
        finished. Raises what ``take`` raised.
        """
        taken: set[int] = set()
        ending = asyncio.Event()

        async def in_order(some: Sequence[TelegramUpdate]) -> None:
            for update in some:
                if ending.is_set():
                    return
                await take(update)
                taken.add(update.update_id)

        tasks = [asyncio.ensure_future(in_order(some)) for some in _lanes(updates)]
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            ending.set()
            await asyncio.wait(tasks)
            raise
        finally:
            for update in takewhile(lambda update: update.update_id in taken, updates):
                self._offset = update.update_id + 1
        for task in tasks:
            task.result()

    async def _next_batch(self) -> Sequence[TelegramUpdate]:
        """Poll once with success; until then faults are waited out."""
        pauses = growing()
        while True:
            try:
                batch = await self._poll()
            except InvalidToken:
                await doubt(self._bot, self._pace.tempo)
                pause = next(pauses)
            except TimeoutError:
                _log.warning("A poll of Telegram did not come back; the connection is made anew")
                self.well = False
                await self._connection.renew()
                continue
            except RetryAfter as flood:
                pause = seconds(flood)
            except Conflict:
                self._conflicts.met()
                pause = next(pauses)
            except TelegramError as error:
                _log.warning("Polling Telegram failed, trying again: %s", error)
                pause = next(pauses)
                self._out_of_reach = True
            else:
                self.well, self._out_of_reach = True, False
                return batch
            self.well = False
            await self._pace.tempo.sleep(pause)

    async def _poll(self) -> Sequence[TelegramUpdate]:
        """One poll under a watchdog. Raises TimeoutError when it hangs."""
        # After an outage one poll waits for nothing, so that it is soon known whether it is over.
        long_poll = 0 if self._out_of_reach else self._pace.long_poll
        poll = asyncio.ensure_future(
            self._bot.get_updates(offset=self._offset, timeout=long_poll, allowed_updates=UPDATES)
        )
        watchdog = asyncio.ensure_future(self._pace.tempo.sleep(min(long_poll + _STALL_GRACE, _STALL_LIMIT)))
        try:
            await asyncio.wait({poll, watchdog}, return_when=asyncio.FIRST_COMPLETED)
            if poll.done():
                return poll.result()
            raise TimeoutError
        finally:
            poll.cancel()
            watchdog.cancel()
            await asyncio.gather(poll, watchdog, return_exceptions=True)

    async def _confirm(self) -> None:
        """Tell the platform what was handed over; it tells by way of the next poll."""
        if self._offset is not None:
            with suppress(TelegramError, TimeoutError):  # then it comes again, and is known by its id
                async with asyncio.timeout(_CONFIRM_SECONDS):
                    await self._bot.get_updates(offset=self._offset, timeout=0, limit=1, allowed_updates=UPDATES)


def _together(batch: Sequence[TelegramUpdate]) -> Iterator[Sequence[TelegramUpdate]]:
    """A batch in parts: messages in a row, and everything else by itself, for it may concern more than one chat."""
    for is_talk, some in groupby(batch, _is_talk):
        if is_talk:
            yield list(some)
        else:
            yield from ([update] for update in some)


def _lanes(updates: Sequence[TelegramUpdate]) -> list[list[TelegramUpdate]]:
    """Updates in as many parts as have neither a chat nor a person in common, each in order."""
    lanes: list[tuple[set[int], list[TelegramUpdate]]] = []
    for update in updates:
        message = update.message
        whose = set() if message is None else {each.id for each in (message.chat, message.from_user) if each}
        joined = [lane for lane in lanes if not whose.isdisjoint(lane[0])]
        lanes = [lane for lane in lanes if whose.isdisjoint(lane[0])]
        some = sorted((each for lane in joined for each in lane[1]), key=updates.index)
        lanes.append((whose.union(*(lane[0] for lane in joined)), [*some, update]))
    return [some for _, some in lanes]


def _is_talk(update: TelegramUpdate) -> bool:
    """Whether somebody wrote a message, which concerns its chat alone; no note that somebody left, or a group moved."""
    message = update.message
    return message is not None and not (
        message.left_chat_member or message.migrate_to_chat_id or message.migrate_from_chat_id
    )


async def whole(work: Coroutine[Any, Any, None]) -> None:
    """Await something to its end even when cancelled meanwhile; then the cancellation goes on."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


@dataclass(slots=True)
class Conflicts:
    """How long polls have been refused because of somebody else's. Successes between them prove nothing.

    Two pollers end each other's polls by turns, and each gets some of the updates.
    """

    clock: Callable[[], float]
    first: float | None = None
    last: float = 0.0
    row: int = 0

    def met(self) -> None:
        """Tell the second of a row of conflicts in the log. Raises AdapterError when they last.

        A single one is mostly our own: the platform still holds a poll whose connection broke.
        """
        now = self.clock()
        if self.first is None or now - self.last > _CONFLICT_PATIENCE:
            self.first, self.row = now, 0
        self.last = now
        self.row += 1
        if self.row == _CONFLICTS_TOLD:
            _log.error(CONFLICT)
        if now - self.first >= _CONFLICT_PATIENCE:
            raise AdapterError(CONFLICT)
