"""Which texts want a vector or chunks, and which vectors and chunks no text holds any more: conditions in SQL.

``:lo`` and ``:hi`` bound the owner's row numbers in each.
"""

from __future__ import annotations

from typing import Final

_TEXTS: Final = (
    ("profile", "''", "t.retired_at IS NULL"),
    ("timeline", "''", "t.retired_at IS NULL"),
    ("facts", "''", "t.retired_at IS NULL"),
    ("journal", "t.speaker", "t.kind != 'command' AND t.fleeting = 0 AND trim(t.text) != ''"),
)
"""Tables that hold texts, the speaker of a text, and which of them want a vector."""

HELD_BY_NONE: Final = "WHERE id BETWEEN :lo AND :hi" + "".join(
    f" AND text_hash NOT IN (SELECT text_hash FROM {table} WHERE id BETWEEN :lo AND :hi)"
    for table in (*(table for table, _, _ in _TEXTS), "chunks")
)
PART_OF_NONE: Final = "WHERE id BETWEEN :lo AND :hi" + "".join(
    f" AND part_of NOT IN (SELECT id FROM {table} WHERE id BETWEEN :lo AND :hi)" for table, _, _ in _TEXTS
)
UNCUT: Final = " UNION ALL ".join(
    f"SELECT t.id, {speaker} AS speaker, t.text FROM {table} t WHERE t.id BETWEEN :lo AND :hi AND t.hidden_by IS NULL"
    f" AND {wanted} AND length(CAST(t.text AS BLOB)) > :whole"
    " AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.part_of = t.id)"
    for table, speaker, wanted in _TEXTS
)
_MISSING: Final = (
    " t.hidden_by IS NULL AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.text_hash = {key}.text_hash"
    " AND e.model = :model AND e.id BETWEEN :lo AND :hi)"
    " AND hex({key}.text_hash) NOT IN (SELECT value FROM json_each(:refused)) ORDER BY {key}.id LIMIT :limit)"
)
WAITING: Final = " UNION ALL ".join(
    [
        f"SELECT * FROM (SELECT {speaker} AS speaker, t.text, 0 AS begins, NULL AS ends FROM {table} t"
        f" WHERE t.id BETWEEN :lo AND :hi AND {wanted} AND {_MISSING.format(key='t')}"
        for table, speaker, wanted in _TEXTS
    ]
    + [
        f"SELECT * FROM (SELECT {speaker} AS speaker, t.text, c.begins, c.ends FROM chunks c"
        f" JOIN {table} t ON t.id = c.part_of WHERE c.id BETWEEN :lo AND :hi AND {wanted}"
        f" AND {_MISSING.format(key='c')}"
        for table, speaker, wanted in _TEXTS
    ]
)
