"""The clock of the machine leaps, back and forth, or the clocks of people do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.faultline.endpoint import SAID
from tests.faultline.place import Place, Row, fault
from tests.talk import Talk

DAY = timedelta(days=1)


def waiting(talk: Talk) -> int:
    """How many sessions wait to be distilled."""
    return int(talk.rows("SELECT count(*) FROM session_members WHERE waiting = 1")[0][0])


@fault("clock", "set back by a day")
async def set_back(place: Place) -> Row:
    """Nothing expires early, no session is stuck, the talk keeps its order."""
    async with place.served() as (server, talk):
        assert await talk.say("my name is Lin") == "Hello"
        await talk.say("I am in Lisbon until Friday")
        await talk.say(SAID)
        known = await talk.texts()
        place.clock.now -= DAY
        assert await talk.say("are you there?") == "Hello"
        prompt = server.chats[-1].prompt
        assert "are you there?" in prompt
        place.clock.advance(minutes=1)
        await talk.say("and what now?")
        place.clock.advance(minutes=1)
        await talk.say("nothing more")
        prompt = server.chats[-1].prompt
        order = [prompt.index(words) for words in ("are you there?", "and what now?", "nothing more")]
        assert order == sorted(order)
        assert SAID not in prompt, "what was said a day later by the clock is another talk"
        assert await talk.texts() == known
        await talk.app.tick()
        told = place.logged("the clock was set back", most=1)
        place.clock.advance(minutes=41)
        await talk.app.tick()
        assert waiting(talk) == 0
        assert await talk.texts() == known
    return Row(
        "the answer, as ever", told, "all memories; the talk's order", "at once; the old session ends after 30 min"
    )


@fault("clock", "set back by a day, a distillation was left half way")
async def lease(place: Place) -> Row:
    async with place.served() as (_, talk):
        await talk.say(SAID)
        place.clock.advance(minutes=40)
        owner = await talk.owner()
        sessions = talk.app.memory._sessions
        (due,) = await sessions.due(owner, now=place.clock())
        assert await sessions.claim(owner, due.no, now=place.clock(), lease_seconds=900, limit=9) is not None
        place.clock.now -= DAY
        for _ in range(2):
            place.clock.advance(minutes=31)
            await talk.app.tick()
        assert waiting(talk) == 0
        told = place.logged("the clock was set back", most=1)
    return Row("nothing", told, "the session, distilled once", "within the hour, not after a day")


@fault("clock", "ahead by ten years for an hour")
async def ahead(place: Place) -> Row:
    """What takes away for good does not trust it."""
    async with place.served() as (_, talk):
        await talk.say("my name is Lin")
        await talk.say("I am in Lisbon until Friday")
        await talk.say(SAID)
        await talk.app.tick()
        known = await talk.texts()
        lines = talk.rows()
        right = place.clock.now
        place.clock.now += timedelta(days=3_650)
        await talk.app.tick()
        place.clock.advance(minutes=50)
        await talk.app.tick()
        told = place.logged("job trim waits for a day", most=1)
        assert talk.rows() == lines
        place.clock.now = right + timedelta(hours=1)
        await talk.app.tick()
        place.clock.advance(hours=1)
        await talk.app.tick()
        assert talk.rows() == lines
        assert sorted(await talk.texts()) == sorted(known)
        assert await talk.say("hi") == "Hello"
    return Row("meanwhile what expires is not told", told, "journal, traces, memories", "when the clock is right")


@fault("clock", "daylight saving ends between two messages")
async def daylight(place: Place) -> Row:
    """Twenty minutes pass, though a clock on the wall shows forty minutes less."""
    place.clock.now = datetime(2026, 10, 25, 0, 50, tzinfo=UTC)
    async with place.served(zone="Europe/Berlin") as (server, talk):
        await talk.say(SAID)
        place.clock.advance(minutes=19)
        await talk.say("and then?")
        assert SAID in server.chats[-1].prompt, "it is one session"
        assert talk.rows("SELECT count(*) FROM sessions") == [(1,)]
        times = [at for (at,) in talk.rows("SELECT at FROM journal WHERE role = 'user' ORDER BY id")]
        assert times[1] - times[0] == 20 * 60 * 1_000_000
        place.clock.advance(minutes=31)
        await talk.app.tick()
        assert waiting(talk) == 0
        assert place.heard.lines == []
    return Row("the answer", "nothing", "one session, twenty minutes long", "nothing to heal")
