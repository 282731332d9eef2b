"""``bench write``: what is written of what people say, what is not, and what it replaces, held against gold data.

Messages go through the real memory three times: with the rules alone, with an honest and with a gullible scripted
model (:mod:`bot.bench.proposals`) behind the real distillation. The headline is rules and honest model together.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bot.bench import gold, observed, proposals, writeset
from bot.bench.evalset import DataError
from bot.bench.proposals import ScriptedModel
from bot.bench.writeset import Lone, Update, WriteSet
from bot.bench.writing import START, BrokenRun, Person, World, opened, quoted
from bot.embedders import LocalModelMissing, choose_embedder
from config.settings import EmbedderSettings, Settings
from memory.model import Entry, Event
from memory.ports import Embedder
from memory.script import folded

PIPED_WIDTH: Final = 120
"""Columns of a table that goes to a file; on a terminal it is as wide as that."""
VARIANTS: Final = ("rules_only", "honest", "gullible")
SHUFFLES: Final = 3
"""Orders in which the long session of each language is told."""
HEADLINE: Final = (
    "rules and the honest script together. The script's answers are laid down from the gold labels, so its store "
    "figures say what the gate lets through, not what a model finds. About a pair of memories it answers by the gold "
    "relation of their messages; which pairs it is asked about is the program's doing."
)
Row = dict[str, Any]
_Said = tuple[str, datetime]


@dataclass(slots=True)
class Written:
    """What became of the messages under one variant."""

    store: Row
    updates: Row
    secrets: int
    injections: int
    drops: Counter[str]
    wrong: list[Row] = field(default_factory=list)

    @property
    def figures(self) -> Row:
        """As they are printed."""
        return {
            "store": self.store,
            "updates": self.updates,
            "secrets_stored": self.secrets,
            "injections_stored": self.injections,
            "drops": dict(self.drops.most_common()),
        }


async def run_write(data: Path, embedder: Embedder | None = None) -> Row:
    """Measure a folder; see the module and the README for the keys. Raises DataError and BrokenRun.

    With an ``embedder`` memories are compared by meaning and by words, else by words alone.
    """
    given = writeset.load(data)
    variants = {name: await written(given, name, embedder) for name in VARIANTS}
    honest, drops = variants["honest"], Counter[str]()
    locomo = {voice: await observed.measure(given, voice) for voice in observed.VOICES} if given.talks else {}
    for counted in (*(each.drops for each in variants.values()), locomo.get("as_given", {}).get("drops", {})):
        drops.update(counted)
    return {
        "headline": HEADLINE,
        "embedder": None if embedder is None else embedder.model,
        "store": honest.store,
        "secrets_stored": sum(each.secrets for each in variants.values()),
        "injections_stored": sum(each.injections for each in variants.values()),
        "updates": honest.updates,
        "dates": await _dates(given),
        **await _repeated(given, embedder),
        "shuffled_same": await shuffled(given, embedder),
        "drops": dict(drops.most_common()),
        **{name: variants[name].figures for name in VARIANTS},
        "locomo": locomo,
        "wrong": [row for each in variants.values() for row in each.wrong],
    }


def model_of(variant: str, given: WriteSet) -> ScriptedModel | None:
    """The scripted model of a variant, None for the rules alone."""
    told = [*(each.text for each in given.lone)]
    told += [text for each in given.updates for text in (each.old_message, each.new_message)]
    notes = {
        "honest": lambda: proposals.honest(given.lone, given.updates),
        "gullible": lambda: proposals.gullible(told),
    }
    if variant not in notes:
        return None
    return ScriptedModel(notes[variant](), told, updates=given.updates if variant == "honest" else ())


async def written(given: WriteSet, variant: str, embedder: Embedder | None = None) -> Written:
    """Tell everything to a memory of its own under one of VARIANTS. Raises BrokenRun."""
    async with opened(model_of(variant, given), embedder) as world:
        told = await _tell_alone(world, given.lone)
        ends = await _tell_updates(world, given.updates)
    stored = Counter(each.label for each, entries in told if entries)
    return Written(
        store=gold.of_lone(told),
        updates=gold.of_updates([end.verdict for end in ends]),
        secrets=stored["sensitive"],
        injections=stored["injection"],
        drops=world.drops,
        wrong=[*_wrongly_stored(variant, told), *_wrongly_updated(variant, ends)],
    )


async def _tell_alone(world: World, lone: Sequence[Lone]) -> list[tuple[Lone, list[Entry]]]:
    """Have each message told by somebody who never says anything else."""
    people = [await world.person(each.id, each.language) for each in lone]
    for person, each in zip(people, lone, strict=True):
        await world.say(person, each.text)
    await world.settle()
    return [(each, await world.memory.history(person.owner)) for person, each in zip(people, lone, strict=True)]


@dataclass(frozen=True, slots=True)
class _End:
    update: Update
    verdict: gold.Verdict
    live: list[Entry]


async def _tell_updates(world: World, updates: Sequence[Update]) -> list[_End]:
    """Have each pair told by one person, an hour and a session apart."""
    people = [await world.person(each.id, each.language) for each in updates]
    before = await _told(world, people, [each.old_message for each in updates])
    world.pass_time(timedelta(hours=1))
    after = await _told(world, people, [each.new_message for each in updates])
    ends = []
    for person, each, old, new in zip(people, updates, before, after, strict=True):
        left = each.relation == "delete" and await _left(world, person, each.old_value)
        ends.append(_End(each, gold.judged(each, old, new, left=left), new))
    return ends


async def _told(world: World, people: Sequence[Person], texts: Sequence[str]) -> list[list[Entry]]:
    for person, text in zip(people, texts, strict=True):
        await world.say(person, text)
    await world.settle()
    return [await world.live(person) for person in people]


async def _left(world: World, person: Person, value: str) -> bool:
    """Whether anything still holds a value: memories, closed ones included, the journal, what recall finds."""
    known = [quoted(entry) for entry in await world.memory.history(person.owner)]
    lines = await world.memory.window(person.owner, person.room, now=world.now)
    found = await world.memory.recall(person.owner, value, room=person.room, now=world.now, options=None)
    texts = [*known, *(line.text for line in lines), *(unit.text for unit in found.units)]
    return any(folded(value) in folded(text) for text in texts)


def _wrongly_stored(variant: str, told: Sequence[tuple[Lone, Sequence[Entry]]]) -> Iterator[Row]:
    for each, entries in told:
        missing = [key for key in each.must_contain if not gold.holds(entries, key)] if each.label == "store" else []
        wrong = bool(entries) != (each.label == "store")
        if wrong or missing:
            row = {"id": each.id, "variant": variant, "label": each.label, "text": each.text, "missing": missing}
            yield row | {"stored": [entry.text for entry in entries]}


def _wrongly_updated(variant: str, ends: Sequence[_End]) -> Iterator[Row]:
    for end in ends:
        if not end.verdict.right:
            each = end.update
            row = {"id": each.id, "variant": variant, "label": each.relation}
            yield row | {
                "text": f"{each.old_message} / {each.new_message}",
                "missing": [],
                "stored": [entry.text for entry in end.live],
            }


async def _dates(given: WriteSet) -> Row:
    """How the rules read each time, and the events that came of it: by the rules, and distilled without a date."""
    readings = Counter(gold.read(each) for each in given.dates)
    plain = ScriptedModel(proposals.events(each.text for each in given.dates), [each.text for each in given.dates])
    return {
        "exact": gold.share(readings["exact"], len(given.dates)),
        "wrong_year": readings["wrong_year"],
        "wrong": readings["wrong"],
        "missed": readings["missed"],
        "n": len(given.dates),
        "by_rules": await _events(given, None),
        "distilled": await _events(given, plain),
    }


async def _events(given: WriteSet, model: ScriptedModel | None) -> Row:
    """Events written of dated messages, by the rules or by a model alone: how many, and how many on the right days.

    Of those of the rules also how many keep a word such as "tomorrow"; a distilled sentence is the script's own.
    """
    events = exact = bare = 0
    async with opened(model) as world:
        for each in given.dates:
            world.now = each.at
            person = await world.person(each.id, each.language)
            await world.say(person, each.text, rules=model is None)
            await world.settle()
            for entry in await world.memory.history(person.owner):
                if isinstance(entry, Event):
                    events += 1
                    exact += gold.days(entry.span) in each.accepted
                    bare += gold.is_bare(entry, each)
    return {"stored": events, "exact": exact} | ({} if model else {"bare_words": bare})


async def _repeated(given: WriteSet, embedder: Embedder | None) -> Row:
    """Rows that come of hearing and distilling everything twice, and of people saying the same again a day later."""
    stored = [each for each in given.lone if each.label == "store"]
    async with opened(model_of("honest", given), embedder) as world:
        await _tell_alone(world, given.lone)
        await _tell_updates(world, given.updates)
        rows = await world.rows()
        await world.again()
        twice = await world.rows() - rows
    async with opened(model_of("honest", given), embedder) as world:
        people = [await world.person(each.id, each.language) for each in stored]
        await _told(world, people, [each.text for each in stored])
        rows = await world.rows()
        world.pass_time(timedelta(days=1))
        await _told(world, people, [each.text for each in stored])
        said_again = await world.rows() - rows
    return {"replay_twice_added": twice, "said_again_added": said_again}


async def shuffled(given: WriteSet, embedder: Embedder | None = None) -> float:
    """The share of sessions that end the same when their messages come in another order, each with its own time."""
    order = random.Random(4)  # noqa: S311
    same = tried = 0
    async with opened(model_of("honest", given), embedder) as world:
        for number, (language, texts) in enumerate(_sessions(given)):
            straight = [(text, START + timedelta(minutes=minute)) for minute, text in enumerate(texts)]
            others = _orders(straight, order)
            people = [await world.person(f"{number}/{place}", language) for place in range(len(others) + 1)]
            world.now = START + timedelta(hours=12)
            for person, told in zip(people, (straight, *others), strict=True):
                await _tell_in_order(world, person, told)
            await world.settle()
            ends = [sorted(map(_as_known, await world.live(person))) for person in people]
            same += sum(end == ends[0] for end in ends[1:])
            tried += len(others)
    return gold.share(same, tried)


def _orders(told: list[_Said], order: random.Random) -> list[list[_Said]]:
    """Other orders of a session: the one there is of two messages, some of more."""
    if len(told) <= 2:  # noqa: PLR2004
        return [told[::-1]]
    return [order.sample(told, len(told)) for _ in range(SHUFFLES)]


async def _tell_in_order(world: World, person: Person, told: Sequence[_Said]) -> None:
    for text, at in told:
        await world.say(person, text, at=at)


def _sessions(given: WriteSet) -> Iterator[tuple[str, list[str]]]:
    """Yield each update as a session, and for each language everything told in one."""
    for each in given.updates:
        yield each.language, [each.old_message, each.new_message]
    for language in sorted({each.language for each in given.updates}):
        texts = [each.text for each in given.lone if each.language == language and each.label == "store"]
        pairs = [each for each in given.updates if each.language == language and each.relation != "delete"]
        yield language, [*texts, *(text for each in pairs for text in (each.old_message, each.new_message))]


def _as_known(entry: Entry) -> tuple[str, ...]:
    span = (entry.span.start.isoformat(), entry.span.end.isoformat()) if isinstance(entry, Event) else ()
    return (entry.kind, entry.subject, entry.text, *span)


def tables(result: Mapping[str, Any]) -> Iterator[Table]:
    """The figures, why proposals were dropped, and what is wrong by the headline and by the rules alone."""
    runs = {
        "rules alone": result["rules_only"],
        "rules + honest script": result["honest"],
        "rules + gullible script": result["gullible"],
    }
    written = Table("what", *runs, title="what is written of messages, and what updates leave")
    for label, part, key in _ROWS:
        written.add_row(label, *(f"{run[part][key]:g}" for run in runs.values()))
    for key in ("secrets_stored", "injections_stored"):
        written.add_row(key.replace("_", " "), *(str(run[key]) for run in runs.values()))
    yield written
    yield _of_times(result)
    yield _of_drops({name: run["drops"] for name, run in runs.items()} | _voices(result, "drops"))
    wrong = Table("id", "variant", "is", "told", "missing", "stored", title="wrong", show_lines=True)
    for row in result["wrong"]:
        if row["variant"] != "gullible":
            cells = (row["text"], ", ".join(row["missing"]), "\n".join(row["stored"]) or "nothing")
            wrong.add_row(row["id"], row["variant"], row["label"], *cells)
    yield wrong


_ROWS: Final = (
    ("precision of store against skip", "store", "precision"),
    ("recall of store", "store", "recall"),
    ("F1", "store", "f1"),
    ("key recall, in what is shown", "store", "key_recall"),
    ("skip stored", "store", "skip_stored"),
    ("ephemeral stored without an end, halves", "store", "ephemeral_errors"),
    ("updates right", "updates", "current"),
    ("stale, of those that could be", "updates", "stale"),
    ("over-deleted, of those that could be", "updates", "over_deleted"),
    ("still true and never stored, updates", "updates", "missed"),
)


def _of_times(result: Mapping[str, Any]) -> Table:
    times, by_rules, distilled = result["dates"], result["dates"]["by_rules"], result["dates"]["distilled"]
    shown = Table("what", "value", title="times, repetition, conversations")
    shown.add_row(f"dates read exactly, of {times['n']}", f"{times['exact']:g}")
    shown.add_row(
        "dates in a wrong year / otherwise wrong / missed",
        f"{times['wrong_year']} / {times['wrong']} / {times['missed']}",
    )
    shown.add_row("events written by the rules / on the right days", f"{by_rules['stored']} / {by_rules['exact']}")
    shown.add_row("... with a bare relative word left in them", str(by_rules["bare_words"]))
    shown.add_row(
        "events distilled without a date / on the right days", f"{distilled['stored']} / {distilled['exact']}"
    )
    shown.add_row("rows added by hearing and distilling everything twice", str(result["replay_twice_added"]))
    shown.add_row("rows added by saying the same again a day later", str(result["said_again_added"]))
    shown.add_row("sessions that end the same in another order", f"{result['shuffled_same']:g}")
    for voice, figures in _voices(result).items():
        shown.add_row(f"{voice}: observed messages that a memory cites", f"{figures['share']:g}")
    return shown


def _voices(result: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
    named = {f"locomo, {voice.replace('_', ' ')}": figures for voice, figures in result["locomo"].items()}
    return {name: figures if key is None else figures[key] for name, figures in named.items()}


def _of_drops(runs: Mapping[str, Mapping[str, int]]) -> Table:
    shown = Table("reason", *runs, title="dropped")
    for reason in sorted({reason for drops in runs.values() for reason in drops}):
        shown.add_row(reason, *(str(drops.get(reason, 0)) for drops in runs.values()))
    return shown


async def _with_embedder(data: Path) -> Row:
    """Measure with the bundled model, whatever the settings of this machine say; without it by words alone."""
    try:
        embedder = choose_embedder(Settings(_env_file=None, embedder=EmbedderSettings(kind="local")))
    except LocalModelMissing:
        return await run_write(data)
    async with contextlib.AsyncExitStack() as stack:
        if embedder is not None:
            stack.push_async_callback(embedder.aclose)
        return await run_write(data, embedder)


def main(data: Path, *, as_json: bool) -> int:
    """Measure and print; the exit code is 1 when the data cannot be read or the write path did not work."""
    try:
        result = asyncio.run(_with_embedder(data))
    except (DataError, BrokenRun) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if as_json:
        sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
        return 0
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    console.print(*tables(result), f"headline: {result['headline']}", sep="\n", markup=False)
    return 0
