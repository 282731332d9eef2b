"""Print the table of faults; see the package."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.faultline import scenarios


def main(areas: list[str]) -> int:
    """Bring about every fault of ``areas`` (all without any) and print what was seen; 1 if anything was wrong."""
    table = Table(
        "fault", "what the person sees", "what the log says", "what is kept", "when it heals", show_lines=True
    )
    wrong = 0
    for area, name in scenarios.SCENARIOS:
        if areas and area not in areas:
            continue
        folder = Path(tempfile.mkdtemp(prefix="faultline-"))
        begin = time.monotonic()
        try:
            row = asyncio.run(scenarios.run(area, name, folder, chats=100))
        except Exception as error:  # noqa: BLE001 - it is a line of the table
            wrong += 1
            table.add_row(f"{area}: {name}", f"WRONG: {type(error).__name__}: {error}", "", "", "", style="red")
        else:
            table.add_row(f"{area}: {name}", row.user, row.log, row.kept, row.heals)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        sys.stderr.write(f"{area}: {name} ({time.monotonic() - begin:.1f} s)\n")
    Console(width=200, markup=False).print(table)
    sys.stdout.write(f"{table.row_count} faults, {wrong} of them not as they should be\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
