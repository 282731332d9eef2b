"""The attributes of a profile: how many values each may have, how it is read, shown and compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from config.templates import spoken
from config.traditional import traditional
from memory.model import SELF
from memory.script import folded, is_han


@dataclass(frozen=True, slots=True)
class Slot:
    """One attribute.

    ``multiple`` allows several live values; ``always`` marks lines that are read on every turn.
    ``labels`` name the attribute by language ("en", "zh").
    ``lines`` give the sentence by language, first about the owner, then about somebody else. ``opposite`` is the
    attribute that a new value closes when it names the same thing.
    """

    attribute: str
    labels: Mapping[str, str]
    lines: Mapping[str, tuple[str, str]]
    multiple: bool = False
    always: bool = False
    opposite: str | None = None


def _slot(
    attribute: str, zh: tuple[str, str], en: tuple[str, str, str], *, opposite: str | None = None, traits: str = ""
) -> Slot:
    label, line = zh
    return Slot(
        attribute=attribute,
        labels={"zh": label, "en": en[0]},
        lines={"zh": (line.format(who="我", value="{value}", thing="{thing}"), line), "en": en[1:]},
        multiple="multiple" in traits,
        always="always" in traits,
        opposite=opposite,
    )


# The sentences are in the first person because that is how people ask about themselves: with the bundled
# embedder the right line beats unrelated journal lines by .046 (zh) and .027 (en) of cosine in the first person,
# by .029 and .008 as "label: value", by .023 and -.007 as "the user ..." (19 questions, both languages).
_ALL: Final = (
    _slot(
        "name",
        ("名字", "{who}的名字叫{value}"),
        ("name", "My name is {value}", "{who}'s name is {value}"),
        traits="always",
    ),
    _slot(
        "address",
        ("称呼", "请叫{who}{value}"),
        ("form of address", "Please call me {value}", "{who} is called {value}"),
        traits="always",
    ),
    _slot("home", ("住处", "{who}住在{value}"), ("home", "I live in {value}", "{who} lives in {value}")),
    _slot("origin", ("老家", "{who}是从{value}来的"), ("origin", "I am from {value}", "{who} is from {value}")),
    _slot(
        "birthday",
        ("生日", "{who}的生日是{value}"),
        ("birthday", "My birthday is {value}", "{who}'s birthday is {value}"),
    ),
    _slot(
        "allergy",
        ("过敏", "{who}对{value}过敏"),
        ("allergy", "I am allergic to {value}", "{who} is allergic to {value}"),
        traits="multiple always",
    ),
    _slot(
        "diet",
        ("饮食", "{who}的饮食习惯是{value}"),
        ("diet", "My diet: {value}", "{who}'s diet: {value}"),
        traits="multiple always",
    ),
    _slot(
        "health",
        ("健康", "{who}的健康状况：{value}"),
        ("health", "My health: {value}", "{who}'s health: {value}"),
        traits="multiple always",
    ),
    _slot(
        "like",
        ("喜欢", "{who}喜欢{value}"),
        ("likes", "I like {value}", "{who} likes {value}"),
        opposite="dislike",
        traits="multiple",
    ),
    _slot(
        "dislike",
        ("不喜欢", "{who}不喜欢{value}"),
        ("dislikes", "I dislike {value}", "{who} dislikes {value}"),
        opposite="like",
        traits="multiple",
    ),
    _slot(
        "favourite",
        ("最喜欢", "{who}最喜欢的{thing}是{value}"),
        ("favourite", "My favourite {thing} is {value}", "{who}'s favourite {thing} is {value}"),
    ),
    _slot("job", ("工作", "{who}的职业是{value}"), ("job", "I work as: {value}", "{who} works as: {value}")),
    _slot(
        "pet",
        ("宠物", "{who}的宠物叫{value}"),
        ("pet", "My pet is called {value}", "{who}'s pet is called {value}"),
        traits="multiple",
    ),
    _slot(
        "language",
        ("语言", "{who}会说{value}"),
        ("language", "I speak {value}", "{who} speaks {value}"),
        traits="multiple",
    ),
    _slot(
        "timezone",
        ("时区", "{who}的时区是{value}"),
        ("time zone", "My time zone is {value}", "{who}'s time zone is {value}"),
    ),
    _slot(
        "style",
        ("回答方式", "{who}想要的回答方式：{value}"),
        ("answer style", "How I want answers: {value}", "{who} wants answers: {value}"),
        traits="multiple always",
    ),
)

SLOTS: Final[Mapping[str, Slot]] = {slot.attribute: slot for slot in _ALL}
"""Every slot by its attribute."""

_THINGS: Final = (
    ("colour", "颜色", "color"),
    ("food", "食物", "吃的", "菜", "dish", "meal"),
    ("drink", "饮料", "喝的", "beverage"),
    ("fruit", "水果"),
    ("film", "电影", "movie"),
    ("book", "书"),
    ("author", "作家", "writer"),
    ("song", "歌", "歌曲"),
    ("band", "乐队"),
    ("singer", "歌手"),
    ("sport", "运动"),
    ("animal", "动物"),
    ("city", "城市"),
    ("season", "季节"),
    ("game", "游戏"),
    ("number", "数字"),
    ("flower", "花"),
)
_THING_OF: Final = {folded(word): words[0] for words in _THINGS for word in words}
_THING_IN: Final = {words[0]: {"en": words[0], "zh": words[1]} for words in _THINGS}

_SAME_DIET: Final = {
    "vegetarian": ("吃素", "素食", "素食者", "素食主义者", "吃素的", "vegetarian", "vegetarian diet"),
    "vegan": ("纯素", "纯素食者", "纯素者", "纯素主义者", "vegan", "vegan diet"),
    "halal": ("清真", "吃清真", "清真饮食", "halal", "halal food", "halal only"),
    "lactose intolerant": ("乳糖不耐受", "乳糖不耐", "lactose intolerant"),
}
_DIET_OF: Final = {word: diet for diet, words in _SAME_DIET.items() for word in words}

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = "(?P<month>" + "|".join(_MONTHS) + ")[a-z]*"
_DATES: Final = (
    re.compile(r"(?:[\d〇零一二三四五六七八九]{2,4}年)?"
               r"(?P<month>[\d一二三四五六七八九十]{1,3})月(?P<day>[\d一二三四五六七八九十]{1,3})[日号]?"),
    re.compile(rf"{_MONTH}\.? (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? \d{{4}})?"),
    re.compile(rf"(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? \d{{4}})?"),
)  # fmt: skip
_TENS: Final = "一二三四五六七八九"
_EDGES: Final = re.compile(r"^[\W_]+|[\W_]+$")
_ARTICLES: Final = re.compile(r"^(?:an?|the|my|to|eating|drinking|going) (?=\S)")
_VERBS: Final = re.compile(r"^(?:[吃喝](?=.)|[看听玩打](?=..))")


def slot(attribute: str) -> Slot:
    """Return the slot of an attribute; "favourite:colour" is the slot "favourite". Raises KeyError."""
    return SLOTS[attribute.partition(":")[0]]


def known(attribute: str) -> bool:
    """Whether an attribute has a slot (a favourite needs its thing)."""
    name, _, thing = attribute.partition(":")
    return name in SLOTS and bool(thing) == (name == "favourite")


def favourite(thing: str) -> str:
    """Return the attribute of a favourite thing: "favourite:colour" for colour, color and 颜色."""
    plain = _EDGES.sub("", folded(thing))
    return f"favourite:{_THING_OF.get(plain, plain)}"


def label(attribute: str, language: str) -> str:
    """Return what an attribute is called in "en", "zh" or "zh-TW". Raises KeyError for an unknown one."""
    return _in_script(slot(attribute).labels[_supported(language)], language)


def render(attribute: str, value: str, language: str, subject: str = SELF) -> str:
    """Return the line of a value as it is shown and embedded, in the language of the value.

    ``subject`` is SELF or the kinship or name the owner used. Raises KeyError for an unknown attribute.
    """
    tongue = _supported(language)
    thing = attribute.partition(":")[2]
    line = _in_script(slot(attribute).lines[tongue][subject != SELF], language)
    who = f"my {subject}" if tongue == "en" and subject.islower() else subject
    text = line.format(who=who, value=value, thing=_in_script(_THING_IN.get(thing, {}).get(tongue, thing), language))
    return text[:1].upper() + text[1:] if subject.islower() else text


def key(value: str) -> str:
    """Return a value as compared within its slot: two values with one key are the same value.

    NFKC, lower case, simplified Chinese; outer punctuation, articles and a leading 吃, 喝, 看, 听, 玩 or 打 do
    not count (喝乌龙茶 is 乌龙茶); days of the year and kinds of diet compare across languages.
    """
    plain = re.sub(r"\s+", " ", _EDGES.sub("", folded(value)))
    plain = re.sub(r"(?<=[\u3400-\u9fff]) | (?=[\u3400-\u9fff])", "", plain)
    if day := _day_of_year(plain):
        return day
    if plain in _DIET_OF:
        return _DIET_OF[plain]
    if plain and is_han(plain[0]):
        return _VERBS.sub("", plain)
    return _ARTICLES.sub("", plain)


def _supported(language: str) -> str:
    return "zh" if language.startswith("zh") else "en"


def _in_script(text: str, language: str) -> str:
    return traditional(text) if spoken(language) == "zh-TW" else text


def _day_of_year(plain: str) -> str | None:
    for pattern in _DATES:
        if found := pattern.fullmatch(plain):
            month, day = found["month"], _count(found["day"])
            number = _MONTHS.index(month) + 1 if month in _MONTHS else _count(month)
            return f"--{number:02d}-{day:02d}"
    return None


def _count(digits: str) -> int:
    if digits.isdecimal():
        return int(digits)
    tens, ten, ones = digits.rpartition("十")
    return (_TENS.find(tens) + 1 or 1) * 10 * bool(ten) + _TENS.find(ones or "〇") + 1
