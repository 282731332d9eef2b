"""What one chat has to do: what waits, what is being answered, and which of it is one turn."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Final

from bot import correlation
from bot.language import language_of
from bot.message import ChatRef, Press, Sink
from bot.turn import Heard, Said

log = logging.getLogger(__name__)

MOST_JOINED: Final = 20
"""Messages that one turn may answer."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that waits for an answer since ``at``; ``turn`` is the number it has in the log."""

    heard: Heard
    sink: Sink
    at: datetime
    turn: str = field(default_factory=correlation.here)

    @property
    def said(self) -> Said | None:
        """The message, if it is one."""
        return self.heard if isinstance(self.heard, Said) else None

    @property
    def chat(self) -> ChatRef:
        """Where it came from."""
        return self.heard.chat if isinstance(self.heard, Press) else self.heard.incoming.chat

    @property
    def language(self) -> str:
        """The language to speak of it in."""
        return language_of(self.heard) if isinstance(self.heard, Press) else self.heard.owner.language

    @property
    def user_id(self) -> str:
        """Who waits, as the platform calls them."""
        return self.heard.user_id if isinstance(self.heard, Press) else self.heard.incoming.user_id

    @property
    def is_talk(self) -> bool:
        """Whether it is ordinary talk, which a model answers."""
        return self.said is not None and self.said.is_talk

    def is_talk_of(self, account: int) -> bool:
        """Whether it is that account's ordinary talk, which may be cancelled."""
        return self.said is not None and self.said.is_talk and self.said.owner.no == account

    def is_one_of(self, messages: Container[int]) -> bool:
        """Whether it is one of these journaled messages."""
        return self.said is not None and self.said.message.id in messages


@dataclass(slots=True)
class Worker:
    """A chat that is being served.

    ``door`` lets updates in one after the other; ``running`` is being answered. One that is ``cut_off`` waits
    with all it has until an answer its platform could not be reached for is delivered: order is kept.
    """

    door: asyncio.Lock = field(default_factory=asyncio.Lock)
    coming: int = 0
    stirred: asyncio.Event = field(default_factory=asyncio.Event)
    queue: deque[Item] = field(default_factory=deque)
    running: list[Item] = field(default_factory=list)
    answering: asyncio.Task[None] | None = None
    cut_off: bool = False
    task: asyncio.Task[None] | None = None

    @property
    def held(self) -> list[Said]:
        """Every message that is queued or being answered."""
        return [item.said for item in (*self.running, *self.queue) if item.said is not None]

    @property
    def ready(self) -> bool:
        """Whether something waits that may be answered now."""
        return bool(self.queue) and not self.cut_off

    @property
    def next_is_talk(self) -> bool:
        """Whether what is next needs a model."""
        return self.ready and self.queue[0].is_talk

    @property
    def is_idle(self) -> bool:
        """Whether nothing is done here, nothing waits and nothing comes in."""
        return not (self.coming or self.queue or self.cut_off) and (self.task is None or self.task.done())

    def put(self, items: Iterable[Item]) -> None:
        """Queue items behind the others."""
        self.queue.extend(items)
        self.stirred.set()

    def pull(self, chosen: Callable[[Item], bool]) -> list[Item]:
        """Take items out of the queue."""
        pulled = [item for item in self.queue if chosen(item)]
        self.queue = deque(item for item in self.queue if not chosen(item))
        self.stirred.set()
        return pulled

    def take(self, turn: list[Item]) -> list[Item]:
        """Take a turn out of the queue."""
        taken = set(map(id, turn))
        self.queue = deque(item for item in self.queue if id(item) not in taken)
        return turn

    async def interrupt(self, chosen: Callable[[Item], bool], *, keep: bool) -> list[Item]:
        """Stop the answer under way if it is to something ``chosen``; returns all that it was to answer.

        What is shown of it stays if ``keep``; then one that is beyond stopping goes on, and nothing is returned.
        """
        stopped = self.running
        if not any(chosen(item) for item in stopped):
            return []
        if not await _abandoned(stopped[-1].sink, keep=keep) and keep:
            return []
        await self.halt()
        return stopped

    async def halt(self) -> None:
        """Cancel the answer under way."""
        if self.answering is not None:
            self.answering.cancel()
            await asyncio.wait({self.answering})


def albums(turn: Iterable[Item]) -> set[str]:
    """The albums whose pictures are in a turn."""
    return {item.said.incoming.album for item in turn if item.said is not None and item.said.incoming.album}


def joined(queue: Sequence[Item]) -> list[Item]:
    """The items of a queue that are one turn: what one person says in a row, and all of an album."""
    first = queue[0].said
    if first is None or not first.is_talk:
        return [queue[0]]
    run = list(takewhile(lambda item: item.said is not None and first.joins(item.said), list(queue)[:MOST_JOINED]))
    begun = next((n for n, item in enumerate(run, 1) if item.said is not None and item.said.begun), None)
    if begun is not None:
        return run[:begun]
    pictures = albums(run)
    behind = list(queue)[len(run) :]
    return run + [item for item in behind if item.is_talk_of(first.owner.no) and pictures & albums([item])]


async def _abandoned(sink: Sink, *, keep: bool) -> bool:
    """Give up what an answer shows, or is about to; a platform's failure there keeps nothing else from being done."""
    try:
        return await sink.abandon(keep=keep)
    except Exception:
        log.exception("a platform did not give up an answer")
        return True
