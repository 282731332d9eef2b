"""Long texts: where they are cut, and what stands for them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.passages import CHUNK_BYTES, GIST, OVERLAP_BYTES, PASSAGE, WHOLE_BYTES, chunks, gist, passage, sentences

ZH = "早上去了医院，医生说血压有点高。" + "下午在公园里走了一圈，看见很多人在放风筝。" * 30 + "晚上决定以后不喝咖啡了！"
EN = (
    "Morning! I saw Dr. Smith at 3.30 p.m. "
    + "Then I walked along the river and counted the boats. " * 30
    + "I sold the cello."
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "今天很累。我去了医院，医生说没事！“真的吗？”我问",
            ["今天很累。", "我去了医院，医生说没事！", "“真的吗？”", "我问"],
        ),
        ("I saw Dr. Smith. He paid 3.50 (really!). Next?", ["I saw Dr. Smith. ", "He paid 3.50 (really!). ", "Next?"]),
        ("one line\ntwo… 三。", ["one line\n", "two… ", "三。"]),
        ("J. R. Hartley wrote it. 好。", ["J. R. Hartley wrote it. ", "好。"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, expected: list[str]) -> None:
    assert [text[slice(*span)] for span in sentences(text)] == expected


@pytest.mark.parametrize("text", ["", "短", "a" * WHOLE_BYTES, "汉" * (WHOLE_BYTES // 3)])
def test_a_text_that_one_vector_can_stand_for_is_not_cut(text: str) -> None:
    assert chunks(text) == []


@pytest.mark.parametrize("text", [ZH, EN])
def test_chunks_begin_and_end_with_sentences_and_overlap(text: str) -> None:
    spans, ends = chunks(text), {stop for _, stop in sentences(text)}
    assert len(spans) > 1
    assert all(stop in ends and (start == 0 or start in ends) for start, stop in spans)
    for (_, stop), (start, _) in pairwise(spans):
        assert start < stop, "a sentence or two stands in both"


@given(st.text(alphabet=st.sampled_from("a 汉。.，,！\n👩‍🚀é\u0301x1"), min_size=400, max_size=3_000))
@example("x" * 5_000)
@example("汉" * 3_000)
@example("e\u0301" * 2_000)
@example("\u0301" * 3_000)
def test_chunks_leave_nothing_out_and_none_is_too_long(text: str) -> None:
    spans = chunks(text)
    if len(text.encode()) <= WHOLE_BYTES:
        assert spans == []
        return
    assert all(0 < len(text[start:stop].encode()) <= CHUNK_BYTES for start, stop in spans)
    covered: set[int] = set()
    for start, stop in spans:
        covered.update(range(start, stop))
    assert "".join(text[place] for place in range(len(text)) if place not in covered).strip() == ""
    assert all(start < later and later >= stop - OVERLAP_BYTES for (start, stop), (later, _) in pairwise(spans))


def test_a_chunk_of_characters_alone_cuts_no_sign_in_two() -> None:
    text = "👩‍🚀" * 400
    assert all(text[start:stop].replace("👩‍🚀", "") == "" for start, stop in chunks(text))


def test_a_gist_is_the_first_sentence_that_tells_something() -> None:
    assert gist(ZH) == "早上去了医院，医生说血压有点高。…"
    assert gist(EN) == "I saw Dr. Smith at 3.30 p.m.…"
    assert gist(f"日记\n{ZH}") == "日记 早上去了医院，医生说血压有点高。…"
    assert gist("你好！" + ZH) == "早上去了医院，医生说血压有点高。…"


def test_a_gist_of_what_lies_nearest_is_marked_on_both_sides() -> None:
    start = ZH.index("下午")
    assert gist(ZH, (start, len(ZH))) == "…下午在公园里走了一圈，看见很多人在放风筝。…"
    last = ZH.index("晚上")
    assert gist(ZH, (last, len(ZH))) == "…晚上决定以后不喝咖啡了！"


@pytest.mark.parametrize("text", ["汉" * 500, "word " * 200, "x" * 900, "一，二三四五六七八九十" * 60, "👩‍🚀" * 300])
def test_a_gist_is_short_whatever_the_text(text: str) -> None:
    short = gist(text)
    assert short.endswith("…")
    assert text.startswith(short.removesuffix("…"))
    assert GIST // 2 - 1 <= len(short) <= GIST + 1


def test_a_passage_is_what_stands_around_the_rarest_words() -> None:
    found = passage(ZH, frozenset({"咖啡"}), None)
    assert found.startswith("…")
    assert found.endswith("晚上决定以后不喝咖啡了！")
    assert len(found) <= PASSAGE + 2
    assert "cello" in passage(EN, frozenset({"cello", "nothing"}), (0, 60))


def test_a_passage_without_a_word_is_the_part_nearest_in_meaning() -> None:
    start = EN.index("Then")
    assert (
        passage(EN, frozenset({"piano"}), (start, start + 51))
        == "…Then I walked along the river and counted the boats…"
    )


def test_a_passage_of_one_endless_sentence_is_cut() -> None:
    assert len(passage("词语" * 2_000, frozenset({"词语"}), None)) <= PASSAGE + 2
