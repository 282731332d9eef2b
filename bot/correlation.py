"""One number for all that belongs to a turn: its log lines, its trace, and what a person is told when it failed."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from structlog.contextvars import bound_contextvars, get_contextvars

TURN: Final = "turn"
"""The key under which log lines carry it."""
_BYTES: Final = 4


def fresh() -> str:
    """A number that was hardly ever given before: eight hexadecimal digits, easy to read out and to search for."""
    return secrets.token_hex(_BYTES)


def current() -> str:
    """The number of the turn that is being worked on, "" outside of one."""
    return str(get_contextvars().get(TURN, ""))


def here() -> str:
    """The number of the turn that is being worked on, a fresh one outside of one."""
    return current() or fresh()


@contextmanager
def turn(number: str) -> Iterator[None]:
    """Have everything in here belong to the turn ``number``, tasks begun here, too."""
    with bound_contextvars(**{TURN: number}):
        yield
