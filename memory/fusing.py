"""One list out of what a question found and what its other wordings found. The question never loses. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memory.judge import Contender, Judged

MOST_MORE: Final = 10
"""Rows that other wordings may add: an answer in other words stands near the top of their lists."""


def fused(first: Judged, others: Sequence[Judged]) -> Judged:
    """What ``first`` found, then what ``others`` are sure of; a row found by both counts as its better finding.

    Nothing that was found goes, or is shown less surely. Where the question alone finds nothing, the wording
    that finds the best does.
    """
    if not first.candidates:
        return max((first, *others), key=_strength)
    better = {found.id: found for other in others for found in other.candidates if found.band == "full"}
    for other in others:
        for found in other.candidates:
            if found.band == "full" and found.score > better[found.id].score:
                better[found.id] = found
    own = {contender.id for contender in first.candidates}
    kept = tuple(_better(contender, better.get(contender.id)) for contender in first.candidates)
    more = sorted((found for found in better.values() if found.id not in own), key=lambda found: -found.score)
    added = tuple(more[:MOST_MORE])
    shown = {contender.id for contender in added}
    return replace(
        first,
        candidates=kept + added,
        fused=True,
        left_out=tuple((id_, reason) for id_, reason in first.left_out if id_ not in shown),
    )


def _better(own: Contender, other: Contender | None) -> Contender:
    """The surer finding of one row, then the one with the higher score."""
    if other is None or (own.band == "full" and own.score >= other.score):
        return own
    return other


def _strength(judged: Judged) -> tuple[bool, float]:
    best = max(judged.candidates, key=lambda contender: contender.score, default=None)
    return (False, 0.0) if best is None else (best.band == "full", best.score)
