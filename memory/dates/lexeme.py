"""What a time word is: its kind, how it is written, and what it stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from string import ascii_letters
from typing import Any, Final, Literal, NamedTuple

KINDS: Final = {
    "numeric": "2024-04-01, 2024/4/1, 2024-04",
    "slashed": "4/25: day and month in either order",
    "clock": "15:00, 3pm, 三点半",
    "daypart": "tonight, 昨晚: a day and a part of it",
    "day": "yesterday, 大后天",
    "weekpart": "上周五: a weekday of a week",
    "weekend": "last weekend, 周末",
    "week": "last week, 下周",
    "halfyear": "下半年",
    "nearmonth": "next month, 上个月",
    "nearyear": "last year, 前年",
    "year": "2024年",
    "bareyear": "2024",
    "feast": "Christmas, 元旦",
    "weekday": "Friday, 周五",
    "shortday": "fri: a weekday only beside a word that shows it",
    "weekdays": "Fridays: a habit, no date",
    "month": "三月",
    "monthname": "March: a month only beside a word that shows it",
    "dayno": "5号",
    "ordinal": "5th, 5日: a day only beside a month or a lead",
    "dateno": "the 5th, with nothing behind that it could count",
    "number": "5: a day only right beside a month",
    "season": "summer, 夏天",
    "amount": "three days, 半年",
    "near": "last, this, coming, next; 过去, 未来 before an amount",
    "preceding": "前 before an amount: the days before today",
    "far": "before last, after next",
    "ago": "ago, 前",
    "hence": "from now, 后",
    "within": "within, 内",
    "lapse": "再过 before an amount",
    "edge": "early, the end of; 底 after a month",
    "rim": "月底, the end of the year: of the present month or year",
    "part": "morning, 下午",
    "every": "every, 每",
    "since": "since, 自从",
    "to": "to, 到",
    "and": "and, 和",
    "between": "between",
    "in": "in, during",
    "on": "on, by, from, before, after, 从",
    "at": "at, for, around",
}
"""Every kind of time word, with examples. Grammar patterns are written in these names."""

LETTER: Final = dict(zip(KINDS, ascii_letters, strict=False))
"""One letter a kind, so that a row of tokens is a string and a grammar rule is a regular expression."""


class Lexeme(NamedTuple):
    """A row of a language's table.

    ``first`` are the characters its words may begin with, ``pattern`` is over folded text and
    holds no capturing group (the lexer counts them), ``value`` reads
    a match and is None for what is no time word after all.
    """

    kind: str
    first: str
    pattern: str
    value: Callable[[str], Any]


Round = Literal["day", "week", "month", "year", "weekday", "weekend"]
"""What comes round: "weekday" is Monday to Friday, "weekend" Saturday and Sunday."""


class Every(NamedTuple):
    """What "every" counts, None where the words behind it tell; how many of it; the weekdays or hours in it.

    ``nth`` tells which such weekday of the month it is, -1 the last one.
    """

    unit: Round | None
    interval: int = 1
    weekdays: tuple[int, ...] = ()
    part: tuple[int, int] | None = None
    nth: int | None = None


DIGITS: Final = "0123456789"


class Token(NamedTuple):
    """A time word in a text: kind, what it stands for, and its half-open place."""

    kind: str
    value: Any
    start: int
    end: int


def any_of(words: Iterable[str]) -> str:
    """Alternation of ``words``, the longest first, blanks as wide as they like."""
    ordered = sorted(words, key=len, reverse=True)
    return "(?:" + "|".join(re.escape(word).replace(r"\ ", "[ ]+") for word in ordered) + ")"


def table(kind: str, words: Mapping[str, Any], *, but: str = "") -> Lexeme:
    """Lexeme of a whole table of words; ``but`` is what may not follow one."""
    tail = f"(?!{but})" if but else ""
    return Lexeme(kind, initials(words), any_of(words) + tail, lambda text: words[" ".join(text.split())])


def mark(kind: str, first: str, pattern: str) -> Lexeme:
    """Lexeme that stands for nothing but its kind."""
    return Lexeme(kind, first, pattern, lambda text: text)


def initials(words: Iterable[str]) -> str:
    """The characters that ``words`` begin with."""
    return "".join(sorted({word[0] for word in words}))
