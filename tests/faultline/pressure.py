"""Somebody sends far too much: a person, the model, the endpoint. What is held in memory has a bound."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any

import pytest

from bot.answer import MOST_CHARACTERS
from tests.faultline.endpoint import SORRY
from tests.faultline.place import PRIVATE, Place, Row, fault
from tests.servers.openai_server import OpenAIServer
from tests.talk import Talk

MEGABYTE = 1_000_000


async def weighed(talk: Talk, text: str) -> tuple[str, float]:
    """Say something; the reply, and how many megabytes were held at most meanwhile. Somebody else is answered."""
    tracemalloc.start()
    try:
        reply, other = await asyncio.gather(talk.say(text), talk.say("hello there", user="1002"))
        assert other == "Hello"
        return reply, tracemalloc.get_traced_memory()[1] / MEGABYTE
    finally:
        tracemalloc.stop()


def delta(content: str) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]})


async def flooded(place: Place, *, most: float, **how: Any) -> tuple[str, float, Talk]:
    """The model answers as ``how`` says; in the end its next answer is an ordinary one."""
    async with OpenAIServer() as server, place.talk(server, model={"timeout_seconds": 60.0}) as talk:
        server.on(PRIVATE, times=1, **how)
        server.on(reply="Hello")
        reply, weight = await weighed(talk, f"tell me of the {PRIVATE}")
        assert weight < most, f"{weight} MB"
        place.clock.advance(minutes=2)
        assert await talk.say("and now?") == "Hello"
        return reply, weight, talk


@fault("pressure", "a message of 100,000 characters")
async def long_message(place: Place) -> Row:
    """No platform lets through more than a twentieth of it; the terminal does."""
    async with place.served(model={"context_tokens": 4_096}) as (server, talk):
        reply, other = await asyncio.gather(
            talk.say(f"{PRIVATE} " * (100_000 // 11)), talk.say("hello there", user="1002")
        )
        assert other == "Hello"
        assert reply.startswith("This is too long for my language model. Please send it in smaller parts")
        assert not [chat for chat in server.chats if PRIVATE in chat.prompt]
        assert talk.rows("SELECT count(*) FROM journal WHERE length(text) > 99000") == [(1,)]
        told = place.logged("not even the message alone fits the model")
        assert await talk.say("and now?") == "Hello"
    return Row(reply, told, "the message", "at the next message")


@fault("pressure", "an answer that never ends")
async def endless(place: Place) -> Row:
    piece = "and on " * 2_000
    chunks = [delta(piece)] * 1_000
    reply, weight, _ = await flooded(place, most=120, chunks=chunks)
    assert MOST_CHARACTERS - len(piece) <= len(reply) <= MOST_CHARACTERS + len(piece) + 9
    assert reply.endswith("…")
    return Row(f"{len(reply):,} characters of it, and …", "nothing", "the same", f"at once; {weight:.0f} MB at most")


@fault("pressure", "one event without an end")
async def one_event(place: Place) -> Row:
    """The line of one event has more bytes than any answer; nothing else stands between them and the memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bot.connection.MOST_BYTES", 4 * MEGABYTE)
        reply, weight, _ = await flooded(place, most=120, chunks=["x" * (20 * MEGABYTE)])
    assert reply.startswith(SORRY)
    told = place.logged("bad answer")
    return Row(reply.split(" (log", maxsplit=1)[0], told, "the message", f"at once; {weight:.0f} MB at most")


@fault("pressure", "a body without an end")
async def body(place: Place) -> Row:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bot.connection.MOST_BYTES", 4 * MEGABYTE)
        async with place.served(model={"timeout_seconds": 60.0}) as (server, talk):
            content = {"Content-Type": "application/json"}
            server.fault(match=PRIVATE, status=200, headers=content, body="[" * (20 * MEGABYTE))
            reply, weight = await weighed(talk, f"tell me of the {PRIVATE}")
            assert reply.startswith(SORRY)
            assert weight < 120
            told = place.logged("bad answer")
            assert await talk.say("and now?") == "Hello"
    return Row(reply.split(" (log", maxsplit=1)[0], told, "the message", f"at once; {weight:.0f} MB at most")


@fault("pressure", "JSON nested a hundred thousand deep")
async def nested(place: Place) -> Row:
    async with place.served(model={"timeout_seconds": 60.0}) as (server, talk):
        content = {"Content-Type": "application/json"}
        server.fault(match=PRIVATE, status=200, headers=content, body="[" * 100_000 + "]" * 100_000)
        reply, _ = await weighed(talk, f"tell me of the {PRIVATE}")
        assert reply.startswith(SORRY), reply
        told = place.logged("bad answer")
        assert await talk.say("and now?") == "Hello"
    return Row(reply.split(" (log", maxsplit=1)[0], told, "the message", "at the next message")
