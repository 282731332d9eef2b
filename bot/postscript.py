"""What the program itself says behind an answer: that it is not remembered, and once what is."""

from __future__ import annotations

import logging

from bot.message import DeliveryError, Reply, Sink
from bot.turn import Said
from config.locales import phrase
from config.settings import Settings
from memory import DatabaseError, Memory
from memory.model import Account

log = logging.getLogger(__name__)


class Postscripts:
    """Writes them. No failure of it eats an answer."""

    def __init__(self, memory: Memory, settings: Settings) -> None:
        self._memory = memory
        self._notices = settings.privacy.first_notice
        self._told: set[int] = set()
        """Accounts that are known to have been told; others are looked up."""

    async def behind(self, said: Said, *, fleeting: bool) -> str:
        """What stands behind the answer to a message; "" almost always."""
        return "\n\n".join(filter(None, (await self._mark(said, fleeting=fleeting), await self._notice(said))))

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

    async def _mark(self, said: Said, *, fleeting: bool) -> str:
        if not fleeting:
            return ""
        paused = False
        try:
            paused = await self._memory.pauses.since(said.owner, said.chat) is not None
        except DatabaseError:
            log.exception("whether learning is paused was not read")
        return phrase("pause.mark", said.owner.language, paused=paused)

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
