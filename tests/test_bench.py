"""The benchmarks measure what they say, on sets small enough to reckon by hand."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.table import Table

from bot import plot
from bot.bench import ablation, curves, evalset, people, recall, scan, speed
from bot.bench.bm25 import BM25, tokens
from bot.bench.evalset import DataError, load, moment
from bot.bench.metrics import Shown, curve, estimated_tokens, find, first, mean, score
from memory import SCORE_TERMS
from memory.ports import Vector
from memory.vectors import Vectors

DAY = datetime(2024, 3, 5, 12, tzinfo=UTC)


def written(folder: Path, conversations: list[dict[str, Any]], questions: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True)
    for name, rows in (("conversations", conversations), ("questions", questions)):
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def talk(id_: str, *lines: tuple[str, str], language: str = "en") -> dict[str, Any]:
    messages = [{"id": f"{id_}:{n}", "speaker": speaker, "text": text} for n, (speaker, text) in enumerate(lines)]
    session = {"session_id": "s", "date_time": "2024-03-05", "messages": messages}
    return {"conversation_id": id_, "language": language, "sessions": [session]}


def question(id_: str, text: str, *evidence: str, **more: object) -> dict[str, Any]:
    asked = {"question_id": "q", "conversation_id": id_, "category": "plain", "question": text, "answer": None}
    return {**asked, "evidence_ids": list(evidence), **more}


@pytest.fixture
def small_set(tmp_path: Path) -> Path:
    conversations = [
        talk("a", ("Ann", "The marmalade is in the larder"), ("assistant", "Good to know"), ("Ann", "The cat sleeps")),
        talk("b", ("user", "我对花粉过敏"), ("user", "猫在睡觉"), ("user", "我对花粉过敏"), language="zh"),
    ]
    questions = [
        question("a", "Where is the marmalade?", "a:0", category="food", question_date="2024-04"),
        question("b", "我对什么过敏", "b:2", evidence_groups=[["b:2"], ["b:1"]]),
        question("a", "Who won the war?"),
    ]
    return written(tmp_path / "sets" / "mine", conversations, questions)


async def test_recall_is_measured_through_the_public_face_beside_bm25(small_set: Path) -> None:
    result = await recall.run_recall(small_set.parent, embedder=None)
    assert json.loads(json.dumps(result)) == result
    measured = result["sets"]["mine"]
    assert measured["n"] == 2, "a question without evidence is left out"
    assert measured["recollect"]["R@1"] == 75.0, "an equal line carries the ids of its copies"
    assert measured["recollect"]["R@10"] == measured["bm25"]["R@10"] == 100.0
    assert measured["categories"]["food"]["recollect"]["R@1"] == 100.0
    assert "k1 1.2, b 0.4" in result["control"]


async def test_one_set_is_measured_by_its_own_folder_and_printed(small_set: Path) -> None:
    result = await recall.run_recall(small_set, embedder=None)
    table = recall.table("mine", result["sets"]["mine"])
    assert table.title == "mine"
    assert table.row_count == 6


async def test_an_empty_session_is_none_and_what_cannot_be_measured_is_said(tmp_path: Path) -> None:
    silent = {"session_id": "s", "date_time": "2024-03-04", "messages": []}
    spoken = talk("a", ("Ann", "The marmalade is in the larder"))
    conversations = [{**spoken, "sessions": [silent, *spoken["sessions"], silent]}, talk("mute")]
    questions = [
        question("a", "Where is the marmalade?", "a:0"),
        question("a", "Who won the war?"),
        question("mute", "What was said?", "mute:0"),
        question("nowhere", "What was said?", "x:0"),
    ]
    result = await recall.run_recall(written(tmp_path / "gaps", conversations, questions), embedder=None)
    measured = result["sets"]["gaps"]
    assert measured["n"] == 1
    assert measured["recollect"]["R@1"] == 100.0
    assert measured["notes"] == [
        "gaps: 1 conversations without a message left out",
        "gaps: 1 questions without evidence left out",
        "gaps: 2 questions about no conversation left out",
    ]


@pytest.mark.parametrize("questions", [[], [question("a", "Who won the war?")], [question("b", "Who?", "b:1")]])
def test_a_set_with_nothing_to_measure_is_said_so_and_spoils_no_other(
    small_set: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    questions: list[dict[str, Any]],
) -> None:
    monkeypatch.chdir(tmp_path)
    hollow = written(small_set.parent / "hollow", [talk("a", ("Ann", "Tea"))], questions)
    assert recall.main(small_set.parent, as_json=True, embedder="none") == 0
    printed = capsys.readouterr()
    assert set(json.loads(printed.out)["sets"]) == {"mine"}
    assert "hollow holds nothing to measure" in printed.err
    assert recall.main(hollow, as_json=True, embedder="none") == 2


@pytest.mark.parametrize("as_json", [True, False])
def test_what_was_measured_is_printed_even_if_another_set_fails(
    small_set: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    as_json: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    written(small_set.parent / "a-broken", [{"id": 1}], [])
    (written(small_set.parent / "z-broken", [], []) / "conversations.jsonl").write_bytes(b"\xff{")
    assert recall.main(small_set.parent, as_json=as_json, embedder="none") == 2
    printed = capsys.readouterr()
    assert "mine" in (json.loads(printed.out)["sets"] if as_json else printed.out)
    assert [line.count("-broken is not in the layout") for line in printed.err.splitlines()] == [1, 1]


class Breaking:
    """An embedder that breaks down at the text "Bring it down"."""

    model = "breaking"
    dimensions = 2

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        if any("Bring it down" in text for text in texts):
            raise RuntimeError("broken")
        return [np.array([1, 0], np.float32) for _ in texts]

    async def aclose(self) -> None:
        """Nothing is open."""


class Sheet:
    """A figure and its axes that write down what is drawn on them."""

    def __init__(self) -> None:
        self.lines: list[tuple[Sequence[float], Sequence[float], str]] = []

    def add_subplot(self, *_place: int) -> Sheet:
        return self

    def plot(self, x: Sequence[float], y: Sequence[float], *, label: str) -> None:
        self.lines.append((x, y, label))

    def savefig(self, path: Path) -> None:
        path.write_text("drawn")

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


def test_a_crash_leaves_what_was_measured_before_it(
    small_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recall, "choose_embedder", lambda _settings: Breaking())
    written(small_set.parent / "z", [talk("a", ("Ann", "Bring it down"))], [question("a", "Who?", "a:0")])
    with pytest.raises(RuntimeError, match="broken"):
        recall.main(small_set.parent, as_json=True, embedder="auto")
    assert set(json.loads(capsys.readouterr().out)["sets"]) == {"mine"}


def test_the_command_prints_json_and_tells_what_is_no_set(
    small_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert recall.main(small_set, as_json=True, embedder="none") == 0
    assert set(json.loads(capsys.readouterr().out)["sets"]) == {"mine"}
    assert recall.main(small_set, as_json=False, embedder="none") == 0
    assert "recollect" in capsys.readouterr().out
    assert recall.main(tmp_path, as_json=True, embedder="none") == 2
    assert "conversations.jsonl" in capsys.readouterr().err


def test_a_folder_in_another_layout_is_refused_by_name(tmp_path: Path) -> None:
    folder = written(tmp_path / "odd", [{"id": 1}], [])
    with pytest.raises(DataError, match="odd"):
        load(folder)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-03-05", DAY),
        ("2023-10-22T09:55", datetime(2023, 10, 22, 9, 55, tzinfo=UTC)),
        ("2024年04月01日 周一 08:11", datetime(2024, 4, 1, 8, 11, tzinfo=UTC)),
        ("March-15-2024", datetime(2024, 3, 15, 12, tzinfo=UTC)),
        ("2025-12", datetime(2025, 12, 31, 23, 59, tzinfo=UTC)),
        ("08:20", DAY.replace(hour=8, minute=20)),
        (None, DAY),
    ],
)
def test_every_way_a_set_states_a_time_is_read(text: str | None, expected: datetime) -> None:
    assert moment(text, otherwise=DAY, on=DAY) == expected


def test_words_that_are_no_time_are_refused() -> None:
    with pytest.raises(ValueError, match="no time"):
        moment("soon", otherwise=DAY)


def test_metrics_are_those_of_the_definition() -> None:
    shown = [Shown(("x",), 400), Shown(("b", "c"), 100), Shown(("a",), 600)]
    row = score(find(shown, [["a"], ["b", "z"], ["missing"]]))
    assert row["R@1"] == 0
    assert row["R@5"] == pytest.approx(2 / 3)
    assert row["hit@10"] == 1
    assert row["MRR"] == 0.5
    assert row["T@500"] == pytest.approx(1 / 3)
    assert row["T@1000"] == pytest.approx(1 / 3), "the first unit that does not fit ends the list"
    assert score(find(shown, [["b"]], heading=1))["T@500"] == 0, "what stands before the list is counted"
    assert mean([row, score(find([], [["a"]]))])["MRR"] == 25.0


def test_the_curve_of_recall_rises_with_places_and_tokens() -> None:
    found = [find([Shown(("x",), 400), Shown(("a",), 100)], [["a"]]), find([Shown(("b",), 50)], [["b"], ["c"]])]
    assert curve(found, places=(1, 2)) == [25.0, 75.0]
    assert curve(found, tokens=(40, 50, 500)) == [0.0, 25.0, 75.0]


def test_the_newer_value_is_first_only_when_it_is_shown() -> None:
    shown = [Shown(("x",), 1), Shown(("new",), 1), Shown(("old",), 1)]
    assert first(shown, ["new"], ["old"])
    assert not first(shown, ["old"], ["new"])
    assert not first(shown, ["gone"], ["lost"])
    assert first(shown, ["old"], ["lost"])


async def test_a_set_that_knows_old_and_new_values_is_asked_which_comes_first(tmp_path: Path) -> None:
    told = talk("a", ("Ann", "I live in Riga"), ("Ann", "The cat sleeps"), ("Ann", "I live in Oslo, in Oslo"))
    asked = question("a", "Oslo or Riga, where do I live?", "a:2", old_ids=["a:0"], new_ids=["a:2"])
    result = await recall.run_recall(written(tmp_path / "moves", [told], [asked]), embedder=None)
    measured = result["sets"]["moves"]
    assert measured["newer"]["recollect"] == {"newer": 1, "of": 1}
    assert measured["notes"] == ["moves: the new value before the old in 1 of 1, bm25 in 1"]


async def test_each_term_of_the_score_is_left_out_in_turn(tmp_path: Path) -> None:
    told = talk("a", ("Ann", "The cat sleeps"), ("Ann", "Tea again"), ("Ann", "The marmalade is in the larder"))
    asked = question("a", "Where is the marmalade?", "a:2")
    plan = recall.Plan(ablate=True)
    result = await recall.run_recall(written(tmp_path / "mine", [told], [asked]), embedder=None, plan=plan)
    measured = result["sets"]["mine"]
    assert measured["recollect"]["R@1"] == 100.0
    full = {"R@1": 100.0, "R@10": 100.0, "T@1000": 100.0}
    assert measured["ablation"] == dict.fromkeys(SCORE_TERMS, full) | {"words": full | {"R@1": 0.0}}
    sheet = ablation.table(result["sets"] | {"other": measured})
    assert sheet.row_count == 1 + len(SCORE_TERMS)
    assert list(sheet.columns[2].cells)[:2] == ["100.0  100.0  100.0", "-100.0  +0.0  +0.0"]
    assert set(list(sheet.columns[1].cells)[2:]) == {"."}, "no other term has a say"


async def test_a_set_is_measured_without_an_embedder_besides(small_set: Path) -> None:
    figures = (await recall.run_recall(small_set, embedder=None, plan=recall.Plan(bare=True)))["sets"]["mine"]
    assert figures["no_embedder"]["recollect"] == figures["recollect"]
    assert recall.table("mine", figures).row_count == 9


async def test_a_sample_asks_the_same_questions_each_time_and_says_so(tmp_path: Path) -> None:
    told = talk("a", *(("Ann", f"number{n} is word{n}") for n in range(30)))
    asked = [question("a", f"What is number{n}?", f"a:{n}") for n in range(30)]
    each = evalset.load(written(tmp_path / "many", [told], asked))
    drawn = evalset.sampled(each, 5)
    assert len(drawn.questions) == 5
    assert drawn == evalset.sampled(each, 5)
    assert [each.questions.index(one) for one in drawn.questions] == sorted(map(each.questions.index, drawn.questions))
    assert drawn.notes[-1] == "many: 5 of 30 questions, drawn with seed 7"
    assert evalset.sampled(each, 30) is each
    result = await recall.run_recall(tmp_path / "many", embedder=None, plan=recall.Plan(sample=5))
    assert result["sets"]["many"]["n"] == 5


def test_the_trace_of_one_question_tells_where_its_evidence_came_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = talk("a", ("Ann", "The cat sleeps"), ("Ann", "The marmalade is in the larder"))
    asked = question("a", "Where is the marmalade?", "a:1", "a:9", question_id="q7", category="food")
    data = written(tmp_path / "mine", [told], [question("a", "Who?", "a:0"), asked])
    assert recall.main(data, as_json=False, embedder="none", trace="q7") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "q7 (food): Where is the marmalade?"
    assert lines[1] == "  evidence 1, a:1, place 1: 2024-03-05 Ann: The marmalade is in the larder"
    assert lines[2] == "  evidence 2, a:9, not shown: no such line"
    assert lines[3].startswith(" *  1 ")
    assert "words" in lines[4]
    assert recall.main(data, as_json=False, embedder="none", trace="q8") == 2
    assert "no set has a question q8" in capsys.readouterr().err


def test_without_the_library_for_pictures_the_figures_are_printed_all_the_same(
    small_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert recall.main(small_set, as_json=True, embedder="none", plots=tmp_path / "plots") == 2
    printed = capsys.readouterr()
    assert set(json.loads(printed.out)["sets"]) == {"mine"}
    assert plot.HINT in printed.err


async def test_the_picture_has_recall_by_places_and_by_tokens_of_both_systems(
    small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = Sheet()
    monkeypatch.setattr(plot, "figure", lambda **_size: sheet)
    figures = (await recall.run_recall(small_set, embedder=None))["sets"]["mine"]
    path = curves.draw(tmp_path / "plots", "mine", figures)
    assert path.read_text() == "drawn"
    assert [(label, len(x), len(y)) for x, y, label in sheet.lines] == [
        ("recollect", 50, 50),
        ("bm25", 50, 50),
        ("recollect", 20, 20),
        ("bm25", 20, 20),
    ]


def test_tokens_are_estimated_by_language() -> None:
    assert estimated_tokens("four words are here", "en") == pytest.approx(5.2)
    assert estimated_tokens("四个汉字", "zh") == pytest.approx(2.8)


def test_the_control_ranks_by_bm25_and_keeps_the_order_of_equals() -> None:
    assert tokens("The cats 过敏 sat") == ["cat", "过", "敏", "过敏", "sat"]
    assert BM25(["tea", "cup of tea and tea", "jam", "milk"]).order("tea tea")[0] == 1
    assert BM25(["x", "y", "z"]).order("nothing") == [0, 1, 2]


async def test_speed_gives_every_figure_it_promises() -> None:
    shown: list[Table] = []
    plan = speed.Plan(sizes=(40,), cold_sizes=(20,), people=(1, 3), at_once=3, inserted=30, known=30)
    result = await speed.run_speed(plan, shown=shown.append)
    assert set(result["hot"]["40"]) >= {"scan_ms", "recall_ms", "x_loop", "ratio_numpy", "recall_at_10"}
    assert result["hot"]["40"]["recall_at_10"] >= 0.99
    assert set(result["cold"]["20"]) >= {"load_ms", "recall_ms", "x_hot"}
    assert set(result["bytes_per_fact"]) == {"ram", "disk"}
    assert set(result["growth"]) == {"1", "3"}
    assert result["turn_overhead_ms"] > 0
    assert result["loop_lag_p99_ms"] >= 0
    assert min(result[key] for key in ("recalls_a_second", "vector_recalls_a_second", "insert_s", "file_bytes")) > 0
    assert 0 < result["hot"]["40"]["disk"] < 10_000
    assert result["on_loop_ms_max"] > 0, "so few vectors are worked on where the loop is"
    assert result["whatdoyouknow_ms"] > 0
    assert [table.row_count for table in shown] == [1, 1, 3, 2, 7]
    json.dumps(result)


async def test_speed_measures_facts_that_are_found(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    await people.fill(path, ["ann", "bob"], 12)
    async with people.opened(path) as memory:
        bob = await people.person(memory, "bob")
        known = await memory.known(bob.owner, room=bob.room, now=people.NOW)
        assert [entry.kind for entry in known] == ["fact"] * 12
        assert await memory.embed(bob.owner) == 1, "only the line that all of them cite has no vector yet"
        found = await memory.recall(bob.owner, known[7].text, room=bob.room, now=people.NOW)
    assert found.units[0].id == known[7].id


async def test_vector_work_counts_only_where_the_loop_runs() -> None:
    here, matrix = list[float](), np.ones((1, 4), np.float32)
    with speed.vector_work(here):
        await asyncio.to_thread(Vectors().add, [b"a"], matrix)
        assert here == []
        Vectors().add([b"a"], matrix)
    Vectors().add([b"a"], matrix)
    assert len(here) == 1


async def test_steps_of_a_coroutine_are_timed_and_its_result_and_errors_come_through() -> None:
    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    async def broken() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    steps: list[float] = []
    assert await speed.stepped(work(), steps) == "done"
    assert len(steps) == 2
    with pytest.raises(ValueError, match="no"):
        await speed.stepped(broken(), steps)


def test_the_scan_is_held_against_the_exact_best() -> None:
    row = scan.scan_times(50, 16)
    assert row["recall_at_10"] >= 0.99
    assert row["x_loop"] == pytest.approx(row["loop_ms"] / row["scan_ms"], rel=0.05)


def test_given_vectors_are_the_same_for_the_same_text() -> None:
    assert (people.drawn("a") == people.drawn("a")).all()
    assert float(people.drawn("a") @ people.drawn("b")) < 0.2
