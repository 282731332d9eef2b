"""Thinking is taken out of an answer wherever the chunks fall; talk about it stays."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reasoning import GrowingAnswer, visible

HARMONY = "<|channel|>analysis<|message|>secret<|end|><|start|>assistant<|channel|>final<|message|>Hello<|return|>"

THOUGHTS = [
    ("<think>secret</think>Hello", "Hello"),
    ("  <THINK>\nsecret\n</Think>\n\nHello", "Hello"),
    ("<thinking>secret</thinking> Hello", "Hello"),
    ("<reasoning>secret</reasoning>Hello", "Hello"),
    ("<thought>secret</thought>Hello", "Hello"),
    ("<seed:think>secret</seed:think>Hello", "Hello"),
    ("[THINK]secret[/THINK]Hello", "Hello"),
    ("◁think▷secret◁/think▷Hello", "Hello"),
    (HARMONY, "Hello"),
    ("<think>secret</think>\n<think>secret</think> Hello", "Hello"),
    ("<think>secret <think>secret</think> secret</think>Hello", "Hello"),
    ("<think>secret", ""),
    ("<think>secret ```\n</think>Hello ```", "Hello ```"),
    ("<think/>Hello", "Hello"),
    ("secret</think>Hello", "Hello"),
    ("secret about <think> tags\n</think>\nHello", "Hello"),
    ("secret ```py\nsecret\n</think>\nHello", "Hello"),
    ("```py\nsecret\n</think>\nHello", "Hello"),
    ("Hello\n<think>\nsecret\n</think>\nthere", "Hello\n\nthere"),
    ("Hello\n<think>\nsecret", "Hello"),
    ("secret\n<think>\nsecret\n</think>\nsecret</think>Hello", "Hello"),
]

TALK = [
    "Write `<think>` and `</think>` around it.",
    "```\n<think>\nx\n</think>\n```\nSee?",
    "~~~html\n</think>\n~~~",
    "Between <think>x</think> the model thinks.",
    "a < b, b > c, [T] and <b>bold</b>",
    "I think <thin lines> are fine <",
    "``a ` </think> ` b``",
]


@pytest.mark.parametrize(("raw", "shown"), THOUGHTS)
def test_thinking_is_hidden(raw: str, shown: str) -> None:
    assert visible(raw) == shown


@pytest.mark.parametrize("raw", TALK)
def test_talk_about_thinking_stays(raw: str) -> None:
    assert visible(raw) == raw


@pytest.mark.parametrize("raw", [raw for raw, _ in THOUGHTS[:10]])
def test_a_block_that_opens_the_answer_never_shows_a_bit_of_itself(raw: str) -> None:
    frames = [visible(raw[:end], complete=False) for end in range(len(raw))]
    assert all("Hello".startswith(frame) for frame in frames)


def test_words_before_a_lone_closing_tag_are_withdrawn_when_it_comes() -> None:
    answer = GrowingAnswer()
    answer.add("secret")
    assert answer.visible() == "secret"
    answer.add("</think>")
    assert answer.visible() == ""
    answer.add("Hello")
    assert answer.visible(complete=True) == "Hello"


@pytest.mark.parametrize("raw", TALK)
def test_an_answer_without_thinking_only_ever_grows(raw: str) -> None:
    frames = [visible(raw[:end], complete=False) for end in range(len(raw) + 1)]
    assert all(later.startswith(earlier) for earlier, later in pairwise(frames))


TAGS = (
    "<think> </think> <thinking> </thinking> [THINK] [/THINK] <think/> <|channel|> analysis final <|message|> <|end|>"
)
FRAGMENTS = st.sampled_from([*TAGS.split(), "`", "```", "~~~", "\n", "\n\n", " ", "Hello", "花粉", "<", "/", ">"])


@given(fragments=st.lists(FRAGMENTS, max_size=14), cuts=st.lists(st.integers(0, 150), max_size=8))
def test_where_the_chunks_are_cut_changes_nothing(fragments: list[str], cuts: list[int]) -> None:
    raw = "".join(fragments)
    answer = GrowingAnswer()
    for start, end in pairwise(sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})):
        answer.add(raw[start:end])
        answer.visible()
    assert answer.visible(complete=True) == visible(raw)


@given(thought=st.text(st.characters(exclude_characters="<[◁"), max_size=40), said=st.sampled_from(["Hello", "花粉"]))
def test_any_thought_is_hidden_in_any_notation(thought: str, said: str) -> None:
    for opening, closing in (("<think>", "</think>"), ("", "</think>"), ("[THINK]", "[/THINK]")):
        fences = thought if opening else thought.replace("`", "").replace("~", "")
        assert visible(f"{opening}{fences}{closing}{said}") == said


def test_a_long_answer_takes_milliseconds() -> None:
    raw = "<think>" + "x " * 20_000 + "</think>" + "word `code` <b> text\n" * 5_000
    begin = time.perf_counter()
    assert visible(raw).startswith("word")
    assert time.perf_counter() - begin < 1
