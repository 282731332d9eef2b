"""What a platform changes or takes back: the journal follows, and what was remembered from it is withdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.accounts import Chats
from memory.answering import Answering
from memory.db import Database
from memory.echoes import Echoes, Lost
from memory.erasures import Erasures
from memory.journal import Line
from memory.model import Account, Chat, Entry, Message
from memory.needles import giveaways
from memory.reconcile import Gate
from memory.reserve import Reserve
from memory.sessions import Sessions
from memory.stores import Stores


@dataclass(frozen=True, slots=True)
class Revision:
    """What came of an edit: the line as it reads now, and the texts of the memories that went with the old words.

    ``was_answered`` tells that a reply was journaled, ``waits`` that the line waits for one (or for its delivery),
    ``newest`` that nobody has written in the chat since, so that the answer may be given anew.
    """

    message: Message
    withdrawn: tuple[str, ...]
    was_answered: bool
    waits: bool
    newest: bool


@dataclass(frozen=True, slots=True)
class _Taken:
    """The memories that went with words that were taken back; ``seen`` are those that no deletion hid."""

    erased: Sequence[Entry]
    seen: Sequence[Entry]


class Revising:
    """The gate for edits and deletions on a platform; each in one transaction."""

    def __init__(
        self,
        db: Database,
        chats: Chats,
        sessions: Sessions,
        stores: Stores,
        *,
        gate: Gate,
        answering: Answering,
        reserve: Reserve,
        echoes: Echoes,
    ) -> None:
        self._db = db
        self._echoes = echoes
        self._erasures = Erasures(db)
        self._chats = chats
        self._stores = stores
        self._sessions = sessions
        self._gate = gate
        self._answering = answering
        self._reserve = reserve

    async def revise(
        self, owner: Account, chat: Chat, platform_id: str, line: Line, *, now: datetime
    ) -> Revision | None:
        """Give a line its new words (text, kind and tokens of ``line``) and take back what the old ones gave.

        A memory that rests on them alone is erased, and what it had taken the place of is open again; one with
        other citations keeps those. A reply stays unless it holds what was withdrawn. The line is distilled again,
        unless its new words are fleeting.
        None when it was never heard or was forgotten, and when its words are the same.
        """
        journal = self._stores.journal
        async with self._db.transaction():
            chat = await self._chats.resolved(owner, chat)
            said = await journal.original(owner, chat, platform_id)
            if said is None or said.text == line.text:
                return None
            line = await self._reserve.marked(owner, chat, line)
            taken = await self._take_back(owner, [said.id], now=now)
            replies = await journal.answers_to(owner, [said.id])
            telltale = giveaways(taken.erased)
            telling = {reply.id for reply in replies if telltale.found_in(reply.text)}
            lost = Lost([said], taken.erased, [reply.id for reply in replies])
            echoed = await self._echoes.own(owner, lost, kept=[line.text])
            telling |= {reply.id for reply in echoed}
            await self._echoes.withdraw(owner, lost.along_with(echoed))
            await self._answering.erase(owner, telling)
            await self._note(owner, chat, [said.id, *telling, *(entry.id for entry in taken.erased)], now=now)
            new = await journal.rewrite(owner, said, line)
            if not line.text:
                await self._stores.waits.remove(owner, [said.id])
            await self._sessions.again(owner, said.session)
            await self._stores.embeddings.sweep(owner)
            if not await journal.stands(owner, new):
                return None  # Hidden by a /forget: changed all the same, but nobody's to see or to answer.
            return Revision(
                new,
                tuple(entry.text for entry in taken.seen),
                was_answered=bool(replies),
                waits=await self._stores.waits.waits(owner, said.id),
                newest=not await journal.overtaken(owner, said),
            )

    async def withdraw(self, owner: Account, chat: Chat, platform_ids: Sequence[str], *, now: datetime) -> int:
        """Erase lines that were deleted on the platform, what rests on them alone, and the replies to them.

        Marks without words stay, so that nothing is learned anew. Returns how many lines went.
        """
        journal = self._stores.journal
        async with self._db.transaction():
            chat = await self._chats.resolved(owner, chat)
            found = [await journal.original(owner, chat, platform_id) for platform_id in dict.fromkeys(platform_ids)]
            known = [line for line in found if line is not None]
            lines = [line.id for line in known]
            if not lines:
                return 0
            replies = {reply.id for reply in await journal.answers_to(owner, lines)}
            taken = await self._take_back(owner, lines, now=now)
            lost = Lost(known, taken.erased, frozenset(replies))
            echoed = await self._echoes.own(owner, lost)
            replies |= {reply.id for reply in echoed}
            await self._echoes.withdraw(owner, lost.along_with(echoed))
            await self._answering.erase(owner, [*lines, *replies])
            await self._note(owner, chat, [*lines, *replies, *(entry.id for entry in taken.erased)], now=now)
        return len(lines)

    async def _note(self, owner: Account, chat: Chat, rows: Sequence[int], *, now: datetime) -> None:
        """Note that words were taken back, and which rows an older copy of the file must not bring back."""
        deletion = await self._stores.promises.withdrawn(owner, chat.no, at=now)
        await self._erasures.note(owner, deletion, rows)

    async def _take_back(self, owner: Account, lines: Sequence[int], *, now: datetime) -> _Taken:
        """Erase the memories that rest on these lines alone; others lose only the citations.

        What was closed in favour of an erased one, or ended by these lines, is open again unless something newer
        holds its place. Only those that were visible give their place back.
        """
        erased: list[Entry] = []
        gone: list[Entry] = []
        closed: list[Entry] = []
        for store in self._stores.entries:
            seen = {entry.id for entry in await store.citing(owner, lines)}
            for entry in await store.resting_on(owner, lines):
                if {citation.message for citation in entry.provenance.citations} - set(lines):
                    await store.uncite(owner, entry.id, lines)
                    continue
                if entry.id in seen:
                    closed += await self._closed_by(owner, entry)
                    gone.append(entry)
                erased.append(entry)
                await self._echoes.taken_back(owner, entry)
                await store.erase(owner, [entry.id])
            closed += await store.closed_by(owner, [], lines)
        ids = {entry.id for entry in gone}
        await self._gate.restore(owner, [entry for entry in closed if entry.id not in ids], now=now)
        return _Taken(erased, gone)

    async def _closed_by(self, owner: Account, entry: Entry) -> list[Entry]:
        """What was closed in favour of a memory; a fact may have overtaken a profile line."""
        return [each for store in self._stores.entries for each in await store.closed_by(owner, [entry.id], [])]
