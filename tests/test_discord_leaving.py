"""Who is no longer where, as Discord tells it: members, private threads, channels, servers."""

from __future__ import annotations

import pytest

from bot.message import ChatRef, Left
from tests.discord_talk import (  # noqa: F401 - the fixtures
    MARA,
    ROBOT,
    TOMAS,
    Talk,
    discord_server,
    general_channel,
    running_talk,
    talking,
)
from tests.servers.discord_server import DiscordServer, Place

MEMBERS = 1 << 1


def group(key: str) -> ChatRef:
    return ChatRef("discord", key, private=False)


async def test_who_leaves_a_server_is_told_of_where_the_application_may_hear_it(discord: DiscordServer) -> None:
    place = discord.guild("general")
    discord.allow_members()
    async with talking(discord) as talk:
        await discord.leave(MARA, place[0])
        await discord.leave(ROBOT, place[0])
        await discord.leave(TOMAS, place[0])
        for person in (MARA, TOMAS):
            left, _ = await talk.next(Left)
            assert left == Left(group(f"guild:{place[0]}"), person.id, talk.clock())


@pytest.mark.parametrize("allowed", [True, False])
async def test_the_intent_is_asked_for_only_where_the_application_has_it(
    discord: DiscordServer, *, allowed: bool
) -> None:
    if allowed:
        discord.allow_members()
    async with talking(discord):
        assert bool(discord.gateway.identified[-1]["intents"] & MEMBERS) == allowed


async def test_a_server_the_bot_had_to_leave_is_told_of_and_one_out_of_order_is_not(
    discord: DiscordServer, place: Place, talk: Talk
) -> None:
    await discord.dispatch("GUILD_DELETE", {"id": place[0], "unavailable": True})
    await discord.dispatch("GUILD_DELETE", {"id": place[0]})
    left, _ = await talk.next(Left)
    assert left == Left(group(f"guild:{place[0]}"), None, talk.clock())


async def test_a_channel_that_is_no_more_is_told_of(discord: DiscordServer, place: Place, talk: Talk) -> None:
    channel = {"id": place[1], "type": 0, "name": "general", "position": 0, "guild_id": place[0]}
    await discord.dispatch("CHANNEL_DELETE", channel)
    left, _ = await talk.next(Left)
    assert left == Left(group(f"guild:{place[0]}/{place[1]}"), None, talk.clock())


async def test_who_leaves_a_private_thread_is_told_of_and_who_leaves_a_public_one_still_reads_it(
    discord: DiscordServer,
) -> None:
    public = discord.guild("general", thread="boats")
    private = discord.guild("general", thread="plans", private_thread=True)
    async with talking(discord) as talk:
        for guild, thread in (public, private):
            gone = {"guild_id": guild, "id": thread, "member_count": 1, "removed_member_ids": [MARA.id]}
            await discord.dispatch("THREAD_MEMBERS_UPDATE", gone)
        left, _ = await talk.next(Left)
        assert left == Left(group(f"guild:{private[0]}/{private[1]}"), MARA.id, talk.clock())
        own = {"guild_id": private[0], "id": private[1], "member_count": 1, "removed_member_ids": [discord.bot.id]}
        await discord.dispatch("THREAD_MEMBERS_UPDATE", own)
        left, _ = await talk.next(Left)
        assert left.user_id is None


async def test_a_private_thread_that_is_no_more_is_told_of(discord: DiscordServer) -> None:
    guild, thread = discord.guild("general", thread="plans", private_thread=True)
    async with talking(discord) as talk:
        gone = {"id": thread, "guild_id": guild, "parent_id": discord.channels(guild)[0], "type": 12}
        await discord.dispatch("THREAD_DELETE", gone)
        left, _ = await talk.next(Left)
        assert left == Left(group(f"guild:{guild}/{thread}"), None, talk.clock())
