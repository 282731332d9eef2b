"""Everything of one person as plain data, for them to take away. Its form is ``config/export.schema.json``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from memory.accounts import Accounts, Chats
from memory.consents import Consents
from memory.model import EVERYWHERE, PRIVATE, Account, Entry, Event, Message, ProfileLine, Provenance
from memory.offloop import off_loop
from memory.pauses import Pauses
from memory.stores import Stores

FORMAT: Final = "recollect-export"
VERSION: Final = 1
"""Of the form; a reader that knows a lower one may not understand a higher one."""
ROWS_A_LINE: Final = 2
"""What it costs to write a row out, in the rows that :func:`memory.offloop.off_loop` counts by."""

Document = dict[str, Any]
Linked = Callable[[Account], Awaitable[Sequence[Account]]]


class Exports:
    """Reads it together. Nothing is kept of what it gives."""

    def __init__(
        self,
        accounts: Accounts,
        chats: Chats,
        stores: Stores,
        *,
        pauses: Pauses,
        consents: Consents,
        linked: Linked,
    ) -> None:
        """``linked`` tells the other accounts of an owner."""
        self._linked = linked
        self._consents = consents
        self._accounts = accounts
        self._chats = chats
        self._stores = stores
        self._pauses = pauses

    async def all(self, owner: Account, *, now: datetime) -> Document:
        """All that is kept of the owner: memories with their history and citations, the journal, what is pending.

        Nothing that was forgotten, be it only hidden yet; nothing said off the record or in a pause; nothing of
        anybody else: a reply of the bot belongs to the person it answered.
        """
        entries = [entry for store in self._stores.entries for entry in await store.history(owner)]
        lines = [line for line in await self._stores.journal.said(owner) if not line.fleeting]
        aside = await self._stores.journal.aside(owner)
        chats = {line.chat for line in lines} | {entry.provenance.audience for entry in entries}
        pending = await self._stores.promises.undoable(owner, now=now)
        document: Document = {
            "format": FORMAT,
            "version": VERSION,
            "made_at": _time(now),
            "account": {
                "platform": owner.platform,
                "user_id": owner.user_id,
                "name": owner.name,
                "since": _time(await self._accounts.since(owner)),
            },
            "settings": {
                "language": owner.language,
                "language_fixed": owner.language_fixed,
                "zone": owner.zone,
                "zone_from": owner.zone_from,
                "paused_chats": await self._pauses.places(owner),
                "consents": [
                    {"matter": matter, "agreed": consent.answer, "at": _time(consent.at)}
                    for matter, consent in (await self._consents.all(owner)).items()
                    if consent.answer is not None
                ],
            },
            "links": [{"platform": each.platform, "user_id": each.user_id} for each in await self._linked(owner)],
            "chats": [await self._chat(owner, no) for no in sorted(chats - {PRIVATE, EVERYWHERE})],
            "pending_deletions": [
                {
                    "number": each.id,
                    "at": _time(each.at),
                    "erased_at": _time(each.erase_at),
                    "counts": dict(each.counts),
                }
                for each in pending
            ],
        }
        size = (len(entries) + len(lines)) * ROWS_A_LINE
        return document | await off_loop(lambda: _rows(entries, lines, aside), size=size)

    async def _chat(self, owner: Account, no: int) -> Document:
        chat = await self._chats.numbered(owner, no)
        return {"number": no, "key": chat.key, "private": chat.private, "parent": chat.parent}


def _rows(entries: Sequence[Entry], lines: Sequence[Message], aside: Collection[int]) -> Document:
    return {
        "profile": [_profile(entry) for entry in entries if isinstance(entry, ProfileLine)],
        "timeline": [_event(entry) for entry in entries if isinstance(entry, Event)],
        "facts": [_memory(entry) for entry in entries if not isinstance(entry, ProfileLine | Event)],
        "journal": [_line(line) | {"private_only": line.id in aside} for line in lines if line.text],
    }


def _profile(entry: ProfileLine) -> Document:
    return _memory(entry) | {"attribute": entry.attribute, "value": entry.value}


def _event(entry: Event) -> Document:
    span = entry.span
    return _memory(entry) | {
        "start": _time(span.start),
        "end": _time(span.end),
        "precision": span.precision,
        "zone": span.zone,
        "words": span.words,
        "recurs": span.rrule,
    }


def _memory(entry: Entry) -> Document:
    known = entry.provenance
    return {
        "number": entry.id,
        "about": entry.subject,
        "text": entry.text,
        "source": known.source,
        "audience": _audience(known),
        "confidence": known.confidence,
        "importance": known.importance,
        "said_at": _time(known.said_at),
        "written_at": _time(known.created_at),
        "confirmed_at": _maybe(known.confirmed_at),
        "expires_at": _maybe(known.expires_at),
        "closed_at": _maybe(known.retired_at),
        "closed_because": known.reason,
        "replaced_by": known.successor,
        "unsure_against": known.doubts,
        "citations": [
            {"line": citation.message, "quote": citation.quote, "at": _time(citation.at)}
            for citation in known.citations
        ],
    }


def _audience(known: Provenance) -> str | int:
    """Where it may be used: "private", "everywhere", or the number of a chat."""
    return {PRIVATE: "private", EVERYWHERE: "everywhere"}.get(known.audience, known.audience)


def _line(line: Message) -> Document:
    return {
        "number": line.id,
        "at": _time(line.at),
        "chat": line.chat,
        "by": "you" if line.role == "user" and line.kind == "said" else "bot" if line.role == "bot" else "other",
        "speaker": line.speaker,
        "forwarded": line.kind == "forwarded",
        "answers": line.answers,
        "text": line.text,
    }


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _maybe(at: datetime | None) -> str | None:
    return None if at is None else _time(at)
