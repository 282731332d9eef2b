"""The scripted model's verdicts: the gold relation of what two sentences tell, and nothing of what it is not shown."""

from __future__ import annotations

import pytest

from bot.bench.rulings import ruled, ruling
from bot.bench.writeset import Relation, Update


def update(relation: Relation) -> Update:
    return Update("u", "en", relation, "I keep two goats.", "The goats are sold, thank God.", "?", "goats", "sold")


@pytest.mark.parametrize(
    ("relation", "expected"),
    [("supersede", "supersedes"), ("correction", "supersedes"), ("duplicate", "same"), ("supplement", "different")],
)
def test_the_relation_of_two_messages_is_that_of_what_tells_them(relation: Relation, expected: str) -> None:
    assert ruling("I keep two goats", "The goats are sold", [update(relation)]) == expected


def test_two_sentences_with_one_value_say_the_same_and_strangers_are_different() -> None:
    known = [update("supersede")]
    assert ruling("My pets: goats", "I keep two goats", known) == "same"
    assert ruling("I keep two goats", "I bake bread", known) == "different"
    assert ruling("The goats are sold", "I keep two goats", known) != "supersedes"


def test_only_the_pairs_of_the_prompt_are_answered() -> None:
    prompt = "[1] A (2025-03-01): I keep two goats\n[1] B (2025-03-02): All sold\n\n[2] A (2025-03-01): half a pair"
    assert ruled(prompt, [update("supersede")]) == [{"pair": 1, "verdict": "supersedes"}]
    assert ruled("no pairs", [update("supersede")]) == []
