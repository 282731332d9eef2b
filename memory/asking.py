"""A question made ready: what is looked for, its words, times and vector, and what it is judged against."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memory import dates
from memory.lexicon import after_the_bot, asked_in, asking_part, asks_memory, needs_context, personal
from memory.model import Account
from memory.ports import EmbedderUnavailable, Vector
from memory.score import Question
from memory.shipped import Probes, Shipped
from memory.stores import Stores
from memory.words import query_terms

CONTEXT_CHARACTERS: Final = 400
"""Most that is taken of the turns before a question that needs them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the language it is judged in, and the foreign questions it is judged against."""

    question: Question
    language: str
    foreign: Probes


class Asking:
    """Makes questions ready."""

    def __init__(self, stores: Stores, shipped: Shipped, *, timeout_seconds: float) -> None:
        """``timeout_seconds`` is the longest wait for the vector of a question."""
        self._stores = stores
        self._shipped = shipped
        self._timeout_seconds = timeout_seconds

    async def vector(self, asker: Account, search: str, notes: list[str]) -> Vector | None:
        """The vector of what is looked for; None, with a note, when there is none in time."""
        if self._stores.embeddings.model is None:
            notes.append("no embedder")
            return None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._stores.embeddings.query(asker, search)
        except EmbedderUnavailable:
            notes.append("embedder down")
        except TimeoutError:
            notes.append("embedder slow")
        return None

    def ready(
        self,
        asker: Account,
        question: str,
        search: str,
        vector: Vector | None,
        *,
        now: datetime,
        without: frozenset[str],
    ) -> Asked:
        """A question at ``now`` (aware UTC); ``search`` is what is looked for (:func:`search_text`).

        ``vector`` is that of ``search``; ``without`` names terms of the score that are left out.
        """
        foreign = self._shipped.probes(asked_in(search))
        named_dates, about_somebody = tuple(dates.partial(question)), personal(search)
        made = Question(
            text=question,
            terms=tuple(query_terms(search)),
            vector=vector,
            usual=foreign.usual(vector),
            # A date by its name is meant wherever it stands, "today" only where something is asked.
            spans=dates.asked(question if named_dates else asking_part(question), now=now, zone=asker.zone),
            dates=named_dates,
            asks_when=dates.asks_when(question),
            after_bot=after_the_bot(question),
            personal=about_somebody,
            asks=asks_memory(question, personal=about_somebody),
            zone=asker.zone,
            without=without,
        )
        return Asked(made, asked_in(search), foreign)


def search_text(question: str, context: Sequence[str]) -> str:
    """What is searched for: the question, behind the turns before it if it cannot stand alone (case D06)."""
    if not context or not needs_context(question, len(query_terms(question))):
        return question
    before = "\n".join(context)[-CONTEXT_CHARACTERS:]
    return f"{before}\n{question}"
