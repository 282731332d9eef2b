"""Who may talk: those who run the bot let people and groups in and out, and see who is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from bot.commands.order import Order, Pressed, Run
from bot.doorkeeper import Doorkeeper, name_of, room_name
from bot.message import Reply
from bot.zone import zone_of
from config.locales import phrase
from config.settings import PLACE, Settings
from memory import Memory
from memory.model import Account
from memory.ports import Clock

LONGEST_CODE: Final = 40
"""Characters of what may be a code, with whatever people put between its signs."""
MOST_LISTED: Final = 50
"""People or groups that a list shows; the terminal shows all."""


class Admitting:
    """``/approve``, ``/deny``, ``/members``, for admins alone."""

    def __init__(self, memory: Memory, clock: Clock, settings: Settings, door: Doorkeeper) -> None:
        self._memory = memory
        self._clock = clock
        self._settings = settings
        self._door = door

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"approve": self._approve, "deny": self._deny, "members": self._members}

    async def press(self, pressed: Pressed) -> Reply | None:
        """It has no buttons."""
        del pressed
        return None

    async def _approve(self, order: Order) -> Reply:
        """A code or a number in private; in a group, without a word, everybody in it."""
        if (refusal := await self._refused(order, "approve")) is not None:
            return refusal
        access, now, zone = self._memory.access, self._clock(), zone_of(self._settings)
        language, typed = order.owner.language, order.words[:LONGEST_CODE]
        if not order.chat.private:
            news = await access.allow(room_name(order.chat), "group", zone=zone, now=now)
            return Reply(phrase("access.group_in", language, news=news))
        if PLACE.fullmatch(typed):
            news = await access.allow(typed, "group" if ":-" in typed else "person", zone=zone, now=now)
            outcome, name = ("done" if news else "known"), typed
        else:
            ruling = await access.approve(typed, by=name_of(order.owner), zone=zone, now=now)
            outcome, name = ruling.outcome, ruling.name
        return Reply(phrase("access.approved", language, outcome=outcome, name=name), private=True)

    async def _deny(self, order: Order) -> Reply:
        """A code that was asked with, or a number that is in; in a group, without a word, everybody in it."""
        if (refusal := await self._refused(order, "deny")) is not None:
            return refusal
        access, language, typed = self._memory.access, order.owner.language, order.words[:LONGEST_CODE]
        if not order.chat.private:
            name = room_name(order.chat)
            outcome = await self._put_out(order.owner, name)
            return Reply(phrase("access.group_out", language, outcome=outcome))
        if PLACE.fullmatch(typed):
            outcome, name = await self._put_out(order.owner, typed), typed
        else:
            ruling = await access.refuse(typed, by=name_of(order.owner), now=self._clock())
            outcome, name = ("refused" if ruling.outcome == "done" else ruling.outcome), ruling.name
        return Reply(phrase("access.denied", language, outcome=outcome, name=name), private=True)

    async def _put_out(self, owner: Account, name: str) -> str:
        """Let somebody in no more; what came of it. An admin, oneself too, is put out at the terminal alone."""
        access = self._settings.access
        if access.open == "everybody":
            return "open"
        if name == name_of(owner) or (await self._memory.access.standing(name, ())).admin:
            return "admin"
        gone = await self._memory.access.remove(name)
        if name in (*access.admins, *access.allow, *access.groups):
            return "settings"
        return "out" if gone else "unknown"

    async def _members(self, order: Order) -> Reply:
        if (refusal := await self._refused(order)) is not None:
            return refusal
        owner, access = order.owner, self._settings.access
        everyone = await self._memory.access.everyone()
        people = [await self._person(each.name, admin=each.admin) for each in everyone if each.kind == "person"]
        named = {person["name"] for person in people}
        people += [
            await self._person(name, admin=name in access.admins)
            for name in dict.fromkeys((*access.admins, *access.allow))
            if name not in named
        ]
        groups = list(dict.fromkeys((*(each.name for each in everyone if each.kind == "group"), *access.groups)))
        asking = [
            {"name": each.name, "until": _shown(each.expires_at, owner)}
            for each in await self._memory.access.asking(now=self._clock())
        ]
        text = phrase(
            "access.members",
            owner.language,
            people=people[:MOST_LISTED],
            groups=groups[:MOST_LISTED],
            asking=asking,
            more=max(0, len(people) - MOST_LISTED) + max(0, len(groups) - MOST_LISTED),
            everybody=access.open == "everybody",
        )
        return Reply(text, private=True)

    async def _person(self, name: str, *, admin: bool) -> dict[str, object]:
        platform, _, number = name.partition(":")
        known = await self._memory.known_account(platform, number)
        return {"name": name, "called": "" if known is None else known.name, "admin": admin}

    async def _refused(self, order: Order, way: str = "") -> Reply | None:
        """Why a command is not obeyed: it is no admin's, or says too much for a group or too little in private."""
        language = order.owner.language
        if not await self._door.is_admin(order.owner):
            return Reply(phrase("access.not_admin", language), private=True)
        if way and order.chat.private and not order.words:
            return Reply(phrase("access.usage", language, way=way), private=True)
        if way and not order.chat.private and order.words:
            return Reply(phrase("access.in_private", language, way=way), private=True)
        return None


def _shown(at: datetime, owner: Account) -> str:
    return f"{at.astimezone(ZoneInfo(owner.zone)):%Y-%m-%d %H:%M}"
