"""How a text is written: characters folded for comparison, and the language they belong to."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final

from opencc import OpenCC

_SIMPLIFIER: Final = OpenCC("t2s")
_TRADITIONALIZER: Final = OpenCC("s2tw")
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_APOSTROPHES: Final = str.maketrans("‘’ʼ´", "'" * 4)
_HAN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_KANA_HANGUL: Final = re.compile(r"[\u3040-\u30ff\u31f0-\u31ff\uac00-\ud7af]")
_LATIN_WORD: Final = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_OTHER_LETTER: Final = re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


@cache
def _table(name: str) -> Mapping[str, Sequence[str]]:
    """One of OpenCC's tables of single characters: what each may become."""
    table = resources.files("opencc").joinpath("dictionary", f"{name}.txt").read_text("utf-8")
    pairs = (line.split("\t") for line in table.splitlines() if "\t" in line)
    return {one: others.split(" ") for one, others in pairs}


@cache
def _script_of(character: str) -> int:
    """1 for a character that only traditional Chinese has, -1 for one that only simplified has, 0 for all others."""
    traditional, simple = _table("STCharacters").get(character, ()), _table("TSCharacters").get(character, ())
    if simple and character not in simple:
        return 1
    return (
        -1 if traditional and character not in traditional and _TRADITIONALIZER.convert(character) != character else 0
    )


def chinese(text: str, *, least: int = 1) -> str | None:
    """Return "zh" or "zh-TW", whichever script of Chinese a text shows; None when fewer than ``least`` signs tell."""
    signs = Counter(_script_of(sign) for sign in text)
    if max(signs[1], signs[-1]) < least or signs[1] == signs[-1]:
        return None
    return "zh-TW" if signs[1] > signs[-1] else "zh"


def as_written(quote: str, language: str) -> str:
    """Return the tag of a language together with the script that words in it are written in: "zh-TW", "zh", "en"."""
    return "zh-TW" if language == "zh" and chinese(quote) == "zh-TW" else language


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


class _Folded(dict[int, str]):
    """What each character becomes in :func:`folded`, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        found = self[code] = "".join(fold(part) for part in visible(chr(code)))
        return found


_FOLDED: Final = _Folded()


def folded(text: str) -> str:
    """Return a text as compared: NFKC, lower case, simplified Chinese, nothing invisible."""
    return text.translate(_FOLDED)


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
