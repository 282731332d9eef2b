"""Conversations with observations: which messages yield a fact when the model answers with the observations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final, Literal, get_args

from bot.bench.evalset import Conversation
from bot.bench.gold import share
from bot.bench.proposals import Note, ScriptedModel, fact
from bot.bench.writeset import Observation, WriteSet
from bot.bench.writing import World, opened
from memory.model import SELF

Voice = Literal["as_given", "first_person"]
"""An observation names its speaker; the distillation prompt asks for the first person instead."""
VOICES: Final[tuple[Voice, ...]] = get_args(Voice)


async def measure(given: WriteSet, voice: Voice) -> dict[str, Any]:
    """Distil every session with its observations as the model's answer.

    Returns ``share`` of the messages with an observation that a stored memory cites, the counts behind it, and why
    proposals were ``drops``.
    """
    cited = wanted = proposed = 0
    drops: Counter[str] = Counter()
    for talk in given.talks:
        about = [each for each in given.observations if each.conversation == talk.id]
        notes = list(_notes(talk, about, voice))
        told = [line.text for session in talk.sessions for line in session]
        async with opened(ScriptedModel(notes, told)) as world:
            found = await _cited(world, talk)
            drops.update(world.drops)
        observed = {id_ for each in about for id_ in each.evidence}
        wanted, cited, proposed = wanted + len(observed), cited + len(observed & found), proposed + len(notes)
    return {
        "share": share(cited, wanted),
        "cited": cited,
        "messages": wanted,
        "proposed": proposed,
        "drops": dict(drops.most_common()),
    }


def _notes(talk: Conversation, observations: Sequence[Observation], voice: Voice) -> Iterator[Note]:
    """Yield each observation for everybody whose messages it rests on: only their author may cite them."""
    lines = {line.id: line for session in talk.sessions for line in session}
    for each in observations:
        evidence = [lines[id_] for id_ in each.evidence if id_ in lines]
        for author in dict.fromkeys(line.speaker for line in evidence):
            own = author == each.speaker
            text = in_first_person(each.text, author) if own and voice == "first_person" else each.text
            item = fact(text, subject=SELF if own else each.speaker)
            yield Note(item, tuple(line.text for line in evidence if line.speaker == author))


def in_first_person(text: str, name: str) -> str:
    """A sentence about somebody as they would say it, as far as replacing their name goes."""
    mine = re.sub(rf"\b{re.escape(name)}'s\b", "my", text)
    return re.sub(rf"\b{re.escape(name)}\b", "I", mine)


async def _cited(world: World, talk: Conversation) -> set[str]:
    """Have a conversation told in a group, session by session; returns the ids of the messages memories cite."""
    world.now = talk.sessions[0][0].at
    speakers = dict.fromkeys(line.speaker for session in talk.sessions for line in session)
    people = {name: await world.person(name, talk.language, name=name, group=talk.id) for name in speakers}
    ids: dict[int, str] = {}
    for session in talk.sessions:
        world.now = max(world.now, session[0].at)
        for line in session:
            message = await world.say(people[line.speaker], line.text, at=line.at, rules=False)
            ids[message.id] = line.id
        world.pass_time(timedelta(hours=1))
        await world.settle()
    stored = [entry for person in people.values() for entry in await world.memory.history(person.owner)]
    return {ids[citation.message] for entry in stored for citation in entry.provenance.citations}
