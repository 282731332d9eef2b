r"""How a model's Markdown is read: as CommonMark, but what a person reads is never lost. Pure; knows no platform.

Chat text is not written for CommonMark: it holds a<b, 3*4*5, ``__init__``, $5, ``\(x_1\)``, [note]: word, and
Chinese right beside emphasis. So each sign that is meant as itself is first replaced by a stand-in of the same
length, which a parser takes for a letter and ``restore`` turns back. It needs no escaping, so it is right
inside code, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import pyromark
import regex
from rich.cells import cell_len

Event = tuple[Any, int, int]
"""What pyromark says (its ``Event``), and the characters of the text it speaks of: from, to."""
Edit = tuple[int, int, str]
"""What takes the place of which characters: from, to, by what."""

_PARSER: Final = pyromark.Markdown(
    options=pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH | pyromark.Options.ENABLE_TASKLISTS
)
_LEADS: Final = bytes(byte & 0xC0 != 0x80 for byte in range(256))  # noqa: PLR2004 - UTF-8's 10xxxxxx
"""For each byte of UTF-8 whether a character begins with it."""

_SIGNS: Final = "\\`*_~|<>[]{}()#+-.!:&$=^"
STAND_INS: Final = {ord(sign): 0xFDD0 + n for n, sign in enumerate(_SIGNS)}
"""Noncharacters (U+FDD0 on), which no text may hold, so that they are free for use inside one process."""
_ORIGINALS: Final = {stand_in: sign for sign, stand_in in STAND_INS.items()}
_FENCE_SIGNS: Final = {ord(sign): STAND_INS[ord(sign)] for sign in "`~"}

_NONCHARACTER: Final = regex.compile(r"[\uFDD0-\uFDEF]")
_LITERAL: Final = regex.compile(
    r"""
      (?P<formula> \$\$ (?:[^`$\n]{1,400}+ | \n(?![ \t]*\n)){1,99}+ \$\$
        | \\\[ (?:[^`\\\n]{1,400}+ | \\(?!\]) | \n(?![ \t]*\n)){1,99}+ \\\]
        | \\\( (?:[^`\\\n]{1,400}+ | \\(?!\))){1,99}+ \\\) )
    | (?P<kept> \\[\p{P}\p{S}]
        | <(?:https?://[^\s<>]+|[\w.+-]{1,99}@[\w.-]{1,99})> )
    | (?<![0-9A-Za-z_|)\]])\|\|(?=[^\s|])(?P<veiled>(?:[^\n|]|\|(?!\|))++)(?<=\S)\|\|(?![0-9A-Za-z_|(\[])
    | (?P<literal> [<&$]
        | (?<!~)~(?!~)
        | (?<=[0-9A-Za-z)\]])\*(?=[0-9A-Za-z(\[]) | (?<=\d)\*\*(?=\d)
        | (?<!\w)__[a-z]{1,40}(?:_[a-z]{1,40}){0,9}__(?!\w)
        | (?<!\|)\|\|(?!\|)
        | (?<=\]):
        | ^[ \t]*>(?![ >\n])
        | (?<=^[ \t>]{0,40}0\d{1,8})[.)](?=\s) )
    """,
    regex.VERBOSE | regex.MULTILINE,
)
"""Signs meant as themselves: formulas (shown as typed), what would be HTML or an entity, money, "about" (~),
products and powers, ``__names__``, "or" (but no ||spoilers||), what would define a reference, a sign of
comparison at the start of a line, numbers like 01. Escaped signs and addresses in angle brackets are kept."""

_FLANKED: Final = regex.compile(
    r"""
      (?<=[\p{P}\p{S}])(?<![*~])(?:\*{1,3}|~~)(?P<after>[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}])
    | (?<=[[\p{P}\p{S}]--[\x21-\x7e]])(?:\*{1,3}|~~)(?P<after>[\p{L}\p{N}])
    | (?P<before>[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}])(?:\*{1,3}|~~)(?![*~])(?=[\p{P}\p{S}])
    """,
    regex.VERBOSE | regex.VERSION1,
)
"""Emphasis between punctuation and a letter, as in ``**注意：**这里``: for CommonMark, which has writing with spaces
in mind, it neither opens nor closes there. With punctuation in place of the letter it does."""
_PUNCTUATION: Final = tuple(regex.findall(r"\p{Po}", "".join(map(chr, range(0x0600, 0x2E50)))))
"""What may take a letter's place: one UTF-16 unit each, or the marks of what follows would move."""

_FENCE: Final = regex.compile(
    r"""
      ^[ >\t]*(?P<fence>`{3,}|~{3,})[^\n]*(?:\n[^\n]*)*?(?:\n[ >\t]*(?P=fence)[`~]*[ \t]*$|\Z)
    | ^(?P<before>(?=[ \t]*[^\s`>])[^\n`]++)```(?P<language>[A-Za-z0-9_+\-.\#]*)[ \t]*\n
      (?P<code>(?:[^`]|`(?!``))++)```(?P<after>[^\n]*)
    """,
    regex.VERBOSE | regex.MULTILINE,
)
"""A code block as it should be, or one that begins in the middle of a line, which CommonMark takes for none."""
_BREAK: Final = regex.compile(f"{chr(STAND_INS[ord('<')])}br ?/?>", regex.IGNORECASE)
_NUMBER: Final = regex.compile(r"(\d{1,9})([.)])")
_ADDRESS: Final = regex.compile(r"https?://[^\s/]", regex.IGNORECASE)
_LANGUAGE: Final = regex.compile(r"[A-Za-z0-9_+\-.#]*")
_QUOTE: Final = regex.compile(r"(?: {0,3}>)* ?")
_NOT_PREFIX: Final = regex.compile(r"[^>\s]")
_WORD: Final = regex.compile(r"[\p{L}\p{N}]")


@dataclass(frozen=True, slots=True)
class Source:
    """A Markdown text in which signs meant as themselves have stand-ins.

    ``hidden`` is what a reader does not see of it: addresses and titles of links, languages of code.
    """

    text: str
    letters: Mapping[int, int]
    hidden: str

    def restore(self, text: str) -> str:
        """Turn the stand-ins in a piece of the text back."""
        return text.translate(_ORIGINALS).translate(self.letters)


def events(text: str) -> Iterator[Event]:
    """Yield what the parser finds in a text, with ranges in characters."""
    data = text.encode()
    at = list(accumulate(data.translate(_LEADS), initial=0))
    for event, place in _PARSER.events_with_range(text):
        yield event, at[place["start"]], at[place["end"]]


def is_address(url: str) -> bool:
    """Tell whether a link leads somewhere on every platform: to a web address."""
    return _ADDRESS.match(url) is not None


def words(text: str) -> str:
    """Return the letters and digits of a text alone, in order."""
    return "".join(_WORD.findall(text))


def read(text: str) -> Source:
    """Read a clean text: signs meant as themselves get stand-ins, what no chat draws becomes what it does.

    Tables become code with even columns, images links, ``<br>`` a line end; a link that leads nowhere is
    shown as it was typed, and so are the numbers of a list that are out of order.
    """
    text = _FENCE.sub(_own_lines, text)
    text = _LITERAL.sub(_stand_in, _NONCHARACTER.sub("\ufffd", text))
    beside = dict.fromkeys(match["after"] or match["before"] for match in _FLANKED.finditer(text))
    free = (sign for sign in _PUNCTUATION if sign not in text)
    letters = {ord(letter): ord(sign) for letter, sign in zip((x for x in beside if x <= "\uffff"), free, strict=False)}
    text = _FLANKED.sub(lambda match: match[0].translate(letters), text)
    settling = _Settling(text, {sign: letter for letter, sign in letters.items()})
    return settling.settled(list(events(text)))


def replaced(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with stretches (from, to, by what) replaced; of two that overlap the earlier counts."""
    pieces: list[str] = []
    done = 0
    for start, end, new in sorted(edits, key=lambda edit: edit[0]):
        if start >= done:
            pieces += (text[done:start], new)
            done = end
    return "".join([*pieces, text[done:]])


def code_block(code: str, language: str, prefix: str) -> str:
    """Return a fenced code block whose lines, but for the first, begin with ``prefix``."""
    fence = "`" * max([3, *(len(run) + 1 for run in regex.findall("`{3,}", code))])
    return f"\n{prefix}".join([fence + language, *code.removesuffix("\n").split("\n"), fence])


def prefix_at(text: str, start: int) -> str:
    """Return what the lines of a block that begins at ``start`` begin with: quote signs and space."""
    return _NOT_PREFIX.sub(" ", text[text.rfind("\n", 0, start) + 1 : start])


def inside(found: Sequence[Event], index: int) -> Iterator[Event]:
    """Yield what lies in the element that event number ``index`` starts."""
    depth = 1
    for at in range(index + 1, len(found)):
        match found[at][0]:
            case {"Start": _}:
                depth += 1
            case {"End": _}:
                depth -= 1
        if not depth:
            return
        yield found[at]


def _own_lines(block: regex.Match[str]) -> str:
    if block["code"] is None:
        return block[0]
    shown = code_block(block["code"].rstrip(), block["language"], "")
    return "\n".join(filter(str.strip, (block["before"], shown, block["after"].lstrip())))


def _stand_in(found: regex.Match[str]) -> str:
    match found.lastgroup:
        case "kept":
            return found[0]
        case "veiled":
            return f"||{_LITERAL.sub(_stand_in, found['veiled'])}||"
        case _:
            return found[0].translate(STAND_INS)


def _seen(found: Iterable[Event]) -> str:
    """Return what a reader sees of inline elements, with the addresses of links."""
    seen: list[str] = []
    address = ""
    for event, *_ in found:
        match event:
            case {"Text": text} | {"Code": text}:
                seen.append(text)
            case "SoftBreak" | "HardBreak":
                seen.append(" ")
            case {"Start": {"Link": {"link_type": "Inline", "dest_url": address}}}:
                pass
            case {"End": "Link"} if address:
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

    def __init__(self, text: str, letters: Mapping[int, int]) -> None:
        self._text = text
        self._source = Source(text, letters, "")
        self._edits: list[Edit] = []
        self._hidden: list[str] = []
        self._lists: list[_Numbers] = []
        self._link_ends = 0

    def settled(self, found: Sequence[Event]) -> Source:
        """Return the text with everything changed. To be called once."""
        done = 0
        for index, (event, start, end) in enumerate(found):
            if start < done:
                continue
            match event:
                case {"Text": _}:
                    self._breaks(start, end)
                case {"Start": {"Table": _}}:
                    done = self._table(found, index)
                case {"Start": {"Image": link}}:
                    self._image(link, start, end, seen=_seen(inside(found, index)))
                case {"Start": {"Link": link}}:
                    self._link(link, start, end, seen=_seen(inside(found, index)))
                    self._link_ends = end
                case {"Start": {"CodeBlock": kind}}:
                    self._code_block(kind, start, end, empty=next(inside(found, index), None) is None)
                    done = end
                case {"Code": _}:
                    done = end
                case {"Start": {"Heading": _}} if self._text[start] != "#":
                    self._rule(start, end)
                case {"Start": {"List": number}}:
                    self._lists.append(_Numbers(number))
                case {"End": {"List": _}}:
                    self._lists.pop()
                case {"Start": "Item"}:
                    self._item(start)
                case {"TaskListMarker": _}:
                    self._hidden.append("x")
        return Source(replaced(self._text, self._edits), self._source.letters, " ".join(self._hidden))

    def _table(self, found: Sequence[Event], index: int) -> int:
        """Make a table code. Returns where it ends: before lines without a bar, which only happen to follow."""
        _, start, end = found[index]
        rows: list[list[str]] = []
        for at, (event, begins, ends) in enumerate(inside(found, index), index + 1):
            line = self._text[begins:ends]
            match event:
                case {"Start": "TableRow"} if "|" not in line:
                    end = begins
                    break
                case {"Start": "TableHead" | "TableRow"}:
                    rows.append([])
                case {"Start": "TableCell"}:
                    rows[-1].append(_BREAK.sub(" ", _seen(inside(found, at))))
                case {"Start": {"Link": link} | {"Image": link}}:
                    self._address(link)
                case {"End": "TableRow"} if words(_BREAK.sub("", line)) != words("".join(rows[-1])):
                    # More cells than the head has are no cells to the parser.
                    rows[-1] = _BREAK.sub(" ", line).strip().strip("|").split("|")
        shown = [[self._source.restore(cell).strip() for cell in row] for row in rows]
        prefix = prefix_at(self._text, start)
        tail = f"\n{prefix}" if end == found[index][2] else "\n"
        self._edits.append((start, end, code_block(_even(shown), "", prefix) + tail))
        return end

    def _image(self, link: Mapping[str, str], start: int, end: int, *, seen: str) -> None:
        address = self._address(link)
        shown = seen.translate(STAND_INS)
        if start < self._link_ends:
            self._edits.append((start, end, shown))
        elif address is None:
            self._literal(start, start + 2)
        else:
            self._edits.append((start, end, f"[{shown}]({address})" if shown.strip() else f"<{address}>"))

    def _link(self, link: Mapping[str, str], start: int, end: int, *, seen: str) -> None:
        if link["link_type"] != "Inline":
            return
        address = self._address(link)
        if address is None:
            self._literal(start, start + 1)
        elif not seen.strip():
            self._edits.append((start, end, f"<{address}>"))

    def _address(self, link: Mapping[str, str]) -> str | None:
        address = link["dest_url"]
        self._hidden += (address, link["title"])
        return address.replace("(", "%28").replace(")", "%29") if is_address(address) else None

    def _code_block(self, kind: Any, start: int, end: int, *, empty: bool) -> None:
        info = kind["Fenced"] if isinstance(kind, dict) else ""
        self._hidden.append(info)
        if empty and not _LANGUAGE.fullmatch(info):
            self._edits.append((start, end, self._text[start:end].translate(_FENCE_SIGNS)))

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


def _even(rows: Sequence[Sequence[str]]) -> str:
    """Return a table as lines with columns of even width, as wide as a terminal would draw them."""
    columns = max(map(len, rows))
    full = [[*row, *[""] * (columns - len(row))] for row in rows]
    widths = [max(cell_len(row[column]) for row in full) for column in range(columns)]
    lines = [
        " | ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in full
    ]
    return "\n".join([lines[0], "-+-".join("-" * width for width in widths), *lines[1:]])
