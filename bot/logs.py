"""Where the log goes, and what never gets into it: no token and no key, whatever a library prints.

Every logger, a library's too, goes through the same processors: when, how grave, who tells it, what, and the turn or
the job it belongs to. The file may be lines of JSON for a program to read; the console is for a person.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import re
import sys
import traceback
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Final, TextIO
from urllib.parse import quote, unquote, urlsplit

import structlog
from pydantic import BaseModel, SecretStr
from structlog.typing import EventDict, Processor, WrappedLogger

from config.settings import Credentials, LogSettings

FILE: Final = "recollect.log"
"""Name of the log in the data folder."""
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_BYTES: Final = 1_000_000
_OLD_FILES: Final = 3
_LINE: Final = re.compile(r"(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<level>[A-Z]+) (?P<logger>[\w.]+): (?P<what>.*)")
_GRAVE: Final = ("warning", "error", "critical")
_TELLS_ITSELF: Final = "bot.border"
"""Logger of the command line."""
_CHATTY: Final = ("httpx", "httpx2", "httpcore", "openai", "apscheduler", "aiosqlite")
"""Loggers that tell each request (httpx with the token in the address) at INFO."""


FIELDS: Final = ("ms", "model_ms", "level_found", "recalled", "tokens_in", "tokens_out", "finish")
"""What a line may carry beside its words: numbers and words of ours. Anything else stays out, whoever hands it in."""
_HEAD: Final = ("at", "level", "logger", "event")
_SHOWN_ELSEWHERE: Final = (*_HEAD, "exception", "stack")


def _plain(logger: WrappedLogger, name: str, event: EventDict) -> str:
    """A line for people: when, how grave, who, what, and in brackets what it belongs to; a traceback below."""
    del logger, name
    more = {key: value for key, value in event.items() if key not in _SHOWN_ELSEWHERE and value is not None}
    told = f" [{' '.join(f'{key}={value}' for key, value in more.items())}]" if more else ""
    below = "".join(f"\n{event[key]}" for key in ("exception", "stack") if event.get(key))
    return f"{event['at']} {event['level'].upper()} {event['logger']}: {event['event']}{told}{below}"


def _ordered(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """The same with what every line has in front."""
    del logger, name
    return {**{key: event[key] for key in _HEAD}, **event}


_TEXT: Final[tuple[Processor, ...]] = (
    structlog.processors.TimeStamper("%Y-%m-%d %H:%M:%S", utc=False, key="at"),
    _plain,
)
_JSON: Final[tuple[Processor, ...]] = (
    structlog.processors.TimeStamper("iso", utc=True, key="at"),
    _ordered,
    structlog.processors.JSONRenderer(ensure_ascii=False),
)


class Discreet(structlog.stdlib.ProcessorFormatter):
    """A formatter that blots out secrets, in tracebacks too, also where they stand in an address.

    ``how``: "text" for people, "json" for programs.
    """

    def __init__(self, secrets: Iterable[str], how: str = "text") -> None:
        before: tuple[Processor, ...] = (
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(allow=FIELDS),
            # A traceback as Python prints it: the words that stood in its variables are not for the log.
            structlog.processors.ExceptionRenderer(self.traceback),
        )
        after = _JSON if how == "json" else _TEXT
        super().__init__(
            foreign_pre_chain=before,
            processors=(structlog.stdlib.ProcessorFormatter.remove_processors_meta, *after),
        )
        self._secrets: set[str] = set()
        for secret in secrets:
            self.hide(secret)

    @staticmethod
    def traceback(exc_info: structlog.typing.ExcInfo) -> str:
        """What the log shows of an exception."""
        return "".join(traceback.format_exception(*exc_info)).rstrip()

    def hide(self, secret: str) -> None:
        """Blot out one more secret from now on."""
        forms = (secret, quote(secret, safe=""), json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
        self._secrets |= {form for form in forms if form}

    def format(self, record: logging.LogRecord) -> str:
        """Format ``record`` and put *** for every secret."""
        text = super().format(record)
        for secret in sorted(self._secrets, key=len, reverse=True):  # one may be a part of another
            text = text.replace(secret, "***")
        return text


class Brief(Discreet):
    """The same without tracebacks, for a log that a person reads as it comes."""

    @staticmethod
    def traceback(exc_info: structlog.typing.ExcInfo) -> str:
        """Leave the traceback out; the line above it says what happened."""
        del exc_info
        return ""


class _Tactful(logging.Handler):
    """A handler that tells of a line it could not write without that line.

    Python's own way is to print the line, its arguments and a traceback, with every secret in them.
    """

    _lost = _losing = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; once one is written, the next loss is told anew."""
        self._lost = False
        super().emit(record)
        self._losing = self._lost

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Say on stderr what kind of thing went wrong, once for all lines that are lost in a row."""
        del record
        self._lost = True
        error = sys.exception()
        if self._losing or error is None or sys.stderr is None:
            return
        why = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
        with suppress(OSError, ValueError):  # stderr is full or closed, too
            sys.stderr.write(f"The log cannot be written, lines are lost ({type(error).__name__}{why})\n")


class _Console(_Tactful, logging.StreamHandler[TextIO]):
    """A log on a stream."""


class _Private(_Tactful, logging.handlers.RotatingFileHandler):
    """A log that is its owner's alone, each new file of it too, whatever the umask; a link in its place is refused."""

    def _open(self) -> TextIOWrapper:
        handle = os.open(self.baseFilename, os.O_CREAT | os.O_APPEND | os.O_WRONLY | _NO_LINK, 0o600)
        if os.fstat(handle).st_mode & 0o077:
            os.fchmod(handle, 0o600)
        return TextIOWrapper(os.fdopen(handle, "ab"), encoding=self.encoding, errors=self.errors)


def secrets_of(settings: Credentials) -> list[str]:
    """Return every secret that ``settings`` hold, in clear: tokens, keys, and the passwords in addresses."""
    return list(_secrets_in(settings))


def start(
    folder: Path, *, secrets: Iterable[str], console: TextIO | None = None, how: LogSettings | None = None
) -> Path:
    """Log to ``folder``/recollect.log (mode 0600, about 4 MB at most) and to ``console`` if given.

    What the command line logs goes into the file alone, for it tells the person in words of its own. Replaces
    what a former call set up. ``how``: the form of the file and the least grave lines of it. Returns the file.
    Raises OSError when it cannot be written.
    """
    how = how or LogSettings()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / FILE
    hidden = list(secrets)
    written = _Private(file, maxBytes=_BYTES, backupCount=_OLD_FILES, encoding="utf-8", errors="backslashreplace")
    written.setFormatter(Discreet(hidden, how.format))
    handlers: list[logging.Handler] = [written]
    if console is not None:
        handlers.append(_to(console, Discreet(hidden)))
    _install(handlers, how.level.upper())
    return file


@dataclass(frozen=True, slots=True)
class Trouble:
    """A line of the log that tells of a trouble: when (as the log has it), how grave, who, what, and which turn."""

    at: str
    level: str
    logger: str
    what: str
    turn: str = ""


def troubles(folder: Path, most: int) -> list[Trouble]:
    """The last warnings and errors in the log of ``folder``, oldest first; what its lines do not tell is not there."""
    try:
        with (folder / FILE).open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _BYTES // 2, 0))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    found = (trouble for line in lines if (trouble := _trouble(line)) is not None)
    return list(deque(found, maxlen=most))


def _trouble(line: str) -> Trouble | None:
    if line.startswith("{"):
        try:
            told = json.loads(line)
            level, what = str(told["level"]), str(told["event"])
        except (ValueError, KeyError, TypeError):
            return None
        trouble = Trouble(str(told.get("at")), level, str(told.get("logger")), what, str(told.get("turn", "")))
    elif written := _LINE.match(line):
        number = re.search(r" \[(?:.* )?turn=(\w+)", written["what"])
        trouble = Trouble(
            written["at"], written["level"].lower(), written["logger"], written["what"], number[1] if number else ""
        )
    else:
        return None
    return trouble if trouble.level in _GRAVE else None


def start_aloud(console: TextIO, *, secrets: Iterable[str]) -> None:
    """Log warnings to ``console`` and write no file, for commands that only look. Replaces a former set-up."""
    _install([_to(console, Brief(secrets))], "WARNING")


def hide(secret: str) -> None:
    """Keep a secret that has just become known out of the log, too."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, Discreet):
            handler.formatter.hide(secret)


def _secrets_in(section: BaseModel) -> Iterator[str]:
    for name in type(section).model_fields:
        match getattr(section, name):
            case SecretStr() as secret:
                yield secret.get_secret_value()
            case BaseModel() as part:
                yield from _secrets_in(part)
            case str() as text if "@" in text and "://" in text:
                yield from _passwords(text)


def _passwords(address: str) -> Iterator[str]:
    """The password in an address as it stands there, as it is meant, and as Basic authentication sends it."""
    with suppress(ValueError):  # no address
        parts = urlsplit(address)
        if parts.password:
            meant = unquote(parts.password)
            yield from {parts.password, meant}
            yield b64encode(f"{unquote(parts.username or '')}:{meant}".encode()).decode()


def _to(console: TextIO, formatter: Discreet) -> logging.Handler:
    handler = _Console(console)
    handler.addFilter(lambda record: record.name != _TELLS_ITSELF)
    handler.setFormatter(formatter)
    return handler


def _install(handlers: Sequence[logging.Handler], level: str) -> None:
    logging.basicConfig(level=level, handlers=handlers, force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
