"""Secrets against a labelled list: every one is told, and no number, hash or file name of daily life is."""

from __future__ import annotations

import json
import random
import re
import string
from pathlib import Path

import pytest

from memory import checks

LISTED = Path(__file__).parent / "cases" / "secrets.jsonl"
_LETTERS = {
    "hex": "0123456789abcdef",
    "a": string.ascii_letters + string.digits,
    "A": string.ascii_uppercase + string.digits,
    "w": string.ascii_letters + string.digits + "-_",
    "l": string.ascii_letters,
    "d": string.digits,
    "b": string.ascii_letters + string.digits + "+/",
}


def filled(text: str, seed: int = 0) -> str:
    """Fill in ``{hex40}``: the file holds no ready-made key, for hosts refuse a push that looks like one."""
    chosen = random.Random(f"{seed}{text}")
    return re.sub(
        r"\{(hex|[aAwldb])(\d+)\}",
        lambda found: "".join(chosen.choice(_LETTERS[found[1]]) for _ in range(int(found[2]))),
        text,
    )


ROWS = [json.loads(line) for line in LISTED.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("row", [row for row in ROWS if row["kind"]], ids=lambda row: row["text"][:30])
def test_each_secret_of_the_list_is_told_with_its_kind(row: dict[str, str]) -> None:
    told = {checks.secret(filled(row["text"], seed)) for seed in range(5)}
    # "my api key is …" is a password by its words and a key by its shape; either keeps it out.
    assert told <= {row["kind"], "key", "password"} if row["kind"] in {"key", "password"} else told == {row["kind"]}


@pytest.mark.parametrize("row", [row for row in ROWS if not row["kind"]], ids=lambda row: row["text"][:30])
def test_no_harmless_line_of_the_list_is_a_secret(row: dict[str, str]) -> None:
    assert {checks.secret(filled(row["text"], seed)) for seed in range(5)} == {None}


@pytest.mark.parametrize("before", ["密钥是", "我的", "key:", "(", "「"])
def test_a_key_is_told_whatever_stands_before_it(before: str) -> None:
    assert checks.secret(before + filled("ghp_{a36}")) is not None
    assert checks.secret(before + filled("{d9}:AA{w33}")) is not None
