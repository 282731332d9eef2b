"""The commands that keep a memory: backups and the way back, a person's memory out and in."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from bot.border import FAILED, MISUSED, Data, leave, look, overrides
from bot.takeaway import page
from bot.tokens import token_counter
from config.settings import Settings, load
from memory import (
    DATABASE_NAME,
    Backup,
    ImportRefusedError,
    Memory,
    Restored,
    TakenIn,
    backup_name,
    ensure_alone,
    inspect,
    own_backups,
    parse_export,
    take_backup,
    thin_backups,
)
from memory import restore as bring_back


def utc_now() -> datetime:
    """The time of day."""
    return datetime.now(UTC)


def add_to(cli: typer.Typer) -> None:
    """Give the command line these commands."""
    commands: list[Callable[..., Any]] = [backup, restore, export]
    for command in commands:
        cli.command()(command)
    cli.command(name="import")(bring_in)


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
        database, own = settings.data_dir / DATABASE_NAME, settings.backup_dir
        done = asyncio.run(bring_back(file, database, clock=utc_now, folder_of_backups=own))
        for line in _story(done, settings):
            typer.echo(line)
        return 0

    look(put_back, data=data)


AGAIN: Final[Mapping[str, str]] = {
    "closed": "closed again of what was opened with /share",
    "paused": "pauses and consents",
    "unlinked": "links taken back",
    "shut": "people or groups shut out (or no admin any more)",
}
"""What a restore does again beside forgetting, as it is told."""


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
            "refused consents, and for whom you shut out (`access list`). Tell the people who use this bot."
        )
    else:
        where = " and ".join({"database": "the database that was there", "ledger": "the ledger"}[k] for k in done.known)
        yield f"Forgotten again, as {where} told: {_many(counts.get('erased', 0), 'row')}."
        if told := [f"{counts[name]} {what}" for name, what in AGAIN.items() if counts.get(name)]:
            yield f"As it was last: {', '.join(told)}."
        yield "Deletions that could still be undone are carried out; /undo does not reach them any more."
    if waiting := counts.get("waiting", 0):
        yield f"Not answered any more: {_many(waiting, 'message')} that waited for it when the backup was made."
    yield (
        "Not in it: what was said, corrected, linked and opened since the backup was made. Settings are not part of a "
        f"backup. Put into place: {settings.data_dir / DATABASE_NAME}. Start the bot with `python -m bot run`."
    )


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def export(
    owner: Annotated[str, typer.Argument(metavar="PLATFORM:ID", help="Whose memory, like telegram:1001.")],
    *,
    to: Annotated[
        Path, typer.Option("--to", metavar="FILE", help="The .json to write; a page to read goes beside it.")
    ],
    data: Data = None,
) -> None:
    """Write out one person's memory, as /export hands it to them: keep it as you would keep their diary."""
    platform, user_id = _named(owner)

    async def write(memory: Memory) -> int:
        account = await memory.known_account(platform, user_id)
        if account is None:
            leave(f"{owner} never talked to this bot.", FAILED)
        document = await memory.exports.all(account, now=utc_now())
        page_file = to.with_suffix(".html")
        written = json.dumps(document, ensure_ascii=False, indent=1)
        for file, text in ((to, written), (page_file, page(document, account))):
            await asyncio.to_thread(_write_new, file, text)
        counts = ", ".join(f"{len(document[part])} {part}" for part in ("profile", "timeline", "facts", "journal"))
        typer.echo(f"{to} (for programs) and {page_file} (to read): {counts}.")
        return 0

    if to.suffix != ".json":
        leave("The file has to end with .json.", MISUSED)
    look(lambda: _with_memory(load(overrides=overrides(data)), write), data=data)


def bring_in(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The .json of an export.")],
    *,
    account: Annotated[
        str | None,
        typer.Option("--as", metavar="PLATFORM:ID", help="Into this account instead of the one named in it."),
    ] = None,
    data: Data = None,
) -> None:
    """Take a person's export into this memory. Done twice, it adds nothing. The bot must be stopped."""
    named = None if account is None else _named(account)

    async def take_in(memory: Memory) -> int:
        document = parse_export(await asyncio.to_thread(file.read_bytes))
        platform, user_id = named or (document.account.platform, document.account.user_id)
        known = await memory.known_account(platform, user_id)
        chosen = document.settings
        owner = known or await memory.account(
            platform, user_id, name=document.account.name, language=chosen.language, zone=chosen.zone
        )
        done = await memory.imports.take_in(owner, document, made=known is None, now=utc_now())
        for line in _told(done, document.account.name, f"{platform}:{user_id}", links=len(document.links)):
            typer.echo(line)
        return 0

    def work() -> int:
        settings = load(overrides=overrides(data))
        try:
            return _with_memory(settings, take_in, stopped=True)
        except ImportRefusedError as error:
            leave(f"{file} is not imported; nothing was changed.\n{error}", FAILED)
        except OSError as error:
            leave(f"{file} cannot be read: {error.strerror}", FAILED)

    look(work, data=data)


WHY_NOT: Final[Mapping[str, str]] = {
    "there": "are here already",
    "forgotten": "rest on words that were erased here",
    "erased": "were erased here since they were exported, and stay erased",
    "future": "are said to be of the future: is this machine's clock right?",
    "secret": "hold a password, a card number or the like",
    "instruction": "are orders to the bot and no memories",
    "sensitive": "touch a matter of which nothing is kept, or not yet, or were said in a pause",
    "held": "touch a sensitive matter of which the person has not agreed to have it kept",
    "unanswered": "are answers to lines that are not in the file",
    "unknown": "are of a kind that this version does not know",
}
"""Why rows of an import were left out, as it is told."""


def _told(done: TakenIn, name: str, owner: str, *, links: int) -> Iterator[str]:
    """What became of an import, line by line."""
    counts = dict(done.counts)
    new = " (new here)" if done.made else ""
    yield (
        f"{name} -> {owner}{new}: "
        f"{_many(counts.pop('memories', 0), 'memory', 'memories')} and {_many(counts.pop('lines', 0), 'line')} added."
    )
    for reason, count in sorted(counts.items()):
        yield f"{count} {WHY_NOT.get(reason, f'were left out ({reason})')}."
    if links:
        yield "Links with other accounts are not taken over: /link makes them again."


def _named(owner: str) -> tuple[str, str]:
    platform, _, user_id = owner.partition(":")
    if not platform.isalpha() or not user_id or user_id != user_id.strip():
        leave(f"{owner} names no account: write a platform and a number, like telegram:1001.", MISUSED)
    return platform, user_id


def _with_memory(settings: Settings, do: Callable[[Memory], Awaitable[int]], *, stopped: bool = False) -> int:
    """Open the memory for one command; with ``stopped`` only while nobody else has it open."""
    database = settings.data_dir / DATABASE_NAME

    async def run() -> int:
        memory = await Memory.open(database, settings, clock=utc_now, count=token_counter(settings.openai_model))
        try:
            return await do(memory)
        finally:
            await memory.close()

    if stopped:
        ensure_alone(settings.data_dir)
    elif not inspect(database):
        leave(f"{database} does not exist yet: nobody has talked to this bot.", FAILED)
    return asyncio.run(run())


def _write_new(file: Path, text: str) -> None:
    """Write a file that is not there yet, for its owner's eyes only."""
    try:
        handle = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        leave(f"{file} exists, and an export overwrites nothing: choose another name.", FAILED)
    except OSError as error:
        leave(f"{file} cannot be written: {error.strerror}", FAILED)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)


def contents(found: Backup) -> str:
    """What a backup holds, as a line."""
    counts = found.counts
    memories = counts["profile"] + counts["timeline"] + counts["facts"]
    return (
        f"{found.size / 1e6:,.1f} MB, schema {found.version}, {_many(counts['accounts'], 'account')}, "
        f"{_many(memories, 'memory', 'memories')}, {_many(counts['journal'], 'line')}"
    )


def _reached(path: Path, settings: Settings) -> bool:
    """Whether a file is one of those that the bot cleans after an erasure."""
    return path.resolve().parent == settings.backup_dir.resolve() and path in own_backups(path.parent)
