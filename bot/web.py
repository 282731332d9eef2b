"""Pages on this machine for whoever watches the bot: ``/healthz``, ``/readyz``, ``/metrics``. Numbers and yes or no."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, Protocol

from aiohttp import web

from bot.metrics import CONTENT_TYPE
from config.settings import HttpSettings

log = logging.getLogger(__name__)

PATIENCE: Final = 5.0
"""Longest wait for what a page needs to know, seconds."""
_STOP_SECONDS: Final = 1.0


class Watched(Protocol):
    """What the pages tell of: the bot."""

    async def readiness(self) -> Mapping[str, bool]:
        """What has to be right for an answer to be given, and whether it is. May take long where it is not."""

    async def metrics(self) -> bytes:
        """The page for Prometheus. Raises DatabaseError."""


@asynccontextmanager
async def pages(settings: HttpSettings, watched: Watched) -> AsyncIterator[None]:
    """Serve the pages, if a port is set. Where nobody can listen on it the bot goes on without, as the log says."""
    if not settings.port:
        yield
        return
    app = web.Application()
    app.router.add_get("/healthz", _alive)
    app.router.add_get("/readyz", _answering(watched))
    app.router.add_get("/metrics", _measuring(watched))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_STOP_SECONDS)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, settings.host, settings.port).start()
        except OSError as error:
            log.error(  # noqa: TRY400 - there is nothing in the traceback
                "nothing can be served on %s:%d (%s): choose another port under [http]; the bot goes on without",
                settings.host,
                settings.port,
                error.strerror,
            )
        yield
    finally:
        await runner.cleanup()


async def _alive(request: web.Request) -> web.Response:
    """The event loop turns: else nobody would answer."""
    del request
    return web.json_response({"alive": True})


def _answering(watched: Watched) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        """200 when messages are answered as they should be, else 503; what is wrong is false."""
        del request
        looking = asyncio.ensure_future(watched.readiness())
        # Not cancelled when it takes too long: a write under way has to come to its end.
        await asyncio.wait({looking}, timeout=PATIENCE)
        if not looking.done():
            looking.add_done_callback(lambda task: task.cancelled() or task.exception())
            return web.json_response({"ready": False, "in_time": False}, status=503)
        found = looking.result()
        ready = all(found.values())
        return web.json_response({"ready": ready, **found}, status=200 if ready else 503)

    return answer


def _measuring(watched: Watched) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def measure(request: web.Request) -> web.Response:
        del request
        return web.Response(body=await watched.metrics(), headers={"Content-Type": CONTENT_TYPE})

    return measure
