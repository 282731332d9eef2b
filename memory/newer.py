"""Of two statements that give one thing two values, the newer goes first where a question asks how it is now. Pure.

Ranking cannot tell them apart: they hold the same words and mean the same. What has been closed is marked as outdated
(:mod:`memory.showing`); this is for what nobody has closed, above all lines of the journal. It is bounded: a statement
passes its own older twin and nothing else, and counts for no more than that one did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memory import dates
from memory.judge import Contender
from memory.script import folded
from memory.words import query_terms, terms, weights

TERM: Final = "newer"
"""What the ablation and the reasons of a memory call it."""
HEAD: Final = 24
"""Candidates that are looked at; what is further down is no twin of what leads."""
REACH: Final = 0.35
"""Share of its twin's score that the newer one must have by itself: what has less is about something else."""
SHARED: Final = 0.8
"""Share of what the older one says of the question beside its value that the newer one must say, too."""
SHARED_IF_SURE: Final = 0.4
"""The same where more speaks for it: the newer one tells of a change, counts the very thing that is asked for, or
holds a number that the question names. Who corrects a number does not tell the whole story again."""
OF_QUESTION: Final = 0.4
"""Share of a question's words that both must say where it is not plain which of them name the thing."""
LONGEST_READ: Final = 2_000
"""Characters of a text that are looked at; what a long text tells of itself stands at its beginning."""
CHANGE_NEAR: Final = 48
"""Characters between a value and the words that tell of a change."""
_UNIT_WORDS: Final = 3

_ASKS_VALUE: Final = re.compile(
    r"\bhow (?:many|much|old|long|often|far|big|tall|high|fast|large|heavy)\b"
    r"|\bwhat(?:'s| is| are)\b|\bwhen(?:'s| is| are| do| does)\b"
    r"|\bwhich (?:day|date|time|year|month|version|number|size|floor|room)\b"
    r"|多少|[几幾](?!乎|率|何)|多[大高重长長久远遠快]|什么时[候间]|何时|哪[天日年月]|是什么"
)
_ASKS_TIME: Final = re.compile(
    r"\bwhen\b|\b(?:dates?|days?|deadlines?|due|schedul\w+|appointments?|birthdays?|time)\b|时[候间]|何时|哪[天日年月]|[几幾][号月点日]|日[期子]|期限|截止|生日"
)
_ASKS_PAST: Final = re.compile(
    r"\b(?:did|was|were|had|used to|at first|first time|original(?:ly)?|initial(?:ly)?|before|previous(?:ly)?|earlier"
    r"|formerly|once|ago|back then|at that time|last (?:time|year|month|week|night))\b"
    r"|以前|之前|原来|原先|当初|最初|最早|起初|一开始|第一次|上次|上回|去年|前年|上个?[月周]|昨[天晚]|那时|当时|曾|过去"
)
_ASKS_SUM: Final = re.compile(
    r"\b(?:between|passed|different|across|in (?:total|all)|altogether|combined|apart|so far)\b"
    r"|一共|总共|共有|合计|总计|之[间和差]|相差|差[多几]|分别|不同|各"
)
"""What is worked out from several statements needs the old ones as well."""
_CHANGES: Final = re.compile(
    r"\b(?:now|new|updated?|currently|recently|no longer|instead|(?:in|de)creased|grown?|grew|reached|raised|dropped"
    r"|improved|extended|moved|changed|switched|up to|down to|postponed|rescheduled|pushed)\b"
    r"|现在|如今|目前|最近|改[成到为期]|换[成到]|[涨升降减加增调提]到|变[成为]|推迟|提前到|更新|最新|新的"
)
_PRESENT: Final = re.compile(r"现在|如今|目前|最近|\b(?:now|currently|at present|right now)\b", re.IGNORECASE)
"""What every such question means, whether it says so or not."""
_THING: Final = re.compile(
    r"\bhow (?:many|much) (?P<counted>.+?) (?:have|has|do|does|are|is|am|can|will|should|would|could)\b"
    r"|\b(?:what|when)(?:'s| is| are) (?P<asked>.+?)(?: (?:of|for|in|to|on|at|when|after|from|with|using)\b|[?.,!]|$)"
)
_ANY_THING: Final = frozenset(
    terms("total number amount percentage percent average rate count current present latest now exact many much")
)
"""Words that say in which way a thing is told, not which thing."""
_MONTHS: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_TIME: Final = (
    rf"\b{_MONTHS} \d{{1,2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTHS}\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\d{1,2}:\d\d|\d+(?:年|月|号|日)[\d年月号日]*"
    r"|(?:周|星期|礼拜)[一二三四五六日天末]|[一二三四五六七八九十两]+点"
)
_NUMBER: Final = (
    r"(?<![a-z0-9_.-])[$￥¥€£]?\d[\d,]*(?:\.\d+)?(?![\d.-]*[.-]\d)(?P<percent>\s?%)?"
    r"|(?<![第周期一二三四五六七八九十两百千万])[两二三四五六七八九十百千万][一二三四五六七八九十两百千万]*(?=[\u3400-\u9fff])"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|hundred)\b"
)
_VALUE: Final = re.compile(rf"(?P<time>{_TIME})|(?P<number>{_NUMBER})")
"""A time or a number. A version (5.3.0) and an id (2024-3) are no number of anything."""
_CLAUSE: Final = re.compile(r"(?<!\d)[.,:](?!\d)|(?<=\d)[.,:](?=\s|$)|[;!?，。；：！？\n()（）]+")
_MEASURE: Final = re.compile(r"\s?个?([\u3400-\u9fff])")


@dataclass(frozen=True, slots=True)
class Told:
    """What a candidate says, when it was said, and whose words, or about whom, it is."""

    text: str
    at: datetime
    whose: str


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question: how much each of its words counts, the values it names, and whether it asks for a time.

    ``thing`` are the words of what is asked for ("how many *project cards* are ..."), none where that is not plain.
    """

    words: Mapping[str, float]
    named: frozenset[str]
    time: bool
    thing: frozenset[str]

    def weight(self, words: frozenset[str]) -> float:
        return sum(self.words[word] for word in words)


@dataclass(frozen=True, slots=True)
class _Said:
    """One value that a text gives.

    ``unit`` are the words behind it, ``beside`` the words of the question around it; ``changed`` says that the text
    tells of a change, ``named`` that it holds a number which the question names.
    """

    value: str
    time: bool
    unit: frozenset[str]
    beside: frozenset[str]
    changed: bool
    named: bool

    def replaces(self, other: _Said, asked: _Asked) -> bool:
        """Whether this is another value of the same thing."""
        if self.value == other.value or self.time != other.time or (asked.named and not self.named):
            return False
        counted = self.unit & other.unit
        alike = self.time or counted or self.unit == other.unit or (self.changed and not self.unit)
        the_very_thing = any(asked.words.get(word) == 1.0 for word in counted)
        sure = self.changed or self.named > other.named or the_very_thing
        both = self.beside & other.beside
        told = asked.thing <= both if asked.thing else asked.weight(both) >= OF_QUESTION * sum(asked.words.values())
        need = (SHARED_IF_SURE if sure else SHARED) * asked.weight(other.beside)
        return bool(alike) and told and asked.weight(both) >= max(1.0, need)


def asks_now(question: str) -> bool:
    """Whether a question asks for a number, a time or the like as it is now: not how it was, nor for a sum."""
    plain = folded(question)
    if not _ASKS_VALUE.search(plain) or _ASKS_PAST.search(plain) or _ASKS_SUM.search(plain):
        return False
    return not dates.partial(question)


def newer_first(question: str, candidates: Sequence[Contender], told: Mapping[int, Told]) -> Sequence[Contender]:
    """The candidates, a newer statement right before its older twin with another value.

    ``told`` are those that may have a twin, by id. What was moved counts as much as its twin, and says what it gained.
    """
    if not asks_now(question):
        return candidates
    words = [word for word in query_terms(_PRESENT.sub(" ", question)) if not any(map(str.isdigit, word))]
    asked = _Asked(
        dict(zip(words, weights(words), strict=True)),
        frozenset(_plain(each) for each in _VALUE.finditer(folded(question))),
        _ASKS_TIME.search(folded(question)) is not None,
        _thing(question),
    )
    order = list(candidates)
    said = {each.id: _said(told[each.id].text, asked) for each in order[:HEAD] if each.id in told}
    for place in range(1, min(HEAD, len(order))):
        own = order[place]
        passed = (at for at in range(place) if _is_newer(own, order[at], told))
        first = next((at for at in passed if _replaces(said[own.id], said[order[at].id], asked)), None)
        if first is not None:
            order.insert(first, _moved(order.pop(place), order[first]))
    return tuple(order)


def _is_newer(own: Contender, other: Contender, told: Mapping[int, Told]) -> bool:
    """Whether a candidate was said after another of the same person's, and is about the question, too."""
    if own.id not in told or other.id not in told or own.score < REACH * other.score:
        return False
    later, earlier = told[own.id], told[other.id]
    return later.whose == earlier.whose and (later.at, own.id) > (earlier.at, other.id)


def _replaces(own: Sequence[_Said], others: Sequence[_Said], asked: _Asked) -> bool:
    return any(mine.replaces(theirs, asked) for mine in own for theirs in others)


def _moved(own: Contender, older: Contender) -> Contender:
    gained = round(max(older.score - own.score, 0.0), 4)
    return own._replace(score=max(own.score, older.score), scores={**(own.scores or {}), TERM: gained})


def _said(text: str, asked: _Asked) -> list[_Said]:
    """Every value that a text gives beside words of the question, and that the question does not name itself."""
    plain = folded(text[:LONGEST_READ])
    named = any(_plain(each) in asked.named for each in _VALUE.finditer(plain))
    found: list[_Said] = []
    clauses = [clause for clause in _CLAUSE.split(plain) if clause.strip()]
    for place, clause in enumerate(clauses):
        values = [each for each in _VALUE.finditer(clause) if asked.time or not each["time"]]
        window = " ".join(clauses[max(place - 1, 0) : place + 2]) if values else ""
        beside = frozenset(terms(window)) & asked.words.keys()
        found += [
            _Said(_plain(each), bool(each["time"]), _unit(clause, each), beside, _changed(clause, each), named)
            for each in values
            if beside and _plain(each) not in asked.named
        ]
    return found


def _thing(question: str) -> frozenset[str]:
    """The words of what an English question asks for."""
    found = _THING.search(folded(question))
    return frozenset(terms(found["counted"] or found["asked"])) - _ANY_THING if found else frozenset()


def _changed(clause: str, value: re.Match[str]) -> bool:
    """Whether it is said right before or behind a value that it is a new one."""
    before, behind = clause[: value.start()], clause[value.end() :]
    return any(_CHANGES.search(words) for words in (before[-CHANGE_NEAR:], behind[:CHANGE_NEAR]))


def _plain(value: re.Match[str]) -> str:
    return value[0].replace(",", "").replace(" ", "")


def _unit(clause: str, value: re.Match[str]) -> frozenset[str]:
    """What a number counts: the words, or the character, behind it."""
    if value["percent"]:
        return frozenset("%")
    behind = clause[value.end() :]
    measure = _MEASURE.match(behind)
    return frozenset(measure[1] if measure else terms(" ".join(behind.split()[:_UNIT_WORDS])))
