"""Telegram as an Adapter: how it comes up, serves and goes down."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from bot.adapters.telegram.connection import API, NAME, Pace, explained, insist, make_bot, quieten
from bot.adapters.telegram.line import Line
from bot.adapters.telegram.menus import write_menus
from bot.adapters.telegram.polling import Poller
from bot.adapters.telegram.webhook import Webhook, serve
from bot.message import AdapterError, ChatRef, CommandSpec, DeliveryError, Incoming, Reply, Seen, Sink, Submit


class TelegramAdapter:
    """Telegram by long polling, or by ``webhook`` if one is given.

    ``clock`` returns aware UTC, ``proxy`` is a URL for this platform alone, ``drafts`` shows growing
    answers in private chats as drafts.
    """

    name = NAME
    repeats_for = timedelta(0)

    def __init__(
        self,
        token: str,
        *,
        clock: Callable[[], datetime],
        base_url: str = API,
        proxy: str | None = None,
        pace: Pace | None = None,
        drafts: bool = False,
        webhook: Webhook | None = None,
    ) -> None:
        quieten()
        self._token = token
        self._clock = clock
        self._base_url = base_url
        self._proxy = proxy
        self._pace = pace or Pace()
        self._drafts = drafts
        self._webhook = webhook
        self._line: Line | None = None
        self._poller: Poller | None = None

    @property
    def connected(self) -> bool:
        """Whether the last poll succeeded; with a webhook, whether it is served."""
        return self._line is not None and (self._poller is None or self._poller.well)

    async def run(self, submit: Submit, commands: tuple[CommandSpec, ...], seen: Seen) -> None:
        """Serve until cancelled, then confirm what was handed over and let replies under way arrive.

        What ``seen`` returns is of no use: Telegram keeps what was said while nobody listened. Raises AdapterError
        when the token is refused, another process keeps polling with it, or the webhook cannot be had.
        """
        bot, polls = make_bot(self._token, self._base_url, self._proxy)
        try:
            await insist(bot.initialize, self._pace.tempo, on=f"a start at {self._base_url}")
            line = self._line = Line(bot, submit, self._pace, now=self._clock, drafts=self._drafts)
            menus = line.errands.start(write_menus(bot, commands, self._pace.tempo))
            try:
                await seen()
                if self._webhook is not None:
                    await serve(bot, self._webhook, line.take, self._pace.tempo)
                else:
                    self._poller = Poller(bot, polls, self._pace)
                    await self._poller.run(line.look_ahead, line.take)
            finally:
                self._line = self._poller = None
                menus.cancel()  # the next start writes them
                await line.close()
        finally:
            await bot.shutdown()

    async def notify(self, chat: ChatRef, reply: Reply) -> None:
        """Send something nobody asked for just now. Raises DeliveryError, also for what is private and a group."""
        if reply.private and not chat.private:
            raise DeliveryError("nobody can be written to privately in a group on Telegram")
        await self._up().delivery(chat).send(reply)

    def sink(self, incoming: Incoming, *, shown: tuple[str, ...] = (), begun: bool = False) -> Sink:
        """Where the answer to a message of the past goes. Raises DeliveryError when Telegram is not up."""
        return self._up().sink(incoming, shown=shown, begun=begun)

    def _up(self) -> Line:
        if self._line is None:
            raise DeliveryError("Telegram is not running", later=True)
        return self._line


async def check(
    token: str, base_url: str = API, proxy: str | None = None, *, polls: bool = False, webhook: Webhook | None = None
) -> str:
    """Return the "@name" of the bot a token belongs to. Raises AdapterError, which names the fix.

    ``polls``: the bot is to poll, so that a webhook somebody has set for it is an error, too. ``webhook``: it is to
    be served by this one, so that one without a secret is an error.
    """
    quieten()
    if webhook is not None:
        webhook.proof()
    with explained(base_url):
        async with make_bot(token, base_url, proxy)[0] as bot:
            if polls and (await bot.get_webhook_info()).url:
                raise AdapterError(
                    f"A webhook is set for @{bot.username}, but the bot is to poll. If another program uses it, get a "
                    "bot of its own from @BotFather for each; if not, `run` removes it. To use a webhook here, set "
                    "webhook_url under [telegram] in recollect.toml."
                )
            return f"@{bot.username}"
