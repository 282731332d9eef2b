from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import combinations
from types import FrameType
from typing import Any

import pytest
import regex
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from bot.commonmark import events, read, words
from bot.markdown import LONGEST, Mark, Part, discord_parts, summary, telegram_parts
from bot.text import clean, is_blank, utf16_length

ANY_TEXT = st.text(st.characters())
WRITTEN = [
    "a", "word ", "Done. ", "好。", "汉字", "\n", "\n\n", "😀", "👩‍👩‍👧‍👦", "🇩🇪", "e\u0301",
    "`", "**", "*", "_", "~~", "||", "> ", "- ",
    "# ", "[x](https://a.b/c)", "![i](https://a.b)", "<b>", "&amp;", "$", "：", "“", "”", "\t", "\u200d", "\u202e",
    "https://x.org/a_b*c", "__init__", "]:", "(", ")", "[", "]", "<@123>",
]  # fmt: skip
HARD = [
    "```py\n", "```\n", "\n```\n", "~~~\n", "    ", "1. ", "7) ", "01. ", "#### ", "[y](z)", "|a|b|\n|-|-|\n|c|d|\n",
    "<br>", "\\", "```a b\n", "```js // c\n", "\n```d", "[t](tg://x?id=5)",
    "\\(x\\)", "\\[y\\]", "\n---\n", "- [x] ", "\ud800", "\x00",
]  # fmt: skip
SOUP = st.lists(st.sampled_from(WRITTEN + HARD), max_size=60).map("".join)
PROSE = st.lists(st.sampled_from(WRITTEN), max_size=60).map("".join)
SPANS = st.tuples(
    st.lists(st.sampled_from(["word", "Done.", "好。", "汉字", "😀", "🇩🇪", "x"]), min_size=1).map(" ".join),
    st.lists(st.sampled_from(["**", "~~", "||", "*"]), unique=True),
).map(lambda span: "".join(span[1]) + span[0] + "".join(reversed(span[1])))
NESTED = st.lists(SPANS, min_size=1, max_size=6).map(" ".join)
LINES = st.lists(st.sampled_from(["```py\n", "```\n", "~~~\n", "x = 1\n", "text\n", "好。\n", "\n", "😀 **b**\n"])).map(
    "".join
)
FENCED = [
    ("```npm install foo\nnpm start\n```", "npm install foo\nnpm start", None),
    ("```bash # install deps\npip install x\n```", "# install deps\npip install x", "bash"),
    ('```json {"a": 1}\n{"b": 2}\n```', '{"a": 1}\n{"b": 2}', "json"),
    ("```注意 这里\ncode\n```", "注意 这里\ncode", None),
    ('```python title="main.py"\nx = 1\n```', 'title="main.py"\nx = 1', "python"),
    ("```ts:src/main.ts\nx = 1\n```", "src/main.ts\nx = 1", "ts"),
    ("~~~hello world ~~~\ncode\n~~~", "hello world ~~~\ncode", None),
    ("~~~ ~~~\ncode\n~~~", "~~~\ncode", None),
    ("> ```sh # a\n> ls\n> ```", "# a\nls", "sh"),
    ("- Run\n  ```ls -l\n  ls\n  ```", "• Run\nls -l\nls", None),
    ("```c++\nx\n```", "x", "c++"),
]
"""Code, what is shown of it with all that its fence says, and its language."""
HIDING = regex.compile(r"\]\(|\[x\]|[`~]{3}[^\n`~]", regex.IGNORECASE)
"""What hides words by right: addresses of links, the cross of a task, the language of code."""
LIMITS = st.sampled_from([60, 100, 400])
WHOLE = 10**6


def entities(part: Part) -> list[tuple[str, str]]:
    """Return what each mark of a part covers."""
    data = part.text.encode("utf-16-le")
    return [(mark.kind, data[2 * mark.offset : 2 * mark.end].decode("utf-16-le")) for mark in part.marks]


def work(call: Callable[[], object]) -> int:
    """Return how many lines of Python a call runs: what it costs, whatever else the machine does."""
    lines = 0

    def count(frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        call()
    finally:
        sys.settrace(before)
    return lines


def telegram(text: str, limit: int = 4096) -> list[Part]:
    return telegram_parts(text, markdown=True, limit=limit)


def discord(text: str, limit: int = 2000) -> list[str]:
    parts = discord_parts(text, markdown=True, limit=limit)
    assert all(part.marks == () for part in parts)
    return [part.text for part in parts]


def shown(text: str) -> str:
    """Return what is left of Markdown when it is drawn, without space."""
    source = read(text)
    seen = "".join(data for name, data, *_ in events(source.text) if name in ("Text", "Code"))
    return regex.sub(r"\s+|\|\|", "", source.restore(seen))


def without_space(text: str) -> str:
    return regex.sub(r"[\s\p{DI}]+", "", text)


# Telegram


@pytest.mark.parametrize(
    ("text", "says", "marks"),
    [
        ("**bold** and *it*, ~~gone~~", "bold and it, gone", ["bold", "italic", "strikethrough"]),
        ("||secret|| a || b", "secret a || b", ["spoiler"]),
        ("# Head\ntext", "Head\ntext", ["bold", "underline"]),
        ("- a\n  - b\n- [ ] c\n- [x] d", "• a\n  • b\n☐ c\n☑ d", []),
        ("> quoted\n> > twice\n\nx", "quoted\ntwice\n\nx", ["blockquote"]),
        ("- Run:\n  ```sh\n  ls\n  ```", "• Run:\nls", ["pre"]),
        ("[doc](https://ex.org/?a=1&b=2)", "doc", ["text_link"]),
        ("![alt](https://x.org/a.png)![](https://x.org/b)", "althttps://x.org/b", ["text_link", "text_link"]),
        ("**a `b` [`c`](https://d.e) f**", "a b c f", ["bold", "code", "bold", "text_link"]),
    ],
)
def test_telegram_is_told_by_entities_what_is_marked(text: str, says: str, marks: list[str]) -> None:
    [part] = telegram(text)
    assert part.text == says
    assert [kind for kind, _ in entities(part)] == marks


@pytest.mark.parametrize(
    "text",
    [
        "若 a<b && b>c 则 snake_case_name，3 * 4 * 5。**没有收尾",
        "List<String> <br/ > </b> <think> &lt; &copy;",
        "3*4*5=60, 2**3**4, f(x)*g(y)",
        "$5 and $6, $HOME/$PATH, ~5 ~ 6",
        r"\(a_1 * b_2\) and \[ \frac{1}{2} \] and $$x_1 * y_1$$",
        "def __init__(self) in __main__",
        "arr[i](x) and [note](see below)",
        "[Note]: word\n\n[a]: https://b.c",
        "2. two\n5. five\n6. six\n3. three",
        "01. one\n02. two",
        "```你好，世界",
        ">5 items\n>=3",
        "@everyone <@123> :smile:",
        "\u202babc \u200fdef",
    ],
)
def test_a_sign_that_is_meant_as_itself_is_shown_as_it_was_typed(text: str) -> None:
    [part] = telegram(text)
    assert part.text == text


@pytest.mark.parametrize(
    "text",
    [
        "**注意：**这里",
        "**50%**的",
        "中文**“引用”**中文",
        "是**✅完成**的",
        "**a。**的**“b”**",
        "~~旧。~~新",
        "**`x`**的",
        "**重点：**OK",
    ],
)
def test_emphasis_beside_chinese_punctuation_is_emphasis(text: str) -> None:
    [part] = telegram(text)
    assert part.text == regex.sub(r"[*~`]", "", text)
    assert part.marks
    assert shown(discord(text)[0]) == without_space(part.text)


def test_code_is_shown_as_it_is_with_its_language() -> None:
    [part] = telegram('```python\nif a<b and c*d*e: __init__("$5 &amp; \\n")\n```\n`<br> __x__ 3*4*5`')
    assert part.text == 'if a<b and c*d*e: __init__("$5 &amp; \\n")\n<br> __x__ 3*4*5'
    assert [(mark.kind, mark.language) for mark in part.marks] == [("pre", "python"), ("code", None)]


@pytest.mark.parametrize(("text", "says", "language"), FENCED)
def test_what_a_fence_says_beside_the_language_is_the_first_line_of_code(
    text: str, says: str, language: str | None
) -> None:
    [part] = telegram(text)
    assert part.text == says
    assert [mark.language for mark in part.marks if mark.kind == "pre"] == [language]
    [drawn] = discord(text)
    assert words(drawn) == words(text)
    assert regex.search(rf"```{regex.escape(language or '')}\n", drawn)


@pytest.mark.parametrize(
    "text", ["Text\n```done", "Hello\n```thanks\n", "x\n```py\n\n```\ny", "Run ```git pull origin\nmake\n``` now"]
)
def test_a_fence_without_code_is_shown_as_it_was_typed(text: str) -> None:
    [part] = telegram(text)
    assert part == Part(text.strip())
    [drawn] = discord(text)
    assert drawn.replace("\\", "") == text.strip()


def test_a_table_becomes_code_with_even_columns_on_both_platforms() -> None:
    text = "| 名称 | b |\n|---|---|\n| `x` | [y](https://u.org) |\n| a<br>b | 2 | more |\nAfter"
    table = (
        "名称 | b                 |\n-----+-------------------+-----\n"
        "x    | y (https://u.org) |\na b  | 2                 | more"
    )
    [part] = telegram(text)
    assert part.text == table + "\nAfter"
    assert entities(part) == [("pre", table)]
    assert discord(text) == [f"```\n{table}\n```\nAfter"]


@pytest.mark.parametrize(
    "text", ["Run: ```sh\nls -l\n``` and see", "Run: ```sh\nls -l\n```\nand see", "Run: ```sh\nls -l```\nand see"]
)
def test_code_that_begins_in_the_middle_of_a_line_is_a_block(text: str) -> None:
    [part] = telegram(text)
    assert part.text == "Run:\nls -l\nand see"
    assert part.marks == (Mark("pre", 5, 5, language="sh"),)
    assert discord(text) == ["Run: \n```sh\nls -l\n```\nand see"]


def test_marks_count_in_utf16_units_and_are_clipped_to_each_part() -> None:
    first, second, *_ = telegram("😀 **" + "😀好 " * 60 + "end**", limit=100)
    assert first.marks[0] == Mark("bold", 3, utf16_length(first.text) - 3)
    assert second.marks == (Mark("bold", 0, utf16_length(second.text)),)


def test_code_that_is_cut_keeps_its_language_and_its_indent_and_ends_with_a_line() -> None:
    code = "def f():\n" + "".join(f"    line_{n} = {n}\n" for n in range(60))
    parts = telegram(f"Look:\n\n```python\n{code}```\nDone.", limit=300)
    assert len(parts) > 3
    assert all(("pre", "python") in [(mark.kind, mark.language) for mark in part.marks] for part in parts[:-1])
    shown_code = "\n".join(covered for part in parts for kind, covered in entities(part) if kind == "pre")
    assert shown_code == code.rstrip()


def test_of_more_than_a_hundred_marks_the_useful_ones_stay() -> None:
    text = " ".join(f"*i{n}*" for n in range(99)) + " `code` [link](https://a.b) **bold**"
    [part] = telegram(text)
    kinds = [mark.kind for mark in part.marks]
    assert len(kinds) == 100
    assert kinds[-3:] == ["code", "text_link", "bold"]


def test_telegram_text_that_is_no_markdown_stays_as_it_is() -> None:
    assert telegram_parts("<b>&Co **x** _`*_[`*[", markdown=False) == [Part("<b>&Co **x** _`*_[`*[")]


@given(ANY_TEXT | SOUP, LIMITS, st.booleans())
@example(text="word \u200dx" * 20, limit=60, markdown=True)
def test_telegram_takes_every_part(text: str, limit: int, markdown: bool) -> None:  # noqa: FBT001
    for part in telegram_parts(text, markdown=markdown, limit=limit):
        part.text.encode()
        assert 0 < utf16_length(part.text) <= limit
        assert part.text.rstrip() == part.text
        assert part.text.lstrip() == part.text or (part.marks[0].kind, part.marks[0].offset) == ("pre", 0)
        assert without_space(part.text)
        assert len(part.marks) <= 100
        assert all(mark.offset >= 0 and mark.length > 0 and mark.end <= utf16_length(part.text) for mark in part.marks)
        assert all(covered.strip() == covered for kind, covered in entities(part) if kind != "pre")


@given(SOUP, LIMITS)
@example(text="||a **b|| c**", limit=60)
@example(text="**a ||b** c|| *d*", limit=60)
@example(text="||a *b|| ~~c* d~~||e||", limit=60)
def test_marks_lie_in_each_other_or_apart_and_never_around_code(text: str, limit: int) -> None:
    for part in telegram(text, limit):
        for mark, other in combinations(part.marks, 2):
            assert other.offset >= mark.end or other.end <= mark.end
            assert other.offset >= mark.end or mark.kind not in ("pre", "code")


@given(ANY_TEXT | SOUP, LIMITS)
def test_telegram_parts_joined_are_the_converted_text(text: str, limit: int) -> None:
    whole = telegram(text, WHOLE)
    assert without_space("".join(part.text for part in telegram(text, limit))) == without_space(
        "".join(part.text for part in whole)
    )


@given(ANY_TEXT | SOUP)
def test_no_word_is_lost_or_changed_or_moved(text: str) -> None:
    assume(not HIDING.search(text))
    tag = regex.compile(r"<br ?/?>", regex.IGNORECASE)
    said = "".join(part.text for part in telegram(text, WHOLE))
    assert words(tag.sub("", said)) == words(tag.sub("", clean(text))) or is_blank(clean(text))


@given(SOUP)
@example("[a](https://b.c/install) ```install\n\n```")
def test_no_letter_is_lost_but_those_of_addresses_and_languages(text: str) -> None:
    assume("<br>" not in text and "[x]" not in text)
    [*parts] = telegram(text, WHOLE)
    kept = "".join(f"{part.text}{mark.url}{mark.language}" for part in parts for mark in (*part.marks, Mark("", 0, 0)))
    written = Counter(words(clean(text))) if parts else Counter()
    assert not written - Counter(kept)
    assert not written - Counter("".join(discord(text, WHOLE)))


@given(PROSE, LIMITS)
def test_no_part_begins_within_a_joined_emoji(text: str, limit: int) -> None:
    joined = regex.sub(r"(?<![👩👧])\u200d", "", text)
    for part in (*telegram(joined, limit), *discord_parts(joined, markdown=True, limit=limit)):
        assert not part.text.startswith(("\u200d", "\u0301"))


@pytest.mark.parametrize(
    ("text", "limit", "count"),
    [
        ("😀" * 3000, 4096, 2),
        ("👩‍👩‍👧‍👦" * 500, 4096, 2),
        ("a" * 4096, 4096, 1),
        ("a" * 4097, 4096, 2),
        ("汉" * 4097, 4096, 2),
    ],
)
@pytest.mark.parametrize("markdown", [True, False])
def test_a_long_answer_without_a_pause_is_cut_between_its_characters(  # A01
    text: str,
    limit: int,
    count: int,
    markdown: bool,  # noqa: FBT001
) -> None:
    parts = telegram_parts(text, markdown=markdown, limit=limit)
    assert len(parts) == count
    assert "".join(part.text for part in parts) == text
    assert all(utf16_length(part.text) <= limit and not part.text.startswith("\u200d") for part in parts)


# Discord


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("**bold** _it_ ~~s~~ ||v|| __u__", "**bold** _it_ ~~s~~ ||v|| \\_\\_u\\_\\_"),
        ("### kept\n#### deep\n##### *em*", "### kept\n**deep**\n### *em*"),
        ("![alt](https://x.org/a.png) ![](https://x.org/b)", "[alt](https://x.org/a.png) <https://x.org/b>"),
        ("[![i](https://a.b/c)](https://d.e)", "[i](https://d.e)"),
        ("~~~py\ncode\n~~~", "```py\ncode\n```"),
        ("````\n```\n````", "```\n`\u200b`\u200b`\n```"),
        ("x\n\n    code *x*\n\ny", "x\n\n```\ncode *x*\n```\n\ny"),
        ("```py\nx = 1", "```py\nx = 1\n```"),
        ("3*4*5 and a || b", "3\\*4\\*5 and a \\|\\| b"),
        ("`3*4*5` and https://x.org/__init__", "`3*4*5` and https://x.org/__init__"),
        ("2. two\n5. five", "2. two\n5) five"),
        ("text\n---\nmore", "text\n\n---\nmore"),
        ("a<b && List<String> &lt; $5", "a<b && List<String> &lt; $5"),
    ],
)
def test_markdown_is_rewritten_where_discord_draws_it_otherwise(text: str, drawn: str) -> None:
    assert discord(text) == [drawn]


def test_a_cut_code_block_is_closed_and_opened_again_with_its_language() -> None:
    text = "Look:\n```python\n" + "".join(f"line_{n} = {n}\n" for n in range(20)) + "```\nDone."
    parts = discord(text, 100)
    assert len(parts) > 2
    assert all(part.count("```") == 2 and len(part) <= 100 for part in parts)
    assert all(part.startswith("```python\nline_") for part in parts[1:])
    code = "".join(line + "\n" for part in parts for line in part.splitlines() if "=" in line)
    assert code == "".join(f"line_{n} = {n}\n" for n in range(20))


def test_a_cut_never_leaves_an_opening_fence_without_code() -> None:
    first, second, *_ = discord("x" * 30 + "\n```python\n" + "y = 1\n" * 10 + "```", 42)
    assert first == "x" * 30
    assert second.startswith("```python\ny = 1\n")


@pytest.mark.parametrize("mark", ["**", "*", "~~", "||", "`", "***"])
def test_a_span_of_6000_characters_is_balanced_in_each_part(mark: str) -> None:  # A03
    text = f"Before {mark}" + "word and more. " * 400 + f"end{mark} after"
    first, *between, last = discord(text)
    assert len(between) == 2
    assert first.startswith(f"Before {mark}word")
    assert first.endswith(f"more.{mark}")
    assert all(part.startswith(f"{mark}word") and part.endswith(f"more.{mark}") for part in between)
    assert last.endswith(f"end{mark} after")
    [bold, *rest] = telegram(f"Before **{'word and more. ' * 400}end** after")
    assert [mark.kind for part in (bold, *rest) for mark in part.marks] == ["bold"] * (1 + len(rest))


def test_a_link_is_never_torn_but_moves_to_the_next_part() -> None:
    link = "[a link with many words](https://example.org/" + "x" * 20 + ")"
    parts = discord("word " * 15 + link + " end", 80)
    assert any(link in part for part in parts)
    long = discord("[" + "many words " * 20 + "end](https://a.b) x", 100)
    assert all(regex.fullmatch(r"\[[^\[\]]+\]\(https://a\.b\)( x)?", part) for part in long)


def test_a_quote_and_a_heading_go_on_in_the_next_part() -> None:
    parts = discord("> " + "quoted words " * 12 + "\n# " + "heading words " * 12, 100)
    assert [part[:2] for part in parts] == ["> ", "> ", "# ", "# "]


def test_code_in_a_quote_is_closed_and_opened_within_it() -> None:
    parts = discord("> ```py\n" + "> x = 1\n" * 30 + "> ```\n", 100)
    assert all(part.startswith("> ```py\n> x") and part.endswith("\n> ```") for part in parts)


def test_a_sign_in_the_middle_of_a_line_does_not_begin_a_part() -> None:
    for sign in ("# ", "- ", "1. ", "> ", "-# ", "```"):
        for filler in range(1, 12):
            parts = discord("word " * 8 + "x" * filler + f" {sign}rest of this line", 60)
            assert not any(part.startswith(sign) for part in parts)


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("*a* _b_ ~~c~~ ||d|| `e` \\", "\\*a\\* \\_b\\_ \\~\\~c\\~\\~ \\|\\|d\\|\\| \\`e\\` \\\\"),
        ("# h\n## h\n-# s\n- l\n+ l\n1. n\n> q\n>>> q", "\\# h\n\\## h\n\\-# s\n\\- l\n\\+ l\n1\\. n\n\\> q\n\\>>> q"),
        ("a # b - c 1. d > e #tag -5 1.5 >3", "a # b - c 1. d > e #tag -5 1.5 >3"),
        ("[a](b) [c] https://x.org/a_b_c <@123> :x:", "\\[a](b) [c] https://x.org/a_b_c <@123> :x:"),
    ],
)
def test_discord_shows_what_is_no_markdown_as_it_was_typed(text: str, typed: str) -> None:
    assert discord_parts(text, markdown=False) == [Part(typed)]


@given(ANY_TEXT | SOUP, LIMITS)
def test_escapes_are_within_the_limit_and_never_cut(text: str, limit: int) -> None:
    parts = [part.text for part in discord_parts(text, markdown=False, limit=limit)]
    assert all(0 < len(part) <= limit for part in parts)
    assert all(len(regex.search(r"\\*$", part)[0]) % 2 == 0 for part in parts)  # type: ignore[index]
    bare = regex.compile(r"\\(.)")
    assert without_space(bare.sub(r"\1", "".join(parts))) == without_space(clean(text))


@given(ANY_TEXT | SOUP, LIMITS)
def test_discord_takes_every_part(text: str, limit: int) -> None:
    for part in discord(text, limit):
        part.encode()
        assert 0 < len(part) <= limit
        assert not is_blank(part)


@given(NESTED, LIMITS)
def test_every_discord_part_is_balanced_by_itself(text: str, limit: int) -> None:
    whole = discord(text, WHOLE)
    parts = discord(text, limit)
    assert "".join(map(shown, parts)) == "".join(map(shown, whole))


@given(LINES, LIMITS)
def test_no_discord_part_leaves_code_open(text: str, limit: int) -> None:
    assert all(part.count("```") % 2 == 0 for part in discord(text, limit))


@given(PROSE, LIMITS)
def test_discord_parts_hold_every_word_of_the_text(text: str, limit: int) -> None:
    unlinked = regex.sub(r"!?\[\w\]\([^)]*\)", "", text)
    assert words("".join(discord(unlinked, limit))) == words(unlinked) or is_blank(unlinked)


@pytest.mark.parametrize(("length", "parts"), [(2000, 1), (2001, 2)])
def test_discord_counts_characters(length: int, parts: int) -> None:
    assert len(discord("汉" * length)) == parts


# Both


@pytest.mark.parametrize("text", ["", " \n", "\u200b\u2060", "** **", "__ __", "```\n```", "\x00"])
def test_nothing_to_see_makes_no_message(text: str) -> None:
    assert telegram(text) == []
    assert discord(text) == []
    assert bool(telegram_parts(text, markdown=False)) == bool(regex.search(r"[*_`]", text))
    assert bool(discord_parts(text, markdown=False)) == bool(regex.search(r"[*_`]", text))


def test_cuts_stay_where_they_are_while_the_answer_grows() -> None:
    text = "".join(f"Sentence **number {n}** with `code`. " + "\n\n" * (n % 7 == 0) for n in range(60))
    for cut in (lambda text: telegram(text, 200), lambda text: discord(text, 200)):
        whole = cut(text)
        for length in range(0, len(text), 37):
            grown = cut(text[:length])
            assert grown[:-2] == whole[: max(0, len(grown) - 2)]


@given(SOUP, LIMITS, st.integers(1, 4), st.booleans())
def test_the_first_parts_are_those_of_all(text: str, limit: int, most: int, markdown: bool) -> None:  # noqa: FBT001
    for cut in (telegram_parts, discord_parts):
        parts = cut(text, markdown=markdown, limit=limit)
        assert cut(text, markdown=markdown, limit=limit, most=most) == parts[:most]


def test_parts_that_are_not_asked_for_are_not_cut() -> None:
    text = "Some words. " * 1_900
    for cut in (telegram_parts, discord_parts):
        few, every = (work(partial(cut, text, markdown=False, limit=400, most=most)) for most in (2, None))
        assert few < every / 10


@pytest.mark.parametrize("cut", [telegram_parts, discord_parts])
def test_what_is_longer_than_is_read_is_shown_as_it_was_written(cut: Callable[..., list[Part]]) -> None:
    text = "**bold** words. " * (LONGEST // 16)
    assert cut(text, markdown=True) != cut(text, markdown=False)
    text += "More."
    assert cut(text, markdown=True) == cut(text, markdown=False)
    assert cut(text, markdown=True, most=3) == cut(text[:LONGEST], markdown=True)[:3]


def test_fewer_parts_than_asked_for_are_the_whole_text() -> None:
    text = f"[a](https://b.c/{'d' * (LONGEST - 2_000)}) " + "word " * 1_000
    assert telegram_parts(text, markdown=True, most=3) == telegram_parts(text, markdown=False)[:3]


def test_lists_and_quotes_in_each_other_are_literal_from_the_ninth_on() -> None:
    [part] = telegram("> " * 10 + "x")
    assert part.text == "> > x"
    [part] = telegram("+ " * 9 + "x")
    assert part.text.splitlines()[7:] == ["              • + x"]
    [rule] = telegram("a\n\n" + "- " * 12)
    assert rule.text == "a\n\n————————"


def test_text_that_would_grow_much_is_shown_as_it_was_written() -> None:
    text = "".join("\t" * min(depth, 16) + "- - - - - - - - a\n" for depth in range(60))
    [part] = telegram(text)
    assert part == Part(text.strip())


def test_a_table_of_short_cells_and_a_long_one_has_uneven_columns() -> None:
    text = f"|a|b|\n|-|-|\n|{'c' * 500}|d|\n" + "|e|f|\n" * 200
    [part] = telegram(text)
    assert part.text.startswith("a | b\n--+--\nccc")
    assert part.text.endswith("ccc | d" + "\ne | f" * 200)
    assert len(discord(text)) == 1


def test_a_table_with_hardly_a_cell_filled_is_none() -> None:
    text = "|a" * 12 + "|\n" + "|-" * 12 + "|\n" + "b\n" * 200
    [part] = telegram(text)
    assert part == Part(text.strip())


@pytest.mark.parametrize("unit", ["+ ", "> - ", "1. ", "> ", "**a ", "[", "||a **b|| c** ", "|a|b|\n|-|-|\n", "a\n"])
def test_twice_the_text_is_about_twice_the_work(unit: str) -> None:
    for cut in (telegram, discord):
        short, long = (work(partial(cut, unit * (length // len(unit)))) for length in (800, 1_600))
        assert long < 2.5 * short


@pytest.mark.parametrize(
    "unit",
    [
        "**a ", "**a** ", ">", "> a\n", "[", "[a](http://b ", "\\[", "\\( a", "$$ a", "||a ", "~a~ ", "__a", "``a",
        "```\na\n```\n",
        "。**的", "<br>", "http://aa ", "*a_", "1. a\n", "<a.a", "a\n-\n", "# a\n", "a*", "🇩🇪",
        "- ", "|a|b|\n|-|-|\n", "_a ", "\\", "a```\n", "+ ", "> - ", "```a b\n", "||a **b|| c** ", "![a](http://b)",
    ],
)  # fmt: skip
def test_hostile_text_is_cut_in_time_that_grows_with_length(unit: str) -> None:
    for length in (LONGEST, 100_000):
        text = unit * (length // len(unit))
        began = time.process_time()
        assert telegram(text)
        assert discord(text)
        assert telegram_parts(text, markdown=True, most=5)
        assert time.process_time() - began < 3


@settings(max_examples=50)
@given(SOUP, st.integers(16, 300))
def test_a_summary_fits_and_says_that_there_is_more(text: str, limit: int) -> None:
    short = summary(text, limit)
    assert len(short) <= limit
    assert short.endswith("…")
    assert short == summary(text, limit)


def test_a_summary_is_the_beginning_and_the_headings_of_the_rest() -> None:
    text = "# Title\n\nOpening words. More.\n\n" + "".join(
        f"## Part {n}\n\n" + "Words. " * 40 + "\n\n" for n in range(9)
    )
    short = summary(text, 300)
    assert short.startswith("# Title\n\nOpening words. More.\n\n## Part 0\n\nWords.")
    assert short.endswith("Words.\n\n- Part 1\n- Part 2\n- Part 3\n- Part 4\n- Part 5\n- Part 6\n- Part 7\n- Part 8\n…")
    assert summary("一句话。" * 100, 50) == "一句话。" * 11 + "\n\n…"


def test_a_summary_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="room for some words"):
        summary("hello", 15)
