"""What the SDK gives, in our words: which chat, who speaks to whom, what is said, quoted, forwarded, attached."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

import aiohttp
import discord

from bot.adapters.discord.menu import typed
from bot.message import ChatRef, Incoming, Media, MediaError, MediaKind, Press, Quote

PLATFORM: Final = "discord"
UNNAMED: Final = "?"
"""Stands for the author of forwarded words: Discord does not tell who that was."""

_SPOKEN: Final = frozenset({discord.MessageType.default, discord.MessageType.reply})
_MENTION: Final = re.compile(r"<(?:@[!&]?|#)(\d+)>")
_SYMBOL: Final = re.compile(r"<(?:a?(:\w+:)|(/[^:<>\n]+):)\d+>")
_KINDS: Final[Mapping[str, MediaKind]] = {"image": "image", "audio": "audio", "video": "video"}

Interaction = discord.Interaction[discord.Client]


def guild_id_of(message: discord.Message) -> int | None:
    """Return the server of a message, known to the cache or not; None is a private chat."""
    if message.guild is not None:
        return message.guild.id
    return message.channel.guild_id if isinstance(message.channel, discord.PartialMessageable) else None


def private_chat(user_id: int) -> ChatRef:
    """Name the private chat with somebody."""
    return ChatRef(PLATFORM, f"dm:{user_id}")


def server(guild_id: int) -> ChatRef:
    """Name a server as a whole, of which all channels are."""
    return ChatRef(PLATFORM, f"guild:{guild_id}", private=False)


def channel_chat(guild_id: int, channel: object) -> ChatRef:
    """Name a place in a server. A public thread belongs to its channel; a private one stands for itself."""
    if isinstance(channel, discord.Thread) and not channel.is_private():
        return ChatRef(PLATFORM, f"guild:{guild_id}/{channel.parent_id}", private=False, thread=str(channel.id))
    channel_id = channel.id if isinstance(channel, discord.abc.Snowflake) else ""
    return ChatRef(PLATFORM, f"guild:{guild_id}/{channel_id}", private=False)


def chat_of(message: discord.Message) -> ChatRef:
    """Name the chat of a message that somebody else wrote."""
    guild_id = guild_id_of(message)
    return private_chat(message.author.id) if guild_id is None else channel_chat(guild_id, message.channel)


def channel_id_of(chat: ChatRef) -> int:
    """Return the channel or thread that a chat in a server is."""
    return int(chat.thread or chat.key.rpartition("/")[2])


def guild_id_in(chat: ChatRef) -> int:
    """Return the server that a chat in a server is in."""
    return int(chat.key.removeprefix("guild:").partition("/")[0])


def is_spoken(message: discord.Message) -> bool:
    """Whether a person said it: no bot, no webhook, no note of Discord's own."""
    return not (message.author.bot or message.webhook_id) and message.type in _SPOKEN


def addresses(message: discord.Message, me: int, *, sees_all: bool) -> bool:
    """Whether a message in a server is for the bot ``me``: a mention, a reply to it, its own role.

    Without Message Content Intent (``sees_all`` False) only a mention carries its words.
    """
    if any(user.id == me for user in message.mentions):
        return True
    replied_to = message.reference.resolved if message.reference else None
    is_reply = isinstance(replied_to, discord.Message) and replied_to.author.id == me
    return sees_all and (is_reply or any(_is_own(role, me) for role in message.role_mentions))


def incoming(message: discord.Message, chat: ChatRef, me: int, *, addressed: bool = True) -> Incoming:
    """Return what was said in ``chat``; a forwarded message is somebody else's words."""
    forwarded = message.message_snapshots
    sources: Sequence[discord.Message | discord.MessageSnapshot] = forwarded or (message,)
    return Incoming(
        chat=chat,
        user_id=str(message.author.id),
        name=message.author.display_name,
        message_id=str(message.id),
        text=_words(message, me),
        at=message.created_at,
        addressed=addressed,
        reply_to=_quote(message, me),
        forward_from=UNNAMED if forwarded else None,
        media=tuple(media for source in sources for media in _media(source)),
    )


def command(interaction: Interaction, chat: ChatRef) -> Incoming:
    """Return a slash command as the message it stands for."""
    return Incoming(
        chat=chat,
        user_id=str(interaction.user.id),
        name=interaction.user.display_name,
        message_id=str(interaction.id),
        text=typed(cast("Mapping[str, Any]", interaction.data)),
        at=interaction.created_at,
        language=interaction.locale.value,
    )


def press(interaction: Interaction, chat: ChatRef, *, at: datetime) -> Press:
    """Return a press of a button at ``at``, aware UTC."""
    data = cast("Mapping[str, Any]", interaction.data)
    return Press(
        chat=chat,
        user_id=str(interaction.user.id),
        name=interaction.user.display_name,
        button_id=str(data["custom_id"]),
        at=at,
        language=interaction.locale.value,
        message_id=None if interaction.message is None else str(interaction.message.id),
    )


def _is_own(role: discord.Role, me: int) -> bool:
    """Whether it is the role Discord made for the bot, which is easily picked instead of the bot itself."""
    return role.tags is not None and role.tags.bot_id == me


def _words(message: discord.Message, me: int) -> str:
    """The text as a person reads it: without the bot's own mention, other mentions as names."""
    if message.message_snapshots:
        return "\n\n".join(filter(None, map(_forwarded, message.message_snapshots)))
    names = {user.id: f"@{user.display_name}" for user in message.mentions}
    names |= {role.id: "" if _is_own(role, me) else f"@{role.name}" for role in message.role_mentions}
    names |= {channel.id: f"#{channel.name}" for channel in message.channel_mentions}
    names[me] = ""
    text = _MENTION.sub(lambda match: names.get(int(match[1]), match[0]), message.content)
    return _without_ids(text).strip() or _call(message, me)


def _call(message: discord.Message, me: int) -> str:
    """The bot's name, where a message is nothing but a call for it."""
    if message.attachments or message.stickers:
        return ""
    return next((f"@{user.display_name}" for user in message.mentions if user.id == me), "")


def _forwarded(snapshot: discord.MessageSnapshot) -> str:
    """The words of a forwarded message; those of its embeds when it has no others."""
    return _without_ids(snapshot.content).strip() or "\n".join(_embedded(snapshot.embeds))


def _without_ids(text: str) -> str:
    """Emoji and mentioned commands by their names alone."""
    return _SYMBOL.sub(lambda match: match[1] or match[2], text)


def _embedded(embeds: Sequence[discord.Embed]) -> Iterator[str]:
    return (text for embed in embeds for text in (embed.title, embed.description) if text)


def _quote(message: discord.Message, me: int) -> Quote | None:
    reference = message.reference
    if reference is None or reference.type is not discord.MessageReferenceType.reply:
        return None
    quoted = reference.resolved
    if not isinstance(quoted, discord.Message):
        return Quote(text="", message_id=str(reference.message_id))
    return Quote(
        text=_words(quoted, me) or "\n".join(_embedded(quoted.embeds)),
        name=quoted.author.display_name,
        user_id=str(quoted.author.id),
        message_id=str(quoted.id),
    )


def _media(source: discord.Message | discord.MessageSnapshot) -> Iterator[Media]:
    for attachment in source.attachments:
        told = attachment.content_type or mimetypes.guess_type(attachment.filename)[0] or ""
        mime = told.partition(";")[0].strip().lower()
        yield Media(
            kind="voice" if source.flags.voice else _KINDS.get(mime.partition("/")[0], "file"),
            read=_reader(attachment.read, attachment.size),
            name=attachment.filename,
            mime=mime,
            size=attachment.size,
        )
    for sticker in source.stickers:
        yield Media(
            kind="sticker",
            read=_reader(sticker.read),
            name=sticker.name,
            mime=mimetypes.guess_type(sticker.url)[0] or "",
        )


def _reader(fetch: Callable[[], Awaitable[bytes]], size: int = 0) -> Callable[[int], Awaitable[bytes]]:
    """Read a file no larger than asked for; ``size`` in bytes is what Discord says beforehand, 0 nothing."""

    async def read(limit: int) -> bytes:
        if size > limit:
            raise MediaError(f"the file has {size} bytes, {limit} are read")
        try:
            content = await fetch()
        except (aiohttp.ClientError, OSError, discord.DiscordException) as trouble:
            raise MediaError(f"Discord does not give the file: {type(trouble).__name__}") from trouble
        if len(content) > limit:
            raise MediaError(f"the file has {len(content)} bytes, {limit} are read")
        return content

    return read
