"""One heap for all threads, where the C library is glibc."""

from __future__ import annotations

import os
from typing import Final

CHOSEN: Final = (("MALLOC_ARENA_MAX", ""), ("GLIBC_TUNABLES", "glibc.malloc.arena_max"))
"""The variables, and what stands in them, by which an operator chooses another number of heaps."""
_M_ARENA_MAX: Final = -8
"""The parameter of mallopt(3) that bounds them."""


def share_one_heap() -> bool:
    """Have every thread take memory from one heap; False where that cannot be asked for, or something else is chosen.

    To be called before there are threads. glibc gives each of them a heap of its own, and what is let go of in one
    serves no other. Indexes grow in three threads: side by side, under 30 messages a second for six minutes, 6.3 of
    88 MB lay unused, with one heap 1.8 (under 50 a second, when more is let go of, 9.1 of 144). What it costs that
    threads wait for each other could not be measured: they take memory with the interpreter held, but for SQLite and
    a few of numpy's loops.
    """
    if any(name in os.environ and sign in os.environ[name] for name, sign in CHOSEN):
        return False
    try:
        import ctypes

        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, ImportError, OSError, TypeError):
        return False  # Another C library, or none that is linked.
    return bool(mallopt(_M_ARENA_MAX, 1) == 1)
