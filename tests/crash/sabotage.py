"""Work done wrong, one way each, to see that the harness notices: the process is told to ``commit`` one of these.

"Replies stay" and "nobody is told" would show without a kill; the others leave nothing wrong unless one comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Final

from memory.erasing import RECEIPT, Erasing
from memory.journal import Journal
from memory.model import Account, Message
from memory.promises import Deletion, Promises
from memory.sessions import Reach, Sessions
from tests.crash.instants import Event, Instant, Phase


def _told_before_it_is_done() -> None:
    """Mark a deletion as carried out, and owe its receipt, when the first row goes."""
    begun = Promises.begun

    @wraps(begun)
    async def marked(self: Promises, owner: Account, deletion: int) -> None:
        await begun(self, owner, deletion)
        (due,) = [d for d in await self.due(owner, now=datetime.max.replace(tzinfo=UTC)) if d.id == deletion]
        await self.erased(owner, deletion, at=due.erase_at)
        await self.notify(owner, due.chat, RECEIPT, {**due.counts, "searched": 1}, at=due.erase_at)

    Promises.begun = marked  # type: ignore[method-assign]


def _told_before_the_file_is_rewritten() -> None:
    """Mark a deletion as carried out when its rows are gone, while the old file still stands.

    Their bytes are not overwritten, either: whether any are left otherwise depends on how pages were split.
    """
    erase = Erasing._erase

    @wraps(erase)
    async def marked(self: Erasing, owner: Account, deletion: Deletion, *, now: datetime) -> Deletion | None:
        await self._db._writer.execute("PRAGMA secure_delete = OFF")
        gone = await erase(self, owner, deletion, now=now)
        if gone is not None:
            await self._acknowledge(owner, gone, now=now)
        return gone

    Erasing._erase = marked  # type: ignore[method-assign]


def _replies_stay() -> None:
    """Erase what a person said, and not what the bot made of it."""
    hidden = Journal.hidden

    @wraps(hidden)
    async def said(self: Journal, owner: Account, deletion: int) -> list[Message]:
        return [line for line in await hidden(self, owner, deletion) if line.role == "user"]

    Journal.hidden = said  # type: ignore[method-assign]


def _nobody_is_told() -> None:
    """Owe no receipt."""

    async def keep_silent(*_: Any, **__: Any) -> None: ...

    Promises.notify = keep_silent  # type: ignore[method-assign]


def _the_cursor_moves_later() -> None:
    """Write what was learned of a session, and in a transaction of its own that it was read."""
    finish = Sessions.finish

    @wraps(finish)
    async def apart(self: Sessions, owner: Account, session: int, reach: Reach) -> None:
        for statement in ("COMMIT", "BEGIN IMMEDIATE", "SAVEPOINT piece"):
            await self._db.execute(statement)
        await finish(self, owner, session, reach)

    Sessions.finish = apart  # type: ignore[method-assign]


@dataclass(frozen=True, slots=True)
class Sabotage:
    """What is done wrong, the instant of a kill that brings it to light, and a part of what is then said of it."""

    commit: Callable[[], None]
    instant: Instant
    found: str


SABOTAGES: Final[Mapping[str, Sabotage]] = {
    "told before it is done": Sabotage(
        _told_before_it_is_done, Instant(Phase.ERASING, Event.COMMITTED, 1), "is marked as erased and stands in"
    ),
    "told before the file is rewritten": Sabotage(
        _told_before_the_file_is_rewritten, Instant(Phase.REWRITING, Event.FILE, 1), "is marked as erased and stands in"
    ),
    "replies stay": Sabotage(_replies_stay, Instant(Phase.ERASING, Event.COMMIT, 2), "lines of the bot"),
    "nobody is told": Sabotage(_nobody_is_told, Instant(Phase.ERASING, Event.COMMIT, 1), "was never told"),
    "the cursor moves later": Sabotage(
        _the_cursor_moves_later, Instant(Phase.DISTILLING, Event.COMMITTED, 4), "distilled a second time"
    ),
}
