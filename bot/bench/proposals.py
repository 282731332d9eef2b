"""The scripted model of ``bench write``: what it proposes for a message was laid down before, from the data's gold.

It stands where the chat model stands, behind the real prompt and in front of the real checks. Two models are
written this way. The *honest* one does what the prompt asks: of a message that holds something lasting it gives
the clauses that carry the gold values, each in the person's own words, as a fact or as the one attribute the
question names; of small talk, wishes, questions, requests to forget, secrets and injections it gives nothing, and
what will not last it marks as forgettable. The *gullible* one proposes every message whole, as a sure and lasting
fact: what it stores the checks in code let through. Asked about two memories the honest one answers by the gold
relation of what they tell (:mod:`bot.bench.rulings`); the gullible one, and any model asked anything else, answers
with an empty object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bot.bench import rulings
from bot.bench.writeset import Lone, Update
from memory.model import SELF
from memory.ports import Completion
from memory.script import folded

Item = Mapping[str, Any]

_NUMBERED: Final = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_CLAUSE_END: Final = re.compile(
    r"[.!?。！？；;\n]+\s*|，|,\s+(?=(?:so|no|but|my|our|we|i|i'm)\b)|,?\s+and\s+(?=(?:i am|i'm|i have|we|my)\b)",
    re.IGNORECASE,
)
_WISH: Final = re.compile(r"^\W*(?:if|wish|i wish)\b|\bwould\b|如果|假如|要是|倘若|的话|希望", re.IGNORECASE)
_KIN: Final = re.compile(
    r"\bmy (?P<en>(?:girl|boy)friend|wife|husband|partner|daughter|son|sister|brother|mother|father|mum|mom|dad)\b"
    r"|我的?(?P<zh>女朋友|男朋友|老婆|老公|妻子|丈夫|女儿|儿子|妹妹|姐姐|弟弟|哥哥|妈妈|爸爸)",
    re.IGNORECASE,
)
_ASKED: Final[Mapping[str, re.Pattern[str]]] = {
    "job": re.compile(
        r"\bjob\b|\bdo for a living\b|\bmy (?:work|profession|occupation)\b|什么工作|职业", re.IGNORECASE
    ),
    "home": re.compile(r"\bwhere do i live\b|我(?:现在)?住(?:在)?(?:哪|什么地方)", re.IGNORECASE),
    "birthday": re.compile(r"\bbirthday\b|生日", re.IGNORECASE),
    "pet": re.compile(r"\bmy (?:cat|dog|pet)s?\b.*\bcalled\b|我的?(?:猫|狗|宠物)叫", re.IGNORECASE),
}
"""Questions that ask for one attribute of the person."""


@dataclass(frozen=True, slots=True)
class Note:
    """An item as the model gives it, without its citations, and the messages it will cite (as told)."""

    item: Item
    sources: tuple[str, ...]


class ScriptedModel:
    """A completer that proposes the notes of the messages it is shown.

    ``told`` are all messages it may meet, ``updates`` what it knows about pairs of them. ``calls`` counts
    distillations, ``ruled`` pairs it was asked about, ``unknown`` requests of another kind, ``strangers``
    numbered lines that are none of ``told``: then the prompt is not what the script can read.
    """

    def __init__(self, notes: Iterable[Note], told: Iterable[str], *, updates: Sequence[Update] = ()) -> None:
        self._notes: dict[str, list[Note]] = {}
        for note in notes:
            for source in note.sources:
                self._notes.setdefault(one_line(source), []).append(note)
        self._told = {one_line(text) for text in told}
        self._updates = updates
        self.calls = self.ruled = self.unknown = self.strangers = 0

    async def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int,
    ) -> Completion:
        """Answer a distillation with what was laid down, a question about pairs by the gold, others with nothing."""
        del max_tokens
        if not is_distillation(schema):
            ruled = rulings.ruled(messages[-1]["content"], self._updates)
            self.ruled += len(ruled)
            self.unknown += not ruled
            return Completion(json.dumps({"items": ruled} if self._updates else {}), "stop")
        self.calls += 1
        shown = dict(self._shown(messages[-1]["content"]))
        notes = {id(note): note for text in shown for note in self._notes.get(text, [])}
        items = [
            {
                **note.item,
                "cites": [{"message": shown[s], "quote": ""} for s in map(one_line, note.sources) if s in shown],
            }
            for note in notes.values()
        ]
        return Completion(json.dumps({"items": items}, ensure_ascii=False), "stop")

    def _shown(self, prompt: str) -> Iterator[tuple[str, int]]:
        """Yield the messages of the prompt and their numbers, whatever stands before the words of a line."""
        for number, line in _NUMBERED.findall(prompt):
            text = next((line[at:] for at in range(len(line)) if line[at:] in self._told), None)
            if text is None:
                self.strangers += 1
            else:
                yield text, int(number)


def is_distillation(schema: Mapping[str, Any] | None) -> bool:
    """Whether an answer of this form holds memories: items with citations."""
    listed = (schema or {}).get("properties", {}).get("items", {})
    return "cites" in listed.get("items", {}).get("properties", {})


def one_line(text: str) -> str:
    """A message as a line of a prompt shows it."""
    return " / ".join(part.strip() for part in text.splitlines() if part.strip())


def honest(lone: Iterable[Lone], updates: Iterable[Update]) -> list[Note]:
    """What an honest model notes of these messages."""
    return [note for each in lone for note in _of_lone(each)] + [note for each in updates for note in _of_update(each)]


def gullible(texts: Iterable[str]) -> list[Note]:
    """Every message, whole, as a fact."""
    return [Note(fact(text, subject=SELF, confidence=1.0), (text,)) for text in texts]


def noted(text: str) -> list[Note]:
    """The clauses of a message, each as a fact."""
    return [Note(item, (text,)) for item in _facts(text, clauses(text))]


def events(texts: Iterable[str]) -> list[Note]:
    """Every message, whole, as an event whose time is left to the words."""
    return [Note(_item("event", text=text, when=text), (text,)) for text in texts]


def clauses(text: str) -> list[str]:
    """The clauses of a message, as far as its form shows them."""
    return [clause for part in _CLAUSE_END.split(text) if (clause := part.strip(" ,，"))]


def is_wish(text: str) -> bool:
    """Whether a message only supposes or wishes."""
    return _WISH.search(text) is not None


def _of_lone(told: Lone) -> Iterator[Note]:
    if told.label == "store":
        yield from (Note(item, (told.text,)) for item in _facts(told.text, told.must_contain))
    elif told.label == "ephemeral":
        yield Note(fact(told.text, subject=SELF, forgettable=True), (told.text,))


def _of_update(told: Update) -> Iterator[Note]:
    if told.relation == "delete":
        return
    attribute = next((name for name, asked in _ASKED.items() if asked.search(told.question)), None)
    for text, value in ((told.old_message, told.old_value), (told.new_message, told.new_value)):
        if is_wish(text) or text.rstrip().endswith(("?", "？")):
            continue
        if attribute and folded(value) in folded(text):
            yield Note(_item("profile", attribute=attribute, value=value), (text,))
        else:
            # The message of somebody else's or of former days need not hold the value of the question.
            yield from (Note(item, (text,)) for item in _facts(text, [value]))


def _facts(text: str, wanted: Sequence[str]) -> Iterator[Item]:
    """Return the clauses that carry a wanted string, or the first one where none does."""
    whole = clauses(text)
    carrying = [clause for clause in whole if any(folded(each) in folded(clause) for each in wanted)]
    kin = _KIN.search(text)
    subject = (kin["en"] or kin["zh"]).lower() if kin else SELF
    for clause in carrying or whole[:1]:
        about = subject if kin and (kin[0] in clause or not _first_person(clause)) else SELF
        yield fact(_with_subject(clause, about, chinese=bool(kin and kin["zh"]) or _is_chinese(clause)), subject=about)


def _first_person(clause: str) -> bool:
    return re.search(r"我|\b(?:i|i'm|we|my|our)\b", clause, re.IGNORECASE) is not None


def _is_chinese(text: str) -> bool:
    return re.search(r"[\u3400-\u9fff]", text) is not None


def _with_subject(clause: str, subject: str, *, chinese: bool) -> str:
    """Name whom a Chinese clause is about where it leaves that to the clause before."""
    if not chinese or _first_person(clause) or subject in clause:
        return clause
    return f"{'我' if subject == SELF else subject}{clause}"


def fact(text: str, *, subject: str, confidence: float = 0.9, forgettable: bool = False) -> Item:
    """An item of the kind "fact" as a model writes it, without citations."""
    return _item("fact", text=text, subject=subject, confidence=confidence, forgettable=forgettable)


def _item(kind: str, **filled: object) -> Item:
    blank = dict.fromkeys(("text", "attribute", "value", "when", "start", "end", "until"), "")
    shared = {"subject": SELF, "confidence": 0.9, "importance": 0.6, "forgettable": False, "negates": False}
    return {"kind": kind, **blank, **shared, **filled}
