"""The border of every command: a person gets a sentence and an exit code, the log gets the traceback.

0: done. 1: it did not work; the last line says what to do. 2: wrong usage or wrong settings.
130: interrupted.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer

from bot import logs
from bot.message import AdapterError
from config.settings import Settings, SettingsError, load
from memory import DatabaseError, KeyRefused, use_key

FAILED: Final = 1
MISUSED: Final = 2
INTERRUPTED: Final = 130

Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Folder of the database, instead of data_dir.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]

_log = logging.getLogger(__name__)


def work(task: Callable[[Settings], int], *, data: Path | None, aloud: bool = False) -> NoReturn:
    """Do ``task`` with the settings of this folder and leave; ``aloud`` copies the log to stderr."""
    try:
        settings = load(overrides=overrides(data))
    except SettingsError as error:
        leave(str(error), MISUSED)
    _unlock(settings)
    try:
        log = logs.start(
            settings.data_dir,
            secrets=logs.secrets_of(settings),
            console=sys.stderr if aloud else None,
            how=settings.log,
        )
    except OSError as error:
        leave(f"{settings.data_dir} cannot be written ({error.strerror}): choose another folder with --data", FAILED)
    _guarded(lambda: task(settings), lambda: log)


def look(task: Callable[[], int], *, data: Path | None = None) -> NoReturn:
    """Do what has no log of its own and leave: warnings go to stderr, only the unexpected opens the file."""
    try:
        settings = load(overrides=overrides(data))
    except SettingsError:
        settings = Settings(**overrides(data))  # To tell what is wrong with them is for the command itself.
    _unlock(settings)
    secrets = logs.secrets_of(settings)
    logs.start_aloud(sys.stderr, secrets=secrets)
    _guarded(task, lambda: logs.start(settings.data_dir, secrets=secrets, how=settings.log))


def _unlock(settings: Settings) -> None:
    """Have every file opened with the key of the settings from now on."""
    try:
        use_key(settings.recollect_key.get_secret_value() if settings.recollect_key else None)
    except KeyRefused as error:
        leave(f"RECOLLECT_KEY: {error}.", MISUSED)


def _guarded(task: Callable[[], int], log: Callable[[], Path]) -> NoReturn:
    """The border of every command: a person gets a sentence, the file of ``log`` the traceback."""
    try:
        code = task()
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except SettingsError as error:
        leave(str(error), MISUSED)
    except (AdapterError, DatabaseError, KeyRefused) as error:
        _log.error("%s", error, exc_info=error.__cause__)
        leave(str(error), FAILED)
    except Exception as error:  # noqa: BLE001 - nothing lies behind this border
        leave(_written_down(error, log), FAILED)
    raise typer.Exit(code)


def _written_down(error: Exception, log: Callable[[], Path]) -> str:
    """Put an unexpected error into the log and return what to tell about it."""
    try:
        file = log()
    except OSError:
        return f"Something went wrong ({type(error).__name__}), and no log can be written: --data names a folder."
    _log.error("stopped by an unexpected error", exc_info=error)
    return f"Something went wrong; {file} says what. `python -m bot check` may name the cause."


def overrides(data: Path | None) -> dict[str, Any]:
    """Return what ``--data`` says instead of the settings."""
    return {} if data is None else {"data_dir": data}


def leave(message: str, code: int) -> NoReturn:
    """Say why and leave with ``code``."""
    typer.echo(message, err=True)
    raise typer.Exit(code)
