"""The adapter itself: log in, stay connected, stop cleanly, and say what only the operator can change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

import discord

from bot.adapters.discord.client import Client, Work
from bot.adapters.discord.outlet import FAILED
from bot.adapters.discord.pauses import pauses
from bot.adapters.discord.quiet import named, quieten, report
from bot.adapters.discord.reading import PLATFORM
from bot.delivery import Tempo
from bot.message import AdapterError, ChatRef, CommandSpec, DeliveryError, Incoming, Reply, Seen, Sink, Submit

SETTLED: Final = 60.0
"""Seconds a gateway connection has to last before the next trouble counts as the first again."""
REMEMBERED: Final = timedelta(minutes=2)
"""How long a nonce is sure to be known; Discord says "the past few minutes" (Create Message, enforce_nonce)."""
LOGIN_FIX: Final = (
    "Discord refuses the token. Set DISCORD_BOT_TOKEN to the one of your application: "
    "https://discord.com/developers/applications, page Bot, Reset Token."
)
INTENT_FIX: Final = (
    "Discord does not let the bot read messages. Open your application at "
    "https://discord.com/developers/applications, page Bot, Privileged Gateway Intents, "
    "and switch on Message Content Intent."
)
UNREACHABLE: Final = "Discord cannot be reached. Check the network, and [discord] proxy in recollect.toml."
NOT_UP: Final = "Discord is not connected"

log: Final = logging.getLogger(__name__)


class DiscordAdapter:
    """Discord behind :class:`bot.message.Adapter`.

    ``proxy`` is an HTTP proxy URL for this platform alone; ``now`` returns aware UTC; ``tempo`` is by what
    frames, typing signs and new attempts are paced.
    """

    name = PLATFORM
    repeats_for = REMEMBERED

    def __init__(
        self, token: str, proxy: str | None = None, *, now: Callable[[], datetime], tempo: Tempo | None = None
    ) -> None:
        quieten()
        self._token = token
        self._proxy = proxy
        self._now = now
        self._tempo = tempo or Tempo()
        self._client: Client | None = None

    @property
    def connected(self) -> bool:
        """Whether the gateway is connected just now."""
        client = self._client
        return client is not None and client.is_ready() and client.ws.open

    async def run(self, submit: Submit, commands: tuple[CommandSpec, ...], seen: Seen) -> None:
        """Serve until cancelled, over outages and broken connections; then let answers under way arrive.

        Without Message Content Intent it serves private chats and mentions. Raises AdapterError when Discord
        refuses the token or the connection for good.
        """
        work = Work(submit, commands, seen)
        sees_all = True
        waits = pauses()
        while True:
            try:
                with _fixes():
                    await self._serve(work, sees_all=sees_all)
            except discord.PrivilegedIntentsRequired:
                log.error("%s Until then it hears private chats and mentions only.", INTENT_FIX)  # noqa: TRY400
                sees_all = False
            except FAILED as trouble:
                pause = next(waits)
                log.warning("Discord did not answer the login; trying again in %g s: %s", pause, named(trouble))
                await self._tempo.sleep(pause)

    async def notify(self, chat: ChatRef, reply: Reply) -> None:
        """Send something nobody asked for just now. Raises DeliveryError."""
        answers = self._up().answers
        if reply.private and not chat.private:
            raise DeliveryError("a private reply has no place in a Discord channel")
        await answers.unasked(chat).send(reply)

    def sink(self, incoming: Incoming, *, shown: tuple[str, ...] = (), begun: bool = False) -> Sink:
        """Where the answer to a message of the past goes. Raises DeliveryError when Discord is not up.

        Within the few minutes that Discord remembers nonces, a message that was asked for before is not made
        again. What it shows is not known, whatever ``begun`` says: an earlier answer to a message that was edited
        has the same nonce.
        """
        del begun
        return self._up().answers.to_message(incoming, shown=shown, begun=True)

    def _up(self) -> Client:
        if self._client is None:
            raise DeliveryError(NOT_UP, later=True)
        return self._client

    async def _serve(self, work: Work, *, sees_all: bool) -> None:
        client = Client(work, proxy=self._proxy, tempo=self._tempo, now=self._now, sees_all=sees_all)
        async with client:
            try:
                await client.login(self._token)
                client.hear_leaving()
                self._client = client
                await self._listen(client)
            finally:
                self._client = None
                await client.leave()

    async def _listen(self, client: Client) -> None:
        """Keep the gateway connected.

        The client outlives the connection, and with it the answers under way.
        """
        waits = pauses()
        while True:
            since = self._tempo.clock()
            try:
                await client.connect()
            except (discord.PrivilegedIntentsRequired, discord.ConnectionClosed):
                raise
            except Exception as error:  # noqa: BLE001 - the SDK ends a connection with whatever a frame broke
                report("Discord's gateway connection broke; connecting again", error)
            await client.hang_up()
            if self._tempo.clock() - since > SETTLED:
                waits = pauses()
            await self._tempo.sleep(next(waits))


async def check(token: str, proxy: str | None = None) -> str:
    """Log in once and return the bot's name.

    Raises AdapterError, which names the fix, for a refused token, a missing intent (the bot would hear
    mentions and private chats only) or no connection.
    """
    quieten()
    async with discord.Client(intents=discord.Intents(guilds=True), proxy=proxy) as client:
        try:
            with _fixes():
                await client.login(token)
        except FAILED as trouble:
            raise AdapterError(UNREACHABLE) from trouble
        flags = client.application_flags
        if not (flags.gateway_message_content or flags.gateway_message_content_limited):
            raise AdapterError(INTENT_FIX)
        return str(client.user)


@contextmanager
def _fixes() -> Iterator[None]:
    """Turn what only the operator can change into an AdapterError that says how."""
    try:
        yield
    except discord.LoginFailure as refused:
        raise AdapterError(LOGIN_FIX) from refused
    except discord.ConnectionClosed as refused:
        if refused.code == 4004:  # noqa: PLR2004 - authentication failed (Discord, Gateway Close Event Codes)
            raise AdapterError(LOGIN_FIX) from refused
        raise AdapterError(f"Discord ended the connection for good, close code {refused.code}.") from refused
