"""Chats and the channels they are: from what Discord says to our names, and back."""

from __future__ import annotations

from typing import cast

import discord

from bot.adapters.discord import reading
from bot.message import ChatRef

Talkative = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread
"""Places in servers where messages are: no categories, no forums, whose posts are threads."""


class Chats:
    """The way between chats and channels of one ``client``; remembers whose private channel is whose."""

    def __init__(self, client: discord.Client) -> None:
        self._client = client
        self._channels: dict[int, int] = {}
        self._people: dict[int, int] = {}

    def of_message(self, message: discord.Message) -> ChatRef:
        """Name the chat of a message that somebody else wrote."""
        chat = reading.chat_of(message)
        if chat.private:
            self._remember(message.author.id, message.channel.id)
        return chat

    def of_interaction(self, interaction: reading.Interaction) -> ChatRef:
        """Name the chat of a command or press."""
        if interaction.guild_id is not None:
            return reading.channel_chat(interaction.guild_id, interaction.channel)
        if interaction.channel is not None:
            self._remember(interaction.user.id, interaction.channel.id)
        return reading.private_chat(interaction.user.id)

    async def at(self, guild_id: int | None, channel_id: int) -> ChatRef | None:
        """Name the chat of a channel, None when it is no chat of ours; asks Discord about a channel it has not told of.

        Raises what the SDK raises.
        """
        if channel_id in self._people:
            return reading.private_chat(self._people[channel_id])
        channel = self._client.get_channel(channel_id) or await self._client.fetch_channel(channel_id)
        if guild_id is not None:
            return reading.channel_chat(guild_id, channel)
        if not isinstance(channel, discord.DMChannel) or channel.recipient is None:
            return None
        self._remember(channel.recipient.id, channel_id)
        return reading.private_chat(channel.recipient.id)

    async def place(self, chat: ChatRef) -> discord.PartialMessageable:
        """Find where to write to a chat. Raises what the SDK raises."""
        if not chat.private:
            guild_id = reading.guild_id_in(chat)
            return self._client.get_partial_messageable(reading.channel_id_of(chat), guild_id=guild_id)
        user_id = int(chat.key.removeprefix("dm:"))
        if user_id not in self._channels:
            self._remember(user_id, (await self._client.create_dm(discord.Object(user_id))).id)
        return self._client.get_partial_messageable(self._channels[user_id])

    def newest(self, chat: ChatRef) -> int | None:
        """Return the id of the last message in a chat where Discord has told it."""
        if chat.private:
            return None
        return getattr(self._client.get_channel(reading.channel_id_of(chat)), "last_message_id", None)

    def with_news(self, since: int) -> list[ChatRef]:
        """Name the places in servers that may be read and whose last message is newer than ``since``, newest first."""
        news = {
            reading.channel_chat(guild.id, channel): channel.last_message_id
            for guild in self._client.guilds
            for channel in (*guild.channels, *guild.threads)
            if isinstance(channel, Talkative) and (channel.last_message_id or 0) > since and self._may_read(channel)
        }
        return sorted(news, key=lambda chat: news[chat] or 0, reverse=True)

    def _may_read(self, channel: Talkative) -> bool:
        me = channel.guild.get_member(cast("discord.ClientUser", self._client.user).id)
        if me is None:
            return True  # Discord did not tell, and will when asked for the history
        try:
            allowed = channel.permissions_for(me)
        except discord.ClientException:  # a thread whose channel is kept from us
            return False
        return allowed.view_channel and allowed.read_message_history

    def _remember(self, user_id: int, channel_id: int) -> None:
        self._channels[user_id] = channel_id
        self._people[channel_id] = user_id
