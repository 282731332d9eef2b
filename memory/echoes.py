"""What the bot said because it had read words that are forgotten now: to their owner later on, or to others.

A window holds what was said before, in a group by every member, so an answer may repeat it in other words. One given
to another member lies in that member's range, and has to go with the words it repeats. So does one that was given to
an account with the memories of another account it was linked with, be the link still there or not. Only answers of the
bot go: what another person said with their own fingers is theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from memory.accounts import Accounts
from memory.erasures import Erasures, Range
from memory.model import Account, Entry, Message, ProfileLine
from memory.offloop import off_loop
from memory.persons import Persons
from memory.sessions import Sessions
from memory.stores import Stores
from memory.words import terms

LINES_READ: Final = 10_000
"""Most lines of one session that are read for what others said in it."""
SHORTEST: Final = 2
"""Characters of a term that gives something away: a single Han character is in half of all texts."""


@dataclass(frozen=True, slots=True)
class Lost:
    """What of an owner's goes: lines, the memories made of them, and the numbers of replies that go in any case."""

    lines: Sequence[Message]
    memories: Sequence[Entry] = ()
    replies: Collection[int] = ()

    @property
    def rows(self) -> list[int]:
        """The numbers of all of it."""
        return [*(line.id for line in self.lines), *(entry.id for entry in self.memories), *self.replies]

    def along_with(self, lines: Sequence[Message]) -> Lost:
        """The same, and these lines."""
        return replace(self, lines=[*self.lines, *lines])


@dataclass
class _Traits:
    """What gives an echo away: terms that nobody else used, and from when on in which session one can stand."""

    words: set[str] = field(default_factory=set)
    since: dict[int, datetime] = field(default_factory=dict)

    def add(self, line: Message) -> None:
        """From a line on, its session's window may have held it."""
        self.since[line.session] = min(self.since.get(line.session, line.at), line.at)

    def in_(self, reply: Message) -> bool:
        """Whether an answer stands behind such a line and has such a word."""
        since = self.since.get(reply.session)
        return since is not None and reply.at >= since and not self.words.isdisjoint(terms(reply.text))


class Echoes:
    """Hides, brings back and erases with a deletion what the bot told other members because of it."""

    def __init__(
        self,
        accounts: Accounts,
        sessions: Sessions,
        stores: Stores,
        persons: Persons,
        *,
        changed: Callable[[Account], None],
    ) -> None:
        """``changed`` is told of every other member whose lines were changed."""
        self._accounts = accounts
        self._sessions = sessions
        self._stores = stores
        self._persons = persons
        self._erasures = Erasures(stores.db)
        self._changed = changed

    async def own(self, owner: Account, lost: Lost, *, kept: Sequence[str] = ()) -> list[Message]:
        """The bot's answers to the owner that repeat what goes; ``kept`` are texts whose words give nothing away."""
        traits = await self._traits(owner, lost)
        traits.words -= {term for text in kept for term in terms(text)}
        ids = {line.id for line in lost.lines}
        used, found = set(lost.rows), list[Message]()
        while traits.words:
            found = await self._told(owner, traits, but=ids, used=used)
            # The owner may have been told it again because another member was told it meanwhile.
            told = {line.id for _, lines in await self.of(owner, lost.along_with(found)) for line in lines}
            if told <= used:
                break
            used |= told
        return found

    async def of(self, owner: Account, lost: Lost) -> list[tuple[Account, list[Message]]]:
        """The bot's answers to others that repeat what goes of the owner's, by whom they were given to.

        A linked account may have been answered with the memories.
        """
        used = lost.rows
        waiting = await self._others(owner, lost.lines)
        waiting += await self._handed(owner, used, but={other.no for other in waiting})
        traits = await self._traits(owner, lost) if waiting else _Traits()
        if not traits.words:
            return []
        told: dict[int, tuple[Account, list[Message]]] = {}
        while waiting:
            other = waiting.pop()
            before = {line.id for line in told[other.no][1]} if other.no in told else set()
            lines = await self._told(other, traits, used=used)
            if new := [line for line in lines if line.id not in before]:
                told[other.no] = (other, lines)
                for line in new:
                    traits.add(line)
                # Who was with them when they were told, or is one person with them, may have been told it, too.
                used += [line.id for line in new]
                waiting += [each for each in await self._others(other, new) if each.no != owner.no]
        return list(told.values())

    async def hide(self, owner: Account, lost: Lost, *, deletion: int) -> int:
        """Hide them on behalf of a deletion of the owner's; returns how many. Needs an open transaction."""
        hidden = 0
        for other, lines in await self.of(owner, lost):
            ids = [line.id for line in lines]
            concealed = {line.id for line in await self._stores.journal.concealed(other)}
            hidden += await self._stores.journal.hide(other, ids, deletion)
            await self._erasures.claim(other, concealed.intersection(ids), deletion)
            await self._stores.waits.remove(other, [line.answers for line in lines if line.answers is not None])
            self._changed(other)
        return hidden

    async def show_again(self, owner: Account, deletion: int) -> None:
        """Bring back what a deletion hid. Needs an open transaction."""
        for other in await self._holders(owner, deletion):
            await self._erasures.release(other, deletion)
            if await self._stores.journal.unhide(other, deletion):
                self._stores.embeddings.disturbed(other)
                self._changed(other)

    async def erase(self, owner: Account, deletion: int) -> bool:
        """Erase what a deletion hid; whether a search finds none of it. Needs an open transaction."""
        clean = True
        for other in await self._holders(owner, deletion):
            ids = await self._held(other, deletion)
            await self._erasures.note(other, deletion, ids)
            await self._erase(other, ids)
            await self._erasures.release(other, deletion)
            clean &= not await self._stores.journal.hidden(other, deletion)
            clean &= not await self._stores.journal.wordy(other, ids)
            clean &= not await self._stores.segments.holding(other, ids)
        return clean

    async def withdraw(self, owner: Account, lost: Lost) -> None:
        """Erase at once what repeats what was taken back on the platform. Needs an open transaction."""
        for other, lines in await self.of(owner, lost):
            ids = [line.id for line in lines]
            await self._erasures.keep(other, [Range(id_, id_) for id_ in ids])
            await self._erase(other, ids)

    async def forgotten_meanwhile(self, owner: Account, session: int, *, since: datetime) -> bool:
        """Whether another member, or another account of the owner's, forgot something after ``since`` for good."""
        numbers = {*await self._sessions.members(owner, [session]), *await self._persons.ever_linked(owner)}
        for number in sorted(numbers):
            if await self._stores.promises.deleted_after(await self._accounts.numbered(number), since):
                return True
        return False

    async def hand_on(self, owner: Account, lines: Collection[int], *, own: bool = True) -> None:
        """Lines of the owner go that others may be looked for through: what was given with them is found without them.

        Not ``own``: only in the talks of others, who were there or are or were one person with the owner. Needs an
        open transaction.
        """
        sessions = {place.session for place in (await self._stores.journal.places(owner, lines)).values()}
        if holders := [*([owner] if own else []), *await self._beside(owner, list(sessions))]:
            await self._stores.traces.hand_on(owner, lines, to=holders)

    async def taken_back(self, owner: Account, memory: Entry) -> None:
        """A memory goes with the lines it cites, and not because it is to be forgotten.

        A distilled one may name what was said beside those lines: what was told with it rests on that from now on,
        so that it is found when that is forgotten. Needs an open transaction.
        """
        told = [owner, *await self._beside(owner, [])]
        if not any([await self._stores.traces.using(each, [memory.id], always=True) for each in told]):
            return
        known = [*await self._stores.journal.said(owner), *await self._stores.journal.concealed(owner)]
        cited = {citation.message for citation in memory.provenance.citations}
        sessions = {line.session for line in known if line.id in cited}
        words = set(terms(memory.text)).difference(*(terms(line.text) for line in known if line.id in cited))
        beside = [line for line in known if line.session in sessions and line.role == "user" and line.id not in cited]
        drawn = {line.id: True for line in beside if not words.isdisjoint(terms(line.text))}
        for each in told if drawn else ():
            await self._stores.traces.rest(each, {memory.id: drawn})

    async def _erase(self, other: Account, ids: Collection[int]) -> None:
        await self.hand_on(other, ids)
        await self._stores.traces.erase(other, ids)
        await self._stores.journal.erase(other, ids)
        await self._stores.embeddings.sweep(other)
        await self._stores.nulls.erase(other)
        self._changed(other)

    async def _others(self, owner: Account, gone: Sequence[Message]) -> list[Account]:
        """The other members of the sessions in which the owner said the lines, and the accounts they are or were."""
        return await self._beside(owner, list({line.session for line in gone}))

    async def _beside(self, owner: Account, sessions: Sequence[int]) -> list[Account]:
        """The other members of sessions, and the accounts the owner's is or was linked with."""
        numbers = {*await self._sessions.members(owner, sessions), *await self._persons.ever_linked(owner)}
        return [await self._accounts.numbered(number) for number in sorted(numbers)]

    async def _handed(self, owner: Account, used: Collection[int], *, but: Collection[int]) -> list[Account]:
        """Who else was ever with the owner and was told something that rests on rows, by way of lines that are gone."""
        met = [await self._accounts.numbered(no) for no in await self._sessions.partners(owner) if no not in but]
        return [other for other in met if await self._stores.traces.using(other, used, always=True)]

    async def _holders(self, owner: Account, deletion: int) -> list[Account]:
        """The others of whose lines a deletion of the owner's hides or covers some, however it came to them."""
        numbers = {*await self._stores.journal.holders(owner, deletion), *await self._erasures.holders(owner, deletion)}
        return [await self._accounts.numbered(number) for number in sorted(numbers)]

    async def _held(self, other: Account, deletion: int) -> list[int]:
        """The lines of another account that a deletion hides, or covers while another one hides them."""
        hidden = [line.id for line in await self._stores.journal.hidden(other, deletion)]
        return [*hidden, *await self._erasures.claimed(other, deletion)]

    async def _traits(self, owner: Account, lost: Lost) -> _Traits:
        """What stands in the lines and the memories, and in nothing else that was said in their sessions.

        A memory has words that no line has: those of a command, of a line that is no more, or its model's own.
        """
        traits, ids = _Traits(), {line.id for line in lost.lines}
        cited = {citation.message for entry in lost.memories for citation in entry.provenance.citations}
        places = await self._stores.journal.places(owner, cited)
        kept: dict[int, set[str]] = {}
        for session in {line.session for line in lost.lines}.union(place.session for place in places.values()):
            said = await self._stores.journal.of_session(owner, session, limit=LINES_READ)
            others = [line for line in said if line.role == "user" and line.id not in ids]
            kept[session] = {term for line in others for term in terms(line.text)}
        for line in lost.lines:
            traits.add(line)
            traits.words |= _telling(line.text) - kept[line.session]
        for entry in lost.memories:
            citations = entry.provenance.citations
            sessions = {places[citation.message].session for citation in citations if citation.message in places}
            own = entry.value if isinstance(entry, ProfileLine) else entry.text
            words = _telling(own, *(citation.quote for citation in citations))
            traits.words |= words.difference(*(kept[session] for session in sessions))
        return traits

    async def _told(
        self, other: Account, traits: _Traits, *, but: Collection[int] = (), used: Collection[int] = ()
    ) -> list[Message]:
        """The answers to a member that repeat something out of a window, or that were given with what is ``used``.

        One that repeats such an answer is one, too. What the member said in lines other than those in ``but`` is
        theirs to be answered with.
        """
        # What another deletion hides counts, too: undoing that one must not bring it back.
        known = [*await self._stores.journal.said(other), *await self._stores.journal.concealed(other)]
        said = [line for line in known if line.id not in but]
        own = {term for line in said if line.role == "user" for term in terms(line.text)}
        mine = _Traits(traits.words - own, dict(traits.since))
        replies = {line.id: line for line in said if line.role == "bot"}
        found: dict[int, Message] = {}
        while True:
            new = await off_loop(lambda: [r for r in replies.values() if mine.in_(r)], size=len(replies))
            using = {*used, *await self._stores.traces.using(other, [*used, *found], always=True)}
            # An answer to such a line that was given anew may stand in a later session than the line.
            resting = [line for line in replies.values() if line.id in using or line.answers in used]
            new += [line for line in resting if not mine.words.isdisjoint(terms(line.text))]
            if not (new := [line for line in new if line.id not in found]):
                return list(found.values())
            for line in new:
                found[line.id] = line
                mine.add(line)


def _telling(*texts: str) -> set[str]:
    """The terms of texts that are long enough to give something away."""
    return {term for text in texts for term in terms(text) if len(term) >= SHORTEST}
