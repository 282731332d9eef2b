"""The SDK's client: events in, updates out."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

import discord

from bot.adapters.discord import reading
from bot.adapters.discord.answers import Answers
from bot.adapters.discord.catchup import CatchUp
from bot.adapters.discord.chats import Chats
from bot.adapters.discord.history import History
from bot.adapters.discord.menu import is_current, menu
from bot.adapters.discord.outlet import FAILED
from bot.adapters.discord.quiet import named, report
from bot.adapters.discord.sights import closed_to, room, rooms
from bot.delivery import Errands, Tempo
from bot.message import ChatRef, CommandSpec, Deleted, Edited, Left, Seen, Sighted, Submit, Update

LONGEST_LIMIT: Final = 30.0
"""Seconds of a rate limit that the SDK waits out by itself, its own least; what is longer closes the chat's gate."""
GUILDS_PAUSE: Final = 0.5
"""Seconds without news of another server after which a new session counts as ready."""
EDITS: Final = 10_000
"""Edits that are remembered, so that a link in an edited message that gets its preview is not taken for another."""
STOP_PATIENCE: Final = 10.0
"""Seconds a stop grants to answers that are being sent."""

log: Final = logging.getLogger(__name__)

# The SDK would warn at every start that it cannot talk by voice, which nobody asked for.
discord.VoiceClient.warn_nacl = False
discord.VoiceClient.warn_dave = False


@dataclass(frozen=True, slots=True)
class Work:
    """What an adapter is run for."""

    submit: Submit
    commands: tuple[CommandSpec, ...]
    seen: Seen


class Client(discord.Client):
    """One login. ``sees_all``: whether to ask for Message Content Intent; ``now`` returns aware UTC."""

    def __init__(
        self, work: Work, *, proxy: str | None, tempo: Tempo, now: Callable[[], datetime], sees_all: bool
    ) -> None:
        super().__init__(
            intents=discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=sees_all),
            allowed_mentions=discord.AllowedMentions(everyone=False, users=False, roles=False, replied_user=True),
            proxy=proxy,
            max_messages=None,
            max_ratelimit_timeout=LONGEST_LIMIT,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
            guild_ready_timeout=GUILDS_PAUSE,
        )
        self._work = work
        self._now = now
        self._sees_all = sees_all
        self._errands = Errands()
        self._chores = Errands()
        self._chats = Chats(self)
        self._edits: OrderedDict[int, datetime] = OrderedDict()
        self._history = History(self._chats, self._hear_past, now=now)
        self._sleep = tempo.sleep
        self._telling = asyncio.Lock()
        self._session: tuple[CatchUp, asyncio.Task[None]] | None = None
        self.answers = Answers(self, self._chats, tempo, self._errands)
        self._contain_malformed_events()

    def hear_leaving(self) -> None:
        """Ask, before the gateway is connected, to be told who leaves a server, where the application may be."""
        flags = self.application_flags
        if flags.gateway_guild_members or flags.gateway_guild_members_limited:
            self._connection._intents.members = True  # noqa: SLF001 - they are settled before the login tells the flags

    async def setup_hook(self) -> None:
        """Begin what need not be done before the bot is there."""
        self._chores.start(self._publish_menu())

    async def hang_up(self) -> None:
        """Close what a broken connection left open, its heartbeat too."""
        if self.ws is not None and self.ws.open:
            await self.ws.close()

    async def leave(self) -> None:
        """Hear no more, and let the answers under way arrive."""
        await self.hang_up()
        if (readying := self._connection._ready_task) is not None:  # noqa: SLF001
            # It would announce that all is ready when all is closed; the SDK leaves it running.
            readying.cancel()
            await asyncio.wait({readying})
        await self._chores.finish(0)
        await self._errands.finish(STOP_PATIENCE)

    async def on_connect(self) -> None:
        """Begin a session, not a resumed one: what is said from now on waits for what was said before."""
        if self._session is not None:
            self._session[1].cancel()
        catch_up = CatchUp(self._work.seen, self._history, self._sleep)
        self._session = catch_up, self._chores.start(catch_up.run())

    async def on_ready(self) -> None:
        """Tell who may see which channel, then read what was said before: the servers are known now."""
        for guild in self.guilds:
            await self._sighted(guild)
        if self._session is not None:
            self._session[0].begin_reading()

    async def on_message(self, message: discord.Message) -> None:
        """Hear what is said to the bot."""
        if not reading.is_spoken(message):
            return
        chat = self._chats.of_message(message)
        if self._is_ours(message, chat):
            await self._caught_up(chat)
            await self._hear(message, chat)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        """Hear what a message says now, also one that does not address the bot: it may have done so before.

        A link that got its preview is no edit.
        """
        message = payload.message
        if "author" not in payload.data or message.edited_at is None or not reading.is_spoken(message):
            return
        if not self._is_news(message.id, message.edited_at):
            return
        chat = self._chats.of_message(message)
        addressed = self._is_ours(message, chat)
        if not addressed and reading.addresses(message, self._me, sees_all=True):
            return  # it is for the bot, in words that Discord does not show without the intent
        await self._caught_up(chat)
        said = reading.incoming(message, chat, self._me, addressed=addressed)
        sink = self.answers.to_message(said, version=f"/{message.edited_at.timestamp()}")
        await self._work.submit(Edited(said, message.edited_at), sink)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        """Hear that a message is no more."""
        await self._take_back({payload.message_id}, payload.guild_id, payload.channel_id)

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        """Hear that many messages are no more."""
        await self._take_back(payload.message_ids, payload.guild_id, payload.channel_id)

    async def on_raw_member_remove(self, payload: discord.RawMemberRemoveEvent) -> None:
        """Hear that somebody left a server, or had to."""
        if not payload.user.bot:
            await self._left(reading.server(payload.guild_id), payload.user.id)

    async def on_guild_remove(self, guild: discord.Guild) -> None:
        """Hear that the bot is in a server no more; one that is only out of order does not come here."""
        await self._left(reading.server(guild.id), None)

    async def on_guild_available(self, guild: discord.Guild) -> None:
        """Hear that a server is there again, or for the first time."""
        if self.is_ready():
            await self._sighted(guild)

    async def on_guild_join(self, guild: discord.Guild) -> None:
        """Hear that the bot is in a server now."""
        await self.on_guild_available(guild)

    async def on_guild_channel_create(self, channel: discord.abc.GuildChannel) -> None:
        """Hear of a new channel."""
        await self._sighted(channel.guild, channel)

    async def on_guild_channel_update(self, _: discord.abc.GuildChannel, channel: discord.abc.GuildChannel) -> None:
        """Hear that others may see a channel now, perhaps."""
        await self._sighted(channel.guild, channel)

    async def on_guild_role_create(self, role: discord.Role) -> None:
        """Hear that there is another role."""
        await self._sighted(role.guild)

    async def on_guild_role_update(self, _: discord.Role, role: discord.Role) -> None:
        """Hear that a role may do something else now, perhaps see what it did not."""
        await self._sighted(role.guild)

    async def on_guild_role_delete(self, role: discord.Role) -> None:
        """Hear that there is a role no more; whoever it was that it shut out, or let in."""
        await self._sighted(role.guild)

    async def on_guild_channel_delete(self, channel: discord.abc.GuildChannel) -> None:
        """Hear that a channel is no more."""
        await self._left(reading.channel_chat(channel.guild.id, channel), None)

    async def on_thread_remove(self, thread: discord.Thread) -> None:
        """Hear that a private thread is closed to the bot; a public one is a part of its channel."""
        if thread.is_private():
            await self._left(reading.channel_chat(thread.guild.id, thread), None)

    async def on_thread_delete(self, thread: discord.Thread) -> None:
        """Hear that a private thread is no more."""
        await self.on_thread_remove(thread)

    async def on_raw_thread_member_remove(self, payload: discord.RawThreadMembersUpdate) -> None:
        """Hear that people left a private thread, or had to; from a public one nobody is shut out."""
        thread = self.get_channel(payload.thread_id)
        if isinstance(thread, discord.Thread) and thread.is_private():
            for user_id in payload.data.get("removed_member_ids", ()):
                if int(user_id) != self._me:
                    await self._left(reading.channel_chat(payload.guild_id, thread), int(user_id))

    async def on_interaction(self, interaction: reading.Interaction) -> None:
        """Take a slash command or a press, acknowledged before anything else is done."""
        slash = interaction.type is discord.InteractionType.application_command
        if not (slash or interaction.type is discord.InteractionType.component):
            return
        if not await _acknowledged(interaction, thinking=slash):
            return
        chat = self._chats.of_interaction(interaction)
        update: Update = (
            reading.command(interaction, chat) if slash else reading.press(interaction, chat, at=self._now())
        )
        await self._caught_up(chat)
        await self._work.submit(update, self.answers.to_interaction(interaction, chat))

    async def on_error(self, event_method: str, /, *_args: Any, **_what: Any) -> None:
        """Log what broke one of the methods above."""
        if isinstance(error := sys.exception(), Exception):
            report(f"Discord's event {event_method.removeprefix('on_')} was not dealt with", error)

    async def _hear(self, message: discord.Message, chat: ChatRef, *, typing: bool = True, begun: bool = False) -> None:
        said = reading.incoming(message, chat, self._me)
        await self._work.submit(said, self.answers.to_message(said, typing=typing, begun=begun))

    async def _hear_past(self, messages: Sequence[discord.Message], chat: ChatRef) -> None:
        """Hear messages that may have been answered before, if only by the words that they could not be kept."""
        ours = [message for message in messages if reading.is_spoken(message) and self._is_ours(message, chat)]
        for message in ours:
            await self._hear(message, chat, typing=message is ours[-1], begun=True)

    def _is_news(self, message_id: int, edited_at: datetime) -> bool:
        """Whether a message was edited since it was last told of."""
        if self._edits.get(message_id) == edited_at:
            return False
        self._edits[message_id] = edited_at
        if len(self._edits) > EDITS:
            self._edits.popitem(last=False)
        return True

    async def _take_back(self, ids: Iterable[int], guild_id: int | None, channel_id: int) -> None:
        try:
            chat = await self._chats.at(guild_id, channel_id)
        except FAILED as unknown:
            log.warning(
                "messages are gone in channel %d, of which Discord tells nothing: %s", channel_id, named(unknown)
            )
            return
        if chat is not None:
            await self._caught_up(chat)
            gone = Deleted(chat, tuple(map(str, sorted(ids))), self._now())
            await self._work.submit(gone, self.answers.unasked(chat))

    async def _left(self, chat: ChatRef, user_id: int | None) -> None:
        await self._tell(Left(chat, None if user_id is None else str(user_id), self._now()))

    async def _tell(self, left: Left) -> None:
        await self._work.submit(left, self.answers.unasked(left.chat))

    async def _sighted(self, guild: discord.Guild, channel: discord.abc.GuildChannel | None = None) -> None:
        """Tell who may see a channel of a server, or all of them; what is heard meanwhile waits for it."""
        async with self._telling:
            seen = rooms(guild, self._me) if channel is None else room(channel, self._me)
            server = reading.server(guild.id)
            if seen:
                await self._work.submit(Sighted(server, seen, self._now()), self.answers.unasked(server))

    async def _caught_up(self, chat: ChatRef) -> None:
        async with self._telling:
            pass
        if self._session is not None:
            await self._session[0].passed(chat)

    def _is_ours(self, message: discord.Message, chat: ChatRef) -> bool:
        return chat.private or reading.addresses(message, self._me, sees_all=self._sees_all)

    @property
    def _me(self) -> int:
        return cast("discord.ClientUser", self.user).id

    def _contain_malformed_events(self) -> None:
        """Let an event that the SDK cannot read cost that event, not the session.

        The SDK has no switch for it. Without READY there is no session, so that one may break it.
        """
        parsers = self._connection.parsers
        # The SDK tells of changed members only those it keeps in mind, and it is to keep none.
        parsers["GUILD_MEMBER_UPDATE"] = self._member_changed
        parsers.update({event: _contained(event, parse) for event, parse in parsers.items() if event != "READY"})

    def _member_changed(self, data: Any) -> None:
        """Hear that somebody has other roles now, perhaps, and tell which channels they may not see."""
        guild = self.get_guild(int(data["guild_id"]))
        if guild is None or data["user"].get("bot"):
            return
        member = discord.Member(data=data, guild=guild, state=self._connection)
        if shut := closed_to(member):
            left = Left(reading.server(guild.id), str(member.id), self._now(), rooms=shut)
            self._chores.start(self._tell(left))

    async def _publish_menu(self) -> None:
        """Register the slash commands if the application has others: creations are counted by the day."""
        wanted = menu(self._work.commands)
        read = discord.http.Route(
            "GET",
            "/applications/{application_id}/commands?with_localizations=true",
            application_id=self.application_id,
        )
        try:
            if is_current(await self.http.request(read), wanted):
                return
            await self.http.bulk_upsert_global_commands(cast("int", self.application_id), payload=cast("Any", wanted))
            log.info("Discord has %d slash commands now", len(wanted))
        except FAILED as refused:
            log.warning("Discord did not take the slash commands: %s", named(refused))


def _contained(event: str, parse: Callable[[Any], None]) -> Callable[[Any], None]:
    def parse_or_log(data: Any) -> None:
        try:
            parse(data)
        except Exception as error:  # noqa: BLE001
            # The border of one event.
            report(f"Discord sent an event {event} that cannot be read", error)

    return parse_or_log


async def _acknowledged(interaction: reading.Interaction, *, thinking: bool) -> bool:
    """Tell Discord at once that an answer will come.

    Discord grants three seconds for it. A refused or unconfirmed acknowledgement means that the person
    sees a failure, or that another delivery of the same interaction is already under way: it is not run.
    """
    try:
        await interaction.response.defer(ephemeral=interaction.guild_id is not None, thinking=thinking)
    except FAILED as refused:
        log.warning("Discord took no acknowledgement, interaction %s is not run: %s", interaction.id, named(refused))
        return False
    return True
