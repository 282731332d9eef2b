"""Distillation: one model call over an ended session, and nothing of its answer unproved.

The lines are leased, the model is asked with no transaction open, and what it proposes is verified, weighed and
written in one transaction together with the cursor. A crash anywhere repeats the call and doubles nothing; lines
that no try could distil are marked with the reason and hold up nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, timedelta
from itertools import islice
from typing import Final, Literal

from config.settings import DistilSettings
from memory.answers import FAULTS, AnswerError, Item, parse
from memory.briefing import Briefing, brief
from memory.claims import read
from memory.db import Database, DatabaseError
from memory.embedding import Embeddings
from memory.model import Account, Candidate, Decision, Entry
from memory.nearness import Nearness
from memory.offloop import off_loop
from memory.ports import Clock, Completer, CompleterResting, CompleterUnavailable, Completion
from memory.reconcile import Gate, Shelf
from memory.reserve import Reserve
from memory.second_look import SecondLook
from memory.sessions import Batch, Session, Sessions, next_day
from memory.usage import Usage
from memory.usage import tokens as spent
from memory.verdicts import covers
from memory.verify import Drop, Evidence, unbundle, verify

log = logging.getLogger(__name__)

LEASE_SECONDS: Final = 900.0
"""Longer than any call may take with its retries; after a crash the session waits as long."""
ANSWER_TOKENS: Final = 4_096
"""Room for about thirty items, or fewer behind a model that reasons first."""
MOST_CLAIMS: Final = 200
"""Read of one answer; many times what ANSWER_TOKENS have room for."""
PAUSE: Final = timedelta(minutes=2)
"""Before a second try; doubled for each one after it, at most MOST_DOUBLINGS times."""
MOST_DOUBLINGS: Final = 6
CRASHES: Final = 10
"""Claims that never came to an end before a batch is set aside unread: something in it ends the program."""
MISSES: Final = 2
"""Requests in a row that may come to nothing before the next one is smaller: an endpoint may be away that long."""
BYTES_A_TOKEN: Final = 3
"""Of UTF-8, where the endpoint does not count: a Han character is 3 bytes and about a token, a token of English has
4 or more. Rather too many tokens than too few."""
MOST_TOKENS: Final = 10**7
"""Believed of one call; an endpoint that claims more is mistaken."""
ROW_CHARACTERS: Final = 100
"""Of an answer, that cost as much to read as one row to score (memory.offloop)."""
ROWS_A_CLAIM: Final = 10
"""That cost as much to score as one claim to verify."""

Outcome = Literal["nothing", "distilled", "unavailable", "retry", "set_aside", "postponed"]


@dataclass(frozen=True, slots=True)
class DistilReport:
    """What became of one batch.

    ``reason`` tells why nothing was written ("cut": the answer broke off, "no_json": it was none, "budget": the
    tokens of the day are spent ...); ``items`` counts what the model proposed, ``drops`` what was refused, by
    reason; ``tokens`` is the cost of the call.
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


@dataclass(frozen=True, slots=True)
class _Task:
    """One batch on its way: whose, which lines, which known memories the model is shown, and how."""

    owner: Account
    batch: Batch
    known: Sequence[Entry]
    briefing: Briefing

    @property
    def covered(self) -> list[int]:
        """Ids of the lines the request covers, a half-read one included."""
        return self.briefing.reach.touched


@dataclass(frozen=True, slots=True)
class _Misses:
    """How often in a row the request of one session got no answer, and how many others were answered before."""

    count: int = 0
    answered: int = 0


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
        embeddings: Embeddings | None = None,
        usage: Usage | None = None,
        reserve: Reserve | None = None,
    ) -> None:
        self._db = db
        self._usage = usage
        self._stores = stores
        self._sessions = sessions
        self._gate = Gate(db, stores, reserve=reserve)
        nearness = Nearness(embeddings) if embeddings is not None else None
        self._second_look = SecondLook(db, stores, self._gate, completer=completer, clock=clock, nearness=nearness)
        self._completer = completer
        self._clock = clock
        self._settings = settings
        self._answered = 0
        self._missed: dict[tuple[int, int], _Misses] = {}
        self._told: set[tuple[date, int | None]] = set()

    async def distil(self, owner: Account, session: Session) -> DistilReport:
        """Distil the next batch of an ended session; "nothing" when another run holds it or nothing is left.

        The session stays due while lines are left or a try is to be repeated, and waits for the next day
        ("postponed") once the tokens of this one are spent. Must not be called with a transaction open.
        """
        if self._db.inside:
            raise RuntimeError("no transaction may be open while the model is awaited")
        if await self._overspent(owner):
            now = self._clock()
            await self._sessions.postpone(owner, session.no, now=now, until=next_day(now))
            return DistilReport("postponed", "budget")
        task = await self._claim(owner, session)
        if task is None:
            return DistilReport("nothing")
        if task.batch.attempts > max(CRASHES, self._settings.attempts):
            return await self._set_aside(task, "crashed")
        if not task.briefing.citable:
            return await self._write(task, [])
        try:
            return await self._read(task)
        except asyncio.CancelledError:
            # The program stops. Its next start need not wait for the lease, and nothing is held against the lines.
            await self._let_go(task, session)
            raise

    async def _read(self, task: _Task) -> DistilReport:
        """Have the model read a batch, and write what it gives."""
        owner, batch = task.owner, task.batch
        try:
            completion, tokens = await self._ask(task)
        except CompleterUnavailable as error:
            return await self._unanswered(task, error)
        self._answered += 1
        self._missed.pop((owner.no, batch.session), None)
        try:
            size = len(completion.text) // ROW_CHARACTERS
            items = await off_loop(lambda: parse(completion.text, cut=completion.cut), size=size)
        except AnswerError as error:
            return await self._put_back(task, error.fault, str(error), tokens=tokens)
        return await self._looked_over(owner, await self._write(task, items, tokens=tokens))

    async def _looked_over(self, owner: Account, report: DistilReport) -> DistilReport:
        """Have what lies near to what was written decided: one call more, and only where there is some."""
        new = {d.entry.id for d in report.decisions if d.entry is not None and d.action in ("added", "superseded")}
        if not new or await self._overspent(owner):
            return report
        looked = await self._second_look.look(owner, new)
        if looked.tokens_in and self._usage is not None:
            self._usage.count(owner, "distil", tokens_in=looked.tokens_in, tokens_out=looked.tokens_out)
        if looked.tokens:
            await self._sessions.charge(owner, looked.tokens, now=self._clock())
        return replace(report, tokens=report.tokens + looked.tokens, decisions=(*report.decisions, *looked.decisions))

    async def _claim(self, owner: Account, session: Session) -> _Task | None:
        """Lease the next lines, one more than a request takes, so that a silence behind them is seen."""
        most = self._settings.max_messages
        batch = await self._sessions.claim(
            owner, session.no, now=self._clock(), lease_seconds=LEASE_SECONDS, limit=most + 1
        )
        if batch is None:
            return None
        known = await self._known(owner, batch)
        misses = self._missed.get((owner.no, session.no), _Misses()).count
        # Less with each try: a long answer is the commonest reason for a cut one, a long request for none.
        halvings = batch.attempts - 1 + max(0, misses - MISSES)
        fault = session.failed if session.failed in FAULTS else ""
        return _Task(owner, batch, known, brief(owner, batch, known, most=most, halvings=halvings, fault=fault))

    async def _ask(self, task: _Task) -> tuple[Completion, int]:
        """Return the model's answer and the tokens of the call, which are charged whatever comes of the answer."""
        guess = sum(_guessed(message["content"]) for message in task.briefing.messages)
        now = self._clock()
        # Charged before the call: a kill makes none free, and a second session at the same time sees it.
        await self._sessions.charge(task.owner, guess, now=now)
        try:
            completion = await self._completer.complete(
                task.briefing.messages, schema=task.briefing.schema, max_tokens=ANSWER_TOKENS
            )
        except CompleterUnavailable:
            await self._sessions.charge(task.owner, -guess, now=now)
            raise
        if self._usage is not None:
            self._usage.count(
                task.owner,
                "distil",
                tokens_in=spent(completion.tokens_in, *(message["content"] for message in task.briefing.messages)),
                tokens_out=spent(completion.tokens_out, completion.text),
            )
        told = min(completion.tokens, MOST_TOKENS)
        tokens = told if told > 0 else guess + _guessed(completion.text)
        await self._sessions.charge(task.owner, tokens - guess, now=now)
        return completion, tokens

    async def _overspent(self, owner: Account) -> bool:
        """Whether the tokens of this day (of UTC) are spent; logged once a day for each person and for everybody."""
        now = self._clock()
        own, whole = await self._sessions.spent(owner, now=now)
        of_one, of_all = self._settings.tokens_per_person_a_day, self._settings.tokens_a_day
        if of_one and own >= of_one:
            whose, spent, most = owner.no, own, of_one
        elif of_all and whole >= of_all:
            whose, spent, most = None, whole, of_all
        else:
            return False
        today = now.astimezone(UTC).date()
        self._told = {told for told in self._told if told[0] == today}
        if (today, whose) not in self._told:
            self._told.add((today, whose))
            who = "everybody" if whose is None else f"account {whose}"
            log.warning("distillation of %s waits for the next day: %d of %d tokens spent", who, spent, most)
        return True

    async def _write(self, task: _Task, items: list[Item], *, tokens: int = 0) -> DistilReport:
        owner, batch, evidence = task.owner, task.batch, task.briefing.evidence
        candidates, drops = await off_loop(lambda: _prove(items, evidence), size=len(items) * ROWS_A_CLAIM)

        async def writing() -> DistilReport | list[Decision]:
            if stale := await self._stale(task, tokens=tokens):
                return stale
            # Asked again: a group may have been joined with another, or opened, while the model was awaited.
            audience = await self._sessions.audience(owner, batch.session)
            decisions = await self._gate.admit(owner, candidates, audience=audience, now=self._clock())
            await self._sessions.finish(owner, batch.session, task.briefing.reach)
            for reason, count in drops.items():
                self._db.tally("dropped", reason, count)
            return decisions

        decisions = await self._db.written(writing)
        if isinstance(decisions, DistilReport):
            return decisions
        drops.update(decision.reason for decision in decisions if decision.action == "dropped")
        if items:
            log.info("session %d: %d items proposed, dropped %s", batch.session, len(items), dict(drops))
        else:
            log.info("session %d: nothing found in %d messages", batch.session, len(task.covered))
        return DistilReport(
            "distilled",
            messages=len(task.covered),
            items=len(items),
            tokens=tokens,
            decisions=tuple(decisions),
            drops=dict(drops),
        )

    async def _stale(self, task: _Task, *, tokens: int) -> DistilReport | None:
        """What becomes of a batch that is no longer ours, or no longer what the model was shown; None of others."""
        owner, batch = task.owner, task.batch
        if not await self._sessions.holds(owner, batch):
            log.warning("session %d: the answer came after its lease and is left out", batch.session)
            return DistilReport("nothing", "overtaken", tokens=tokens)
        if await self._forgotten(task):
            now = self._clock()
            await self._sessions.fail(owner, batch.session, reason="forgotten", retry_at=now, counts=False)
            return DistilReport("retry", "forgotten", messages=len(task.covered), tokens=tokens)
        return None

    async def _forgotten(self, task: _Task) -> bool:
        """Whether anything the model was shown has been hidden or edited meanwhile; its answer may rest on that."""
        owner, batch, known = task.owner, task.batch, task.known
        # All of a line, not what was shown of it: its lines of evidence may be pieces.
        covered = [message for message in batch.messages if message.id in task.covered]
        shown = {message.id: message.text for message in (*covered, *batch.earlier)}
        lines = await self._stores.journal.lines(owner, shown)
        # Of a line that is erased already a mark without words is left.
        left = sum(line.text == shown[line.id] for line in lines.values())
        for store in (self._stores.profile, self._stores.timeline, self._stores.facts):
            left += len(await store.get(owner, [entry.id for entry in known]))
        return left < len(shown) + len(known)

    async def _unanswered(self, task: _Task, error: CompleterUnavailable) -> DistilReport:
        """Return the lines: the endpoint is away, or it is these very lines that it does not answer.

        The second is certain when others were answered in between; only then does the try count against them.
        """
        if isinstance(error, CompleterResting):
            # Nobody asked anything: it says nothing of these lines, neither now nor when others are answered.
            await self._fail(task, "unavailable", counts=False)
            return DistilReport("unavailable", "unavailable", messages=len(task.covered))
        key = (task.owner.no, task.batch.session)
        before = self._missed.get(key)
        self._missed[key] = _Misses((before.count if before else 0) + 1, self._answered)
        if before is not None and before.answered < self._answered:
            return await self._put_back(task, "unavailable", str(error))
        await self._fail(task, "unavailable", counts=False)
        batch = task.batch
        log.warning("session %d, try %d: the model does not answer: %s", batch.session, batch.attempts, error)
        return DistilReport("unavailable", "unavailable", messages=len(task.covered))

    async def _put_back(self, task: _Task, reason: str, words: str, *, tokens: int = 0) -> DistilReport:
        """Return the lines with the reason; fewer of them are tried again later, or set aside after the last try."""
        tried, most = task.batch.attempts, self._settings.attempts
        log.warning("session %d, try %d of %d: %s", task.batch.session, tried, most, words)
        if tried >= most:
            return await self._set_aside(task, reason, tokens=tokens)
        await self._fail(task, reason, counts=True)
        return DistilReport("retry", reason, messages=len(task.covered), tokens=tokens)

    async def _fail(self, task: _Task, reason: str, *, counts: bool) -> None:
        owner, batch = task.owner, task.batch
        retry_at = self._clock() + PAUSE * 2 ** min(batch.attempts - 1, MOST_DOUBLINGS)

        async def writing() -> None:
            if await self._sessions.holds(owner, batch):
                await self._sessions.fail(owner, batch.session, reason=reason, retry_at=retry_at, counts=counts)

        await self._db.written(writing)

    async def _let_go(self, task: _Task, session: Session) -> None:
        """Give the lines back as they were claimed, if they are still ours."""
        owner, batch = task.owner, task.batch
        # A file that takes no write any more is left to the end of the lease.
        with contextlib.suppress(DatabaseError):
            async with self._db.transaction():
                if await self._sessions.holds(owner, batch):
                    await self._sessions.fail(
                        owner, batch.session, reason=session.failed, retry_at=self._clock(), counts=False
                    )

    async def _set_aside(self, task: _Task, reason: str, *, tokens: int = 0) -> DistilReport:
        """Mark lines that no try could distil, and go on behind them."""
        owner, batch, covered = task.owner, task.batch, task.covered
        async with self._db.transaction():
            if stale := await self._stale(task, tokens=tokens):
                return stale
            await self._sessions.set_aside(owner, batch, task.briefing.reach, reason=reason, now=self._clock())
        self._missed.pop((owner.no, batch.session), None)
        log.warning("session %d: %d messages are set aside (%s)", batch.session, len(covered), reason)
        return DistilReport("set_aside", reason, messages=len(covered), tokens=tokens)

    async def _known(self, owner: Account, batch: Batch) -> list[Entry]:
        """What is remembered and may be shown where the session took place."""
        now, room = self._clock(), await self._sessions.audience(owner, batch.session)
        entries: list[Entry] = [
            *await self._stores.profile.live(owner, now=now),
            *await self._stores.timeline.live(owner, now=now),
            *await self._stores.facts.live(owner, now=now),
        ]
        return [entry for entry in entries if covers(entry.provenance.audience, room)]


def _prove(items: list[Item], evidence: Evidence) -> tuple[list[Candidate], Counter[str]]:
    """Return what of an answer is proved, and how often each reason for a drop occurred."""
    drops: Counter[str] = Counter()
    candidates: list[Candidate] = []
    claims = (single for claim in read(items) for single in unbundle(claim))
    for claim in islice(claims, MOST_CLAIMS):
        proved = verify(claim, evidence)
        if isinstance(proved, Drop):
            drops[proved.value] += 1
        else:
            candidates.append(proved)
    if unread := sum(1 for _ in claims):
        drops["too_many"] = unread
    return candidates, drops


def _guessed(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)
