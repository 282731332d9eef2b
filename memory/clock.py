"""Time as memory keeps it: whole microseconds of UTC in a row, aware UTC in Python."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, overload

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def stamp(moment: datetime) -> int:
    """Microseconds since 1970 of an aware ``moment``; exact. Raises ValueError for a naive one."""
    if moment.tzinfo is None:
        raise ValueError("a time without a zone has no place in memory: pass an aware datetime")
    return (moment - EPOCH) // _MICROSECOND


@overload
def moment(microseconds: int) -> datetime: ...
@overload
def moment(microseconds: None) -> None: ...
@lru_cache(maxsize=8_192)
def moment(microseconds: int | None) -> datetime | None:
    """Aware UTC time of ``microseconds`` since 1970; None stays None.

    Rows of one session share most of their times: looked up in a fraction of the time it takes to work one out.
    """
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)
