"""Long messages: found by any part of them, cited as one, told by a gist, and gone whole."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from config.settings import RecallSettings
from memory import engine, opening
from memory.block import block
from memory.clock import stamp
from memory.db import Database
from memory.embedding import spoken, text_hash
from memory.forget import Forgetting
from memory.indexes import Indexes
from memory.journal import Line
from memory.model import Message, Recalled
from memory.opening import migrations
from memory.passages import chunks
from memory.ports import Vector
from memory.recall import Recall, RecallOptions
from memory.showing import LongHits, forms
from memory.stores import Stores
from tests.conftest import Clock
from tests.shelf import Shelf, fact, forgetting
from tests.units import START

TOPICS = ("单簧管", "高山", "clarinet", "mountain")
SIMILAR = {"乐器": 0, "爬山": 1, "instrument": 2, "hiking": 3}
READS = 1_500
"""Bytes this embedder reads of a text, as the bundled one does."""

WALKS = "下午在公园里走了一圈，看见很多人在放风筝。"
BOATS = "Then I walked along the river and counted the boats. "
LONG = {
    "zh": f"早上天气很好。{WALKS * 60}最后我决定把单簧管卖掉。{WALKS * 8}",
    "en": f"The morning was bright. {BOATS * 60}In the end I sold my clarinet. {BOATS * 8}",
}
ASKED = {"zh": "那件乐器后来怎么样", "en": "whatever became of the instrument"}
WORD = {"zh": "单簧管", "en": "clarinet"}


class Topics:
    """Vectors by what a text is about, read no further than an embedder reads."""

    model = "topics"
    dimensions = 5

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        self.asked += texts
        return [self._one(text.encode()[:READS].decode(errors="ignore")) for text in texts]

    def _one(self, text: str) -> Vector:
        vector = np.array([*(topic in text for topic in TOPICS), 0.2], dtype=np.float32)
        for word, topic in SIMILAR.items():
            vector[topic] += word in text
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


@dataclass
class World:
    shelf: Shelf
    stores: Stores
    embedder: Topics
    recall: Recall
    forgetting: Forgetting
    indexes: Indexes

    async def ask(self, question: str, max_tokens: int | None = None) -> list[Recalled]:
        options = RecallOptions(threshold=False, max_tokens=max_tokens)
        now = self.shelf.clock()
        found = await self.recall.recall(self.shelf.owner, question, now=now, room=self.shelf.chat, options=options)
        return list(found.units)

    async def rows(self, table: str) -> int:
        return int((await self.shelf.db.fetch(f"SELECT count(*) AS n FROM {table}"))[0]["n"])

    async def fill(self) -> int:
        return await self.stores.embeddings.fill(self.shelf.owner)


def world_of(shelf: Shelf) -> World:
    embedder = Topics()
    stores = Stores.over(shelf.db, shelf.accounts, embedder, shelf.clock)
    indexes = Indexes(stores)
    recall = Recall(stores, indexes, RecallSettings(timeout_seconds=2.0), len)
    gate = forgetting(shelf, stores)
    return World(shelf, stores, embedder, recall, gate, indexes)


@pytest.fixture
async def world(tmp_path: Path, clock: Clock) -> AsyncIterator[World]:
    shelf = await Shelf.open(tmp_path / "r.db", clock)
    yield world_of(shelf)
    await shelf.db.close()


async def filled(world: World, tongue: str) -> Message:
    """One long line among short ones about another matter, all with vectors."""
    for n in range(5):
        await world.shelf.say(f"高山 mountain {n}")
    long = await world.shelf.say(LONG[tongue])
    await world.fill()
    return long


@pytest.mark.parametrize("tongue", ["zh", "en"])
async def test_a_long_line_is_found_by_what_its_tail_is_about_and_cited_as_one(world: World, tongue: str) -> None:
    long = await filled(world, tongue)
    found = await world.ask(ASKED[tongue], max_tokens=1_800)
    assert found[0].id == long.id
    assert found[0].cites == (long.id,)
    assert [unit.id for unit in found].count(long.id) == 1
    assert found[0].extent == "passage"
    assert WORD[tongue] in found[0].text


@pytest.mark.parametrize("tongue", ["zh", "en"])
async def test_without_its_chunks_the_tail_would_not_be_found(world: World, tongue: str) -> None:
    long = await filled(world, tongue)
    await world.shelf.db.execute("DELETE FROM chunks")
    found = {unit.id: unit.scores["cosine"] for unit in await world.ask(ASKED[tongue])}
    assert found[long.id] < 0.3


@pytest.mark.parametrize("tongue", ["zh", "en"])
async def test_a_long_line_nobody_asked_for_by_its_words_is_told_by_its_gist(world: World, tongue: str) -> None:
    long = await filled(world, tongue)
    unit = next(unit for unit in await world.ask("mountain 高山", max_tokens=2_000) if unit.id == long.id)
    assert unit.extent == "gist"
    assert len(unit.text) < 130
    assert "…" in unit.text


@pytest.mark.parametrize("tongue", ["zh", "en"])
async def test_the_whole_is_shown_for_its_own_rare_words_where_the_budget_allows(world: World, tongue: str) -> None:
    long = await filled(world, tongue)
    wide = await world.ask(WORD[tongue], max_tokens=4 * len(LONG[tongue]))
    assert (wide[0].id, wide[0].extent, wide[0].text) == (long.id, "whole", LONG[tongue])
    narrow = await world.ask(WORD[tongue], max_tokens=1_000)
    assert (narrow[0].id, narrow[0].extent) == (long.id, "passage")
    assert WORD[tongue] in narrow[0].text
    least = await world.ask(WORD[tongue], max_tokens=500)
    assert [unit.extent for unit in least if unit.id == long.id] == ["gist"]


async def test_the_reader_is_told_what_is_a_gist(world: World) -> None:
    message = await world.shelf.say("我写了日记")
    async with world.shelf.db.transaction():
        await world.stores.facts.add(world.shelf.owner, fact(message, LONG["zh"]), audience=0, now=world.shelf.clock())
    owner, now = world.shelf.owner, world.shelf.clock()
    options = RecallOptions(everything=True)
    found = await world.recall.recall(owner, "", now=now, room=world.shelf.chat, options=options)
    shown = block(found, owner)
    assert "fact, gist" in shown
    assert "…" in shown
    assert "gist 或 passage" in shown
    assert len(shown) < 400
    assert "gist" not in block(replace(found, units=()), owner)
    whole = replace(found.units[0], text="短", extent="whole")
    assert "gist" not in block(replace(found, units=(whole,)), owner)


def test_a_question_beside_its_answer_is_never_told_at_length() -> None:
    unit = Recalled(1, "message", "short", START, 1.0, (1,))
    assert forms(unit, LongHits(), lambda text: f"q → {text}") == (replace(unit, text="q → short"),)


async def test_short_texts_have_no_chunks_and_are_embedded_once(world: World) -> None:
    await world.shelf.say("早上好")
    await world.shelf.say("x" * 1_000)
    assert await world.fill() == 2
    assert await world.rows("chunks") == 0
    assert len(world.embedder.asked) == 2


async def test_each_chunk_is_embedded_once_and_fits_what_the_embedder_reads(world: World) -> None:
    long = await world.shelf.say(LONG["zh"])
    spans = chunks(long.text)
    assert await world.fill() == 1 + len({long.text[slice(*span)] for span in spans})
    assert await world.fill() == 0
    assert {spoken("Lin", long.text[slice(*span)]) for span in spans} < set(world.embedder.asked)
    assert len(world.embedder.asked) == len(set(world.embedder.asked))
    assert all(len(text.encode()) <= READS for text in world.embedder.asked if text != spoken("Lin", long.text))


async def keys(world: World) -> set[bytes]:
    found: set[bytes] = set()
    for table in ("chunks", "embeddings"):
        found |= {row["text_hash"] for row in await world.shelf.db.fetch(f"SELECT text_hash FROM {table}")}
    return found


async def in_the_files(world: World, wanted: set[bytes]) -> int:
    """How many of these byte strings stand in any file beside the database."""
    files = [file.read_bytes() for file in world.shelf.db.path.parent.iterdir()]
    return sum(any(key in content for content in files) for key in wanted)


@pytest.mark.parametrize("tongue", ["zh", "en"])
async def test_e02_an_erased_long_line_leaves_no_chunk_no_vector_and_no_byte(world: World, tongue: str) -> None:
    for n in range(60):
        await world.shelf.say(f"散步 {n}")
    long = await world.shelf.say(LONG[tongue])
    await world.fill()
    kept = await keys(world) - {text_hash(spoken("Lin", LONG[tongue]))}
    gone = {text_hash(spoken("Lin", long.text[slice(*span)])) for span in chunks(long.text)}
    kept -= gone
    assert await in_the_files(world, gone) == len(gone) > 3, "the search can find them"
    now = world.shelf.clock()
    plan = await world.forgetting.plan(world.shelf.owner, world.shelf.chat, WORD[tongue], now=now)
    assert plan is not None
    await world.forgetting.carry_out(world.shelf.owner, plan.offer, picks=None, now=now)
    world.shelf.clock.advance(minutes=10)
    assert len(await world.forgetting.erase_due(world.shelf.owner, now=world.shelf.clock())) == 1
    assert await world.rows("chunks") == 0
    assert await keys(world) == kept
    assert await in_the_files(world, gone | {WORD[tongue].encode()}) == 0


async def test_an_edited_line_is_cut_anew_and_its_old_chunks_are_gone(world: World) -> None:
    long = await world.shelf.say(LONG["zh"])
    await world.fill()
    before = await keys(world)
    rewritten = Line("user", long.speaker, long.at, LONG["en"])
    await world.stores.journal.rewrite(world.shelf.owner, long, rewritten)
    assert await world.rows("chunks") == 0
    await world.stores.embeddings.sweep(world.shelf.owner)
    assert await world.fill() == 1 + len({LONG["en"][slice(*span)] for span in chunks(LONG["en"])})
    assert before.isdisjoint(await keys(world))


async def test_a_trimmed_line_takes_its_chunks_along(world: World) -> None:
    await world.shelf.say(LONG["en"])
    await world.fill()
    await world.stores.journal.trim(world.shelf.owner, before=world.shelf.clock.advance(days=1))
    assert await world.rows("chunks") == 0
    await world.stores.embeddings.sweep(world.shelf.owner)
    assert await world.rows("embeddings") == 0


async def test_a_chunk_left_behind_counts_as_left(world: World) -> None:
    message = await world.shelf.say(LONG["en"])
    await world.fill()
    assert not await world.stores.embeddings.orphaned(world.shelf.owner)
    await world.shelf.db.execute("DROP TRIGGER journal_cut")
    await world.shelf.db.execute("DELETE FROM journal WHERE id = ?", (message.id,))
    assert await world.stores.embeddings.orphaned(world.shelf.owner)


async def test_a_long_line_erased_while_the_embedder_works_leaves_no_vector(world: World) -> None:
    long, asked = await world.shelf.say(LONG["zh"]), world.embedder.embed

    async def meanwhile(texts: Sequence[str]) -> list[Vector | None]:
        await world.stores.journal.erase(world.shelf.owner, [long.id])
        await world.stores.embeddings.sweep(world.shelf.owner)
        return await asked(texts)

    world.embedder.embed = meanwhile  # type: ignore[method-assign]
    assert await world.fill() == 0
    assert await world.rows("embeddings") == await world.rows("chunks") == 0


async def test_another_persons_chunks_are_never_read(world: World) -> None:
    await filled(world, "zh")
    other = await world.shelf.accounts.meet(
        "console", "1002", name="", language="zh", zone="UTC", at=world.shelf.clock()
    )
    assert await world.stores.embeddings.chunks(other) == []
    assert await world.stores.embeddings.sweep(other) == 0
    assert await world.rows("chunks") > 0


async def test_long_texts_of_an_old_file_are_cut_when_it_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    path = tmp_path / "old" / "r.db"
    with monkeypatch.context() as patch:
        patch.setattr(opening, "migrations", lambda: [step for step in migrations() if step[0] < 5])
        await (await Database.open(path)).close()
    line, at = (1 << 24) | 1, stamp(clock())
    with contextlib.closing(engine.connect(path)) as raw, raw:
        raw.execute(
            "INSERT INTO accounts (platform, user_id, name, language, zone, next_seq, created_at)"
            " VALUES ('console', '1001', 'Lin', 'zh', 'Asia/Shanghai', 2, ?)",
            (at,),
        )
        raw.execute("INSERT INTO chats (platform, key, private, created_at) VALUES ('console', 'dm:1001', 1, ?)", (at,))
        raw.execute("INSERT INTO sessions (chat, started_at, last_at) VALUES (1, ?, ?)", (at, at))
        raw.execute("INSERT INTO session_members (session, account) VALUES (1, 1)")
        raw.execute(
            "INSERT INTO journal (id, chat, session, role, speaker, at, text, kind, tokens, text_hash)"
            " VALUES (?, 1, 1, 'user', 'Lin', ?, ?, 'said', 0, ?)",
            (line, at, LONG["zh"], text_hash(spoken("Lin", LONG["zh"]))),
        )
    shelf = await Shelf.open(path, clock)
    world = world_of(shelf)
    await world.fill()
    found = await world.ask(ASKED["zh"])
    assert [(unit.id, "单簧管" in unit.text) for unit in found] == [(line, True)]
    await shelf.db.close()
