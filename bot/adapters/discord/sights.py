"""Who may see a channel: what Discord works out for each member, for all members at once.

The owner of a server and whoever administers it may see every channel, always, so that nothing is told of them; nor of
bots' own roles. A thread has no permissions of its own: a public one is seen by those who see its channel.
"""

from __future__ import annotations

from collections.abc import Iterator

import discord

from bot.adapters.discord import reading
from bot.message import Sight


def rooms(guild: discord.Guild, me: int) -> dict[str, Sight]:
    """Who may see each channel of a server, by the keys of their chats; ``me`` is the bot, which sees for nobody."""
    return {key: seen for channel in guild.channels for key, seen in room(channel, me).items()}


def room(channel: discord.abc.GuildChannel, me: int) -> dict[str, Sight]:
    """The same of one channel; nothing of a category, in which nothing is said."""
    if isinstance(channel, discord.CategoryChannel):
        return {}
    return {reading.channel_chat(channel.guild.id, channel).key: _sight(channel, me)}


def closed_to(member: discord.Member) -> frozenset[str]:
    """The keys of the channels of their server that somebody may not see."""
    return frozenset(
        reading.channel_chat(member.guild.id, channel).key
        for channel in member.guild.channels
        if not isinstance(channel, discord.CategoryChannel) and not channel.permissions_for(member).view_channel
    )


def _sight(channel: discord.abc.GuildChannel, me: int) -> Sight:
    everyone = channel.guild.default_role
    for_all = channel.overwrites_for(everyone)
    everybody = _sees(everyone.permissions, for_all)
    others = {name for name, sees in _others(channel, for_all, me) if sees is not everybody}
    return Sight(everybody=True, but=frozenset(others)) if everybody else Sight(everybody=False, by=frozenset(others))


def _others(
    channel: discord.abc.GuildChannel, for_all: discord.PermissionOverwrite, me: int
) -> Iterator[tuple[str, bool]]:
    """What a member with one role sees, for each role but the common one, and what whoever is named does."""
    everyone = channel.guild.default_role
    for role in channel.guild.roles:
        if not (role.is_default() or role.is_bot_managed() or role.permissions.administrator):
            own = channel.overwrites_for(role)
            yield f"role:{role.id}", _sees(everyone.permissions | role.permissions, for_all, own)
    for target, own in channel.overwrites.items():
        is_role = isinstance(target, discord.Role) or getattr(target, "type", None) is discord.Role
        if not is_role and target.id != me:
            yield f"member:{target.id}", _sees(everyone.permissions, for_all, own)


def _sees(base: discord.Permissions, *overwrites: discord.PermissionOverwrite) -> bool:
    """Whether somebody with these permissions in the server sees a channel with these overwrites; the last counts."""
    told = [each.view_channel for each in overwrites if each.view_channel is not None]
    return base.administrator or (told[-1] if told else base.view_channel)
