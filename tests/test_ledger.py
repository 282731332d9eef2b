"""The ledger is on the disk whole, or its writer hears of it."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory.ledger import Known, _added, read, write


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """As on a full disk: what still fits is taken, the next byte is refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_line_that_only_half_fits_the_disk_is_not_taken_for_written(tmp_path: Path) -> None:
    file = tmp_path / "recollect.ledger"
    size = _added(file, b"first\n")
    with no_file_longer_than(size + 3), pytest.raises(OSError, match="too large"):
        _added(file, b"second\n")


def test_a_ledger_that_only_half_fits_leaves_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "recollect.ledger"
    write(file, Known({}, {"accounts": 7}, {}))
    with no_file_longer_than(3), pytest.raises(OSError, match="too large"):
        write(file, Known({}, {"accounts": 8}, {}))
    assert read(file).counters == {"accounts": 7}
