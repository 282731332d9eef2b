"""What gives a memory away: strings that are looked for in other texts, whole words where a script has words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from memory.model import Entry, ProfileLine
from memory.script import folded

SHORTEST: Final = 2
"""A value of one character ("猫") only takes the lines it was learned from along, not every line that holds it."""
_SYMBOLS: Final = 0x2000
"""Where the blocks of symbols begin: an emoji is something to look for, a lone "%" is not."""
_SPACED: Final = r"[^\W_\u3040-\u30ff\u3400-\u9fff]"
"""A letter or digit of a script that puts spaces between its words."""


class Needles:
    """Strings to look for, without regard to width, case, white space or the older forms of Han characters.

    Where a string begins or ends in a letter or digit it must stand at the edge of a word ("tea" is not in
    "team", but in "teas"); Han characters have no such edges. No character is a wildcard.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        whole = {"".join(folded(text).split()) for text in texts}
        kept = sorted((text for text in whole if _says_something(text)), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_one, kept))) if kept else None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def found_in(self, text: str) -> bool:
        """Whether any of the strings stands in ``text``; never, when there is nothing to look for."""
        return self._pattern is not None and self._pattern.search(folded(text)) is not None


def giveaways(entries: Iterable[Entry]) -> Needles:
    """What gives memories away: the value or sentence of each, and the words it quotes."""
    texts: set[str] = set()
    for entry in entries:
        texts.add(entry.value if isinstance(entry, ProfileLine) else entry.text)
        texts |= {citation.quote for citation in entry.provenance.citations}
    return Needles(text for text in texts if len("".join(text.split())) >= SHORTEST)


def _says_something(text: str) -> bool:
    return any(character.isalnum() or ord(character) > _SYMBOLS for character in text)


def _one(text: str) -> str:
    core = r"\s*".join(map(re.escape, text))
    left = f"(?<!{_SPACED})" if re.match(_SPACED, text[0]) else ""
    right = f"(?:'?e?s)?(?!{_SPACED})" if re.match(_SPACED, text[-1]) else ""
    return f"{left}{core}{right}"
