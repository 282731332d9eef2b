"""The command line: plain words, one line for each trouble, and exit codes that scripts can trust.

0: done. 1: it did not work; the last line says what to do. 2: wrong usage or wrong settings.
130: interrupted.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from bot import __version__, keeping, observing, rekeying, replay, setup
from bot import app as composition
from bot import calibrate as calibration
from bot import check as checks
from bot.access import access
from bot.bench.commands import bench
from bot.border import FAILED, MISUSED, Data, leave, look, overrides, work
from bot.embedders import choose_embedder
from bot.heap import share_one_heap
from config.settings import load

cli = typer.Typer(
    name="recollect",
    help="A chat bot that remembers each person it talks to, and forgets on request.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@cli.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    *,
    show_version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Carry out what needs no command."""
    if show_version:
        typer.echo(f"recollect {__version__}")
        raise typer.Exit
    del context


@cli.command()
def chat(
    *,
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="Whose memory to talk to.")] = "me",
    data: Data = None,
    debug: Annotated[bool, typer.Option("--debug", help="Print how each reply came to be.")] = False,
) -> None:
    """Talk in this terminal. Needs no key, no server and no configuration."""
    work(lambda settings: asyncio.run(composition.chat(settings, user=user, debug=debug)), data=data)


@cli.command()
def init() -> None:
    """Ask for what is missing, test it at once and write it to .env."""
    look(lambda: setup.main(Path(), load()))


@cli.command()
def run(*, data: Data = None) -> None:
    """Serve every platform whose token is set, until stopped."""
    work(lambda settings: asyncio.run(composition.run(settings)), data=data, aloud=True)


@cli.command()
def check(
    *,
    data: Data = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only what is not right.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Let a warning count as a failure.")] = False,
) -> None:
    """Say line by line whether everything is ready, and what to do where it is not.

    Exit code 0: it is, warnings aside. 1: something does not work (with --strict: or is not as it should be).
    2: settings are wrong; every one of them is named.
    """

    def examine() -> int:
        findings = asyncio.run(
            checks.examine(Path(), clock=composition.utc_now, embedder=choose_embedder, data_dir=data)
        )
        for finding in findings:
            if not quiet or finding.level != "ok":
                typer.echo(finding.line)
        if any(finding.settings for finding in findings):
            return MISUSED
        bad = ("fail", "warn") if strict else ("fail",)
        return FAILED if any(finding.level in bad for finding in findings) else 0

    look(examine, data=data)


@cli.command()
def calibrate(
    owner: Annotated[str | None, typer.Argument(metavar="PLATFORM:ID", help="Whose memory to measure.")] = None,
    *,
    sample: Annotated[
        Literal["en", "zh"] | None, typer.Option("--sample", help="Measure statements that ship instead of a person.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the curve to FILE, .svg or .png.")
    ] = None,
    data: Data = None,
) -> None:
    """Show where recall draws its lines in a person's memory: numbers, never words."""
    if (owner is None) == (sample is None):
        leave("Name one person as PLATFORM:ID, or --sample en (or zh).", MISUSED)
    look(lambda: calibration.main(load(overrides=overrides(data)), owner=owner, sample=sample, plot=plot), data=data)


@cli.command(name="replay")
def replay_file(
    file: Annotated[
        typer.FileText,
        typer.Argument(encoding="utf-8", errors="replace", help="JSON lines; - reads the standard input."),
    ],
    *,
    data: Data = None,
) -> None:
    """Play a conversation from JSON lines through the real bot, under a clock the lines drive."""
    work(lambda settings: asyncio.run(replay.replay(settings, file, sys.stdout)), data=data)


# Behind the others, for help lists them in this order.
keeping.add_to(cli)
observing.add_to(cli)
rekeying.add_to(cli)
cli.add_typer(access, name="access")
cli.add_typer(bench, name="bench")


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    share_one_heap()
    os.umask(0o077)  # Whatever is written, a plot or a log, is its owner's alone.
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A byte or a sign that the terminal does not know must cost one letter, not the conversation.
            stream.reconfigure(errors="replace")
    cli()
