"""``rekey``: the memory with another key, with its first one, or without."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.border import MISUSED, Data, leave, look, overrides
from config.settings import load
from memory import DATABASE_NAME, new_key, rekeyed


def add_to(cli: typer.Typer) -> None:
    """Give the command line this command."""
    cli.command()(rekey)


def rekey(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A backup to change, instead of the memory itself.")
    ] = None,
    *,
    new: Annotated[bool, typer.Option("--new", help="Print a new key and change nothing.")] = False,
    off: Annotated[bool, typer.Option("--off", help="Write without encryption.")] = False,
    data: Data = None,
) -> None:
    """Write the memory anew with the key in RECOLLECT_NEW_KEY; stop the bot first."""
    if new:
        typer.echo(f"RECOLLECT_NEW_KEY={new_key()}")
        raise typer.Exit

    def change() -> int:
        settings = load(overrides=overrides(data))
        chosen = settings.recollect_new_key
        if off == (chosen is not None):
            leave(
                "Put RECOLLECT_NEW_KEY into .env (`rekey --new` prints one), or say --off to do without a key: one of "
                "the two.",
                MISUSED,
            )
        path = file or settings.data_dir / DATABASE_NAME
        rows = rekeyed(path, "" if chosen is None else chosen.get_secret_value())
        typer.echo(f"{path}: {rows:,} rows written anew and found again.")
        if file is None:
            typer.echo(
                "Now take RECOLLECT_KEY and RECOLLECT_NEW_KEY out of .env, and start the bot."
                if off
                else "Now rename RECOLLECT_NEW_KEY in .env to RECOLLECT_KEY, in the place of the old one, and start "
                "the bot. Keep a copy of the key elsewhere: without it nobody reads the memory again."
            )
            typer.echo("Backups keep the key they were made with: `rekey FILE` changes one, before you rename.")
        return 0

    look(change, data=data)
