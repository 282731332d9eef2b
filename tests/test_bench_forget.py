"""``bench forget`` on a small file: everything of one person goes, and nothing of anybody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.bench import forgetting


async def test_one_person_is_erased_beside_others(tmp_path: Path) -> None:
    figures = await forgetting.run_forget(tmp_path, people=3, each=20, facts=80)
    assert figures["others_untouched"]
    assert figures["marker_found_in_files"] == 0
    assert figures["receipts"] == [{"memories": 80, "messages": 80, "replies": 80, "searched": 0}]
    assert set(figures["steps"]) == {"show what words name", "show everything", "hide", "erase"}
    assert 0 < figures["bytes_after"] < figures["bytes_before"]
    assert "80 facts erased beside 60 facts of 3 others" in str(forgetting.table(figures).title)


def test_what_is_left_is_found_in_any_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * (forgetting.CHUNK - 4) + forgetting.MARKER.encode() + b"y")
    (tmp_path / "b").write_bytes(forgetting.MARKER.encode() * 2)
    assert forgetting.found_in_files(tmp_path) == 3


def test_a_run_that_leaves_something_ends_with_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def left(folder: Path, **plan: int) -> dict[str, object]:
        return {"others_untouched": True, "marker_found_in_files": 1, "receipts": [{}]}

    monkeypatch.setattr(forgetting, "run_forget", left)
    assert forgetting.main(people=1, each=1, facts=1, as_json=True) == 1
    assert json.loads(capsys.readouterr().out)["marker_found_in_files"] == 1
