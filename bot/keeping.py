"""The commands that keep a memory: backups and the way back, a person's memory out and in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.border import MISUSED, Data, leave, look, overrides
from config.settings import Settings, load
from memory import DATABASE_NAME, Backup, backup_name, own_backups, take_backup, thin_backups


def add_to(cli: typer.Typer) -> None:
    """Give the command line these commands."""
    commands: list[Callable[..., Any]] = [backup]
    for command in commands:
        cli.command()(command)


def backup(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="What to write; must not exist.")] = None,
    *,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Folder to put it in, named by the time.")
    ] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", min=1, help="Delete all but the newest N in that folder.")
    ] = None,
    data: Data = None,
) -> None:
    """Copy the whole memory into one file while the bot runs, and look through the copy."""
    if file is not None and (to is not None or keep is not None):
        leave("Name either a FILE or a folder (--to DIR, --keep N).", MISUSED)

    def make() -> int:
        settings = load(overrides=overrides(data))
        now = datetime.now(UTC)
        folder = to or settings.backup_dir
        made = take_backup(settings.data_dir / DATABASE_NAME, file or folder / backup_name(now), now=now)
        typer.echo(f"{made.path}: {contents(made)}; looked through, every page is whole.")
        if keep is not None and (gone := thin_backups(folder, keep)):
            typer.echo(f"{gone} older {'backup is' if gone == 1 else 'backups are'} deleted; {keep} are kept.")
        if not _reached(made.path, settings):
            typer.echo(
                f"The bot does not look after this file: what is forgotten from now on stays in it. It takes that out "
                f"again when it is restored. Its own backups are in {settings.backup_dir}."
            )
        return 0

    look(make, data=data)


def contents(found: Backup) -> str:
    """What a backup holds, as a line."""
    counts = found.counts
    memories = counts["profile"] + counts["timeline"] + counts["facts"]
    return (
        f"{found.size / 1e6:,.1f} MB, schema {found.version}, {counts['accounts']:,} accounts, {memories:,} memories, "
        f"{counts['journal']:,} lines"
    )


def _reached(path: Path, settings: Settings) -> bool:
    """Whether a file is one of those that the bot cleans after an erasure."""
    return path.resolve().parent == settings.backup_dir.resolve() and path in own_backups(path.parent)
