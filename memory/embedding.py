"""Store of vectors, and the one place that asks the embedder.

A vector is keyed by owner, text hash and model: the same text of the same owner is embedded once, an
edit changes the hash so a stale vector can never match, and two models never meet. A text too long for
one vector has one for each of its chunks besides, which are rows of their own and go with the text.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory.accounts import Accounts
from memory.db import Database
from memory.model import Account
from memory.offloop import off_loop
from memory.pages import PAGE, Pages, VectorPages, joined, resealed, told
from memory.passages import WHOLE_BYTES, chunks
from memory.ports import Clock, Embedder, Vector
from memory.space import Chunk, Space, VectorRows
from memory.usage import Usage, tokens
from memory.vectors import coded, pack, pack_bytes, unpack, unpack_bytes
from memory.wanting import HELD_BY_NONE, PART_OF_NONE, UNCUT, WAITING

BATCH: Final = 64
"""Texts handed to the embedder at a time; it splits further as its endpoint wants."""
QUERIES_KEPT: Final = 256
SEAL_FROM: Final = 64
"""Vectors that have to come together before they are moved into pages."""
RETRY: Final = timedelta(hours=1)
"""Pause before a text the embedder refused is tried again."""
_ROWS_A_TEXT: Final = 200
"""What it costs to cut a long text, in the rows that :func:`memory.offloop.off_loop` counts by."""


def text_hash(text: str) -> bytes:
    """16-byte BLAKE2b of the NFC text: the key of its vector."""
    return hashlib.blake2b(unicodedata.normalize("NFC", text).encode("utf-8", "replace"), digest_size=16).digest()


def spoken(speaker: str, text: str) -> str:
    """A journal line as it is embedded: who said it, and what."""
    return f"{speaker}: {text}" if speaker else text


@dataclass(slots=True)
class Backlog:
    """What came since an owner's texts last had their vectors: since when, how many, of which sessions.

    Kept in memory only.
    """

    since: datetime
    texts: int = 0
    sessions: set[int] = field(default_factory=set)


class Embeddings:
    """Vectors in their owner's id range."""

    def __init__(self, db: Database, accounts: Accounts, embedder: Embedder | None, clock: Clock) -> None:
        self._db = db
        self.usage = Usage(db, clock)
        """What people's chats cost."""
        self._accounts = accounts
        self._embedder = embedder
        self._space = Space(db, embedder)
        self._pages = Pages(db)
        self._clock = clock
        self._settled: set[int] = set()
        self._backlogs: dict[int, Backlog] = {}
        self._erasures = 0
        self._refused: dict[tuple[int, bytes], datetime] = {}
        self._queries: OrderedDict[tuple[int, bytes], Vector] = OrderedDict()

    @property
    def model(self) -> str | None:
        """Identity of the current vector space, None without an embedder."""
        return self._space.model

    def disturbed(self, owner: Account, *, session: int | None = None) -> None:
        """Note that the owner may have a text without a vector, and in which session it was said if it was."""
        if owner.no in self._settled:
            self._settled.discard(owner.no)
            self._backlogs[owner.no] = Backlog(self._clock())
        if (backlog := self._backlogs.get(owner.no)) is not None:
            backlog.texts += 1
            backlog.sessions |= set() if session is None else {session}

    def settled(self, owner: Account) -> None:
        """Note that the owner's texts have their vectors. After a start nobody's are known to."""
        self._settled.add(owner.no)
        self._backlogs.pop(owner.no, None)

    def unknown(self, owner: Account) -> None:
        """Note that any text of the owner may lack its vector, as after a start."""
        self._settled.discard(owner.no)
        self._backlogs.pop(owner.no, None)

    def backlog(self, owner: Account) -> Backlog | None:
        """What waits for vectors since the owner's texts last had all of theirs; None where that is unknown."""
        return self._backlogs.get(owner.no)

    def owners_waiting(self, numbers: Sequence[int]) -> list[int]:
        """Which of these account numbers may have texts without a vector, refused ones whose pause is over included."""
        if self._embedder is None:
            return []
        now = self._clock()
        again = {number for (number, _), until in self._refused.items() if until <= now}
        return [number for number in numbers if number in again or number not in self._settled]

    async def waiting(self, owner: Account, limit: int = BATCH) -> list[str]:
        """Texts of the owner, chunks among them, that have no vector of the current model yet, oldest first.

        Hidden and superseded rows, and commands, are not waiting.
        """
        if self._embedder is None:
            return []
        now = self._clock()
        self._refused = {key: until for key, until in list(self._refused.items()) if until > now}
        refused = [key.hex().upper() for number, key in self._refused if number == owner.no]
        rows = await self._db.fetch(
            WAITING,
            {
                "lo": owner.first_id,
                "hi": owner.last_id,
                "model": await self._space.number(),
                "limit": limit,
                "refused": json.dumps(refused),
            },
        )
        texts = (spoken(row["speaker"], row["text"][row["begins"] : row["ends"]]) for row in rows)
        return list(dict.fromkeys(texts))[:limit]

    async def fill(self, owner: Account, texts: Sequence[str] | None = None) -> int:
        """Embed ``texts`` (default: what waits) and store the vectors; returns how many were stored.

        A refused, blank, NaN, zero or wrongly wide vector is left out and tried again later, alone.
        Raises EmbedderUnavailable; what was stored before stays.
        """
        if self._embedder is None:
            return 0
        if self._db.inside:
            raise RuntimeError("no transaction may be open while the embedder is awaited")
        stored = 0
        # In turn with the writers: an erasure under way is counted before what it erases is out of sight.
        begun, queue = await self._db.written(partial(self._queue, owner, texts))
        while queue:
            batch, queue = queue[:BATCH], queue[BATCH:]
            vectors = await self._embedder.embed(batch)
            self.usage.count(owner, "embed", times=len(batch), tokens_in=tokens(None, *batch))
            stored += await self._store(owner, batch, vectors, held=self._erasures != begun)
            if texts is None and not queue:
                queue = await self._due(owner)
        return stored

    async def chunks(self, owner: Account, *, after: int = 0) -> list[Chunk]:
        """The owner's chunks whose own id is above ``after``."""
        rows = await self._db.fetch(
            "SELECT id, part_of, begins, ends, text_hash FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id",
            (max(owner.first_id, after + 1), owner.last_id),
        )
        return [Chunk(*row) for row in rows]

    async def rows(self, owner: Account, *, after: int = 0) -> VectorRows:
        """The owner's vectors of the current model whose row id is above ``after``, sealed ones first."""
        loose = await self._loose(owner, after=after)
        sealed = await self._db.fetch(
            "SELECT id, text_hash FROM embeddings WHERE id BETWEEN ? AND ? AND model = ? AND data = x'' ORDER BY id",
            (max(owner.first_id, after + 1), owner.last_id, await self._space.number()),
        )
        centre = await self.centre(owner) if sealed else None
        if centre is None:
            return loose
        pages = await self._pages.all(owner, await self._space.number(), after=after)
        wanted = {row["text_hash"]: row["id"] for row in sealed}
        hashes, matrix = await off_loop(partial(told, pages, set(wanted), centre), size=len(wanted))
        return VectorRows(
            max(loose.last, sealed[-1]["id"]),
            hashes + loose.hashes,
            np.concatenate((matrix, loose.matrix)) if loose.hashes else matrix,
            [wanted[key] for key in hashes] + loose.ids,
        )

    async def _loose(self, owner: Account, *, after: int = 0) -> VectorRows:
        """Those that are not in pages yet."""
        rows = await self._db.fetch(
            "SELECT id, text_hash, scale, data FROM embeddings WHERE id BETWEEN ? AND ? AND model = ? AND data != x''"
            " ORDER BY id",
            (max(owner.first_id, after + 1), owner.last_id, await self._space.number()),
        )
        if not rows:
            return VectorRows(after, [], np.empty((0, self._space.width or 0), np.float32))
        matrix = await off_loop(partial(unpack, rows), size=len(rows))
        return VectorRows(rows[-1]["id"], [row["text_hash"] for row in rows], matrix, [row["id"] for row in rows])

    async def pages(self, owner: Account) -> VectorPages | None:
        """The owner's sealed vectors of the current model, None without any."""
        return joined(await self._pages.all(owner, await self._space.number()))

    async def centre(self, owner: Account) -> Vector | None:
        """What the owner's sealed vectors of the current model are coded around; None before anybody has such."""
        rows = await self._db.fetch(
            "SELECT centre FROM models WHERE no = ? AND ? > 0", (await self._space.number(), owner.no)
        )
        return np.frombuffer(rows[0]["centre"], "<f4") if rows and rows[0]["centre"] is not None else None

    async def seal(self, owner: Account, centre: Vector) -> int:
        """Move the owner's vectors into pages once enough have come together; returns how many.

        ``centre`` is nobody's: the mean of what ships with the program. The first one given for a model stays.
        """
        async with self._db.transaction():
            rows = await self._loose(owner)
            if len(rows.hashes) < SEAL_FROM or rows.matrix.shape[1:] != centre.shape:
                return 0
            model = await self._space.number()
            await self._db.execute(
                "UPDATE models SET centre = ? WHERE no = ? AND centre IS NULL", (centre.astype("<f4").tobytes(), model)
            )
            fixed = await self.centre(owner)
            old = await self._pages.newest(owner, model)
            work = partial(resealed, rows.ids, rows.hashes, coded(rows.matrix, centre if fixed is None else fixed), old)
            for page in await off_loop(work, size=len(rows.hashes)):
                await self._pages.put(owner, model, page)
            if old is not None and old.id < rows.ids[0] and len(old.held) < PAGE:
                await self._pages.drop(owner, old.id)
            # Written anew instead of emptied: a row that shrinks leaves its page of the file as empty as it becomes.
            await self._db.execute(
                "DELETE FROM embeddings WHERE id BETWEEN ? AND ? AND model = ?", (rows.ids[0], rows.last, model)
            )
            await self._db.executemany(
                "INSERT INTO embeddings (id, model, text_hash, scale, data) VALUES (?, ?, ?, 0, x'')",
                [(id_, model, key) for id_, key in zip(rows.ids, rows.hashes, strict=True)],
            )
        return len(rows.hashes)

    async def of(self, owner: Account, texts: Collection[str]) -> dict[str, Vector]:
        """The stored vectors of the current model of these texts of the owner, of length 1; some may have none."""
        keys, model = {text_hash(text): text for text in texts}, await self._space.number()
        rows = await self._db.fetch(
            "SELECT text_hash, scale, data FROM embeddings WHERE id BETWEEN :lo AND :hi AND model = :model"
            " AND data != x'' AND hex(text_hash) IN (SELECT value FROM json_each(:hashes))",
            _range(owner)
            | {"model": await self._space.number(), "hashes": json.dumps([key.hex().upper() for key in keys])},
        )
        found = dict(zip((row["text_hash"] for row in rows), unpack(rows), strict=True)) if rows else {}
        centre = await self.centre(owner) if len(found) < len(keys) else None
        if centre is not None:
            pages = await self._pages.all(owner, model)
            hashes, matrix = await off_loop(
                partial(told, pages, keys.keys() - found.keys(), centre), size=sum(len(page.held) for page in pages)
            )
            found |= zip(hashes, matrix, strict=True)
        return {keys[key]: vector for key, vector in found.items()}

    async def query(self, owner: Account, text: str) -> Vector | None:
        """The vector of a question: kept in memory only, never stored. None when it has none.

        Raises EmbedderUnavailable.
        """
        if self._embedder is None or not text.strip():
            return None
        key = (owner.no, text_hash(text))
        if key in self._queries:
            self._queries.move_to_end(key)
            return self._queries[key]
        (vector,) = await self._embedder.embed([text])
        self.usage.count(owner, "embed", tokens_in=tokens(None, text))
        if vector is None or not await self._space.fits(vector):
            return None
        self._queries[key] = vector
        if len(self._queries) > QUERIES_KEPT:
            self._queries.popitem(last=False)
        return vector

    async def probes(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of texts that ship with the program, (n, d) in their order; asked for once a model, then stored.

        They are nobody's memory, hence no owner. A text without a vector gives a row of zeros. Raises
        EmbedderUnavailable.
        """
        if self._embedder is None:
            return np.empty((0, 0), np.float32)
        known = await self._stored_probes()
        missing = [text for text in texts if text_hash(text) not in known]
        for start in range(0, len(missing), BATCH):
            batch, fresh = missing[start : start + BATCH], dict[bytes, tuple[float, bytes]]()
            for text, vector in zip(batch, await self._embedder.embed(batch), strict=True):
                if vector is not None and await self._space.fits(vector):
                    fresh[text_hash(text)] = pack_bytes(vector)
            model = await self._space.number()
            await self._db.executemany(
                "INSERT OR IGNORE INTO probes (model, text_hash, scale, data) VALUES (?, ?, ?, ?)",
                [(model, key, *packed) for key, packed in fresh.items()],
            )
            # As they will be after the next start, so that nothing is judged otherwise then.
            known |= {key: unpack_bytes(*packed) for key, packed in fresh.items()}
        blank = np.zeros(self._space.width or 0, np.float32)
        return np.stack([known.get(text_hash(text), blank) for text in texts])

    async def sweep(self, owner: Account) -> int:
        """Remove every vector, of any model, whose text no row of the owner holds any more; returns how many went."""
        self._queries.clear()
        self._erasures += 1
        async with self._db.transaction():
            gone = await self._db.execute(f"DELETE FROM embeddings {HELD_BY_NONE}", _range(owner))
            if gone:
                await self._pages.cut(owner)
        return gone

    async def orphaned(self, owner: Account) -> bool:
        """Whether a vector or a chunk is left although no row of the owner holds its text."""
        return await self._pages.torn(owner) or bool(
            await self._db.fetch(
                f"SELECT 1 FROM embeddings {HELD_BY_NONE} UNION ALL SELECT 1 FROM chunks {PART_OF_NONE} LIMIT 1",
                _range(owner),
            )
        )

    async def _queue(self, owner: Account, texts: Sequence[str] | None) -> tuple[int, list[str]]:
        """How often anything was erased so far, and what is to be embedded."""
        return self._erasures, list(texts) if texts is not None else await self._due(owner)

    async def _due(self, owner: Account) -> list[str]:
        """What waits for a vector, once every long text has been cut."""

        async def writing() -> list[str]:
            await self._cut(owner)
            return await self.waiting(owner)

        return await self._db.written(writing)

    async def _cut(self, owner: Account) -> None:
        """Give every long text that has none its chunks; one from before there were any gets them now."""
        long = await self._db.fetch(UNCUT, _range(owner) | {"whole": WHOLE_BYTES})
        if not long:
            return

        def cut() -> list[tuple[int, int, int, bytes]]:
            return [
                (row["id"], begins, ends, text_hash(spoken(row["speaker"], row["text"][begins:ends])))
                for row in long
                for begins, ends in chunks(row["text"])
            ]

        made = await off_loop(cut, size=len(long) * _ROWS_A_TEXT)
        ids = await self._accounts.next_ids(owner, len(made))
        await self._db.executemany(
            "INSERT INTO chunks (id, part_of, begins, ends, text_hash) VALUES (?, ?, ?, ?, ?)",
            [(id_, *chunk) for id_, chunk in zip(ids, made, strict=True)],
        )

    async def _store(
        self, owner: Account, texts: Sequence[str], vectors: Sequence[Vector | None], *, held: bool
    ) -> int:
        """Write vectors; with ``held`` (something was erased meanwhile) only those whose text a row still holds."""
        good: list[tuple[bytes, Vector]] = []
        for text, vector in zip(texts, vectors, strict=True):
            if vector is not None and await self._space.fits(vector):
                good.append((text_hash(text), vector))
            else:
                self._refused[owner.no, text_hash(text)] = self._clock() + RETRY
        if not good:
            return 0
        model = await self._space.number()
        packed = [(key, *pack(vector)) for key, vector in good]
        return await self._db.written(partial(self._add, owner, model, packed, held=held))

    async def _add(
        self, owner: Account, model: int, packed: Sequence[tuple[bytes, float, bytes]], *, held: bool
    ) -> int:
        ids = await self._accounts.next_ids(owner, len(packed))
        await self._db.executemany(
            "INSERT INTO embeddings (id, model, text_hash, scale, data) SELECT :id, :model, :hash, :scale, :data"
            " WHERE NOT EXISTS (SELECT 1 FROM embeddings WHERE text_hash = :hash AND model = :model"
            " AND id BETWEEN :lo AND :hi)",
            [
                {"id": id_, "model": model, "hash": key, "scale": scale, "data": data} | _range(owner)
                for id_, (key, scale, data) in zip(ids, packed, strict=True)
            ],
        )
        gone = 0
        if held:
            gone = await self._db.execute(
                f"DELETE FROM embeddings {HELD_BY_NONE} AND id BETWEEN :first AND :last",
                _range(owner) | {"first": ids[0], "last": ids[-1]},
            )
        return len(packed) - gone

    async def _stored_probes(self) -> dict[bytes, Vector]:
        rows = await self._db.fetch(
            "SELECT text_hash, scale, data FROM probes WHERE model = ?", (await self._space.number(),)
        )
        return {row["text_hash"]: unpack_bytes(row["scale"], row["data"]) for row in rows}


def _range(owner: Account) -> dict[str, int]:
    return {"lo": owner.first_id, "hi": owner.last_id}
