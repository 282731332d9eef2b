"""Kill the real program at hundreds of instants, start it again each time, and say what was found.

    python -m tests.crash --seed 7 --kills 500

The seed settles the work and the instants; each story of a few dozen kills has a folder and a seed of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.crash.moving import Migration
from tests.crash.story import Kill, Story
from tests.crash.table import table
from tests.faults import Nursery

A_STORY: Final = 40
"""Kills after which another story begins, in an empty folder."""


def main() -> int:
    """Play stories until so many kills are done, and print the table; a story ends where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--gently", type=float, default=0.0, metavar="SHARE", help="share that is SIGTERM, 0 to 1")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder to leave data and logs in")
    options = parser.parse_args()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # a kill cuts requests off
    root = options.keep or Path(tempfile.mkdtemp())
    begun = time.monotonic()
    kills: list[Kill] = []
    sys.stdout.write(f"seed {options.seed}\n")
    with contextlib.suppress(KeyboardInterrupt), Nursery("tests.crash.victim") as nursery:  # what was found is told
        for number, left in enumerate(range(options.kills, 0, -A_STORY)):
            moved = min(left, A_STORY) // 8
            for migration in range(moved):
                folder = root / f"{number}-{migration}"
                folder.mkdir(parents=True)
                kills.append(asyncio.run(Migration(folder, options.seed * 1_000 + len(kills), nursery).strike()))
            folder = root / str(number)
            folder.mkdir(parents=True)
            story = Story(folder, options.seed * 1_000 + number, nursery)
            kills += asyncio.run(story.play(min(left, A_STORY) - moved, gently=options.gently))
            found = [f"{kill.work}: {fault}" for kill in kills for fault in kill.wrong]
            sys.stdout.write(f"{len(kills)} kills in {time.monotonic() - begun:.0f} s, wrong: {found}\n")
            sys.stdout.flush()
    if options.keep is None:
        shutil.rmtree(root)
    sys.stdout.write(f"{table(kills)}\n")
    return 1 if any(kill.wrong for kill in kills) else 0


if __name__ == "__main__":
    sys.exit(main())
