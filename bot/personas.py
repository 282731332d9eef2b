"""Who the bot is where: the operator's words for a chat, else for all."""

from __future__ import annotations

from collections.abc import Iterator

from bot.message import ChatRef
from config.settings import Settings


def persona_for(settings: Settings, chat: ChatRef) -> str:
    """The persona of a chat: that of its topic or thread, else of the chat, else of its server, else of all."""
    return next((settings.personas[name] for name in places(chat) if name in settings.personas), settings.persona)


def places(chat: ChatRef) -> Iterator[str]:
    """The names that settings may call a chat by, the narrowest first.

    Numbers of Discord name one thing each; a topic of Telegram has its number within its group only.
    """
    where = chat.key.partition(":")[2]
    if chat.platform == "discord":
        numbers = [chat.thread, *reversed(where.split("/"))]
    else:
        numbers = [f"{where}/{chat.thread}" if chat.thread else None, where]
    for number in numbers:
        if number is not None:
            yield f"{chat.platform}:{number}"
