"""What recall must hold to whatever is asked: nobody else's rows, and every word, id and date by itself."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st
from opencc import OpenCC

from config.settings import Settings
from memory import Line, Memory, RecallOptions, engine
from memory.model import Account
from memory.words import query_terms, terms

NOW = datetime(2025, 3, 1, 8, tzinfo=UTC)
SAID = ("The marmalade is in the larder", "My cat sleeps in the larder all day", "我对花粉过敏", "猫在睡觉")
ASKED = ("Where is the marmalade?", "what does my cat do", "我对什么过敏", "猫呢")
OTHERS = 100_000

to_traditional = OpenCC("s2t").convert
han = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), min_size=2, max_size=30)
number = st.integers(1, 99_999_999).map(str)
id_of_numbers = st.lists(number, min_size=2, max_size=3).map("-".join)


async def scores(path: Path) -> list[tuple[float | None, list[tuple[int, float, dict[str, float]]]]]:
    """What the first person's questions find, in a memory opened anew."""
    memory = await Memory.open(path, Settings(), clock=lambda: NOW, count=len)
    try:
        owner = await memory.account("console", "1", name="Lin")
        room = await memory.chat(owner, "dm:1")
        answers = []
        for threshold in (True, False):
            options = RecallOptions(threshold=threshold)
            found = [await memory.recall(owner, text, room=room, now=NOW, options=options) for text in ASKED]
            answers += [
                (each.level, [(unit.id, unit.score, dict(unit.scores)) for unit in each.units]) for each in found
            ]
        return answers
    finally:
        await memory.close()


async def told(path: Path) -> Account:
    """Two people in one file, the second with one line that holds the words of the first; returns the second."""
    memory = await Memory.open(path, Settings(), clock=lambda: NOW, count=len)
    try:
        for user, said in (("1", SAID), ("2", (" ".join(SAID),))):
            owner = await memory.account("console", user, name="Lin")
            room = await memory.chat(owner, f"dm:{user}")
            for text in said:
                await memory.note(owner, room, Line("user", "Lin", NOW, text))
        return owner
    finally:
        await memory.close()


def multiply(path: Path, other: Account, count: int) -> None:
    """Give somebody so many copies of their one line."""
    with engine.connect(path) as file:
        columns = [row[1] for row in file.execute("PRAGMA table_info(journal)") if row[1] != "id"]
        names = ", ".join(columns)
        file.execute(
            "WITH RECURSIVE copy (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < ?)"
            f" INSERT INTO journal (id, {names}) SELECT id + n, {names} FROM journal, copy"
            " WHERE id BETWEEN ? AND ?",
            (count, other.first_id, other.last_id),
        )
    file.close()


async def test_a_hundred_thousand_rows_of_somebody_else_change_no_score(tmp_path: Path) -> None:
    path = tmp_path / "two.db"
    other = await told(path)
    before = await scores(path)
    assert all(len(units) > 0 for level, units in before if level is None), "without a threshold each finds something"
    multiply(path, other, OTHERS)
    assert await scores(path) == before


@given(id_of_numbers, id_of_numbers)
def test_an_id_or_date_finds_only_itself(one: str, other: str) -> None:
    assume(one != other and one not in other.split("-") and f"-{one}-" not in f"-{other}-")
    assert set(query_terms(one)) <= set(terms(f"the parcel {one} has come"))
    assert not set(query_terms(one)) & set(terms(f"的 {other} 到了"))


@given(number, number)
def test_a_number_finds_only_itself(one: str, other: str) -> None:
    assume(one != other)
    assert not set(query_terms(one)) & set(terms(f"room {other}"))


@given(han, st.data())
def test_every_word_of_two_characters_is_found_whatever_stands_around_it(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 2))
    word = text[at : at + 2]
    assert set(query_terms(word)) <= set(terms(f"kx{text}12"))


@given(st.text(st.sampled_from("过敏净水器滤芯客厅对花粉钢琴课医院电话号码学习汉语"), min_size=2, max_size=20))
def test_simplified_meets_traditional_both_ways(text: str) -> None:
    traditional = to_traditional(text)
    assert query_terms(traditional) == query_terms(text)
    assert terms(traditional) == terms(text)
