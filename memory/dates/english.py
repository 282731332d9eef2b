"""English time words, in lower case; each stands between what is no letter and no digit (lexer)."""

from __future__ import annotations

from typing import Final

from memory.dates.clock import clock
from memory.dates.lexeme import DIGITS, Every, Lexeme, Round, any_of, initials, mark, table
from memory.dates.numerals import NUMBER_WORDS, ORDINALS, UNITS, VAGUE_WORDS, amount

DAYS: Final = {
    "the day before yesterday": -2, "day before yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1,
    "tmrw": 1, "tmr": 1, "tmw": 1, "tomoz": 1, "2moro": 1, "2morrow": 1,
    "the day after tomorrow": 2, "day after tomorrow": 2,
}  # fmt: skip
PARTS: Final = {"morning": (6, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
"""Hours after midnight; a night ends in the morning after."""
DAY_PARTS: Final = {
    "last night": (-1, (18, 30)), "tonight": (0, (18, 30)), "tonite": (0, (18, 30)), "this morning": (0, (6, 12)),
    "this afternoon": (0, (12, 18)), "this evening": (0, (18, 24)),
}  # fmt: skip
SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""First month, in the northern hemisphere."""
FEASTS: Final = {
    "new year's day": (1, 1), "valentine's day": (2, 14), "halloween": (10, 31), "christmas eve": (12, 24),
    "christmas day": (12, 25), "christmas": (12, 25), "new year's eve": (12, 31),
}  # fmt: skip
"""Month and day of feasts of the solar year; moving ones would need a calendar of their own."""
WEEKDAYS: Final = {
    "monday": 0, "tuesday": 1, "wednesday": 2, "thursday": 3, "friday": 4, "saturday": 5, "sunday": 6,
}  # fmt: skip
SURE_WEEKDAYS: Final = {"tues": 1, "weds": 2, "thur": 3, "thurs": 3}
"""Short forms that are no other word."""
SHORT_WEEKDAYS: Final = {"mon": 0, "tue": 1, "wed": 2, "thu": 3, "fri": 4, "sat": 5, "sun": 6}
MONTHS: Final = {
    "january": 1, "jan": 1, "february": 2, "feb": 2, "march": 3, "mar": 3, "april": 4, "apr": 4, "may": 5,
    "june": 6, "jun": 6, "july": 7, "jul": 7, "august": 8, "aug": 8, "september": 9, "sept": 9, "sep": 9,
    "october": 10, "oct": 10, "november": 11, "nov": 11, "december": 12, "dec": 12,
}  # fmt: skip
NEAR: Final = {
    "last": "last", "past": "last", "this past": "last", "previous": "last", "this": "this",
    "this coming": "coming", "the coming": "coming", "upcoming": "coming", "next": "next",
}  # fmt: skip
EDGES: Final = {
    "early": "early", "mid": "mid", "late": "late", "beginning of": "early", "start of": "early",
    "middle of": "mid", "end of": "late",
}  # fmt: skip


def _relative(unit: str) -> dict[str, int]:
    """Words for a unit near the present one: "last week", "the week before last"."""
    near = {"last": -1, "this": 0, "next": 1, "the coming": 1}
    far = {"before last": -2, "after next": 2}
    return {f"{word} {unit}": offset for word, offset in near.items()} | {
        f"{article}{unit} {word}": offset for word, offset in far.items() for article in ("", "the ")
    }


_NUMBER: Final = any_of([*NUMBER_WORDS, *VAGUE_WORDS, r"half a", r"half an"])
_COUNT: Final = rf"(?:{_NUMBER}|(?<![$\d.,-])\d{{1,4}})"
_UNIT: Final = any_of(unit for unit in UNITS if unit.isascii()) + r"s?\b"
_NOT_COUNTED: Final = (
    r"[ ]*(?:[,;!?。，！？)]|\.(?!\d)|$)"
    r"|[ ]+(?:at|in|and|or|to|till|until|for|with|because|when|so|but|i|we|he|she|they|you|my|our)\b"
)
_EVERY_COUNTS: Final = NUMBER_WORDS | ORDINALS | {"other": 2}
_EVERY_UNITS: Final[dict[str, Round]] = {
    "day": "day", "daily": "day", "morning": "day", "afternoon": "day", "evening": "day", "night": "day",
    "week": "week", "weekday": "weekday", "weekend": "weekend", "month": "month", "year": "year",
}  # fmt: skip


_NTHS: Final = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": -1}
_PARTS_OF_DAYS: Final = {f"{part}s": hours for part, hours in PARTS.items()}


def _nth(text: str) -> Every:
    """Read "every first Monday of the month", "last Friday of each month"."""
    words = [word for word in text.split() if word not in {"every", "each"}]
    return Every("month", weekdays=(WEEKDAYS[words[1]],), nth=_NTHS[words[0]])


def _parts_of_days(text: str) -> Every:
    """Read "Thursday evenings"."""
    weekday, part = text.split()
    return Every("week", weekdays=(WEEKDAYS[weekday.removesuffix("s")],), part=_PARTS_OF_DAYS[part])


def _ordinal(text: str) -> int:
    return ORDINALS[text] if text in ORDINALS else int(text[:-2])


def _rim(text: str) -> tuple[str, str]:
    edge, _, unit = " ".join(text.split()).removeprefix("the ").rpartition(" the ")
    return unit, EDGES[edge]


def _every(text: str) -> Every:
    """Read "every", "every other week", "each morning", "every 2 days", "daily", "weekends"."""
    _, *rest = text.split()
    unit = rest[-1] if rest else text
    interval = next(
        (_EVERY_COUNTS.get(word) or int(word) for word in rest if word in _EVERY_COUNTS or word.isdigit()), 1
    )
    return Every(_EVERY_UNITS.get(unit.removesuffix("s")), interval, (), PARTS.get(unit))


LEXEMES: Final[tuple[Lexeme, ...]] = (
    Lexeme(
        "every",
        "e" + initials(_NTHS),
        rf"(?:every|each) {any_of(_NTHS)} {any_of(WEEKDAYS)} (?:of|in) (?:the|a) month"
        rf"|{any_of(_NTHS)} {any_of(WEEKDAYS)} (?:of|in) (?:every|each) month",
        _nth,
    ),
    Lexeme("every", initials(WEEKDAYS), rf"{any_of(WEEKDAYS)}s? {any_of(_PARTS_OF_DAYS)}", _parts_of_days),
    Lexeme("clock", "hqnm", rf"(?:half|quarter) (?:past|to) {any_of(NUMBER_WORDS)}|noon|midday|midnight", clock),
    table("daypart", DAY_PARTS),
    table("day", DAYS),
    table(
        "weekend",
        _relative("weekend")
        | {"this past weekend": -1}
        | dict.fromkeys(("over the weekend", "on the weekend", "at the weekend")),
    ),
    table("week", _relative("week") | _relative("wk"), but=" of"),
    table("nearmonth", _relative("month")),
    table("nearyear", _relative("year"), but="['’]s resolution"),
    table("feast", FEASTS, but=" (?:tree|card|song|gift|present|carol|market)"),
    Lexeme("weekdays", initials(WEEKDAYS), any_of(f"{day}s" for day in WEEKDAYS), lambda text: WEEKDAYS[text[:-1]]),
    table("weekday", WEEKDAYS | SURE_WEEKDAYS),
    Lexeme(
        "every",
        "edw",
        rf"(?:every|each)(?:[ ](?:single|other|{any_of(ORDINALS)}|{any_of(NUMBER_WORDS)}|\d{{1,2}}))?"
        r"(?:[ ](?:days?|weeks?|months?|years?|weekdays?|weekends?|morning|afternoon|evening|night)\b)?"
        r"|daily(?=[ ]*(?:[,.;!?]|$)|[ ]at\b)|weekdays|weekends",
        _every,
    ),
    Lexeme(
        "amount",
        DIGITS + initials([*NUMBER_WORDS, *VAGUE_WORDS, "half"]),
        rf"(?:{_COUNT} (?:or|to) )?{_COUNT}(?: and a half)? (?:more )?{_UNIT}(?: and a half)?(?! or )",
        amount,
    ),
    Lexeme("amount", "wmy", "(?<=past )(?:week|month|year)", lambda text: amount(f"one {text}")),
    table("far", {"before last": -1, "after next": 1}),
    mark("ago", "a", "ago"),
    mark("hence", "f'’", rf"from (?:now|today)|from(?= (?:tomorrow|next|this|{any_of(WEEKDAYS)})\b)|['’]s?[ ]time"),
    mark("within", "w", "within(?: the next)?"),
    Lexeme("monthname", initials(MONTHS), any_of(MONTHS) + r"\b\.?", lambda text: MONTHS[text.removesuffix(".")]),
    table("shortday", SHORT_WEEKDAYS),
    Lexeme("dateno", DIGITS, rf"(?<=the )\d{{1,2}}(?:st|nd|rd|th)(?={_NOT_COUNTED})", _ordinal),
    Lexeme(
        "ordinal",
        DIGITS + initials(ORDINALS),
        rf"\d{{1,2}}(?:st|nd|rd|th)|{any_of(ORDINALS)}(?= of (?:{any_of(MONTHS)}|last|next|this|every|each)\b)",
        _ordinal,
    ),
    table("season", SEASONS, but=" (?:down|off|out|in love|asleep|apart)"),
    table("near", NEAR),
    Lexeme("rim", "tbsme", r"(?:the )?(?:beginning|start|middle|end) of (?:the|this) (?:month|year)", _rim),
    table("edge", EDGES),
    mark("since", "es", "(?:ever )?since"),
    mark("to", "tu", "to|through|thru|until|till"),
    mark("and", "ao", "and|or"),
    mark("in", "id", "in|during"),
    mark("between", "b", "between"),
    mark("on", "obfa", "on|by|from|before|after"),
    mark("at", "af", "at|for|around|about"),
    table("part", PARTS),
)
"""In the order in which they are tried at one place: longer readings first."""
