"""Whether two sentences say the same. Decided by all their words, never by a likeness alone: unsure is different."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Final, NamedTuple

from memory.script import folded
from memory.words import terms

ALIKE: Final = 0.6
"""Share of common words from which two different sentences are near enough to be marked as kept side by side."""

_TOKEN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\W_]+(?:['.:/-][^\W_]+)*")
_OWNER: Final = re.compile(r"用户|本人|\bthe user(?:'s)?\b|\buser(?:'s)?\b")
_NOT: Final = re.compile(r"\bcannot\b|\bcan't\b|n't\b")
_CLITIC: Final = re.compile(r"(?<=\w)'(?:m|re|s|ve|ll|d)\b")
# Only what carries no meaning of its own. "from", "can", "will", 过, 要 and 会 do: they stay.
_EMPTY: Final = frozenset(
    {
        "a",
        "an",
        "the",
        "i",
        "me",
        "my",
        "am",
        "is",
        "are",
        "be",
        "do",
        "does",
        "of",
        "that",
        "very",
        "really",
        "so",
        "also",
    }
    | set("我的了在就都也还很是呢吧啊呀嘛啦着")
)
_SAME_WORD: Final = {"has": "have", "没": "不", "无": "不", "never": "not", "no": "not"}
_DENIALS: Final = frozenset({"not", "不"})
_CORRECTION: Final = re.compile(
    r"不对|不對|我是(?:说|說)(?![书書唱])|我说的是|应该是|應該是|记错|記錯|说错|說錯|搞错|打错|更正|纠正|改到|改成|改为|改在|改期|推迟|提前到|延到|延期"
    r"|\bi me[ae]nt?\b|\bactually,? (?:it'?s|it is|that'?s|on|at|make it)\b|\binstead\b"
    r"|\bcorrection\b|\bmistyped\b|\bmy mistake\b|\b(?:that was|i was) wrong\b"
    r"|\brescheduled\b|\bmoved to\b|\bpostponed\b|\bpushed (?:back )?to\b|\bno,? (?:wait|sorry|it'?s)\b",
    re.IGNORECASE,
)


_SENSES_KEPT: Final = 8_192
"""As many as one person's memory has sentences at most, nearly: each new one is held against all of them. Some 4 MB."""


class _Sense(NamedTuple):
    """The words of a sentence: in order, and in order without denials.

    Thousands are kept, so that each is small: a word is there once for all of them, and no set is kept.
    """

    mark: tuple[str, ...]
    undenied: tuple[str, ...]

    @property
    def words(self) -> frozenset[str]:
        """All of them, each once."""
        return frozenset(self.mark)


def fingerprint(text: str) -> tuple[str, ...]:
    """Return the words that make up what a sentence says, in order, equal for sentences that say the same.

    Width, case, script, inflection, particles and the owner ("the user", 我) do not count; order, numbers,
    names, negation and prepositions do.
    """
    return _sense(text).mark


def undenied(text: str) -> tuple[str, ...]:
    """Return the fingerprint without its denials: what a sentence and its denial have in common."""
    return _sense(text).undenied


def shared(one: str, other: str) -> tuple[int, float]:
    """Return how many words two sentences share, and which share that is of the shorter one's, 0 to 1."""
    ours, theirs = _sense(one).words, _sense(other).words
    common = len(ours & theirs)
    return common, common / min(len(ours), len(theirs)) if ours and theirs else 0.0


def opposed(one: str, other: str) -> bool:
    """Whether two sentences differ in nothing but that one denies what the other says."""
    ours, theirs = _sense(one), _sense(other)
    return ours.undenied == theirs.undenied and (len(ours.mark) - len(theirs.mark)) % 2 == 1


def overlap(one: str, other: str) -> float:
    """Return the share of words two sentences have in common, 0 to 1 (Jaccard index)."""
    ours, theirs = _sense(one).words, _sense(other).words
    return len(ours & theirs) / len(ours | theirs) if ours and theirs else 0.0


def within(one: str, other: str) -> bool:
    """Whether every word of one of the sentences is in the other."""
    ours, theirs = _sense(one).words, _sense(other).words
    return bool(ours and theirs) and (ours <= theirs or theirs <= ours)


def says_no_more(one: str, other: str) -> bool:
    """Whether every word of ``one`` is in ``other``, and one denies as often as the other does."""
    ours, theirs = _sense(one), _sense(other)
    denials = [len(sense.mark) - len(sense.undenied) for sense in (ours, theirs)]
    return bool(ours.words) and ours.words <= theirs.words and denials[0] == denials[1]


def corrects(words: str) -> bool:
    """Whether somebody takes back what they said before ("no, I meant ...", 不对，我是说 …, 改到 …)."""
    return _CORRECTION.search(words) is not None


@lru_cache(maxsize=_SENSES_KEPT)
def _sense(text: str) -> _Sense:
    plain = _CLITIC.sub("", _NOT.sub(" not", _OWNER.sub(" ", folded(text))))
    tokens = (_SAME_WORD.get(token, token) for token in _TOKEN.findall(plain))
    mark = tuple(sys.intern(_stem(token)) for token in tokens if token not in _EMPTY)
    return _Sense(mark, mark if _DENIALS.isdisjoint(mark) else tuple(word for word in mark if word not in _DENIALS))


def _stem(token: str) -> str:
    return (terms(token) or [token])[-1] if token.isascii() and token.isalpha() else token
