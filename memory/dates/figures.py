"""Dates and times in figures, which both languages share.

A figure may as well be a price, a version, a telephone number or an id; a row says what may not stand beside it.
"""

from __future__ import annotations

import re
from typing import Final

from memory.dates.clock import clock
from memory.dates.lexeme import DIGITS, Lexeme

_NOT_IN_ID: Final = r"(?<![a-z\d_./$-])(?<!version )(?<!版本)"
_ISO: Final = r"(?:19|20)\d\d(?:-\d{1,2}-\d{1,2}|/\d{1,2}/\d{1,2}|\.\d{1,2}\.\d{1,2}|[-/](?:0[1-9]|1[0-2]))"
_YEAR_LAST: Final = r"\d{1,2}[/.]\d{1,2}[/.](?:19|20)\d\d"
_HALF: Final = r"[ap](?:\.m\.|m\b)"
_AFTER_HOUR: Final = (
    r"(?=[ ]*(?:[,;!?。，！？)]|\.(?!\d)|$"
    r"|(?:on|in|and|to|every|each|tomorrow|today|tonight|this|next|sharp|for|with|i|we|my)\b))"
)
_BEFORE_END: Final = rf"(?=[ ]?(?:-|–|to)[ ]?\d{{1,2}}(?::[0-5]\d)?[ ]?{_HALF})"
_NOT_COUNTED: Final = r"[ ]+(?!was|is|his|this|as|its|has|us)[a-z]+s\b"


def month_and_day(first: int, second: int) -> tuple[int, int] | None:
    """Month and day of "13/04" or "4/25"; None where both orders are possible ("04/05")."""
    if first == second or first > 12 >= second:  # noqa: PLR2004
        return second, first
    return (first, second) if second > 12 >= first else None  # noqa: PLR2004


def _numeric(text: str) -> tuple[int, int, int | None] | None:
    """Year, month and day of "2024-04-01" or "13/04/2024"; None where day and month may be swapped."""
    first, *rest = (int(piece) for piece in re.split(r"[-/.]", text))
    if first > 99:  # noqa: PLR2004
        return first, rest[0], rest[1] if len(rest) > 1 else None
    order = month_and_day(first, rest[0])
    return None if order is None else (rest[1], *order)


def _slashed(text: str) -> tuple[int, int]:
    first, second = text.split("/")
    return int(first), int(second)


LEXEMES: Final[tuple[Lexeme, ...]] = (
    Lexeme("numeric", DIGITS, rf"{_NOT_IN_ID}(?:{_ISO}|{_YEAR_LAST})(?!\d|[-/.]\d|-?[a-su-z_])", _numeric),
    Lexeme("slashed", DIGITS, rf"{_NOT_IN_ID}(?!24/7)\d{{1,2}}/\d{{1,2}}(?![\d/%a-z]|\.\d)", _slashed),
    Lexeme(
        "clock",
        DIGITS,
        r"(?<![\d:./$])(?<![a-su-z])(?:"
        rf"(?<=t)\d\d:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:z\b|[+-]\d\d:?\d\d)?"
        rf"|\d{{1,2}}:[0-5]\d(?::[0-5]\d)?(?![\d:])(?:[ ]?{_HALF})?"
        rf"|\d{{1,2}}[ ]?{_HALF}|\d{{1,2}}[ ]?o['’]?clock\b|(?<=\bat )\d{{1,2}}{_AFTER_HOUR}|\d{{1,2}}{_BEFORE_END})",
        clock,
    ),
    Lexeme(
        "bareyear",
        DIGITS,
        rf"(?<![\d.,/$€£¥#:a-z])(?:(?<!-)|(?<=19\d\d-)|(?<=20\d\d-))(?:19|20)\d\d(?![\d%:a-z]|[/.,]\d|-(?!(?:19|20)\d\d\b)\d|{_NOT_COUNTED})",
        int,
    ),
    Lexeme("number", DIGITS, r"(?<![\d.,/$€£¥#:a-z])\d{1,2}(?![\d%:/a-z]|[.,]\d)", int),
)
"""In the order in which they are tried at one place: longer readings first."""
