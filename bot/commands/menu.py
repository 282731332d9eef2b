"""The menu of all commands, and the way from a message or a button to what obeys it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from bot.budgets import Budgets
from bot.commands.admitting import Admitting
from bot.commands.choosing import Choosing
from bot.commands.consenting import Consenting
from bot.commands.disclosing import Disclosing
from bot.commands.disputing import Disputing
from bot.commands.doubting import Doubting, Question
from bot.commands.explaining import Explaining
from bot.commands.folding import Folding
from bot.commands.forgetting import Forgetting
from bot.commands.linking import Linking
from bot.commands.order import EXCERPT, Group, Order, Pressed, Run
from bot.commands.pausing import Pausing
from bot.commands.remembering import Remembering
from bot.commands.seeing import Seeing
from bot.commands.sharing import Sharing
from bot.commands.spending import Spending
from bot.commands.talking import Talking
from bot.doorkeeper import Doorkeeper
from bot.message import CommandSpec, Incoming, Reply
from config.locales import phrase
from config.settings import Settings
from memory import Memory, wants_forgetting
from memory.model import Account, Chat, Decision
from memory.ports import Clock

NAMES: Final = (
    "start",
    "help",
    "whatdoyouknow",
    "remember",
    "forget",
    "undo",
    "share",
    "unshare",
    "link",
    "unlink",
    "why",
    "pause",
    "resume",
    "offrecord",
    "privacy",
    "export",
    "new",
    "cancel",
    "retry",
    "language",
    "timezone",
    "usage",
    "approve",
    "deny",
    "members",
)
ADMIN_NAMES: Final = frozenset({"approve", "deny", "members"})
"""Commands of those who run the bot; nobody else is shown them."""
OWN_NAMES: Final = frozenset({
    "whatdoyouknow", "forget", "undo", "unshare", "unlink", "export", "privacy", "why", "language",
})  # fmt: skip
"""Commands that show, hand over, restrict or erase what is kept of somebody: they work for who is let in no more."""
OWN_BUTTONS: Final = frozenset({"forget", "undo", "row", "known", "unshare", "language"})
"""Beginnings of the buttons that do so."""
PRIVATE_NAMES: Final = frozenset({"start", "link", "unlink"})
"""Commands that make sense in a private chat alone."""
LANGUAGES: Final = ("en", "zh", "zh-TW")

_COMMAND: Final = re.compile(r"[/／](?P<name>[a-z][a-z0-9_]*)(?:@\w+)?(?:\s+(?P<words>.*))?", re.DOTALL | re.IGNORECASE)


def specs() -> tuple[CommandSpec, ...]:
    """The menu, for platforms that show one to everybody."""
    made = []
    for name in _names(admin=False):
        described = {language: phrase(f"command.{name}", language) for language in LANGUAGES}
        made.append(CommandSpec(name, described, private=name in PRIVATE_NAMES))
    return tuple(made)


def _names(*, admin: bool) -> list[str]:
    return [name for name in NAMES if admin or name not in ADMIN_NAMES]


class Commands:
    """Runs commands and button presses. Each returns the reply; a wrong one gets a plain word about the right one."""

    def __init__(self, memory: Memory, clock: Clock, settings: Settings) -> None:
        consenting = Consenting(memory)
        self._choosing = Choosing(memory, clock)
        self._disputing = Disputing(memory, clock)
        self._doubting = Doubting(memory)
        folding = Folding(memory, clock)
        self._door = Doorkeeper(memory, settings.access, clock)
        self._groups: tuple[Group, ...] = (
            Talking(memory, clock, self._listed),
            Seeing(memory, clock),
            Explaining(memory, clock, self._door),
            self._disputing,
            self._doubting,
            Remembering(memory, clock),
            Pausing(memory),
            consenting,
            Disclosing(memory, clock, settings, consenting),
            Forgetting(memory, clock, folding),
            folding,
            Sharing(memory, clock),
            Linking(memory, clock),
            self._choosing,
            Spending(memory, clock, settings, Budgets(memory, settings.budget, self._door, clock)),
            Admitting(memory, clock, settings, self._door),
        )
        self._run: dict[str, Run] = {name: run for group in self._groups for name, run in group.runs.items()}

    def read(self, text: str) -> tuple[str, str] | None:
        """A message as (command, words), or None for ordinary talk. "Please forget my number" is /forget, too."""
        if given := _COMMAND.fullmatch(text.strip()):
            return given["name"].casefold(), (given["words"] or "").strip()
        words = wants_forgetting(text)
        return None if words is None else ("forget", words)

    async def disputed(self, owner: Account, chat: Chat, incoming: Incoming) -> tuple[str, str] | None:
        """A message as a command if all it says is that a memory that was used is wrong; None for ordinary talk."""
        return await self._disputing.read(owner, chat, incoming)

    def knows(self, name: str) -> bool:
        """Whether there is such a command."""
        return name in self._run

    def is_own(self, name: str) -> bool:
        """Whether a command only shows, hands over, restricts or erases what is kept of whoever gives it."""
        return name in OWN_NAMES

    def is_own_button(self, button: str) -> bool:
        """The same of a button."""
        return button.partition(":")[0] in OWN_BUTTONS

    async def _listed(self, owner: Account) -> list[str]:
        """The commands that somebody may give."""
        return _names(admin=await self._door.is_admin(owner))

    async def run(self, order: Order) -> Reply:
        """Obey a command."""
        run = self._run.get(order.name)
        if run is None:
            return Reply(phrase("command.unknown", order.owner.language, name=order.name[:EXCERPT]))
        return await run(order)

    async def press(self, pressed: Pressed) -> Reply:
        """Obey a button. One that is not the presser's own, is used up or too old changes nothing and says so."""
        for group in self._groups:
            if (reply := await group.press(pressed)) is not None:
                return reply
        return Reply(phrase("button.stale", pressed.owner.language), private=True)

    async def zone_question(self, owner: Account, chat: Chat, learned: Sequence[Decision]) -> str:
        """The question for a person's zone behind an answer, "" almost always."""
        return await self._choosing.zone_question(owner, chat, learned)

    async def doubt_question(self, owner: Account, chat: Chat, *, now: datetime) -> Question | None:
        """The question which of two memories holds, behind an answer; None almost always."""
        return await self._doubting.question(owner, chat, now=now)
