"""Random forgetting: every form, undo, talk in between, late distillation and restarts, over the real stores.

Each thing that is said holds a word of its own. At any time a word is to be seen exactly if no deletion covers it
that was not undone; in the end none that was forgotten stands in any table or in any byte of any file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bot.message import Reply
from tests.conftest import Clock
from tests.seeds import SEED
from tests.servers.openai_server import OpenAIServer, Request
from tests.talk import Talk, talking
from tests.test_forget_forms import holding

OPERATIONS = 45
MARKER = re.compile(r"mark[a-z]{6}")
CHATS = ("", "group:-7")


def repeated(request: Request) -> str:
    """The worst of models: it says again all that the request held."""
    return f"Noted: {' '.join(sorted(set(MARKER.findall(request.prompt))))}."


def distilled(request: Request) -> str:
    """A fact of every line that may be cited."""
    blank = dict.fromkeys(("attribute", "value", "when", "start", "end", "until"), "")
    items: list[dict[str, Any]] = [
        {"kind": "fact", "subject": "self", "text": words, "confidence": 0.9, "importance": 0.5}
        | {"cites": [{"message": int(number), "quote": words}], "forgettable": False, "negates": False}
        | blank
        for number, words in re.findall(r"^\[(\d+)\] \S+ \S+ \S+ \S+?: (.*mark.*)$", request.last_user, re.MULTILINE)
    ]
    return json.dumps({"items": items})


@dataclass
class Hidden:
    """A deletion: the words it covers, and the button that undoes it."""

    words: set[str]
    button: str
    at: datetime
    undone: bool = False


@dataclass
class World:
    """One person, and what they have said and forgotten."""

    talk: Talk
    random: Random
    said: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    deletions: list[Hidden] = field(default_factory=list)

    @property
    def gone(self) -> set[str]:
        """The words that are forgotten."""
        return {word for each in self.deletions if not each.undone for word in each.words}

    @property
    def alive(self) -> set[str]:
        """The words that are not."""
        return set(self.said) - self.gone

    async def say(self) -> None:
        """Say something with a word of its own, or ask for it to be remembered."""
        word = "mark" + "".join(self.random.choices("abcdefghijklmnopqrstuvwxyz", k=6))
        chat = self.random.choice(CHATS)
        form = self.random.choice(["I keep a {} in the cellar", "/remember my {} is in the attic", "{}, was it not?"])
        await self.talk.say(form.format(word), chat=chat)
        self.said[word] = (chat, self.talk.clock())

    async def forget(self) -> None:
        """Forget in some form, and say yes to it."""
        chat = self.random.choice(CHATS)
        form = self.random.choice(["word", "word", "last", "since", "here", "number", "everything"])
        if form == "everything" and (chat or self.random.random() < 0.5):
            return
        words, covered = self._asked(form, chat)
        if form == "number":
            await self.talk.say("/whatdoyouknow", chat=chat)
        (offer,) = await self.talk.ask(f"/forget {words}", chat=chat)
        if not offer.buttons:
            assert not covered & self.alive, (form, words, offer.text)
            return
        if form in ("last", "number"):
            covered = set(MARKER.findall(offer.text))
            assert len(covered) == 1
        answer = await self._yes(form, offer, chat)
        assert answer.buttons, (form, answer.text)
        self.deletions.append(Hidden(covered, answer.buttons[0].id, self.talk.clock()))

    def _asked(self, form: str, chat: str) -> tuple[str, set[str]]:
        """What to type, and the words that it must take."""
        here = {word for word, (where, _) in self.said.items() if where == chat}
        if form == "word":
            pool = sorted(self.said if not chat else here) or ["markzzzzzz"]
            word = self.random.choice(pool)
            return word, {word}
        if form == "since":
            start = self.random.choice([at for _, at in self.said.values()] or [self.talk.clock()])
            start = start.replace(second=0, microsecond=0)
            if start.date() != self.talk.clock().date():
                return "markzzzzzz", set()
            later = {word for word, (_, at) in self.said.items() if at >= start}
            return f"since {start:%H:%M}", later & here if chat else later
        if form == "here":
            return "this chat", here
        if form == "everything":
            return form, set(self.said)
        return {"last": "last", "number": "1"}[form], set()  # What that is, the offer says.

    async def _yes(self, form: str, offer: Reply, chat: str) -> Reply:
        if form == "everything":
            (answer,) = await self.talk.ask("/forget yes, forget all of me")
        else:
            (answer,) = await self.talk.ask("/forget yes", chat=chat)
        return answer

    async def undo(self) -> None:
        """Undo one of the deletions, by its button; one that is carried out stays so."""
        if not self.deletions:
            return
        chosen = self.random.choice(self.deletions)
        answer = await self.talk.press(chosen.button)
        chosen.undone |= answer.startswith("Back again")

    async def check(self) -> None:
        """Compare what may be seen with what should be."""
        shown = await self.visible()
        assert shown == self.alive, (sorted(shown - self.alive), sorted(self.alive - shown))

    async def visible(self) -> set[str]:
        """The words in all that recall, the window or a list could show."""
        owner = await self.talk.owner()
        lines = [id_ for (id_,) in self.talk.rows("SELECT id FROM journal")]
        found = await self.talk.app.memory.entries(owner, lines)
        texts = [entry.text for entry in found.values()]
        for entry in await self.talk.app.memory.history(owner):
            texts += [entry.text, *(c.quote for c in entry.provenance.citations)]
        return set(MARKER.findall(" ".join(texts)))


async def lived(talk: Talk, world: World, operations: int) -> None:
    """Do random things, and look after each."""
    for _ in range(operations):
        await world.check()
        step = world.random.choices(
            [world.say, world.forget, world.undo, talk.app.tick, None], weights=[6, 3, 1, 1, 1]
        )[0]
        if step is not None:
            await step()
        else:
            talk.clock.advance(minutes=world.random.choice([1, 9, 31]))
            await talk.app.tick()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2, 3, SEED])
async def test_what_is_forgotten_is_seen_nowhere_and_in_the_end_is_nowhere(
    data_dir: Path, clock: Clock, seed: int
) -> None:
    async with OpenAIServer() as server:
        server.on("[1]", reply=distilled)
        server.on(reply=repeated)
        random, clock.now = Random(seed), clock.now.replace(hour=1)
        async with talking(data_dir, clock, server) as talk:
            world = World(talk, random)
            await world.say()
            await lived(talk, world, OPERATIONS)
        async with talking(data_dir, clock, server) as talk:  # A restart.
            world.talk = talk
            talk._numbers = 10_000
            await lived(talk, world, OPERATIONS // 3)
            for _ in range(3):
                clock.advance(minutes=31)
                await talk.app.tick()
            await world.check()
            stored = talk.everything_stored()
            assert [word for word in world.gone if word in stored] == []
        assert [word for word in world.gone if holding(data_dir, word)] == []
        assert world.gone
