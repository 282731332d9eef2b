"""Markdown as each platform shows it, cut into messages. Pure; knows no SDK."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Final

import regex
from telegramify_markdown import convert
from telegramify_markdown.config import RenderConfig

from bot.commonmark import Source, extent, is_address, read
from bot.discord_markdown import WHOLE, as_typed, drawn, spans_of
from bot.text import clean, is_blank, is_unseen, split, utf16_length

LONGEST: Final = 24_000
"""Characters of the longest text that is read as Markdown, so that no text holds up all others. With it or without,
a longer one takes more than five messages anywhere and goes as a file (bot/delivery.py)."""
_MOST_GROWTH: Final = 2
_ROOM: Final = 1_000
"""How much longer than what was written may be what is shown: twice, and so many characters."""
_MOST_MARKS: Final = 100
"""Entities of one message that Telegram heeds."""
_USEFUL: Final = ("pre", "text_link", "code", "blockquote", "spoiler", "strikethrough", "bold", "underline", "italic")
"""Which of too many marks stay, first what would be missed most; of one kind those at the beginning."""
_ABOVE: Final = "x\n\n"
_VERBATIM: Final = ("pre", "code")

_MENTION: Final = regex.compile(r"(?<![\w@])@\w{2,}", regex.ASCII)
"""What Telegram makes a mention of by itself: whoever bears the name is called, wherever they are."""
_MANY: Final = 20
"""Mentions that are marked one by one; more are marked as one stretch."""
_ADDRESS: Final = regex.compile(r"https?://[!#-'*-;=?-Z\\^-~]+", regex.IGNORECASE)
_CODE: Final = regex.compile(r"(```.*?```|``.+?``|`[^`\n]+`)", regex.DOTALL)
_BARE: Final = regex.compile(r"(?<![<\\])https?://[^\s<>()]+(?:\([^\s<>()]*\)[^\s<>()]*)*", regex.IGNORECASE)
_AFTER: Final = ".,;:!?'\"*_~|。，；：！？、”’》】]"
"""What ends a sentence or emphasis, not an address."""
_BREAK: Final = regex.compile(r"<[Bb][Rr] ?/?>")


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


def telegram_parts(text: str, *, markdown: bool, limit: int = 4096, most: int | None = None) -> list[Part]:
    """Cut a text into Telegram messages of at most ``limit`` UTF-16 units, none blank, the first ``most`` of them.

    Markdown is converted as a whole, then cut, the marks with it. The texts of the parts, joined, are the
    converted text but for space at the cuts, and for invisible characters where a part held nothing else.
    Words are never lost: where the converter would lose one, the text is shown as it was written. The cuts
    stay where they are while the text grows, but for the newest, as long as what was converted before them
    stays what it was (the end of a long ``**`` changes it). Fewer parts than ``most`` are the whole text. More
    than LONGEST characters are shown as they were written, unless their beginning is all that is asked for.
    """
    return _parts(text, partial(_telegram, limit=limit), markdown=markdown, most=most)


def discord_parts(text: str, *, markdown: bool, limit: int = 2000, most: int | None = None) -> list[Part]:
    """Cut a text into Discord messages of at most ``limit`` characters, none blank, the first ``most`` of them.

    Markdown is rewritten where Discord draws it otherwise. Each part is balanced by itself: emphasis,
    spoilers, code and quotes that are cut are closed and opened again, which is all that is added to the
    text. What is not Markdown gets a backslash before each sign that would be taken for markup. ``most`` and
    LONGEST as for Telegram.
    """
    return _parts(text, partial(_discord, limit=limit), markdown=markdown, most=most)


def uncalled(part: Part) -> Part:
    """Return a Telegram message in which an @name calls nobody: drawn as code, it is left alone by the platform."""
    names = [match.span() for match in _MENTION.finditer(part.text)]
    if len(names) > _MANY:
        names = [(names[0][0], names[-1][1])]
    calls = [Mark("code", utf16_length(part.text[:begin]), utf16_length(part.text[begin:end])) for begin, end in names]
    fixed = _Apart(sorted((mark for mark in part.marks if mark.kind in _VERBATIM), key=_place))
    code = _Apart([left for call in calls for left in _around(call, fixed)])
    if not code.marks:
        return part
    others = (left for mark in part.marks if mark.kind not in _VERBATIM for left in _around(mark, code))
    return Part(part.text, tuple(_nested([*code.marks, *fixed.marks, *others])))


def unopened(part: Part) -> Part:
    """Return a Discord message whose addresses are opened by nobody but whoever presses them: they get no preview.

    To make one, the platform fetches the address, with every word in it. It is longer by two characters an address.
    """
    pieces = _CODE.split(part.text)
    return Part("".join(piece if place % 2 else _BARE.sub(_bracketed, piece) for place, piece in enumerate(pieces)))


def _bracketed(match: regex.Match[str]) -> str:
    address = match[0].rstrip(_AFTER)
    return f"<{address}>{match[0][len(address) :]}"


def summary(text: str, limit: int) -> str:
    """Return the beginning of a long answer and the outline of the rest, in Markdown.

    The beginning ends with a paragraph or a sentence; if headings come after it, it takes half of ``limit``
    characters and the headings that fit the other half, of those among the first LONGEST characters. "…" says
    that there is more. Raises ValueError for a limit below 16.
    """
    if limit < 16:  # noqa: PLR2004 - some words, and some of the outline
        raise ValueError(f"a summary needs room for some words, not {limit}")
    source = read(clean(text).strip()[:LONGEST])
    settled = source.restore(source.text)
    headings = [(start, f"- {source.restore(heading)}\n") for start, heading in _headings(source)]
    more = "\n\n…"
    room = limit // 2 if headings and headings[-1][0] >= limit // 2 else limit - len(more)
    opening = next(split(settled, room, len, spans=spans_of(source.text, source.events()), whole=WHOLE))
    outline = ""
    for start, line in headings:
        if len(opening.rstrip() + outline + line + more) > limit:
            break
        outline += line if start >= len(opening) else ""
    return f"{opening.rstrip()}\n\n{outline}…"


def _parts(text: str, cut: Callable[..., Iterator[Part]], *, markdown: bool, most: int | None) -> list[Part]:
    text = clean(text)
    if (is_blank if markdown else is_unseen)(text):
        return []
    if markdown and len(text) <= LONGEST:
        return list(islice(cut(text, markdown=True), most))
    if markdown and most is not None and len(parts := list(islice(cut(text[:LONGEST], markdown=True), most))) == most:
        return parts
    return list(islice(cut(text, markdown=False), most))


def _telegram(text: str, *, markdown: bool, limit: int) -> Iterator[Part]:
    shown, marks = _converted(text) if markdown else (text, [])
    offset = 0
    for piece in split(shown, limit, utf16_length, whole=_ADDRESS):
        end = offset + utf16_length(piece)
        if not is_unseen(piece):
            yield _part(piece, offset, [mark for mark in marks if mark.offset < end and mark.end > offset])
        offset = end


def _discord(text: str, *, markdown: bool, limit: int) -> Iterator[Part]:
    shown, spans = drawn(text) if markdown else (as_typed(text), list)
    if is_blank(shown):
        shown, spans = as_typed(text), list
    for piece in split(shown, limit, len, spans=spans() if len(shown) > limit else (), whole=WHOLE):
        if not is_blank(piece):
            yield Part(piece.strip())


def _headings(source: Source) -> list[tuple[int, str]]:
    """Return where each heading of a text that was read begins, and what it says."""
    found = source.events()
    return [
        (start, source.text[slice(*within)])
        for index, (name, _, start, _) in enumerate(found)
        if name == "Heading" and (within := extent(found, index)) is not None
    ]


def _converted(text: str) -> tuple[str, list[Mark]]:
    """Return a Markdown text as Telegram shows it, and its marks, each within or beside another."""
    source = read(text)
    # The converter puts no line end before code in a list when nothing stands before the list.
    shown, entities = convert(_ABOVE + source.text, latex_escape=False, config=_RENDERING)
    shown = source.restore(shown[len(_ABOVE) :])
    if len(shown) > _MOST_GROWTH * len(text) + _ROOM or is_blank(shown) or _loses(text, shown, source.hidden):
        return text, []
    marks = [
        Mark(
            entity.type,
            entity.offset - len(_ABOVE),
            entity.length,
            url=source.restore(entity.url) if entity.url else None,
            language=source.restore(entity.language) if entity.language else None,
        )
        for entity in entities
    ]
    return shown, list(_nested(_lawful(marks)))


def _loses(text: str, shown: str, hidden: str) -> bool:
    """Whether a letter or digit of a text is neither shown nor, by right, hidden."""
    left = Counter(shown + hidden)
    return any(sign.isalnum() and count > left[sign] for sign, count in Counter(_BREAK.sub("", text)).items())


def _lawful(marks: Sequence[Mark]) -> Iterator[Mark]:
    """Yield marks as Telegram lets them overlap: nothing beside code, no quote in a quote, links to somewhere.

    https://core.telegram.org/bots/api#formatting-options
    """
    links = _Apart([mark for mark in marks if mark.kind == "text_link" and is_address(mark.url or "")])
    code = _Apart([mark for mark in marks if mark.kind in _VERBATIM and links.cover(mark) is None])
    yield from links.marks
    yield from code.marks
    quoted = 0
    for mark in sorted(marks, key=lambda mark: mark.offset):
        if mark.kind == "blockquote":
            if mark.offset >= quoted:
                quoted = mark.end
                yield mark
        elif mark.kind in _USEFUL and mark.kind not in (*_VERBATIM, "text_link"):
            yield from _around(mark, code)


class _Apart:
    """Marks that lie apart and in order."""

    def __init__(self, marks: Sequence[Mark]) -> None:
        self.marks = marks
        self._ends = [mark.end for mark in marks]

    def cover(self, mark: Mark) -> Mark | None:
        """Return the first of them that covers some of another mark."""
        first = bisect_right(self._ends, mark.offset)
        return self.marks[first] if first < len(self.marks) and self.marks[first].offset < mark.end else None


def _around(mark: Mark, code: _Apart) -> Iterator[Mark]:
    """Yield what is left of a mark outside of code."""
    left: Mark | None = mark
    while left is not None and (other := code.cover(left)) is not None:
        if other.offset > left.offset:
            yield replace(left, length=other.offset - left.offset)
        left = replace(left, offset=other.end, length=left.end - other.end) if other.end < left.end else None
    if left is not None:
        yield left


def _nested(marks: Iterable[Mark]) -> Iterator[Mark]:
    """Yield marks, of which one that begins in another and goes on behind it becomes two, one of them within."""
    left = deque(sorted(marks, key=_place))
    around: list[int] = []
    while left:
        mark = left.popleft()
        while around and around[-1] <= mark.offset:
            around.pop()
        if around and mark.end > around[-1]:
            beyond = replace(mark, offset=around[-1], length=mark.end - around[-1])
            insort(left, beyond, key=_place)
            mark = replace(mark, length=around[-1] - mark.offset)
        around.append(mark.end)
        yield mark


def _part(piece: str, offset: int, marks: Sequence[Mark]) -> Part:
    """Return a message: space at its ends goes, for the platform would cut it off and the marks would be amiss.

    Code at the beginning keeps its indent: the platform spares what a mark covers. The piece begins ``offset``
    units from where those of the marks are counted.
    """
    words_only = piece.strip()
    lead = len(piece) - len(piece.lstrip())
    if any(mark.kind == "pre" and mark.offset - offset <= utf16_length(piece[:lead]) for mark in marks):
        lead = piece.rfind("\n", 0, lead) + 1
        words_only = piece[lead:].rstrip()
    shift = offset + utf16_length(piece[:lead])
    data = words_only.encode("utf-16-le")
    clipped = (_clipped(mark, shift, data) for mark in marks)
    kept = [mark for mark in clipped if mark.length]
    if len(kept) > _MOST_MARKS:
        kept = sorted(kept, key=lambda mark: _USEFUL.index(mark.kind))[:_MOST_MARKS]
    return Part(words_only, tuple(sorted(kept, key=_place)))


def _place(mark: Mark) -> tuple[int, int, int]:
    """What marks are ordered by: each before those that lie in it, a quote before what fills it."""
    return mark.offset, -mark.length, -1 if mark.kind == "blockquote" else _USEFUL.index(mark.kind)


def _clipped(mark: Mark, shift: int, data: bytes) -> Mark:
    """Return what is left of a mark in a text (UTF-16) that begins ``shift`` units later, without space at its ends."""
    start, end = max(mark.offset - shift, 0), min(max(mark.offset + mark.length - shift, 0), len(data) // 2)
    covered = data[2 * start : 2 * end].decode("utf-16-le")
    lead = 0 if mark.kind == "pre" else len(covered) - len(covered.lstrip())
    trail = len(covered) - len(covered.rstrip())
    length = max(0, end - start - lead - trail)  # space counts one unit a character
    if length == mark.length and not shift:
        return mark
    return Mark(mark.kind, start + lead, length, mark.url, mark.language)
