"""A few worlds of random people and operations; ``python -m tests.secrecy`` runs as many as one likes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from tests.secrecy.oracle import Oracle, Violation
from tests.secrecy.run import lived
from tests.seeds import SEED

OPERATIONS = 150


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2, SEED])
async def test_nobody_is_shown_what_is_not_theirs_and_nothing_forgotten_is_kept(tmp_path: Path, seed: int) -> None:
    counts = await lived(tmp_path, seed=seed, operations=OPERATIONS)
    assert counts["request: chat"] > 0
    assert counts["files searched"] > 0


ANN, BOB = ("pa", "1"), ("pa", "2")


@pytest.fixture
def oracle() -> Oracle:
    return Oracle(Random(1))


def test_the_oracle_sees_a_private_word_in_a_group(oracle: Oracle) -> None:
    word = oracle.said(ANN, "pa/dm:1", private=True).word
    oracle.check(f"- I like {word}", account=ANN, room="pa/dm:1", private=True, what="a request")
    with pytest.raises(Violation, match="it was not said here"):
        oracle.check(f"- I like {word}", account=ANN, room="pa/group:-1", private=False, what="a request")


def test_the_oracle_sees_what_is_somebody_elses_in_whatever_case_it_is_written(oracle: Oracle) -> None:
    word = oracle.said(ANN, "pa/dm:1", private=True).word
    with pytest.raises(Violation, match="somebody else's"):
        oracle.check(word.upper(), account=BOB, room="pa/dm:2", private=True, what="a reply")


@pytest.mark.parametrize("state", ["hidden", "withdrawn", "gone"])
def test_the_oracle_sees_what_was_forgotten(oracle: Oracle, state: str) -> None:
    marker = oracle.said(ANN, "pa/dm:1", private=True)
    marker.state, marker.since = state, datetime(2026, 3, 2, tzinfo=UTC)  # type: ignore[assignment]
    with pytest.raises(Violation, match=state):
        oracle.check(marker.word, account=ANN, room="pa/dm:1", private=True, what="a request")
    with pytest.raises(Violation, match="a table"):
        oracle.forgotten([f"x{marker.word}y"], states=("hidden", "withdrawn", "gone"), what="a table")


def test_the_oracle_sees_a_word_that_nobody_has_said(oracle: Oracle) -> None:
    with pytest.raises(Violation, match="nobody has said"):
        oracle.found("Qzabcdefgzq")
