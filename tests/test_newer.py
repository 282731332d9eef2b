"""Of two statements with two values the newer goes first, where a question asks how it is now, and nowhere else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.judge import Contender
from memory.newer import HEAD, TERM, Told, asks_now, newer_first

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def order(question: str, *texts: str, whose: tuple[str, ...] = (), scores: tuple[float, ...] = ()) -> list[str]:
    """The texts, given from the oldest to the newest and ranked in that order, as they go."""
    candidates = [
        Contender(n, "message", scores[n - 1] if scores else 9.0 - 0.1 * n, "full") for n in range(1, len(texts) + 1)
    ]
    told = {
        n: Told(text, START + timedelta(days=n), whose[n - 1] if whose else "") for n, text in enumerate(texts, start=1)
    }
    return [told[each.id].text for each in newer_first(question, candidates, told)]


TWINS = [
    ("How many hens do I have?", "I keep four hens behind the barn", "We have six hens since Easter"),
    ("How much is my rent?", "The rent for my flat is 840 euros", "My landlord wrote: the rent is now 910 euros"),
    ("What is my resting pulse?", "My resting pulse is 64 beats", "The watch says my resting pulse is 58 beats"),
    ("When is my driving test?", "My driving test is on June 3", "They moved my driving test to June 17"),
    ("How many pages has my thesis draft?", "The thesis draft has 80 pages", "The thesis draft has grown to 112 pages"),
    ("What's the humidity in the cellar?", "Humidity in the cellar is 71%", "The cellar humidity has dropped to 55%"),
    ("我养了几只鸡？", "我养了四只鸡", "我养了六只鸡"),
    ("我现在体重多少？", "我的体重是72公斤", "这周体重降到68公斤了"),
    ("我的房租是多少？", "我的房租是3200元", "从这个月起我的房租涨到3500元"),
    ("驾照考试是什么时候？", "驾照考试在6月3日", "驾照考试改到6月17日了"),
    ("书架上有多少本书？", "书架上有120本书", "书架上现在有150本书"),
]


@pytest.mark.parametrize(("question", "older", "newer"), TWINS)
def test_the_newer_of_two_values_goes_first(question: str, older: str, newer: str) -> None:
    assert order(question, older, newer) == [newer, older]


APART = [
    ("How many hens do I have?", "I keep four hens behind the barn", "I have two sons and six nieces"),
    ("How many hens do I have?", "I keep four hens behind the barn", "I still keep four hens there"),
    ("How many hens did I have?", "I keep four hens behind the barn", "We have six hens since Easter"),
    ("How many hens did I have in May 2025?", "I keep four hens behind the barn", "We have six hens since Easter"),
    ("How many hens are in the barn in 2025?", "I keep four hens in the barn", "We have six hens in the barn"),
    ("How many hens have I had in total?", "I keep four hens behind the barn", "We have six hens since Easter"),
    ("Tell me about my hens", "I keep four hens behind the barn", "We have six hens since Easter"),
    ("Which version is installed?", "Version 5.3.0 is installed", "Version 5.4.1 is installed"),
    ("What is my order number?", "My order number is 2024-77", "My order number is 2024-81"),
    ("How old is the cat, who is 7?", "The cat is 7 years old", "The dog is 9 years old"),
    ("我养了几只鸡？", "我养了四只鸡", "我有六只鞋"),
    ("我以前养了几只鸡？", "我养了四只鸡", "我养了六只鸡"),
    ("我一共养过几只鸡？", "我养了四只鸡", "我养了六只鸡"),
    ("表哥的身高是多少？", "表哥的身高是172厘米", "表哥的工号是8841"),
    ("表哥的手机号是多少？", "表哥的手机号是13900001111", "小姨的手机号是13900002222"),
    ("那个长12米的房间有多高？", "那个房间长12米", "那个房间长9米"),
    ("在青岛上班的人生日是什么时候？", "王叔叔的生日是6月3日", "李阿姨的生日是9月8日"),
    ("规模是500人的展会，时间是什么？", "陶瓷展会的时间是6月3日", "木工展会的时间是6月9日"),
]


@pytest.mark.parametrize(("question", "first", "second"), APART)
def test_what_is_no_newer_value_of_the_same_thing_keeps_its_place(question: str, first: str, second: str) -> None:
    assert order(question, first, second) == [first, second]


def test_a_newer_one_that_leads_already_stays_there() -> None:
    candidates = [Contender(2, "fact", 9.0, "full"), Contender(1, "fact", 8.0, "full")]
    told = {n: Told(f"I keep {n} hens", START + timedelta(days=n), "") for n in (1, 2)}
    assert newer_first("How many hens do I keep?", candidates, told) == tuple(candidates)


def test_nobody_overtakes_somebody_else() -> None:
    texts = ("I keep four hens behind the barn", "I keep six hens behind the barn")
    assert order("How many hens do I keep?", *texts, whose=("", "Bo")) == list(texts)


def test_what_scores_far_less_is_about_something_else() -> None:
    texts = ("I keep four hens behind the barn", "I keep six hens behind the barn")
    assert order("How many hens do I keep?", *texts, scores=(9.0, 2.0)) == list(texts)


def test_it_passes_its_twin_and_nothing_else() -> None:
    texts = ("Hens like millet", "I keep four hens", "Hens lay in spring", "I keep six hens")
    moved = order("How many hens do I keep?", *texts)
    assert moved == ["Hens like millet", "I keep six hens", "I keep four hens", "Hens lay in spring"]


def test_of_three_values_the_newest_goes_first_and_each_says_what_it_gained() -> None:
    texts = ["I keep four hens", "I keep five hens", "I keep six hens"]
    assert order("How many hens do I keep?", *texts) == texts[::-1]
    candidates = [Contender(1, "fact", 9.0, "full"), Contender(2, "fact", 8.0, "perhaps", scores={"words": 1.0})]
    told = {n: Told(texts[n - 1], START + timedelta(days=n), "") for n in (1, 2)}
    first, second = newer_first("How many hens do I keep?", candidates, told)
    assert first == Contender(2, "fact", 9.0, "perhaps", None, {"words": 1.0, TERM: 1.0})
    assert second == candidates[0]


@pytest.mark.parametrize("question", ["How many is it?", "多少？", "几个？"])
def test_a_question_about_nothing_moves_nothing(question: str) -> None:
    assert order(question, "I keep four hens", "I keep six hens") == ["I keep four hens", "I keep six hens"]


def test_questions_for_what_was_or_for_a_sum_are_told_apart() -> None:
    assert asks_now("How much do I weigh?")
    assert asks_now("我现在住在几楼？")
    assert not asks_now("How much did I weigh?")
    assert not asks_now("我原来住在几楼？")
    assert not asks_now("How many days are between the two?")


WORDS = st.sampled_from(
    ["I keep", "hens", "six", "4", "now", "%", "12:30", "May 3", "，", "。", "三只", "鸡", "周一", "9,", "."]
)


@given(st.lists(st.lists(WORDS, max_size=12).map(" ".join), max_size=HEAD + 6), st.lists(WORDS, max_size=6))
def test_nothing_is_lost_and_no_score_falls(texts: list[str], asked: list[str]) -> None:
    candidates = [Contender(n, "message", 9.0 - 0.1 * n, "full") for n in range(len(texts))]
    told = {n: Told(text, START + timedelta(days=n % 5), "") for n, text in enumerate(texts) if n % 7}
    found = newer_first(f"How many hens {' '.join(asked)}?", candidates, told)
    assert sorted(each.id for each in found) == list(range(len(texts)))
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert all(each.score >= candidates[each.id].score for each in found)
    assert [each.id for each in found][HEAD:] == list(range(len(texts)))[HEAD:]
