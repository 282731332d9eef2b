"""What the program itself says behind an answer: that it is not remembered, once what is, and whether it may be."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from bot.budgets import Budgets
from bot.commands.consenting import asking
from bot.message import Button, DeliveryError, Reply, Sink
from bot.turn import Said
from config.locales import phrase
from config.settings import Settings
from memory import DatabaseError, Memory
from memory.model import Account
from memory.ports import Clock

log = logging.getLogger(__name__)


class Postscripts:
    """Writes them. No failure of it eats an answer."""

    def __init__(self, memory: Memory, clock: Clock, settings: Settings, budgets: Budgets) -> None:
        self._memory = memory
        self._budgets = budgets
        self._clock = clock
        self._asks = settings.privacy.sensitive == "ask"
        self._notices = settings.privacy.first_notice
        self._told: set[int] = set()
        """Accounts that are known to have been told; others are looked up."""

    async def behind(self, turn: Sequence[Said]) -> str:
        """What stands behind the answer to a turn; "" almost always."""
        last = turn[-1]
        return "\n\n".join(filter(None, (await self._mark(turn), await self._notice(last), await self._near(last))))

    async def question(self, said: Said) -> tuple[str, tuple[Button, ...]]:
        """What the person is asked behind the answer, with its buttons; in a private chat alone, mostly nothing."""
        if not self._asks or not said.chat.private:
            return "", ()
        try:
            question = await self._memory.consenting.question(said.owner, now=self._clock())
        except DatabaseError:
            log.exception("nobody was asked whether a matter may be kept")
            return "", ()
        return ("", ()) if question is None else asking(question, said.owner)

    async def delivered(self, said: Said) -> None:
        """The answer to a message has arrived, and with it a notice it carried."""
        if not self._untold(said.owner) or not said.chat.private:
            return
        try:
            await self._memory.disclosures.delivered(said.owner, said.message.id)
        except DatabaseError:
            log.exception("a notice that was given may be given again")

    async def refused(self, said: Said) -> None:
        """The answer to a message did not arrive, for sure, and will not."""
        try:
            await self._memory.disclosures.refused(said.owner, said.message.id)
        except DatabaseError:
            log.exception("a notice that did not arrive counts as given")

    async def introduced(self, owner: Account) -> None:
        """A person was told by what they asked for (``/start``, ``/privacy``)."""
        if self._untold(owner):
            await self._say_told(owner)

    async def aside(self, said: Said, sink: Sink) -> None:
        """Tell somebody new in a group, behind the answer: privately, or in one line where that cannot be.

        Counted before it is sent, for in a group it must never come twice.
        """
        owner = said.owner
        if said.chat.private or not self._untold(owner):
            return
        try:
            disclosures = self._memory.disclosures
            if await disclosures.told(owner) or not await disclosures.claim(owner, said.message.id):
                self._told.add(owner.no)
                return
            await self._say_told(owner)
            text, short = phrase("notice.first", owner.language), phrase("notice.short", owner.language)
            await sink.send(Reply(text, private=True, closed=short))
        except DatabaseError:
            log.exception("nobody was told what is remembered")
        except DeliveryError as error:
            log.info("the first notice did not arrive: %s", error)

    async def _mark(self, turn: Sequence[Said]) -> str:
        aside = [said.message for said in turn if said.message.fleeting]
        if not aside:
            return ""
        owner, chat = turn[-1].owner, turn[-1].chat
        if all(message.held for message in aside):
            return phrase("consent.mark", owner.language)
        try:
            if await self._memory.pauses.since(owner, chat) is not None:
                return phrase("pause.mark", owner.language, paused=True)
            words = "\n".join(message.text for message in aside if not message.held)
            if await self._memory.consenting.refuses(owner, words, now=self._clock()):
                return phrase("consent.refused", owner.language)
        except DatabaseError:
            log.exception("why words are not remembered was not read")
        return phrase("pause.mark", owner.language, paused=False)

    async def _near(self, said: Said) -> str:
        if said.command is not None:
            return ""
        try:
            return await self._budgets.notice(said.owner, said.chat)
        except DatabaseError:
            log.exception("nobody was told that a budget nears its end")
            return ""

    async def _notice(self, said: Said) -> str:
        if not said.chat.private or not self._untold(said.owner):
            return ""
        try:
            carries = await self._memory.disclosures.claim(said.owner, said.message.id)
            if not carries and await self._memory.disclosures.told(said.owner):
                self._told.add(said.owner.no)
        except DatabaseError:
            log.exception("nobody was told what is remembered")
            return ""
        return phrase("notice.first", said.owner.language) if carries else ""

    def _untold(self, owner: Account) -> bool:
        return self._notices and owner.no not in self._told

    async def _say_told(self, owner: Account) -> None:
        try:
            await self._memory.disclosures.delivered(owner)
            self._told.add(owner.no)
        except DatabaseError:
            log.exception("a notice that was given may be given again")
