"""What may be kept of what is said: not in a pause, not off the record, and of sensitive matters as far as agreed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from config.settings import PrivacySettings
from memory.consents import Consent, Consents
from memory.journal import Line
from memory.model import Account, Candidate, Chat, Message
from memory.pauses import Pauses
from memory.sensitive import MATTERS, Matter, joined, matters, matters_of, parted

Standing = Literal["keep", "ask", "skip"]


class Reserve:
    """Decides it, for lines that are journaled and for memories that ask to be written."""

    def __init__(self, pauses: Pauses, consents: Consents, settings: PrivacySettings) -> None:
        self._pauses = pauses
        self._consents = consents
        self._mode = settings.sensitive
        self._patience = timedelta(days=settings.ask_days)

    async def marked(self, owner: Account, chat: Chat, line: Line) -> Line:
        """A line that is to be written as it may be kept: as it is, fleeting, or held until its owner has agreed."""
        if line.fleeting or not line.text:
            return line
        if await self._pauses.since(owner, chat) is not None:
            return replace(line, fleeting=True)
        if line.role == "bot":
            return line
        refused, asking = await self._apart(owner, lambda: matters(line.text), now=line.at)
        if refused:
            return replace(line, fleeting=True)
        return replace(line, fleeting=True, held=joined(asking)) if asking else line

    def answering(self, line: Line, said: Sequence[Message]) -> Line:
        """A reply as it may be kept: as what it answers, and as what of the talk it was given with (``line``)."""
        if (line.fleeting and not line.held) or any(one.fleeting and not one.held for one in said):
            return replace(line, fleeting=True, held="")
        held = joined(parted(line.held).union(*(parted(one.held) for one in said)))
        return replace(line, fleeting=bool(held), held=held)

    async def verdict(
        self, owner: Account, candidate: Candidate, *, asked_for: bool, now: datetime
    ) -> tuple[Standing, Collection[Matter]]:
        """Whether a memory may be written, and the matters for which it may not, or not yet.

        What the owner ``asked_for`` in so many words needs no other consent; where the operator keeps none of it,
        it is not kept all the same.
        """
        if asked_for and self._mode != "skip":
            return "keep", ()
        refused, asking = await self._apart(owner, lambda: matters_of(candidate), now=now)
        if refused:
            return "skip", refused
        if asking and await self._consents.agreed(owner, [citation.message for citation in candidate.citations]):
            return "keep", ()
        return ("ask", asking) if asking else ("keep", ())

    async def refuses(self, owner: Account, text: str, *, now: datetime) -> bool:
        """Whether a text touches a matter of which nothing may be kept."""
        refused, _ = await self._apart(owner, lambda: matters(text), now=now)
        return bool(refused)

    async def hold(self, owner: Account, lines: Iterable[int], found: Collection[Matter]) -> None:
        """Have lines wait for the owner to agree to have these matters kept."""
        await self._consents.hold(owner, lines, found)

    async def standings(self, owner: Account, *, now: datetime) -> dict[Matter, Standing]:
        """How each matter stands with the owner."""
        known = await self._consents.all(owner)
        return {matter: self._standing(known.get(matter), now) for matter in MATTERS}

    async def _apart(
        self, owner: Account, found: Callable[[], frozenset[Matter]], *, now: datetime
    ) -> tuple[set[Matter], set[Matter]]:
        """The matters ``found`` of which nothing may be kept, and those for which the owner is to be asked first."""
        standings = await self.standings(owner, now=now)
        if set(standings.values()) == {"keep"}:
            return set(), set()
        touched = found()
        refused = {matter for matter in touched if standings[matter] == "skip"}
        return refused, {matter for matter in touched if standings[matter] == "ask"}

    def _standing(self, consent: Consent | None, now: datetime) -> Standing:
        if consent is not None and consent.answer is False:
            return "skip"
        if self._mode != "ask":
            return self._mode
        if consent is None:
            return "ask"
        if consent.answer:
            return "keep"
        # Asked, and not answered for so long: that is no consent.
        return "ask" if now - consent.at < self._patience else "skip"
