"""``bench delivery``: the whole bot answers many Telegram chats at once, some of them flooded; what arrives is judged.

The platform and the model run in a process of their own, so that the event loop measured is the bot's alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import statistics
import sys
import tempfile
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr
from rich.console import Console
from rich.table import Table

from bot import adapters
from bot.adapters.telegram import Pace
from bot.app import App, built, keep_out_of_collections, utc_now
from bot.bench import doubles
from bot.bench.doubles import Report
from bot.bench.script import Script, Shown, is_serial, judged, replies, troubles
from bot.message import Adapter, ChatRef, CommandSpec, Incoming, Reply, Seen, Sink, Submit, Update
from config.settings import (
    AccessSettings,
    ConversationSettings,
    EmbedderSettings,
    PrivacySettings,
    Settings,
    TelegramSettings,
)

MOST_LAG_MS: Final = 50.0
"""The event loop may be so late at the 99th percentile."""
LOOK_SECONDS: Final = 0.005
"""Pause between two looks at the event loop."""
PIPED_WIDTH: Final = 100
"""Columns of a table that goes to a file."""
QUESTIONS: Final = 2
"""Messages each chat writes."""


class Lag:
    """How late the event loop was at each look, ms; and how much of that its own thread was at work, CPU ms.

    Room for ``seconds`` of looks is taken at once: what the judge has to remember is no growth of the bot's.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        room = array("d", [0.0]) * int(seconds / LOOK_SECONDS)
        self._late, self._own, self._looks = room, room[:], 0

    @property
    def late(self) -> array[float]:
        """How late it was."""
        return self._late[: self._looks]

    @property
    def own(self) -> array[float]:
        """How long its thread was at work meanwhile."""
        return self._own[: self._looks]

    async def watch(self) -> None:
        """Look until cancelled."""
        while True:
            started, worked = time.perf_counter(), time.thread_time()
            await asyncio.sleep(LOOK_SECONDS)
            late = max(0.0, time.perf_counter() - started - LOOK_SECONDS)
            self.note(late * 1_000, min(late, time.thread_time() - worked) * 1_000)

    def note(self, late: float, own: float) -> None:
        """Take down a look."""
        if self._looks == len(self._late):
            self._late.append(0.0)
            self._own.append(0.0)
        self._late[self._looks], self._own[self._looks] = late, own
        self._looks += 1


class Counted:
    """An adapter whose updates are counted: ``all_in`` is set when so many were taken."""

    def __init__(self, adapter: Adapter, updates: int) -> None:
        self.name = adapter.name
        self.repeats_for: timedelta = adapter.repeats_for
        self.all_in = asyncio.Event()
        self._adapter = adapter
        self._left = updates

    async def run(self, submit: Submit, commands: tuple[CommandSpec, ...], seen: Seen) -> None:
        """Serve, and count."""

        async def counted(update: Update, sink: Sink) -> None:
            await submit(update, sink)
            self._left -= 1
            if not self._left:
                self.all_in.set()

        await self._adapter.run(counted, commands, seen)

    async def notify(self, chat: ChatRef, reply: Reply) -> None:
        """As the adapter does."""
        await self._adapter.notify(chat, reply)

    def sink(self, incoming: Incoming, *, shown: tuple[str, ...] = (), begun: bool = False) -> Sink:
        """As the adapter does."""
        return self._adapter.sink(incoming, shown=shown, begun=begun)


@dataclass(frozen=True, slots=True)
class Played:
    """One run: what the platform shows at the end, how the loop fared, seconds in all."""

    report: Report
    lag: Lag
    seconds: float


def play(script: Script) -> Played:
    """Have the bot answer everybody in the script. What is not answered in ``script.patience`` is left as it is."""
    started = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        doubles.running(script, now=int(utc_now().timestamp())) as servers,
    ):
        lag = asyncio.run(_answer_all(script, _settings(script, servers, Path(folder))))
        return Played(servers.report(), lag, time.perf_counter() - started)


def _settings(script: Script, servers: doubles.Doubles, folder: Path) -> Settings:
    return Settings(
        _env_file=None,
        data_dir=folder,
        openai_base_url=servers.model_url,
        openai_model=doubles.MODEL,
        telegram_bot_token=SecretStr(doubles.TOKEN),
        telegram=TelegramSettings(base_url=servers.base_url),
        embedder=EmbedderSettings(kind="none"),
        conversation=ConversationSettings(quiet_seconds=script.quiet_seconds),
        access=AccessSettings(open="everybody"),
        privacy=PrivacySettings(first_notice=False),  # An answer is compared to the letter.
    )


async def _answer_all(script: Script, settings: Settings) -> Lag:
    lag = Lag()
    async with built(settings) as app:
        keep_out_of_collections()
        (telegram,) = adapters.configured(settings, utc_now)
        counted = Counted(telegram, QUESTIONS * script.chats)
        app.scheduler.start()
        tasks = [asyncio.create_task(lag.watch()), asyncio.create_task(app.serve(counted))]
        try:
            async with asyncio.timeout(script.patience):
                await _all_answered(app, counted, tasks[-1])
        except TimeoutError:
            sys.stderr.write(f"given up after {script.patience:g} s\n")
        finally:
            tasks[0].cancel()
            await app.conversation.stop()
            tasks[-1].cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks)
            await app.scheduler.stop()
    return lag


async def _all_answered(app: App, counted: Counted, serving: asyncio.Task[None]) -> None:
    """Wait until every message has come in and was answered. Raises AdapterError when the platform is given up."""
    all_in = asyncio.create_task(counted.all_in.wait())
    await asyncio.wait({all_in, serving}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        all_in.cancel()
        serving.result()
    await app.conversation.idle()


# ---- what came of it ---------------------------------------------------------------------------------


def run_delivery(script: Script) -> dict[str, Any]:
    """Play the script, then the same without floods, and put the figures together. Takes about a minute."""
    started = time.perf_counter()
    played, calm = play(script), play(script.calm())
    result: dict[str, Any] = {
        "chats": script.chats,
        "frames": script.frames,
        "frame_seconds": script.frame_seconds,
        **texts(played.report),
        "edits": edits(played.report, Pace().edit_private),
        "wait_s": waits(script, played.report, calm.report),
        "loop_lag_ms": lags(played.lag),
        "troubles": dict(sorted(played.report.troubles.items())),
        "run_seconds": round(played.seconds, 1),
        "seconds": round(time.perf_counter() - started, 1),
    }
    return result | {"failures": failures(result)}


def texts(report: Report) -> dict[str, Any]:
    """Which final texts are right, and in which chats they stand in order."""
    verdicts = {chat: judged(chat, messages) for chat, messages in report.chats.items()}
    at_once = [verdict.joined for chat, verdict in verdicts.items() if not is_serial(chat)]
    return {
        "finals": {
            "right": sum(verdict.right for verdict in verdicts.values()),
            "wanted": sum(verdict.wanted for verdict in verdicts.values()),
            "wrong_chats": [chat for chat, verdict in verdicts.items() if not verdict.clean],
        },
        "order": {
            "right": sum(verdict.in_order for verdict in verdicts.values()),
            "wanted": len(verdicts),
            "wrong_chats": [chat for chat, verdict in verdicts.items() if not verdict.in_order],
        },
        "joined": {"chats": sum(at_once), "of": len(at_once)},
    }


def edits(report: Report, pace: float) -> dict[str, float]:
    """Edits asked for of each reply, and how many of one's duration there may be at one in ``pace`` seconds.

    ``max`` and ``bound`` belong to the reply that came nearest to its bound. Each message may be edited once
    more at the end.
    """
    counted = [
        (sum(message.edits for message in reply), _bound(reply, pace))
        for messages in report.chats.values()
        for reply in replies(messages)
    ]
    nearest = max(counted, key=lambda pair: pair[0] / pair[1], default=(0, 0))
    return {
        "median": statistics.median([made for made, _ in counted]) if counted else 0,
        "max": max((made for made, _ in counted), default=0),
        "nearest": nearest[0],
        "bound": nearest[1],
        "over": sum(made > bound for made, bound in counted),
    }


def _bound(reply: Sequence[Shown], pace: float) -> int:
    duration = max(message.last for message in reply) - reply[0].first
    return math.ceil(duration / pace) + len(reply)


def waits(script: Script, report: Report, calm: Report) -> dict[str, float]:
    """Seconds from the first question of a chat until all stood there, with floods elsewhere and without any."""
    others = [chat for chat in script.numbers if chat not in script.flooded]
    beside, control = _ends(report, others), _ends(calm, others)
    return {
        "flooded_max": round(max(_ends(report, sorted(script.flooded)), default=0.0), 2),
        "others_max": round(max(beside, default=0.0), 2),
        "others_p99": round(percentile(beside, 99), 2),
        "no_flood_p99": round(percentile(control, 99), 2),
        "ratio": round(percentile(beside, 99) / (percentile(control, 99) or math.inf), 3),
    }


def _ends(report: Report, chats: Sequence[int]) -> list[float]:
    return [max((message.last for message in report.chats[chat]), default=0.0) for chat in chats]


def lags(lag: Lag) -> dict[str, float]:
    """How late the loop was, and how late its own work alone would have made it."""
    return {
        "p50": round(percentile(lag.late, 50), 2),
        "p99": round(percentile(lag.late, 99), 2),
        "max": round(max(lag.late, default=0.0), 2),
        "own_p99": round(percentile(lag.own, 99), 2),
    }


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that ``percent`` of a hundred do not exceed (nearest rank); 0 without values."""
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1] if values else 0.0


def failures(result: Mapping[str, Any]) -> list[str]:
    """What is not as it must be, one line each."""
    finals, order, lag = result["finals"], result["order"], result["loop_lag_ms"]["p99"]
    found = []
    if finals["right"] < finals["wanted"] or finals["wrong_chats"]:
        found.append(f"final texts are wrong in chats {_listed(finals['wrong_chats'])}")
    if order["wrong_chats"]:
        found.append(f"replies are out of order in chats {_listed(order['wrong_chats'])}")
    if over := result["edits"]["over"]:
        found.append(f"{over} replies were edited more often than their pace allows")
    if lag >= MOST_LAG_MS:
        found.append(f"the event loop was {lag:g} ms late at the 99th percentile, not under {MOST_LAG_MS:g}")
    return found


def table(result: Mapping[str, Any]) -> Table:
    """The figures."""
    finals, order, made = result["finals"], result["order"], result["edits"]
    wait, lag, joined = result["wait_s"], result["loop_lag_ms"], result["joined"]
    shown = Table("what", "value", title=f"{result['chats']} chats at once, {result['frames']} frames an answer")
    for label, value in (
        ("pause between two frames of the model, s", f"{result['frame_seconds']:g}"),
        ("final texts right", f"{finals['right']} of {finals['wanted']}"),
        ("wrong or more than wanted in chats", _listed(finals["wrong_chats"])),
        ("chats in order", f"{order['right']} of {order['wanted']}"),
        ("out of order in chats", _listed(order["wrong_chats"])),
        ("two questions at once answered as one, chats", f"{joined['chats']} of {joined['of']}"),
        ("edits a reply, median / max", f"{made['median']:g} / {made['max']}"),
        ("nearest to its bound (duration / pace, and the end)", f"{made['nearest']} of {made['bound']}"),
        ("replies over their bound", str(made["over"])),
        ("all answered in the slowest flooded chat, s", f"{wait['flooded_max']:g}"),
        ("... in the slowest other chat, s", f"{wait['others_max']:g}"),
        ("... in the others, p99, s", f"{wait['others_p99']:g}"),
        ("... in the same ones without any flood, p99, s", f"{wait['no_flood_p99']:g}"),
        ("ratio of these two", f"{wait['ratio']:g}"),
        ("event loop late, p50 / p99 / max, ms", f"{lag['p50']:g} / {lag['p99']:g} / {lag['max']:g}"),
        ("... by its own work, p99, CPU ms", f"{lag['own_p99']:g}"),
        *((f"refused or lost: {what}", str(times)) for what, times in result["troubles"].items()),
        ("seconds, this run / in all", f"{result['run_seconds']:g} / {result['seconds']:g}"),
    ):
        shown.add_row(label, value)
    return shown


def _listed(chats: Sequence[int]) -> str:
    return ", ".join(map(str, chats)) or "none"


def main(*, chats: int, frames: int, as_json: bool) -> int:
    """Measure and print; the exit code is 1 when something is not as it must be."""
    result = run_delivery(Script(chats, frames, faults=troubles(chats)))
    if as_json:
        sys.stdout.write(json.dumps(result) + "\n")
    else:
        Console(width=None if sys.stdout.isatty() else PIPED_WIDTH).print(table(result))
    for failure in result["failures"]:
        sys.stderr.write(f"{failure}\n")
    return 1 if result["failures"] else 0
