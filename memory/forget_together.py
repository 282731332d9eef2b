"""Forgetting for a person with several accounts: one question, one yes, and each account's rows go by themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from memory.accounts import Accounts, Chats
from memory.clock import stamp
from memory.db import Database
from memory.erasures import Range
from memory.forget import OFFER_LASTS, Forgetting, PickError, Plan
from memory.model import Account, Chat
from memory.persons import Persons
from memory.promises import Deletion, Offer
from memory.stores import Stores

_OFFERED: Final = "forget also {}"
_DONE: Final = "undo also {}"
"""Kinds of the notes which offers, or deletions, of other accounts belong to one: numbers, no words."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What an offer means for one account: its own offer there, and how many memories that names."""

    account: Account
    offer: int
    count: int


class ForgettingTogether:
    """The forget gate as a person sees it. For somebody with one account it is :class:`memory.forget.Forgetting`.

    Asked for in a group, only the account that speaks is meant: the others were not there, or not as this person.
    """

    def __init__(
        self, db: Database, one: Forgetting, accounts: Accounts, chats: Chats, *, persons: Persons, stores: Stores
    ) -> None:
        self._db = db
        self._one = one
        self._accounts = accounts
        self._chats = chats
        self._persons = persons
        self._stores = stores

    async def plan(self, owner: Account, chat: Chat, words: str, *, now: datetime) -> Plan | None:
        """Offer to delete what ``words`` mean, in every account; see :meth:`memory.forget.Forgetting.plan`."""
        own = await self._one.plan(owner, chat, words, now=now)
        plans = [
            (account, plan)
            for account, room in await self._others(owner, chat, now=now)
            if (plan := await self._one.plan(account, room, words, now=now)) is not None
        ]
        return await self._joined(owner, chat, own, plans, now=now)

    async def choose(self, owner: Account, chat: Chat, entries: Sequence[int], *, now: datetime) -> Plan | None:
        """Offer to delete memories that were picked from a list, and those of other accounts that say the very same."""
        others = await self._others(owner, chat, now=now)
        if not others:
            return await self._one.choose(owner, chat, entries, now=now)
        texts: set[str] = set()
        for account in (owner, *(account for account, _ in others)):
            for store in self._stores.entries:
                texts |= {entry.text for entry in (await store.get(account, entries)).values()}
        own = await self._one.choose(owner, chat, await self._saying(owner, texts), now=now)
        plans = [
            (account, plan)
            for account, room in others
            if (plan := await self._one.choose(account, room, await self._saying(account, texts), now=now)) is not None
        ]
        return await self._joined(owner, chat, own, plans, now=now)

    async def pending(self, owner: Account, chat: Chat, *, now: datetime) -> Offer | None:
        """The plan that waits for a yes in this chat."""
        return await self._one.pending(owner, chat, now=now)

    async def carry_out(
        self, owner: Account, offer: int, *, picks: Sequence[int] | None, now: datetime, typed: bool = False
    ) -> Deletion | None:
        """Hide what an offer named, in every account at once; see :meth:`memory.forget.Forgetting.carry_out`."""
        waiting = await self._stores.promises.standing(owner, offer, now=now)
        parts = [] if waiting is None else await self._parts(owner, waiting, now=now)
        if waiting is None or not parts:
            return await self._one.carry_out(owner, offer, picks=picks, now=now, typed=typed)
        shares = _shares(picks, [len(waiting.data["entries"]), *(part.count for part in parts)])
        async with self._db.transaction():
            if shares[0] == []:
                first = await self._nothing_of(owner, waiting, now=now)
            else:
                first = await self._one.carry_out(owner, offer, picks=shares[0], now=now, typed=typed)
            if first is None:
                return None
            done = [(owner, first)]
            for part, share in zip(parts, shares[1:], strict=True):
                if share == []:
                    await self._one.cancel(part.account, part.offer, now=now)
                    continue
                also = await self._one.carry_out(part.account, part.offer, picks=share, now=now, typed=typed)
                if also is not None:
                    done.append((part.account, also))
            total = await self._with_replies(done, [part.account for part in parts], now=now)
            data = {"also": [[account.no, deletion.id] for account, deletion in done[1:]]}
            kind = _DONE.format(first.id)
            await self._stores.promises.offer(owner, waiting.chat, kind, data, expires_at=first.erase_at)
            return await self._stores.promises.counted(owner, first.id, total)

    async def cancel(self, owner: Account, offer: int, *, now: datetime) -> bool:
        """Close an offer, and what belongs to it, without deleting anything."""
        waiting = await self._stores.promises.standing(owner, offer, now=now)
        for part in [] if waiting is None else await self._parts(owner, waiting, now=now):
            await self._one.cancel(part.account, part.offer, now=now)
        return await self._one.cancel(owner, offer, now=now)

    async def undo(
        self, owner: Account, deletion: int | None, *, now: datetime, asked_at: datetime | None = None
    ) -> Deletion | None:
        """Bring back what a deletion hid, in every account; see :meth:`memory.forget.Forgetting.undo`."""
        async with self._db.transaction():
            undone = await self._one.undo(owner, deletion, now=now, asked_at=asked_at)
            if undone is None:
                return None
            note = await self._stores.promises.offered(owner, undone.chat, _DONE.format(undone.id), now=now)
            for number, also in [] if note is None else note.data["also"]:
                await self._one.undo(await self._accounts.numbered(number), also, now=now)
        return undone

    async def erase_due(self, owner: Account, *, now: datetime) -> list[Deletion]:
        """Erase what has waited long enough of this account; see :meth:`memory.erasing.Erasing.erase_due`."""
        return await self._one.erase_due(owner, now=now)

    async def erased(self, owner: Account) -> list[Range]:
        """The rows of this account that were erased, as ranges of numbers without a word."""
        return await self._one.erased(owner)

    async def erase_again(self, owner: Account, ranges: Iterable[Range], *, now: datetime) -> int:
        """Erase what an older copy of the file has brought back of this account."""
        return await self._one.erase_again(owner, ranges, now=now)

    async def _others(self, owner: Account, chat: Chat, *, now: datetime) -> list[tuple[Account, Chat]]:
        """The person's other accounts, each with its own private chat: there its offer and its receipt are."""
        numbers = await self._persons.others(owner) if chat.private else ()
        accounts = [await self._accounts.numbered(number) for number in numbers]
        return [(each, await self._chats.enter(each, f"dm:{each.user_id}", private=True, at=now)) for each in accounts]

    async def _saying(self, owner: Account, texts: set[str]) -> list[int]:
        """The memories of an account that say one of these in so many words."""
        held = [entry for store in self._stores.entries for entry in await store.history(owner)]
        return [entry.id for entry in held if entry.text in texts]

    async def _joined(
        self, owner: Account, chat: Chat, own: Plan | None, plans: Sequence[tuple[Account, Plan]], *, now: datetime
    ) -> Plan | None:
        """One plan of several, and a note which belong to it; the owner's own offer is the one that is answered."""
        if not plans:
            return own
        if own is None:
            scope = plans[0][1].scope
            since = None if scope.since is None else stamp(scope.since)
            empty: dict[str, object] = {"scope": scope.kind, "since": since, "entries": [], "lines": [], "hidden": []}
            offer = await self._stores.promises.offer(owner, chat.no, "forget", empty, expires_at=now + OFFER_LASTS)
            own = Plan(offer.id, (), (), scope)
        data = {"also": [[account.no, plan.offer, len(plan.entries)] for account, plan in plans]}
        kind = _OFFERED.format(own.offer)
        await self._stores.promises.offer(owner, chat.no, kind, data, expires_at=now + OFFER_LASTS)
        entries = tuple(entry for _, plan in plans for entry in plan.entries)
        lines = tuple(line for _, plan in plans for line in plan.lines)
        return replace(own, entries=(*own.entries, *entries), lines=(*own.lines, *lines))

    async def _parts(self, owner: Account, offer: Offer, *, now: datetime) -> list[_Part]:
        """What an offer means for the other accounts, as far as they are still the same person's."""
        note = await self._stores.promises.offered(owner, offer.chat, _OFFERED.format(offer.id), now=now)
        linked = set(await self._persons.others(owner)) if note is not None else set()
        return [
            _Part(await self._accounts.numbered(number), id_, count)
            for number, id_, count in ([] if note is None else note.data["also"])
            if number in linked
        ]

    async def _nothing_of(self, owner: Account, offer: Offer, *, now: datetime) -> Deletion | None:
        """Answer an offer of which nothing of this account was picked."""
        if await self._stores.promises.take(owner, offer.id, now=now) is None:
            return None
        return await self._one.empty(owner, offer.chat, now=now)

    async def _with_replies(
        self, done: list[tuple[Account, Deletion]], others: Sequence[Account], *, now: datetime
    ) -> Mapping[str, int]:
        """Hide the replies to one account that used what another account's deletion hides; returns what went in all."""
        gone = {account.no: await self._hidden(account, deletion) for account, deletion in done}
        total: Counter[str] = Counter()
        for _, deletion in done:
            total.update(deletion.counts)
        for account in (done[0][0], *others):
            foreign = [id_ for number, ids in gone.items() if number != account.no for id_ in ids]
            replies = await self._stores.traces.using(account, foreign) if foreign else []
            if not replies:
                continue
            mine = next((deletion for each, deletion in done if each.no == account.no), None)
            if mine is None:
                chat = await self._chats.enter(account, f"dm:{account.user_id}", private=True, at=now)
                mine = await self._one.empty(account, chat.no, now=now)
                done.append((account, mine))
            hidden = await self._stores.journal.hide(account, replies, mine.id)
            await self._stores.promises.counted(
                account, mine.id, {**mine.counts, "replies": mine.counts["replies"] + hidden}
            )
            self._one.changed(account)
            total["replies"] += hidden
        return {name: total[name] for name in ("memories", "messages", "replies")}

    async def _hidden(self, account: Account, deletion: Deletion) -> list[int]:
        entries = [e.id for store in self._stores.entries for e in await store.hidden(account, deletion.id)]
        return [*entries, *(line.id for line in await self._stores.journal.hidden(account, deletion.id))]


def _shares(picks: Sequence[int] | None, counts: Sequence[int]) -> list[list[int] | None]:
    """Numbers of one list over several accounts as numbers of each account's own part. Raises PickError."""
    if picks is None:
        return [None for _ in counts]
    if not picks or not all(1 <= pick <= sum(counts) for pick in picks):
        raise PickError(sum(counts))
    shares: list[list[int] | None] = []
    before = 0
    for count in counts:
        shares.append([pick - before for pick in dict.fromkeys(picks) if before < pick <= before + count])
        before += count
    return shares
