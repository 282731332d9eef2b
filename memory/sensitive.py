"""Matters that some people want kept only if they agreed: health, money, faith, sexuality, children.

Told by words, for everybody alike and without a model, and rather once too often: a question too many is a smaller harm
than a diagnosis that was kept unasked.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, Literal, get_args

from memory.model import Candidate, ProfileLine
from memory.model import Entry as Memory
from memory.script import folded

Matter = Literal["health", "money", "faith", "sexuality", "children"]
MATTERS: Final[tuple[Matter, ...]] = get_args(Matter)

_SLOTS: Final[Mapping[str, Matter]] = {"allergy": "health", "diet": "health", "health": "health"}
"""Slots of the profile that are such a matter whatever they hold."""


@cache
def _words() -> Mapping[Matter, re.Pattern[str]]:
    """What tells each matter: English words as wholes, Chinese ones anywhere."""
    table = tomllib.loads(files("memory").joinpath("sensitive.toml").read_text(encoding="utf-8"))
    return {matter: _read(**table[matter]) for matter in MATTERS}


def _read(en: str, zh: str) -> re.Pattern[str]:
    words = "|".join(word.replace(".", "[ -]") for word in en.split())
    return re.compile(rf"(?<![a-z])(?:{words})(?![a-z])|{'|'.join(map(re.escape, zh.split()))}")


def matters(*texts: str) -> frozenset[Matter]:
    """The sensitive matters that texts touch."""
    seen = folded("\n".join(texts))
    return frozenset(matter for matter, words in _words().items() if words.search(seen))


def matters_of(memory: Candidate | Memory) -> frozenset[Matter]:
    """The sensitive matters that a memory, or one that asks to be written, is about.

    Its own words count and those it rests on, and what a slot of the profile is about by itself.
    """
    if isinstance(memory, Candidate):
        attribute, told = memory.attribute, [memory.text, memory.value]
        told += [citation.quote for citation in memory.citations]
    else:
        attribute = memory.attribute if isinstance(memory, ProfileLine) else ""
        told = [memory.text, *(citation.quote for citation in memory.provenance.citations)]
    slot = _SLOTS.get(attribute.partition(":")[0])
    return matters(*told) | ({slot} if slot else frozenset())


def joined(found: Iterable[str]) -> str:
    """Matters as one value of a column, in their fixed order; "" for none."""
    chosen = set(found)
    return ",".join(matter for matter in MATTERS if matter in chosen)


def parted(value: str | None) -> frozenset[Matter]:
    """The matters of such a value."""
    held = set((value or "").split(","))
    return frozenset(matter for matter in MATTERS if matter in held)
