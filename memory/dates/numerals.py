"""Numbers and amounts of time as people write them: digits, Chinese numerals, English words."""

from __future__ import annotations

import re
from typing import Final, Literal

Unit = Literal["minute", "hour", "day", "week", "weekend", "month", "year"]
Amount = tuple[int, Unit]
"""How many of which unit."""

HAN_RUN: Final = "[零〇一二两三四五六七八九十百千]"
"""Character class of a Chinese numeral, for use in patterns."""
_HAN_DIGITS: Final = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_PLACES: Final = {"十": 10, "百": 100, "千": 1000}

NUMBER_WORDS: Final = {
    "a": 1, "an": 1, "one": 1, "two": 2, "a couple of": 2, "couple of": 2, "three": 3, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15,
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "ninety": 90, "a hundred": 100,
}  # fmt: skip
VAGUE_WORDS: Final = ("a few", "few", "several", "some", "many")
ORDINALS: Final = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "fifteenth": 15, "twentieth": 20, "thirtieth": 30,
}  # fmt: skip

UNITS: Final[dict[str, tuple[int, Unit]]] = {
    "天": (1, "day"), "日": (1, "day"), "周": (1, "week"), "星期": (1, "week"), "礼拜": (1, "week"),
    "周末": (1, "weekend"), "月": (1, "month"), "年": (1, "year"), "小时": (1, "hour"), "钟头": (1, "hour"),
    "分钟": (1, "minute"), "刻钟": (15, "minute"),
    "day": (1, "day"), "night": (1, "day"), "week": (1, "week"), "fortnight": (2, "week"),
    "weekend": (1, "weekend"), "month": (1, "month"), "year": (1, "year"), "decade": (10, "year"),
    "hour": (1, "hour"), "hr": (1, "hour"), "minute": (1, "minute"), "min": (1, "minute"),
}  # fmt: skip
_HALF: Final[dict[Unit, Amount]] = {
    "year": (6, "month"), "month": (15, "day"), "day": (12, "hour"), "hour": (30, "minute"),
}  # fmt: skip
_SMALLER: Final = {"year": 12, "month": 30, "day": 24, "hour": 60}

_AMOUNT_ZH: Final = re.compile(
    rf"(?P<n>\d+|{HAN_RUN}+|半)个?(?P<half>半?)(?P<unit>{'|'.join(u for u in UNITS if not u.isascii())})(?P<tail>半?)",
)
_AMOUNT_EN: Final = re.compile(
    r"(?P<n>half an?|.+?)(?P<half> and a half)? (?:more )?(?P<unit>[a-z]+?)s?(?P<tail> and a half)?",
)


def number(words: str) -> int | None:
    """Value of a numeral, or None where it names no one number ("几", "两三", "several")."""
    if words.isascii():
        return int(words) if words.isdigit() else NUMBER_WORDS.get(words)
    total, digit = 0, None
    for character in words:
        if character in _HAN_DIGITS and not digit:
            digit = _HAN_DIGITS[character]
        elif character in _HAN_PLACES:
            total += (1 if digit is None else digit) * _HAN_PLACES[character]
            digit = None
        else:  # a word for "some", or two digits side by side, which are a guess between them: 三四天
            return None
    return total + (digit or 0)


def digits(words: str) -> int:
    """Value of numerals read one by one, as years are: "二〇二四" and "2024" are 2024."""
    return int("".join(c if c.isascii() else str(_HAN_DIGITS[c]) for c in words))


def amount(words: str) -> Amount | None:
    """Read "三天", "半年", "一个半月", "two weeks", "half an hour"; None where it is vague ("几天")."""
    text = " ".join(words.split())
    found = (_AMOUNT_EN if text.isascii() else _AMOUNT_ZH).fullmatch(text)
    if found is None or found["unit"] not in UNITS:
        return None
    size, unit = UNITS[found["unit"]]
    if found["n"].startswith(("半", "half")):
        return _HALF.get(unit)
    count = number(found["n"])
    if count is None:
        return None
    if found["half"] or found["tail"]:
        rest = _HALF.get(unit)
        return None if rest is None else (count * _SMALLER[unit] + rest[0], rest[1])
    return count * size, unit
