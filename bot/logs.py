"""Where the log goes, and what never gets into it: no token and no key, whatever a library prints."""

from __future__ import annotations

import logging
import logging.handlers
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TextIO
from urllib.parse import quote

from pydantic import SecretStr

from config.settings import Credentials

FILE: Final = "recollect.log"
"""Name of the log in the data folder."""
_BYTES: Final = 1_000_000
_OLD_FILES: Final = 3
_CHATTY: Final = ("httpx", "httpx2", "httpcore", "openai", "apscheduler", "aiosqlite")
"""Loggers that tell each request (httpx with the token in the address) at INFO."""


class Discreet(logging.Formatter):
    """A formatter that blots out secrets, in tracebacks too, also where they stand in an address."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._secrets = {form for secret in secrets for form in (secret, quote(secret, safe=""))}

    def format(self, record: logging.LogRecord) -> str:
        """Format ``record`` and put *** for every secret."""
        text = super().format(record)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def secrets_of(settings: Credentials) -> list[str]:
    """Return every secret that ``settings`` hold, in clear."""
    values = (getattr(settings, name) for name in Credentials.model_fields)
    return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]


def start(folder: Path, *, secrets: Iterable[str], console: TextIO | None = None) -> Path:
    """Log to ``folder``/recollect.log (mode 0600, about 4 MB at most) and to ``console`` if given.

    Replaces what a former call set up. Returns the file. Raises OSError when it cannot be written.
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
        handlers.append(logging.StreamHandler(console))
    formatter = Discreet(secrets)
    for handler in handlers:
        handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=handlers, force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    return file
