"""``access``: who may talk to the bot, seen and changed on the machine it runs on, while it runs or not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final
from zoneinfo import ZoneInfo

import typer

from bot.border import FAILED, MISUSED, Data, leave, look, overrides
from bot.zone import zone_of
from config.settings import PLACE, Settings, load
from memory import DATABASE_NAME, Memory

TYPED_HERE: Final = "console:access"
"""Whose wrong codes these are."""
WRONG: Final = {
    "wrong": "This is no code that works: it may be mistyped, used or older than a day. `access list` shows who asks.",
    "too_many_tries": "Too many wrong codes were typed. Wait ten minutes, or name the number: "
    "`python -m bot access allow telegram:1001`",
}

access = typer.Typer(help="Who may talk to the bot: list, approve, allow, remove.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="PLATFORM:ID", help="Like telegram:1001, or telegram:-1001234 (a group).")]


@access.command(name="list")
def show(*, data: Data = None) -> None:
    """Show who may talk, and who asks to."""
    _changed(_listed, data)


@access.command(name="approve")
def approve(
    code: Annotated[str, typer.Argument(metavar="CODE", help="What the bot showed to whoever wrote to it.")],
    *,
    admin: Annotated[
        bool | None,
        typer.Option("--admin/--member", help="Whether they may let others in; by default if nobody may yet."),
    ] = None,
    data: Data = None,
) -> None:
    """Let in whoever was shown CODE. The first becomes the admin, for otherwise there would be none."""

    async def approved(memory: Memory, settings: Settings) -> int:
        chosen = not await has_admin(memory, settings) if admin is None else admin
        ruling = await memory.access.approve(code, by=TYPED_HERE, zone=zone_of(settings), now=_now(), admin=chosen)
        if ruling.outcome != "done":
            typer.echo(WRONG[ruling.outcome], err=True)
            return FAILED
        typer.echo(_let_in(ruling.name, admin=chosen))
        return 0

    _changed(approved, data)


@access.command(name="allow")
def allow(
    name: Name,
    *,
    admin: Annotated[bool, typer.Option("--admin", help="They may let others in.")] = False,
    group: Annotated[bool, typer.Option("--group", help="It is a group, channel or server: everybody in it.")] = False,
    data: Data = None,
) -> None:
    """Let in a person or a group by number, without a code."""
    _check(name)
    is_group = group or ":-" in name
    if admin and is_group:
        leave("A group cannot be an admin: name one person.", MISUSED)

    async def allowed(memory: Memory, settings: Settings) -> int:
        kind = "group" if is_group else "person"
        await memory.access.allow(name, kind, zone=zone_of(settings), now=_now(), admin=admin)  # type: ignore[arg-type]
        typer.echo(f"Everybody in {name} may talk to the bot." if is_group else _let_in(name, admin=admin))
        return 0

    _changed(allowed, data)


@access.command(name="remove")
def remove(name: Name, *, data: Data = None) -> None:
    """Let in no more, from this moment on. What they told is not erased; it stays theirs to see, export and erase."""
    _check(name)

    async def removed(memory: Memory, settings: Settings) -> int:
        gone = await memory.access.remove(name)
        named = settings.access
        if name in (*named.admins, *named.allow, *named.groups):
            typer.echo(f"{name} is named in recollect.toml ([access]): take it out there and restart.", err=True)
            return FAILED
        if not gone:
            typer.echo(f"{name} was not let in. `python -m bot access list` shows who is.", err=True)
            return FAILED
        typer.echo(f"{name} is let in no more. What the bot keeps of them is not erased.")
        if named.open == "everybody":
            typer.echo('But [access] open = "everybody" lets in everybody.', err=True)
            return FAILED
        return 0

    _changed(removed, data)


async def has_admin(memory: Memory, settings: Settings) -> bool:
    """Whether anybody but the terminal may let others in."""
    return bool(settings.access.admins) or any(each.admin for each in await memory.access.everyone())


async def _listed(memory: Memory, settings: Settings) -> int:
    named = settings.access
    if named.open == "everybody":
        typer.echo('Everybody who finds the bot may talk to it ([access] open = "everybody").')
    listed = False
    for name in dict.fromkeys((*named.admins, *named.allow, *named.groups)):
        typer.echo(f"{name}  {'admin, ' if name in named.admins else ''}named in recollect.toml")
        listed = True
    for each in await memory.access.everyone():
        platform, _, number = each.name.partition(":")
        known = await memory.known_account(platform, number) if each.kind == "person" else None
        told = [
            *([known.name] if known is not None and known.name else []),
            *(["everybody in it"] if each.kind == "group" else []),
            *(["admin"] if each.admin else []),
            f"since {each.at:%Y-%m-%d}{' (had talked before there was a list)' if each.how == 'update' else ''}",
        ]
        typer.echo(f"{each.name}  {', '.join(told)}")
        listed = True
    if not listed:
        typer.echo("Nobody is let in by name yet.")
    zone = ZoneInfo(zone_of(settings))
    for asking in await memory.access.asking(now=_now()):
        typer.echo(f"{asking.name}  asks; the code works until {asking.expires_at.astimezone(zone):%Y-%m-%d %H:%M}")
    return 0


def _let_in(name: str, *, admin: bool) -> str:
    as_admin = ", and is an admin: /approve in a chat lets others in" if admin else ""
    return f"{name} may talk to the bot now{as_admin}. `python -m bot access remove {name}` takes it back."


def _check(name: str) -> None:
    if PLACE.fullmatch(name) is None:
        leave(f"{name} is no platform and number, like telegram:1001 or discord:112233445566.", MISUSED)


def _changed(task: Callable[[Memory, Settings], Awaitable[int]], data: Path | None) -> None:
    """Do something with the list of the database that the settings name."""

    async def opened() -> int:
        settings = load(overrides=overrides(data))
        memory = await Memory.open(settings.data_dir / DATABASE_NAME, settings, clock=_now, count=len)
        try:
            return await task(memory, settings)
        finally:
            await memory.close()

    look(lambda: asyncio.run(opened()), data=data)


def _now() -> datetime:
    return datetime.now(UTC)
