"""One embedder for several memories that are measured: each text is embedded once in a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from memory.ports import Embedder, Vector

_PLAIN: Final = "hello"


class SharedVectors:
    """An embedder that remembers its answers for the run; ``spent`` are the seconds embedding took, in all.

    Its width is known once it has answered: :meth:`ready`. Raises EmbedderUnavailable.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.spent = 0.0
        self._embedder = embedder
        self._known: dict[str, Vector | None] = {}

    @property
    def model(self) -> str:
        """Whose vectors they are."""
        return self._embedder.model

    @property
    def dimensions(self) -> int | None:
        """Width of a vector."""
        return self._embedder.dimensions

    async def ready(self) -> None:
        """Embed a word, so that the width is known."""
        await self.embed([_PLAIN])

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts, in their order: one float32 vector of length 1 a text, None for one that has none."""
        started = time.perf_counter()
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            self._known.update(zip(missing, await self._embedder.embed(missing), strict=True))
        vectors = [self._known[text] for text in texts]
        self.spent += time.perf_counter() - started
        return vectors
