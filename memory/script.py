"""How a text is written: characters folded for comparison, and the language they belong to."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

from opencc import OpenCC

_SIMPLIFIER: Final = OpenCC("t2s")
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_APOSTROPHES: Final = str.maketrans("‘’ʼ´", "'" * 4)
_HAN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_KANA_HANGUL: Final = re.compile(r"[\u3040-\u30ff\u31f0-\u31ff\uac00-\ud7af]")
_LATIN_WORD: Final = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_OTHER_LETTER: Final = re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


@cache
def visible(character: str) -> str:
    """Return the NFKC form of one character, "" for what cannot be seen (zero width, surrogate, control)."""
    if character in "\n\t\r\v\f\x85\u2028\u2029":
        return " " if character == "\t" else "" if character == "\r" else "\n"
    if unicodedata.category(character) in _INVISIBLE:
        return ""
    plain = unicodedata.normalize("NFKC", character)
    return "".join(" " if part.isspace() else part for part in plain)


@cache
def fold(character: str) -> str:
    """Return one visible character as compared: lower case, simplified Chinese, one kind of apostrophe.

    The result is exactly one character long, so that positions in a folded text stay valid.
    """
    lowered = character.lower().translate(_APOSTROPHES)
    simple = _SIMPLIFIER.convert(lowered) if _HAN.match(lowered) else lowered
    return simple if len(simple) == 1 else character


def folded(text: str) -> str:
    """Return a text as compared: NFKC, lower case, simplified Chinese, nothing invisible."""
    return "".join(fold(part) for character in text for part in visible(character))


def is_han(character: str) -> bool:
    """Whether a character is a Chinese ideograph."""
    return _HAN.match(character) is not None


def language(text: str) -> str | None:
    """Return "zh" or "en", whichever the text is mostly written in, or None when it is neither.

    One Chinese character weighs as much as one Latin word. Other scripts, kana and hangul among them,
    give None once they outweigh the rest.
    """
    han = len(_HAN.findall(text))
    latin = len(_LATIN_WORD.findall(text))
    other = len(_OTHER_LETTER.findall(text))
    if not han + latin or other > han + latin or (_KANA_HANGUL.search(text) and other * 4 > han):
        return None
    return "zh" if han >= latin else "en"
