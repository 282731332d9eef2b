"""One peer in a process of its own: ``python peer.py NAME FOLDER DIMENSIONS``, run by the Python that has the library.

It is no part of the bot: it imports nothing of ours, for the Python that runs it has nothing of ours. It speaks JSON
lines on its standard streams. First it says ``{"version": "1.2"}``. Told ``{"add": [[id, text], ...], "person": ...}``
or ``{"find": text, "person": ..., "limit": n}`` it answers ``{"ms": 1.5, "ids": [...]}``. In between it may ask for
vectors, ``{"embed": [text, ...]}``, and is told ``{"vectors": [[...], ...]}``. The milliseconds are the library's own:
waiting for vectors counts for nobody.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

Item = Sequence[str]
"""The id of a text, and the text."""

_UNUSED: Final = {"provider": "openai", "config": {"api_key": "unused"}}
"""mem0 makes clients of a model even where it never asks one."""


class Line:
    """JSON lines in both directions."""

    def __init__(self, heard: TextIO, spoken: TextIO) -> None:
        self._heard, self._spoken = heard, spoken

    def say(self, message: Mapping[str, Any]) -> None:
        """Send one message."""
        self._spoken.write(json.dumps(message) + "\n")
        self._spoken.flush()

    def hear(self) -> Any:
        """The next message, None at the end."""
        line = self._heard.readline()
        return json.loads(line) if line else None


class Vectors:
    """The vectors of texts, each asked for once; ``waited`` are the seconds that took so far."""

    def __init__(self, line: Line) -> None:
        self.waited = 0.0
        self._line = line
        self._known: dict[str, list[float]] = {}

    def of(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text, in their order."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            started = time.perf_counter()
            self._line.say({"embed": missing})
            self._known.update(zip(missing, self._line.hear()["vectors"], strict=True))
            self.waited += time.perf_counter() - started
        return [self._known[text] for text in texts]

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """One vector, by the name and arguments under which mem0 asks for it."""
        del memory_action
        return self.of([text])[0]


class Peer(Protocol):
    """A library that keeps texts of many people and finds those that fit a question."""

    def add(self, person: str, items: Sequence[Item]) -> None:
        """Keep texts of one person."""

    def find(self, person: str, text: str, limit: int) -> list[str]:
        """The ids of that person's texts that fit best, the best first."""


class Mem0:
    """mem0 as it is installed: its own qdrant in a folder, raw texts (``infer=False``), our vectors."""

    def __init__(self, folder: Path, dimensions: int, vectors: Vectors) -> None:
        store = {"path": str(folder / "qdrant"), "embedding_model_dims": dimensions}
        self._memory = importlib.import_module("mem0").Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "llm": _UNUSED,
                "embedder": _UNUSED,
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = vectors

    def add(self, person: str, items: Sequence[Item]) -> None:
        """Keep texts one by one, which is how mem0 takes them."""
        for id_, text in items:
            self._memory.add(text, user_id=person, metadata={"ours": id_}, infer=False)

    def find(self, person: str, text: str, limit: int) -> list[str]:
        """Search with the threshold that mem0 has by itself."""
        found = self._memory.search(text, top_k=limit, filters={"user_id": person})["results"]
        return [memory["metadata"]["ours"] for memory in found]


class LangGraph:
    """LangGraph's ``InMemoryStore`` with an index over the text, one namespace a person."""

    def __init__(self, _folder: Path, dimensions: int, vectors: Vectors) -> None:
        store = importlib.import_module("langgraph.store.memory").InMemoryStore
        self._store = store(index={"dims": dimensions, "embed": vectors.of, "fields": ["text"]})

    def add(self, person: str, items: Sequence[Item]) -> None:
        """Keep texts one by one."""
        for id_, text in items:
            self._store.put((person,), id_, {"text": text})

    def find(self, person: str, text: str, limit: int) -> list[str]:
        """Search the person's namespace."""
        return [item.key for item in self._store.search((person,), query=text, limit=limit)]


class Chroma:
    """chromadb with a folder: one collection by cosine, the person in the metadata of each text."""

    def __init__(self, folder: Path, _dimensions: int, vectors: Vectors) -> None:
        self._client = importlib.import_module("chromadb").PersistentClient(path=str(folder / "chroma"))
        self._texts = self._client.create_collection(
            "texts", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        self._vectors = vectors

    def add(self, person: str, items: Sequence[Item]) -> None:
        """Keep texts in the largest batches that chromadb takes."""
        size = self._client.get_max_batch_size()
        for batch in (items[at : at + size] for at in range(0, len(items), size)):
            ids, texts = zip(*batch, strict=True)
            self._texts.add(
                ids=list(ids),
                documents=list(texts),
                embeddings=self._vectors.of(texts),
                metadatas=[{"person": person}] * len(ids),
            )

    def find(self, person: str, text: str, limit: int) -> list[str]:
        """Query with the person as the filter."""
        found = self._texts.query(query_embeddings=self._vectors.of([text]), n_results=limit, where={"person": person})
        ids: list[str] = found["ids"][0]
        return ids


PEERS: Final[Mapping[str, tuple[str, Callable[[Path, int, Vectors], Peer]]]] = {
    "mem0": ("mem0ai", Mem0),
    "langgraph": ("langgraph", LangGraph),
    "chromadb": ("chromadb", Chroma),
}
"""The package and the class of each peer."""


def serve(name: str, folder: Path, dimensions: int, line: Line) -> None:
    """Open the library with a store under ``folder`` and do what is asked until the line ends."""
    package, opened = PEERS[name]
    vectors = Vectors(line)
    peer = opened(folder, dimensions, vectors)
    line.say({"version": importlib.metadata.version(package)})
    while (request := line.hear()) is not None:
        waited, started = vectors.waited, time.perf_counter()
        ids = _done(peer, vectors, request)
        seconds = time.perf_counter() - started - (vectors.waited - waited)
        line.say({"ms": seconds * 1_000, "ids": ids})


def _done(peer: Peer, vectors: Vectors, request: Mapping[str, Any]) -> list[str]:
    if "find" in request:
        return peer.find(request["person"], request["find"], request["limit"])
    vectors.of([text for _, text in request["add"]])
    peer.add(request["person"], request["add"])
    return []


def main() -> None:
    """Serve on the standard streams; whatever a library prints goes to standard error."""
    name, folder, dimensions = sys.argv[1:]
    spoken = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(name, Path(folder), int(dimensions), Line(sys.stdin, spoken))


if __name__ == "__main__":
    main()
