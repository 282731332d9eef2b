"""Text as platforms take it: cleaned, told from blank, and cut into parts. Pure; knows no SDK and no markup."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

import regex

Measure = Callable[[str], int]
"""Length as a platform counts it. Adds up over code points, each of which counts at least 1."""

_UNUSUAL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202d\u202e\ud800-\udfff\ufe00-\ufe0f\U000E0000-\U000E0FFF]"
)
"""What a text has to hold for :func:`clean` to change it."""
_LINE_END: Final = regex.compile(r"\r\n?")
_CONTROL: Final = regex.compile(r"[^\P{Cc}\n\t]")
_HIDING: Final = regex.compile(r"[\U000E0000-\U000E0FFF\uFE00-\uFE0F\u202D\u202E]")
_SMUGGLED: Final = regex.compile(
    r"(?P<flag>\U0001F3F4\U000E0067\U000E0062(?:\U000E0065\U000E006E\U000E0067|\U000E0073\U000E0063\U000E0074"
    r"|\U000E0077\U000E006C\U000E0073)\U000E007F)|(?P<form>\p{Han}[\U000E0100-\U000E01EF])"
    r"|[\U000E0000-\U000E0FFF]+|(?<=[\uFE00-\uFE0F])[\uFE00-\uFE0F]+|[\u202D\u202E]"
)
"""What a model reads and nobody sees: letters made of tags and of variation selectors, and signs that turn the order
of letters round. The flags of England, Scotland and Wales and the forms of Han characters, made of the same, stay."""
_TURNING: Final = regex.compile(r"[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]")
_INVISIBLE: Final = regex.compile(r"[\p{DI}\p{Cc}\p{Z}\s\u2800]+")
_SEEN: Final = regex.compile(r"[^\p{DI}\p{Cc}\p{Z}\s\u2800]")
_EMPTY_MARKUP: Final = regex.compile(r"(?:\*\*|__|~~|\|\||``)*")
_PLAINLY_SEEN: Final = regex.compile(r"[^\p{DI}\p{Cc}\p{Z}\s\u2800*_~|`]")
_CLUSTER: Final = regex.compile(r"\X")
_AHEAD: Final = 16
"""Characters after a part that are looked at to see whether it would end within something whole."""
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
    control characters other than ``\n`` and ``\t`` go, and so do words that are written in invisible signs.
    """
    # Every word that comes in or goes out is cleaned several times, and nearly none needs it.
    if (text.isascii() and text.isprintable()) or _UNUSUAL.search(text) is None:
        return text
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = _CONTROL.sub("", _LINE_END.sub("\n", text))
    if text.isascii() or _HIDING.search(text) is None:
        return text
    return _SMUGGLED.sub(lambda found: found["flag"] or found["form"] or "", text)


def clean_name(name: str) -> str:
    """Make any name one line of letters that are read in the order they are written in."""
    return " ".join(_TURNING.sub("", clean(name)).split())


def is_unseen(text: str) -> bool:
    """Tell whether it is made of space and invisible characters alone."""
    return _SEEN.search(text) is None


def is_blank(text: str) -> bool:
    """Tell whether nothing would be seen of it: space, invisible characters, empty emphasis ("** **")."""
    # Nearly every text shows at its first sign that it is none; this is asked of each frame of an answer.
    first = text[:1]
    if "\u4e00" <= first <= "\u9fff" or ("0" <= first <= "z" and first.isalnum()):
        return False
    return _PLAINLY_SEEN.search(text) is None and _EMPTY_MARKUP.fullmatch(_INVISIBLE.sub("", text)) is not None


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text that is drawn in one way, given by marks in the text around it.

    ``[opens, body)`` and ``[ends, closes)`` are the marks (either may be empty), between them the content.
    A cut in the content writes ``closer`` at the end of its part and ``opener`` at the start of the next.
    Those of a ``block`` stand on lines of their own, behind ``indent``, as every line of its content does.
    What is ``whole`` is not cut at all if it fits into one part. Spans nest; one with an opener alone (the
    sign before a quoted line) may also cross others.
    """

    opens: int
    body: int
    ends: int
    closes: int
    opener: str
    closer: str
    block: bool = False
    indent: str = ""
    whole: bool = False

    def holds(self, cut: int) -> bool:
        """Whether a cut leaves content on both sides."""
        return not self.whole and self.body < cut < self.ends

    def spoilt(self) -> Iterator[int]:
        """Cuts that would tear a mark or leave it without content."""
        if self.whole:
            return iter(range(self.opens + 1, self.closes))
        return chain(range(self.opens + 1, min(self.body + 1, self.closes)), range(self.ends, self.closes))

    def cost(self, measure: Measure) -> int:
        """The most that a cut in the content adds to the parts beside it."""
        return measure(self.opener + self.closer) + (2 * measure(self.indent) + 1 if self.block else 0)


def split(
    text: str, limit: int, measure: Measure, *, spans: Sequence[Span] = (), whole: regex.Pattern[str] | None = None
) -> Iterator[str]:
    """Cut a text into parts of at most ``limit`` as ``measure`` counts; each is cut when it is asked for.

    Cuts after a paragraph, else a line, a sentence, a space, else between grapheme clusters; inside a
    cluster only if it alone is over the limit, inside what ``whole`` matches (no line end) only if nothing
    else is left. ``spans`` (in order of ``opens``, the outer one first) that are cut are closed and opened
    again; without them the joined parts equal the text. The cuts do not move when more is appended to the
    text, but for the newest, as long as the spans before them stay what they were. Raises ValueError for a
    limit below 2.
    """
    if limit < 2:  # noqa: PLR2004 - the width of the widest code point
        raise ValueError(f"a part needs room for one character, not {limit}")
    if measure(text) <= limit:
        return iter([text])
    return _Cutter(text, limit, measure, whole).parts(spans)


@dataclass(frozen=True, slots=True)
class _Cutter:
    text: str
    limit: int
    measure: Measure
    whole: regex.Pattern[str] | None

    def parts(self, spans: Iterable[Span]) -> Iterator[str]:
        """Yield the parts, in order."""
        left = self.affordable(spans)
        start = 0
        while start < len(self.text):
            left = [span for span in left if span.closes > start]
            near = left[: bisect_left(left, start + self.limit, key=lambda span: span.opens)]
            part, start = self.next_part(start, near)
            yield part

    def affordable(self, spans: Iterable[Span]) -> list[Span]:
        """Return the spans whose marks can be repeated: all around one place must leave half of a part."""
        kept: list[Span] = []
        around: list[tuple[int, int]] = []
        for span in spans:
            around = [(closes, cost) for closes, cost in around if closes > span.opens]
            spent = sum(cost for _, cost in around)
            if span.whole and spent + self.measure(self.text[span.opens : span.closes]) <= self.limit:
                kept.append(span)
            elif spent + (cost := span.cost(self.measure)) < self.limit // 2:
                kept.append(replace(span, whole=False) if span.whole else span)
                around.append((span.closes, cost))
        return kept

    def next_part(self, start: int, near: Sequence[Span]) -> tuple[str, int]:
        """Return the part that begins at ``start`` and where the next one begins."""
        held = [span for span in near if span.holds(start)]
        at_line = start == 0 or self.text[start - 1] == "\n"
        room = self.limit - self.measure(_opened("", held, at_line=at_line))
        end = self._reach(start, room)
        if end < len(self.text):
            end = self._best_cut(start, end, room=room, near=near)
        chunk = _closed(self.text[start:end], [span for span in near if span.holds(end)])
        return _opened(chunk, held, at_line=at_line), end

    def _reach(self, start: int, room: int) -> int:
        """Return the furthest end such that ``text[start:end]`` fits into ``room``, at least one code point on."""
        most = min(len(self.text), start + room)
        sizes = range(start + 1, most + 1)
        return start + max(1, bisect_right(sizes, room, key=lambda end: self.measure(self.text[start:end])))

    def _best_cut(self, start: int, end: int, *, room: int, near: Sequence[Span]) -> int:
        torn = _Torn(self.text, start, min(end + _AHEAD, len(self.text)), self.whole)
        spoilt = set(chain.from_iterable(span.spoilt() for span in near))

        def fits(cut: int) -> bool:
            chunk = self.text[start:cut]
            return self.measure(_closed(chunk, [span for span in near if span.holds(cut)])) <= room

        # A slice, not an end position: \X looks back over a run of flags to its beginning, which is
        # quadratic in a long text. One character more shows whether the last cluster really ends at `end`.
        window = self.text[start : end + 1]
        for pattern in _CUTS:
            pauses = [start + match.end() for match in pattern.finditer(window, (end - start) // 2)]
            for cut in reversed(pauses):
                if cut <= end and self._between(cut) and cut not in spoilt and cut not in torn and fits(cut):
                    return cut
        ends = [cut for match in _CLUSTER.finditer(window) if (cut := start + match.end()) <= end]
        tidy = [cut for cut in ends if cut not in spoilt]
        sound = [cut for cut in tidy if cut not in torn]
        last_first = chain.from_iterable(map(reversed, (sound, tidy, ends, range(start + 1, end + 1))))
        return next(filter(fits, last_first), end)

    def _between(self, cut: int) -> bool:
        """Whether a cut after punctuation or space lies between two clusters; there the characters beside it tell."""
        first = _CLUSTER.match(self.text[cut - 1 : cut + 1])
        return first is None or first.end() == 1


@dataclass(frozen=True, slots=True)
class _Torn:
    """The cuts from ``start`` to ``end`` that go through what must stay whole, found by the line when asked for.

    The beginning of such a thing may be all that fits into a part.
    """

    text: str
    start: int
    end: int
    whole: regex.Pattern[str] | None
    lines: dict[int, set[int]] = field(default_factory=dict)

    def __contains__(self, cut: int) -> bool:
        if self.whole is None:
            return False
        line = max(self.start, self.text.rfind("\n", self.start, cut) + 1)
        if line not in self.lines:
            # With the line end: whether a sign would begin a list depends on the space after it.
            after = self.text.find("\n", cut, self.end) + 1
            matches = self.whole.finditer(self.text, line, after or self.end)
            self.lines[line] = set(chain.from_iterable(range(m.start() + 1, m.end()) for m in matches))
        return cut in self.lines[line]


def _opened(chunk: str, held: Sequence[Span], *, at_line: bool) -> str:
    """Return a chunk with the marks of the spans it continues before it."""
    head = "".join(span.opener for span in held if not span.closer)
    if block := next((span for span in held if span.block), None):
        outside = "".join(span.opener for span in held if span.closer and not span.block)
        lead, trail = (block.indent, "") if at_line else ("", block.indent)
        return head + outside + lead + block.opener + trail + chunk
    inline = "".join(span.opener for span in held if span.closer)
    if not inline:
        return head + chunk
    words = chunk.lstrip()
    return head + chunk[: len(chunk) - len(words)] + inline + words


def _closed(chunk: str, held: Sequence[Span]) -> str:
    """Return a chunk with the marks of the spans that go on after it: inline ones right behind its last word."""
    if block := next((span for span in held if span.block), None):
        chunk += "" if chunk.endswith("\n") else "\n"
        return chunk + block.indent + block.closer + "".join(s.closer for s in reversed(held) if not s.block)
    words = chunk.rstrip()
    return words + "".join(span.closer for span in reversed(held)) + chunk[len(words) :]
