"""``bench abstain``: whether recall keeps silent about what a memory was never told, and for small talk.

Each question is asked of its own conversation, and of two others with the names of their speakers put in.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from rich.console import Console
from rich.table import Table

from bot.bench import evalset, levels
from bot.bench.evalset import BOT_SPEAKER, Conversation, EvalSet
from bot.bench.levels import Levels
from bot.bench.recall import PIPED_WIDTH, Filled, fill, opened
from bot.bench.shared import SharedVectors
from bot.bench.smalltalk import SMALL_TALK
from bot.embedders import choose_embedder
from bot.plot import PlotUnavailable
from config.settings import EmbedderSettings, SessionSettings, Settings
from memory import Memory, RecallOptions, is_small_talk
from memory.ports import Embedder, EmbedderUnavailable

SETS: Final = ("locomo", "memorybank_zh")
"""The sets that are pooled where a folder holds them: their questions name what one conversation alone tells. Those of
others (memdaily: "what is my boss's number?") are answered in anybody's."""
TRICKS: Final = frozenset({"adversarial", "abstention"})
"""Categories whose questions are not answered in their own conversation either."""
OTHERS: Final = 2
"""Conversations beside its own that each question is asked of."""
TALK_LINES: Final = (10, 300)
"""Sizes of the memories that small talk is said to."""
TALK_MEMORIES: Final = 4
"""How many of each size and language, each begun with another conversation."""
_WEEK_MINUTES: Final = 7 * 24 * 60.0


@dataclass(frozen=True, slots=True)
class Case:
    """A question as it is asked of one conversation: its own, or a foreign one."""

    conversation: str
    text: str
    own: bool


def cases(each: EvalSet) -> Iterator[Case]:
    """The questions of a set, each asked of its own conversation and of the next ones."""
    ids = [conversation.id for conversation in each.conversations]
    people = {conversation.id: speakers(conversation) for conversation in each.conversations}
    for question in each.questions:
        if question.category in TRICKS:
            continue
        yield Case(question.conversation, question.text, own=True)
        at = ids.index(question.conversation)
        for step in range(1, min(OTHERS, len(ids) - 1) + 1):
            other = ids[(at + step) % len(ids)]
            yield Case(other, renamed(question.text, people[question.conversation], people[other]), own=False)


def speakers(conversation: Conversation) -> list[str]:
    """Who talks in a conversation, the bot aside, in order of appearance."""
    said = (line.speaker for session in conversation.sessions for line in session)
    return [name for name in dict.fromkeys(said) if name != BOT_SPEAKER]


def renamed(text: str, names: Sequence[str], others: Sequence[str]) -> str:
    """A text with names put in the place of others, in turn."""
    if not names or not others:
        return text
    table = dict(zip(names, itertools.cycle(others), strict=False))
    either = "|".join(re.escape(name) for name in sorted(table, key=len, reverse=True))
    return re.sub(either, lambda found: table[found[0]], text)


async def run_abstain(data: Path, *, embedder: Embedder | None, false_positives: float) -> Measured:
    """Measure the sets of a folder, pooled, and small talk. Raises DataError, EmbedderUnavailable."""
    sets = [evalset.load(folder) for folder in _chosen(evalset.folders(data))]
    kept = None if embedder is None else SharedVectors(embedder)
    settings = Settings(_env_file=None, session=SessionSettings(idle_minutes=_WEEK_MINUTES))
    settings = settings.model_copy(
        update={"recall": settings.recall.model_copy(update={"false_positives": false_positives})}
    )
    async with opened(settings, kept) as memory:
        by_set = {each.name: await _levels(memory, each) for each in sets}
        talk = {
            lines: await _small_talk(memory, [c for each in sets for c in each.conversations], lines)
            for lines in TALK_LINES
        }
    return Measured(by_set, talk, false_positives)


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured.

    ``talk`` counts, by lines of a memory and by language, the pieces of small talk that recalled anything in each.
    """

    sets: Mapping[str, Levels]
    talk: Mapping[int, Mapping[str, Sequence[int]]]
    asked: float

    @property
    def pooled(self) -> Levels:
        """All sets as one."""
        return levels.pooled(list(self.sets.values()))

    def shown(self) -> dict[str, Any]:
        """The figures as plain JSON."""
        parts = {**self.sets, "pooled": self.pooled}
        return {
            "asked_for": 100 * self.asked,
            "sets": {name: levels.summary(part, self.asked) for name, part in parts.items()},
            "small_talk": {
                str(lines): {
                    "pieces": sum(len(SMALL_TALK[language]) for language in counts),
                    "recalled": round(sum(sum(each) / len(each) for each in counts.values()), 2),
                    "most": sum(max(each) for each in counts.values()),
                }
                for lines, counts in self.talk.items()
            },
        }


def _chosen(folders: Sequence[Path]) -> list[Path]:
    named = [folder for folder in folders if folder.name in SETS]
    return named or list(folders)


async def _levels(memory: Memory, each: EvalSet) -> Levels:
    filled = {
        conversation.id: await fill(memory, conversation, key=f"{each.name}/{conversation.id}")
        for conversation in each.conversations
    }
    found: dict[bool, list[float]] = {True: [], False: []}
    for case in cases(each):
        found[case.own].append(await _level(memory, filled[case.conversation], case.text))
    return Levels(tuple(found[True]), tuple(found[False]))


async def _level(memory: Memory, where: Filled, text: str) -> float:
    recalled = await memory.recall(where.owner, text, room=where.room, now=where.end, options=RecallOptions())
    return recalled.level or 0.0


async def _small_talk(memory: Memory, conversations: Sequence[Conversation], lines: int) -> dict[str, list[int]]:
    """How many pieces of small talk recall anything in memories of so many lines, by language."""
    counts: dict[str, list[int]] = {}
    for language, pieces in SMALL_TALK.items():
        spoken = [each for each in conversations if each.language.startswith(language)]
        for start in range(min(TALK_MEMORIES, len(spoken))):
            told = first_lines([*spoken[start:], *spoken[:start]], lines)
            where = await fill(memory, told, key=f"talk/{language}/{lines}/{start}")
            heard = [
                await memory.recall(where.owner, piece, room=where.room, now=where.end, options=RecallOptions())
                for piece in pieces
                if not is_small_talk(piece)
            ]
            counts.setdefault(language, []).append(sum(bool(recalled.units) for recalled in heard))
    return counts


def first_lines(conversations: Iterable[Conversation], lines: int) -> Conversation:
    """One conversation of the first lines of several."""
    taken: list[tuple[evalset.Line, ...]] = []
    first: Conversation | None = None
    for conversation in conversations:
        first = first or conversation
        for session in conversation.sessions:
            room = lines - sum(map(len, taken))
            if room > 0:
                taken.append(session[:room])
    if first is None:
        raise evalset.DataError("no conversation to take lines from")
    return replace(first, sessions=tuple(sorted(taken, key=lambda session: session[0].at)))


def tables(measured: Measured) -> list[Table]:
    """Three tables: the sets, the levels of all of them, small talk."""
    shown = measured.shown()
    sets = Table("", *levels.summary(measured.pooled, measured.asked), title="own and foreign questions")
    for name, row in shown["sets"].items():
        sets.add_row(name, *map(str, row.values()))
    talk = Table("lines in memory", "pieces", "recalled anything", "most", title="small talk")
    for lines, row in shown["small_talk"].items():
        talk.add_row(lines, *map(str, row.values()))
    return [sets, levels.cuts(measured.pooled, "pooled", chosen=[1 - measured.asked]), talk]


def main(
    data: Path, *, as_json: bool, embedder: Literal["auto", "endpoint", "local", "none"], plot: Path | None = None
) -> int:
    """Measure and print; ``plot`` is a folder for a picture. The exit code: 2 if a set is broken or none is there."""
    settings = Settings()
    chosen = settings.model_copy(update={"embedder": EmbedderSettings(kind=embedder)})
    try:
        measured = asyncio.run(_run(data, chosen))
        if plot is not None:
            plot.mkdir(parents=True, exist_ok=True)
            levels.draw(measured.pooled, plot / "abstain.svg", "pooled", chosen=[1 - measured.asked])
    except PlotUnavailable as missing:
        sys.stderr.write(f"{missing}\n")
    except (evalset.DataError, EmbedderUnavailable, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if as_json:
        sys.stdout.write(json.dumps(measured.shown(), ensure_ascii=False) + "\n")
    else:
        Console(width=None if sys.stdout.isatty() else PIPED_WIDTH).print(*tables(measured))
    return 0


async def _run(data: Path, settings: Settings) -> Measured:
    async with contextlib.AsyncExitStack() as stack:
        embedder = choose_embedder(settings)
        if embedder is not None:
            stack.push_async_callback(embedder.aclose)
        return await run_abstain(data, embedder=embedder, false_positives=settings.recall.false_positives)
