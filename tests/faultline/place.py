"""Where a fault happens: a folder, a clock, seconds that pass when told to, and everything that is logged."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bot.logs import Discreet
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import Talk, talking

KEY: Final = "sk-not-for-anybody"
PRIVATE: Final = "heliotrope"
"""A word of what people say here; it is in no line of the log."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was seen."""

    user: str
    log: str
    kept: str
    heals: str


class Heard(logging.Handler):
    """What is logged, warnings and worse, as it would be written."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(Discreet([KEY]))
        self.lines: list[str] = []
        self.whole: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.whole.append(self.format(record))
        self.lines.append(record.getMessage())


@dataclass
class Place:
    """What a scenario has; ``log`` is what was said since the last look at it."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    chats: int = 25
    """How many talk at a time where many do."""
    seconds: float = 1_000.0
    heard: Heard = field(default_factory=Heard)

    def ticks(self) -> float:
        """Seconds that only ever grow."""
        return self.seconds

    def passes(self, seconds: float) -> None:
        """Let time pass, by both clocks."""
        self.seconds += seconds
        self.clock.advance(seconds=seconds)

    @contextlib.asynccontextmanager
    async def served(self, **settings: Any) -> AsyncIterator[tuple[OpenAIServer, Talk]]:
        """A bot whose model answers "Hello" to everything, and knows no embeddings."""
        async with OpenAIServer() as server, self.talk(server, **settings) as talk:
            server.on(reply='{"items": []}', when_prompt_contains="New:")
            server.on(reply="Hello")
            yield server, talk

    @contextlib.asynccontextmanager
    async def talk(self, server: OpenAIServer | None = None, **settings: Any) -> AsyncIterator[Talk]:
        """A bot over this folder."""
        chosen = {"ticks": self.ticks} | settings
        if server is not None or "openai_base_url" in settings:
            chosen["openai_api_key"] = KEY
        chosen["model"] = {"timeout_seconds": 20.0, "retries": 2} | chosen.get("model", {})
        async with talking(self.folder / "data", self.clock, server, **chosen) as talk:
            yield talk

    def logged(self, pattern: str, *, most: int | None = None) -> str:
        """The first line of the log that ``pattern`` is found in; there is one, and no more than ``most``."""
        found = [line for line in self.heard.lines if re.search(pattern, line)]
        assert found, f"{pattern!r} is in none of {self.heard.lines}"
        assert most is None or len(found) <= most, f"{len(found)} lines: {found[:5]}"
        return found[0]

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Hear the log; afterwards nothing private, no key and no traceback of the unforeseen is in it."""
        root = logging.getLogger()
        root.addHandler(self.heard)
        try:
            yield
        finally:
            root.removeHandler(self.heard)
        told = "\n".join(self.heard.whole)
        assert KEY not in told
        assert PRIVATE not in told
        assert not re.search(r"^turn \w+ in chat \S+ failed", "\n".join(self.heard.lines), re.MULTILINE)


Scenario = Callable[[Place], Awaitable[Row]]
SCENARIOS: Final[dict[tuple[str, str], Scenario]] = {}


def fault(area: str, name: str) -> Callable[[Scenario], Scenario]:
    """Enter a scenario into the table."""

    def enter(scenario: Scenario) -> Scenario:
        assert (area, name) not in SCENARIOS
        SCENARIOS[area, name] = scenario
        return scenario

    return enter


async def run(area: str, name: str, folder: Path, *, chats: int = 25) -> Row:
    """Bring a fault about in an empty folder; ``chats`` talk at a time where many do."""
    (folder / "data").mkdir(parents=True)
    place = Place(folder, chats=chats)
    with place.listening():
        return await SCENARIOS[area, name](place)
