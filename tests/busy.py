"""A busy time of the whole bot: several people, all that memory does, failures too. For what counts and watches."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import Talk, talking

PRIVATE = ("gardenia", "valsartan", "Zanzibar", "pelican", "Quetzal", "tamarind")
"""Words that people said and nobody but they may ever read."""

QUOTE = "I grow a gardenia on my balcony"
ITEMS = [
    {"kind": "fact", "text": "I grow a gardenia on my balcony.", "cites": [{"message": 1, "quote": QUOTE}]},
    {"kind": "fact", "text": "I own 17 pelicans.", "cites": [{"message": 1, "quote": "My name is Quetzal"}]},
    {"kind": "fact", "text": "I grow a gardenia.", "cites": [{"message": 99, "quote": QUOTE}]},
]
"""What the scripted model distils: one that holds, one with an invented number, one that cites nothing there is."""


@contextlib.asynccontextmanager
async def busy(data_dir: Path, clock: Clock, **settings: Any) -> AsyncIterator[Talk]:
    """Live through it; the bot still runs when the test gets it."""
    async with OpenAIServer() as server:
        server.on(r"\nNew:", reply=json.dumps({"items": ITEMS}))
        server.on(reply="I see.")
        async with talking(data_dir, clock, server, **({"model": {"retries": 0}} | settings)) as talk:
            await live(talk, clock, server)
            yield talk


async def live(talk: Talk, clock: Clock, server: OpenAIServer) -> None:
    """Say, ask, forget, fail, wait."""
    for user in ("1001", "2002"):
        await talk.say("My name is Quetzal", user=user)
        await talk.say("I am allergic to tamarind", user=user)
        await talk.say("/remember my spare key is with the pelican", user=user)
        await talk.say("/remember my password is hunter2gardenia", user=user)
        await talk.say("What am I allergic to?", user=user)
        await talk.say("What is the capital of France?", user=user)
        await talk.say("thanks", user=user)
        await talk.say("I grow a gardenia on my balcony", user=user)
    await talk.say("I moved to Zanzibar. I live in Zanzibar now", user="1001")
    await talk.say("I live in Oslo now", user="1001")
    await talk.say("I have a headache, I took valsartan", user="2002")
    server.fault(match="/chat/completions", status=503, times=1)
    await talk.say("Tell me about valsartan", user="2002")
    await talk.say("/forget pelican", user="1001")
    await talk.say("/forget yes", user="1001")
    clock.advance(hours=2)
    await talk.app.tick()
    clock.advance(days=40)
    await talk.app.tick()
