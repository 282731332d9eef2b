"""What a text is found by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.script import fold, folded, visible
from memory.words import PART, query_terms, terms, weights


def found(question: str, text: str) -> bool:
    return bool(set(query_terms(question)) & set(terms(text)))


def test_english_words_meet_by_their_stems_and_stop_words_do_not_count() -> None:
    assert terms("The runners were running to the races") == ["runner", "run", "race"]
    assert query_terms("What is it that you do?") == []


def test_a_han_run_gives_its_characters_and_its_pairs() -> None:
    assert terms("净水器") == ["净", "水", "器", "净水", "水器"]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("滤芯", "上周把客厅的净水器滤芯换了"),
        ("净水器", "上周把客厅的净水器滤芯换了"),
        ("trace", "昨晚重装kx-trace后风扇安静了"),
        ("kx-trace", "昨晚重装kx-trace后风扇安静了"),
        ("大提琴课是哪天", "用户每周五上大提琴课"),
        ("過敏", "我对花粉过敏"),
        ("我对花粉过敏", "我對花粉過敏"),
        ("ＷｉＦｉ", "the wifi is slow"),
        ("20240817", "order 20240817-3 has come"),
        ("10:30", "we meet at 10:30"),
        ("covid", "he had COVID-19"),
    ],
)
def test_d05_what_stands_glued_or_in_other_characters_is_found(question: str, text: str) -> None:
    assert found(question, text)


def test_an_id_of_numbers_finds_only_itself() -> None:
    assert found("20240817-3", "order 20240817-3 has come")
    assert not found("20240817-3", "order 20240817-4 has come")
    assert not found("20240817-3", "3 parcels on 20240817")


def test_numbers_stay_whole() -> None:
    assert not found("12", "the code is 123")


def test_a_question_counts_each_term_once() -> None:
    assert query_terms("猫猫 cat cats") == ["猫", "猫猫", "cat"]


@given(st.text(max_size=200))
def test_any_text_gives_terms_without_blanks(text: str) -> None:
    assert all(term and not term.isspace() for term in terms(text))
    assert set(query_terms(text)) <= set(terms(text))


@pytest.mark.parametrize(
    ("question", "whole"),
    [
        ("我有什么过敏症状", {"过敏", "敏症", "症状"}),
        ("我的猫叫什么", {"猫"}),
        ("猫", {"猫"}),
        ("滤芯在哪", {"滤芯"}),
        ("What about the kx-trace", {"kx", "trace"}),
    ],
)
def test_a_character_counts_whole_only_where_it_is_a_word(question: str, whole: set[str]) -> None:
    found = query_terms(question)
    assert {term for term, counts in zip(found, weights(found), strict=True) if counts == 1} == whole
    assert set(weights(found)) <= {1.0, PART}


@given(st.text(st.characters(codec="ascii"), max_size=40))
def test_a_text_of_plain_letters_is_read_as_it_is_beside_others(text: str) -> None:
    assert terms(f"{text} \u00e9") == [*terms(text), "\u00e9"]


@given(st.text(max_size=40))
def test_a_text_is_folded_sign_by_sign(text: str) -> None:
    assert folded(text) == "".join(fold(part) for character in text for part in visible(character))
