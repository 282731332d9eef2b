from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from bot.text import Measure, Span, clean, is_blank, is_unseen, utf16_length
from bot.text import split as split_lazily

MEASURES = st.sampled_from([utf16_length, len])
ANY_TEXT = st.text(st.characters())
"""Every code point, lone surrogates and control characters among them."""
WRITTEN = st.lists(
    st.sampled_from(
        ["a", "word ", "Done. ", "好。", "汉字", "\n", "\n\n", "😀", "👩‍👩‍👧‍👦", "🇩🇪", "é", "\u0301", "<", ">"]
    )
).map("".join)
MARKED = regex.compile(r"<(?P<within>[^<>\s](?:[^<>]*[^<>\s])?)>")
"""A markup of one kind, for what split does with spans whatever they are."""


def split(
    text: str,
    limit: int,
    measure: Measure,
    *,
    spans: Sequence[Span] = (),
    whole: regex.Pattern[str] | None = None,
) -> list[str]:
    return list(split_lazily(text, limit, measure, spans=spans, whole=whole))


def spans(text: str) -> list[Span]:
    return [
        Span(mark.start(), mark.start("within"), mark.end("within"), mark.end(), "<", ">")
        for mark in MARKED.finditer(text)
    ]


@given(ANY_TEXT | WRITTEN, st.integers(2, 60), MEASURES)
@example("<" + "x" * 40 + ">", 9, len)
@example("🇩🇪" * 9, 7, utf16_length)
def test_no_part_is_over_the_limit_or_empty(text: str, limit: int, measure: Callable[[str], int]) -> None:
    parts = split(text, limit, measure, spans=spans(text))
    assert all(measure(part) <= limit for part in parts)
    assert text == "" or all(parts)


@given(ANY_TEXT | WRITTEN, st.integers(2, 60), MEASURES)
def test_joined_parts_equal_a_text_without_spans(text: str, limit: int, measure: Callable[[str], int]) -> None:
    assert "".join(split(text, limit, measure)) == text


@given(WRITTEN, st.integers(2, 60), MEASURES)
def test_of_a_text_with_spans_only_their_marks_are_added(text: str, limit: int, measure: Callable[[str], int]) -> None:
    joined = "".join(split(text, limit, measure, spans=spans(text)))
    bare = regex.compile(r"[<>]")
    assert bare.sub("", joined) == bare.sub("", text)
    assert len(joined) >= len(text)


@given(st.lists(st.sampled_from(["<", ">", "word ", "好。", "\n", "x"])).map("".join), st.integers(12, 60))
def test_every_part_is_balanced_by_itself(text: str, limit: int) -> None:
    balanced = "".join(match[0] for match in MARKED.finditer(text))
    for part in split(balanced, limit, len, spans=spans(balanced)):
        assert not regex.search(r"[<>]", MARKED.sub("", part))


@given(WRITTEN, st.integers(25, 80), MEASURES)
def test_no_grapheme_cluster_that_fits_is_cut(text: str, limit: int, measure: Callable[[str], int]) -> None:
    clusters = regex.findall(r"\X", text)
    if all(measure(cluster) <= limit for cluster in clusters):
        assert [c for part in split(text, limit, measure) for c in regex.findall(r"\X", part)] == clusters


@given(ANY_TEXT)
def test_parts_of_a_clean_text_can_be_encoded(text: str) -> None:
    for part in split(clean(text), 5, utf16_length):
        part.encode()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one two ab\n\nc\nfour five", ["one two ab\n\n", "c\nfour five"]),
        ("one two three\nfour five", ["one two three\n", "four five"]),
        ("One two ab. Three four", ["One two ab. ", "Three four"]),
        ("今天下雨了，路很滑。明天去哪儿玩呢我也不知道", ["今天下雨了，路很滑。", "明天去哪儿玩呢我也不知道"]),
        ("他说：“今天不下雨。”明天去哪儿玩呢我也", ["他说：“今天不下雨。”", "明天去哪儿玩呢我也"]),
        ("one twothree fourfives", ["one twothree ", "fourfives"]),
        ("a" * 20, ["a" * 16, "a" * 4]),
    ],
)
def test_a_part_ends_where_a_reader_would_pause(text: str, parts: list[str]) -> None:
    assert split(text, 16, len) == parts


def test_marks_stand_at_the_words_they_mark_and_the_space_outside() -> None:
    text = "Look: <one two three four five six> seven"
    parts = split(text, 20, len, spans=spans(text))
    assert parts == ["Look: <one two> ", "<three four five> ", "<six> seven"]


def test_a_cut_never_leaves_an_opening_mark_without_content() -> None:
    text = "x" * 14 + " <yyyy yyyy yyyy>"
    assert split(text, 18, len, spans=spans(text)) == ["x" * 14 + " ", "<yyyy yyyy yyyy>"]


def test_what_is_whole_moves_to_the_next_part_if_it_fits_into_one() -> None:
    text = "a b c d e f [one two three four]"
    link = Span(12, 13, len(text) - 1, len(text), "[", "]", whole=True)
    assert split(text, 24, len, spans=[link]) == ["a b c d e f ", "[one two three four]"]
    assert split(text, 16, len, spans=[link]) == ["a b c d e f ", "[one two three] ", "[four]"]
    assert split("ab http://cd ef", 8, len, whole=regex.compile(r"http\S+")) == ["ab ", "http://c", "d ef"]


def test_a_block_is_closed_and_opened_on_lines_of_its_own_behind_its_indent() -> None:
    text = "> {\n> one\n> two\n> three\n> }\n"
    block = Span(2, 4, 24, 28, "{\n", "}", block=True, indent="> ")
    assert split(text, 24, len, spans=[block]) == ["> {\n> one\n> two\n> }", "> {\n> three\n> }\n"]


def test_cuts_stay_where_they_are_while_the_text_grows() -> None:
    text = "".join(f"Sentence number {n}. " for n in range(60))
    whole = split(text, 200, len)
    for length in range(0, len(text), 37):
        grown = split(text[:length], 200, len)
        assert grown[:-1] == whole[: len(grown) - 1]


@pytest.mark.parametrize("emoji", ["😀", "👩‍👩‍👧‍👦"])
def test_emoji_without_a_space_are_cut_between_them(emoji: str) -> None:
    text = emoji * (6_000 // utf16_length(emoji))
    parts = split(text, 4_096, utf16_length)
    assert len(parts) == 2
    assert all(part == emoji * (len(part) // len(emoji)) for part in parts)


@pytest.mark.parametrize(("length", "parts"), [(4_095, 1), (4_096, 1), (4_097, 2)])
def test_a_text_of_exactly_the_limit_is_one_part(length: int, parts: int) -> None:
    assert len(split("a" * length, 4_096, utf16_length)) == parts


@pytest.mark.parametrize("unit", ["a", "好", "🇩🇪", "e\u0301", "\u0301", "a. ", "<a>", "<b", "\n\n", "`" * 3])
def test_a_hundred_kilobytes_are_cut_in_time_that_grows_with_length(unit: str) -> None:
    text = unit * (100_000 // len(unit.encode()))
    began = time.perf_counter()
    parts = split(text, 2_000, utf16_length, spans=spans(text))
    assert time.perf_counter() - began < 3
    assert all(utf16_length(part) <= 2_000 for part in parts)


def test_a_limit_no_character_fits_into_is_refused() -> None:
    with pytest.raises(ValueError, match="room for one character"):
        split("hello", 1, len)


@given(ANY_TEXT)
def test_clean_text_is_valid_and_stays_as_it_is(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert clean(cleaned) == cleaned
    assert not regex.search(r"[^\P{Cc}\n\t]", cleaned)


@given(ANY_TEXT)
def test_a_text_that_needs_no_cleaning_is_told_from_one_that_does(text: str) -> None:
    assert clean(text) == clean(f"{text}\x00")


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("a\ud83d\ude00b", "a😀b"),
        ("a\ud83db\ude00", "a\ufffdb\ufffd"),
        ("a\x00b\x1b[31m\x7f\x85", "ab[31m"),
        ("a\r\nb\rc\td", "a\nb\nc\td"),
        ("<b> & \u200d 👩‍👩‍👧‍👦", "<b> & \u200d 👩‍👩‍👧‍👦"),
    ],
)
def test_only_what_no_platform_takes_is_cleaned_away(raw: str, cleaned: str) -> None:
    assert clean(raw) == cleaned


@pytest.mark.parametrize(
    "text", ["", "   \n", "\u200b\u2060", "** **", "__ __", "_ _", "```\n```", "\ufeff\u3164\u2800", "\x00"]
)
def test_what_nobody_would_see_is_blank(text: str) -> None:
    assert is_blank(text)


def test_signs_are_seen_where_they_are_not_markup() -> None:
    assert is_unseen(" \u200b\u2060\n")
    assert not is_unseen("** **")


@pytest.mark.parametrize("text", ["0", "*", "**没有收尾", "好", "😀", "-", "**x**", "*" * 100_001])
def test_what_somebody_would_see_is_not_blank(text: str) -> None:
    assert not is_blank(text)
