"""Who is no longer where, as Discord tells it: members, private threads, channels, servers."""

from __future__ import annotations

import asyncio

import pytest

from bot.message import ChatRef, Left, Sight
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


# ---- who may see a channel -------------------------------------------------------------------------------

VIEW = 1 << 10
ADMINISTRATOR = 1 << 3


def channel_of(place: Place, *overwrites: dict[str, object]) -> dict[str, object]:
    """A channel as Discord gives it, with what it allows and denies to roles (type 0) and people (type 1)."""
    channel: dict[str, object] = {"id": place[1], "type": 0, "name": "general", "position": 0, "guild_id": place[0]}
    return channel | {"permission_overwrites": list(overwrites)}


def overwrite(id_: str, *, sees: bool, person: bool = False) -> dict[str, object]:
    allow, deny = (VIEW, 0) if sees else (0, VIEW)
    return {"id": id_, "type": int(person), "allow": str(allow), "deny": str(deny)}


def role(id_: str, permissions: int = 0) -> dict[str, object]:
    return {"id": id_, "name": "r", "permissions": str(permissions), "position": 1, "flags": 0}


async def test_who_may_see_each_channel_is_told_at_the_start_and_at_each_change(
    discord: DiscordServer, place: Place
) -> None:
    key = f"guild:{place[0]}/{place[1]}"
    async with talking(discord) as talk:
        told = await talk.sighted()
        assert (told.chat, told.rooms) == (group(f"guild:{place[0]}"), {key: Sight(everybody=True)})
        await discord.dispatch("GUILD_ROLE_CREATE", {"guild_id": place[0], "role": role("71")})
        assert (await talk.sighted()).rooms == {key: Sight(everybody=True)}, "it sees what everybody does"
        shut = (overwrite(place[0], sees=False), overwrite("71", sees=True), overwrite(MARA.id, sees=True, person=True))
        await discord.dispatch("CHANNEL_UPDATE", channel_of(place, *shut))
        only = Sight(everybody=False, by=frozenset({"role:71", f"member:{MARA.id}"}))
        assert (await talk.sighted()).rooms == {key: only}
        await discord.dispatch("GUILD_ROLE_CREATE", {"guild_id": place[0], "role": role("72", ADMINISTRATOR)})
        assert (await talk.sighted()).rooms == {key: only}, "whoever administers a server sees all of it anyway"
        await discord.dispatch("GUILD_ROLE_DELETE", {"guild_id": place[0], "role_id": "71"})
        assert (await talk.sighted()).rooms == {key: Sight(everybody=False, by=frozenset({f"member:{MARA.id}"}))}
        muted = (overwrite(TOMAS.id, sees=False, person=True), overwrite(discord.bot.id, sees=True, person=True))
        await discord.dispatch("CHANNEL_UPDATE", channel_of(place, *muted))
        assert (await talk.sighted()).rooms == {key: Sight(everybody=True, but=frozenset({f"member:{TOMAS.id}"}))}
        nobody = role(place[0]) | {"name": "@everyone"}
        await discord.dispatch("GUILD_ROLE_UPDATE", {"guild_id": place[0], "role": nobody})
        assert (await talk.sighted()).rooms == {key: Sight(everybody=False)}


async def test_what_is_said_after_a_channel_was_opened_is_heard_after_that(
    discord: DiscordServer, place: Place
) -> None:
    other = discord.guild("elsewhere")
    async with talking(discord) as talk:
        talk.hold_sights = asyncio.Event()
        await discord.dispatch("CHANNEL_UPDATE", channel_of(place, overwrite(place[0], sees=False)))
        await discord.say(MARA, f"<@{discord.bot.id}> hello", place=place)
        await discord.dispatch("GUILD_DELETE", {"id": other[0]})
        left, _ = await talk.next(Left)
        assert left.chat == group(f"guild:{other[0]}"), "what was said before it is not handed in yet"
        talk.hold_sights.set()
        said, _ = await talk.message()
        assert said.text == "hello"


async def test_who_loses_a_role_has_left_the_channels_that_only_it_lets_see(discord: DiscordServer) -> None:
    place, other = discord.guild("staff"), discord.guild("elsewhere")
    discord.allow_members()
    async with talking(discord) as talk:
        await discord.dispatch("GUILD_ROLE_CREATE", {"guild_id": place[0], "role": role("71")})
        shut = (overwrite(place[0], sees=False), overwrite("71", sees=True))
        await discord.dispatch("CHANNEL_UPDATE", channel_of(place, *shut))

        async def now_has(*roles: str) -> None:
            member = {"user": MARA.payload(), "roles": list(roles), "joined_at": None, "flags": 0}
            await discord.dispatch("GUILD_MEMBER_UPDATE", {"guild_id": place[0], **member})

        await now_has("71")
        await now_has()
        left, _ = await talk.next(Left)
        key = f"guild:{place[0]}/{place[1]}"
        assert left == Left(group(f"guild:{place[0]}"), MARA.id, talk.clock(), rooms=frozenset({key}))
        assert left.concerns(group(key))
        assert not left.concerns(group(f"guild:{other[0]}/{other[1]}"))
