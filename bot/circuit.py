"""Leaves an endpoint alone that has failed again and again, and finds out by one request when it works again."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Hashable
from typing import Final

import pybreaker

MOST_FAILURES: Final = 5
"""Failures without an answer between them that open the circuit: of so many different callers, or connections that
nobody took. One caller counts once, for their words may be what the endpoint fails on."""
FIRST_REST: Final = 10.0
"""Seconds for which an endpoint is not asked at first; doubled with each trial that fails."""
LONGEST_REST: Final = 120.0
LONGEST_ASKED_REST: Final = 300.0
"""The longest rest an endpoint may ask for by Retry-After, seconds."""
SPREAD: Final = 0.25
"""Of a rest, added at random: programs that share an endpoint do not come back to it at one moment."""
PATIENCE: Final = 5.0
"""Longest wait for the outcome of somebody else's trial, seconds: then whoever waits is told at once."""
_NEVER: Final = 10.0**9
"""Seconds. The library goes by the clock on the wall, which may be set back by a day; when a rest is over is for
the ticks of this file to say."""

log = logging.getLogger(__name__)


class RestingError(Exception):
    """The endpoint is not asked just now; ``seconds`` until it is tried again (0: somebody is trying)."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"not asked for another {seconds:.0f} s")
        self.seconds = seconds


class _Failure(Exception):
    """What the library counts."""


class Ticket:
    """One request on its way, retries included, and what it says of the endpoint. ``whose`` is the caller."""

    def __init__(self, circuit: Circuit, whose: Hashable) -> None:
        self._circuit = circuit
        self.whose = whose

    async def admit(self) -> None:
        """Let the request out, or wait for a trial under way. Raises RestingError."""
        await self._circuit.admit(self)

    def answered(self) -> None:
        """The endpoint works, whatever it answered: a refusal is an answer, too."""
        self._circuit.answered()

    def failed(self, *, taken: bool = True, asked_rest: float = 0.0) -> None:
        """The endpoint does not work; ``taken`` False when it did not even take the connection.

        ``asked_rest`` are the seconds it asked for.
        """
        self._circuit.failed(self, taken=taken, asked_rest=asked_rest)

    def leave(self) -> None:
        """The request is over; without a word from the endpoint somebody else may try."""
        self._circuit.leave(self)


class Circuit:
    """The circuit breaker of one endpoint, ``name`` for the log. ``ticks`` gives seconds that only ever grow."""

    def __init__(
        self,
        name: str,
        *,
        ticks: Callable[[], float] = time.monotonic,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._name = name
        self._ticks = ticks
        self._spread = spread
        self._breaker = pybreaker.CircuitBreaker(
            fail_max=MOST_FAILURES, reset_timeout=_NEVER, throw_new_error_on_trip=False
        )
        self._blamed: set[Hashable] = set()
        self._rests = 0
        self._until = 0.0
        self._trial: Ticket | None = None
        self._settled = asyncio.Event()

    @property
    def resting(self) -> bool:
        """Whether the endpoint failed last and is not asked, or only tried."""
        return self._breaker.current_state != pybreaker.STATE_CLOSED

    def ticket(self, whose: Hashable = None) -> Ticket:
        """A request of ``whose``, which asks to be let out before each of its tries."""
        return Ticket(self, whose)

    async def admit(self, ticket: Ticket) -> None:
        """Let a request out: any while the endpoint works, one to try it after a rest. Raises RestingError."""
        deadline = asyncio.timeout(PATIENCE)
        try:
            async with deadline:
                while self.resting and self._trial is not ticket:
                    if (left := self._until - self._ticks()) > 0:
                        raise RestingError(left)
                    if self._trial is None:
                        self._breaker.half_open()
                        self._trial, self._settled = ticket, asyncio.Event()
                        return
                    await self._settled.wait()
        except TimeoutError:
            raise RestingError(0.0) from None

    def answered(self) -> None:
        """Note that the endpoint works."""
        self._blamed.clear()
        self._rests = 0
        if self.resting:
            self._breaker.close()
            log.info("%s answers again", self._name)
            self._settle()
        else:
            self._breaker.call(lambda: None)

    def failed(self, ticket: Ticket, *, taken: bool, asked_rest: float) -> None:
        """Note that the endpoint does not work; what was asked before it was left alone says nothing new."""
        trying = self._trial is ticket
        if (self.resting and not trying) or (taken and not trying and ticket.whose in self._blamed):
            return
        self._blamed.add(ticket.whose)
        try:
            self._breaker.call(_fail)
        except _Failure:
            if self.resting:
                self._rest(asked_rest)

    def leave(self, ticket: Ticket) -> None:
        """Let somebody else try if this trial ended without a word from the endpoint."""
        if self._trial is ticket:
            self._settle()

    def _rest(self, asked_rest: float) -> None:
        rest = min(FIRST_REST * 2**self._rests, LONGEST_REST)
        rest = max(rest, min(asked_rest, LONGEST_ASKED_REST)) * (1 + SPREAD * self._spread())
        self._rests += 1
        self._until = self._ticks() + rest
        log.warning("%s fails; it is not asked for %.0f s, then tried with one request", self._name, rest)
        self._settle()

    def _settle(self) -> None:
        self._trial = None
        self._settled.set()


def _fail() -> None:
    raise _Failure
