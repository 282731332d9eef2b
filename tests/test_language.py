"""Which language somebody is answered in."""

from __future__ import annotations

import pytest

from bot.language import changed_language


@pytest.mark.parametrize(
    "text",
    ["What do you know?", "please stop that now", "I live in Oslo", "the weather is dull", "how are you today"],
)
def test_a_sentence_of_english_shows_that_somebody_went_over_to_it(text: str) -> None:
    assert changed_language(text, "zh") == "en"


@pytest.mark.parametrize("text", ["你好", "我住在北京", "天气怎么样", "今天晚上吃火锅"])
def test_a_sentence_of_chinese_shows_that_somebody_went_over_to_it(text: str) -> None:
    assert changed_language(text, "en") == "zh"


@pytest.mark.parametrize("text", ["講個故事吧", "我對花粉過敏", "這個是我"])
def test_traditional_characters_show_the_script_of_somebody_who_goes_over_to_chinese(text: str) -> None:
    assert changed_language(text, "en", "zh") == changed_language(text, "zh") == "zh-TW"
    assert changed_language(text, "zh-TW") is None


def test_chinese_that_shows_no_script_is_of_the_script_of_the_platform() -> None:
    assert changed_language("你好", "en", "zh-TW") == "zh-TW"
    assert changed_language("你好", "en", "en") == changed_language("你好", "en", "zh") == "zh"


@pytest.mark.parametrize("text", ["你好", "我的朋友叫陳小明", "皇后", "好的", "東京都 and more"])
def test_one_name_or_none_of_the_other_script_changes_nothing(text: str) -> None:
    assert changed_language(text, "zh") is None


def test_somebody_who_writes_traditional_goes_back_to_simplified_by_writing_it() -> None:
    assert changed_language("我对花粉过敏", "zh-TW") == "zh"
    assert changed_language("我喜欢你", "zh-TW") is None


@pytest.mark.parametrize(
    "text",
    ["ok", "iPhone 15 Pro Max", "git push origin main --force", "Bonjour comment allez vous", "https://ex.org", "👍"],
)
def test_names_commands_and_other_languages_change_nothing_for_a_chinese(text: str) -> None:
    assert changed_language(text, "zh") is None


@pytest.mark.parametrize("text", ["東京都", "咖啡", "こんにちは", ""])
def test_words_alone_change_nothing_for_somebody_who_writes_english(text: str) -> None:
    assert changed_language(text, "en") is None
