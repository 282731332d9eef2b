"""What is measured of the running bot, for Prometheus. The one file that knows its client.

No label is ever anybody's: no user, no chat, no word. Labels are words of ours out of closed sets (a store, a reason,
a kind of failure); what one person uses is in the database, for ``status`` and ``/usage``.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
LAG_EVERY: Final = 0.5
"""Seconds between two looks at how late the event loop is."""
_PREFIX: Final = "recollect"
_OURS: Final = re.compile(r"[a-z][a-z0-9_ -]{0,40}")
"""What a label of a tally looks like; anything else is counted as "other"."""
_FAST: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

_registry: Final = CollectorRegistry(auto_describe=True)

UPDATES: Final = Counter(
    f"{_PREFIX}_updates", "What platforms handed in, by platform.", ["platform"], registry=_registry
)
TURNS: Final = Counter(f"{_PREFIX}_turns", "Turns that came to an end, by how.", ["outcome"], registry=_registry)
REPLY_SECONDS: Final = Histogram(
    f"{_PREFIX}_reply_seconds",
    "From hearing the last message of a turn to its answer being delivered.",
    registry=_registry,
    buckets=_FAST,
)
STEP_SECONDS: Final = Histogram(
    f"{_PREFIX}_step_seconds",
    "What an answer was waited for: learning, recall, the model.",
    ["step"],
    registry=_registry,
    buckets=_FAST,
)
ENDPOINT_ERRORS: Final = Counter(
    f"{_PREFIX}_endpoint_errors",
    "Requests to the endpoint that failed for good, by kind.",
    ["kind"],
    registry=_registry,
)
FLOODS: Final = Counter(f"{_PREFIX}_floods", "Times a platform asked to be left alone.", registry=_registry)
FLOOD_SECONDS: Final = Counter(f"{_PREFIX}_flood_seconds", "Seconds it asked for.", registry=_registry)
LOOP_LAG: Final = Histogram(
    f"{_PREFIX}_loop_lag_seconds",
    "How late the event loop was.",
    registry=_registry,
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0),
)

_TALLIED: Final[Mapping[str, tuple[str, str]]] = {
    "written": ("store", "Memories written."),
    "confirmed": ("store", "Memories said again."),
    "dropped": ("reason", "Memories refused by the write gate."),
    "closed": ("reason", "Memories closed: superseded, expired, folded into a double."),
    "reopened": ("store", "Memories opened again."),
    "erased": ("store", "Memories erased for good."),
    "forgotten": ("", "Deletions carried out and proved."),
    "recalled": ("verdict", "Questions asked of memory, by whether anything fitted."),
    "used": ("kind", "Messages heard, and requests to models."),
    "tokens_in": ("kind", "Tokens that models read."),
    "tokens_out": ("kind", "Tokens that models wrote."),
}
"""What memory counts: the name of its label here, and what it means."""


class Tallied(Collector):
    """What memory counted, as it stands when it is asked for.

    ``price`` is that of (tokens in, tokens out) of the chat model in ``currency``, which ``priced`` kinds used.
    """

    def __init__(
        self,
        counts: Callable[[], Mapping[tuple[str, str], int]],
        priced: Sequence[str],
        price: Callable[[int, int], float | None],
        currency: str,
    ) -> None:
        self._counts = counts
        self._priced = priced
        self._price = price
        self._currency = currency

    def collect(self) -> Iterator[Metric]:
        """Each kind of count as a family."""
        counts = self._counts()
        for name, (label, meaning) in _TALLIED.items():
            family = CounterMetricFamily(f"{_PREFIX}_{name}", meaning, labels=[label] if label else [])
            for value, times in _labelled(counts, name).items():
                family.add_metric([value] if label else [], times)
            yield family
        tokens = [sum(counts.get((way, kind), 0) for kind in self._priced) for way in ("tokens_in", "tokens_out")]
        price = self._price(*tokens)
        if price is not None:
            family = CounterMetricFamily(f"{_PREFIX}_cost", "Price of the chat model's tokens.", labels=["currency"])
            family.add_metric([self._currency], price)
            yield family


class Page:
    """The page of one bot: what is measured everywhere, what its memory counted, and how things stand just now."""

    def __init__(self, tallied: Tallied) -> None:
        self._own = CollectorRegistry(auto_describe=False)
        self._own.register(tallied)
        self._gauges: dict[str, Gauge] = {}

    def text(self, standing: Mapping[str, float]) -> bytes:
        """The page; ``standing`` are numbers of this moment, by the end of their name."""
        for name, value in standing.items():
            if name not in self._gauges:
                self._gauges[name] = Gauge(f"{_PREFIX}_{name}", "As of this moment.", registry=self._own)
            self._gauges[name].set(value)
        return generate_latest(_registry) + generate_latest(self._own)


def waited(milliseconds: Mapping[str, float]) -> None:
    """Measure what an answer was waited for, by step."""
    for step, of in milliseconds.items():
        STEP_SECONDS.labels(step).observe(of / 1_000)


async def watch_loop(
    *, ticks: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Measure again and again, until cancelled, how late the event loop comes back."""
    while True:
        begun = ticks()
        await sleep(LAG_EVERY)
        LOOP_LAG.observe(max(ticks() - begun - LAG_EVERY, 0.0))


def _labelled(counts: Mapping[tuple[str, str], int], name: str) -> dict[str, int]:
    """The counts of a name by label, what is no label of ours together."""
    found: dict[str, int] = {}
    for (of, label), times in sorted(counts.items()):
        if of == name:
            value = label if not label or _OURS.fullmatch(label) else "other"
            found[value] = found.get(value, 0) + times
    return found
