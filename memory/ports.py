"""What memory needs from outside. The consumer owns the contract; whoever fits may stand behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
Clock = Callable[[], datetime]
"""Returns the present as aware UTC. Nothing in the project reads the time in another way."""
TokenCounter = Callable[[str], int]


class EmbedderUnavailable(Exception):
    """The embedder cannot answer now; what waits stays waiting and is tried again by a job."""


class Embedder(Protocol):
    """Turns texts into vectors. Implementations never block the event loop."""

    @property
    def model(self) -> str:
        """Identity of the vector space. Vectors of two models never meet."""

    @property
    def dimensions(self) -> int | None:
        """Width of a vector; None until the first answer told it."""

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts, in their order.

        Returns one float32 vector of length 1 and width ``dimensions`` a text, or None for a text this
        model can never embed (blank, refused). Raises EmbedderUnavailable when nothing can be embedded now.
        """


class RerankerUnavailable(Exception):
    """The reranking model cannot answer now; the order stays as it is."""


class Reranker(Protocol):
    """Reads a question and a text together and says how well they go together."""

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Score texts against a query: one finite number a text, in their order, the higher the better.

        Raises RerankerUnavailable.
        """


class CompleterUnavailable(Exception):
    """No model, or it cannot answer now. ``str()`` is for the log, never for a person."""


class CompleterResting(CompleterUnavailable):
    """The model was not even asked: it failed again and again and is left alone for a while."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's whole answer, reasoning already removed. ``cut`` is True when it did not end by itself.

    ``tokens`` are those of both directions, 0 where the endpoint told none; the other two split them.
    """

    text: str
    finish: Literal["stop", "length", "other"]
    tokens: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def cut(self) -> bool:
        """Whether the answer is incomplete and must not be stored."""
        return self.finish != "stop"


class Completer(Protocol):
    """Answers one prompt in one piece; used by distillation and reconciliation."""

    async def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int,
    ) -> Completion:
        """Answer ``messages`` (role and content each), as JSON of ``schema`` where the endpoint can.

        Raises CompleterUnavailable.
        """
