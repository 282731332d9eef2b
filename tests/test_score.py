"""How well a row answers: each term by itself, and what must never change a score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from memory.dates import PartialDate
from memory.index import OwnerIndex
from memory.lexical import Background, Words, WordSearch
from memory.lexicon import (
    after_the_bot,
    asking_part,
    asks,
    holds_name,
    mentioned,
    named,
    needs_context,
    only_asks,
    personal,
)
from memory.model import Span
from memory.score import BOOST, Question, Ranking, freshness, rank, standard
from memory.segments import tells_nothing
from memory.words import query_terms
from tests.units import START, index_of, known, row, said

NOW = START + timedelta(days=30)
PLAIN = Background()


def everything(index: OwnerIndex) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.ones(len(index.rows), dtype=bool)


def ranked(index: OwnerIndex, text: str, **parts: object) -> Ranking:
    question = replace(Question(text, tuple(query_terms(text))), **parts)  # type: ignore[arg-type]
    return rank(index, question, everything(index), now=NOW, background=PLAIN)


def words(index: OwnerIndex, text: str) -> Words:
    return WordSearch(index, everything(index)).find(query_terms(text), PLAIN)


def order(ranking: Ranking) -> list[int]:
    return [int(place) for place in np.argsort(-ranking.total, kind="stable")]


def test_a_line_hears_half_of_the_line_before_it_and_less_of_the_next() -> None:
    index = index_of([said(1, "plain talk"), said(2, "plain marmalade"), said(3, "plain talk")])
    scores = words(index, "marmalade").rows
    assert scores[1] > scores[2] > scores[0] > 0


def test_neighbours_count_only_within_a_session() -> None:
    index = index_of([said(1, "marmalade"), said(2, "plain talk", session=2)])
    assert words(index, "marmalade").rows[1] == 0


def test_rare_words_weigh_more_than_common_ones() -> None:
    index = index_of([known(1, "tea marmalade"), *(known(n, "tea cup") for n in range(2, 9))])
    assert words(index, "marmalade").rows[0] > words(index, "tea").rows[0]


def test_rows_outside_the_pool_change_no_score() -> None:
    few = index_of([known(1, "tea marmalade"), known(2, "tea cup")])
    many = index_of([known(1, "tea marmalade"), known(2, "tea cup"), *(known(n, "tea tea") for n in range(3, 40))])
    pool = np.arange(len(many.rows)) < 2
    alone = words(few, "tea marmalade")
    among = WordSearch(many, pool).find(query_terms("tea marmalade"), PLAIN)
    assert np.allclose(alone.rows, among.rows[:2])
    assert alone.idf == pytest.approx(among.idf)


def test_a_line_of_a_session_about_the_matter_outranks_the_same_line_elsewhere() -> None:
    talk = [said(1, "the boat"), said(2, "the sails"), said(3, "the boat again"), said(4, "it was blue")]
    other = [said(n, "it was blue" if n == 8 else "of bread", session=2) for n in (5, 6, 7, 8)]
    assert order(ranked(index_of([*other, *talk]), "the colour of the boat")).index(3) < 4


def test_the_vector_decides_where_no_word_is_shared() -> None:
    units = [known(n, f"text{n}") for n in range(1, 6)]
    index = index_of(units, {n: (1, n / 10, 0) for n in range(1, 6)})
    result = ranked(index, "question", vector=row(0.89, 0.45, 0)[0])
    assert order(result)[0] == 4
    assert set(result.explain(4)) >= {"meaning", "cosine"}
    assert "words" not in result.explain(4)


def test_a_row_without_a_vector_is_not_punished_for_it() -> None:
    index = index_of([known(1, "a"), known(2, "b"), known(3, "c")], {1: (1, 0), 2: (0, 1)})
    result = ranked(index, "question", vector=row(1, 0)[0])
    assert order(result) == [0, 2, 1]


def test_deviations_of_a_tiny_memory_are_shrunk() -> None:
    tiny, large = np.array([0.0, 1.0]), np.array([0.0, 1.0] * 500)
    usual = (0.0, 1.0)
    small = standard(tiny, np.ones(2, bool), usual)[1]
    assert 0 < small - standard(tiny, np.ones(2, bool), usual)[0] < 2
    assert standard(large, np.ones(1000, bool), usual)[1] == pytest.approx(1.0, abs=0.05)
    assert standard(np.zeros(1), np.ones(1, bool), (0.0, 0.0)).tolist() == [0.0]


def test_the_one_named_speaker_is_preferred() -> None:
    index = index_of([said(1, "I paint", speaker="Ann"), said(2, "I paint", speaker="Bob", session=2)])
    assert order(ranked(index, "What does Bob paint?"))[0] == 1
    assert named("What do Ann and Bob paint?", ("Ann", "Bob")) is None
    assert named("Annual report", ("Ann",)) is None
    assert mentioned("What do Ann and Bob paint?", ("Ann", "Bob", "Cy")) == ["Ann", "Bob"]


def test_memories_about_the_one_named_person_are_preferred() -> None:
    index = index_of([known(1, "likes tea"), known(2, "likes tea", subject="妈妈")])
    assert order(ranked(index, "妈妈 likes what tea"))[0] == 1


def test_a_named_date_lifts_what_was_said_on_it_and_hides_nothing() -> None:
    index = index_of([known(1, "rain"), known(30, "rain")])
    result = ranked(index, "rain on March 2", dates=(PartialDate(month=3, day=2),))
    assert order(result) == [1, 0]
    assert result.terms["date"].tolist() == [0, 1]
    assert ranked(index, "三月二日下雨", dates=(PartialDate(month=3, day=2),)).terms["date"].tolist() == [0, 1]


def test_english_talk_of_days_past_counts_up_to_ten_days_later() -> None:
    index = index_of([known(24 * 9, "a"), known(24 * 12, "b")])
    assert ranked(index, "on March 2", dates=(PartialDate(month=3, day=2),)).terms["date"].tolist() == [1, 0]


def test_an_event_is_found_by_the_interval_asked_about() -> None:
    day = timedelta(days=1)
    event = replace(known(1, "concert"), kind="event", span=Span(NOW + day, NOW + day * 2, "day", "UTC"))
    index = index_of([event, known(2, "concert")])
    tomorrow = Span(NOW + day, NOW + 2 * day, "day", "UTC")
    assert ranked(index, "what is on", spans=(tomorrow,)).terms["date"].tolist() == [1, 0]
    later = Span(NOW + 3 * day, NOW + 4 * day, "day", "UTC")
    assert ranked(index, "what is on", spans=(later,)).terms["date"].tolist() == [0, 0]


def test_a_recurring_event_is_found_on_each_of_its_days() -> None:
    start = datetime(2025, 3, 5, 6, tzinfo=START.tzinfo)
    weekly = Span(start, start + timedelta(hours=2), "hour", "Asia/Shanghai", rrule="FREQ=WEEKLY;BYDAY=WE")
    index = index_of([replace(known(1, "gym"), kind="event", span=weekly)])
    wednesday = Span(
        datetime(2025, 3, 25, 16, tzinfo=START.tzinfo), datetime(2025, 3, 26, 16, tzinfo=START.tzinfo), "day", "UTC"
    )
    thursday = Span(wednesday.end, wednesday.end + timedelta(days=1), "day", "UTC")
    assert ranked(index, "明天", spans=(wednesday,)).terms["date"].tolist() == [1]
    assert ranked(index, "明天", spans=(thursday,)).terms["date"].tolist() == [0]


def test_a_question_among_the_lines_ranks_below_its_answer() -> None:
    index = index_of([said(1, "Where is the marmalade?"), said(2, "The marmalade is in the larder")])
    assert order(ranked(index, "Where is the marmalade?")) == [1, 0]


def test_a_reply_to_the_same_question_outranks_a_reply_to_another() -> None:
    talk = [
        said(1, "where did you buy the green lamp?"),
        said(2, "at the old market", speaker="Ada"),
        said(3, "how was your day?"),
        said(4, "at the old market", speaker="Ada"),
    ]
    found = ranked(index_of(talk), "where was the lamp bought")
    assert found.terms["reply"][1] > found.terms["reply"][3] == 0
    assert found.terms["answer"].tolist() == [0, 1, 0, 1]


def test_nobody_answers_themselves_and_a_bot_only_who_is_after_its_words() -> None:
    index = index_of(
        [
            said(1, "which tea is best?"),
            said(2, "which tea, really"),
            said(3, "which tea do you have?"),
            said(4, "green tea", speaker="bot", bot=True),
        ]
    )
    assert not ranked(index, "which tea").terms["reply"].any()
    assert ranked(index, "which tea", after_bot=True).terms["reply"].nonzero()[0].tolist() == [3]


def test_meaning_counts_less_where_the_words_are_found() -> None:
    index = index_of([said(1, "the lamp is green"), said(2, "quite another matter")], {1: [0.6, 0.8], 2: [1.0, 0.0]})
    vector = np.array([1.0, 0.0], dtype=np.float32)
    found, missed = (ranked(index, text, vector=vector) for text in ("green lamp", "violin"))
    assert 0 < found.terms["meaning"][1] < missed.terms["meaning"][1]
    assert order(found)[0] == 0
    assert order(missed)[0] == 1


def test_a_name_answers_who_and_where_but_not_how_many() -> None:
    index = index_of(
        [
            said(1, "we met there with my aunt"),
            said(2, "we met in Lisbon with my aunt"),
            said(3, "we met in Lisbon " + "and talked on and on " * 9),
            said(4, "we met in Lisbon then", speaker="bot", bot=True),
        ]
    )
    names = ranked(index, "where did we meet").terms["name"]
    assert names[0] == 0 < names[2] < names[1] <= 1
    assert names[3] == 0 < ranked(index, "where did we meet", after_bot=True).terms["name"][3]
    assert "name" not in ranked(index, "how many of us met").terms
    assert "name" not in ranked(index, "when did we meet, and where", asks_when=True).terms


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("Hey Ada, how was it?", False),
        ("I read \u201cthe long way\u201d last week", True),
        ("we went to Lisbon", True),
        ("Nothing much. Sleeping", False),
        ("我们在里斯本见过", False),
    ],
)
def test_a_name_is_known_by_its_capital_and_those_who_talk_are_none(text: str, holds: bool) -> None:  # noqa: FBT001
    assert holds_name(text, {"Ada"}) is holds


def test_what_was_said_in_the_same_session_as_a_hit_outranks_the_same_elsewhere() -> None:
    talk = [said(1, "the boat is blue"), said(2, "quite so"), said(3, "fine"), said(4, "then we left")]
    other = [said(n, "fine" if n < 8 else "then we left", session=2) for n in (5, 6, 7, 8)]
    found = ranked(index_of([*talk, *other]), "boat")
    assert found.terms["talk"][3] > found.terms["talk"][7]
    assert found.total[3] > found.total[7]


def test_a_memory_without_a_session_is_its_own_talk() -> None:
    found = ranked(index_of([known(1, "tea marmalade"), known(2, "a cup")]), "marmalade")
    assert found.terms["talk"][0] > found.terms["talk"][1]


def test_who_asks_when_gets_lines_that_hold_a_time() -> None:
    index = index_of([known(1, "the dentist is nice"), known(2, "the dentist on Monday")])
    assert order(ranked(index, "when is the dentist", asks_when=True))[0] == 1


@pytest.mark.parametrize(
    ("question", "bot"),
    [
        ("你上次给我推荐的那本书叫什么？", True),
        ("What did you recommend to me?", True),
        ("我曾经和你推荐过一部科幻电影，它的名字是？", False),
        ("What did I tell you yesterday?", False),
        ("我在哪里上班？", False),
    ],
)
def test_a_question_is_after_the_words_of_the_bot_or_of_the_person(question: str, bot: bool) -> None:  # noqa: FBT001
    assert after_the_bot(question) is bot
    index = index_of([said(1, "x"), said(2, "y", bot=True, speaker="Recollect")])
    assert order(ranked(index, question, after_bot=bot))[0] == int(bot)


def test_boosts_are_bounded_and_hard_facts_do_not_age() -> None:
    units: Sequence[object] = [
        known(1, "a", importance=1.0),
        known(2, "a", importance=0.0, confidence=0.0),
        replace(known(3, "a"), kind="profile", attribute="allergy"),
    ]
    index = index_of(units)  # type: ignore[arg-type]
    boosts = freshness(index, START + timedelta(days=10_000))
    assert np.all(np.abs(boosts) <= 3 * BOOST + 1e-9)
    assert boosts[0] > boosts[1]
    assert boosts[2] == 0


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("它是哪天做的手术来着？", False),
        ("那挑哪个好", False),
        ("And when was it?", False),
        ("滤芯", True),
        ("我昨天跟你说了什么？", True),
    ],
)
def test_d06_a_question_that_points_back_needs_its_context(question: str, alone: bool) -> None:  # noqa: FBT001
    assert needs_context(question, len(query_terms(question))) is not alone


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("我的血型是什么", True),
        ("what is my blood type", True),
        ("tell me a joke", False),
        ("帮我翻译一句话", False),
        ("太阳有多大", False),
    ],
)
def test_a_favour_asked_for_is_not_a_question_about_the_person(question: str, about: bool) -> None:  # noqa: FBT001
    assert personal(question) is about


@pytest.mark.parametrize(
    ("text", "asking"),
    [
        ("我一般去哪儿健身", True),
        ("你吃了吗", True),
        ("Where do I usually go", True),
        ("Is it far?", True),
        ("没什么大事", False),
        ("我姐姐在北京上班呢", False),
        ("如果你有什么健康问题，我很愿意帮助你。", False),
        ("When I was a child I sang", False),
        ("What a nice day", False),
    ],
)
def test_a_line_that_asks_is_known_with_or_without_its_mark(text: str, asking: bool) -> None:  # noqa: FBT001
    assert asks(text) is asking


def test_a_line_that_tells_before_it_asks_is_no_mere_question() -> None:
    assert only_asks("Where is it? Do you know?")
    assert not only_asks("I went to the lake. And you?")
    assert not only_asks("我去了湖边，你呢")


def test_a_line_that_only_greets_somebody_by_name_tells_nothing() -> None:
    people = ("Joanna", "周立")
    assert all(
        tells_nothing(line, people) for line in ("See you later Joanna!", "你好周立，很高兴认识你！", "ok", "Why?")
    )
    assert not any(
        tells_nothing(line, people)
        for line in ("Joanna", "Thanks, Joanna! The cat is well", "周立病了", "See you later Nate!")
    )


ALL = "every sentence asks"


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("今天累死了。我的手机号是多少？", "我的手机号是多少？"),
        ("昨天去看了医生。今天下雨。那个会修车的人叫什么？", "那个会修车的人叫什么？"),
        ("不知道今天会不会下雨。也不知道他昨天去哪了。对了，我参观的医院怎么样？", "对了，我参观的医院怎么样？"),
        ("今天天气真好，不知道他吃什么。那个地点是北京的活动，规模是什么？", "那个地点是北京的活动，规模是什么？"),
        ("I wonder where I left my bag yesterday. What is the name of my dentist?", " What is the name of my dentist?"),
        ("不知道我昨天住在哪里。哪家酒店？", "不知道我昨天住在哪里\n哪家酒店？"),
        ("Where was I yesterday, I wonder. Which hotel?", ALL),
        ("What did I say yesterday to Mrs. Miller about the garden party?", ALL),
        ("What did I do last weekend in St. Louis with Anna?", ALL),
        ("Tell me what I ate yesterday. Also what is my sister's phone number?", ALL),
        ("List my appointments for tomorrow. And what's my dentist's phone number?", ALL),
        ("Did I take my medicine this morning. How many pills are left?", ALL),
        ("提醒我明天有什么安排。我的手机号是多少？", ALL),
        ("昨天我吃药了吗。我的医生叫什么名字？", ALL),
        ("昨天我去了哪家餐厅；点了什么菜？", ALL),
        ("我明天几点的飞机。哪个航站楼出发？", ALL),
        ("上周五我去看了什么电影来着。电影院在哪条路？", ALL),
        ("我昨天住哪里来着。哪家酒店？", ALL),
        ("我昨天去了哪家酒店来着。还有个问题，我的医生叫什么名字？", ALL),
        ("昨天去看了医生。另外，我的手机号是多少？", "另外，我的手机号是多少？"),
        ("昨天我跟你说了一件事。是什么来着？", None),
        ("我昨天买了手机。那是什么牌子？", None),
        ("昨天见了老同学。他叫什么名字？", None),
        ("What a day today! Where are my keys?", " Where are my keys?"),
        ("I saw a film yesterday. What was it called?", None),
        ("我昨天跟你说了什么？", None),
        ("昨天的事", None),
        ("", None),
    ],
)
def test_a_question_is_read_for_times_where_it_asks(question: str, part: str | None) -> None:
    found = asking_part(question)
    if part == ALL:
        # Nothing of it goes but what stands between sentences.
        assert re.sub(r"\W", "", found) == re.sub(r"\W", "", question)
    else:
        assert found == (question if part is None else part)
