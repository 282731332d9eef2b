"""Whether a claim says yes where the quoted words say no. Small on purpose: it only speaks when it is sure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

_LIKE: Final = (
    r"喜欢|喜歡|热爱|熱愛|钟爱|偏爱|酷爱|爱(?=[吃喝看玩听用去])|愛(?=[吃喝看玩聽用去])"
    r"|\b(?:likes?|loves?|loved|liked|enjoys?|enjoyed|adores?|prefers?|fond of|fan of)\b"
)
_DISLIKE: Final = (
    r"讨厌|討厭|厌恶|反感|嫌弃|受不了|受不瞭|恨"
    r"|\b(?:hates?|hated|dislikes?|disliked|detests?|loathes?|averse to|can(?:'|’|no)?t (?:stand|bear))\b"
)
_TASTE: Final = re.compile(f"(?P<like>{_LIKE})|(?P<dislike>{_DISLIKE})", re.IGNORECASE)

_VERBS: Final = re.compile(
    r"居住|住|过敏|過敏|抽烟|抽煙|吸烟|喝|吃|养|養|有|会|會|去|结婚|結婚|能|想|用|玩|看|做|是|叫"
    r"|\b(?:liv|work|eat|drink|smok|own|ha|want|go|speak|know|driv|play|need|wear|us|marr)(?:e|es|s|ing|ve|ies|ied|ed)?\b"
    r"|\b(?:am|is|are|was|were)\b|(?<=\w)(?:'|’)(?:m|re|s)\b|\b(?:is|are|was|were)(?=n['’]t)",
    re.IGNORECASE,
)

_WHOLE: Final = frozenset(("过敏", "過敏", "结婚", "結婚", "抽烟", "抽煙", "吸烟"))
"""Verbs that need no object behind them."""

_NO_BEFORE: Final = re.compile(
    r"(?:(?P<zh>(?:(?:[不没沒未无無]|从没|從沒)(?:有|是|再|太|怎么|怎麼|会|會|能|想|敢|大|很|去|在|得)*)+)"
    r"|\b(?:not|never|no longer|cannot|without)\b(?:\s+[\w'’]+){0,3}\s*"
    r"|n['’]t\b(?:\s+[\w'’]+){0,3}\s*)$",
    re.IGNORECASE,
)
_NO_AFTER: Final = re.compile(r"\s*(?:not\b|no longer\b|never\b|n['’]t\b)", re.IGNORECASE)
_ZH_NO: Final = re.compile(r"[不没沒未无無]")
_WINDOW: Final = 28
"""Characters before a verb in which a negation still belongs to it."""
_OBJECT_ZH: Final = 4
_OBJECT_EN: Final = 3
_WORD: Final = re.compile(r"[a-z0-9][\w'’-]*", re.IGNORECASE)
_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_SMALL: Final = frozenset(
    {"a", "an", "the", "any", "to", "in", "at", "on", "of", "for", "with", "and", "or", "not", "no", "my", "that", "it"}
    | {"very", "really", "so"}
)


def contradicts(claim: str, said: str) -> bool:
    """Whether ``claim`` asserts what ``said`` denies, or the other way round.

    Compares likes with dislikes, and verbs that stand before the same object. Where either side says both,
    or nothing comparable, it does not contradict.
    """
    ours, theirs = _stances(claim), _stances(said)
    if len(ours) == len(theirs) == 1:
        return ours != theirs
    if ours and theirs:
        return False
    denied = {True: _objects(said, negated=True), False: _objects(said, negated=False)}
    for negated in (True, False):
        against = _objects(claim, negated=negated) & denied[not negated]
        if against - denied[negated]:
            return True
    return False


def _stances(text: str) -> frozenset[bool]:
    """True for each liking, False for each dislike that a text speaks of."""
    return frozenset((match["like"] is not None) != _negated(text, match) for match in _TASTE.finditer(text))


def _objects(text: str, *, negated: bool) -> frozenset[tuple[str, str]]:
    """Pairs of a verb and a piece of what stands right behind it, for verbs that are (not) negated."""
    return frozenset(
        (_lemma(match.group()), piece)
        for match in _VERBS.finditer(text)
        if _negated(text, match) == negated
        for piece in ([""] if match.group() in _WHOLE else _behind(text, match.end()))
    )


def _negated(text: str, match: re.Match[str]) -> bool:
    before = _NO_BEFORE.search(text[max(0, match.start() - _WINDOW) : match.start()])
    denials = 0
    if before is not None:
        denials = len(_ZH_NO.findall(before["zh"])) if before["zh"] else 1
    return (denials + bool(_NO_AFTER.match(text, match.end()))) % 2 == 1


def _lemma(verb: str) -> str:
    """Reduce a matched verb to what its forms share."""
    if _HAN.match(verb):
        return verb
    plain = verb.lower().lstrip("'’")
    return "be" if plain in {"am", "is", "are", "was", "were", "m", "re", "s"} else plain[:2]


def _behind(text: str, place: int) -> Iterator[str]:
    if after := _NO_AFTER.match(text, place):
        place = after.end()
    rest = re.split(r"[，。,.;；!?！？]", text[place : place + 60], maxsplit=1)[0]
    if _HAN.search(rest[:2]):
        marks = [mark for mark in rest[:_OBJECT_ZH] if _HAN.match(mark) and mark not in "的了过過在个個一"]
        yield from marks[:1]
        yield from (first + second for first, second in pairwise(marks))
    else:
        words = [word.lower() for word in _WORD.findall(rest)]
        yield from [word for word in words if word not in _SMALL][:_OBJECT_EN]
