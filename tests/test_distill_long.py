"""Long messages are read to their end, each part once; what was set aside is tried once more."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from config.settings import DistilSettings
from memory.briefing import BATCH_CHARACTERS, fitting
from memory.distill import LEASE_SECONDS, Distiller
from memory.journal import Line
from memory.model import Message
from memory.pieces import PIECE_CHARACTERS, pieces
from memory.ports import Completion
from memory.sessions import SECOND_CHANCE
from tests.conftest import Clock
from tests.shelf import Shelf, values
from tests.test_distill import items
from tests.test_distill_once import Dying, KilledError

PETS = re.compile(r"I keep pet number \d+")


@pytest_asyncio.fixture
async def shelf(tmp_path: Path, clock: Clock) -> AsyncIterator[Shelf]:
    opened = await Shelf.open(tmp_path / "r.db", clock, zone="UTC", language="en")
    yield opened
    await opened.db.close()


@dataclass
class Reader:
    """A model that notes every pet of the new lines, and keeps which it was shown; ``broken`` answers come first."""

    shown: list[str] = field(default_factory=list)
    broken: deque[str] = field(default_factory=deque)
    prompts: list[str] = field(default_factory=list)

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        self.prompts.append(messages[-1]["content"])
        if self.broken:
            return Completion(self.broken.popleft(), "stop", 10)
        new = messages[-1]["content"].split("New:")[1]
        noted = []
        for line in new.splitlines():
            if number := re.match(r"\[(\d+)\]", line):
                found = PETS.findall(line)
                self.shown += found
                cite = {"message": int(number[1])}
                noted += [{"kind": "fact", "subject": "self", "text": t, "cites": [cite | {"quote": t}]} for t in found]
        return Completion(items(*noted), "stop", 10)


def distiller(shelf: Shelf, model: Reader, **settings: int) -> Distiller:
    return Distiller(
        shelf.db, shelf, shelf.sessions, completer=model, clock=shelf.clock, settings=DistilSettings(**settings)
    )


def tale(numbers: Sequence[int], *, filler: int = 380) -> str:
    """A message that tells of pets between many other words."""
    return " ".join(f"{'and so it went on, ' * (filler // 19)}until today. I keep pet number {n}." for n in numbers)


def pets(numbers: Sequence[int]) -> list[str]:
    return [f"I keep pet number {n}" for n in numbers]


async def distil_all(shelf: Shelf, run: Distiller, *, hours: float = 1) -> list[str]:
    """Distil what is due until nothing is; returns what became of each batch."""
    shelf.clock.advance(hours=hours)
    outcomes: list[str] = []
    while due := await shelf.sessions.due(shelf.owner, now=shelf.clock()):
        outcomes.append((await run.distil(shelf.owner, due[0])).outcome)
        shelf.clock.advance(minutes=20)
    return outcomes


def numbered(text: str, id_: int = 1) -> Message:
    return Message(id_, 1, 1, "user", "Lin", Clock()(), text)


# ---- cutting -----------------------------------------------------------------------------------------


@given(st.text("abc. \n。，x", max_size=9_000), st.integers(0, 4_000))
def test_pieces_put_together_are_the_message(text: str, start: int) -> None:
    begin = min(start, len(text))
    parts = pieces(numbered(text), start=begin)
    assert "".join(part.cut.text for part in parts) == text[begin:]
    assert all(part.end - part.start <= PIECE_CHARACTERS for part in parts)
    assert [part.last for part in parts] == [False] * (len(parts) - 1) + [True]


@pytest.mark.parametrize(
    ("unit", "ends"), [("Quite so. ", ". "), ("就是这样。", "。"), ("word ", " "), ("一行字\n", "\n"), ("长", "长")]
)
def test_a_message_is_cut_behind_a_sentence_or_else_a_word(unit: str, ends: str) -> None:
    first, *_ = pieces(numbered(unit * 3_000))
    assert first.cut.text.endswith(ends)
    assert PIECE_CHARACTERS / 2 < first.end <= PIECE_CHARACTERS


def test_a_message_is_cut_only_where_none_ends() -> None:
    many = [numbered("x" * 5_000, number) for number in range(1, 9)]
    assert [part.last for part in fitting(many)] == [True, True]
    assert [part.last for part in fitting([numbered("x" * 30_000)])] == [False]


def test_the_bots_words_are_not_read_to_their_end() -> None:
    bot = Message(1, 1, 1, "bot", "Recollect", Clock()(), "x" * 30_000)
    (part,) = fitting([bot])
    assert part.last
    assert part.end == PIECE_CHARACTERS


# ---- reading -----------------------------------------------------------------------------------------


async def test_all_of_a_long_message_is_read_in_one_request_and_cited_as_the_one(shelf: Shelf) -> None:
    said = await shelf.say(tale(range(20)))
    assert PIECE_CHARACTERS * 2 < len(said.text) < BATCH_CHARACTERS
    model = Reader()
    assert await distil_all(shelf, distiller(shelf, model)) == ["distilled"]
    assert model.shown == pets(range(20))
    stored = await shelf.facts.history(shelf.owner)
    assert sorted(values(stored)) == sorted(pets(range(20)))
    assert {citation.message for entry in stored for citation in entry.provenance.citations} == {said.id}


async def test_a_book_goes_over_several_requests_and_no_word_of_it_twice(shelf: Shelf) -> None:
    await shelf.say("Here is my story.")
    said = await shelf.say(tale(range(80)))
    await shelf.say("I keep pet number 99")
    assert len(said.text) > 2 * BATCH_CHARACTERS
    model = Reader()
    outcomes = await distil_all(shelf, distiller(shelf, model))
    assert set(outcomes) == {"distilled"}
    assert 3 <= len(outcomes) <= 6
    assert model.shown == [*pets(range(80)), *pets([99])]
    assert await shelf.db.fetch("SELECT 1 FROM journal WHERE read_to != 0 OR revised != 0") == []


async def test_the_words_before_a_piece_are_shown_but_may_not_be_cited(shelf: Shelf) -> None:
    await shelf.say(tale(range(40)))
    model = Reader()
    await distil_all(shelf, distiller(shelf, model))
    earlier, new = model.prompts[1].split("Earlier:")[1].split("New:")
    assert "until today" in earlier
    assert "[" not in earlier
    assert "[1]" in new


async def test_a_kill_between_two_pieces_repeats_none_and_skips_none(shelf: Shelf) -> None:
    await shelf.say(tale(range(80)))
    model = Reader()
    run = distiller(shelf, model)
    shelf.clock.advance(hours=1)
    (session,) = await shelf.sessions.due(shelf.owner, now=shelf.clock())
    await run.distil(shelf.owner, session)
    first = len(model.shown)
    run._sessions = Dying(shelf.sessions)  # type: ignore[assignment]
    with pytest.raises(KilledError):
        await run.distil(shelf.owner, session)
    del model.shown[first:]
    shelf.clock.advance(seconds=LEASE_SECONDS + 1)
    await distil_all(shelf, distiller(shelf, model))
    assert model.shown == pets(range(80))
    assert len(await shelf.facts.history(shelf.owner)) == 80


async def test_an_edit_of_a_half_read_message_begins_it_anew(shelf: Shelf) -> None:
    said = await shelf.say(tale(range(80)))
    model = Reader()
    run = distiller(shelf, model)
    shelf.clock.advance(hours=1)
    (session,) = await shelf.sessions.due(shelf.owner, now=shelf.clock())
    await run.distil(shelf.owner, session)
    await shelf.journal.rewrite(shelf.owner, said, Line("user", "Lin", said.at, tale(range(100, 120))))
    model.shown.clear()
    await distil_all(shelf, run)
    assert model.shown == pets(range(100, 120))


async def test_an_edited_line_before_a_half_read_one_disturbs_neither(shelf: Shelf) -> None:
    early = await shelf.say("I keep pet number 500")
    await shelf.say(tale(range(80)))
    model = Reader()
    run = distiller(shelf, model)
    shelf.clock.advance(hours=1)
    (session,) = await shelf.sessions.due(shelf.owner, now=shelf.clock())
    await run.distil(shelf.owner, session)
    await shelf.journal.rewrite(shelf.owner, early, Line("user", "Lin", early.at, "I keep pet number 501"))
    await distil_all(shelf, run)
    assert sorted(model.shown) == sorted([*pets(range(80)), *pets([500, 501])])


async def test_a_piece_no_try_can_distil_is_set_aside_and_the_rest_is_read(shelf: Shelf) -> None:
    await shelf.say(tale(range(30)))
    model = Reader(broken=deque(["?", "?", "?"]))
    outcomes = await distil_all(shelf, distiller(shelf, model))
    assert outcomes[:3] == ["retry", "retry", "set_aside"]
    assert set(outcomes[3:]) == {"distilled"}
    assert 0 < len(model.shown) < 30
    assert model.shown == pets(range(30))[-len(model.shown) :]
    (row,) = await shelf.db.fetch("SELECT set_aside FROM journal")
    assert row["set_aside"] == "no_json"


# ---- a second chance ---------------------------------------------------------------------------------


async def test_what_was_set_aside_is_tried_once_more_after_a_week_and_never_again(shelf: Shelf) -> None:
    await shelf.say("I keep pet number 7")
    model = Reader(broken=deque(["?"] * 3))
    run = distiller(shelf, model)
    assert (await distil_all(shelf, run))[-1] == "set_aside"
    assert await shelf.sessions.second_chance(shelf.owner, now=shelf.clock()) == 0
    shelf.clock.advance(seconds=SECOND_CHANCE.total_seconds())
    model.broken.extend(["?"] * 3)
    assert await shelf.sessions.second_chance(shelf.owner, now=shelf.clock()) == 1
    assert (await distil_all(shelf, run))[-1] == "set_aside"
    assert await shelf.sessions.second_chance(shelf.owner, now=shelf.clock() + 9 * SECOND_CHANCE) == 0
    assert await shelf.sessions.due(shelf.owner, now=shelf.clock() + timedelta(days=99)) == []


async def test_a_second_chance_that_is_taken_leaves_no_mark(shelf: Shelf) -> None:
    await shelf.say("I keep pet number 7")
    model = Reader(broken=deque(["?"] * 3))
    run = distiller(shelf, model)
    await distil_all(shelf, run)
    shelf.clock.advance(seconds=SECOND_CHANCE.total_seconds())
    assert await shelf.sessions.second_chance(shelf.owner, now=shelf.clock()) == 1
    assert await distil_all(shelf, run) == ["distilled"]
    assert values(await shelf.live()) == ["I keep pet number 7"]
    (row,) = await shelf.db.fetch("SELECT set_aside, revised FROM journal")
    assert tuple(row) == (None, 0)


async def test_what_was_forgotten_or_is_somebody_elses_gets_no_second_chance(shelf: Shelf, clock: Clock) -> None:
    said = await shelf.say("I keep pet number 7")
    await distil_all(shelf, distiller(shelf, Reader(broken=deque(["?"] * 3))))
    later = shelf.clock() + SECOND_CHANCE
    other = await shelf.accounts.meet("test", "2", name="Bo", language="en", zone="UTC", at=clock())
    assert await shelf.sessions.second_chance(other, now=later) == 0
    await shelf.db.execute("UPDATE journal SET hidden_by = 1 WHERE id = ?", (said.id,))
    assert await shelf.sessions.second_chance(shelf.owner, now=later) == 0
