"""Platforms and a model on loopback that behave badly, and the moments at which a bot may be killed."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from tests.servers import discord_model
from tests.servers.discord_server import DiscordServer, Place, User
from tests.servers.discord_server import Request as DiscordRequest
from tests.servers.openai_server import How, OpenAIServer
from tests.servers.openai_server import Request as ModelRequest
from tests.servers.telegram_rules import Refusal
from tests.servers.telegram_server import Request as TelegramRequest
from tests.servers.telegram_server import TelegramServer

END: Final = "That is all."
"""How every whole answer ends; what does not is a half."""
WORD: Final = re.compile(r"kumquat\d{5}")
"""The one word of each message that no other has."""
GARNISH: Final = "and then there is more to be said of it, slowly and at some length, "


def answer_to(request: ModelRequest) -> str:
    """What the model says: the words it answers first, then some more of any length, then the end."""
    words = list(dict.fromkeys(WORD.findall(request.last_user)))
    return f"About {', '.join(words)}: {GARNISH * (int(words[-1][-5:]) % 7)}{END}"


def is_whole(text: str) -> bool:
    """Whether a text is an answer to its end."""
    return text.endswith(END)


@dataclass(frozen=True, slots=True)
class Moment:
    """When to kill: at the ``nth`` time that ``pattern`` comes by, ``delay`` seconds after it.

    ``lost``: the request that comes by was never carried out.
    """

    name: str
    pattern: str
    nth: int = 1
    delay: float = 0.0
    lost: bool = False


class Fate:
    """Looks at what comes by and kills at the moment that was chosen."""

    def __init__(self) -> None:
        self._moment: Moment | None = None
        self._left = 0
        self._kill: Callable[[], None] = lambda: None

    def choose(self, moment: Moment | None, kill: Callable[[], None]) -> None:
        """Choose the next moment; None is never."""
        self._moment, self._kill = moment, kill
        self._left = moment.nth if moment is not None else 0

    def passes(self, what: str) -> bool:
        """Tell what comes by. Whether it is lost with the process that was killed just now."""
        moment = self._moment
        if moment is None or not re.search(moment.pattern, what):
            return False
        self._left -= 1
        if self._left > 0:
            return False
        self._moment = None
        if moment.delay:
            asyncio.get_running_loop().call_later(moment.delay, self._kill)
            return False
        self._kill()
        return moment.lost


Odds = Mapping[str, tuple[tuple[str, float], ...]]

TELEGRAM: Final[Odds] = {
    "getUpdates": (("drop before", 0.02), ("drop after", 0.04), ("5xx", 0.02), ("flood", 0.01)),
    "sendMessage": (("drop before", 0.02), ("drop after", 0.04), ("5xx", 0.02), ("flood", 0.08)),
    "editMessageText": (("drop before", 0.04), ("drop after", 0.05), ("5xx", 0.04), ("flood", 0.08)),
    "": (("drop before", 0.02), ("drop after", 0.02), ("5xx", 0.02), ("flood", 0.02)),
}
DISCORD: Final[Odds] = {
    "POST messages": (("drop before", 0.04), ("drop after", 0.06), ("5xx", 0.04), ("flood", 0.08)),
    "PATCH messages": (("drop before", 0.04), ("drop after", 0.05), ("5xx", 0.04), ("flood", 0.08)),
    "GET messages": (("drop before", 0.04), ("drop after", 0.04), ("5xx", 0.04), ("flood", 0.05)),
    "": (("drop before", 0.02), ("drop after", 0.02), ("5xx", 0.02), ("flood", 0.04)),
}
"""What becomes of a request, by its kind ("" is any other), and how probable that is."""


class Weather:
    """Decides from a seed what becomes of each request; ``seen`` counts what went wrong."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.seen: Counter[str] = Counter()
        self.calm = False

    def hits(self, platform: str, odds: Odds, kind: str) -> str | None:
        """What goes wrong with a request, mostly nothing."""
        chance = self.dice.random()
        for trouble, probability in odds.get(kind, odds[""]):
            chance -= probability
            if chance < 0 and not self.calm:
                self.seen[f"{platform}: {trouble}"] += 1
                return trouble
        return None


@dataclass(slots=True)
class Sent:
    """A sendMessage of the bot; ``message_id`` is None when it was not carried out."""

    chat: int
    text: str
    message_id: int | None = None


class Telegram(TelegramServer):
    """A Bot API server in bad weather. ``unsure`` are the sends whose outcome nobody was told."""

    def __init__(self, weather: Weather, fate: Fate) -> None:
        super().__init__()
        self.weather = weather
        self.fate = fate
        self.unsure: list[Sent] = []
        self.impatient = 0
        self.fetched: Counter[int] = Counter()
        self._sending: dict[int, Sent] = {}
        self._confirmed: list[dict[str, Any]] = []

    @property
    def redelivered(self) -> int:
        """How often an update was handed over that had been before."""
        return sum(times - 1 for times in self.fetched.values())

    def lose_confirmation(self, count: int) -> None:
        """Forget that the last updates were confirmed: they are delivered again."""
        again = self._confirmed[len(self._confirmed) - count :] if count else []
        waiting = {update["update_id"] for update in self.updates.waiting}
        self.updates.waiting[:0] = [update for update in again if update["update_id"] not in waiting]

    async def _judge(self, asked: TelegramRequest, request: web.Request) -> Any:
        if self.fate.passes(f"telegram {asked.method} arrives"):
            raise Refusal(500, "Internal Server Error")
        is_flooded = self._floods.get((asked.method, asked.params.get("chat_id")), 0.0) > self._clock()
        self.impatient += is_flooded and asked.method in ("sendMessage", "editMessageText")
        self._plan(self.weather.hits("telegram", TELEGRAM, asked.method), asked.method)
        if asked.method == "sendMessage":
            self._sending[id(asked)] = Sent(int(asked.params["chat_id"]), asked.params["text"])
        try:
            result = await super()._judge(asked, request)
        except Refusal as refusal:
            if refusal.status >= 500 and id(asked) in self._sending:
                self.unsure.append(self._sending[id(asked)])
            raise
        finally:
            self._sending.pop(id(asked), None)
        self.fate.passes(f"telegram {asked.method} {'hands over' if result else 'nothing'}")
        return result

    def _plan(self, trouble: str | None, method: str) -> None:
        match trouble:
            case "flood":
                self.fault(method, retry_after=1)
            case "5xx":
                self.fault(method, status=self.weather.dice.choice((500, 502)), description="Bad Gateway")
            case "drop before" | "drop after":
                self.fault(method, drop=True, after=trouble == "drop after")

    async def _answer(self, asked: TelegramRequest) -> Any:
        if asked.method == "getUpdates" and (offset := int(asked.params.get("offset", 0))):
            self._confirmed += [update for update in self.updates.waiting if update["update_id"] < offset]
        result = await super()._answer(asked)
        if asked.method == "getUpdates":
            self.fetched.update(update["update_id"] for update in result)
        if id(asked) in self._sending:
            self._sending[id(asked)].message_id = int(result["message_id"])
        return result


class Discord(DiscordServer):
    """A Discord in bad weather, whose present is ours."""

    def __init__(self, weather: Weather, fate: Fate) -> None:
        super().__init__("discord-secret-of-the-bot")
        self.weather = weather
        self.fate = fate

    @property
    def addresses(self) -> tuple[str, str]:
        """Where REST and gateway are."""
        return f"http://127.0.0.1:{self._port}/api/v10", self._gateway_url

    async def say(self, user: User, text: str, *, place: Place | None = None, **more: Any) -> str:
        """Let a person write; a connection that breaks meanwhile is the bot's trouble, not theirs."""
        self._keep_time()
        if place is None:
            self.channel_of(user)
        said = ""
        with suppress(ConnectionError):
            said = await super().say(user, text, place=place, **more)
        return said

    async def dispatch(self, event: str, data: Any) -> None:
        """Send a gateway event."""
        with suppress(ConnectionError):
            await super().dispatch(event, data)
        self.fate.passes(f"discord event {event}")

    async def _answer(self, request: web.Request, recorded: DiscordRequest) -> web.StreamResponse:
        self._keep_time()
        kind = f"{recorded.method} {recorded.path.rstrip('0123456789').rstrip('/').rpartition('/')[2]}"
        trouble = self.weather.hits("discord", DISCORD, kind)
        if self.fate.passes(f"discord {kind} arrives") or trouble == "drop before":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        self._plan(trouble, recorded)
        response = await super()._answer(request, recorded)
        self.fate.passes(f"discord {kind} is done")
        return response

    def _plan(self, trouble: str | None, recorded: DiscordRequest) -> None:
        match = f"^{re.escape(str(recorded))}$"
        match trouble:
            case "flood":
                self.fault(match, retry_after=round(self.weather.dice.uniform(0.1, 1.0), 2))
            case "5xx":
                self.fault(match, status=self.weather.dice.choice((500, 503)), body={"message": "sorry", "code": 0})
            case "drop after":
                self.fault(match, lost=True)

    def _keep_time(self) -> None:
        self.offset = time.time() - discord_model.START_MS / 1_000


class SlowModel(OpenAIServer):
    """A model that speaks piece by piece, fast or slowly; ``pause`` settles the seconds between two pieces."""

    def __init__(self, weather: Weather, fate: Fate) -> None:
        super().__init__()
        self.fate = fate
        self.pause: float | None = None
        self._dice = weather.dice
        self.on(reply=answer_to)

    async def _stream(self, raw: web.Request, events: Sequence[str], how: How) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        pause = self._dice.choice((0.0, 0.008, 0.03)) if self.pause is None else self.pause
        with suppress(ConnectionError):
            await response.prepare(raw)
            for event in events:
                self.fate.passes("model speaks")
                await response.write(f"data: {event}\n\n".encode())
                await asyncio.sleep(pause)
            self.fate.passes("model ends")
        return response


@dataclass
class Skies:
    """Both platforms and the model, under one weather and one fate."""

    seed: int
    weather: Weather = field(init=False)
    fate: Fate = field(default_factory=Fate)
    telegram: Telegram = field(init=False)
    discord: Discord = field(init=False)
    model: SlowModel = field(init=False)

    def __post_init__(self) -> None:
        self.weather = Weather(self.seed)
        self.telegram = Telegram(self.weather, self.fate)
        self.discord = Discord(self.weather, self.fate)
        self.model = SlowModel(self.weather, self.fate)
