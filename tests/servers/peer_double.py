"""A peer that plays its part from a queue: ``python peer_double.py QUEUE NAME FOLDER DIMENSIONS``.

QUEUE is a JSON list of steps: ``{"hear": {...}}`` is the next message, word for word, ``{"say": ...}`` an answer (a
string is said as it is), ``{"end": "why"}`` an end with a word on standard error. Anything else that is heard, or left
unheard at the end, is a failure of its own.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def play(steps: list[dict[str, object]]) -> None:
    """Go through the steps in order."""
    for step in steps:
        if "say" in step:
            said = step["say"]
            sys.stdout.write((said if isinstance(said, str) else json.dumps(said)) + "\n")
            sys.stdout.flush()
        elif "hear" in step:
            heard = json.loads(sys.stdin.readline() or "null")
            if heard != step["hear"]:
                sys.exit(f"heard {heard}, not {step['hear']}")
        else:
            sys.exit(str(step["end"]))
    if left := sys.stdin.readline():
        sys.exit(f"heard {left} after the last step")


if __name__ == "__main__":
    if "OPENAI_API_KEY" in os.environ:
        sys.exit("a key was handed on")
    play(json.loads(Path(sys.argv[1]).read_text()))
