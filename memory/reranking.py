"""The best candidates in the order of a reranking model, where there is one; without it nothing changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Final

from memory.judge import Contender
from memory.ports import Reranker, RerankerUnavailable

HEAD: Final = 30
"""Candidates that are shown to the model; what is further down hardly gets into any budget."""
MODEL_WEIGHT: Final = 1.5
"""What the model's opinion counts beside the score, both as deviations: more, for it reads question and text
together, but not alone, for it knows neither who is asked about nor when. Not measured: no such model is bundled."""


async def reranked(
    reranker: Reranker,
    question: str,
    candidates: Sequence[Contender],
    texts: Mapping[int, str],
    *,
    seconds: float,
    notes: list[str],
) -> tuple[Contender, ...]:
    """Reorder the first candidates that have a text, within so many ``seconds``; the others keep their places.

    When the model fails nothing changes, but a note is left.
    """
    places = [place for place, each in enumerate(candidates) if each.id in texts][:HEAD]
    if len(places) > 1:
        head = [candidates[place] for place in places]
        try:
            read = [texts[each.id] for each in head]
            opinions = await asyncio.wait_for(reranker.scores(question, read), seconds)
        except RerankerUnavailable:
            notes.append("reranker down")
        except TimeoutError:
            notes.append("reranker slow")
        else:
            moved = dict(zip(places, _in_order(head, opinions), strict=True))
            return tuple(moved.get(place, each) for place, each in enumerate(candidates))
    return tuple(candidates)


def _in_order(head: Sequence[Contender], opinions: Sequence[float]) -> list[Contender]:
    """The candidates by score and opinion; the opinion stands in the trace of each."""
    scores, spoken = _deviations([each.score for each in head]), _deviations(opinions)
    total = [score + MODEL_WEIGHT * opinion for score, opinion in zip(scores, spoken, strict=True)]
    order = sorted(range(len(head)), key=lambda place: -total[place])
    return [
        head[place]._replace(scores={**(head[place].scores or {}), "reranker": round(opinions[place], 3)})
        for place in order
    ]


def _deviations(values: Sequence[float]) -> list[float]:
    mean, deviation = fmean(values), pstdev(values)
    return [(value - mean) / (deviation or 1.0) for value in values]
