"""Where the log goes, and what never gets into it: no token and no key, whatever a library prints."""

from __future__ import annotations

import logging
import logging.handlers
import os
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO
from urllib.parse import quote, unquote, urlsplit

from pydantic import BaseModel, SecretStr

from config.settings import Credentials

FILE: Final = "recollect.log"
"""Name of the log in the data folder."""
_BYTES: Final = 1_000_000
_OLD_FILES: Final = 3
_TELLS_ITSELF: Final = "bot.border"
"""Logger of the command line."""
_CHATTY: Final = ("httpx", "httpx2", "httpcore", "openai", "apscheduler", "aiosqlite")
"""Loggers that tell each request (httpx with the token in the address) at INFO."""


class Discreet(logging.Formatter):
    """A formatter that blots out secrets, in tracebacks too, also where they stand in an address."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._secrets: set[str] = set()
        for secret in secrets:
            self.hide(secret)

    def hide(self, secret: str) -> None:
        """Blot out one more secret from now on."""
        self._secrets |= {form for form in (secret, quote(secret, safe="")) if form}

    def format(self, record: logging.LogRecord) -> str:
        """Format ``record`` and put *** for every secret."""
        text = super().format(record)
        for secret in sorted(self._secrets, key=len, reverse=True):  # one may be a part of another
            text = text.replace(secret, "***")
        return text


class Brief(Discreet):
    """The same without tracebacks, for a log that a person reads as it comes."""

    def formatException(self, ei: object) -> str:  # noqa: N802 - the name is logging's
        """Leave the traceback out; the line above it says what happened."""
        del ei
        return ""


def secrets_of(settings: Credentials) -> list[str]:
    """Return every secret that ``settings`` hold, in clear: tokens, keys, and the passwords in addresses."""
    return list(_secrets_in(settings))


def start(folder: Path, *, secrets: Iterable[str], console: TextIO | None = None) -> Path:
    """Log to ``folder``/recollect.log (mode 0600, about 4 MB at most) and to ``console`` if given.

    What the command line logs goes into the file alone, for it tells the person in words of its own. Replaces
    what a former call set up. Returns the file. Raises OSError when it cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / FILE
    os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
    handlers: list[logging.Handler] = [
        logging.handlers.RotatingFileHandler(
            file, maxBytes=_BYTES, backupCount=_OLD_FILES, encoding="utf-8", errors="backslashreplace"
        )
    ]
    if console is not None:
        handlers.append(_to(console))
    _install(handlers, logging.INFO, Discreet(secrets))
    return file


def start_aloud(console: TextIO, *, secrets: Iterable[str]) -> None:
    """Log warnings to ``console`` and write no file, for commands that only look. Replaces a former set-up."""
    _install([_to(console)], logging.WARNING, Brief(secrets))


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


def _to(console: TextIO) -> logging.Handler:
    handler = logging.StreamHandler(console)
    handler.addFilter(lambda record: record.name != _TELLS_ITSELF)
    return handler


def _install(handlers: Sequence[logging.Handler], level: int, formatter: Discreet) -> None:
    for handler in handlers:
        handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=handlers, force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
