"""What gives a memory away: strings that are looked for in other texts, whole words where a script has words. Pure.

All strings are looked for at once, in a time that grows with the text and not with how many there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ahocorasick import Automaton

from memory.model import Entry, ProfileLine
from memory.script import folded

SHORTEST: Final = 2
"""A value of one character ("猫") only takes the lines it was learned from along, not every line that holds it."""
_SYMBOLS: Final = 0x2000
"""Where the blocks of symbols begin: an emoji is something to look for, a lone "%" is not."""
_SPACED: Final = re.compile(r"[^\W_\u3040-\u30ff\u3400-\u9fff]")
"""A letter or digit of a script that puts spaces between its words."""
_END: Final = re.compile(r"(?:'?e?s)?(?![^\W_\u3040-\u30ff\u3400-\u9fff])")
"""What may stand behind a word of such a script: the end of its plural, and no other letter."""


class Needles:
    """Strings to look for, without regard to width, case, white space or the older forms of Han characters.

    Where a string begins or ends in a letter or digit it must stand at the edge of a word ("tea" is not in
    "team", but in "teas"); Han characters have no such edges. No character is a wildcard.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        whole = {_dense(folded(text)) for text in texts}
        self._automaton = Automaton()
        for text in filter(_says_something, whole):
            self._automaton.add_word(text, len(text))
        self._automaton.make_automaton()

    def __bool__(self) -> bool:
        return len(self._automaton) > 0

    def found_in(self, text: str) -> bool:
        """Whether any of the strings stands in ``text``; never, when there is nothing to look for."""
        if not self:
            return False
        plain = folded(text)
        dense = _dense(plain)
        places: list[int] = []
        for last, length in self._automaton.iter(dense):
            # The text with its white space is looked at only where something stands.
            places = places or [place for place, character in enumerate(plain) if not character.isspace()]
            if _stands(plain, places[last - length + 1], places[last] + 1):
                return True
        return False


def giveaways(entries: Iterable[Entry]) -> Needles:
    """What gives memories away: the value or sentence of each, and the words it quotes."""
    texts: set[str] = set()
    for entry in entries:
        texts.add(entry.value if isinstance(entry, ProfileLine) else entry.text)
        texts |= {citation.quote for citation in entry.provenance.citations}
    return Needles(text for text in texts if len("".join(text.split())) >= SHORTEST)


def _dense(text: str) -> str:
    return "".join(text.split())


def _stands(text: str, start: int, end: int) -> bool:
    """Whether what was found is whole words, where its ends are letters of a script that has words."""
    if start and _SPACED.match(text[start]) and _SPACED.match(text[start - 1]):
        return False
    return not _SPACED.match(text[end - 1]) or _END.match(text, end) is not None


def _says_something(text: str) -> bool:
    return any(character.isalnum() or ord(character) > _SYMBOLS for character in text)
