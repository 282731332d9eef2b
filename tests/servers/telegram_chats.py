"""The chats of the Bot API server and what the bot may do in them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.servers.telegram_rules import Refusal, bad, checked_markup, checked_text

GENERAL: Final = 1
"""Id of a forum's General topic, which is never sent to by its id."""
DATE: Final = 1_772_452_800
"""When everything is sent: 2 March 2026, 12:00 UTC."""


@dataclass(slots=True)
class Chat:
    """A chat and what stands in it; ``threads`` are its topics with whether each is open.

    ``started`` False: a person who never wrote to the bot. ``moved_to`` is the supergroup it became.
    ``drafts`` are the texts shown as drafts, by their id.
    """

    id: int
    type: str = "private"
    title: str = ""
    blocked: bool = False
    started: bool = True
    moved_to: int | None = None
    threads: dict[int, bool] = field(default_factory=dict)
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    drafts: dict[int, str] = field(default_factory=dict)
    bot_id: int = 0

    @property
    def ours(self) -> list[dict[str, Any]]:
        """The bot's messages as they stand now, in order."""
        return [message for message in self.messages.values() if message["from"]["id"] == self.bot_id]

    @property
    def texts(self) -> list[str]:
        """What the bot's messages say now, in order."""
        return [message["text"] for message in self.ours if "text" in message]

    def payload(self) -> dict[str, Any]:
        named = {"first_name": f"User {self.id}"} if self.type == "private" else {"title": self.title}
        return {"id": self.id, "type": self.type, **named}


class Chats:
    """Every chat by its id, and the bot ``me`` in them."""

    def __init__(self, me: Mapping[str, Any]) -> None:
        self.me = me
        self.all: dict[int, Chat] = {}
        self._numbers = itertools.count(1)

    def message(self, chat: Chat, author: Mapping[str, Any], text: str | None, *, thread: int | None) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {
            "message_id": number,
            "from": dict(author),
            "chat": chat.payload(),
            "date": DATE,
        }
        if text is not None:
            message["text"] = text
        if thread is not None:
            message |= {"message_thread_id": thread, "is_topic_message": True}
        chat.messages[number] = message
        return message

    def send(self, params: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
        chat = self.reach(params)
        thread = params.get("message_thread_id")
        answered = params.get("reply_parameters")
        known = answered is None or int(answered["message_id"]) in chat.messages
        if answered is not None and not known and not answered.get("allow_sending_without_reply"):
            raise bad("message to be replied not found")
        chat.drafts.clear()
        message = self.message(chat, self.me, None, thread=None if thread is None else int(thread))
        message |= content
        return message

    def edit(self, params: Mapping[str, Any]) -> dict[str, Any]:
        _, message = self.own(params, "message to edit not found", "message can't be edited")
        if "text" not in message:
            raise bad("there is no text in the message to edit")
        text, entities = checked_text(params, "MESSAGE_TOO_LONG")
        new = dressed(text, entities, checked_markup(params))
        # The platform trims what it is sent, so a trailing blank changes nothing.
        old = dressed(message["text"], message.get("entities", []), message.get("reply_markup"))
        if new | {"text": text.strip()} == old | {"text": old["text"].strip()}:
            raise bad(
                "message is not modified: specified new message content and reply markup are exactly the same as a "
                "current content and reply markup of the message"
            )
        for name in ("entities", "reply_markup"):
            message.pop(name, None)
        message |= new
        return message

    def draft(self, params: Mapping[str, Any]) -> bool:
        chat = self.reach(params)
        if chat.type != "private":
            raise bad("drafts can be sent to private chats only")
        if int(params["draft_id"]) == 0:
            raise bad("DRAFT_ID_INVALID")
        chat.drafts[int(params["draft_id"])] = checked_text(params, "message is too long")[0]
        return True

    def own(self, params: Mapping[str, Any], missing: str, foreign: str) -> tuple[Chat, dict[str, Any]]:
        chat = self.reach(params)
        message = chat.messages.get(int(params["message_id"]))
        if message is None:
            raise bad(missing)
        if message["from"]["id"] != self.me["id"]:
            raise bad(foreign)
        return chat, message

    def reach(self, params: Mapping[str, Any]) -> Chat:
        chat = self.all.get(int(params["chat_id"]))
        if chat is None:
            raise bad("chat not found")
        if chat.moved_to is not None:
            raise bad("group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.moved_to)
        if not chat.started:
            raise Refusal(403, "Forbidden: bot can't initiate conversation with a user")
        if chat.blocked:
            kicked = "bot was kicked from the supergroup chat"
            raise Refusal(403, f"Forbidden: {'bot was blocked by the user' if chat.type == 'private' else kicked}")
        if (thread := params.get("message_thread_id")) is not None:
            if int(thread) == GENERAL or int(thread) not in chat.threads:
                raise bad("message thread not found")
            if not chat.threads[int(thread)]:
                raise bad("TOPIC_CLOSED")
        return chat


def dressed(text: str, entities: list[dict[str, Any]], markup: Any) -> dict[str, Any]:
    """What a message looks like; fields that are empty are left out."""
    return {"text": text} | ({"entities": entities} if entities else {}) | ({"reply_markup": markup} if markup else {})
