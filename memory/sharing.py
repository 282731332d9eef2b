"""Where a memory may be used, as its owner wishes: everywhere, or again only where it was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.db import Database
from memory.indexes import Indexes
from memory.model import Account, Chat, Entry, ProfileLine
from memory.slots import slot
from memory.stores import Stores
from memory.together import Together
from memory.words import terms


@dataclass(frozen=True, slots=True)
class Opened:
    """A memory as it is stored now, and whether that is news."""

    entry: Entry
    changed: bool


class Sharing:
    """Opens memories to every place and closes them again. What was said in the journal stays where it was said."""

    def __init__(self, db: Database, stores: Stores, indexes: Indexes, together: Together) -> None:
        self._db = db
        self._together = together
        self._stores = stores
        self._indexes = indexes

    async def share(self, owner: Account, id_: int, *, now: datetime) -> Opened | None:
        """Open a memory that holds at ``now`` to every place; None when it is not the owner's, or holds no more."""
        return await self._set(owner, id_, now=now, everywhere=True)

    async def unshare(self, owner: Account, id_: int, *, now: datetime) -> Opened | None:
        """Have a memory be used only where it was said; None when it is not the owner's, or holds no more."""
        return await self._set(owner, id_, now=now, everywhere=False)

    async def named(self, owner: Account, words: str, *, room: Chat, now: datetime) -> list[Entry]:
        """What holds now, may be shown in ``room`` and has all of these words in it, in its quotes or its slot."""
        wanted = set(terms(words))
        if not wanted:
            return []
        held = await self._together.known(owner, room=room, now=now)
        return [entry for entry in held if wanted <= _words(entry)]

    async def _set(self, owner: Account, id_: int, *, now: datetime, everywhere: bool) -> Opened | None:
        async with self._db.transaction():
            for store in self._stores.entries:
                entry: Entry | None = (await store.get(owner, [id_])).get(id_)
                if entry is None or not entry.provenance.live(now):
                    continue
                changed = await (store.share(owner, id_, now=now) if everywhere else store.unshare(owner, id_))
                stored = (await store.get(owner, [id_]))[id_]
                break
            else:
                return None
        if changed:
            self._indexes.forget(owner)
        return Opened(stored, changed)


def _words(entry: Entry) -> set[str]:
    texts: Sequence[str] = [entry.text, *(citation.quote for citation in entry.provenance.citations)]
    if isinstance(entry, ProfileLine):
        texts = [*texts, entry.value, *slot(entry.attribute).labels.values()]
    return {term for text in texts for term in terms(text)}
