"""The store of vectors: asked once a text, refused when unusable, never two models together, gone with their text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memory.embedding import Embeddings, spoken, text_hash
from memory.ports import EmbedderUnavailable, Vector
from tests.conftest import Clock
from tests.shelf import Shelf


def vector_of(text: str, width: int = 16) -> Vector:
    seed = int.from_bytes(text_hash(text)[:4], "big")
    vector = np.random.default_rng(seed).standard_normal(width).astype(np.float32)
    unit: Vector = vector / np.linalg.norm(vector)
    return unit


class Scripted:
    """An embedder that answers from a function and keeps what it was asked."""

    def __init__(self, answer: Callable[[str], Vector | None] = vector_of, model: str = "m1") -> None:
        self.model = model
        self.dimensions: int | None = 16
        self.asked: list[str] = []
        self.answer = answer
        self.down = False

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        if self.down:
            raise EmbedderUnavailable("down")
        self.asked += texts
        return [self.answer(text) for text in texts]


@pytest.fixture
async def shelf(tmp_path: Path, clock: Clock) -> AsyncIterator[Shelf]:
    opened = await Shelf.open(tmp_path / "r.db", clock)
    yield opened
    await opened.db.close()


def embeddings(shelf: Shelf, embedder: Scripted | None) -> Embeddings:
    return Embeddings(shelf.db, shelf.accounts, embedder, shelf.clock)


async def test_a_stored_vector_is_the_embedders_to_four_digits(shelf: Shelf) -> None:
    store = embeddings(shelf, Scripted())
    texts = [f"text {n}" for n in range(300)]
    assert await store.fill(shelf.owner, texts) == 300
    rows = await store.rows(shelf.owner)
    assert rows.hashes == [text_hash(text) for text in texts]
    assert rows.matrix.dtype == np.float32
    np.testing.assert_allclose(rows.matrix, np.stack([vector_of(t) for t in texts]), atol=1e-4)
    assert (await store.rows(shelf.owner, after=rows.last)).hashes == []


async def test_what_waits_is_embedded_once_and_never_again(shelf: Shelf) -> None:
    embedder = Scripted()
    await shelf.say("早上好")
    await shelf.say("早上好")
    await shelf.say("", kind="command")
    await shelf.say("  ")
    store = embeddings(shelf, embedder)
    assert await store.fill(shelf.owner) == 1
    assert await embeddings(shelf, embedder).fill(shelf.owner) == 0
    assert embedder.asked == [spoken("Lin", "早上好")]


async def test_b10_unusable_vectors_are_refused_and_tried_again_later(shelf: Shelf) -> None:
    bad: dict[str, Vector] = {
        "nan": np.array([np.nan] + [0.1] * 15, np.float32),
        "zero": np.zeros(16, np.float32),
        "narrow": np.full(4, 0.5, np.float32),
    }
    embedder = Scripted(lambda text: bad[text.removeprefix("Lin: ")] if "good" not in text else vector_of(text))
    for text in ("good", "nan", "zero", "narrow"):
        await shelf.say(text)
    store = embeddings(shelf, embedder)
    assert await store.fill(shelf.owner) == 1
    assert await store.waiting(shelf.owner) == []
    embedder.answer = vector_of
    shelf.clock.advance(hours=1)
    assert await store.fill(shelf.owner) == 3


async def test_b11_an_embedder_that_is_down_leaves_everything_waiting(shelf: Shelf) -> None:
    embedder = Scripted()
    embedder.down = True
    await shelf.say("早")
    store = embeddings(shelf, embedder)
    with pytest.raises(EmbedderUnavailable):
        await store.fill(shelf.owner)
    embedder.down = False
    assert await store.fill(shelf.owner) == 1


async def test_a_question_after_a_restart_writes_nothing(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    await embeddings(shelf, Scripted()).fill(shelf.owner, ["tea"])

    async def written(*_: object) -> None:
        raise AssertionError("a question needs no write")

    monkeypatch.setattr(shelf.db, "returning", written)
    again = embeddings(shelf, Scripted())
    assert await again.query(shelf.owner, "which tea") is not None
    narrow = embeddings(shelf, Scripted(lambda text: vector_of(text, 8)))
    assert await narrow.query(shelf.owner, "which tea") is None, "the width is that of the file"


async def test_two_models_never_meet(shelf: Shelf) -> None:
    await embeddings(shelf, Scripted()).fill(shelf.owner, ["早"])
    other = embeddings(shelf, Scripted(lambda text: vector_of(text, 8), model="m2"))
    assert (await other.rows(shelf.owner)).hashes == []
    assert await other.fill(shelf.owner, ["早"]) == 1
    assert (await other.rows(shelf.owner)).matrix.shape == (1, 8)
    assert (await embeddings(shelf, Scripted()).rows(shelf.owner)).matrix.shape == (1, 16)


async def test_nobody_else_sees_a_vector(shelf: Shelf) -> None:
    store = embeddings(shelf, Scripted())
    await store.fill(shelf.owner, ["早"])
    other = await shelf.accounts.meet("console", "1002", name="", language="zh", zone="UTC", at=shelf.clock())
    assert (await store.rows(other)).hashes == []
    assert await store.sweep(other) == 0
    assert await store.fill(other, ["早"]) == 1


async def test_a_question_is_embedded_once_and_never_stored(shelf: Shelf) -> None:
    embedder = Scripted()
    store = embeddings(shelf, embedder)
    first = await store.query(shelf.owner, "哪天？")
    assert first is not None
    assert await store.query(shelf.owner, "哪天？") is first
    assert embedder.asked == ["哪天？"]
    assert await store.query(shelf.owner, "  ") is None
    assert (await store.rows(shelf.owner)).hashes == []


async def test_shipped_probes_are_asked_once_a_model(shelf: Shelf) -> None:
    embedder = Scripted(lambda text: None if text == "mute" else vector_of(text))
    matrix = await embeddings(shelf, embedder).probes(["a", "mute", "b"])
    again = await embeddings(shelf, embedder).probes(["b", "a"])
    np.testing.assert_allclose(again, matrix[[2, 0]], atol=1e-4)
    assert not matrix[1].any()
    assert embedder.asked == ["a", "mute", "b"]


async def test_erasing_spares_a_vector_whose_text_another_row_holds(shelf: Shelf) -> None:
    kept, gone = await shelf.say("一样"), await shelf.say("独有")
    store = embeddings(shelf, Scripted())
    await store.fill(shelf.owner)
    await shelf.journal.erase(shelf.owner, [gone.id])
    keys = [text_hash(spoken("Lin", m.text)) for m in (kept, gone)]
    assert await store.orphaned(shelf.owner)
    assert await store.sweep(shelf.owner) == 1
    assert not await store.orphaned(shelf.owner)
    assert (await store.rows(shelf.owner)).hashes == [keys[0]]
    await shelf.journal.erase(shelf.owner, [kept.id])
    assert await store.sweep(shelf.owner) == 1


async def test_a_text_erased_while_the_embedder_works_leaves_no_vector(shelf: Shelf) -> None:
    kept, gone = await shelf.say("留下"), await shelf.say("忘掉")
    embedder = Scripted()
    store = embeddings(shelf, embedder)
    asked = embedder.embed

    async def meanwhile(texts: Sequence[str]) -> list[Vector | None]:
        vectors = await asked(texts)
        await shelf.journal.erase(shelf.owner, [gone.id])
        await store.sweep(shelf.owner)
        return vectors

    embedder.embed = meanwhile  # type: ignore[method-assign]
    assert await store.fill(shelf.owner) == 1
    assert (await store.rows(shelf.owner)).hashes == [text_hash(spoken("Lin", kept.text))]


async def test_the_network_is_never_awaited_in_a_transaction(shelf: Shelf) -> None:
    store = embeddings(shelf, Scripted())
    async with shelf.db.transaction():
        with pytest.raises(RuntimeError, match="transaction"):
            await store.fill(shelf.owner, ["早"])


async def test_without_an_embedder_nothing_waits_and_nothing_is_found(shelf: Shelf) -> None:
    await shelf.say("早")
    store = embeddings(shelf, None)
    assert store.model is None
    assert await store.fill(shelf.owner) == 0
    assert await store.query(shelf.owner, "早") is None
    assert store.owners_waiting([shelf.owner.no]) == []


async def test_an_owner_is_asked_about_again_only_after_something_new(shelf: Shelf) -> None:
    store = embeddings(shelf, Scripted())
    owner = replace(shelf.owner)
    assert store.owners_waiting([owner.no]) == [owner.no]
    store.settled(owner)
    assert store.owners_waiting([owner.no]) == []
    store.disturbed(owner)
    assert store.owners_waiting([owner.no]) == [owner.no]


async def test_b10_an_owner_whose_text_was_refused_is_asked_about_again_when_the_pause_is_over(shelf: Shelf) -> None:
    await shelf.say("早")
    store = embeddings(shelf, Scripted(lambda _: None))
    store.settled(shelf.owner)
    assert await store.fill(shelf.owner) == 0
    assert store.owners_waiting([shelf.owner.no]) == []
    shelf.clock.advance(hours=1)
    assert store.owners_waiting([shelf.owner.no]) == [shelf.owner.no]


def test_the_key_of_a_text_is_the_same_for_both_ways_to_write_an_accent() -> None:
    assert text_hash("é") == text_hash("e\u0301")
    assert text_hash("a") != text_hash("b")
    assert len(text_hash("\ud800")) == 16
