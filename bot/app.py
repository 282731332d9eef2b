"""The composition root: settings in, a running bot out. Only the entry points import it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import locale
import logging
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bot import adapters, discovery, heartbeat, metrics, web
from bot.adapters.console import ConsoleAdapter
from bot.agent import Agent
from bot.commands import specs
from bot.conversation import Conversation, Sleep
from bot.embedders import EndpointEmbedder, LocalEmbedder, choose_embedder
from bot.hearing import Watcher
from bot.llm import LLM
from bot.message import Adapter, AdapterError, ChatRef, DeliveryError, Reply, Sink
from bot.recovery import Recovery
from bot.reranker import EndpointReranker, choose_reranker
from bot.scheduler import Scheduler
from bot.tokens import token_counter
from bot.trace import TurnTrace
from bot.turn import Said
from bot.watching import Watching
from bot.zone import zone_of
from config.locales import phrase
from config.settings import Settings, SettingsError
from memory import DATABASE_NAME, Memory, Owed
from memory.ports import Clock, EmbedderUnavailable

log = logging.getLogger(__name__)

RESTART_SECONDS: Final = (5.0, 30.0, 120.0)
"""Pauses before a platform that broke down is started again; the last one stays."""
SETTLED: Final = timedelta(minutes=10)
"""A platform that ran for this long has not broken down again: the pauses begin anew."""
LEAVING_SECONDS: Final = 5.0
"""Longest that leaving a chat waits for its vectors, and then for housekeeping such as a slow distillation."""


def utc_now() -> datetime:
    """The clock of the product; every other clock is a test's or a replay's."""
    return datetime.now(UTC)


class App:
    """A bot put together: the agent behind its conversation, housekeeping, and the platforms it serves."""

    def __init__(
        self,
        settings: Settings,
        memory: Memory,
        agent: Agent,
        clock: Clock,
        sleep: Sleep,
        *,
        model: LLM | None = None,
    ) -> None:
        self.settings = settings
        self.memory = memory
        self.agent = agent
        self.clock = clock
        self.scheduler = Scheduler(self.tick, settings.jobs.every_seconds, leave=memory.leave_off)
        self.conversation = Conversation(
            agent, clock, settings.conversation, behind=self.scheduler.wake, sleep=sleep, reach=self._reach
        )
        self.recovery = Recovery(memory, self.conversation, clock, settings.conversation)
        self.adapters: dict[str, Adapter] = {}
        self._up: set[str] = set()
        self.watching = Watching(
            settings,
            memory,
            self.conversation,
            clock,
            model=model,
            adapters=self.adapters,
            serving=self._up.__contains__,
        )

    def _reach(self, said: Said) -> Sink | None:
        """Where the answer to a message of the past stands, to be written anew there."""
        adapter = self.adapters.get(said.incoming.chat.platform)
        try:
            return None if adapter is None else adapter.sink(said.incoming, shown=said.rewrites)
        except DeliveryError:
            return None

    async def tick(self) -> None:
        """One round of housekeeping, and the receipts it owes."""
        await self.memory.run_due(now=self.clock())
        await self.deliver_notices()
        await self.recovery.again(self.adapters)

    async def deliver_notices(self) -> None:
        """Send what is owed to people on the platforms at hand; what cannot be sent now stays owed.

        At least once: a kill between sending a receipt and marking it sends it again, for a receipt twice is
        better than none. One that may have arrived counts as delivered.
        """
        for owed in await self.memory.notices():
            adapter = self.adapters.get(owed.owner.platform)
            if adapter is not None and await _delivered(adapter, owed):
                await self.memory.notified(owed.owner, owed.notice, now=self.clock())

    async def serve(self, adapter: Adapter) -> None:
        """Keep one platform running: what breaks down is started again, what is set up wrong is given up.

        Raises AdapterError, which names the fix.
        """
        pauses = iter(RESTART_SECONDS)
        pause = next(pauses)
        self.adapters[adapter.name] = adapter
        while True:
            begun = self.clock()
            try:
                try:
                    await adapter.run(self.conversation.submit, specs(), lambda: self._seen(adapter))
                finally:
                    self._up.discard(adapter.name)
            except AdapterError:
                raise
            except Exception:
                # The border of one platform: the others go on.
                if self.clock() - begun > SETTLED:
                    pauses = iter(RESTART_SECONDS)
                    pause = next(pauses)
                log.exception("%s broke down; it is started again in %g s", adapter.name, pause)
                await asyncio.sleep(pause)
                pause = next(pauses, pause)
            else:
                return

    async def _seen(self, adapter: Adapter) -> Mapping[ChatRef, str]:
        self._up.add(adapter.name)
        return await self.recovery.seen(adapter)


async def _delivered(adapter: Adapter, owed: Owed) -> bool:
    """Send one notice; whether it counts as delivered. No failure keeps the others from their readers."""
    # A receipt is its owner's alone, wherever it was asked for.
    chat = ChatRef(owed.owner.platform, owed.key if owed.private else f"dm:{owed.owner.user_id}", private=True)
    try:
        text = phrase(owed.notice.phrase, owed.owner.language, **owed.notice.data)
        await adapter.notify(chat, Reply(text, private=True))
    except DeliveryError as error:
        fate = "waits" if error.later else "may have arrived" if error.unknown else "was refused"
        log.warning("a notice for chat %s %s (%s)", owed.key, fate, error)
        return not error.later
    except Exception:
        log.exception("a notice waits: %s could not send it to chat %s", adapter.name, owed.key)
        return False
    return True


@contextlib.asynccontextmanager
async def built(
    settings: Settings,
    *,
    clock: Clock = utc_now,
    sleep: Sleep = asyncio.sleep,
    watch: Watcher | None = None,
    ticks: Callable[[], float] = time.monotonic,
) -> AsyncIterator[App]:
    """Put the bot together from ``settings``; on leaving, writes are finished and connections closed.

    ``sleep`` lets the seconds of a quiet time pass, by whatever ``clock`` goes; ``ticks`` gives seconds that only
    ever grow, whatever becomes of the clock.

    Raises SettingsError when settings do not go together, DatabaseError when the file cannot be used.
    """
    async with contextlib.AsyncExitStack() as stack:
        model = chat_model(settings, ticks=ticks)
        if model is not None:
            stack.push_async_callback(model.aclose)
        embedder = _embedder(settings, ticks)
        if embedder is not None:
            stack.push_async_callback(embedder.aclose)
        reranker = _reranker(settings)
        if reranker is not None:
            stack.push_async_callback(reranker.aclose)
        count = token_counter(settings.openai_model)
        memory = await Memory.open(
            settings.data_dir / DATABASE_NAME,
            settings,
            clock=clock,
            count=count,
            embedder=embedder,
            completer=model,
            reranker=reranker,
        )
        stack.push_async_callback(memory.close)
        agent = Agent(memory, settings, clock=clock, count=count, model=model, zone=zone_of(settings), watch=watch)
        yield App(settings, memory, agent, clock, sleep, model=model)


def chat_model(settings: Settings, *, ticks: Callable[[], float] = time.monotonic) -> LLM | None:
    """The chat model of the settings, None when no endpoint is set. Raises SettingsError for half a setting."""
    if settings.endpoint is None:
        return None
    if settings.openai_model is None:
        raise SettingsError("OPENAI_MODEL is missing: name the model of your endpoint, or run `python -m bot init`.")
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
    try:
        return LLM(settings.endpoint, key, settings.openai_model, settings.model, ticks=ticks)
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _embedder(settings: Settings, ticks: Callable[[], float]) -> EndpointEmbedder | LocalEmbedder | None:
    try:
        return choose_embedder(settings, ticks=ticks)
    except (ValueError, EmbedderUnavailable) as error:
        raise SettingsError(str(error)) from error


def _reranker(settings: Settings) -> EndpointReranker | None:
    try:
        return choose_reranker(settings)
    except ValueError as error:
        raise SettingsError(str(error)) from error


async def chat(settings: Settings, *, user: str, debug: bool) -> int:
    """Talk in this terminal until the input ends; returns the exit code."""
    settings = line_by_line(await _with_local_model(settings))
    async with built(settings, watch=_print_trace if debug else None) as app:
        console = ConsoleAdapter(user, now=app.clock, language=locale.getlocale()[0])
        app.adapters[console.name] = console
        app.scheduler.start()
        try:
            await console.run(app.conversation.submit, specs(), lambda: app.recovery.seen(console))
        finally:
            await app.conversation.stop()
            await _embed_last_words(app, console.name, user)
            await app.scheduler.stop(LEAVING_SECONDS)
    return 0


async def _embed_last_words(app: App, platform: str, user: str) -> None:
    """Make the vectors of what was just said now, so that the next start finds it by its meaning at once."""
    owner = await app.memory.known_account(platform, user)
    try:
        async with asyncio.timeout(LEAVING_SECONDS):
            if owner is not None:
                await app.memory.embed(owner)
    except (EmbedderUnavailable, TimeoutError) as error:
        log.info("the last vectors are made at the next start (%s: %s)", type(error).__name__, error)


def line_by_line(settings: Settings) -> Settings:
    """The same settings for talk that goes line by line: there is no quick message to wait for."""
    alone = settings.conversation.model_copy(update={"quiet_seconds": 0.0, "turns_a_minute": 0})
    return settings.model_copy(update={"conversation": alone})


def keep_out_of_collections() -> None:
    """Have the garbage collector pass over what is there for good; going through it stops every chat for 0.1 s."""
    gc.collect()
    gc.freeze()


async def run(settings: Settings) -> int:
    """Serve every platform that has a token until SIGTERM or SIGINT; returns the exit code."""
    chosen = adapters.configured(settings, utc_now)
    if not chosen:
        raise AdapterError("No token is set. `python -m bot init` asks for TELEGRAM_BOT_TOKEN and DISCORD_BOT_TOKEN.")
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with built(settings) as app:
        await _say_who_may_talk(app)
        keep_out_of_collections()
        app.scheduler.start()
        pulse = asyncio.create_task(heartbeat.beat(settings.data_dir))
        lag = asyncio.create_task(metrics.watch_loop())
        serving = {asyncio.create_task(app.serve(adapter), name=adapter.name) for adapter in chosen}
        async with web.pages(settings.http, app.watching):
            failures = await _until(stopping, serving)
        await app.conversation.stop()
        await _cancel({pulse, lag, *serving})
        await app.scheduler.stop()
    return 1 if failures == len(chosen) else 0


async def _say_who_may_talk(app: App) -> None:
    """Say aloud that everybody may, or how the first person is let in."""
    if app.settings.access.open == "everybody":
        log.warning('everybody who finds this bot may talk to it, at your cost ([access] open = "everybody")')
    elif not await app.agent.hearing.door.has_admin():
        log.warning("nobody can let others in yet: write to the bot, and `python -m bot access approve CODE` with the")
        log.warning("code it shows you lets you in, as its admin")


async def _until(stopping: asyncio.Event, serving: set[asyncio.Task[None]]) -> int:
    """Wait for the stop or for the last platform to give up; returns how many gave up."""
    stop = asyncio.create_task(stopping.wait())
    running: set[asyncio.Task[None]] = set(serving)
    failures = 0
    while running and not stop.done():
        done, _ = await asyncio.wait({stop, *running}, return_when=asyncio.FIRST_COMPLETED)
        for task in done & running:
            running.discard(task)
            failures += 1
            if not task.cancelled() and (error := task.exception()):
                log.error("%s is given up: %s", task.get_name(), error)
    await _cancel({stop})
    return failures


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    cancelled = list(tasks)
    for task in cancelled:
        task.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)


async def _with_local_model(settings: Settings) -> Settings:
    """Offer a model server of this machine when none is set: asked on a terminal, only told when piped."""
    if settings.endpoint is not None:
        return settings
    for found in await discovery.find():
        for model in found.models:
            told = f"{found.name} on this machine serves {model}"
            if not sys.stdin.isatty():
                sys.stderr.write(f"{told}: set OPENAI_BASE_URL={found.base_url} and OPENAI_MODEL={model} to use it.\n")
                break
            answer = await asyncio.to_thread(input, f"{told}. Use it? [Y/n] ")
            if answer.strip().lower() in ("", "y", "yes", "是", "好"):
                return settings.model_copy(update={"openai_base_url": found.base_url, "openai_model": model})
    return settings


def _print_trace(trace: TurnTrace) -> None:
    sys.stderr.write(json.dumps(trace.shown(), ensure_ascii=False, indent=1) + "\n")
