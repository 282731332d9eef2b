"""How updates wait for a bot: fetched by long polls, or posted to a webhook until it says 2xx."""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from tests.servers.telegram_rules import Refusal, bad, checked_webhook

_REDELIVERY_SECONDS: Final = 0.02


class Updates:
    """What waits for the bot. ``delivered`` are the (update id, status) of every post to its webhook.

    The address of a webhook is public; ``webhook_at`` is where its proxy passes posts on to. ``notice`` is
    told after each of them.
    """

    def __init__(self, notice: Callable[[], Awaitable[None]]) -> None:
        self.waiting: list[dict[str, Any]] = []
        self.delivered: list[tuple[int, int]] = []
        self.webhook: dict[str, Any] = {}
        self.webhook_at = ""
        self._notice = notice
        self._allowed: Sequence[str] = ()
        self._numbers = itertools.count(7_000)
        self._poll = asyncio.Event()
        self._going_down = False
        self._arrived = asyncio.Event()
        self._courier: asyncio.Task[None] | None = None

    def push(self, update: Mapping[str, Any]) -> None:
        """Let an update wait for the bot, if it asked for that kind."""
        if not self._allowed or next(iter(update)) in self._allowed:
            self.waiting.append({"update_id": next(self._numbers), **copy.deepcopy(dict(update))})
            self._arrived.set()

    async def fetch(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """getUpdates."""
        offset, limit = int(params.get("offset", 0)), int(params.get("limit", 100))
        if not 1 <= limit <= 100:
            raise bad("limit must be between 1 and 100")
        if self.webhook:
            raise Refusal(
                409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete it"
            )
        self._allowed = params.get("allowed_updates", self._allowed)
        if offset < 0:
            self.waiting = self.waiting[offset:]
        elif offset:
            self.waiting = [update for update in self.waiting if update["update_id"] >= offset]
        self._going_down = False
        self._poll.set()  # a newer poll ends an older one
        mine = self._poll = asyncio.Event()
        if not self.waiting:
            await self._wait_for_update(mine, float(params.get("timeout", 0)))
        if mine.is_set() and self._going_down:
            raise Refusal(502, "Bad Gateway")
        if mine.is_set():
            raise Refusal(
                409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
            )
        return self.waiting[:limit]

    async def _wait_for_update(self, superseded: asyncio.Event, seconds: float) -> None:
        self._arrived.clear()
        waiting = [asyncio.create_task(event.wait()) for event in (superseded, self._arrived)]
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()

    async def set_webhook(self, params: Mapping[str, Any]) -> bool:
        """setWebhook; from now on updates are posted one after another."""
        checked_webhook(params)
        await self.remove_webhook(params)
        self._poll.set()
        self._allowed = params.get("allowed_updates", self._allowed)
        self.webhook = dict(params)
        self._courier = asyncio.create_task(self._deliver())
        return True

    async def remove_webhook(self, params: Mapping[str, Any]) -> bool:
        """deleteWebhook."""
        if params.get("drop_pending_updates"):
            self.waiting.clear()
        self.webhook = {}
        if self._courier is not None:
            self._courier.cancel()
            await asyncio.wait({self._courier})
        return True

    def webhook_info(self) -> dict[str, Any]:
        """getWebhookInfo."""
        return {
            "url": self.webhook.get("url", ""),
            "has_custom_certificate": False,
            "pending_update_count": len(self.waiting),
        }

    async def close(self) -> None:
        """End all polls and posts, as a server that goes down does; what waits stays."""
        self._going_down = True
        self._poll.set()
        if self._courier is not None:
            self._courier.cancel()
            await asyncio.wait({self._courier})

    async def _deliver(self) -> None:
        address = self.webhook_at + urlsplit(self.webhook["url"]).path
        headers = {"X-Telegram-Bot-Api-Secret-Token": self.webhook.get("secret_token", "")}
        async with aiohttp.ClientSession(headers=headers) as session:
            while True:
                self._arrived.clear()
                if not self.waiting:
                    await self._arrived.wait()
                update = self.waiting[0]
                status = await self._post(session, address, update)
                self.delivered.append((update["update_id"], status))
                if status // 100 == 2:
                    self.waiting.remove(update)
                await self._notice()
                if update in self.waiting:
                    await asyncio.sleep(_REDELIVERY_SECONDS)

    async def _post(self, session: aiohttp.ClientSession, address: str, update: Mapping[str, Any]) -> int:
        try:
            async with session.post(address, json=update) as answer:
                return answer.status
        except aiohttp.ClientError:
            return 0
