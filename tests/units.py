"""Rows of a recall index for tests, and the index of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from memory.embedding import spoken, text_hash
from memory.index import OwnerIndex
from memory.model import Chat, Unit
from memory.vectors import Matrix

START = datetime(2025, 3, 1, 8, tzinfo=UTC)
PRIVATE_ROOM = Chat(1, "console", "dm:1001", private=True)


def said(id_: int, text: str, *, speaker: str = "Lin", session: int = 1, bot: bool = False) -> Unit:
    """A journal line, an hour after the one before it."""
    return Unit(
        id=id_,
        kind="message",
        text=text,
        at=START + timedelta(hours=id_),
        audience=0,
        text_hash=text_hash(spoken(speaker, text)),
        speaker=speaker,
        role="bot" if bot else "user",
        session=session,
        cites=(id_,),
    )


def known(id_: int, text: str, **changes: object) -> Unit:
    """A fact."""
    made = Unit(id_, "fact", text, START + timedelta(hours=id_), 0, text_hash(text))
    return replace(made, **changes)  # type: ignore[arg-type]


def index_of(units: Sequence[Unit], vectors: Mapping[int, Sequence[float]] | None = None) -> OwnerIndex:
    """An index of the units, with vectors by unit id."""
    index = OwnerIndex()
    index.add(units)
    for unit in units:
        if vectors and unit.id in vectors:
            index.add_vectors([unit.text_hash], row(*vectors[unit.id]))
    return index


def row(*numbers: float) -> Matrix:
    """A matrix of one vector."""
    return np.array([numbers], dtype=np.float32)
