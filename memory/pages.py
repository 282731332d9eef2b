"""Store of sealed vectors: pages of bytes, each vector's place known by its text hash.

A page is rewritten without what is erased from it; ``secure_delete`` and the rewriting of the file see to the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory.db import Database
from memory.model import Account
from memory.ports import Vector
from memory.vectors import Coded, decoded

PAGE: Final = 1_024
"""Vectors of a page (NUMBERS, section 3): one megabyte of the widest usual ones, rewritten in 4 ms."""
HASH_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class VectorPages:
    """All sealed vectors of an owner: ``keys`` in the order of the pages, ``last`` the newest vector's row id."""

    pages: list[Coded]
    keys: NDArray[np.uint64]
    last: int


@dataclass(frozen=True, slots=True)
class Page:
    """One page: the text hashes, one behind the other, and their vectors."""

    id: int
    hashes: bytes
    held: Coded

    def without(self, gone: NDArray[np.bool_]) -> Page:
        """The page without some of its vectors."""
        hashes = np.frombuffer(self.hashes, f"V{HASH_BYTES}")[~gone].tobytes()
        return Page(self.id, hashes, self.held.chosen(~gone))


class Pages:
    """Pages in their owner's range; the id of one is that of its newest vector."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def all(self, owner: Account, model: int, *, after: int = 0) -> list[Page]:
        """The owner's pages of a model, oldest first."""
        rows = await self._db.fetch(
            "SELECT id, hashes, scales, offsets, data FROM vector_pages WHERE id BETWEEN ? AND ? AND model = ?"
            " ORDER BY id",
            (max(owner.first_id, after + 1), owner.last_id, model),
        )
        return [_page(*row) for row in rows]

    async def newest(self, owner: Account, model: int) -> Page | None:
        """The owner's newest page of a model."""
        rows = await self._db.fetch(
            "SELECT id, hashes, scales, offsets, data FROM vector_pages WHERE id BETWEEN ? AND ? AND model = ?"
            " ORDER BY id DESC LIMIT 1",
            (owner.first_id, owner.last_id, model),
        )
        return _page(*rows[0]) if rows else None

    async def put(self, owner: Account, model: int, page: Page) -> None:
        """Write a page in the place of one with its id."""
        if not owner.owns(page.id):
            raise ValueError("a page lies in its owner's range")
        await self._db.execute(
            "INSERT OR REPLACE INTO vector_pages (id, model, hashes, scales, offsets, data) VALUES (?, ?, ?, ?, ?, ?)",
            (
                page.id,
                model,
                page.hashes,
                page.held.scales.tobytes(),
                page.held.offsets.tobytes(),
                page.held.data.tobytes(),
            ),
        )

    async def drop(self, owner: Account, id_: int) -> None:
        """Remove a page."""
        await self._db.execute(
            "DELETE FROM vector_pages WHERE id = ? AND id BETWEEN ? AND ?", (id_, owner.first_id, owner.last_id)
        )

    async def cut(self, owner: Account) -> None:
        """Rewrite the pages that hold a vector whose key is gone."""
        for model, id_, gone in await self._torn(owner):
            (page,) = [page for page in await self.all(owner, model, after=id_ - 1) if page.id == id_]
            if gone.all():
                await self.drop(owner, id_)
            else:
                await self.put(owner, model, page.without(gone))

    async def torn(self, owner: Account) -> bool:
        """Whether a page holds a vector whose key is gone."""
        return bool(await self._torn(owner))

    async def _torn(self, owner: Account) -> list[tuple[int, int, NDArray[np.bool_]]]:
        """(model, page, which of its vectors have no key) of the pages that hold any such."""
        within = (owner.first_id, owner.last_id)
        pages = await self._db.fetch("SELECT id, model, hashes FROM vector_pages WHERE id BETWEEN ? AND ?", within)
        if not pages:
            return []
        rows = await self._db.fetch("SELECT model, text_hash FROM embeddings WHERE id BETWEEN ? AND ?", within)
        keys = {(row["model"], row["text_hash"]) for row in rows}
        gone = [
            (row["model"], row["id"], np.array([(row["model"], key) not in keys for key in split(row["hashes"])]))
            for row in pages
        ]
        return [torn for torn in gone if torn[2].any()]


def split(hashes: bytes) -> list[bytes]:
    """Text hashes that stand one behind the other."""
    return [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]


def keys_of(hashes: bytes) -> NDArray[np.uint64]:
    """What text hashes that stand one behind the other are found by in memory, as ``memory.vectors.key_of``."""
    return np.frombuffer(hashes, "<u8").reshape(-1, 2)[:, 0].copy()


def joined(pages: Sequence[Page]) -> VectorPages | None:
    """Pages as the recall index takes them, None without any."""
    if not pages:
        return None
    return VectorPages([page.held for page in pages], keys_of(b"".join(page.hashes for page in pages)), pages[-1].id)


def told(pages: Sequence[Page], wanted: Collection[bytes], centre: Vector) -> tuple[list[bytes], NDArray[np.float32]]:
    """The wanted vectors of some pages, (n, d), and their text hashes."""
    hashes: list[bytes] = []
    parts = [np.empty((0, len(centre)), np.float32)]
    for page in pages:
        keys = split(page.hashes)
        chosen = np.array([key in wanted for key in keys])
        hashes += [key for key in keys if key in wanted]
        parts.append(decoded(page.held.chosen(chosen), centre))
    return hashes, np.concatenate(parts)


def resealed(ids: Sequence[int], hashes: Sequence[bytes], held: Coded, old: Page | None) -> list[Page]:
    """Vectors in pages, the first of which takes those of the last page along while that is not full."""
    if old is None or len(old.held) >= PAGE:
        return paged(ids, b"".join(hashes), held)
    return paged([old.id] * len(old.held) + list(ids), old.hashes + b"".join(hashes), old.held.with_more(held))


def paged(ids: Sequence[int], hashes: bytes, held: Coded) -> list[Page]:
    """Vectors in pages; ``ids`` are their row ids, ascending."""
    starts = range(0, len(ids), PAGE)
    return [
        Page(
            ids[min(start + PAGE, len(ids)) - 1],
            hashes[start * HASH_BYTES : (start + PAGE) * HASH_BYTES],
            held.chosen(slice(start, start + PAGE)),
        )
        for start in starts
    ]


def _page(id_: int, hashes: bytes, scales: bytes, offsets: bytes, data: bytes) -> Page:
    numbers = np.frombuffer(scales, "<f4")
    held = Coded(np.frombuffer(data, np.int8).reshape(len(numbers), -1), numbers, np.frombuffer(offsets, "<f4"))
    return Page(id_, hashes, held)
