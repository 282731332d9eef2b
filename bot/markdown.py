"""Markdown as each platform shows it, cut into messages. Pure; knows no SDK."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import regex
from telegramify_markdown import convert
from telegramify_markdown.config import RenderConfig

from bot.commonmark import events, inside, is_address, read, words
from bot.discord_markdown import WHOLE, as_typed, drawn, spans_of
from bot.text import clean, is_blank, is_unseen, split, utf16_length

_MOST_MARKS: Final = 100
"""Entities of one message that Telegram heeds."""
_USEFUL: Final = ("pre", "text_link", "code", "blockquote", "spoiler", "strikethrough", "bold", "underline", "italic")
"""Which of too many marks stay, first what would be missed most; of one kind those at the beginning."""
_ABOVE: Final = "x\n\n"
_VERBATIM: Final = ("pre", "code")

_ADDRESS: Final = regex.compile(r"https?://[!#-'*-;=?-Z\\^-~]+", regex.IGNORECASE)
_BREAK: Final = regex.compile(r"<br ?/?>", regex.IGNORECASE)


def _rendering() -> RenderConfig:
    rendering = RenderConfig.isolated()
    rendering.cite_expandable = False
    signs = rendering.markdown_symbol
    signs.heading_level_1 = signs.heading_level_2 = signs.heading_level_3 = signs.heading_level_4 = ""
    signs.unordered_list_item, signs.task_completed, signs.task_uncompleted = "•", "☑", "☐"
    return rendering


_RENDERING: Final = _rendering()


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of a part that is drawn otherwise.

    ``kind`` is the name of a Telegram message entity, ``offset`` and ``length`` are UTF-16 units.
    """

    kind: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None

    @property
    def end(self) -> int:
        """Where it ends, in UTF-16 units."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Part:
    """The text of one message, with the marks that cannot be written in the text itself."""

    text: str
    marks: tuple[Mark, ...] = ()

    @property
    def plain(self) -> Part:
        """The same words without marks."""
        return Part(self.text)


def telegram_parts(text: str, *, markdown: bool, limit: int = 4096) -> list[Part]:
    """Cut a text into Telegram messages of at most ``limit`` UTF-16 units, none blank.

    Markdown is converted as a whole, then cut, the marks with it. The texts of the parts, joined, are the
    converted text but for space at the cuts, and for invisible characters where a part held nothing else.
    Words are never lost: where the converter would lose one, the text is shown as it was written. The cuts
    stay where they are while the text grows, but for the newest, as long as what was converted before them
    stays what it was (the end of a long ``**`` changes it).
    """
    text = clean(text)
    if (is_blank if markdown else is_unseen)(text):
        return []
    shown, marks = _converted(text) if markdown else (text, [])
    parts: list[Part] = []
    offset = 0
    for piece in split(shown, limit, utf16_length, whole=_ADDRESS):
        end = offset + utf16_length(piece)
        if not is_unseen(piece):
            within = [mark for mark in marks if mark.offset < end and mark.end > offset]
            parts.append(_part(piece, [replace(mark, offset=mark.offset - offset) for mark in within]))
        offset = end
    return parts


def discord_parts(text: str, *, markdown: bool, limit: int = 2000) -> list[Part]:
    """Cut a text into Discord messages of at most ``limit`` characters, none blank.

    Markdown is rewritten where Discord draws it otherwise. Each part is balanced by itself: emphasis,
    spoilers, code and quotes that are cut are closed and opened again, which is all that is added to the
    text. What is not Markdown gets a backslash before each sign that would be taken for markup.
    """
    text = clean(text)
    if (is_blank if markdown else is_unseen)(text):
        return []
    shown, spans = drawn(text) if markdown else (as_typed(text), [])
    if is_blank(shown):
        shown, spans = as_typed(text), []
    parts = split(shown, limit, len, spans=spans, whole=WHOLE)
    return [Part(part.strip()) for part in parts if not is_blank(part)]


def summary(text: str, limit: int) -> str:
    """Return the beginning of a long answer and the outline of the rest, in Markdown.

    The beginning ends with a paragraph or a sentence; if headings come after it, it takes half of ``limit``
    characters and the headings that fit the other half. "…" says that there is more. Raises ValueError for
    a limit below 16.
    """
    if limit < 16:  # noqa: PLR2004 - some words, and some of the outline
        raise ValueError(f"a summary needs room for some words, not {limit}")
    source = read(clean(text).strip())
    settled = source.restore(source.text)
    headings = [(start, f"- {source.restore(heading)}\n") for start, heading in _headings(source.text)]
    more = "\n\n…"
    room = limit // 2 if headings and headings[-1][0] >= limit // 2 else limit - len(more)
    opening = split(settled, room, len, spans=spans_of(source.text), whole=WHOLE)[0]
    outline = ""
    for start, line in headings:
        if len(opening.rstrip() + outline + line + more) > limit:
            break
        outline += line if start >= len(opening) else ""
    return f"{opening.rstrip()}\n\n{outline}…"


def _headings(text: str) -> list[tuple[int, str]]:
    """Return where each heading of a text that was read begins, and what it says."""
    found = list(events(text))
    headings: list[tuple[int, str]] = []
    for index, (event, start, _) in enumerate(found):
        match event:
            case {"Start": {"Heading": _}}:
                within = [(begins, ends) for _, begins, ends in inside(found, index) if begins < ends]
                if within:
                    headings.append((start, text[within[0][0] : max(ends for _, ends in within)]))
    return headings


def _converted(text: str) -> tuple[str, list[Mark]]:
    """Return a Markdown text as Telegram shows it, and its marks, each within or beside another."""
    source = read(text)
    # The converter puts no line end before code in a list when nothing stands before the list.
    shown, entities = convert(_ABOVE + source.text, latex_escape=False, config=_RENDERING)
    shown = source.restore(shown[len(_ABOVE) :])
    lost = Counter(words(_BREAK.sub("", text))) - Counter(words(shown)) - Counter(words(source.hidden))
    if lost or is_blank(shown):
        return text, []
    marks = [
        Mark(
            entity.type,
            entity.offset - len(_ABOVE),
            entity.length,
            url=source.restore(entity.url) if entity.url else None,
            language=source.restore(entity.language).split(" ")[0] if entity.language else None,
        )
        for entity in entities
    ]
    return shown, list(_lawful(marks))


def _lawful(marks: Sequence[Mark]) -> Iterator[Mark]:
    """Yield marks as Telegram lets them overlap: nothing beside code, no quote in a quote, links to somewhere.

    https://core.telegram.org/bots/api#formatting-options
    """
    links = [mark for mark in marks if mark.kind == "text_link" and is_address(mark.url or "")]
    code = [mark for mark in marks if mark.kind in _VERBATIM and not _overlapped(mark, links)]
    yield from links
    yield from code
    quoted = 0
    for mark in sorted(marks, key=lambda mark: mark.offset):
        if mark.kind == "blockquote":
            if mark.offset >= quoted:
                quoted = mark.end
                yield mark
        elif mark.kind in _USEFUL and mark.kind not in (*_VERBATIM, "text_link"):
            yield from _around(mark, code)


def _overlapped(mark: Mark, others: Sequence[Mark]) -> bool:
    """Whether one of ``others``, which lie apart and in order, covers some of a mark."""
    first = bisect_right(others, mark.offset, key=lambda other: other.end)
    return first < len(others) and others[first].offset < mark.end


def _around(mark: Mark, code: Sequence[Mark]) -> Iterator[Mark]:
    """Yield what is left of a mark outside of code."""
    at = mark.offset
    for other in code[bisect_right(code, at, key=lambda other: other.end) :]:
        if other.offset >= mark.end:
            break
        if other.offset > at:
            yield replace(mark, offset=at, length=other.offset - at)
        at = other.end
    if at < mark.end:
        yield replace(mark, offset=at, length=mark.end - at)


def _part(piece: str, marks: Sequence[Mark]) -> Part:
    """Return a message: space at its ends goes, for the platform would cut it off and the marks would be amiss.

    Code at the beginning keeps its indent: the platform spares what a mark covers.
    """
    words_only = piece.strip()
    lead = len(piece) - len(piece.lstrip())
    if any(mark.kind == "pre" and mark.offset <= utf16_length(piece[:lead]) for mark in marks):
        lead = piece.rfind("\n", 0, lead) + 1
        words_only = piece[lead:].rstrip()
    shift = utf16_length(piece[:lead])
    data = words_only.encode("utf-16-le")
    clipped = (_clipped(mark, shift, data) for mark in marks)
    kept = sorted((mark for mark in clipped if mark.length), key=lambda mark: _USEFUL.index(mark.kind))[:_MOST_MARKS]
    return Part(words_only, tuple(sorted(kept, key=_place)))


def _place(mark: Mark) -> tuple[int, int, bool]:
    """What marks are ordered by: each before those that lie in it, a quote before what fills it."""
    return mark.offset, -mark.length, mark.kind != "blockquote"


def _clipped(mark: Mark, shift: int, data: bytes) -> Mark:
    """Return what is left of a mark in a text (UTF-16) that begins ``shift`` units later, without space at its ends."""
    start, end = max(mark.offset - shift, 0), max(mark.end - shift, 0)
    covered = data[2 * start : 2 * end].decode("utf-16-le")
    lead = 0 if mark.kind == "pre" else len(covered) - len(covered.lstrip())
    return replace(mark, offset=start + utf16_length(covered[:lead]), length=utf16_length(covered[lead:].rstrip()))
