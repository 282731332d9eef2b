"""A list on pages: none lost, none doubled, and each page one message of every platform, whatever people say."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.commands.order import excerpt
from bot.commands.paging import PAGE_ENTRIES, cut, turners
from bot.commands.shown import LONGEST_ENTRY, LONGEST_SUBJECT, Shown
from bot.markdown import discord_parts, telegram_parts
from config.locales import phrase
from memory.model import SEQ_BITS

TITLES = ("about", "coming", "happened", "other")
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=700) | st.text(
    r"\`*_~|<>[]{}()#+-.!:&$=^", min_size=1, max_size=700
)


@st.composite
def groups(draw: st.DrawFn) -> list[tuple[str, list[Shown]]]:
    """Groups of lines as :func:`bot.commands.shown.shown` makes them, with every mark there is."""
    made: list[tuple[str, list[Shown]]] = []
    number = 0
    for title in TITLES:
        lines = []
        for _ in range(draw(st.integers(0, 12))):
            number += 1
            mark = draw(st.booleans())
            lines.append(
                Shown(
                    number=number,
                    label=draw(st.sampled_from(["", "form of address", "饮食"])),
                    text=excerpt(draw(WORDS), LONGEST_ENTRY) or "?",
                    subject=excerpt(draw(WORDS), LONGEST_SUBJECT) if mark else "",
                    when="2026-03-02 – 2026-03-09" if mark else "",
                    recurs=mark,
                    since="2026-03-02",
                    inferred=draw(st.booleans()),
                    unsure=draw(st.booleans()),
                    until="2026-03-09" if mark else "",
                    shared=draw(st.booleans()),
                    grouped=mark,
                    outdated="",
                )
            )
        made.append((title, lines))
    return made


@settings(max_examples=60, deadline=None)
@given(groups(), st.sampled_from(["en", "zh"]), st.text(max_size=300))
def test_every_line_is_on_one_page_and_every_page_is_one_message(
    listed: list[tuple[str, list[Shown]]], language: str, words: str
) -> None:
    pages = cut(listed)
    lines = [(title, line) for page in pages for title, part in page for line in part]
    assert lines == [(title, line) for title, part in listed for line in part]
    for number, page in enumerate(pages, 1):
        assert sum(len(part) for _, part in page) <= PAGE_ENTRIES
        text = phrase(
            "known.list",
            language,
            groups=[{"title": title, "entries": part} for title, part in page],
            count=len(lines),
            page=number,
            pages=len(pages),
            words=excerpt(words),
            chosen=True,
            private=False,
        )
        assert len(discord_parts(text, markdown=False)) == 1
        assert len(telegram_parts(text, markdown=False)) == 1


@given(st.integers(1, 400), st.data())
def test_the_buttons_of_a_page_lead_to_its_neighbours_and_fit_the_platform(pages: int, data: st.DataObject) -> None:
    page = data.draw(st.integers(0, pages - 1))
    buttons = turners("known", (1 << 62) | (1 << SEQ_BITS), page, pages)
    targets = [int(button.id.rpartition(":")[2]) for button in buttons]
    assert targets == ([] if pages == 1 else [to for to in (page - 1, page, page + 1) if 0 <= to < pages])
    assert all(len(button.id.encode()) <= 64 for button in buttons)
    assert pages == 1 or f"{page + 1}/{pages}" in [button.label for button in buttons]
