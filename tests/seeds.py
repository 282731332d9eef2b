"""The random part of the random tests: drawn anew for each run, the same in all of its processes."""

from __future__ import annotations

import os
import secrets

_NAME = "TESTS_SEED"
_MOST = 1_000_000

SEED = int(os.environ.setdefault(_NAME, str(secrets.randbelow(_MOST))))
"""Part of the names of the tests that use it, so a failure says it; ``TESTS_SEED=...`` repeats that run."""
