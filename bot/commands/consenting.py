"""Agreeing, or not, to have sensitive matters kept: the buttons of the question, and ``/privacy MATTER yes``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Final, get_args
from zoneinfo import ZoneInfo

from bot.commands.order import Pressed, Run, excerpt
from bot.message import Button, Reply
from config.locales import phrase
from memory import MATTERS, Choice, Matter, Memory, Question
from memory.model import Account, Chat

_BUTTON: Final = re.compile(rf"consent:(?P<matter>{'|'.join(MATTERS)}):(?P<choice>yes|no|once)")
_YES: Final = frozenset({"yes", "y", "on", "keep", "是", "好", "可以", "同意"})
_NO: Final = frozenset({"no", "n", "off", "never", "否", "不", "不要", "不同意"})


class Consenting:
    """The question's buttons; ``/privacy`` hands on what is said to it of a matter."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @property
    def runs(self) -> Mapping[str, Run]:
        """It has no command of its own."""
        return {}

    async def press(self, pressed: Pressed) -> Reply | None:
        """An answer to the question."""
        found = _BUTTON.fullmatch(pressed.button)
        if found is None:
            return None
        matter, choice = _matter(found["matter"]), _choice(found["choice"])
        if matter is None or choice is None:
            return None
        return await self._answered(pressed.owner, matter, choice, now=pressed.now)

    async def told(self, owner: Account, chat: Chat, words: str, *, now: datetime) -> Reply | None:
        """Obey "health yes" or "健康 不"; None for what is nothing of the kind."""
        parts = unicodedata.normalize("NFKC", words).casefold().split()
        matter = next((each for each in MATTERS if parts and parts[0] in _names(each)), None)
        said = parts[1] if len(parts) == 2 else ""  # noqa: PLR2004 - a matter and a word about it
        if matter is None or said not in _YES | _NO:
            return None
        if not chat.private:
            return Reply(phrase("consent.in_private", owner.language), private=True)
        if said in _YES:
            return await self._answered(owner, matter, "yes", now=now)
        return await self._revoked(owner, chat, matter, now=now)

    async def _answered(self, owner: Account, matter: Matter, choice: Choice, *, now: datetime) -> Reply:
        kept = await self._memory.consenting.answer(owner, matter, choice, now=now)
        name = phrase(f"consent.{matter}", owner.language)
        return Reply(phrase("consent.done", owner.language, matter=name, choice=choice, kept=kept), private=True)

    async def _revoked(self, owner: Account, chat: Chat, matter: Matter, *, now: datetime) -> Reply:
        plan = await self._memory.consenting.revoke(owner, chat, matter, now=now)
        name, language = phrase(f"consent.{matter}", owner.language), owner.language
        entries = () if plan is None else plan.entries
        text = phrase("consent.revoked", language, matter=name, known=[excerpt(entry.text) for entry in entries])
        if plan is None:
            return Reply(text, private=True)
        labels = {
            "all": phrase("forget.button_all", language, single=len(entries) == 1),
            "no": phrase("forget.button_no", language),
        }
        buttons = tuple(Button(f"forget:{plan.offer}:{choice}", label) for choice, label in labels.items())
        return Reply(text, buttons, private=True)


def asking(question: Question, owner: Account) -> tuple[str, tuple[Button, ...]]:
    """The question whether a matter may be kept, and its buttons."""
    language = owner.language
    text = phrase(
        "consent.ask",
        language,
        matter=phrase(f"consent.{question.matter}", language),
        lines=question.lines,
        until=question.until.astimezone(ZoneInfo(owner.zone)).date().isoformat(),
    )
    choices: tuple[Choice, ...] = get_args(Choice)
    buttons = [
        Button(f"consent:{question.matter}:{choice}", phrase(f"consent.button_{choice}", language))
        for choice in choices
    ]
    return text, tuple(buttons)


def _names(matter: Matter) -> set[str]:
    """What people may call a matter."""
    return {matter, *(phrase(f"consent.{matter}", language).casefold() for language in ("en", "zh", "zh-TW"))}


def _matter(name: str) -> Matter | None:
    return next((matter for matter in MATTERS if matter == name), None)


def _choice(name: str) -> Choice | None:
    choices: tuple[Choice, ...] = get_args(Choice)
    return next((choice for choice in choices if choice == name), None)
