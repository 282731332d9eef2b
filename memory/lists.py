"""Lists that a person was shown: what number 3 means stays what it meant when they read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from memory.accounts import Chats
from memory.model import Account, Chat, Entry
from memory.promises import Offer
from memory.stores import Stores
from memory.together import Together

KIND: Final = "list"
LIST_LASTS: Final = timedelta(days=7)
"""How long the numbers of a list mean something; after that, who types one has to look again."""

Page = Sequence[tuple[str, Sequence[int]]]
"""One page of a list: titles of groups (words of ours, never anybody's) and the ids of the memories below each."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A list as it was shown; its memories are numbered from 1 over all pages.

    ``chat`` is where it was asked for, ``at`` when; ``chosen`` tells that it is not all there was, but what somebody's
    words picked.
    """

    id: int
    chat: int
    at: datetime
    pages: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]
    chosen: bool = False

    @property
    def ids(self) -> list[int]:
        """The memories, in the order of their numbers; some may be gone since."""
        return [id_ for page in self.pages for _, ids in page for id_ in ids]

    def first(self, page: int) -> int:
        """The number of the first memory on a page (from 0)."""
        return 1 + sum(len(ids) for before in self.pages[:page] for _, ids in before)


class Lists:
    """The list that each owner saw last in each chat, as ids alone; one that is newer takes its place.

    Row ids are never used twice, so a number can lose its memory but never get another one.
    """

    def __init__(self, stores: Stores, chats: Chats, together: Together) -> None:
        self._stores = stores
        self._chats = chats
        self._together = together

    async def keep(
        self, owner: Account, chat: Chat, pages: Sequence[Page], *, now: datetime, chosen: bool = False
    ) -> Listed:
        """Note what is shown to the owner in reply to something they asked in ``chat``; ids are all that is kept."""
        data = {"pages": [[[title, list(ids)] for title, ids in page] for page in pages], "chosen": chosen}
        offer = await self._stores.promises.offer(owner, chat.no, KIND, data, expires_at=now + LIST_LASTS)
        return _listed(offer)

    async def listed(self, owner: Account, list_: int, *, now: datetime) -> Listed | None:
        """The list with this id while it is the one seen last in its chat; None for any other, or another's."""
        offer = await self._stores.promises.standing(owner, list_, now=now)
        return None if offer is None or offer.kind != KIND else _listed(offer)

    async def room(self, owner: Account, listed: Listed) -> Chat:
        """The chat a list was asked for in: what may be shown of it is what may be shown there."""
        return await self._chats.numbered(owner, listed.chat)

    async def count(self, owner: Account, chat: Chat, *, now: datetime) -> int:
        """How many numbers the list has that the owner saw last in ``chat``; 0 when they saw none lately."""
        return len(await self._seen_last(owner, chat, now=now))

    async def seen_last(self, owner: Account, chat: Chat, *, now: datetime) -> int | None:
        """Id of the list that the owner saw last in ``chat``; it counts on with all their rows."""
        offer = await self._stores.promises.offered(owner, chat.no, KIND, now=now)
        return None if offer is None else offer.id

    async def numbered(self, owner: Account, chat: Chat, number: int, *, now: datetime) -> Entry | None:
        """The memory that had ``number`` (from 1) in the list the owner saw last in ``chat``.

        It is the same row however many were added, closed or erased since. None when there is no such number
        (see :meth:`count`), or when that memory is forgotten or may not be shown in ``chat`` any more: then the
        number means nothing, and never another memory. One that is closed or expired since is still returned.
        """
        ids = await self._seen_last(owner, chat, now=now)
        if not 1 <= number <= len(ids):
            return None
        return (await self.read(owner, chat, [ids[number - 1]], now=now)).get(ids[number - 1])

    async def read(self, owner: Account, chat: Chat, ids: Sequence[int], *, now: datetime) -> dict[int, Entry]:
        """Those of the owner's memories that are not forgotten and may be shown in ``chat``, by id."""
        return await self._together.shown(owner, ids, room=chat, now=now)

    async def _seen_last(self, owner: Account, chat: Chat, *, now: datetime) -> list[int]:
        offer = await self._stores.promises.offered(owner, chat.no, KIND, now=now)
        return [] if offer is None else _listed(offer).ids


def _listed(offer: Offer) -> Listed:
    pages = tuple(tuple((title, tuple(ids)) for title, ids in page) for page in offer.data["pages"])
    return Listed(offer.id, offer.chat, offer.expires_at - LIST_LASTS, pages, offer.data["chosen"])
