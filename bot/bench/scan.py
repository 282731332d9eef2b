"""The vector scan of one person in cache, against a cosine at a time and against numpy, in one run."""

from __future__ import annotations

import heapq
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory.ports import Vector
from memory.vectors import Matrix, Vectors

TOP: Final = 10
QUESTIONS: Final = 20
"""Questions of the scan and of numpy; their ten best are compared, too."""
LOOPED: Final = 400_000
"""Cosines the loop is given in all, three questions at least."""


def scan_times(size: int, width: int) -> dict[str, float]:
    """Search ``size`` vectors of ``width`` numbers for the ten best in three ways, one BLAS thread each.

    * the scan of :class:`memory.vectors.Vectors`;
    * numpy: one float32 matrix product over the same rows;
    * the loop: a Python list with one float32 array a fact, for each of them
      ``np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))``, nothing worked out ahead, the best by ``heapq``.

    All three choose the ten best; scan and numpy take turns at going first, so that a busy moment hits both.
    ``x_loop`` is how many times the scan is faster than the loop, ``ratio_numpy`` its time as a share of numpy's,
    ``recall_at_10`` the share of the exact ten best (numpy's) that the scan's hold. Medians, milliseconds.
    """
    source = np.random.default_rng(size)
    matrix, questions = _drawn(source, size, width), _drawn(source, QUESTIONS, width)
    held = Vectors()
    held.add([number.to_bytes(16) for number in range(size)], matrix)
    rows = list(matrix)
    times = _medians(
        {"scan": lambda question: _best(held.scan(question)), "numpy": lambda question: _best(matrix @ question)},
        questions,
    )
    looped = questions[: min(max(LOOPED // size, 3), QUESTIONS)]
    times |= _medians({"loop": lambda question: _looped(rows, question)}, looped)
    found = [len({*_best(held.scan(question))} & {*_best(matrix @ question)}) for question in questions]
    return {
        "scan_ms": round(times["scan"], 4),
        "loop_ms": round(times["loop"], 3),
        "numpy_ms": round(times["numpy"], 4),
        "x_loop": round(times["loop"] / times["scan"], 1),
        "ratio_numpy": round(times["scan"] / times["numpy"], 2),
        "recall_at_10": round(sum(found) / (QUESTIONS * min(TOP, size)), 4),
    }


def _drawn(source: np.random.Generator, rows: int, width: int) -> Matrix:
    matrix = source.standard_normal((rows, width), dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix


def _looped(rows: list[Vector], question: Vector) -> list[tuple[float, int]]:
    return heapq.nlargest(TOP, [(_cosine(row, question), place) for place, row in enumerate(rows)])


def _cosine(first: Vector, second: Vector) -> float:
    return float(np.dot(first, second) / (np.linalg.norm(first) * np.linalg.norm(second)))


def _best(scores: NDArray[np.float32] | None) -> list[int]:
    if scores is None:
        return []
    top = np.argpartition(-scores, TOP)[:TOP] if len(scores) > TOP else np.arange(len(scores))
    return [int(place) for place in top[np.argsort(-scores[top])]]


def _medians(works: Mapping[str, Callable[[Vector], object]], questions: Matrix) -> dict[str, float]:
    """The median milliseconds of each work, all of them taking turns at every question; the first is not timed."""
    times: dict[str, list[float]] = {name: [] for name in works}
    order = list(works.items())
    for question in (questions[0], *questions):
        order.reverse()
        for name, work in order:
            started = time.perf_counter()
            work(question)
            times[name].append((time.perf_counter() - started) * 1_000)
    return {name: statistics.median(taken[1:]) for name, taken in times.items()}
