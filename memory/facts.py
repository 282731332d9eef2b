"""Store of facts: one sentence, one fact."""

from __future__ import annotations

from typing import Any

from memory.entries import EntryStore, Row
from memory.model import Candidate, Fact, Provenance


class Facts(EntryStore[Fact]):
    """Semantic memory, found by meaning and by words."""

    table = "facts"
    kind = "fact"

    def _content(self, candidate: Candidate) -> dict[str, Any]:
        return {"text": candidate.text}

    def _entry(self, row: Row, provenance: Provenance) -> Fact:
        return Fact(row["id"], row["subject"], row["text"], provenance)
