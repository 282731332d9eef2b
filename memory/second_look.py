"""One question to the model about all memories of a session that may say the same as, or end, what was known.

Never needed: without an answer both stay.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from memory.answers import AnswerError, parse
from memory.db import Database
from memory.likeness import query, rulings, undecided
from memory.model import Account, Decision, Entry
from memory.nearness import Nearness
from memory.offloop import off_loop
from memory.ports import Clock, Completer, CompleterUnavailable
from memory.reconcile import Gate
from memory.stores import EntryStores
from memory.usage import tokens as spent
from memory.verdicts import covers

log = logging.getLogger(__name__)

ANSWER_TOKENS: Final = 1_024
"""A dozen short items, and room for a model that reasons first."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of it: pairs asked about, what was ruled how often, what was changed, and why not ("" if it was)."""

    pairs: int = 0
    ruled: Mapping[str, int] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()
    tokens: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    failed: str = ""


class SecondLook:
    """Asks at most once for each batch of new memories, and carries out what comes back."""

    def __init__(
        self,
        db: Database,
        stores: EntryStores,
        gate: Gate,
        *,
        completer: Completer,
        clock: Clock,
        nearness: Nearness | None = None,
    ) -> None:
        self._db = db
        self._stores = stores
        self._gate = gate
        self._completer = completer
        self._clock = clock
        self._nearness = nearness

    async def look(self, owner: Account, new: Collection[int]) -> Looked:
        """Have the pairs of these new memories and all that is known decided, near ones by meaning and by words.

        No call is made where there are none; without vectors words alone decide what is near.
        Raises RuntimeError with a transaction open: the model is awaited.
        """
        if self._db.inside:
            raise RuntimeError("no transaction may be open while the model is awaited")
        now = self._clock()
        everything: list[Entry] = [e for store in self._stores.entries for e in await store.live(owner, now=now)]
        fresh = [entry for entry in everything if entry.id in new]
        # What is asked about a group's memories holds nothing that may not be used there.
        rooms = {entry.provenance.audience for entry in fresh}
        known = [entry for entry in everything if all(covers(entry.provenance.audience, room) for room in rooms)]
        fresh = [entry for entry in known if entry.id in new]
        near = await self._nearness.among(owner, fresh, known) if self._nearness else {}
        pairs = await off_loop(lambda: undecided(fresh, known, near=near), size=len(fresh) * len(known))
        if not pairs:
            return Looked()
        asked = query(owner, pairs, owner.language)
        try:
            answer = await self._completer.complete(asked.messages, schema=asked.schema, max_tokens=ANSWER_TOKENS)
            ruled = rulings(parse(answer.text, cut=answer.cut), pairs)
        except (CompleterUnavailable, AnswerError) as error:
            log.info("%d memories stay side by side: %s", len(pairs), error)
            return Looked(len(pairs), failed="unavailable" if isinstance(error, CompleterUnavailable) else error.fault)
        decisions = await self._gate.settle(owner, ruled, now=self._clock())
        counts = Counter(str(ruling) for _, ruling in ruled)
        tokens_in = spent(answer.tokens_in, *(str(message["content"]) for message in asked.messages))
        tokens_out = spent(answer.tokens_out, answer.text)
        return Looked(len(pairs), counts, tuple(decisions), answer.tokens, tokens_in, tokens_out)
