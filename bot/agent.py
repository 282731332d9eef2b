"""The agent: one message in, one reply out. :meth:`Agent.respond` is the whole way, top to bottom."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from bot import metrics
from bot.commands import Commands, Order, Pressed, Question
from bot.escape import escaped
from bot.hearing import BOT, Hearing, Watcher, written
from bot.language import language_of
from bot.llm import LLM, ContextTooLong, LLMError, Outcome, PicturesRefused
from bot.media import Opened, as_words, opened
from bot.message import DeliveryError, Press, Reply, Sink, Update
from bot.postscript import Postscripts
from bot.request import Requests, unseen
from bot.text import is_blank
from bot.tokens import LONG_TEXT, MESSAGE_TOKENS, counted
from bot.trace import TurnTrace
from bot.turn import Apology, Heard, Said
from bot.window import cut
from config.locales import phrase
from config.settings import Settings
from memory import (
    AlreadyAskedError,
    DatabaseError,
    Line,
    Memory,
    RecallOptions,
    asks_about_everything,
    is_small_talk,
    wants_remembering,
)
from memory.model import Account, Chat, Message, Recollection
from memory.ports import Clock, TokenCounter

log = logging.getLogger(__name__)

SHARES: Final = (1.0, 0.5, 0.0)
"""Of the window's tokens, what each further request still carries when the context was too long."""
WINDOW_LINES: Final = 400
"""Lines read from the journal for a window; the token budget cuts far below."""
TELLING: Final = frozenset({"start", "privacy"})
"""Commands whose own answer says what is remembered, and how to see and erase it."""
ASKED_CHARACTERS: Final = 4_000
"""Of what was said at once that memory is searched for. More is a text; what is asked about one stands at its beginning
or at its end."""
CONTEXT_TURNS: Final = 4
"""Last lines of the talk that recall may read to understand a question such as "and when was that?"."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one person said as one, on its way to a reply; it rests on what memory held at the mark ``since``."""

    said: tuple[Said, ...]
    opened: Opened
    trace: TurnTrace
    since: int
    system: str
    """What the model is told about itself and about whom it talks to."""

    @property
    def last(self) -> Said:
        """The message the reply answers."""
        return self.said[-1]

    @property
    def owner(self) -> Account:
        """Whose turn it is."""
        return self.last.owner

    @property
    def chat(self) -> Chat:
        """Where it is answered."""
        return self.last.chat

    @property
    def ids(self) -> list[int]:
        """Journal ids of its messages."""
        return [said.message.id for said in self.said]

    @property
    def is_fleeting(self) -> bool:
        """Whether any of it is to be answered and not remembered."""
        return any(said.message.fleeting for said in self.said)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it that a model could read."""
        return is_blank(self.words) and not (self.opened.images or self.opened.texts)

    @property
    def words(self) -> str:
        """All its words."""
        return "\n".join(said.message.text for said in self.said if said.message.text)


@dataclass(frozen=True, slots=True)
class Book:
    """What memory keeps of the messages that show the answer to a line."""

    memory: Memory
    owner: Account
    line: int

    async def __call__(self, message_id: str | None) -> None:
        """Note that one may go out (None), or the platform's id of one that did."""
        await self.memory.shown(self.owner, self.line, message_id)

    async def unbegun(self) -> None:
        """Note that none went out after all."""
        await self.memory.unbegun(self.owner, self.line)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person sees, and what the journal keeps as said (None: only that it was answered)."""

    text: str
    kept: str | None = None


class Agent:
    """Hears updates and answers them. Knows memory and the model, no platform.

    ``zone`` is the IANA zone of people who have not said theirs. ``watch`` sees each finished trace.
    """

    def __init__(
        self,
        memory: Memory,
        settings: Settings,
        *,
        clock: Clock,
        count: TokenCounter,
        model: LLM | None = None,
        zone: str = "UTC",
        watch: Watcher | None = None,
    ) -> None:
        self._memory = memory
        self._clock = clock
        self._count = count
        self._model = model
        self._watch = watch
        self._media = settings.media
        self._reply_tokens = settings.model.reply_tokens
        self._recall_tokens = settings.recall.max_tokens
        self._requests = Requests(settings, count)
        self._commands = Commands(memory, clock, settings)
        self.hearing = Hearing(
            memory, settings, clock=clock, commands=self._commands, count=count, zone=zone, watch=self._seen
        )
        self._postscripts = Postscripts(memory, clock, settings, self.hearing.budgets)

    async def hear(self, update: Update) -> Heard | None:
        """Make an update durable; returns what now waits for an answer. Raises Apology."""
        return await self.hearing.hear(update)

    async def answer(self, turn: Sequence[Said], sink: Sink) -> None:
        """Answer what one person said as one. Raises Apology and DeliveryError."""
        last = turn[-1]
        sink.watch(Book(self._memory, last.owner, last.message.id))
        if not await self._is_welcome(last):
            await self.give_up(turn)
        elif last.command is not None:
            try:
                with written(last.owner.language):
                    await self._obey(last, _order(last, *last.command), sink)
            except Apology:
                await self._settle(turn)
                raise
        elif last.reply is not None:
            behind = await self._postscripts.behind([last])
            text = "\n\n".join(filter(None, (last.reply.text, escaped(behind))))
            await self._deliver(turn, Reply(text, markdown=True), sink)
        elif last.lost:
            await self._journal(last, None)
            await self._postscripts.refused(last)
            await sink.send(Reply(phrase("error.interrupted", last.owner.language)))
        else:
            with written(last.owner.language):
                await self.respond(turn, sink)

    async def respond(self, said: Sequence[Said], sink: Sink) -> None:
        """The way of what is in the journal now: rules, recall, window, model, reply, trace."""
        last = said[-1]
        attached = [media for one in said for media in one.incoming.media]
        # To open what is attached may take a while, in which something may be forgotten.
        mark = await self._memory.mark(last.owner) if attached else None
        media = await opened(attached, self._media, self._count)
        ids = [one.message.id for one in said]
        opening = await self._memory.opening(last.owner, last.chat, now=last.incoming.at, limit=WINDOW_LINES, but=ids)
        earlier, since = opening.window, opening.since if mark is None else mark
        turn = Exchange(tuple(said), media, TurnTrace(last.message.id, last.chat), since, self._requests.system(last))
        if turn.is_empty:
            await self._finish(turn, sink, Answer(unseen(media, last.owner.language)))
            return
        receipt = await self._learn(turn)
        turn.trace.found = await self._recall(turn, earlier, opening.session)
        answer = await self._ask(turn, earlier, sink)
        zone = await self._commands.zone_question(turn.owner, turn.chat, turn.trace.learned)
        doubt = None if zone or not self._is_whole(answer) else await self._doubt(turn)
        await self._finish(turn, sink, answer, receipt="\n\n".join(filter(None, (receipt, zone))), doubt=doubt)

    async def press(self, press: Press, sink: Sink) -> None:
        """Obey a button. Raises Apology and DeliveryError."""
        with written(language_of(press)):
            owner, chat = await self.hearing.meet(press)
        with written(owner.language):
            reply = await self._commands.press(Pressed(owner, chat, press.button_id, press.at))
            await sink.send(_discreet(reply, owner, chat))

    async def _is_welcome(self, said: Said) -> bool:
        """Whether what waited is still to be answered: its author may have been let in no more since."""
        if said.reply is not None or (said.command is not None and self._commands.is_own(said.command[0])):
            return True
        with written(said.owner.language):
            return await self.hearing.door.permits(said.incoming.chat, said.incoming.user_id)

    async def give_up(self, said: Sequence[Said]) -> None:
        """Let messages wait no longer; what they tell is learned, and they are not answered.

        A reply that was made already and not delivered is as if it had never been.
        """
        if not said:
            return
        with written(said[-1].owner.language):
            await self._memory.settled(said[-1].owner, *(one.message.id for one in said))
            await self._memory.unreply(said[-1].owner, said[-1].message.id)
            await self._postscripts.refused(said[-1])
            for one in said:
                await self._memory.learn(one.owner, one.chat, one.message)

    async def _learn(self, turn: Exchange) -> str:
        """Let the rules write; returns what the person must hear about it, mostly nothing.

        Only the program may say that something was stored, so a wish to be remembered gets its receipt here.
        """
        owner = turn.owner
        try:
            with _timed(turn.trace, "learn"):
                for said in turn.said:
                    turn.trace.learned += await self._memory.learn(owner, turn.chat, said.message)
        except DatabaseError:
            log.exception("what the rules read was not saved")
            return phrase("error.unsaved", owner.language)
        asked = any(said.message.kind == "said" and wants_remembering(said.message.text) for said in turn.said)
        if self._model is None or not asked:
            return ""
        if turn.is_fleeting and not turn.trace.noted:
            return phrase("pause.not_kept", owner.language)
        return phrase("chat.receipt", owner.language, kept=turn.trace.kept, noted=turn.trace.noted)

    async def _recall(self, turn: Exchange, earlier: list[Message], session: int | None) -> Recollection:
        text = _asking(turn.words)
        if is_blank(text) or is_small_talk(text):
            return Recollection(notes=("small talk",))
        options = RecallOptions(
            max_tokens=self._recall_tokens,
            exclude=await self._seen_anyway(turn, earlier),
            asked=turn.last.message.id,
            context=tuple(line.text for line in earlier[-CONTEXT_TURNS:] if not line.fleeting),
            by_words=turn.is_fleeting,
            everything=asks_about_everything(text),
        )
        try:
            with _timed(turn.trace, "recall"):
                now = turn.last.incoming.at
                return await self._memory.recall(
                    turn.owner, text, room=turn.chat, now=now, options=options, session=session
                )
        except DatabaseError:
            log.exception("nothing could be recalled")
            return Recollection(notes=("database",))

    async def _room(self, turn: Exchange, found: Recollection) -> int:
        """Tokens left for the window beside what was found; negative when the message alone is too long."""
        budget = partial(self._requests.window_budget, turn.system, turn.said, turn.opened, found)
        return await asyncio.to_thread(budget) if len(turn.words) > LONG_TEXT else budget()

    async def _seen_anyway(self, turn: Exchange, earlier: list[Message]) -> frozenset[int]:
        """The lines that need no recalling: the message, and what the window will hold beside a full block."""
        if self._model is None:
            return frozenset(turn.ids)
        room = await self._room(turn, Recollection()) - self._recall_tokens
        return frozenset({*turn.ids, *(line.id for line in cut(earlier, room).lines)})

    async def _ask(self, turn: Exchange, earlier: list[Message], sink: Sink) -> Answer:
        """Ask the model; without one, answer from memory. Raises Apology when it does not answer."""
        language = turn.owner.language
        if self._model is None:
            return Answer(self._requests.without_model(turn.said, turn.trace))
        try:
            outcome = await self._seen_or_told(self._model, turn, earlier, sink)
            if outcome is None:
                return Answer(unseen(turn.opened.blind(), language))
            if outcome.finish == "empty":
                outcome = await self._stream(self._model, turn, sink)
        except ContextTooLong as error:
            log.warning("not even the message alone fits the model: %s", error)
            turn.trace.finish = "failed"
            return Answer(phrase("error.too_long", language, fleeting=turn.is_fleeting))
        except LLMError as error:
            turn.trace.finish = "failed"
            await self._unanswered(turn)
            raise Apology("error.model_fleeting" if turn.is_fleeting else "error.model", language) from error
        return await self._judged(turn, outcome)

    async def _seen_or_told(self, model: LLM, turn: Exchange, earlier: list[Message], sink: Sink) -> Outcome | None:
        """Ask with the pictures, or without them where they are refused or leave no room. None if nothing is left."""
        try:
            return await self._fitted(model, turn, earlier, sink)
        except (PicturesRefused, ContextTooLong) as error:
            if not turn.opened.images:
                raise
            log.warning("the pictures were not taken: %s", error)
        blind = replace(turn, opened=turn.opened.blind())
        return None if blind.is_empty else await self._fitted(model, blind, earlier, sink)

    async def _fitted(self, model: LLM, turn: Exchange, earlier: list[Message], sink: Sink) -> Outcome:
        """Ask with as much of the window as the settings allow, then with less as long as the endpoint objects.

        Raises ContextTooLong when the message does not even fit alone.
        """
        room = await self._room(turn, turn.trace.found)
        if room < 0:
            raise ContextTooLong(f"the message is {-room} tokens over model.context_tokens")
        for share in SHARES:
            turn.trace.window = cut(earlier, int(room * share))
            turn.trace.request = self._requests.build(turn.system, turn.said, turn.opened, turn.trace)
            try:
                return await self._stream(model, turn, sink)
            except ContextTooLong as error:
                room = turn.trace.window.tokens
                if not room:
                    raise
                log.warning("the context was too long with %d tokens of window: %s", room, error)
        raise AssertionError("the last share is an empty window, which either fits or raises")

    async def _stream(self, model: LLM, turn: Exchange, sink: Sink) -> Outcome:
        with _timed(turn.trace, "model"):
            async with aclosing(
                model.stream(turn.trace.request, max_tokens=self._reply_tokens, whose=turn.owner.no)
            ) as stream:
                try:
                    async for text in stream:
                        await sink.show(text)
                finally:
                    self._charge(turn, stream.outcome)
        turn.trace.finish = stream.outcome.finish
        turn.trace.tokens = {"in": stream.outcome.tokens_in, "out": stream.outcome.tokens_out}
        return stream.outcome

    def _charge(self, turn: Exchange, outcome: Outcome) -> None:
        """Count what an answer cost, one that was cancelled, too; nothing for one that never began."""
        if not (outcome.text or outcome.tokens_in):
            return
        asked = (as_words(message["content"]) for message in turn.trace.request)
        tokens_in = outcome.tokens_in or sum(map(self._count, asked))
        tokens_out = outcome.tokens_out or self._count(outcome.text)
        self._memory.usage.count(turn.owner, "reply", tokens_in=tokens_in, tokens_out=tokens_out, chat=turn.chat)

    async def _judged(self, turn: Exchange, outcome: Outcome) -> Answer:
        """An answer that broke off is shown with a word about it, and never kept as if it were whole."""
        match outcome.finish:
            case "stop":
                return Answer(outcome.text, outcome.text)
            case "length":
                text = f"{outcome.text} …"
                return Answer(text, text)
            case "empty":
                await self._unanswered(turn)
                raise Apology("error.empty", turn.owner.language)
            case "cut":
                log.warning("the answer broke off: %s", outcome.error or "its stream ended before it did")
                return Answer(f"{outcome.text}\n\n{phrase('error.cut', turn.owner.language)}")

    async def _obey(self, said: Said, order: Order, sink: Sink) -> None:
        """Run a command; neither its words nor its output are journaled, only that it was answered."""
        reply = await self._commands.run(order)
        await self._journal(said, None)
        tells = order.name in TELLING
        if not tells and (behind := await self._postscripts.behind([said])):
            reply = replace(reply, text=f"{reply.text}\n\n{behind}")
        await sink.send(_discreet(reply, said.owner, said.chat))
        if tells:
            await self._postscripts.introduced(said.owner)
        else:
            await self._postscripts.delivered(said)

    def _is_whole(self, answer: Answer) -> bool:
        """Whether an answer is one, and no word about having none."""
        return answer.kept is not None or self._model is None

    async def _doubt(self, turn: Exchange) -> Question | None:
        """What to ask a person behind an answer; nothing while they speak off the record."""
        if turn.is_fleeting:
            return None
        return await self._commands.doubt_question(turn.owner, turn.chat, now=turn.last.incoming.at)

    async def _finish(
        self, turn: Exchange, sink: Sink, answer: Answer, *, receipt: str = "", doubt: Question | None = None
    ) -> None:
        """Journal the reply, then deliver it: a kill in between finds it waiting to be delivered."""
        question, buttons = await self._postscripts.question(turn.last)
        # One question at a time: what is asked about a doubt can wait for another answer.
        asked = await self._journal(turn.last, answer.kept, turn, asks=None if question else doubt)
        if asked is not None:
            question, buttons = asked.text, asked.buttons
        behind = "\n\n".join(filter(None, (receipt, await self._postscripts.behind(turn.said), question)))
        text = "\n\n".join(filter(None, (answer.text, escaped(behind) if answer.kept else behind)))
        try:
            await self._deliver(turn.said, Reply(text, buttons, markdown=answer.kept is not None), sink)
            await self._postscripts.aside(turn.last, sink)
        finally:
            self._seen(turn.trace)
        log.info("answered", extra=turn.trace.told)

    async def _deliver(self, said: Sequence[Said], reply: Reply, sink: Sink) -> None:
        """Send a reply; it waits no longer, unless the platform is sure to have nothing of it and may take it later."""
        try:
            await sink.send(reply)
        except DeliveryError as error:
            if error.later:
                await self._memory.unbegun(said[-1].owner, said[-1].message.id)
            else:
                await self._settle(said)
            if not (error.later or error.unknown):
                await self._postscripts.refused(said[-1])
            raise
        await self._settle(said)
        await self._postscripts.delivered(said[-1])

    async def _unanswered(self, turn: Exchange) -> None:
        """Journal that a turn was dealt with, though not with an answer."""
        await self._journal(turn.last, None, turn)
        self._seen(turn.trace)

    async def _settle(self, said: Sequence[Said]) -> None:
        try:
            await self._memory.settled(said[-1].owner, *(one.message.id for one in said))
        except DatabaseError:
            log.exception("a delivered reply still counts as waiting")

    async def _journal(
        self, said: Said, kept: str | None, turn: Exchange | None = None, *, asks: Question | None = None
    ) -> Question | None:
        """Journal that, and with which words, something was answered; returns what is asked with it, on the record."""
        aside = [] if turn is None else [one for one in turn.trace.window.lines if one.fleeting]
        line = Line(
            role="bot",
            speaker=BOT,
            at=self._clock(),
            text=kept or "",
            kind="command" if kept is None else "said",
            answers=said.message.id,
            tokens=0 if kept is None else await counted(self._count, kept) + MESSAGE_TOKENS,
            # What was said off the record and still stood in the window may be repeated by any answer.
            fleeting=bool(aside),
            held=",".join(one.held for one in aside) if all(one.held for one in aside) else "",
        )
        trace, also, since = (None, [], None) if turn is None else (turn.trace.stored(), turn.ids[:-1], turn.since)
        write = partial(
            self._memory.answered, said.owner, said.chat, line, trace, delivered=kept is None, also=also, since=since
        )
        try:
            try:
                await write(asks=None if asks is None else asks.doubt)
            except AlreadyAskedError:
                asks = None
                await write()
        except DatabaseError:
            # A failed write never eats a reply.
            log.exception("the reply was not journaled")
            return None
        return asks

    def _seen(self, trace: TurnTrace) -> None:
        metrics.waited(trace.milliseconds)
        if self._watch is not None:
            self._watch(trace)


def _asking(words: str) -> str:
    """Of what a person said, what memory is searched for."""
    if len(words) <= ASKED_CHARACTERS:
        return words
    half = ASKED_CHARACTERS // 2
    return f"{words[:half]}\n{words[-half:]}"


def _order(said: Said, name: str, words: str) -> Order:
    quote = said.incoming.reply_to
    return Order(said.owner, said.chat, said.message, name, words, None if quote is None else quote.message_id)


def _discreet(reply: Reply, owner: Account, chat: Chat) -> Reply:
    """A private reply to somebody in a group: the group reads that it went elsewhere, or how it could."""
    if not reply.private or chat.private:
        return reply
    return replace(reply, hint=phrase("private.sent", owner.language), closed=phrase("private.closed", owner.language))


@contextmanager
def _timed(trace: TurnTrace, name: str) -> Iterator[None]:
    begun = time.perf_counter()
    try:
        yield
    finally:
        trace.milliseconds[name] = trace.milliseconds.get(name, 0.0) + (time.perf_counter() - begun) * 1_000
