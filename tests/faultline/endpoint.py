"""The chat endpoint fails in every way it can; others are answered meanwhile, and it heals by itself."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import pytest

from bot.circuit import MOST_FAILURES
from tests.faultline.place import KEY, PRIVATE, Place, Row, fault
from tests.servers.openai_server import FOREVER, OpenAIServer
from tests.talk import Talk

SAID = f"my flower is the {PRIVATE}"
PAGE = f"<!DOCTYPE html><title>Gateway</title><p>{KEY}</p>"
SORRY = "I cannot reach my language model just now. Your message is kept"


async def asked(place: Place, talk: Talk, text: str = SAID) -> tuple[str, float]:
    """Say something; the reply and how long it took. Somebody else is answered meanwhile."""
    begin = time.perf_counter()
    reply, other = await asyncio.gather(talk.say(text), talk.say("hello there", user="1002"))
    assert other == "Hello"
    return reply, time.perf_counter() - begin


def kept(talk: Talk) -> str:
    """That what was said is in the journal, once, and no piece of an answer is."""
    rows = talk.rows("SELECT role, text FROM journal WHERE text LIKE '%heliotrope%'")
    assert rows == [("user", SAID)]
    return "the message, once; no answer"


async def refused(
    place: Place, *, log: str, tries: int, user: str = SORRY, bad: dict[str, Any], patience: float = 20.0
) -> Row:
    """One person's requests fail as ``bad`` says, until they do not."""
    async with place.served(model={"timeout_seconds": patience}) as (server, talk):
        server.fault(match=PRIVATE, times=FOREVER, **bad)
        reply, took = await asked(place, talk)
        assert reply.startswith(user), reply
        assert KEY not in reply
        assert "<" not in reply
        begun = [chat for chat in server.chats if PRIVATE in chat.prompt]
        assert len(begun) == tries, len(begun)
        told, row = place.logged(log), kept(talk)
        server.mend()
        place.passes(61)
        assert await talk.say("and now?") == "Hello"
    return Row(f"{reply.split(' (log')[0]} ({took:.1f} s)", told, row, f"at the next message; {tries} requests")


def refusal(status: int, log: str, tries: int, headers: dict[str, str] | None = None, **more: Any) -> Any:
    """A scenario of one status."""
    body = {"error": {"message": f"no, {KEY} said {PRIVATE}", "code": "x"}}

    async def scenario(place: Place) -> Row:
        bad = {"status": status, "headers": headers or {}, "body": body}
        return await refused(place, log=log, tries=tries, bad=bad, **more)

    return scenario


fault("endpoint", "401 wrong key")(refusal(401, "unauthorised .HTTP 401.: .* check OPENAI_API_KEY", 1))
fault("endpoint", "403 not allowed")(refusal(403, "unauthorised .HTTP 403.: .* check OPENAI_API_KEY", 1))
fault("endpoint", "404 no such model")(refusal(404, "not found .HTTP 404.: .* check OPENAI_MODEL", 1))
fault("endpoint", "400 refused")(refusal(400, "refused .HTTP 400.: .*python -m bot check", 1))
fault("endpoint", "408 timeout told")(refusal(408, "timeout .HTTP 408.", 3))
fault("endpoint", "429 without Retry-After")(refusal(429, "rate limited .HTTP 429.", 3))
fault("endpoint", "500")(refusal(500, "overloaded .HTTP 500.", 3))
fault("endpoint", "502")(refusal(502, "overloaded .HTTP 502.", 3, {"Retry-After": "0.01"}))
fault("endpoint", "503")(refusal(503, "overloaded .HTTP 503.", 3, {"Retry-After": "0.01"}))


@fault("endpoint", "429 with Retry-After")
async def retry_after(place: Place) -> Row:
    async with place.served(model={"timeout_seconds": 20.0}) as (server, talk):
        server.fault(match=PRIVATE, status=429, headers={"Retry-After": "0.2"}, body={"error": {"message": "slow"}})
        reply, took = await asked(place, talk)
        assert reply == "Hello"
        assert took >= 0.2
        assert place.heard.lines == []
        rows = talk.rows("SELECT count(*) FROM journal WHERE role = 'bot' AND text = 'Hello'")
        assert rows == [(2,)]
    return Row(f"Hello (after the {took:.1f} s asked for)", "nothing", "the message and one answer", "by itself")


@fault("endpoint", "hangs")
async def hangs(place: Place) -> Row:
    told = "timeout: no answer in time: see model.timeout_seconds"
    return await refused(place, log=told, tries=1, bad={"hang": True}, patience=3.0)


@fault("endpoint", "connection reset")
async def reset(place: Place) -> Row:
    return await refused(place, log="unreachable: nobody answers there", tries=3, bad={"drop": True})


@fault("endpoint", "web page, status 200")
async def page(place: Place) -> Row:
    bad = {"status": 200, "headers": {"Content-Type": "text/html"}, "body": PAGE}
    return await refused(place, log="bad answer: .*OPENAI_BASE_URL .a missing /v1", tries=1, bad=bad)


@fault("endpoint", "JSON of another kind")
async def other_json(place: Place) -> Row:
    return await refused(place, log="bad answer: ", tries=1, bad={"status": 200, "body": {"detail": "hello"}})


@fault("endpoint", "JSON null")
async def null(place: Place) -> Row:
    bad = {"status": 200, "body": "null", "headers": {"Content-Type": "application/json"}}
    return await refused(place, log="bad answer: ", tries=1, bad=bad)


@fault("endpoint", "nobody listens")
async def away(place: Place) -> Row:
    async with OpenAIServer() as gone:
        url = gone.base_url
    async with place.talk(openai_base_url=url, openai_model="m", model={"timeout_seconds": 5.0}) as talk:
        reply = await talk.say(SAID)
        assert reply.startswith(SORRY)
        told, row = place.logged("unreachable: nobody answers there: check OPENAI_BASE_URL"), kept(talk)
        assert "/forget" in await talk.say("/help")
    return Row(reply.split(" (log")[0], told, row, "when the server runs; commands go on meanwhile")


async def broken_off(place: Place, **how: Any) -> Row:
    model = {"timeout_seconds": 3.0 if "stall" in how else 20.0}
    async with OpenAIServer() as server, place.talk(server, model=model) as talk:
        server.on(PRIVATE, reply="It is a purple", times=1, **how)
        server.on(reply="Hello")
        reply, took = await asked(place, talk)
        assert reply == "It is a purple\n\n(The answer broke off here. Ask again for the rest.)"
        told, row = place.logged("the answer broke off"), kept(talk)
        place.passes(5)
        assert await talk.say("and now?") == "Hello"
        assert "purple" not in server.chats[-1].prompt
    return Row(f"{reply!r} ({took:.1f} s)", told, row, "at the next message; the piece is in no later prompt")


@fault("endpoint", "stream cut by a reset")
async def cut_by_reset(place: Place) -> Row:
    return await broken_off(place, drop=True)


@fault("endpoint", "stream cut without an end")
async def cut_clean(place: Place) -> Row:
    return await broken_off(place, cut=True)


@fault("endpoint", "stream stalls")
async def stalls(place: Place) -> Row:
    return await broken_off(place, stall=True)


@fault("endpoint", "slow drip")
async def drips(place: Place) -> Row:
    model = {"timeout_seconds": 3.0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bot.llm.MOST_SILENCES", 1)
        async with OpenAIServer() as server, place.talk(server, model=model) as talk:
            server.on(PRIVATE, reply="drip " * 300, pause=0.05)
            server.on(reply="Hello")
            reply, took = await asked(place, talk)
            assert reply.endswith("(The answer broke off here. Ask again for the rest.)")
            assert took < 12
            told, row = place.logged("the answer broke off: timeout"), kept(talk)
    return Row(
        f"what came, then '{reply[-54:]}'",
        told,
        row,
        f"at the next message; held {took:.1f} s: as many silences as one may take",
    )


@fault("endpoint", "overloaded, told in the stream")
async def error_in_stream(place: Place) -> Row:
    async with OpenAIServer() as server, place.talk(server) as talk:
        server.on(PRIVATE, chunks=['{"error": {"message": "overloaded", "code": 503}}'], times=1)
        server.on(reply="Hello")
        reply, _ = await asked(place, talk)
        assert reply.startswith(SORRY)
        told, row = place.logged("overloaded"), kept(talk)
        assert await talk.say("and now?") == "Hello"
    return Row(reply.split(" (log")[0], told, row, "at the next message")


@fault("endpoint", "an outage of a minute, many chats")
async def outage(place: Place) -> Row:
    """Everybody writes every twenty seconds; nobody is left without a word, and nobody storms the endpoint."""
    chats = [str(number) for number in range(2_000, 2_000 + place.chats)]
    words: Counter[str] = Counter()
    slowest = 0.0
    async with place.served(model={"timeout_seconds": 60.0}) as (server, talk):
        server.fault(match="chat/completions", status=503, headers={"Retry-After": "0.01"}, times=FOREVER)

        async def everybody() -> list[str]:
            return await asyncio.gather(*(talk.say(f"{SAID} {place.seconds}", user=user) for user in chats))

        for _ in range(3):
            begin = time.perf_counter()
            words.update(reply.split(" (log")[0] for reply in await everybody())
            slowest = max(slowest, time.perf_counter() - begin)
            place.passes(20)
        during = len(server.chats)
        server.mend()
        waited = 0
        while (everyone := await everybody()) != ["Hello"] * place.chats:
            assert "Hello" not in everyone, "it is everybody's again, or nobody's"
            place.passes(10)
            waited += 10
            assert waited <= 120
    assert set(words) <= {"", f"{SORRY}; please try again in a while."}
    assert words[f"{SORRY}; please try again in a while."] >= place.chats
    assert during <= place.chats + 3 * MOST_FAILURES
    told = place.logged("fails; it is not asked for", most=4)
    return Row(
        f"{SORRY}, at once (all {place.chats} within {slowest:.1f} s)",
        told,
        f"all {3 * place.chats} messages",
        f"{waited} s after the endpoint did; {during} requests instead of {9 * place.chats}",
    )


@fault("endpoint", "an outage, and sessions to distil")
async def distillation_waits(place: Place) -> Row:
    async with place.served(model={"retries": 0}) as (server, talk):
        assert await talk.say("I moved to Porto and work as a baker") == "Hello"
        server.fault(match="chat/completions", status=503, times=FOREVER)
        for user in range(MOST_FAILURES):
            await talk.say(SAID, user=str(3_000 + user))
        place.passes(1)
        asked_before = len(server.chats)
        place.clock.advance(minutes=40)
        for _ in range(4):
            await talk.app.tick()
            place.clock.advance(minutes=5)
        assert len(server.chats) == asked_before, "the endpoint rests, by the ticks that stand still"
        tries = talk.rows("SELECT max(attempts), min(waiting) FROM session_members")
        assert tries == [(0, 1)]
        server.mend()
        place.passes(3_600)
        await talk.app.tick()
        await talk.app.tick()
        left = talk.rows("SELECT count(*) FROM session_members WHERE waiting = 1")
    assert left == [(0,)]
    return Row("nothing", place.logged("fails; it is not asked for"), "every session, no try counted", "the next round")
