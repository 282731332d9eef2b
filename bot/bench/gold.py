"""What was written, held against the gold of the write path's data. Pure; the definitions are those of the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from bot.bench.proposals import is_wish
from bot.bench.writeset import Dated, Days, Lone, Update
from bot.bench.writing import quoted, shown
from memory.dates import mentions, recurrence
from memory.model import Entry, Event, Span
from memory.script import folded

Reading = Literal["exact", "wrong", "wrong_year", "missed"]
_HALF: Final = 0.5


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an update ended. ``stale``: what no longer holds is live; ``over``: what still holds was live and is not.

    ``missed``: what still holds was never stored. None where the relation cannot end that way.
    """

    right: bool
    stale: bool | None = None
    over: bool | None = None
    missed: bool | None = None


def holds(entries: Sequence[Entry], value: str, *, unlike: str = "", quotes: bool = False) -> bool:
    """Whether a memory holds a value, in its sentence or (with ``quotes``) in the words it cites.

    ``unlike`` is a longer value that holds this one as a part, and does not count for it.
    """
    wanted, other = folded(value), folded(unlike)
    texts = [(quoted if quotes else shown)(entry) for entry in entries]
    if wanted != other and wanted in other:
        texts = [text.replace(other, "") for text in texts]
    return any(wanted in text for text in texts)


def judged(update: Update, before: Sequence[Entry], after: Sequence[Entry], *, left: bool = False) -> Verdict:
    """How an update ended, by what was live ``before`` the second message and ``after`` it.

    ``left`` tells whether anything at all still holds the old value, for a deletion.
    """
    old, new = update.old_value, update.new_value
    old_live, new_live = holds(after, old, unlike=new), holds(after, new, quotes=True)
    was, stays = holds(before, old, quotes=True), holds(after, old, unlike=new, quotes=True)
    kept = {"over": was and not stays, "missed": not was and not stays}
    match update.relation:
        case "supersede" | "correction":
            return Verdict(new_live and not old_live, stale=old_live)
        case "delete":
            return Verdict(not (left or old_live), stale=left or old_live)
        case "hypothetical_no_update" if is_wish(update.old_message):
            # The wish came first: it is no value that could still be live, and the plain word after it counts.
            return Verdict(new_live and not old_live, stale=old_live)
        case "hypothetical_no_update":
            return Verdict(stays and (old == new or not new_live), stale=old != new and new_live, **kept)
        case "supplement":
            return Verdict(stays and new_live, **kept)
        case "duplicate":
            return Verdict(sum(folded(old) in quoted(entry) for entry in after) == 1, **kept)
        case "past_fact_no_update" | "unrelated_subject":
            return Verdict(stays, **kept)


def of_updates(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The rates of updates: each over those that could end that way."""
    could_stay = [verdict.stale for verdict in verdicts if verdict.stale is not None]
    could_go = [verdict.over for verdict in verdicts if verdict.over is not None]
    return {
        "current": share(sum(verdict.right for verdict in verdicts), len(verdicts)),
        "stale": share(sum(could_stay), len(could_stay)),
        "over_deleted": share(sum(could_go), len(could_go)),
        "n": len(verdicts),
        "n_stale": len(could_stay),
        "n_over_deleted": len(could_go),
        "missed": sum(bool(verdict.missed) for verdict in verdicts),
    }


def of_lone(told: Sequence[tuple[Lone, Sequence[Entry]]]) -> dict[str, Any]:
    """Precision, recall and key recall of what was stored of messages told alone."""
    stored = {label: [e for lone, e in told if lone.label == label and e] for label in ("store", "skip", "ephemeral")}
    halves = _HALF * sum(any(endless(entry) for entry in entries) for entries in stored["ephemeral"])
    right, wanted = len(stored["store"]), sum(lone.label == "store" for lone, _ in told)
    precision = share(right, right + len(stored["skip"]) + halves)
    recall = share(right, wanted)
    keys = [(key, entries) for lone, entries in told if lone.label == "store" for key in lone.must_contain]
    return {
        "precision": precision,
        "recall": recall,
        "f1": round(2 * precision * recall / (precision + recall), 4) if precision + recall else 0.0,
        "key_recall": share(sum(holds(entries, key) for key, entries in keys), len(keys)),
        "key_recall_quoted": share(sum(holds(entries, key, quotes=True) for key, entries in keys), len(keys)),
        "skip_stored": len(stored["skip"]),
        "ephemeral_errors": halves,
        "n": len(told),
    }


def endless(entry: Entry) -> bool:
    """Whether a memory holds for ever: it names no end and is no event."""
    return entry.provenance.expires_at is None and not isinstance(entry, Event)


def read(dated: Dated, zone: str = "UTC") -> Reading:
    """How the rules read the time of a message: its first mention, or what comes round every year."""
    if dated.recurring is not None:
        yearly = recurrence(dated.text, at=dated.at, zone=zone)
        return "missed" if yearly is None else "exact" if _yearly(yearly) == dated.recurring else "wrong"
    found = mentions(dated.text, at=dated.at, zone=zone)
    if not found:
        return "missed"
    theirs = days(found[0])
    if theirs in dated.accepted:
        return "exact"
    return "wrong" if theirs[0].year in {first.year for first, _ in dated.accepted} else "wrong_year"


def days(span: Span) -> Days:
    """The first and the last day of a span, in its own zone."""
    zone = ZoneInfo(span.zone)
    return span.start.astimezone(zone).date(), (span.end - timedelta(microseconds=1)).astimezone(zone).date()


def is_bare(event: Event, dated: Dated) -> bool:
    """Whether the sentence of an event leaves its time to a word that means another day when read later."""
    later = mentions(event.text, at=dated.at + timedelta(days=1000), zone=event.span.zone)
    return any(days(span) != days(event.span) for span in later)


def _yearly(span: Span) -> str:
    first: date = span.start.astimezone(ZoneInfo(span.zone)).date()
    return f"{first:%m-%d}" if (span.rrule or "").startswith("FREQ=YEARLY") else ""


def share(part: float, whole: float) -> float:
    """A fraction of something, 0 of nothing."""
    return round(part / whole, 4) if whole else 0.0
