"""More than 2,000 answers of a model that means harm or knows no better, through parse, verify and gate over a file.

Whatever comes: no crash, no row without the person's own words, no half fact; lines whose answer was none are kept for
another try with the reason, and the log tells an answer that was cut off from one that found nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.settings import DistilSettings
from memory.answers import FAULTS
from memory.distill import Distiller, DistilReport
from memory.model import Entry, Message, ProfileLine
from memory.ports import Completion
from memory.sessions import Session
from tests.conftest import Clock
from tests.shelf import Shelf

CORPUS: Final = tuple(
    json.loads(row)
    for row in (Path(__file__).parent / "cases" / "answers_hostile.jsonl").read_text("utf-8").split("\n")
    if row
)
"""Each answer (``head``, ``answer`` times ``times``, ``tail``; ``finish``), the ``fault`` it is or how many ``items``
it holds, and what it ``may`` leave in memory besides the true claims below. A lie leaves nothing."""
EXAMPLES: Final = 500
"""Of each of the two random kinds."""

TALK: Final = (
    ("said", "我住在成都，养了一只猫叫煤球"),
    ("bot", "煤球真可爱，你喜欢爬山吗？"),
    ("said", "我对花生过敏，周三下午两点面试"),
    ("said", "I work at a bakery in Lyon"),
    ("forwarded", "我喜欢抽烟"),
)
CLAIMS: Final[tuple[dict[str, Any], ...]] = (
    {
        "kind": "profile",
        "subject": "self",
        "text": "",
        "attribute": "home",
        "value": "成都",
        "confidence": 0.9,
        "cites": [{"message": 1, "quote": "我住在成都"}],
    },
    {"kind": "fact", "text": "我养了一只猫叫煤球", "cites": [{"message": 1, "quote": "养了一只猫叫煤球"}]},
    {"kind": "profile", "attribute": "allergy", "value": "花生", "cites": [{"message": 3, "quote": "我对花生过敏"}]},
    {
        "kind": "event",
        "text": "我面试",
        "when": "周三下午两点",
        "start": "2026-03-04T14:00",
        "cites": [{"message": 3, "quote": "周三下午两点面试"}],
    },
    {"kind": "fact", "text": "I work at a bakery in Lyon", "cites": [{"message": 4, "quote": "bakery in Lyon"}]},
)
WHOLE: Final = frozenset({"成都", "我养了一只猫叫煤球", "花生", "我面试", "I work at a bakery in Lyon"})
"""All that the claims above may leave in memory; anything else is half a fact or another one."""


@dataclass
class Model:
    """Gives the one answer it was told to give."""

    answer: Completion = field(default_factory=lambda: Completion("", "stop"))

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        assert messages
        assert schema is not None
        assert max_tokens > 0
        return self.answer


class Ear(logging.Handler):
    """Keeps what the log says."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@dataclass
class Desk:
    """One file with one session that is distilled again for each answer, as if for the first time."""

    loop: asyncio.AbstractEventLoop
    shelf: Shelf
    session: Session
    own: dict[int, Message]
    model: Model
    distiller: Distiller
    ear: Ear

    @classmethod
    async def open(cls, path: Path) -> Desk:
        """Write the session."""
        shelf = await Shelf.open(path, Clock())
        await shelf.db._writer.execute("PRAGMA synchronous = OFF")
        for kind, text in TALK:
            await shelf.say(text, bot=kind == "bot", kind="said" if kind == "bot" else kind)
        own = {line.id: line for line in shelf.said if line.role == "user" and line.kind == "said"}
        shelf.clock.advance(hours=1)
        (session,) = await shelf.sessions.due(shelf.owner, now=shelf.clock())
        model = Model()
        distiller = Distiller(
            shelf.db, shelf, shelf.sessions, completer=model, clock=shelf.clock, settings=DistilSettings()
        )
        ear = Ear()
        logger = logging.getLogger("memory.distill")
        logger.addHandler(ear)
        logger.setLevel(logging.INFO)
        return cls(asyncio.get_running_loop(), shelf, session, own, model, distiller, ear)

    async def close(self) -> None:
        """Stop listening and close the file."""
        logging.getLogger("memory.distill").removeHandler(self.ear)
        await self.shelf.db.close()

    def judge(
        self, answer: str, finish: Literal["stop", "length", "other"] = "stop"
    ) -> tuple[DistilReport, list[Entry]]:
        """Distil with this answer, hold the outcome against the rules, and take it all back."""
        return self.loop.run_until_complete(self._judge(Completion(answer, finish, 1)))

    async def _judge(self, answer: Completion) -> tuple[DistilReport, list[Entry]]:
        self.model.answer = answer
        self.ear.lines.clear()
        report = await self.distiller.distil(self.shelf.owner, self.session)
        stored = await self.shelf.history()
        for entry in stored:
            assert entry.provenance.citations
            for citation in entry.provenance.citations:
                assert citation.message in self.own
                assert citation.quote
                assert citation.quote in self.own[citation.message].text
            assert any(mark.isalnum() for mark in entry.text)
        await self._keeps(report, stored)
        await self._again()
        return report, stored

    async def _keeps(self, report: DistilReport, stored: list[Entry]) -> None:
        (row,) = await self.shelf.db.fetch("SELECT waiting, attempts, failed, distilled_to FROM session_members")
        said = "\n".join(self.ear.lines)
        if report.outcome == "retry":
            assert stored == []
            assert tuple(row) == (1, 1, report.reason, 0)
            assert FAULTS[report.reason] in said  # type: ignore[index]
            assert "nothing found" not in said
            assert ("cut off" in said) == (report.reason == "cut")
        else:
            assert report.outcome == "distilled"
            assert tuple(row) == (0, 0, None, self.shelf.said[-1].id)
            assert ("nothing found" in said) == (report.items == 0)
            assert "cut off" not in said

    async def _again(self) -> None:
        async with self.shelf.db.transaction():
            for table in ("citations", "profile", "timeline", "facts", "spending"):
                await self.shelf.db.execute(f"DELETE FROM {table}")
            await self.shelf.db.execute(
                "UPDATE session_members SET distilled_to = 0, waiting = 1, attempts = 0, not_before = 0, failed = NULL"
            )


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    loop = asyncio.new_event_loop()
    opened = loop.run_until_complete(Desk.open(tmp_path_factory.mktemp("fuzz") / "r.db"))
    yield opened
    loop.run_until_complete(opened.close())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def statements(entries: Sequence[Entry]) -> set[str]:
    return {entry.value if isinstance(entry, ProfileLine) else entry.text for entry in entries}


def answered(*claims: Mapping[str, Any]) -> str:
    return json.dumps({"items": claims}, ensure_ascii=False)


ALL: Final = answered(*CLAIMS)
HALVES: Final = tuple(
    prefix + ALL.encode()[:end].decode("utf-8", "replace") + suffix
    for prefix, suffix, step in (("", "", 1), ("```json\n", "\n```", 8), ("<think>ok</think>", "", 9))
    for end in range(1, len(ALL.encode()), step)
)


def test_there_are_more_than_two_thousand_answers() -> None:
    assert len(CORPUS) >= 150
    assert len({case["id"] for case in CORPUS}) == len(CORPUS)
    assert len(CORPUS) + len(HALVES) + 2 * EXAMPLES > 2_000


def test_a_whole_answer_is_stored_whole(desk: Desk) -> None:
    report, stored = desk.judge(ALL)
    assert report.drops == {}
    assert statements(stored) == WHOLE


def test_every_answer_of_the_corpus_ends_as_it_should(desk: Desk) -> None:
    wrong: dict[str, Any] = {}
    for case in CORPUS:
        answer = case.get("head", "") + case["answer"] * case.get("times", 1) + case.get("tail", "")
        report, stored = desk.judge(answer, case.get("finish", "stop"))
        expected = (case.get("fault", ""), case.get("items", 0))
        allowed = set[str]() if case["id"].startswith("lie-") else WHOLE | set(case.get("may", ()))
        if (report.reason, report.items) != expected or not statements(stored) <= allowed:
            wrong[case["id"]] = (report.reason, report.items, statements(stored))
    assert wrong == {}


def test_an_answer_that_breaks_off_anywhere_stores_nothing_of_itself(desk: Desk) -> None:
    for half in HALVES:
        report, _ = desk.judge(half)
        assert report.outcome == "retry", half
        assert report.reason in {"cut", "no_json"}, half


def test_an_answer_the_endpoint_calls_cut_stores_nothing_even_if_it_looks_whole(desk: Desk) -> None:
    for finish in ("length", "other"):
        report, _ = desk.judge(ALL, finish)
        assert (report.outcome, report.reason) == ("retry", "cut")


ODD: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just([]) | st.just({})
)
NUMBERS = st.integers(-2, 9) | st.sampled_from(["1", "[3]", "#4", "five", "", None, 1.0, True, 10**12, float("nan")])
QUOTES = st.sampled_from(
    ["", "我住在成都", "养了一只猫", "你喜欢爬山吗", "我喜欢抽烟", "周三下午两点面试", "Lyon", "没说过"]
)
CITES = st.lists(NUMBERS | st.fixed_dictionaries({"message": NUMBERS}, optional={"quote": QUOTES | ODD}), max_size=3)


@st.composite
def twisted(draw: st.DrawFn) -> dict[str, Any]:
    """One of the claims with something about it changed, but never its words."""
    claim = dict(draw(st.sampled_from(CLAIMS)))
    names = ["kind", "subject", "attribute", "when", "start", "end", "until", "confidence", "importance", "forgettable"]
    for name in draw(st.lists(st.sampled_from(names), max_size=3)):
        claim[name] = draw(ODD)
    if draw(st.booleans()):
        claim["cites"] = draw(CITES | NUMBERS | ODD)
    if draw(st.integers(0, 9)) == 0:
        claim[draw(st.sampled_from(["text", "value"]))] = draw(st.none() | st.just({}) | st.just([]) | st.just(""))
    return claim


WRAPPINGS = st.sampled_from([
    "{}", "```json\n{}\n```", "Sure! {}", "{} :-)", "<think>[1] {{ </think>{}", "{}\n{}", "[1] {}", "\ufeff{}", "{},",
])  # fmt: skip


@given(st.lists(twisted() | ODD, max_size=5), st.sampled_from(["items", "facts", "profile", "result", ""]), WRAPPINGS)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_claims_of_any_form_leave_nothing_but_whole_cited_facts(
    desk: Desk, claims: list[Any], key: str, wrapping: str
) -> None:
    body = json.dumps({key: claims} if key else claims, ensure_ascii=False)
    _, stored = desk.judge(wrapping.replace("{{", "\0").replace("{}", body).replace("\0", "{"))
    assert statements(stored) <= WHOLE


NOISE = st.lists(
    st.sampled_from(
        [*"{}[]\"',:\\ \n", "null", "NaN", "```", "<think>", "</think>", '"items"', "，", "\x00", "\ud800", "我"]
    ),
    max_size=4,
).map("".join)


@given(st.integers(0, len(ALL)), st.integers(0, 30), NOISE)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_damage_anywhere_in_an_answer_does_no_harm(desk: Desk, place: int, gone: int, noise: str) -> None:
    desk.judge(ALL[:place] + noise + ALL[place + gone :])
