"""Text as platforms take it: cleaned, told from blank, and cut into parts. Pure; knows no SDK."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import regex

Measure = Callable[[str], int]
"""Length as a platform counts it. Adds up over code points, each of which counts at least 1."""

_LINE_END: Final = regex.compile(r"\r\n?")
_CONTROL: Final = regex.compile(r"[^\P{Cc}\n\t]")
_INVISIBLE: Final = regex.compile(r"[\p{DI}\p{Cc}\p{Z}\s\u2800]+")
_EMPTY_MARKUP: Final = regex.compile(r"(?:\*\*|__|~~|\|\||``)*")
_CLUSTER: Final = regex.compile(r"\X")
_FENCE: Final = regex.compile(r"^ {0,3}(?P<marker>`{3,}|~{3,})(?P<info>[^\n]*)\n?", regex.MULTILINE)
_CUTS: Final = (
    regex.compile(r"\n[ \t]*\n"),
    regex.compile(r"\n"),
    regex.compile(r"[。！？；…]+[”’」』）)]*|[.!?]+[\"'”’)\]]*\s"),
    regex.compile(r"\s"),
)
"""Where a text is best cut, best first: after a paragraph, a line, a sentence, a word."""


def utf16_length(text: str) -> int:
    """Count UTF-16 units, as Telegram does: a character outside the BMP counts 2."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def clean(text: str) -> str:
    r"""Make any string one that platforms and databases take.

    Surrogate pairs become the character they stand for, lone surrogates U+FFFD; line ends become ``\n``;
    control characters other than ``\n`` and ``\t`` go.
    """
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROL.sub("", _LINE_END.sub("\n", text))


def is_blank(text: str) -> bool:
    """Tell whether nothing would be seen of it: space, invisible characters, empty emphasis ("** **")."""
    return _EMPTY_MARKUP.fullmatch(_INVISIBLE.sub("", text)) is not None


def split(text: str, limit: int, measure: Measure) -> list[str]:
    """Cut a text into parts of at most ``limit`` as ``measure`` counts.

    Cuts after a paragraph, else a line, a sentence, a space, else between grapheme clusters; inside a
    cluster only if it alone is over the limit. A code fence that is cut is closed and opened again with
    its language; where none was, the joined parts equal the text. The cuts in a text do not move when
    more is appended to it, but for the newest. Raises ValueError for a limit below 2.
    """
    if limit < 2:  # noqa: PLR2004 - the width of the widest code point
        raise ValueError(f"a part needs room for one character, not {limit}")
    if measure(text) <= limit:
        return [text]
    # A mark that fills a good part of the limit is not worth repeating: then it is text like any other.
    fences = [fence for fence in _fences(text) if measure(fence.opener + fence.closer) < limit // 2]
    parts: list[str] = []
    start = 0
    while start < len(text):
        part, start = _next_part(text, start, limit=limit, measure=measure, fences=fences)
        parts.append(part)
    return parts


@dataclass(frozen=True, slots=True)
class _Fence:
    """A fenced block: lines ``[opens, body)`` and ``[ends, closes)`` are its marks, between them the code."""

    opens: int
    body: int
    ends: int
    closes: int
    opener: str
    closer: str

    def holds(self, cut: int) -> bool:
        """Whether a cut leaves code on both sides."""
        return self.body < cut < self.ends

    def spoilt(self) -> Iterator[int]:
        """Cuts that would tear a mark or leave it without code."""
        return chain(range(self.opens + 1, self.body + 1), range(self.ends, self.closes))


def _fences(text: str) -> tuple[_Fence, ...]:
    found: list[_Fence] = []
    opening: regex.Match[str] | None = None
    for mark in _FENCE.finditer(text):
        marker, info = mark["marker"], mark["info"]
        if opening is None:
            if "~" in marker or "`" not in info:
                opening = mark
        elif marker.startswith(opening["marker"]) and not info.strip():
            found.append(_fence(opening, mark.start(), mark.end()))
            opening = None
    if opening is not None:
        found.append(_fence(opening, len(text), len(text)))
    return tuple(found)


def _fence(opening: regex.Match[str], ends: int, closes: int) -> _Fence:
    opener = opening[0].rstrip("\n") + "\n"
    return _Fence(opening.start(), opening.end(), ends, closes, opener, opening["marker"])


def _next_part(text: str, start: int, *, limit: int, measure: Measure, fences: Sequence[_Fence]) -> tuple[str, int]:
    """Return the part that begins at ``start`` and where the next one begins."""
    first = bisect_right(fences, start, key=lambda fence: fence.closes)
    near = fences[first : bisect_left(fences, start + limit, key=lambda fence: fence.opens)]
    head = near[0].opener if near and near[0].holds(start) else ""
    reserve = max((measure(fence.closer) + 1 for fence in near), default=0)
    end = _reach(text, start, room=limit - measure(head), measure=measure)
    if end == len(text):
        return head + text[start:], end
    if reserve:
        end = _reach(text, start, room=limit - measure(head) - reserve, measure=measure)
    cut = _best_cut(text, start, end, near)
    chunk = text[start:cut]
    torn = next((fence for fence in near if fence.holds(cut)), None)
    if torn is None:
        return head + chunk, cut
    return head + chunk + ("" if chunk.endswith("\n") else "\n") + torn.closer, cut


def _reach(text: str, start: int, *, room: int, measure: Measure) -> int:
    """Return the furthest end such that ``text[start:end]`` fits into ``room``, at least one code point on."""
    most = min(len(text), start + room)
    sizes = range(start + 1, most + 1)
    return start + max(1, bisect_right(sizes, room, key=lambda end: measure(text[start:end])))


def _best_cut(text: str, start: int, end: int, fences: Sequence[_Fence]) -> int:
    # A slice, not an end position: \X looks back over a run of flags to its beginning, which is
    # quadratic in a long text. One character more shows whether the last cluster really ends at `end`.
    window = text[start : end + 1]
    ends = {start + match.end() for match in _CLUSTER.finditer(window)} - {end + 1}
    whole = ends.difference(*(fence.spoilt() for fence in fences)) or ends
    if not whole:
        return end
    middle = start + (end - start) // 2
    for pattern in _CUTS:
        cuts = (start + match.end() for match in pattern.finditer(window, middle - start))
        if best := max((cut for cut in cuts if cut in whole), default=0):
            return best
    return max(whole)
