"""Accounts of one human: linked by a code, read together, each with its own memory, and two people never mix."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from config.locales import phrase
from memory.codes import ALPHABET
from memory.linking import ALL_TRIES, LASTS, MOST_ACCOUNTS, OWN_TRIES
from memory.model import Account, Chat, ProfileLine
from tests.conftest import Clock
from tests.house import House, housed
from tests.servers.openai_server import OpenAIServer
from tests.talk import Talk, talking


@dataclass
class Two:
    """Mara, who has an account on two platforms, and Tomas, who is somebody else."""

    house: House
    people: dict[str, tuple[Account, Chat]] = field(default_factory=dict)

    async def meet(self, name: str, platform: str, user: str) -> None:
        account = await self.house.memory.account(platform, user, name=name)
        self.people[name] = account, await self.house.memory.chat(account, f"dm:{user}")

    async def says(self, name: str, text: str, *, group: str | None = None) -> None:
        owner, chat = self.people[name]
        room = chat if group is None else await self.house.memory.chat(owner, group, private=False)
        await self.house.hear(text, owner=owner, chat=room)

    async def room(self, name: str, key: str) -> Chat:
        return await self.house.memory.chat(self.people[name][0], key, private=False)

    async def code(self, name: str) -> str:
        owner, chat = self.people[name]
        return (await self.house.memory.linking.show(owner, chat, now=self.house.clock())).code

    async def types(self, name: str, code: str) -> str:
        owner, _ = self.people[name]
        return (await self.house.memory.linking.redeem(owner, code, now=self.house.clock())).outcome

    async def link(self, one: str, other: str) -> str:
        return await self.types(other, await self.code(one))

    async def unlink(self, name: str) -> None:
        await self.house.memory.linking.unlink(self.people[name][0], now=self.house.clock())

    async def known(self, name: str, *, group: str | None = None) -> list[str]:
        owner, chat = self.people[name]
        room = chat if group is None else await self.room(name, group)
        found = await self.house.memory.known(owner, room=room, now=self.house.clock())
        return sorted(e.text + (" (outdated)" if e.provenance.overtaken else "") for e in found)

    async def recalled(self, name: str, question: str, *, group: str | None = None) -> list[str]:
        owner, chat = self.people[name]
        room = chat if group is None else await self.room(name, group)
        found = await self.house.memory.recall(owner, question, room=room, now=self.house.clock())
        return [unit.text + (" (outdated)" if unit.outdated else "") for unit in found.units]

    def memories(self) -> list[tuple[object, ...]]:
        """Every row of memory as the file has it."""
        tables = ("profile", "timeline", "facts", "citations", "journal")
        return [row for table in tables for row in self.house.rows(f"SELECT * FROM {table} ORDER BY 1, 2")]


@pytest.fixture
async def two(data_dir: Path, clock: Clock) -> AsyncIterator[Two]:
    async with housed(data_dir / "m.db", clock) as house:
        made = Two(house)
        for name, platform, user in (
            ("Mara", "telegram", "1001"),
            ("Mara D", "discord", "2001"),
            ("Tomas", "telegram", "1002"),
        ):
            await made.meet(name, platform, user)
        yield made


# ---- codes -----------------------------------------------------------------------------------------------


async def test_f08_before_a_link_each_account_knows_only_its_own_and_after_it_both(two: Two) -> None:
    await two.says("Mara", "My name is Xiaoman")
    await two.says("Mara D", "I live in Lyon")
    assert await two.known("Mara D") == ["I live in Lyon"]
    assert await two.link("Mara", "Mara D") == "linked"
    both = ["I live in Lyon", "My name is Xiaoman"]
    assert await two.known("Mara") == await two.known("Mara D") == both
    assert await two.known("Tomas") == []
    for name in ("Mara", "Mara D"):
        assert "My name is Xiaoman" in await two.recalled(name, "What is my name?")
        assert "I live in Lyon" in await two.recalled(name, "Where do I live?")
    assert await two.recalled("Tomas", "Where do I live?") == []


async def test_a_code_is_kept_as_a_salted_hash_and_nowhere_as_it_is(two: Two) -> None:
    first, second = await two.code("Mara"), await two.code("Tomas")
    everything = two.house.everything()
    for code in (first, second):
        assert re.fullmatch(rf"[{ALPHABET}]{{4}}-[{ALPHABET}]{{4}}", code)
        assert code not in everything
        assert code.replace("-", "") not in everything
    assert two.house.rows("SELECT count(DISTINCT salt), count(DISTINCT hash), min(length(hash)) FROM link_codes") == [
        (2, 2, 32)
    ]


@pytest.mark.parametrize("spelt", ["{}", " {} ", "{} .", "`{}`"])
async def test_a_code_is_known_however_it_is_typed(two: Two, spelt: str) -> None:
    code = await two.code("Mara")
    assert await two.types("Mara D", spelt.format(code.lower().replace("-", " "))) == "linked"


async def test_a_code_works_once_and_for_ten_minutes_and_the_newest_alone(two: Two) -> None:
    old, new = await two.code("Mara"), await two.code("Mara")
    assert await two.types("Mara D", old) == "wrong"
    assert await two.types("Mara D", new) == "linked"
    assert await two.types("Tomas", new) == "wrong"
    await two.unlink("Mara")
    late = await two.code("Mara")
    two.house.clock.advance(seconds=LASTS.total_seconds())
    assert await two.types("Mara D", late) == "wrong"
    in_time = await two.code("Mara")
    two.house.clock.advance(seconds=LASTS.total_seconds() - 1)
    assert await two.types("Mara D", in_time) == "linked"


async def test_ones_own_code_links_nothing_and_still_works_on_the_other_account(two: Two) -> None:
    code = await two.code("Mara")
    assert await two.types("Mara", code) == "own"
    assert await two.types("Mara D", code) == "linked"
    assert await two.link("Mara D", "Mara") == "already"


async def test_after_a_few_wrong_codes_even_the_right_one_waits_ten_minutes(two: Two) -> None:
    for _ in range(OWN_TRIES):
        assert await two.types("Mara D", "AAAA-AAAA") == "wrong"
    assert await two.link("Mara", "Mara D") == "too_many_tries"
    assert await two.link("Mara", "Tomas") == "linked", "somebody else's tries are their own"
    await two.unlink("Tomas")
    two.house.clock.advance(seconds=LASTS.total_seconds() + 1)
    assert await two.link("Mara", "Mara D") == "linked"


async def test_guessing_with_many_accounts_ends_too(two: Two) -> None:
    code = await two.code("Mara")
    guessers = -(-ALL_TRIES // OWN_TRIES)
    for number in range(guessers):
        await two.meet(f"guesser {number}", "telegram", f"7{number}")
        for _ in range(OWN_TRIES):
            await two.types(f"guesser {number}", "BBBB-BBBB")
    assert await two.types("Mara D", code) == "too_many_tries"


async def test_of_two_who_type_a_code_at_the_same_time_one_is_linked(two: Two) -> None:
    code = await two.code("Mara")
    outcomes = await asyncio.gather(*(two.types(name, code) for name in ("Mara D", "Tomas", "Mara D", "Tomas")))
    assert sorted(outcomes) == ["linked", "wrong", "wrong", "wrong"]
    assert two.house.rows("SELECT count(*), count(DISTINCT person) FROM links") == [(2, 1)]


async def test_a_person_has_so_many_accounts_and_no_more(two: Two) -> None:
    for number in range(1, MOST_ACCOUNTS):
        await two.meet(f"more {number}", "discord", f"3{number}")
        assert await two.link("Mara", f"more {number}") == "linked"
    assert await two.link("Mara", "Mara D") == "too_many_accounts"


# ---- one person ------------------------------------------------------------------------------------------


async def test_three_accounts_are_one_person_and_one_that_leaves_takes_only_its_own(two: Two) -> None:
    await two.meet("Mara 3", "console", "mara")
    for name, food in (("Mara", "nuts"), ("Mara D", "eggs"), ("Mara 3", "milk")):
        await two.says(name, f"I am allergic to {food}")
    await two.link("Mara", "Mara D")
    await two.link("Mara D", "Mara 3")
    everything = [f"I am allergic to {food}" for food in ("eggs", "milk", "nuts")]
    assert await two.known("Mara") == await two.known("Mara D") == await two.known("Mara 3") == everything
    await two.unlink("Mara")
    assert await two.known("Mara") == ["I am allergic to nuts"]
    assert await two.known("Mara D") == await two.known("Mara 3") == everything[:2]
    # A number of a person is never used again: who comes to Mara now does not come to those she left.
    await two.link("Mara", "Tomas")
    assert await two.known("Mara 3") == everything[:2]
    assert await two.known("Tomas") == ["I am allergic to nuts"]


async def test_two_persons_of_two_accounts_become_one_of_four(two: Two) -> None:
    await two.meet("Tomas D", "discord", "2002")
    await two.link("Mara", "Mara D")
    await two.link("Tomas", "Tomas D")
    await two.says("Tomas D", "I am allergic to milk")
    assert await two.link("Mara D", "Tomas") == "linked"
    assert await two.known("Mara") == ["I am allergic to milk"]


async def test_unlinking_gives_back_exactly_what_was_before_and_linking_writes_no_memory(two: Two) -> None:
    await two.says("Mara", "I live in Oslo")
    await two.says("Mara D", "I live in Lyon")
    before = two.memories()
    await two.link("Mara", "Mara D")
    for name in ("Mara", "Mara D"):
        await two.known(name)
        await two.recalled(name, "Where do I live?")
    assert two.memories() == before
    await two.unlink("Mara D")
    assert two.memories() == before
    assert await two.known("Mara") == ["I live in Oslo"]
    assert await two.known("Mara D") == ["I live in Lyon"]
    assert two.house.rows("SELECT count(*) FROM links") == [(0,)]


async def test_what_is_said_goes_to_the_account_that_speaks(two: Two) -> None:
    await two.link("Mara", "Mara D")
    await two.says("Mara D", "I am allergic to nuts")
    owner, _ = two.people["Mara D"]
    assert [owner.owns(id_) for (id_,) in two.house.rows("SELECT id FROM profile")] == [True]


async def test_a_newer_word_of_another_account_marks_the_older_one_and_closes_nothing(two: Two) -> None:
    await two.says("Mara", "I live in Oslo")
    await two.says("Mara D", "I live in Lyon")
    await two.link("Mara", "Mara D")
    assert await two.known("Mara") == await two.known("Mara D") == ["I live in Lyon", "I live in Oslo (outdated)"]
    assert "I live in Oslo (outdated)" in await two.recalled("Mara", "Where do I live?")
    assert two.house.rows("SELECT count(*) FROM profile WHERE retired_at IS NOT NULL") == [(0,)]
    await two.says("Mara", "I live in Bergen")
    assert await two.known("Mara D") == ["I live in Bergen", "I live in Lyon (outdated)"]


async def test_f08_of_two_names_the_newer_one_is_read_on_every_turn(two: Two) -> None:
    await two.says("Mara", "My name is Xiaoman")
    await two.says("Mara D", "My name is Dorothea")
    await two.link("Mara", "Mara D")
    owner, chat = two.people["Mara"]
    found = await two.house.memory.recall(owner, "How are the boats doing?", room=chat, now=two.house.clock())
    assert [unit.text for unit in found.units if unit.band == "always"] == ["My name is Dorothea"]


async def test_what_may_be_true_twice_stays_and_what_is_over_on_one_side_is_marked_on_the_other(two: Two) -> None:
    for food in ("nuts", "milk"):
        await two.says("Mara", f"I am allergic to {food}")
    await two.says("Mara D", "I am allergic to eggs")
    await two.link("Mara", "Mara D")
    assert len(await two.known("Mara D")) == 3
    await two.says("Mara D", "I am no longer allergic to nuts")
    assert await two.known("Mara") == [
        "I am allergic to eggs",
        "I am allergic to milk",
        "I am allergic to nuts (outdated)",
    ]
    await two.unlink("Mara")
    assert await two.known("Mara") == ["I am allergic to milk", "I am allergic to nuts"]


async def test_what_is_known_of_somebody_else_is_a_slot_of_its_own(two: Two) -> None:
    await two.says("Mara", "My sister lives in Oslo")
    await two.says("Mara D", "I live in Lyon")
    await two.link("Mara", "Mara D")
    owner, chat = two.people["Mara"]
    found = await two.house.memory.known(owner, room=chat, now=two.house.clock())
    assert [e.provenance.overtaken for e in found if isinstance(e, ProfileLine)] == [None] * len(found)


async def test_in_a_group_each_account_brings_what_it_said_there_and_nothing_else(two: Two) -> None:
    await two.says("Mara", "I am allergic to nuts", group="group:-500")
    await two.says("Mara D", "I am allergic to eggs")
    await two.says("Mara D", "I am allergic to milk", group="guild:9/1")
    await two.link("Mara", "Mara D")
    assert await two.known("Mara", group="group:-500") == ["I am allergic to nuts"]
    assert await two.recalled("Mara", "What am I allergic to?", group="group:-500") == ["I am allergic to nuts"]
    assert await two.known("Mara D", group="guild:9/1") == ["I am allergic to milk"]
    assert len(await two.known("Mara D")) == 3


async def test_an_account_that_left_a_group_brings_nothing_of_it_when_another_of_the_person_asks_there(
    two: Two,
) -> None:
    await two.meet("Mara again", "telegram", "1003")
    await two.says("Mara", "I am allergic to nuts", group="group:-500")
    await two.says("Mara again", "I am allergic to eggs", group="group:-500")
    await two.link("Mara", "Mara again")
    assert len(await two.known("Mara again", group="group:-500")) == 2
    owner, _ = two.people["Mara"]
    await two.house.memory.rooms.left(owner, "group:-500", at=two.house.clock.advance(minutes=1))
    assert await two.known("Mara again", group="group:-500") == ["I am allergic to eggs"]


async def test_both_sides_and_every_other_account_are_told(two: Two) -> None:
    await two.meet("Mara 3", "console", "mara")
    for name in ("Mara", "Mara D", "Mara 3"):
        await two.says(name, "hello there")
    await two.link("Mara", "Mara D")
    await two.link("Mara D", "Mara 3")
    await two.unlink("Mara")
    told = [(o.owner.name, o.notice.phrase, o.notice.data) for o in await two.house.memory.notices()]
    assert sorted(told, key=lambda one: (one[0] == "Mara 3", one[0], one[1], str(one[2]))) == [
        ("Mara", "link.joined", {"platform": "console"}),
        ("Mara", "link.notice", {"platform": "discord"}),
        ("Mara D", "link.notice", {"platform": "console"}),
        ("Mara D", "unlink.notice", {"platform": "telegram"}),
        ("Mara 3", "unlink.notice", {"platform": "telegram"}),
    ]


async def test_a_link_outlives_a_restart(two: Two) -> None:
    await two.says("Mara", "I am allergic to nuts")
    await two.link("Mara", "Mara D")
    await two.house.reopen()
    assert await two.known("Mara D") == ["I am allergic to nuts"]


async def test_who_is_not_linked_asks_the_file_once(two: Two) -> None:
    await two.recalled("Tomas", "hello?")
    asked: list[str] = []
    db = two.house.memory._db
    fetch = db.fetch

    async def watched(sql: str, parameters: object = ()) -> object:
        asked.append(sql)
        return await fetch(sql, parameters)  # type: ignore[arg-type]

    db.fetch = watched  # type: ignore[method-assign,assignment]
    await two.recalled("Tomas", "hello?")
    db.fetch = fetch  # type: ignore[method-assign]
    assert asked
    assert not any("links" in sql or "departures" in sql for sql in asked)


@pytest.mark.parametrize("seed", range(4))
async def test_two_people_never_mix_whatever_they_say_link_and_ask(two: Two, seed: int) -> None:
    chance = Random(seed)
    names = [f"{who} {place}" for who in "ABC" for place in ("telegram", "discord", "console")]
    for number, name in enumerate(names):
        await two.meet(name, name[2:], f"{number}")
    one = {name: {name} for name in names}
    said: dict[str, set[str]] = {name: set() for name in names}
    groups = {"telegram": ("group:-1", "group:-2"), "discord": ("guild:1/1", "guild:1/2"), "console": ()}
    heard: dict[tuple[str, str], set[str]] = {}
    for step in range(60):
        name = chance.choice(names)
        match chance.choice(("say", "say", "say", "group", "link", "unlink", "wrong", "ask")):
            case "say":
                word = f"marker{seed}x{step}"
                await two.says(name, f"Remember that my boat is called {word}")
                said[name].add(word)
            case "group" if groups[name[2:]]:
                word, key = f"marker{seed}x{step}", chance.choice(groups[name[2:]])
                await two.says(name, f"Remember that my boat is called {word}", group=key)
                said[name].add(word)
                heard.setdefault((name, key), set()).add(word)
            case "link":
                other = chance.choice([each for each in names if each[0] == name[0]])
                if other != name and await two.link(name, other) == "linked":
                    both = one[name] | one[other]
                    one |= dict.fromkeys(both, both)
            case "unlink":
                await two.unlink(name)
                rest = one[name] - {name}
                one |= {name: {name}} | dict.fromkeys(rest, rest)
            case "wrong":
                await two.types(name, "WRNG-CDEE")
                two.house.clock.advance(seconds=LASTS.total_seconds() + 1)
        asker = chance.choice(names)
        mine = set().union(*(said[each] for each in one[asker]))
        question = f"What is my boat marker{seed}x{chance.randrange(step + 1)} called?"
        known, found = await two.known(asker), await two.recalled(asker, question)
        assert markers(known) == mine, (step, asker)
        assert markers(found) <= mine, (step, asker)
        for key in groups[asker[2:]]:
            there = set().union(*(heard.get((each, key), set()) for each in one[asker]))
            assert markers(await two.known(asker, group=key)) == there, (step, asker, key)
            assert markers(await two.recalled(asker, question, group=key)) <= there, (step, asker, key)


def markers(texts: list[str]) -> set[str]:
    return set(re.findall(r"marker\d+x\d+", " ".join(texts)))


# ---- in words --------------------------------------------------------------------------------------------

CODE = re.compile(rf"/link ([{ALPHABET}]{{4}}-[{ALPHABET}]{{4}})")


async def test_the_commands_say_what_they_did_and_their_words_stay_nowhere(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to nuts")
        shown = await talk.say("/link")
        code = CODE.search(shown)
        assert code is not None
        assert f"until {clock() + timedelta(minutes=10):%H:%M}" in shown
        assert (await talk.say(f"/link {code[1]}", user="1002")).startswith("Linked: this account and yours on Test")
        assert "nuts" in await talk.say("/whatdoyouknow", user="1002")
        assert "This account is linked with one on Test." in await talk.say("/link", user="1002")
        assert "no longer linked" in await talk.say("/unlink", user="1002")
        assert "nuts" not in await talk.say("/whatdoyouknow", user="1002")
        assert "linked with no other" in await talk.say("/unlink", user="1002")
        assert code[1] not in talk.everything_stored()


async def test_a_code_that_is_typed_in_a_group_is_void(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        code = CODE.search(await talk.say("/link"))
        assert code is not None
        (reply,) = await talk.ask(f"/link {code[1]}", user="1002", chat="group:-500")
        assert reply.private
        assert reply.text.startswith("That code stood where others could read it")
        assert "no code that works" in await talk.say(f"/link {code[1]}", user="1002")
        (reply,) = await talk.ask("/link", chat="group:-500")
        assert (reply.private, CODE.search(reply.text)) == (True, None)


async def test_why_tells_of_what_another_account_said(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to nuts")
        code = CODE.search(await talk.say("/link"))
        assert code is not None
        await talk.say(f"/link {code[1]}", user="1002")
        assert "allergic to nuts" in await talk.say("What am I allergic to?", user="1002")
        assert "I am allergic to nuts" in await talk.say("/why", user="1002")
        await talk.say("/whatdoyouknow", user="1002")
        assert (await talk.say("/share 1", user="1002")).startswith("allergy: nuts\nFrom now on")
        assert "nuts" in await talk.say("/whatdoyouknow", user="1001", chat="group:-500")


# ---- forgetting ------------------------------------------------------------------------------------------


async def linked(talk: Talk) -> None:
    """Make the people 1001 and 1002 one."""
    code = CODE.search(await talk.say("/link"))
    assert code is not None
    assert "Linked" in await talk.say(f"/link {code[1]}", user="1002")


async def test_forgetting_on_one_side_reaches_the_memories_of_both_and_undo_brings_both_back(
    data_dir: Path, clock: Clock
) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to nuts")
        await talk.say("I am allergic to nuts", user="1002")
        await talk.say("I am allergic to nuts", user="1003")
        await linked(talk)
        await talk.say("What am I allergic to?", user="1002")
        offer = await talk.say("/forget nuts", user="1002")
        assert "1. allergy: nuts" in offer
        assert "2. allergy: nuts" in offer
        assert "Hidden at once: 2 memories" in await talk.say("/forget yes", user="1002")
        assert await talk.texts("1001") == await talk.texts("1002") == []
        assert "Back again: 2 memories" in await talk.say("/undo", user="1002")
        assert len(await talk.texts("1001")) == 2
        await talk.say("/forget nuts", user="1002")
        await talk.say("/forget yes", user="1002")
        await talk.app.memory.run_due(now=clock.advance(minutes=30))
        assert await talk.texts("1003") == ["I am allergic to nuts"]
        left = talk.rows("SELECT (id >> 24) FROM journal WHERE text LIKE '%nuts%'")
        assert {row[0] for row in left} == {(await talk.owner("1003")).no}


async def test_what_another_account_knows_is_forgotten_by_its_number_with_the_replies_that_used_it(
    data_dir: Path, clock: Clock
) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        server.on("What am I allergic to?", reply="To something that cracks.")
        await talk.say("I am allergic to nuts")
        await linked(talk)
        await talk.say("What am I allergic to?", user="1002")
        await talk.say("/whatdoyouknow", user="1002")
        assert "1. allergy: nuts" in await talk.say("/forget 1", user="1002")
        (reply,) = await talk.ask("/forget 1", user="1002")
        assert "Hidden at once: 1 memory" in reply.text
        await talk.app.memory.run_due(now=clock.advance(minutes=30))
        assert "nuts" not in talk.everything_stored()
        assert "something that cracks" not in talk.everything_stored()


async def test_a_number_takes_only_what_it_names_of_both(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to nuts")
        await talk.say("I am allergic to milk", user="1002")
        await linked(talk)
        offer = await talk.say("/forget allergic", user="1002")
        assert "1. allergy: milk" in offer
        assert "2. allergy: nuts" in offer
        assert "no such number" in await talk.say("/forget 3", user="1002")
        assert "Hidden at once: 1 memory" in await talk.say("/forget 2", user="1002")
        assert await talk.texts("1001") == await talk.texts("1002") == ["I am allergic to milk"]


async def test_f08_everything_on_one_side_is_everything_on_both(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to nuts")
        await talk.say("I am allergic to milk", user="1002")
        await linked(talk)
        typed = phrase("forget.phrase", "en")
        assert typed in await talk.say("/forget everything", user="1002")
        assert "Hidden at once: 2 memories" in await talk.say(f"/forget {typed}", user="1002")
        assert await talk.texts("1001") == await talk.texts("1002") == []


async def test_in_a_group_only_the_account_that_speaks_forgets(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to nuts", chat="group:-500")
        await talk.say("I am allergic to nuts", user="1002", chat="group:-500")
        await linked(talk)
        assert "2. " not in await talk.say("/forget nuts", user="1002", chat="group:-500")
        await talk.say("/forget yes", user="1002", chat="group:-500")
        assert await talk.texts("1001") == ["I am allergic to nuts"]


async def test_after_unlinking_an_old_offer_means_its_own_account_alone(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("I am allergic to nuts")
        await talk.say("I am allergic to nuts", user="1002")
        await linked(talk)
        await talk.say("/forget nuts", user="1002")
        await talk.say("/unlink")
        await talk.say("/forget yes", user="1002")
        assert await talk.texts("1001") == ["I am allergic to nuts"]
        assert await talk.texts("1002") == []
