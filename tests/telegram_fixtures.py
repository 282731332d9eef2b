"""Fixtures for tests of the Telegram adapter; a test file gets them by ``pytest_plugins``."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conftest import Clock
from tests.servers.telegram_server import TelegramServer
from tests.telegram_world import Time, World


@pytest.fixture
async def world(clock: Clock) -> AsyncIterator[World]:
    """Yield a platform on which no bot is up yet."""
    time = Time()
    async with TelegramServer(clock=time) as server:
        yield World(server, time, clock)


@pytest.fixture
async def here(world: World) -> AsyncIterator[World]:
    """Yield a world in which the bot is up."""
    async with world.running():
        yield world
