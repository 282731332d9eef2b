"""After a stop: what was heard and not answered is answered, what was answered and not delivered is delivered."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from bot.conversation import Conversation
from bot.hearing import resumed
from bot.message import Adapter, ChatRef, DeliveryError
from config.settings import ConversationSettings
from memory import Memory, Waiting
from memory.ports import Clock

log = logging.getLogger(__name__)

AGAIN_EVERY: Final = timedelta(seconds=20)
"""Pause between two tries to deliver what a platform could not be reached for."""


class Recovery:
    """Finds what still waits in memory and queues it; what is queued already is left alone."""

    def __init__(
        self, memory: Memory, conversation: Conversation, clock: Clock, settings: ConversationSettings
    ) -> None:
        self._memory = memory
        self._conversation = conversation
        self._clock = clock
        self._reach = timedelta(hours=settings.recover_hours)
        self._next = clock()

    async def seen(self, adapter: Adapter) -> Mapping[ChatRef, str]:
        """What an adapter asks for once it is up: what waits is taken up, then each chat's newest message told."""
        await self.take_up(adapter)
        newest = await self._memory.newest_heard(adapter.name)
        return {
            ChatRef(adapter.name, key, private=private, thread=thread): message_id
            for (key, thread, private), message_id in newest.items()
        }

    async def again(self, adapters: Mapping[str, Adapter]) -> None:
        """Once in a while, take up what a platform could not be reached for."""
        unreached, now = self._conversation.unreached, self._clock()
        if not unreached or now < self._next:
            return
        self._next = now + AGAIN_EVERY
        for adapter in [adapters[name] for name in unreached & adapters.keys()]:
            if await self.take_up(adapter):
                unreached.discard(adapter.name)
                self._conversation.reconnect(adapter.name)

    async def take_up(self, adapter: Adapter) -> bool:
        """Queue every message of a platform that waits for an answer, or for the delivery of one.

        Returns whether the platform was there for all of them.
        """
        there = True
        for waiting in await self._memory.waiting(adapter.name, since=self._clock() - self._reach):
            owner, message = waiting.owner, waiting.message
            chat = await self._memory.chat(owner, waiting.key, private=waiting.private, thread=waiting.thread)
            said = resumed(waiting, chat)
            # The list is of a moment ago; what is neither held here nor settled since is nobody's.
            if self._conversation.holds(said) or not await self._memory.waits(owner, message.id):
                continue
            if self._may_be_doubled(waiting, adapter):
                log.warning("the reply to message %d may not have arrived; it is not sent a second time", message.id)
                await self._memory.settled(owner, message.id)
                continue
            try:
                sink = adapter.sink(said.incoming, shown=waiting.shown, begun=waiting.begun)
            except DeliveryError:
                there = False  # it is not up, or it is another person's terminal
                continue
            if waiting.begun and not waiting.shown and not adapter.repeats_for:
                log.warning("a beginning of the answer to message %d may stand beside the whole of it", message.id)
            await self._conversation.resume(said, sink, still=partial(self._memory.waits, owner, message.id))
        return there

    def _may_be_doubled(self, waiting: Waiting, adapter: Adapter) -> bool:
        """Whether a reply was on its way when everything stopped, and would be shown twice if it had arrived."""
        given = waiting.reply
        if given is None or not waiting.begun or waiting.shown:
            return False
        return self._clock() - given.at > adapter.repeats_for
