"""Asking somebody once which of two things holds, and carrying out what they say."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from bot.commands.order import Pressed, Run, excerpt
from bot.message import Button, Reply
from config.locales import phrase
from memory import DatabaseError, Doubt, Holds, Memory
from memory.model import Account, Chat, Entry

log = logging.getLogger(__name__)

CHOICES: Final[Mapping[str, Holds]] = {"new": "new", "both": "both", "old": "old"}

_CHOICE: Final = re.compile(r"doubt:(?P<id>\d{1,18}):(?P<choice>new|both|old)", re.ASCII)
_BACK: Final = re.compile(r"undoubt:(?P<id>\d{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a doubt, to stand behind an answer."""

    doubt: Doubt
    text: str
    buttons: tuple[Button, ...]


class Doubting:
    """The questions, and the buttons under them."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @property
    def runs(self) -> Mapping[str, Run]:
        """It has no command."""
        return {}

    async def press(self, pressed: Pressed) -> Reply | None:
        """What holds, or that an answer about it is taken back."""
        owner, now = pressed.owner, pressed.now
        if (found := _CHOICE.fullmatch(pressed.button)) and owner.owns(int(found["id"])):
            choice = CHOICES[found["choice"]]
            done = await self._memory.corrections.settle(owner, pressed.chat, int(found["id"]), choice, now=now)
            if done is None:
                return None
            told = phrase("doubt.settled", owner.language, choice=done.choice, **_both(done.doubt))
            back = Button(f"undoubt:{done.undo}", phrase("doubt.button_undo", owner.language))
            return Reply(told, (back,), private=True)
        if (found := _BACK.fullmatch(pressed.button)) and owner.owns(int(found["id"])):
            again = await self._memory.corrections.unsettle(owner, int(found["id"]), now=now)
            if again is not None:
                return Reply(phrase("doubt.undone", owner.language, **_both(again)), private=True)
        return None

    async def question(self, owner: Account, chat: Chat, *, now: datetime) -> Question | None:
        """What to ask behind an answer, None almost always. No failure of it eats the answer."""
        try:
            doubt = await self._memory.corrections.doubt(owner, chat, now=now)
        except DatabaseError:
            log.exception("nobody was asked which of two memories holds")
            return None
        if doubt is None:
            return None
        text = phrase(
            "doubt.ask",
            owner.language,
            old_day=_day(doubt.sure, owner),
            new_day=_day(doubt.unsure, owner),
            **_both(doubt),
        )
        buttons = [
            Button(f"doubt:{doubt.unsure.id}:{choice}", phrase(f"doubt.button_{choice}", owner.language))
            for choice in CHOICES
        ]
        return Question(doubt, text, tuple(buttons))


def _both(doubt: Doubt) -> dict[str, object]:
    return {"old": excerpt(doubt.sure.text), "new": excerpt(doubt.unsure.text)}


def _day(entry: Entry, owner: Account) -> str:
    return entry.provenance.said_at.astimezone(ZoneInfo(owner.zone)).date().isoformat()
