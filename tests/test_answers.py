from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.answers import FAULTS, AnswerError, parse

ITEM = {"kind": "fact", "text": "用户在杭州上班", "cites": [{"message": 1, "quote": "我在杭州上班"}]}
PLAIN = json.dumps({"items": [ITEM]}, ensure_ascii=False)


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN,
        f"好的，结果如下：\n```json\n{PLAIN}\n```\n希望有帮助！",
        f"```\n{PLAIN}\n```",
        f"Sure! Here are the results [1]:\n{PLAIN}\nLet me know :-{{",
        json.dumps([ITEM]),
        json.dumps(ITEM),
        json.dumps({"memories": [ITEM, None, "odd", 3, {}]}),
        json.dumps({"result": {"items": [ITEM]}}),
        json.dumps({"items": ITEM}),
        PLAIN[:-2] + ",]}",
        PLAIN.replace('"', "'"),
        PLAIN.replace("}]}", "},],}", 1) + "]}",
        f"<think>perhaps {{'items': [ {{ 'text': 'draft' }} ]}}</think>{PLAIN}",
        f"perhaps [1] or {{</think>\n{PLAIN}",
        json.dumps({"type": "object", "properties": {"items": [ITEM]}}),
        json.dumps({"type": "object", "properties": {"items": {"type": "array"}}}) + "\n" + PLAIN,
        json.dumps({"items": []}) + "\n" + PLAIN,
    ],
)
def test_b01_one_item_is_read_out_of_whatever_is_around_it(answer: str) -> None:
    assert parse(answer) == [ITEM]


def test_b01_facts_under_their_kind_carry_that_kind() -> None:
    answer = '{"facts": [{"text": "a", "source": "1"}], "profile": [{"value": "b"}], "events": null}'
    assert parse(answer) == [
        {"kind": "fact", "text": "a", "source": "1"},
        {"kind": "profile", "value": "b"},
    ]


def test_items_one_a_line_are_all_read() -> None:
    assert parse('{"text": "a"}\n{"text": "b"}\n') == [{"text": "a"}, {"text": "b"}]


def test_single_quotes_with_an_apostrophe_inside_are_read() -> None:
    assert parse("[{'text': 'I don't eat nuts', 'forgettable': False}]") == [
        {"text": "I don't eat nuts", "forgettable": False}
    ]


def test_a_bracket_inside_a_string_closes_nothing() -> None:
    assert parse('{"items": [{"text": "a ] } b \\" } c"}]}') == [{"text": 'a ] } b " } c'}]


@pytest.mark.parametrize("answer", ["[]", '{"items": []}', '{"items": null}', "```json\n[]\n```", '{"facts":[]}'])
def test_nothing_found_is_an_empty_list(answer: str) -> None:
    assert parse(answer) == []


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("<think>nothing here</think>", "empty"),
        ("I could not find anything worth keeping.", "no_json"),
        ("- User lives in Oslo\n- User likes tea", "no_json"),
        ("{}", "no_items"),
        ("[1, 2]", "no_items"),
        ('{"items": ["User lives in Oslo"]}', "no_items"),
        ('{"items": "none"}', "no_items"),
        ('{"items": 3}', "no_items"),
        ('{"type": "object", "properties": {"items": {"type": "array"}}, "required": ["items"]}', "schema"),
        ('{"items": {"type": "array", "items": {"$ref": "#/x"}}}', "schema"),
        ("[" * 100_000, "no_json"),
        ('{"a":' * 100_000, "no_json"),
    ],
)
def test_no_answer_is_told_apart_from_nothing_found(answer: str, fault: str) -> None:
    with pytest.raises(AnswerError) as caught:
        parse(answer)
    assert caught.value.fault == fault


@pytest.mark.parametrize("length", range(1, len(PLAIN)))
def test_a_half_answer_is_never_mended_into_an_item(length: int) -> None:
    with pytest.raises(AnswerError):
        parse(PLAIN[:length])


def test_an_answer_that_the_endpoint_calls_cut_is_not_read_at_all() -> None:
    with pytest.raises(AnswerError) as caught:
        parse(PLAIN, cut=True)
    assert caught.value.fault == "cut"


SCRAPS = st.lists(
    st.sampled_from(
        [
            *"{}[]\"',:\\ \n0-eE.“”",
            "null",
            "true",
            "```",
            "<think>",
            "</think>",
            "text",
            "items",
            PLAIN,
            "\ud800",
        ]
    )
    | st.text(max_size=5),
    max_size=40,
).map("".join)
JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["items", "facts", "text", "properties", "type", "value", "x"]), inner)
    ),
    max_leaves=15,
)


@given(SCRAPS | JSONISH.map(json.dumps) | st.text())
@example('{"n": ' + "9" * 5_000 + "}")
@example('[{"text": NaN, "value": Infinity}]')
@example('{"items": {"items": {"items": []}}}')
def test_any_text_gives_items_or_the_one_error(answer: str) -> None:
    try:
        items = parse(answer)
    except AnswerError:
        return
    assert all(isinstance(item, dict) and item for item in items)


@given(st.integers(0, len(PLAIN)), SCRAPS)
def test_noise_inside_an_answer_gives_items_or_the_one_error(place: int, noise: str) -> None:
    try:
        items = parse(PLAIN[:place] + noise + PLAIN[place:])
    except AnswerError:
        return
    assert all(isinstance(item, dict) for item in items)


def test_thinking_aloud_is_left_out_and_a_tag_inside_the_answer_is_somebodys_words() -> None:
    quoted = PLAIN.replace("我在杭州上班", "</think>我在杭州上班<think>")
    assert parse(quoted)[0]["cites"][0]["quote"] == "</think>我在杭州上班<think>"
    assert parse(f"Hm. {PLAIN}<think>was that right?") == [ITEM]


@pytest.mark.parametrize("answer", [f"<think>perhaps {PLAIN}", "<think>Let me see", f"<reasoning>{PLAIN}"])
def test_thinking_that_never_ends_is_an_answer_cut_off(answer: str) -> None:
    with pytest.raises(AnswerError) as caught:
        parse(answer)
    assert caught.value.fault == "cut"


def test_of_several_lists_and_of_a_list_given_twice_nothing_is_lost() -> None:
    assert parse('{"items": [{"text": "a"}]}\n{"items": [{"text": "b"}]}') == [{"text": "a"}, {"text": "b"}]
    assert parse('{"items": [{"text": "a"}], "items": [{"text": "b"}]}') == [{"text": "a"}, {"text": "b"}]
    assert parse('{"text": "a"}\n{"items": []}') == [{"text": "a"}]


@pytest.mark.parametrize("end", ["}]", ",}]"])
def test_a_whole_number_nobody_can_mean_is_none(end: str) -> None:
    (item,) = parse('[{"text": "a", "n": ' + "9" * 400 + end)
    assert item["n"] is None


def test_a_flood_of_tags_takes_no_time() -> None:
    for flood in ("<think>" * 40_000, "</think>" * 40_000, "<think></think>" * 20_000):
        with pytest.raises(AnswerError):
            parse(f"x{flood}")


def test_what_the_log_says_tells_every_fault_apart() -> None:
    said = [str(AnswerError(fault)) for fault in FAULTS]
    assert len(set(said)) == len(FAULTS)
    assert "cut off" in str(AnswerError("cut"))
