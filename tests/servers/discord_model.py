"""What the Discord server of the tests is about, and the rules it keeps (API reference, "Opcodes and Status Codes")."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

EPOCH_MS = 1_420_070_400_000
"""Milliseconds of 2015-01-01: snowflakes count from there."""
START_MS = 1_772_452_800_000
"""The server's present when it starts: Monday, 2 March 2026, 12:00 UTC."""
MESSAGE_LIMIT = 2_000
UPLOAD_LIMIT = 10 << 20
"""Bytes of a file (Uploading Files)."""
HISTORY_LIMIT = 100
ACKNOWLEDGE_SECONDS = 3
TOKEN_SECONDS = 900
NONCE_SECONDS = 300
"""How long a nonce is remembered; the platform says "the past few minutes"."""
EPHEMERAL = 64
MESSAGE_CONTENT = 1 << 15
PRIVILEGED = (1 << 1) | (1 << 8) | MESSAGE_CONTENT
READ_HISTORY = 1 << 10 | 1 << 16
"""Permissions to view a channel and to read what was said there."""
CONTENT_FLAG = 1 << 19
MEMBERS_FLAG = 1 << 15
MEMBERS = 1 << 1
"""Application flag: Message Content Intent is switched on (for a bot in fewer than 100 servers)."""
BLANK = re.compile(r"[\s\u200b-\u200f\u2060-\u2064\ufeff]*")
COMMAND_NAME = re.compile(r"[-_\w]{1,32}")


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with an account."""

    id: str
    name: str
    bot: bool = False

    def payload(self) -> dict[str, Any]:
        """The user as the API gives it."""
        return {
            "id": self.id,
            "username": self.name.lower(),
            "global_name": self.name,
            "discriminator": "0",
            "avatar": None,
            "bot": self.bot,
        }


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived; ``body`` is its JSON, an empty dict without one, ``files`` what was uploaded with it."""

    method: str
    path: str
    body: Any
    files: Mapping[str, bytes] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(slots=True)
class Fault:
    """Something that goes wrong with the next ``times`` requests in whose "METHOD path" ``match`` is found.

    ``lost`` carries the request out and breaks the connection before the answer, ``drop`` breaks it before anything
    is done; ``hold`` waits first.
    """

    match: re.Pattern[str]
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    times: int = 1
    lost: bool = False
    drop: bool = False
    hold: asyncio.Event | None = None


@dataclass(slots=True)
class Interaction:
    """A slash command or a press, and what was answered. ``source`` is the pressed message."""

    id: str
    token: str
    channel: str
    made: float
    source: str | None = None
    acknowledged: int | None = None
    ephemeral: bool = False
    withdrawn: bool = False
    messages: list[str] = field(default_factory=list)


class Refusal(Exception):
    """The answer to a request that the platform would refuse."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"message": message, "code": code}


def check_content(text: str | None, *, files: object = None) -> None:
    """Refuse a text that is blank, unless ``files`` come with it, or too long."""
    if not files and (text is None or BLANK.fullmatch(text)):
        raise Refusal(400, 50006, "Cannot send an empty message")
    if text is not None and len(text) > MESSAGE_LIMIT:
        raise Refusal(400, 50035, "Invalid Form Body: content: Must be 2000 or fewer in length.")
    (text or "").encode()  # a lone surrogate never leaves a bot


def check_files(files: Mapping[str, bytes]) -> None:
    """Refuse what is too large."""
    if any(len(content) > UPLOAD_LIMIT for content in files.values()):
        raise Refusal(413, 40005, "Request entity too large")


def check_components(rows: list[dict[str, Any]]) -> None:
    """Refuse buttons that are too many, nameless or named too long."""
    buttons = [button for row in rows for button in row["components"]]
    fits = len(rows) <= 5 and all(len(row["components"]) <= 5 for row in rows)
    named = all(1 <= len(button["custom_id"]) <= 100 and 1 <= len(button["label"]) <= 80 for button in buttons)
    if not (fits and named):
        raise Refusal(400, 50035, "Invalid Form Body: components")


def check_commands(commands: list[dict[str, Any]]) -> None:
    """Refuse commands and options with names or descriptions that the platform does not take."""
    options = [option for command in commands for option in command.get("options", ())]
    for part in (*commands, *options):
        names = [part["name"], *(part.get("name_localizations") or {}).values()]
        described = [part["description"], *(part.get("description_localizations") or {}).values()]
        named = all(COMMAND_NAME.fullmatch(name) and name == name.lower() for name in names)
        if not named or not all(1 <= len(text) <= 100 for text in described):
            raise Refusal(400, 50035, "Invalid Form Body: commands")
    if len({command["name"] for command in commands}) != len(commands) or len(commands) > 100:
        raise Refusal(400, 50035, "Invalid Form Body: commands: names must be unique, and at most 100")


def unlocalised(command: dict[str, Any]) -> dict[str, Any]:
    """A command as it is listed to who does not ask for its localisations."""
    return command | {"name_localizations": None, "description_localizations": None}


def without_false(value: Any) -> Any:
    """As the API gives commands back: what is false or empty is left out."""
    if isinstance(value, dict):
        return {key: without_false(part) for key, part in value.items() if part not in (False, None, {}, [])}
    return [without_false(part) for part in value] if isinstance(value, list) else value
