"""Forgetting: shown first, hidden at once, undoable, then gone from every row and byte."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random

import numpy as np
import pytest

from memory import erasing
from memory.embedding import spoken, text_hash
from memory.forget import ErasureError, Forgetting, PickError, Plan
from memory.journal import Line
from memory.model import Account, Candidate, Citation, Message
from memory.ports import Vector
from memory.sessions import Reach
from memory.stores import Stores
from tests.conftest import Clock
from tests.shelf import Shelf, forgetting


class HashEmbedder:
    """Any text gets a vector of its own."""

    model = "hash"
    dimensions = 8

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        made: list[Vector | None] = []
        for text in texts:
            vector = np.frombuffer(text_hash(text) * 2, np.uint8)[:8].astype(np.float32) + 1
            made.append(vector / np.linalg.norm(vector))
        return made


@dataclass
class World:
    shelf: Shelf
    stores: Stores
    forgetting: Forgetting

    @property
    def owner(self) -> Account:
        return self.shelf.owner

    async def learn(self, text: str, fact: str, *, quote: str = "") -> Message:
        """Say a line and keep a fact that cites it."""
        message = await self.shelf.say(text)
        citation = Citation(message.id, quote or text, message.at)
        async with self.shelf.db.transaction():
            await self.stores.facts.add(
                self.owner, Candidate("fact", (citation,), "zh", text=fact), audience=0, now=self.shelf.clock()
            )
        return message

    async def plan(self, words: str) -> Plan | None:
        return await self.forgetting.plan(self.owner, self.shelf.chat, words, now=self.shelf.clock())

    async def forget(self, words: str, *picks: int) -> int:
        plan = await self.plan(words)
        assert plan is not None
        deletion = await self.forgetting.carry_out(self.owner, plan.offer, picks=picks or None, now=self.shelf.clock())
        assert deletion is not None
        return deletion.id

    async def erase(self) -> int:
        self.shelf.clock.advance(minutes=10)
        return len(await self.forgetting.erase_due(self.owner, now=self.shelf.clock()))

    async def facts(self) -> list[str]:
        return [fact.text for fact in await self.stores.facts.history(self.owner)]

    async def said(self) -> list[str]:
        return [message.text for message in await self.stores.journal.said(self.owner)]


@pytest.fixture
async def world(tmp_path: Path, clock: Clock) -> AsyncIterator[World]:
    shelf = await Shelf.open(tmp_path / "r.db", clock)
    stores = Stores.over(shelf.db, shelf.accounts, HashEmbedder(), clock)
    yield World(shelf, stores, forgetting(shelf, stores))
    await shelf.db.close()


async def test_e01_a_plan_lists_every_match_and_deletes_nothing(world: World) -> None:
    await world.learn("工作电话是 555-0101", "用户的电话是 555-0101（工作）")
    await world.learn("旧电话停用了", "用户的旧电话已停用")
    await world.learn("我喜欢爬山", "用户喜欢爬山")
    plan = await world.plan("电话")
    assert plan is not None
    assert [entry.text for entry in plan.entries] == ["用户的电话是 555-0101（工作）", "用户的旧电话已停用"]
    assert len(await world.facts()) == 3


@pytest.mark.parametrize("words", ["%", "_", ".*", "", "   ", "☕️", "x" * 500, "'; DROP TABLE facts; --"])
async def test_e01_words_that_name_nothing_match_nothing(world: World, words: str) -> None:
    await world.learn("我的电话是 555-0101", "用户的电话是 555-0101")
    assert await world.plan(words) is None


async def test_e01_full_width_digits_name_the_same_number(world: World) -> None:
    await world.learn("我的电话是 555-0101", "用户的电话是 555-0101")
    plan = await world.plan("５５５－０１０１")
    assert plan is not None
    assert len(plan.entries) == 1


async def test_e01_a_number_the_plan_lacks_deletes_nothing_and_leaves_the_choice_open(world: World) -> None:
    await world.learn("电话甲", "电话甲")
    await world.learn("电话乙", "电话乙")
    plan = await world.plan("电话")
    assert plan is not None
    for picks in ([7], [0], [-1], []):
        with pytest.raises(PickError):
            await world.forgetting.carry_out(world.owner, plan.offer, picks=picks, now=world.shelf.clock())
    assert len(await world.facts()) == 2
    assert await world.forgetting.carry_out(world.owner, plan.offer, picks=[2], now=world.shelf.clock())
    assert await world.facts() == ["电话甲"]


async def test_e01_a_choice_after_a_day_or_a_second_time_does_nothing(world: World) -> None:
    await world.learn("电话甲", "电话甲")
    plan = await world.plan("电话")
    assert plan is not None
    later = world.shelf.clock() + timedelta(hours=25)
    assert await world.forgetting.carry_out(world.owner, plan.offer, picks=None, now=later) is None
    assert await world.forgetting.carry_out(world.owner, plan.offer, picks=None, now=world.shelf.clock())
    assert await world.forgetting.carry_out(world.owner, plan.offer, picks=None, now=world.shelf.clock()) is None


async def test_another_person_can_neither_carry_out_nor_undo(world: World) -> None:
    other = await world.shelf.accounts.meet(
        "console", "1002", name="Bo", language="zh", zone="UTC", at=world.shelf.clock()
    )
    await world.learn("电话甲", "电话甲")
    plan = await world.plan("电话")
    assert plan is not None
    now = world.shelf.clock()
    assert await world.forgetting.carry_out(other, plan.offer, picks=None, now=now) is None
    assert await world.forgetting.plan(other, world.shelf.chat, "电话", now=now) is None
    deletion = await world.forget("电话")
    assert await world.forgetting.undo(other, deletion, now=now) is None
    assert await world.facts() == []


async def test_what_is_forgotten_is_hidden_at_once_with_the_lines_and_replies_that_hold_it(world: World) -> None:
    message = await world.learn("我的药是缬沙坦", "用户的药是缬沙坦")
    await world.shelf.say("那缬沙坦要饭后吃。", bot=True)
    await world.shelf.say("今天天气不错")
    await world.forget("缬沙坦")
    assert await world.facts() == []
    assert await world.said() == ["今天天气不错"]
    assert await world.stores.journal.lines(world.owner, [message.id]) == {}
    assert await world.shelf.journal.of_session(world.owner, message.session, limit=10) != []
    assert "缬沙坦" not in str(await world.shelf.journal.of_session(world.owner, message.session, limit=10))


async def test_a_reply_that_used_the_memory_goes_even_if_it_paraphrased(world: World) -> None:
    message = await world.learn("我的药是缬沙坦", "用户的药是缬沙坦")
    (fact,) = await world.stores.facts.history(world.owner)
    reply = await world.shelf.say("那种降压药要按时吃。", bot=True)
    greeting = await world.shelf.say("早上好！", bot=True)
    async with world.shelf.db.transaction():
        for line, band in ((reply, "full"), (greeting, "always")):
            trace = {"recalled": [{"id": fact.id, "band": band}]}
            await world.stores.traces.add(world.owner, world.shelf.chat, line.id, trace, at=message.at)
    await world.forget("缬沙坦")
    assert await world.said() == ["早上好！"]


async def test_undo_brings_everything_back_until_the_time_is_over(world: World) -> None:
    await world.learn("我的药是缬沙坦", "用户的药是缬沙坦")
    before = await world.facts(), await world.said()
    deletion = await world.forget("缬沙坦")
    world.shelf.clock.advance(minutes=9)
    assert await world.forgetting.undo(world.owner, deletion, now=world.shelf.clock())
    assert (await world.facts(), await world.said()) == before
    assert await world.erase() == 0
    await world.forget("缬沙坦")
    world.shelf.clock.advance(minutes=10)
    assert await world.forgetting.undo(world.owner, None, now=world.shelf.clock()) is None


async def test_each_deletion_has_its_own_undo(world: World) -> None:
    await world.learn("甲在东边", "甲在东边")
    await world.learn("乙在西边", "乙在西边")
    first = await world.forget("甲")
    await world.forget("乙")
    assert await world.forgetting.undo(world.owner, first, now=world.shelf.clock())
    assert await world.facts() == ["甲在东边"]


async def test_e02_erased_words_are_in_no_table_and_no_file(world: World) -> None:
    marker = "缬沙坦七七"
    for n in range(60):
        await world.learn(f"第{n}天散步了{n}分钟", f"用户第{n}天散步{n}分钟")
    await world.learn(f"我的药是{marker}", f"用户的药是{marker}", quote=f"药是{marker}")
    await world.shelf.say(f"{marker}要饭后吃", bot=True)
    await world.stores.embeddings.fill(world.owner)
    for n in range(60, 90):
        await world.learn(f"第{n}天散步了{n}分钟", f"用户第{n}天散步{n}分钟")
    await world.forget(marker)
    assert await world.erase() == 1
    for file in world.shelf.db.path.parent.iterdir():
        assert marker.encode() not in file.read_bytes(), file.name
    assert not await world.stores.embeddings.orphaned(world.owner)
    for text in (f"用户的药是{marker}", spoken("Lin", f"我的药是{marker}")):
        rows = await world.shelf.db.fetch("SELECT 1 FROM embeddings WHERE text_hash = ?", (text_hash(text),))
        assert rows == []
    assert len(await world.facts()) == 90


async def test_a_receipt_is_owed_only_after_the_erasure(world: World) -> None:
    await world.learn("我的药是缬沙坦", "用户的药是缬沙坦")
    await world.shelf.say("今天天气不错")
    await world.forget("缬沙坦")
    assert await world.stores.promises.notices(world.owner) == []
    await world.erase()
    (notice,) = await world.stores.promises.notices(world.owner)
    assert (notice.phrase, dict(notice.data)) == (
        "forget.receipt",
        {"memories": 1, "messages": 1, "replies": 0, "searched": 1},
    )
    assert await world.erase() == 0


async def test_f02_an_erasure_that_was_killed_half_way_is_finished_by_the_next_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.learn("我的药是缬沙坦", "用户的药是缬沙坦")
    await world.forget("缬沙坦")

    async def killed() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(world.shelf.db, "scrub", killed)
        with pytest.raises(KeyboardInterrupt):
            await world.erase()
    assert await world.stores.promises.notices(world.owner) == []
    assert await world.erase() == 1
    assert len(await world.stores.promises.notices(world.owner)) == 1


async def test_another_memory_of_the_same_message_keeps_only_its_own_words(world: World) -> None:
    text = "我住成都，养了一只猫叫煤球"
    message = await world.learn(text, "用户有一只猫叫煤球", quote="养了一只猫叫煤球")
    citation = Citation(message.id, text, message.at)
    async with world.shelf.db.transaction():
        await world.stores.facts.add(
            world.owner,
            Candidate("fact", (citation,), "zh", text="用户住在成都"),
            audience=0,
            now=world.shelf.clock(),
        )
    await world.forget("煤球", 1)
    (kept,) = await world.stores.facts.history(world.owner)
    assert kept.text == "用户住在成都"
    assert [c.quote for c in kept.provenance.citations] == ["用户住在成都"]


async def test_superseded_memories_with_the_same_word_are_found_and_do_not_come_back(world: World) -> None:
    await world.learn("我吃缬沙坦40毫克", "用户吃缬沙坦40毫克")
    await world.learn("改吃缬沙坦80毫克了", "用户吃缬沙坦80毫克")
    old, new = await world.stores.facts.history(world.owner)
    await world.stores.facts.retire(world.owner, old.id, at=world.shelf.clock(), successor=new.id, reason="newer")
    plan = await world.plan("缬沙坦")
    assert plan is not None
    assert len(plan.entries) == 2
    await world.forget("缬沙坦")
    await world.erase()
    assert await world.facts() == []


async def test_forgetting_the_newer_value_does_not_revive_the_older(world: World) -> None:
    await world.learn("我住天津", "用户住在天津")
    await world.learn("我搬到佛山了", "用户住在佛山")
    old, new = await world.stores.facts.history(world.owner)
    await world.stores.facts.retire(world.owner, old.id, at=world.shelf.clock(), successor=new.id, reason="newer")
    await world.forget("佛山")
    await world.erase()
    assert await world.stores.facts.live(world.owner, now=world.shelf.clock()) == []
    (left,) = await world.stores.facts.history(world.owner)
    assert (left.text, left.provenance.successor) == ("用户住在天津", None)


async def test_words_said_anew_after_forgetting_are_kept(world: World) -> None:
    await world.learn("我的药是缬沙坦", "用户的药是缬沙坦")
    await world.forget("缬沙坦")
    await world.shelf.say("医生又提了缬沙坦")
    assert await world.erase() == 1
    assert await world.said() == ["医生又提了缬沙坦"]


async def test_a_line_that_no_memory_cites_can_be_forgotten_by_its_words(world: World) -> None:
    line = Line("user", "Lin", world.shelf.clock(), "保险箱在阁楼")
    async with world.shelf.db.transaction():
        session = await world.shelf.sessions.touch(world.owner, world.shelf.chat, line.at)
        await world.shelf.journal.add(world.owner, world.shelf.chat, session, [line])
    plan = await world.plan("阁楼")
    assert plan is not None
    assert (plan.entries, [m.text for m in plan.lines]) == ((), ["保险箱在阁楼"])
    await world.forget("阁楼")
    await world.erase()
    assert await world.said() == []


async def test_forgetting_a_word_takes_no_other_word_that_holds_its_letters(world: World) -> None:
    await world.learn("My name is Al.", "My name is Al")
    for text in ("I also like opera", "always late", "reality shows", "a gala dinner"):
        await world.shelf.say(text)
    plan = await world.plan("name")
    assert plan is not None
    assert [m.text for m in plan.lines] == ["My name is Al."]
    await world.forget("name")
    assert await world.said() == ["I also like opera", "always late", "reality shows", "a gala dinner"]


async def test_a_plan_shows_every_line_that_will_go(world: World) -> None:
    await world.learn("我的药是缬沙坦", "用户的药是缬沙坦")
    question = await world.shelf.say("缬沙坦贵吗")
    line = Line("bot", "Recollect", world.shelf.clock(), "不贵。", answers=question.id)
    async with world.shelf.db.transaction():
        await world.stores.journal.add(world.owner, world.shelf.chat, question.session, [line])
    plan = await world.plan("缬沙坦")
    assert plan is not None
    assert [m.text for m in plan.lines] == ["我的药是缬沙坦", "缬沙坦贵吗", "不贵。"]
    await world.forget("缬沙坦")
    assert await world.said() == []


async def test_a_memory_made_of_the_same_words_while_the_plan_waits_goes_along(world: World) -> None:
    message = await world.shelf.say("我的药是缬沙坦")
    plan = await world.plan("缬沙坦")
    assert plan is not None
    async with world.shelf.db.transaction():
        made = Candidate("fact", (Citation(message.id, message.text, message.at),), "zh", text="用户的药是缬沙坦")
        await world.stores.facts.add(world.owner, made, audience=0, now=world.shelf.clock())
    deletion = await world.forgetting.carry_out(world.owner, plan.offer, picks=None, now=world.shelf.clock())
    assert deletion is not None
    assert deletion.counts == {"memories": 1, "messages": 1, "replies": 0}
    assert await world.facts() == []


async def test_a_search_that_finds_something_gives_no_receipt_however_often_it_is_tried(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.learn("我的药是缬沙坦", "用户的药是缬沙坦")
    await world.forget("缬沙坦")

    async def lazy(*_: object) -> None:
        """Erase nothing."""

    with monkeypatch.context() as patch:
        patch.setattr(world.stores.journal, "erase", lazy)
        for _ in range(3):
            with pytest.raises(ErasureError):
                await world.erase()
    assert await world.stores.promises.notices(world.owner) == []
    assert await world.erase() == 1
    assert len(await world.stores.promises.notices(world.owner)) == 1


async def test_an_undo_that_comes_too_late_says_so(world: World) -> None:
    await world.learn("我的药是缬沙坦", "用户的药是缬沙坦")
    deletion = await world.forget("缬沙坦")
    pressed = world.shelf.clock()
    await world.erase()
    async with world.shelf.db.transaction():
        await world.shelf.db.execute("UPDATE deletions SET erased_at = NULL")
    assert await world.forgetting.undo(world.owner, deletion, now=pressed) is None


async def test_a_request_to_undo_that_is_delivered_twice_undoes_once(world: World) -> None:
    await world.learn("甲在东边", "甲在东边")
    await world.learn("乙在西边", "乙在西边")
    await world.forget("甲")
    await world.forget("乙")
    asked_at = world.shelf.clock.advance(minutes=1)
    for _ in range(2):
        await world.forgetting.undo(world.owner, None, now=world.shelf.clock(), asked_at=asked_at)
    assert await world.facts() == ["乙在西边"]


async def test_an_erased_message_that_is_delivered_again_is_known_without_its_words(world: World) -> None:
    line = Line("user", "Lin", world.shelf.clock(), "保险箱在阁楼", platform_id="77")
    async with world.shelf.db.transaction():
        session = await world.shelf.sessions.touch(world.owner, world.shelf.chat, line.at)
        await world.stores.journal.add(world.owner, world.shelf.chat, session, [line])
    await world.forget("阁楼")
    await world.erase()
    mark = await world.stores.journal.delivered(world.owner, world.shelf.chat, "77")
    assert mark is not None
    assert (mark.text, mark.speaker, mark.kind) == ("", "", "command")


async def test_what_was_hidden_during_a_distillation_has_its_turn_after_undo(world: World) -> None:
    message = await world.learn("我的药是缬沙坦", "用户的药是缬沙坦")
    deletion = await world.forget("缬沙坦")
    later = await world.shelf.say("今天天气不错")
    async with world.shelf.db.transaction():
        await world.shelf.sessions.finish(world.owner, message.session, Reach(later.id))
    await world.forgetting.undo(world.owner, deletion, now=world.shelf.clock())
    now = world.shelf.clock.advance(minutes=31)
    batch = await world.shelf.sessions.claim(world.owner, message.session, now=now, lease_seconds=1, limit=9)
    assert batch is not None
    assert [m.text for m in batch.messages] == ["我的药是缬沙坦"]


async def test_page_splits_leave_no_old_copy_of_erased_words(world: World) -> None:
    others = [
        await world.shelf.accounts.meet("console", str(n), name="", language="en", zone="UTC", at=world.shelf.clock())
        for n in range(5)
    ]
    random = Random(2)
    marker = "gardenia-7f3a"
    for n in range(300):
        owner = random.choice([world.owner, *others])
        text = f"{marker if owner == world.owner and n % 7 == 0 else 'plain'} {n} " + "x" * random.randrange(3_000)
        line = Line("user", "", world.shelf.clock(), text)
        async with world.shelf.db.transaction():
            session = await world.shelf.sessions.touch(owner, world.shelf.chat, line.at)
            await world.stores.journal.add(owner, world.shelf.chat, session, [line])
    await world.forget(marker)
    assert await world.erase() == 1
    for file in world.shelf.db.path.parent.iterdir():
        assert marker.encode() not in file.read_bytes(), file.name


async def test_an_erasure_that_was_stopped_half_way_can_not_be_undone_and_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(30):
        await world.learn(f"第{n}次吃缬沙坦", f"用户第{n}次吃缬沙坦")
    deletion = await world.forget("缬沙坦")
    before = world.shelf.clock()
    monkeypatch.setattr(erasing, "AT_ONCE", 7)
    whole, calls = world.stores.journal.erase, []

    async def killed(owner: Account, ids: Sequence[int]) -> None:
        calls.append(ids)
        if len(calls) == 4:
            raise KeyboardInterrupt
        await whole(owner, ids)

    with monkeypatch.context() as patch:
        patch.setattr(world.stores.journal, "erase", killed)
        with pytest.raises(KeyboardInterrupt):
            await world.erase()
    # Not even for a clock that was set back: some of it is gone already.
    assert await world.forgetting.undo(world.owner, deletion, now=before) is None
    assert await world.stores.promises.notices(world.owner) == []
    assert await world.erase() == 1
    (notice,) = await world.stores.promises.notices(world.owner)
    assert dict(notice.data) == {"memories": 30, "messages": 30, "replies": 0, "searched": 0}
    assert await world.facts() == await world.said() == []


async def test_what_is_erased_is_noted_in_few_ranges_without_what_was_left_alone(world: World) -> None:
    for n in range(20):
        await world.learn(f"第{n}次吃缬沙坦", f"用户第{n}次吃缬沙坦")
    kept = await world.shelf.say("今天天气不错")
    await world.learn("缬沙坦没了", "用户的缬沙坦没了")
    await world.forget("缬沙坦")
    await world.erase()
    ranges = await world.forgetting.erased(world.owner)
    assert len(ranges) == 2
    assert not any(first <= kept.id <= last for first, last in ranges)
