"""What is shown of memories, read at once: the words alone, where the stores give all that is known of each.

A recall reads some thirty of them. Their whole rows, made into memories with their citations, took 0.8 of the 1.2 ms
that all its reading took (on a machine some 2.6 times slower than that of NUMBERS).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, Self

from memory.clock import moment, stamp
from memory.db import Database
from memory.entries import LIVE
from memory.model import Account, Entry, Event, Kind, Span

_TABLES: Final[Mapping[Kind, str]] = {"profile": "profile", "event": "timeline", "fact": "facts"}
_WHEN: Final = ("start_at", "end_at", "precision", "zone", "words", "rrule")
"""The columns that say when an event is."""


class MemoryText(NamedTuple):
    """A memory as it is shown: ``at`` is when it was said, ``cites`` the ids of the lines it was learned from."""

    id: int
    kind: Kind
    text: str
    subject: str
    at: datetime
    audience: int
    when: Span | None
    cites: tuple[int, ...]

    @classmethod
    def of(cls, entry: Entry) -> Self:
        """What is shown of a memory that was read whole."""
        held, when = entry.provenance, entry.span if isinstance(entry, Event) else None
        cites = tuple(citation.message for citation in held.citations)
        return cls(entry.id, entry.kind, entry.text, entry.subject, held.said_at, held.audience, when, cites)


async def memory_texts(
    db: Database, owner: Account, wanted: Mapping[Kind, Sequence[int]], *, now: datetime
) -> dict[int, MemoryText]:
    """Those of the owner's memories that hold at ``now`` and are not hidden, by id; ``wanted`` are ids by kind."""
    parts = [_text_of(kind) for kind in _TABLES if wanted.get(kind)]
    if not parts:
        return {}
    rows = await db.fetch(
        f"{' UNION ALL '.join(parts)} ORDER BY id, cited_at, message",
        {
            **{kind: json.dumps(list(wanted.get(kind, ()))) for kind in _TABLES},
            "lo": owner.first_id,
            "hi": owner.last_id,
            "now": stamp(now),
        },
    )
    found: dict[int, MemoryText] = {}
    cites: dict[int, list[int]] = {}
    for id_, kind, text, subject, at, audience, message, _, *when in rows:
        if id_ not in found:
            span = Span(moment(when[0]), moment(when[1]), *when[2:]) if kind == "event" else None
            found[id_] = MemoryText(id_, kind, text, subject, moment(at), audience, span, ())
            cites[id_] = []
        if message is not None:
            cites[id_].append(message)
    return {id_: memory._replace(cites=tuple(cites[id_])) for id_, memory in found.items()}


async def outdated(db: Database, owner: Account, lines: Iterable[int], *, now: datetime) -> dict[int, datetime]:
    """The lines of which nothing stands any more that was once learned from them, and since when.

    What is hidden counts neither way.
    """
    listed = list(lines)
    if not listed:
        return {}
    learned = " UNION ALL ".join(
        "SELECT c.message AS message, coalesce(retired_at, expires_at) AS ended, "
        f"({LIVE}) OR coalesce(retired_at, expires_at) IS NULL AS stands"
        f" FROM json_each(:lines) AS line CROSS JOIN citations AS c ON c.message = line.value"
        f" CROSS JOIN {table} AS held ON held.id = c.entry WHERE held.id BETWEEN :lo AND :hi AND hidden_by IS NULL"
        for table in _TABLES.values()
    )
    rows = await db.fetch(
        f"SELECT message, max(ended) FROM ({learned}) GROUP BY message HAVING NOT max(stands)",
        {"lines": json.dumps(listed), "lo": owner.first_id, "hi": owner.last_id, "now": stamp(now)},
    )
    return {message: moment(ended) for message, ended in rows}


def _text_of(kind: Kind) -> str:
    """The query for the texts of one kind: a row for each line that a memory cites."""
    when = _WHEN if kind == "event" else ("NULL",) * len(_WHEN)
    # In this order of the tables: by the ids that are wanted, however many others there are.
    return (
        f"SELECT held.id AS id, '{kind}', text, subject, said_at, audience, c.message AS message, c.at AS cited_at,"
        f" {', '.join(when)} FROM json_each(:{kind}) AS wanted CROSS JOIN {_TABLES[kind]} AS held"
        " ON held.id = wanted.value LEFT JOIN citations AS c ON c.entry = held.id"
        f" WHERE held.id BETWEEN :lo AND :hi AND hidden_by IS NULL AND {LIVE}"
    )
