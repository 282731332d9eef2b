"""The instants at which a process may be killed, and the few bytes of memory by which they are agreed with it.

An instant is the ``nth`` event of a kind within a phase of the work, and some microseconds after it. So a seed that
settles these settles the instant, however fast the machine is.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Self


class Phase(IntEnum):
    """What the process is doing."""

    REPLYING = 0
    """Everything that is none of the others: hearing, answering, commands, and taking up what was left."""
    OPENING = 1
    """Opening the file, migrations included."""
    DISTILLING = 2
    MERGING = 3
    ERASING = 4
    HOUSEKEEPING = 5
    """Every other job."""
    REWRITING = 6
    """Writing the file anew, after an erasure."""
    BACKING_UP = 7
    """A backup, which is a process of its own."""


class Event(IntEnum):
    """What happens within a phase, as the process sees it."""

    STATEMENT = 0
    """A statement that writes is about to begin."""
    COMMIT = 1
    """A transaction is about to be written."""
    COMMITTED = 2
    """A transaction was written, and nobody was told yet."""
    FILE = 3
    """A file is about to be opened for writing, synchronised, renamed or removed."""
    BEGUN = 4
    """The process begins."""


@dataclass(frozen=True, slots=True)
class Instant:
    """When to kill; ``micros`` are microseconds after the ``nth`` event. ``gently``: by SIGTERM."""

    phase: Phase
    event: Event
    nth: int = 1
    micros: int = 0
    gently: bool = False

    @property
    def kind(self) -> str:
        """Its kind, for a table."""
        return f"{self._kind} (SIGTERM)" if self.gently else self._kind

    @property
    def _kind(self) -> str:
        match self.event:
            case Event.STATEMENT:
                return "at any time" if self.micros else "before a statement"
            case Event.COMMIT:
                return "during a commit" if self.micros else "before a commit"
            case Event.COMMITTED:
                return "after a commit"
            case Event.FILE:
                return "while a file is changed" if self.micros else "before a file is changed"
            case Event.BEGUN:
                return "at any time"


class _Agreed(ctypes.Structure):
    _fields_ = (
        ("shift", ctypes.c_double),
        ("armed", ctypes.c_int64),
        ("phase", ctypes.c_int64),
        ("event", ctypes.c_int64),
        ("nth", ctypes.c_int64),
        ("micros", ctypes.c_int64),
        ("gently", ctypes.c_int64),
        ("wanted", ctypes.c_int64),
        ("rounds", ctypes.c_int64),
        ("counts", ctypes.c_int64 * (len(Phase) * len(Event))),
    )


class Agreement:
    """What the harness tells the process, and what that tells back, in a file both have in memory."""

    def __init__(self, path: Path) -> None:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            os.ftruncate(handle, ctypes.sizeof(_Agreed))
            self._agreed = _Agreed.from_buffer(mmap.mmap(handle, ctypes.sizeof(_Agreed)))
        finally:
            os.close(handle)

    @classmethod
    def beside(cls, folder: Path) -> Self:
        """The one of a story in ``folder``."""
        return cls(folder / "instants")

    @property
    def shift(self) -> float:
        """Seconds by which the clock of the process is ahead."""
        return float(self._agreed.shift)

    @shift.setter
    def shift(self, seconds: float) -> None:
        self._agreed.shift = seconds

    @property
    def wanted(self) -> int:
        """How often a round of housekeeping was asked for."""
        return int(self._agreed.wanted)

    def want_round(self) -> None:
        """Ask for a round of housekeeping; one that is running need not count."""
        self._agreed.wanted += 1

    @property
    def rounds(self) -> int:
        """Rounds of housekeeping that came to their end."""
        return int(self._agreed.rounds)

    def ended_round(self) -> None:
        """Tell that a round of housekeeping came to its end."""
        self._agreed.rounds += 1

    def arm(self, instant: Instant | None) -> None:
        """Have the process killed at an instant, counted from now; None disarms."""
        agreed = self._agreed
        agreed.armed = 0
        ctypes.memset(ctypes.addressof(agreed.counts), 0, ctypes.sizeof(agreed.counts))
        if instant is not None:
            agreed.phase, agreed.event = instant.phase, instant.event
            agreed.nth, agreed.micros, agreed.gently = instant.nth, instant.micros, instant.gently
            agreed.armed = 1

    def count(self, phase: Phase, event: Event) -> int:
        """How many events there have been since the last :meth:`arm`."""
        return int(self._agreed.counts[phase * len(Event) + event])

    @property
    def signal(self) -> signal.Signals:
        """How to end."""
        return signal.SIGTERM if self._agreed.gently else signal.SIGKILL

    def happens(self, phase: Phase, event: Event) -> int | None:
        """Count an event. Returns the microseconds after which to kill if this is the one, else None."""
        agreed, place = self._agreed, phase * len(Event) + event
        agreed.counts[place] += 1
        if not agreed.armed or (agreed.phase, agreed.event, agreed.nth) != (phase, event, agreed.counts[place]):
            return None
        return int(agreed.micros)
