"""``bench recall``: what share of the evidence recall finds, beside a BM25 control, on folders of questions."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal

from rich.console import Console
from rich.table import Table

from bot.bench import ablation, bm25, curves, evalset, metrics, tracing
from bot.bench.evalset import BOT_SPEAKER, Asked, Conversation, EvalSet
from bot.bench.metrics import Shown, estimated_tokens
from bot.bench.tally import Tally
from bot.embedders import choose_embedder
from bot.plot import PlotUnavailable
from config.settings import EmbedderSettings, SessionSettings, Settings
from memory import SCORE_TERMS, Line, Memory, RecallOptions, block
from memory.model import Account, Chat, Recollection
from memory.ports import Embedder, EmbedderUnavailable

UNBOUNDED: Final = RecallOptions(max_tokens=None, threshold=False)
"""R@k counts ranks and T@b spends its own budget: no threshold, no cut."""
PLATFORM: Final = "bench"
Failed = Callable[[Exception], object]
PIPED_WIDTH: Final = 120
"""Columns of a table that goes to a file; on a terminal it is as wide as that."""
ABLATION_WIDTH: Final = 200
"""The same for the table of all sets and terms."""
_WEEK_MINUTES: Final = 7 * 24 * 60.0


@dataclass(frozen=True, slots=True)
class Filled:
    """A conversation in memory: whose it is, where, the ids of its messages by row id, its end and its language."""

    owner: Account
    room: Chat
    ids: Mapping[int, str]
    end: datetime
    language: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured of each set besides the whole of it.

    ``ablate`` leaves out one term of the score at a time, ``bare`` asks once more without an embedder, ``sample`` asks
    only so many questions of each set.
    """

    ablate: bool = False
    bare: bool = False
    sample: int | None = None


async def run_recall(data: Path, *, embedder: Embedder | None, plan: Plan = Plan()) -> dict[str, Any]:
    """Measure every set of a folder through the public face of memory.

    Returns ``{"control": ..., "sets": {name: {"n", "recollect", "bm25", "categories", ...}}}``, per cent; see
    :func:`measured`. Raises bot.bench.evalset.DataError.
    """
    return _result({name: row async for name, row in measured(evalset.folders(data), embedder=embedder, plan=plan)})


def _result(sets: Mapping[str, Any]) -> dict[str, Any]:
    return {"control": bm25.NAME, "sets": dict(sets)}


async def measured(
    folders: Sequence[Path],
    *,
    embedder: Embedder | None,
    plan: Plan = Plan(),
    failed: Failed | None = None,
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Measure set after set, each in a file of its own, and yield its name and figures at once.

    What cannot be measured is told to ``failed``, and the next set has its turn; without it the error is raised
    (DataError, EmbedderUnavailable).
    """
    for folder in folders:
        try:
            each = evalset.load(folder)
            each = each if plan.sample is None else evalset.sampled(each, plan.sample)
            async with opened(settings_of_sets(), embedder) as memory:
                figures = await _measure(memory, each, ablate=plan.ablate)
            if plan.bare:
                async with opened(settings_of_sets(), None) as memory:
                    figures["no_embedder"] = await _measure(memory, each, ablate=False)
        except (evalset.DataError, EmbedderUnavailable) as error:
            if failed is None:
                raise
            failed(error)
        else:
            yield each.name, figures


async def traced(folders: Sequence[Path], id_: str, *, embedder: Embedder | None) -> list[str]:
    """How the question of that id was answered, in lines. Raises DataError when no set has it."""
    for each in map(evalset.load, folders):
        chosen = tracing.question_of(each, id_)
        if chosen is not None:
            conversation, asked = chosen
            async with opened(settings_of_sets(), embedder) as memory:
                filled = await fill(memory, conversation, key=f"{each.name}/{conversation.id}")
                found = await _recalled(memory, filled, asked)
            return list(tracing.told(conversation, asked, found, filled.ids))
    raise evalset.DataError(f"no set has a question {id_} with evidence")


def settings_of_sets() -> Settings:
    """Settings under which sessions end where those of a set do, not by the clock."""
    return Settings(_env_file=None, session=SessionSettings(idle_minutes=_WEEK_MINUTES))


@contextlib.asynccontextmanager
async def opened(settings: Settings, embedder: Embedder | None) -> AsyncIterator[Memory]:
    """A memory in a file of its own, gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        memory = await Memory.open(
            Path(folder) / "bench.db", settings, clock=lambda: datetime.now(UTC), count=len, embedder=embedder
        )
        try:
            yield memory
        finally:
            await memory.close()


async def _measure(memory: Memory, each: EvalSet, *, ablate: bool) -> dict[str, Any]:
    ours, control = Tally(), Tally()
    without = {term: Tally() for term in SCORE_TERMS} if ablate else {}
    for conversation in each.conversations:
        filled = await fill(memory, conversation, key=f"{each.name}/{conversation.id}")
        baseline = _Control(conversation)
        for question in (q for q in each.questions if q.conversation == conversation.id):
            control.take(question, baseline.shown(question))
            await _ask(memory, filled, question, ours)
            for term, tally in without.items():
                await _ask(memory, filled, question, tally, options=replace(UNBOUNDED, without=frozenset({term})))
    figures = {
        "n": len(each.questions),
        "recollect": ours.figures(),
        "bm25": control.figures(),
        "categories": {
            name: {"n": count, "recollect": ours.figures(name), "bm25": control.figures(name)}
            for name, count in ours.sizes.items()
        },
        "newer": {"recollect": ours.newer_first(), "bm25": control.newer_first()},
        "curves": {"recollect": ours.curves(), "bm25": control.curves()},
        "notes": [*each.notes, *_newer_note(each.name, ours, control)],
    }
    return figures | ({"ablation": ablation.figures(without)} if ablate else {})


async def _ask(
    memory: Memory, filled: Filled, question: Asked, tally: Tally, *, options: RecallOptions = UNBOUNDED
) -> None:
    """Ask one question and count what is found."""
    shown, heading = await answer(memory, filled, question, options=options)
    tally.take(question, shown, heading=heading)


async def answer(
    memory: Memory, filled: Filled, question: Asked, *, options: RecallOptions = UNBOUNDED
) -> tuple[list[Shown], float]:
    """What is shown for one question, and the tokens before it; all those of the block as the model would get it."""
    found = await _recalled(memory, filled, question, options=options)
    rows = block(found, filled.owner).splitlines()
    spent = [estimated_tokens(row, filled.language) for row in rows]
    lines = spent[len(rows) - 1 - len(found.units) : -1]
    shown = [
        Shown(tuple(filled.ids[id_] for id_ in unit.cites), tokens)
        for unit, tokens in zip(found.units, lines, strict=True)
    ]
    return shown, sum(spent) - sum(lines)


async def _recalled(
    memory: Memory, filled: Filled, question: Asked, *, options: RecallOptions = UNBOUNDED
) -> Recollection:
    now = question.at or filled.end
    return await memory.recall(filled.owner, question.text, room=filled.room, now=now, options=options)


def _newer_note(name: str, ours: Tally, control: Tally) -> list[str]:
    """How often the new value came before the old one, in a set that says which is which."""
    mine, theirs = ours.newer_first(), control.newer_first()
    if not mine["of"]:
        return []
    return [f"{name}: the new value before the old in {mine['newer']} of {mine['of']}, bm25 in {theirs['newer']}"]


async def fill(memory: Memory, conversation: Conversation, *, key: str) -> Filled:
    """Note every line of a conversation to the journal of one account's private chat, and embed them."""
    lines = [line for session in conversation.sessions for line in session]
    speakers = {line.speaker for line in lines} - {BOT_SPEAKER}
    owner = await memory.account(
        PLATFORM,
        key,
        name=speakers.pop() if len(speakers) == 1 else "",
        language="zh" if conversation.language.startswith("zh") else "en",
    )
    room = await memory.chat(owner, f"dm:{key}")
    ids: dict[int, str] = {}
    for session in conversation.sessions:
        for line in session:
            role: Literal["bot", "user"] = "bot" if line.speaker == BOT_SPEAKER else "user"
            heard = await memory.note(owner, room, Line(role, line.speaker, line.at, line.text))
            ids[heard.message.id] = line.id
        await memory.new_session(owner, room, now=session[-1].at)
    await memory.embed(owner)
    return Filled(owner, room, ids, max(line.at for line in lines) + timedelta(minutes=1), conversation.language)


class _Control:
    """BM25 over the messages of one conversation, each shown as "speaker: text"."""

    def __init__(self, conversation: Conversation) -> None:
        lines = [line for session in conversation.sessions for line in session]
        texts = [f"{line.speaker}: {line.text}" for line in lines]
        self._ranker = bm25.BM25(texts)
        self._shown = [
            Shown((line.id,), estimated_tokens(text, conversation.language))
            for line, text in zip(lines, texts, strict=True)
        ]

    def shown(self, question: Asked) -> list[Shown]:
        """The control's answer to one question: every message, the best first."""
        return [self._shown[place] for place in self._ranker.order(question.text)]


def table(name: str, figures: Mapping[str, Any]) -> Table:
    """One set: ours, ours without an embedder if that was measured, and the control, whole and by category."""
    shown = Table("", "n", *metrics.COLUMNS, title=name)
    bare = figures.get("no_embedder")
    for part, row in {"all": figures, **figures["categories"]}.items():
        systems = {"recollect": row["recollect"], "bm25": row["bm25"]}
        if bare is not None:
            systems["no embedder"] = (bare if part == "all" else bare["categories"][part])["recollect"]
        for system, values in systems.items():
            shown.add_row(f"{part}, {system}", str(row["n"]), *(f"{values[c]:.1f}" for c in metrics.COLUMNS))
    return shown


def main(
    data: Path,
    *,
    as_json: bool,
    embedder: Literal["auto", "endpoint", "local", "none"],
    plan: Plan = Plan(),
    plots: Path | None = None,
    trace: str | None = None,
) -> int:
    """Measure and print; the exit code, 2 if a set is broken or none could be measured.

    Tables are printed set by set; JSON at the end, with what was measured until then even if a set breaks it off.
    ``embedder`` says where vectors come from, ``plots`` is a folder for pictures; ``trace`` is the id of one question,
    which is told of instead.
    """
    chosen = Settings().model_copy(update={"embedder": EmbedderSettings(kind=embedder)})
    faults: list[Exception] = []
    count = 0
    try:
        if trace is not None:
            count = asyncio.run(_told(data, chosen, trace))
        else:
            count = asyncio.run(_printed(data, chosen, as_json=as_json, plan=plan, plots=plots, failed=faults.append))
    except (evalset.DataError, EmbedderUnavailable, ValueError) as error:
        faults.append(error)
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    sound = all(isinstance(fault, evalset.NothingToMeasure) for fault in faults)
    return 0 if sound and count else 2


@contextlib.asynccontextmanager
async def _embedder(settings: Settings) -> AsyncIterator[Embedder | None]:
    """The embedder of the settings, closed afterwards."""
    embedder = choose_embedder(settings)
    try:
        yield embedder
    finally:
        if embedder is not None:
            await embedder.aclose()


async def _told(data: Path, settings: Settings, trace: str) -> int:
    folders = evalset.folders(data)
    async with _embedder(settings) as embedder:
        lines = await traced(folders, trace, embedder=embedder)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1


async def _printed(
    data: Path, settings: Settings, *, as_json: bool, plan: Plan, plots: Path | None, failed: Failed
) -> int:
    """Print what is measured as it comes; returns the number of sets."""
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    sets: dict[str, dict[str, Any]] = {}
    folders = evalset.folders(data)
    async with _embedder(settings) as embedder:
        try:
            async for name, figures in measured(folders, embedder=embedder, plan=plan, failed=failed):
                sets[name] = figures
                if plots is not None:
                    _draw(plots, name, figures, failed)
                if not as_json:
                    console.print(table(name, figures), *figures["notes"], sep="\n")
        finally:
            if as_json:
                sys.stdout.write(json.dumps(_result(sets), ensure_ascii=False) + "\n")
    if not as_json:
        if plan.ablate and sets:
            console.print(ablation.table(sets), width=None if console.is_terminal else ABLATION_WIDTH)
        console.print(f"control: {bm25.NAME}")
    return len(sets)


def _draw(folder: Path, name: str, figures: Mapping[str, Any], failed: Failed) -> None:
    try:
        curves.draw(folder, name, figures)
    except (PlotUnavailable, OSError) as error:
        failed(error)
