"""``bench cost``: what a day of several people costs in requests and tokens, through the whole bot.

The bot of the composition root talks to an endpoint on this machine (:mod:`bot.bench.meter`) under a simulated
clock; housekeeping looks for work after every message, as it does in real life. Sessions are distilled once their
idle time is over. Everything is scripted, so the figures are the same on every machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bot import replay
from bot.bench.day import MORNING, Saying, sayings
from bot.bench.meter import Call, Meter, serving
from bot.bench.proposals import ScriptedModel, noted
from bot.replay import Player
from bot.tokens import token_counter
from config.settings import EmbedderSettings, Settings

PIPED_WIDTH: Final = 120
"""Columns of a table that goes to a file; on a terminal it is as wide as that."""
COUNTED_AS: Final = "gpt-4o"
"""The model in whose tokens is counted; nothing leaves this machine."""
BATCH: Final = 64
"""Texts in one request, so that a request is a batch; the default of ten splits one for the smallest endpoints."""
PURPOSES: Final = {
    "reply": "replies",
    "distillation": "distillations",
    "reconciliation": "reconciliations",
    "question": "query embeddings",
    "embedding": "embedding batches",
}
MODEL_CALLS: Final = ("reply", "distillation", "reconciliation")
AIMS: Final = {"distillation": 1.0, "reconciliation": 1.0, "embedding": 1.0}
"""Requests a session is meant to cost at most (DESIGN, section 4)."""


class BrokenDay(Exception):
    """The day did not go as scripted, so its figures mean nothing; the text says what happened."""


async def run_cost(day: Sequence[Saying] | None = None) -> dict[str, Any]:
    """Play a day and count. Raises BrokenDay.

    Returns the requests, texts and tokens ``per_100_messages`` by purpose and ``tokens_per_100_messages`` in all, the
    same ``per_session`` (requests) and as ``tokens_per_session``, ``model_calls_per_session`` of every purpose but
    embedding, the most the ``aims`` allow, and what the shipped questions cost ``once``, before the first message.
    """
    said = sayings() if day is None else day
    count = token_counter(COUNTED_AS)
    notes = [note for each in said if each.lasting for note in noted(each.text)]
    model = ScriptedModel(notes, [each.text for each in said])
    async with serving(Meter(model, [each.text for each in said], count)) as meter:
        with tempfile.TemporaryDirectory() as folder:
            once = await _play(said, meter, Path(folder))
    if model.strangers:
        raise BrokenDay("the distillation prompt shows messages in a form the scripted model cannot read")
    return _figures(said, meter.calls[once:], meter.calls[:once])


async def _play(said: Sequence[Saying], meter: Meter, folder: Path) -> int:
    """Play the day; returns how many requests were made before the first message."""
    settings = Settings(
        _env_file=None,
        data_dir=folder,
        openai_base_url=meter.base_url,
        openai_model=COUNTED_AS,
        openai_embedding_model="drawn",
        embedder=EmbedderSettings(batch=BATCH),
    )
    idle = timedelta(minutes=settings.session.idle_minutes)
    began = (MORNING - replay.BEGINNING - timedelta(hours=1)).total_seconds()
    lines = [{"advance": began}, *map(_line, range(len(said)), said), {"advance": 2 * idle.total_seconds()}]
    calls: list[int] = []
    async with contextlib.aclosing(Player(settings).play(io.StringIO("\n".join(map(json.dumps, lines))))) as played:
        async for answer in played:
            if "error" in answer:
                raise BrokenDay(str(answer["error"]))
            calls.append(len(meter.calls))
    return calls[0]


def _line(number: int, said: Saying) -> dict[str, Any]:
    user = str(1000 + said.person)
    return {
        "at": said.at.isoformat(),
        "platform": "telegram",
        "chat": f"dm:{user}",
        "user": user,
        "name": said.name,
        "id": str(number),
        "text": said.text,
    }


def _figures(said: Sequence[Saying], calls: Sequence[Call], before: Sequence[Call]) -> dict[str, Any]:
    sessions = len({(each.person, each.session) for each in said})
    scale = 100 / len(said)
    per_session = {purpose: round(len(_of(purpose, calls)) / sessions, 3) for purpose in PURPOSES}
    tokens = {purpose: sum(call.tokens_in + call.tokens_out for call in _of(purpose, calls)) for purpose in PURPOSES}
    return {
        "messages": len(said),
        "people": len({each.person for each in said}),
        "sessions": sessions,
        "per_100_messages": {purpose: _summed(_of(purpose, calls), scale) for purpose in PURPOSES},
        "tokens_per_100_messages": round(scale * sum(tokens.values())),
        "per_session": per_session,
        "tokens_per_session": {purpose: round(tokens[purpose] / sessions) for purpose in PURPOSES},
        "model_calls_per_session": round(sum(per_session[purpose] for purpose in MODEL_CALLS), 3),
        "aims": AIMS,
        "over": [purpose for purpose, most in AIMS.items() if per_session[purpose] > most],
        "once": _summed(before, 1.0),
    }


def _of(purpose: str, calls: Sequence[Call]) -> list[Call]:
    return [call for call in calls if call.purpose == purpose]


def _summed(calls: Sequence[Call], scale: float) -> dict[str, float]:
    return {
        "requests": round(scale * len(calls), 1),
        "texts": round(scale * sum(call.texts for call in calls), 1),
        "tokens_in": round(scale * sum(call.tokens_in for call in calls)),
        "tokens_out": round(scale * sum(call.tokens_out for call in calls)),
    }


def table(result: Mapping[str, Any]) -> Table:
    """The figures."""
    title = f"{result['messages']} messages of {result['people']} people in {result['sessions']} sessions"
    per_100, a_session = ("requests", "texts", "tokens in", "tokens out"), ("requests a session", "tokens a session")
    shown = Table("per 100 messages", *per_100, *a_session, title=title)
    for purpose, label in PURPOSES.items():
        row, most = result["per_100_messages"][purpose], result["aims"].get(purpose)
        asked = f"{result['per_session'][purpose]:g}" + ("" if most is None else f" (aim {most:g})")
        shown.add_row(
            label,
            *(f"{row[key]:,g}" for key in ("requests", "texts", "tokens_in", "tokens_out")),
            asked,
            f"{result['tokens_per_session'][purpose]:,}",
        )
    once = result["once"]
    cells = (f"{once[key]:,g}" for key in ("requests", "texts", "tokens_in", "tokens_out"))
    shown.add_row("once, for what ships", *cells, "", "")
    return shown


def main(*, as_json: bool) -> int:
    """Measure and print; the exit code is 1 when the day did not go as scripted."""
    try:
        result = asyncio.run(run_cost())
    except BrokenDay as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if as_json:
        sys.stdout.write(json.dumps(result) + "\n")
        return 0
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    in_all, a_session = result["tokens_per_100_messages"], sum(result["tokens_per_session"].values())
    calls = f"model calls a session: {result['model_calls_per_session']:g}"
    console.print(
        table(result), f"tokens in all: {in_all:,} per 100 messages, {a_session:,} a session; {calls}", sep="\n"
    )
    if result["over"]:
        console.print("over their aim: " + ", ".join(PURPOSES[purpose] for purpose in result["over"]))
    return 0
