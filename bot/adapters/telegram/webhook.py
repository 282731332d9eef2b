"""A webhook: Telegram posts each update, and posts it again until it hears that it was handed over."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from telegram import Bot
from telegram import Update as TelegramUpdate
from telegram.error import InvalidToken, TelegramError

from bot.adapters.telegram.connection import UPDATES, doubt, insist, readable
from bot.adapters.telegram.polling import Take, whole
from bot.delivery import Tempo
from bot.message import AdapterError

_log: Final = logging.getLogger(__name__)

_SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a name, no secret
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{1,256}")
_LARGEST_UPDATE: Final = 1_000_000
"""Bytes. An update is a few kilobytes: at most two texts of 4,096 characters with 100 entities each."""
_STOP_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 300.0
"""Pause between two looks whether the webhook is still set."""

_NOT_PROTECTED: Final = (
    "A Telegram webhook needs a secret. Set TELEGRAM_WEBHOOK_SECRET to 1-256 characters out of A-Z, a-z, "
    "0-9, _ and -, or remove webhook_url under [telegram] in recollect.toml to poll instead."
)
_CHECK_URL: Final = (
    "Check webhook_url under [telegram] in recollect.toml: a public https address, port 443, 80, 88 or 8443."
)


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where Telegram posts to (``url``, public), and where we listen (``host``, ``port``), behind a TLS proxy."""

    url: str
    secret: str | None = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 8443

    def proof(self) -> str:
        """The secret by which Telegram is known. Raises AdapterError when there is none, or none it can send."""
        if self.secret is None or not _SECRET.fullmatch(self.secret):
            raise AdapterError(_NOT_PROTECTED)
        return self.secret


async def serve(bot: Bot, webhook: Webhook, take: Take, tempo: Tempo) -> None:
    """Take updates until cancelled; the webhook stays set, so that Telegram keeps what comes meanwhile.

    Raises AdapterError for a missing secret, an address that cannot be listened on or that Telegram refuses.
    """
    secret = webhook.proof()

    async def put() -> str:
        # One connection: more of them would deliver the messages of a chat out of order.
        await bot.set_webhook(webhook.url, secret_token=secret, allowed_updates=UPDATES, max_connections=1)
        return (await bot.get_webhook_info()).url

    async with _listening(webhook, _Receiver(secret, take)):
        url = await insist(put, tempo, on="the webhook", fix=_CHECK_URL)
        while True:
            await tempo.sleep(_LOOK_SECONDS)
            url = await _looked_after(bot, url, put, tempo)


async def _looked_after(bot: Bot, url: str, put: Callable[[], Awaitable[str]], tempo: Tempo) -> str:
    """Set the webhook again if Telegram has another one than ``url``, or none; returns what it has then.

    Raises AdapterError when the token is refused.
    """
    try:
        if (await bot.get_webhook_info()).url != url:
            _log.warning("Somebody took the Telegram webhook away or set another one; it is set again")
            return await put()
    except InvalidToken:
        await doubt(bot, tempo)
    except TelegramError as error:
        _log.warning("Telegram did not tell whether the webhook is still set, or did not set it again: %s", error)
    return url


@asynccontextmanager
async def _listening(webhook: Webhook, receiver: _Receiver) -> AsyncIterator[None]:
    app = web.Application(client_max_size=_LARGEST_UPDATE)
    app.router.add_post(urlsplit(webhook.url).path or "/", receiver.receive)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_STOP_SECONDS)
    await runner.setup()
    try:
        await _open(web.TCPSite(runner, webhook.host, webhook.port), webhook)
        yield
    finally:
        await runner.cleanup()


async def _open(site: web.TCPSite, webhook: Webhook) -> None:
    try:
        await site.start()
    except OSError as error:
        raise AdapterError(
            f"The Telegram webhook cannot listen on {webhook.host}:{webhook.port} ({error.strerror}). Choose another "
            "webhook_host or webhook_port under [telegram] in recollect.toml."
        ) from None


class _Receiver:
    """Takes posts one after another."""

    def __init__(self, secret: str, take: Take) -> None:
        self._secret = secret.encode()
        self._take = take
        self._turn = asyncio.Lock()

    async def receive(self, request: web.Request) -> web.Response:
        """Answer 200 once the update is handed over, 403 to anybody who does not know the secret."""
        shown = request.headers.get(_SECRET_HEADER, "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(shown, self._secret):
            _log.info("Somebody without the secret posted to the Telegram webhook")
            raise web.HTTPForbidden
        try:
            update = TelegramUpdate.de_json(readable(json.loads(await request.read())), None)
        except (ValueError, TypeError, KeyError):
            raise web.HTTPBadRequest from None
        await whole(self._in_turn(update))
        return web.Response()

    async def _in_turn(self, update: TelegramUpdate) -> None:
        async with self._turn:
            await self._take(update)
