"""The index of one owner: rows, neighbours, words and vectors."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

from memory import vectors
from memory.embedding import text_hash
from memory.index import NOWHERE, OwnerIndex
from memory.vectors import Vectors, coded
from tests.units import index_of, known, row, said

NAN = float("nan")


def test_b10_a_nan_or_zero_vector_never_enters_and_its_row_goes_by_words() -> None:
    index = index_of(
        [known(n, f"fact {n}") for n in (1, 2, 3, 4)],
        {1: (1, 0, 0, 0), 2: (NAN, 1, 0, 0), 3: (0, 0, 0, 0), 4: (0.6, 0.8, 0, 0)},
    )
    cosines = index.vectors.scan(row(1, 0, 0, 0)[0])
    assert cosines is not None
    ids = [int(index.rows["id"][index.rows["vector"] == slot][0]) for slot in np.argsort(-cosines)]
    assert ids == [1, 4]
    assert index.postings.find("2") is not None
    index.add_vectors([text_hash("fact 2")], row(0, 1, 0, 0))
    assert index.rows["vector"][1] != NOWHERE, "a later, good vector is taken"


def test_a_vector_of_another_width_is_refused_and_a_question_of_another_width_compares_with_nothing() -> None:
    held = Vectors()
    assert held.add([b"a"], row(1, 0, 0, 0)) == {b"a": 0}
    assert held.add([b"b"], row(1)) == {}
    assert held.scan(row(1)[0]) is None
    assert held.scan(row(NAN, 0, 0, 0)[0]) is None


def test_vectors_are_scaled_to_length_one() -> None:
    held = Vectors()
    held.add([b"a"], row(3, 4))
    scanned = held.scan(row(1, 0)[0])
    assert scanned is not None
    assert np.allclose(scanned, [0.6], atol=0.01)


def test_a_first_load_is_taken_as_it_is_and_grown_apart_from_the_next_on() -> None:
    held, first = Vectors(), np.eye(4, dtype=np.float32)[:3]
    assert held.add([b"a", b"b", b"c"], first) == {b"a": 0, b"b": 1, b"c": 2}
    assert held.nbytes <= 3 * (4 + 8 + 120) + 4 * 4, "a byte a number, no spare room"
    assert held.add(
        [b"c", b"d"],
        row(
            9,
            9,
            9,
            9,
        ).repeat(2, axis=0),
    ) == {b"d": 3}
    scanned = held.scan(row(0, 0, 1, 0)[0])
    assert scanned is not None
    assert np.allclose(scanned, [0, 0, 1, 0.5], atol=0.01)
    assert np.array_equal(first, np.eye(4)[:3])


@pytest.mark.parametrize("pages", [[5], [1, 1], [3, 1, 9], [2, 8, 2]])
@pytest.mark.parametrize("loose", [0, 1, 40])
def test_two_threads_find_what_one_finds(pages: list[int], loose: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = np.random.default_rng(7)
    rows = source.standard_normal((sum(pages) + loose, 16), dtype=np.float32)
    held = Vectors(np.zeros(16, np.float32))
    parts = np.split(rows, np.cumsum(pages))
    held.open([coded(part, np.zeros(16, np.float32)) for part in parts[:-1]], np.arange(sum(pages), dtype=np.uint64))
    held.add([(1_000 + number).to_bytes(16, "little") for number in range(loose)], parts[-1])
    alone = held.scan(rows[0])
    monkeypatch.setattr(vectors, "_SHARED_FROM", 1)
    together = held.scan(rows[0])
    assert alone is not None
    assert together is not None
    assert np.array_equal(alone, together)
    assert len(together) == len(rows)


def test_a_first_load_with_a_bad_or_a_double_row_keeps_the_others_in_order() -> None:
    held = Vectors()
    matrix = np.array([[1, 0], [NAN, 1], [0, 1], [0, 2]], dtype=np.float32)
    assert held.add([b"a", b"bad", b"b", b"a"], matrix) == {b"a": 0, b"b": 1}
    assert len(held) == 2


def test_the_matrix_grows_without_losing_what_it_holds() -> None:
    held = Vectors()
    matrix = np.random.default_rng(1).standard_normal((1_000, 8)).astype(np.float32)
    for start in range(0, 1_000, 7):
        part = matrix[start : start + 7]
        held.add([f"{start + n}".encode() for n in range(len(part))], part)
    expected = matrix[500] / np.linalg.norm(matrix[500])
    scanned = held.scan(expected)
    assert scanned is not None
    assert int(np.argmax(scanned)) == held.slot(b"500")


def test_equal_texts_share_one_vector_whichever_comes_first() -> None:
    index = index_of([known(1, "the same")])
    index.add_vectors([text_hash("the same")], row(1, 0))
    index.add([known(2, "the same")])
    assert index.rows["vector"].tolist() == [0, 0]
    assert len(index.vectors) == 1


def test_neighbours_are_lines_of_the_same_session_only() -> None:
    index = index_of([said(1, "a"), said(2, "b", session=2), said(3, "c"), known(4, "d")])
    assert index.rows["previous"].tolist() == [NOWHERE, NOWHERE, 0, NOWHERE]
    assert index.rows["next"].tolist() == [2, NOWHERE, NOWHERE, NOWHERE]


def test_a_known_unit_is_not_entered_twice() -> None:
    index = index_of([said(1, "a")])
    index.add([said(1, "a"), said(2, "b")])
    assert len(index.rows) == 2


@pytest.mark.parametrize("rows", [2, 12, 40, 300])
def test_the_size_in_bytes_is_about_what_is_taken_however_little_each_person_has_said(rows: int) -> None:
    def some() -> OwnerIndex:
        index = OwnerIndex()
        for n in range(1, rows, 2):
            index.add([said(each, f"some words and number{each}") for each in (n, n + 1)])
        index.add_vectors([text_hash(f"t{n}") for n in range(rows)], np.ones((rows, 256), np.float32))
        return index

    some()
    tracemalloc.start()
    try:
        held = [some() for _ in range(20)]
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.8 * taken < sum(index.nbytes for index in held) < 1.4 * taken


def test_the_size_in_bytes_follows_what_is_held() -> None:
    small = index_of([said(1, "some words")])
    large = index_of([said(n, f"some words and number{n}") for n in range(1, 500)])
    large.add_vectors([text_hash(f"t{n}") for n in range(200)], np.ones((200, 64), np.float32))
    assert small.nbytes < large.nbytes
    assert large.nbytes > large.vectors.nbytes > 200 * 64


@pytest.mark.parametrize("number", [0.0, NAN, float("inf"), 3e38])
def test_a_question_whose_vector_is_none_compares_with_nothing(number: float) -> None:
    held = Vectors()
    held.add([b"a"], row(1, 0, 0, 0))
    assert held.scan(row(number, 0, 0, 0)[0]) is None
