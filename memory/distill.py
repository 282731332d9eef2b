"""Distillation: one model call over an ended session, and nothing of its answer unproved.

The lines are leased, the model is asked with no transaction open, and what it proposes is verified, weighed and
written in one transaction together with the cursor. A crash anywhere repeats the call and doubles nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Literal

from config.settings import DistilSettings
from memory.answers import AnswerError, Item, parse
from memory.briefing import Briefing, brief
from memory.claims import read
from memory.db import Database
from memory.model import Account, Candidate, Decision, Entry
from memory.ports import Clock, Completer, CompleterUnavailable
from memory.reconcile import Gate, Shelf
from memory.sessions import Batch, Session, Sessions
from memory.verdicts import covers
from memory.verify import Drop, unbundle, verify

log = logging.getLogger(__name__)

LEASE_SECONDS: Final = 900.0
"""Longer than any call may take with its retries; after a crash the session waits as long."""
ANSWER_TOKENS: Final = 4_096
"""Room for about thirty items, or fewer behind a model that reasons first."""
PAUSE: Final = timedelta(minutes=2)
"""Before a second try; doubled for each one after it."""
FEWEST: Final = 4
"""Messages in the smallest batch a session is cut down to when its answers come back cut off."""

Outcome = Literal["nothing", "distilled", "unavailable", "retry", "set_aside"]


@dataclass(frozen=True, slots=True)
class DistilReport:
    """What became of one batch.

    ``reason`` tells why nothing was written ("cut": the answer broke off, "no_json": it was none ...); ``items``
    counts what the model proposed, ``drops`` what was refused, by reason; ``tokens`` is the cost of the call.
    """

    outcome: Outcome
    reason: str = ""
    messages: int = 0
    items: int = 0
    tokens: int = 0
    decisions: tuple[Decision, ...] = ()
    drops: Mapping[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """What happened, by name: the outcome, each action of the gate, each reason for a drop."""
        counts = Counter(str(decision.action) for decision in self.decisions if decision.action != "dropped")
        counts.update({f"dropped_{reason}": count for reason, count in self.drops.items()})
        return {self.outcome: 1, **counts}


class Distiller:
    """Distils sessions for one person at a time."""

    def __init__(
        self,
        db: Database,
        stores: Shelf,
        sessions: Sessions,
        *,
        completer: Completer,
        clock: Clock,
        settings: DistilSettings,
    ) -> None:
        self._db = db
        self._stores = stores
        self._sessions = sessions
        self._gate = Gate(db, stores)
        self._completer = completer
        self._clock = clock
        self._settings = settings

    async def distil(self, owner: Account, session: Session) -> DistilReport:
        """Distil the next batch of an ended session; "nothing" when another run holds it or nothing is left.

        The session stays due while lines are left or a try is to be repeated. Must not be called with a
        transaction open.
        """
        if self._db.inside:
            raise RuntimeError("no transaction may be open while the model is awaited")
        batch = await self._sessions.claim(
            owner, session.no, now=self._clock(), lease_seconds=LEASE_SECONDS, limit=self._limit(session)
        )
        if batch is None:
            return DistilReport("nothing")
        known = await self._known(owner, batch)
        briefing = brief(owner, batch, known, fault=_fault(session))
        if not briefing.citable:
            return await self._write(owner, batch, briefing, [], known=known)
        try:
            completion = await self._completer.complete(
                briefing.messages, schema=briefing.schema, max_tokens=ANSWER_TOKENS
            )
            items = parse(completion.text, cut=completion.cut)
        except (CompleterUnavailable, AnswerError) as error:
            return await self._put_back(owner, batch, error)
        return await self._write(owner, batch, briefing, items, known=known, tokens=completion.tokens)

    async def _write(
        self,
        owner: Account,
        batch: Batch,
        briefing: Briefing,
        items: list[Item],
        *,
        known: Sequence[Entry],
        tokens: int = 0,
    ) -> DistilReport:
        drops: Counter[str] = Counter()
        candidates: list[Candidate] = []
        for claim in (single for item in read(items) for single in unbundle(item)):
            proved = verify(claim, briefing.evidence)
            if isinstance(proved, Drop):
                drops[proved.value] += 1
            else:
                candidates.append(proved)
        async with self._db.transaction():
            if await self._forgotten(owner, batch, known):
                now = self._clock()
                await self._sessions.fail(owner, batch.session, reason="forgotten", retry_at=now, counts=False)
                return DistilReport("retry", "forgotten", messages=len(batch.messages))
            # Asked again: a group may have been joined with another while the model was awaited.
            audience = (await self._sessions.chat(owner, batch.session)).audience
            decisions = await self._gate.admit(owner, candidates, audience=audience, now=self._clock())
            covered = [message.id for message in briefing.evidence.lines.values()]
            await self._sessions.finish(owner, batch.session, upto=briefing.upto, covered=covered)
        drops.update(decision.reason for decision in decisions if decision.action == "dropped")
        log.info("session %d: %d items proposed, dropped %s", batch.session, len(items), dict(drops))
        return DistilReport(
            "distilled",
            messages=len(briefing.evidence.lines),
            items=len(items),
            tokens=tokens,
            decisions=tuple(decisions),
            drops=dict(drops),
        )

    async def _forgotten(self, owner: Account, batch: Batch, known: Sequence[Entry]) -> bool:
        """Whether anything the model was shown has been hidden meanwhile; its answer may rest on that."""
        shown = {message.id: message.text for message in (*batch.messages, *batch.earlier)}
        lines = await self._stores.journal.lines(owner, shown)
        # Of a line that is erased already a mark without words is left.
        left = sum(line.text == shown[line.id] for line in lines.values())
        for store in (self._stores.profile, self._stores.timeline, self._stores.facts):
            left += len(await store.get(owner, [entry.id for entry in known]))
        return left < len(shown) + len(known)

    async def _put_back(self, owner: Account, batch: Batch, error: CompleterUnavailable | AnswerError) -> DistilReport:
        """Return the lines with the reason; they are tried again later, or set aside after the last try."""
        unavailable = isinstance(error, CompleterUnavailable)
        reason = "unavailable" if unavailable else str(error)
        retry_at = self._clock() + PAUSE * 2 ** (batch.attempts - 1)
        await self._sessions.fail(owner, batch.session, reason=reason, retry_at=retry_at, counts=not unavailable)
        last = batch.attempts >= self._settings.attempts and not unavailable
        log.warning("session %d, try %d: %s%s", batch.session, batch.attempts, error, "; set aside" if last else "")
        outcome: Outcome = "unavailable" if unavailable else "set_aside" if last else "retry"
        return DistilReport(outcome, reason, messages=len(batch.messages))

    async def _known(self, owner: Account, batch: Batch) -> list[Entry]:
        """What is remembered and may be shown where the session took place."""
        now, room = self._clock(), batch.chat.audience
        entries: list[Entry] = [
            *await self._stores.profile.live(owner, now=now),
            *await self._stores.timeline.live(owner, now=now),
            *await self._stores.facts.live(owner, now=now),
        ]
        return [entry for entry in entries if covers(entry.provenance.audience, room)]

    def _limit(self, session: Session) -> int:
        """Fewer lines with each try, since a long answer is the commonest reason for a cut one."""
        return max(FEWEST, self._settings.max_messages >> session.attempts)


def _fault(session: Session) -> str:
    return "no complete JSON" if session.attempts else ""
