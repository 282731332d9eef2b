"""How a model's Markdown is read: as CommonMark, but what a person reads is never lost. Pure; knows no platform."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final, cast

import pyromark
import regex
from rich.cells import cell_len

from bot.literal import FENCE_SIGNS, STAND_INS, Edit, code_block, replaced, restored, stood_in

Event = tuple[str, Any, int, int]
"""What the parser found: its name (that of an end after "/"), pyromark's data, the characters it is about: from, to."""

_PARSER: Final = pyromark.Markdown(
    options=pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH | pyromark.Options.ENABLE_TASKLISTS
)
_LEADS: Final = bytes(byte & 0xC0 != 0x80 for byte in range(256))  # noqa: PLR2004 - UTF-8's 10xxxxxx
"""For each byte of UTF-8 whether a character begins with it."""

_BREAK: Final = regex.compile(f"{chr(STAND_INS[ord('<')])}[Bb][Rr] ?/?>")
_NUMBER: Final = regex.compile(r"(\d{1,9})([.)])")
_ADDRESS: Final = regex.compile(r"https?://[^\s/]", regex.IGNORECASE)
_INFO: Final = regex.compile(
    r"(?P<language>[A-Za-z0-9_+\-.#]+)(?:$|[:,](?=\S)|[ \t]*(?=[{\[])|[ \t]+(?=\#|//|\w+=))(?P<rest>.*)"
)
"""The language of code, alone or before what is clearly none: a comment, data, attributes, a file name."""
_QUOTE: Final = regex.compile(r"(?: {0,3}>)* ?")
_NOT_PREFIX: Final = regex.compile(r"[^>\s]")
_MOST_SPACE: Final = 4
"""Times the room its cells take that a table with even columns may take."""


@dataclass(frozen=True, slots=True)
class Source:
    """A Markdown text in which signs meant as themselves have stand-ins (bot/literal.py).

    ``originals`` are the signs by their stand-ins. ``hidden`` is what a reader does not see of the text:
    addresses and titles of links, languages of code. ``found`` are the events, where they are known already.
    """

    text: str
    originals: Mapping[str, str]
    hidden: str
    found: Sequence[Event] | None

    def events(self) -> Sequence[Event]:
        """Return what the parser finds in the text."""
        return list(events(self.text)) if self.found is None else self.found

    def restore(self, text: str) -> str:
        """Turn the stand-ins in a piece of the text back."""
        return restored(text, self.originals)


def events(text: str) -> Iterator[Event]:
    """Yield what the parser finds in a text, with ranges in characters."""
    at = range(len(text) + 1) if text.isascii() else list(accumulate(text.encode().translate(_LEADS), initial=0))
    for event, place in _PARSER.events_with_range(text, merge_text=True):
        if isinstance(event, str):
            yield event, None, at[place["start"]], at[place["end"]]
            continue
        # All else it says is a dict of one item, names of elements with data are in turn.
        name, data = cast("dict[str, Any]", event).popitem()
        if name in ("Start", "End"):
            lead = "/" if name == "End" else ""
            name, data = (data, None) if isinstance(data, str) else data.popitem()
            name = lead + name
        yield name, data, at[place["start"]], at[place["end"]]


def is_address(url: str) -> bool:
    """Tell whether a link leads somewhere on every platform: to a web address."""
    return _ADDRESS.match(url) is not None


def words(text: str) -> str:
    """Return the letters and digits of a text alone, in order."""
    return "".join(filter(str.isalnum, text))


def read(text: str) -> Source:
    """Read a clean text: signs meant as themselves get stand-ins, what no chat draws becomes what it does.

    Tables become code with even columns, images links, ``<br>`` a line end; a link that leads nowhere is
    shown as it was typed, and so are the numbers of a list that are out of order, what is written beside the
    language of code, and lists and quotes that are nested deeper than anybody means.
    """
    text, originals = stood_in(text)
    return _Settling(text, originals).settled()


def prefix_at(text: str, start: int) -> str:
    """Return what the lines of a block that begins at ``start`` begin with: quote signs and space."""
    return _NOT_PREFIX.sub(" ", text[text.rfind("\n", 0, start) + 1 : start])


def inside(found: Sequence[Event], index: int) -> Iterator[Event]:
    """Yield what lies in the element that event number ``index`` starts."""
    name, _, start, end = found[index]
    for at in range(index + 1, len(found)):
        event = found[at]
        if event[0][0] == "/" and event[2] == start and event[3] == end and event[0] == f"/{name}":
            return
        yield event


def extent(found: Sequence[Event], index: int) -> tuple[int, int] | None:
    """Return from where to where the content of an element goes; None if it has none."""
    within = [(start, end) for *_, start, end in inside(found, index) if start < end]
    return (within[0][0], max(end for _, end in within)) if within else None


def _seen(found: Iterable[Event], *, addressed: Collection[str] = ("Link",)) -> str:
    """Return what a reader sees of inline elements, with the addresses of those that are ``addressed``."""
    seen: list[str] = []
    address = ""
    for name, data, *_ in found:
        if name in ("Text", "Code"):
            seen.append(data)
        elif name in ("SoftBreak", "HardBreak"):
            seen.append(" ")
        elif name in addressed and data["link_type"] == "Inline":
            address = data["dest_url"]
        elif name[1:] in addressed and address:
            seen.append(f" ({address})")
            address = ""
    return "".join(seen)


@dataclass(slots=True)
class _Numbers:
    """A list on the way: the number its next item must have, None where there are bullets."""

    following: int | None
    turned: bool = False


class _Settling:
    """One walk over what the parser found in a text, gathering what to change in it."""

    def __init__(self, text: str, originals: Mapping[str, str]) -> None:
        self._text = text
        self._source = Source(text, originals, "", None)
        self._edits: list[Edit] = []
        self._hidden: list[str] = []
        self._lists: list[_Numbers] = []
        self._link_ends = 0
        self._breaking = _BREAK.search(text) is not None

    def settled(self) -> Source:
        """Return the text with everything changed. To be called once."""
        found = list(events(self._text))
        done = 0
        for index, (name, data, start, end) in enumerate(found):
            if start < done:
                continue
            match name:
                case "Text" if self._breaking:
                    self._breaks(start, end)
                case "Table":
                    done = self._table(found, index)
                case "Image":
                    done = self._image(found, index)
                case "Link":
                    self._link(found, index)
                case "CodeBlock":
                    self._code_block(
                        data, start, end, blank=not "".join(data for _, data, *_ in inside(found, index)).strip()
                    )
                    done = end
                case "Code":
                    done = end
                case "Heading" if self._text[start] != "#":
                    self._rule(start, end)
                case "List":
                    self._lists.append(_Numbers(data))
                case "/List":
                    self._lists.pop()
                case "Item":
                    self._item(start)
                case "TaskListMarker":
                    self._hidden.append("x" if data else "")
        text = replaced(self._text, self._edits)
        return replace(self._source, text=text, hidden=" ".join(self._hidden), found=None if self._edits else found)

    def _table(self, found: Sequence[Event], index: int) -> int:
        """Make a table code. Returns where it ends: before lines without a bar, which only happen to follow."""
        _, _, start, end = found[index]
        rows: list[list[str]] = []
        for at, (name, data, begins, ends) in enumerate(inside(found, index), index + 1):
            match name:
                case "TableRow" if "|" not in self._text[begins:ends]:
                    end = begins
                    break
                case "TableHead" | "TableRow":
                    rows.append([])
                case "TableCell":
                    rows[-1].append(_BREAK.sub(" ", _seen(inside(found, at), addressed=("Link", "Image"))))
                case "Link" | "Image":
                    self._hidden.append(data["title"])
                case "/TableRow":
                    line = _BREAK.sub(" ", self._text[begins:ends])
                    if words(line) != words("".join(rows[-1])):
                        # More cells than the head has are no cells to the parser.
                        rows[-1] = line.strip().strip("|").split("|")
        shown = [[self._source.restore(cell).strip() for cell in row] for row in rows]
        prefix = prefix_at(self._text, start)
        tail = f"\n{prefix}" if end == found[index][3] else "\n"
        self._edits.append((start, end, code_block(_even(shown), "", prefix) + tail))
        return end

    def _image(self, found: Sequence[Event], index: int) -> int:
        """Make an image a link. Returns where what was done ends."""
        _, link, start, end = found[index]
        if (address := _address(link)) is None and start >= self._link_ends:
            self._literal(start, start + 2)
            return start + 2
        shown = _seen(inside(found, index)).translate(STAND_INS)
        new = f"[{shown}]({address})" if shown.strip() else f"<{address}>"
        self._edits.append((start, end, shown if start < self._link_ends else new))
        self._hidden += (link["title"], link["dest_url"] if shown.strip() or start < self._link_ends else "")
        return end

    def _link(self, found: Sequence[Event], index: int) -> None:
        _, link, start, end = found[index]
        self._link_ends = end
        if link["link_type"] != "Inline":
            return
        if (address := _address(link)) is None:
            self._literal(start, start + 1)
        elif _seen(inside(found, index)).strip():
            self._hidden += (link["title"], link["dest_url"])
        else:
            self._hidden.append(link["title"])
            self._edits.append((start, end, f"<{address}>"))

    def _code_block(self, kind: Any, start: int, end: int, *, blank: bool) -> None:
        """Let stand beside a fence what is a language; all else that is written there is the first line of code."""
        if not isinstance(kind, dict) or not kind["Fenced"]:
            return
        if blank:
            self._edits.append((start, end, self._text[start:end].translate(FENCE_SIGNS)))
            return
        line = self._text[start : self._text.find("\n", start)]
        info = line.lstrip("`~").strip()
        found = _INFO.fullmatch(info)
        language, rest = (found["language"], found["rest"]) if found else ("", info)
        self._hidden.append(language)
        if rest:
            fence = line[: len(line) - len(line.lstrip("`~"))]
            first = f"{prefix_at(self._text, start)}{rest.translate(FENCE_SIGNS)}"
            self._edits.append((start, start + len(line), f"{fence}{language}\n{first}"))

    def _rule(self, start: int, end: int) -> None:
        """Let a line of dashes be a line: in chat nobody means the paragraph above it to be a heading."""
        line = self._text.rfind("\n", start, start + len(self._text[start:end].rstrip())) + 1
        if self._text[line:end].lstrip("> ").startswith("-"):
            self._edits.append((line, line, prefix_at(self._text, start).rstrip() + "\n"))

    def _item(self, start: int) -> None:
        numbers = self._lists[-1]
        number = _NUMBER.match(self._text, start)
        if number is None or numbers.following is None:
            return
        if int(number[1]) != numbers.following:
            # The other sign behind the number begins a new list, which counts from here.
            numbers.turned = not numbers.turned
        numbers.following = int(number[1]) + 1
        if numbers.turned:
            self._edits.append((number.start(2), number.end(2), ")" if number[2] == "." else "."))

    def _breaks(self, start: int, end: int) -> None:
        for tag in _BREAK.finditer(self._text, start, end + 1):
            line = self._text.rfind("\n", 0, tag.start()) + 1
            quote = _QUOTE.match(self._text, line)
            self._edits.append((tag.start(), tag.end(), "\n" + (quote[0] if quote else "")))

    def _literal(self, start: int, end: int) -> None:
        self._edits.append((start, end, self._text[start:end].translate(STAND_INS)))


def _address(link: Mapping[str, str]) -> str | None:
    """Return the address of a link such that it can stand in brackets, None for one that leads nowhere."""
    address = link["dest_url"]
    return address.replace("(", "%28").replace(")", "%29") if is_address(address) else None


def _even(rows: Sequence[Sequence[str]]) -> str:
    """Return a table as lines with columns of even width, as wide as a terminal would draw them.

    They stay uneven where one long cell among short ones would make most of the table space.
    """
    columns = max(map(len, rows))
    full = [[*row, *[""] * (columns - len(row))] for row in rows]
    sizes = [[cell_len(cell) for cell in row] for row in full]
    widths = [max(column) for column in zip(*sizes, strict=True)]
    if len(rows) * sum(widths) > _MOST_SPACE * (sum(map(sum, sizes)) + len(rows) * columns):
        widths = [1] * columns
    lines = [
        " | ".join(cell + " " * (width - size) for cell, size, width in zip(*row, widths, strict=True)).rstrip()
        for row in zip(full, sizes, strict=True)
    ]
    return "\n".join([lines[0], "-+-".join("-" * width for width in widths), *lines[1:]])
