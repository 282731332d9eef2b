"""``status``: how the bot and its memory stand, in numbers; only read, whether the bot runs or not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final

from bot import heartbeat, logs
from bot.budgets import PRICED
from bot.commands.spending import price_of
from config.settings import Settings
from memory import DATABASE_NAME, Numbers, Spent, looking

TROUBLES: Final = 5
"""Last warnings and errors that are shown."""
_LONGEST: Final = 160
"""Characters of a line of the log that are shown."""


def main(settings: Settings, *, now: datetime, as_json: bool, people: int = 0) -> int:
    """Print how things stand at ``now`` (aware) and return the exit code.

    ``people`` is how many of those who spent most are named.
    Raises DatabaseError when the database cannot be read.
    """
    told = report(settings, now=now, people=people)
    if as_json:
        sys.stdout.write(json.dumps(told, ensure_ascii=False, indent=1) + "\n")
        return 0
    lines = list(_lines(told))
    width = max(len(what) for what, _ in lines)
    sys.stdout.writelines(f"{what:{width}}  {value}\n" for what, value in lines)
    return 0


def report(settings: Settings, *, now: datetime, people: int = 0) -> dict[str, Any]:
    """Everything ``status`` knows at ``now`` (aware), as plain JSON with times in ISO 8601. Raises DatabaseError."""
    age = heartbeat.age(settings.data_dir, now=now)
    file = settings.data_dir / DATABASE_NAME
    told: dict[str, Any] = {
        "at": now.isoformat(),
        "running": age is not None and age < heartbeat.DEAD_SECONDS,
        "last_beat_seconds": None if age is None else round(age, 1),
        "database": str(file),
        "bytes": _size(file) if file.exists() else 0,
        "troubles": [asdict(trouble) for trouble in logs.troubles(settings.data_dir, TROUBLES)],
    }
    with looking(file) as census:
        if census is None:
            return told | {"version": 0}
        idle = settings.session.idle_minutes * 60
        numbers = census.numbers(now=now, idle_seconds=idle, spenders=people)
    return told | _shown(numbers, settings)


def _shown(numbers: Numbers, settings: Settings) -> dict[str, Any]:
    spent = {kind: asdict(of) for kind, of in numbers.spent.items()}
    priced = [numbers.spent[kind] for kind in PRICED if kind in numbers.spent]
    return {
        "version": numbers.version,
        **numbers.counts,
        "memories": {store: {"hold": hold, "all": whole} for store, (hold, whole) in numbers.memories.items()},
        "sessions": dict(numbers.sessions),
        "erasures": {**numbers.erasures, "next": _iso(numbers.next_erasure)},
        "jobs": [
            {
                "name": job.name,
                "last": _iso(job.finished_at),
                "next": _iso(job.due_at),
                "failures": job.failures,
                "run": job.run,
                "did": {name: count for name, count in job.counts.items() if count},
                "did_at": _iso(job.did_at),
            }
            for job in numbers.jobs
        ],
        "today": {
            "used": spent,
            "price": price_of(priced, settings.model),
            "currency": settings.model.currency,
            "done": _nested(numbers.tallies),
        },
        "people_today": [_spender(who, of, settings) for who, of in numbers.spenders],
    }


def _spender(who: str, spent: Spent, settings: Settings) -> dict[str, Any]:
    return {"account": who, **asdict(spent), "price": price_of([spent], settings.model)}


def _nested(tallies: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    done: dict[str, dict[str, int]] = {}
    for (name, label), times in sorted(tallies.items()):
        done.setdefault(name, {})[label or "all"] = times
    return done


def _lines(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    beat = told["last_beat_seconds"]
    since = "no heartbeat" if beat is None else f"last heartbeat {timedelta(seconds=round(beat))} ago"
    yield "bot", f"{'runs' if told['running'] else 'does not run'} ({since})"
    if not told["version"]:
        yield "database", f"{told['database']} is not there yet: nobody has talked to the bot"
    else:
        yield "database", f"{told['database']}, version {told['version']}, {told['bytes'] / 1e6:.1f} MB"
        yield from _memory_lines(told)
        yield from _job_lines(told["jobs"])
        yield from _today_lines(told)
    for trouble in told["troubles"]:
        what = trouble["what"][:_LONGEST]
        yield trouble["level"], f"{trouble['at']} {trouble['logger']}: {what}"
    if not told["troubles"]:
        yield "log", "no warning and no error"


def _memory_lines(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "people", f"{told['people']} in {told['private_chats']} private chats and {told['groups']} groups"
    stores = ", ".join(f"{store} {of['hold']} of {of['all']}" for store, of in told["memories"].items())
    yield "memories", f"{stores} (hold now, of all rows); {told['messages']} messages"
    sessions = told["sessions"]
    waiting = f"{sessions['due']} to be distilled, {sessions['wait']} wait for another try, {sessions['open']} go on"
    yield "sessions", f"{waiting}; {sessions['set_aside']} lines set aside"
    owed = f"{told['replies_owed']} messages wait for their reply, {told['notices_owed']} receipts owed"
    yield "waiting", owed
    erasures = told["erasures"]
    first = f", the next at {_short(erasures['next'])}" if erasures["next"] else ""
    yield "erasures", f"{erasures['due']} due, {erasures['hidden']} can still be undone{first}"


def _job_lines(jobs: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for job in jobs:
        did = ", ".join(f"{name} {count}" for name, count in job["did"].items())
        last = "never" if job["last"] is None else _short(job["last"])
        parts = [f"last {last}, next {_short(job['next'])}"]
        if job["failures"]:
            parts.append(f"broke off {job['failures']} times in a row (run {job['run']} in the log)")
        if did:
            parts.append(f"{_short(job['did_at'])}: {did}")
        yield f"job {job['name']}", "; ".join(parts)


def _today_lines(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    today = told["today"]
    for kind, of in today["used"].items():
        tokens = f", {of['tokens_in']:,} tokens in, {of['tokens_out']:,} out" if of["tokens_in"] else ""
        yield f"today {kind}", f"{of['times']:,} times{tokens}"
    if today["price"] is not None:
        yield "today price", f"{today['price']:.4f} {today['currency']}"
    for name, labels in today["done"].items():
        if name not in ("used", "tokens_in", "tokens_out", "probed"):
            yield f"today {name}", ", ".join(f"{label} {times:,}" for label, times in labels.items())
    for person in told["people_today"]:
        price = "" if person["price"] is None else f", {person['price']:.4f} {today['currency']}"
        yield person["account"], f"{person['tokens_in']:,} tokens in, {person['tokens_out']:,} out today{price}"


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _short(moment: str | None) -> str:
    return "at once" if moment is None else f"{datetime.fromisoformat(moment):%Y-%m-%d %H:%M} UTC"


def _size(file: Any) -> int:
    return sum(each.stat().st_size for each in file.parent.glob(f"{file.name}*"))
