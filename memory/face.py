"""The public face of memory: everything the bot may ask of it, always on behalf of an owner."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from config.settings import Settings
from memory import rules
from memory.access import Access
from memory.accounts import Accounts, Chats
from memory.answering import Answering, Heard, Opening, Waiting
from memory.calibrating import Calibration
from memory.consenting import Consenting
from memory.consents import Consents
from memory.copying import Copies
from memory.corrections import Corrections
from memory.db import Database, DatabaseError
from memory.disclosing import Disclosures
from memory.distill import Distiller
from memory.doubts import Doubt
from memory.echoes import Echoes
from memory.exporting import Exports
from memory.fleeting import Fleeting
from memory.forget import Forgetting, Plan
from memory.forget_together import ForgettingTogether
from memory.freshness import Freshness
from memory.housekeeping import Housekeeping
from memory.importing import Imports
from memory.indexes import MEGABYTE, Indexes
from memory.jobs import Job, JobRun, Runs, run_due
from memory.journal import Line
from memory.ledger import Ledger
from memory.linking import Linking
from memory.lists import Lists
from memory.merging import Merging
from memory.model import (
    PRIVATE,
    Account,
    Candidate,
    Chat,
    Decision,
    Entry,
    Event,
    Message,
    ProfileLine,
    Recollection,
)
from memory.moving import Moves
from memory.overview import Overviews
from memory.pauses import Pauses
from memory.persons import Persons
from memory.ports import Clock, Completer, Embedder, Reranker, TokenCounter
from memory.promises import Deletion, Notice
from memory.reasons import Reasons
from memory.recall import Recall, RecallOptions
from memory.reconcile import Gate
from memory.reserve import Reserve
from memory.revising import Revising, Revision
from memory.rezoning import Rezoning
from memory.rooms import Rooms
from memory.sealing import Sealing
from memory.sessions import Sessions
from memory.sharing import Sharing
from memory.stores import Stores
from memory.tallies import Tallies
from memory.together import Together

log = logging.getLogger(__name__)

_TIMES_OF_DAY = frozenset({"hour", "minute"})


@dataclass(frozen=True, slots=True)
class Owed:
    """A notice, whose it is, and the platform's key of the chat it was asked for in."""

    owner: Account
    key: str
    private: bool
    notice: Notice


class Memory:
    """Remembers. Open one with :meth:`open`, end it with :meth:`close`.

    Every method that reads or writes memory takes the owner first; the few that do not are named in
    ``tests/test_owner.py`` with the reason.
    """

    def __init__(
        self,
        db: Database,
        settings: Settings,
        *,
        clock: Clock,
        count: TokenCounter,
        embedder: Embedder | None,
        completer: Completer | None,
        reranker: Reranker | None = None,
    ) -> None:
        self._db = db
        self._settings = settings
        self._clock = clock
        self._accounts = Accounts(db)
        self._chats = Chats(db)
        self._sessions = Sessions(db, timedelta(minutes=settings.session.idle_minutes))
        self._runs = Runs(db)
        self._stores = Stores.over(db, self._accounts, embedder, clock)
        self.rooms = Rooms(db, self._accounts, changed=self._moved_about)
        """Who is in which group."""
        persons = Persons(db)
        self._together = Together(self._accounts, persons, self.rooms, self._stores)
        self.linking = Linking(db, self._accounts, persons, self._stores.promises)
        """Which accounts are one person."""
        self.access = Access(db, self._accounts, self._chats, self._stores.promises)
        """Who may talk, and who asks to."""
        self.lists = Lists(self._stores, self._chats, self._together)
        """What the owner was shown under which number."""
        self.tallies = Tallies(db)
        """What was done, in counts; nobody's."""
        self.usage = self._stores.usage
        """What the owner's chats cost."""
        self._indexes = Indexes(self._stores, most_bytes=settings.recall.index_mb * MEGABYTE)
        self.sharing = Sharing(db, self._stores, self._indexes, self._together)
        """Where the owner's memories may be used."""
        self.merging = Merging(db, self._stores, self._indexes)
        """What was folded into one, and the way back."""
        self.pauses = Pauses(db, self._chats)
        consents = Consents(db)
        self.exports = Exports(
            self._accounts,
            self._chats,
            self._stores,
            pauses=self.pauses,
            consents=consents,
            linked=self.linking.linked,
        )
        patience = timedelta(days=settings.privacy.ask_days)
        reserve = Reserve(self.pauses, consents, settings.privacy)
        self._gate = Gate(db, self._stores, reserve=reserve)
        self.imports = Imports(
            db,
            self._accounts,
            self._chats,
            self._sessions,
            self._stores,
            gate=self._gate,
            reserve=reserve,
            pauses=self.pauses,
            consents=consents,
        )
        """What is brought from elsewhere."""
        self._rezoning = Rezoning(db, self._accounts, self._stores.timeline, self._indexes)
        self._moves = Moves(db)
        echoes = Echoes(self._accounts, self._sessions, self._stores, persons, changed=self._indexes.forget)
        self.disclosures = Disclosures(db)
        self._answering = Answering(
            db,
            self._accounts,
            self._chats,
            self._sessions,
            self._stores,
            reserve=reserve,
            rooms=self.rooms,
            echoes=echoes,
        )
        self._revising = Revising(
            db,
            self._chats,
            self._sessions,
            self._stores,
            gate=self._gate,
            answering=self._answering,
            reserve=reserve,
            echoes=echoes,
        )
        self._ledger = Ledger(db, self._accounts, copy_in=settings.backup.folder)
        self._copies = Copies(db, settings.backup, settings.backup_dir, clock=clock)
        forgetting = Forgetting(
            db,
            self._stores,
            self._sessions,
            timedelta(minutes=settings.forget.undo_minutes),
            echoes,
            changed=self._changed,
            copies=self._copies.cycle_hours,
        )
        self.forgetting = ForgettingTogether(
            db, forgetting, self._accounts, self._chats, persons=persons, stores=self._stores
        )
        self.consenting = Consenting(
            db,
            self._chats,
            self._sessions,
            self._stores,
            consents=consents,
            reserve=reserve,
            forgetting=forgetting,
            patience=patience,
            learn=self.learn,
            changed=self._changed,
        )
        """What may be kept of sensitive matters."""
        self._recall = Recall(
            self._stores, self._indexes, settings.recall, count, completer=completer, reranker=reranker
        )
        self.overview = Overviews(self._together, self._recall)
        """What is known, in groups a person reads."""
        self.reasons = Reasons(self._stores, self._together)
        """Why an answer was as it was."""
        self.corrections = Corrections(
            db, self._stores, self._gate, lists=self.lists, reasons=self.reasons, changed=self._changed
        )
        """What is put right by its owner."""
        self._freshness = Freshness(
            self._stores.embeddings,
            self._sessions,
            idle=timedelta(minutes=settings.session.idle_minutes),
            patience_seconds=settings.recall.timeout_seconds,
        )
        self._housekeeping = Housekeeping(
            settings,
            self._accounts,
            self._sessions,
            self._stores,
            forgetting=forgetting,
            rezoning=self._rezoning,
            gate=self._gate,
            indexes=self._indexes,
            recall=self._recall,
            sealing=Sealing(db, self._stores),
            fleeting=Fleeting(
                db, self._accounts, self._sessions, self._stores, answering=self._answering, patience=patience
            ),
            freshness=self._freshness,
            tallies=self.tallies,
            ledger=self._ledger,
            copies=self._copies,
            distiller=None
            if completer is None
            else Distiller(
                db,
                self._stores,
                self._sessions,
                completer=completer,
                clock=clock,
                settings=settings.distil,
                embeddings=self._stores.embeddings,
                reserve=reserve,
                usage=self._stores.usage,
            ),
        )

    @classmethod
    async def open(
        cls,
        path: Path,
        settings: Settings,
        *,
        clock: Clock,
        count: TokenCounter,
        embedder: Embedder | None = None,
        completer: Completer | None = None,
        reranker: Reranker | None = None,
    ) -> Self:
        """Open the database at ``path``.

        ``count`` counts tokens of a text. Without an embedder recall goes by words, without a completer
        sessions wait undistilled, without a reranker the score alone gives the order. Raises DatabaseError
        when the file cannot be used.
        """
        db = await Database.open(path)
        memory = cls(db, settings, clock=clock, count=count, embedder=embedder, completer=completer, reranker=reranker)
        await memory._ledger.open()
        return memory

    async def close(self) -> None:
        """Finish the running write, store what recall has measured, and close the file."""
        try:
            await self._recall.measured.store()
            await self._housekeeping.usage(self._clock())
        except DatabaseError as error:
            log.warning("what was measured and counted last is not kept: %s", error)
        finally:
            await self._db.close()

    # ---- who and where -------------------------------------------------------------------------------

    async def account(
        self, platform: str, user_id: str, *, name: str = "", language: str = "en", zone: str = "UTC"
    ) -> Account:
        """The account of a platform's user, made at the first meeting (``language`` and ``zone`` count then)."""
        return await self._accounts.meet(platform, user_id, name=name, language=language, zone=zone, at=self._clock())

    async def known_account(self, platform: str, user_id: str) -> Account | None:
        """The account, or None for somebody who never spoke; nothing is made."""
        return await self._accounts.find(platform, user_id)

    async def speaks(self, owner: Account, language: str) -> None:
        """Remember the language ("en", "zh", "zh-TW") the owner writes in; one they fixed stays."""
        await self._accounts.speak(owner, language)

    async def fix_language(self, owner: Account, language: str | None) -> None:
        """Speak the language ("en", "zh", "zh-TW") the owner chose; None follows what they write."""
        await self._accounts.fix_language(owner, language)

    async def fix_zone(self, owner: Account, zone: str | None) -> None:
        """Reckon the owner's times in a zone (IANA) they chose; None goes by what they say of where they are."""
        await self._accounts.fix_zone(owner, zone)
        await self._rezoning.settle(owner)

    async def ask_zone(self, owner: Account, decisions: Sequence[Decision]) -> bool:
        """Whether to ask the owner for their zone now, once in a lifetime: a time of day was kept in a guessed one."""
        written = (decision.entry for decision in decisions if decision.action in ("added", "superseded"))
        timed = any(isinstance(entry, Event) and entry.span.precision in _TIMES_OF_DAY for entry in written)
        return timed and owner.zone_from == "default" and await self._accounts.ask_zone(owner)

    async def chat(self, owner: Account, key: str, *, private: bool = True, thread: str | None = None) -> Chat:
        """The chat ``key`` on the owner's platform, made when first seen."""
        return await self._chats.enter(owner, key, private=private, thread=thread, at=self._clock())

    async def acquainted(
        self, platform: str, user_id: str, key: str, *, name: str = "", thread: str | None = None
    ) -> tuple[Account, Chat] | None:
        """Somebody who was in this chat before, and the chat, in one trip to the file.

        None when either is new, or when they go by another name: :meth:`account` and :meth:`chat` tell then.
        """

        async def reading() -> tuple[Account, Chat] | None:
            owner = await self._accounts.find(platform, user_id)
            if owner is None or name not in ("", owner.name):
                return None
            chat = await self._chats.known(owner, key, thread=thread)
            return None if chat is None else (owner, chat)

        return await self._db.together(reading)

    async def chat_key(self, owner: Account, no: int) -> str:
        """The platform's key of a chat, for a reader who knows no numbers. Raises KeyError."""
        return (await self._chats.address(owner, no))[0]

    async def author_of(self, platform: str, key: str, thread: str | None, platform_id: str) -> Account | None:
        """Whose journaled line a message of the platform is; None for one that was never heard."""
        return await self._accounts.author_of(platform, key, thread, platform_id)

    async def moved(self, platform: str, old_key: str, new_key: str) -> bool:
        """A group goes on under a new key, with its threads, numbers and audiences; whether there was one to move.

        What came in under the new key already joins it, and who may see the group is known on. Done twice, it
        changes nothing.
        """
        async with self._db.transaction():
            await self.rooms.moved(platform, old_key, new_key, at=self._clock())
            moved = await self._moves.move(platform, old_key, new_key)
        if moved:
            self._moved_about()
        return moved

    async def newest_heard(self, platform: str) -> dict[tuple[str, str | None, bool], str]:
        """The highest number of a person's message in each chat of a platform, by (key, thread, private).

        Messages whose ids are no numbers do not count.
        """
        return await self._stores.journal.newest_heard(platform)

    # ---- the way of a message ------------------------------------------------------------------------

    async def note(self, owner: Account, chat: Chat, line: Line, *, waits: bool = False) -> Heard:
        """Journal a line, durable when this returns. The same platform message is one line, however often it comes.

        One that ``waits`` for an answer does so from the same moment on, until :meth:`answered` or :meth:`settled`.
        """
        heard = await self._answering.note(owner, chat, line, waits=waits)
        if heard.new:
            self._freshness.heard(owner, heard.message)
        return heard

    async def learn(self, owner: Account, chat: Chat, message: Message) -> list[Decision]:
        """Let the rules read the owner's own words and pass what is certain through the write gate."""
        if message.role != "user" or message.kind != "said":
            return []
        if message.fleeting:
            refused = not message.held and await self.consenting.refuses(owner, message.text, now=self._clock())
            reason = "held" if message.held else "sensitive" if refused else ""
            return [self._dropped(reason)] if reason else []
        found = rules.candidates(
            message.text, message_id=message.id, at=message.at, language_hint=owner.language, zone=owner.zone
        )
        return await self._admit(owner, chat, message, found)

    async def remember(self, owner: Account, chat: Chat, message: Message, text: str) -> Decision:
        """Keep what the owner asked for in so many words; the decision is the receipt, or says why not."""
        try:
            asked = rules.remember(
                text, message_id=message.id, at=message.at, language_hint=owner.language, zone=owner.zone
            )
        except rules.Refused as refusal:
            return self._dropped(refusal.reason)
        (decision,) = await self._admit(owner, chat, message, [asked], asked_for=True)
        return decision

    async def recall(
        self,
        owner: Account,
        question: str,
        *,
        room: Chat,
        now: datetime,
        options: RecallOptions | None = None,
        session: int | None = None,
    ) -> Recollection:
        """What the owner's memory holds for a question asked in ``room`` at ``now``: one list, best first.

        Only what may be used in that room, only what holds at that time, within the budget and above the
        threshold of ``options`` (the settings' by default). May be empty, and says why. ``session`` is the open one of
        that room, if the asker knows it.
        """
        chosen = options or RecallOptions(max_tokens=self._settings.recall.max_tokens)
        places = await self._together.places(owner, room)
        found = []
        for place in places:
            own = place is places[0]
            await self._freshness.before_recall(place.account, place.room, now=now, session=session if own else None)
            more = chosen if own else replace(chosen, asker=owner)
            part = await self._recall.recall(place.account, question, now=now, room=place.room, options=more)
            found.append((place, part))
        if len(found) == 1:
            recalled = found[0][1]
        else:
            shelf = self._recall.shelf(owner, chosen, settled=True)
            recalled = await self._together.joined(found, now=now, shelf=shelf)
        self._db.tally("recalled", recalled.verdict)
        return recalled

    async def window(
        self, owner: Account, chat: Chat, *, now: datetime, limit: int = 200, but: Collection[int] = ()
    ) -> list[Message]:
        """The newest visible lines of the chat's open session, at most ``limit``, as a talk reads.

        A reply stands behind what it answers. Lines that still wait for an answer and those in ``but`` are left out.
        """
        return (await self.opening(owner, chat, now=now, limit=limit, but=but)).window

    async def opening(
        self, owner: Account, chat: Chat, *, now: datetime, limit: int = 200, but: Collection[int] = ()
    ) -> Opening:
        """What a reply begins with, as of one moment: :meth:`mark`, and :meth:`window` with its session."""
        return await self._answering.opening(owner, chat, now=now, limit=limit, but=but)

    async def shown(self, owner: Account, message: int, platform_id: str | None) -> None:
        """Note that a first message of the answer to a line may go out (None), or the id of one that did."""
        await self._stores.waits.shown(owner, message, platform_id)

    async def unbegun(self, owner: Account, message: int) -> None:
        """Note that nothing of the answer to a line went out after all: the platform was not reached."""
        await self._stores.waits.unbegun(owner, message)

    async def mark(self, owner: Account) -> int:
        """The newest row of the owner just now: what is forgotten later is forgotten after this."""
        return await self._accounts.newest_id(owner)

    async def answered(
        self,
        owner: Account,
        chat: Chat,
        line: Line,
        trace: Mapping[str, Any] | None,
        *,
        delivered: bool = True,
        also: Sequence[int] = (),
        since: int | None = None,
        asks: Doubt | None = None,
    ) -> Message:
        """Journal a reply (``line.answers`` names what it answers) together with its trace, if it has one.

        ``also`` are further lines of the same turn; neither they nor what is answered wait any more. A reply that
        is not ``delivered`` yet is kept to be sent after a kill, until :meth:`settled`. One that was under way
        (``since`` the :meth:`mark` it began at, by default the line it answers) while something was forgotten may
        rest on that: only that it was given is kept. With the reply the owner is asked about a doubt (``asks``);
        raises AlreadyAskedError, with nothing written, when they have been asked about it.
        """
        reply = await self._answering.answered(
            owner,
            chat,
            line,
            trace,
            delivered=delivered,
            also=also,
            since=since,
            first=None if asks is None else partial(self.corrections.asked, owner, asks, at=line.at),
        )
        self._freshness.heard(owner, reply)
        return reply

    async def settled(self, owner: Account, message: int, *more: int) -> None:
        """Lines wait no more: their answer was delivered, cancelled or given up."""
        await self._stores.waits.delivered(owner, (message, *more))

    async def again(self, owner: Account, chat: Chat, command: Message) -> Waiting | Literal["nothing", "busy"]:
        """Have the owner's last message in a chat wait for another answer in place of the one it had.

        The old answer is erased, and ``command``, which asks for this, waits no more. "busy" when the last message
        still waits for its answer, "nothing" when there is none that could be answered again.
        """
        found = await self._answering.again(owner, chat, command)
        self._indexes.forget(owner)
        return found

    async def waits(self, owner: Account, message: int) -> bool:
        """Whether a line waits for an answer, be it only for the delivery of one."""
        return await self._stores.waits.waits(owner, message)

    async def waiting(self, platform: str, *, since: datetime) -> list[Waiting]:
        """Everything of a platform that waits for an answer, in order of arrival; for a start.

        What was said before ``since`` (aware UTC) is given up, and counted in the log.
        """
        return await self._answering.waiting(platform, since=since)

    async def unreply(self, owner: Account, message: int, *, waits: bool = False) -> int:
        """Erase the replies to a line (or to its turn) and their traces, for an answer that is given anew.

        With ``waits`` the line waits for that from now on. Returns how many replies went.
        """
        erased = await self._answering.unreply(owner, message, waits=waits)
        self._indexes.forget(owner)
        return erased

    async def revise(
        self, owner: Account, chat: Chat, platform_id: str, line: Line, *, now: datetime
    ) -> Revision | None:
        """A message was edited: the journal reads as ``line`` says, and what only the old words said is forgotten.

        Its time stays. None when it was never heard, was forgotten, or says the same as before.
        """
        revision = await self._revising.revise(owner, chat, platform_id, line, now=now)
        self._indexes.forget(owner)
        self._stores.embeddings.disturbed(owner)
        return revision

    async def withdraw(self, owner: Account, chat: Chat, platform_ids: Sequence[str], *, now: datetime) -> int:
        """Messages were deleted on the platform: they, the replies to them and what only they said are erased.

        Returns how many lines went.
        """
        withdrawn = await self._revising.withdraw(owner, chat, platform_ids, now=now)
        self._indexes.forget(owner)
        self._stores.embeddings.disturbed(owner)
        return withdrawn

    async def new_session(self, owner: Account, chat: Chat, *, now: datetime) -> bool:
        """End the chat's session: the window starts empty, what was said is distilled; whether there was one."""
        return await self._sessions.end(owner, chat, at=now)

    # ---- seeing, correcting, forgetting --------------------------------------------------------------

    async def known(self, owner: Account, *, room: Chat, now: datetime) -> list[Entry]:
        """What holds now and may be shown in ``room``: profile, events, facts, each in order of writing."""
        return await self._together.known(owner, room=room, now=now)

    async def history(self, owner: Account) -> list[Entry]:
        """Everything but what was forgotten: live, superseded and expired memories."""
        return [entry for store in self._stores.entries for entry in await store.history(owner)]

    async def entries(self, owner: Account, ids: Sequence[int]) -> dict[int, Entry | Message]:
        """The owner's visible memories and journal lines among ``ids``."""
        return await self._together.entries(owner, ids)

    async def plan_forgetting(self, owner: Account, chat: Chat, words: str, *, now: datetime) -> Plan | None:
        """Offer to delete what ``words`` mean; None when nothing matches. Nothing is deleted."""
        return await self.forgetting.plan(owner, chat, words, now=now)

    async def pending_forgetting(self, owner: Account, chat: Chat, *, now: datetime) -> int | None:
        """Id of the offer that waits for a yes in this chat."""
        offer = await self.forgetting.pending(owner, chat, now=now)
        return None if offer is None else offer.id

    async def forget(
        self, owner: Account, offer: int, *, picks: Sequence[int] | None, now: datetime, typed: bool = False
    ) -> Deletion | None:
        """Carry out an offer (``picks``: 1-based numbers of its entries, None: all of it). Hidden at once.

        None when the offer is not open any more. Raises as :meth:`memory.forget.Forgetting.carry_out`.
        """
        return await self.forgetting.carry_out(owner, offer, picks=picks, now=now, typed=typed)

    async def undo(
        self, owner: Account, deletion: int | None = None, *, now: datetime, asked_at: datetime | None = None
    ) -> Deletion | None:
        """Bring back what was hidden last (or by ``deletion``); None when it is too late or there is nothing.

        ``asked_at`` is the time of the request: delivered twice, it undoes once.
        """
        return await self.forgetting.undo(owner, deletion, now=now, asked_at=asked_at)

    async def notices(self) -> list[Owed]:
        """Every notice owed, oldest first."""
        owed = []
        for number in await self._stores.promises.owners_owed():
            owner = await self._accounts.numbered(number)
            for notice in await self._stores.promises.notices(owner):
                key, _ = await self._chats.address(owner, notice.chat)
                chat = await self._chats.numbered(owner, notice.chat)
                owed.append(Owed(owner, key, chat.private, notice))
        return owed

    async def notified(self, owner: Account, notice: Notice, *, now: datetime) -> bool:
        """Mark a notice as delivered; False if it was already."""
        return await self._stores.promises.notified(owner, notice.id, at=now)

    @property
    def cached_bytes(self) -> int:
        """Memory that the indexes of people hold, bytes: bounded, and let go of by who talked longest ago."""
        return self._indexes.nbytes

    # ---- housekeeping --------------------------------------------------------------------------------

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The housekeeping, for a scheduler to run."""
        return self._housekeeping.jobs

    async def job_runs(self) -> list[JobRun]:
        """What each job did last, and when."""
        return await self._runs.all()

    async def run_due(self, *, now: datetime) -> dict[str, Mapping[str, int]]:
        """Run the jobs whose time has come at ``now``; returns what each did."""
        housekeeping = self._housekeeping
        return await run_due(housekeeping.jobs, self._runs, now=now, leaving=lambda: housekeeping.leaving)

    def leave_off(self) -> None:
        """Begin no job any more, and no more people within one that runs: the program is about to end."""
        self._housekeeping.leaving = True

    async def calibrate(self, owner: Account) -> Calibration:
        """How well the owner's memory tells what it was told from what it was not. Raises EmbedderUnavailable."""
        return await self._recall.calibrate(owner, now=self._clock())

    async def distilled(self, owner: Account, *, now: datetime) -> tuple[int, int]:
        """Tokens of distillations on this day of UTC, as its budgets count them: the owner's, and everybody's."""
        return await self._sessions.spent(owner, now=now)

    async def embed(self, owner: Account) -> int:
        """Give the owner's texts the vectors they lack; returns how many. Raises EmbedderUnavailable."""
        return await self._stores.embeddings.fill(owner)

    def _changed(self, owner: Account) -> None:
        """What the owner may see is another thing now: nothing kept of it in memory holds any more."""
        self._indexes.forget(owner)
        self._stores.embeddings.disturbed(owner)

    def _dropped(self, reason: str) -> Decision:
        self._db.tally("dropped", reason)
        return Decision("dropped", reason)

    def _moved_about(self) -> None:
        """Read every memory anew: where some may be used has changed."""
        self._indexes.clear()

    async def _admit(
        self, owner: Account, chat: Chat, message: Message, found: Sequence[Candidate], *, asked_for: bool = False
    ) -> list[Decision]:
        if not found:
            return []

        async def writing() -> list[Decision]:
            if not await self._stores.journal.stands(owner, message):
                return [self._dropped("withdrawn") for _ in found]
            audience = PRIVATE if chat.private else await self._sessions.audience(owner, message.session)
            return await self._gate.admit(owner, found, audience=audience, now=self._clock(), asked_for=asked_for)

        decisions = await self._db.written(writing)
        if any(decision.closed or decision.reason == "held" for decision in decisions):
            self._indexes.forget(owner)
        if any(isinstance(decision.entry, ProfileLine) for decision in decisions):
            await self._rezoning.settle(owner)
        return decisions
