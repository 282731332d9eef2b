"""The commands for whoever runs the bot and wants to see how it does: numbers, from files that are only read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from bot import status as standing
from bot import tracing
from bot.border import MISUSED, Data, Json, leave, look, overrides
from config.settings import load


def add_to(cli: typer.Typer) -> None:
    """Give the command line these commands."""
    commands: list[Callable[..., Any]] = [status, trace]
    for command in commands:
        cli.command()(command)


def status(
    *,
    as_json: Json = False,
    people: Annotated[
        int, typer.Option("--people", metavar="N", min=0, help="Name the N accounts that used most tokens today.")
    ] = 0,
    data: Data = None,
) -> None:
    """Show how the bot stands: what waits, what is due, jobs, costs of today, last errors. Numbers, never words."""

    def show() -> int:
        settings = load(overrides=overrides(data))
        return standing.main(settings, now=datetime.now(UTC), as_json=as_json, people=people)

    look(show, data=data)


def trace(
    *,
    last: Annotated[int, typer.Option("--last", metavar="N", min=1, help="The last N replies.")] = 1,
    turn: Annotated[
        str | None, typer.Option("--turn", metavar="ID", help="The turn with this number of the log, or of an apology.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="PLATFORM:ID", help="Replies to this account only.")
    ] = None,
    words: Annotated[
        bool, typer.Option("--words", help="Show what people said and what is remembered of them, too.")
    ] = False,
    as_json: Json = False,
    data: Data = None,
) -> None:
    """Show how replies came to be: what was recalled, each score, what was left out and why, tokens, milliseconds."""
    if turn is not None and owner is not None:
        leave("Name a turn (--turn) or an account (--owner), not both.", MISUSED)
    asked = tracing.Asked(last=last, turn=turn, owner=owner, words=words)
    look(lambda: tracing.main(load(overrides=overrides(data)), asked, as_json=as_json), data=data)
