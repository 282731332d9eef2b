"""What the Discord server of the tests keeps, and what each request does with it or is refused for."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.servers.discord_model import (
    ACKNOWLEDGE_SECONDS,
    CONTENT_FLAG,
    EPHEMERAL,
    EPOCH_MS,
    HISTORY_LIMIT,
    MEMBERS_FLAG,
    NONCE_SECONDS,
    START_MS,
    TOKEN_SECONDS,
    Interaction,
    Refusal,
    Request,
    User,
    check_commands,
    check_components,
    check_content,
    check_files,
    unlocalised,
    without_false,
)


class Rest:
    """The state of the platform behind its REST API. ``outbox`` holds the gateway events that requests cause."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.bot = User("900000000000000555", "Recollect", bot=True)
        self.messages: dict[str, dict[str, Any]] = {}
        self.interactions: dict[str, Interaction] = {}
        self.commands: list[dict[str, Any]] = []
        self.content_flag = True
        self.members_flag = False
        self.unreachable: set[str] = set()
        self.files: dict[str, bytes] = {}
        self.outbox: list[tuple[str, Any]] = []
        self.people: dict[str, User] = {}
        self.offset = 0.0
        self._guilds: dict[str, dict[str, Any]] = {}
        self._private: dict[str, str] = {}
        self._nonces: dict[tuple[str, str], tuple[str, float]] = {}
        self._ids = itertools.count(1)

    def snowflake(self) -> str:
        """A fresh id that carries the server's present."""
        now = int(START_MS + self.offset * 1_000)
        return str((now - EPOCH_MS) << 22 | next(self._ids))

    def channel_of(self, user: User) -> str:
        """The private channel between a person and the bot."""
        self.people[user.id] = user
        if user.id not in self._private:
            self._private[user.id] = self.snowflake()
        return self._private[user.id]

    def route(self, request: Request, authorization: str, query: Mapping[str, str]) -> Any:
        """Do what is asked for and return the answer. Raises Refusal."""
        path = request.path.strip("/").split("/")
        if path[0] not in {"webhooks", "interactions"} and authorization != f"Bot {self.token}":
            raise Refusal(401, 0, "401: Unauthorized")
        match request.method, *path:
            case "GET", "users", "@me":
                return self.bot.payload()
            case "GET", "oauth2", "applications", "@me":
                return self._application()
            case "POST", "users", "@me", "channels":
                return self._private_channel(str(request.body["recipient_id"]))
            case "GET", "channels", channel:
                return self._channel(channel)
            case "GET", "channels", channel, "messages":
                return self._history(channel, query)
            case "POST", "channels", channel, "messages":
                return self._create(channel, request)
            case "PATCH", "channels", channel, "messages", message:
                return self._edit(self._own(message, channel), request)
            case "DELETE", "channels", channel, "messages", message:
                return self._remove(self._own(message, channel))
            case "POST", "channels", channel, "typing":
                return self._reach(channel)
            case "GET", "applications", self.bot.id, "commands":
                localised = query.get("with_localizations") == "true"
                return [command if localised else unlocalised(command) for command in self.commands]
            case "PUT", "applications", self.bot.id, "commands":
                return self._register(request.body)
            case "POST", "interactions", number, token, "callback":
                return self._acknowledge(number, token, request.body)
            case "POST", "webhooks", self.bot.id, token:
                return self._follow_up(self._open(token), request)
            case "PATCH", "webhooks", self.bot.id, token, "messages", message:
                return self._edit_answer(self._open(token), message, request)
            case "DELETE", "webhooks", self.bot.id, token, "messages", "@original":
                return self._withdraw(self._open(token))
            case "DELETE", "webhooks", self.bot.id, token, "messages", message:
                self._followed(self._open(token), message)
                return self._remove(self.messages[message])
        raise Refusal(404, 0, f"404: Not Found {request}")

    # Channels and messages

    def _application(self) -> dict[str, Any]:
        return {
            "id": self.bot.id,
            "name": self.bot.name,
            "description": "",
            "icon": None,
            "bot_public": True,
            "bot_require_code_grant": False,
            "verify_key": "",
            "owner": User("900000000000000001", "Operator").payload(),
            "flags": (CONTENT_FLAG if self.content_flag else 0) | (MEMBERS_FLAG if self.members_flag else 0),
        }

    def _private_channel(self, user_id: str) -> dict[str, Any]:
        user = self.people.get(user_id, User(user_id, "Somebody"))
        return {"id": self.channel_of(user), "type": 1, "recipients": [user.payload()]}

    def _places(self) -> dict[str, dict[str, Any]]:
        return {part["id"]: part for guild in self._guilds.values() for part in guild["channels"] + guild["threads"]}

    def _channel(self, channel: str) -> dict[str, Any]:
        for user_id, known in self._private.items():
            if known == channel:
                return self._private_channel(user_id)
        if channel not in self._places():
            raise Refusal(404, 10003, "Unknown Channel")
        return self._places()[channel]

    def _reach(self, channel: str) -> None:
        if channel in self.unreachable:
            raise Refusal(403, 50007, "Cannot send messages to this user")
        self._channel(channel)

    def _history(self, channel: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
        """The newest messages, or those right after or before one; newest first."""
        self._channel(channel)
        if channel in self.unreachable:
            raise Refusal(403, 50001, "Missing Access")
        limit, after, before = (int(query[key]) if key in query else None for key in ("limit", "after", "before"))
        if not 1 <= (limit or 50) <= HISTORY_LIMIT:
            raise Refusal(400, 50035, "Invalid Form Body: limit")
        found = [
            _as_history(message)
            for message in self.messages.values()
            if message["channel_id"] == channel
            and not message["flags"] & EPHEMERAL
            and (after is None or int(message["id"]) > after)
            and (before is None or int(message["id"]) < before)
        ]
        found.sort(key=lambda message: int(message["id"]), reverse=True)
        return found[-(limit or 50) :] if after is not None else found[: limit or 50]

    def _create(self, channel: str, request: Request) -> dict[str, Any]:
        body = request.body
        self._reach(channel)
        check_content(body.get("content"), files=request.files)
        nonce = body.get("nonce", "")
        if len(nonce) > 25:
            raise Refusal(400, 50035, "Invalid Form Body: nonce")
        if body.get("enforce_nonce") and (earlier := self._made_with(channel, nonce)) is not None:
            return earlier
        reference = body.get("message_reference")
        known = reference and str(reference["message_id"]) in self.messages
        if reference and not known and reference.get("fail_if_not_exists", True):
            raise Refusal(400, 50035, "Invalid Form Body: message_reference: Unknown message")
        message = self._composed(channel, request)
        if known:
            message["message_reference"] = reference
        self.keep(message)
        self._nonces[channel, nonce] = message["id"], self.offset
        return message

    def _made_with(self, channel: str, nonce: str) -> dict[str, Any] | None:
        message, made = self._nonces.get((channel, nonce), ("", 0.0))
        return self.messages.get(message) if self.offset - made <= NONCE_SECONDS else None

    def _composed(self, channel: str, request: Request) -> dict[str, Any]:
        check_files(request.files)
        message = self.message(self.bot, channel, (request.body.get("content") or "").strip())
        message["attachments"] = [self.file(name, content) for name, content in request.files.items()]
        self._dress(message, request.body)
        return message

    def _own(self, message_id: str, channel: str) -> dict[str, Any]:
        message = self.messages.get(message_id)
        if message is None or message["channel_id"] != channel or message["flags"] & EPHEMERAL:
            raise Refusal(404, 10008, "Unknown Message")
        if message["author"]["id"] != self.bot.id:
            raise Refusal(403, 50005, "Cannot edit a message authored by another user")
        return message

    def _edit(self, message: dict[str, Any], request: Request) -> dict[str, Any]:
        content = request.body.get("content", message["content"])
        if "attachments" in request.body:
            kept = {part["id"] for part in request.body["attachments"]}
            message["attachments"] = [file for file in message["attachments"] if file["id"] in kept]
        check_content(content, files=message["attachments"] or request.files)
        message |= {"content": (content or "").strip(), "edited_timestamp": self.timestamp()}
        message["attachments"] += [self.file(name, file) for name, file in request.files.items()]
        self._dress(message, request.body)
        self.outbox.append(("MESSAGE_UPDATE", dict(message)))
        return message

    def _remove(self, message: dict[str, Any]) -> None:
        del self.messages[message["id"]]
        self.outbox.append(("MESSAGE_DELETE", self.gone(message)))

    def _dress(self, message: dict[str, Any], body: dict[str, Any]) -> None:
        """Apply components, and work out whom the text pings."""
        if "components" in body:
            check_components(body["components"])
            message["components"] = body["components"]
        allowed = body.get("allowed_mentions", {"parse": ["everyone", "users", "roles"], "replied_user": True})
        parse, text = allowed.get("parse", []), message["content"]
        pings = {"everyone"} if "everyone" in parse and re.search("@(everyone|here)", text) else set()
        if "users" in parse:
            pings |= set(re.findall(r"<@!?(\d+)>", text))
        if "roles" in parse:
            pings |= set(re.findall(r"<@&(\d+)>", text))
        message["pings"] = sorted(set(message.get("pings", ())) | pings)

    def _register(self, commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
        check_commands(commands)
        self.commands = [
            without_false(command) | {"id": self.snowflake(), "application_id": self.bot.id, "version": "1"}
            for command in commands
        ]
        return self.commands

    # Interactions

    def _acknowledge(self, number: str, token: str, body: dict[str, Any]) -> dict[str, Any]:
        interaction = self.interactions.get(token)
        if interaction is None or interaction.id != number or self.offset - interaction.made > ACKNOWLEDGE_SECONDS:
            raise Refusal(404, 10062, "Unknown interaction")
        if interaction.acknowledged is not None:
            raise Refusal(400, 40060, "Interaction has already been acknowledged.")
        if (body["type"] == 6) != (interaction.source is not None):
            raise Refusal(400, 50035, "Invalid Form Body: type")
        interaction.acknowledged = body["type"]
        interaction.ephemeral = bool((body.get("data") or {}).get("flags", 0) & EPHEMERAL)
        return {"interaction": {"id": interaction.id, "type": 2, "response_message_loading": body["type"] == 5}}

    def _open(self, token: str) -> Interaction:
        interaction = self.interactions.get(token)
        if interaction is None or interaction.acknowledged is None:
            raise Refusal(404, 10015, "Unknown Webhook")
        if self.offset - interaction.made > TOKEN_SECONDS:
            raise Refusal(401, 50027, "Invalid Webhook Token")
        return interaction

    def _follow_up(self, interaction: Interaction, request: Request) -> dict[str, Any]:
        check_content(request.body.get("content"), files=request.files)
        return self._answered(interaction, request, flags=request.body.get("flags", 0) & EPHEMERAL)

    def _edit_answer(self, interaction: Interaction, message_id: str, request: Request) -> dict[str, Any]:
        if message_id != "@original":
            self._followed(interaction, message_id)
            return self._edit(self.messages[message_id], request)
        if interaction.source is not None:
            return self._edit(self.messages[interaction.source], request)
        if interaction.withdrawn:
            raise Refusal(404, 10008, "Unknown Message")
        if interaction.messages:
            self._followed(interaction, interaction.messages[0])
            return self._edit(self.messages[interaction.messages[0]], request)
        check_content(request.body.get("content"), files=request.files)
        return self._answered(interaction, request, flags=EPHEMERAL if interaction.ephemeral else 0)

    def _withdraw(self, interaction: Interaction) -> None:
        if interaction.withdrawn:
            raise Refusal(404, 10008, "Unknown Message")
        interaction.withdrawn = True
        if interaction.messages:
            self._remove(self.messages[interaction.messages[0]])

    def _followed(self, interaction: Interaction, message_id: str) -> None:
        if message_id not in interaction.messages or message_id not in self.messages:
            raise Refusal(404, 10008, "Unknown Message")

    def _answered(self, interaction: Interaction, request: Request, *, flags: int) -> dict[str, Any]:
        message = self._composed(interaction.channel, request) | {"flags": flags}
        self.keep(message)
        interaction.messages.append(message["id"])
        return message

    # Payloads

    def timestamp(self) -> str:
        """The server's present as the API writes it."""
        return datetime.fromtimestamp(START_MS / 1_000 + self.offset, UTC).isoformat(timespec="microseconds")

    def keep(self, message: dict[str, Any]) -> None:
        """Put a message into its channel, and tell the gateway if others see it."""
        self.messages[message["id"]] = message
        place = self._places().get(message["channel_id"])
        if place is not None:
            place["last_message_id"] = message["id"]
        if not message["flags"] & EPHEMERAL:
            self.outbox.append(("MESSAGE_CREATE", message))

    def gone(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """What the gateway says of a message that was deleted."""
        guild = {"guild_id": message["guild_id"]} if "guild_id" in message else {}
        return {"id": message["id"], "channel_id": message["channel_id"]} | guild

    def file(self, name: str, content: bytes, mime: str | None = None, **more: Any) -> dict[str, Any]:
        """Store a file and return its attachment."""
        number = self.snowflake()
        self.files[f"attachments/{number}/{name}"] = content
        url = f"{self.cdn}/attachments/{number}/{name}"
        about = {"id": number, "filename": name, "size": len(content), "url": url, "proxy_url": url}
        return about | ({"content_type": mime} if mime else {}) | more

    @property
    def cdn(self) -> str:
        """Where files are downloaded from."""
        raise NotImplementedError

    def message(self, author: User, channel: str, text: str) -> dict[str, Any]:
        """A message as the gateway gives it."""
        guild = self._places().get(channel, {}).get("guild_id")
        return {
            "id": self.snowflake(),
            "channel_id": channel,
            "author": author.payload(),
            "content": text,
            "timestamp": self.timestamp(),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "type": 0,
            "flags": 0,
            "components": [],
        } | ({"guild_id": guild} if guild else {})


def _as_history(message: dict[str, Any]) -> dict[str, Any]:
    """A message as the REST API gives it: without what only the gateway tells."""
    return {key: value for key, value in message.items() if key not in {"guild_id", "member"}}
