"""The commands that keep a memory: backups and the way back, a person's memory out and in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.border import MISUSED, Data, leave, look, overrides
from config.settings import Settings, load
from memory import DATABASE_NAME, Backup, Restored, backup_name, own_backups, take_backup, thin_backups
from memory import restore as bring_back


def utc_now() -> datetime:
    """The time of day."""
    return datetime.now(UTC)


def add_to(cli: typer.Typer) -> None:
    """Give the command line these commands."""
    commands: list[Callable[..., Any]] = [backup, restore]
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
        now = utc_now()
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


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.")],
    *,
    data: Data = None,
) -> None:
    """Put a backup in the place of the memory, without what was forgotten since. The bot must be stopped."""

    def put_back() -> int:
        settings = load(overrides=overrides(data))
        done = asyncio.run(bring_back(file, settings.data_dir / DATABASE_NAME, clock=utc_now))
        for line in _story(done, settings):
            typer.echo(line)
        return 0

    look(put_back, data=data)


def _story(done: Restored, settings: Settings) -> Iterator[str]:
    """What a restore did, and what it could not do, line by line."""
    found, counts = done.backup, done.counts
    made = "at an unknown time" if found.made_at is None else f"{found.made_at:%Y-%m-%d %H:%M} UTC"
    checked = "its checksum is right" if found.sealed else "no checksum lies beside it"
    yield f"{found.path}, made {made}: {contents(found)}; {checked}, every page is whole."
    if done.migrated_from is not None:
        yield f"It had the older schema {done.migrated_from} and was brought to the newest."
    if done.aside is not None:
        state = "damaged, as it lay there" if done.damaged else "without what was forgotten in it"
        yield f"What was there before is kept as {done.aside} ({state}). It goes with the next erasure."
    if done.damaged:
        yield "WARNING: that damaged file may hold words that were forgotten. Delete it when you need it no more."
    if not done.known:
        yield (
            "WARNING: neither the database that was there nor its ledger could be read, so nobody knows what was "
            "forgotten since this backup was made: IT MAY BE BACK. The same goes for /unshare, /pause, /unlink and "
            "refused consents. Tell the people who use this bot."
        )
    else:
        where = " and ".join({"database": "the database that was there", "ledger": "the ledger"}[k] for k in done.known)
        yield f"Forgotten again, as {where} told: {_rows(counts, 'erased')}."
        yield (
            f"Closed again: {counts.get('closed', 0)} memories opened with /share and closed since; "
            f"{counts.get('paused', 0)} pauses and consents, {counts.get('unlinked', 0)} links are as they were last."
        )
        yield "Deletions that could still be undone are carried out; /undo does not reach them any more."
    if waiting := counts.get("waiting", 0):
        yield f"{waiting} messages that waited for an answer when the backup was made are not answered any more."
    yield (
        "Not in it: what was said, corrected, linked and opened since the backup was made. Settings are not part of a "
        f"backup. Put into place: {settings.data_dir / DATABASE_NAME}. Start the bot with `python -m bot run`."
    )


def _rows(counts: Mapping[str, int], name: str) -> str:
    rows = counts.get(name, 0)
    return "nothing was left to erase" if not rows else f"{rows} {'row' if rows == 1 else 'rows'} erased"


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
