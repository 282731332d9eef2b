"""Cuts a message into sentences and clauses and says how each is meant: plainly, as a plan, asked, wished, reported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memory.rules.chinese import CHINESE
from memory.rules.english import ENGLISH
from memory.rules.grammar import LONGEST_CLAUSE, Clause, Mood, Tongue
from memory.rules.reading import HIDDEN, Reading
from memory.script import is_han

TONGUES: Final = (CHINESE, ENGLISH)

_SENTENCE: Final = re.compile(
    r"(?:[^\n。!?;…~.]|(?<=\d)\.(?=\d)|(?<=\b[a-z])\.(?=\s?[a-z])|(?<=\b[dms][rts])\.|(?<=\bmrs)\.|"
    r"\.(?=[a-z\d]))+[。!?;…~.]*"
)
_ASKED: Final = re.compile(r"[?？][\s!?~.…]*$")
_OWN_ANNOUNCEMENT: Final = re.compile(
    r"(?:对了|记住|请记住|记一下|关于我|自我介绍|介绍一下自己|补充|更正|btw|ps|p\.s\.|note|remember|"
    r"about me|intro|fyi|hi|hello)\W*$"
)
_TAG: Final = re.compile(
    r"\W*(?:是吗|是吧|对吗|对吧|对不对|是不是|吗|吧|right|isn't it|don't i|aren't i|am i|do i|correct|"
    r"no)\W*"
)


def sentences(reading: Reading) -> Iterator[list[Clause]]:
    """Yield the clauses of each sentence, in order; hidden stretches and what is not plain speech keep their mood."""
    quoting = False
    for line in re.finditer(r"[^\n]+", reading.folded):
        for found in _SENTENCE.finditer(reading.folded, line.start(), line.end()):
            clauses = list(_clauses(reading, found.start(), found.end(), quoting=quoting))
            quoting = quoting or any(each.mood == "reported" and _opens_quote(reading, each) for each in clauses)
            yield clauses
        quoting = quoting and line[0].rstrip().endswith(":")


def _opens_quote(reading: Reading, clause: Clause) -> bool:
    return reading.folded[clause.end : clause.end + 2].lstrip().startswith(":")


def _clauses(reading: Reading, start: int, end: int, *, quoting: bool) -> Iterator[Clause]:
    sentence = reading.folded[start:end]
    spoiled = _spoiled(sentence)
    pieces = list(_pieces(sentence))
    asked = _asked(sentence, pieces)
    mood: Mood = "reported" if quoting else "plain"
    for number, (left, right) in enumerate(pieces):
        words = sentence[left:right]
        tongue = tongue_of(words)
        mood = _mood(words, tongue, mood, announces=sentence[right : right + 1] == ":")
        skip = tongue.filler.match(words)
        begin = left + (skip.end() if skip else 0)
        stop = left + len(tongue.tail.sub("", words))
        if begin >= stop or stop - begin > LONGEST_CLAUSE:
            continue
        core = sentence[begin:stop]
        own: Mood = "unreal" if spoiled else "question" if number in asked else _own_mood(core, tongue, mood)
        written = reading.clean[start + begin : start + stop]
        yield Clause(start + begin, start + stop, core, written, tongue, own, sentence)


def _own_mood(core: str, tongue: Tongue, mood: Mood) -> Mood:
    """Return the mood of one clause, which a question or hidden words change for that clause alone."""
    if HIDDEN in core:
        return "reported"
    return "question" if mood in ("plain", "intended") and tongue.question.search(core) else mood


def tongue_of(words: str) -> Tongue:
    """Return the tables that read a clause: Chinese as soon as one character is."""
    return CHINESE if any(map(is_han, words)) else ENGLISH


def _spoiled(sentence: str) -> bool:
    return any(tongue.unreal.search(sentence) or tongue.joke.search(sentence) for tongue in TONGUES)


def _pieces(sentence: str) -> Iterator[tuple[int, int]]:
    """Cut at commas, colons, brackets and the conjunctions of the sentence's language."""
    begin = 0
    for cut in tongue_of(sentence).breaks.finditer(sentence):
        if cut.start() > begin:
            yield begin, cut.start()
        begin = cut.end()
    if begin < len(sentence):
        yield begin, len(sentence)


def _asked(sentence: str, pieces: list[tuple[int, int]]) -> frozenset[int]:
    """Return the numbers of the clauses a question mark covers.

    The last clause alone when it is a question by its own words ("I live in Oslo, where can I swim?"),
    every clause when it is only a tag ("I live in Oslo, right?") or does not look like a question.
    """
    if not _ASKED.search(sentence) or not pieces:
        return frozenset()
    last = sentence[slice(*pieces[-1])]
    own = tongue_of(last).question.search(last) and not _TAG.fullmatch(last)
    return frozenset({len(pieces) - 1} if own else range(len(pieces)))


def _mood(words: str, tongue: Tongue, before: Mood, *, announces: bool) -> Mood:
    """Return how a clause is meant, given how the clause before it was and whether a colon follows it."""
    if before in ("reported", "unreal"):
        return before
    words = tongue.harmless.sub("", words)
    if tongue.reported.search(words) or (announces and not _OWN_ANNOUNCEMENT.search(words)):
        return "reported"
    if tongue.wish.search(words):
        return "unreal"
    if before == "intended" or tongue.intent.search(words):
        return "intended"
    if tongue.past.search(words):
        return "past"
    return "plain" if tongue.present.search(words) or before != "past" else "past"
