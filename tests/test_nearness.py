"""Near in meaning: what was measured on the bundled model holds, and a missing embedder costs nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from bot.embedders import LocalEmbedder
from memory.accounts import Accounts
from memory.embedding import Embeddings
from memory.model import PRIVATE, Entry, Fact, Provenance
from memory.nearness import Nearness
from memory.ports import EmbedderUnavailable, Vector
from memory.reconcile import Gate
from memory.script import is_han
from tests.conftest import Clock
from tests.shelf import Shelf, fact

PAIRS = [
    json.loads(line) for line in (Path(__file__).parent / "cases/one_subject.jsonl").read_text("utf-8").splitlines()
]


class Counting:
    """The bundled model, and how often it was asked for how many texts."""

    def __init__(self, *, failing: bool = False) -> None:
        self.inner = LocalEmbedder()
        self.batches: list[int] = []
        self.failing = failing

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def dimensions(self) -> int | None:
        return self.inner.dimensions

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        self.batches.append(len(texts))
        if self.failing:
            raise EmbedderUnavailable("down")
        return await self.inner.embed(texts)


@pytest_asyncio.fixture
async def shelf(tmp_path: Path, clock: Clock) -> AsyncIterator[Shelf]:
    opened = await Shelf.open(tmp_path / "memory.sqlite", clock)
    yield opened
    await opened.db.close()


def nearness(shelf: Shelf, embedder: Counting | None) -> Nearness:
    return Nearness(Embeddings(shelf.db, Accounts(shelf.db), embedder, shelf.clock))


async def noted(shelf: Shelf, *texts: str) -> list[Entry]:
    made = []
    for text in texts:
        candidate = fact(await shelf.say(text), text)
        (decision,) = await Gate(shelf.db, shelf).admit(shelf.owner, [candidate], audience=PRIVATE, now=shelf.clock())
        assert decision.entry is not None
        made.append(decision.entry)
    return made


def entry(number: int, text: str, clock: Clock) -> Entry:
    return Fact(number, "self", text, Provenance(PRIVATE, "user", clock(), clock()))


async def test_of_sentences_about_one_subject_nearly_all_are_near_and_few_of_the_others(
    shelf: Shelf, clock: Clock
) -> None:
    store = Embeddings(shelf.db, Accounts(shelf.db), embedder := Counting(), clock)
    await store.fill(shelf.owner, sorted({text for pair in PAIRS for text in (pair["a"], pair["b"])}))
    earlier = [entry(2 * place, pair["a"], clock) for place, pair in enumerate(PAIRS)]
    later = [entry(2 * place + 1, pair["b"], clock) for place, pair in enumerate(PAIRS)]
    near = await Nearness(store).among(shelf.owner, later, earlier)
    right = [frozenset({2 * place, 2 * place + 1}) in near for place in range(len(PAIRS))]
    assert np.mean(right) >= 0.92
    for chinese in (True, False):
        own = [hit for hit, pair in zip(right, PAIRS, strict=True) if is_han(pair["b"][0]) == chinese]
        assert np.mean(own) >= 0.9
    assert len(near) / len(PAIRS) <= 8
    assert sum(embedder.batches) == len({text for pair in PAIRS for text in (pair["a"], pair["b"])})


async def test_the_lines_and_the_memories_of_a_session_are_one_batch(shelf: Shelf) -> None:
    embedder = Counting()
    old, new = await noted(shelf, "I eat no meat at all", "Steak is on my plate again")
    near = await nearness(shelf, embedder).among(shelf.owner, [new], [old, new])
    assert set(near) == {frozenset({old.id, new.id})}
    assert embedder.batches == [4]
    await nearness(shelf, embedder).among(shelf.owner, [new], [old, new])
    assert embedder.batches == [4]


@pytest.mark.parametrize("embedder", [None, Counting(failing=True)])
async def test_without_vectors_nothing_is_near_and_nothing_fails(shelf: Shelf, embedder: Counting | None) -> None:
    old, new = await noted(shelf, "I eat no meat at all", "Steak is on my plate again")
    assert await nearness(shelf, embedder).among(shelf.owner, [new], [old, new]) == {}
