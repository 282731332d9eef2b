"""Each fault, really brought about; ``python -m tests.faultline`` prints what these see as a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faultline import scenarios


@pytest.mark.parametrize(("area", "name"), list(scenarios.SCENARIOS), ids=map(": ".join, scenarios.SCENARIOS))
async def test_every_fault_is_told_kept_and_healed_as_the_table_says(area: str, name: str, tmp_path: Path) -> None:
    row = await scenarios.run(area, name, tmp_path)
    assert all((row.user, row.log, row.kept, row.heals))
