"""The bot while it is up: what comes in goes to the conversation, with the place where the answer goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from telegram import Bot
from telegram import Update as TelegramUpdate
from telegram.error import TelegramError

from bot.adapters.telegram.connection import NAME, Pace, pass_over
from bot.adapters.telegram.media import Files
from bot.adapters.telegram.outlet import Moves, TelegramOutlet
from bot.adapters.telegram.reading import Reader, moved
from bot.delivery import Budget, Delivery, Discreet, Errands, Gates, InPlace
from bot.message import ChatRef, Edited, Incoming, Moved, Press, Sink, Submit, Update

FRAMES_A_SECOND: Final = 20.0
"""Frames of all growing answers together: Telegram takes about 30 messages a second from a bot (Bots FAQ, "My bot is
hitting limits"). The rest is left to final texts and typing signs."""
_STOP_SECONDS: Final = 10.0
"""Time for replies under way to arrive once the bot is told to stop."""


class Line:
    """Takes updates in and makes sinks. ``now`` is aware UTC; ``drafts`` shows growing answers as drafts."""

    def __init__(self, bot: Bot, submit: Submit, pace: Pace, *, now: Callable[[], datetime], drafts: bool) -> None:
        self.errands = Errands()
        self._bot = bot
        self._submit = submit
        self._pace = pace
        self._now = now
        self._drafts = drafts
        self._reader = Reader(bot.bot, Files(bot).fetch, now)
        self._moves = Moves(self._tell_move)
        self._gates: Gates[str] = Gates(pace.tempo, Budget(pace.tempo, FRAMES_A_SECOND))

    def look_ahead(self, update: TelegramUpdate) -> None:
        """See an update that comes after others not yet taken."""
        with suppress(Exception):  # what is wrong with it is told when its turn comes
            self._reader.look_ahead(update)

    async def take(self, update: TelegramUpdate) -> None:
        """Hand an update over; returns once it is durable, or at once if it is nothing to us."""
        if update.callback_query is not None:
            self.errands.start(self._acknowledge(update.callback_query.id))
        try:
            read = self._reader.read(update)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one update, the next ones are to be read
            pass_over(update.update_id, error)
            return
        if read is not None:
            await self._submit(read, self._sink_for(read))

    def sink(self, incoming: Incoming, *, shown: Sequence[str] = (), begun: bool = False, typing: bool = True) -> Sink:
        """Where the answer to a message goes: in groups it points to the message, if that has a number there."""
        number = int(incoming.message_id) if incoming.message_id else None
        answer = self.delivery(
            incoming.chat,
            answers=None if incoming.chat.private else number,
            draft_id=number if self._drafts else None,
            shown=shown,
            begun=begun,
        )
        if typing:
            answer.type(incoming.chat.thread)
        return self._discreet(answer, incoming.chat, incoming.user_id)

    def delivery(
        self,
        chat: ChatRef,
        *,
        answers: int | None = None,
        draft_id: int | None = None,
        shown: Sequence[str] = (),
        begun: bool = False,
    ) -> Delivery:
        """Where messages into a chat go. All topics of a group share its limits, and so its gate."""
        outlet = TelegramOutlet(self._bot, chat, self._moves, answers=answers, draft_id=draft_id)
        pause = self._pace.edit_private if chat.private else self._pace.edit_group
        return Delivery(outlet, self._gates.get(chat.key, pause), self.errands, shown=shown, begun=begun)

    async def close(self) -> None:
        """Let replies under way arrive, for a while, and take no more."""
        await self.errands.finish(_STOP_SECONDS)

    def _sink_for(self, update: Update) -> Sink:
        match update:
            case Incoming():
                return self.sink(update)
            case Edited():
                return self.sink(update.message, typing=False)
            case Press():
                beside = self._discreet(self.delivery(update.chat), update.chat, update.user_id)
                if update.message_id is None or not update.chat.private:
                    return beside
                return InPlace(beside, self.delivery(update.chat, shown=(update.message_id,)))
            case Moved():
                self._moves.note(_number(update.chat.key), _number(update.key))
        return self.delivery(update.chat)

    def _discreet(self, answer: Delivery, chat: ChatRef, user_id: str) -> Sink:
        """What only one person may see goes into their private chat."""
        return answer if chat.private else Discreet(answer, self.delivery(ChatRef(NAME, f"dm:{user_id}")))

    def _tell_move(self, old: int, new: int) -> None:
        update = moved(old, new, self._now())
        self.errands.start(_submitted(self._submit, update, self.delivery(update.chat)))

    async def _acknowledge(self, query_id: str) -> None:
        with suppress(TelegramError):  # too late or not heard: the button only stops spinning later
            await self._bot.answer_callback_query(query_id)


def _number(key: str) -> int:
    return int(key.partition(":")[2])


async def _submitted(submit: Submit, update: Update, sink: Sink) -> None:
    await submit(update, sink)
