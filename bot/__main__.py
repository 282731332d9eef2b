"""``python -m bot`` and the console script ``recollect``: both start here."""

from __future__ import annotations

import os

# Before anything imports numpy, which reads these once: the matrices of one person are small, so that
# threads of a BLAS cost more than they bring and compete with the event loop for the same cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from bot.cli import main

if __name__ == "__main__":
    main()
