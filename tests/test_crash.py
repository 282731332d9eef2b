"""The real program killed at instants of its work and started again: nothing is lost, doubled or half (tests/crash)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory.backups import name_at
from tests.crash.moving import Migration
from tests.crash.people import END
from tests.crash.sabotage import SABOTAGES
from tests.crash.story import IDLE, PEOPLE, PHASES, Story
from tests.crash.table import table
from tests.crash.verdict import Folder
from tests.faults import Nursery
from tests.seeds import SEED

KILLS = 4
ALONE = 59
"""A seed with which one person talks: what is done for them is done in one order, however fast the machine is."""

pytestmark = pytest.mark.timeout(400)  # processes on a machine that may have others to run


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("tests.crash.victim") as process:
        yield process


@pytest.mark.parametrize("seed", [SEED])
async def test_whenever_it_is_killed_nothing_is_lost_doubled_half_done_or_back(
    nursery: Nursery, tmp_path: Path, seed: int
) -> None:
    kills = await Story(tmp_path, seed, nursery).play(KILLS, gently=0.2)
    print(table(kills))  # noqa: T201 - shown when it fails
    assert [kill for kill in kills if kill.wrong] == []
    assert len(kills) == KILLS


@pytest.mark.parametrize("seed", [SEED])
async def test_a_file_whose_migration_was_killed_is_a_whole_one_and_is_migrated_then(
    nursery: Nursery, tmp_path: Path, seed: int
) -> None:
    assert (await Migration(tmp_path, seed, nursery).strike()).wrong == ()


@pytest.mark.parametrize("name", SABOTAGES)
async def test_what_is_done_wrong_is_noticed_at_the_first_kill_that_shows_it(
    nursery: Nursery, tmp_path: Path, name: str
) -> None:
    sabotage, story = SABOTAGES[name], Story(tmp_path, ALONE, nursery, name)
    async with story.begun():
        story.talk()
        assert [*await story.rest(), *await story.pass_(IDLE)] == []
        work = next(work for work, phase in PHASES.items() if phase is sabotage.instant.phase)
        kill = await story.strike(work, sabotage.instant)
    assert kill.hit
    assert [fault for fault in kill.wrong if sabotage.found in fault] != [], kill.wrong


async def test_a_stop_lets_the_answer_under_way_and_the_distillation_end(nursery: Nursery, tmp_path: Path) -> None:
    story = Story(tmp_path, 1, nursery)
    server, chat = story.model.server, story.telegram.chat(PEOPLE[0])
    async with story.begun():
        story.say(PEOPLE[0])
        assert await story.rest() == []
        server.pause = 0.2
        story.agreement.shift += IDLE
        await server.distilling.wait()
        story.say(PEOPLE[0])
        await server.speaking.wait()
        await story.bot.stop()
        assert story.bot.codes == [0]
        assert [text.endswith(END) for text in chat.texts] == [True, True]
        assert story.remains.of_a_copy("SELECT * FROM waiting") == []
        facts = story.remains.of_a_copy("SELECT text FROM facts")
        assert [story.said[0].word in text for (text,) in facts] == [True]
        assert story.remains.of_a_copy("SELECT count(*) FROM session_members WHERE not_before > 0") == [(0,)]


def test_a_byte_of_what_is_erased_is_noticed_in_every_file_the_backups_too(tmp_path: Path) -> None:
    """Only the backups that were there when it was erased may hold it, until the bot starts and cleans them."""
    folder = Folder(tmp_path)
    names = [name_at(datetime(2026, 3, day, tzinfo=UTC)) for day in (2, 3)]
    for file in (folder.data / "recollect.db-wal", *(folder.copies / name for name in names)):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"\x00\x01zogaaaaa\xff")
    older, newer = folder.backups()
    assert folder.holding("zogaaaaa", but={older}) == [newer.name, "recollect.db-wal"]
    assert folder.holding("zogaaaaa", but=set()) == [older.name, newer.name, "recollect.db-wal"]
    assert folder.holding("zogaaaab", but=set()) == []
