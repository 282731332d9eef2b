"""The three stores of long-term memory: one contract, three shapes; every call on behalf of an owner."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

from memory.accounts import Accounts
from memory.entries import EntryStore
from memory.model import SELF, Account, Candidate, Citation, Span
from memory.texts import MemoryText, memory_texts, outdated
from tests.conftest import Clock
from tests.shelf import Shelf, cite

Make = Callable[[str], Candidate]


@pytest.fixture
async def shelf(tmp_path: Path, clock: Clock) -> AsyncIterator[Shelf]:
    opened = await Shelf.open(tmp_path / "r.db", clock)
    yield opened
    await opened.db.close()


@pytest.fixture(params=["profile", "timeline", "facts"])
def store(request: pytest.FixtureRequest, shelf: Shelf) -> EntryStore[Any]:
    chosen: EntryStore[Any] = getattr(shelf, request.param)
    return chosen


@pytest.fixture
async def make(store: EntryStore[Any], shelf: Shelf) -> Make:
    """Makes a candidate of the store's kind that cites a line saying ``text``."""
    message = await shelf.say("原话")

    def candidate(text: str) -> Candidate:
        start = shelf.clock.now
        span = Span(start, start + timedelta(days=1), "day", "Asia/Shanghai", "今天")
        return Candidate(
            store.kind if store.kind != "message" else "fact",
            (Citation(message.id, text, message.at),),
            "zh",
            text=text,
            attribute="like",
            value=text,
            span=span,
        )

    return candidate


async def add(shelf: Shelf, store: EntryStore[Any], candidate: Candidate, owner: Account | None = None) -> Any:
    async with shelf.db.transaction():
        return await store.add(owner or shelf.owner, candidate, audience=0, now=shelf.clock())


async def stranger(shelf: Shelf) -> Account:
    return await shelf.accounts.meet("console", "1002", name="Bo", language="zh", zone="UTC", at=shelf.clock())


async def texts(store: EntryStore[Any], shelf: Shelf) -> list[str]:
    return [entry.text for entry in await store.live(shelf.owner, now=shelf.clock())]


async def test_a_memory_is_read_back_as_it_was_written(shelf: Shelf, store: EntryStore[Any], make: Make) -> None:
    candidate = replace(make("豆浆"), confidence=0.7, importance=0.9)
    entry = await add(shelf, store, candidate)
    assert entry == (await store.get(shelf.owner, [entry.id]))[entry.id]
    assert (entry.kind, entry.subject) == (store.kind, SELF)
    assert "豆浆" in entry.text
    p = entry.provenance
    assert (p.confidence, p.importance, p.source, p.confirmations) == (0.7, 0.9, "user", 1)
    assert p.citations == candidate.citations
    assert p.said_at == candidate.citations[0].at
    assert p.created_at == shelf.clock()


async def test_a_memory_without_a_citation_is_not_written(shelf: Shelf, store: EntryStore[Any], make: Make) -> None:
    with pytest.raises(ValueError, match="citation"):
        await add(shelf, store, replace(make("豆浆"), citations=()))
    assert await texts(store, shelf) == []


async def test_nobody_else_reads_confirms_closes_hides_or_erases_it(
    shelf: Shelf, store: EntryStore[Any], make: Make
) -> None:
    entry = await add(shelf, store, make("豆浆"))
    other, now = await stranger(shelf), shelf.clock()
    assert await store.get(other, [entry.id]) == {}
    assert await store.live(other, now=now) == []
    assert await store.history(other) == []
    assert await store.units(other) == []
    assert await store.citing(other, [c.message for c in entry.provenance.citations]) == []
    assert not await store.confirm(other, entry.id, Citation(1, "x", now), confidence=1.0)
    assert not await store.retire(other, entry.id, at=now, successor=None, reason="theirs")
    assert not await store.reopen(other, entry.id)
    assert await store.hide(other, [entry.id], 1) == 0
    assert await store.expire(other, now=now) == 0
    await store.requote(other, entry.id, entry.provenance.citations[0].message, "changed")
    assert await store.erase(other, [entry.id]) == 0
    assert await store.get(shelf.owner, [entry.id]) == {entry.id: entry}


async def test_saying_it_again_counts_once_a_message(shelf: Shelf, store: EntryStore[Any], make: Make) -> None:
    entry = await add(shelf, store, make("豆浆"))
    again = await shelf.say("还是豆浆")
    citation = Citation(again.id, "还是豆浆", again.at)
    assert await store.confirm(shelf.owner, entry.id, citation, confidence=0.5)
    assert not await store.confirm(shelf.owner, entry.id, citation, confidence=0.5)
    confirmed = (await store.get(shelf.owner, [entry.id]))[entry.id].provenance
    assert (confirmed.confirmations, confirmed.confirmed_at, confirmed.said_at) == (2, again.at, again.at)
    assert confirmed.confidence == 1.0


async def test_a_closed_memory_is_history_with_a_pointer_and_can_be_reopened(
    shelf: Shelf, store: EntryStore[Any], make: Make
) -> None:
    old, new = await add(shelf, store, make("豆浆")), await add(shelf, store, make("咖啡"))
    assert await store.retire(shelf.owner, old.id, at=shelf.clock(), successor=new.id, reason="newer")
    assert not await store.retire(shelf.owner, old.id, at=shelf.clock(), successor=None, reason="again")
    assert await texts(store, shelf) == [new.text]
    closed = (await store.history(shelf.owner))[0].provenance
    assert (closed.successor, closed.reason, closed.retired_at) == (new.id, "newer", shelf.clock())
    assert [unit.id for unit in await store.units(shelf.owner)] == [new.id]
    assert await store.reopen(shelf.owner, old.id)
    assert len(await texts(store, shelf)) == 2


async def test_c13_expiry_is_checked_when_reading_and_closed_by_the_job_later(
    shelf: Shelf, store: EntryStore[Any], make: Make
) -> None:
    ends = shelf.clock() + timedelta(hours=1)
    entry = await add(shelf, store, replace(make("出差"), expires_at=ends))
    shelf.clock.advance(minutes=59)
    assert await texts(store, shelf) == [entry.text]
    assert await store.expire(shelf.owner, now=shelf.clock()) == 0
    shelf.clock.advance(minutes=1)
    assert await texts(store, shelf) == []
    assert await store.expire(shelf.owner, now=shelf.clock()) == 1
    (kept,) = await store.history(shelf.owner)
    assert (kept.provenance.reason, kept.provenance.retired_at) == ("expired", ends)


async def test_a_hidden_memory_is_read_by_nothing_until_it_is_shown_again(
    shelf: Shelf, store: EntryStore[Any], make: Make
) -> None:
    entry = await add(shelf, store, make("豆浆"))
    assert await store.hide(shelf.owner, [entry.id], 77) == 1
    assert await store.get(shelf.owner, [entry.id]) == {}
    assert await store.history(shelf.owner) == []
    assert await store.units(shelf.owner) == []
    assert await store.citing(shelf.owner, [c.message for c in entry.provenance.citations]) == []
    assert [e.id for e in await store.hidden(shelf.owner, 77)] == [entry.id]
    assert await store.unhide(shelf.owner, 77) == 1
    assert await texts(store, shelf) == [entry.text]


async def test_an_erased_memory_takes_its_citations_and_pointers_along(
    shelf: Shelf, store: EntryStore[Any], make: Make
) -> None:
    old, new = await add(shelf, store, make("豆浆")), await add(shelf, store, make("咖啡"))
    await store.retire(shelf.owner, old.id, at=shelf.clock(), successor=new.id, reason="newer")
    assert await store.erase(shelf.owner, [new.id]) == 1
    assert await shelf.db.fetch("SELECT 1 FROM citations WHERE entry = ?", (new.id,)) == []
    (left,) = await store.history(shelf.owner)
    assert (left.id, left.provenance.successor) == (old.id, None)


async def test_numbers_are_never_used_twice(shelf: Shelf, store: EntryStore[Any], make: Make) -> None:
    first = await add(shelf, store, make("豆浆"))
    await store.erase(shelf.owner, [first.id])
    second = await add(shelf, store, make("咖啡"))
    assert second.id > first.id
    assert shelf.owner.owns(second.id)


async def test_units_behind_a_number_are_the_newer_ones(shelf: Shelf, store: EntryStore[Any], make: Make) -> None:
    first, second = await add(shelf, store, make("豆浆")), await add(shelf, store, make("咖啡"))
    (unit,) = await store.units(shelf.owner, after=first.id)
    assert (unit.id, unit.text, unit.kind) == (second.id, second.text, store.kind)
    assert unit.cites == tuple(c.message for c in second.provenance.citations)


async def test_a_recurring_event_is_found_in_every_later_period(shelf: Shelf) -> None:
    message = await shelf.say("每周三练背")
    start = shelf.clock.now
    weekly = Span(start, start + timedelta(hours=1), "hour", "Asia/Shanghai", "每周三", "FREQ=WEEKLY")
    once = Span(start, start + timedelta(hours=1), "hour", "Asia/Shanghai", "今天")
    cited = (Citation(message.id, "每周三练背", message.at),)
    for text, span in (("练背", weekly), ("体检", once)):
        await add(shelf, shelf.timeline, Candidate("event", cited, "zh", text=text, span=span))
    later = start + timedelta(days=30)
    found = await shelf.timeline.between(shelf.owner, later, later + timedelta(days=7))
    assert [event.text for event in found] == ["练背"]
    found = await shelf.timeline.between(shelf.owner, start, start + timedelta(minutes=1))
    assert [event.text for event in found] == ["练背", "体检"]
    assert await shelf.timeline.between(shelf.owner, start - timedelta(days=9), start) == []


async def test_row_ids_are_only_taken_inside_a_transaction(shelf: Shelf) -> None:
    with pytest.raises(RuntimeError, match="transaction"):
        await shelf.accounts.next_ids(shelf.owner)


async def test_an_account_is_its_platform_and_id_never_its_name(shelf: Shelf) -> None:
    accounts: Accounts = shelf.accounts
    now = shelf.clock()
    same = await accounts.meet("console", "1001", name="新名字", language="en", zone="UTC", at=now)
    assert (same.no, same.name, same.language, same.zone) == (shelf.owner.no, "新名字", "zh", "Asia/Shanghai")
    for platform, user in (("discord", "1001"), ("console", "1002")):
        other = await accounts.meet(platform, user, name="Lin", language="zh", zone="UTC", at=now)
        assert other.no != shelf.owner.no


async def test_a_language_that_was_chosen_stays_whatever_the_person_writes(shelf: Shelf) -> None:
    accounts, owner = shelf.accounts, shelf.owner
    await accounts.speak(owner, "en")
    assert await language(shelf) == ("en", False)
    await accounts.fix_language(owner, "zh")
    await accounts.speak(owner, "en")
    assert await language(shelf) == ("zh", True)
    await accounts.fix_language(owner, None)
    assert await language(shelf) == ("zh", False)
    await accounts.speak(owner, "en")
    assert await language(shelf) == ("en", False)


async def language(shelf: Shelf) -> tuple[str, bool]:
    known = await shelf.accounts.numbered(shelf.owner.no)
    return known.language, known.language_fixed


async def test_a_memory_that_loses_a_citation_was_said_when_the_others_were(
    shelf: Shelf, store: EntryStore[Any], make: Make
) -> None:
    entry = await add(shelf, store, make("豆浆"))
    first = entry.provenance.citations[0]
    again = [await shelf.say(text) for text in ("还是豆浆", "仍是豆浆")]
    for message in again:
        await store.confirm(shelf.owner, entry.id, Citation(message.id, message.text, message.at), confidence=1.0)
    await store.uncite(await stranger(shelf), entry.id, [first.message])
    await store.uncite(shelf.owner, entry.id, [again[1].id])
    kept = (await store.get(shelf.owner, [entry.id]))[entry.id].provenance
    assert (kept.confirmations, kept.said_at, kept.confirmed_at) == (2, again[0].at, again[0].at)
    await store.uncite(shelf.owner, entry.id, [again[0].id])
    kept = (await store.get(shelf.owner, [entry.id]))[entry.id].provenance
    assert (kept.citations, kept.said_at, kept.confirmed_at) == ((first,), first.at, None)


async def test_what_was_closed_is_found_by_what_closed_it(shelf: Shelf, store: EntryStore[Any], make: Make) -> None:
    one, two, three = [await add(shelf, store, make(text)) for text in ("豆浆", "咖啡", "红茶")]
    ended_by = await shelf.say("不喝咖啡了")
    await store.retire(shelf.owner, one.id, at=shelf.clock(), successor=three.id, reason="superseded")
    await store.retire(shelf.owner, two.id, at=shelf.clock(), successor=None, reason="ended", ended=cite(ended_by)[0])
    assert [e.id for e in await store.closed_by(shelf.owner, [three.id], [])] == [one.id]
    assert [e.id for e in await store.closed_by(shelf.owner, [], [ended_by.id])] == [two.id]
    assert await store.closed_by(await stranger(shelf), [three.id], [ended_by.id]) == []
    await store.succeed(await stranger(shelf), one.id, two.id)
    await store.succeed(shelf.owner, three.id, two.id)
    assert await store.closed_by(shelf.owner, [two.id], []) == []
    await store.reopen(shelf.owner, two.id)
    assert await store.closed_by(shelf.owner, [], [ended_by.id]) == []


async def test_a_doubt_counts_while_what_it_is_against_stands_and_is_asked_about_once(
    shelf: Shelf, store: EntryStore[Any], make: Make
) -> None:
    sure, unsure = [await add(shelf, store, make(text)) for text in ("豆浆", "咖啡")]

    async def doubted() -> int | None:
        found: int | None = (await store.get(shelf.owner, [unsure.id]))[unsure.id].provenance.doubts
        return found

    await store.doubt(await stranger(shelf), unsure.id, sure.id)
    assert await doubted() is None
    await store.doubt(shelf.owner, unsure.id, sure.id)
    assert await doubted() == sure.id
    assert not await store.asked(await stranger(shelf), unsure.id, at=shelf.clock())
    assert await store.asked(shelf.owner, unsure.id, at=shelf.clock())
    assert not await store.asked(shelf.owner, unsure.id, at=shelf.clock())
    await store.hide(shelf.owner, [sure.id], 1)
    assert await doubted() is None
    await store.unhide(shelf.owner, 1)
    await store.retire(shelf.owner, sure.id, at=shelf.clock(), successor=None, reason="ended")
    assert await doubted() is None
    assert [entry.id for entry in await store.closed_at(shelf.owner, shelf.clock())] == [sure.id]
    assert await store.closed_at(await stranger(shelf), shelf.clock()) == []
    await store.reopen(shelf.owner, sure.id)
    assert await doubted() == sure.id
    await store.erase(shelf.owner, [sure.id])
    assert await doubted() is None


async def shown(shelf: Shelf, store: EntryStore[Any], *ids: int, owner: Account | None = None) -> dict[int, MemoryText]:
    return await memory_texts(shelf.db, owner or shelf.owner, {store.kind: ids}, now=shelf.clock())


async def test_what_is_shown_of_a_memory_is_what_it_holds(shelf: Shelf, store: EntryStore[Any], make: Make) -> None:
    one, two = [await add(shelf, store, make(text)) for text in ("豆浆", "咖啡")]
    again = await shelf.say("还是豆浆")
    await store.confirm(shelf.owner, one.id, cite(again)[0], confidence=1.0)
    one = (await store.get(shelf.owner, [one.id]))[one.id]
    assert len(one.provenance.citations) == 2
    assert await shown(shelf, store, two.id, one.id) == {e.id: MemoryText.of(e) for e in (one, two)}
    assert list(await shown(shelf, store, one.id)) == [one.id]
    assert await shown(shelf, store) == {}


async def test_nothing_is_shown_of_what_is_closed_hidden_or_another_s(
    shelf: Shelf, store: EntryStore[Any], make: Make
) -> None:
    ends = shelf.clock() + timedelta(hours=1)
    closed, hidden, short, kept = [
        await add(shelf, store, replace(make(text), expires_at=ends if text == "出差" else None))
        for text in ("茶", "咖啡", "出差", "豆浆")
    ]
    every = [entry.id for entry in (closed, hidden, short, kept)]
    assert list(await shown(shelf, store, *every)) == every
    assert await shown(shelf, store, *every, owner=await stranger(shelf)) == {}
    await store.retire(shelf.owner, closed.id, at=shelf.clock(), successor=None, reason="ended")
    await store.hide(shelf.owner, [hidden.id], 1)
    shelf.clock.now = ends
    assert list(await shown(shelf, store, *every)) == [kept.id]


async def test_texts_of_all_kinds_are_read_together(shelf: Shelf) -> None:
    message, span = await shelf.say("原话"), Span(shelf.clock(), shelf.clock(), "day", "UTC", "今天", "FREQ=DAILY")
    content: dict[str, Any] = {"attribute": "like", "value": "茶", "span": span}
    stores: tuple[EntryStore[Any], ...] = shelf.entries
    kinds: tuple[Literal["profile", "event", "fact"], ...] = ("profile", "event", "fact")
    made = [
        await add(shelf, store, replace(Candidate(kind, cite(message), "zh", text="茶"), **content))
        for store, kind in zip(stores, kinds, strict=True)
    ]
    wanted = {entry.kind: [entry.id] for entry in made}
    found = await memory_texts(shelf.db, shelf.owner, wanted, now=shelf.clock())
    assert found == {entry.id: MemoryText.of(entry) for entry in made}
    assert [memory.when for memory in found.values()] == [None, span, None]


async def test_a_line_is_outdated_when_nothing_stands_that_was_learned_from_it(
    shelf: Shelf, store: EntryStore[Any], make: Make
) -> None:
    lines = [await shelf.say(text) for text in ("茶", "咖啡", "出差", "豆浆")]
    tea, coffee, trip, milk = [line.id for line in lines]
    ends = shelf.clock() + timedelta(hours=3)

    async def learn(line: int, *, expires: bool = False) -> int:
        made = replace(make(lines[line].text), citations=cite(lines[line]), expires_at=ends if expires else None)
        return int((await add(shelf, store, made)).id)

    async def since(*, owner: Account | None = None) -> dict[int, datetime]:
        return await outdated(shelf.db, owner or shelf.owner, [line.id for line in lines], now=shelf.clock())

    first, second = await learn(0), await learn(0)
    hidden, _ = await learn(1), await learn(2, expires=True)
    await learn(3)
    assert await since() == {}
    early = shelf.clock.advance(hours=1)
    await store.retire(shelf.owner, first, at=early, successor=None, reason="ended")
    await store.retire(shelf.owner, hidden, at=early, successor=None, reason="ended")
    assert await since() == {coffee: early}, "the other that was learned from the first line stands"
    late = shelf.clock.advance(hours=1)
    await store.retire(shelf.owner, second, at=late, successor=None, reason="ended")
    await store.hide(shelf.owner, [hidden], 1)
    assert await since() == {tea: late}, "the newest end counts, and what is hidden does not"
    shelf.clock.now = ends
    assert await since() == {tea: late, trip: ends}
    assert milk not in await since()
    assert await since(owner=await stranger(shelf)) == {}
    assert await outdated(shelf.db, shelf.owner, [], now=shelf.clock()) == {}


def test_rows_carry_their_owner_in_every_id(shelf: Shelf) -> None:
    assert shelf.owner.owns(shelf.owner.first_id + 1)
    assert not shelf.owner.owns(shelf.owner.last_id + 1)
    assert not shelf.owner.owns(shelf.owner.first_id - 1)
