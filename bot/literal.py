r"""Signs of a model's text that are meant as themselves, not as Markdown. Pure; knows no platform and no parser.

Chat text is not written for CommonMark: it holds a<b, 3*4*5, ``__init__``, $5, ``\(x_1\)``, [note]: word, and
Chinese right beside emphasis. So each sign that is meant as itself is replaced by a stand-in of the same length,
which a parser takes for a letter and ``restored`` turns back. It needs no escaping, so it is right inside code, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import regex

Edit = tuple[int, int, str]
"""What takes the place of which characters: from, to, by what."""

_SIGNS: Final = "\\`*_~|<>[]{}()#+-.!:&$=^"
STAND_INS: Final = {ord(sign): 0xFDD0 + n for n, sign in enumerate(_SIGNS)}
"""Noncharacters (U+FDD0 on), which no text may hold, so that they are free for use inside one process."""
_ORIGINALS: Final = {chr(stand_in): chr(sign) for sign, stand_in in STAND_INS.items()}
FENCE_SIGNS: Final = {ord(sign): STAND_INS[ord(sign)] for sign in "`~"}

_NONCHARACTER: Final = regex.compile(r"[\uFDD0-\uFDEF]")
_LITERAL: Final = regex.compile(
    r"""
    (?= [<&$~*_\\:>] | \|\| | [.)]\s ) (?: (?P<formula> \$\$ (?:[^`$\n]{1,400}+ | \n(?![ \t]*\n)){1,99}+ \$\$
        | \\\[ (?:[^`\\\n]{1,400}+ | \\(?!\]|(?<!\\\\)\[) | \n(?![ \t]*\n)){1,99}+ \\\]
        | \\\( (?:[^`\\\n]{1,400}+ | \\(?![()])){1,99}+ \\\) )
    | (?P<kept> \\[\p{P}\p{S}]
        | <(?:https?://[^\s<>]+|[\w.+-]{1,99}@[\w.-]{1,99})> )
    | (?<![0-9A-Za-z_|)\]])\|\|(?=[^\s|])(?P<veiled>(?:[^\n|]|\|(?!\|))++)(?<=\S)\|\|(?![0-9A-Za-z_|(\[])
    | (?P<literal> [<&$]
        | (?<!~)~(?!~)
        | (?<=[0-9A-Za-z)\]])\*(?=[0-9A-Za-z(\[]) | (?<=\d)\*\*(?=\d)
        | (?<!\w)__[a-z]{1,40}(?:_[a-z]{1,40}){0,9}__(?!\w)
        | (?<!\|)\|\|(?!\|)
        | (?<=\]):
        | (?<=^[ \t]{0,40})>(?![ >\n])
        | (?<=^[ \t>]{0,40}0\d{1,8})[.)](?=\s) ) )
    """,
    regex.VERBOSE | regex.MULTILINE,
)
"""Signs meant as themselves: formulas (shown as typed), what would be HTML or an entity, money, "about" (~),
products and powers, ``__names__``, "or" (but no ||spoilers||), what would define a reference, a sign of
comparison at the start of a line, numbers like 01. Escaped signs and addresses in angle brackets are kept."""

_FLANKED: Final = regex.compile(
    r"""
    (?=[*~]) (?:
      (?<=[\p{P}\p{S}])(?<![*~])(?:\*{1,3}|~~)(?P<letter>[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}])
    | (?<=[[\p{P}\p{S}]--[\x21-\x7e]])(?:\*{1,3}|~~)(?P<letter>[\p{L}\p{N}])
    | (?<=(?P<letter>[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]))(?:\*{1,3}|~~)(?![*~])(?=[\p{P}\p{S}]) )
    """,
    regex.VERBOSE | regex.VERSION1,
)
"""Emphasis between punctuation and a letter, as in ``**注意：**这里``: for CommonMark, which has writing with spaces
in mind, it neither opens nor closes there. With punctuation in place of the letter it does."""
_PUNCTUATION: Final = tuple(regex.findall(r"\p{Po}", "".join(map(chr, range(0x0600, 0x2E50)))))
"""What may take a letter's place: one UTF-16 unit each, or the marks of what follows would move."""
_STANDING_IN: Final = regex.compile(r"[\u0600-\u2E4F\uFDD0-\uFDEF]")

_DEEP: Final = regex.compile(
    r"""
    ^(?! [ \t>]* (?P<sign>[-*_]) (?:[ \t]*(?P=sign))+ [ \t]* $)
    (?P<kept> (?:[ \t]* (?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]|$))){8}+ ) (?P<deeper> (?:[ \t]* (?:>|[-+*]|\d{1,9}[.)]))++ )
    """,
    regex.VERBOSE | regex.MULTILINE,
)
"""Quotes and lists in each other, more on one line than anybody means: from the ninth on they are just signs."""
_RULE: Final = regex.compile(r"^[ \t>]*\|?[ \t]*:?-[-:| \t]*\|[-:| \t]*$", regex.MULTILINE)
"""The line below the head of a table."""

_FENCE: Final = regex.compile(
    r"""
      ^[ >\t]*(?P<fence>`{3,}|~{3,})[^\n]*(?:\n[^\n]*)*?(?:\n[ >\t]*(?P=fence)[`~]*[ \t]*$|\Z)
    | ^(?P<before>(?=[ \t]*[^\s`>])[^\n`]++)```(?P<language>[A-Za-z0-9_+\-.\#]*)[ \t]*\n
      (?P<code>(?:[^`]|`(?!``))++)```(?P<after>[^\n]*)
    """,
    regex.VERBOSE | regex.MULTILINE,
)
"""A code block as it should be, or one that begins in the middle of a line, which CommonMark takes for none."""


def stood_in(text: str) -> tuple[str, dict[str, str]]:
    """Return a clean text with stand-ins for the signs meant as themselves, and the signs by their stand-ins."""
    text = _NONCHARACTER.sub("\ufffd", text)
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(_own_lines, text)
    text = _DEEP.sub(_flat, text)
    room = 2 * len(text) // (text.count("\n") + 1)
    # The parser makes up the cells that rows are short of: with columns beyond all reason, that would never end.
    text = _RULE.sub(lambda rule: rule[0].translate(STAND_INS) if rule[0].count("|") > room else rule[0], text)
    text = _LITERAL.sub(_stand_in, text)
    text, letters = _flanked(text)
    return text, _ORIGINALS | letters


def restored(text: str, originals: Mapping[str, str]) -> str:
    """Turn the stand-ins in a piece of a text back."""
    return _STANDING_IN.sub(lambda found: originals.get(found[0], found[0]), text)


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


def _flat(line: regex.Match[str]) -> str:
    return f"{line['kept']}{line['deeper'].translate(STAND_INS)}"


def _flanked(text: str) -> tuple[str, dict[str, str]]:
    """Return a text with signs in place of letters that keep emphasis from being it, and the letters by sign."""
    free = (sign for sign in _PUNCTUATION if sign not in text)
    signs: dict[str, str] = {}
    edits: list[Edit] = []
    for found in _FLANKED.finditer(text):
        letter = found["letter"]
        if letter not in signs:
            signs[letter] = next(free, letter) if letter <= "\uffff" else letter
        edits.append((*found.span("letter"), signs[letter]))
    return replaced(text, edits), {sign: letter for letter, sign in signs.items()}
