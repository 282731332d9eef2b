"""What goes to the model: system prompt, window, recalled block, message; and the answer when there is no model."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from bot.message import Incoming
from bot.text import clean
from bot.trace import Request, TurnTrace
from bot.window import WINDOW_SHARE
from config.locales import phrase
from config.prompts import render
from config.settings import Settings
from memory import asks_about_everything, block, is_question
from memory.model import Account, Chat, Message, Recollection
from memory.ports import TokenCounter

QUOTE_CHARACTERS: Final = 1_000
"""Most of a quoted message that goes along; the question itself is never cut."""
LONGEST_NAME: Final = 64
"""Characters of a name in a prompt; longer ones are messages in disguise."""
FRAME_TOKENS: Final = 64
"""Room for what an endpoint adds around the messages."""

_LINE_END: Final = re.compile(r"[\n\u2028\u2029]")


class Requests:
    """Builds requests within the token budget of the settings."""

    def __init__(self, settings: Settings, count: TokenCounter) -> None:
        self._settings = settings
        self._count = count

    def build(self, owner: Account, chat: Chat, incoming: Incoming, trace: TurnTrace) -> Request:
        """The messages of one request; the recalled block stands before the person's words, as data."""
        return [
            {"role": "system", "content": self._system(owner, incoming.at)},
            *_merged(
                [
                    *(_told(line, owner, chat) for line in trace.window.lines),
                    {"role": "user", "content": self._asked(owner, chat, incoming, trace.found)},
                ]
            ),
        ]

    def window_budget(self, owner: Account, chat: Chat, incoming: Incoming, found: Recollection) -> int:
        """Tokens left for the window; negative when the message alone is too long for the model."""
        model = self._settings.model
        fixed = self._count(self._system(owner, incoming.at)) + self._count(self._asked(owner, chat, incoming, found))
        fixed += model.reply_tokens + FRAME_TOKENS
        return min(int(model.context_tokens * WINDOW_SHARE), model.context_tokens - fixed)

    def without_model(self, owner: Account, message: Message, trace: TurnTrace) -> str:
        """An answer from memory alone, which says that it is one. Receipts come from the stored rows."""
        zone = ZoneInfo(owner.zone)
        asked = message.kind == "said" and is_question(message.text)
        everything = asks_about_everything(message.text)
        units = [unit for unit in trace.found.units if everything or unit.band != "always" or unit.score > 0]
        lines = [
            {
                "speaker": "" if unit.speaker == owner.name else unit.speaker,
                "text": unit.text,
                "date": unit.at.astimezone(zone).date().isoformat(),
                "sure": unit.band != "perhaps",
                "outdated": unit.outdated is not None,
            }
            for unit in units
            if asked and unit.text not in trace.kept
        ]
        return phrase(
            "chat.without_model",
            owner.language,
            kept=trace.kept,
            ended=trace.ended,
            noted=trace.noted,
            asked=asked,
            recalled=lines,
        )

    def _system(self, owner: Account, at: datetime) -> str:
        return render(
            "system",
            owner.language,
            now=local_time(at, owner),
            person=owner.name,
            persona=self._settings.persona,
        )

    def _asked(self, owner: Account, chat: Chat, incoming: Incoming, found: Recollection) -> str:
        parts = [block(found, owner)]
        if incoming.reply_to is not None and incoming.reply_to.text:
            quoted = _inset(clean(incoming.reply_to.text)[:QUOTE_CHARACTERS])
            parts.append(phrase("chat.quoted", owner.language, name=one_line(incoming.reply_to.name), text=quoted))
        words = clean(incoming.text)
        if incoming.forward_from is not None:
            parts.append(_forwarded(owner, one_line(incoming.forward_from), words))
        else:
            parts.append(words if chat.private else _spoken(owner.name, words))
        return "\n\n".join(part for part in parts if part)


def one_line(name: str) -> str:
    """A name as a prompt may hold it: it cannot open a line of its own."""
    return " ".join(clean(name).split())[:LONGEST_NAME]


def local_time(at: datetime, owner: Account) -> str:
    """Date, weekday, time and zone as the owner reads them."""
    local = at.astimezone(ZoneInfo(owner.zone))
    weekday = phrase("time.weekdays", owner.language).split(",")[local.weekday()]
    return phrase(
        "time.moment",
        owner.language,
        weekday=weekday,
        date=local.date().isoformat(),
        time=f"{local:%H:%M}",
        zone=owner.zone,
    )


def _told(line: Message, owner: Account, chat: Chat) -> dict[str, str]:
    """A line of the window. Whoever is not the person themselves is named, and what was forwarded says so."""
    if line.role == "bot":
        return {"role": "assistant", "content": line.text}
    if line.kind == "forwarded":
        return {"role": "user", "content": _forwarded(owner, line.speaker, line.text)}
    return {"role": "user", "content": line.text if chat.private else _spoken(line.speaker, line.text)}


def _spoken(speaker: str, text: str) -> str:
    """What somebody said in a group, as one entry of the talk."""
    return f"{speaker}: {_inset(text)}"


def _forwarded(owner: Account, name: str, text: str) -> str:
    return phrase("chat.forwarded", owner.language, name=name, text=_inset(text))


def _inset(text: str) -> str:
    """A text whose further lines stand back, so that none of them can pass for a speaker or the end of a quote."""
    return _LINE_END.sub(r"\g<0>  ", text)


def _merged(messages: list[dict[str, str]]) -> Request:
    """Messages in turns: what follows from the same role becomes one, for some models refuse two in a row.

    Lines of a person are left without an answer when the model was down or broke off.
    """
    merged: Request = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1] = message | {"content": f"{merged[-1]['content']}\n\n{message['content']}"}
        else:
            merged.append(message)
    return merged
