"""The profile's attributes: how they are shown and compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import slots


def test_the_always_read_lines_are_those_a_reply_must_never_miss() -> None:
    always = {name for name, slot in slots.SLOTS.items() if slot.always}
    assert always == {"name", "address", "allergy", "diet", "health", "style"}


def test_opposites_are_mutual() -> None:
    for name, slot in slots.SLOTS.items():
        assert slot.opposite is None or slots.slot(slot.opposite).opposite == name


@pytest.mark.parametrize(
    ("attribute", "value", "language", "subject", "line"),
    [
        ("allergy", "花粉", "zh", "self", "我对花粉过敏"),
        ("allergy", "花生", "zh", "女儿", "女儿对花生过敏"),
        ("allergy", "nuts", "en", "wife", "My wife is allergic to nuts"),
        ("home", "Oslo", "en", "Elena", "Elena lives in Oslo"),
        ("address", "小满", "zh", "self", "请叫我小满"),
        ("favourite:colour", "靛蓝", "zh", "self", "我最喜欢的颜色是靛蓝"),
        ("favourite:colour", "indigo", "en", "self", "My favourite colour is indigo"),
    ],
)
def test_a_value_is_shown_as_a_sentence(attribute: str, value: str, language: str, subject: str, line: str) -> None:
    assert slots.render(attribute, value, language, subject) == line


def test_every_slot_renders_in_both_languages_and_for_others() -> None:
    for name in slots.SLOTS:
        attribute = slots.favourite("颜色") if name == "favourite" else name
        assert slots.known(attribute)
        lines = {slots.render(attribute, "X", language, who) for language in ("zh", "en") for who in ("self", "Ann")}
        assert len(lines) == 4
        assert all("X" in line and "{" not in line for line in lines)
        assert slots.label(attribute, "zh") != slots.label(attribute, "en")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("喝乌龙茶", "烏龍茶"),
        ("吃辣", "辣"),
        ("Ｐｅａｎｕｔｓ！", " peanuts "),
        ("3月18号", "March 18th"),
        ("三月十八日", "18 March 1990"),
        ("吃素", "vegetarian"),
        ("素食者", "素食主义者"),
        ("the rain", "rain"),
    ],
)
def test_the_same_value_in_other_words_has_one_key(one: str, other: str) -> None:
    assert slots.key(one) == slots.key(other)


@pytest.mark.parametrize(
    ("one", "other"), [("3月8号", "3月18号"), ("不吃猪肉", "猪肉"), ("苏州", "杭州"), ("纯素", "吃素")]
)
def test_different_values_have_different_keys(one: str, other: str) -> None:
    assert slots.key(one) != slots.key(other)


def test_a_favourite_needs_its_thing_and_the_thing_has_one_name() -> None:
    assert slots.favourite("颜色") == slots.favourite("Color") == "favourite:colour"
    assert not slots.known("favourite")
    assert not slots.known("home:town")
    assert not slots.known("horoscope")


@given(st.text(max_size=60))
def test_a_key_is_stable(value: str) -> None:
    assert slots.key(value) == slots.key(f"  {value}！")
