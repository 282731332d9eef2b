"""The window: whole turns, newest first kept, never over budget."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from bot.window import cut, turns
from memory.model import Message, Role

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def talk(*lines: tuple[Role, int]) -> list[Message]:
    """Lines of (role, tokens), a minute apart."""
    return [
        Message(n, 1, 1, role, "", NOON + timedelta(minutes=n), f"line {n}", tokens=tokens)
        for n, (role, tokens) in enumerate(lines)
    ]


def test_a_turn_begins_with_a_persons_first_line_after_a_reply() -> None:
    lines = talk(("user", 1), ("user", 1), ("bot", 1), ("user", 1), ("bot", 1))
    assert [len(turn) for turn in turns(lines)] == [3, 2]


def test_the_oldest_whole_turns_go_first() -> None:
    lines = talk(("user", 10), ("bot", 10), ("user", 10), ("bot", 10))
    window = cut(lines, 39)
    assert [line.id for line in window.lines] == [2, 3]
    assert (window.dropped, window.tokens) == (2, 20)


def test_a_turn_over_the_budget_leaves_an_empty_window() -> None:
    assert cut(talk(("user", 10), ("bot", 10)), 19).lines == ()


LINES = st.lists(st.tuples(st.sampled_from(["user", "bot"]), st.integers(0, 50)), max_size=30)


@given(LINES, st.integers(0, 400))
def test_a_window_is_the_newest_whole_turns_within_budget(spec: list[tuple[Role, int]], budget: int) -> None:
    lines = talk(*spec)
    window = cut(lines, budget)
    assert window.tokens == sum(line.tokens for line in window.lines) <= budget
    assert list(window.lines) == lines[len(lines) - len(window.lines) :]
    assert window.dropped + len(window.lines) == len(lines)
    ends = {0, *(sum(len(t) for t in turns(lines)[:n]) for n in range(len(turns(lines)) + 1))}
    assert window.dropped in ends
