"""``calibrate``: where recall draws its lines in a memory, as a table and a picture. Numbers, never words."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import numpy as np
from rich.console import Console
from rich.table import Table

from bot.bench import levels
from bot.bench.levels import Levels
from bot.embedders import choose_embedder
from bot.plot import PlotUnavailable
from config.settings import Settings
from memory import DATABASE_NAME, Calibration, Line, Memory, inspect, sample_texts
from memory.model import Account
from memory.ports import Embedder, EmbedderUnavailable

FAILED: Final = 1
QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
Language = Literal["en", "zh"]


class NobodyError(Exception):
    """There is no such person or no database; the text says which."""


def main(settings: Settings, *, owner: str | None, sample: Language | None, plot: Path | None) -> int:
    """Measure the memory of ``owner`` ("telegram:1001") or of the shipped ``sample``, print it and draw it to ``plot``.

    Returns the exit code.
    """
    try:
        measured = asyncio.run(_measured(settings, owner, sample))
    except (NobodyError, EmbedderUnavailable, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    title = owner or f"sample, {sample}"
    Console().print(*tables(measured, title))
    if plot is not None:
        try:
            levels.draw(_levels(measured), plot, title, chosen=_chosen(measured))
        except PlotUnavailable as missing:
            sys.stderr.write(f"{missing}\n")
    return 0


def tables(measured: Calibration, title: str) -> list[Table]:
    """Two tables: the levels of own and foreign questions, and what each cut lets through."""
    both = _levels(measured)
    held = f"{title}: {measured.rows} rows, {measured.vectors} with vectors"
    scores = Table("level of", "questions", *(f"{share:.0%}" for share in QUANTILES), title=held)
    for name, values in (("own, in half the words", both.own), ("foreign", both.foreign)):
        shares = [f"{level:.3f}" for level in np.quantile(values, QUANTILES)] if values else ["-"] * len(QUANTILES)
        scores.add_row(name, str(len(values)), *shares)
    area = f"cuts; AUC {both.auc:.3f}"
    return [scores, levels.cuts(both, area, chosen=_chosen(measured))]


def _levels(measured: Calibration) -> Levels:
    return Levels(measured.own, measured.foreign)


def _chosen(measured: Calibration) -> list[float]:
    return [measured.floor, measured.sure]


async def _measured(settings: Settings, owner: str | None, sample: Language | None) -> Calibration:
    async with contextlib.AsyncExitStack() as stack:
        embedder = choose_embedder(settings)
        if embedder is not None:
            stack.push_async_callback(embedder.aclose)
        if owner is None:
            memory, person = await stack.enter_async_context(_sampled(settings, embedder, sample or "en"))
        else:
            memory, person = await stack.enter_async_context(_opened(settings, embedder, owner))
        return await memory.calibrate(person)


@contextlib.asynccontextmanager
async def _opened(settings: Settings, embedder: Embedder | None, owner: str) -> AsyncIterator[tuple[Memory, Account]]:
    """The database of the settings and the person asked for. Raises NobodyError."""
    platform, _, user_id = owner.partition(":")
    path = settings.data_dir / DATABASE_NAME
    if not inspect(path):
        raise NobodyError(f"{path} is not there yet: nobody has talked to the bot")
    memory = await _memory(settings, embedder, path)
    try:
        person = await memory.known_account(platform, user_id)
        if person is None:
            raise NobodyError(f"nobody is known as {owner}: name a person as PLATFORM:ID, such as telegram:1001")
        yield memory, person
    finally:
        await memory.close()


@contextlib.asynccontextmanager
async def _sampled(
    settings: Settings, embedder: Embedder | None, language: Language
) -> AsyncIterator[tuple[Memory, Account]]:
    """A memory that was told the statements that ship, gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        memory = await _memory(settings, embedder, Path(folder) / DATABASE_NAME)
        try:
            person = await memory.account("sample", language, language=language)
            chat = await memory.chat(person, "sample")
            for text in sample_texts(language):
                await memory.note(person, chat, Line("user", "", datetime.now(UTC), text))
            await memory.embed(person)
            yield memory, person
        finally:
            await memory.close()


async def _memory(settings: Settings, embedder: Embedder | None, path: Path) -> Memory:
    return await Memory.open(path, settings, clock=lambda: datetime.now(UTC), count=len, embedder=embedder)
