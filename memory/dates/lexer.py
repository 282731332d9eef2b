"""From text to time words: one pass of one pattern, built from the tables of both languages.

Folding (lower case, simplified characters, narrow digits) keeps every index, so that a token's place in the
folded text is its place in what the person wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from memory.dates import chinese, english, figures
from memory.dates.lexeme import Lexeme, Token

_FOLD: Final = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ０１２３４５６７８９：／－～　"
    "週點號後兩這個禮時鐘內從間來開過剛會將準備計劃為幾歲聖誕節慶勞動兒國結發還樓線門館車機電廳萬億學業級輕齡晝與嗎麼",
    "abcdefghijklmnopqrstuvwxyz0123456789:/-~ "
    "周点号后两这个礼时钟内从间来开过刚会将准备计划为几岁圣诞节庆劳动儿国结发还楼线门馆车机电厅万亿学业级轻龄昼与吗么",
)
_LAST: Final = frozenset({"bareyear", "number"})
"""Bare figures, read only where nothing else fits."""
_VERBS_TOO: Final = re.compile(r"(?:may|march|mar)\b\.?")
_SHOWS_MONTH_BEFORE: Final = re.compile(
    r"(?:\b(?:in|since|last|next|this|of|until|till|by|from|early|late|mid|to|through)|\d(?:st|nd|rd|th)?)[ ]+$"
)
_SHOWS_MONTH_AFTER: Final = re.compile(r",?[ ]+\d")


def fold(text: str) -> str:
    """Lower case, simplified characters, narrow digits; exactly as long as ``text``."""
    return text.lower() if text.isascii() else text.translate(_FOLD)


def _bounded(lexeme: Lexeme) -> Lexeme:
    """An English word stands between what is no letter and no digit."""
    return lexeme._replace(pattern=rf"(?<![a-z0-9_])(?:{lexeme.pattern})(?![a-z0-9_])")


_LEXEMES: Final = (
    *(lexeme for lexeme in figures.LEXEMES if lexeme.kind not in _LAST),
    *chinese.LEXEMES,
    *map(_bounded, english.LEXEMES),
    *(lexeme for lexeme in figures.LEXEMES if lexeme.kind in _LAST),
)
_FIRST: Final = frozenset("".join(lexeme.first for lexeme in _LEXEMES))
_SIGNS: Final = "".join(sorted(c for c in _FIRST if not (c.isascii() and c.isalnum())))
_CANDIDATE: Final = re.compile(f"(?<![a-z])[a-z]|(?<![0-9])[0-9]|[{re.escape(_SIGNS)}]")


@cache
def _beginning(character: str) -> tuple[re.Pattern[str], tuple[Lexeme, ...]]:
    """One pattern, a group a lexeme, of all the lexemes that may begin with a character."""
    lexemes = tuple(lexeme for lexeme in _LEXEMES if character in lexeme.first)
    return re.compile("|".join(f"({lexeme.pattern})" for lexeme in lexemes)), lexemes


def tokens(text: str, folded: str) -> Iterator[Token]:
    """Time words of a text in order, without overlap; ``folded`` is the folded text."""
    end = 0
    for candidate in _CANDIDATE.finditer(folded):
        start = candidate.start()
        if start < end or folded[start] not in _FIRST:
            continue
        pattern, lexemes = _beginning(folded[start])
        found = pattern.match(folded, start)
        if found is None:
            continue
        lexeme = lexemes[(found.lastindex or 1) - 1]
        if lexeme.kind == "monthname" and text[start].islower() and not _is_month(folded, start, found.end()):
            continue
        value, end = lexeme.value(found[0]), found.end()
        if value is not None or lexeme.kind == "weekend":
            yield Token(lexeme.kind, value, start, end)


def _is_month(folded: str, start: int, end: int) -> bool:
    """Whether "may" or "march" in lower case stands where a month would."""
    if _VERBS_TOO.fullmatch(folded, start, end) is None:
        return True
    before = folded[max(0, start - 12) : start]
    return _SHOWS_MONTH_BEFORE.search(before) is not None or _SHOWS_MONTH_AFTER.match(folded, end) is not None
