"""Forgetting: show what would go, hide it at once, erase it in time, prove it.

Everything here takes the owner and touches only the owner's rows. What a person forgets is named by
words, so matching is done in Python on normalised text: no character is a wildcard.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from memory.db import Database
from memory.embedding import spoken, text_hash
from memory.model import Account, Chat, Entry, Message, ProfileLine
from memory.promises import Deletion, Offer
from memory.slots import slot
from memory.stores import Stores
from memory.verdicts import covers
from memory.words import terms

OFFER_LASTS: Final = timedelta(hours=24)
_SYMBOLS: Final = 0x2000
"""Where the blocks of symbols begin: an emoji is something to look for, a lone "%" is not."""
SHORTEST_NEEDLE: Final = 2
"""A value of one character ("猫") only takes the lines it was learned from along, not every line that holds it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What ``/forget words`` would delete: ``entries`` in the order they are numbered, and journal lines."""

    offer: int
    entries: tuple[Entry, ...]
    lines: tuple[Message, ...]


class Forgetting:
    """The forget gate."""

    def __init__(self, db: Database, stores: Stores, undo: timedelta) -> None:
        self._db = db
        self._stores = stores
        self._undo = undo

    async def plan(self, owner: Account, chat: Chat, words: str, *, now: datetime) -> Plan | None:
        """Find what ``words`` name, closed and expired memories included, and offer to delete it.

        A plan is shown, so in a group it holds what may be shown there and was said there, nothing else.
        Returns None when nothing matches. Nothing is deleted yet.
        """
        query = normal(words)
        if not any(character.isalnum() or ord(character) > _SYMBOLS for character in query):
            return None
        entries = [
            entry
            for store in self._stores.entries
            for entry in await store.history(owner)
            if covers(entry.provenance.audience, chat.audience) and _names(query, entry)
        ]
        said = [
            message
            for message in await self._stores.journal.said(owner)
            if (chat.private or message.chat == chat.no) and query in normal(message.text)
        ]
        if not entries and not said:
            return None
        data = {"entries": [entry.id for entry in entries], "lines": [message.id for message in said]}
        offer = await self._stores.promises.offer(owner, chat.no, "forget", data, expires_at=now + OFFER_LASTS)
        return Plan(offer.id, tuple(entries), tuple(said))

    async def pending(self, owner: Account, chat: Chat, *, now: datetime) -> Offer | None:
        """The plan that waits for a yes in this chat."""
        return await self._stores.promises.offered(owner, chat.no, "forget", now=now)

    async def carry_out(
        self, owner: Account, offer: int, *, picks: Sequence[int] | None, now: datetime
    ) -> Deletion | None:
        """Hide what an offer named, at once and everywhere; erasure follows after the time for undo.

        ``picks`` are 1-based numbers of the plan's entries; None takes the whole plan. Returns None when the
        offer is not open or a pick is not among its numbers; then nothing has changed.
        """
        async with self._db.transaction():
            taken = await self._stores.promises.take(owner, offer, now=now)
            if taken is None:
                return None
            ids: list[int] = taken.data["entries"]
            lines: list[int] = taken.data["lines"]
            if picks is not None:
                if not picks or not all(1 <= pick <= len(ids) for pick in picks):
                    raise PickError(len(ids))
                ids, lines = [ids[pick - 1] for pick in dict.fromkeys(picks)], []
            return await self._hide(owner, taken.chat, ids, lines, now=now)

    async def cancel(self, owner: Account, offer: int, *, now: datetime) -> bool:
        """Close an offer without deleting anything."""
        return await self._stores.promises.take(owner, offer, now=now) is not None

    async def undo(self, owner: Account, deletion: int | None, *, now: datetime) -> Deletion | None:
        """Bring back what a deletion hid (the newest one if None); None when there is nothing to undo."""
        async with self._db.transaction():
            for found in await self._stores.promises.undoable(owner, now=now):
                if deletion not in (None, found.id):
                    continue
                if not await self._stores.promises.undone(owner, found.id, at=now):
                    return None
                await self._stores.journal.unhide(owner, found.id)
                for store in self._stores.entries:
                    await store.unhide(owner, found.id)
                return found
        return None

    async def erase_due(self, owner: Account, *, now: datetime) -> list[Deletion]:
        """Erase what has waited long enough, search for it, and only then owe the receipt.

        A kill at any point leaves the deletion due; the next run finishes it. Raises ErasureError when the
        search still finds something: then there is no receipt.
        """
        done = []
        for deletion in await self._stores.promises.due(owner, now=now):
            lines = await self._stores.journal.hidden(owner, deletion.id)
            entries = [e for store in self._stores.entries for e in await store.hidden(owner, deletion.id)]
            await self._remove(owner, entries, lines)
            await self._db.scrub()
            await self._prove(owner, deletion, entries, lines)
            async with self._db.transaction():
                if await self._stores.promises.erased(owner, deletion.id, at=now):
                    await self._stores.promises.notify(
                        owner, deletion.chat, "forget.receipt", dict(deletion.counts), at=now
                    )
                    done.append(deletion)
        return done

    async def _hide(
        self, owner: Account, chat: int, ids: Sequence[int], lines: Sequence[int], *, now: datetime
    ) -> Deletion:
        entries = [e for store in self._stores.entries for e in (await store.get(owner, ids)).values()]
        needles = needles_of(entries)
        gone = set(lines) | {c.message for e in entries for c in e.provenance.citations}
        said = await self._stores.journal.said(owner)
        gone |= {m.id for m in said if any(needle in normal(m.text) for needle in needles)}
        gone |= set(await self._stores.traces.using(owner, ids))
        deletion = await self._stores.promises.delete(owner, chat, at=now, erase_at=now + self._undo)
        await self._withdraw_quotes(owner, set(ids), gone, needles)
        counts = {"memories": 0, "messages": 0, "replies": 0}
        for store in self._stores.entries:
            counts["memories"] += await store.hide(owner, ids, deletion)
        roles = {m.id: m.role for m in said}
        counts["replies"] = await self._stores.journal.hide(owner, [i for i in gone if roles.get(i) == "bot"], deletion)
        counts["messages"] = await self._stores.journal.hide(
            owner, [i for i in gone if roles.get(i) == "user"], deletion
        )
        return await self._stores.promises.counted(owner, deletion, counts)

    async def _withdraw_quotes(
        self, owner: Account, forgotten: set[int], lines: set[int], needles: Iterable[str]
    ) -> None:
        """Another memory that cites a forgotten line keeps only its own words of it."""
        for store in self._stores.entries:
            for entry in await store.citing(owner, lines):
                for citation in entry.provenance.citations:
                    told = normal(citation.quote)
                    if entry.id not in forgotten and any(needle in told for needle in needles):
                        await store.requote(owner, entry.id, citation.message, entry.text)

    async def _remove(self, owner: Account, entries: Sequence[Entry], lines: Sequence[Message]) -> None:
        ids, line_ids = [e.id for e in entries], [m.id for m in lines]
        hashes = [text_hash(e.text) for e in entries] + [text_hash(spoken(m.speaker, m.text)) for m in lines]
        async with self._db.transaction():
            for store in self._stores.entries:
                await store.erase(owner, ids)
            await self._stores.traces.erase(owner, line_ids)
            await self._stores.journal.erase(owner, line_ids)
            await self._stores.embeddings.erase(owner, hashes)

    async def _prove(
        self, owner: Account, deletion: Deletion, entries: Sequence[Entry], lines: Sequence[Message]
    ) -> None:
        """Search every place of the owner's words for what was erased; raises ErasureError if any is left.

        Words the owner said anew after the deletion are new, and do not count.
        """
        ids = [entry.id for entry in entries]
        left = [
            bool(await self._stores.journal.hidden(owner, deletion.id)),
            bool(await self._stores.journal.lines(owner, [m.id for m in lines])),
        ]
        for store in self._stores.entries:
            left += [bool(await store.hidden(owner, deletion.id)), bool(await store.get(owner, ids))]
        needles = needles_of(entries)
        left += [
            m.at <= deletion.at and any(needle in normal(m.text) for needle in needles)
            for m in await self._stores.journal.said(owner)
        ]
        hashes = [text_hash(e.text) for e in entries] + [text_hash(spoken(m.speaker, m.text)) for m in lines]
        left.append(await self._stores.embeddings.orphaned(owner, hashes))
        if any(left):
            raise ErasureError(deletion.id)


class PickError(ValueError):
    """A number that the plan does not have; ``count`` is how many it has."""

    def __init__(self, count: int) -> None:
        super().__init__(f"the plan has the numbers 1 to {count}")
        self.count = count


class ErasureError(Exception):
    """Something of a deletion was still found after its erasure."""

    def __init__(self, deletion: int) -> None:
        super().__init__(f"deletion {deletion}: rows are left after the erasure; it will be tried again")
        self.deletion = deletion


def normal(text: str) -> str:
    """Text as it is compared: NFKC, case folded, white space and zero-width characters out."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if not c.isspace() and unicodedata.category(c) not in ("Cf", "Cc"))


def needles_of(entries: Iterable[Entry]) -> set[str]:
    """The normalised strings that give a memory away: its value, its sentence, its quotes."""
    found: set[str] = set()
    for entry in entries:
        found.add(normal(entry.value if isinstance(entry, ProfileLine) else entry.text))
        found |= {normal(c.quote) for c in entry.provenance.citations}
    return {needle for needle in found if len(needle) >= SHORTEST_NEEDLE}


def _names(query: str, entry: Entry) -> bool:
    """Whether words name a memory: contained in it, or all their terms are, or they name its slot."""
    texts = [entry.text, *(c.quote for c in entry.provenance.citations)]
    if isinstance(entry, ProfileLine):
        texts += [entry.value, *slot(entry.attribute).labels.values()]
    if any(query in normal(text) for text in texts):
        return True
    wanted = set(terms(query))
    return bool(wanted) and wanted <= {term for text in texts for term in terms(text)}
