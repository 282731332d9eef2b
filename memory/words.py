"""The words of a text, for search: English stems, Han characters and pairs, numbers and ids whole.

Chinese needs no dictionary here: every run of Han characters gives its single characters and its adjacent
pairs, so a two-character word is found whatever stands around it (RECALL.md, section 1).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from typing import Final

import Stemmer

_STOP: Final = frozenset(
    re.findall(
        r"\w+",
        "a an the of to in on at is are was were be been being am do does did and or for with by from that this "
        "these those it its as what when where who whom whose which why how has have had having he she they him "
        "his her hers them their theirs i you your yours my mine me we our ours us would could should can will "
        "shall may might must no not so if then than but about into there here s t d m re ve ll",
    )
)
"""English words that say nothing about what is meant; question words among them."""

PART: Final = 0.3
"""How much a term of Han characters counts that is no word: the 过 of 过敏, which is no sign of 过山车."""
_BETWEEN: Final = frozenset(
    "我你您他她它们的了着吗呢吧啊呀是在有没不也都就还又很和跟与给对把被让为从到去来叫做什么哪谁几怎多少样这那个"
)
"""Characters that mostly stand between words, and say little alone."""

_CJK: Final = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HAN: Final = re.compile(f"[{_CJK}]")
_PAIR: Final = 2
_WORD: Final = rf"[^\W_{_CJK}]+"
_RUN: Final = re.compile(rf"([{_CJK}]+)|({_WORD}(?:[-_./:]{_WORD})*)")
_PART: Final = re.compile(_WORD)
_COMPOUND: Final = re.compile(r"(?<=[0-9A-Za-z])[-_./:](?=[0-9A-Za-z])")
_STEMMER: Final = Stemmer.Stemmer("english")


def terms(text: str) -> list[str]:
    """Every term under which ``text`` is indexed, repeats included.

    A compound that holds a digit ("20240817-3", "10:30") is indexed whole and by its parts.
    """
    return _terms(text, parts_of_ids=True)


def query_terms(text: str) -> list[str]:
    """The distinct terms a question is searched by, in order.

    An id made of numbers alone is searched whole, so that 20240817-3 does not find 20240817-4.
    """
    return list(dict.fromkeys(_terms(text, parts_of_ids=False)))


def weights(terms: Sequence[str]) -> list[float]:
    """How much each term of a question counts: 1, or :data:`PART` when it is no word but Han characters.

    A pair is no word when one of the two stands between words, nor is a character when a word of two holds it.
    """
    words = {term for term in terms if len(term) == _PAIR and _HAN.match(term) and _BETWEEN.isdisjoint(term)}
    parts = _BETWEEN.union(*words)
    return [PART if term in parts or (term not in words and not parts.isdisjoint(term)) else 1.0 for term in terms]


def _terms(text: str, *, parts_of_ids: bool) -> list[str]:
    if text.isascii() and not _COMPOUND.search(text):
        # Most English texts: nothing but words, which are found in half the time.
        return [_stem(word) for word in _PART.findall(text.lower()) if word not in _STOP]
    found: list[str] = []
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    for han, word in _RUN.findall(plain.lower()):
        if han:
            run = han.translate(_simplified())
            found += run
            found += [first + second for first, second in pairwise(run)]
        elif word.isalnum():
            if word not in _STOP:
                found.append(_stem(word))
        else:
            found += _parts(word, whole_ids=not parts_of_ids)
    return found


def _parts(word: str, *, whole_ids: bool) -> list[str]:
    """The terms of a compound; of an id made of numbers alone only the whole, if ``whole_ids``."""
    parts = _PART.findall(word)
    numbered = len(parts) > 1 and any(map(str.isdigit, parts))
    if numbered and whole_ids and all(map(str.isdigit, parts)):
        return [word]
    return [word] * numbered + [_stem(part) for part in parts if part not in _STOP]


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    stem: str = _STEMMER.stemWord(word)
    return stem


@cache
def _simplified() -> dict[int, str]:
    """Traditional characters to simplified ones, from OpenCC's table of single characters."""
    table = resources.files("opencc").joinpath("dictionary", "TSCharacters.txt").read_text("utf-8")
    pairs = (line.split("\t") for line in table.splitlines() if "\t" in line)
    return {ord(traditional): simple.split(" ")[0] for traditional, simple in pairs if len(traditional) == 1}
