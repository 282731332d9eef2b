"""Reads what a model calls JSON. Whatever it writes, the outcome is a list of items or one named error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import json_repair

Fault = Literal["cut", "empty", "no_json", "no_items", "schema"]
Item = dict[str, Any]

FAULTS: Final[Mapping[Fault, str]] = {
    "cut": "the answer was cut off",
    "empty": "the answer was empty",
    "no_json": "the answer held no JSON",
    "no_items": "the answer held JSON, but no list of items",
    "schema": "the answer repeated the schema instead of filling it in",
}
"""What is wrong with an answer that is none, in words for the log."""

_WRAPPERS: Final[Mapping[str, str | None]] = {
    "items": None,
    "memories": None,
    "results": None,
    "result": None,
    "entries": None,
    "data": None,
    "output": None,
    "facts": "fact",
    "events": "event",
    "timeline": "event",
    "profile": "profile",
}
"""Keys models put around the list, with the kind that such a key tells about its items."""

_ITEM_KEYS: Final = frozenset({"text", "value", "fact", "memory", "content", "verdict"})
"""A mapping with one of these is an item rather than a wrapper."""

_DEEPEST: Final = 24
"""Our own schema is five deep; anything far deeper is noise that would only exhaust the parser's stack."""

_LARGEST: Final = 10**15
"""Of whole numbers; far beyond the number of any message or year."""

_LONGEST: Final = 400_000
"""Characters read of an answer; no token limit we ask for comes near."""

_REASONING = re.compile(r"<(/?)(?:think|thinking|reasoning)>")
_JSON_START = re.compile(r"""[\[{]\s*["'“\[{]""")


class AnswerError(Exception):
    """The answer is no answer. ``fault`` tells a cut-off one from a chatty one; ``str()`` is for the log."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(FAULTS[fault])
        self.fault: Fault = fault


def parse(text: str, *, cut: bool = False) -> list[Item]:
    """Return the items of a model's answer; an empty list means that it found nothing.

    Accepts code fences, prose around, a bare list, a wrapped list, one item a line, trailing commas and
    single quotes. ``cut`` says that the answer did not end by itself: then nothing of it is taken, for a
    mended half is a false whole. Items that are no mappings are skipped. Raises AnswerError.
    """
    if cut:
        raise AnswerError("cut")
    said = _without_reasoning(text[:_LONGEST].strip())
    if not said:
        raise AnswerError("empty")
    items: list[Item] = []
    answered = False
    fault: Fault = "no_json"
    for region in _regions(said):
        value = _tamed(_decode(region))
        try:
            # Several lists are drafts or parts; what is in any is checked against the words all the same.
            items += [value] if _is_item(value) else _listed(value)
            answered = True
        except AnswerError as error:
            fault = error.fault if fault == "no_json" else fault
    if not answered:
        raise AnswerError(fault)
    return items


def _without_reasoning(text: str) -> str:
    """Drop thinking aloud around the answer; inside it, a tag is somebody's words. Raises AnswerError."""
    if text.startswith(("{", "[")):
        return text
    kept: list[str] = []
    inside, position = False, 0
    for tag in _REASONING.finditer(text):
        ends = bool(tag[1])
        if ends and not inside:
            kept.clear()  # Some models leave out the opening tag: all that came before was thought.
        elif not ends and not inside:
            kept.append(text[position : tag.start()])
        inside, position = not ends, tag.end()
    rest = "".join(kept if inside else [*kept, text[position:]]).strip()
    if inside and not rest:
        raise AnswerError("cut")
    return rest


def _regions(text: str) -> Iterator[str]:
    """Yield each outermost bracketed stretch. Raises AnswerError when the last one never ends."""
    position = 0
    while (start := _first_bracket(text, position)) is not None:
        end = _closing(text, start)
        if end is None:
            if _JSON_START.match(text, start):
                raise AnswerError("cut")
            position = start + 1
        else:
            yield text[start:end]
            position = end


def _first_bracket(text: str, position: int) -> int | None:
    places = [place for place in (text.find("{", position), text.find("[", position)) if place >= 0]
    return min(places, default=None)


def _closing(text: str, start: int) -> int | None:
    """Return the place after the bracket that closes the one at ``start``, None when it stays open."""
    # Where apostrophes delimit strings they also occur inside them, so only double quotes are followed.
    follows_strings = not re.match(r"[\[{\s]*'", text[start : start + _DEEPEST * 2])
    depth, inside, position = 0, False, start
    while position < len(text):
        mark = text[position]
        if inside and mark == "\\":
            position += 1
        elif mark == '"' and follows_strings:
            inside = not inside
        elif not inside and mark in "{[":
            depth += 1
            if depth > _DEEPEST:
                raise AnswerError("no_json")
        elif not inside and mark in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return None


def _decode(region: str) -> Any:
    try:
        return json.loads(region, object_pairs_hook=_merged)
    except ValueError:
        return json_repair.loads(region, skip_json_loads=True)


def _tamed(value: Any) -> Any:
    """Return a decoded value without the whole numbers nobody can mean: no float holds them, no text may."""
    if isinstance(value, dict):
        return {key: _tamed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_tamed(each) for each in value]
    return None if isinstance(value, int) and abs(value) > _LARGEST else value


def _merged(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; of a key that comes twice lists are joined, of anything else the last counts."""
    merged: dict[str, Any] = {}
    for key, value in pairs:
        before = merged.get(key)
        if isinstance(before, list) and isinstance(value, list):
            before.extend(value)
        else:
            merged[key] = value
    return merged


def _is_item(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value.keys() & _ITEM_KEYS)
        and not any(isinstance(value.get(key), list) for key in _WRAPPERS)
    )


def _listed(value: Any) -> list[Item]:
    """Return the items of a decoded list or wrapper. Raises AnswerError for any other value."""
    if isinstance(value, list):
        if value and not any(isinstance(each, dict) for each in value):
            raise AnswerError("no_items")
        return [each for each in value if isinstance(each, dict) and each]
    if not isinstance(value, dict):
        raise AnswerError("no_items")
    if not isinstance(value.get("properties"), dict):
        return _unwrapped(value)
    # Some models copy the schema and fill in its lists; a copy without any is no answer.
    filled = {key: each for key, each in value["properties"].items() if isinstance(each, list)}
    if not filled:
        raise AnswerError("schema")
    return _unwrapped(filled)


def _unwrapped(wrapper: Item) -> list[Item]:
    found = [(wrapper[key], kind) for key, kind in _WRAPPERS.items() if key in wrapper]
    if not found:
        raise AnswerError("schema" if "$ref" in wrapper else "no_items")
    items: list[Item] = []
    for inner, kind in found:
        inside = [] if inner is None else [inner] if _is_item(inner) else _listed(inner)
        items += [{"kind": kind, **item} for item in inside] if kind else inside
    return items
