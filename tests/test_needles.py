"""Needles: what stands in a text and what only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.needles import Needles


@pytest.mark.parametrize(
    ("needle", "text"),
    [
        ("tea", "Tea, please"),
        ("tea", "two teas"),
        ("Al", "my name is Al."),
        ("boss", "the boss's car"),
        ("花粉", "我对花粉过敏"),
        ("花粉", "我對花 粉過敏"),
        ("oslo", "我住在Oslo市"),
        ("５５５－０１０１", "call 555-0101 now"),
        ("rio 2", "R\u200bio\n2"),
        ("过敏", "過敏"),
        ("☕", "a ☕ a day"),
        ("iron den", "at the Iron\nDen"),
    ],
)
def test_a_needle_is_found(needle: str, text: str) -> None:
    assert Needles([needle]).found_in(text)


@pytest.mark.parametrize(
    ("needle", "text"),
    [
        ("tea", "team, theatre, steal"),
        ("Al", "also, always, gala"),
        ("555", "15553"),
        ("555", "order 5551"),
        ("花粉", "花与粉"),
        ("%", "100 %"),
        ("_", "a_b"),
        (".*", "anything"),
        ("", "anything"),
        ("  \u200b ", "anything"),
    ],
)
def test_a_needle_is_not_found(needle: str, text: str) -> None:
    assert not Needles([needle]).found_in(text)


def test_nothing_to_look_for_is_false_and_finds_nothing() -> None:
    assert not Needles([])
    assert not Needles([]).found_in("anything")


@given(st.text(), st.text(), st.text())
def test_no_text_is_a_wildcard_or_an_error(needle: str, before: str, after: str) -> None:
    needles = Needles([needle])
    needles.found_in(before + needle + after)
    if needles:
        assert needles.found_in(f"{before} {needle} {after}")
        assert not needles.found_in("")
