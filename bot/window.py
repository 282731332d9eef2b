"""The window: the newest turns of a chat that fit a token budget. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memory.model import Message

WINDOW_SHARE: Final = 0.4
"""Most of the model's context that the window may take (DESIGN.md, section 8)."""


@dataclass(frozen=True, slots=True)
class Window:
    """What the model sees of the talk so far: ``lines`` in order of time, ``dropped`` lines left out, ``tokens``."""

    lines: tuple[Message, ...] = ()
    dropped: int = 0
    tokens: int = 0


def cut(lines: Sequence[Message], budget: int) -> Window:
    """Keep the newest whole turns whose tokens fit ``budget``; a turn never loses its question or its answer.

    ``lines`` are in order of time, each with its own count of tokens.
    """
    kept: list[Message] = []
    tokens = 0
    for turn in reversed(turns(lines)):
        cost = sum(line.tokens for line in turn)
        if tokens + cost > budget:
            break
        kept[:0] = turn
        tokens += cost
    return Window(tuple(kept), len(lines) - len(kept), tokens)


def turns(lines: Sequence[Message]) -> list[list[Message]]:
    """Split lines into turns: each starts with the first line of a person after a reply of the bot."""
    found: list[list[Message]] = []
    for line in lines:
        if not found or (line.role == "user" and found[-1][-1].role == "bot"):
            found.append([])
        found[-1].append(line)
    return found
