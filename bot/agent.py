"""The agent: one message in, one reply out. :meth:`Agent.respond` is the whole way, top to bottom."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from bot.commands import Commands, Turn
from bot.language import changed_language, language_of
from bot.llm import LLM, ContextTooLong, LLMError, Outcome
from bot.message import ChatRef, Incoming, Reply, Sink, Update
from bot.request import Requests, one_line
from bot.text import clean, is_blank
from bot.tokens import MESSAGE_TOKENS
from bot.trace import TurnTrace
from bot.window import cut
from config.locales import phrase
from config.settings import Settings
from memory import (
    DatabaseError,
    Line,
    Memory,
    RecallOptions,
    asks_about_everything,
    is_small_talk,
    wants_remembering,
)
from memory.model import Account, Chat, Message, MessageKind, Recollection
from memory.ports import Clock, TokenCounter

log = logging.getLogger(__name__)

SHARES: Final = (1.0, 0.5, 0.0)
"""Of the window's tokens, what each further request still carries when the context was too long."""
WINDOW_LINES: Final = 400
"""Lines read from the journal for a window; the token budget cuts far below."""
CONTEXT_TURNS: Final = 4
"""Last lines of the talk that recall may read to understand a question such as "and when was that?"."""
BOT: Final = "Recollect"

Watcher = Callable[[TurnTrace], None]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One message on its way to a reply."""

    owner: Account
    chat: Chat
    incoming: Incoming
    message: Message
    trace: TurnTrace


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person sees, and what the journal keeps as said (None: only that it was answered)."""

    text: str
    kept: str | None = None


class Agent:
    """Answers updates. Knows memory and the model, no platform.

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
        self._zone = zone
        self._watch = watch
        self._reply_tokens = settings.model.reply_tokens
        self._recall_tokens = settings.recall.max_tokens
        self._requests = Requests(settings, count)
        self._commands = Commands(memory, clock)

    async def answer(self, update: Update, sink: Sink) -> None:
        """Answer a message, a command or a button: the one way in. What cannot be written is told, not hidden."""
        try:
            if isinstance(update, Incoming):
                await self.respond(update, sink)
            else:
                owner, _ = await self._meet(update, "")
                await sink.send(await self._commands.press(owner, update.button_id, now=update.at))
        except DatabaseError:
            number = secrets.token_hex(3)
            log.exception("turn %s: the database did not take it", number)
            await sink.send(Reply(phrase("error.unwritable", language_of(update), number=number)))

    async def respond(self, incoming: Incoming, sink: Sink) -> None:
        """The way of a message: journal, rules, recall, window, model, reply, trace."""
        if not incoming.addressed:
            return
        text = clean(incoming.text)
        command = None if incoming.forward_from is not None else self._commands.read(text)
        owner, chat = await self._meet(incoming, text if command is None else command[1])
        wordless = command is not None or is_blank(text)
        heard = await self._memory.note(owner, chat, self._line(incoming, "" if wordless else text))
        forgotten = heard.message.kind == "command" and not wordless
        if heard.reply is not None or forgotten:
            return
        turn = Exchange(owner, chat, incoming, heard.message, TurnTrace(heard.message.id, chat))
        if not incoming.wants_reply:
            if not wordless:
                await self._learn(turn)
            self._seen(turn)
            return
        if command is not None:
            await self._obey(turn, Turn(owner, chat, heard.message, *command), sink)
            return
        if wordless:
            await self._finish(turn, sink, Answer(phrase("error.blank", owner.language)))
            return
        receipt = await self._learn(turn)
        said = await self._memory.window(owner, chat, now=incoming.at, limit=WINDOW_LINES)
        earlier = [line for line in said if line.id != heard.message.id]
        turn.trace.found = await self._recall(turn, earlier)
        answer = await self._ask(turn, earlier, sink)
        await self._finish(turn, sink, replace(answer, text="\n\n".join(filter(None, (answer.text, receipt)))))

    async def import_reply(self, chat: ChatRef, user_id: str, message_id: str, text: str, at: datetime) -> None:
        """Journal what the bot told ``user_id`` in the past; for history that is played in."""
        words = clean(text)
        if is_blank(words):
            return
        owner = await self._memory.account(chat.platform, user_id, zone=self._zone)
        room = await self._memory.chat(owner, chat.key, private=chat.private, thread=chat.thread)
        line = Line(role="bot", speaker=BOT, at=at, text=words, platform_id=message_id, tokens=self._cost(words))
        await self._memory.note(owner, room, line)

    async def _meet(self, update: Update, text: str) -> tuple[Account, Chat]:
        owner = await self._memory.account(
            update.chat.platform,
            update.user_id,
            name=one_line(update.name),
            language=language_of(update),
            zone=self._zone,
        )
        if (language := changed_language(text, owner.language)) is not None:
            await self._memory.speaks(owner, language)
            owner = replace(owner, language=language)
        chat = await self._memory.chat(owner, update.chat.key, private=update.chat.private, thread=update.chat.thread)
        return owner, chat

    def _line(self, incoming: Incoming, text: str) -> Line:
        """The journal's line of a message; what has no words (a command, a blank) leaves only that it came."""
        kind: MessageKind = "said" if incoming.forward_from is None else "forwarded"
        return Line(
            role="user",
            speaker=one_line(incoming.name if incoming.forward_from is None else incoming.forward_from or "?"),
            at=incoming.at,
            text=text,
            kind=kind if text else "command",
            platform_id=incoming.message_id,
            tokens=self._cost(text) if text else 0,
        )

    def _cost(self, text: str) -> int:
        return self._count(text) + MESSAGE_TOKENS

    async def _learn(self, turn: Exchange) -> str:
        """Let the rules write; returns what the person must hear about it, mostly nothing.

        Only the program may say that something was stored, so a wish to be remembered gets its receipt here.
        """
        owner, text = turn.owner, turn.message.text
        try:
            with _timed(turn.trace, "learn"):
                turn.trace.learned = await self._memory.learn(owner, turn.chat, turn.message)
        except DatabaseError:
            log.exception("what the rules read was not saved")
            return phrase("error.unsaved", owner.language)
        if self._model is None or turn.incoming.forward_from is not None or not wants_remembering(text):
            return ""
        return phrase("chat.receipt", owner.language, kept=turn.trace.kept, noted=turn.trace.noted)

    async def _recall(self, turn: Exchange, earlier: list[Message]) -> Recollection:
        text = turn.message.text
        if is_small_talk(text):
            return Recollection(notes=("small talk",))
        options = RecallOptions(
            max_tokens=self._recall_tokens,
            exclude=self._seen_anyway(turn, earlier),
            asked=turn.message.id,
            context=tuple(line.text for line in earlier[-CONTEXT_TURNS:]),
            everything=asks_about_everything(text),
        )
        try:
            with _timed(turn.trace, "recall"):
                now = turn.incoming.at
                return await self._memory.recall(turn.owner, text, room=turn.chat, now=now, options=options)
        except DatabaseError:
            log.exception("nothing could be recalled")
            return Recollection(notes=("database",))

    def _seen_anyway(self, turn: Exchange, earlier: list[Message]) -> frozenset[int]:
        """The lines that need no recalling: the message, and what the window will hold beside a full block."""
        if self._model is None:
            return frozenset({turn.message.id})
        room = self._requests.window_budget(turn.owner, turn.chat, turn.incoming, Recollection()) - self._recall_tokens
        return frozenset({turn.message.id, *(line.id for line in cut(earlier, room).lines)})

    async def _ask(self, turn: Exchange, earlier: list[Message], sink: Sink) -> Answer:
        """Ask the model; without one, answer from memory. Every failure becomes one plain phrase."""
        language = turn.owner.language
        if self._model is None:
            return Answer(self._requests.without_model(turn.owner, turn.message, turn.trace))
        try:
            outcome = await self._fitted(self._model, turn, earlier, sink)
            if outcome.finish == "empty":
                outcome = await self._stream(self._model, turn, sink)
        except ContextTooLong as error:
            log.warning("not even the message alone fits the model: %s", error)
            turn.trace.finish = "failed"
            return Answer(phrase("error.too_long", language))
        except LLMError as error:
            return self._failed(turn, error)
        return self._judged(turn, outcome)

    async def _fitted(self, model: LLM, turn: Exchange, earlier: list[Message], sink: Sink) -> Outcome:
        """Ask with as much of the window as the settings allow, then with less as long as the endpoint objects.

        Raises ContextTooLong when the message does not even fit alone.
        """
        room = self._requests.window_budget(turn.owner, turn.chat, turn.incoming, turn.trace.found)
        if room < 0:
            raise ContextTooLong(f"the message is {-room} tokens over model.context_tokens")
        for share in SHARES:
            turn.trace.window = cut(earlier, int(room * share))
            turn.trace.request = self._requests.build(turn.owner, turn.chat, turn.incoming, turn.trace)
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
            async with aclosing(model.stream(turn.trace.request, max_tokens=self._reply_tokens)) as stream:
                async for text in stream:
                    await sink.show(text)
        turn.trace.finish = stream.outcome.finish
        turn.trace.tokens = {"in": stream.outcome.tokens_in, "out": stream.outcome.tokens_out}
        return stream.outcome

    def _judged(self, turn: Exchange, outcome: Outcome) -> Answer:
        """An answer that broke off is shown with a word about it, and never kept as if it were whole."""
        match outcome.finish:
            case "stop":
                return Answer(outcome.text, outcome.text)
            case "length":
                text = f"{outcome.text} …"
                return Answer(text, text)
            case "empty":
                return Answer(phrase("error.empty", turn.owner.language))
            case "cut":
                if outcome.error is not None:
                    log.warning("the answer broke off: %s", outcome.error)
                return Answer(f"{outcome.text}\n\n{phrase('error.cut', turn.owner.language)}")

    def _failed(self, turn: Exchange, error: LLMError) -> Answer:
        number = secrets.token_hex(3)
        log.error("turn %s: the model did not answer: %s", number, error)
        turn.trace.finish = "failed"
        return Answer(phrase("error.model", turn.owner.language, number=number))

    async def _obey(self, turn: Exchange, command: Turn, sink: Sink) -> None:
        """Run a command; neither its words nor its output are journaled, only that it was answered."""
        reply = await self._commands.run(command)
        await self._journal(turn, None, traced=False)
        await sink.send(reply)

    async def _finish(self, turn: Exchange, sink: Sink, answer: Answer) -> None:
        """Journal the reply, then deliver it: a kill in between loses a reply, and never sends two."""
        await self._journal(turn, answer.kept)
        await sink.send(Reply(answer.text))
        self._seen(turn)

    async def _journal(self, turn: Exchange, kept: str | None, *, traced: bool = True) -> None:
        line = Line(
            role="bot",
            speaker=BOT,
            at=self._clock(),
            text=kept or "",
            kind="command" if kept is None else "said",
            answers=turn.message.id,
            tokens=0 if kept is None else self._cost(kept),
        )
        try:
            await self._memory.answered(turn.owner, turn.chat, line, turn.trace.stored() if traced else None)
        except DatabaseError:
            # A failed write never eats a reply.
            log.exception("the reply was not journaled")

    def _seen(self, turn: Exchange) -> None:
        if self._watch is not None:
            self._watch(turn.trace)


@contextmanager
def _timed(trace: TurnTrace, name: str) -> Iterator[None]:
    begun = time.perf_counter()
    try:
        yield
    finally:
        trace.milliseconds[name] = trace.milliseconds.get(name, 0.0) + (time.perf_counter() - begun) * 1_000
