"""What of a failure gets into the log: its kind and its place; no words of people, no address with a password."""

from __future__ import annotations

import logging
import traceback
from typing import Final

import aiohttp
import discord

_TOLD: Final = 200
"""Characters of Discord's own reason for a refusal that are logged."""

log: Final = logging.getLogger(__name__)


def quieten() -> None:
    """Keep what people say, the tokens of interactions and proxies' passwords out of the SDK's own logging.

    At DEBUG it logs all it sends and gets, so INFO is the least. Of a connection that breaks it logs the
    exception, and aiohttp's hold the proxy's address as it is.
    """
    sdk = logging.getLogger("discord")
    sdk.setLevel(max(logging.INFO, sdk.getEffectiveLevel()))
    logging.getLogger("discord.client").addFilter(_bare)


def named(trouble: BaseException) -> str:
    """Say what a request ended with: Discord's reason, else the kind and the HTTP status alone."""
    if isinstance(trouble, discord.HTTPException):
        return f"{trouble.status} {trouble.text[:_TOLD]} ({trouble.code})"
    kind = type(trouble).__name__
    return f"{kind} {trouble.status}" if isinstance(trouble, aiohttp.ClientResponseError) else kind


def report(what: str, error: Exception) -> None:
    """Log that something unforeseen happened: of what kind and where, but nothing of what the error says."""
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s: %s\n%s", what, type(error).__name__, where)


def _bare(record: logging.LogRecord) -> bool:
    """Let a record through with the name of its exception only."""
    if record.exc_info and record.exc_info[1] is not None:
        record.msg, record.args = f"{record.getMessage()}: {named(record.exc_info[1])}", ()
        record.exc_info = None
    return True
