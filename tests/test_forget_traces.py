"""What is left of what was forgotten: nothing, in other words neither, in no table that there is or will be."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from memory.db import Database
from tests.conftest import KEY, Clock
from tests.servers.openai_server import OpenAIServer, Request
from tests.talk import Door, Talk, talking
from tests.test_forget_forms import holding

SECRET: Final = "valsartan"
PARAPHRASE: Final = "that pill for the heart"
FORMS: Final = ("valsartan", "last", "since 11:00", "this chat", "everything")
"""Every form of ``/forget`` but the one by number, said after the words it is about."""

OF_AN_OWNER: Final = {
    "journal", "profile", "timeline", "facts", "citations", "chunks", "embeddings", "vector_pages", "segments",
    "traces", "offers", "notices", "waiting", "nulls", "session_members", "shown",
    "kept_apart", "consents",
}  # fmt: skip
"""Tables of which nothing is left of an owner after everything was forgotten, marks without words apart."""
OF_AN_ACCOUNT: Final = {"session_members", "nulls", "consents"}
"""Those of them that are kept by the account's number."""
KEPT: Final = {
    "accounts": "that there is an account, and in which language it is spoken to; its counter of numbers",
    "allowed": "who may talk here, by numbers; no memory",
    "also_hidden": "numbers of rows, gone with the deletion",
    "chats": "where to write to",
    "deletions": "that something was forgotten, in counts",
    "budget_told": "that somebody was told of a budget today",
    "departures": "which groups an account has left: what it said there must not be used in them",
    "erased": "numbers of rows, for a restored backup",
    "imported": "hashes of numbers, so that what is erased here is not imported once more",
    "group_usage": "counts of a group by day, without a word",
    "job_runs": "nobody's",
    "link_codes": "a keyed hash of what was shown, void after minutes",
    "link_tries": "times of wrong codes",
    "links": "which accounts are one person; /unlink ends that",
    "models": "nobody's",
    "once_linked": "in whose talks to look for what is forgotten later",
    "pauses": "where nothing is to be learned: forgetting everything is no wish to be remembered again",
    "pairing": "a keyed hash of what a stranger was shown, void after a day",
    "pairing_tries": "times of wrong codes",
    "persons": "nobody's: numbers",
    "probes": "nobody's",
    "sessions": "nobody's own: when there was talk in a chat",
    "tallies": "nobody's: what the whole program did on a day, in counts",
    "sights": "nobody's: who may see a room, as the platform names them",
    "spending": "tokens of today, or the budget of a day could be had twice",
    "usage": "counts by day, without a word",
}
"""Tables that /forget everything leaves alone, and why."""


def paraphrased(request: Request) -> str:
    """What a model says that tells what it has read in words of its own."""
    return (
        f"Take {PARAPHRASE} after meals." if re.search(f"{SECRET}|{PARAPHRASE}", request.prompt) else "I do not know."
    )


async def yes(talk: Talk) -> None:
    """Say yes to what is offered, whatever that takes."""
    if (await talk.say("/forget yes")).startswith("That is too much for one yes"):
        assert (await talk.say("/forget yes, forget all of me")).startswith("Hidden at once")


@pytest.mark.parametrize("form", FORMS)
async def test_the_old_window_tells_it_in_no_other_words(data_dir: Path, clock: Clock, form: str) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply=paraphrased)
        if form != "last":
            await talk.say("The weather was dull all week, was it not, and the bus late again?")
        said = f"Every evening I have to swallow my {SECRET}, the doctor says."
        assert PARAPHRASE in await talk.say(said)
        assert PARAPHRASE in await talk.say("And when shall I do that, then?") or form == "last"
        if form == "last":
            await talk.say("/new")
            await talk.say(said.replace("Every", "Each"))
        for words in (form, *(["Every evening"] if form == "last" else [])):
            await talk.say(f"/forget {words}")
            await yes(talk)
        assert await talk.say("So what was it that I was to do?") == "I do not know."
        assert SECRET not in server.chats[-1].prompt
        assert PARAPHRASE not in server.chats[-1].prompt
        clock.advance(minutes=11)
        await talk.app.tick()
        stored = talk.everything_stored()
        assert SECRET not in stored
        assert PARAPHRASE not in stored
        assert holding(data_dir, SECRET) == []


@pytest.mark.skipif(bool(KEY), reason="no byte of an encrypted file can be read")
async def test_the_search_through_the_bytes_would_find_what_no_table_holds_any_more(
    data_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program is broken here, so that the tests above are seen to look: the file is not rewritten."""

    async def nothing(_: Database) -> None: ...

    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="Well.")
        await talk.say(f"Every evening I have to swallow my {SECRET}, the doctor says.")
        monkeypatch.setattr(Database, "scrub", nothing)
        await talk.say(f"/forget {SECRET}")
        await yes(talk)
        clock.advance(minutes=11)
        await talk.app.tick()
        assert SECRET not in talk.everything_stored()
        assert holding(data_dir, SECRET) != []
        monkeypatch.undo()
        await talk.app.memory._db.scrub()
        assert holding(data_dir, SECRET) == []


def distilled(request: Request) -> str:
    """What a model finds in a session: a fact that quotes the first line it may cite."""
    number, words = re.findall(r"^\[(\d+)\] \S+ \S+ \S+ \S+?: (.+)$", request.last_user, re.MULTILINE)[0]
    item: dict[str, Any] = {
        "kind": "fact",
        "subject": "self",
        "text": words,
        "confidence": 0.9,
        "importance": 0.5,
        "cites": [{"message": int(number), "quote": words}],
    }
    blank = dict.fromkeys(("attribute", "value", "when", "start", "end", "until"), "")
    return json.dumps({"items": [item | blank | {"forgettable": False, "negates": False}]})


@pytest.mark.parametrize("undone", [False, True])
@pytest.mark.parametrize("form", ["since 11:00", "this chat", "everything", SECRET, "last"])
async def test_a_distillation_under_way_writes_nothing_of_it(
    data_dir: Path, clock: Clock, form: str, *, undone: bool
) -> None:
    door = Door()
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on("[1]", reply=distilled, hold=door, times=1)
        server.on("[1]", reply=distilled)
        server.on(reply="Well.")
        said = f"Every evening I swallow {SECRET} with a glass of water"
        await talk.say(said)
        clock.advance(minutes=31)
        running = asyncio.create_task(talk.app.tick())
        await door.reached.wait()
        await talk.say(f"/forget {form}")
        await yes(talk)
        door.set()
        await running
        assert SECRET not in " ".join(await talk.texts())
        assert SECRET not in str(talk.rows("SELECT text FROM facts"))
        if undone:
            assert (await talk.say("/undo")).startswith("Back again")
            clock.advance(minutes=31)
            await talk.app.tick()
            # It was not lost for good either: what nobody forgot is distilled in its turn.
            assert SECRET in " ".join(await talk.texts())
            return
        for _ in range(3):
            clock.advance(minutes=31)
            await talk.app.tick()
        assert SECRET not in talk.everything_stored()


async def test_every_table_is_reached_by_everything_or_left_alone_for_a_reason(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply=lambda request: f"Noted: {request.last_user}")
        await talk.say(f"I live in Oslo and take {SECRET} at 8 on 3 May 2026")
        await talk.say("Where do I live?")
        talk.alter("INSERT INTO consents (account, matter, answer, at) VALUES (1, 'health', 1, 0)")
        tables = {name for (name,) in talk.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        ours = {name for name in tables if not name.startswith("sqlite_")}
        assert ours == OF_AN_OWNER | set(KEPT), "say of a new table whether /forget everything reaches it, and why not"
        await talk.say("/forget everything")
        await yes(talk)
        (deletion,) = talk.rows("SELECT max(id) FROM deletions")[0]
        clock.advance(minutes=11)
        await talk.app.tick()
        for table in sorted(OF_AN_OWNER - OF_AN_ACCOUNT):
            key = {"citations": "entry", "kept_apart": "kept"}.get(table, "id")
            words = " AND text_hash != x''" if table == "journal" else ""
            left = talk.rows(f"SELECT * FROM {table} WHERE {key} < {deletion}{words}")
            assert left == [], table
        assert talk.rows("SELECT * FROM consents") == talk.rows("SELECT * FROM nulls") == []
        assert talk.rows("SELECT name, zone_set FROM accounts") == [("", None)]
