"""A list on pages, each of which fits one message of every platform, and the buttons that turn them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Final

from bot.commands.shown import Shown
from bot.message import Button

PAGE_UNITS: Final = 1_400
"""What the lines of a page may weigh, so that with what stands around them they fit Discord's 2,000 characters."""
PAGE_ENTRIES: Final = 15
"""Memories on a page; a phone shows about as many at once."""
LINE_UNITS: Final = 60
"""What a line says beside the memory's own words."""
_DRAWN: Final = frozenset(r"\`*_~|<>[]{}()#+-.!:&$=^@/")
"""Signs that a platform may have escaped, which makes two of one."""


def weight(line: Shown) -> int:
    """The most that a line may take of a message, in UTF-16 units."""
    texts = [field for field in astuple(line) if isinstance(field, str)]
    units = sum(2 if ord(char) > 0xFFFF or char in _DRAWN else 1 for text in texts for char in text)  # noqa: PLR2004
    return LINE_UNITS + units


def cut(groups: Iterable[tuple[str, Sequence[Shown]]]) -> list[list[tuple[str, list[Shown]]]]:
    """Cut groups of numbered lines into pages; every line is on one page, in its order, under its group's title."""
    pages: list[list[tuple[str, list[Shown]]]] = [[]]
    taken = entries = 0
    for title, lines in groups:
        for line in lines:
            cost = weight(line)
            if entries and (entries == PAGE_ENTRIES or taken + cost > PAGE_UNITS):
                pages.append([])
                taken = entries = 0
            page = pages[-1]
            if not page or page[-1][0] != title:
                page.append((title, []))
            page[-1][1].append(line)
            taken, entries = taken + cost, entries + 1
    return pages


def turners(kind: str, list_: int, page: int, pages: int) -> tuple[Button, ...]:
    """The buttons under a page (from 0) of a list: back, where one is, on; none when there is one page only."""
    if pages <= 1:
        return ()
    around = ((page - 1, "‹"), (page, f"{page + 1}/{pages}"), (page + 1, "›"))
    return tuple(Button(f"{kind}:{list_}:{to}", label) for to, label in around if 0 <= to < pages)
