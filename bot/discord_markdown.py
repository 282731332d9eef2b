"""Markdown as Discord draws it: rewritten where it draws otherwise, and what may not be torn in it. Pure; no SDK."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import regex

from bot.commonmark import STAND_INS, Edit, Event, code_block, events, inside, is_address, prefix_at, read, replaced
from bot.text import Span

_BEGINS_BLOCK: Final = r"(?:`{3}|~{3}|(?:#{1,3}|-\#|[-*+]|\d{1,9}[.)]|>{1,3})(?=\s))"
WHOLE: Final = regex.compile(
    rf"https?://[!#-'*-;=?-Z\\^-~]+|<[^\s<>]*>|\\.{_BEGINS_BLOCK}?|\S?[*_~|`]+\S?|[^\n]{_BEGINS_BLOCK}"
)
"""Where no cut goes: through an address, a mention, an escape, beside a sign that may be markup; nor where
what would begin a part, such as "# " or "1. ", would become what it was not in the middle of a line."""

_BACKSLASH: Final = chr(STAND_INS[ord("\\")])
_MARKUP: Final = "".join(chr(STAND_INS[ord(sign)]) for sign in "*_|`[")
_TYPED: Final = regex.compile(rf"https?://[^\s<>]+|(?P<sign>[{_MARKUP}]|{_BACKSLASH}(?=[^\w\s]))")
_VEIL: Final = regex.compile(r"\|\|(?=\S)[^\n]+?\|\|")
_LINE: Final = regex.compile(r"^(?P<quote>> )?(?P<heading>#{1,3} |-# )?", regex.MULTILINE)
_REST_QUOTED: Final = regex.compile(r"^>>> ", regex.MULTILINE)
_FENCE: Final = regex.compile(r"(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)(?:\n|$)")
_GOOD_FENCE: Final = regex.compile(r"```(?:[A-Za-z0-9_+\-.#]+)?\n.*\n[> \t]*```", regex.DOTALL)
_LANGUAGE: Final = regex.compile(r"[A-Za-z0-9_+\-.#]*")
_RISK: Final = regex.compile(
    r"""
      (?P<url> https?://[^\s<>\\]+)
    | [\\*_~|`] | \[(?=[^\]\n]{0,300}\]\() | <(?=https?://)
    | (?<=^[ \t]{0,9})(?: \#(?=\#{0,2}\ ) | [-+](?=\#?\ ) | >(?=\ |>>\ ) )
    | (?<=^[ \t]{0,9}\d{1,9})\.(?=\s)
    """,
    regex.VERBOSE | regex.MULTILINE,
)
_H3: Final = 3


def as_typed(text: str) -> str:
    """Return a text such that Discord shows every sign of it as it is. Addresses stay links."""
    return _RISK.sub(lambda match: match[0] if match["url"] else "\\" + match[0], text)


def drawn(text: str) -> tuple[str, list[Span]]:
    """Return a clean Markdown text as Discord draws it, and the spans of it that a cut must close."""
    source = read(text)
    found = list(events(source.text))
    code = _Verbatim(found)
    edits = [*_blocks(source.text, found), *_typed(source.text, code)]
    settled = replaced(source.text, edits)
    return source.restore(settled), spans_of(settled)


def spans_of(text: str) -> list[Span]:
    """Return what is emphasised, quoted, code or a link in a text that was read, nested, in order."""
    found = list(events(text))
    code = _Verbatim(found)
    spans = [span for event, start, end in found if (span := _span(text, event, start, end)) is not None]
    spans += [
        Span(veil.start(), veil.start() + 2, veil.end() - 2, veil.end(), "||", "||")
        for veil in _VEIL.finditer(text)
        if veil.start() not in code and veil.end() not in code
    ]
    nested = _nested(sorted(spans, key=lambda span: (span.opens, -span.closes)))
    return sorted([*_lines(text, code), *nested], key=lambda span: span.opens)


class _Verbatim:
    """The places of a text that are code."""

    def __init__(self, found: Iterable[Event]) -> None:
        self._ranges = [
            (start, end)
            for event, start, end in found
            if isinstance(event, dict) and ("Code" in event or "CodeBlock" in event.get("Start", ()))
        ]

    def __contains__(self, place: int) -> bool:
        before = bisect_right(self._ranges, place, key=lambda code: code[0])
        return before > 0 and place < self._ranges[before - 1][1]


def _blocks(text: str, found: Sequence[Event]) -> Iterator[Edit]:
    """Yield how headings below the third level become bold, and code that Discord would not see a plain fence."""
    for index, (event, start, end) in enumerate(found):
        match event:
            case {"Start": {"Heading": {"level": level}}} if int(level[1]) > _H3:
                within = [(begins, ends) for _, begins, ends in inside(found, index) if begins < ends]
                if within:
                    first, last = within[0][0], max(ends for _, ends in within)
                    # Bold in bold would end it, so a heading with emphasis in it is one of the third level.
                    opener, closer = ("### ", "") if "*" in text[first:last] else ("**", "**")
                    yield start, first, opener
                    yield last, end, closer + "\n"
            case {"Code": code} if text.startswith("```", start) and "``" not in code:
                # Three backticks would be a fence where they begin a part.
                yield start, end, f"`` {text[start:end].strip('`').strip()} ``"
            case {"Start": {"CodeBlock": kind}}:
                if not _GOOD_FENCE.fullmatch(text[start:end]) or "```" in _code(found, index):
                    yield from _refenced(text, kind, start, end, code=_code(found, index))


def _code(found: Sequence[Event], index: int) -> str:
    return "".join(event["Text"] for event, *_ in inside(found, index))


def _refenced(text: str, kind: Any, start: int, end: int, *, code: str) -> Iterator[Edit]:
    prefix = prefix_at(text, start)
    # A zero-width space keeps three backticks from ending the block: Discord knows no longer fence.
    code = code.replace("```", "`\u200b`\u200b`")
    if isinstance(kind, dict):
        language = kind["Fenced"].split(" ")[0]
        block = code_block(code, language if _LANGUAGE.fullmatch(language) else "", prefix)
        yield start, end, block + ("\n" if text[start:end].endswith("\n") else "")
    elif text[start - len(prefix) : start] == prefix:
        around = prefix.rstrip() + " " if ">" in prefix else ""
        yield start - len(prefix), end, around + code_block(code, "", around) + "\n"


def _typed(text: str, code: _Verbatim) -> Iterator[Edit]:
    """Yield the backslashes before signs that are meant as themselves."""
    for match in _TYPED.finditer(text):
        if match["sign"] and match.start() not in code:
            yield match.start(), match.start(), "\\"


def _span(text: str, event: Any, start: int, end: int) -> Span | None:
    match event:
        case {"Start": "Strong" | "Strikethrough"}:
            return _marked(text, start, end, width=2)
        case {"Start": "Emphasis"}:
            return _marked(text, start, end, width=1)
        case {"Code": _}:
            run = text[start:end][: -len(text[start:end].lstrip("`"))]
            # A backtick in code must not touch those around it.
            pad = " " if "`" in text[start:end].strip("`") else ""
            within = text[start + len(run) : end - len(run)]
            body = start + len(run) + len(within) - len(within.lstrip())
            ends = end - len(run) - len(within) + len(within.rstrip())
            return Span(start, body, ends, end, run + pad, pad + run)
        case {"Start": {"Link": {"link_type": "Inline", "dest_url": address}}} if is_address(address):
            label = text.rfind("](", start, end)
            return Span(start, start + 1, label, end, "[", text[label:end], whole=True)
        case {"Start": {"CodeBlock": {"Fenced": _}}}:
            return _fence(text, start, end)
    return None


def _marked(text: str, start: int, end: int, *, width: int) -> Span:
    return Span(start, start + width, end - width, end, text[start : start + width], text[end - width : end])


def _fence(text: str, start: int, end: int) -> Span | None:
    opening = _FENCE.match(text, start, end)
    if opening is None:
        return None
    last = text.rfind("\n", start, end) + 1
    closed = last >= opening.end() and text[last:end].strip("> \t") == opening["fence"]
    return Span(
        start,
        opening.end(),
        last if closed else end,
        end,
        opening[0].rstrip("\n") + "\n",
        opening["fence"],
        block=True,
        indent=prefix_at(text, start),
    )


def _lines(text: str, code: _Verbatim) -> Iterator[Span]:
    """Yield quoted lines and headings: what goes on in the next part begins with their sign again."""
    for sign in _LINE.finditer(text):
        if sign[0] and sign.start() not in code:
            opener = sign["quote"] or "" if sign.end() in code else sign[0]
            end = text.find("\n", sign.end())
            end = len(text) if end < 0 else end
            yield Span(sign.start(), sign.start() + len(opener), end, end, opener, "")
    if (rest := _REST_QUOTED.search(text)) and rest.start() not in code:
        yield Span(rest.start(), rest.end(), len(text), len(text), ">>> ", "")


def _nested(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans, in order, that lie in each other or apart; not those that cross an earlier one."""
    around: list[int] = []
    for span in spans:
        while around and around[-1] <= span.opens:
            around.pop()
        if not around or span.closes <= around[-1]:
            around.append(span.closes)
            yield span
