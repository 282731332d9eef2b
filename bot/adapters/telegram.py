"""Telegram by long polling: its messages become ours, our replies become its messages.

A reply is one message that grows by edits, or several when it is over Telegram's limit. Frames may be
lost, the final text may not: floods are waited out for each chat alone, edits are repeated, and only a
first send whose outcome nobody knows is left alone, since a second one would double it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from typing import Any, Final, TypeVar

import httpx
from telegram import (
    Bot,
    BotCommand,
    CallbackQuery,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    MessageOrigin,
    MessageOriginChannel,
    MessageOriginChat,
    MessageOriginHiddenUser,
    MessageOriginUser,
    ReplyParameters,
    User,
)
from telegram import Update as TelegramUpdate
from telegram.constants import ChatAction, ChatType, MessageLimit
from telegram.error import BadRequest, InvalidToken, NetworkError, RetryAfter, TelegramError
from telegram.ext import Application, ApplicationBuilder, CallbackQueryHandler, MessageHandler, filters
from telegram.request import HTTPXRequest

from bot.message import (
    AdapterError,
    Button,
    ChatRef,
    CommandSpec,
    DeliveryError,
    Incoming,
    Press,
    Quote,
    Reply,
    Submit,
)
from bot.text import clean, is_blank, split, utf16_length

NAME: Final = "telegram"
API: Final = "https://api.telegram.org"

_log: Final = logging.getLogger(__name__)

_PAUSES: Final = (1.0, 2.0, 4.0)
"""Seconds before each repetition of a request that failed in passing."""
_CONNECT_PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between two looks for a server that cannot be reached at start; the last one stays."""
_CONFLICT_PATIENCE: Final = 60.0
"""Seconds of nothing but conflicts after which a second poller is no passing thing (a restart is)."""
_TYPING_EVERY: Final = 4.5
"""Telegram shows a chat action for 5 seconds."""
_TYPING_LIMIT: Final = 60.0
_STOP_SECONDS: Final = 10.0
"""Time for replies under way to arrive once the bot is told to stop."""
_READ_SECONDS: Final = 20.0
"""Longer than the SDK's 5: a send given up too early has an unknown outcome."""
_IN_A_ROW: Final = 2
"""Buttons side by side."""
_DEFAULT_LANGUAGE: Final = "en"
"""Its menu is the one of every language without its own."""

_REFUSED: Final = (
    "Telegram does not know this bot token. Set TELEGRAM_BOT_TOKEN to the token that @BotFather shows "
    "under /mybots, API Token."
)
_CONFLICT: Final = (
    "Another process polls Telegram with the same TELEGRAM_BOT_TOKEN, or a webhook is set for it. Stop the "
    "other process or remove its webhook; if you know of none, get a new token from @BotFather with /revoke."
)
_COMMAND: Final = re.compile(r"/(?P<name>[A-Za-z0-9_]+)(?:@(?P<bot>\w+))?(?=\s|$)")

T = TypeVar("T")
_App = Application[Any, Any, Any, Any, Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often things happen and by which clock, all in seconds.

    ``edit_private`` and ``edit_group`` lie between two edits of one chat, ``long_poll`` is how long the
    server holds an idle poll, ``poll_pause`` lies between two polls.
    """

    edit_private: float = 1.0
    edit_group: float = 4.0
    long_poll: int = 25
    poll_pause: float = 0.0
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class TelegramAdapter:
    """Telegram as an Adapter. ``clock`` returns aware UTC; ``proxy`` is a URL for this platform alone."""

    name = NAME

    def __init__(
        self,
        token: str,
        *,
        clock: Callable[[], datetime],
        base_url: str = API,
        proxy: str | None = None,
        pace: Pace | None = None,
    ) -> None:
        _quieten()
        self._token = token.strip()
        self._clock = clock
        self._base_url = base_url.rstrip("/")
        self._proxy = proxy
        self._pace = pace or Pace()
        self._gates: dict[str, _Gate] = {}
        self._errands = _Errands()
        self._bot: Bot | None = None
        self._conflict_since: float | None = None

    async def run(self, submit: Submit, commands: tuple[CommandSpec, ...]) -> None:
        """Serve until cancelled, then confirm what was fetched and let replies under way arrive.

        Raises AdapterError when the token is refused or another process keeps polling with it.
        """
        broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._errands = _Errands()
        self._conflict_since = None
        app = self._application(submit, broken)
        try:
            await self._connect(app)
            await self._poll(app)
            self._errands.start(_set_menus(app.bot, commands))
            await broken
        finally:
            await self._stop(app)

    async def notify(self, chat: ChatRef, reply: Reply) -> None:
        """Send something nobody asked for just now. Raises DeliveryError."""
        if self._bot is None:
            raise DeliveryError("Telegram is not running")
        await self._sink(self._bot, chat).send(reply)

    def _application(self, submit: Submit, broken: asyncio.Future[None]) -> _App:
        with _explained(self._base_url):
            app: _App = (
                ApplicationBuilder()
                .token(self._token)
                .base_url(f"{self._base_url}/bot")
                .base_file_url(f"{self._base_url}/file/bot")
                .request(_http(self._proxy))
                .get_updates_request(_http(self._proxy, lambda status: self._polled(status, broken)))
                .job_queue(None)
                .build()
            )

        async def on_message(update: TelegramUpdate, _: object) -> None:
            await self._take_message(app.bot, update, submit)

        async def on_press(update: TelegramUpdate, _: object) -> None:
            await self._take_press(app.bot, update, submit)

        app.add_handler(MessageHandler(filters.UpdateType.MESSAGE, on_message))
        app.add_handler(CallbackQueryHandler(on_press))
        return app

    async def _connect(self, app: _App) -> None:
        """Come up even if the network comes up later. Raises AdapterError for a token that is refused."""
        pauses = chain(_CONNECT_PAUSES, repeat(_CONNECT_PAUSES[-1]))
        while self._bot is None:
            try:
                await app.initialize()
                self._bot = app.bot
            except InvalidToken:
                raise AdapterError(_REFUSED) from None
            except TelegramError as error:
                _log.warning("Telegram cannot be reached at %s, trying again: %s", self._base_url, error)
                await self._pace.sleep(next(pauses))

    async def _poll(self, app: _App) -> None:
        assert app.updater is not None
        await app.updater.start_polling(
            timeout=self._pace.long_poll,
            poll_interval=self._pace.poll_pause,
            bootstrap_retries=-1,
            allowed_updates=[TelegramUpdate.MESSAGE, TelegramUpdate.CALLBACK_QUERY],
            error_callback=lambda error: _log.warning("Polling Telegram failed, trying again: %s", error),
        )
        await app.start()

    def _polled(self, status: int, broken: asyncio.Future[None]) -> None:
        """Judge how a poll ended: the SDK ends its loop without a word, or goes on for ever."""
        now = self._pace.monotonic()
        if status == httpx.codes.CONFLICT:
            if self._conflict_since is None:
                self._conflict_since = now
                _log.error(_CONFLICT)
            if now - self._conflict_since >= _CONFLICT_PATIENCE and not broken.done():
                broken.set_exception(AdapterError(_CONFLICT))
        elif status in (httpx.codes.UNAUTHORIZED, httpx.codes.NOT_FOUND):
            if not broken.done():
                broken.set_exception(AdapterError(_REFUSED))
        else:
            self._conflict_since = None

    async def _stop(self, app: _App) -> None:
        self._bot = None
        if app.updater is not None and app.updater.running:
            with suppress(TelegramError):  # of a polling loop that ended by itself, already told
                await app.updater.stop()
        if app.running:
            await app.stop()
        await self._errands.finish()
        await app.shutdown()
        await app.bot.shutdown()  # for an application that never came as far as being initialised

    async def _take_message(self, bot: Bot, update: TelegramUpdate, submit: Submit) -> None:
        message = update.message
        incoming = _incoming(message, bot.bot) if message is not None else None
        if message is None or incoming is None:
            return
        sink = self._sink(bot, incoming.chat, answers=None if incoming.chat.private else message.message_id)
        sink.type()
        await submit(incoming, sink)

    async def _take_press(self, bot: Bot, update: TelegramUpdate, submit: Submit) -> None:
        query = update.callback_query
        if query is None:
            return
        self._errands.start(_acknowledge(query))
        if not isinstance(query.message, Message) or query.data is None:
            return  # a message too old to be read, or a game
        chat = _chat(query.message)
        user = query.from_user
        press = Press(chat, str(user.id), clean(user.full_name), query.data, self._clock(), user.language_code)
        await submit(press, self._sink(bot, chat))

    def _sink(self, bot: Bot, chat: ChatRef, *, answers: int | None = None) -> _Sink:
        gap = self._pace.edit_private if chat.private else self._pace.edit_group
        gate = self._gates.setdefault(chat.key, _Gate(gap, self._pace))
        return _Sink(_Room(bot, chat, gate), answers, self._errands)


async def check(token: str, base_url: str = API, proxy: str | None = None) -> str:
    """Return the "@name" of the bot a token belongs to. Raises AdapterError, which names the fix."""
    _quieten()
    base_url = base_url.rstrip("/")
    with _explained(base_url):
        async with Bot(
            token.strip(),
            base_url=f"{base_url}/bot",
            request=_http(proxy),
            get_updates_request=_http(proxy),
        ) as bot:
            return f"@{bot.username}"


class _Gate:
    """When a chat may be written to. Each chat has its own, so that a flood in one holds up no other."""

    def __init__(self, gap: float, pace: Pace) -> None:
        self._gap = gap
        self._pace = pace
        self._closed_until = 0.0
        self._drawn_at = float("-inf")
        self.sleep = pace.sleep

    def close(self, flood: RetryAfter) -> None:
        """Let nothing through until the platform said so."""
        self._closed_until = self._pace.monotonic() + _seconds(flood)

    def drawn(self) -> None:
        """Remember that a frame went out just now."""
        self._drawn_at = self._pace.monotonic()

    async def opened(self) -> None:
        """Wait until a flood is over."""
        await self._until(lambda: self._closed_until)

    async def paced(self) -> None:
        """Wait until a flood is over and the last frame has been seen for a while."""
        await self._until(lambda: max(self._closed_until, self._drawn_at + self._gap))

    async def _until(self, moment: Callable[[], float]) -> None:
        while (left := moment() - self._pace.monotonic()) > 0:
            await self.sleep(left)


class _Room:
    """A chat, or a topic of it, as something to write into."""

    def __init__(self, bot: Bot, chat: ChatRef, gate: _Gate) -> None:
        self._bot = bot
        self._chat_id = int(chat.key.partition(":")[2])
        self._thread = int(chat.thread) if chat.thread is not None else None
        self.gate = gate

    async def insist(self, request: Callable[[], Awaitable[_Shown]], *, repeat: bool) -> _Shown:
        """Make a request until it is taken: through floods always, after other faults if it may ``repeat``."""
        pauses = iter(_PAUSES)
        while True:
            await self.gate.opened()
            try:
                return await request()
            except RetryAfter as flood:
                self.gate.close(flood)
            except NetworkError as error:
                pause = next(pauses, None)
                if isinstance(error, BadRequest) or pause is None or not (repeat or _never_left(error)):
                    raise
                await self.gate.sleep(pause)

    async def post(self, message: _Shown, answers: int | None) -> _Shown:
        """Send a new message, as an answer to another one if that is still there."""
        reply = ReplyParameters(answers, allow_sending_without_reply=True) if answers is not None else None
        sent = await self._bot.send_message(
            self._chat_id,
            message.text,
            message_thread_id=self._thread,
            reply_markup=message.keyboard,
            reply_parameters=reply,
            link_preview_options=LinkPreviewOptions(is_disabled=True),
        )
        return replace(message, message_id=sent.message_id)

    async def edit(self, message_id: int, message: _Shown) -> _Shown:
        """Change a message of ours; changing it to what it is already is no error."""
        try:
            await self._bot.edit_message_text(
                message.text,
                self._chat_id,
                message_id,
                reply_markup=message.keyboard,
                link_preview_options=LinkPreviewOptions(is_disabled=True),
            )
        except BadRequest as refusal:
            if "not modified" not in refusal.message:
                raise
        return replace(message, message_id=message_id)

    async def delete(self, message_id: int) -> None:
        """Take back a message of ours."""
        await self._bot.delete_message(self._chat_id, message_id)

    async def type(self) -> None:
        """Show that an answer is on its way; ends when cancelled, refused or after a minute at most."""
        with suppress(TelegramError):
            for _ in range(round(_TYPING_LIMIT / _TYPING_EVERY)):
                await self.gate.opened()
                await self._bot.send_chat_action(self._chat_id, ChatAction.TYPING, message_thread_id=self._thread)
                await self.gate.sleep(_TYPING_EVERY)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A message of a reply as it stands in the chat, or as it should (then without an id)."""

    message_id: int
    text: str
    keyboard: InlineKeyboardMarkup | None = None

    def same_as(self, other: _Shown) -> bool:
        """Whether the platform would call this "not modified"; it trims what it is sent."""
        return self.text.strip() == other.text.strip() and self.keyboard == other.keyboard


class _Errands:
    """Requests under way that outlive whoever asked for them; a stop waits for them."""

    def __init__(self) -> None:
        self._open = True
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, errand: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin one. Raises DeliveryError once the bot has stopped."""
        if not self._open:
            errand.close()
            raise DeliveryError("Telegram is not running")
        task = asyncio.create_task(errand)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    async def finish(self) -> None:
        """Wait for what is under way, though not for ever, and begin no more."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_STOP_SECONDS)
            for task in late:
                task.cancel()
        self._open = False

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("%s", error)


class _Sink:
    """One reply. The lock is held during each request: one under way is waited for, never cut short."""

    def __init__(self, room: _Room, answers: int | None, errands: _Errands) -> None:
        self._room = room
        self._answers = answers
        self._errands = errands
        self._lock = asyncio.Lock()
        self._shown: list[_Shown] = []
        self._frame: str | None = None
        self._streaming = True
        self._pump: asyncio.Task[None] | None = None
        self._typing: asyncio.Task[None] | None = None

    def type(self) -> None:
        """Show that an answer is on its way, until there is one or there will be none."""
        self._typing = asyncio.create_task(self._room.type())

    async def show(self, text: str) -> None:
        """Keep the newest frame for the next time the platform takes one."""
        if not self._streaming or is_blank(text):
            return
        self._frame = clean(text)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._stream())

    async def send(self, reply: Reply) -> str:
        """Deliver the reply whole, even if the caller is cancelled; return the id of its last message.

        Raises DeliveryError.
        """
        self._streaming = False
        self._rest()
        text = clean(reply.text)
        if is_blank(text):
            raise DeliveryError("a blank reply is never sent")
        return await asyncio.shield(self._errands.start(self._deliver(text, _keyboard(reply.buttons))))

    async def done(self) -> None:
        """End what was begun for an answer, if there was none."""
        self._rest()

    def _rest(self) -> None:
        if self._typing is not None:
            self._typing.cancel()

    async def _stream(self) -> None:
        while self._streaming and self._frame is not None:
            await self._room.gate.paced()
            async with self._lock:
                frame, self._frame = self._frame, None
                await self._draw(frame)

    async def _draw(self, frame: str) -> None:
        parts = _parts(frame)
        try:
            await self._lay_out(parts)
        except RetryAfter as flood:
            self._room.gate.close(flood)
            self._frame = self._frame or frame
        except TelegramError as error:
            # A new message that may have arrived must not be sent again; the final text still will be.
            if len(self._shown) < len(parts) and not _never_left(error):
                self._streaming = False
                _log.warning("A reply cannot be shown as it grows: %s", error)
        else:
            self._room.gate.drawn()
            self._rest()

    async def _deliver(self, text: str, keyboard: InlineKeyboardMarkup | None) -> str:
        async with self._lock:
            if self._pump is not None:
                self._pump.cancel()  # without the lock it only waits: no request is cut short
            try:
                await self._lay_out(_parts(text), keyboard, insist=True)
            except TelegramError as error:
                raise DeliveryError(f"Telegram did not take a reply: {error}", unknown=_unclear(error)) from error
            else:
                return str(self._shown[-1].message_id)
            finally:
                self._shown = []  # whatever comes next is another reply

    async def _lay_out(
        self, parts: Sequence[str], keyboard: InlineKeyboardMarkup | None = None, *, insist: bool = False
    ) -> None:
        """Make the chat show these parts, with as few requests as that takes."""
        for index, part in enumerate(parts):
            message = _Shown(0, part, keyboard if index == len(parts) - 1 else None)
            if index == len(self._shown):
                self._shown.append(await self._post(message, insist=insist))
            elif not message.same_as(self._shown[index]):
                self._shown[index] = await self._edit(self._shown[index], message, insist=insist)
        while len(self._shown) > len(parts):
            with suppress(TelegramError):
                await self._room.delete(self._shown.pop().message_id)

    async def _post(self, message: _Shown, *, insist: bool) -> _Shown:
        answers = None if self._shown else self._answers
        if insist:
            return await self._room.insist(lambda: self._room.post(message, answers), repeat=False)
        return await self._room.post(message, answers)

    async def _edit(self, old: _Shown, message: _Shown, *, insist: bool) -> _Shown:
        if not insist:
            return await self._room.edit(old.message_id, message)
        try:
            return await self._room.insist(lambda: self._room.edit(old.message_id, message), repeat=True)
        except BadRequest as refusal:
            _log.info("A message cannot be edited, sending it anew: %s", refusal)  # its reader deleted it
            return await self._post(message, insist=True)


class _PollRequest(HTTPXRequest):
    """The poller's own connection; tells the status of each poll, which the SDK keeps to itself."""

    def __init__(self, polled: Callable[[int], None], **options: Any) -> None:
        super().__init__(**options)
        self._polled = polled

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        """See the SDK."""
        status, body = await super().do_request(*args, **kwargs)
        self._polled(status)
        return status, body


def _quieten() -> None:
    """Keep tokens and what people say out of logs, and take the SDK's durations as timedelta.

    The HTTP clients log each URL at INFO, the SDK its own and all it sends and gets at DEBUG.
    """
    for name, level in (("httpx", logging.WARNING), ("httpx2", logging.WARNING), ("telegram", logging.INFO)):
        logging.getLogger(name).setLevel(level)
    os.environ.setdefault("PTB_TIMEDELTA", "1")


@contextmanager
def _explained(base_url: str) -> Iterator[None]:
    """Turn what the SDK raises at the start into words with a fix; it quotes the token, we do not."""
    try:
        yield
    except InvalidToken:
        raise AdapterError(_REFUSED) from None
    except TelegramError as error:
        raise AdapterError(
            f"Telegram cannot be used at {base_url}: {error}. Check the network, and base_url and proxy "
            "under [telegram] in recollect.toml."
        ) from None


def _http(proxy: str | None, polled: Callable[[int], None] | None = None) -> HTTPXRequest:
    try:
        if polled is not None:
            return _PollRequest(polled, proxy=proxy, connection_pool_size=1)
        return HTTPXRequest(proxy=proxy, read_timeout=_READ_SECONDS)
    except (ValueError, RuntimeError, httpx.InvalidURL):
        raise AdapterError(
            "The proxy under [telegram] in recollect.toml is no URL that can be used, such as http://127.0.0.1:3128."
        ) from None


def _seconds(flood: RetryAfter) -> float:
    wait = flood.retry_after
    return wait.total_seconds() if isinstance(wait, timedelta) else float(wait)


def _never_left(error: TelegramError) -> bool:
    return isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _unclear(error: TelegramError) -> bool:
    """Whether the platform may have done what it was asked all the same."""
    return isinstance(error, NetworkError) and not isinstance(error, BadRequest) and not _never_left(error)


def _parts(text: str) -> list[str]:
    parts = split(text, MessageLimit.MAX_TEXT_LENGTH, utf16_length)
    return [part for part in parts if not is_blank(part)]


def _keyboard(buttons: Sequence[Button]) -> InlineKeyboardMarkup | None:
    if not buttons:
        return None
    keys = [InlineKeyboardButton(button.label, callback_data=button.id) for button in buttons]
    return InlineKeyboardMarkup([keys[i : i + _IN_A_ROW] for i in range(0, len(keys), _IN_A_ROW)])


async def _acknowledge(query: CallbackQuery) -> None:
    with suppress(TelegramError):  # too late or not heard: the button only stops spinning later
        await query.answer()


async def _set_menus(bot: Bot, commands: Sequence[CommandSpec]) -> None:
    """Write each language's command menu if it differs from the one the platform has."""
    languages = {language for command in commands for language in command.descriptions}
    for language in sorted(languages):
        menu = [
            BotCommand(command.name, command.descriptions[language])
            for command in commands
            if language in command.descriptions
        ]
        code = None if language == _DEFAULT_LANGUAGE else language
        try:
            if list(await bot.get_my_commands(language_code=code)) != menu:
                await bot.set_my_commands(menu, language_code=code)
        except TelegramError as error:
            _log.warning("The command menu (%s) was not written: %s", language, error)


def _incoming(message: Message, me: User) -> Incoming | None:
    """Read a message of a person to us; None for everything else."""
    user, text = message.from_user, message.text or message.caption
    if user is None or text is None or user.is_bot or message.via_bot or message.is_automatic_forward:
        return None
    if message.chat.type == ChatType.CHANNEL:
        return None
    text = _said_to_us(message, text, me)
    if text is None:
        return None
    return Incoming(
        chat=_chat(message),
        user_id=str(user.id),
        name=clean(user.full_name),
        message_id=str(message.message_id),
        text=clean(text),
        at=message.date.astimezone(UTC),
        language=user.language_code,
        reply_to=_quote(message),
        forward_from=clean(_origin(message.forward_origin)) if message.forward_origin else None,
    )


def _chat(message: Message) -> ChatRef:
    private = message.chat.type == ChatType.PRIVATE
    # Ordinary replies carry a thread id, too; only in a topic is it one.
    thread = str(message.message_thread_id) if message.is_topic_message else None
    return ChatRef(NAME, f"{'dm' if private else 'group'}:{message.chat.id}", private, thread)


def _said_to_us(message: Message, text: str, me: User) -> str | None:
    """Return the text without our name in it, or None if it is not meant for us."""
    command = _COMMAND.match(text)
    for_us = command is not None and _same_name(command["bot"], me)
    if command is not None and for_us:
        return f"/{command['name']}{text[command.end() :]}"
    if message.chat.type == ChatType.PRIVATE:
        return text
    if command is not None:
        return None if command["bot"] else text
    mentions = [entity for entity in message.entities or message.caption_entities if _names(entity, text, me)]
    if mentions:
        return _without(text, mentions)
    replied = message.reply_to_message
    if replied is None or replied.forum_topic_created is not None or replied.from_user is None:
        return None
    return text if replied.from_user.id == me.id else None


def _same_name(name: str | None, me: User) -> bool:
    return name is not None and me.username is not None and name.casefold() == me.username.casefold()


def _names(entity: MessageEntity, text: str, me: User) -> bool:
    if entity.type == MessageEntity.TEXT_MENTION:
        return entity.user is not None and entity.user.id == me.id
    return entity.type == MessageEntity.MENTION and _same_name(
        _units(text, entity.offset, entity.offset + entity.length).removeprefix("@"), me
    )


def _without(text: str, entities: Sequence[MessageEntity]) -> str:
    for entity in sorted(entities, key=lambda entity: entity.offset, reverse=True):
        before = _units(text, 0, entity.offset).rstrip(" ")
        after = _units(text, entity.offset + entity.length, None).lstrip(" ")
        text = f"{before} {after}"
    return text.strip()


def _units(text: str, start: int, end: int | None) -> str:
    """Slice by UTF-16 units, in which the platform counts offsets."""
    coded = text.encode("utf-16-le", "surrogatepass")
    return coded[2 * start : None if end is None else 2 * end].decode("utf-16-le", "surrogatepass")


def _quote(message: Message) -> Quote | None:
    """Read what a message answers; a part picked out by hand counts before the whole."""
    replied = message.reply_to_message
    picked = message.quote.text if message.quote else None
    if replied is None or replied.forum_topic_created is not None:
        origin = _origin(message.external_reply.origin) if message.external_reply else ""
        return Quote(clean(picked), clean(origin)) if picked else None
    author = replied.from_user
    return Quote(
        text=clean(picked or replied.text or replied.caption or ""),
        name=clean(author.full_name) if author else "",
        user_id=str(author.id) if author else None,
        message_id=str(replied.message_id),
    )


def _origin(origin: MessageOrigin) -> str:
    """Name whose words were forwarded, as far as the platform tells."""
    match origin:
        case MessageOriginUser():
            return origin.sender_user.full_name
        case MessageOriginHiddenUser():
            return origin.sender_user_name
        case MessageOriginChat():
            return origin.sender_chat.effective_name or origin.type
        case MessageOriginChannel():
            return origin.chat.effective_name or origin.type
        case _:
            return origin.type
