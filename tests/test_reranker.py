"""A reranking model behind the endpoint: its order counts, and its faults change nothing but the trace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.llm import Connection
from bot.reranker import LONGEST, EndpointReranker, choose_reranker
from config.settings import RecallSettings, RerankSettings, Settings
from memory import Line, Memory
from memory.judge import Contender
from memory.model import Recollection
from memory.ports import Reranker, RerankerUnavailable
from memory.reranking import HEAD, reranked
from tests.servers.openai_server import OpenAIServer

NOW = datetime(2025, 3, 1, 8, tzinfo=UTC)


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as running:
        yield running


@pytest.fixture
async def reranker(server: OpenAIServer) -> AsyncIterator[EndpointReranker]:
    one = EndpointReranker(Connection(server.base_url, "k", timeout=0.5, retries=0), "r")
    yield one
    await one.aclose()


def answered(*scores: float) -> dict[str, Any]:
    """An answer with the best first, as endpoints give it."""
    rows = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    return {"model": "r", "results": sorted(rows, key=lambda row: -row["relevance_score"])}


async def test_scores_come_in_the_order_of_the_texts(server: OpenAIServer, reranker: EndpointReranker) -> None:
    server.fault(match="/rerank", status=200, body=answered(0.1, 0.9, -3))
    assert await reranker.scores("which tea", ["jam", "green \ud800tea", "x" * 9_000]) == [0.1, 0.9, -3.0]
    sent = server.requests[-1].body
    assert sent["query"] == "which tea"
    assert sent["model"] == "r"
    assert sent["top_n"] == 3
    assert [len(text) for text in sent["documents"]][::2] == [3, LONGEST]


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500, "body": "no"},
        {"status": 404, "body": "no"},
        {"drop": True},
        {"hang": True},
        {"status": 200, "body": "no JSON"},
        {"status": 200, "body": {"results": []}},
        {"status": 200, "body": answered(1.0)},
        {"status": 200, "body": answered(1.0, 2.0, 3.0)},
        {"status": 200, "body": {"results": [{"index": 0, "relevance_score": "a"}, {"index": 1}]}},
        {
            "status": 200,
            "body": '{"results": [{"index": 0, "relevance_score": NaN}, {"index": 1, "relevance_score": 1}]}',
        },
    ],
)
async def test_every_fault_is_one_error(
    server: OpenAIServer, reranker: EndpointReranker, fault: dict[str, Any]
) -> None:
    server.fault(match="/rerank", **fault)
    with pytest.raises(RerankerUnavailable):
        await reranker.scores("which tea", ["jam", "green tea"])


async def test_it_is_off_until_a_model_is_named() -> None:
    assert choose_reranker(Settings(openai_base_url="http://127.0.0.1:1/v1")) is None
    named = RerankSettings(model="r")
    with pytest.raises(ValueError, match="OPENAI_BASE_URL"):
        choose_reranker(Settings(rerank=named))
    chosen = choose_reranker(Settings(rerank=named, openai_base_url="http://127.0.0.1:1/v1"))
    assert chosen is not None
    await chosen.aclose()


class Opinion:
    """A reranker that scores by a function of the text."""

    def __init__(self, of: Callable[[str], float]) -> None:
        self._of = of
        self.asked: list[Sequence[str]] = []

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        del query
        self.asked.append(texts)
        return [self._of(text) for text in texts]


class Broken:
    """A reranker that is never there."""

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        raise RerankerUnavailable(f"{query} {texts}")


class Slow:
    """A reranker that never answers."""

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        del query, texts
        await asyncio.Event().wait()
        return []


def contenders(*scores: float) -> list[Contender]:
    return [
        Contender(id=place, kind="message", score=score, band="full") for place, score in enumerate(scores, start=1)
    ]


async def test_only_the_first_are_reordered_and_what_has_no_text_keeps_its_place() -> None:
    candidates = contenders(*(100 - n for n in range(HEAD + 5)))
    texts = {each.id: str(each.id) for each in candidates if each.id != 2}
    opinion = Opinion(lambda text: 1_000.0 if text in {"31", str(HEAD + 3)} else 0.0)
    found = await reranked(opinion, "q", candidates, texts, seconds=1, notes=[])
    assert len(opinion.asked[0]) == HEAD
    assert [each.id for each in found][:3] == [31, 2, 1]
    assert [each.id for each in found][HEAD + 1 :] == [each.id for each in candidates][HEAD + 1 :]
    assert found[0].scores == {"reranker": 1_000.0}
    assert sorted(each.id for each in found) == [each.id for each in candidates], "none is lost, none is new"


async def test_a_model_without_an_opinion_changes_no_order() -> None:
    candidates = contenders(3, 2, 1)
    texts = {each.id: "x" for each in candidates}
    found = await reranked(Opinion(lambda _: 0.5), "q", candidates, texts, seconds=1, notes=[])
    assert [each.id for each in found] == [1, 2, 3]


async def recalled(folder: Path, reranker: Reranker | None) -> Recollection:
    settings = Settings(recall=RecallSettings(timeout_seconds=0.1))
    memory = await Memory.open(folder / "r.db", settings, clock=lambda: NOW, count=len, reranker=reranker)
    try:
        owner = await memory.account("console", "1", name="Lin")
        room = await memory.chat(owner, "dm:1")
        for text in ("The tea is in the larder", "The tea at the harbour was bitter", "The cat sleeps all day"):
            await memory.note(owner, room, Line("user", "Lin", NOW, text))
        return await memory.recall(owner, "Where is the tea?", room=room, now=NOW)
    finally:
        await memory.close()


async def test_recall_shows_what_the_model_prefers_first(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain = await recalled(tmp_path / "plain", None)
    assert len(plain.units) > 1
    last = plain.units[-1].text
    found = await recalled(tmp_path, Opinion(lambda text: 9.0 if last in text else 0.0))
    assert {unit.text for unit in found.units} == {unit.text for unit in plain.units}
    assert found.units[0].text == last
    assert found.units[0].scores["reranker"] == 9.0


@pytest.mark.parametrize(("reranker", "note"), [(Broken(), "reranker down"), (Slow(), "reranker slow")])
async def test_a_fault_changes_nothing_but_the_trace(tmp_path: Path, reranker: Reranker, note: str) -> None:
    (tmp_path / "plain").mkdir()
    plain = await recalled(tmp_path / "plain", None)
    found = await recalled(tmp_path, reranker)
    assert [unit.text for unit in found.units] == [unit.text for unit in plain.units]
    assert [unit.scores for unit in found.units] == [unit.scores for unit in plain.units]
    assert set(found.notes) - set(plain.notes) == {note}
