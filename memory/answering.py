"""What is heard gets its answer: journaled together with what waits for one, and taken up again after a kill."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Literal

from memory.accounts import Accounts, Chats
from memory.db import Database
from memory.echoes import Echoes
from memory.journal import Line
from memory.model import Account, Chat, Message
from memory.reserve import Reserve
from memory.rooms import Rooms
from memory.sessions import Sessions
from memory.stores import Stores
from memory.waiting import Wait

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Heard:
    """A journaled message, the reply it already has if it was delivered before, and whether it waits for one."""

    message: Message
    new: bool
    reply: Message | None = None
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message that waits for its answer, and where it was said: the platform's key of the chat and its thread.

    ``message.platform_id`` is None where the chat has moved since: the platform does not know the message there.
    ``shown`` are the platform's ids of the messages that show the answer so far, ``begun`` tells that one more may.
    ``reply`` is the answer, when only its delivery is in doubt.
    """

    owner: Account
    key: str
    thread: str | None
    private: bool
    message: Message
    shown: tuple[str, ...] = ()
    begun: bool = False
    reply: Message | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """What a reply begins with: the owner's newest row just then, the chat's open session, and the window of that."""

    since: int
    session: int | None
    window: list[Message]


class Answering:
    """Journals both sides of a talk, and knows what is still owed."""

    def __init__(
        self,
        db: Database,
        accounts: Accounts,
        chats: Chats,
        sessions: Sessions,
        stores: Stores,
        *,
        reserve: Reserve,
        rooms: Rooms,
        echoes: Echoes,
    ) -> None:
        self._db = db
        self._echoes = echoes
        self._accounts = accounts
        self._chats = chats
        self._reserve = reserve
        self._sessions = sessions
        self._stores = stores
        self._rooms = rooms

    async def note(self, owner: Account, chat: Chat, line: Line, *, waits: bool) -> Heard:
        """Journal a line and, if it ``waits``, that it wants an answer; the same platform message is one line."""
        heard, chat = await self._db.written(partial(self._note, owner, chat, line, waits=waits))
        if heard.new and line.role == "user" and line.kind != "command":
            self._stores.usage.count(owner, "message", chat=chat)
        return heard

    async def _note(self, owner: Account, chat: Chat, line: Line, *, waits: bool) -> tuple[Heard, Chat]:
        journal = self._stores.journal
        chat = await self._chats.resolved(owner, chat)
        if line.platform_id is not None:
            known = await journal.delivered(owner, chat, line.platform_id, line.role)
            if known is not None:
                reply, waiting = (
                    await journal.answer_to(owner, known.id),
                    await self._stores.waits.waits(owner, known.id),
                )
                return Heard(known, new=False, reply=reply, waiting=waiting), chat
        if line.role == "user":
            await self._rooms.spoke(owner, chat, at=line.at)
        line = await self._reserve.marked(owner, chat, line)
        session = await self._sessions.touch(owner, chat, line.at)
        (message,) = await journal.add(owner, chat, session, [line])
        if waits:
            await self._stores.waits.add(owner, message.id)
        return Heard(message, new=True, waiting=waits), chat

    async def answered(
        self,
        owner: Account,
        chat: Chat,
        line: Line,
        trace: Mapping[str, Any] | None,
        *,
        delivered: bool,
        also: Sequence[int],
        since: int | None,
        first: Callable[[], Awaitable[None]] | None = None,
    ) -> Message:
        """Journal a reply with its trace; what it answers waits no more, or only until the reply is delivered.

        One that was under way while something was forgotten may rest on that: only that it was given is kept. The
        reply to a fleeting line is fleeting, and counts as no use of a memory. ``first`` is written with it, before it.
        """
        async with self._stores.usage.taken(owner) as counted:

            async def writing() -> Message:
                if first is not None:
                    await first()
                reply = await self._answered(owner, chat, line, trace, delivered=delivered, also=also, since=since)
                await self._stores.usage.write(owner, counted)
                return reply

            return await self._db.written(writing)

    async def _answered(
        self,
        owner: Account,
        chat: Chat,
        line: Line,
        trace: Mapping[str, Any] | None,
        *,
        delivered: bool,
        also: Sequence[int],
        since: int | None,
    ) -> Message:
        chat = await self._chats.resolved(owner, chat)
        begun = line.answers if since is None else since
        asked = [*also, *([] if line.answers is None else [line.answers])]
        said = await self._stores.journal.lines(owner, asked, fleeting=True)
        line = self._reserve.answering(line, list(said.values()))
        session = await self._sessions.touch(owner, chat, line.at, answers=line.answers)
        if begun is not None and (
            await self._stores.promises.deleted_since(owner, begun)
            or await self._forgotten_by_another(owner, session, said.get(line.answers or 0))
        ):
            line = replace(line, text="", kind="command", tokens=0)
        (reply,) = await self._stores.journal.add(owner, chat, session, [line])
        if trace is not None:
            await self._stores.traces.add(owner, chat, reply.id, trace, at=line.at)
            if not line.fleeting:
                await self._stores.traces.count_uses(owner, trace, at=line.at)
        if line.answers is not None:
            await self._settle(owner, reply, line.answers, delivered=delivered, also=also)
        return reply

    async def opening(self, owner: Account, chat: Chat, *, now: datetime, limit: int, but: Collection[int]) -> Opening:
        """As of one moment; the window is the newest visible lines that do not wait, as a talk reads."""

        async def reading() -> Opening:
            since = await self._accounts.newest_id(owner)
            session = await self._sessions.current(owner, await self._chats.resolved(owner, chat), now=now)
            if session is None:
                return Opening(since, None, [])
            lines = await self._stores.journal.of_session(owner, session, limit=limit, but=but)
            return Opening(since, session, lines)

        return await self._db.together(reading)

    async def waiting(self, platform: str, *, since: datetime) -> list[Waiting]:
        """Everything of a platform that waits, in order of arrival; what is older than ``since`` is given up."""
        found: list[tuple[int, Waiting]] = []
        given_up = 0
        for number in await self._stores.waits.owners_waiting(platform):
            owner = await self._accounts.numbered(number)
            given_up += await self._stores.waits.trim(owner, before=since)
            for wait in await self._stores.waits.all(owner):
                taken = await self._take_up(owner, wait)
                if taken is not None:
                    found.append((wait.arrived, taken))
        if given_up:
            log.warning("%d messages of %s are too old to be answered now", given_up, platform)
        return [waiting for _, waiting in sorted(found, key=lambda pair: pair[0])]

    async def unreply(self, owner: Account, message: int, *, waits: bool) -> int:
        """Erase what was replied to a line, and the traces of it; returns how many replies went."""
        async with self._db.transaction():
            replies = [reply.id for reply in await self._stores.journal.answers_to(owner, [message])]
            await self.erase(owner, replies)
            if waits:
                await self._stores.waits.add(owner, message)
        return len(replies)

    async def again(self, owner: Account, chat: Chat, command: Message) -> Waiting | Literal["nothing", "busy"]:
        """Have the owner's last message in a chat wait for another answer, which takes the place of the one it had.

        That and its traces are erased; ``command``, which asks for it, waits no more. "busy" when the last
        message still waits, "nothing" when there is none, or none with words, or when more people have come to see the
        chat since it was said.
        """
        async with self._db.transaction():
            chat = await self._chats.resolved(owner, chat)
            said = await self._stores.journal.last_asked(owner, chat)
            if said is None or not said.text:
                return "nothing"
            if said.fleeting and said.session != command.session:
                return "nothing"  # That talk is over, and with it what was off the record.
            if await self._stores.waits.waits(owner, said.id):
                return "busy"
            replies = [reply.id for reply in await self._stores.journal.answers_to(owner, [said.id])]
            shown = await self._stores.waits.shown_in(owner, replies)
            await self.erase(owner, replies)
            await self._stores.waits.add(owner, said.id)
            await self._stores.waits.rewrite(owner, said.id, shown)
            await self._stores.waits.remove(owner, [command.id])
            waits = [wait for wait in await self._stores.waits.all(owner) if wait.id == said.id]
            found = await self._take_up(owner, waits[0])
        return "nothing" if found is None else found

    async def erase(self, owner: Account, lines: Collection[int]) -> None:
        """Remove lines for good, with their traces and vectors; none of them waits any more."""
        await self._echoes.hand_on(owner, lines)
        await self._stores.traces.erase(owner, lines)
        await self._stores.waits.remove(owner, lines)
        await self._stores.journal.erase(owner, lines)
        await self._stores.embeddings.sweep(owner)

    async def _forgotten_by_another(self, owner: Account, session: int, asked: Message | None) -> bool:
        """Whether another member of a group forgot something while a reply was made: it may rest on that."""
        if asked is None or asked.fleeting:
            return False
        return await self._echoes.forgotten_meanwhile(owner, session, since=asked.at)

    async def _settle(
        self, owner: Account, reply: Message, answers: int, *, delivered: bool, also: Sequence[int]
    ) -> None:
        await self._stores.journal.merge(owner, also, answers)
        waits = self._stores.waits
        if delivered:
            await waits.remove(owner, [*also, answers])
        else:
            await waits.remove(owner, [one for one in also if one != answers])
            await waits.replied(owner, answers, reply.id)

    async def _take_up(self, owner: Account, wait: Wait) -> Waiting | None:
        """What waits as it is now; a reply that is no more, or was not kept, is to be given anew."""
        lines = await self._stores.journal.lines(owner, [wait.id, wait.reply or 0], fleeting=True)
        message, reply = lines.get(wait.id), lines.get(wait.reply or 0)
        if message is None:
            await self._stores.waits.remove(owner, [wait.id])
            return None
        if reply is not None and not reply.text:
            await self.erase(owner, [reply.id])
            reply = None
        if reply is None and wait.reply is not None:
            await self._stores.waits.replied(owner, wait.id, None)
        key, thread = await self._chats.address(owner, message.chat)
        chat = await self._chats.numbered(owner, message.chat)
        if await self._chats.is_past(owner, message):
            message = replace(message, platform_id=None)
        return Waiting(owner, key, thread, chat.private, message, wait.shown, wait.begun, reply)
