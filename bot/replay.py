"""``replay``: a conversation from JSON lines through the real agent and the real stores, under a simulated clock.

It is how a conversation is debugged, how history is imported and how cases are run. One JSON object a
line in, one a line out. A line that cannot be used is answered with an ``error`` that names it, and
the rest goes on.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, TextIO

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bot.app import App, built, line_by_line
from bot.message import ChatRef, DeliveryError, Incoming, Posted, Press, Quote, Reply, Sink
from bot.text import clean
from bot.trace import TurnTrace
from config.settings import Settings
from memory import DatabaseError, Memory
from memory.model import EVERYWHERE, PRIVATE, Account, Entry, Event, ProfileLine

BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Where the clock stands until the first line sets it."""
NOT_YET: Final = ("edit", "delete", "join", "leave")

YEARS: Final = (1970, 2999)
"""Years a line may be in: what a clock can count from and to with room on both sides."""


def _in_reach(at: datetime) -> datetime:
    if not YEARS[0] < at.year < YEARS[1]:
        raise ValueError(f"the year must lie between {YEARS[0]} and {YEARS[1]}")
    return at


Json = dict[str, Any]
Words = Annotated[str, BeforeValidator(lambda value: clean(value) if isinstance(value, str) else value)]
"""Text as people send it, half characters included: the bot takes it, JSON and a strict reader would not."""
Moment = Annotated[AwareDatetime, AfterValidator(_in_reach)]


class LineError(ValueError):
    """A line that cannot be used; the text says why."""


class Line(BaseModel):
    """What all lines have in common: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)


class QuoteLine(Line):
    """``reply_to``: the message a message answers."""

    id: str | None = None
    user: str | None = None
    text: Words = ""
    name: Words = ""


class MessageLine(Line):
    """A message. ``role`` "assistant" imports a line of the bot; ``reply`` false journals and learns only."""

    at: Moment
    platform: str
    chat: Annotated[str, Field(pattern=r"^(dm|group|guild):.+")]
    user: str
    id: str
    text: Words
    name: Words = ""
    thread: str | None = None
    role: Literal["user", "assistant"] = "user"
    addressed: bool = True
    reply_to: QuoteLine | None = None
    forward_from: Words | None = None
    reply: bool = True


class PressLine(Line):
    """A button is pressed by ``user``, in the chat it was shown in."""

    press: str
    user: str
    at: Moment | None = None


class AdvanceLine(Line):
    """Time passes, seconds, and what is due runs."""

    advance: Annotated[float, Field(ge=0)]


class DumpLine(Line):
    """Everything a person's memory holds, closed memories included."""

    dump: str
    platform: str


class RestartLine(Line):
    """Everything is closed and opened again over the same data."""

    restart: Literal[True]


class NotYetLine(Line):
    """A line whose feature comes later; accepted and answered with "not yet"."""

    model_config = ConfigDict(extra="allow")


KINDS: Final[dict[str, type[Line]]] = {
    "press": PressLine,
    "advance": AdvanceLine,
    "dump": DumpLine,
    "restart": RestartLine,
    **dict.fromkeys(NOT_YET, NotYetLine),
}


class ReplayClock:
    """Time as the lines tell it; it never goes back."""

    def __init__(self) -> None:
        self.now = BEGINNING

    def __call__(self) -> datetime:
        """The simulated present, aware UTC."""
        return self.now

    def reach(self, at: datetime) -> None:
        """Move on to ``at``, if that is later."""
        self.now = max(self.now, at.astimezone(UTC))


class Capture:
    """The sink of a replay: keeps what a person would have seen."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []

    def watch(self, posted: Posted) -> None:
        """Nothing is shown anywhere."""

    async def show(self, text: str) -> None:
        """Frames are not kept: the final text is what counts."""

    async def send(self, reply: Reply) -> str | None:
        """Keep a reply."""
        self.replies.append(reply)
        return None

    async def abandon(self, *, keep: bool) -> bool:
        """Nothing was shown."""
        del keep
        return True

    async def done(self) -> None:
        """Nothing waits for it: a replay goes line by line."""


class Mailbox:
    """The adapter of a replay: ``notices`` grows by what nobody asked for just now, with the chat it goes to."""

    def __init__(self, platform: str, notices: list[Json]) -> None:
        self.name = platform
        self.repeats_for = timedelta(0)
        self._notices = notices

    async def run(self, *_: object) -> None:
        """Nothing to serve."""

    def sink(self, *_: object, **__: object) -> Sink:
        """A replay goes line by line: what an earlier run left unanswered has no line here."""
        raise DeliveryError("no line to answer", later=True)

    async def notify(self, chat: ChatRef, reply: Reply) -> None:
        """Keep a notice."""
        self._notices.append({"platform": chat.platform, "chat": chat.key, "text": reply.text})


async def replay(settings: Settings, lines_in: TextIO, lines_out: TextIO) -> int:
    """Play ``lines_in`` and write what came of each line to ``lines_out``.

    Returns 0, or 1 when at least one line could not be used. Raises SettingsError and DatabaseError.
    """
    player = Player(settings)
    wrong = 0
    async with contextlib.aclosing(player.play(lines_in)) as answers:
        async for answer in answers:
            wrong += "error" in answer
            lines_out.write(json.dumps(answer, ensure_ascii=False) + "\n")
            lines_out.flush()
    return 1 if wrong else 0


class Player:
    """Plays lines; opens and closes the bot around them."""

    def __init__(self, settings: Settings) -> None:
        # Nobody new is there to be told what is remembered.
        told = settings.privacy.model_copy(update={"first_notice": False})
        # Whoever plays a file in sits at the machine: the people in it are let in by that.
        everybody = settings.access.model_copy(update={"open": "everybody"})
        self._settings = line_by_line(settings).model_copy(update={"privacy": told, "access": everybody})
        self._clock = ReplayClock()
        self._traces: list[TurnTrace] = []
        self._notices: list[Json] = []
        self._shown_in: dict[str, ChatRef] = {}
        self._ticked = BEGINNING

    async def play(self, lines: TextIO) -> AsyncGenerator[Json, None]:
        """Yield one answer a line, each with the notices that fell due; blank lines are skipped."""
        numbered = ((number, text) for number, text in enumerate(lines, 1) if text.strip())
        again = True
        while again:
            again = False
            async with built(self._settings, clock=self._clock, watch=self._traces.append) as app:
                for number, text in numbered:
                    try:
                        line = read(text)
                        if isinstance(line, RestartLine):
                            again = True
                            break
                        answer = await self._answer(app, line)
                    except LineError as error:
                        answer = {"error": f"line {number}: {error}"}
                    yield answer | self._delivered()
            if again:
                yield {"restart": True} | self._delivered()

    async def _answer(self, app: App, line: Line) -> Json:
        match line:
            case MessageLine():
                return await self._message(app, line)
            case PressLine():
                return await self._press(app, line)
            case AdvanceLine():
                return await self._advance(app, line)
            case DumpLine():
                return await self._dump(app, line)
            case _:
                return {"not yet": next(name for name in NOT_YET if name in (line.model_extra or {}))}

    async def _message(self, app: App, line: MessageLine) -> Json:
        await self._reach(app, line.at)
        chat = ChatRef(line.platform, line.chat, private=line.chat.startswith("dm:"), thread=line.thread)
        if line.role == "assistant":
            try:
                await app.agent.hearing.import_reply(chat, line.user, line.id, line.text, line.at)
            except DatabaseError as error:
                raise LineError(f"not imported ({error}): each line of the bot in a chat needs its own id") from error
            return {"id": line.id} | self._seen(Capture(), chat)
        quoted = line.reply_to
        incoming = Incoming(
            chat=chat,
            user_id=line.user,
            name=line.name,
            message_id=line.id,
            text=line.text,
            at=line.at.astimezone(UTC),
            addressed=line.addressed,
            reply_to=None if quoted is None else Quote(quoted.text, quoted.name, quoted.user, quoted.id),
            forward_from=line.forward_from,
            wants_reply=line.reply,
        )
        sink = Capture()
        await app.conversation.submit(incoming, sink)
        await app.conversation.idle()
        await self._keep_house(app)
        return {"id": line.id} | self._seen(sink, chat)

    async def _press(self, app: App, line: PressLine) -> Json:
        await self._reach(app, line.at or self._clock.now)
        chat = self._shown_in.get(line.press)
        if chat is None:
            raise LineError(f"no button {line.press} was shown in this replay")
        sink = Capture()
        await app.conversation.submit(Press(chat, line.user, "", line.press, self._clock.now), sink)
        await app.conversation.idle()
        return {"press": line.press} | self._seen(sink, chat)

    async def _advance(self, app: App, line: AdvanceLine) -> Json:
        try:
            self._clock.reach(_in_reach(self._clock.now + timedelta(seconds=line.advance)))
        except (OverflowError, ValueError) as error:
            raise LineError(f"advance: time ends before that ({error})") from error
        return {"advanced": line.advance, "jobs": await self._keep_house(app)}

    async def _dump(self, app: App, line: DumpLine) -> Json:
        owner = await app.memory.known_account(line.platform, line.dump)
        history = [] if owner is None else await app.memory.history(owner)
        now = self._clock.now if self._clock.now > BEGINNING else newest(history)
        places = {} if owner is None else await _places(app.memory, owner, history)
        return {"dump": line.dump, "memories": [memory_of(entry, now=now, places=places) for entry in history]}

    async def _reach(self, app: App, at: datetime) -> None:
        """Let time pass up to a line; housekeeping that would have run meanwhile runs now."""
        self._clock.reach(at)
        if self._clock.now - self._ticked >= timedelta(seconds=self._settings.jobs.every_seconds):
            await self._keep_house(app)

    async def _keep_house(self, app: App) -> dict[str, Json]:
        """Do what is due and deliver what is owed, whatever the platform; returns the counts of each job."""
        self._ticked = self._clock.now
        done = await app.memory.run_due(now=self._clock.now)
        for owed in await app.memory.notices():
            app.adapters.setdefault(owed.owner.platform, Mailbox(owed.owner.platform, self._notices))
        await app.deliver_notices()
        return {name: dict(counts) for name, counts in done.items()}

    def _delivered(self) -> Json:
        notices, self._notices[:] = list(self._notices), []
        return {"notices": notices}

    def _seen(self, sink: Capture, chat: ChatRef) -> Json:
        buttons = [button for reply in sink.replies for button in reply.buttons]
        self._shown_in |= {button.id: chat for button in buttons}
        traces = [trace.shown() for trace in self._traces]
        self._traces.clear()
        return {
            "replies": [reply.text for reply in sink.replies],
            "buttons": [{"id": button.id, "label": button.label} for button in buttons],
            "trace": traces[-1] if traces else None,
        }


def read(text: str) -> Line:
    """A line of input. Raises LineError, which says what is wrong with it."""
    try:
        data = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise LineError(f"no JSON ({error})") from error
    if not isinstance(data, dict):
        raise LineError("no JSON object")
    kind = next((KINDS[name] for name in KINDS if name in data), MessageLine)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise LineError("; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())) from error


def newest(history: Sequence[Entry]) -> datetime:
    """The latest time at which anything was known of these memories: the present of who has no other."""
    origins = [entry.provenance for entry in history]
    known = [at for p in origins for at in (p.said_at, p.created_at, p.confirmed_at, p.retired_at) if at is not None]
    return max(known, default=BEGINNING)


async def _places(memory: Memory, owner: Account, history: Sequence[Entry]) -> dict[int, str]:
    """Every audience of these memories in words: "private", "everywhere", or the key of the one chat."""
    words = {PRIVATE: "private", EVERYWHERE: "everywhere"}
    chats = {entry.provenance.audience for entry in history} - words.keys()
    return words | {no: await memory.chat_key(owner, no) for no in chats}


def memory_of(entry: Entry, *, now: datetime, places: Mapping[int, str]) -> Json:
    """A memory as a dump shows it; times in ISO 8601 UTC, ``places`` puts audiences into words."""
    p = entry.provenance
    times = {
        "said_at": p.said_at,
        "created_at": p.created_at,
        "confirmed_at": p.confirmed_at,
        "expires_at": p.expires_at,
        "retired_at": p.retired_at,
    }
    shape: dict[str, Any] = {}
    if isinstance(entry, ProfileLine):
        shape = {"attribute": entry.attribute, "value": entry.value}
    elif isinstance(entry, Event):
        when = entry.span
        shape = {"start": when.start.isoformat(), "end": when.end.isoformat(), "precision": when.precision}
        shape |= {"words": when.words, "rrule": when.rrule}
    return {
        "id": entry.id,
        "kind": entry.kind,
        "live": p.live(now),
        "subject": entry.subject,
        "text": entry.text,
        **shape,
        "audience": places[p.audience],
        "source": p.source,
        "confidence": p.confidence,
        "confirmations": p.confirmations,
        **{name: None if at is None else at.isoformat() for name, at in times.items()},
        "successor": p.successor,
        "reason": p.reason,
        "citations": [{"message": c.message, "quote": c.quote, "at": c.at.isoformat()} for c in p.citations],
    }
