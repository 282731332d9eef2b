"""All threads take memory from one heap (bot/heap.py); glibc tells how many there are."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping

import pytest

from bot.heap import CHOSEN

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")

HEAPS = """
import ctypes, tempfile, threading
{first}
held = []
for _ in range(3):
    thread = threading.Thread(target=lambda: held.extend(bytes(5_000) for _ in range(1_000)))
    thread.start()
    thread.join()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
with tempfile.TemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fdopen(file.fileno(), b"w"))
    libc.malloc_info(0, stream)
    libc.fflush(stream)
    file.seek(0)
    print(file.read().count(b"<heap "))
"""
A_COMMAND = """
import contextlib, sys
from bot.__main__ import main
sys.argv[1:] = ["--version"]
with contextlib.suppress(SystemExit):
    main()
"""


DIRECTLY = "from bot.heap import share_one_heap; share_one_heap()"
"""The whole program takes seconds to start."""


def heaps(first: str, surroundings: Mapping[str, str]) -> int:
    """How many heaps a process has whose threads took memory, behind a ``first`` statement."""
    told = subprocess.run(
        [sys.executable, "-c", HEAPS.format(first=first)],
        env={**{key: value for key, value in os.environ.items() if key not in dict(CHOSEN)}, **surroundings},
        check=True,
        capture_output=True,
        text=True,
    )
    return int(told.stdout.split()[-1])


def test_threads_of_the_bot_share_one_heap_where_they_have_several_otherwise() -> None:
    assert heaps("pass", {}) > 1
    assert heaps(A_COMMAND, {}) == 1


def test_an_operator_may_choose_another_number() -> None:
    assert heaps(DIRECTLY, {"MALLOC_ARENA_MAX": "2"}) == 2
    assert heaps(DIRECTLY, {"GLIBC_TUNABLES": "glibc.malloc.arena_max=2"}) == 2
    assert heaps(DIRECTLY, {"GLIBC_TUNABLES": "glibc.malloc.check=0"}) == 1
