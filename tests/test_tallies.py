"""The counts of what was done are those of the database, over a busy time and over a restart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from memory.db import Database
from tests.busy import PRIVATE, busy
from tests.conftest import Clock
from tests.talk import Talk, talking

STORES = ("profile", "timeline", "facts")


def counted(talk: Talk, name: str) -> dict[str, int]:
    """What was counted since the start, by label."""
    return {label: times for (of, label), times in talk.app.memory.tallies.since_start.items() if of == name}


async def test_after_a_busy_time_the_counts_are_those_of_the_database(data_dir: Path, clock: Clock) -> None:
    async with busy(data_dir, clock) as talk:
        written, erased = counted(talk, "written"), counted(talk, "erased")
        for store in STORES:
            ((rows,),) = talk.rows(f"SELECT count(*) FROM {store}")
            assert rows == written.get(store, 0) - erased.get(store, 0)
        closed = sum(talk.rows(f"SELECT count(retired_at) FROM {store}")[0][0] for store in STORES)
        assert closed == sum(counted(talk, "closed").values()) - sum(counted(talk, "reopened").values())
        assert counted(talk, "closed")["superseded"] >= 1
        assert erased["facts"] >= 1
        assert counted(talk, "forgotten") == {"": talk.rows("SELECT count(erased_at) FROM deletions")[0][0]}
        asked = [trace.found.verdict for trace in talk.traces if "small talk" not in trace.found.notes]
        assert counted(talk, "recalled") == Counter(asked)
        assert counted(talk, "recalled")["full"] >= 2
        assert counted(talk, "recalled")["nothing"] >= 2
        dropped = counted(talk, "dropped")
        assert dropped["secret"] == 2
        assert sum(dropped.values()) > 4, dropped
        for what in ("times", "tokens_in", "tokens_out"):
            rows = dict(talk.rows(f"SELECT kind, sum({what}) FROM usage GROUP BY kind"))
            name = "used" if what == "times" else what
            assert {kind: n for kind, n in counted(talk, name).items() if n} == {k: n for k, n in rows.items() if n}
        await talk.app.memory.tallies.store(now=clock())
        stored = {
            (name, label): n
            for name, label, n in talk.rows("SELECT name, label, sum(times) FROM tallies GROUP BY name, label")
        }
        assert stored == dict(talk.app.memory.tallies.since_start)


async def test_no_word_of_anybody_is_in_the_counts(data_dir: Path, clock: Clock) -> None:
    async with busy(data_dir, clock) as talk:
        told = repr(talk.app.memory.tallies.since_start) + repr(talk.rows("SELECT * FROM tallies"))
    assert not [word for word in (*PRIVATE, "1001", "2002") if word.lower() in told.lower()]


async def test_the_counts_of_a_day_add_up_over_restarts(data_dir: Path, clock: Clock) -> None:
    for number in range(2):
        async with talking(data_dir, clock) as talk:
            await talk.say(f"/remember my key number 1{number} is blue", id=f"x{number}")
            assert counted(talk, "written") == {"facts": 1}
    async with talking(data_dir, clock) as talk:
        assert talk.rows("SELECT times FROM tallies WHERE name = 'written'") == [(2,)]
        assert counted(talk, "written") == {}


async def test_what_is_rolled_back_was_not_done(tmp_path: Path) -> None:
    db = await Database.open(tmp_path / "r.db")

    async def broken() -> None:
        async with db.transaction():
            db.tally("written", "facts")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await broken()
    async with db.transaction():
        db.tally("written", "facts", 2)
        assert db.tallied == Counter()
    db.tally("erased", "facts", 0)
    assert db.tallied == {("written", "facts"): 2}
    await db.close()
