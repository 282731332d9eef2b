"""``python -m tests.secrecy``: as many random operations as one likes, in worlds of some hundreds, with their seeds."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from tests.secrecy.oracle import Violation
from tests.secrecy.run import lived

WORLD = 400
"""Operations in one world: enough for a memory to fill, few enough for a failure to be followed."""


def main(
    *,
    operations: Annotated[int, typer.Option(help="How many, over all worlds.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Seed of the first world; the next has the next.")] = 1,
    world: Annotated[int, typer.Option(help="Operations in one world.")] = WORLD,
    keep_going: Annotated[bool, typer.Option(help="Go on to the next world after a violation; all are told.")] = False,
) -> None:
    """Throw random operations at the real stores and look after each what anybody was shown."""
    counts: Counter[str] = Counter()
    violated: list[int] = []
    begun = time.perf_counter()
    for number in range(-(-operations // world)):
        with tempfile.TemporaryDirectory() as folder:
            try:
                counts += asyncio.run(lived(Path(folder), seed=seed + number, operations=world))
            except Violation as violation:
                violated.append(seed + number)
                typer.echo(f"seed {seed + number}: {violation}")
                if not keep_going:
                    raise typer.Exit(1) from None
        if number % 10 == 9:
            typer.echo(f"seeds {seed}..{seed + number}: {(number + 1) * world} operations, {told(violated)}")
    for name, count in sorted(counts.items()):
        typer.echo(f"{count:8}  {name}")
    typer.echo(f"{time.perf_counter() - begun:.0f} s, {told(violated)}")
    raise typer.Exit(1 if violated else 0)


def told(violated: list[int]) -> str:
    """``no violation``, or the seeds of the worlds that had one."""
    return f"violations with the seeds {violated}" if violated else "no violation"


typer.run(main)
