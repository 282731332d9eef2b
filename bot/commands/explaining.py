"""``/why``: what an answer used and what spoke for it, in plain words; the whole trace for admins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from bot.commands.numbering import kept
from bot.commands.order import Order, Pressed, Run, excerpt
from bot.doorkeeper import Doorkeeper
from bot.message import Button, Reply
from config.locales import phrase
from memory import Explained, Fate, Memory, Reason
from memory.model import Account, Chat, Entry, Message
from memory.ports import Clock

FORGET: Final = "row"
"""Kind of the buttons that offer to forget one memory, by its id."""
MOST_BUTTONS: Final = 10
_FULL: Final = frozenset({"full", "all", "完整", "全部", "详细", "詳細"})


class Explaining:
    """``/why``."""

    def __init__(self, memory: Memory, clock: Clock, door: Doorkeeper) -> None:
        self._memory = memory
        self._clock = clock
        self._door = door

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"why": self._why}

    async def press(self, pressed: Pressed) -> Reply | None:
        """Its buttons offer to forget, which is not done here."""
        del pressed
        return None

    async def _why(self, order: Order) -> Reply:
        owner, language = order.owner, order.owner.language
        full = order.words.casefold() in _FULL
        if full and not await self._door.is_admin(owner):
            return Reply(phrase("why.not_admin", language), private=True)
        if order.replied_to is None:
            explained = await self._memory.reasons.latest(owner, order.chat)
        else:
            explained = await self._memory.reasons.of_message(owner, order.chat, order.replied_to)
        if explained is None:
            key = "why.nothing" if order.replied_to is None else "why.unknown"
            return Reply(phrase(key, language), private=True)
        if full:
            return await self._whole(owner, order.chat, explained)
        return await self._told(order, explained)

    async def _told(self, order: Order, explained: Explained) -> Reply:
        """What was used, each memory under a number, and a button for each to be forgotten."""
        owner, chat = order.owner, order.chat
        numbers: dict[int, int] = {}
        used = []
        listed = {reason.unit.id for reason in explained.reasons}
        for reason in explained.reasons:
            of_line = [entry for entry in reason.kept if entry.id not in listed]
            for entry in [*([] if isinstance(reason.unit, Message) else [reason.unit]), *of_line]:
                numbers.setdefault(entry.id, len(numbers) + 1)
            kept_of_it = [(numbers[entry.id], excerpt(entry.text)) for entry in of_line]
            used.append(_used(reason, owner, chat, numbers.get(reason.unit.id, 0)) | {"kept": kept_of_it})
        ids = list(numbers)
        text = phrase(
            "why.list",
            owner.language,
            used=used,
            gone=explained.gone,
            left_out=_counted(explained.left_out),
            latest=order.replied_to is None,
        )
        if ids:
            await kept(self._memory, owner, chat, [[("used", ids)]], now=self._clock())
        return Reply(text, forget_buttons(dict(enumerate(ids, 1)), owner), private=True)

    async def _whole(self, owner: Account, chat: Chat, explained: Explained) -> Reply:
        """Everything the trace holds, with what became of its memories since; the owner's own words alone."""
        data = explained.trace.data
        named = [reason.unit.id for reason in explained.reasons]
        left_out: Sequence[tuple[int, str]] = [(id_, why) for id_, why in data.get("left_out", ())]
        texts = await self._memory.reasons.texts(owner, chat, [id_ for id_, _ in left_out])
        fates = await self._memory.reasons.fates(owner, chat, [*named, *(id_ for id_, _ in left_out)])
        text = phrase(
            "why.full",
            owner.language,
            reply=explained.trace.reply or 0,
            at=_moment(explained.trace.at, owner),
            data=data,
            used=[{"id": r.unit.id, "text": r.unit.text, **_numbers(r.data)} for r in explained.reasons],
            gone=explained.gone,
            left_out=[{"id": id_, "why": why, "text": texts.get(id_, "")} for id_, why in left_out],
            fates=[_fate(fates[id_], owner) for id_ in sorted(fates)],
        )
        return Reply(text, private=True)


def forget_buttons(numbered: Mapping[int, int], owner: Account) -> tuple[Button, ...]:
    """A button for each of the first memories (ids by number), to have it forgotten; each account forgets its own."""
    return tuple(
        Button(f"{FORGET}:{id_}", phrase("why.button_forget", owner.language, number=number))
        for number, id_ in list(numbered.items())[:MOST_BUTTONS]
        if owner.owns(id_)
    )


def _used(reason: Reason, owner: Account, chat: Chat, number: int) -> dict[str, object]:
    """A recalled memory, what it rests on and what spoke for it; in a group without quotes, which may be private."""
    unit = reason.unit
    quote, at, speaker = "", unit.at if isinstance(unit, Message) else unit.provenance.said_at, ""
    if isinstance(unit, Message):
        speaker = "" if unit.speaker == owner.name else unit.speaker
    elif unit.provenance.citations:
        citation = unit.provenance.citations[-1]
        quote, at = excerpt(citation.quote) if chat.private else "", citation.at
    return {
        "number": number,
        "speaker": speaker,
        "text": excerpt(unit.text),
        "quote": "" if quote == excerpt(unit.text) else quote,
        "date": at.astimezone(ZoneInfo(owner.zone)).date().isoformat(),
        "whys": reason.whys,
        "words": reason.words,
        "sure": reason.sure,
    }


def _counted(left_out: Mapping[str, int]) -> list[dict[str, object]]:
    """How many were left out for which reason, those that say the same put together, the most first."""
    same = {"shown": "repeats", "answers what is gone": "closed"}
    counts: dict[str, int] = {}
    for why, count in left_out.items():
        name = same.get(why, why)
        counts[name] = counts.get(name, 0) + count
    return [{"why": why, "count": count} for why, count in sorted(counts.items(), key=lambda pair: -pair[1])]


def _numbers(data: Mapping[str, Any]) -> dict[str, object]:
    scores = data.get("scores", {})
    told = ", ".join(f"{name} {value}" for name, value in scores.items())
    return {"kind": data["kind"], "band": data["band"], "score": data["score"], "scores": told}


def _fate(fate: Fate, owner: Account) -> dict[str, object]:
    """What became of a memory, its days in its owner's zone."""
    entry = fate.entry
    known = entry.provenance
    return {
        "id": entry.id,
        "text": entry.text,
        "made": _moment(known.created_at, owner),
        "confirmations": known.confirmations,
        "ended": "" if known.retired_at is None else _moment(known.retired_at, owner),
        "reason": known.reason or "",
        "expires": "" if known.expires_at is None else _moment(known.expires_at, owner),
        "successor": None if fate.successor is None else _brief(fate.successor, owner),
        "replaced": [_brief(closed, owner) for closed in fate.replaced],
    }


def _brief(entry: Entry, owner: Account) -> dict[str, object]:
    ended = entry.provenance.retired_at
    return {
        "id": entry.id,
        "text": entry.text,
        "reason": entry.provenance.reason or "",
        "ended": "" if ended is None else _moment(ended, owner),
    }


def _moment(at: datetime, owner: Account) -> str:
    return f"{at.astimezone(ZoneInfo(owner.zone)):%Y-%m-%d %H:%M}"
