"""Hearing: whatever a platform hands in is durable before it is queued, changed words and taken-back ones too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from bot.budgets import Budgets
from bot.commands import Commands
from bot.doorkeeper import Doorkeeper
from bot.language import changed_language, language_of
from bot.message import ChatRef, Deleted, Edited, Incoming, Left, Moved, Press, Sighted, Update
from bot.request import one_line
from bot.text import clean, is_blank
from bot.tokens import MESSAGE_TOKENS, counted
from bot.trace import TurnTrace
from bot.turn import Apology, Heard, Said, TurnedAway
from config.locales import phrase
from config.settings import Settings
from config.templates import spoken
from memory import DamagedError, DatabaseError, Line, Memory, Waiting, off_the_record
from memory.model import Account, Chat, Message, MessageKind, Sight
from memory.ports import Clock, TokenCounter

BOT: Final = "Recollect"
CANCEL: Final = "cancel"
RETRY: Final = "retry"
PAUSE: Final = "pause"
RESUME: Final = "resume"
OFF_RECORD: Final = "offrecord"
"""With the two before it the commands that say how far what is heard may be remembered."""

MOST_CHARACTERS: Final = 100_000
"""Of one message, many times what any platform carries: a longer one is not taken, and whoever sent it is told so."""

Watcher = Callable[[TurnTrace], None]


class Hearing:
    """Writes updates into memory and says what of them waits for an answer.

    ``zone`` is the IANA zone of people who have not said theirs. ``watch`` sees the trace of what was only
    learned from.
    """

    def __init__(
        self,
        memory: Memory,
        settings: Settings,
        *,
        clock: Clock,
        commands: Commands,
        count: TokenCounter,
        zone: str,
        watch: Watcher,
    ) -> None:
        self._memory = memory
        self.door = Doorkeeper(memory, settings.access, clock)
        self.budgets = Budgets(memory, settings.budget, self.door, clock)
        self._commands = commands
        self._count = count
        self._zone = zone
        self._watch = watch
        self._redo = timedelta(seconds=settings.conversation.redo_seconds)

    async def hear(self, update: Update) -> Heard | None:
        """Make an update durable before anything else happens; returns what now waits for an answer.

        Whoever is not let in is turned away first, whatever it is. Raises Apology when it cannot be written: nothing
        of it is kept then; TurnedAway when it is not taken and somebody is to be told so.
        """
        try:
            with written(language_of(update)):
                return await self._taken(update)
        except TurnedAway as away:
            if away.text:
                raise
            return None

    async def _taken(self, update: Update) -> Heard | None:
        match update:
            case Incoming():
                return await self._heard(update)
            case Edited():
                return await self._anew(update)
            case Deleted():
                await self._unsaid(update)
            case Moved():
                await self.door.moved(update.chat, update.key)
                await self._memory.moved(update.chat.platform, update.chat.key, update.key)
            case Left():
                await self._gone(update)
            case Sighted():
                told = {key: Sight(sight.everybody, sight.by, sight.but) for key, sight in update.rooms.items()}
                await self._memory.rooms.seen(update.chat.platform, told, at=update.at)
            case Press():
                await self.door.admit(update, own=self._commands.is_own_button(update.button_id))
                self.budgets.pace(update, command=True)
                return update
        return None

    async def import_reply(self, chat: ChatRef, user_id: str, message_id: str, text: str, at: datetime) -> None:
        """Journal what the bot told ``user_id`` in the past; for history that is played in."""
        words = clean(text)
        if is_blank(words):
            return
        owner = await self._memory.account(chat.platform, user_id, zone=self._zone)
        room = await self._memory.chat(owner, chat.key, private=chat.private, thread=chat.thread)
        line = Line(role="bot", speaker=BOT, at=at, text=words, platform_id=message_id, tokens=await self._cost(words))
        await self._memory.note(owner, room, line)

    async def meet(self, update: Incoming | Press, text: str = "") -> tuple[Account, Chat]:
        """Who speaks, and where; ``text`` may show that they have gone over to another language."""
        there, name = update.chat, one_line(update.name)
        known = await self._memory.acquainted(there.platform, update.user_id, there.key, name=name, thread=there.thread)
        if known is None:
            owner = await self._memory.account(
                there.platform, update.user_id, name=name, language=language_of(update), zone=self._zone
            )
            chat = await self._memory.chat(owner, there.key, private=there.private, thread=there.thread)
        else:
            owner, chat = known
        if not owner.language_fixed and (language := _gone_over(text, owner, update)) is not None:
            await self._memory.speaks(owner, language)
            owner = replace(owner, language=language)
        return owner, chat

    async def _heard(self, incoming: Incoming) -> Said | None:
        """Journal a message. What was answered, cancelled or forgotten before is not answered when it comes again."""
        if not incoming.addressed:
            return None
        incoming, command, aside = self._read(incoming)
        text = clean(incoming.text)
        if command is not None and not (incoming.chat.private or self._commands.knows(command[0])):
            return None  # in a group it is meant for another bot
        await self.door.admit(incoming, own=command is not None and self._commands.is_own(command[0]))
        if incoming.wants_reply and (command is None or command[0] != CANCEL):
            self.budgets.pace(incoming, command=command is not None)
        # Whose words they are decides whose language it is: not that of a forward, nor of what is to be forgotten.
        own = text if command is None and incoming.forward_from is None else ""
        too_long = len(text) > MOST_CHARACTERS
        owner, chat = await self.meet(incoming, "" if too_long else own)
        if too_long:
            raise _too_long(owner)
        if command is None and not aside:
            with written(owner.language):
                command = await self._commands.disputed(owner, chat, incoming)
        words = "" if command is not None or is_blank(text) else text
        line = await self._line(incoming, words, aside=aside)
        with written(owner.language):
            if incoming.wants_reply and (command is None or command[0] == RETRY):
                await self.budgets.admit(owner, chat)
            heard = await self._memory.note(owner, chat, line, waits=incoming.wants_reply)
            if heard.new and command is not None:
                await self._switched(owner, chat, command[0], at=incoming.at)
            if heard.new and command is not None and command[0] == RETRY:
                return await self._again(incoming, owner, chat, heard.message)
        said = Said(incoming, owner, chat, heard.message, command)
        if not incoming.wants_reply:
            await self._only_learn(said)
            return None
        return said if heard.new or heard.waiting else None

    async def _again(self, incoming: Incoming, owner: Account, chat: Chat, command: Message) -> Said:
        """The last message of whoever says ``/retry``, to be answered once more; else the command, and why not."""
        found = await self._memory.again(owner, chat, command)
        if isinstance(found, str):
            return Said(incoming, owner, chat, command, (RETRY, found))
        said = resumed(found, chat)
        # The talk goes on now: what has been learned since counts, and so does the time of day.
        return replace(said, incoming=replace(said.incoming, at=incoming.at), begun=True, rewrites=found.shown)

    async def _anew(self, edited: Edited) -> Said | None:
        """Take up what a message says now. It is answered if it still waits, or again if nothing was said since."""
        message, command, aside = self._read(edited.message)
        text, is_command = clean(message.text), command is not None
        author = await self._memory.author_of(
            message.chat.platform, message.chat.key, message.chat.thread, message.message_id
        )
        fresh = edited.at - message.at <= self._redo
        if author is None:
            return await self._heard(edited.message) if fresh and message.addressed and not is_command else None
        permitted = await self.door.permits(message.chat, message.user_id)
        if not permitted or len(text) > MOST_CHARACTERS:
            # Their new words are not taken, and the old ones they have taken back themselves.
            await self._unsaid(Deleted(message.chat, (message.message_id,), edited.at))
            if permitted:
                raise _too_long(author)
            return None
        owner, chat = await self.meet(message, "" if is_command or message.forward_from is not None else text)
        words = "" if is_command or is_blank(text) or not message.addressed else text
        line = await self._line(message, words, aside=aside)
        revision = await self._memory.revise(owner, chat, message.message_id, line, now=edited.at)
        if revision is None or not words:
            return None
        said = Said(message, owner, chat, revision.message)
        alone = not revision.message.turn or revision.message.turn == revision.message.id
        if revision.waits or (revision.newest and fresh and alone and await self.budgets.allows(owner, chat)):
            # What was answered to the old words is no answer to these, be it delivered or still on its way.
            await self._memory.unreply(owner, revision.message.id, waits=True)
            return said
        await self._only_learn(said)
        return None

    async def _unsaid(self, deleted: Deleted) -> None:
        """Withdraw what was taken back on the platform, and what was remembered from it."""
        ref = deleted.chat
        for message_id in deleted.message_ids:
            author = await self._memory.author_of(ref.platform, ref.key, ref.thread, message_id)
            if author is not None:
                chat = await self._memory.chat(author, ref.key, private=ref.private, thread=ref.thread)
                await self._memory.withdraw(author, chat, [message_id], now=deleted.at)

    async def _gone(self, left: Left) -> None:
        """Keep to oneself what was said in a group by somebody who is no longer there."""
        ref, rooms = left.chat, self._memory.rooms
        if left.user_id is None:
            await rooms.removed(ref.platform, ref.key, at=left.at)
            return
        owner = await self._memory.known_account(ref.platform, left.user_id)
        if owner is None:
            return
        if left.rooms is None:
            await rooms.left(owner, ref.key, at=left.at)
        else:
            await rooms.shut_out(owner, left.rooms, at=left.at)

    def _read(self, incoming: Incoming) -> tuple[Incoming, tuple[str, str] | None, bool]:
        """A message, the command it is, and whether it is to be answered and not remembered.

        ``/offrecord WORDS`` is ordinary talk of these words.
        """
        if incoming.forward_from is not None:
            return incoming, None, False
        text = clean(incoming.text)
        command = self._commands.read(text)
        if command is not None and command[0] == OFF_RECORD and command[1]:
            return replace(incoming, text=command[1]), None, True
        return incoming, command, command is None and off_the_record(text)

    async def _switched(self, owner: Account, chat: Chat, command: str, *, at: datetime) -> None:
        """Have a pause begin or end now, not when its turn to be answered comes: more may be said before that."""
        if command == PAUSE:
            await self._memory.pauses.pause(owner, chat, now=at)
        elif command == RESUME:
            await self._memory.pauses.resume(owner, chat)

    async def _only_learn(self, said: Said) -> None:
        """Learn from what nobody waits for."""
        trace = TurnTrace(said.message.id, said.chat)
        if said.message.text:
            trace.learned = await self._memory.learn(said.owner, said.chat, said.message)
        self._watch(trace)

    async def _line(self, incoming: Incoming, text: str, *, aside: bool) -> Line:
        """The journal's line of a message; what has no words (a command, a blank) leaves only that it came."""
        kind: MessageKind = "said" if incoming.forward_from is None else "forwarded"
        return Line(
            role="user",
            speaker=one_line(incoming.name if incoming.forward_from is None else incoming.forward_from or "?"),
            at=incoming.at,
            text=text,
            kind=kind if text else "command",
            platform_id=incoming.message_id,
            tokens=await self._cost(text) if text else 0,
            fleeting=aside,
        )

    async def _cost(self, text: str) -> int:
        return await counted(self._count, text) + MESSAGE_TOKENS


def _too_long(owner: Account) -> TurnedAway:
    """What the owner is told of a message that is not taken for its length."""
    return TurnedAway(phrase("error.too_many", owner.language, most=MOST_CHARACTERS))


def resumed(waiting: Waiting, chat: Chat) -> Said:
    """A message of the past in ``chat``, as memory kept it, for an answer now."""
    owner, message = waiting.owner, waiting.message
    incoming = Incoming(
        chat=ChatRef(owner.platform, waiting.key, private=waiting.private, thread=waiting.thread),
        user_id=owner.user_id,
        name=owner.name,
        message_id=message.platform_id or "",
        text=message.text,
        at=message.at,
        language=owner.language,
        forward_from=message.speaker if message.kind == "forwarded" else None,
    )
    wordless = message.kind == "command"
    lost = wordless and waiting.reply is None
    return Said(incoming, owner, chat, message, reply=waiting.reply, lost=lost, begun=waiting.begun)


def _gone_over(text: str, owner: Account, update: Incoming | Press) -> str | None:
    return changed_language(text, owner.language, spoken(update.language or ""))


@contextmanager
def written(language: str) -> Iterator[None]:
    """Turn a database that did not do its part into the apology for it."""
    try:
        yield
    except DamagedError as error:
        raise Apology("error.damaged", language) from error
    except DatabaseError as error:
        raise Apology("error.unwritable", language) from error
