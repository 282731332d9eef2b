"""A message made readable for rules: folded, with everything hidden that is not its author's plain speech."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from memory.script import fold, visible

MAX_CHARACTERS: Final = 2_000
"""Longest message the rules read; a longer one is a paste or a letter and is left to distillation."""

HIDDEN: Final = "\0"
"""Stands for every hidden character. No visible text contains it, so no rule can match across it."""

_FEW_LINES: Final = 2
_FENCE: Final = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTES: Final = re.compile(
    r"“[^”\n]*”?|「[^」\n]*」?|『[^』\n]*』?|\"[^\"\n]*\"?|`[^`\n]*`?|(?<!\w)'[^'\n]*[^'\n\w]?'(?!\w)"
    r"|^ *>.*$|\[/?[a-z]+\]|https?://\S+"
    # What is acted out stands between asterisks: *I'm a pirate*. A single word is only stressed.
    r"|(?<![\w*])\*+(?=\S)[^*\n]* [^*\n]*\*+(?![\w*])",
    re.MULTILINE,
)
_FACE: Final = re.compile(r"(?<!\S)(?::['’]?-?[()d/|*]+|=[()]|<3+)(?!\w)")
"""Faces like ":(", which are no colon; what winks or sticks its tongue out is left, for it makes a joke."""
_QUOTED_NAME: Final = re.compile(
    r"(?:(?<=叫)|(?<=叫做)|(?<=名字是)|(?<=call me )|(?<=name is )|(?<=named )|(?<=called )|(?<=name's ))"
    r"([“「『\"'])(?P<name>[^\W\d_]{1,12})([”」』\"'])"
)
_MACHINE: Final = re.compile(
    r"^\W{0,4}\d{4}-\d\d-\d\d[t ]|^\W{0,4}\d\d:\d\d(?::\d\d)?\b|\b(?:info|debug|warn(?:ing)?|error|trace|fatal)\b[\]:|]"
    r"|[{};]\s*$|^\s{0,40}(?:def|class|import|from \S+ import|const|let|var|function|public|private|return|#include"
    r"|select .+ from|insert into|traceback|file \")\b|=>|==|</?\w+>|\w\(.*\)\s*$|^\s{0,40}at \S+\(|\b\w+=\S"
)
_SPEAKER: Final = re.compile(r"^\W{0,4}[\w .-]{1,20}(?:\([^)]*\))?\s*:\s*\S")


@dataclass(frozen=True, slots=True)
class Reading:
    """One message three times over.

    ``text`` is as written; ``clean`` the visible characters in NFKC with the script and case kept; ``folded``
    the same, of the same length, as compared. ``origin[i]`` is where ``clean[i]`` stands in ``text``.
    """

    text: str
    clean: str
    folded: str
    origin: tuple[int, ...]

    def quote(self, start: int, end: int) -> str:
        """Return the words of ``folded[start:end]`` exactly as the message has them."""
        return self.text[self.origin[start] : self.origin[end - 1] + 1] if end > start else ""

    def hide(self, start: int, end: int) -> Reading:
        """Return the same reading with one stretch hidden from rules."""
        return replace(self, folded=self.folded[:start] + HIDDEN * (end - start) + self.folded[end:])

    def without_marks(self, *places: int) -> Reading:
        """Return the same reading with single characters made spaces."""
        spaced = (
            "".join(" " if place in places else character for place, character in enumerate(characters))
            for characters in (self.clean, self.folded)
        )
        return replace(self, clean=next(spaced), folded=next(spaced))


def read(text: str) -> Reading | None:
    """Return what rules may read of a message; None when it is too long or looks like a log or code."""
    if len(text) > MAX_CHARACTERS:
        return None
    clean: list[str] = []
    origin: list[int] = []
    for position, character in enumerate(text):
        for part in visible(character):
            clean.append(part)
            origin.append(position)
    reading = Reading(text, "".join(clean), "".join(fold(part) for part in clean), tuple(origin))
    return _without_machine_lines(_without_quotes(_without_faces(reading)))


def _without_faces(reading: Reading) -> Reading:
    return replace(reading, folded=_FACE.sub(lambda found: " " * len(found[0]), reading.folded))


def _without_quotes(reading: Reading) -> Reading:
    reading = replace(reading, folded=_FENCE.sub(_blank, reading.folded))
    for found in _QUOTED_NAME.finditer(reading.folded):
        reading = reading.without_marks(found.start(), found.end() - 1)
    return replace(reading, folded=_QUOTES.sub(_blank, reading.folded))


def _blank(found: re.Match[str]) -> str:
    return HIDDEN * (found.end() - found.start())


def _without_machine_lines(reading: Reading) -> Reading | None:
    """Hide log, code and transcript lines; a message made mostly of them is no speech at all."""
    lines = [found for found in re.finditer(r"[^\n]+", reading.folded) if found[0].strip()]
    machine = [line for line in lines if _MACHINE.search(line[0])]
    speakers = [line for line in lines if _SPEAKER.match(line[0])]
    strange = machine + (speakers if len(speakers) > 1 else [])
    if len(lines) > _FEW_LINES and len(machine) * 3 >= len(lines):
        return None
    for line in strange:
        reading = reading.hide(line.start(), line.end())
    return reading
