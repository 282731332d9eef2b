"""When a text gets its vector: one request a session, unless somebody would miss it before.

What was just said is in the window of the talk, and words find it; only its meaning needs a vector. So an owner's
texts wait until their session is over and distilled, and go to the embedder together with what came of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from memory.embedding import BATCH, Backlog, Embeddings
from memory.model import Account, Chat, Message
from memory.ports import EmbedderUnavailable
from memory.sessions import Sessions

log = logging.getLogger(__name__)

SILENCES: Final = 2
"""Silences that end a session (``session.idle_minutes``) for which a text waits at most: a session as long as one of
them, with the silence that ends it, still costs one request, and a longer one a request an hour, not one a turn."""
ASK_AGAIN: Final = timedelta(seconds=30)
"""How long one whose session goes on is not asked again whether their texts are due: as long as a round of
housekeeping that nobody wakes."""


class Freshness:
    """Decides for one owner at a time whether what waits is to be embedded now, and does it."""

    def __init__(self, embeddings: Embeddings, sessions: Sessions, *, idle: timedelta, patience_seconds: float) -> None:
        self._embeddings = embeddings
        self._sessions = sessions
        self._longest = idle * SILENCES
        self._patience = patience_seconds
        self._waits: dict[int, tuple[Backlog, datetime]] = {}

    def heard(self, owner: Account, message: Message) -> None:
        """Note a line of the journal, which needs its vector in time."""
        if message.id == owner.first_id + 1:
            self._embeddings.settled(owner)  # The first row of an account: nothing before it can lack a vector.
        if not message.fleeting:
            self._embeddings.disturbed(owner, session=message.session)

    def may_be_due(self, number: int, *, now: datetime) -> bool:
        """Whether to ask :meth:`is_due` of an account, by its number: not again and again while it talks on.

        Many have something that waits, and next to none of it is due before their sessions end.
        """
        backlog, asked = self._waits.get(number, (None, now))
        if backlog is None or backlog.texts >= BATCH or len(backlog.sessions) != 1:
            return True
        return not timedelta(0) <= now - asked < ASK_AGAIN

    async def is_due(self, owner: Account, *, now: datetime, distilling: Collection[int]) -> bool:
        """Whether the owner's texts are to be embedded now; those of ``distilling`` (account numbers) follow that.

        At once after a start, since the program may have been killed; then when a request is full, when they have
        waited too long, when the owner talks somewhere else, where no window shows them, or nowhere any more.
        """
        backlog = self._embeddings.backlog(owner)
        self._waits.pop(owner.no, None)
        if backlog is None:
            return True
        if owner.no in distilling:
            return False
        # A clock that was set back must not make anything wait until it has caught up.
        if backlog.texts >= BATCH or not timedelta(0) <= now - backlog.since < self._longest:
            return True
        talking = await self._sessions.talking(owner, now=now)
        due = talking is None or backlog.sessions != {talking}
        if not due:
            self._waits[owner.no] = (backlog, now)
        return due

    async def fill(self, owner: Account) -> int:
        """Embed what waits; returns how many vectors were stored. Raises EmbedderUnavailable: then it still waits."""
        self._waits.pop(owner.no, None)
        # Settled first: what is noted while the embedder works unsettles the owner again.
        self._embeddings.settled(owner)
        try:
            return await self._embeddings.fill(owner)
        except BaseException:
            self._embeddings.unknown(owner)
            raise

    async def before_recall(self, owner: Account, room: Chat, *, now: datetime, session: int | None = None) -> None:
        """Embed what was said elsewhere before it is looked for in ``room``, in the time a question's vector has.

        Once for each change of place; what comes too late is found by its words until housekeeping has been. Never
        for a group: what was said elsewhere goes nowhere on its behalf. ``session`` is the open one of ``room``, if the
        caller knows it.
        """
        backlog = self._embeddings.backlog(owner) if room.private else None
        if backlog is None or not backlog.sessions:
            return
        here = session or await self._sessions.current(owner, room, now=now)
        if backlog.sessions <= {here}:
            return
        try:
            await asyncio.wait_for(self.fill(owner), self._patience)
        except (EmbedderUnavailable, TimeoutError) as error:
            log.info("what was said elsewhere waits for its vectors (%s: %s)", type(error).__name__, error)
