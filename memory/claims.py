"""What a model proposes to remember, read from its answer item by item. Nothing in it is believed yet."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from memory.answers import Item
from memory.model import SELF

ClaimKind = Literal["profile", "event", "fact"]

CONFIDENCE: Final = 0.8
"""Of a claim whose model did not say how sure it is: below what the person's own rule-read words get (1.0)."""

PER_CENT: Final = 100
"""Some models say how sure they are in per cent."""

_KINDS: Final[Mapping[str, ClaimKind]] = {
    "profile": "profile",
    "attribute": "profile",
    "event": "event",
    "timeline": "event",
    "episodic": "event",
    "fact": "fact",
    "semantic": "fact",
}
_THEMSELVES: Final = frozenset({"", "self", "user", "the user", "me", "i", "owner", "用户", "本人", "自己", "我"})
_DEGREES: Final = {"high": 0.9, "medium": 0.7, "low": 0.4, "高": 0.9, "中": 0.7, "低": 0.4}
_YES: Final = frozenset({"true", "yes", "1", "是"})
_NUMBER = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True)
class Cite:
    """A message as it was numbered in the prompt, and the words quoted; no words mean the whole message."""

    number: int
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """One item of an answer. Times are the model's words for local ISO times, not yet read."""

    kind: ClaimKind
    subject: str = SELF
    text: str = ""
    attribute: str = ""
    value: str = ""
    when: str = ""
    start: str = ""
    end: str = ""
    until: str = ""
    confidence: float = CONFIDENCE
    importance: float = 0.5
    forgettable: bool = False
    negates: bool = False
    cites: tuple[Cite, ...] = ()


def read(items: Iterable[Item]) -> list[Claim]:
    """Read each item under the names models like to use; what is missing or odd takes its default."""
    return [_claim(item) for item in items]


def _claim(item: Item) -> Claim:
    when = item.get("when")
    time: Mapping[str, Any] = when if isinstance(when, dict) else item
    attribute = _text(item, "attribute", "slot", "key").lower()
    subject = _text(item, "subject", "about", "entity")
    return Claim(
        kind=_kind(item, attribute=attribute, start=_text(time, "start")),
        subject=SELF if subject.lower() in _THEMSELVES else subject,
        text=_text(item, "text", "fact", "memory", "content", "statement"),
        attribute=attribute,
        value=_text(item, "value"),
        when=_text(time, "words", "when", "original"),
        start=_text(time, "start"),
        end=_text(time, "end"),
        until=_text(item, "until", "expires"),
        confidence=_degree(item.get("confidence"), CONFIDENCE),
        importance=_degree(item.get("importance"), 0.5),
        forgettable=_flag(item.get("forgettable")),
        negates=_flag(item.get("negates")),
        cites=_cites(item),
    )


def _kind(item: Item, *, attribute: str, start: str) -> ClaimKind:
    named = _KINDS.get(_text(item, "kind", "type").lower())
    if named:
        return named
    if attribute and item.get("value"):
        return "profile"
    return "event" if start else "fact"


def _cites(item: Item) -> tuple[Cite, ...]:
    names = ("cites", "citations", "sources", "source", "evidence", "messages", "message")
    raw = next((item[name] for name in names if item.get(name) is not None), None)
    quote = _text(item, "quote", "quotes")
    found = [cite for each in (raw if isinstance(raw, list) else [raw]) for cite in _cite(each, quote)]
    return tuple(dict.fromkeys(found))


def _cite(raw: Any, quote: str) -> list[Cite]:
    if isinstance(raw, dict):
        names = ("message", "number", "id", "n", "source")
        number = next((raw[name] for name in names if raw.get(name) is not None), None)
        return _cite(number, _text(raw, "quote", "words", "text") or quote) if not isinstance(number, dict) else []
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        return []
    if isinstance(raw, str):
        return [Cite(int(number), quote) for number in _NUMBER.findall(raw)]
    return [Cite(int(raw), quote)] if abs(raw) < 10**9 else []  # which is false of what is no number, too


def _text(item: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that holds words, as one clean line."""
    for name in names:
        value = item.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = f"{value:g}" if isinstance(value, float) else str(value)
        if isinstance(value, str) and (line := _line(value)):
            return line
    return ""


def _line(text: str) -> str:
    """Drop what no store can hold (lone surrogates) and no line should (control characters, doubled space)."""
    kept = (" " if unicodedata.category(mark) in {"Cc", "Cs"} else mark for mark in text)
    return " ".join("".join(kept).split())


def _degree(value: Any, default: float) -> float:
    if isinstance(value, str):
        value = _DEGREES.get(value.strip().lower(), value)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return default
    if not math.isfinite(number):
        return default
    return min(1.0, max(0.0, number / PER_CENT if 1 < number <= PER_CENT else number))


def _flag(value: Any) -> bool:
    return value is True or str(value).strip().lower() in _YES
