"""Numbers under which somebody was shown memories, kept so that they can be typed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memory import Listed, Memory, Page
from memory.model import Account, Chat


async def kept(
    memory: Memory, owner: Account, chat: Chat, pages: Sequence[Page], *, now: datetime, chosen: bool = True
) -> Listed:
    """Have the numbers of a list mean something where it was asked for, and where it is read.

    One that was asked for in a group is mostly read in the private chat. ``now`` is aware UTC; ``chosen`` as in
    :class:`memory.Listed`.
    """
    if not chat.private:
        aside = await memory.chat(owner, f"dm:{owner.user_id}", private=True)
        await memory.lists.keep(owner, aside, pages, now=now, chosen=chosen)
    return await memory.lists.keep(owner, chat, pages, now=now, chosen=chosen)
