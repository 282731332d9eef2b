"""Writes the vectors of all that ships in ``memory/probes`` for the bundled model: ``python -m bot.bench.probes FILE``.

To be run again when the texts in ``memory/probes`` or the bundled model change.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bot.embedders import LocalEmbedder
from memory.shipped import packed, shipped_texts


async def lines() -> list[str]:
    """One JSON line a text, both languages."""
    embedder = LocalEmbedder()
    texts = [*shipped_texts("zh"), *shipped_texts("en")]
    vectors = await embedder.embed(texts)
    await embedder.aclose()
    return list(packed(embedder.model, texts, [vector for vector in vectors if vector is not None]))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(asyncio.run(lines())) + "\n", encoding="utf-8")
