"""The whole bot on a stage: real memory in a file, a scripted model, and time that passes only when told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from bot.app import App, built
from bot.commands import specs
from bot.message import Sighted, Sink, Update
from config.settings import AccessSettings, ModelSettings, PrivacySettings, Settings
from tests.conftest import Clock
from tests.servers.openai_server import How, OpenAIServer
from tests.stages.console import Console
from tests.stages.discord import Discord
from tests.stages.stage import MARA, Hours, Person, Room, Stage
from tests.stages.telegram import Telegram
from tests.talk import EVERYBODY, NO_EMBEDDER, Door, Talk
from tests.telegram_world import Time

STAGES: Final[dict[str, Callable[[Hours], AbstractAsyncContextManager[Stage]]]] = {
    "console": Console.set,
    "telegram": Telegram.set,
    "discord": Discord.set,
}


class Model(OpenAIServer):
    """A model that can be made to halt in the middle of its answers: ``halfway`` is the door there."""

    halfway: Door | None = None

    async def _stream(self, raw: web.Request, events: Sequence[str], how: How) -> web.StreamResponse:
        if self.halfway is None:
            return await super()._stream(raw, events, how)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(raw)
        for place, event in enumerate(events):
            if place == len(events) // 2:
                await self.halfway.wait()
            await response.write(f"data: {event}\n\n".encode())
        return response


def streamed(text: str, piece: int = 400) -> list[str]:
    """The events of a long answer, in larger pieces than the server cuts."""
    deltas: list[tuple[dict[str, str], str | None]] = [
        ({"content": text[at : at + piece]}, None) for at in range(0, len(text), piece)
    ]
    choices = [{"index": 0, "delta": delta, "finish_reason": finish} for delta, finish in [*deltas, ({}, "stop")]]
    return [json.dumps({"id": "1", "object": "chat.completion.chunk", "choices": [choice]}) for choice in choices]


class World:
    """A bot that is up. ``hush``: while it is not set, a quiet second of the conversation does not pass."""

    def __init__(
        self, stage: Stage, model: Model, data_dir: Path, hours: Hours, access: AccessSettings = EVERYBODY
    ) -> None:
        self.stage = stage
        self.model = model
        self.hush = asyncio.Event()
        self.hush.set()
        self.app: App
        self._hours = hours
        self._settings = Settings(
            data_dir=data_dir,
            zone="UTC",
            embedder=NO_EMBEDDER,
            access=access,
            privacy=PrivacySettings(first_notice=False),
            model=ModelSettings(timeout_seconds=5.0, retries=0),
            openai_base_url=model.base_url,
            openai_model="scripted",
        )
        self._taken = 0
        self._built = AsyncExitStack()
        self._serving: asyncio.Task[None]

    # What happens to the bot

    async def start(self) -> None:
        """Bring the bot up as the composition root does."""
        app = built(self._settings, clock=self._hours.clock, sleep=self._quiet)
        self.app = await self._built.enter_async_context(app)
        adapter = self.app.adapters[self.stage.name] = self.stage.adapter()
        self._serving = asyncio.create_task(adapter.run(self._submit, specs(), lambda: self.app.recovery.seen(adapter)))
        await self.stage.up()

    async def stop(self, *, killed: bool = False) -> None:
        """End the bot; killed, it finishes nothing."""
        await self.app.conversation.stop(0.0 if killed else 5.0)
        await self.stage.leave(self._serving)
        await self._built.aclose()

    async def restart(self) -> None:
        """Stop and start over the same data and platform."""
        await self.stop()
        await self.start()

    def passes(self, seconds: float) -> None:
        """Let time pass, for the bot and for the platform."""
        self._hours.clock.advance(seconds=seconds)
        self._hours.time.advance(seconds)
        self.stage.passes(seconds)

    # What people do

    async def say(self, text: str, who: Person = MARA, room: Room = "private", *, after: float = 5, **more: Any) -> str:
        """Write when ``after`` seconds have passed, and go on once that is in the journal."""
        self.passes(after)
        before = self._taken
        number = await self.stage.say(who, text, room, **more)
        await self.until(lambda: self._taken > before)
        return number

    async def ask(self, text: str, who: Person = MARA, room: Room = "private", **more: Any) -> list[str]:
        """Write, and return what of the bot one sees there that was not there before."""
        before = len(self.visible(who, room))
        await self.say(text, who, room, **more)
        await self.settled()
        return self.visible(who, room)[before:]

    async def after(self, deed: Awaitable[object], who: Person = MARA, room: Room = "private") -> list[str]:
        """Do something else, and return what one then sees there that was not there before."""
        self.passes(5)
        before, taken = len(self.visible(who, room)), self._taken
        await deed
        await self.until(lambda: self._taken > taken)
        await self.settled()
        return self.visible(who, room)[before:]

    async def settled(self) -> None:
        """Wait until all that was heard is answered."""
        async with asyncio.timeout(20):
            await self.app.conversation.idle()

    async def settled_in_time(self) -> None:
        """The same, letting pass what time it takes."""
        settled = asyncio.create_task(self.settled())
        while not settled.done():
            self.passes(1)
            await asyncio.wait({settled}, timeout=0.01)
        await settled

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, as long as the adapter is at work."""
        async with asyncio.timeout(10):
            while not holds():
                assert not self._serving.done(), self._serving
                await asyncio.sleep(0.005)

    async def taken(self, updates: int) -> None:
        """Wait until the bot has so many updates in all."""
        await self.until(lambda: self._taken >= updates)

    # What there is to see

    def visible(self, who: Person = MARA, room: Room = "private") -> list[str]:
        """What of the bot somebody sees in a room."""
        return self.stage.visible(who, room)

    @property
    def prompt(self) -> str:
        """What the model was asked last."""
        return self.model.chats[-1].prompt

    async def known(self, who: Person = MARA) -> list[str]:
        """What is remembered of somebody, as their private chat lists it."""
        owner = await self.app.memory.known_account(self.stage.name, self.stage.user_id(who))
        if owner is None:
            return []
        room = await self.app.memory.chat(owner, f"dm:{self.stage.user_id(who)}", private=True)
        return [entry.text for entry in await self.app.memory.known(owner, room=room, now=self._hours.clock())]

    def stored(self) -> str:
        """All that the file of the bot holds."""
        return Talk(self.app, self._hours.clock, []).everything_stored()

    async def _submit(self, update: Update, sink: Sink) -> None:
        await self.app.conversation.submit(update, sink)
        self._taken += not isinstance(update, Sighted)  # nobody's doing: the platform tells it of itself

    async def _quiet(self, seconds: float) -> None:
        await self.hush.wait()
        self.passes(seconds)


@asynccontextmanager
async def world_on(
    name: str, data_dir: Path, clock: Clock, *, access: AccessSettings = EVERYBODY
) -> AsyncIterator[World]:
    """Set a stage and bring the bot up on it."""
    hours = Hours(clock, Time())
    async with Model() as model, STAGES[name](hours) as stage:
        world = World(stage, model, data_dir, hours, access)
        await world.start()
        try:
            yield world
        finally:
            await world.stop(killed=True)
