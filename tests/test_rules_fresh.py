"""Rules against lines as people chat, which were labelled before the rules had seen them."""

from __future__ import annotations

import pytest

from tests.rules_fresh import fits, lines, measured

PRECISE = 0.98
STATED = 0.7
"""Least shares by the aim of the write gate."""
SETS = (
    *(f"rules_fresh{number}.jsonl" for number in ("", "_2", "_3", "_4", "_5")),
    "rules_stranger.jsonl",
    "rules_stranger_2.jsonl",
)


@pytest.mark.parametrize("name", SETS)
def test_what_people_say_is_read_precisely_and_mostly(name: str) -> None:
    tally = measured(name)
    assert tally.precision >= PRECISE, tally.wrong
    assert tally.recall >= STATED, tally.missed


@pytest.mark.parametrize("name", SETS)
def test_no_trap_is_stored(name: str) -> None:
    tally = measured(name)
    assert [each for each in tally.stored if each.startswith("trap") and tally.stored[each]] == []


@pytest.mark.parametrize("name", SETS)
def test_about_half_of_the_lines_are_traps(name: str) -> None:
    labelled = lines(name)
    assert 0.35 <= sum(not line["expect"] for line in labelled) / len(labelled) <= 0.65


@pytest.mark.parametrize(
    ("short", "label", "right"),
    [
        ("like=cats", "like=Cats", True),
        ("like=cats", "dislike=cats", False),
        ("wife.job=vet", "job=vet", False),
        ("!home=Oslo", "home=Oslo", False),
        ("@2025-03-14T00:00~I fly", "@2025-03-14~fly", True),
        ("@2025-03-14T00:00~I fly", "@2025-03-15~fly|@2025-03-14~fly", True),
        ("@2025-03-14T00:00~I fly", "sister.@2025-03-14~fly", False),
        ("@2025-03-14T00:00 FREQ=DAILY~I run", "@FREQ=DAILY~run", True),
        ("=~my locker is 12", "=~12", True),
        ("=~my locker is 12", "@2025~12", False),
    ],
)
def test_a_label_fits_only_what_it_asks_for(short: str, label: str, right: bool) -> None:  # noqa: FBT001
    assert fits(short, label) == right
