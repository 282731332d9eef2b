"""What came beside the words, opened for one turn: pictures for a model that sees, files of text, and the rest.

All of it is working memory: it goes into one request and is gone with it. Nothing is kept here or anywhere.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import logging
from base64 import b64encode
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final, Literal

import charset_normalizer
import regex

from bot.message import Media, MediaError, MediaKind
from bot.text import clean, clean_name
from config.settings import MediaSettings
from memory.ports import TokenCounter

Content = str | list[dict[str, Any]]
"""What a chat message holds: words, or parts of OpenAI's chat format ("text" and "image_url")."""
Why = Literal["kind", "size", "unreadable", "binary"]
"""Why something was not opened: nobody here can, it is too large or one too many, it did not come, it is no text."""

MOST_PICTURES: Final = 4
"""Pictures of a turn that are shown; each costs what a page of text does, and an album holds ten."""
MOST_FILES: Final = 4
"""Files of a turn that are read."""
READ_SECONDS: Final = 30.0
"""Longest wait for the content of one file; a platform that works needs a second for the sizes taken here."""
READS_AT_ONCE: Final = 4
"""Files of a turn that are fetched at the same time."""
LONGEST_NAME: Final = 64
"""Characters of a file name that are kept; longer ones are messages in disguise."""

_Form = Literal["picture", "text"]
_MOST: Final[dict[_Form, int]] = {"picture": MOST_PICTURES, "text": MOST_FILES}

_PICTURES: Final = (
    ("image/png", regex.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", regex.compile(rb"\xff\xd8\xff")),
    ("image/gif", regex.compile(rb"GIF8[79]a")),
    ("image/webp", regex.compile(rb"RIFF....WEBP", regex.DOTALL)),
)
"""The formats every endpoint that sees takes, by how their files begin."""
_PICTURE_NAMES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})

_TEXT_NAMES: Final = frozenset({
    ".txt", ".text", ".md", ".markdown", ".rst", ".log", ".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml", ".toml",
    ".ini", ".cfg", ".conf", ".xml", ".html", ".htm", ".svg", ".css", ".js", ".mjs", ".jsx", ".ts", ".tsx", ".vue",
    ".py", ".ipynb", ".java", ".kt", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".go", ".rs", ".rb", ".php", ".pl",
    ".lua", ".r", ".swift", ".sql", ".sh", ".ps1", ".bat", ".diff", ".patch", ".tex", ".bib", ".srt", ".vtt", ".lrc",
    ".ics", ".vcf", ".eml",
})  # fmt: skip
"""Names of text, whatever the platform takes it for (".ts" is a film to some)."""
_TEXT_TYPES: Final = regex.compile(
    r"|text/.+|application/octet-stream|(?:application|image)/(?:.+\+)?(?:json|xml|yaml)"
)
"""Types worth a look: text, and what may be anything."""

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks; that of UTF-32 begins like that of UTF-16, so it is looked for first."""
_FAVOURED: Final = frozenset({"gb18030", "big5", "big5hkscs", "cp1252"})
"""Taken when as clean as the guess: short texts fit several charsets, and these are our people's."""
_MESS: Final = 0.5
"""Share of odd neighbours up to which charset-normalizer believes in a charset. Its default, 0.2, refuses a quarter of
Chinese Markdown in UTF-16 without a mark; what is no text at all is told by its control characters."""
_MARKUP: Final = regex.compile(rb"[!-/:-?]+|(?<![\x80-\xff])[@\[-`{-~]+")
"""Signs that are no letters and no part of one: in every charset these bytes are single, or follow a single one."""
_BINARY: Final = regex.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_LONGEST_TOKEN: Final = 16
"""Characters a token is reckoned with at most on average, so that the rest of a long file is never counted."""
_LINE_END: Final = regex.compile(r"\n")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as it came; ``mime`` is what its content says, never what anybody claims."""

    mime: str
    data: bytes
    name: str


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file of text, cleaned. ``cut`` when more followed; ``text`` then ends with a whole line if it can."""

    name: str
    text: str
    cut: bool


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something that was not opened, and why. A picture sent as a file is an image."""

    kind: MediaKind
    name: str
    why: Why


@dataclass(frozen=True, slots=True)
class Opened:
    """What came beside the words, each in its order. Names are one line of at most LONGEST_NAME characters."""

    images: tuple[Picture, ...] = ()
    texts: tuple[TextFile, ...] = ()
    unseen: tuple[Unseen, ...] = ()

    def blind(self) -> Opened:
        """The same for a model that takes no pictures."""
        untaken = tuple(Unseen("image", picture.name, "kind") for picture in self.images)
        return Opened(texts=self.texts, unseen=(*untaken, *self.unseen))


class _Closed(Exception):
    """Something that stays unopened."""

    def __init__(self, why: Why) -> None:
        super().__init__(why)
        self.why: Why = why


async def opened(media: Sequence[Media], settings: MediaSettings, count: TokenCounter) -> Opened:
    """Open what can be opened, at most MOST_PICTURES and MOST_FILES; what cannot is told as unseen.

    The files share ``settings.text_tokens`` tokens, as ``count`` counts them. Waits READ_SECONDS at most for
    each item, for READS_AT_ONCE at a time. Raises nothing of its own.
    """
    if not media:
        return Opened()
    places = asyncio.Semaphore(READS_AT_ONCE)
    forms = [_form(item) for item in media]
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_open(item, form, limit, places))
            for item, form, limit in zip(media, forms, _limits(forms, settings), strict=True)
        ]
    found = [task.result() for task in tasks]
    files = [file for file in found if isinstance(file, TextFile)]
    return Opened(
        images=tuple(picture for picture in found if isinstance(picture, Picture)),
        texts=await asyncio.to_thread(_shared, files, settings.text_tokens, count) if files else (),
        unseen=tuple(rest for rest in found if isinstance(rest, Unseen)),
    )


def as_content(text: str, images: Sequence[Picture]) -> Content:
    """Return the content of a chat message: ``text``, or parts of OpenAI's chat format when there are pictures."""
    if not images:
        return text
    # Some endpoints refuse an empty part.
    words = [{"type": "text", "text": text}] if text else []
    return [*words, *({"type": "image_url", "image_url": {"url": _data_url(picture)}} for picture in images)]


def as_words(content: Content) -> str:
    """Return what of a content can be read: a picture is only named."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] if part["type"] == "text" else "[picture]" for part in content)


def _data_url(picture: Picture) -> str:
    return f"data:{picture.mime};base64,{b64encode(picture.data).decode('ascii')}"


def _one_line(name: str) -> str:
    """A file name as a prompt may hold it: it cannot open a line of its own, and keeps its ending."""
    line = clean_name(name)
    return line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 17]}…{line[-16:]}"


def _form(item: Media) -> _Form | None:
    """What an item seems to be by kind, name and type; its content decides later."""
    mime = item.mime.partition(";")[0].strip().lower()
    suffix = PurePath(item.name).suffix.lower()
    match item.kind:
        case "image":
            return "picture"
        case "file" if suffix in _TEXT_NAMES:
            return "text"
        case "file" if suffix in _PICTURE_NAMES or (mime.startswith("image/") and not mime.endswith("+xml")):
            return "picture"
        case "file" if _TEXT_TYPES.fullmatch(mime):
            return "text"
        case _:
            return None


def _limits(forms: Sequence[_Form | None], settings: MediaSettings) -> Iterator[int | Why]:
    """Yield how many bytes may be read of each item, or why none."""
    most = {
        "picture": settings.image_bytes if settings.images else 0,
        "text": settings.text_bytes if settings.text_tokens else 0,
    }
    begun: Counter[_Form] = Counter()
    for form in forms:
        if form is None or not most[form]:
            yield "kind"
            continue
        begun[form] += 1
        yield most[form] if begun[form] <= _MOST[form] else "size"


async def _open(
    item: Media, form: _Form | None, limit: int | Why, places: asyncio.Semaphore
) -> Picture | TextFile | Unseen:
    name = _one_line(item.name)
    try:
        data = await _content(item, limit, places)
        return _picture(name, data) if form == "picture" else await asyncio.to_thread(_file, name, data)
    except _Closed as closed:
        return Unseen("image" if form == "picture" else item.kind, name, closed.why)


async def _content(item: Media, limit: int | Why, places: asyncio.Semaphore) -> bytes:
    """Fetch an item of at most ``limit`` bytes. Raises _Closed."""
    if isinstance(limit, str):
        raise _Closed(limit)
    if item.size is not None and item.size > limit:
        raise _Closed("size")
    try:
        async with places, asyncio.timeout(READ_SECONDS):
            data = await item.read(limit)
    except (MediaError, TimeoutError) as error:
        # Neither the name nor the platform's words: the one is a person's, the other may hold an address with a token.
        log.warning("something a message came with could not be fetched: %s, %s", item.kind, type(error).__name__)
        raise _Closed("unreadable") from error
    if len(data) > limit:
        raise _Closed("size")
    return data


def _picture(name: str, data: bytes) -> Picture:
    """The picture in ``data``. Raises _Closed when it is of no format that models take."""
    mime = next((mime for mime, begin in _PICTURES if begin.match(data)), None)
    if mime is None:
        raise _Closed("kind")
    return Picture(mime, data, name)


def _file(name: str, data: bytes) -> TextFile:
    """The text in ``data``, whole. Raises _Closed when it is none."""
    text = _decoded(data)
    if text is None or _BINARY.search(text):
        raise _Closed("binary")
    return TextFile(name, clean(text).rstrip(), cut=False)


def _decoded(data: bytes) -> str | None:
    """Read text in whatever charset: by its mark, as UTF-8 if it is, else the likeliest; None when none fits."""
    charset = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    with contextlib.suppress(UnicodeDecodeError):
        return data.decode(charset)
    guesses = charset_normalizer.from_bytes(_telling(data), threshold=_MESS, enable_fallback=False)
    if (best := guesses.best()) is None:
        return None
    guess = next((guess for guess in guesses if guess.encoding in _FAVOURED and guess.chaos <= best.chaos), best)
    with contextlib.suppress(UnicodeDecodeError):
        return data.decode(guess.encoding)
    return None


def _telling(data: bytes) -> bytes:
    """The lines that tell a charset: without ASCII and markup, which every charset has and which count as mess.

    UTF-16 without a mark, known by its zero bytes, stays as it is.
    """
    if b"\0" in data:
        return data
    return b"\n".join(_MARKUP.sub(b" ", line) for line in data.splitlines() if not line.isascii())


def _shared(files: Sequence[TextFile], room: int, count: TokenCounter) -> tuple[TextFile, ...]:
    """Cut files so that together they take at most ``room`` tokens; what a short one leaves goes to the longer ones."""
    shares = dict(enumerate(files))
    shortest_first = sorted(shares, key=lambda number: len(files[number].text))
    for left, number in zip(range(len(files), 0, -1), shortest_first, strict=True):
        shares[number] = _cut(files[number], room // left, count)
        room -= count(shares[number].text)
    return tuple(shares.values())


def _cut(file: TextFile, room: int, count: TokenCounter) -> TextFile:
    """Keep at most ``room`` tokens of a file: whole lines, or the beginning of the first when that is longer."""
    near = file.text[: room * _LONGEST_TOKEN]
    if near == file.text and count(near) <= room:
        return file

    def fitting(ends: Sequence[int]) -> int:
        return bisect_right(ends, room, key=lambda end: count(near[:end]))

    lines = [end.start() for end in _LINE_END.finditer(near)]
    whole = fitting(lines)
    return replace(file, text=near[: lines[whole - 1] if whole else fitting(range(1, len(near) + 1))], cut=True)
