"""``bench delivery`` calls right what is right and wrong what is wrong, on a run small enough to watch."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from bot.bench import delivery
from bot.bench.doubles import Report
from bot.bench.script import Fault, Script, Shown, answer, asked, frames, judged, question, squeezed, troubles
from bot.cli import cli

SMALL = Script(
    chats=4,
    frames=6,
    frame_seconds=0.05,
    quiet_seconds=0.2,
    faults=(
        Fault(1, "sendMessage", 1, "flood", 0.4),
        Fault(2, "editMessageText", 1, "drop"),
        Fault(3, "sendMessage", 1, "drop"),
    ),
)


def shown(*texts: str, code: str = "", edits: int = 0, first: float = 0.0, last: float = 0.0) -> list[Shown]:
    return [Shown(text, code, edits, first, last) for text in texts]


def right(chat: int, *numbers: int) -> Shown:
    given = answer(chat, numbers)
    return Shown(
        f"Chat {chat}: {', '.join(map(str, numbers))}" + given.text[len(_head(chat, *numbers)) :], given.code, 0, 0, 0
    )


def _head(chat: int, *numbers: int) -> str:
    return squeezed(f"Chat {chat}: {', '.join(map(str, numbers))}")


def test_a_small_run_through_the_real_bot_is_right_whatever_the_platform_does() -> None:
    result = delivery.run_delivery(SMALL)
    assert result["finals"] == {"right": 6, "wanted": 6, "wrong_chats": []}
    assert result["order"] == {"right": 4, "wanted": 4, "wrong_chats": []}
    assert result["joined"] == {"chats": 2, "of": 2}
    assert result["troubles"]["sendMessage: Too Many Requests: a flood"] == 1
    assert result["troubles"]["sendMessage: dropped on the way"] == 1
    assert result["edits"]["max"] > 0
    assert result["wait_s"]["flooded_max"] > 0
    assert result["wait_s"]["ratio"] > 0
    assert result["loop_lag_ms"]["max"] >= result["loop_lag_ms"]["p99"] >= result["loop_lag_ms"]["own_p99"]
    assert not [failure for failure in result["failures"] if "late" not in failure], "how late is the machine's affair"
    json.dumps(result)


def test_a_platform_that_swallows_the_last_edit_is_found_out() -> None:
    swallowed = tuple(Fault(2, "editMessageText", nth, "swallow") for nth in range(1, 20))
    result = delivery.texts(delivery.play(replace(SMALL, chats=2, faults=swallowed)).report)
    assert result["finals"] == {"right": 2, "wanted": 3, "wrong_chats": [2]}


def test_replies_are_right_only_once_whole_and_in_order() -> None:
    first, second, both = right(1, 1), right(1, 2), right(2, 1, 2)
    assert judged(1, [first, second]).clean
    assert judged(1, [first, second]).in_order
    assert not judged(1, [second, first]).in_order
    assert judged(1, [first]).right == 1
    assert not judged(1, [first, second, second]).clean, "shown twice"
    assert not judged(1, [replace(first, text=first.text[:-1]), second]).clean
    assert not judged(1, [replace(first, code="tide = 1"), second]).clean, "the code is not drawn as code"
    assert judged(2, [both]).joined
    assert judged(2, [right(2, 1), right(2, 2)]).clean, "came too far apart to be one turn"
    assert not judged(1, [right(1, 1, 2)]).clean, "the second came while the first was answered"
    assert judged(2, [replace(both, text=both.text[:200]), replace(both, text=both.text[200:], code="")]).clean


def test_each_failure_is_named() -> None:
    report = Report({1: shown("Chat 1: 2", "Chat 1: 1"), 2: [right(2, 1, 2)]}, {})
    figures = {
        **delivery.texts(report),
        "edits": {"over": 0},
        "loop_lag_ms": {"p99": 49.99},
    }
    assert delivery.failures(figures) == ["final texts are wrong in chats 1"]
    turned = Report({1: [right(1, 2), right(1, 1)]}, {})
    figures = {**delivery.texts(turned), "edits": {"over": 2}, "loop_lag_ms": {"p99": 50.0}}
    assert delivery.failures(figures) == [
        "replies are out of order in chats 1",
        "2 replies were edited more often than their pace allows",
        "the event loop was 50 ms late at the 99th percentile, not under 50",
    ]


def test_edits_are_held_against_what_the_pace_allows() -> None:
    report = Report(
        {
            1: shown("Chat 1: 1", edits=4, first=0.0, last=2.5),
            2: [*shown("Chat 2: 1", edits=3, first=1.0, last=3.0), *shown("more", edits=3, first=2.0, last=3.0)],
        },
        {},
    )
    assert delivery.edits(report, 1.0) == {"median": 5, "max": 6, "nearest": 6, "bound": 4, "over": 1}


def test_waits_compare_the_chats_without_a_flood_with_themselves() -> None:
    script = Script(2, faults=(Fault(1, "sendMessage", 1, "flood", 9.0),))
    report = Report({1: shown("x", last=20.0), 2: shown("y", last=6.0)}, {})
    calm = Report({1: shown("x", last=5.0), 2: shown("y", last=4.0)}, {})
    assert delivery.waits(script, report, calm) == {
        "flooded_max": 20.0,
        "others_max": 6.0,
        "others_p99": 6.0,
        "no_flood_p99": 4.0,
        "ratio": 1.5,
    }


def test_percentiles_are_by_nearest_rank() -> None:
    assert delivery.percentile([float(n) for n in range(1, 201)], 99) == 198.0
    assert delivery.percentile([3.0, 1.0, 2.0], 50) == 2.0
    assert delivery.percentile([], 99) == 0.0


def test_a_prompt_is_read_from_its_end() -> None:
    earlier = f"What is remembered:\n{question(3, 1)}"
    assert asked(f"{earlier}\n\n{question(3, 1)}\n\n{question(3, 2)}") == (3, (1, 2))
    with pytest.raises(ValueError, match="does not end with questions"):
        asked(f"{question(3, 1)}\n\nAnd then?")
    with pytest.raises(ValueError, match="of one chat"):
        asked(f"{question(3, 1)}\n\n{question(4, 2)}")


@pytest.mark.parametrize("count", [1, 7, 50])
def test_frames_are_the_answer_in_so_many_pieces(count: int) -> None:
    text = answer(5, (1,)).markdown
    pieces = list(frames(text, count))
    assert "".join(pieces) == text
    assert len(pieces) == count
    assert len(text) > 4096, "longer than one message"


def test_troubles_meet_five_in_a_hundred_chats_and_floods_fall_on_sends_and_edits() -> None:
    script = Script(200, faults=troubles(200))
    floods = [fault for fault in script.faults if fault.kind == "flood"]
    assert len(script.flooded) == 10
    assert {fault.method for fault in floods} == {"sendMessage", "editMessageText"}
    assert {fault.chat % 2 for fault in floods} == {0, 1}
    assert all(3 <= fault.seconds <= 10 for fault in floods)
    assert not script.calm().flooded
    assert [fault.kind for fault in script.calm().faults] == ["drop"] * 20
    assert all(fault.chat <= 2 for fault in troubles(2))


def test_the_command_prints_a_table_or_json_and_its_exit_code_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[Script] = []
    result = {
        "chats": 3,
        "frames": 4,
        "frame_seconds": 0.2,
        **delivery.texts(Report({1: [right(1, 1), right(1, 2)]}, {})),
        "edits": delivery.edits(Report({}, {}), 1.0),
        "wait_s": delivery.waits(Script(1), Report({1: []}, {}), Report({1: []}, {})),
        "loop_lag_ms": delivery.lags(delivery.Lag()),
        "troubles": {"sendMessage: dropped on the way": 1},
        "run_seconds": 1.0,
        "seconds": 2.0,
        "failures": ["the event loop was late"],
    }

    def measured(script: Script) -> dict[str, object]:
        asked_for.append(script)
        return result

    monkeypatch.setattr(delivery, "run_delivery", measured)
    printed = CliRunner().invoke(cli, ["bench", "delivery", "--chats", "3", "--frames", "4"])
    assert printed.exit_code == 1
    assert "2 of 2" in printed.output
    assert "the event loop was late" in printed.output
    assert (asked_for[0].chats, asked_for[0].frames, len(asked_for[0].faults)) == (3, 4, 2)
    result["failures"] = []
    printed = CliRunner().invoke(cli, ["bench", "delivery", "--json"])
    assert printed.exit_code == 0
    assert json.loads(printed.stdout) == result
