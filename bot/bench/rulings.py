"""What the honest scripted model rules about two memories: the gold relation of the messages they came of.

It sees what a model sees, the two sentences of a pair and which was said earlier, and finds the update whose messages
they tell: a sentence tells a message when it holds the gold value of that message or is a piece of it. Of an update
that supersedes or corrects, the later one supersedes; of a duplicate, and of two sentences that hold the value of one
and the same message, both say the same. About every other pair it rules "different", and about a pair that it is not
shown it rules nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from bot.bench.writeset import Relation, Update
from memory.likeness import Ruling
from memory.script import folded

_LINE: Final = re.compile(r"^\[(?P<pair>\d+)\] (?P<side>[AB]) \([^)]*\): (?P<text>.*)$", re.MULTILINE)
_MEANS: Final[dict[Relation, Ruling]] = {"supersede": "supersedes", "correction": "supersedes", "duplicate": "same"}


def ruled(prompt: str, updates: Sequence[Update]) -> list[dict[str, object]]:
    """Return the items of an answer about the numbered pairs of a prompt."""
    return [{"pair": number, "verdict": ruling(a, b, updates)} for number, a, b in _pairs(prompt)]


def ruling(earlier: str, later: str, updates: Sequence[Update]) -> Ruling:
    """What the gold says about two sentences."""
    for each in updates:
        old, new = (each.old_message, each.old_value), (each.new_message, each.new_value)
        if _tells(earlier, *old) and _tells(later, *new):
            return _MEANS.get(each.relation, "different")
        if any(all(_holds(text, value) for text in (earlier, later)) for _, value in (old, new)):
            return "same"
    return "different"


def _pairs(prompt: str) -> Iterator[tuple[int, str, str]]:
    sides = {(int(line["pair"]), line["side"]): line["text"] for line in _LINE.finditer(prompt)}
    for number, side in sides:
        if side == "A" and (number, "B") in sides:
            yield number, sides[number, "A"], sides[number, "B"]


def _tells(text: str, message: str, value: str) -> bool:
    return _holds(text, value) or folded(text) in folded(message)


def _holds(text: str, value: str) -> bool:
    return bool(value) and folded(value) in folded(text)
