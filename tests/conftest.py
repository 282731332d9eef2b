"""What every test may ask for: a clock that stands still, a folder of its own, and no way out to the network.

The network guard itself is pytest-socket, switched on for every test in ``pyproject.toml``: loopback
is open, everything else raises.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory import engine
from tests.seeds import SEED

# As the entry point does, and for the same reason (bot/__main__.py): before anything imports numpy.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

KEY = os.environ.get("TEST_WITH_KEY", "")
OUTSIDE = ("TELEGRAM_", "DISCORD_", "OPENAI_", "RECOLLECT_")
"""Beginnings of the environment variables that configure the product."""


@dataclass
class Clock:
    """A :data:`memory.ports.Clock` that moves only when told to; ``now`` is aware UTC, a Monday noon."""

    now: datetime = field(default_factory=lambda: datetime(2026, 3, 2, 12, 0, tzinfo=UTC))

    def __call__(self) -> datetime:
        """Return the present."""
        return self.now

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> datetime:
        """Let time pass and return the new present."""
        self.now += timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        return self.now


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the random tests went by; drawn here, before other processes begin, it is the same in all of them."""
    terminalreporter.write_line(f"random tests: TESTS_SEED={SEED}")


@pytest.fixture(autouse=True)
def key() -> Iterator[str]:
    """Open every file with the key in TEST_WITH_KEY, if there is one, so that any test can be run with encryption."""
    engine.use(KEY)
    yield KEY
    engine.use(KEY)


@pytest.fixture
def clock() -> Clock:
    """Return a clock that stands at Monday, 2 March 2026, 12:00 UTC."""
    return Clock()


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Return an empty data folder of the test's own."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def untouched_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the tokens and keys of whoever runs the tests, and any proxy between them and loopback."""
    for name in os.environ:
        if name.startswith(OUTSIDE) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
