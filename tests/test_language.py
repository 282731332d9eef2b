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


@pytest.mark.parametrize("text", ["你好", "我住在北京", "天气怎么样", "講個故事吧", "今天晚上吃火锅"])
def test_a_sentence_of_chinese_shows_that_somebody_went_over_to_it(text: str) -> None:
    assert changed_language(text, "en") == "zh"


@pytest.mark.parametrize(
    "text",
    ["ok", "iPhone 15 Pro Max", "git push origin main --force", "Bonjour comment allez vous", "https://ex.org", "👍"],
)
def test_names_commands_and_other_languages_change_nothing_for_a_chinese(text: str) -> None:
    assert changed_language(text, "zh") is None


@pytest.mark.parametrize("text", ["東京都", "咖啡", "こんにちは", ""])
def test_words_alone_change_nothing_for_somebody_who_writes_english(text: str) -> None:
    assert changed_language(text, "en") is None
