"""Discord: private chats whole, servers when the bot is addressed, slash commands and buttons.

The only file that knows this SDK. What the SDK does by itself is left to it: waiting out 429, repeating
some 5xx, resuming a gateway session. What it leaves open is here: pacing of frames, sends whose outcome
is unknown, and a gateway task that a malformed event can end.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, Final, cast

import aiohttp
import discord

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
    Sink,
    Submit,
)
from bot.text import clean, is_blank, split

PLATFORM: Final = "discord"
MESSAGE_LIMIT: Final = 2_000
"""Characters in a message (Discord API reference, Create Message)."""
FRAME_PAUSE: Final = 1.2
"""Seconds between two edits of a growing answer; Discord bears about five in five seconds in a channel."""
TYPING_PAUSE: Final = 8.0
"""Seconds between two typing signs; one is shown for ten."""
TYPING_END: Final = 120.0
"""Seconds after which the typing sign ends, whatever became of the answer."""
REPEAT_PAUSES: Final = (0.5, 1.0, 2.0)
"""Seconds before each repeat of a send that went unanswered."""
SETTLED: Final = 60.0
"""Seconds a gateway connection has to last before the next trouble counts as the first again."""
MENU_TEXT: Final = "text"
"""Name of the one option of a slash command; what a person writes there follows the command's name."""

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

log = logging.getLogger(__name__)

# The SDK would warn at every start that it cannot talk by voice, which nobody asked for.
discord.VoiceClient.warn_nacl = False
discord.VoiceClient.warn_dave = False

_NO_CONFIRMATION = (aiohttp.ClientError, OSError, discord.DiscordServerError)
"""A request that may or may not have been carried out."""
_FAILED = (aiohttp.ClientError, OSError, discord.DiscordException)
_MENTION: Final = re.compile(r"<(?:@[!&]?|#)(\d+)>")
_SPOKEN: Final = frozenset({discord.MessageType.default, discord.MessageType.reply})
_LOCALES: Final = {"zh": ("zh-CN", "zh-TW")}
"""Discord's locales for our languages; English is what Discord falls back to."""

Create = Callable[[int, str, "discord.ui.View | None"], Awaitable[discord.Message]]
"""Makes the nth message (from 0) of an answer, with its text and buttons."""


class DiscordAdapter:
    """Discord behind :class:`bot.message.Adapter`.

    ``proxy`` is an HTTP proxy URL for this platform alone. ``clock`` counts seconds and never goes back;
    ``sleep`` lets that many seconds pass.
    """

    name = PLATFORM

    def __init__(
        self,
        token: str,
        proxy: str | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._token = token
        self._proxy = proxy
        self._tempo = _Tempo(clock, sleep)
        self._client: _Client | None = None

    async def run(self, submit: Submit, commands: tuple[CommandSpec, ...]) -> None:
        """Serve until cancelled, over outages and broken connections.

        Raises AdapterError when Discord refuses the token, the intents or the connection for good.
        """
        for pause in _pauses():
            async with _Client(self._proxy, submit, commands=commands, tempo=self._tempo) as client:
                try:
                    with _fixes():
                        await client.login(self._token)
                        self._client = client
                        await self._listen(client)
                except _FAILED as trouble:
                    log.warning("Discord did not answer the login; trying again in %g s: %r", pause, trouble)
                finally:
                    self._client = None
                    await client.tasks.stop()
            await self._tempo.sleep(pause)

    async def notify(self, chat: ChatRef, reply: Reply) -> None:
        """Send something nobody asked for just now. Raises DeliveryError."""
        client = self._client
        if client is None:
            raise DeliveryError("Discord is not connected")
        if reply.private and not chat.private:
            raise DeliveryError("a private reply has no place in a Discord channel")

        async def create(made: int, text: str, view: discord.ui.View | None) -> discord.Message:
            place = await _place(client, chat)
            return await _in_channel(place, origin)(made, text, view)

        origin = secrets.token_hex(8)
        await _Answer(_Outlet(create), client).send(reply)

    async def _listen(self, client: _Client) -> None:
        """Keep the gateway connected.

        The client outlives the connection, and with it the answers under way.
        """
        pauses = _pauses()
        while True:
            since = self._tempo.clock()
            try:
                await client.connect()
            except (discord.PrivilegedIntentsRequired, discord.ConnectionClosed):
                raise
            except Exception:
                log.exception("Discord's gateway connection broke; connecting again")
            await client.hang_up()
            if self._tempo.clock() - since > SETTLED:
                pauses = _pauses()
            await self._tempo.sleep(next(pauses))


async def check(token: str, proxy: str | None = None) -> str:
    """Log in once and return the bot's name.

    Raises AdapterError, which names the fix, for a refused token, a missing intent or no connection.
    """
    async with discord.Client(intents=discord.Intents(guilds=True), proxy=proxy) as client:
        try:
            with _fixes():
                await client.login(token)
        except _FAILED as trouble:
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
    except discord.PrivilegedIntentsRequired as refused:
        raise AdapterError(INTENT_FIX) from refused
    except discord.ConnectionClosed as refused:
        if refused.code == 4004:  # noqa: PLR2004 - authentication failed (Discord, Gateway Close Event Codes)
            raise AdapterError(LOGIN_FIX) from refused
        raise AdapterError(f"Discord ended the connection for good, close code {refused.code}.") from refused


def _pauses() -> Iterator[float]:
    """Seconds to wait after the first, second, ... trouble in a row."""
    return chain((1.0, 2.0, 5.0, 10.0, 30.0), repeat(60.0))


@dataclass(frozen=True, slots=True)
class _Tempo:
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class _Tasks:
    """Work in the background that ends with the client."""

    running: set[asyncio.Task[None]] = field(default_factory=set)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        return task

    async def stop(self) -> None:
        while self.running:
            for task in self.running:
                task.cancel()
            await asyncio.gather(*self.running, return_exceptions=True)


class _Client(discord.Client):
    """The SDK's client: events in, updates out."""

    def __init__(self, proxy: str | None, submit: Submit, *, commands: tuple[CommandSpec, ...], tempo: _Tempo) -> None:
        super().__init__(
            intents=discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True),
            allowed_mentions=discord.AllowedMentions(everyone=False, users=False, roles=False, replied_user=True),
            proxy=proxy,
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
        )
        self.tempo = tempo
        self.tasks = _Tasks()
        self._submit = submit
        self._commands = commands

    async def setup_hook(self) -> None:
        self.tasks.start(self._publish_menu())

    async def hang_up(self) -> None:
        """Close what a broken connection left open, its heartbeat too."""
        if self.ws is not None and self.ws.open:
            await self.ws.close()

    async def on_message(self, message: discord.Message) -> None:
        me = self.user
        if me is None or message.author.bot or message.webhook_id or message.type not in _SPOKEN:
            return
        chat = _chat(_guild_id(message), message.channel, message.author.id)
        if not (chat.private or _addresses(message, me.id)):
            return
        forwarded = message.message_snapshots
        incoming = Incoming(
            chat=chat,
            user_id=str(message.author.id),
            name=message.author.display_name,
            message_id=str(message.id),
            text=forwarded[0].content if forwarded else _readable(message, me.id),
            at=message.created_at,
            reply_to=_quote(message, me.id),
            forward_from="?" if forwarded else None,
        )
        reference = None if chat.private else message.to_reference(fail_if_not_exists=False)
        answer = _Answer(
            _Outlet(_in_channel(message.channel, str(message.id), reference)),
            self,
            aside=None if chat.private else _Outlet(_in_channel(message.author, f"{message.id}/aside")),
        )
        answer.wait(message.channel)
        await self._submit(incoming, answer)

    async def on_interaction(self, interaction: discord.Interaction[discord.Client]) -> None:
        slash = interaction.type is discord.InteractionType.application_command
        if not (slash or interaction.type is discord.InteractionType.component):
            return
        if not await _acknowledged(interaction):
            return
        data = cast("Mapping[str, Any]", interaction.data)
        chat = _chat(interaction.guild_id, interaction.channel, interaction.user.id)
        update: Incoming | Press
        if slash:
            update = Incoming(
                chat=chat,
                user_id=str(interaction.user.id),
                name=interaction.user.display_name,
                message_id=str(interaction.id),
                text=_typed(data),
                at=interaction.created_at,
                language=interaction.locale.value,
            )
        else:
            update = Press(
                chat=chat,
                user_id=str(interaction.user.id),
                name=interaction.user.display_name,
                button_id=str(data["custom_id"]),
                at=interaction.created_at,
                language=interaction.locale.value,
            )
        await self._submit(update, self._interaction_answer(interaction, slash=slash))

    def _interaction_answer(self, interaction: discord.Interaction[discord.Client], *, slash: bool) -> Sink:
        """Where the answer to a slash command or a press goes: in a server to that person's eyes alone."""
        if interaction.guild_id is None and isinstance(interaction.channel, discord.DMChannel) and not slash:
            return _Answer(_Outlet(_in_channel(interaction.channel, str(interaction.id))), self)
        outlet = _Outlet(_as_follow_up(interaction, deferred=slash), repeatable=1 if slash else 0)
        return _Answer(outlet, self)

    async def _publish_menu(self) -> None:
        """Register the slash commands if the application has others: creations are counted by the day."""
        menu = _menu(self._commands)
        read = discord.http.Route(
            "GET",
            "/applications/{application_id}/commands?with_localizations=true",
            application_id=self.application_id,
        )
        try:
            present = {command["name"]: command for command in await self.http.request(read)}
            if _covers(present, {command["name"]: command for command in menu}) and len(present) == len(menu):
                return
            await self.http.bulk_upsert_global_commands(cast("int", self.application_id), payload=menu)
            log.info("Discord has %d slash commands now", len(menu))
        except _FAILED as refused:
            log.warning("Discord did not take the slash commands: %s", refused)


class _Outlet:
    """The messages of an answer, told apart by ``slot``: the first put makes one, the next ones edit it.

    The first ``repeatable`` messages may be asked for again after silence and are still made once.
    """

    def __init__(self, create: Create, *, repeatable: float = float("inf")) -> None:
        self._create = create
        self._repeatable = repeatable
        self._made = 0
        self._messages: dict[int, tuple[discord.Message, str, tuple[Button, ...]]] = {}

    def is_repeatable(self, slot: int) -> bool:
        """Whether putting this slot once more cannot show anything twice."""
        return slot in self._messages or self._made < self._repeatable

    async def put(self, slot: int, text: str, buttons: tuple[Button, ...] = ()) -> str:
        """Show ``text`` as the message of this slot and return the message's id. Raises what the SDK raises."""
        if slot in self._messages:
            message, *shown = self._messages[slot]
            if shown == [text, buttons]:
                return str(message.id)
            try:
                await message.edit(content=text, view=_view(buttons))
            except discord.NotFound:
                log.info("a Discord message was deleted while it was answered; sending it again")
            else:
                self._messages[slot] = (message, text, buttons)
                return str(message.id)
        message = await self._create(self._made, text, _view(buttons))
        if message.content.strip() != text.strip() or bool(message.components) != bool(buttons):
            # Discord knew the nonce: it returned what an earlier, unconfirmed frame had made.
            await message.edit(content=text, view=_view(buttons))
        self._made += 1
        self._messages[slot] = (message, text, buttons)
        return str(message.id)

    async def drop(self, first: int) -> None:
        """Take back the messages from slot ``first`` on: the answer became shorter than it was shown."""
        for slot in [slot for slot in self._messages if slot >= first]:
            message, *_ = self._messages.pop(slot)
            try:
                await message.delete()
            except _FAILED as kept:
                log.info("Discord kept a message that should go: %r", kept)


class _Answer:
    """One answer on its way: frames while it grows, then the whole of it, once.

    ``aside`` is where private replies go when the answer itself is seen by others.
    """

    def __init__(self, outlet: _Outlet, client: _Client, *, aside: _Outlet | None = None) -> None:
        self._outlet = outlet
        self._aside = aside
        self._client = client
        self._tempo = client.tempo
        self._lock = asyncio.Lock()
        self._slot = 0
        self._frame: list[str] = []
        self._due = 0.0
        self._frames: asyncio.Task[None] | None = None
        self._typing: asyncio.Task[None] | None = None

    def wait(self, place: discord.abc.Messageable) -> None:
        """Show the typing sign until something else is shown, for TYPING_END seconds at most."""
        self._typing = self._client.tasks.start(self._type(place))

    async def show(self, text: str) -> None:
        """Show the answer so far; a newer frame overtakes one that still waits."""
        frame = _parts(text)
        if not frame or frame == self._frame or self._client.is_closed():
            return
        self._frame = frame
        if self._frames is None or self._frames.done():
            self._frames = self._client.tasks.start(self._show_frames())

    async def send(self, reply: Reply) -> str | None:
        """Deliver the reply whole and return the id of its last message. Raises DeliveryError."""
        parts = _parts(reply.text)
        if not parts:
            raise DeliveryError("the reply is blank")
        outlet = self._aside if reply.private and self._aside else self._outlet
        async with self._lock:
            # With the lock held no frame is on the wire, and with none left none can land after the final text.
            self._frame = []
            self._cancel(self._typing)
            for slot, part in enumerate(parts, self._slot):
                buttons = reply.buttons if slot == self._slot + len(parts) - 1 else ()
                number = await self._deliver(outlet, slot, part, buttons)
            self._slot += len(parts)
            await outlet.drop(self._slot)
        return number

    async def done(self) -> None:
        """End what still says that more is to come."""
        self._cancel(self._typing)
        async with self._lock:
            self._cancel(self._frames)

    async def _deliver(self, outlet: _Outlet, slot: int, part: str, buttons: tuple[Button, ...]) -> str:
        pauses = iter(REPEAT_PAUSES)
        while True:
            try:
                return await outlet.put(slot, part, buttons)
            except _NO_CONFIRMATION as silence:
                pause = next(pauses, None)
                if pause is None or not outlet.is_repeatable(slot):
                    raise DeliveryError(f"Discord did not confirm a message: {silence!r}", unknown=True) from silence
            except discord.DiscordException as refused:
                raise DeliveryError(f"Discord refused a message: {refused}") from refused
            except RuntimeError as closed:  # aiohttp's word for a session that is no more
                if not self._client.is_closed():
                    raise
                raise DeliveryError("Discord is no longer connected", unknown=True) from closed
            await self._tempo.sleep(pause)

    async def _show_frames(self) -> None:
        shown: list[str] = []
        while self._frame != shown:
            await self._tempo.sleep(max(0.0, self._due - self._tempo.clock()))
            async with self._lock:
                self._cancel(self._typing)
                shown = self._frame
                try:
                    for slot, part in enumerate(shown, self._slot):
                        if self._outlet.is_repeatable(slot):
                            await self._outlet.put(slot, part)
                except _FAILED as lost:
                    log.info("Discord lost a frame of an answer: %r", lost)
                self._due = self._tempo.clock() + FRAME_PAUSE

    async def _type(self, place: discord.abc.Messageable) -> None:
        end = self._tempo.clock() + TYPING_END
        while self._tempo.clock() < end:
            try:
                await place.typing()
            except _FAILED as lost:
                log.info("Discord took no typing sign: %r", lost)
                return
            await self._tempo.sleep(TYPING_PAUSE)

    @staticmethod
    def _cancel(task: asyncio.Task[None] | None) -> None:
        if task is not None:
            task.cancel()


def _in_channel(
    place: discord.abc.Messageable, origin: str, reference: discord.MessageReference | None = None
) -> Create:
    """Make messages in a channel, the first as a reply to ``reference``.

    The nonce is a function of ``origin`` and the number of the message, and the SDK has Discord enforce
    it: asked for again within minutes, Discord returns the message it has (Create Message, enforce_nonce).
    """

    async def create(made: int, text: str, view: discord.ui.View | None) -> discord.Message:
        nonce = hashlib.blake2b(f"{origin}/{made}".encode(), digest_size=12).hexdigest()
        given: dict[str, Any] = {} if reference is None or made else {"reference": reference}
        return await place.send(text, nonce=nonce, **given, **_attached(view))

    return create


def _as_follow_up(interaction: discord.Interaction[discord.Client], *, deferred: bool) -> Create:
    """Make messages that follow an interaction, in a server ephemeral.

    The first one fills the message a ``deferred`` command left open; that one can be repeated, follow-ups
    cannot: they take no nonce.
    """

    async def create(made: int, text: str, view: discord.ui.View | None) -> discord.Message:
        if deferred and made == 0:
            return await interaction.edit_original_response(content=text, view=view)
        ephemeral = interaction.guild_id is not None
        return await interaction.followup.send(text, ephemeral=ephemeral, wait=True, **_attached(view))

    return create


async def _acknowledged(interaction: discord.Interaction[discord.Client]) -> bool:
    """Tell Discord at once that an answer will come.

    Discord grants three seconds for it. A refused or unconfirmed acknowledgement means that the person
    sees a failure, or that another delivery of the same interaction is already under way: it is not run.
    """
    slash = interaction.type is discord.InteractionType.application_command
    try:
        await interaction.response.defer(ephemeral=interaction.guild_id is not None, thinking=slash)
    except _FAILED as refused:
        log.warning("Discord took no acknowledgement, interaction %s is not run: %s", interaction.id, refused)
        return False
    return True


async def _place(client: discord.Client, chat: ChatRef) -> discord.abc.Messageable:
    kind, _, number = chat.key.partition(":")
    if kind == "dm":
        return await client.create_dm(discord.Object(int(number)))
    return client.get_partial_messageable(int(chat.thread or number.rpartition("/")[2]))


def _guild_id(message: discord.Message) -> int | None:
    """The server of a message, known to the cache or not; None is a private chat."""
    if message.guild is not None:
        return message.guild.id
    return message.channel.guild_id if isinstance(message.channel, discord.PartialMessageable) else None


def _chat(guild_id: int | None, channel: object, user_id: int) -> ChatRef:
    """Name the chat. A public thread belongs to its channel; a private one stands for itself."""
    if guild_id is None:
        return ChatRef(PLATFORM, f"dm:{user_id}")
    if isinstance(channel, discord.Thread) and not channel.is_private():
        return ChatRef(PLATFORM, f"guild:{guild_id}/{channel.parent_id}", private=False, thread=str(channel.id))
    channel_id = channel.id if isinstance(channel, discord.abc.Snowflake) else ""
    return ChatRef(PLATFORM, f"guild:{guild_id}/{channel_id}", private=False)


def _addresses(message: discord.Message, me: int) -> bool:
    mentioned = any(user.id == me for user in message.mentions)
    replied_to = message.reference.resolved if message.reference else None
    return mentioned or (isinstance(replied_to, discord.Message) and replied_to.author.id == me)


def _readable(message: discord.Message, me: int) -> str:
    """The text as a person reads it: without the bot's own mention, other mentions as names."""
    names = {user.id: f"@{user.display_name}" for user in message.mentions}
    names |= {role.id: f"@{role.name}" for role in message.role_mentions}
    names |= {channel.id: f"#{channel.name}" for channel in message.channel_mentions}
    names[me] = ""
    return _MENTION.sub(lambda match: names.get(int(match[1]), match[0]), message.content).strip()


def _quote(message: discord.Message, me: int) -> Quote | None:
    reference = message.reference
    if reference is None or reference.type is not discord.MessageReferenceType.reply:
        return None
    quoted = reference.resolved
    if not isinstance(quoted, discord.Message):
        return Quote(text="", message_id=str(reference.message_id))
    return Quote(
        text=_readable(quoted, me),
        name=quoted.author.display_name,
        user_id=str(quoted.author.id),
        message_id=str(quoted.id),
    )


def _typed(data: Mapping[str, Any]) -> str:
    """A slash command as if it had been typed."""
    words = (str(option["value"]) for option in data.get("options", ()) if option["name"] == MENU_TEXT)
    return " ".join((f"/{data['name']}", *words))


def _parts(text: str) -> list[str]:
    return [part for part in split(clean(text), MESSAGE_LIMIT, len) if not is_blank(part)]


def _view(buttons: tuple[Button, ...]) -> discord.ui.View | None:
    """Buttons that outlive a restart: a press comes as an interaction with the button's id.

    The view is stopped so that the SDK does not keep it and answer presses by itself.
    """
    if not buttons:
        return None
    view = discord.ui.View(timeout=None)
    for button in buttons:
        view.add_item(discord.ui.Button(label=button.label, custom_id=button.id))
    view.stop()
    return view


def _attached(view: discord.ui.View | None) -> dict[str, Any]:
    return {} if view is None else {"view": view}


def _menu(commands: tuple[CommandSpec, ...]) -> list[Any]:
    """The slash commands as Discord takes them, for servers and private chats (API: Create Global Command)."""
    return [
        {
            "name": command.name,
            "type": 1,
            "contexts": [0, 1],
            "options": [{"name": MENU_TEXT, "type": 3, "required": False, **_described(command)}],
            **_described(command),
        }
        for command in commands
    ]


def _described(command: CommandSpec) -> dict[str, Any]:
    """Descriptions, at most 100 characters each."""
    described = command.descriptions
    localised = {
        locale: described[language][:100]
        for language, locales in _LOCALES.items()
        if described.get(language)
        for locale in locales
    }
    return {
        "description": (described.get("en") or command.name)[:100],
        "description_localizations": localised,
    }


def _covers(present: Any, wanted: Any) -> bool:
    """Whether Discord's copy says all that is wanted. Discord adds fields and leaves out empty ones."""
    if isinstance(wanted, dict) and wanted:
        return all(_covers((present or {}).get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        same_length = len(present or ()) == len(wanted)
        return same_length and all(_covers(*pair) for pair in zip(present or (), wanted, strict=True))
    return bool(present == wanted or not (present or wanted))
