"""Who has a data folder open: everybody who opens its database, or nobody but a restore.

The lock is the folder's own and goes with the process that holds it, however that ends: nothing is left behind.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover (Windows has no such lock; there SQLite's own tells, as far as it can)
    fcntl = None  # type: ignore[assignment]


class HeldError(Exception):
    """Somebody else has the folder open in a way that does not go together with what was asked."""


class Held:
    """A folder that is held; :meth:`release` lets go of it."""

    def __init__(self, folder: Path, *, alone: bool = False) -> None:
        """Hold ``folder`` together with others, or ``alone``. Raises HeldError, and OSError if it is not there."""
        self._handle: int | None = None
        if fcntl is None:
            return
        handle = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise HeldError(f"{folder} is in use") from None
        except OSError:
            os.close(handle)  # A file system without such locks: better without than not at all.
            return
        self._handle = handle

    def release(self) -> None:
        """Let go."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder while nobody else may. Raises HeldError."""
    held = Held(folder, alone=True)
    try:
        yield
    finally:
        held.release()
