"""Every case of the public reports has what proves it (cases/proved.toml); here, too, what only cases ask for."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from config.settings import Settings
from memory import Memory
from memory.embedding import text_hash
from memory.ports import Completion, EmbedderUnavailable, Vector
from tests.conftest import Clock
from tests.faultline import scenarios
from tests.house import House
from tests.servers.openai_server import OpenAIServer
from tests.talk import talking

HERE: Final = Path(__file__).parent
PROVED: Final[dict[str, dict[str, Any]]] = tomllib.loads((HERE / "cases" / "proved.toml").read_text("utf-8"))
KINDS: Final = {"A": 8, "B": 7, "C": 9, "D": 5, "E": 4, "F": 6}
"""How many cases there are of each kind."""
_NAMED: Final = re.compile(r"_([a-f]\d\d)(?=_)")


def existing() -> set[str]:
    """Every test there is, by file and name, and every row of the table of faults."""
    tests = {
        f"{file.name}::{node.name}"
        for file in HERE.glob("test_*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
    return tests | {f"table: {area}: {name}" for area, name in scenarios.SCENARIOS}


def named(case: Mapping[str, Any]) -> Iterator[str]:
    yield from case["tests"]
    for variant in case.get("variants", ()):
        yield from variant


def test_every_case_is_there_and_every_variant_of_kind_b_and_f_has_something_that_proves_it() -> None:
    assert {kind: sum(id_[0] == kind for id_ in PROVED) for kind in KINDS} == KINDS
    for id_, case in PROVED.items():
        assert case["tests"], id_
        assert all(case.get("variants", [["none"]])), id_
    assert sum(len(case.get("variants", ())) for case in PROVED.values()) == 43


@pytest.mark.parametrize("id_", list(PROVED))
def test_what_proves_a_case_exists(id_: str) -> None:
    assert set(named(PROVED[id_])) <= existing()


def test_what_bears_the_number_of_a_case_is_in_the_list() -> None:
    for test in existing():
        for id_ in _NAMED.findall(test.partition("::")[2]):
            assert test in PROVED[id_.upper()]["tests"], test


class Finding:
    """A model that finds three facts in a session, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        del schema, max_tokens
        self.asked += 1
        lines = re.findall(r"^\[(\d+)\] \S+ \S+ \S+ \S+?: (.+)$", messages[-1]["content"], re.MULTILINE)
        blank: dict[str, Any] = dict.fromkeys(("attribute", "value", "when", "start", "end", "until"), "")
        items = [
            {
                "kind": "fact", "subject": "self", "text": words, "confidence": 0.9, "importance": 0.5,
                "cites": [{"message": int(number), "quote": words}], "forgettable": False, "negates": False, **blank,
            }
            for number, words in lines
        ]  # fmt: skip
        return Completion(json.dumps({"items": items}), "stop", 10)


class Dying:
    """An embedder that the program dies with, until it is ``mended``."""

    model = "dying"
    dimensions = 8
    mended = False

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        if not self.mended:
            raise EmbedderUnavailable("killed here")
        vectors = (np.frombuffer(text_hash(text) * 2, np.uint8)[:8].astype(np.float32) + 1 for text in texts)
        return [vector / np.linalg.norm(vector) for vector in vectors]


async def test_f02_facts_whose_vectors_a_kill_prevented_get_them_without_another_question_to_the_model(
    tmp_path: Path, clock: Clock
) -> None:
    said = (
        "Our neighbour grows quinces in the garden",
        "The lighthouse at the point was painted green",
        "There is a tandem in the cellar of the library",
    )
    model, embedder = Finding(), Dying()
    parts: dict[str, Any] = {"completer": model, "embedder": embedder}
    memory = await Memory.open(tmp_path / "r.db", Settings(_env_file=None), clock=clock, count=len, **parts)
    owner = await memory.account("test", "1001", name="Lin")
    house = House(tmp_path / "r.db", clock, memory, owner, await memory.chat(owner, "dm:1001"), parts)
    for text in said:
        await house.hear(text)
    clock.advance(hours=2)
    await house.memory.run_due(now=clock())
    assert (model.asked, sorted(await house.known())) == (1, sorted(said))
    await house.reopen()
    facts = "SELECT text FROM facts ORDER BY text"
    assert house.rows(facts) == [(text,) for text in sorted(said)]
    assert house.rows("SELECT count(*) FROM embeddings") == [(0,)]
    clock.advance(days=1)
    found = await house.memory.recall(owner, "Where is the tandem?", room=house.chat, now=clock())
    assert said[2] in [unit.text for unit in found.units]
    embedder.mended = True
    for _ in range(3):
        clock.advance(hours=2)
        await house.memory.run_due(now=clock())
    assert house.rows(facts) == [(text,) for text in sorted(said)]
    hashes = {text_hash(text) for text in said}
    assert {bytes(row[0]) for row in house.rows("SELECT text_hash FROM embeddings")} >= hashes
    assert model.asked == 1
    await house.memory.close()


async def test_f09_the_second_of_two_messages_is_answered_though_the_model_hangs_on_the_first(
    data_dir: Path, clock: Clock
) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server, model={"timeout_seconds": 1.0}) as talk:
        server.fault(match="喀什", hang=True)
        server.on("带什么", reply="防晒霜")
        first = asyncio.create_task(talk.say("我下周去喀什"))
        while not server.chats:  # noqa: ASYNC110 - what comes before the model is asked is answered as one with it
            await asyncio.sleep(0.01)
        second = asyncio.create_task(talk.say("要带什么？"))
        assert (await first).startswith("我现在连不上")
        assert await second == "防晒霜"
        assert [text for role, _, text in talk.rows() if role == "user"] == ["我下周去喀什", "要带什么？"]
        assert "我下周去喀什" in server.chats[-1].prompt
