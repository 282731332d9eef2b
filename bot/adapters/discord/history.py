"""Which chats may hold what nobody heard, and what was said there."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import discord

from bot.adapters.discord.catchup import Unread
from bot.adapters.discord.chats import Chats
from bot.adapters.discord.outlet import FAILED, is_passing
from bot.adapters.discord.quiet import named
from bot.adapters.discord.reading import PLATFORM
from bot.message import ChatRef

HISTORY: Final = 100
"""Messages of a chat that are looked at for what was said meanwhile: what Discord gives at once."""
HISTORY_AGE: Final = timedelta(hours=24)
"""Older messages are not answered any more."""
LIVELY: Final = timedelta(days=14)
"""Chats of which nothing was heard for longer are not looked at: a private one costs two requests in each session."""
MOST_PRIVATE: Final = 50
"""Private chats that are looked at in a session, those heard last: Discord may block a bot that opens a
significant number of them too quickly (User resource, Create DM)."""
MOST_CHANNELS: Final = 50
"""Channels the journal does not know, or of which it heard nothing for long, that are looked at in a session."""

log: Final = logging.getLogger(__name__)


class History:
    """The past of one ``client``'s chats. ``hear`` takes the messages of a chat, oldest first; ``now`` is aware UTC."""

    def __init__(
        self,
        chats: Chats,
        hear: Callable[[Sequence[discord.Message], ChatRef], Awaitable[None]],
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._chats = chats
        self._hear = hear
        self._now = now

    def known(self, seen: Mapping[ChatRef, str]) -> Mapping[ChatRef, int]:
        """Return the chats heard lately, the last one first, with the newest message heard in each."""
        since = self._at(LIVELY)
        heard = {
            chat: int(newest) for chat, newest in seen.items() if chat.platform == PLATFORM and int(newest) >= since
        }
        order = sorted(heard, key=heard.__getitem__, reverse=True)
        private = set([chat for chat in order if chat.private][:MOST_PRIVATE])
        return {chat: heard[chat] for chat in order if not chat.private or chat in private}

    def elsewhere(self, seen: Mapping[ChatRef, str]) -> Mapping[ChatRef, int]:
        """Return the channels in servers where something was said since anything was heard at all.

        Nothing while nothing was ever heard: there is no past to catch up with then.
        """
        heard = [int(newest) for chat, newest in seen.items() if chat.platform == PLATFORM]
        if not heard:
            return {}
        since = max(heard)
        return dict.fromkeys(self._chats.with_news(max(since, self._at(HISTORY_AGE)))[:MOST_CHANNELS], since)

    async def read(self, chat: ChatRef, newest: int) -> None:
        """Hand in what was said in a chat after the message ``newest``. Raises Unread when it may be had later."""
        since = max(newest, self._at(HISTORY_AGE))
        last = self._chats.newest(chat)
        if last is not None and last <= since:
            return
        try:
            place = await self._chats.place(chat)
            after = discord.Object(since)
            history = [message async for message in place.history(limit=HISTORY, after=after, oldest_first=False)]
        except FAILED as trouble:
            if is_passing(trouble):
                raise Unread(named(trouble)) from trouble
            log.warning("chat %s: Discord does not tell what was said meanwhile: %s", chat.key, named(trouble))
            return
        if len(history) == HISTORY:
            log.warning("chat %s: of what was said meanwhile only the last %d messages are read", chat.key, HISTORY)
        await self._hear(history[::-1], chat)

    def _at(self, age: timedelta) -> int:
        """The id a message of that age has at least."""
        return discord.utils.time_snowflake(self._now() - age)
