"""What the Bot API refuses in a request by itself, whatever stands in the chats. Pure.

Error texts are the customary ones; entities that Telegram would silently repair are refused here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from aiohttp import BodyPartReader, web

_SEND: Final = frozenset({"chat_id", "message_thread_id", "reply_markup", "reply_parameters"})
PARAMETERS: Final[Mapping[str, frozenset[str]]] = {
    "getMe": frozenset(),
    "getUpdates": frozenset({"offset", "limit", "timeout", "allowed_updates"}),
    "setWebhook": frozenset({"url", "secret_token", "allowed_updates", "max_connections", "drop_pending_updates"}),
    "deleteWebhook": frozenset({"drop_pending_updates"}),
    "getWebhookInfo": frozenset(),
    "sendMessage": _SEND | {"text", "entities", "link_preview_options"},
    "sendMessageDraft": frozenset({"chat_id", "message_thread_id", "draft_id", "text", "entities"}),
    "sendDocument": _SEND | {"document"},
    "editMessageText": frozenset({"chat_id", "message_id", "text", "entities", "reply_markup", "link_preview_options"}),
    "deleteMessage": frozenset({"chat_id", "message_id"}),
    "sendChatAction": frozenset({"chat_id", "action", "message_thread_id"}),
    "answerCallbackQuery": frozenset({"callback_query_id", "text", "show_alert"}),
    "setMyCommands": frozenset({"commands", "scope", "language_code"}),
    "getMyCommands": frozenset({"scope", "language_code"}),
    "getFile": frozenset({"file_id"}),
}
"""Every method the server knows, with all it takes. Another method is 404, another parameter 400."""

MAX_TEXT: Final = 4_096
MAX_ENTITIES: Final = 100
MAX_COMMANDS: Final = 100
MAX_UPLOAD: Final = 50_000_000
MAX_DOWNLOAD: Final = 20_000_000

_SCOPES: Final = ("default", "all_private_chats", "all_group_chats", "all_chat_administrators")
_KINDS: Final = re.findall(
    r"\w+",
    "mention hashtag cashtag bot_command url email phone_number bold italic underline strikethrough spoiler "
    "blockquote expandable_blockquote code pre text_link text_mention custom_emoji",
)
_LEAVES: Final = ("code", "pre")
"""Entities that hold no other."""


class Refusal(Exception):
    """A request the platform does not carry out."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.status = status
        self.parameters = parameters

    def response(self) -> web.Response:
        body: dict[str, Any] = {"ok": False, "error_code": self.status, "description": str(self)}
        return web.json_response(
            body | ({"parameters": self.parameters} if self.parameters else {}), status=self.status
        )


def bad(description: str, **parameters: Any) -> Refusal:
    """A request that is wrong in itself."""
    return Refusal(400, f"Bad Request: {description}", **parameters)


def units(text: str) -> int:
    """UTF-16 units of a text."""
    return sum(2 if ord(char) > 0xFFFF else 1 for char in text)


async def parameters_of(request: web.Request) -> dict[str, Any]:
    """Decode JSON, a form whose values are JSON where they are no strings, or such a form with files."""
    with _only_valid_text():
        if request.content_type == "multipart/form-data":
            params = await _from_multipart(request)
        elif request.content_type == "application/json":
            params = json.loads(await request.read())
        else:
            body = (await request.read()).decode("ascii")
            fields = parse_qsl(body, keep_blank_values=True, strict_parsing=bool(body), errors="strict")
            params = {name: _decoded(name, value) for name, value in fields}
        json.dumps({name: value for name, value in params.items() if name != "document"}, ensure_ascii=False).encode()
    return params


async def _from_multipart(request: web.Request) -> dict[str, Any]:
    params: dict[str, Any] = {}
    files: dict[str, dict[str, Any]] = {}
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        name, content = part.name or "", bytes(await part.read())
        if part.filename is None:
            params[name] = _decoded(name, content.decode())
        elif len(content) > MAX_UPLOAD:
            raise Refusal(413, "Request Entity Too Large")
        else:
            files[name] = {"file_name": part.filename, "content": content}
    for name, value in params.items():
        if isinstance(value, str) and value.startswith("attach://"):
            params[name] = files.pop(value.removeprefix("attach://"))
    return params | files


@contextmanager
def _only_valid_text() -> Iterator[None]:
    try:
        yield
    except UnicodeError:
        raise bad("strings must be encoded in UTF-8") from None


def _decoded(name: str, value: str) -> Any:
    if name in ("text", "callback_query_id", "secret_token"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def checked_text(params: Mapping[str, Any], too_long: str) -> tuple[str, list[dict[str, Any]]]:
    """The text of a message and its entities, both as they may stand in a chat."""
    text = params.get("text", "")
    if not text.strip():
        raise bad("message text is empty")
    if units(text) > MAX_TEXT:
        raise bad(too_long)
    return text, _checked_entities(text, params.get("entities") or [])


def _checked_entities(text: str, entities: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Check the first hundred entities; the platform does not look at more."""
    borders = [0]
    for char in text:
        borders.append(borders[-1] + units(char))
    around: list[Mapping[str, Any]] = []
    kept = sorted(entities[:MAX_ENTITIES], key=lambda entity: (entity["offset"], -entity["length"]))
    for entity in kept:
        _check_entity(entity, borders)
        around = [outer for outer in around if entity["offset"] < outer["offset"] + outer["length"]]
        if any(entity["offset"] + entity["length"] > outer["offset"] + outer["length"] for outer in around):
            raise bad("can't parse entities: entities overlap without being nested")
        if any(outer["type"] in _LEAVES or outer["type"] == entity["type"] for outer in around):
            raise bad(f"can't parse entities: {entity['type']} inside of {around[-1]['type']}")
        around.append(entity)
    return [dict(entity) for entity in kept]


def _check_entity(entity: Mapping[str, Any], borders: Sequence[int]) -> None:
    if entity["type"] not in _KINDS:
        raise bad(f"can't parse entities: unsupported entity type {entity['type']}")
    start, end = entity["offset"], entity["offset"] + entity["length"]
    if entity["length"] < 1 or start < 0 or end > borders[-1]:
        raise bad("ENTITY_BOUNDS_INVALID")
    if start not in borders or end not in borders:
        raise bad("can't parse entities: entity begins or ends in the middle of a UTF-16 symbol")
    if entity["type"] == "text_link" and urlsplit(entity.get("url", "")).scheme not in ("http", "https", "tg"):
        raise bad("ENTITY_TEXTURL_INVALID")


def checked_markup(params: Mapping[str, Any]) -> Any:
    """The keyboard of a message."""
    markup = params.get("reply_markup")
    for row in markup["inline_keyboard"] if markup else []:
        for key in row:
            if not 1 <= len(key["callback_data"].encode()) <= 64:
                raise bad("BUTTON_DATA_INVALID")
    return markup


def checked_commands(params: Mapping[str, Any]) -> list[dict[str, str]]:
    """The commands of a menu."""
    commands: list[dict[str, str]] = params["commands"]
    if not 1 <= len(commands) <= MAX_COMMANDS:
        raise bad("BOT_COMMANDS_TOO_MUCH")
    for command in commands:
        if not re.fullmatch(r"[a-z0-9_]{1,32}", command["command"]):
            raise bad("BOT_COMMAND_INVALID")
        if not 1 <= len(command["description"]) <= 256:
            raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
    return commands


def menu_key(params: Mapping[str, Any]) -> tuple[str, str]:
    """Where a menu is kept: by scope and language."""
    scope, language = params.get("scope", {"type": "default"})["type"], params.get("language_code", "")
    if scope not in _SCOPES:
        raise bad("unsupported BotCommandScope specified")
    if not re.fullmatch(r"([a-z]{2})?", language):
        raise bad("LANGUAGE_CODE_INVALID")
    return scope, language


def checked_webhook(params: Mapping[str, Any]) -> None:
    """Address and secret of a webhook."""
    if urlsplit(params["url"]).scheme != "https":
        raise bad("bad webhook: An HTTPS URL must be provided for webhook")
    if not re.fullmatch(r"[A-Za-z0-9_-]{0,256}", params.get("secret_token", "")):
        raise bad("secret token contains unallowed characters")
    if not 1 <= params.get("max_connections", 40) <= 100:
        raise bad("MAX_CONNECTIONS_INVALID")
