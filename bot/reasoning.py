"""Takes a model's thinking out of what a person gets to see, while the answer is still arriving.

What counts as thinking:

* a block in one of the known notations that opens at the start of the answer (blanks and earlier blocks
  may precede it), or whose opening tag stands alone on a line; without an end it reaches to the end of all;
* everything before a closing tag that nothing opened: some chat templates write the opening tag
  into the prompt, so the answer holds the closing one only.

What stays: a tag inside a code fence or inline code, an opening tag in the middle of a line, and a closing
tag that answers one on the same line. There a model writes *about* such tags. In plain prose a lone
closing tag cannot be told from a real one; then hiding too much is the smaller harm.
"""

from __future__ import annotations

from typing import Final

import regex

_NAME: Final = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning)"
_OPEN: Final = (
    rf"<{_NAME}\s{{0,3}}>|\[THINK\]|◁think▷|<\|begin_of_thought\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|?>\s{0,3}(?:analysis|commentary|thought)"
)
_CLOSE: Final = (
    rf"</{_NAME}\s{{0,3}}>|<{_NAME}\s{{0,3}}/>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<channel\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|?>\s{0,3}final\s{0,3}(?:<\|message\|>)?"
)
_FENCE: Final = r"^[ ]{0,3}(?P<fence>`{3,}|~{3,})[^\n]*\n(?:.*?\n)??[ ]{0,3}(?P=fence)[`~]*[ \t]*$"
_OPEN_FENCE: Final = r"^[ ]{0,3}(?:`{3,}|~{3,})[^\n]*(?:\n.*)?\Z"
_INLINE: Final = r"(?<!`)(?P<tick>`+)(?!`)(?:(?!\n\s*\n).)*?(?<!`)(?P=tick)(?!`)"
_OPEN_INLINE: Final = r"(?<!`)`+(?!`)[^\n`]*\Z"
_TAGS: Final = rf"(?P<open>{_OPEN})|(?P<close>{_CLOSE})"
_FLAGS: Final = regex.IGNORECASE | regex.MULTILINE | regex.DOTALL

_TAG: Final = regex.compile(_TAGS, _FLAGS)
_OPENING: Final = regex.compile(_OPEN, _FLAGS)
_CLOSING: Final = regex.compile(_CLOSE, _FLAGS)
_WHOLE: Final = regex.compile(rf"(?P<code>{_FENCE}|{_INLINE})|{_TAGS}", _FLAGS)
_GROWING: Final = regex.compile(rf"(?P<code>{_FENCE}|{_INLINE}|{_OPEN_FENCE}|{_OPEN_INLINE})|{_TAGS}", _FLAGS)
_ALONE_AFTER: Final = regex.compile(r"[ \t]*(?:\r?\n|\Z)")
_END_TOKENS: Final = regex.compile(r"\s*(?:<\|(?:end|return|call|im_end|eot_id|endoftext)\|>\s*)+\Z")
_CONTROL_BEGUN: Final = regex.compile(r"<\|[a-z_]{0,24}\|?\Z")
_LONGEST_TAG: Final = 64
"""No tag is longer, characters; how far back from the end an unfinished one may begin."""


def visible(raw: str, *, complete: bool = True) -> str:
    """Return the part of an answer that a person may see, stripped of blanks around it.

    ``complete`` False is for an answer that still grows: a tail that could become a tag is held back,
    and code that has not been closed yet counts as code.
    """
    held = raw if complete else raw[: _tag_begins(raw)]
    if not _may_hold_tag(held):
        return held.strip()
    answer = "".join(_seen(held, complete=complete)) if _TAG.search(held) else held
    return _END_TOKENS.sub("", answer).strip()


class GrowingAnswer:
    """Collects the pieces of an answer; ``visible`` may shrink when earlier text turns out to be thinking."""

    def __init__(self) -> None:
        self._raw = ""

    def add(self, piece: str) -> None:
        """Append a piece as it came from the model."""
        self._raw += piece

    def __len__(self) -> int:
        return len(self._raw)

    def visible(self, *, complete: bool = False) -> str:
        """Return the whole visible text so far; ``complete`` True once nothing follows."""
        return visible(self._raw, complete=complete)


def _seen(raw: str, *, complete: bool) -> list[str]:
    """Cut ``raw`` into the stretches that are no thinking."""
    token = _WHOLE if complete else _GROWING
    seen: list[str] = []
    start = at = _after_leading_blocks(raw, 0)
    opened_at = -1
    while (found := token.search(raw, at)) is not None:
        at = found.end()
        if found["close"] and (opened_at < start or "\n" in raw[opened_at : found.start()]):
            seen.clear()
            start = at = _after_leading_blocks(raw, found.end())
        elif found["close"]:
            opened_at = -1
        elif found["open"] and _stands_alone(raw, found.start(), found.end()):
            seen.append(raw[start : found.start()])
            start = at = _after_block(raw, found.end())
        elif found["open"]:
            opened_at = found.start()
    return [*seen, raw[start:]]


def _after_leading_blocks(raw: str, at: int) -> int:
    """Return where the answer begins, past blanks and blocks of thinking."""
    while True:
        while at < len(raw) and raw[at].isspace():
            at += 1
        opening = _OPENING.match(raw, at)
        if opening is None:
            return at
        at = _after_block(raw, opening.end())


def _after_block(raw: str, inside: int) -> int:
    closing = _CLOSING.search(raw, inside)
    return len(raw) if closing is None else closing.end()


def _stands_alone(raw: str, start: int, end: int) -> bool:
    line_start = raw.rfind("\n", 0, start) + 1
    return not raw[line_start:start].strip() and _ALONE_AFTER.match(raw, end) is not None


def _may_hold_tag(text: str) -> bool:
    """Whether a tag may begin in a text. Most answers hold none, and this is asked at each piece of one."""
    return "<" in text or "[" in text or "◁" in text


def _tag_begins(raw: str) -> int:
    """Return where an unfinished tag begins at the end of ``raw``; its length if there is none."""
    tail = max(0, len(raw) - _LONGEST_TAG)
    if not _may_hold_tag(raw[tail:]):
        return len(raw)
    for at in range(tail, len(raw)):
        if raw[at] in "<[◁" and (_could_become_tag(raw, at) or _CONTROL_BEGUN.match(raw, at)):
            return at
    return len(raw)


def _could_become_tag(raw: str, at: int) -> bool:
    found = _TAG.fullmatch(raw, at, partial=True)
    return found is not None and found.partial
