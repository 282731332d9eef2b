"""The vector space of the current model: its number and width in the file, and vectors as they are read from it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.db import Database
from memory.ports import Embedder, Vector

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Vectors of one owner and one model: ``matrix`` is (n, d) float32, row i belongs to ``hashes[i]``."""

    last: int
    hashes: list[bytes]
    matrix: NDArray[np.float32]
    ids: list[int] = field(default_factory=list)


NO_ROWS: Final = VectorRows(0, [], np.empty((0, 0), np.float32))


class Chunk(NamedTuple):
    """A part of a long row's text, from and to a character, and the key of its vector."""

    id: int
    part_of: int
    begins: int
    ends: int
    text_hash: bytes


class Space:
    """What all vectors of a model have in common. Nobody's memory is in here, hence no owner."""

    def __init__(self, db: Database, embedder: Embedder | None) -> None:
        self._db = db
        self._embedder = embedder
        self._number: int | None = None
        self.width: int | None = None
        """Numbers in a vector, None until the first one is known."""

    @property
    def model(self) -> str | None:
        """Its name, None without an embedder."""
        return None if self._embedder is None else self._embedder.model

    async def number(self) -> int:
        """Number of the model in the file, -1 while it has no vector yet."""
        if self._number is None:
            rows = await self._db.fetch("SELECT no, width FROM models WHERE name = ?", (self.model,))
            if not rows:
                return -1
            self._number, self.width = int(rows[0]["no"]), int(rows[0]["width"])
        return self._number

    async def fits(self, vector: Vector) -> bool:
        """Whether a vector may enter: finite, not zero, of the model's one width, which the first one sets."""
        if not np.isfinite(vector).all() or not vector.any():
            return False
        if self.width is None:
            await self._learn(vector.shape[0])
        if vector.shape != (self.width,):
            log.warning("a vector of width %s was refused: %s has %s", vector.shape, self.model, self.width)
            return False
        return True

    async def _learn(self, width: int) -> None:
        """Know the width of the model: as it is in the file, else this one, which is written there."""
        if await self.number() >= 0:
            return
        rows = await self._db.returning(
            "INSERT INTO models (name, width) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING no, width",
            (self.model, width),
        )
        self._number, self.width = int(rows[0]["no"]), int(rows[0]["width"])
