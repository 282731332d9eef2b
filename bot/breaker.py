"""Stops talk that runs in circles: two programs that answer each other never tire, people do."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from datetime import datetime, timedelta
from typing import Final, Literal

SPAN: Final = timedelta(minutes=1)
REST: Final = timedelta(minutes=5)
"""How long nobody is answered after the breaker has opened."""


class Breaker:
    """Counts turns of each ``key`` (a person in a chat); more than ``most`` in a minute open it. 0 never opens."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._turns: dict[Hashable, deque[datetime]] = {}
        self._open_until: dict[Hashable, datetime] = {}

    def judge(self, key: Hashable, now: datetime) -> Literal["go", "opened", "open"]:
        """Count one turn: "go" may be answered, "opened" is the one that was too many, "open" comes after it."""
        if not self._most:
            return "go"
        self._open_until = {rests: until for rests, until in self._open_until.items() if until > now}
        if key in self._open_until:
            return "open"
        self._turns = {known: times for known, times in self._turns.items() if now - times[-1] < SPAN}
        times = self._turns.setdefault(key, deque(maxlen=self._most))
        if len(times) == self._most and now - times[0] < SPAN:
            self._open_until[key] = now + REST
            return "opened"
        times.append(now)
        return "go"
