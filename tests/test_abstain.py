"""``bench abstain`` and ``calibrate``: what they ask, how they count, and that they print numbers alone."""

from __future__ import annotations

import asyncio
import importlib
import json
from pathlib import Path

import pytest

from bot import calibrate
from bot.bench import abstain, evalset, levels
from bot.bench.levels import Levels
from bot.bench.smalltalk import SMALL_TALK
from bot.plot import HINT, PlotUnavailable
from config.settings import EmbedderSettings, Settings
from memory import Calibration, Line, Memory, sample_texts
from memory.calibrating import half_of
from memory.shipped import shipped_texts
from tests.conftest import Clock
from tests.test_bench import question, talk, written

SECRET = "marmalade"


@pytest.fixture
def two_people(tmp_path: Path) -> Path:
    conversations = [
        talk("a", ("Ann", f"The {SECRET} is in the larder"), ("assistant", "Good"), ("Ann", "The cat is called Tiger")),
        talk("b", ("Bob", "My bike was stolen in Leeds"), ("assistant", "Oh"), ("Bob", "I paint ships at night")),
    ]
    questions = [
        question("a", f"Where is Ann's {SECRET}?", "a:0"),
        question("b", "Where was the bike of Bob stolen?", "b:0"),
        question("b", "What does Ann paint?", "b:2", category="adversarial"),
    ]
    return written(tmp_path / "sets" / "mine", conversations, questions)


def test_a_question_is_asked_of_its_own_conversation_and_of_others_in_their_names(two_people: Path) -> None:
    assert [(case.conversation, case.text, case.own) for case in abstain.cases(evalset.load(two_people))] == [
        ("a", f"Where is Ann's {SECRET}?", True),
        ("b", f"Where is Bob's {SECRET}?", False),
        ("b", "Where was the bike of Bob stolen?", True),
        ("a", "Where was the bike of Ann stolen?", False),
    ]


def test_names_are_swapped_in_turn_and_all_at_once() -> None:
    assert abstain.renamed("Ann met Bob and Anna", ["Ann", "Anna", "Bob"], ["Bob", "Cy"]) == "Bob met Bob and Cy"
    assert abstain.renamed("Ann", [], ["Bob"]) == abstain.renamed("Ann", ["Ann"], []) == "Ann"


async def test_own_questions_lie_above_foreign_ones_and_small_talk_recalls_little(two_people: Path) -> None:
    measured = await abstain.run_abstain(two_people, embedder=None, false_positives=0.05)
    shown = measured.shown()
    assert json.loads(json.dumps(shown)) == shown
    assert shown["sets"]["mine"] == shown["sets"]["pooled"]
    assert (shown["sets"]["mine"]["own"], shown["sets"]["mine"]["foreign"]) == (2, 2)
    assert shown["sets"]["mine"]["auc"] == 1.0
    assert shown["sets"]["mine"]["false_positives"] == 0.0
    assert shown["small_talk"]["10"]["pieces"] == 30, "no conversation in the other language"
    assert shown["small_talk"]["300"]["most"] <= 2
    assert [table.row_count for table in abstain.tables(measured)] == [2, len(levels.CUTS), 2]


def test_a_memory_for_small_talk_holds_so_many_lines_of_the_first_conversations(two_people: Path) -> None:
    told = abstain.first_lines(evalset.load(two_people).conversations, 4)
    assert [line.id for session in told.sessions for line in session] == ["a:0", "a:1", "a:2", "b:0"]


def test_sixty_pieces_of_small_talk_are_none_of_those_that_ship() -> None:
    pieces = [piece for language in ("zh", "en") for piece in SMALL_TALK[language]]
    assert len(set(pieces)) == 60
    assert not set(pieces) & {*shipped_texts("zh"), *shipped_texts("en")}


def test_levels_are_counted_as_pairs_and_shares() -> None:
    some = Levels((0.9, 0.5, 1.0), (0.1, 0.5))
    assert some.auc == pytest.approx((2 + 1.5 + 2) / 6)
    assert some.recall(0.9) == pytest.approx(200 / 3)
    assert some.false_positives(0.5) == 50.0
    assert levels.pooled([some, some]).auc == pytest.approx(some.auc)
    assert some.at_true_rate(0.5) == 100.0
    assert str(Levels((), ()).auc) == "nan"


def test_without_matplotlib_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(PlotUnavailable, match="pip install matplotlib"):
        levels.draw(Levels((0.9,), (0.1,)), tmp_path / "a.svg", "title")
    assert "pip install" in HINT


# ---- calibrate ---------------------------------------------------------------------------------------


def settings(folder: Path) -> Settings:
    return Settings(_env_file=None, data_dir=folder, embedder=EmbedderSettings(kind="none"))


async def told(folder: Path, clock: Clock, *texts: str) -> None:
    memory = await Memory.open(folder / "recollect.db", settings(folder), clock=clock, count=len)
    owner = await memory.account("test", "1001", name="Lin")
    chat = await memory.chat(owner, "dm:1001")
    for text in texts:
        await memory.note(owner, chat, Line("user", "Lin", clock.advance(minutes=1), text))
    await memory.close()


async def test_a_memory_is_measured_by_what_it_was_told_and_by_foreign_questions(data_dir: Path, clock: Clock) -> None:
    await told(data_dir, clock, *sample_texts("en")[:30])
    memory = await Memory.open(data_dir / "recollect.db", settings(data_dir), clock=clock, count=len)
    owner = await memory.known_account("test", "1001")
    assert owner is not None
    measured = await memory.calibrate(owner)
    other = await memory.calibrate(await memory.account("test", "1002"))
    await memory.close()
    assert (measured.rows, measured.vectors, len(measured.own), len(measured.foreign)) == (30, 0, 30, 100)
    assert Levels(measured.own, measured.foreign).auc > 0.9
    assert sum(level >= measured.sure for level in measured.foreign) <= 10
    assert (other.rows, other.own, other.foreign) == (0, (), ()), "nobody else's memory counts"


def test_the_table_is_printed_without_anybodys_words(
    data_dir: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(told(data_dir, clock, f"The {SECRET} is in the larder", "The cat is called Tiger"))
    assert calibrate.main(settings(data_dir), owner="test:1001", sample=None, plot=None) == 0
    printed = capsys.readouterr().out
    assert "2 rows, 0 with vectors" in printed
    assert "chosen" in printed
    assert SECRET not in printed.casefold()
    assert "tiger" not in printed.casefold()


@pytest.mark.parametrize(("owner", "why"), [("test:9", "nobody is known as test:9"), ("9", "PLATFORM:ID")])
def test_somebody_who_never_spoke_is_named(
    data_dir: Path, clock: Clock, capsys: pytest.CaptureFixture[str], owner: str, why: str
) -> None:
    asyncio.run(told(data_dir, clock, "Hello"))
    assert calibrate.main(settings(data_dir), owner=owner, sample=None, plot=None) == 1
    assert why in capsys.readouterr().err


def test_where_nobody_ever_talked_no_database_is_made(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate.main(settings(data_dir), owner="test:1001", sample=None, plot=None) == 1
    assert "nobody has talked to the bot" in capsys.readouterr().err
    assert list(data_dir.iterdir()) == []


def test_the_sample_needs_nobody_and_leaves_nothing(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate.main(settings(data_dir), owner=None, sample="zh", plot=None) == 0
    assert "sample, zh: 60 rows" in capsys.readouterr().out
    assert list(data_dir.iterdir()) == []


def test_half_the_words_are_every_second_one() -> None:
    assert half_of("The cat is called Tiger") == "The is Tiger"
    assert half_of("我在湖边租了一间木屋") == "我在 租了 木屋"
    assert half_of("?!") == ""


def test_levels_of_an_empty_memory_make_a_table(data_dir: Path) -> None:
    empty = Calibration(0, 0, (), (), 0.3, 0.95)
    scores, cuts = calibrate.tables(empty, "nobody")
    assert (scores.row_count, cuts.row_count) == (2, len({*levels.CUTS, 0.3, 0.95}))
