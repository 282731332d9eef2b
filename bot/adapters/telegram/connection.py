"""The SDK's connections to the Bot API: made, explained when they fail, their secrets kept out of logs."""

from __future__ import annotations

import asyncio
import logging
import os
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain, repeat
from typing import Any, Final, TypeVar

import httpx
from telegram import Bot
from telegram import Update as TelegramUpdate
from telegram.error import BadRequest, InvalidToken, RetryAfter, TelegramError
from telegram.request import HTTPXRequest

from bot.delivery import Tempo
from bot.message import AdapterError

NAME: Final = "telegram"
API: Final = "https://api.telegram.org"
UPDATES: Final = (
    TelegramUpdate.MESSAGE,
    TelegramUpdate.EDITED_MESSAGE,
    TelegramUpdate.CALLBACK_QUERY,
    TelegramUpdate.MY_CHAT_MEMBER,
    TelegramUpdate.CHAT_MEMBER,
)
"""The kinds of updates that are asked for. Of other members a bot is told only where it is an administrator; elsewhere
a note in the chat says that somebody left."""

REFUSED: Final = (
    "Telegram does not know this bot token. Set TELEGRAM_BOT_TOKEN to the token that @BotFather shows "
    "under /mybots, API Token."
)
CHECK_NETWORK: Final = "Check the network, and base_url and proxy under [telegram] in recollect.toml."

_log: Final = logging.getLogger(__name__)

_PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between two tries to reach a server; the last one stays."""
_CONNECTIONS: Final = 32
"""Requests at the same time; what is more waits its turn."""
_READ_SECONDS: Final = 20.0
"""Longer than the SDK's 5: a send given up too early has an unknown outcome."""
_DOUBTS: Final = (1.0, 5.0, 15.0)
"""Seconds before each time it is asked again whether a token is known that worked before."""
_CLOSE_SECONDS: Final = 5.0
"""Time for a connection to close."""
_BEFORE_THE_REQUEST: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
"""Faults of a connection that was never made."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often things happen, in seconds, and by which clock.

    ``edit_private`` and ``edit_group`` lie between two edits of one chat; the platform lets a bot write about
    once a second to a person and 20 times a minute to a group (its FAQ, "My bot is hitting limits").
    ``long_poll`` is how long the server holds an idle poll.
    """

    edit_private: float = 1.0
    edit_group: float = 4.0
    long_poll: int = 25
    tempo: Tempo = field(default_factory=Tempo)


class PollRequest(HTTPXRequest):
    """The poller's own connection. One update the SDK cannot read takes no other along."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """See the SDK, which would refuse a whole batch for one of its updates, and log all its words."""
        answer = HTTPXRequest.parse_json_payload(payload)
        if isinstance(updates := answer.get("result"), list):
            answer["result"] = [readable(update) for update in updates]
        return answer

    async def renew(self) -> None:
        """Drop the connection and whatever hangs in it, and begin another."""
        with suppress(TimeoutError):  # what hangs counts as closed all the same
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.shutdown()
        await self.initialize()


def readable(update: dict[str, Any]) -> dict[str, Any]:
    """Return a raw update, or only its id if the SDK cannot read it: then it is passed over and confirmed."""
    try:
        TelegramUpdate.de_json(update, None)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one update, the next ones are to be read
        pass_over(update["update_id"], error)
        return {"update_id": update["update_id"]}
    return update


def pass_over(update_id: int, error: Exception) -> None:
    """Log that an update could not be read: where, but nothing of what it says."""
    where = "".join(traceback.format_tb(error.__traceback__))
    _log.error("Update %s cannot be read and is passed over: %s\n%s", update_id, type(error).__name__, where)


def quieten() -> None:
    """Keep tokens and what people say out of logs, and take the SDK's durations as timedelta.

    The HTTP clients log each URL at INFO; the SDK logs all it sends and gets at DEBUG, and bodies it cannot
    read as errors. All that matters of it reaches us as exceptions.
    """
    for name, level in (("httpx", logging.WARNING), ("httpx2", logging.WARNING), ("telegram", logging.CRITICAL)):
        logging.getLogger(name).setLevel(level)
    os.environ.setdefault("PTB_TIMEDELTA", "1")


def make_bot(token: str, base_url: str, proxy: str | None) -> tuple[Bot, PollRequest]:
    """Make the SDK's bot, not yet connected, and its connection for polls. Raises AdapterError."""
    base_url = base_url.rstrip("/")
    try:
        polls = PollRequest(proxy=proxy, connection_pool_size=1)
        # The client looks through all its connections at each request: a few that are waited for are faster than many.
        others = HTTPXRequest(
            proxy=proxy, read_timeout=_READ_SECONDS, connection_pool_size=_CONNECTIONS, pool_timeout=_READ_SECONDS
        )
    except (ValueError, RuntimeError, httpx.InvalidURL):
        raise AdapterError(
            "The proxy under [telegram] in recollect.toml is no URL that can be used, such as http://127.0.0.1:3128."
        ) from None
    with explained(base_url):
        return (
            Bot(
                token.strip(),
                base_url=f"{base_url}/bot",
                base_file_url=f"{base_url}/file/bot",
                request=others,
                get_updates_request=polls,
            ),
            polls,
        )


@contextmanager
def explained(base_url: str) -> Iterator[None]:
    """Turn what the SDK raises at the start into words with a fix; it quotes the token, we do not."""
    try:
        yield
    except InvalidToken:
        raise AdapterError(REFUSED) from None
    except TelegramError as error:
        raise AdapterError(f"Telegram cannot be used at {base_url}: {error}. {CHECK_NETWORK}") from None


async def insist(request: Callable[[], Awaitable[T]], tempo: Tempo, *, on: str, fix: str = CHECK_NETWORK) -> T:
    """Make a request until the platform answers it, with growing pauses; ``on`` names it in the log.

    Raises AdapterError when the token or the request itself is refused; ``fix`` says what to do then.
    """
    pauses = growing()
    while True:
        try:
            return await request()
        except InvalidToken:
            raise AdapterError(REFUSED) from None
        except RetryAfter as flood:
            await tempo.sleep(seconds(flood))
        except BadRequest as refusal:
            raise AdapterError(f"Telegram refuses {on}: {refusal}. {fix}") from None
        except TelegramError as error:
            _log.warning("Telegram cannot be reached for %s, trying again: %s", on, error)
            await tempo.sleep(next(pauses))


async def doubt(bot: Bot, tempo: Tempo) -> None:
    """Ask a few times whether a token that worked is refused now: a server on the way may just once know nothing.

    Raises AdapterError when it is.
    """
    for pause in _DOUBTS:
        await tempo.sleep(pause)
        try:
            await bot.get_me()
        except InvalidToken:
            continue
        except TelegramError as error:
            _log.warning("Telegram cannot be asked about the token: %s", error)
        else:
            _log.warning("Telegram did not know the token once, and knows it again")
        return
    raise AdapterError(REFUSED)


def growing() -> Iterator[float]:
    """Pauses between tries, in seconds, without end."""
    return chain(_PAUSES, repeat(_PAUSES[-1]))


def seconds(flood: RetryAfter) -> float:
    """How long a flood lasts; the SDK tells it as a number or as a timedelta."""
    wait = flood.retry_after
    return wait.total_seconds() if isinstance(wait, timedelta) else float(wait)


def never_left(error: TelegramError) -> bool:
    """Whether a failed request certainly never reached the platform."""
    return isinstance(error.__cause__, _BEFORE_THE_REQUEST)
