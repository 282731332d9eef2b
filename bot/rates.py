"""How fast people and chats may write: so many messages in any minute, and one word to who is faster."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime, timedelta
from typing import Final, Literal

from pyrate_limiter import Duration, InMemoryBucket, Rate, RateItem

SPAN: Final = timedelta(minutes=1)

Pace = Literal["in", "first", "over"]
"""Taken; the first that is too much, of which its author is to be told; one more, to which nothing is said."""


class Rates:
    """Counts by key within a sliding minute; ``most`` 0 is no limit. What was refused does not count.

    The library keeps the window; the time is the caller's, so that no clock but the injected one counts.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._buckets: dict[Hashable, InMemoryBucket] = {}
        self._latest: dict[Hashable, datetime] = {}
        self._told: set[Hashable] = set()
        self._swept: datetime | None = None

    def take(self, key: Hashable, *, now: datetime) -> Pace:
        """Count one more of ``key`` at ``now`` (aware), unless that is too many."""
        if not self._most:
            return "in"
        self._sweep(now)
        bucket = self._buckets.setdefault(key, InMemoryBucket([Rate(self._most, Duration.MINUTE)]))
        if now < self._latest.get(key, now):
            bucket.flush()  # The clock was set back: what seems to come from the future would count for hours.
        self._latest[key] = now
        moment = int(now.timestamp() * 1_000)
        bucket.leak(moment)
        if bucket.put(RateItem("", moment)):
            self._told.discard(key)
            return "in"
        if key in self._told:
            return "over"
        self._told.add(key)
        return "first"

    def _sweep(self, now: datetime) -> None:
        """Let go of who has been quiet for a while, once in a minute."""
        if self._swept is not None and timedelta(0) <= now - self._swept < SPAN:
            return
        self._swept = now
        for key in [key for key, at in self._latest.items() if abs(now - at) > SPAN]:
            del self._latest[key], self._buckets[key]
            self._told.discard(key)
