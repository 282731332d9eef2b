"""The command line: plain words, one line for each trouble, and exit codes that scripts can trust.

0: done. 1: it did not work; the last line says what to do. 2: wrong usage or wrong settings.
130: interrupted.
"""

from __future__ import annotations

import asyncio
import io
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NoReturn

import typer

from bot import __version__, logs, replay, setup
from bot import app as composition
from bot import calibrate as calibration
from bot import check as checks
from bot.bench import abstain as bench_abstain
from bot.bench import cost as bench_cost
from bot.bench import delivery as bench_delivery
from bot.bench import forgetting as bench_forgetting
from bot.bench import peers as bench_peers
from bot.bench import recall as bench_recall
from bot.bench import speed as bench_speed
from bot.bench import write as bench_write
from bot.embedders import choose_embedder
from bot.message import AdapterError
from config.settings import Settings, SettingsError, load
from memory import DatabaseError

FAILED: Final = 1
MISUSED: Final = 2
INTERRUPTED: Final = 130

_log = logging.getLogger(__name__)

cli = typer.Typer(
    name="recollect",
    help="A chat bot that remembers each person it talks to, and forgets on request.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
bench = typer.Typer(
    help="Measure recall, silence, writing, speed, delivery or cost on this machine.", no_args_is_help=True
)
cli.add_typer(bench, name="bench")

Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Folder of the database, instead of data_dir.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


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
    _work(lambda settings: asyncio.run(composition.chat(settings, user=user, debug=debug)), data=data)


@cli.command()
def init() -> None:
    """Ask for what is missing, test it at once and write it to .env."""
    _look(lambda: setup.main(Path(), load()))


@cli.command()
def run(*, data: Data = None) -> None:
    """Serve every platform whose token is set, until stopped."""
    _work(lambda settings: asyncio.run(composition.run(settings)), data=data, aloud=True)


@cli.command()
def check(
    *,
    data: Data = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only what is not right.")] = False,
) -> None:
    """Say line by line whether everything is ready, and what to do where it is not."""

    def look() -> int:
        findings = asyncio.run(
            checks.examine(Path(), clock=composition.utc_now, embedder=choose_embedder, data_dir=data)
        )
        for finding in findings:
            if not quiet or finding.level != "ok":
                typer.echo(finding.line)
        return FAILED if any(finding.level == "fail" for finding in findings) else 0

    _look(look, data=data)


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
        _leave("Name one person as PLATFORM:ID, or --sample en (or zh).", MISUSED)
    _look(lambda: calibration.main(load(overrides=_overrides(data)), owner=owner, sample=sample, plot=plot), data=data)


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
    _work(lambda settings: asyncio.run(replay.replay(settings, file, sys.stdout)), data=data)


@bench.command(name="recall")
def recall_bench(
    *,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder with the question sets.")],
    as_json: Json = False,
    embedder: Annotated[
        Literal["auto", "endpoint", "local", "none"], typer.Option("--embedder", help="Where vectors come from.")
    ] = "local",
    ablate: Annotated[bool, typer.Option("--ablation", help="Also without each term of the score.")] = False,
    bare: Annotated[bool, typer.Option("--bare", help="Also without an embedder.")] = False,
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="Only so many questions of each set, always the same.")
    ] = None,
    plots: Annotated[
        Path | None, typer.Option("--plot", metavar="DIR", help="Folder for pictures: recall by places and by tokens.")
    ] = None,
    trace: Annotated[
        str | None, typer.Option("--trace", metavar="ID", help="Tell how the question of this id is answered.")
    ] = None,
) -> None:
    """Measure how well recall finds what a question needs."""
    plan = bench_recall.Plan(ablate=ablate, bare=bare, sample=sample)
    _look(lambda: bench_recall.main(data, as_json=as_json, embedder=embedder, plan=plan, plots=plots, trace=trace))


@bench.command(name="abstain")
def abstain_bench(
    *,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder with the question sets.")],
    as_json: Json = False,
    embedder: Annotated[
        Literal["auto", "endpoint", "local", "none"], typer.Option("--embedder", help="Where vectors come from.")
    ] = "local",
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="DIR", help="Folder for the curve as a picture.")
    ] = None,
) -> None:
    """Measure how well recall keeps silent about what it was never told, and for small talk."""
    _look(lambda: bench_abstain.main(data, as_json=as_json, embedder=embedder, plot=plot))


@bench.command(name="peers")
def peers_bench(
    *,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder with the question sets.")],
    venvs: Annotated[
        Path, typer.Option("--venvs", metavar="DIR", help="Folder in which each peer gets a Python of its own.")
    ],
    sets: Annotated[str | None, typer.Option("--sets", metavar="A,B", help="Only the sets of these names.")] = None,
    conversations: Annotated[
        int | None, typer.Option("--conversations", min=1, help="Only the first so many conversations of each set.")
    ] = None,
    as_json: Json = False,
    embedder: Annotated[
        Literal["auto", "endpoint", "local"],
        typer.Option("--embedder", help="Where the vectors of everybody come from."),
    ] = "local",
) -> None:
    """Measure recall beside mem0, LangGraph's store and chromadb, which are installed apart from the bot."""
    _look(
        lambda: bench_peers.main(
            data, venvs=venvs, as_json=as_json, embedder=embedder, sets=sets, conversations=conversations
        )
    )


@bench.command(name="speed")
def speed_bench(
    *,
    as_json: Json = False,
    plots: Annotated[
        Path | None, typer.Option("--plot", metavar="DIR", help="Folder for a picture: time by facts and by people.")
    ] = None,
) -> None:
    """Measure how fast recall is, against a plain loop and against numpy."""
    _look(lambda: bench_speed.main(as_json=as_json, plots=plots))


@bench.command(name="delivery")
def delivery_bench(
    *,
    chats: Annotated[int, typer.Option("--chats", min=1, help="Chats that write at once.")] = 200,
    frames: Annotated[int, typer.Option("--frames", min=1, help="Pieces in which the model streams an answer.")] = 50,
    as_json: Json = False,
) -> None:
    """Measure how answers reach many chats at once, some of them flooded."""
    _look(lambda: bench_delivery.main(chats=chats, frames=frames, as_json=as_json))


@bench.command(name="forget")
def forget_bench(
    people: Annotated[int, typer.Option(min=0, help="Other people in the file.")] = 1_000,
    each: Annotated[int, typer.Option(min=1, help="Facts of each of them.")] = 1_000,
    facts: Annotated[int, typer.Option(min=1, help="Facts of the one who is erased.")] = 10_000,
    *,
    as_json: Json = False,
) -> None:
    """Erase one person with a large memory beside many others: seconds, bytes, and a search for what is left."""
    _look(lambda: bench_forgetting.main(people=people, each=each, facts=facts, as_json=as_json))


@bench.command(name="write")
def write_bench(
    *,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder that holds writepath.")],
    as_json: Json = False,
) -> None:
    """Measure what is written of what people say, what is not, and what it replaces."""
    _look(lambda: bench_write.main(data, as_json=as_json))


@bench.command(name="cost")
def cost_bench(*, as_json: Json = False) -> None:
    """Measure how often the models are asked in a day of several people, and for how many tokens."""
    _look(lambda: bench_cost.main(as_json=as_json))


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A byte or a sign that the terminal does not know must cost one letter, not the conversation.
            stream.reconfigure(errors="replace")
    cli()


def _work(work: Callable[[Settings], int], *, data: Path | None, aloud: bool = False) -> NoReturn:
    """Do ``work`` with the settings of this folder and leave; ``aloud`` copies the log to stderr."""
    try:
        settings = load(overrides=_overrides(data))
    except SettingsError as error:
        _leave(str(error), MISUSED)
    try:
        log = logs.start(settings.data_dir, secrets=logs.secrets_of(settings), console=sys.stderr if aloud else None)
    except OSError as error:
        _leave(f"{settings.data_dir} cannot be written ({error.strerror}): choose another folder with --data", FAILED)
    _guarded(lambda: work(settings), lambda: log)


def _look(look: Callable[[], int], *, data: Path | None = None) -> NoReturn:
    """Do what has no log of its own and leave: warnings go to stderr, only the unexpected opens the file."""
    try:
        settings = load(overrides=_overrides(data))
    except SettingsError:
        settings = Settings(**_overrides(data))  # To tell what is wrong with them is for the command itself.
    secrets = logs.secrets_of(settings)
    logs.start_aloud(sys.stderr, secrets=secrets)
    _guarded(look, lambda: logs.start(settings.data_dir, secrets=secrets))


def _guarded(work: Callable[[], int], log: Callable[[], Path]) -> NoReturn:
    """The border of every command: a person gets a sentence, the file of ``log`` the traceback."""
    try:
        code = work()
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except SettingsError as error:
        _leave(str(error), MISUSED)
    except (AdapterError, DatabaseError) as error:
        _log.error("%s", error, exc_info=error.__cause__)
        _leave(str(error), FAILED)
    except Exception as error:  # noqa: BLE001 - nothing lies behind this border
        _leave(_written_down(error, log), FAILED)
    raise typer.Exit(code)


def _written_down(error: Exception, log: Callable[[], Path]) -> str:
    """Put an unexpected error into the log and return what to tell about it."""
    try:
        file = log()
    except OSError:
        return f"Something went wrong ({type(error).__name__}), and no log can be written: --data names a folder."
    _log.error("stopped by an unexpected error", exc_info=error)
    return f"Something went wrong; {file} says what. `python -m bot check` may name the cause."


def _overrides(data: Path | None) -> dict[str, Any]:
    return {} if data is None else {"data_dir": data}


def _leave(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)
