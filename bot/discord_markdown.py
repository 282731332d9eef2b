"""Markdown as Discord draws it: rewritten where it draws otherwise, and what may not be torn in it. Pure; no SDK."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import regex

from bot.commonmark import Event, events, extent, inside, is_address, prefix_at, read
from bot.literal import STAND_INS, Edit, code_block, replaced
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
_RISK: Final = regex.compile(
    r"""
      (?P<url> https?://[^\s<>\\]+)
    | [\\*_~|`] | \[(?=[^\]\n]{0,300}\]\() | <(?=https?://)
    | (?<=^[ \t]{0,9})(?: \#(?=\#{0,2}\ ) | [-+](?=\#?\ ) | >(?=\ |>>\ ) )
    | (?<=^[ \t]{0,9}\d{1,9})\.(?=\s)
    """,
    regex.VERBOSE | regex.MULTILINE,
)
_SPANNING: Final = ("Strong", "Strikethrough", "Emphasis", "Code", "Link", "CodeBlock")
_H3: Final = 3


def as_typed(text: str) -> str:
    """Return a text such that Discord shows every sign of it as it is. Addresses stay links."""
    return _RISK.sub(lambda match: match[0] if match["url"] else "\\" + match[0], text)


def drawn(text: str) -> tuple[str, Callable[[], list[Span]]]:
    """Return a clean Markdown text as Discord draws it, and what finds the spans of it that a cut must close."""
    source = read(text)
    found = source.events()
    code = _Verbatim(found)
    edits = [*_blocks(source.text, found), *_typed(source.text, code)]
    settled = replaced(source.text, edits)
    return source.restore(settled), lambda: spans_of(settled, list(events(settled)) if edits else found)


def spans_of(text: str, found: Sequence[Event]) -> list[Span]:
    """Return what is emphasised, quoted, code or a link in a text that was read, nested, in order."""
    code = _Verbatim(found)
    spans = [span for event in found if event[0] in _SPANNING and (span := _span(text, *event)) is not None]
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
        self._ranges = [(start, end) for name, _, start, end in found if name in ("Code", "CodeBlock")]

    def __contains__(self, place: int) -> bool:
        before = bisect_right(self._ranges, place, key=lambda code: code[0])
        return before > 0 and place < self._ranges[before - 1][1]


def _blocks(text: str, found: Sequence[Event]) -> Iterator[Edit]:
    """Yield how headings below the third level become bold, and code that Discord would not see a plain fence."""
    for index, (name, data, start, end) in enumerate(found):
        match name:
            case "Heading" if int(data["level"][1]) > _H3:
                if (within := extent(found, index)) is not None:
                    # Bold in bold would end it, so a heading with emphasis in it is one of the third level.
                    opener, closer = ("### ", "") if "*" in text[slice(*within)] else ("**", "**")
                    yield start, within[0], opener
                    yield within[1], end, closer + "\n"
            case "Code" if text.startswith("```", start) and "``" not in data:
                # Three backticks would be a fence where they begin a part.
                yield start, end, f"`` {text[start:end].strip('`').strip()} ``"
            case "CodeBlock":
                code = "".join(data for _, data, *_ in inside(found, index))
                if not _GOOD_FENCE.fullmatch(text[start:end]) or "```" in code:
                    yield from _refenced(text, data, start, end, code=code)


def _refenced(text: str, kind: Any, start: int, end: int, *, code: str) -> Iterator[Edit]:
    prefix = prefix_at(text, start)
    # A zero-width space keeps three backticks from ending the block: Discord knows no longer fence.
    code = code.replace("```", "`\u200b`\u200b`")
    if isinstance(kind, dict):
        block = code_block(code, kind["Fenced"], prefix)
        yield start, end, block + ("\n" if text[start:end].endswith("\n") else "")
    elif text[start - len(prefix) : start] == prefix:
        around = prefix.rstrip() + " " if ">" in prefix else ""
        yield start - len(prefix), end, around + code_block(code, "", around) + "\n"


def _typed(text: str, code: _Verbatim) -> Iterator[Edit]:
    """Yield the backslashes before signs that are meant as themselves."""
    for match in _TYPED.finditer(text):
        if match["sign"] and match.start() not in code:
            yield match.start(), match.start(), "\\"


def _span(text: str, name: str, data: Any, start: int, end: int) -> Span | None:
    match name:
        case "Strong" | "Strikethrough":
            return _marked(text, start, end, width=2)
        case "Emphasis":
            return _marked(text, start, end, width=1)
        case "Code":
            run = text[start:end][: -len(text[start:end].lstrip("`"))]
            # A backtick in code must not touch those around it.
            pad = " " if "`" in text[start:end].strip("`") else ""
            within = text[start + len(run) : end - len(run)]
            body = start + len(run) + len(within) - len(within.lstrip())
            ends = end - len(run) - len(within) + len(within.rstrip())
            return Span(start, body, ends, end, run + pad, pad + run)
        case "Link" if data["link_type"] == "Inline" and is_address(data["dest_url"]):
            label = text.rfind("](", start, end)
            return Span(start, start + 1, label, end, "[", text[label:end], whole=True)
        case "CodeBlock" if isinstance(data, dict):
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
