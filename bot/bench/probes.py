"""Writes the vectors of the shipped foreign questions for the bundled model: ``python -m bot.bench.probes FILE``.

To be run again when the questions in ``memory/probes`` or the bundled model change.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bot.embedders import LocalEmbedder
from memory.shipped import packed, probe_texts


async def lines() -> list[str]:
    """One JSON line a question, both languages."""
    embedder = LocalEmbedder()
    texts = [*probe_texts("zh"), *probe_texts("en")]
    vectors = await embedder.embed(texts)
    await embedder.aclose()
    return list(packed(embedder.model, texts, [vector for vector in vectors if vector is not None]))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(asyncio.run(lines())) + "\n", encoding="utf-8")
