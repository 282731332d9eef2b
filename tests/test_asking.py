"""What a message asks for: an answer, to be remembered, and in which language it wants to be talked to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.language import changed_language, language_of
from bot.message import ChatRef, Incoming, Press
from memory import is_question, wants_remembering

QUESTIONS = [
    "我有什么过敏症状", "我一般去哪儿健身", "你还记得我的名字吗", "我叫什么来着", "我多大了", "今天好不好",
    "我的生日？", "你呢", "提醒我一下我对什么过敏", "告诉我我的生日", "我住哪兒", "where do I live",
    "tell me where I live", "Is it raining", "So what do I like", "I like tea. Do you know my name",
    "my birthday?", "How old am I",
]  # fmt: skip
STATEMENTS = [
    "我今天很累", "我没什么事", "我过几天去北京", "我正忙着呢", "我对花粉过敏", "哪怕下雨也要去", "帮我挑件外套",
    "谢谢", "I live in Oslo", "I moved to Oslo, which is nice", "What a day!", "Thanks",
    "👍", "", "   ",
]  # fmt: skip
WISHES = [
    "记住我喜欢蓝色", "请记住：我的密码是hunter2", "记一下，我周三不在", "remember that my bike is in the cellar",
    "Please remember: the router is in the attic", "Hi. Remember I am off on Friday.",
]  # fmt: skip
NO_WISHES = [
    "Remember when we met?", "remember to call me", "do you remember my name?", "I remember that day", "记得提醒我",
    "别忘了我的电话", "Remember that time in Rome?", "“记住我喜欢蓝色”", "remember " * 400,
]  # fmt: skip


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_is_one_with_or_without_its_mark(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_is_no_question(text: str) -> None:
    assert not is_question(text)


@pytest.mark.parametrize("text", WISHES)
def test_a_wish_to_be_remembered_is_heard_even_if_it_cannot_be_granted(text: str) -> None:
    assert wants_remembering(text)


@pytest.mark.parametrize("text", NO_WISHES)
def test_what_only_sounds_like_a_wish_is_none(text: str) -> None:
    assert not wants_remembering(text)


@pytest.mark.parametrize(
    ("text", "known", "changed"),
    [
        ("你好", "en", "zh"),
        ("你好", "zh", None),
        ("ok 👍", "zh", None),
        ("yes please", "zh", None),
        ("Let us speak English", "zh", "en"),
        ("Let us speak English", "en", None),
        ("12345", "zh", None),
        ("", "zh", None),
    ],
)
def test_a_person_changes_language_by_saying_enough_in_another(text: str, known: str, changed: str | None) -> None:
    assert changed_language(text, known) == changed


@pytest.mark.parametrize(
    ("text", "hint", "language"),
    [
        ("你好", None, "zh"),
        ("hi", "zh-Hans", "zh"),
        ("Hello there, my friend", "zh_CN", "en"),
        ("12", "de", "en"),
        ("12", "", "en"),
    ],
)
def test_a_stranger_is_answered_as_they_write_or_as_their_platform_says(
    text: str, hint: str | None, language: str
) -> None:
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert language_of(Incoming(ChatRef("test", "dm:1"), "1", "", "1", text, noon, hint)) == language


def test_a_press_has_no_words_and_goes_by_the_hint() -> None:
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert language_of(Press(ChatRef("test", "dm:1"), "1", "", "b", noon, "zh")) == "zh"
