"""A reranking model behind the endpoint's ``/rerank``. Implements ``memory.ports.Reranker``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from bot.llm import Connection, LLMError
from bot.text import clean
from config.settings import Settings
from memory.ports import RerankerUnavailable

LONGEST: Final = 2_000
"""Characters of a text that are sent; models of this kind read 512 tokens and more of question and text."""


def choose_reranker(settings: Settings) -> EndpointReranker | None:
    """Return the reranker that ``rerank.model`` names, None for none. Close it with ``aclose``.

    Raises ValueError when the endpoint's address is missing.
    """
    if settings.rerank.model is None:
        return None
    if settings.endpoint is None:
        raise ValueError("OPENAI_BASE_URL is missing: rerank.model needs an endpoint")
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
    connection = Connection(settings.endpoint, key, timeout=settings.rerank.timeout_seconds, retries=0)
    return EndpointReranker(connection, settings.rerank.model)


class EndpointReranker:
    """Relevance from ``POST /rerank`` as Jina, Cohere, vLLM and others answer it."""

    def __init__(self, connection: Connection, model: str) -> None:
        self._connection = connection
        self._model = model

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Score the texts; see ``memory.ports.Reranker``."""
        documents = [clean(text)[:LONGEST] for text in texts]
        body = {"model": self._model, "query": clean(query)[:LONGEST], "documents": documents, "top_n": len(documents)}
        try:
            answer = await self._connection.post("/rerank", body, whose=query)
        except LLMError as error:
            raise RerankerUnavailable(str(error)) from error
        return _in_order(answer, len(documents))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()


def _in_order(answer: object, count: int) -> list[float]:
    """Return one finite score a text, by its index. Raises RerankerUnavailable for anything else."""
    scores: dict[int, float] = {}
    match answer:
        case {"results": [*rows]}:
            for row in rows:
                match row:
                    case {"index": int(index), "relevance_score": int() | float() as score} if math.isfinite(score):
                        scores[index] = float(score)
    if scores.keys() != set(range(count)):
        raise RerankerUnavailable(f"no {count} scores in {str(answer)[:100]!r}")
    return [scores[index] for index in range(count)]
