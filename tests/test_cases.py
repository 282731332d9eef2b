"""Every case of the public reports has what proves it (cases/proved.toml), and that exists."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.faultline import scenarios

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
