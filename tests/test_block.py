"""The recalled block: each memory with its day, who said it and how sure it is, in as few words as that takes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory.block import block, frame, line
from memory.model import Account, Recalled, Recollection, Span
from memory.showing import Shelf

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
ANN = Account(1, "console", "1", name="Ann", language="en")
LEFT_OUT = {"en": "(what it leaves out is as above)", "zh": "省去的同上一条"}


def note(text: str, *, hours: float = 0) -> Recalled:
    return Recalled(len(text), "message", text, AT + timedelta(hours=hours), 1.0, (1,))


def shown(*units: Recalled, owner: Account = ANN) -> list[str]:
    """The lines of a block behind its heading."""
    return block(Recollection(units), owner).splitlines()[2:-1]


def heading(*units: Recalled, owner: Account = ANN) -> str:
    return block(Recollection(units), owner).splitlines()[1]


def test_a_day_leaves_out_what_it_shares_with_the_note_above() -> None:
    assert shown(note("a"), note("b", hours=3), note("c", hours=24), note("d"), note("e", hours=24 * 365)) == [
        '2026-03-02 "a"',
        '"b"',
        '03-03 "c"',
        '03-02 "d"',
        '2027-03-02 "e"',
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("hours", "is_so"), [(1, True), (24, True), (24 * 365, False)])
def test_that_days_leave_something_out_is_said_only_where_it_is_so(language: str, hours: int, *, is_so: bool) -> None:
    owner = replace(ANN, language=language)
    assert (LEFT_OUT[language] in heading(note("a"), note("b", hours=hours), owner=owner)) is is_so


def test_the_same_day_is_the_owners() -> None:
    late, early = note("a", hours=8), note("b", hours=16)
    assert len(shown(late, early)[1].split()) == 2
    assert shown(late, early, owner=replace(ANN, zone="Asia/Shanghai"))[1] == '"b"'


def test_a_note_without_a_day_keeps_what_it_is_who_said_it_and_how_sure_it_is() -> None:
    unsure = replace(note("b"), kind="fact", subject="Bo", band="perhaps")
    spoken = replace(note("c"), speaker="Recollect")
    assert shown(note("a"), unsure, spoken)[1:] == ['(fact, Bo, perhaps) "b"', 'Recollect: "c"']


MARKED: list[tuple[dict[str, Any], str, str]] = [
    ({"band": "perhaps"}, '"perhaps"', "标 perhaps"),
    ({"outdated": AT}, '"outdated"', "标 outdated"),
    ({"extent": "gist"}, '"gist"', "标 gist"),
    ({"when": Span(AT, AT + timedelta(hours=1), "hour", "UTC")}, 'behind "on"', "写在 on 后面"),
]


@pytest.mark.parametrize(("change", "english", "chinese"), MARKED)
def test_the_heading_explains_the_marks_that_are_there_and_no_other(
    change: dict[str, Any], english: str, chinese: str
) -> None:
    marked = replace(note("a"), **change)
    for owner, words, place in ((ANN, english, 1), (replace(ANN, language="zh"), chinese, 2)):
        assert words in heading(marked, owner=owner)
        others = {str(row[place]) for row in MARKED} - {words}
        assert not [other for other in others if other in heading(marked, owner=owner)]
        assert words not in heading(note("a"), owner=owner)


def test_an_event_that_recurs_shows_no_day_of_its_own_so_none_is_explained() -> None:
    weekly = Span(AT, AT + timedelta(hours=1), "hour", "UTC", rrule="FREQ=WEEKLY")
    assert "behind" not in heading(replace(note("a"), kind="event", when=weekly))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_block_costs_more_than_its_frame_and_its_lines(language: str) -> None:
    owner = replace(ANN, language=language)
    every = {key: value for change, *_ in MARKED for key, value in change.items()}
    units = [note("a"), replace(note("b"), **every)]
    lines = [line(units[0], owner), line(units[1], owner, before=units[0])]
    assert len(block(Recollection(tuple(units)), owner)) <= len(frame(owner)) + sum(len(each) + 1 for each in lines)


def test_what_takes_a_source_along_is_known_by_its_words() -> None:
    shelf = Shelf(lambda _unit, _before: 1, None)
    first = replace(note("green tea every morning"), kind="fact", cites=(1,))
    assert shelf.put((first,)) is None
    assert shelf.put((replace(first, id=90, cites=(2,)),)) == "repeats"
    assert shelf.put((replace(first, id=91, text="every morning green tea!!", cites=(2,)),)) == "repeats"
    assert shelf.put((replace(first, id=92, text="green tea", cites=(3,)),)) is None, "nobody says where it is from"
    assert [unit.cites for unit in shelf.units] == [(1, 2), (3,)]
