"""What people and groups may use: so much in a day of UTC, and so fast. Refused politely, never for what is their own.

Admins and the terminal have no budget of a day: the bill is theirs. What they use in a group counts for the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

from bot.doorkeeper import TERMINAL, Doorkeeper
from bot.language import language_of
from bot.message import Incoming, Press
from bot.rates import Rates
from bot.turn import TurnedAway
from config.locales import phrase
from config.settings import BudgetSettings
from memory import Memory, Spent, UsageKind
from memory.model import Account, Chat
from memory.ports import Clock

PRICED: Final[tuple[UsageKind, ...]] = ("reply", "distil", "rewrite")
"""What the chat model does; its tokens count."""
NEAR: Final = 0.8
"""Share of a budget after which its end is announced."""
TOLD_EVERY: Final = timedelta(minutes=10)
"""For which nothing more is said to somebody whose budget is used up."""

Whose = Literal["person", "group"]


@dataclass(frozen=True, slots=True)
class Use:
    """How far a budget of today is used: of ``whose``, in "messages" or "tokens"."""

    whose: Whose
    unit: Literal["messages", "tokens"]
    used: int
    most: int

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.used >= self.most

    @property
    def is_near(self) -> bool:
        """Whether the end is near."""
        return self.used >= self.most * NEAR

    @property
    def shown(self) -> dict[str, object]:
        """The same for a phrase."""
        return {"whose": self.whose, "unit": self.unit, "used": f"{self.used:,}", "most": f"{self.most:,}"}


class Budgets:
    """Looks at what was used; keeps no count of its own but that of the last minute."""

    def __init__(self, memory: Memory, budget: BudgetSettings, door: Doorkeeper, clock: Clock) -> None:
        self._memory = memory
        self._budget = budget
        self._door = door
        self._clock = clock
        self._people = Rates(budget.messages_per_person_a_minute)
        self._chats = Rates(budget.messages_per_chat_a_minute)
        self._told: dict[tuple[int, int], datetime] = {}

    def pace(self, update: Incoming | Press, *, command: bool) -> None:
        """Take one more update of somebody. Raises TurnedAway when they, or the whole chat, write too fast.

        Commands and buttons are counted apart from talk: however much somebody talks, what is their own to see and to
        erase is obeyed.
        """
        chat, now = update.chat, self._clock()
        if chat.platform == TERMINAL:
            return
        paces = [self._people.take((chat.platform, update.user_id, command), now=now)]
        if paces == ["in"]:
            paces.append(self._chats.take((chat, command), now=now))
        if "first" in paces and isinstance(update, Incoming):
            raise TurnedAway(phrase("budget.too_fast", language_of(update), everybody=paces[0] == "in"))
        if paces != ["in", "in"]:
            raise TurnedAway

    async def admit(self, owner: Account, chat: Chat) -> None:
        """Let talk of somebody in. Raises TurnedAway when a budget of today is used up."""
        now = self._clock()
        spent = [use for use in await self.uses(owner, chat, now=now) if use.is_spent]
        if not spent:
            return
        self._told = {who: at for who, at in self._told.items() if timedelta(0) <= now - at < TOLD_EVERY}
        if (owner.no, chat.no) in self._told:
            raise TurnedAway
        self._told[owner.no, chat.no] = now
        text = phrase("budget.spent", owner.language, **spent[0].shown, at=_midnight(owner, chat, now))
        raise TurnedAway(text)

    async def allows(self, owner: Account, chat: Chat) -> bool:
        """Whether the budgets of today have anything left for somebody."""
        return not any(use.is_spent for use in await self.uses(owner, chat, now=self._clock()))

    async def notice(self, owner: Account, chat: Chat) -> str:
        """What is said behind an answer when a budget nears its end, once a day; "" almost always.

        A person's own is their concern alone, so that it is told in private.
        """
        now = self._clock()
        whose: Whose = "person" if chat.private else "group"
        near = [use for use in await self.uses(owner, chat, now=now) if use.whose == whose and use.is_near]
        if not near or not await self._memory.usage.tell(owner, chat, now=now):
            return ""
        furthest = max(near, key=lambda use: use.used / use.most)
        return phrase("budget.near", owner.language, **furthest.shown, at=_midnight(owner, chat, now))

    async def uses(self, owner: Account, chat: Chat, *, now: datetime) -> list[Use]:
        """How far the budgets are used that somebody is held to in a chat; nothing where there is no limit."""
        return [*await self._of_person(owner, now), *await self._of_group(owner, chat, now)]

    async def _of_person(self, owner: Account, now: datetime) -> list[Use]:
        limits = (self._budget.messages_per_person_a_day, self._budget.tokens_per_person_a_day)
        if not any(limits) or await self._door.is_admin(owner):
            return []
        accounts = (owner, *await self._memory.linking.linked(owner))
        return _uses("person", limits, [await self._memory.usage.spent(each, now=now) for each in accounts])

    async def _of_group(self, owner: Account, chat: Chat, now: datetime) -> list[Use]:
        limits = (self._budget.messages_per_group_a_day, self._budget.tokens_per_group_a_day)
        if chat.private or not any(limits) or await self._door.is_admin(owner):
            return []
        return _uses("group", limits, [await self._memory.usage.spent_in(owner, chat, now=now)])


def _uses(whose: Whose, limits: tuple[int, int], spent: list[dict[UsageKind, Spent]]) -> list[Use]:
    found = []
    messages, tokens = limits
    if messages:
        found.append(Use(whose, "messages", sum(map(_messages, spent)), messages))
    if tokens:
        found.append(Use(whose, "tokens", sum(map(_tokens, spent)), tokens))
    return found


def _messages(spent: Mapping[UsageKind, Spent]) -> int:
    """An answer that was asked for once more (/retry, an edit) counts as the message it would have been."""
    return max(spent.get("message", Spent()).times, spent.get("reply", Spent()).times)


def _tokens(spent: Mapping[UsageKind, Spent]) -> int:
    return sum(spent[kind].tokens_in + spent[kind].tokens_out for kind in PRICED if kind in spent)


def _midnight(owner: Account, chat: Chat, now: datetime) -> str:
    """When the next day of UTC begins, by the owner's clock; a group is not told which that is."""
    begins = (now.astimezone(UTC) + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    if not chat.private:
        return f"{begins:%H:%M} UTC"
    return f"{begins.astimezone(ZoneInfo(owner.zone)):%H:%M} ({owner.zone})"
