"""The embedding endpoint is absent or wrong; everybody is answered, what is known is found by its words."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import Any

from bot.circuit import MOST_FAILURES
from config.settings import EmbedderSettings
from tests.faultline.place import PRIVATE, Place, Row, fault
from tests.servers.openai_server import FOREVER, OpenAIServer
from tests.talk import Talk

FACT = f"remember that my medicine is {PRIVATE}"
ASKED = f"which medicine was it, {PRIVATE} or another one?"


def hashed(text: str) -> list[float]:
    """A vector that belongs to one text alone."""
    return [byte - 127.5 for byte in hashlib.blake2b(text.encode(), digest_size=8).digest()]


@asynccontextmanager
async def embedding(place: Place, **settings: Any) -> Any:
    """A bot with a chat model that answers "Hello", and an embedding model of the same endpoint."""
    embedder = EmbedderSettings(kind="endpoint", timeout_seconds=settings.pop("patience", 5.0))
    async with place.served(embedder=embedder, openai_embedding_model="e", **settings) as (server, talk):
        yield server, talk


async def recalled(server: OpenAIServer, talk: Talk) -> str:
    """Ask for the fact in a talk of its own; it is in the prompt. Returns the answer."""
    assert await talk.say("/new")
    reply = await talk.say(ASKED)
    assert f"medicine is {PRIVATE}" in server.chats[-1].prompt.lower(), server.chats[-1].prompt
    return reply


def vectors(talk: Talk) -> int:
    """How many vectors are stored."""
    return int(talk.rows("SELECT count(*) FROM embeddings WHERE data != x''")[0][0])


async def filled(place: Place, talk: Talk) -> int:
    """Let the housekeeping embed what waits; returns how many vectors there are then."""
    for _ in range(4):
        place.passes(1_800)
        await talk.app.tick()
    return vectors(talk)


async def wrong(place: Place, *, log: str, heal: bool = True, **bad: Any) -> Row:
    """/embeddings fails as ``bad`` says for a while."""
    async with embedding(place, patience=bad.pop("patience", 5.0)) as (server, talk):
        server.embed_with(hashed)
        server.fault(match="/embeddings", times=FOREVER, **bad)
        receipt = await talk.say(FACT)
        begin = time.perf_counter()
        reply = await recalled(server, talk)
        took = time.perf_counter() - begin
        for _ in range(3):
            await talk.app.tick()
            await talk.say(f"another question about {PRIVATE}?")
        assert vectors(talk) == 0
        told = place.logged(log, most=1)
        server.mend()
        now = await filled(place, talk)
        assert now > 0 if heal else now == 0
    assert "Hello" in receipt
    return Row(
        f"{reply} ({took:.1f} s), the fact in the prompt", told, "the fact; its vector waits", f"then {now} vectors"
    )


@fault("embeddings", "b11: none at this endpoint (404)")
async def absent(place: Place) -> Row:
    return await wrong(
        place, log="embeddings of e: not found .HTTP 404.", status=404, body={"error": {"message": "no"}}
    )


@fault("embeddings", "500")
async def failing(place: Place) -> Row:
    return await wrong(place, log="embeddings of e: overloaded", status=500, headers={"Retry-After": "0.01"})


@fault("embeddings", "429")
async def limited(place: Place) -> Row:
    return await wrong(place, log="embeddings of e: rate limited", status=429, headers={"Retry-After": "0.01"})


@fault("embeddings", "a web page")
async def page(place: Place) -> Row:
    return await wrong(place, log="embeddings of e: bad answer", status=200, body="<!DOCTYPE html><title>x</title>")


@fault("embeddings", "b11: 30 s for an answer")
async def slow(place: Place) -> Row:
    return await wrong(place, log="embeddings of e: timeout", hang=True, patience=1.0)


async def odd(place: Place, odd_one: Any, *, log: str, fate: str) -> Row:
    """One of several vectors is ``odd_one``: its text is found by words, the others are as they should be."""
    values: Sequence[float] = odd_one

    def embed(text: str) -> Sequence[float]:
        return values if PRIVATE in text else hashed(text)

    async with embedding(place) as (server, talk):
        server.embed_with(embed, reverse=True)
        await talk.say("my name is Lin")
        await talk.say("I live in Porto")
        await talk.say(FACT)
        reply = await recalled(server, talk)
        now = await filled(place, talk)
        assert now > 0
        width = {len(data) for (data,) in talk.rows("SELECT data FROM embeddings WHERE data != x''")}
        assert len(width) == 1
        told = place.logged(log, most=4)
        assert await recalled(server, talk) == reply
    return Row(reply, told, f"{now} vectors of the other texts", fate)


@fault("embeddings", "b10: NaN")
async def nan(place: Place) -> Row:
    values = [float("nan")] * 8
    return await odd(place, values, log="an unsound vector", fate="found by its words; no vector is made up")


@fault("embeddings", "b10: all zero")
async def zero(place: Place) -> Row:
    return await odd(place, [0.0] * 8, log="an unsound vector", fate="found by its words; no vector is made up")


@fault("embeddings", "b10: a quarter of the width")
async def narrow(place: Place) -> Row:
    return await odd(place, [1.0, 0.0], log="an unsound vector .width 8 expected.", fate="found by its words")


@fault("embeddings", "b08: one text a request, out of order")
async def partial(place: Place) -> Row:
    async with embedding(place) as (server, talk):
        server.embed_with(hashed, batch_limit=1, reverse=True)
        for words in ("my name is Lin", "I live in Porto", FACT):
            await talk.say(words)
        now = await filled(place, talk)
        sizes = [len(request.body["input"]) for request in server.embedding_requests]
        refused = [size for size in sizes if size > 1]
        assert refused == sorted(set(refused), reverse=True), "no size is tried again once it was refused"
        reply = await talk.say("good night")
        assert place.heard.lines == []
    return Row(reply, "nothing", f"{now} vectors, each of its own text", f"at once; {sizes.count(1)} requests of one")


@fault("embeddings", "an outage with many chats")
async def outage(place: Place) -> Row:
    async with embedding(place) as (server, talk):
        server.embed_with(hashed)
        server.fault(match="/embeddings", status=503, headers={"Retry-After": "0.01"}, times=FOREVER)
        users = [str(n) for n in range(2_000, 2_000 + place.chats)]
        for _ in range(2):
            replies = await asyncio.gather(*(talk.say(f"which {PRIVATE} was it, {user}?", user=user) for user in users))
            assert set(replies) == {"Hello"}, set(replies)
        during = len(server.embedding_requests)
        assert during <= place.chats + 3 * MOST_FAILURES
        told = place.logged("fails; it is not asked for", most=2)
        assert place.logged("embeddings of e: ", most=1)
        server.mend()
        now = await filled(place, talk)
        assert now > 0
    heals = f"by itself, then {now} vectors; {during} requests instead of {6 * place.chats}"
    return Row("Hello, every time", told, "every message", heals)
