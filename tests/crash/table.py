"""What a run found, as a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.crash.story import Kill

MISSED = "when all was done"
"""The instant did not come."""


def table(kills: Sequence[Kill]) -> str:
    """Each kind of instant in each kind of work: how many kills, and after how many something was wrong."""
    total: Counter[tuple[str, str]] = Counter()
    bad: Counter[tuple[str, str]] = Counter()
    for kill in kills:
        place = (kill.work, kill.instant.kind if kill.hit else MISSED)
        total[place] += 1
        bad[place] += bool(kill.wrong)
    lines = [f"{'killed while':14} {'at an instant':26} {'kills':>6} {'wrong':>6}"]
    lines += [f"{work:14} {kind:26} {total[work, kind]:6} {bad[work, kind]:6}" for work, kind in sorted(total)]
    lines.append(f"{'all':41} {total.total():6} {bad.total():6}")
    for kill in kills:
        lines += [f"{kill.work}, {kill.instant.kind} ({kill.instant}): {fault}" for fault in kill.wrong]
    return "\n".join(lines)
