"""The real program killed at instants of its work and started again: nothing is lost, doubled or half (tests/crash)."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.story import Story
from tests.crash.table import table
from tests.faults import Nursery

KILLS = 5


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("tests.crash.victim") as process:
        yield process


async def test_whenever_it_is_killed_nothing_is_lost_doubled_half_done_or_back(
    nursery: Nursery, tmp_path: Path
) -> None:
    seed = int(os.environ.get("CRASH_SEED", random.SystemRandom().randrange(10**6)))
    kills = await Story(tmp_path, seed, nursery).play(KILLS)
    print(f"CRASH_SEED={seed}\n{table(kills)}")  # noqa: T201 - shown when it fails
    assert [kill for kill in kills if kill.wrong] == []
    assert len(kills) == KILLS
