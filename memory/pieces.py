"""Cuts a message that is too long for one look into pieces, at the best place there is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from memory.model import Message

PIECE_CHARACTERS: Final = 2_000
"""Of a long message that are read or left to the next request as a whole: about half of the longest that Telegram
takes, so that even the smallest request can carry one."""
_PLACES: Final = (
    re.compile(r"\n\s*"),
    re.compile(r"(?:[。！？!?…]|\.(?=\s))[”’」』\"')）]*\s*"),
    re.compile(r"[，,、；;\s]\s*"),
)
"""Where a text may be cut, the best first: behind a line, a sentence, a word."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The characters of a message from ``start`` up to ``end``."""

    message: Message
    start: int
    end: int

    @property
    def last(self) -> bool:
        """Whether the message ends with it."""
        return self.end == len(self.message.text)

    @property
    def cut(self) -> Message:
        """The message with the words of this piece alone."""
        return replace(self.message, text=self.message.text[self.start : self.end])


def pieces(message: Message, *, start: int = 0) -> list[Piece]:
    """A message from character ``start`` on in pieces of at most PIECE_CHARACTERS, at least one."""
    found: list[Piece] = []
    length = len(message.text)
    while length - start > PIECE_CHARACTERS:
        end = _place(message.text, start, start + PIECE_CHARACTERS)
        found.append(Piece(message, start, end))
        start = end
    return [*found, Piece(message, start, length)]


def joined(parts: Iterable[Piece]) -> list[Piece]:
    """Pieces in their order, those of one message that follow each other as one."""
    whole: list[Piece] = []
    for part in parts:
        follows = bool(whole) and whole[-1].message.id == part.message.id
        whole.append(replace(whole.pop(), end=part.end) if follows else part)
    return whole


def _place(text: str, start: int, end: int) -> int:
    """Where to cut a text before ``end``, in its second half; anywhere if there is neither sentence nor word."""
    for place in _PLACES:
        ends = [found.end() for found in place.finditer(text, (start + end) // 2, end)]
        if ends:
            return ends[-1]
    return end
