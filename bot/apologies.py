"""What a chat is told when something failed: one plain phrase, at most once a minute, with the number of the turn."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Final

from bot import correlation
from bot.message import ChatRef, DeliveryError, Reply, Sink
from bot.turn import Apology
from config.locales import phrase
from memory.ports import Clock

log = logging.getLogger(__name__)

APOLOGY_EVERY: Final = timedelta(minutes=1)
"""A failure of one sort is told to a chat at most this often; every one is in the log."""
FAILURE: Final = "failure"
"""The sort of everything that went wrong on our side."""


class Apologies:
    """Explains failures: the whole of it to the log, one phrase of it to the chat."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[tuple[ChatRef, str], datetime] = {}

    async def explain(self, error: Exception, chat: ChatRef, language: str, sink: Sink) -> None:
        """Log why there is no answer, and say so in ``language``. Never raises."""
        number = correlation.here()
        match error:
            case DeliveryError():
                log.warning("chat %s: the reply did not arrive (%s)", chat.key, error)
            case Apology():
                log.error("turn %s in chat %s: %s", number, chat.key, error.__cause__ or error)
                await self.tell(chat, error.key, error.language, sink, sort=FAILURE, number=number)
            case _:
                log.error("turn %s in chat %s failed", number, chat.key, exc_info=error)
                await self.tell(chat, "error.internal", language, sink, sort=FAILURE, number=number)

    async def tell(self, chat: ChatRef, key: str, language: str, sink: Sink, *, sort: str = "", **values: str) -> None:
        """Say the phrase ``key`` with its ``values``, unless the chat was told of that ``sort`` within a minute.

        By default each phrase is a sort of its own. Never raises.
        """
        now = self._clock()
        self._told = {told: at for told, at in self._told.items() if now - at < APOLOGY_EVERY}
        if (chat, sort or key) in self._told:
            return
        self._told[chat, sort or key] = now
        text = phrase(key, language, **values)
        try:
            await sink.send(Reply(text))
        except DeliveryError as error:
            log.warning("chat %s could not be told of a failure (%s)", chat.key, error)
        except Exception:
            log.exception("chat %s could not be told of a failure", chat.key)
