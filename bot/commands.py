"""The commands, the same on every platform, one method each. What they show is built from stored rows."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from opencc import OpenCC

from bot.message import Button, CommandSpec, Reply
from bot.trace import may_be_named
from config.locales import phrase
from memory import DatabaseError, Memory, PickError, attribute_label, wants_forgetting, zone_named
from memory.model import SELF, Account, Chat, Decision, Entry, Event, Message, ProfileLine
from memory.ports import Clock

log = logging.getLogger(__name__)

NAMES: Final = (
    "start",
    "help",
    "whatdoyouknow",
    "remember",
    "forget",
    "undo",
    "why",
    "new",
    "cancel",
    "language",
    "timezone",
)
PRIVATE_NAMES: Final = frozenset({"start"})
"""Commands that make sense in a private chat alone."""
LANGUAGES: Final = ("en", "zh")
LONGEST_NUMBER: Final = 3
"""Digits of a number that a list may have; longer ones are words to be forgotten, a year or a phone number."""
EXCERPT: Final = 80
"""Characters of a memory that a list of candidates shows."""
MOST_BUTTONS: Final = 20
"""Numbers that get a button; a longer list is chosen from by typing (platforms take 25 to 100 buttons)."""

_COMMAND: Final = re.compile(r"[/／](?P<name>[a-z][a-z0-9_]*)(?:@\w+)?(?:\s+(?P<words>.*))?", re.DOTALL | re.IGNORECASE)
_OFFER: Final = re.compile(r"forget:(?P<id>\d{1,18}):(?P<choice>\w+)", re.ASCII)
_UNDO: Final = re.compile(r"undo:(?P<id>\d{1,18})", re.ASCII)
_LANGUAGE: Final = re.compile(r"language:(?P<choice>en|zh|auto)")
_LANGUAGE_WORDS: Final = {
    "en": "en", "english": "en", "英文": "en", "英语": "en", "英語": "en",
    "zh": "zh", "chinese": "zh", "中文": "zh", "汉语": "zh", "漢語": "zh",
    "auto": "auto", "自动": "auto", "自動": "auto",
}  # fmt: skip
_AUTO: Final = frozenset(word for word, choice in _LANGUAGE_WORDS.items() if choice == "auto")
_TRADITIONAL: Final = OpenCC("s2tw")
_YES: Final = frozenset({"yes", "y", "ok", "all", "是", "好", "确认", "確認", "全部"})
_NO: Final = frozenset({"no", "n", "cancel", "否", "不", "取消"})


@dataclass(frozen=True, slots=True)
class Order:
    """A command as it was given: ``message`` is its (wordless) journal line, ``words`` what followed the name."""

    owner: Account
    chat: Chat
    message: Message
    name: str
    words: str


def specs() -> tuple[CommandSpec, ...]:
    """The menu, for platforms that show one."""
    made = []
    for name in NAMES:
        described = {language: phrase(f"command.{name}", language) for language in LANGUAGES}
        described["zh-TW"] = _TRADITIONAL.convert(described["zh"])
        made.append(CommandSpec(name, described, private=name in PRIVATE_NAMES))
    return tuple(made)


class Commands:
    """Runs commands and button presses. Each returns the reply; a wrong one gets a plain word about the right one."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock
        self._run: dict[str, Callable[[Order], Awaitable[Reply]]] = {
            "start": self._start,
            "help": self._help,
            "whatdoyouknow": self._whatdoyouknow,
            "remember": self._remember,
            "forget": self._forget,
            "undo": self._undo,
            "why": self._why,
            "new": self._new,
            "cancel": self._cancel,
            "language": self._language,
            "timezone": self._timezone,
        }

    def read(self, text: str) -> tuple[str, str] | None:
        """A message as (command, words), or None for ordinary talk. "Please forget my number" is /forget, too."""
        if given := _COMMAND.fullmatch(text.strip()):
            return given["name"].casefold(), (given["words"] or "").strip()
        words = wants_forgetting(text)
        return None if words is None else ("forget", words)

    def knows(self, name: str) -> bool:
        """Whether there is such a command."""
        return name in self._run

    async def run(self, order: Order) -> Reply:
        """Obey a command."""
        run = self._run.get(order.name)
        if run is None:
            return Reply(phrase("command.unknown", order.owner.language, name=order.name[:EXCERPT]))
        return await run(order)

    async def press(self, owner: Account, button: str, *, now: datetime) -> Reply:
        """Obey a button. One that is not the presser's own, is used up or too old changes nothing and says so."""
        if (pressed := _OFFER.fullmatch(button)) and owner.owns(int(pressed["id"])):
            return await self._chosen(owner, int(pressed["id"]), pressed["choice"], now=now)
        if (pressed := _UNDO.fullmatch(button)) and owner.owns(int(pressed["id"])):
            return await self._undone(owner, int(pressed["id"]), now=now)
        if pressed := _LANGUAGE.fullmatch(button):
            return await self._spoken(owner, pressed["choice"])
        return Reply(phrase("forget.stale", owner.language), private=True)

    async def _start(self, order: Order) -> Reply:
        return Reply(phrase("start", order.owner.language))

    async def _help(self, order: Order) -> Reply:
        language = order.owner.language
        listed = [{"name": name, "does": phrase(f"command.{name}", language)} for name in NAMES]
        return Reply(phrase("help", language, commands=listed))

    async def _whatdoyouknow(self, order: Order) -> Reply:
        entries = await self._memory.known(order.owner, room=order.chat, now=self._clock())
        if not entries:
            return Reply(phrase("known.nothing", order.owner.language, private=order.chat.private), private=True)
        profile = [e for e in entries if isinstance(e, ProfileLine)]
        events = sorted((e for e in entries if isinstance(e, Event)), key=lambda e: e.span.start)
        facts = [e for e in entries if not isinstance(e, ProfileLine | Event)]
        groups: list[dict[str, object]] = []
        number = 0
        grouped: tuple[tuple[str, Sequence[Entry]], ...] = (("about", profile), ("events", events), ("facts", facts))
        for title, members in grouped:
            if members:
                listed = [_shown(entry, order.owner, number + place) for place, entry in enumerate(members, 1)]
                groups.append({"title": title, "entries": listed})
                number += len(members)
        text = phrase("known.list", order.owner.language, groups=groups, count=number, private=order.chat.private)
        return Reply(text, private=True)

    async def _remember(self, order: Order) -> Reply:
        language = order.owner.language
        if not order.words:
            return Reply(phrase("remember.usage", language))
        decision = await self._memory.remember(order.owner, order.chat, order.message, order.words)
        if decision.entry is None:
            return Reply(phrase("remember.refused", language, reason=decision.reason), private=True)
        named = may_be_named(decision.entry, order.chat)
        closed = await self._memory.entries(order.owner, decision.closed)
        text = phrase(
            "remember.kept",
            language,
            # What was said in private before stays there: a group hears back only what was just said to it.
            text=decision.entry.text if named else order.words,
            known=named and decision.action == "confirmed",
            replaced=[e.text for e in closed.values() if not isinstance(e, Message) and may_be_named(e, order.chat)],
        )
        return Reply(text, private=True)

    async def _forget(self, order: Order) -> Reply:
        now, language = self._clock(), order.owner.language
        words = unicodedata.normalize("NFKC", order.words).strip()
        offer = await self._memory.pending_forgetting(order.owner, order.chat, now=now)
        choice = words.casefold()
        if not words or (offer is None and (choice in _YES or choice in _NO)):
            return Reply(phrase("forget.usage", language), private=True)
        if offer is not None and (choice in _YES or choice in _NO or _numbers(words)):
            return await self._chosen(order.owner, offer, choice, now=now)
        return await self._offer(order, order.words, now=now)

    async def _offer(self, order: Order, words: str, *, now: datetime) -> Reply:
        owner = order.owner
        plan = await self._memory.plan_forgetting(owner, order.chat, words, now=now)
        if plan is None:
            text = phrase("forget.none", owner.language, words=_excerpt(words), private=order.chat.private)
            return Reply(text, private=True)
        listed = [_shown(entry, owner, number) for number, entry in enumerate(plan.entries, 1)]
        text = phrase(
            "forget.offer",
            owner.language,
            entries=listed,
            messages=sum(line.role == "user" for line in plan.lines),
            replies=sum(line.role == "bot" for line in plan.lines),
            private=order.chat.private,
        )
        single = len(listed) == 1
        labels = {
            "all": phrase("forget.button_all", owner.language, single=single),
            "no": phrase("forget.button_no", owner.language),
        }
        numbers = [] if single else [str(number) for number in range(1, min(len(listed), MOST_BUTTONS) + 1)]
        choices = (*numbers, *labels)
        buttons = [Button(f"forget:{plan.offer}:{choice}", labels.get(choice, choice)) for choice in choices]
        return Reply(text, tuple(buttons), private=True)

    async def _chosen(self, owner: Account, offer: int, choice: str, *, now: datetime) -> Reply:
        if choice in _NO:
            kept = await self._memory.keep(owner, offer, now=now)
            return Reply(phrase("forget.kept" if kept else "forget.stale", owner.language), private=True)
        picks = None if choice in _YES else _numbers(choice)
        try:
            deletion = await self._memory.forget(owner, offer, picks=picks, now=now)
        except PickError as error:
            return Reply(phrase("forget.no_such_number", owner.language, count=error.count), private=True)
        if deletion is None:
            return Reply(phrase("forget.stale", owner.language), private=True)
        at = deletion.erase_at.astimezone(ZoneInfo(owner.zone))
        text = phrase("forget.hidden", owner.language, at=f"{at:%H:%M}", **deletion.counts)
        undo = Button(f"undo:{deletion.id}", phrase("forget.button_undo", owner.language))
        return Reply(text, (undo,), private=True)

    async def _undo(self, order: Order) -> Reply:
        return await self._undone(order.owner, None, now=self._clock(), asked_at=order.message.at)

    async def _undone(
        self, owner: Account, deletion: int | None, *, now: datetime, asked_at: datetime | None = None
    ) -> Reply:
        undone = await self._memory.undo(owner, deletion, now=now, asked_at=asked_at)
        if undone is None:
            return Reply(phrase("undo.nothing", owner.language), private=True)
        return Reply(phrase("undo.done", owner.language, **undone.counts), private=True)

    async def _why(self, order: Order) -> Reply:
        owner = order.owner
        trace = await self._memory.why(owner, order.chat)
        recalled = [] if trace is None else trace.data["recalled"]
        found = await self._memory.entries(owner, [unit["id"] for unit in recalled])
        used = [
            _reason(found[unit["id"]], owner, order.chat) | {"band": unit["band"], "score": f"{unit['score']:.2f}"}
            for unit in recalled
            if unit["id"] in found
        ]
        if not used:
            return Reply(phrase("why.nothing", owner.language), private=True)
        gone = len(recalled) - len(used)
        left_out = len(trace.data["left_out"]) if trace is not None else 0
        return Reply(phrase("why.list", owner.language, used=used, gone=gone, left_out=left_out), private=True)

    async def _new(self, order: Order) -> Reply:
        await self._memory.new_session(order.owner, order.chat, now=self._clock())
        return Reply(phrase("new", order.owner.language))

    async def _cancel(self, order: Order) -> Reply:
        """Stopping is the conversation's work, which tells by the words whether there was anything to stop."""
        return Reply(phrase("cancel.stopped" if order.words else "cancel.nothing", order.owner.language))

    async def _language(self, order: Order) -> Reply:
        owner = order.owner
        if (choice := _LANGUAGE_WORDS.get(order.words.casefold())) is not None:
            return await self._spoken(owner, choice)
        choices = ("zh", "en", "auto")
        buttons = [Button(f"language:{name}", phrase(f"language.button_{name}", owner.language)) for name in choices]
        text = phrase("language.now", owner.language, fixed=owner.language_fixed, unknown=bool(order.words))
        return Reply(text, tuple(buttons), private=True)

    async def _spoken(self, owner: Account, choice: str) -> Reply:
        """Answer in a language from now on, or again in the one they write."""
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
            unknown=_excerpt(words) if unknown else "",
        )
        return Reply(text, private=True)


@dataclass(frozen=True, slots=True)
class Shown:
    """A memory as a list shows it; ``when`` is the day of an event, ``since`` the day it was said, both ISO."""

    number: int
    label: str
    text: str
    subject: str
    when: str
    since: str
    inferred: bool
    unsure: bool


def _shown(entry: Entry, owner: Account, number: int) -> Shown:
    zone = ZoneInfo(owner.zone)
    label, text = "", entry.text
    # A label says nothing about which thing is the favourite; the whole line does.
    if isinstance(entry, ProfileLine) and ":" not in entry.attribute:
        label, text = attribute_label(entry.attribute, owner.language), entry.value
    return Shown(
        number=number,
        label=label,
        text=text,
        subject="" if entry.subject == SELF else entry.subject,
        when=entry.span.start.astimezone(zone).date().isoformat() if isinstance(entry, Event) else "",
        since=entry.provenance.said_at.astimezone(zone).date().isoformat(),
        inferred=entry.provenance.source == "summary",
        unsure=entry.provenance.unsure,
    )


def _reason(unit: Entry | Message, owner: Account, chat: Chat) -> dict[str, object]:
    """A recalled memory and the words it rests on; in a group without them, for they may come from elsewhere."""
    zone = ZoneInfo(owner.zone)
    if isinstance(unit, Message):
        return {
            "speaker": "" if unit.speaker == owner.name else unit.speaker,
            "text": _excerpt(unit.text),
            "date": unit.at.astimezone(zone).date().isoformat(),
            "quote": "",
        }
    citation = unit.provenance.citations[-1]
    return {
        "speaker": "",
        "text": _excerpt(unit.text),
        "date": citation.at.astimezone(zone).date().isoformat(),
        "quote": _excerpt(citation.quote) if chat.private else "",
    }


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else f"{line[: EXCERPT - 1]}…"


def _numbers(words: str) -> Sequence[int]:
    """Numbers such as "1 3" or "1,3"; nothing when there is anything else, or a number no list would have."""
    parts = words.replace(",", " ").replace("，", " ").replace("、", " ").split()
    return [int(part) for part in parts] if all(p.isdecimal() and len(p) <= LONGEST_NUMBER for p in parts) else []
