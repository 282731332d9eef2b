"""What a person sets for themselves: the language and the time zone."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Final
from zoneinfo import ZoneInfo

from bot.commands.order import Order, Pressed, Run, excerpt
from bot.message import Button, Reply
from config.locales import phrase
from config.templates import written
from memory import DatabaseError, Memory, zone_named
from memory.model import Account, Chat, Decision
from memory.ports import Clock

log = logging.getLogger(__name__)

CHINESE: Final = "chinese"
"""The choice of a Chinese who names no script: the one they have."""

_LANGUAGE: Final = re.compile(r"language:(?P<choice>en|zh|zh-TW|auto)")
_LANGUAGE_WORDS: Final = {
    "en": "en", "english": "en", "英文": "en", "英语": "en", "英語": "en",
    "zh": "zh", "zh-cn": "zh", "zh-hans": "zh", "simplified": "zh", "simplified chinese": "zh",
    "简体": "zh", "簡體": "zh", "简体中文": "zh", "簡體中文": "zh", "简体字": "zh", "簡體字": "zh",
    "zh-tw": "zh-TW", "zh-hk": "zh-TW", "zh-hant": "zh-TW", "traditional": "zh-TW", "traditional chinese": "zh-TW",
    "繁體": "zh-TW", "繁体": "zh-TW", "繁體中文": "zh-TW", "繁体中文": "zh-TW", "繁體字": "zh-TW", "繁体字": "zh-TW",
    "正體": "zh-TW", "正體中文": "zh-TW", "國語": "zh-TW",
    "chinese": CHINESE, "中文": CHINESE, "汉语": CHINESE, "漢語": CHINESE,
    "auto": "auto", "自动": "auto", "自動": "auto",
}  # fmt: skip
_AUTO: Final = frozenset(word for word, choice in _LANGUAGE_WORDS.items() if choice == "auto")


class Choosing:
    """``/language``, ``/timezone``."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"language": self._language, "timezone": self._timezone}

    async def press(self, pressed: Pressed) -> Reply | None:
        """A choice of language."""
        found = _LANGUAGE.fullmatch(pressed.button)
        return None if found is None else await self._spoken(pressed.owner, found["choice"])

    async def _language(self, order: Order) -> Reply:
        owner = order.owner
        if (choice := _LANGUAGE_WORDS.get(order.words.casefold())) is not None:
            return await self._spoken(owner, choice)
        choices = ("zh", "zh-TW", "en", "auto")
        buttons = [Button(f"language:{name}", phrase(f"language.button_{name}", owner.language)) for name in choices]
        text = phrase("language.now", owner.language, fixed=owner.language_fixed, unknown=bool(order.words))
        return Reply(text, tuple(buttons), private=True)

    async def _spoken(self, owner: Account, choice: str) -> Reply:
        """Answer in a language from now on, or again in the one they write."""
        if choice == CHINESE:
            choice = owner.language if written(owner.language) == "zh" else "zh"
        await self._memory.fix_language(owner, None if choice == "auto" else choice)
        language = owner.language if choice == "auto" else choice
        return Reply(phrase("language.auto" if choice == "auto" else "language.set", language), private=True)

    async def zone_question(self, owner: Account, chat: Chat, learned: Sequence[Decision]) -> str:
        """The question for a person's zone behind an answer, "" almost always: once, where a time was guessed.

        In a group it is nobody else's concern.
        """
        try:
            asks = chat.private and await self._memory.ask_zone(owner, learned)
        except DatabaseError:
            log.exception("nobody was asked for a time zone")
            return ""
        return phrase("timezone.ask", owner.language, zone=owner.zone) if asks else ""

    async def _timezone(self, order: Order) -> Reply:
        """Show the zone in which times are reckoned, or set it; the zone database's names and cities are known."""
        owner, words = order.owner, order.words
        auto = words.casefold() in _AUTO
        zone = None if auto else zone_named(words)
        unknown = bool(words) and not auto and zone is None
        if words and not unknown:
            await self._memory.fix_zone(owner, zone)
            owner = await self._memory.known_account(owner.platform, owner.user_id) or owner
        text = phrase(
            "timezone.now",
            owner.language,
            zone=owner.zone,
            time=f"{self._clock().astimezone(ZoneInfo(owner.zone)):%H:%M}",
            source=owner.zone_from,
            unknown=excerpt(words) if unknown else "",
        )
        return Reply(text, private=True)
