"""One world from its beginning to its end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

from tests.secrecy.oracle import Violation
from tests.secrecy.world import World


async def lived(folder: Path, *, seed: int, operations: int) -> Counter[str]:
    """Live through a world; returns how often what happened. Raises Violation with the seed and the step."""
    world = await World.made(folder, Random(seed))
    try:
        for number in range(operations):
            try:
                await world.step()
            except Violation as violation:
                raise Violation(f"seed {seed}, operation {number}: {violation}") from violation
        await world.end()
    finally:
        await world.close()
    return world.counts
