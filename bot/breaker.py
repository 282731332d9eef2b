"""Stops talk that runs in circles: two programs that answer each other never tire, people do."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from datetime import datetime, timedelta
from typing import Final

SPAN: Final = timedelta(minutes=1)
REST: Final = timedelta(minutes=5)
"""How long nobody is answered after the breaker has opened."""
REACTION: Final = timedelta(seconds=2)
"""Nobody reads an answer and writes the next message within this; what comes sooner may be a program's reaction."""

_FEW: Final = 100
"""Keys up to which nothing is thrown away."""


class Breaker:
    """Counts reactions of each ``key`` (a person in a chat); more than ``most`` in a minute open it. 0 never opens."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._answered: dict[Hashable, datetime] = {}
        self._reactions: dict[Hashable, deque[datetime]] = {}
        self._open_until: dict[Hashable, datetime] = {}
        self._kept = _FEW

    def answered(self, key: Hashable, now: datetime) -> None:
        """Note that somebody was answered just now."""
        if len(self._answered) > self._kept:
            # Not each time: with many people about, to look through all of them takes longer than all else here.
            self._answered = {known: at for known, at in self._answered.items() if now - at < SPAN}
            self._kept = 2 * len(self._answered) + _FEW
        self._answered[key] = now

    def lets(self, key: Hashable, *, arrived: datetime, now: datetime) -> bool:
        """Whether what arrived is to be answered."""
        self._open_until = {rests: until for rests, until in self._open_until.items() if until > now}
        if not self._most or key in self._open_until:
            return not self._most
        answered = self._answered.get(key)
        if answered is None or not timedelta(0) <= arrived - answered < REACTION:
            return True
        self._reactions = {known: times for known, times in self._reactions.items() if now - times[-1] < SPAN}
        times = self._reactions.setdefault(key, deque(maxlen=self._most))
        if len(times) == self._most and now - times[0] < SPAN:
            self._open_until[key] = now + REST
            return False
        times.append(now)
        return True
