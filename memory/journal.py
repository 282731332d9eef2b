"""Store of the journal: what was said, durably, before anything else happens.

The window reads it by chat; recall, distillation and forgetting read it by owner.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from memory.accounts import Accounts
from memory.clock import moment, stamp
from memory.db import Database
from memory.embedding import spoken, text_hash
from memory.model import PRIVATE, SEQ_BITS, Account, Chat, Message, MessageKind, Role, Unit
from memory.offloop import off_loop

LINE = (
    "j.id, j.chat, j.session, j.role, j.speaker, j.at, j.text, j.kind, j.platform_id, j.answers, j.tokens, j.turn,"
    " j.fleeting, j.held"
)
_OWN_LINE: Final = LINE.replace("j.", "")


@dataclass(frozen=True, slots=True)
class Line:
    """A line to be written: everything about it but its number.

    ``fleeting``: nothing is to be made of its words; of one that is ``held``, not before its owner has agreed for
    these matters.
    """

    role: Role
    speaker: str
    at: datetime
    text: str
    kind: MessageKind = "said"
    platform_id: str | None = None
    answers: int | None = None
    tokens: int = 0
    fleeting: bool = False
    held: str = ""


class Place(NamedTuple):
    """Where a line was said."""

    chat: int
    session: int


class Journal:
    """Lines in the range of the account they are for."""

    def __init__(self, db: Database, accounts: Accounts) -> None:
        self._db = db
        self._accounts = accounts

    async def add(self, owner: Account, chat: Chat, session: int, lines: Sequence[Line]) -> list[Message]:
        """Write lines in their order and return them as stored. Needs an open transaction."""
        ids = await self._accounts.next_ids(owner, len(lines))
        made = [
            Message(
                id_,
                chat.no,
                session,
                new.role,
                new.speaker,
                new.at,
                new.text,
                new.kind,
                None if new.platform_id is None else chat.message_id(new.platform_id),
                new.answers,
                new.tokens,
                fleeting=new.fleeting and bool(new.text),
                held=new.held if new.text else "",
            )
            for id_, new in zip(ids, lines, strict=True)
        ]
        await self._db.executemany(
            "INSERT INTO journal (id, chat, session, role, speaker, at, text, kind, platform_id, answers, tokens,"
            " text_hash, fleeting, held) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    m.id,
                    m.chat,
                    m.session,
                    m.role,
                    m.speaker,
                    stamp(m.at),
                    m.text,
                    m.kind,
                    m.platform_id,
                    m.answers,
                    m.tokens,
                    text_hash(spoken(m.speaker, m.text)),
                    int(m.fleeting),
                    m.held or None,
                )
                for m in made
            ],
        )
        return made

    async def delivered(self, owner: Account, chat: Chat, platform_id: str, role: Role = "user") -> Message | None:
        """The line of a platform message that is already in the journal; without its words if it is forgotten."""
        rows = await self._db.fetch(
            f"SELECT {LINE}, j.hidden_by FROM journal j WHERE j.chat = ? AND j.platform_id = ? AND j.role = ?"
            " AND j.id BETWEEN ? AND ?",
            (chat.no, chat.message_id(platform_id), role, owner.first_id, owner.last_id),
        )
        if not rows:
            return None
        found = line(rows[0])
        return found if rows[0]["hidden_by"] is None else replace(found, text="", kind="command")

    async def original(self, owner: Account, chat: Chat, platform_id: str) -> Message | None:
        """The line of a person's platform message, with its words even while it is hidden.

        None for what was never heard, and for what was erased.
        """
        rows = await self._db.fetch(
            f"SELECT {LINE} FROM journal j WHERE j.chat = ? AND j.platform_id = ? AND j.role = 'user'"
            " AND j.id BETWEEN ? AND ? AND j.text_hash != x''",
            (chat.no, chat.message_id(platform_id), owner.first_id, owner.last_id),
        )
        return line(rows[0]) if rows else None

    async def rewrite(self, owner: Account, said: Message, new: Line) -> Message:
        """Give a line the words, the kind and the cost of ``new``; all else stays. Own words are distilled again.

        A fleeting line stays one, and any line becomes one by words that are; a held one is as its new words are.
        """
        plainly = any(one.fleeting and not one.held for one in (said, new))
        held = "" if plainly or not new.text else new.held
        fleeting = bool(new.text and (plainly or held))
        again = said.role == "user" and new.kind == "said" and not fleeting
        rows = await self._db.returning(
            "UPDATE journal SET text = :text, kind = :kind, tokens = :tokens, text_hash = :hash, revised = :again,"
            " fleeting = :fleeting, held = :held, read_to = 0, second_at = NULL"
            f" WHERE id = :id AND id BETWEEN :lo AND :hi RETURNING {LINE.replace('j.', '')}",
            {
                "text": new.text,
                "kind": new.kind,
                "tokens": new.tokens,
                "hash": text_hash(spoken(said.speaker, new.text)),
                "again": int(again),
                "fleeting": int(fleeting),
                "held": held or None,
                "id": said.id,
                "lo": owner.first_id,
                "hi": owner.last_id,
            },
        )
        return line(rows[0])

    async def stands(self, owner: Account, said: Message) -> bool:
        """Whether a line still says what it said when it was read: neither edited nor forgotten since."""
        rows = await self._db.fetch(
            "SELECT 1 FROM journal WHERE id = ? AND id BETWEEN ? AND ? AND text = ? AND text_hash != x''"
            " AND hidden_by IS NULL",
            (said.id, owner.first_id, owner.last_id, said.text),
        )
        return bool(rows)

    async def overtaken(self, owner: Account, said: Message) -> bool:
        """Whether any person said something in the chat after a line's turn, or began a new session."""
        turn = said.id if said.turn is None else said.turn
        rows = await self._db.fetch(
            "SELECT 1 FROM sessions s WHERE s.chat = :chat AND (s.no > :session OR s.ended_at IS NOT NULL"
            " AND s.no = :session) UNION ALL SELECT 1 FROM journal j WHERE j.session = :session AND j.role = 'user'"
            " AND (j.at, j.id) > (:at, :id) AND coalesce(j.turn, j.id) != :turn AND j.kind != 'command' LIMIT 1",
            {
                "chat": said.chat,
                "session": said.session,
                "at": stamp(said.at),
                "id": said.id,
                "turn": turn,
            },
        )
        return owner.owns(said.id) and bool(rows)

    async def newest_heard(self, platform: str) -> dict[tuple[str, str | None, bool], str]:
        """The highest number of a person's message in each chat of a platform, by (key, thread, private)."""
        rows = await self._db.fetch(
            "SELECT c.key, c.thread, c.private, max(CAST(j.platform_id AS INTEGER)) AS newest FROM chats c"
            " JOIN journal j ON j.chat = c.no WHERE c.platform = ? AND j.role = 'user'"
            " AND j.platform_id != '' AND j.platform_id NOT GLOB '*[^0-9]*' GROUP BY c.no",
            (platform,),
        )
        return {(row["key"], row["thread"] or None, bool(row["private"])): str(row["newest"]) for row in rows}

    async def answer_to(self, owner: Account, message_id: int) -> Message | None:
        """The bot's newest reply to a line or to the turn it is part of, or None while it is unanswered."""
        found = await self.answers_to(owner, [message_id])
        return found[-1] if found else None

    async def answers_to(self, owner: Account, ids: Iterable[int]) -> list[Message]:
        """The bot's replies to lines or to the turns they are part of, hidden ones included, oldest first."""
        rows = await self._db.fetch(
            f"SELECT {LINE} FROM journal j WHERE j.answers IN (SELECT coalesce(said.turn, said.id) FROM journal said"
            " WHERE said.id IN (SELECT value FROM json_each(:ids)) AND said.id BETWEEN :lo AND :hi)"
            " AND j.id BETWEEN :lo AND :hi ORDER BY j.id",
            {"ids": json.dumps(list(ids)), "lo": owner.first_id, "hi": owner.last_id},
        )
        return [line(row) for row in rows]

    async def last_asked(self, owner: Account, chat: Chat) -> Message | None:
        """The owner's newest message in a chat that is no command; without its words if it had none.

        None that was said in a group before that was opened to more people: an answer to it would tell them.
        """
        rows = await self._db.fetch(
            f"SELECT {LINE} FROM journal j WHERE j.id BETWEEN ? AND ? AND j.chat = ? AND j.role = 'user'"
            " AND j.hidden_by IS NULL AND j.session NOT IN (SELECT no FROM sessions WHERE aside = 1)"
            " AND (j.kind != 'command' OR EXISTS (SELECT 1 FROM journal r"
            " WHERE r.answers = j.id AND r.kind != 'command')) ORDER BY j.id DESC LIMIT 1",
            (owner.first_id, owner.last_id, chat.no),
        )
        return line(rows[0]) if rows else None

    async def merge(self, owner: Account, ids: Collection[int], turn: int) -> None:
        """Note that the reply to line ``turn`` answers these lines, too, and that line none but itself."""
        await self._db.execute(
            "UPDATE journal SET turn = nullif(:turn, id) WHERE id IN (SELECT value FROM json_each(:ids))"
            " AND id BETWEEN :lo AND :hi",
            {"turn": turn, "ids": json.dumps([*ids, turn]), "lo": owner.first_id, "hi": owner.last_id},
        )

    async def of_session(self, owner: Account, session: int, *, limit: int, but: Collection[int] = ()) -> list[Message]:
        """The newest visible lines of a session the owner takes part in, as a talk reads.

        Another member's lines are among them: they were said in the same place. None is that is fleeting, for those
        serve answers to their own author alone, nor one of somebody who has left the place since. Commands, lines
        that still wait for an answer and those in ``but`` are not there. A reply stands behind the line it answers,
        whatever others said before it was given.
        """
        # Asked before every reply, of dozens of rows. What is the same for all of them is looked up once; and they come
        # as one value, for at each row SQLite lets go of the interpreter, and the loop is slow to give it back.
        rows = await self._db.fetch(
            f"SELECT json_group_array(json_array({_OWN_LINE})) FROM (SELECT {LINE} FROM journal j"
            " WHERE j.session = :session AND j.kind != 'command'"
            " AND j.hidden_by IS NULL AND (j.fleeting = 0 OR j.id BETWEEN :lo AND :hi)"
            " AND EXISTS (SELECT 1 FROM session_members m WHERE m.session = :session AND m.account = :owner)"
            " AND NOT EXISTS (SELECT 1 FROM waiting w WHERE w.id = j.id AND w.reply IS NULL)"
            f" AND j.id >> {SEQ_BITS} NOT IN (SELECT d.account FROM sessions s JOIN chats c ON c.no = s.chat"
            " JOIN departures d ON d.chat = coalesce(c.parent, c.no) WHERE s.no = :session)"
            " ORDER BY j.at DESC, j.id DESC LIMIT :limit)",
            {
                "session": session,
                "owner": owner.no,
                "lo": owner.first_id,
                "hi": owner.last_id,
                "limit": limit + len(but),
            },
        )
        return in_turns([line(row) for row in json.loads(rows[0][0]) if row[0] not in but][:limit])

    async def lines(
        self, owner: Account, ids: Iterable[int], *, fleeting: bool = False, aside: bool = True
    ) -> dict[int, Message]:
        """The owner's visible lines among ``ids``; fleeting ones only for an answer that asks for them.

        Without ``aside`` none that was said in a group before that was opened to more people.
        """
        rows = await self._db.fetch(
            f"SELECT {LINE} FROM journal j WHERE j.id IN (SELECT value FROM json_each(?)) AND j.id BETWEEN ? AND ?"
            " AND j.hidden_by IS NULL AND j.fleeting <= ?"
            " AND (? OR j.session NOT IN (SELECT no FROM sessions WHERE aside = 1))",
            (json.dumps(list(ids)), owner.first_id, owner.last_id, int(fleeting), int(aside)),
        )
        return {row["id"]: line(row) for row in rows}

    async def said(self, owner: Account, *, after: int = 0) -> list[Message]:
        """Every visible line of the owner behind ``after``, the bot's replies to them included; for forgetting.

        Fleeting ones are among them: forgetting has to find them.
        """
        rows = await self._db.fetch(
            f"SELECT {LINE} FROM journal j WHERE j.id BETWEEN ? AND ? AND j.kind != 'command'"
            " AND j.hidden_by IS NULL ORDER BY j.id",
            (max(owner.first_id, after + 1), owner.last_id),
        )
        return await off_loop(lambda: [line(row) for row in rows], size=len(rows))

    async def newest(self, owner: Account) -> int:
        """The number that was given to a row of the owner last, in whichever store."""
        return await self._accounts.newest_id(owner)

    async def units(self, owner: Account, *, after: int = 0, upto: int | None = None) -> list[Unit]:
        """The same lines but the fleeting ones, up to a number, as the recall index wants them."""
        rows = await self._db.fetch(
            "SELECT j.id, j.session, j.role, j.speaker, j.at, j.text, j.text_hash, c.no AS chat, c.private, c.parent,"
            " j.session IN (SELECT no FROM sessions WHERE aside = 1) AS aside"
            " FROM journal j JOIN chats c ON c.no = j.chat WHERE j.id BETWEEN ? AND ? AND j.kind != 'command'"
            " AND j.fleeting = 0 AND j.hidden_by IS NULL ORDER BY j.id",
            (max(owner.first_id, after + 1), owner.last_id if upto is None else upto),
        )
        return await off_loop(lambda: [_unit(owner, row) for row in rows], size=len(rows))

    async def hide(self, owner: Account, ids: Iterable[int], deletion: int) -> int:
        """Hide lines on behalf of a deletion; returns how many were visible."""
        return await self._db.execute(
            "UPDATE journal SET hidden_by = ? WHERE id IN (SELECT value FROM json_each(?)) AND id BETWEEN ? AND ?"
            " AND hidden_by IS NULL",
            (deletion, json.dumps(list(ids)), owner.first_id, owner.last_id),
        )

    async def unhide(self, owner: Account, deletion: int) -> int:
        """Show again what a deletion hid; what another one covers, too, is hidden by that from now on."""
        return await self._db.execute(
            "UPDATE journal SET hidden_by = (SELECT min(a.deletion) FROM also_hidden a WHERE a.row = journal.id"
            " AND a.deletion != :deletion) WHERE hidden_by = :deletion AND id BETWEEN :lo AND :hi",
            {"deletion": deletion, "lo": owner.first_id, "hi": owner.last_id},
        )

    async def hidden(self, owner: Account, deletion: int) -> list[Message]:
        """What a deletion hid, for its erasure and the proof after it."""
        rows = await self._db.fetch(
            f"SELECT {LINE} FROM journal j WHERE j.hidden_by = ? AND j.id BETWEEN ? AND ?",
            (deletion, owner.first_id, owner.last_id),
        )
        return [line(row) for row in rows]

    async def holders(self, owner: Account, deletion: int) -> list[int]:
        """Numbers of the other accounts of whose lines a deletion of the owner's hides some."""
        rows = await self._db.fetch(
            f"SELECT DISTINCT id >> {SEQ_BITS} AS no FROM journal WHERE hidden_by = ? AND id NOT BETWEEN ? AND ?",
            (deletion, owner.first_id, owner.last_id),
        )
        return [int(row["no"]) for row in rows]

    async def concealed(self, owner: Account) -> list[Message]:
        """Every line of the owner that some deletion hides."""
        rows = await self._db.fetch(
            f"SELECT {LINE} FROM journal j WHERE j.id BETWEEN ? AND ? AND j.hidden_by IS NOT NULL ORDER BY j.id",
            (owner.first_id, owner.last_id),
        )
        return [line(row) for row in rows]

    async def aside(self, owner: Account) -> set[int]:
        """The owner's lines that were said in a group before that was opened to more people."""
        rows = await self._db.fetch(
            "SELECT id FROM journal WHERE session IN (SELECT no FROM sessions WHERE aside = 1) AND id BETWEEN ? AND ?",
            (owner.first_id, owner.last_id),
        )
        return {int(row["id"]) for row in rows}

    async def places(self, owner: Account, ids: Iterable[int]) -> dict[int, Place]:
        """Where the owner's lines among ``ids`` were said, hidden lines and those without text included."""
        rows = await self._db.fetch(
            "SELECT id, chat, session FROM journal WHERE id IN (SELECT value FROM json_each(?)) AND id BETWEEN ? AND ?",
            (json.dumps(list(ids)), owner.first_id, owner.last_id),
        )
        return {row["id"]: Place(row["chat"], row["session"]) for row in rows}

    async def erase(self, owner: Account, ids: Iterable[int]) -> None:
        """Remove lines for good.

        Of a platform's message a mark without words stays, so that it is not learned anew when the platform
        delivers it again.
        """
        chosen = (json.dumps(list(ids)), owner.first_id, owner.last_id)
        which = "id IN (SELECT value FROM json_each(?)) AND id BETWEEN ? AND ?"
        async with self._db.transaction():
            await self._db.execute(f"DELETE FROM journal WHERE platform_id IS NULL AND {which}", chosen)
            await self._db.execute(
                "UPDATE journal SET text = '', speaker = '', kind = 'command', tokens = 0, hidden_by = NULL,"
                f" fleeting = 0, held = NULL, text_hash = x'' WHERE {which}",
                chosen,
            )

    async def wordy(self, owner: Account, ids: Iterable[int]) -> bool:
        """Whether any of these lines still holds a word, hidden or not."""
        rows = await self._db.fetch(
            "SELECT 1 FROM journal WHERE id IN (SELECT value FROM json_each(?)) AND id BETWEEN ? AND ?"
            " AND (text != '' OR speaker != '') LIMIT 1",
            (json.dumps(list(ids)), owner.first_id, owner.last_id),
        )
        return bool(rows)

    async def trim(self, owner: Account, *, before: datetime) -> int:
        """Remove lines older than ``before``; memories keep their own quotes. Returns how many went."""
        return await self._db.execute(
            "DELETE FROM journal WHERE id BETWEEN ? AND ? AND at < ? AND hidden_by IS NULL",
            (owner.first_id, owner.last_id, stamp(before)),
        )


def line(row: sqlite3.Row | Sequence[Any]) -> Message:
    """A row that begins with the columns ``LINE`` as a message."""
    # By place: a row of SQLite looks for a name among all its columns each time.
    no, chat, session, role, speaker, at, text, kind, platform_id, answers, tokens, turn, fleeting, held, *_ = row
    return Message(
        no,
        chat,
        session,
        role,
        speaker,
        moment(at),
        text,
        kind,
        platform_id,
        answers,
        tokens,
        turn,
        bool(fleeting),
        held or "",
    )


def in_turns(lines: Sequence[Message]) -> list[Message]:
    """Lines in the order of a talk: by time, each reply directly behind the last line of what it answers."""
    asked: dict[int, tuple[datetime, int]] = {}
    for said in lines:
        if said.answers is None:
            turn = said.id if said.turn is None else said.turn
            asked[turn] = max(asked.get(turn, (said.at, said.id)), (said.at, said.id))

    def place(said: Message) -> tuple[datetime, int, bool, int]:
        replied = said.answers is not None
        at, id_ = asked.get(said.answers or 0, (said.at, said.id))
        return at, id_, replied, said.id

    return sorted(lines, key=place)


def _unit(owner: Account, row: sqlite3.Row) -> Unit:
    chat = Chat(row["chat"], owner.platform, "", bool(row["private"]), row["parent"])
    return Unit(
        id=row["id"],
        kind="message",
        text=row["text"],
        at=moment(row["at"]),
        audience=PRIVATE if row["aside"] else chat.audience,
        text_hash=row["text_hash"],
        speaker=row["speaker"],
        role=row["role"],
        session=row["session"],
        cites=(row["id"],),
    )
